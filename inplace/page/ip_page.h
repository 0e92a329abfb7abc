/*-------------------------------------------------------------------------
 * ip_page.h
 *	  Pages: their kinds, items, and free space.
 *
 * Items of a data page are contiguous between pd_upper and pd_special: when an
 * item grows or shrinks, those below it move.  So a page's free space is
 * always pd_upper - pd_lower, and pages need no defragmentation.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PAGE_H
#define IP_PAGE_H

#include "compat.h"

#include "miscadmin.h"
#include "storage/buf.h"
#include "utils/relcache.h"

#include "ip_format.h"

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

static inline uint64
ip_data_xid_base(const IpSpecial *special)
{
	return (uint64) special->w.data.xid_base << IP_DATA_BASE_SHIFT;
}

/*
 * All xids of an undo page's records are in [base, base + 2^32), modulo 2^64
 * where few xids have been used.  newest_xid is one of them, and supplies the
 * upper half of the base.
 */
static inline uint64
ip_undo_xid_base(const IpSpecial *special)
{
	IpXid		newest = special->u.undo.newest_xid;

	return newest - (uint32) ((uint32) newest - special->w.undo_base);
}

/*
 * The xids of an undo page's records are stored as differences to this one,
 * the newest when the page was made.
 */
static inline TransactionId
ip_undo_xid_origin(const IpSpecial *special)
{
	return (TransactionId) (special->w.undo_base + IP_UNDO_XIDS_BEFORE);
}

/* For ereport: how to find more damage. */
#define ip_page_check_hint(rel) \
	errhint("Run inplace_check('%s') to find all damage.", \
			RelationGetRelationName(rel))

#ifdef USE_ASSERT_CHECKING

/*
 * Returns whether the address is within a page in shared buffers.  The checks
 * below do not apply to copies and local buffers.
 */
extern bool ip_page_in_buffers(const void *address);

/*
 * Returns whether the backend has locked the page's buffer, exclusively or at
 * all.
 */
extern bool ip_page_is_locked(Page page, bool exclusive);

/*
 * True if no shared buffer is locked.  Any LWLock that is held holds off
 * interrupts.
 */
#define ip_page_none_is_locked() (InterruptHoldoffCount == 0)
#endif

/* ---- prune hint ---------------------------------------------------------- */

/*
 * The hint in pd_prune_xid is this far in the future for heap code, which
 * prunes pages too.
 */
#define IP_HINT_OFFSET	((TransactionId) 1 << 30)

/*
 * The hint that a prune is worthwhile once xid is removable; with an xid
 * visible to all, at once.
 */
static inline TransactionId
ip_hint_of(TransactionId xid)
{
	TransactionId hint = xid + IP_HINT_OFFSET;

	return hint != InvalidTransactionId ? hint : hint - 1;
}

/* ---- items --------------------------------------------------------------- */

/* Returns whether the item is the decoy of block 0. */
static inline bool
ip_item_is_decoy(const ItemIdData *lp)
{
	return lp->lp_flags == LP_NORMAL && lp->lp_off == IP_DECOY_START &&
		lp->lp_len == IP_DECOY_LENGTH;
}

/*
 * Returns whether the item is a row or an undo record.  False for dead and
 * unused items and for heap's tuples.
 */
static inline bool
ip_item_is_ours(const ItemIdData *lp)
{
	return lp->lp_flags == LP_REDIRECT;
}

/*
 * Returns whether a reader has to examine the item: it is ours, or a heap
 * tuple, which is an error.
 */
static inline bool
ip_item_is_used(const ItemIdData *lp)
{
	return lp->lp_flags == LP_REDIRECT ||
		(lp->lp_flags == LP_NORMAL && !ip_item_is_decoy(lp));
}

/*
 * Offset in the page where the item begins; it may be anything on a damaged
 * page.
 */
static inline uint32
ip_item_start(const ItemIdData *lp)
{
	return lp->lp_off + IP_ITEM_BIAS;
}

/* Returns whether the item lies in the page's item space. */
static inline bool
ip_item_is_inside(Page page, const ItemIdData *lp)
{
	PageHeader	ph = (PageHeader) page;
	uint32		start = ip_item_start(lp);

	return start >= ph->pd_upper &&
		start + ItemIdGetLength(lp) <= ph->pd_special;
}

static inline void
ip_item_set(ItemIdData *lp, uint32 start, uint32 len)
{
	Assert(start >= IP_ITEM_BIAS && len > 0 && start + len <= BLCKSZ);
	lp->lp_flags = LP_REDIRECT;
	lp->lp_off = start - IP_ITEM_BIAS;
	lp->lp_len = len;
}

/* ---- reading ------------------------------------------------------------- */

/*
 * Kind of a page; 0 if it is new (all zeros).  Errors: data_corrupted if the
 * page is not ours, feature_not_supported if it has a format version that this
 * library does not know.  The page may be a copy.
 */
extern IpPageKind ip_page_kind(Relation rel, BlockNumber block, Page page);

/* Returns whether the page is of one of our kinds.  False if it is new. */
extern bool ip_page_is_ours(Page page);

/*
 * Raise an error if the page looks like one of heap, which has no special
 * space: we must not write to that file.  A page of ours in which a bit has
 * flipped does not look like that.  The page need not be locked.
 */
extern void ip_page_refuse_heap(Relation rel, BlockNumber block, Page page);

/* Returns whether the metapage refers to no undo page. */
extern bool ip_page_meta_is_idle(Page page);

/* The page's format version if it is another one than ours, else 0. */
extern uint32 ip_page_other_version(Page page);

/* Raise the error about a page of another version. */
pg_noreturn extern void ip_page_refuse_version(Relation rel, BlockNumber block,
											   uint32 version);

/*
 * Returns whether items share bytes.  If they do, a change of one damages
 * another, and two changes that were checked one by one may fail together.
 * Lock: exclusive.
 */
extern bool ip_page_items_overlap(Page page);

/*
 * Returns whether the page's items may be laid out again: each is inside the
 * item space, and none overlap.  Lock: exclusive.
 */
extern bool ip_page_may_move_items(Page page);

/*
 * The first offset behind "after" that a new row can have; above
 * IP_MAX_ROWS_PER_PAGE if there is none.  Lock: exclusive.
 */
extern OffsetNumber ip_page_free_offset(Page page, OffsetNumber after);

/* Free bytes of a data page (the hole). */
static inline uint32
ip_page_free(Page page)
{
	PageHeader	ph = (PageHeader) page;

	Assert(ph->pd_lower <= ph->pd_upper);	/* the server checks that when it
											 * reads a page */
	return ph->pd_upper - ph->pd_lower;
}

/* ---- default inserter and default changer -------------------------------- */

/*
 * The page's default inserter or changer; IP_XID_NONE if it has none.  Lock:
 * share, or a private copy of the page.
 */
extern IpXid ip_page_default_inserter(Page page);
extern IpXid ip_page_default_changer(Page page);

/*
 * True if the default changer has aborted, which undoes what it did.  Then
 * IP_OP_CLEAR_CHANGER may be applied.  The page is locked.
 */
extern bool ip_page_changer_is_over(Page page);

#endif							/* IP_PAGE_H */
