/*-------------------------------------------------------------------------
 * ip_lockset_use.h
 *	  Row locks: which transactions have locked a row, and locking one.
 *
 * A lock is no part of a row.  On the data page it changes at most lock_page,
 * the block where the page's sets begin.  The sets are there, or on the pages
 * on which that page says that they are continued.
 *
 * The data page's exclusive lock protects its live sets: only its holder adds
 * rows to them.  The lock page's exclusive lock protects the place of a set:
 * its holder may overwrite any dead set.  A process that holds a lock page's
 * lock waits for no data or undo page.  For other lock pages it waits only in
 * the order of the list, which begins with the metapage: for those with a
 * higher number.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOCKSET_USE_H
#define IP_LOCKSET_USE_H

#include "access/xact.h"

#include "ip_change.h"
#include "ip_lockset.h"

/*
 * Returns whether the locker is still running.  Accepts any xid.  *mine: see
 * IpLocker.
 */
extern bool ip_lockset_is_live(IpXid xid, bool *mine);

/*
 * Read the lockers of the row at off.  Lock: share on the data page.  Lock
 * pages are locked one by one, each before the previous one is released.
 */
extern void ip_lockset_read(Relation rel, BlockNumber block, Page page,
							OffsetNumber off, IpLockers *lockers);

/*
 * Add the row to a set of xid in that mode.  any: the data page had a live set.
 * Lock: the data page exclusively, since "any" was determined.  Errors: those
 * of extending the table; program_limit_exceeded if numbers of lock pages run
 * out.
 */
extern void ip_lockset_add(Relation rel, Buffer data, OffsetNumber off,
						   IpXid xid, LockTupleMode mode, bool any);

/*
 * Add the row to a set of ours if our last lock was such a lock on that page,
 * and no lock page that matters has changed since, so that no other transaction
 * has locked a row of it.  Returns false, and does nothing, if that is not
 * certain.
 */
extern bool ip_lockset_add_alike(Relation rel, Buffer data, OffsetNumber off,
								 TransactionId xid, LockTupleMode mode);

/*
 * For RegisterXactCallback: a transaction adds rows to its own set without WAL,
 * so when it is prepared, it logs the lock pages where it has done so.
 */
extern void ip_lockset_at_end(XactEvent event, void *arg);

/*
 * Find which of the page's items are in live sets.  Returns false if there is
 * no such item.  Lock: the data page exclusively.
 */
extern bool ip_lockset_rows(Relation rel, BlockNumber block, Page page,
							bool *locked);

/*
 * Returns a lock page, or the metapage, locked in this mode.  Returns
 * InvalidBuffer if the block is something else, does not exist, or is damaged:
 * it has no sets then.  It may be a data page that the caller has locked.
 */
extern Buffer ip_lockset_open(Relation rel, BlockNumber block, int mode);

/* ---- the list of lock pages, for ip_lockset_vacuum.c ------------------- */

/*
 * Returns the link of a page of the list: to a lock page, or to none (0),
 * unless the link is damaged.  Lock: share.
 */
static inline BlockNumber
ip_lockset_link(Buffer buffer)
{
	return IpPageGetSpecial(BufferGetPage(buffer))->u.lock.next;
}

/*
 * Returns the page that follows in the list, locked in this mode.  The caller
 * keeps its lock, share, meanwhile, so that the page stays in the list.
 * Returns InvalidBuffer if there is no page, or it is damaged.
 */
extern Buffer ip_lockset_next(Relation rel, Buffer buffer, int mode);

/*
 * Returns whether sets that begin on the page, or before it, may be on the next
 * one.  Lock: share.
 */
extern bool ip_lockset_is_continued(Page page);

/*
 * Returns whether sets that begin on the page, or before it, may be live.
 * Lock: exclusive.
 */
extern bool ip_lockset_is_in_use(Relation rel, Buffer buffer);

/*
 * Returns whether there is damage where lock sets are searched, rather than a
 * page as it can be after its sets were dead and it was freed.  Lock: share.
 */
extern bool ip_lockset_is_damaged(BlockNumber block, Page page);

/*
 * Add to the change that the page, locked exclusively, becomes the lock page
 * behind "before".  Returns the writer for further operations on the page.
 */
extern ByteWriter *ip_lockset_init_page(IpChange *change, Buffer buffer,
										Buffer before);

#endif							/* IP_LOCKSET_USE_H */
