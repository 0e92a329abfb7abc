/*-------------------------------------------------------------------------
 * ip_vacuum.h
 *	  VACUUM of inplace tables.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_H
#define IP_VACUUM_H

#include "compat.h"

extern void ip_vacuum_relation(Relation rel, const VacuumParams *params,
							   BufferAccessStrategy bstrategy);

#endif							/* IP_VACUUM_H */
