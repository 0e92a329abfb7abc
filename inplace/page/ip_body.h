/*-------------------------------------------------------------------------
 * ip_body.h
 *	  Row bodies: forming and deforming.
 *-------------------------------------------------------------------------
 */
#ifndef IP_BODY_H
#define IP_BODY_H

#include "executor/tuptable.h"
#include "ip_format.h"

/* Identity of one version of a row; system columns come from here. */
typedef struct IpVersionId
{
	TransactionId xmin;			/* made the version; FrozenTransactionId:
								 * visible to all */
	CommandId	cmin;
	TransactionId xmax;			/* deleted, updated or locked it; or invalid */
	CommandId	cmax;
	IpPtr		ptr;			/* undo pointer (or cid) of the version's own
								 * block */
} IpVersionId;

/* A row's hdr and body as they are to be stored. */
typedef struct IpFormed
{
	uint16		hdr;
	uint8	   *body;
	uint32		bodylen;
} IpFormed;

struct IpSlotOwner;

/*
 * Slot of an inplace table.  It holds a row body ("body" != NULL), or values
 * only, like a virtual slot (body == NULL and not empty).  The body is either
 * in the slot's own buffer or borrowed from a page copy of a scan, which the
 * scan must not overwrite while it is borrowed: see IpSlotOwner.
 */
typedef struct IpSlot
{
	TupleTableSlot base;
	const uint8 *body;			/* starts with the NULL bitmap, if any */
	uint32		bodylen;
	uint16		hdr;			/* IP_HDR_* */
	bool		has_id;			/* id is valid */
	bool		formed;			/* the body was formed from the slot's values:
								 * no padding */
	uint32		off;			/* deforming continues here */
	IpVersionId id;
	struct IpSlotOwner *owner;	/* whose page copy body points into, or NULL */
	char	   *buf;			/* own buffer, in the slot's context */
	uint32		bufsize;
	char	   *scratch;		/* aligned copies of by-reference values */
	uint32		scratchsize;
	uint32		scratchused;
} IpSlot;

/*
 * Embedded in every struct that lends page copies; one slot borrows at a time.
 */
typedef struct IpSlotOwner
{
	IpSlot	   *borrower;
} IpSlotOwner;

/*
 * Size of a body for these values, and forming it.  Values that are expanded
 * objects are flattened; varlena values get short headers where their storage
 * allows; TOAST pointers are stored as they are.  A body is at least
 * IP_ROW_MIN_BODY bytes long.  The result may be longer than a page.
 */
extern uint32 ip_body_size(TupleDesc desc, const Datum *values,
						   const bool *isnull);
extern uint16 ip_body_form(TupleDesc desc, const Datum *values,
						   const bool *isnull, uint8 *body, uint32 size);

/*
 * Length that the values really take (a body may have zeros behind them).
 * Errors: data_corrupted if they reach beyond bodylen.
 */
extern uint32 ip_body_length(TupleDesc desc, uint16 hdr, const uint8 *body,
							 uint32 bodylen);

/*
 * Like ip_body_length, but returns -1 if the values are damaged or reach
 * beyond bodylen.  *column is then the first such column (0: the number of
 * columns, or the NULL bitmap, is wrong).
 */
extern int	ip_body_measure(TupleDesc desc, uint16 hdr, const uint8 *body,
							uint32 bodylen, int *column);

/*
 * True if there may be zeros behind the values.  Testing the last byte saves
 * measuring the values.
 */
static inline bool
ip_body_may_be_padded(const uint8 *body, uint32 bodylen)
{
	return bodylen > IP_ROW_MIN_BODY && body[bodylen - 1] == 0;
}

/*
 * Returns the values of the first natts columns.  "formed" says that the body
 * was formed from values and does not come from a page.  By-reference values
 * point into the body where their type allows, else into memory palloc'd in
 * the current context.
 */
extern void ip_body_deform(TupleDesc desc, uint16 hdr, const uint8 *body,
						   uint32 bodylen, int natts, bool formed,
						   Datum *values, bool *isnull);

/*
 * Size of the body's NULL bitmap.  The body of a row of "natts" columns starts
 * with one if IP_HDR_HASNULL is set; a set bit means "not NULL".
 */
#define IpBitmapSize(natts)		(((natts) + 7) / 8)

/*
 * Deform the slot's body up to column "natts", or up to its last stored column
 * if it has fewer.  Continues where the slot's last call ended.
 */
extern void ip_body_deform_slot(IpSlot *slot, int natts);

/*
 * Make *buffer hold at least "size" bytes; its contents are lost if it has to
 * grow.  Sizes are powers of two.
 */
extern void ip_body_reserve(MemoryContext context, char **buffer,
							uint32 *buffersize, uint32 size);

#endif							/* IP_BODY_H */
