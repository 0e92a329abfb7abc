/*-------------------------------------------------------------------------
 * ip_check_undo.h
 *	  inplace_check(): undo records against their rows, and the rings.
 *-------------------------------------------------------------------------
 */
#ifndef IP_CHECK_UNDO_H
#define IP_CHECK_UNDO_H

#include "ip_check_page.h"

/* Check the records of an undo page. */
extern void ip_check_undo_records(IpCheck *c, BlockNumber block);

/* Check all rings.  Called after the check of all other pages. */
extern void ip_check_undo_rings(IpCheck *c);

#endif							/* IP_CHECK_UNDO_H */
