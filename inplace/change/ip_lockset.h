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

/* What the live sets of a data page say of one of its rows. */
typedef struct IpLockers
{
	bool		any;			/* the page has a live set, of whatever row */
	int			n;
	IpLocker   *list;			/* palloc'd, or NULL */
} IpLockers;

/* Is it a lock page or the metapage?  Any page. */
extern bool ip_lockset_is_page(Page page);

/* So many sets are on such a page at most. */
extern int	ip_lockset_max(Page page);

/* What is wrong with the place where such a page has its sets, or NULL: else it must not be used. */
extern const char *ip_lockset_place_problem(Page page);

/* The same, and with the sets by themselves. */
extern const char *ip_lockset_problem(Page page);

/* Apply IP_OP_LOCK; what is wrong, or NULL. */
extern const char *ip_lockset_apply(Page page, ByteReader *r);

#endif							/* IP_LOCKSET_H */
