/*-------------------------------------------------------------------------
 * ip_default.h
 *	  A data page's default inserter and default changer.
 *
 *	  Their rows need no version block of their own.  A page has one of each at a time.
 *-------------------------------------------------------------------------
 */
#ifndef IP_DEFAULT_H
#define IP_DEFAULT_H

#include "ip_page.h"

/* IP_XID_NONE: there is none.  Lock: share, or a private copy of the page. */
extern IpXid ip_default_inserter(Page page);
extern IpXid ip_default_changer(Page page);

/*
 * Is what the default changer did undone, as it has aborted?  Then IP_OP_CLEAR_CHANGER may come.  The page is locked.
 */
extern bool ip_default_changer_is_over(Page page);

#endif							/* IP_DEFAULT_H */
