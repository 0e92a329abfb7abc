/*-------------------------------------------------------------------------
 * ip_prune_row.h
 *	  Pruning single rows of a page.
 *
 *	  Each function works on the page that p is about, which is locked
 *	  exclusively, and puts operations that ip_prune.c applies.
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
	PRUNE_FAR,					/* aborted, but too many changes */
	PRUNE_DEAD,
	PRUNE_RESTORE,				/* aborted changes are rolled back */
	PRUNE_FREEZE				/* the row's newest change is visible to all */
} IpPruneAction;

/* A prune of one page, which is locked. */
typedef struct IpPrune
{
	Relation	rel;
	BlockNumber block;
	Page		page;
	IpVersion	row;			/* version being examined */
	bool		thorough;
	bool		soft;			/* damage is not an error, ... */
	bool		damaged;		/* ... but noted here; then nothing is pruned */
	IpXid		horizon;		/* xids that precede it are removable */
	IpXid		kept_from;		/* see ip_xid_kept_from */
	Buffer		map;			/* the visibility map's page, if the page may
								 * become all-visible; or invalid */
	bool		quiets;			/* see ip_prune_page */
	IpChange	change;
	ByteWriter *w;
	bool		changed;
	int			nrows;			/* number of rows that are changed */
	int			nfrozen;		/* number of rows that are frozen */
	IpFrozen	frozen[IP_MAX_ROWS_PER_PAGE];
	int			ndead;			/* number of rows that become dead items */
	OffsetNumber dead[IP_MAX_ROWS_PER_PAGE];
	IpXid		killer;			/* xid that deleted the last row that is
								 * removed */
	XLogRecPtr	unflushed;		/* WAL position of the deletions of rows that
								 * are removed; invalid if on disk (I16) */
	IpXid		oldest;			/* oldest of the xids that stay */
	bool		waits;			/* something stays only until a transaction
								 * ends or its change is visible to all */
	int			nfar;			/* number of rows with too many aborted
								 * changes */
	OffsetNumber far[IP_MAX_ROWS_PER_PAGE];
	IpItemList	list;			/* prune of a whole page: items to examine */
	bool		changer_is_over;	/* status of the page's changer, before
									 * rows are examined */
	int			nchanged;		/* number of rows that stay changed by it */
	IpXid		inserter;		/* the page's default inserter, if it has
								 * aborted; ... */
	bool		keeps_inserter; /* ... its rows stay: decided once, as the
								 * horizon moves */
	IpHomes		homes;
} IpPrune;

/*
 * Returns whether xid is removable.  VACUUM's horizon, from its start, counts
 * as well as the current one.
 */
static inline bool
ip_prune_is_removable(IpPrune *p, IpXid xid)
{
	return xid < p->horizon || ip_xid_removable(p->rel, xid);
}

/* Returns whether a row that xid has made need no longer name it. */
static inline bool
ip_prune_may_forget(IpPrune *p, IpXid xid)
{
	return xid < p->kept_from && ip_prune_is_removable(p, xid);
}

/* Put the operation for a row that becomes a dead item. */
static inline void
ip_prune_put_dead(IpPrune *p, OffsetNumber off)
{
	ip_op_dead(p->w, off);
	p->dead[p->ndead++] = off;
}

/*
 * Returns whether rows that xid has inserted stay although it has aborted.  So
 * it is in a TOAST table until the horizon passes xid: a transaction may still
 * have the address of a value that a subtransaction has made.
 */
extern bool ip_prune_keeps_aborted(IpPrune *p, IpXid xid);

/*
 * Begin a prune of some or all rows of the buffer's page.  horizon: xids that
 * precede it are removable, as well as those that are so now.  Lock: the
 * buffer exclusively.
 */
extern void ip_prune_begin(IpPrune *p, Relation rel, Buffer buffer,
						   bool thorough, IpXid horizon);

/*
 * Put the operation for a row whose undo does not matter, because its
 * deletion, or its insertion as its only change, is visible to all.  False for
 * other rows.  Any off.
 */
extern bool ip_prune_row_at_once(IpPrune *p, OffsetNumber off);

/*
 * Put the operation for the row on whose newest version v stands, if there is
 * anything to do.
 */
extern IpPruneAction ip_prune_version(IpPrune *p, IpVersion *v);

/*
 * Returns the length of the body of v's version once the row is visible to
 * all: no longer version will become current again, so trailing zeros are
 * dropped.  Damage is reported as by ip_version_damaged.
 */
extern int	ip_prune_frozen_length(IpVersion *v);

#endif							/* IP_PRUNE_ROW_H */
