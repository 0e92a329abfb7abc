/*-------------------------------------------------------------------------
 * ip_put.h
 *	  Operations that put a new row on a page.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PUT_H
#define IP_PUT_H

#include "ip_op.h"

/* Put the operation that makes a data page from nothing. */
extern void ip_put_init(ByteWriter *w);

/* The offset of the first new row on the page, which is about to be initialised or is a data page.  Lock: exclusive. */
extern OffsetNumber ip_put_offset(Buffer buffer, bool init);

/* How a new row names its inserter. */
typedef enum IpInserter
{
	IP_INSERTER_NONE,			/* it does not: the row is visible to all */
	IP_INSERTER_DEFAULT,		/* the page's default inserter */
	IP_INSERTER_OWN				/* a version block of its own */
} IpInserter;

/*
 * Put the operations that must come before a page's first new row of (xid, cid);
 * xid is invalid for rows that all shall see.  The rows need a version block if
 * the page has another default inserter.  (Only a prune clears that, because on a
 * standby it conflicts with snapshots that do not see its rows.)
 */
extern IpInserter ip_put_inserter(ByteWriter *w, Page page, bool init, TransactionId xid,
								  CommandId cid);

/* Put the operation that inserts a row; if other is valid, as a delta to that row of the page, which has the body from. */
extern void ip_put_row(ByteWriter *w, IpInserter inserter, OffsetNumber off,
					   const IpFormed *row, CommandId cid,
					   OffsetNumber other, const uint8 *from, uint32 fromlen);

#endif							/* IP_PUT_H */
