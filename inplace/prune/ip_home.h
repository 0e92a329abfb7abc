/*-------------------------------------------------------------------------
 * ip_home.h
 *	  Undo records at home: finding those of a page that are no longer needed.
 *-------------------------------------------------------------------------
 */
#ifndef IP_HOME_H
#define IP_HOME_H

#include "ip_undo.h"
#include "ip_xid.h"

/*
 * inplace.debug_undo_at_home, for tests: without it, undo records are in rings
 * only, and no page gets a default changer.
 */
extern bool ip_home_enabled;

typedef struct IpHomeRecord
{
	OffsetNumber off;
	OffsetNumber row;
	IpXidStatus status;			/* status when the records were noted */
	IpXid		xid;
	IpXid		prev_xid;
} IpHomeRecord;

typedef struct IpHomes
{
	int			n;
	IpHomeRecord records[IP_MAX_ROWS_PER_PAGE];
	bool		keep[IP_MAX_ROWS_PER_PAGE + 1]; /* rows that need theirs, even
												 * if aborted */
	bool		has_bytes[IP_MAX_ROWS_PER_PAGE + 1];	/* records with the
														 * bytes of a row that
														 * stays overlaid */
} IpHomes;

/*
 * Note a page's records, which are on the list, before its rows are examined:
 * a transaction that has ended then has ended for the rows too.  Damaged
 * records are skipped.  Lock: exclusive.
 */
extern void ip_home_note(IpHomes *homes, BlockNumber block, Page page,
						 const IpItemList *list);

/*
 * Note that a row of the block will have this state and pointer: if it is
 * overlaid, the record at home that has its bytes must stay.  The change may
 * have become visible to all since the row was examined, or it is a deletion
 * that is not flushed.
 */
extern void ip_home_keep_bytes(IpHomes *homes, BlockNumber block, uint8 state,
							   IpPtr ptr);

/*
 * Get the offsets, in order, of the records that are not needed, and return
 * their number.  These are records of changes that are visible to all, and of
 * aborted changes, which have been rolled back unless the row is in
 * homes->keep; but none in homes->has_bytes.  horizon: xids that precede it
 * are removable.  Raises *conflict to the xids that are visible to all, lowers
 * *oldest to those of records that stay.
 */
extern int	ip_home_useless(const IpHomes *homes, Relation rel, IpXid horizon,
							OffsetNumber *offs, IpXid *conflict, IpXid *oldest);

#endif							/* IP_HOME_H */
