/*-------------------------------------------------------------------------
 * wp_decode.c
 *	  The sections of a chunk back into WAL.
 *
 * The input may be damaged or hostile: every read is bounded by its section,
 * every write by the chunk, and the memory used by a multiple of the chunk.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_model.h"

#define WP_MAX_IMAGE	65536	/* lengths have 16 bits */

typedef struct WpDecoder
{
	WpContext  *ctx;
	WpReader   *sections;
	uint8	   *raw;			/* where the original goes */
	const uint8 *expected;		/* or what it must be; NULL: see raw */
	WpPages		pages;
	uint8	   *payload;		/* the chunk without page headers */
	uint32		payload_len;
	uint64		next_prev;
	WpClass    *classes;
	uint32		nclasses;
	WpRelation *rels;
	uint32		nrels;
	WpXids		xids;
	WpGroup		first_symbols;
	WpGroup		first_codes;
	WpGroup		rel_keys;
	WpPageMap	map;
	uint8	   *images;			/* of one record */
	uint8	   *joined;			/* data of its blocks that have copies */
} WpDecoder;

/* ---- what comes first: pages, classes, groups ---- */

static void
read_pages(WpDecoder *d, uint32 raw_len)
{
	WpPages    *pages = &d->pages;
	WpReader   *sec = &d->sections[WP_SEC_PAGES];

	pages->page_size = wp_get_limited(d->ctx, sec, 65536);
	if (pages->page_size < 1024 || raw_len % pages->page_size != 0)
		wp_fail(d->ctx, "wrong page size");
	pages->npages = raw_len / pages->page_size;
	pages->long_header = wp_get_u8(d->ctx, sec) != 0;
	pages->header_len = pages->long_header ? WP_LONG_HEADER : WP_PAGE_HEADER;
	memcpy(pages->first, wp_get_bytes(d->ctx, sec, pages->header_len), pages->header_len);
	pages->rem_len = wp_alloc(d->ctx, pages->npages * sizeof(uint32));
	pages->next_page = 1;
	d->payload_len = pages->npages * (pages->page_size - WP_PAGE_HEADER) - (pages->header_len - WP_PAGE_HEADER);
	d->payload = wp_alloc(d->ctx, d->payload_len);
}

static void
read_class(WpDecoder *d, WpClass *c)
{
	WpContext  *ctx = d->ctx;
	WpReader   *sec = &d->sections[WP_SEC_CLASSES];

	c->rmid = wp_get_u8(ctx, sec);
	c->info = wp_get_u8(ctx, sec);
	c->flags = wp_get_u8(ctx, sec);
	c->nblocks = wp_get_limited(ctx, sec, WP_MAX_BLOCK_ID + 1);
	c->blocks = wp_zalloc(ctx, c->nblocks * sizeof(WpClassBlock));
	c->header_len = WP_REC_HEADER +
		((c->flags & WP_CLASS_ORIGIN) ? 3 : 0) + ((c->flags & WP_CLASS_TOPXID) ? 5 : 0) +
		((c->flags & WP_CLASS_MAIN_LONG) ? 5 : (c->flags & WP_CLASS_MAIN_SHORT) ? 2 : 0);
	for (uint32 i = 0; i < c->nblocks; i++)
	{
		WpClassBlock *b = &c->blocks[i];

		b->id = wp_get_u8(ctx, sec);
		b->flags = wp_get_u8(ctx, sec);
		b->rel = wp_get_limited(ctx, sec, WP_MAX_RELS);
		if (b->rel >= d->nrels)
			wp_fail(ctx, "unknown relation");
		c->header_len += 8 + ((b->flags & WP_SAME_REL) ? 0 : 12);
		if (b->flags & WP_HAS_IMAGE)
		{
			b->img_info = wp_get_u8(ctx, sec);
			b->img_mode = wp_get_limited(ctx, sec, WP_IMAGE_PGLZ);
			c->header_len += WP_IMG_HAS_HOLE_LEN(b->img_info) ? 7 : 5;
		}
		if (b->flags & WP_HAS_DATA)
		{
			b->data_mode = wp_get_limited(ctx, sec, WP_DATA_TUPLES);
			b->data_bucket = wp_get_u8(ctx, sec);
		}
	}
	if (c->flags & (WP_CLASS_MAIN_SHORT | WP_CLASS_MAIN_LONG))
		c->main_bucket = wp_get_u8(ctx, sec);
}

static void
read_class_groups(WpDecoder *d, WpClass *c, size_t *budget)
{
	WpContext  *ctx = d->ctx;

	wp_group_read(ctx, &c->xid_symbols, d->sections, budget);
	wp_group_read(ctx, &c->codes, d->sections, budget);
	wp_group_read(ctx, &c->prev, d->sections, budget);
	for (uint32 i = 0; i < c->nblocks; i++)
	{
		wp_group_read(ctx, &c->blocks[i].numbers, d->sections, budget);
		wp_group_read(ctx, &c->blocks[i].img_headers, d->sections, budget);
		wp_group_read(ctx, &c->blocks[i].copy_counts, d->sections, budget);
		wp_group_read(ctx, &c->blocks[i].copies, d->sections, budget);
		wp_group_read(ctx, &c->blocks[i].data, d->sections, budget);
	}
	wp_group_read(ctx, &c->origin, d->sections, budget);
	wp_group_read(ctx, &c->topxid, d->sections, budget);
	wp_group_read(ctx, &c->main, d->sections, budget);
}

static void
read_model(WpDecoder *d, uint32 raw_len)
{
	WpContext  *ctx = d->ctx;
	size_t		budget = WP_ROW_BUDGET(raw_len);

	wp_group_read(ctx, &d->first_symbols, d->sections, &budget);
	wp_group_read(ctx, &d->first_codes, d->sections, &budget);
	wp_group_read(ctx, &d->rel_keys, d->sections, &budget);
	d->nrels = d->rel_keys.n;
	if (d->nrels > WP_MAX_RELS)
		wp_fail(ctx, "too many relations");
	d->rels = wp_zalloc(ctx, d->nrels * sizeof(WpRelation));
	for (uint32 i = 0; i < d->nrels; i++)
		memcpy(d->rels[i].key, wp_group_take(ctx, &d->rel_keys, sizeof(d->rels[i].key)),
			   sizeof(d->rels[i].key));
	d->nclasses = wp_get_limited(ctx, &d->sections[WP_SEC_PAGES], WP_MAX_CLASSES);
	d->classes = wp_zalloc(ctx, d->nclasses * sizeof(WpClass));
	for (uint32 i = 0; i < d->nclasses; i++)
		read_class(d, &d->classes[i]);
	for (uint32 i = 0; i < d->nclasses; i++)
		read_class_groups(d, &d->classes[i], &budget);
	for (uint32 i = 0; i < d->nrels; i++)
	{
		WpRelation *rel = &d->rels[i];

		wp_tuples_read(ctx, &rel->inserted, d->sections, &budget);
		wp_group_read(ctx, &rel->headers, d->sections, &budget);
		if (rel->headers.n == 0)
			continue;
		wp_group_read(ctx, &rel->items, d->sections, &budget);
		wp_group_read(ctx, &rel->special, d->sections, &budget);
		rel->tuples = wp_zalloc(ctx, WP_BUCKETS * sizeof(WpGroup));
		for (int j = 0; j < WP_BUCKETS; j++)
			wp_group_read(ctx, &rel->tuples[j], d->sections, &budget);
	}
}

/* ---- records ---- */

/* The next record's xid; its transaction is then in the first slot. */
static uint32
take_xid(WpDecoder *d)
{
	WpXids	   *x = &d->xids;
	uint32		context = x->record_context;
	uint8		symbol = *wp_group_take(d->ctx, context ? &d->classes[context - 1].xid_symbols :
										&d->first_symbols, 1);

	if (symbol < x->n)
	{
		wp_xid_touch(x, symbol);
		return x->slots[0].xid;
	}
	switch (symbol)
	{
		case WP_XID_NONE:
			return 0;
		case WP_XID_NEXT:
			wp_xid_new(x, x->max + 1);
			break;
		case WP_XID_OTHER:
			wp_xid_new(x, x->max + wp_unzigzag(wp_get_limited(d->ctx, &d->sections[WP_SEC_NUMBERS],
															  PG_UINT32_MAX)));
			break;
		default:
			wp_fail(d->ctx, "unknown transaction symbol");
	}
	return x->slots[0].xid;
}

static uint32
take_class(WpDecoder *d, bool has_xid)
{
	uint32		context = has_xid ? d->xids.slots[0].context : d->xids.none_context;
	uint32		len;
	const uint8 *code = wp_group_next(d->ctx, context ? &d->classes[context - 1].codes :
									  &d->first_codes, &len);
	uint32		cls = len == 1 ? code[0] : len == 3 ? wp_get16(code + 1) : PG_UINT32_MAX;

	if (cls >= d->nclasses)
		wp_fail(d->ctx, "unknown class");
	return cls;
}

/*
 * The block's data into joined, at most PG_UINT16_MAX bytes of it: the row, and between its bytes
 * what it copies from in front of the record at pos.  from is where the next copy is
 * expected.
 */
static uint32
join_copies(WpDecoder *d, WpClassBlock *cb, uint32 pos, const uint8 *row, uint32 row_len, uint8 *joined,
			uint32 *from)
{
	WpContext  *ctx = d->ctx;
	uint32		n = *wp_group_take(ctx, &cb->copy_counts, 1);
	uint32		used = 0;

	while (n-- > 0)
	{
		const uint8 *copy = wp_group_take(ctx, &cb->copies, WP_COPY_ROW);
		uint32		skip = wp_get16(copy);
		uint32		len = wp_get16(copy + 2);
		uint32		source = *from + wp_get32(copy + 4);

		if (skip > row_len || source > pos || len > pos - source || used + skip + len > PG_UINT16_MAX)
			wp_fail(ctx, "a copy from nowhere");
		memcpy(joined + used, row, skip);
		memcpy(joined + used + skip, d->payload + source, len);
		used += skip + len;
		row += skip;
		row_len -= skip;
		*from = source + len;
	}
	if (used + row_len > PG_UINT16_MAX)
		wp_fail(ctx, "block data is too long");
	memcpy(joined + used, row, row_len);
	return used + row_len;
}

/* Lengths and addresses of block i's parts, of the record at pos. */
static void
take_block(WpDecoder *d, WpClassBlock *cb, uint32 i, uint32 pos, WpBlock *b, uint8 *image, uint32 *from)
{
	WpContext  *ctx = d->ctx;
	WpRelation *rel = &d->rels[cb->rel];
	uint32		len;

	b->number = wp_get32(wp_group_take(ctx, &cb->numbers, 4));
	if (cb->numbers.flags & WP_GROUP_BLOCK_REL)
		b->number = rel->last_block + wp_unzigzag(b->number);
	rel->last_block = b->number;
	b->img_len = b->data_len = 0;
	b->image = b->data = cb->numbers.data;	/* no bytes are taken from there */
	if (cb->flags & WP_HAS_IMAGE)
	{
		b->img_info = cb->img_info;
		if (cb->img_mode == WP_IMAGE_PAGE)
		{
			wp_page_read(ctx, rel, b, &d->map, image, &d->sections[WP_SEC_GAPS]);
			b->image = image;
		}
		else
		{
			const uint8 *p = wp_group_take(ctx, &cb->img_headers, 6);

			b->img_len = wp_get16(p);
			b->hole_off = wp_get16(p + 2);
			b->hole_len = wp_get16(p + 4);
			if (cb->img_mode == WP_IMAGE_PGLZ)
			{
				wp_pglz_read(ctx, image, b->img_len, d->sections);
				b->image = image;
			}
			else
				b->image = wp_get_bytes(ctx, &d->sections[WP_SEC_IMAGES], b->img_len);
		}
	}
	if (cb->flags & WP_HAS_DATA)
	{
		b->data = wp_group_next(ctx, &cb->data, &len);
		if (len > PG_UINT16_MAX)
			wp_fail(ctx, "block data is too long");
		if (cb->data_mode != WP_DATA_PLAIN)
		{
			uint8	   *joined = d->joined + (size_t) WP_MAX_IMAGE * i;

			if (cb->data_mode == WP_DATA_COPIED)
				len = join_copies(d, cb, pos, b->data, len, joined, from);
			else if (len != 2)
				wp_fail(ctx, "no number of tuples");
			else
				len = wp_tuples_take(ctx, &rel->inserted, wp_get16(b->data), joined, PG_UINT16_MAX);
			b->data = joined;
		}
		b->data_len = len;
	}
}

/* A block reference at p; returns its end. */
static uint8 *
put_block_header(const WpDecoder *d, const WpClassBlock *cb, const WpBlock *b, uint8 *p)
{
	*p++ = cb->id;
	*p++ = cb->flags;
	wp_set16(p, b->data_len);
	p += 2;
	if (cb->flags & WP_HAS_IMAGE)
	{
		wp_set16(p, b->img_len);
		wp_set16(p + 2, b->hole_off);
		p[4] = cb->img_info;
		p += 5;
		if (WP_IMG_HAS_HOLE_LEN(cb->img_info))
		{
			wp_set16(p, b->hole_len);
			p += 2;
		}
	}
	if (!(cb->flags & WP_SAME_REL))
	{
		memcpy(p, d->rels[cb->rel].key, 12);
		p += 12;
	}
	wp_set32(p, b->number);
	return p + 4;
}

static uint8 *
put_tail_headers(WpDecoder *d, WpClass *c, uint32 main_len, uint8 *p)
{
	if (c->flags & WP_CLASS_ORIGIN)
	{
		*p++ = WP_ID_ORIGIN;
		memcpy(p, wp_group_take(d->ctx, &c->origin, 2), 2);
		p += 2;
	}
	if (c->flags & WP_CLASS_TOPXID)
	{
		*p++ = WP_ID_TOPXID;
		memcpy(p, wp_group_take(d->ctx, &c->topxid, 4), 4);
		p += 4;
	}
	if (c->flags & WP_CLASS_MAIN_LONG)
	{
		*p++ = WP_ID_MAIN_LONG;
		wp_set32(p, main_len);
		p += 4;
	}
	else if (c->flags & WP_CLASS_MAIN_SHORT)
	{
		*p++ = WP_ID_MAIN_SHORT;
		*p++ = main_len;
	}
	return p;
}

/* The record's own header, when all else is there, and the zeros behind the record. */
static void
put_record_header(const WpClass *c, uint8 *start, uint32 len, uint32 xid, uint64 prev)
{
	wp_set32(start, len);
	wp_set32(start + 4, xid);
	wp_set64(start + 8, prev);
	start[16] = c->info;
	start[17] = c->rmid;
	start[18] = start[19] = 0;
	wp_set32(start + 20, wp_record_crc(start, len));
	memset(start + len, 0, WP_ALIGN8(len) - len);
}

/* Write the next record at pos; returns where the one after it starts. */
static uint32
take_record(WpDecoder *d, uint32 pos)
{
	WpContext  *ctx = d->ctx;
	WpBlock		blocks[WP_MAX_BLOCK_ID + 1];
	uint32		xid = take_xid(d);
	uint32		cls = take_class(d, xid != 0);
	WpClass    *c = &d->classes[cls];
	uint64		prev = d->next_prev;
	uint64		len = c->header_len;
	uint32		main_len = 0;
	const uint8 *main = NULL;
	uint8	   *start = d->payload + pos;
	uint8	   *p = start + WP_REC_HEADER;
	uint32		npages = 0;
	WpCopyFrom	none = {0, true};
	WpCopyFrom *expected = &none;
	uint32		from;
	bool		copied = false;

	wp_xid_done(&d->xids, xid != 0, cls, c->rmid);
	/* what ends a transaction copies nothing */
	if (c->rmid != WP_RMID_XACT)
		expected = xid != 0 ? &d->xids.slots[0].from : &d->xids.none_from;
	from = expected->pos;
	if (c->flags & WP_CLASS_PREV)
		prev = wp_get64(wp_group_take(ctx, &c->prev, 8));
	for (uint32 i = 0; i < c->nblocks; i++)
	{
		uint8	   *image = NULL;

		if ((c->blocks[i].flags & WP_HAS_IMAGE) && c->blocks[i].img_mode != WP_IMAGE_OPAQUE)
			image = d->images + WP_MAX_IMAGE * npages++;
		take_block(d, &c->blocks[i], i, pos, &blocks[i], image, &from);
		copied |= c->blocks[i].data_mode == WP_DATA_COPIED;
		len += blocks[i].img_len + blocks[i].data_len;
	}
	if (c->flags & (WP_CLASS_MAIN_SHORT | WP_CLASS_MAIN_LONG))
	{
		main = wp_group_next(ctx, &c->main, &main_len);
		len += main_len;
	}
	if (WP_ALIGN8(len) > d->payload_len - pos)
		wp_fail(ctx, "a record goes beyond the end");
	for (uint32 i = 0; i < c->nblocks; i++)
		p = put_block_header(d, &c->blocks[i], &blocks[i], p);
	p = put_tail_headers(d, c, main_len, p);
	for (uint32 i = 0; i < c->nblocks; i++)
	{
		memcpy(p, blocks[i].image, blocks[i].img_len);
		p += blocks[i].img_len;
		memcpy(p, blocks[i].data, blocks[i].data_len);
		p += blocks[i].data_len;
	}
	if (main_len > 0)
		memcpy(p, main, main_len);
	put_record_header(c, start, len, xid, prev);
	wp_copy_from_record(expected, pos, len, copied ? from : 0);
	d->next_prev = wp_lsn_at(&d->pages, pos);
	wp_pages_item(&d->pages, pos, len, pos + WP_ALIGN8(len));
	return pos + WP_ALIGN8(len);
}

static void
take_items(WpDecoder *d)
{
	WpContext  *ctx = d->ctx;
	WpReader   *items = &d->sections[WP_SEC_ITEMS];
	uint32		pos = 0;

	while (pos < d->payload_len)
	{
		uint32		run = wp_get_limited(ctx, items, d->payload_len / WP_REC_HEADER);
		uint32		literal = wp_get_limited(ctx, items, d->payload_len);
		uint32		zeros = wp_get_limited(ctx, items, d->payload_len);
		uint32		announced = wp_get_limited(ctx, items, PG_UINT32_MAX);

		if (run == 0 && literal == 0 && zeros == 0)
			wp_fail(ctx, "empty item");
		while (run-- > 0)
			pos = take_record(d, pos);
		if (literal > d->payload_len - pos || zeros > d->payload_len - pos - literal)
			wp_fail(ctx, "literal bytes go beyond the end");
		memcpy(d->payload + pos, wp_get_bytes(ctx, &d->sections[WP_SEC_LITERAL], literal), literal);
		memset(d->payload + pos + literal, 0, zeros);
		wp_pages_item(&d->pages, pos, announced, pos + literal + zeros);
		pos += literal + zeros;
	}
}

/* Deliver n bytes of the original at offset at, or compare them. */
static void
deliver(WpDecoder *d, size_t at, const void *src, size_t n)
{
	if (d->expected == NULL)
		memcpy(d->raw + at, src, n);
	else if (memcmp(d->expected + at, src, n) != 0)
		wp_fail(d->ctx, "the original is another one");
}

/* Put the page headers between. */
static void
join_pages(WpDecoder *d)
{
	WpPages    *pages = &d->pages;
	WpReader   *sec = &d->sections[WP_SEC_PAGES];
	const uint8 *in = d->payload;
	uint16		removable = wp_get16(pages->first + 2) & WP_XLP_REMOVABLE;
	uint32		exception = sec->p < sec->end ? wp_get_limited(d->ctx, sec, pages->npages) : 0;

	deliver(d, 0, pages->first, pages->header_len);
	for (uint32 i = 0; i < pages->npages; i++)
	{
		size_t		at = (size_t) i * pages->page_size;
		uint32		header_len = i == 0 ? pages->header_len : WP_PAGE_HEADER;
		uint8		predicted[WP_PAGE_HEADER];
		const uint8 *header = predicted;

		if (i > 0)
		{
			if (i != exception)
				wp_page_predict(pages, i, removable, predicted);
			else
			{
				header = wp_get_bytes(d->ctx, sec, WP_PAGE_HEADER);
				removable = wp_get16(header + 2) & WP_XLP_REMOVABLE;
				if (sec->p < sec->end)
					exception += wp_get_limited(d->ctx, sec, pages->npages);
			}
			deliver(d, at, header, WP_PAGE_HEADER);
		}
		deliver(d, at + header_len, in, pages->page_size - header_len);
		in += pages->page_size - header_len;
	}
}

void
wp_decode_records(WpContext *ctx, WpReader *sections, uint8 *raw, const uint8 *expected, uint32 raw_len)
{
	WpDecoder  *d = wp_zalloc(ctx, sizeof(WpDecoder));
	const WpCopyFrom none = {0, true};

	d->ctx = ctx;
	d->sections = sections;
	d->raw = raw;
	d->expected = expected;
	read_pages(d, raw_len);
	read_model(d, raw_len);
	d->xids.none_from = none;
	d->images = wp_alloc(ctx, WP_MAX_IMAGE * (WP_MAX_BLOCK_ID + 1));
	d->joined = wp_alloc(ctx, WP_MAX_IMAGE * (WP_MAX_BLOCK_ID + 1) + WP_SLACK);
	take_items(d);
	join_pages(d);
}
