/*-------------------------------------------------------------------------
 * ip_vacuum_report.h
 *	  The log line of VACUUM.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_REPORT_H
#define IP_VACUUM_REPORT_H

#include "ip_vacuum_index.h"

/* The resources that have been used since the beginning. */
typedef struct IpVacuumUsage IpVacuumUsage;

extern IpVacuumUsage *ip_vacuum_usage_begin(void);
extern void ip_vacuum_report(IpVacuum *v, IpVacuumUsage *usage,
							 double row_count);

#endif							/* IP_VACUUM_REPORT_H */
