/*-------------------------------------------------------------------------
 * ip_undo_rec.h
 *	  Undo records: the one writer and the one reader of their bytes.
 *
 *	  ip_format.h draws them.  A record is written in two parts: what its change's WAL
 *	  record has (ip_undo_rec_put), and the start that redo derives from that.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UNDO_REC_H
#define IP_UNDO_REC_H

#include "access/xact.h"

#include "ip_op.h"

/*
 * A skip list for long chains.  Some of a chain's update records have pointers to earlier ones of that kind, and a delta that has the whole
 * body before the change: so a reader can go there without what is between.  index says how many such records are below.
 * near leads to the next one, far to that with the index whose lowest set bit is cleared (W. Pugh: Skip lists, CACM 33/6, 1990; the
 * indexes are P. Fenwick's, 1994).  Where a chain lacks one, the indexes begin anew.
 */
typedef struct IpUndoSkip
{
	uint32		newlen;			/* length of the body that the delta is to be
								 * applied to */
	uint32		index;
	int			n;				/* pointers: near; and far, if it is another */
	IpPtr		ptr[2];
	IpXid		xid[2];			/* of those changes */
} IpUndoSkip;

/*
 * An undo record.  Decoded, its pointers lead into the bytes that it was decoded from.
 * To be written, flags has KEYS, PARTITION and HDR if the record needs them; the others
 * are derived from what is set.
 */
typedef struct IpUndoRec
{
	uint8		kind;			/* IpUndoKind */
	uint8		flags;			/* IP_REC_* */
	IpXid		xid;
	ItemPointerData row;
	CommandId	cid;
	IpXid		prev_xid;		/* the version before; final, without
								 * IP_REC_PREV: visible to all */
	bool		prev_inserted;	/* that was inserted, and prev_ptr is a cid */
	IpPtr		prev_ptr;
	const uint8 *saved;			/* or NULL */
	uint16		hdr;			/* if IP_REC_HDR */
	ItemPointerData forward;	/* or invalid */
	const uint8 *delta;			/* UPDATE: makes the previous body of the
								 * newer one */
	uint32		deltalen;
	bool		has_skip;
	IpUndoSkip	skip;
} IpUndoRec;

/* A record names no xid that is older than the next one by more. */
#define IP_UNDO_MAX_AGE		((IpXid) 1 << 30)

/* Space that a record of which no more is known takes at most. */
#define IP_UNDO_SPACE(deltalen) (IP_REC_MAX_HEAD + (deltalen) + sizeof(ItemIdData))

/* Space that a record like this takes at most, whatever page it goes to and whatever was before; saved: with an overlaid row's bytes. */
extern uint32 ip_undo_rec_space(const IpUndoRec *rec, bool saved);

/*
 * Put the operation that appends the record, made by xid, to undo_block; rec->xid and rec->row
 * are not looked at.
 */
extern void ip_undo_rec_put(ByteWriter *w, BlockNumber undo_block, TransactionId xid,
							OffsetNumber row_off, const IpUndoRec *rec);

/*
 * Put the bytes of a record at home: of the row at row_off of block, made by xid.
 */
extern void ip_undo_rec_put_home(ByteWriter *w, BlockNumber block, TransactionId xid,
								 OffsetNumber row_off, const IpUndoRec *rec);

/* Write the start of a record of the undo page with that special space, of at most IP_REC_MAX_START bytes; its length. */
extern uint32 ip_undo_rec_start(uint8 *start, const IpSpecial *special, uint8 kind, uint8 flags,
								TransactionId xid, BlockNumber row_block, OffsetNumber row_off);

/*
 * Decode the bytes of an undo record of the page, an undo page or (a record at home) a data page; what is
 * wrong with them, or NULL.  The bytes may be a copy.
 */
extern const char *ip_undo_rec_decode(Page page, BlockNumber block, const uint8 *item, uint32 len,
									  IpUndoRec *rec);

/*
 * The same, of a record of an update that has saved the row's first bytes, but only up to these: has_skip is false, and there is
 * nothing of what follows, where damage is not seen.  False: it is another one, or damaged up to there.
 */
extern bool ip_undo_rec_decode_saved(Page page, BlockNumber block, const uint8 *item, uint32 len, IpUndoRec *rec);

#endif							/* IP_UNDO_REC_H */
