/*-------------------------------------------------------------------------
 * ip_lockset_use.h
 *	  Row locks: who has locked a row, and locking one.
 *
 * A lock is no part of a row, and changes nothing on its data page but, at most, lock_page, which tells where the page's sets
 * begin.  They are there, or on the pages that this one says they are continued on.
 *
 * The data page's exclusive lock protects its live sets: only its holder adds rows to them.  The lock page's protects a slot:
 * a dead set is overwritten by anybody who has that.  Whoever holds a lock page's lock waits for no data or undo page, and for
 * other lock pages only in the order of the list, which begins with the metapage: for such as have a higher number.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOCKSET_USE_H
#define IP_LOCKSET_USE_H

#include "access/xact.h"

#include "ip_change.h"
#include "ip_lockset.h"

/* Is the locker still running?  Any xid.  *mine: see IpLocker. */
extern bool ip_lockset_is_live(IpXid xid, bool *mine);

/* The lockers of the row at off.  Lock: share on the data page; lock pages are locked one by one, each before the one in front of it is let go. */
extern void ip_lockset_read(Relation rel, BlockNumber block, Page page, OffsetNumber off, IpLockers *lockers);

/*
 * Add the row to a set of xid in that mode.  any: had the data page a live set?  Lock: the data page exclusively, since that
 * was asked.  Errors: what extending the table may raise; program_limit_exceeded if numbers of lock pages run out.
 */
extern void ip_lockset_add(Relation rel, Buffer data, OffsetNumber off, IpXid xid, LockTupleMode mode, bool any);

/*
 * The same for our own lock, if the last one was such a lock on that page, and no lock page that matters has changed since, so that nobody else has
 * locked a row of it.  False: that is not sure, and nothing is done.
 */
extern bool ip_lockset_add_alike(Relation rel, Buffer data, OffsetNumber off, TransactionId xid, LockTupleMode mode);

/*
 * For RegisterXactCallback: rows are added to a set of one's own without WAL, so
 * a transaction that is prepared logs the lock pages where it has done so.
 */
extern void ip_lockset_at_end(XactEvent event, void *arg);

/* Which of the page's items are in live sets?  False: none is.  Lock: the data page exclusively. */
extern bool ip_lockset_rows(Relation rel, BlockNumber block, Page page, bool *locked);

/*
 * A lock page, or the metapage, locked in this mode; InvalidBuffer if the block is something else, not there, or damaged: it has no
 * sets then.  It may be a data page that the caller has locked.
 */
extern Buffer ip_lockset_open(Relation rel, BlockNumber block, int mode);

/* ---- the list of lock pages, for ip_lockset_vacuum.c -------------------------------- */

/* Where a page of the list leads: to a lock page, or to none (0), unless the link is damaged.  Lock: share. */
static inline BlockNumber
ip_lockset_link(Buffer buffer)
{
	return IpPageGetSpecial(BufferGetPage(buffer))->u.lock.next;
}

/*
 * What is there, locked in this mode; the caller keeps its lock, share, meanwhile, so that the page stays in the list.  InvalidBuffer: nothing, or
 * damage.
 */
extern Buffer ip_lockset_next(Relation rel, Buffer buffer, int mode);

/* May sets that begin on the page, or before it, be on the next one?  Lock: share. */
extern bool ip_lockset_is_continued(Page page);

/* May sets be live that begin on the page, or before it?  Lock: exclusive. */
extern bool ip_lockset_is_in_use(Relation rel, Buffer buffer);

/* Is there damage where lock sets are looked for, or what a page can be when they were dead, and it was freed?  Lock: share. */
extern bool ip_lockset_is_damaged(BlockNumber block, Page page);

/* To the change: the page, locked exclusively, becomes the lock page behind before.  Returns where more of its operations go. */
extern ByteWriter *ip_lockset_init_page(IpChange *change, Buffer buffer, Buffer before);

#endif							/* IP_LOCKSET_USE_H */
