/*-------------------------------------------------------------------------
 * ip_page_apply_row.h
 *	  Applying the operations that put, change, roll back and freeze rows.
 *
 *	  Each function reads its operation's arguments, and returns NULL or what
 *	  did not fit: see ip_page_apply.h.
 *-------------------------------------------------------------------------
 */
#ifndef IP_PAGE_APPLY_ROW_H
#define IP_PAGE_APPLY_ROW_H

#include "ip_op.h"

/* IP_OP_ROW: one row, which may make its undo record at home. */
extern const char *ip_page_apply_row(Page page, ByteReader *r,
									 const IpOpContext *ctx);

/*
 * IP_OP_ROWS, IP_OP_FINAL_ROWS: new rows with this state.  If "rows" is not
 * NULL, it has them.
 */
extern const char *ip_page_apply_rows(Page page, ByteReader *r, uint8 state,
									  const IpFormed *rows);

/* IP_OP_RESTORE: roll back the rows' last changes. */
extern const char *ip_page_apply_restore(Page page, ByteReader *r,
										 const IpOpContext *ctx);

/* IP_OP_FREEZE: freeze rows whose newest versions are visible to all. */
extern const char *ip_page_apply_freeze(Page page, BlockNumber block,
										ByteReader *r);

#endif							/* IP_PAGE_APPLY_ROW_H */
