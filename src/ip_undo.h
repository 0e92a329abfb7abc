/*-------------------------------------------------------------------------
 * ip_undo.h
 *	  Undo records and the rings of pages that hold them.
 *
 * Locking order: data page, undo page (current, then next), metapage.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UNDO_H
#define IP_UNDO_H

#include "ip_page.h"
#include "ip_space.h"

/* A record to be written. */
typedef struct IpUndoSpec
{
	IpUndoKind	kind;
	uint8		flags;			/* KEYS, MULTI, PARTITION; the others are derived */
	CommandId	cid;
	IpXid		prev_xid;		/* the version before; final: visible to all */
	bool		prev_inserted;
	IpPtr		prev_ptr;
	const uint8 *saved;			/* or NULL */
	uint16		hdr;
	bool		hdr_differs;
	ItemPointerData forward;	/* or invalid */
	uint32		locker;
	LockTupleMode mode;
	const uint8 *delta;
	uint32		deltalen;
} IpUndoSpec;

/*
 * The block, locked, if it may be an undo page (what it is, the caller has to see); InvalidBuffer if
 * it is none.  A stale or damaged reference may lead to a data page, or to a free or new one that is
 * about to become one, even to one that the caller holds: for its lock he must not wait, so he
 * finds out before.  Who holds such a page holds it since before it could be an undo page again.
 */
extern Buffer ip_undo_lock(Relation rel, BlockNumber block, int mode);

/*
 * Read the record at ptr if it is about row (any, if NULL); false if it is not there (any
 * more).  buf must have BLCKSZ bytes, and rec points into it.  Takes and
 * releases a share lock on the undo page.  *problem: why it cannot be read, or NULL.
 */
extern bool ip_undo_find(Relation rel, IpPtr ptr, const ItemPointerData *row,
						 uint8 *buf, IpUndoRec *rec, const char **problem);

/* The same.  Errors: data_corrupted. */
extern bool ip_undo_read(Relation rel, IpPtr ptr, const ItemPointerData *row,
						 uint8 *buf, IpUndoRec *rec);

/*
 * Copy the page's item at ptr to buf, which has BLCKSZ bytes, and decode it; rec points into
 * buf.  *found: there is such an item.  What is wrong with it, or NULL.  Lock: share.
 */
extern const char *ip_undo_item(Page page, IpPtr ptr, uint8 *buf, IpUndoRec *rec, bool *found);

/*
 * Get ready for a change of rel: may recycle an undo page, for which rows with
 * aborted changes are put back.  No buffer lock may be held.
 */
extern void ip_undo_prepare(Relation rel);

/*
 * The undo page for records of size bytes in all (with their item pointers),
 * locked exclusively; *off becomes the first record's offset.  A data page
 * may be locked.  May extend the relation.
 */
extern Buffer ip_undo_begin(Relation rel, uint32 size, OffsetNumber *off);

/*
 * VACUUM: take pages out of the rings, all of whose xids precede limit and that
 * no row needs; how many.  limit is a removal horizon from before the caller
 * pruned all rows.  Rings that stay move to the lowest free blocks (*moved).
 * No buffer lock may be held.
 */
extern BlockNumber ip_undo_shrink(Relation rel, IpXid limit, IpFreeBlocks *lowest,
								  bool *moved);

/*
 * VACUUM: undo pages that damage has put out of the rings become free, if their records can be read,
 * all their xids precede limit, and no row needs them; how many.  pages: all undo pages that VACUUM
 * has met, and not freed since.  limit is as above.  No buffer lock may be held.
 */
extern BlockNumber ip_undo_reclaim(Relation rel, IpXid limit, const BlockNumber *pages,
								   BlockNumber npages, IpFreeBlocks *lowest);

/* Pages that a ring may have, on average, in a relation of so many blocks; more is VACUUM's business. */
#define IP_UNDO_TOLERATED(nblocks) (8 + (nblocks) / 400)

/* Of so many undo pages, those beyond what all rings may have. */
static inline double
ip_undo_beyond(double pages, BlockNumber nblocks)
{
	return Max(pages - (double) IP_UNDO_SLOTS * IP_UNDO_TOLERATED(nblocks), 0);
}

/* The pages of all rings.  Lock: share on the metapage, taken and released. */
extern BlockNumber ip_undo_pages(Relation rel);

/* about so many records are on a full page */
#define IP_UNDO_RECORDS_PER_PAGE 128

/* Space that a record takes at most. */
#define IP_UNDO_SPACE(deltalen) (IP_REC_MAX_HEAD + (deltalen) + sizeof(ItemIdData))

/* Put the operation that appends the record, made by xid, to undo_block. */
extern void ip_undo_put(IpWriter *w, BlockNumber undo_block, TransactionId xid,
						OffsetNumber row_off, const IpUndoSpec *spec);

#endif							/* IP_UNDO_H */
