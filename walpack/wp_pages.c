/*-------------------------------------------------------------------------
 * wp_pages.c
 *	  Encoder: the pages of a chunk, and their headers.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_model.h"

uint8 *
wp_pages_split(WpContext *ctx, WpPages *pages, const uint8 *raw, uint32 raw_len,
			   uint32 page_size, uint32 *payload_len)
{
	uint8	   *payload;
	uint8	   *out;

	pages->page_size = page_size;
	pages->npages = raw_len / page_size;
	pages->long_header = (wp_get16(raw + 2) & WP_XLP_LONG) != 0;
	pages->header_len = pages->long_header ? WP_LONG_HEADER : WP_PAGE_HEADER;
	memcpy(pages->first, raw, pages->header_len);
	*payload_len = pages->npages * (page_size - WP_PAGE_HEADER) -
		(pages->header_len - WP_PAGE_HEADER);
	payload = out = wp_alloc(ctx, *payload_len + WP_SLACK);
	pages->rem_len = wp_alloc(ctx, pages->npages * sizeof(uint32));
	pages->next_page = 1;
	for (uint32 i = 0; i < pages->npages; i++)
	{
		uint32		header = i == 0 ? pages->header_len : WP_PAGE_HEADER;

		memcpy(out, raw + (size_t) i * page_size + header, page_size - header);
		out += page_size - header;
	}
	Assert(out == payload + *payload_len);
	return payload;
}

void
wp_pages_put(WpContext *ctx, const WpPages *pages, const uint8 *raw,
			 uint32 nclasses, WpBuf *sec)
{
	uint16		removable = wp_get16(raw + 2) & WP_XLP_REMOVABLE;
	uint32		last = 0;

	wp_put_varint(ctx, sec, pages->page_size);
	wp_put_u8(ctx, sec, pages->long_header);
	wp_put_bytes(ctx, sec, pages->first, pages->header_len);
	wp_put_varint(ctx, sec, nclasses);
	for (uint32 i = 1; i < pages->npages; i++)
	{
		const uint8 *header = raw + (size_t) i * pages->page_size;
		uint8		expected[WP_PAGE_HEADER];

		wp_page_predict(pages, i, removable, expected);
		if (memcmp(header, expected, WP_PAGE_HEADER) == 0)
			continue;
		wp_put_varint(ctx, sec, i - last);
		wp_put_bytes(ctx, sec, header, WP_PAGE_HEADER);
		removable = wp_get16(header + 2) & WP_XLP_REMOVABLE;
		last = i;
	}
}

uint32
wp_pages_next_start(const WpPages *pages, const uint8 *raw, uint32 i,
					uint32 payload_len, uint32 *pos)
{
	for (; i < pages->npages; i++)
	{
		const uint8 *header = raw + (size_t) i * pages->page_size;
		uint32		rem = (wp_get16(header + 2) & WP_XLP_CONTRECORD) ?
			wp_get32(header + 16) : 0;

		if (wp_magic_version(wp_get16(header)) != 0 && rem < pages->page_size)
		{
			*pos = wp_page_start(pages, i) + WP_ALIGN8(rem);
			if (*pos < payload_len)
				return i;
		}
	}
	return 0;
}
