/*-------------------------------------------------------------------------
 * ip_lockset.h
 *	  The bytes of lock sets, on the metapage and on lock pages.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOCKSET_H
#define IP_LOCKSET_H

#include "nodes/lockoptions.h"

#include "bytes.h"
#include "ip_page.h"

typedef struct IpLocker
{
	IpXid		xid;
	LockTupleMode mode;
	bool		mine;			/* current transaction or a subtransaction of
								 * it */
} IpLocker;

/* What the live sets of a data page say about one of its rows. */
typedef struct IpLockers
{
	bool		any;			/* the page has a live set, for any row */
	int			n;
	IpLocker   *list;			/* palloc'd, or NULL */
} IpLockers;

/* Returns whether the page is a lock page or the metapage.  Any page. */
extern bool ip_lockset_is_page(Page page);

/* The greatest number of sets on a lock page or the metapage. */
extern int	ip_lockset_max(Page page);

/*
 * Returns what is wrong with the place where a lock page or the metapage has
 * its sets, or NULL.  If something is, the sets must not be used.
 */
extern const char *ip_lockset_place_problem(Page page);

/*
 * Returns what is wrong with the place of the sets or with the sets, or NULL.
 */
extern const char *ip_lockset_problem(Page page);

/* Apply IP_OP_LOCK; returns what is wrong, or NULL. */
extern const char *ip_lockset_apply(Page page, ByteReader *r);

#endif							/* IP_LOCKSET_H */
