/*-------------------------------------------------------------------------
 * ip_page_desc.h
 *	  Page operations in words.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PAGE_DESC_H
#define IP_PAGE_DESC_H

#include "lib/stringinfo.h"

#include "ip_op.h"

/* One operation, which r is advanced behind; and a short name for its kind. */
extern IpOp ip_page_desc_next(StringInfo buf, ByteReader *r);
extern const char *ip_page_desc_name(IpOp op);

/* Describe a block's operations in words. */
extern void ip_page_desc(StringInfo buf, const uint8 *ops, uint32 len);

#endif							/* IP_PAGE_DESC_H */
