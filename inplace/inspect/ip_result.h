/*-------------------------------------------------------------------------
 * ip_result.h
 *	  Result rows of the SQL functions that show pages.
 *-------------------------------------------------------------------------
 */
#ifndef IP_RESULT_H
#define IP_RESULT_H

#include "funcapi.h"

#include "ip_format.h"

#define IP_RESULT_COLUMNS		16

/* A result row, filled in from left to right. */
typedef struct IpResult
{
	Datum		values[IP_RESULT_COLUMNS];
	bool		nulls[IP_RESULT_COLUMNS];
	int			n;
} IpResult;

typedef struct IpFlagName
{
	uint32		flag;
	const char *name;
} IpFlagName;

/* Names of a row lock's modes. */
extern const char *const ip_result_mode_names[];

/* Returns whether the caller may see all rows of the table. */
extern bool ip_result_may_show(Relation rel);

/*
 * Returns the block number, if the relation has it.  Errors:
 * invalid_parameter_value.
 */
extern BlockNumber ip_result_check_block(Relation rel, int64 block);

/* Put the next column, which is NULL unless "is" is true. */
extern void ip_result_put_if(IpResult *r, bool is, Datum value);

extern void ip_result_put(IpResult *r, Datum value);

extern void ip_result_put_int(IpResult *r, int32 value);

extern void ip_result_put_text(IpResult *r, const char *text);

/* Put a transaction id with its epoch, or NULL if it means "visible to all". */
extern void ip_result_put_xid(IpResult *r, IpXid xid);

extern void ip_result_put_tid_if(IpResult *r, bool is, BlockNumber block,
								 OffsetNumber off);

/* Put an undo pointer as two columns: a pointer, or a command id. */
extern void ip_result_put_ptr_if(IpResult *r, bool is_undo, bool is_cid,
								 IpPtr ptr);

/* Emit the row.  All remaining columns are NULL. */
extern void ip_result_emit(ReturnSetInfo *rsinfo, IpResult *r);

extern void ip_result_put_flags(IpResult *r, const IpFlagName *names, int n,
								uint32 flags);

#endif							/* IP_RESULT_H */
