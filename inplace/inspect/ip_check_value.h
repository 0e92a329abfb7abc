/*-------------------------------------------------------------------------
 * ip_check_value.h
 *	  inplace_check(): large values.
 *-------------------------------------------------------------------------
 */
#ifndef IP_CHECK_VALUE_H
#define IP_CHECK_VALUE_H

#include "ip_check_page.h"

/*
 * Check the values that the active snapshot sees in the table, and that each
 * row that it sees in the TOAST table belongs to one of them.
 */
extern void ip_check_values(IpCheck *c);

#endif							/* IP_CHECK_VALUE_H */
