/*-------------------------------------------------------------------------
 * ip_lockset_vacuum.h
 *	  VACUUM's part: frees lock pages whose sets are dead, repairs the list.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOCKSET_VACUUM_H
#define IP_LOCKSET_VACUUM_H

#include "ip_space.h"

/*
 * Free lock pages whose sets are dead, and repair their list.  pages: the undo
 * pages and lock pages that VACUUM has met, of which nundo are undo pages, as
 * far as the rings know.  No lock is held.
 */
extern void ip_lockset_vacuum(Relation rel, const BlockNumber *pages,
							  BlockNumber npages, BlockNumber nundo,
							  IpFreeBlocks *lowest);

#endif							/* IP_LOCKSET_VACUUM_H */
