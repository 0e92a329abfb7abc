/*-------------------------------------------------------------------------
 * wp_encode.c
 *	  Encoding a chunk of WAL into the sections of wp_format.h.
 *
 * The page headers are removed first, so that records are contiguous.  The rest
 * is divided into items: runs of records, and literal bytes where there is no
 * record that the model reproduces exactly.  That is the continuation of a
 * record of the segment before, the start of one that ends in the next segment,
 * garbage behind the end of WAL, or damage.  After garbage the encoder goes on
 * at the next page whose header says where a record starts.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_match.h"
#include "wp_model.h"

#define MAX_KEY		(16 + (WP_MAX_BLOCK_ID + 1) * 9)

/*
 * If LONG_ROW bytes are random, the squares of the numbers of equal bytes
 * usually add up to less than RANDOM_SQUARES: 1,534 is expected, with a
 * standard deviation of 45.
 */
#define LONG_ROW		512
#define RANDOM_SQUARES	1700
#define RANDOM_BUCKET	0x80

/* What the current record copies from earlier bytes of the chunk. */
typedef struct RecordCopies
{
	uint32		start;			/* the expected source of the first copy */
	uint8		mode[WP_MAX_BLOCK_ID + 1];	/* WP_DATA_... */
	uint32		n[WP_MAX_BLOCK_ID + 1];
	uint32		rest[WP_MAX_BLOCK_ID + 1];	/* bytes of data that are not
											 * copied */
	WpCopy		copies[WP_MAX_BLOCK_ID + 1][WP_MAX_COPIES];
} RecordCopies;

/* A table with open addressing from byte strings to 1 + index. */
typedef struct KeyTable
{
	uint32	   *slots;
	uint32		mask;
	uint32		n;
} KeyTable;

typedef struct WpEncoder
{
	WpContext  *ctx;
	WpBuf	   *sections;
	WpPages		pages;
	uint8	   *payload;		/* the chunk without page headers */
	uint32		payload_len;
	uint64		next_prev;		/* xl_prev that the next record should have */
	uint32		run;			/* records since the last literal */
	uint32		literal;		/* start of literal bytes not yet written */
	KeyTable	class_table;
	uint32	   *class_keys;		/* where each class's key starts in its
								 * section, and where the last one ends */
	WpClass    *classes;
	uint32		nclasses;
	uint32		maxclasses;
	KeyTable	rel_table;
	WpRelation **rels;
	uint32		nrels;
	uint32		maxrels;
	WpXids		xids;
	WpGroup		first_symbols;	/* xid symbol of the first record */
	WpGroup		first_codes;	/* classes of transactions' first records */
	WpGroup		rel_keys;
	WpPageMap	map;
	const uint8 *mapped;		/* the image that map describes */
	WpMatcher  *matcher;
	RecordCopies copies;		/* of the record at hand */
} WpEncoder;

/* ---- dictionaries ---- */

/* Hash a class's key.  7 bytes behind it must be readable. */
static uint32
hash_key(const uint8 *key, uint32 len)
{
	uint64		h = len;

	for (; len >= 8; key += 8, len -= 8)
		h = (h ^ wp_get64(key)) * UINT64CONST(0x9E3779B97F4A7C15), h ^= h >> 29;
	if (len > 0)
		h = (h ^ wp_get64(key) << (64 - 8 * len)) *
			UINT64CONST(0x9E3779B97F4A7C15);
	return (uint32) (h >> 32);
}

static inline uint32
hash_rel(const uint8 *key)
{
	uint64		h = wp_get64(key + 5) ^ wp_get64(key) * 31;

	return (h * UINT64CONST(0x9E3779B97F4A7C15)) >> 32;
}

static void *
grow(WpContext *ctx, void *old, uint32 n, uint32 *max, size_t size)
{
	uint32		had = *max;

	if (n < had)
		return old;
	*max = Max(32, had * 2);
	return wp_realloc(ctx, old, had * size, *max * size);
}

/* Grow the table if it is half full.  rehash gives the hash of key i. */
static void
table_grow(WpEncoder *e, KeyTable *t, uint32 (*rehash) (WpEncoder *e, uint32 i))
{
	uint32		size = t->slots ? (t->mask + 1) * 2 : 256;

	if (t->slots && t->n * 2 <= t->mask)
		return;
	t->slots = wp_zalloc(e->ctx, size * sizeof(uint32));
	t->mask = size - 1;
	for (uint32 i = 0; i < t->n; i++)
	{
		uint32		h = rehash(e, i);

		while (t->slots[h & t->mask] != 0)
			h++;
		t->slots[h & t->mask] = i + 1;
	}
}

static const uint8 *
class_key(WpEncoder *e, uint32 i, uint32 *len)
{
	*len = e->class_keys[i + 1] - e->class_keys[i];
	return e->sections[WP_SEC_CLASSES].data + e->class_keys[i];
}

static uint32
class_rehash(WpEncoder *e, uint32 i)
{
	uint8		key[MAX_KEY + 8];
	uint32		len;
	const uint8 *stored = class_key(e, i, &len);

	memcpy(key, stored, len);
	return hash_key(key, len);
}

static uint32
rel_rehash(WpEncoder *e, uint32 i)
{
	return hash_rel(e->rels[i]->key);
}

/* Find the index of a relation's fork, or -1 if there are too many. */
static int
find_rel(WpEncoder *e, const WpBlock *b)
{
	uint8		key[13];
	uint32		h;
	WpRelation *rel;

	memcpy(key, b->rel, 12);
	key[12] = b->flags & WP_FORK_MASK;
	h = hash_rel(key);
	table_grow(e, &e->rel_table, rel_rehash);
	for (; e->rel_table.slots[h & e->rel_table.mask] != 0; h++)
	{
		uint32		i = e->rel_table.slots[h & e->rel_table.mask] - 1;

		if (wp_get64(e->rels[i]->key) == wp_get64(key) &&
			wp_get64(e->rels[i]->key + 5) == wp_get64(key + 5))
			return i;
	}
	if (e->nrels >= WP_MAX_RELS)
		return -1;
	e->rels = grow(e->ctx, e->rels, e->nrels, &e->maxrels,
				   sizeof(WpRelation *));
	rel = wp_zalloc(e->ctx, sizeof(WpRelation));
	memcpy(rel->key, key, sizeof(key));
	memcpy(wp_group_add(e->ctx, &e->rel_keys, sizeof(key)), key, sizeof(key));
	e->rels[e->nrels] = rel;
	e->rel_table.slots[h & e->rel_table.mask] = ++e->nrels;
	e->rel_table.n = e->nrels;
	return e->nrels - 1;
}

static uint8 *
key_varint(uint8 *p, uint32 v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8) v | 0x80;
	*p++ = (uint8) v;
	return p;
}

/* Returns the expected source of the transaction's next copy. */
static uint32
expected_from(const WpXids *x, uint32 xid)
{
	if (xid == 0)
		return x->none_from.pos;
	for (uint32 i = 0; i < x->n; i++)
		if (x->slots[i].xid == xid)
			return x->slots[i].from.pos;
	return 0;
}

/* Find the parts of the record's data that occur earlier. */
static void
find_copies(WpEncoder *e, uint32 pos, const WpRecord *rec, const uint16 *rels)
{
	RecordCopies *rc = &e->copies;
	uint32		from = rc->start = expected_from(&e->xids, rec->xid);

	for (uint32 i = 0; i < rec->nblocks; i++)
	{
		const WpBlock *b = &rec->blocks[i];
		uint32		n = 0;

		rc->mode[i] = WP_DATA_PLAIN;
		if (WP_IS_MULTI_INSERT(rec->rmid, rec->info) && b->data_len > 0 &&
			wp_tuples_check(e->ctx, &e->rels[rels[i]]->inserted, b->data,
							b->data_len))
			rc->mode[i] = WP_DATA_TUPLES;
		else
			n = wp_match_block(e->matcher, pos, rec, i, rels[i], from,
							   rc->copies[i]);
		if (n > 0)
			rc->mode[i] = WP_DATA_COPIED;
		rc->n[i] = n;
		rc->rest[i] = b->data_len;
		for (uint32 j = 0; j < n; j++)
			rc->rest[i] -= rc->copies[i][j].len;
		if (n > 0)
			from = rc->copies[i][n - 1].source + rc->copies[i][n - 1].len;
	}
}

/*
 * Rows of similar length share a group.  Long rows without redundancy, such as
 * parts of large compressed values, have another group, which will be stored.
 */
static uint8
long_bucket(const WpBlock *b, uint32 rest)
{
	uint32		count[256] = {0};
	uint32		squares = 0;

	for (uint32 i = 0; i < LONG_ROW; i++)
		count[b->data[b->data_len - 1 - i]]++;
	for (int i = 0; i < 256; i++)
		squares += count[i] * count[i];
	return wp_bucket(rest) | (squares < RANDOM_SQUARES ? RANDOM_BUCKET : 0);
}

static inline uint8
data_bucket(const WpBlock *b, uint32 rest)
{
	return rest < LONG_ROW || rest != b->data_len ? wp_bucket(rest) :
		long_bucket(b, rest);
}

/*
 * Make the class's key, and the tokens of images compressed by pglz.  Returns
 * false if the record is better stored literally.
 */
static bool
make_key(WpEncoder *e, uint32 pos, const WpRecord *rec, bool prev_ok,
		 uint8 *key, uint32 *len, uint16 *rels, uint8 *modes)
{
	uint8	   *p = key;

	for (uint32 i = 0; i < rec->nblocks; i++)
	{
		int			rel = find_rel(e, &rec->blocks[i]);

		if (rel < 0)
			return false;
		rels[i] = rel;
	}
	find_copies(e, pos, rec, rels);
	*p++ = rec->rmid;
	*p++ = rec->info;
	*p++ = (rec->main_id == WP_ID_MAIN_SHORT ? WP_CLASS_MAIN_SHORT : 0) |
		(rec->main_id == WP_ID_MAIN_LONG ? WP_CLASS_MAIN_LONG : 0) |
		(rec->origin ? WP_CLASS_ORIGIN : 0) |
		(rec->topxid ? WP_CLASS_TOPXID : 0) | (prev_ok ? 0 : WP_CLASS_PREV);
	*p++ = rec->nblocks;
	for (uint32 i = 0; i < rec->nblocks; i++)
	{
		const WpBlock *b = &rec->blocks[i];

		modes[i] = WP_IMAGE_OPAQUE;
		*p++ = b->id;
		*p++ = b->flags;
		p = key_varint(p, rels[i]);
		if (b->flags & WP_HAS_IMAGE)
		{
			if (wp_page_check(b, &e->map))
				modes[i] = WP_IMAGE_PAGE;
			else if (wp_pglz_write(e->ctx, b, e->sections))
				modes[i] = WP_IMAGE_PGLZ;
			e->mapped = b->image;
			*p++ = b->img_info;
			*p++ = modes[i];
		}
		if (b->flags & WP_HAS_DATA)
		{
			*p++ = e->copies.mode[i];
			*p++ = e->copies.mode[i] == WP_DATA_TUPLES ?
				0 : data_bucket(b, e->copies.rest[i]);
		}
	}
	if (rec->main_id != 0)
		*p++ = wp_bucket(rec->main_len);
	*len = p - key;
	return true;
}

static void
fill_class(WpEncoder *e, WpClass *c, const WpRecord *rec, uint8 flags,
		   const uint16 *rels, const uint8 *modes)
{
	memset(c, 0, sizeof(*c));
	c->rmid = rec->rmid;
	c->info = rec->info;
	c->flags = flags;
	c->nblocks = rec->nblocks;
	c->blocks = wp_zalloc(e->ctx, c->nblocks * sizeof(WpClassBlock));
	for (uint32 i = 0; i < c->nblocks; i++)
	{
		c->blocks[i].flags = rec->blocks[i].flags;
		c->blocks[i].img_mode = modes[i];
		c->blocks[i].img_info = rec->blocks[i].img_info;
		c->blocks[i].data_mode = e->copies.mode[i];
		c->blocks[i].rel = rels[i];
	}
}

/* Find the index of the class with this key, which may be new, or -1. */
static int
lookup_class(WpEncoder *e, const WpRecord *rec, const uint8 *key, uint32 len,
			 const uint16 *rels, const uint8 *modes)
{
	uint32		h = hash_key(key, len);

	table_grow(e, &e->class_table, class_rehash);
	for (; e->class_table.slots[h & e->class_table.mask] != 0; h++)
	{
		uint32		i = e->class_table.slots[h & e->class_table.mask] - 1;
		uint32		other_len;
		const uint8 *other = class_key(e, i, &other_len);

		if (other_len == len && memcmp(other, key, len) == 0)
			return i;
	}
	if (e->nclasses >= WP_MAX_CLASSES)
		return -1;
	if (e->nclasses + 1 >= e->maxclasses)
	{
		uint32		max = e->maxclasses;

		e->classes = grow(e->ctx, e->classes, max, &e->maxclasses,
						  sizeof(WpClass));
		e->class_keys = grow(e->ctx, e->class_keys, max, &max, sizeof(uint32));
		e->class_keys[0] = 0;
	}
	fill_class(e, &e->classes[e->nclasses], rec, key[2], rels, modes);
	wp_put_bytes(e->ctx, &e->sections[WP_SEC_CLASSES], key, len);
	e->class_table.slots[h & e->class_table.mask] = ++e->nclasses;
	e->class_table.n = e->nclasses;
	e->class_keys[e->nclasses] = e->sections[WP_SEC_CLASSES].used;
	return e->nclasses - 1;
}

static int
find_class(WpEncoder *e, uint32 pos, const WpRecord *rec, bool prev_ok)
{
	uint8		key[MAX_KEY + 8];
	uint16		rels[WP_MAX_BLOCK_ID + 1];
	uint8		modes[WP_MAX_BLOCK_ID + 1];
	uint32		len;
	size_t		used[4];
	int			cls = -1;

	for (int i = 0; i < 4; i++)
		used[i] = e->sections[WP_SEC_PGLZ_CONTROL + i].used;
	if (make_key(e, pos, rec, prev_ok, key, &len, rels, modes))
		cls = lookup_class(e, rec, key, len, rels, modes);
	for (int i = 0; i < 4 && cls < 0; i++)
		e->sections[WP_SEC_PGLZ_CONTROL + i].used = used[i];
	return cls;
}

/* ---- records ---- */

/*
 * Returns the symbol for the record's xid.  The transaction moves to the first
 * slot.
 */
static uint8
put_xid(WpEncoder *e, uint32 xid)
{
	WpXids	   *x = &e->xids;

	if (xid == 0)
		return WP_XID_NONE;
	if (xid <= x->max)
		for (uint32 i = 0; i < x->n; i++)
			if (x->slots[i].xid == xid)
			{
				wp_xid_touch(x, i);
				return i;
			}
	if (xid == x->max + 1)
	{
		wp_xid_new(x, xid);
		return WP_XID_NEXT;
	}
	wp_put_varint(e->ctx, &e->sections[WP_SEC_NUMBERS],
				  wp_zigzag(xid - x->max));
	wp_xid_new(x, xid);
	return WP_XID_OTHER;
}

static void
put_code(WpEncoder *e, WpGroup *codes, uint32 cls)
{
	if (cls < WP_CODE_SHORT)
		*wp_group_add(e->ctx, codes, 1) = cls;
	else
	{
		uint8	   *p = wp_group_add(e->ctx, codes, 3);

		p[0] = WP_CODE_SHORT;
		wp_set16(p + 1, cls);
	}
}

/*
 * Add a block's data without the copied parts.  Returns the new expected source
 * of copies.
 */
static uint32
put_data(WpEncoder *e, WpClassBlock *cb, const WpBlock *b, uint32 i,
		 uint32 from)
{
	const RecordCopies *rc = &e->copies;
	uint8	   *rest;
	const uint8 *data = b->data;

	if (rc->mode[i] == WP_DATA_TUPLES)
	{
		uint32		n = wp_tuples_put(e->ctx, &e->rels[cb->rel]->inserted, data,
									  b->data_len);

		wp_set16(wp_group_add(e->ctx, &cb->data, 2), n);
		wp_match_remember(e->matcher, b, cb->rel, NULL, 0);
		return from;
	}
	rest = wp_group_add(e->ctx, &cb->data, rc->rest[i]);
	if (rc->n[i] > 0)
		*wp_group_add(e->ctx, &cb->copy_counts, 1) = rc->n[i];
	for (uint32 j = 0; j < rc->n[i]; j++)
	{
		const WpCopy *copy = &rc->copies[i][j];
		uint8	   *row = wp_group_add(e->ctx, &cb->copies, WP_COPY_ROW);

		wp_set16(row, copy->skip);
		wp_set16(row + 2, copy->len);
		wp_set32(row + 4, copy->source - from);
		from = copy->source + copy->len;
		wp_copy_short(rest, data, copy->skip);
		rest += copy->skip;
		data += copy->skip + copy->len;
	}
	wp_copy_short(rest, data, b->data + b->data_len - data);
	wp_match_remember(e->matcher, b, cb->rel, rc->copies[i], rc->n[i]);
	return from;
}

/* Add a block.  Returns the new expected source of copies. */
static uint32
put_block(WpEncoder *e, WpClassBlock *cb, const WpBlock *b, uint32 i,
		  uint32 from)
{
	WpContext  *ctx = e->ctx;
	WpRelation *rel = e->rels[cb->rel];

	wp_set32(wp_group_add(ctx, &cb->numbers, 4), b->number);
	wp_set32(wp_group_add(ctx, &cb->rel_numbers, 4),
			 wp_zigzag(b->number - rel->last_block));
	rel->last_block = b->number;
	if (b->flags & WP_HAS_IMAGE)
	{
		if (cb->img_mode == WP_IMAGE_PAGE)
		{
			if (e->mapped != b->image)
				wp_page_check(b, &e->map);
			e->mapped = b->image;
			if (rel->tuples == NULL)
				rel->tuples = wp_zalloc(ctx, WP_BUCKETS * sizeof(WpGroup));
			wp_page_write(ctx, rel, b, &e->map, &e->sections[WP_SEC_GAPS]);
		}
		else
		{
			uint8	   *p = wp_group_add(ctx, &cb->img_headers, 6);

			wp_set16(p, b->img_len);
			wp_set16(p + 2, b->hole_off);
			wp_set16(p + 4, b->hole_len);
			/* make_key has already put images compressed by pglz */
			if (cb->img_mode == WP_IMAGE_OPAQUE)
			{
				wp_put_bytes(ctx, &e->sections[WP_SEC_IMAGES], b->image,
							 b->img_len);
				if ((b->img_info & WP_IMG_COMPRESSED) == WP_IMG_LZ4)
					ctx->lz4_images += b->img_len;
			}
		}
	}
	return (b->flags & WP_HAS_DATA) ? put_data(e, cb, b, i, from) : from;
}

/* Add the record at pos.  Returns false if it must be stored literally. */
static bool
put_record(WpEncoder *e, uint32 pos, const WpRecord *rec)
{
	WpContext  *ctx = e->ctx;
	bool		prev_ok = rec->prev == e->next_prev;
	uint32		context = e->xids.record_context;
	uint8		symbol;
	uint32		from;
	uint32		copied = 0;
	WpClass    *c;
	int			cls = find_class(e, pos, rec, prev_ok);

	if (cls < 0)
		return false;
	c = &e->classes[cls];
	from = e->copies.start;
	symbol = put_xid(e, rec->xid);
	*wp_group_add(ctx,
				  context ? &e->classes[context - 1].xid_symbols :
				  &e->first_symbols,
				  1) = symbol;
	context = rec->xid ? e->xids.slots[0].context : e->xids.none_context;
	put_code(e, context ? &e->classes[context - 1].codes : &e->first_codes,
			 cls);
	wp_xid_done(&e->xids, rec->xid != 0, cls, rec->rmid);
	if (!prev_ok)
		wp_set64(wp_group_add(ctx, &c->prev, 8), rec->prev);
	for (uint32 i = 0; i < rec->nblocks; i++)
	{
		from = put_block(e, &c->blocks[i], &rec->blocks[i], i, from);
		copied |= e->copies.n[i];
	}
	if (rec->rmid != WP_RMID_XACT)
		wp_copy_from_record(rec->xid ? &e->xids.slots[0].from :
							&e->xids.none_from,
							pos, rec->tot_len, copied ? from : 0);
	if (rec->origin)
		memcpy(wp_group_add(ctx, &c->origin, 2), rec->origin, 2);
	if (rec->topxid)
		memcpy(wp_group_add(ctx, &c->topxid, 4), rec->topxid, 4);
	if (rec->main_id)
		wp_copy_short(wp_group_add(ctx, &c->main, rec->main_len), rec->main,
					  rec->main_len);
	e->next_prev = wp_lsn_at(&e->pages, pos);
	return true;
}

/* ---- items ---- */

/*
 * Add literal bytes up to pos.  announced: the length of the record, or rest of
 * a record, that begins with them, so that the headers of its pages can be
 * predicted; 0 if there is none.
 */
static void
flush_literal(WpEncoder *e, uint32 pos, uint32 announced)
{
	WpBuf	   *items = &e->sections[WP_SEC_ITEMS];
	uint32		end = pos;

	Assert(e->literal <= pos && pos <= e->payload_len);
	/* zeros at the end are only counted: a segment switch leaves many */
	while (end > e->literal && e->payload[end - 1] == 0)
		end--;
	wp_put_varint(e->ctx, items, e->run);
	wp_put_varint(e->ctx, items, end - e->literal);
	wp_put_varint(e->ctx, items, pos - end);
	wp_put_varint(e->ctx, items, announced);
	wp_pages_item(&e->pages, e->literal, announced, pos);
	wp_put_bytes(e->ctx, &e->sections[WP_SEC_LITERAL], e->payload + e->literal,
				 end - e->literal);
	e->run = 0;
}

/*
 * The CRC of a valid record is computed at most twice.  On made-up pages many
 * apparent records of megabytes may overlap.  So the encoder checks at most
 * four times the payload; what is left then is literal.
 */
#define MAX_CHECKED(payload_len)	(4 * (uint64) (payload_len))

/* Get the record at pos, if there is a complete and valid one. */
static bool
record_at(WpEncoder *e, uint32 pos, WpRecord *rec)
{
	const uint8 *p = e->payload + pos;
	uint32		avail = e->payload_len - pos;

	Assert(pos % 8 == 0 && pos < e->payload_len);
	if (!wp_record_parse(p, avail, rec) || WP_ALIGN8(rec->tot_len) > avail)
		return false;
	for (uint32 i = rec->tot_len; i % 8 != 0; i++)
		if (p[i] != 0)
			return false;
	if (e->ctx->checked + rec->tot_len > MAX_CHECKED(e->payload_len))
		return false;
	e->ctx->checked += rec->tot_len;
	return wp_record_crc(p, rec->tot_len) == rec->crc;
}

static void
put_items(WpEncoder *e, const uint8 *raw)
{
	uint32		pos = 0;
	uint32		rem = (wp_get16(raw + 2) & WP_XLP_CONTRECORD) ?
		wp_get32(raw + 16) : 0;
	WpRecord	rec;

	if (rem > 0)
	{
		pos = Min(WP_ALIGN8((uint64) rem), e->payload_len);
		flush_literal(e, pos, rem);
	}
	while (pos < e->payload_len)
	{
		uint32		start = pos;
		uint32		avail = e->payload_len - pos;
		uint32		announced = wp_get32(e->payload + pos);
		uint32		page;

		if (record_at(e, pos, &rec) && put_record(e, pos, &rec))
		{
			e->run++;
			wp_pages_item(&e->pages, pos, rec.tot_len,
						  pos + WP_ALIGN8(rec.tot_len));
			pos += WP_ALIGN8(rec.tot_len);
			continue;
		}

		/*
		 * This is a record that continues in the next segment, or bytes up to
		 * the next record.
		 */
		if (announced < avail || announced > 0x40000000)
			announced = 0;
		page = (pos + e->pages.header_len - WP_PAGE_HEADER) /
			(e->pages.page_size - WP_PAGE_HEADER) + 1;
		do
		{
			page = wp_pages_next_start(&e->pages, raw, page, e->payload_len,
									   &pos);
			if (page == 0)
				pos = e->payload_len;
			page++;
		} while (pos <= start ||
				 (pos < e->payload_len && !record_at(e, pos, &rec)));
		e->literal = start;
		flush_literal(e, pos, announced);
	}
	if (e->run > 0)
	{
		e->literal = pos;
		flush_literal(e, pos, 0);
	}
}

/* ---- groups, in the order in which the decoder reads them ---- */

static void
write_class(WpEncoder *e, WpClass *c)
{
	WpContext  *ctx = e->ctx;
	WpBuf	   *sections = e->sections;

	wp_group_write(ctx, &c->xid_symbols, sections);
	wp_group_write(ctx, &c->codes, sections);
	wp_group_write(ctx, &c->prev, sections);
	for (uint32 i = 0; i < c->nblocks; i++)
	{
		WpClassBlock *b = &c->blocks[i];

		if (b->rel_numbers.n > 0 && wp_group_cost(ctx, &b->rel_numbers) <
			wp_group_cost(ctx, &b->numbers))
		{
			b->rel_numbers.flags = WP_GROUP_BLOCK_REL;
			wp_group_write(ctx, &b->rel_numbers, sections);
		}
		else
			wp_group_write(ctx, &b->numbers, sections);
		wp_group_write(ctx, &b->img_headers, sections);
		wp_group_write(ctx, &b->copy_counts, sections);
		wp_group_write(ctx, &b->copies, sections);
		wp_group_write(ctx, &b->data, sections);
	}
	wp_group_write(ctx, &c->origin, sections);
	wp_group_write(ctx, &c->topxid, sections);
	wp_group_write(ctx, &c->main, sections);
}

static void
write_rel(WpEncoder *e, WpRelation *rel)
{
	wp_tuples_write(e->ctx, &rel->inserted, e->sections);
	wp_group_write(e->ctx, &rel->headers, e->sections);
	if (rel->headers.n == 0)
		return;
	wp_group_write(e->ctx, &rel->items, e->sections);
	wp_group_write(e->ctx, &rel->special, e->sections);
	for (int i = 0; i < WP_BUCKETS; i++)
		wp_group_write(e->ctx, &rel->tuples[i], e->sections);
}

void
wp_encode_records(WpContext *ctx, const uint8 *raw, uint32 raw_len,
				  uint32 page_size, WpBuf *sections)
{
	WpEncoder	e = {.ctx = ctx,.sections = sections};

	ctx->checked = 0;
	ctx->lz4_images = 0;
	e.payload = wp_pages_split(ctx, &e.pages, raw, raw_len, page_size,
							   &e.payload_len);
	e.xids.none_from = (WpCopyFrom)
	{
		0, true
	};
	e.matcher = wp_match_begin(ctx, e.payload, raw_len);
	put_items(&e, raw);
	wp_pages_put(ctx, &e.pages, raw, e.nclasses, &sections[WP_SEC_PAGES]);
	wp_group_write(ctx, &e.first_symbols, sections);
	wp_group_write(ctx, &e.first_codes, sections);
	wp_group_write(ctx, &e.rel_keys, sections);
	for (uint32 i = 0; i < e.nclasses; i++)
		write_class(&e, &e.classes[i]);
	for (uint32 i = 0; i < e.nrels; i++)
		write_rel(&e, e.rels[i]);
}
