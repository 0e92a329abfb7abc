/*-------------------------------------------------------------------------
 * ip_skip.h
 *	  Skip lists in long version chains: which undo records become part of one.
 *-------------------------------------------------------------------------
 */
#ifndef IP_SKIP_H
#define IP_SKIP_H

#include "ip_version.h"

/*
 * inplace.debug_skip_lists, for tests: without it, no record becomes part of
 * one.
 */
extern bool ip_skip_enabled;

/*
 * Returns whether the record of an update, by xid and cid, of the row on whose
 * newest version v stands, to a body of newlen bytes, is to be part of the
 * chain's skip list; if so, fills in *skip.  Lock: as for v; undo pages for a
 * moment.
 */
extern bool ip_skip_make(IpVersion *v, TransactionId xid, CommandId cid,
						 uint32 newlen, IpUndoSkip *skip);

#endif							/* IP_SKIP_H */
