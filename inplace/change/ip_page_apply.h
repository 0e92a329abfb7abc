/*-------------------------------------------------------------------------
 * ip_page_apply.h
 *	  Applying page operations: one function for changes and for redo.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PAGE_APPLY_H
#define IP_PAGE_APPLY_H

#include "ip_op.h"

/*
 * Apply a block's operations.  Returns NULL, or what did not fit.  The forward
 * path has made sure that everything fits; redo reports what did not.
 */
extern const char *ip_page_apply(Page page, BlockNumber block, const uint8 *ops,
								 uint32 len, IpOpContext *ctx);

#endif							/* IP_PAGE_APPLY_H */
