/*-------------------------------------------------------------------------
 * ip_check_row.h
 *	  inplace_check(): rows against their undo.
 *-------------------------------------------------------------------------
 */
#ifndef IP_CHECK_ROW_H
#define IP_CHECK_ROW_H

#include "ip_check_page.h"

/* Check the rows of a data page that have version blocks. */
extern void ip_check_row_undo(IpCheck *c, BlockNumber block);

#endif							/* IP_CHECK_ROW_H */
