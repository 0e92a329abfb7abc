/*-------------------------------------------------------------------------
 * ip_vacuum.h
 *	  VACUUM of inplace tables.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_H
#define IP_VACUUM_H

#include "commands/vacuum.h"

extern void ip_relation_vacuum(Relation rel, VacuumParams *params,
							   BufferAccessStrategy bstrategy);

#endif							/* IP_VACUUM_H */
