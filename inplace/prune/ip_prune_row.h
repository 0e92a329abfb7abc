/*-------------------------------------------------------------------------
 * ip_prune_row.h
 *	  What a prune of a page does with each of its rows.
 *
 *	  Each function works on the page that p is about, which is locked exclusively, and puts operations that ip_prune.c applies.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PRUNE_ROW_H
#define IP_PRUNE_ROW_H

#include "ip_change.h"
#include "ip_home.h"
#include "ip_version.h"

typedef enum IpPruneAction
{
	PRUNE_KEEP,
	PRUNE_DAMAGED,
	PRUNE_FAR,					/* aborted, but by too many changes */
	PRUNE_DEAD,
	PRUNE_RESTORE,				/* aborted changes are rolled back */
	PRUNE_FREEZE				/* all see the row's newest change */
} IpPruneAction;

/* A prune of one page, which is locked. */
typedef struct IpPrune
{
	Relation	rel;
	BlockNumber block;
	Page		page;
	IpVersion	row;			/* that is looked at */
	bool		thorough;
	bool		soft;			/* damage is no error, ... */
	bool		damaged;		/* ... but told here; nothing is pruned then */
	IpXid		horizon;		/* what precedes it is removable */
	IpXid		kept_from;		/* see ip_xid_kept_from */
	Buffer		map;			/* the visibility map's page, if the page may
								 * become all-visible; or invalid */
	bool		quiets;			/* see ip_prune_page */
	IpChange	change;
	ByteWriter *w;
	bool		changed;
	int			nrows;			/* rows that are changed */
	int			nfrozen;		/* of these */
	IpFrozen	frozen[IP_MAX_ROWS_PER_PAGE];
	IpXid		killer;			/* that deleted the last row that goes */
	XLogRecPtr	unflushed;		/* where the deletions of rows that go are in
								 * the WAL, or invalid: on disk (I16) */
	IpXid		oldest;			/* of the xids that stay */
	bool		waits;			/* does something stay only until it ends, or
								 * all see it? */
	int			nfar;			/* rows whose aborted changes are too many */
	OffsetNumber far[IP_MAX_ROWS_PER_PAGE];
	IpItemList	list;			/* of a whole page: what to look at */
	bool		changer_is_over;	/* the page's, before rows are looked at */
	int			nchanged;		/* rows that stay changed by it */
	IpHomes		homes;
} IpPrune;

/* A horizon of VACUUM's, taken at its start, counts beside the current one. */
static inline bool
ip_prune_is_removable(IpPrune *p, IpXid xid)
{
	return xid < p->horizon || ip_xid_removable(p->rel, xid);
}

/* May a row that xid has made stop to name it? */
static inline bool
ip_prune_may_forget(IpPrune *p, IpXid xid)
{
	return xid < p->kept_from && ip_prune_is_removable(p, xid);
}

/*
 * Begin a prune of the buffer's page, of some of its rows or all of them.
 * horizon: what precedes it is removable, beside what is so now.  Lock: the
 * buffer exclusively.
 */
extern void ip_prune_begin(IpPrune *p, Relation rel, Buffer buffer, bool thorough, IpXid horizon);

/* A row whose undo does not matter, as all see that it is deleted, or that it was inserted: put the operation.  Else false.  Any off. */
extern bool ip_prune_row_at_once(IpPrune *p, OffsetNumber off);

/* Put the operation for the row whose newest version v stands on, if there is anything to do. */
extern IpPruneAction ip_prune_version(IpPrune *p, IpVersion *v);

/*
 * The length of the body of v's version when all see the row: no longer version
 * will be put back, so trailing zeros are dropped.  Damage is noted as
 * ip_version_damaged does.
 */
extern int	ip_prune_frozen_length(IpVersion *v);

#endif							/* IP_PRUNE_ROW_H */
