/*-------------------------------------------------------------------------
 * ip_handler.h
 *	  The table access method's entry points.
 *-------------------------------------------------------------------------
 */
#ifndef IP_HANDLER_H
#define IP_HANDLER_H

#include "access/tableam.h"

/* rd_tableam of every inplace table. */
extern const TableAmRoutine ip_methods;

#endif							/* IP_HANDLER_H */
