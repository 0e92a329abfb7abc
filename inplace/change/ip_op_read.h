/*-------------------------------------------------------------------------
 * ip_op_read.h
 *	  Reading page operations: what ip_op.h has put, of operations with rows.
 *-------------------------------------------------------------------------
 */
#ifndef IP_OP_READ_H
#define IP_OP_READ_H

#include "ip_op.h"

/* What the operations of a record share; the record itself knows it. */
typedef struct IpOpContext
{
	TransactionId xid;			/* record's xid, or invalid */
	BlockNumber data_block;		/* block of reference 0 */
	BlockNumber undo_block;		/* block of reference 1 */
	const IpFormed *rows;		/* if not NULL: what the last operation,
								 * IP_OP_ROWS, says */
	const uint8 *home;			/* if not NULL: the undo record that
								 * IP_OP_HOME makes */
	uint32		homelen;
	const IpRestored *restored; /* if not NULL: what IP_OP_RESTORE says */
	int			nrestored;
	IpRowMade	made;			/* if start is not NULL: what one of the
								 * IP_OP_ROWs makes */
	uint16		dead_until;		/* what an item says that becomes dead, see
								 * ip_dead.h */
} IpOpContext;

/* What IP_OP_ROW says before its delta. */
typedef struct IpRowHead
{
	OffsetNumber off;
	uint16		hdr;
	uint8		state;
	IpRowBase	base;
	TransactionId xid;
	IpPtr		ptr;
	const uint8 *saved;			/* IP_BASE_OVERLAID; NULL: in the row's undo
								 * record, at home */
	OffsetNumber other;
	bool		at_home;
	IpHomeOp	home;
	const uint8 *body;			/* IP_BASE_NONE, else a delta follows */
	uint32		bodylen;
} IpRowHead;

/* Read it; false: the operation is too short. */
extern bool ip_op_read_row(ByteReader *r, const IpOpContext *ctx, IpRowHead *h);

/* Two rows' bodies: each is a delta to the one before. */
typedef struct IpRowBuffers
{
	uint8		body[2][BLCKSZ];
	uint32		len[2];
	int			last;			/* index of the last one */
} IpRowBuffers;

/* The next row of IP_OP_ROWS into b, which has the one before; false: it cannot be read. */
extern bool ip_op_read_next(ByteReader *r, IpRowBuffers *b, uint16 *hdr);

/* Goes through the new rows that a block's operations put. */
typedef struct IpNewRows
{
	ByteReader	ops;
	uint32		left;			/* rows of the operation at hand */
	IpRowBuffers buffers;
} IpNewRows;

extern void ip_op_new_rows_begin(IpNewRows *n, const uint8 *ops, uint32 len);

/* Body of the next row; NULL if the operations have no more, or are of another kind. */
extern const uint8 *ip_op_new_rows_next(IpNewRows *n, uint32 *len);

#endif							/* IP_OP_READ_H */
