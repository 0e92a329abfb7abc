/*-------------------------------------------------------------------------
 * ip_vacuum_report.h
 *	  The log line of VACUUM.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_REPORT_H
#define IP_VACUUM_REPORT_H

#include "ip_vacuum_index.h"

/* What has been used since the beginning. */
typedef struct IpVacuumUsage IpVacuumUsage;

/* Can there be a report?  What is counted for it only need not be counted otherwise. */
extern bool ip_vacuum_may_report(const VacuumParams *params);

extern IpVacuumUsage *ip_vacuum_usage_begin(void);
extern void ip_vacuum_report(IpVacuum *v, IpVacuumUsage *usage, double row_count);

#endif							/* IP_VACUUM_REPORT_H */
