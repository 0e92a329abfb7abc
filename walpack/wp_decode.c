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

#define MAX_BLOCK		(2 * 65536) /* image and data: lengths have 16 bits */
#define MAX_HEADERS		4096	/* bytes of a record besides its data */

typedef struct WpDecoder
{
	WpContext  *ctx;
	WpReader   *sections;
	uint8	   *raw;			/* destination of the original */
	const uint8 *expected;		/* or the expected original; NULL: see raw */
	WpPages		pages;
	uint32		payload_len;	/* of the chunk without page headers */
	uint32		offset;			/* in the original, of the next byte of the
								 * payload */
	uint32		page_left;		/* bytes from there to the page's end */
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
	uint8	   *record;			/* the current one, and zeros */
} WpDecoder;

/* ---- the payload ---- */

/*
 * Deliver the next bytes of the payload between the page headers, or compare
 * them.  Delivered bytes can be copied again.
 */
static void
deliver(WpDecoder *d, const uint8 *src, uint32 n)
{
	while (n > 0)
	{
		uint32		len = Min(n, d->page_left);

		if (d->expected == NULL)
			memcpy(d->raw + d->offset, src, len);
		else if (memcmp(d->expected + d->offset, src, len) != 0)
			wp_fail(d->ctx, "the original is another one");
		src += len;
		n -= len;
		d->offset += len;
		d->page_left -= len;
		if (d->page_left == 0)
		{
			d->offset += WP_PAGE_HEADER;
			d->page_left = d->pages.page_size - WP_PAGE_HEADER;
		}
	}
}

static void
deliver_zeros(WpDecoder *d, uint32 n)
{
	static const uint8 zeros[4096];

	for (; n > sizeof(zeros); n -= sizeof(zeros))
		deliver(d, zeros, sizeof(zeros));
	deliver(d, zeros, n);
}

/*
 * Copy bytes of the payload that were delivered, or, in a comparison, that are
 * expected.
 */
static void
copy_delivered(const WpDecoder *d, uint8 *dst, uint32 pos, uint32 n)
{
	const uint8 *original = d->expected != NULL ? d->expected : d->raw;

	while (n > 0)
	{
		uint32		left;
		uint32		offset = wp_offset_at(&d->pages, pos, &left);
		uint32		len = Min(n, left);

		memcpy(dst, original + offset, len);
		dst += len;
		pos += len;
		n -= len;
	}
}

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
	memcpy(pages->first, wp_get_bytes(d->ctx, sec, pages->header_len),
		   pages->header_len);
	pages->rem_len = wp_alloc(d->ctx, pages->npages * sizeof(uint32));
	pages->next_page = 1;
	d->payload_len = pages->npages * (pages->page_size - WP_PAGE_HEADER) -
		(pages->header_len - WP_PAGE_HEADER);
	d->offset = pages->header_len;
	d->page_left = pages->page_size - pages->header_len;
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
	c->header_len = WP_REC_HEADER + ((c->flags & WP_CLASS_ORIGIN) ? 3 : 0) +
		((c->flags & WP_CLASS_TOPXID) ? 5 : 0) +
		((c->flags & WP_CLASS_MAIN_LONG) ? 5 :
		 (c->flags & WP_CLASS_MAIN_SHORT) ? 2 : 0);
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
		memcpy(d->rels[i].key,
			   wp_group_take(ctx, &d->rel_keys, sizeof(d->rels[i].key)),
			   sizeof(d->rels[i].key));
	d->nclasses = wp_get_limited(ctx, &d->sections[WP_SEC_PAGES],
								 WP_MAX_CLASSES);
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

/* Get the next record's xid.  Its transaction is then in the first slot. */
static uint32
take_xid(WpDecoder *d)
{
	WpXids	   *x = &d->xids;
	uint32		context = x->record_context;
	uint8		symbol = *wp_group_take(d->ctx,
										context ?
										&d->classes[context - 1].xid_symbols :
										&d->first_symbols,
										1);
	uint32		number;

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
			number = wp_get_limited(d->ctx, &d->sections[WP_SEC_NUMBERS],
									PG_UINT32_MAX);
			wp_xid_new(x, x->max + wp_unzigzag(number));
			break;
		default:
			wp_fail(d->ctx, "unknown transaction symbol");
	}
	return x->slots[0].xid;
}

static uint32
take_class(WpDecoder *d, bool has_xid)
{
	uint32		context = has_xid ?
		d->xids.slots[0].context : d->xids.none_context;
	uint32		len;
	const uint8 *code = wp_group_next(d->ctx,
									  context ? &d->classes[context - 1].codes :
									  &d->first_codes,
									  &len);
	uint32		cls = len == 1 ? code[0] : len == 3 ? wp_get16(code + 1) :
		PG_UINT32_MAX;

	if (cls >= d->nclasses)
		wp_fail(d->ctx, "unknown class");
	return cls;
}

/*
 * Join the block's data, at most PG_UINT16_MAX bytes: the row, and between its
 * bytes the copies from bytes in front of the record at pos.  from is the
 * expected place of the next copy.  Returns the data's length.
 */
static uint32
join_copies(WpDecoder *d, WpClassBlock *cb, uint32 pos, const uint8 *row,
			uint32 row_len, uint8 *joined, uint32 *from)
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

		if (skip > row_len || source > pos || len > pos - source ||
			used + skip + len > PG_UINT16_MAX)
			wp_fail(ctx, "a copy from nowhere");
		memcpy(joined + used, row, skip);
		copy_delivered(d, joined + used + skip, source, len);
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

/* Deliver the image at p; sets its length. */
static void
take_image(WpDecoder *d, WpClassBlock *cb, WpBlock *b, uint8 *p)
{
	WpContext  *ctx = d->ctx;
	const uint8 *row;

	b->img_info = cb->img_info;
	if (cb->img_mode == WP_IMAGE_PAGE)
	{
		wp_page_read(ctx, &d->rels[cb->rel], b, &d->map, p,
					 &d->sections[WP_SEC_GAPS]);
		return;
	}
	row = wp_group_take(ctx, &cb->img_headers, 6);
	b->img_len = wp_get16(row);
	b->hole_off = wp_get16(row + 2);
	b->hole_len = wp_get16(row + 4);
	if (cb->img_mode == WP_IMAGE_PGLZ)
		wp_pglz_read(ctx, p, b->img_len, d->sections);
	else
		memcpy(p, wp_get_bytes(ctx, &d->sections[WP_SEC_IMAGES], b->img_len),
			   b->img_len);
}

/*
 * Deliver the data at p, of a block of the record at pos; returns its length.
 */
static uint32
take_data(WpDecoder *d, WpClassBlock *cb, uint32 pos, uint8 *p, uint32 *from)
{
	uint32		len;
	const uint8 *row = wp_group_next(d->ctx, &cb->data, &len);

	if (len > PG_UINT16_MAX)
		wp_fail(d->ctx, "block data is too long");
	if (cb->data_mode == WP_DATA_COPIED)
		return join_copies(d, cb, pos, row, len, p, from);
	if (cb->data_mode == WP_DATA_TUPLES)
	{
		if (len != 2)
			wp_fail(d->ctx, "no number of tuples");
		return wp_tuples_take(d->ctx, &d->rels[cb->rel].inserted, wp_get16(row),
							  p, PG_UINT16_MAX);
	}
	wp_copy_short(p, row, len);
	return len;
}

/*
 * Deliver image and data at p, of a block of the record at pos; returns their
 * end.
 */
static uint8 *
take_block(WpDecoder *d, WpClassBlock *cb, uint32 pos, WpBlock *b, uint8 *p,
		   uint32 *from)
{
	WpRelation *rel = &d->rels[cb->rel];

	b->number = wp_get32(wp_group_take(d->ctx, &cb->numbers, 4));
	if (cb->numbers.flags & WP_GROUP_BLOCK_REL)
		b->number = rel->last_block + wp_unzigzag(b->number);
	rel->last_block = b->number;
	b->img_len = b->data_len = 0;
	if (cb->flags & WP_HAS_IMAGE)
		take_image(d, cb, b, p);
	p += b->img_len;
	if (cb->flags & WP_HAS_DATA)
		b->data_len = take_data(d, cb, pos, p, from);
	return p + b->data_len;
}

/* Write a block reference at p; returns its end. */
static uint8 *
put_block_header(const WpDecoder *d, const WpClassBlock *cb, const WpBlock *b,
				 uint8 *p)
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

static void
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
	}
	else if (c->flags & WP_CLASS_MAIN_SHORT)
	{
		*p++ = WP_ID_MAIN_SHORT;
		*p = main_len;
	}
}

/*
 * Write the record's own header, after all of the rest, and the zeros behind
 * the record.  The encoder has verified the CRC of an expected record, so a
 * comparison of the rest need not compute it again.
 */
static void
put_record_header(const WpDecoder *d, const WpClass *c, uint32 pos, uint32 len,
				  uint32 xid, uint64 prev)
{
	uint8	   *start = d->record;

	wp_set32(start, len);
	wp_set32(start + 4, xid);
	wp_set64(start + 8, prev);
	start[16] = c->info;
	start[17] = c->rmid;
	start[18] = start[19] = 0;
	if (d->expected == NULL)
		wp_set32(start + WP_REC_CRC, wp_record_crc(start, len));
	else if (d->page_left >= WP_REC_HEADER)
		memcpy(start + WP_REC_CRC, d->expected + d->offset + WP_REC_CRC, 4);
	else
		copy_delivered(d, start + WP_REC_CRC, pos + WP_REC_CRC, 4);
	memset(start + len, 0, WP_ALIGN8(len) - len);
}

/*
 * Deliver the next record, which is at pos; returns where the one after it
 * starts.
 */
static uint32
take_record(WpDecoder *d, uint32 pos)
{
	WpContext  *ctx = d->ctx;
	WpBlock		blocks[WP_MAX_BLOCK_ID + 1];
	uint32		xid = take_xid(d);
	uint32		cls = take_class(d, xid != 0);
	WpClass    *c = &d->classes[cls];
	uint64		prev = d->next_prev;
	uint64		len;
	uint32		main_len = 0;
	const uint8 *main = NULL;
	uint8	   *p = d->record + c->header_len;
	WpCopyFrom	none = {0, true};
	WpCopyFrom *expected = &none;
	uint32		from;
	bool		copied = false;

	Assert(pos <= d->payload_len);
	wp_xid_done(&d->xids, xid != 0, cls, c->rmid);
	/* a record that ends a transaction copies nothing */
	if (c->rmid != WP_RMID_XACT)
		expected = xid != 0 ? &d->xids.slots[0].from : &d->xids.none_from;
	from = expected->pos;
	if (c->flags & WP_CLASS_PREV)
		prev = wp_get64(wp_group_take(ctx, &c->prev, 8));
	for (uint32 i = 0; i < c->nblocks; i++)
	{
		p = take_block(d, &c->blocks[i], pos, &blocks[i], p, &from);
		copied |= c->blocks[i].data_mode == WP_DATA_COPIED;
	}
	if (c->flags & (WP_CLASS_MAIN_SHORT | WP_CLASS_MAIN_LONG))
		main = wp_group_next(ctx, &c->main, &main_len);
	len = (uint64) (p - d->record) + main_len;
	if (WP_ALIGN8(len) > d->payload_len - pos)
		wp_fail(ctx, "a record extends beyond the end");
	if (main_len > 0)
		wp_copy_short(p, main, main_len);
	p = d->record + WP_REC_HEADER;
	for (uint32 i = 0; i < c->nblocks; i++)
		p = put_block_header(d, &c->blocks[i], &blocks[i], p);
	put_tail_headers(d, c, main_len, p);
	put_record_header(d, c, pos, len, xid, prev);
	wp_copy_from_record(expected, pos, len, copied ? from : 0);
	d->next_prev = wp_get64(d->pages.first + 8) + d->offset;
	deliver(d, d->record, WP_ALIGN8(len));
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
		uint32		run = wp_get_limited(ctx, items,
										 d->payload_len / WP_REC_HEADER);
		uint32		literal = wp_get_limited(ctx, items, d->payload_len);
		uint32		zeros = wp_get_limited(ctx, items, d->payload_len);
		uint32		announced = wp_get_limited(ctx, items, PG_UINT32_MAX);

		if (run == 0 && literal == 0 && zeros == 0)
			wp_fail(ctx, "empty item");
		while (run-- > 0)
			pos = take_record(d, pos);
		if (literal > d->payload_len - pos ||
			zeros > d->payload_len - pos - literal)
			wp_fail(ctx, "literal bytes extend beyond the end");
		deliver(d, wp_get_bytes(ctx, &d->sections[WP_SEC_LITERAL], literal),
				literal);
		deliver_zeros(d, zeros);
		wp_pages_item(&d->pages, pos, announced, pos + literal + zeros);
		pos += literal + zeros;
	}
}

static void
deliver_header(const WpDecoder *d, uint32 page, const uint8 *header, uint32 n)
{
	size_t		at = (size_t) page * d->pages.page_size;

	if (d->expected == NULL)
		memcpy(d->raw + at, header, n);
	else if (memcmp(d->expected + at, header, n) != 0)
		wp_fail(d->ctx, "the original is another one");
}

/* Deliver the page headers, which are known after all items. */
static void
take_headers(WpDecoder *d)
{
	WpPages    *pages = &d->pages;
	WpReader   *sec = &d->sections[WP_SEC_PAGES];
	uint16		removable = wp_get16(pages->first + 2) & WP_XLP_REMOVABLE;
	uint32		exception = sec->p < sec->end ?
		wp_get_limited(d->ctx, sec, pages->npages) : 0;

	deliver_header(d, 0, pages->first, pages->header_len);
	for (uint32 i = 1; i < pages->npages; i++)
	{
		uint8		predicted[WP_PAGE_HEADER];
		const uint8 *header = predicted;

		if (i != exception)
			wp_page_predict(pages, i, removable, predicted);
		else
		{
			header = wp_get_bytes(d->ctx, sec, WP_PAGE_HEADER);
			removable = wp_get16(header + 2) & WP_XLP_REMOVABLE;
			if (sec->p < sec->end)
				exception += wp_get_limited(d->ctx, sec, pages->npages);
		}
		deliver_header(d, i, header, WP_PAGE_HEADER);
	}
}

void
wp_decode_records(WpContext *ctx, WpReader *sections, uint8 *raw,
				  const uint8 *expected, uint32 raw_len)
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
	/* a record is made before its length is checked */
	d->record = wp_alloc(ctx, d->payload_len + MAX_HEADERS +
						 MAX_BLOCK * (WP_MAX_BLOCK_ID + 1) + WP_SLACK);
	take_items(d);
	take_headers(d);
}
