/*-------------------------------------------------------------------------
 * ip_page.h
 *	  Reading rows and undo records from pages, and changing pages.
 *
 * A change of a page is a list of page operations (IpOp).  The forward path
 * builds the list (which may fail), then applies it in a critical section and
 * puts it into the WAL record as the block's data; redo applies the same list
 * with the same function.  See ip_wal.h.
 *
 * Items of a data page are contiguous between pd_upper and pd_special: when an
 * item grows or shrinks, those below it move.  So a page's free space is
 * always pd_upper - pd_lower, and there is no defragmentation.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PAGE_H
#define IP_PAGE_H

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "nodes/lockoptions.h"
#include "storage/buf.h"
#include "utils/relcache.h"

#include "ip_delta.h"
#include "ip_format.h"

/* A row as decoded from a page. */
typedef struct IpRow
{
	uint16		hdr;
	uint8		state;			/* as stored, but IP_ROW_DEFAULT has become INSERTED */
	IpXid		xid;			/* maker of this state, IP_XID_NONE: visible to all */
	IpPtr		ptr;			/* undo record, or cid if INSERTED and not LOCKED */
	const uint8 *body;			/* overlaid: body's bytes from the 11th on */
	uint32		bodylen;		/* whole body, overlaid bytes included */
} IpRow;

/* An undo record as decoded; delta points into the bytes it was decoded from. */
typedef struct IpUndoRec
{
	uint8		kind;			/* IpUndoKind */
	uint8		flags;			/* IP_REC_* */
	IpXid		xid;
	ItemPointerData row;
	CommandId	cid;
	IpXid		prev_xid;		/* if IP_REC_PREV */
	IpPtr		prev_ptr;
	const uint8 *saved;			/* if IP_REC_SAVED */
	uint16		hdr;			/* if IP_REC_HDR */
	ItemPointerData forward;	/* if IP_REC_FORWARD */
	uint32		locker;			/* LOCK: xid, or MultiXactId if IP_REC_MULTI */
	LockTupleMode mode;			/* LOCK: strongest mode held */
	const uint8 *delta;			/* UPDATE: makes the previous body of the newer one */
	uint32		deltalen;
} IpUndoRec;

/* xid's epoch is the one that puts it into [base, base + 2^32). */
static inline IpXid
ip_xid_after(uint64 base, TransactionId xid)
{
	if (!TransactionIdIsNormal(xid))
		return (IpXid) xid;
	return base + (uint32) (xid - (uint32) base);
}

/* xid's epoch is the one that puts it closest to ref. */
static inline IpXid
ip_xid_near(uint64 ref, TransactionId xid)
{
	if (!TransactionIdIsNormal(xid))
		return (IpXid) xid;
	return ref + (int32) (xid - (uint32) ref);
}

/*
 * All xids of an undo page's records are in [base, base + 2^32).  newest_xid is one of
 * them, and has the other half of the base.
 */
static inline uint64
ip_undo_xid_base(const IpSpecial *special)
{
	IpXid		newest = special->u.undo.newest_xid;

	return newest - (uint32) ((uint32) newest - special->undo_xid_base);
}

static inline IpPtr
ip_ptr_cid(CommandId cid)
{
	IpPtr		ptr = {(BlockNumber) cid, 0};

	return ptr;
}

/* ---- items --------------------------------------------------------------- */

/* Is it a row or an undo record?  Dead and unused ones are none, nor are heap's tuples. */
static inline bool
ip_item_is_ours(const ItemIdData *lp)
{
	return lp->lp_flags == LP_REDIRECT;
}

/* Is it one that a reader has to look at: ours, or a heap tuple, which is an error? */
static inline bool
ip_item_is_used(const ItemIdData *lp)
{
	return lp->lp_flags == LP_REDIRECT || lp->lp_flags == LP_NORMAL;
}

/* Where it begins, which may be anywhere on a damaged page. */
static inline uint32
ip_item_start(const ItemIdData *lp)
{
	return lp->lp_off + IP_ITEM_BIAS;
}

static inline void
ip_item_set(ItemIdData *lp, uint32 start, uint32 len)
{
	lp->lp_flags = LP_REDIRECT;
	lp->lp_off = start - IP_ITEM_BIAS;
	lp->lp_len = len;
}

/* A row's state on its sound page, without a decision about the default inserter. */
static inline uint8
ip_item_state(Page page, const ItemIdData *lp)
{
	return ((const uint8 *) page)[ip_item_start(lp) + IP_ROW_STATE];
}

/* Is that the metapage's decoy? */
static inline bool
ip_item_is_decoy(const ItemIdData *lp)
{
	return lp->lp_flags == LP_NORMAL && lp->lp_off == IP_DECOY_START && lp->lp_len == IP_DECOY_SIZE;
}

/* ---- reading ------------------------------------------------------------- */

/*
 * Kind of a page; 0 if it is new (all zeros).  Errors: data_corrupted if the
 * page is none of ours.  The page may be a copy.
 */
extern IpPageKind ip_page_kind(Relation rel, BlockNumber block, Page page);

/* Is it a page of one of our kinds?  No if it is new. */
extern bool ip_page_is_ours(Page page);

/*
 * Decode the row at off; false if there is none (out of range, unused, dead).
 * Errors: data_corrupted.  Lock: share, or a private copy of the page.
 */
extern bool ip_row_read(Relation rel, BlockNumber block, Page page, OffsetNumber off,
						IpRow *row);

/* The same for a row whose newest change is a delete; false quickly if it is not. */
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

	return ip_item_is_used(lp) &&
		(start < ((PageHeader) page)->pd_upper || start + IP_ROW_MIN_ITEM > BLCKSZ ||
		 !ip_item_is_ours(lp) || (ip_item_state(page, lp) & state));
}

/*
 * Do items share bytes?  Then a change of one damages another, and two changes that were checked
 * one by one may fail together.  Lock: exclusive.
 */
extern bool ip_page_items_overlap(Page page);

/* Why the row cannot be right, or NULL; for ip_row_read and inplace_check. */
extern const char *ip_row_decode(Page page, OffsetNumber off, IpRow *row);

/* Decode the bytes of an undo record of that block; what is wrong with them, or NULL. */
extern const char *ip_undo_decode(BlockNumber block, uint64 xid_base, const uint8 *item,
								  uint32 len, IpUndoRec *rec);

/* ---- operations ---------------------------------------------------------- */

typedef enum IpOp
{
	IP_OP_INIT_META = 1,
	IP_OP_INIT_DATA,			/* xid_base */
	IP_OP_INIT_UNDO,			/* newest_xid, slot, flags, next */
	IP_OP_DEFAULT,				/* set the default inserter: record's xid, cid */
	IP_OP_CLEAR_DEFAULT,		/* the default inserter's rows are visible to all */
	IP_OP_BASE,					/* xid_base */
	IP_OP_ROW,					/* put or change a row */
	IP_OP_DEAD,					/* a row's item becomes dead */
	IP_OP_UNDO,					/* append an undo record */
	IP_OP_NEWEST,				/* raise newest_xid */
	IP_OP_RING,					/* next, flags of an undo page */
	IP_OP_SLOT,					/* slot, current, npages of the metapage */
	IP_OP_ROWS,					/* put new rows of the default inserter */
	IP_OP_FINAL_ROWS,			/* put new rows that all see */
	IP_OP_XID,					/* what follows has this xid, not the record's */
	IP_OP_UNUSED,				/* dead items may be used again */
	IP_OP_INIT_FREE				/* a page that nobody needs */
} IpOp;

/* A row as it is to be stored. */
typedef struct IpFormed
{
	uint16		hdr;
	uint8	   *body;
	uint32		bodylen;
} IpFormed;

/* What the operations of a record share; the record itself knows it. */
typedef struct IpOpContext
{
	TransactionId xid;			/* record's xid, or invalid */
	BlockNumber data_block;		/* block of reference 0 */
	BlockNumber undo_block;		/* block of reference 1 */
	const IpFormed *rows;		/* if not NULL: what the last operation, IP_OP_ROWS, says */
} IpOpContext;

/* Where IP_OP_ROW's delta starts from. */
typedef enum IpRowBase
{
	IP_BASE_NONE = 0,			/* a new row */
	IP_BASE_ROW,				/* the row as it is */
	IP_BASE_OVERLAID			/* the same, with its overlaid bytes in the operation */
} IpRowBase;

/* IP_OP_ROW: an IpRowBase, and which of the version block's parts are the record's own */
#define IP_ROW_BASE_MASK	0x03
#define IP_ROW_OWN_XID		0x04
#define IP_ROW_OWN_UNDO		0x08

/* IP_OP_ROWS, for each row: hdr follows, else it is that of the row before; a delta to that one, else length and bytes */
#define IP_ROWS_HDR			0x01
#define IP_ROWS_DELTA		0x02

/* Arguments of IP_OP_ROW. */
typedef struct IpRowOp
{
	OffsetNumber off;			/* maximum + 1: a new item */
	uint16		hdr;
	uint8		state;
	bool		own_xid;		/* version block's xid is the record's */
	TransactionId xid;			/* else this one */
	OffsetNumber undo_off;		/* version block points to this record of the undo page */
	IpPtr		ptr;			/* or, if 0, here */
	IpRowBase	base;
	const uint8 *saved;			/* IP_BASE_OVERLAID */
	const uint8 *from;			/* base's body, whole */
	uint32		fromlen;
	const uint8 *body;			/* new body, whole */
	uint32		bodylen;
} IpRowOp;

extern void ip_op_init_data(IpWriter *w, uint64 xid_base);
extern void ip_op_init_undo(IpWriter *w, uint64 newest_xid, uint16 slot, uint16 flags,
							BlockNumber next);
extern void ip_op_simple(IpWriter *w, IpOp op);
extern void ip_op_default(IpWriter *w, CommandId cid);
extern void ip_op_base(IpWriter *w, uint64 xid_base);
extern void ip_op_row(IpWriter *w, const IpRowOp *op);
extern void ip_op_xid(IpWriter *w, TransactionId xid);
/*
 * Many new rows at consecutive offsets from off on, made by the page's default
 * inserter, or (final) visible to all.  Each is given as it is or as a delta to the one before (NULL: there
 * is none), whichever is shorter.  _begin returns what _end needs.
 */
extern uint8 *ip_op_rows_begin(IpWriter *w, OffsetNumber off, bool final);
extern void ip_op_rows_add(IpWriter *w, uint16 hdr, const uint8 *body, uint32 bodylen,
						   uint16 prev_hdr, const uint8 *prev, uint32 prevlen);
extern void ip_op_rows_end(IpWriter *w, uint8 *begin, uint16 count);
extern void ip_op_dead(IpWriter *w, OffsetNumber off);
extern void ip_op_unused(IpWriter *w, const OffsetNumber *offs, int n);
extern void ip_op_undo(IpWriter *w, OffsetNumber row_off, uint8 kind, uint8 flags,
					   const uint8 *tail, uint32 taillen);
extern void ip_op_newest(IpWriter *w, uint64 newest_xid);
extern void ip_op_ring(IpWriter *w, BlockNumber next, uint16 flags);
extern void ip_op_slot(IpWriter *w, uint16 slot, BlockNumber current, uint32 npages);

/*
 * The first offset behind "after" that a new row can have; above
 * IP_MAX_ROWS_PER_PAGE if there is none.  Lock: exclusive.
 */
extern OffsetNumber ip_free_offset(Page page, OffsetNumber after);

/* Size of the item that a row with this state and body takes. */
static inline uint32
ip_item_size(uint8 state, uint32 bodylen)
{
	uint32		size = IP_ROW_HDRSZ + bodylen;

	if ((state & (IP_ROW_VERSION | IP_ROW_OVERLAID)) == IP_ROW_VERSION)
		size += IP_VERSION_BLOCK_SZ;
	return size;
}

/* Free bytes of a data page (the hole). */
static inline uint32
ip_page_free(Page page)
{
	PageHeader	ph = (PageHeader) page;

	return ph->pd_upper - ph->pd_lower;
}

/*
 * Apply a block's operations.  Returns NULL, or what did not fit: the forward
 * path has made sure that everything does, redo reports it.
 */
extern const char *ip_page_apply(Page page, const uint8 *ops, uint32 len,
								 const IpOpContext *ctx);

/* Two rows' bodies: each is a delta to the one before. */
typedef struct IpRowBuffers
{
	uint8		body[2][BLCKSZ];
	uint32		len[2];
	int			last;			/* index of the last one */
} IpRowBuffers;

/* Goes through the new rows that a block's operations put. */
typedef struct IpNewRows
{
	IpReader	ops;
	uint32		left;			/* rows of the operation at hand */
	IpRowBuffers buffers;
} IpNewRows;

extern void ip_new_rows_begin(IpNewRows *n, const uint8 *ops, uint32 len);

/* Body of the next row; NULL if the operations have no more, or are of another kind. */
extern const uint8 *ip_new_rows_next(IpNewRows *n, uint32 *len);

/* Describe a block's operations in words. */
extern void ip_page_desc(StringInfo buf, const uint8 *ops, uint32 len);

#endif							/* IP_PAGE_H */
