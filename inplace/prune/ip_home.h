/*-------------------------------------------------------------------------
 * ip_home.h
 *	  Undo records at home: which of a page's nobody needs any more.
 *-------------------------------------------------------------------------
 */
#ifndef IP_HOME_H
#define IP_HOME_H

#include "ip_undo.h"
#include "ip_xid.h"

/*
 * inplace.debug_undo_at_home, for tests: without it, undo records are in rings only, and no page gets a default
 * changer.
 */
extern bool ip_home_enabled;

typedef struct IpHomeRecord
{
	OffsetNumber off;
	OffsetNumber row;
	IpXidStatus status;			/* when the records were noted */
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
 * Note a page's records, which are on the list, before its rows are looked at: what has ended then has ended for the rows, too.
 * Damaged ones are left out.  Lock: exclusive.
 */
extern void ip_home_note(IpHomes *homes, BlockNumber block, Page page, const IpItemList *list);

/*
 * A row of the block will have this state, and this pointer: if it is overlaid, the record at home that has its bytes has to stay.  All may see
 * the change by now, when some did not as the row was looked at; or it is a deletion that is not flushed.
 */
extern void ip_home_keep_bytes(IpHomes *homes, BlockNumber block, uint8 state, IpPtr ptr);

/*
 * The offsets, in order, of the records that nobody needs: of changes that all see, and of aborted ones,
 * which have been put back unless the row is in homes->keep; none in homes->has_bytes.  horizon: what precedes it is removable.
 * Raises *conflict to the xids that all see, lowers *oldest to those of records that stay.
 */
extern int	ip_home_useless(const IpHomes *homes, Relation rel, IpXid horizon, OffsetNumber *offs,
							IpXid *conflict, IpXid *oldest);

#endif							/* IP_HOME_H */
