/*-------------------------------------------------------------------------
 * ip_dead.h
 *	  What a dead item says of the deletion that made it one.
 *
 * An index scan that meets a dead item marks the entry that led there, without WAL, so a crash must not take the deletion
 * back when the index page is on disk (I16).  The page itself cannot get there before the commit does, as the record of the prune
 * is behind it; the index page can.  So an item that becomes dead while the deletion is not flushed (without synchronous_commit)
 * names the WAL position to be flushed before, in its length, which a dead item has no other use for: units of 8 kB, modulo
 * IP_DEAD_UNITS, plus 1, and 0 if there is nothing to wait for.  Redo leaves 0: what is replayed is on disk.
 *
 * The position is before the page's LSN.  After more than IP_DEAD_UNITS units of WAL the item may seem to name a later one: an entry
 * is not marked for a while then, which is safe.
 *-------------------------------------------------------------------------
 */
#ifndef IP_DEAD_H
#define IP_DEAD_H

#include "access/xlogdefs.h"
#include "storage/bufpage.h"

#define IP_DEAD_UNIT	8192
#define IP_DEAD_UNITS	0x7FFF

/* What the item says if WAL up to lsn has to be flushed; lsn may be invalid. */
static inline uint16
ip_dead_until(XLogRecPtr lsn)
{
	return lsn == InvalidXLogRecPtr ? 0 : (lsn + IP_DEAD_UNIT - 1) / IP_DEAD_UNIT % IP_DEAD_UNITS + 1;
}

/*
 * Of an item that names one: the position up to which WAL has to be flushed, or a later one that exists.  Invalid: it is
 * long on disk.  The page is logged.
 */
static inline XLogRecPtr
ip_dead_lsn(const ItemIdData *lp, XLogRecPtr page_lsn)
{
	uint64		newest = (page_lsn + IP_DEAD_UNIT - 1) / IP_DEAD_UNIT;
	uint64		age = (newest % IP_DEAD_UNITS + IP_DEAD_UNITS - (lp->lp_len - 1)) % IP_DEAD_UNITS;

	Assert(lp->lp_len > 0);
	return age > newest ? InvalidXLogRecPtr : Min(page_lsn, (newest - age) * IP_DEAD_UNIT);
}

#endif							/* IP_DEAD_H */
