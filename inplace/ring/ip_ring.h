/*-------------------------------------------------------------------------
 * ip_ring.h
 *	  The rings of undo pages.
 *
 * The lock of its current page is a ring's lock: only the backend that holds it
 * exclusively changes links and the metapage's slot.  The slot leads to a page of the ring (IpMetaSlot), from where
 * the links lead to the current one: so most advances of a ring leave the metapage alone.
 *-------------------------------------------------------------------------
 */
#ifndef IP_RING_H
#define IP_RING_H

#include "ip_rel.h"
#include "ip_runs.h"

/* about so many records are on a full page */
#define IP_UNDO_RECORDS_PER_PAGE 128

/* A ring grows by as many pages as it has, but by no more than this. */
#define IP_UNDO_MAX_EXTENT	4

/* Pages that a ring may have, on average, in a relation of so many blocks; more is VACUUM's business. */
#define IP_UNDO_TOLERATED(nblocks) (8 + (nblocks) / 400)

/* Of so many undo pages, those beyond what all rings may have. */
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
	const char *problem;		/* with the record at off, which cannot be
								 * read; or NULL */
	OffsetNumber off;
	int			ntids;			/* those rows */
	ItemPointerData tids[MaxOffsetNumber];
} IpOldestPage;

/*
 * May the page, which is this block, be used again as far as snapshots go (U1)?  *newest: what a standby's snapshots have to see then, or
 * IP_XID_NONE.  Lock: share.
 */
extern bool ip_ring_page_is_old(Relation rel, Page page, BlockNumber block, IpXid *newest);

/*
 * Does any row need the page's records (U2), as far as can be read?  Fills in o, unless o says that the page,
 * with its newest xid, is clean.  Lock: share.
 */
extern bool ip_ring_is_needed(Page page, BlockNumber block, IpOldestPage *o);

/* The pages of all rings.  Lock: share on the metapage, taken and released. */
extern BlockNumber ip_ring_pages(Relation rel);

/* Those, and lock pages. */
extern BlockNumber ip_ring_pages_without_rows(Relation rel);

/* The metapage's list of undo and lock pages (see ip_runs.h). */
typedef struct IpRuns
{
	uint32		n;
	IpUndoRun	runs[FLEXIBLE_ARRAY_MEMBER];
} IpRuns;

/*
 * The list of a relation of so many blocks, palloc'd, or NULL if it is empty, or not worth asking for.  Lock: share on the
 * metapage, taken and released.
 */
extern IpRuns *ip_ring_read_runs(Relation rel, BlockNumber nblocks);

static inline bool
ip_ring_is_undo(const IpRuns *runs, BlockNumber block)
{
	return runs != NULL && ip_runs_have(runs->runs, runs->n, block);
}

/* What the metapage says of all slots, IP_UNDO_SLOTS of them. */
extern void ip_ring_read_slots(Relation rel, IpMetaSlot *slots);

/* Is it a page of the slot's ring, and the current one?  Lock: share. */
extern bool ip_ring_has(Page page, uint16 slot);
extern bool ip_ring_is_current(Page page, uint16 slot);

/*
 * The slot's current page, locked, if it is found within from.npages pages from from.entry on; else InvalidBuffer.
 * waited: see ip_undo_lock_page.
 */
extern Buffer ip_ring_follow(Relation rel, IpMetaSlot from, uint16 slot, int mode, bool *waited);

/* The same, locked in share mode, for what the metapage says of the slot. */
extern Buffer ip_ring_follow_slot(Relation rel, IpMetaSlot ms, uint16 slot);

/* Let the backend use its own ring from now on, which may have to be made. */
extern void ip_ring_use_own(IpRelCache *cache);

/*
 * The slot's current undo page, locked, or InvalidBuffer if it has no ring, or
 * none any more, because of damage.  *block is where it was the last time, and
 * becomes where it is.  waited: see ip_undo_lock_page.  Lock: the metapage may
 * be locked meanwhile.
 */
extern Buffer ip_ring_lock_current(Relation rel, BlockNumber *block, uint16 slot, int mode, bool *waited);

/*
 * The oldest page of the ring, locked exclusively; current itself if it is the only one, or has
 * become so because its link was damaged.  Lock: current exclusively.
 */
extern Buffer ip_ring_lock_oldest(Relation rel, Buffer current, uint16 slot);

/*
 * Changes of the ring, each one WAL record.  current and oldest, pages and meta (by
 * ip_rel_make_meta, and released) are locked exclusively, and stay so but for meta.
 *
 * recycle: the oldest page becomes the current one.  newest: what ip_ring_page_is_old, asked with the page locked as it is,
 * has said of it.  drop_oldest: something of it is
 * damaged: it leaves the ring, so that the ring need not grow for ever, but its records stay
 * where they are; if it cannot be found (InvalidBuffer), or its own link is wrong, so do all but
 * current.  free_oldest: it, which may be the current one, leaves the ring and is free.
 * add_pages: n pages come between current (invalid: there is no ring yet) and the oldest; the
 * first of them becomes the current one, or (ahead) will be the next; the others are released.
 */
extern void ip_ring_recycle(Relation rel, Buffer current, Buffer oldest, uint16 slot, IpXid newest);
extern void ip_ring_drop_oldest(Relation rel, Buffer current, Buffer oldest, uint16 slot);
extern void ip_ring_free_oldest(Relation rel, Buffer current, Buffer oldest, uint16 slot, IpXid newest);
extern void ip_ring_add_pages(Relation rel, Buffer current, Buffer meta, uint16 slot,
							  Buffer *pages, int n, bool ahead);

/*
 * Make the ring longer, by up to so many pages, or make it; its new current page, locked.  If
 * another backend has made the slot's ring meanwhile, InvalidBuffer.
 */
extern Buffer ip_ring_grow(Relation rel, Buffer current, uint16 slot, uint32 extent);

/*
 * The slot's current page, at, is nearly full, and the oldest one is not old: make the ring longer before a writer that holds a
 * data page has to, unless another backend has done so.  No lock is held.
 */
extern void ip_ring_grow_ahead(Relation rel, BlockNumber at, uint16 slot, BlockNumber oldest);

#endif							/* IP_RING_H */
