/*-------------------------------------------------------------------------
 * wp_model.h
 *	  The model of a chunk of WAL that encoder and decoder share: record
 *	  classes, relations, transactions.
 *
 * A class is everything about a record that repeats: resource manager, info
 * bits, and for each block its flags, its relation and the size classes of
 * its data.  What differs between records of a class goes to the class's
 * groups.  Which class comes next is coded per class that the same transaction
 * logged before; which transaction comes next, per class of the record before.
 *-------------------------------------------------------------------------
 */
#ifndef WP_MODEL_H
#define WP_MODEL_H

#include "wp_page.h"

typedef struct WpClassBlock
{
	uint8		id;
	uint8		flags;
	uint8		img_info;
	uint8		img_mode;		/* WP_IMAGE_... */
	uint8		data_bucket;	/* of the parts that are not copied */
	uint8		data_mode;		/* WP_DATA_... */
	uint16		rel;			/* index of the relation */
	WpGroup		numbers;		/* block numbers */
	WpGroup		rel_numbers;	/* encoder: block numbers, relative to the
								 * relation's last */
	WpGroup		img_headers;	/* of opaque images */
	WpGroup		copy_counts;	/* of the copied parts */
	WpGroup		copies;			/* WP_COPY_ROW bytes each */
	WpGroup		data;			/* data that is not copied */
} WpClassBlock;

typedef struct WpClass
{
	uint8		rmid;
	uint8		info;
	uint8		flags;			/* WP_CLASS_... */
	uint8		main_bucket;
	uint32		nblocks;
	uint32		header_len;		/* decoder: bytes from the record's start to
								 * its data */
	WpClassBlock *blocks;
	WpGroup		prev;
	WpGroup		origin;
	WpGroup		topxid;
	WpGroup		main;
	WpGroup		xid_symbols;	/* of the records that follow one of this
								 * class */
	WpGroup		codes;			/* classes that follow this one in a
								 * transaction */
} WpClass;

/*
 * The expected place of a transaction's next copy, as a position in the
 * chunk's payload.  An inserted row is followed by its index entries, which
 * contain parts of it.  So copying starts at the first record after the last
 * copy, and continues behind the last copy.  With COPY, the rows come first,
 * and then the index entries of all of them, in their order.
 */
typedef struct WpCopyFrom
{
	uint32		pos;
	bool		used;			/* something was copied from there */
} WpCopyFrom;

/* One recent transaction. */
typedef struct WpXidSlot
{
	uint32		xid;
	uint32		context;		/* 1 + class of its last record; 0: none yet */
	WpCopyFrom	from;
} WpXidSlot;

/* Recent transactions, the latest first, and the records without one. */
typedef struct WpXids
{
	WpXidSlot	slots[WP_XID_SLOTS];
	uint32		n;
	uint32		max;			/* highest xid so far */
	uint32		none_context;
	WpCopyFrom	none_from;
	uint32		record_context; /* 1 + class of the record before */
} WpXids;

/* Move the slot to the front. */
static inline void
wp_xid_touch(WpXids *x, uint32 rank)
{
	WpXidSlot	slot = x->slots[rank];

	Assert(rank < x->n);
	for (uint32 i = rank; i > 0; i--)
		x->slots[i] = x->slots[i - 1];
	x->slots[0] = slot;
}

/* Give the first slot to a transaction without one. */
static inline void
wp_xid_new(WpXids *x, uint32 xid)
{
	if (x->n < WP_XID_SLOTS)
		x->n++;
	for (uint32 i = x->n - 1; i > 0; i--)
		x->slots[i] = x->slots[i - 1];
	x->slots[0].xid = xid;
	x->slots[0].context = 0;
	x->slots[0].from = (WpCopyFrom)
	{
		0, true
	};
	if (xid > x->max)
		x->max = xid;
}

/*
 * Remember the class of a record whose transaction is in the first slot, or
 * which has none.  A transaction that has ended no longer needs a slot.
 */
static inline void
wp_xid_done(WpXids *x, bool has_xid, uint32 cls, uint8 rmid)
{
	x->record_context = 1 + cls;
	if (!has_xid)
		x->none_context = 1 + cls;
	else if (rmid != WP_RMID_XACT)
		x->slots[0].context = 1 + cls;
	else
	{
		Assert(x->n > 0);
		x->n--;
		memmove(x->slots, x->slots + 1, x->n * sizeof(WpXidSlot));
	}
}

/*
 * Update the expected place after adding the record of len bytes at pos; its
 * last copy, if any, ended at copied.
 */
static inline void
wp_copy_from_record(WpCopyFrom *from, uint32 pos, uint32 len, uint32 copied)
{
	if (copied > 0 || (from->used && len >= WP_COPY_SOURCE))
	{
		from->pos = copied > 0 ? copied : pos;
		from->used = copied > 0;
	}
}

static inline uint32
wp_zigzag(uint32 v)
{
	return (v << 1) ^ (uint32) -(int32) (v >> 31);
}

static inline uint32
wp_unzigzag(uint32 v)
{
	return (v >> 1) ^ (uint32) -(int32) (v & 1);
}

/* The places of a chunk's pages, and their predicted headers. */
typedef struct WpPages
{
	uint32		page_size;
	bool		long_header;	/* of the first page */
	uint32		header_len;		/* of the first page */
	uint32		npages;
	uint32		next_page;		/* first page without a rem_len below */
	uint32	   *rem_len;		/* of a record that continues at the page's
								 * start */
	uint8		first[WP_LONG_HEADER];	/* the first page's header */
} WpPages;

/* The position of the start of page i > 0 in the bytes without page headers. */
static inline uint32
wp_page_start(const WpPages *pages, uint32 i)
{
	Assert(i > 0);
	return i * (pages->page_size - WP_PAGE_HEADER) -
		(pages->header_len - WP_PAGE_HEADER);
}

/*
 * The offset in the chunk of the byte at pos.  *left is the number of bytes on
 * its page from this one on.
 */
static inline uint32
wp_offset_at(const WpPages *pages, uint32 pos, uint32 *left)
{
	uint32		payload = pages->page_size - WP_PAGE_HEADER;
	uint32		shifted = pos + (pages->header_len - WP_PAGE_HEADER);
	uint32		page = shifted / payload;

	*left = payload - (shifted - page * payload);
	Assert(*left > 0 && *left <= payload);
	return page * pages->page_size + pages->page_size - *left;
}

/* WAL position of the byte at pos. */
static inline uint64
wp_lsn_at(const WpPages *pages, uint32 pos)
{
	uint32		left;

	return wp_get64(pages->first + 8) + wp_offset_at(pages, pos, &left);
}

/*
 * Note an item from pos to end, with a record of len bytes.  This determines
 * the page headers within it.
 */
static inline void
wp_pages_item(WpPages *pages, uint32 pos, uint32 len, uint32 end)
{
	while (pages->next_page < pages->npages)
	{
		uint32		start = wp_page_start(pages, pages->next_page);

		if (start >= end)
			return;
		pages->rem_len[pages->next_page++] = start > pos && pos + len > start ?
			pos + len - start : 0;
	}
}

/* The predicted header of page i > 0, if the previous page has this flag. */
static inline void
wp_page_predict(const WpPages *pages, uint32 i, uint16 removable, uint8 *header)
{
	uint32		rem_len = pages->rem_len[i];

	Assert(i > 0 && i < pages->next_page);
	memcpy(header, pages->first, WP_PAGE_HEADER);
	wp_set16(header + 2, removable | (rem_len > 0 ? WP_XLP_CONTRECORD : 0));
	wp_set64(header + 8,
			 wp_get64(pages->first + 8) + (uint64) i * pages->page_size);
	wp_set32(header + 16, rem_len);
	wp_set32(header + 20, 0);
}

/*
 * Encoder: take the page headers out of the chunk; returns the length of the
 * rest.
 */
extern uint8 *wp_pages_split(WpContext *ctx, WpPages *pages, const uint8 *raw,
							 uint32 raw_len, uint32 page_size,
							 uint32 *payload_len);

/*
 * Encoder: write the first page's header, and those that differ from the
 * prediction.
 */
extern void wp_pages_put(WpContext *ctx, const WpPages *pages, const uint8 *raw,
						 uint32 nclasses, WpBuf *sec);

/*
 * Encoder: the first page at or behind page i whose header tells where a
 * record starts; 0 if none.
 */
extern uint32 wp_pages_next_start(const WpPages *pages, const uint8 *raw,
								  uint32 i, uint32 payload_len, uint32 *pos);

/*
 * wp_encode.c, wp_decode.c: encode a chunk to its sections, and decode them to
 * raw; if that is NULL, compare with expected.
 */
extern void wp_encode_records(WpContext *ctx, const uint8 *raw, uint32 raw_len,
							  uint32 page_size, WpBuf *sections);
extern void wp_decode_records(WpContext *ctx, WpReader *sections, uint8 *raw,
							  const uint8 *expected, uint32 raw_len);

#endif							/* WP_MODEL_H */
