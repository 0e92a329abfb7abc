/*-------------------------------------------------------------------------
 * ip_page.h
 *	  Pages: their kinds, items, and free space.
 *
 * Items of a data page are contiguous between pd_upper and pd_special: when an
 * item grows or shrinks, those below it move.  So a page's free space is
 * always pd_upper - pd_lower, and there is no defragmentation.
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
 * All xids of an undo page's records are in [base, base + 2^32), modulo 2^64 where few xids have been used.  newest_xid is one of
 * them, and has the other half of the base.
 */
static inline uint64
ip_undo_xid_base(const IpSpecial *special)
{
	IpXid		newest = special->u.undo.newest_xid;

	return newest - (uint32) ((uint32) newest - special->w.undo_base);
}

/* The xids of an undo page's records are stored as differences to this one, the newest when the page was made. */
static inline TransactionId
ip_undo_xid_origin(const IpSpecial *special)
{
	return (TransactionId) (special->w.undo_base + IP_UNDO_XIDS_BEFORE);
}

/* For ereport: where to look for more. */
#define ip_page_check_hint(rel) \
	errhint("Run inplace_check('%s') to find all damage.", RelationGetRelationName(rel))

#ifdef USE_ASSERT_CHECKING

/* Does the address lead into a page in shared buffers?  To copies and local buffers nothing below applies. */
extern bool ip_page_in_buffers(const void *address);

/* Has the backend locked the page's buffer, exclusively or at all? */
extern bool ip_page_is_locked(Page page, bool exclusive);

/* No shared buffer is locked: whatever LWLock is held holds off interrupts. */
#define ip_page_none_is_locked() (InterruptHoldoffCount == 0)
#endif

/* ---- prune hint ---------------------------------------------------------- */

/* To heap code, which prunes pages too, the hint in pd_prune_xid is so far in the future. */
#define IP_HINT_OFFSET	((TransactionId) 1 << 30)

/* The hint that says that a prune is worth it when xid is removable; one that all see: at once. */
static inline TransactionId
ip_hint_of(TransactionId xid)
{
	TransactionId hint = xid + IP_HINT_OFFSET;

	return hint != InvalidTransactionId ? hint : hint - 1;
}

/* ---- items --------------------------------------------------------------- */

/* Is it the decoy of block 0? */
static inline bool
ip_item_is_decoy(const ItemIdData *lp)
{
	return lp->lp_flags == LP_NORMAL && lp->lp_off == IP_DECOY_START && lp->lp_len == IP_DECOY_LENGTH;
}

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
	return lp->lp_flags == LP_REDIRECT || (lp->lp_flags == LP_NORMAL && !ip_item_is_decoy(lp));
}

/* Where it begins, which may be anywhere on a damaged page. */
static inline uint32
ip_item_start(const ItemIdData *lp)
{
	return lp->lp_off + IP_ITEM_BIAS;
}

/* Does it lie in the page's item space? */
static inline bool
ip_item_is_inside(Page page, const ItemIdData *lp)
{
	PageHeader	ph = (PageHeader) page;
	uint32		start = ip_item_start(lp);

	return start >= ph->pd_upper && start + ItemIdGetLength(lp) <= ph->pd_special;
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
 * page is none of ours, feature_not_supported if it is of a format version that this library does not know.
 * The page may be a copy.
 */
extern IpPageKind ip_page_kind(Relation rel, BlockNumber block, Page page);

/* Is it a page of one of our kinds?  No if it is new. */
extern bool ip_page_is_ours(Page page);

/*
 * An error if it looks like a page of heap's, which have no special space: the
 * file is not ours to write to.  A page of ours in which a bit has flipped does
 * not.  The page need not be locked.
 */
extern void ip_page_refuse_heap(Relation rel, BlockNumber block, Page page);

/* Does the metapage know of no undo page? */
extern bool ip_page_meta_is_idle(Page page);

/* Another format version than ours that the page says it has; 0: none. */
extern uint32 ip_page_other_version(Page page);

/* The error about a page of that version. */
pg_noreturn extern void ip_page_refuse_version(Relation rel, BlockNumber block, uint32 version);

/*
 * Do items share bytes?  Then a change of one damages another, and two changes that were checked
 * one by one may fail together.  Lock: exclusive.
 */
extern bool ip_page_items_overlap(Page page);

/* May the page's items be laid out anew: is each inside, and do none overlap?  Lock: exclusive. */
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

/* ---- default inserter and default changer ------------------------------------------- */

/* IP_XID_NONE: there is none.  Lock: share, or a private copy of the page. */
extern IpXid ip_page_default_inserter(Page page);
extern IpXid ip_page_default_changer(Page page);

/*
 * Is what the default changer did undone, as it has aborted?  Then IP_OP_CLEAR_CHANGER may come.  The page is locked.
 */
extern bool ip_page_changer_is_over(Page page);

#endif							/* IP_PAGE_H */
