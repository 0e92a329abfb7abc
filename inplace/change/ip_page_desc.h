/*-------------------------------------------------------------------------
 * ip_page_desc.h
 *	  Text descriptions of page operations.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PAGE_DESC_H
#define IP_PAGE_DESC_H

#include "lib/stringinfo.h"

#include "ip_op.h"

/*
 * Describe one operation, and advance r behind it; a short name for its kind.
 */
extern IpOp ip_page_desc_next(StringInfo buf, ByteReader *r);
extern const char *ip_page_desc_name(IpOp op);

/* Describe a block's operations. */
extern void ip_page_desc(StringInfo buf, const uint8 *ops, uint32 len);

#endif							/* IP_PAGE_DESC_H */
