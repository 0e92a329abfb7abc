/*-------------------------------------------------------------------------
 * ip_handler.h
 *	  The table access method's entry points.
 *-------------------------------------------------------------------------
 */
#ifndef IP_HANDLER_H
#define IP_HANDLER_H

#include "inplace_keys.h"

/* rd_tableam of every inplace table. */
extern const TableAmRoutine ip_handler_methods;

/* The functions that are published for index access methods. */
extern const InplaceKeysTable ip_handler_keys;

#endif							/* IP_HANDLER_H */
