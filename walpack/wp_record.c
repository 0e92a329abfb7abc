/*-------------------------------------------------------------------------
 * wp_record.c
 *	  Splitting of WAL records.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "port/pg_crc32c.h"

#include "wp_record.h"
#include "wp_util.h"

int
wp_magic_version(uint16 magic)
{
	switch (magic)
	{
		case WP_MAGIC_15:
			return 15;
		case WP_MAGIC_16:
			return 16;
		case WP_MAGIC_17:
			return 17;
		case WP_MAGIC_18:
			return 18;
		case WP_MAGIC_19:
			return 19;
		default:
			return 0;
	}
}

/* ---- the CRC ---- */

/*
 * The instruction that computes CRC-32C takes 8 bytes, and gives its result
 * three cycles later, but can be started in each cycle.  The server's function
 * waits for every result, and takes what is left in single bytes.  Here three
 * pieces of long records are computed side by side, and then joined: for that
 * the CRC of the first one is continued over as many zeros as the others have
 * bytes.  As a polynomial it is multiplied by x^(8 n - 33), modulo that of the
 * CRC; the instruction gives another x^32, and a product of reversed bits has
 * one more.
 */
#ifdef __x86_64__
#include <immintrin.h>

#define CRC_TARGET			__attribute__((target("sse4.2,pclmul")))
#define CRC_PIECE			256
#define CRC_OVER_PIECE		0xB9E02B86	/* x^(8 n - 33) for n of one piece */
#define CRC_OVER_TWO		0xDD7E3B0C	/* and of two */

/* Continue the CRC over n more zeros. */
CRC_TARGET static inline uint32
crc_over_zeros(uint32 crc, uint32 factor)
{
	__m128i		product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(crc),
											   _mm_cvtsi32_si128(factor), 0);

	return _mm_crc32_u64(0, _mm_cvtsi128_si64(product));
}

/* Continue the CRC over three more pieces. */
CRC_TARGET static inline uint32
crc_of_pieces(uint32 crc, const uint8 *p)
{
	uint64		first = crc;
	uint64		second = 0;
	uint64		third = 0;

	for (int i = 0; i < CRC_PIECE; i += 8)
	{
		first = _mm_crc32_u64(first, wp_get64(p + i));
		second = _mm_crc32_u64(second, wp_get64(p + CRC_PIECE + i));
		third = _mm_crc32_u64(third, wp_get64(p + 2 * CRC_PIECE + i));
	}
	return crc_over_zeros(first, CRC_OVER_TWO) ^
		crc_over_zeros(second, CRC_OVER_PIECE) ^ (uint32) third;
}

CRC_TARGET static uint32
fast_record_crc(const uint8 *record, uint32 tot_len)
{
	const uint8 *p = record + WP_REC_HEADER;
	uint32		n = tot_len - WP_REC_HEADER;
	uint64		crc = 0xFFFFFFFF;

	for (; n >= 3 * CRC_PIECE; n -= 3 * CRC_PIECE, p += 3 * CRC_PIECE)
		crc = crc_of_pieces(crc, p);
	for (; n >= 8; n -= 8, p += 8)
		crc = _mm_crc32_u64(crc, wp_get64(p));
	if (n & 4)
		crc = _mm_crc32_u32(crc, wp_get32(p)), p += 4;
	if (n & 2)
		crc = _mm_crc32_u16(crc, wp_get16(p)), p += 2;
	if (n & 1)
		crc = _mm_crc32_u8(crc, *p);
	crc = _mm_crc32_u64(crc, wp_get64(record));
	crc = _mm_crc32_u64(crc, wp_get64(record + 8));
	return ~_mm_crc32_u32(crc, wp_get32(record + 16));
}

#define HAS_FAST_CRC() \
	(__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
#else
#define fast_record_crc(record, tot_len) 0
#define HAS_FAST_CRC()		false
#endif

uint32
wp_record_crc(const uint8 *p, uint32 tot_len)
{
	pg_crc32c	crc;

	Assert(tot_len >= WP_REC_HEADER);
	if (HAS_FAST_CRC())
		return fast_record_crc(p, tot_len);
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, p + WP_REC_HEADER, tot_len - WP_REC_HEADER);
	COMP_CRC32C(crc, p, WP_REC_CRC);
	FIN_CRC32C(crc);
	return crc;
}

/* Parse one block reference at p; returns the address behind it, or NULL. */
static const uint8 *
parse_block(const uint8 *p, const uint8 *end, const uint8 **rel, WpBlock *b)
{
	if (end - p < 4)
		return NULL;
	b->id = p[0];
	b->flags = p[1];
	b->data_len = wp_get16(p + 2);
	p += 4;
	if (((b->flags & WP_HAS_DATA) != 0) != (b->data_len > 0))
		return NULL;
	b->img_len = b->hole_off = b->hole_len = 0;
	b->img_info = 0;
	if (b->flags & WP_HAS_IMAGE)
	{
		if (end - p < 7)
			return NULL;
		b->img_len = wp_get16(p);
		b->hole_off = wp_get16(p + 2);
		b->img_info = p[4];
		p += 5;
		if (WP_IMG_HAS_HOLE_LEN(b->img_info))
		{
			b->hole_len = wp_get16(p);
			p += 2;
		}
	}
	if (!(b->flags & WP_SAME_REL))
	{
		if (end - p < 12)
			return NULL;
		*rel = p;
		p += 12;
	}
	if (*rel == NULL || end - p < 4)
		return NULL;
	b->rel = *rel;
	b->number = wp_get32(p);
	return p + 4;
}

/*
 * Parse the headers between the record's header and its data; returns their
 * end, or NULL.
 */
static const uint8 *
parse_headers(const uint8 *p, const uint8 *end, WpRecord *rec, uint64 *data_len)
{
	const uint8 *rel = NULL;

	while ((uint64) (end - p) > *data_len)
	{
		uint8		id = *p;

		if (id <= WP_MAX_BLOCK_ID)
		{
			WpBlock    *b = &rec->blocks[rec->nblocks];

			if (rec->origin || rec->topxid ||
				(rec->nblocks > 0 && b[-1].id >= id) ||
				(p = parse_block(p, end, &rel, b)) == NULL)
				return NULL;
			rec->nblocks++;
			*data_len += b->img_len + b->data_len;
		}
		else if (id == WP_ID_ORIGIN && !rec->origin && !rec->topxid &&
				 end - p >= 3)
		{
			rec->origin = p + 1;
			p += 3;
		}
		else if (id == WP_ID_TOPXID && !rec->topxid && end - p >= 5)
		{
			rec->topxid = p + 1;
			p += 5;
		}
		else if (id == WP_ID_MAIN_SHORT && end - p >= 2)
		{
			rec->main_id = id;
			rec->main_len = p[1];
			*data_len += p[1];
			return p + 2;		/* always the last */
		}
		else if (id == WP_ID_MAIN_LONG && end - p >= 5)
		{
			rec->main_id = id;
			rec->main_len = wp_get32(p + 1);
			*data_len += rec->main_len;
			return p + 5;
		}
		else
			return NULL;
	}
	return p;
}

bool
wp_record_parse(const uint8 *p, size_t avail, WpRecord *rec)
{
	const uint8 *end;
	uint64		data_len = 0;

	if (avail < WP_REC_HEADER)
		return false;
	rec->tot_len = wp_get32(p);
	if (rec->tot_len < WP_REC_HEADER || rec->tot_len > avail || p[18] != 0 ||
		p[19] != 0)
		return false;
	rec->xid = wp_get32(p + 4);
	rec->prev = wp_get64(p + 8);
	rec->info = p[16];
	rec->rmid = p[17];
	rec->crc = wp_get32(p + 20);
	rec->nblocks = 0;
	rec->main_id = 0;
	rec->main_len = 0;
	rec->origin = rec->topxid = NULL;
	end = p + rec->tot_len;
	p = parse_headers(p + WP_REC_HEADER, end, rec, &data_len);
	if (p == NULL || (uint64) (end - p) != data_len)
		return false;
	for (uint32 i = 0; i < rec->nblocks; i++)
	{
		rec->blocks[i].image = p;
		p += rec->blocks[i].img_len;
		rec->blocks[i].data = p;
		p += rec->blocks[i].data_len;
	}
	rec->main = p;
	return true;
}
