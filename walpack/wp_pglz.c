/*-------------------------------------------------------------------------
 * wp_pglz.c
 *	  Images compressed by pglz, taken apart into their tokens.
 *
 * Eight tokens follow a control byte, whose bits, from the lowest, say what
 * they are: 0, a literal byte; 1, a tag of two bytes, followed by a third
 * one if the low four bits of the first are all set.  The last control
 * byte may have fewer tokens.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_page.h"

#define TAG_IS_LONG(tag)	(((tag) & 0x0F) == 0x0F)

/* Positions in the four sections that are written or read. */
typedef struct TokenStreams
{
	uint8	   *control;
	uint8	   *tags;
	uint8	   *lengths;
	uint8	   *literals;
} TokenStreams;

/* Eight tokens take at most this many bytes, and copies may touch this many. */
#define GROUP_BYTES		32

/*
 * Split the eight tokens at p; returns the address behind them.  The loop
 * proceeds from tag to tag, because the processor can't predict single bits.
 */
static inline const uint8 *
split_group(const uint8 *p, uint32 control, TokenStreams *out)
{
	uint32		left = 8;

	while (control != 0)
	{
		uint32		run = __builtin_ctz(control);
		uint32		longer;

		memcpy(out->literals, p, 8);
		out->literals += run;
		p += run;
		longer = TAG_IS_LONG(*p);
		memcpy(out->tags, p, 2);
		out->tags += 2;
		*out->lengths = p[2];
		out->lengths += longer;
		p += 2 + longer;
		control >>= run + 1;
		left -= run + 1;
	}
	memcpy(out->literals, p, 8);
	out->literals += left;
	return p + left;
}

/*
 * Split a single token, for the image's end.  Returns NULL if the end is in
 * the token.
 */
static const uint8 *
split_token(const uint8 *p, const uint8 *end, bool tag, TokenStreams *out)
{
	if (!tag)
	{
		*out->literals++ = *p;
		return p + 1;
	}
	if (end - p < 2 + TAG_IS_LONG(*p))
		return NULL;
	*out->tags++ = p[0];
	*out->tags++ = p[1];
	if (TAG_IS_LONG(*p))
		*out->lengths++ = p[2];
	return p + 2 + TAG_IS_LONG(*p);
}

bool
wp_pglz_write(WpContext *ctx, const WpBlock *block, WpBuf *sections)
{
	const uint8 *p = block->image;
	const uint8 *end = p + block->img_len;
	TokenStreams out;
	uint8	  **ends[4] = {
		&out.control, &out.tags, &out.lengths, &out.literals
	};

	if ((block->img_info & WP_IMG_COMPRESSED) != WP_IMG_PGLZ)
		return false;
	for (int i = 0; i < 4; i++)
	{
		WpBuf	   *sec = &sections[WP_SEC_PGLZ_CONTROL + i];

		*ends[i] = wp_buf_add(ctx, sec, block->img_len + GROUP_BYTES);
		sec->used -= block->img_len + GROUP_BYTES;
	}
	while (p < end)
	{
		uint32		control = *p++;

		*out.control++ = control;
		if (end - p >= GROUP_BYTES)
		{
			p = split_group(p, control, &out);
			continue;
		}
		for (int i = 0; i < 8 && p < end; i++, control >>= 1)
			if ((p = split_token(p, end, control & 1, &out)) == NULL)
				return false;
	}
	for (int i = 0; i < 4; i++)
	{
		WpBuf	   *sec = &sections[WP_SEC_PGLZ_CONTROL + i];

		sec->used = *ends[i] - sec->data;
	}
	return true;
}

/* Join one token at p; returns its end. */
static uint8 *
join_token(WpContext *ctx, uint8 *p, uint8 *end, bool tag, WpReader *sections)
{
	const uint8 *in;
	uint32		len = 1;

	if (!tag)
		in = wp_get_bytes(ctx, &sections[WP_SEC_PGLZ_LITERALS], 1);
	else
	{
		in = wp_get_bytes(ctx, &sections[WP_SEC_PGLZ_TAGS], 2);
		len = 2 + TAG_IS_LONG(*in);
	}
	if (end - p < len)
		wp_fail(ctx, "an image is shorter than its tokens");
	memcpy(p, in, Min(len, 2));
	if (len == 3)
		p[2] = wp_get_u8(ctx, &sections[WP_SEC_PGLZ_LENGTHS]);
	return p + len;
}

/* Join eight tokens at p; returns their end. */
static inline uint8 *
join_group(uint8 *p, uint32 control, WpReader *tags, WpReader *lengths,
		   WpReader *literals)
{
	uint32		left = 8;

	while (control != 0)
	{
		uint32		run = __builtin_ctz(control);
		uint32		longer;

		memcpy(p, literals->p, 8);
		literals->p += run;
		p += run;
		longer = TAG_IS_LONG(*tags->p);
		memcpy(p, tags->p, 2);
		tags->p += 2;
		p[2] = *lengths->p;
		lengths->p += longer;
		p += 2 + longer;
		control >>= run + 1;
		left -= run + 1;
	}
	memcpy(p, literals->p, 8);
	literals->p += left;
	return p + left;
}

void
wp_pglz_read(WpContext *ctx, uint8 *image, uint32 len, WpReader *sections)
{
	WpReader   *tags = &sections[WP_SEC_PGLZ_TAGS];
	WpReader   *lengths = &sections[WP_SEC_PGLZ_LENGTHS];
	WpReader   *literals = &sections[WP_SEC_PGLZ_LITERALS];
	uint8	   *p = image;
	uint8	   *end = image + len;

	while (p < end)
	{
		uint32		control;

		*p++ = control = wp_get_u8(ctx, &sections[WP_SEC_PGLZ_CONTROL]);
		/* the usual case: no token can exceed a section or the image */
		if (end - p >= GROUP_BYTES &&
			literals->end - literals->p >= GROUP_BYTES &&
			tags->end - tags->p >= GROUP_BYTES &&
			lengths->end - lengths->p >= GROUP_BYTES)
		{
			p = join_group(p, control, tags, lengths, literals);
			continue;
		}
		for (int i = 0; i < 8 && p < end; i++, control >>= 1)
			p = join_token(ctx, p, end, control & 1, sections);
	}
}
