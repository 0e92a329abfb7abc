/*-------------------------------------------------------------------------
 * ip_dead.h
 *	  What a dead item says of the deletion that made it one.
 *
 * An index scan that finds a dead item marks the index entry that led there,
 * without WAL.  So once the index page is on disk, a crash must not undo the
 * deletion (I16).  The data page cannot reach disk before the commit does,
 * because the record of the prune follows the commit; the index page can.  So
 * an item that becomes dead while the deletion is not flushed (without
 * synchronous_commit) names the WAL position that must be flushed first.  It
 * does so in its length, which a dead item has no other use for: units of 8
 * kB, modulo IP_DEAD_UNITS, plus 1; 0 if there is nothing to wait for.  Redo
 * leaves 0: WAL that is replayed is on disk.
 *
 * The position is before the page's LSN.  After more than IP_DEAD_UNITS units
 * of WAL the item may seem to name a later position.  Index entries are then
 * not marked for a while, which is safe.
 *-------------------------------------------------------------------------
 */
#ifndef IP_DEAD_H
#define IP_DEAD_H

#include "access/xlogdefs.h"
#include "storage/bufpage.h"

#define IP_DEAD_UNIT	8192
#define IP_DEAD_UNITS	0x7FFF

/*
 * The length that says that WAL up to lsn must be flushed; lsn may be invalid.
 */
static inline uint16
ip_dead_until(XLogRecPtr lsn)
{
	return lsn == InvalidXLogRecPtr ? 0 :
		(lsn + IP_DEAD_UNIT - 1) / IP_DEAD_UNIT % IP_DEAD_UNITS + 1;
}

/*
 * The WAL position, named by a dead item, up to which WAL must be flushed, or
 * a later position that exists.  Invalid if that WAL has been on disk for
 * long.  The page's changes are WAL-logged.
 */
static inline XLogRecPtr
ip_dead_lsn(const ItemIdData *lp, XLogRecPtr page_lsn)
{
	uint64		newest = (page_lsn + IP_DEAD_UNIT - 1) / IP_DEAD_UNIT;
	uint64		age = (newest % IP_DEAD_UNITS + IP_DEAD_UNITS -
					   (lp->lp_len - 1)) % IP_DEAD_UNITS;

	Assert(lp->lp_len > 0);
	return age > newest ? InvalidXLogRecPtr :
		Min(page_lsn, (newest - age) * IP_DEAD_UNIT);
}

#endif							/* IP_DEAD_H */
