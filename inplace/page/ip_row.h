/*-------------------------------------------------------------------------
 * ip_row.h
 *	  Rows as items of data pages: the one reader and the one writer of their
 *	  bytes.
 *
 *	  ip_format.h draws them.
 *-------------------------------------------------------------------------
 */
#ifndef IP_ROW_H
#define IP_ROW_H

#include "ip_body.h"
#include "ip_page.h"

/* What the page's default changer did to a row without a version block. */
typedef struct IpChanged
{
	IpXid		inserter;		/* of the version before; IP_XID_NONE: visible
								 * to all */
	CommandId	inserter_cid;
	ItemPointerData forward;	/* if MOVED */
	bool		keys;			/* if MOVED: the move excludes FOR KEY SHARE */
} IpChanged;

/* A row as decoded from a page. */
typedef struct IpRow
{
	uint16		hdr;
	uint8		state;			/* as stored, but IP_ROW_DEFAULT is replaced
								 * by INSERTED */
	IpXid		xid;			/* maker of this state, IP_XID_NONE: visible
								 * to all */
	IpPtr		ptr;			/* undo record, or cid if INSERTED or CHANGED */
	IpChanged	changed;		/* if CHANGED */
	const uint8 *body;			/* overlaid: body's bytes from the 11th on */
	uint32		bodylen;		/* whole body, overlaid bytes included */
} IpRow;

/* Size of the item that a row with this state and body takes. */
static inline uint32
ip_item_size(uint8 state, uint32 bodylen)
{
	uint32		size = IP_ROW_HDRSZ + bodylen;

	if ((state & (IP_ROW_VERSION | IP_ROW_OVERLAID)) == IP_ROW_VERSION)
		size += IP_VERSION_BLOCK_SZ;
	return size;
}

/*
 * Returns whether the first bytes of a row of the block, with this state and
 * pointer, are in a record at home.
 */
static inline bool
ip_row_bytes_at_home(uint8 state, IpPtr ptr, BlockNumber block)
{
	return (state & IP_ROW_OVERLAID) && ptr.block == block;
}

/*
 * If the row is visible to all, returns whether freezing it only removes its
 * version block.  True if the row is not deleted.
 */
static inline bool
ip_row_may_freeze(uint8 state)
{
	return state == IP_ROW_VERSION ||
		state == (IP_ROW_VERSION | IP_ROW_INSERTED) ||
		state == (IP_ROW_VERSION | IP_ROW_OVERLAID);
}

/*
 * Returns whether the item of a data page is an undo record at home and not a
 * row.  Any item; its page may be damaged.
 */
static inline bool
ip_item_is_undo(Page page, const ItemIdData *lp)
{
	return ip_item_is_ours(lp) && ip_item_is_inside(page, lp) &&
		((const uint8 *) page)[ip_item_start(lp) + IP_ROW_STATE] ==
		IP_STATE_UNDO;
}

/*
 * A row's stored state; the page is sound.  IP_ROW_DEFAULT is not interpreted.
 */
static inline uint8
ip_item_state(Page page, const ItemIdData *lp)
{
	return ((const uint8 *) page)[ip_item_start(lp) + IP_ROW_STATE];
}

/*
 * Returns whether there is an item that is a row, or should be one.  Any off.
 */
extern bool ip_row_is_at(Page page, OffsetNumber off);

/* Returns whether the item is a sound row or not a row at all.  Any off. */
extern bool ip_row_is_sound(Page page, OffsetNumber off);

/*
 * Decode the row at off; false if there is none (out of range, unused, dead,
 * an undo record).  Errors: data_corrupted.  Lock: share, or a private copy of
 * the page.
 */
extern bool ip_row_read(Relation rel, BlockNumber block, Page page,
						OffsetNumber off, IpRow *row);

/*
 * Like ip_row_read, for a row whose state has one of these bits; false also if
 * it is damaged.  off is in range.
 */
extern bool ip_row_read_sound(Page page, OffsetNumber off, uint8 state,
							  IpRow *row);

/*
 * Like ip_row_read, for a row whose newest change has an undo record; false
 * also if it is damaged.  off is in range.
 */
extern bool ip_row_read_changed(Page page, OffsetNumber off, IpRow *row);

/* Returns whether the row's newest change has an undo record. */
static inline bool
ip_row_is_changed(const IpRow *row)
{
	return (row->state & (IP_ROW_VERSION | IP_ROW_INSERTED)) == IP_ROW_VERSION;
}

/*
 * Like ip_row_read, for a row whose newest change is a delete; quickly returns
 * false for others.
 */
extern bool ip_row_read_deleted(Relation rel, BlockNumber block, Page page,
								OffsetNumber off, IpRow *row);

/*
 * True if the item may be a row whose state has one of these bits.  It may
 * also be damaged, which ip_row_read finds out.  off is in range.
 */
static inline bool
ip_row_may_be(Page page, OffsetNumber off, uint8 state)
{
	ItemId		lp = PageGetItemId(page, off);
	uint32		start = ip_item_start(lp);

	Assert(OffsetNumberIsValid(off) && off <= PageGetMaxOffsetNumber(page));
	return ip_item_is_used(lp) &&
		(start < ((PageHeader) page)->pd_upper ||
		 start + IP_ROW_MIN_ITEM > BLCKSZ ||
		 !ip_item_is_ours(lp) || (ip_item_state(page, lp) & state));
}

/* Items of a page, in order; and how many others are dead. */
typedef struct IpItemList
{
	int			ndead;
	int			n;
	OffsetNumber off[IP_MAX_ROWS_PER_PAGE];
} IpItemList;

/*
 * List the items that are not dead, unused or sound rows visible to all: that
 * is, rows with a state, undo records, heap tuples and damaged items.  Lock:
 * share.
 */
extern void ip_row_list(Page page, IpItemList *list);

/*
 * Returns a row's item if all of its bytes are inside the page's tuple space
 * and its hdr is sound, else NULL.
 */
static inline const uint8 *
ip_row_sound_item(Page page, const ItemIdData *lp, uint16 *hdr)
{
	const uint8 *item = (const uint8 *) page + ip_item_start(lp);
	uint16		stored;

	if (!ip_item_is_ours(lp) || ItemIdGetLength(lp) < IP_ROW_MIN_ITEM ||
		!ip_item_is_inside(page, lp))
		return NULL;
	memcpy(&stored, item, sizeof(stored));
	*hdr = IpHdrLoad(stored);
	return (stored & IP_HDR_HEAP_MASK) == IP_HDR_HEAP_BITS &&
		(*hdr & IP_HDR_NATTS_MASK) <= MaxHeapAttributeNumber ? item : NULL;
}

/*
 * Returns whether the item is a sound row without a state, which is visible to
 * all.  The test is quick, and most rows pass it.  off is in range.
 */
static inline bool
ip_row_is_frozen(Page page, OffsetNumber off)
{
	uint16		hdr;
	const uint8 *item = ip_row_sound_item(page, PageGetItemId(page, off), &hdr);

	Assert(OffsetNumberIsValid(off) && off <= PageGetMaxOffsetNumber(page));
	return item != NULL && item[IP_ROW_STATE] == 0;
}

/*
 * Decode the version block of an item that has one, as row->state says, and is
 * long enough for it.  Returns why the row cannot be right, or NULL.
 */
static inline const char *
ip_row_decode_block(Page page, const uint8 *item, uint32 len, IpRow *row)
{
	IpSpecial  *special = IpPageGetSpecial(page);
	TransactionId xid;

	memcpy(&xid, item + IP_ROW_HDRSZ + IP_BLOCK_XID, sizeof(xid));
	memcpy(&row->ptr.block, item + IP_ROW_HDRSZ + IP_BLOCK_PTR,
		   sizeof(BlockNumber));
	memcpy(&row->ptr.off, item + IP_ROW_HDRSZ + IP_BLOCK_PTR_OFF,
		   sizeof(OffsetNumber));
	row->xid = ip_xid_after(ip_data_xid_base(special), xid);
	row->body = item + IP_ROW_MIN_ITEM;
	row->bodylen = len - IP_ROW_MIN_ITEM;
	if (!TransactionIdIsValid(xid))
		return "version block without a transaction id";
	if (row->state & IP_ROW_OVERLAID)
		row->bodylen += IP_VERSION_BLOCK_SZ;
	else if (row->bodylen < IP_ROW_MIN_BODY)
		return "row body is too short";
	if (row->state & IP_ROW_DEFAULT)
		return "row has both a version block and the default inserter";
	if (row->state & IP_ROW_CHANGED)
		return "row has both a version block and the default changer";
	return NULL;
}

/*
 * Decode a row whose only state is that the page's default inserter has
 * inserted it; false if the page has no default inserter.
 */
static inline bool
ip_row_decode_default(Page page, IpRow *row)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	row->state = IP_ROW_INSERTED;
	row->xid = ip_xid_after(ip_data_xid_base(special),
							special->u.data.default_xid);
	row->ptr = ip_ptr_cid(special->u.data.default_cid);
	return TransactionIdIsValid(special->u.data.default_xid);
}

/*
 * Quickly read a row that is neither deleted nor visible to all, from its item
 * of len bytes (ip_row_sound_item).  False if it is another kind of row, or
 * damaged.  Lock: share, or a private copy of the page.
 */
static inline bool
ip_row_read_live(Page page, const uint8 *item, uint32 len, uint16 hdr,
				 IpRow *row)
{
	row->hdr = hdr;
	row->state = item[IP_ROW_STATE];
	switch (row->state)
	{
		case IP_ROW_VERSION:
		case IP_ROW_VERSION | IP_ROW_INSERTED:
		case IP_ROW_VERSION | IP_ROW_OVERLAID:
			return ip_row_decode_block(page, item, len, row) == NULL;
		case IP_ROW_DEFAULT:
			row->body = item + IP_ROW_HDRSZ;
			row->bodylen = len - IP_ROW_HDRSZ;
			return ip_row_decode_default(page, row);
		default:
			return false;
	}
}

/*
 * Put together the body of an overlaid row from the bytes that its record has
 * saved and those of its item.  body has room for row->bodylen bytes.
 */
static inline void
ip_row_uncover(const IpRow *row, const uint8 *saved, uint8 *body)
{
	memcpy(body, saved, IP_VERSION_BLOCK_SZ);
	memcpy(body + IP_VERSION_BLOCK_SZ, row->body,
		   row->bodylen - IP_VERSION_BLOCK_SZ);
}

/*
 * Decode a row.  Returns why it cannot be right, or NULL; for ip_row_read and
 * inplace_check.
 */
extern const char *ip_row_decode(Page page, OffsetNumber off, IpRow *row);

/*
 * Write a row's item, with the version block and the body that state says, to
 * item, which has ip_item_size(state, bodylen) bytes.
 */
extern void ip_row_write(uint8 *item, uint16 hdr, uint8 state,
						 TransactionId xid, IpPtr ptr, const uint8 *body,
						 uint32 bodylen);

/*
 * Make the default inserter's rows visible to all.  Lock: exclusive; the page
 * may be damaged.
 */
extern void ip_row_clear_default(Page page);

/*
 * Undo what the default changer did to rows.  Lock: exclusive; the page may be
 * damaged.
 */
extern void ip_row_clear_changed(Page page);

#endif							/* IP_ROW_H */
