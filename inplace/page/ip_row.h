/*-------------------------------------------------------------------------
 * ip_row.h
 *	  Rows as items of data pages: the one reader and the one writer of their bytes.
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
	bool		keys;			/* likewise: the move excludes FOR KEY SHARE */
} IpChanged;

/* A row as decoded from a page. */
typedef struct IpRow
{
	uint16		hdr;
	uint8		state;			/* as stored, but IP_ROW_DEFAULT has become
								 * INSERTED */
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

/* Are the first bytes of a row of the block, with this state and pointer, in a record at home? */
static inline bool
ip_row_bytes_at_home(uint8 state, IpPtr ptr, BlockNumber block)
{
	return (state & IP_ROW_OVERLAID) && ptr.block == block;
}

/* If all see the row, is its version block all that has to go?  It is if the row is not deleted. */
static inline bool
ip_row_may_freeze(uint8 state)
{
	return state == IP_ROW_VERSION || state == (IP_ROW_VERSION | IP_ROW_INSERTED) ||
		state == (IP_ROW_VERSION | IP_ROW_OVERLAID);
}

/* Is the item of a data page an undo record at home, and no row?  Any item; its page may be damaged. */
static inline bool
ip_item_is_undo(Page page, const ItemIdData *lp)
{
	return ip_item_is_ours(lp) && ip_item_is_inside(page, lp) &&
		((const uint8 *) page)[ip_item_start(lp) + IP_ROW_STATE] == IP_STATE_UNDO;
}

/* A row's state on its sound page, without a decision about the default inserter. */
static inline uint8
ip_item_state(Page page, const ItemIdData *lp)
{
	return ((const uint8 *) page)[ip_item_start(lp) + IP_ROW_STATE];
}

/* Is there an item that is a row, or would have to be one?  Any off. */
extern bool ip_row_is_at(Page page, OffsetNumber off);

/* Is the item not a row, or a sound one?  Any off. */
extern bool ip_row_is_sound(Page page, OffsetNumber off);

/*
 * Decode the row at off; false if there is none (out of range, unused, dead, an undo record).
 * Errors: data_corrupted.  Lock: share, or a private copy of the page.
 */
extern bool ip_row_read(Relation rel, BlockNumber block, Page page, OffsetNumber off,
						IpRow *row);

/* The same for a row in whose state is one of these bits; false also if it is damaged.  off is in range. */
extern bool ip_row_read_sound(Page page, OffsetNumber off, uint8 state, IpRow *row);

/*
 * The same for a row whose newest change has an undo record; false also if it is damaged.
 * off is in range.
 */
extern bool ip_row_read_changed(Page page, OffsetNumber off, IpRow *row);

/* Is it such a row? */
static inline bool
ip_row_is_changed(const IpRow *row)
{
	return (row->state & (IP_ROW_VERSION | IP_ROW_INSERTED)) == IP_ROW_VERSION;
}

/* As ip_row_read, for a row whose newest change is a delete; false quickly if it is not. */
extern bool ip_row_read_deleted(Relation rel, BlockNumber block, Page page, OffsetNumber off,
								IpRow *row);

/*
 * May the item be a row in whose state is this bit?  It may also be damaged: for ip_row_read
 * to say.  off is in range.
 */
static inline bool
ip_row_may_be(Page page, OffsetNumber off, uint8 state)
{
	ItemId		lp = PageGetItemId(page, off);
	uint32		start = ip_item_start(lp);

	Assert(OffsetNumberIsValid(off) && off <= PageGetMaxOffsetNumber(page));
	return ip_item_is_used(lp) &&
		(start < ((PageHeader) page)->pd_upper || start + IP_ROW_MIN_ITEM > BLCKSZ ||
		 !ip_item_is_ours(lp) || (ip_item_state(page, lp) & state));
}

/* Items of a page, in order. */
typedef struct IpItemList
{
	int			n;
	OffsetNumber off[IP_MAX_ROWS_PER_PAGE];
} IpItemList;

/* Those that are neither dead nor unused nor sound rows that all see: rows with a state, undo records, heap tuples, and what is damaged.  Lock: share. */
extern void ip_row_list(Page page, IpItemList *list);

/* A row's item whose bytes are all inside the page's tuple space, with a sound hdr; NULL if it is another one. */
static inline const uint8 *
ip_row_sound_item(Page page, const ItemIdData *lp, uint16 *hdr)
{
	const uint8 *item = (const uint8 *) page + ip_item_start(lp);
	uint16		stored;

	if (!ip_item_is_ours(lp) || ItemIdGetLength(lp) < IP_ROW_MIN_ITEM || !ip_item_is_inside(page, lp))
		return NULL;
	memcpy(&stored, item, sizeof(stored));
	*hdr = IpHdrLoad(stored);
	return (stored & IP_HDR_HEAP_MASK) == IP_HDR_HEAP_BITS &&
		(*hdr & IP_HDR_NATTS_MASK) <= MaxHeapAttributeNumber ? item : NULL;
}

/* Is the item a sound row without a state: visible to all?  That is quickly found out, and most rows are such.  off is in range. */
static inline bool
ip_row_is_plain(Page page, OffsetNumber off)
{
	uint16		hdr;
	const uint8 *item = ip_row_sound_item(page, PageGetItemId(page, off), &hdr);

	Assert(OffsetNumberIsValid(off) && off <= PageGetMaxOffsetNumber(page));
	return item != NULL && item[IP_ROW_STATE] == 0;
}

/* The version block of an item that has one, as row->state says, and is not shorter than that; why the row cannot be right, or NULL. */
static inline const char *
ip_row_decode_block(Page page, const uint8 *item, uint32 len, IpRow *row)
{
	IpSpecial  *special = IpPageGetSpecial(page);
	TransactionId xid;

	memcpy(&xid, item + IP_ROW_HDRSZ + IP_BLOCK_XID, sizeof(xid));
	memcpy(&row->ptr.block, item + IP_ROW_HDRSZ + IP_BLOCK_PTR, sizeof(BlockNumber));
	memcpy(&row->ptr.off, item + IP_ROW_HDRSZ + IP_BLOCK_PTR_OFF, sizeof(OffsetNumber));
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

/* A row whose only state is that the page's default inserter has inserted it; false if the page has none. */
static inline bool
ip_row_decode_default(Page page, IpRow *row)
{
	const IpSpecial *special = IpPageGetSpecial(page);

	row->state = IP_ROW_INSERTED;
	row->xid = ip_xid_after(ip_data_xid_base(special), special->u.data.default_xid);
	row->ptr = ip_ptr_cid(special->u.data.default_cid);
	return TransactionIdIsValid(special->u.data.default_xid);
}

/*
 * Read a row that is neither deleted nor visible to all, from its item of so many bytes (ip_row_sound_item).  As quickly;
 * false if it is another one, or damaged.  Lock: share, or a private copy of the page.
 */
static inline bool
ip_row_read_live(Page page, const uint8 *item, uint32 len, uint16 hdr, IpRow *row)
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

/* Body of an overlaid row, from the bytes that its record has saved and those of its item; body has room for row->bodylen bytes. */
static inline void
ip_row_uncover(const IpRow *row, const uint8 *saved, uint8 *body)
{
	memcpy(body, saved, IP_VERSION_BLOCK_SZ);
	memcpy(body + IP_VERSION_BLOCK_SZ, row->body, row->bodylen - IP_VERSION_BLOCK_SZ);
}

/* Why the row cannot be right, or NULL; for ip_row_read and inplace_check. */
extern const char *ip_row_decode(Page page, OffsetNumber off, IpRow *row);

/*
 * Write a row's item, with the version block and the body that state says, to
 * item, which has ip_item_size(state, bodylen) bytes.
 */
extern void ip_row_write(uint8 *item, uint16 hdr, uint8 state, TransactionId xid, IpPtr ptr,
						 const uint8 *body, uint32 bodylen);

/* The default inserter's rows are visible to all.  Lock: exclusive; the page may be damaged. */
extern void ip_row_clear_default(Page page);

/* What the default changer did to rows is undone.  Likewise. */
extern void ip_row_clear_changed(Page page);

#endif							/* IP_ROW_H */
