/*-------------------------------------------------------------------------
 * ip_ring.h
 *	  The rings of undo pages.
 *
 * The lock of its current page is a ring's lock: only the backend that holds it
 * exclusively changes links and the metapage's slot.  The slot leads to a page
 * of the ring (IpMetaSlot), from where the links lead to the current one: so
 * most advances of a ring leave the metapage alone.
 *-------------------------------------------------------------------------
 */
#ifndef IP_RING_H
#define IP_RING_H

#include "ip_rel.h"
#include "ip_runs.h"

/* The approximate number of records on a full page. */
#define IP_UNDO_RECORDS_PER_PAGE 128

/* A ring grows by as many pages as it has, but not by more than this. */
#define IP_UNDO_MAX_EXTENT	4

/*
 * The number of pages that a ring may have, on average, in a relation of
 * nblocks blocks; VACUUM frees what is beyond that.
 */
#define IP_UNDO_TOLERATED(nblocks) (8 + (nblocks) / 400)

/* Returns how many of these undo pages are beyond what all rings may have. */
static inline double
ip_undo_beyond(double pages, BlockNumber nblocks)
{
	return Max(pages - (double) IP_UNDO_SLOTS * IP_UNDO_TOLERATED(nblocks), 0);
}

/* A ring's oldest page, which is to be used again or to be freed. */
typedef struct IpOldestPage
{
	BlockNumber block;
	IpXid		newest_xid;
	bool		clean;			/* the rows that needed it have been visited */
	const char *problem;		/* problem of the record at off, which cannot
								 * be read; or NULL */
	OffsetNumber off;
	int			ntids;			/* rows that need the page */
	ItemPointerData tids[MaxOffsetNumber];
} IpOldestPage;

/*
 * Returns whether the page, which is this block, may be used again as far as
 * snapshots are concerned (U1).  *newest becomes the xid that a standby's
 * snapshots have to see then, or IP_XID_NONE.  Lock: share.
 */
extern bool ip_ring_page_is_old(Relation rel, Page page, BlockNumber block,
								IpXid *newest);

/*
 * Returns whether any row needs the page's records (U2), as far as these can be
 * read.  Fills in o, unless o says that the page, with its newest xid, is
 * clean.  Lock: share.
 */
extern bool ip_ring_is_needed(Page page, BlockNumber block, IpOldestPage *o);

/*
 * Returns the number of pages of all rings.  Lock: share on the metapage, taken
 * and released.
 */
extern BlockNumber ip_ring_pages(Relation rel);

/*
 * Returns the number of pages of all rings, and of lock pages.  Lock: as for
 * ip_ring_pages.
 */
extern BlockNumber ip_ring_pages_without_rows(Relation rel);

/* The metapage's list of undo and lock pages (see ip_runs.h). */
typedef struct IpRuns
{
	uint32		n;
	IpUndoRun	runs[FLEXIBLE_ARRAY_MEMBER];
} IpRuns;

/*
 * Returns the list of a relation of nblocks blocks, palloc'd, or NULL if it is
 * empty, or the relation so small that reading the list does not pay.  Lock:
 * share on the metapage, taken and released.
 */
extern IpRuns *ip_ring_read_runs(Relation rel, BlockNumber nblocks);

static inline bool
ip_ring_is_undo(const IpRuns *runs, BlockNumber block)
{
	return runs != NULL && ip_runs_have(runs->runs, runs->n, block);
}

/* Read what the metapage says of all slots, IP_UNDO_SLOTS of them. */
extern void ip_ring_read_slots(Relation rel, IpMetaSlot *slots);

/*
 * Return whether the page is in the slot's ring, and whether it is the current
 * one.  Lock: share.
 */
extern bool ip_ring_has(Page page, uint16 slot);
extern bool ip_ring_is_current(Page page, uint16 slot);

/*
 * Returns the slot's current page, locked, if it is found within from.npages
 * pages from from.entry on; otherwise InvalidBuffer.  waited: see
 * ip_undo_lock_page.
 */
extern Buffer ip_ring_follow(Relation rel, IpMetaSlot from, uint16 slot,
							 int mode, bool *waited);

/*
 * As ip_ring_follow, in share mode, from where the metapage says that the
 * slot's ring is.
 */
extern Buffer ip_ring_follow_slot(Relation rel, IpMetaSlot ms, uint16 slot);

/* Let the backend use its own ring from now on.  The ring may not exist yet. */
extern void ip_ring_use_own(IpRelCache *cache);

/*
 * Returns the slot's current undo page, locked, or InvalidBuffer if it has no
 * ring, or has lost it because of damage.  *block is where the page was the
 * last time, and becomes where it is.  waited: see ip_undo_lock_page.  Lock:
 * the metapage may be locked meanwhile.
 */
extern Buffer ip_ring_lock_current(Relation rel, BlockNumber *block,
								   uint16 slot, int mode, bool *waited);

/*
 * Returns the oldest page of the ring, locked exclusively.  Returns current
 * itself if it is the only page, or has become so because its link was damaged.
 * Lock: current exclusively.
 */
extern Buffer ip_ring_lock_oldest(Relation rel, Buffer current, uint16 slot);

/*
 * Changes of the ring, each one WAL record.  current, oldest, pages and meta
 * are locked exclusively, and stay so, except that meta, which is from
 * ip_rel_make_meta, is released.
 *
 * recycle: the oldest page becomes the current one.  newest is what
 * ip_ring_page_is_old has returned, with the page locked all the time since.
 *
 * drop_oldest: the oldest page is damaged.  It leaves the ring, so that the
 * ring need not grow for ever, but its records stay where they are.  If it
 * cannot be found (InvalidBuffer), or its own link is wrong, all pages but
 * current leave the ring.
 *
 * free_oldest: the oldest page, which may be the current one, leaves the ring
 * and becomes free.
 *
 * add_pages: n pages are inserted between current (invalid: there is no ring
 * yet) and the oldest page.  The first of them becomes the current one, or,
 * with ahead, will be the next current one; the others are released.  Returns
 * the number of pages of all rings.
 */
extern void ip_ring_recycle(Relation rel, Buffer current, Buffer oldest,
							uint16 slot, IpXid newest);
extern void ip_ring_drop_oldest(Relation rel, Buffer current, Buffer oldest,
								uint16 slot);
extern void ip_ring_free_oldest(Relation rel, Buffer current, Buffer oldest,
								uint16 slot, IpXid newest);
extern uint32 ip_ring_add_pages(Relation rel, Buffer current, Buffer meta,
								uint16 slot, Buffer *pages, int n, bool ahead);

/*
 * Make the ring longer, by up to extent pages, or create it.  Returns its new
 * current page, locked, or InvalidBuffer if another backend has created the
 * slot's ring meanwhile.
 */
extern Buffer ip_ring_grow(Relation rel, Buffer current, uint16 slot,
						   uint32 extent);

/*
 * The slot's current page, at, is nearly full, and the oldest one is not old.
 * Make the ring longer before a writer that holds a data page has to, unless
 * another backend has done so.  No lock is held.
 */
extern void ip_ring_grow_ahead(Relation rel, BlockNumber at, uint16 slot,
							   BlockNumber oldest);

#endif							/* IP_RING_H */
