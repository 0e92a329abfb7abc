/*-------------------------------------------------------------------------
 * ip_lockset_vacuum.h
 *	  VACUUM's part: lock pages whose sets are dead are freed, the list is mended.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOCKSET_VACUUM_H
#define IP_LOCKSET_VACUUM_H

#include "ip_space.h"

/*
 * Free lock pages whose sets are dead, and mend what is damaged of their list.  pages: the undo pages and lock pages that VACUUM has met, of which
 * nundo are undo pages, as far as rings know.  No lock is held.
 */
extern void ip_lockset_vacuum(Relation rel, const BlockNumber *pages, BlockNumber npages, BlockNumber nundo,
							  IpFreeBlocks *lowest);

#endif							/* IP_LOCKSET_VACUUM_H */
