/*-------------------------------------------------------------------------
 * ip_undo_rec.h
 *	  Undo records: the one writer and the one reader of their bytes.
 *
 *	  ip_format.h draws them.  A record is written in two parts: the part that
 *	  its change's WAL record has (ip_undo_rec_put), and the start, which redo
 *	  derives.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UNDO_REC_H
#define IP_UNDO_REC_H

#include "access/xact.h"

#include "ip_op.h"

/*
 * A skip list for long chains.  Some of a chain's update records have pointers
 * to earlier such records, and a delta that contains the whole body before the
 * change.  So a reader can jump to these without reading what is between.
 * index is the number of such records below.  Of the pointers, near leads to
 * the next such record, far to that whose index is this one with the lowest
 * set bit cleared (W.  Pugh: Skip lists, CACM 33/6, 1990; the indexes are P.
 * Fenwick's, 1994).  Where a chain lacks such a record, the indexes start
 * again.
 */
typedef struct IpUndoSkip
{
	uint32		newlen;			/* length of the body that the delta is to be
								 * applied to */
	uint32		index;
	int			n;				/* number of pointers: near; and far, if it
								 * differs */
	IpPtr		ptr[2];
	IpXid		xid[2];			/* xids of those changes */
} IpUndoSkip;

/*
 * An undo record.  If it was decoded, its pointers lead into the bytes that it
 * was decoded from.  To write a record, set KEYS, PARTITION and HDR in flags
 * if it needs them; other flags are derived from the members.
 */
typedef struct IpUndoRec
{
	uint8		kind;			/* IpUndoKind */
	uint8		flags;			/* IP_REC_* */
	IpXid		xid;
	ItemPointerData row;
	CommandId	cid;
	IpXid		prev_xid;		/* the version before; frozen, without
								 * IP_REC_PREV: visible to all */
	bool		prev_inserted;	/* the previous version was inserted, and
								 * prev_ptr is a cid */
	IpPtr		prev_ptr;
	const uint8 *saved;			/* or NULL */
	uint16		hdr;			/* if IP_REC_HDR */
	ItemPointerData forward;	/* or invalid */
	const uint8 *delta;			/* UPDATE: makes the previous body from the
								 * newer one */
	uint32		deltalen;
	bool		has_skip;
	IpUndoSkip	skip;
} IpUndoRec;

/* A record names no xid that is older than the next xid by more than this. */
#define IP_UNDO_MAX_AGE		((IpXid) 1 << 30)

/* The most space that any record with a delta of this length takes. */
#define IP_UNDO_SPACE(deltalen) \
	(IP_REC_MAX_HEAD + (deltalen) + sizeof(ItemIdData))

/*
 * The most space that this record takes, on any page and with any previous
 * version.  saved: with an overlaid row's bytes.
 */
extern uint32 ip_undo_rec_space(const IpUndoRec *rec, bool saved);

/*
 * Put the operation that appends the record, made by xid, to undo_block;
 * rec->xid and rec->row are ignored.
 */
extern void ip_undo_rec_put(ByteWriter *w, BlockNumber undo_block,
							TransactionId xid, OffsetNumber row_off,
							const IpUndoRec *rec);

/*
 * Put the bytes of a record at home, of the row at row_off of block, made by
 * xid.
 */
extern void ip_undo_rec_put_home(ByteWriter *w, BlockNumber block,
								 TransactionId xid, OffsetNumber row_off,
								 const IpUndoRec *rec);

/*
 * Write the start of a record, at most IP_REC_MAX_START bytes, for the undo
 * page with that special space.  Returns its length.
 */
extern uint32 ip_undo_rec_start(uint8 *start, const IpSpecial *special,
								uint8 kind, uint8 flags, TransactionId xid,
								BlockNumber row_block, OffsetNumber row_off);

/*
 * Decode the bytes of an undo record of the page, which is an undo page or,
 * for a record at home, a data page.  Returns what is wrong with them, or
 * NULL.  The bytes may be a copy.
 */
extern const char *ip_undo_rec_decode(Page page, BlockNumber block,
									  const uint8 *item, uint32 len,
									  IpUndoRec *rec);

/*
 * Decode the record of an update that has saved the row's first bytes, but
 * only up to these bytes.  has_skip is false, later members are not set, and
 * damage behind the saved bytes is not seen.  False if it is another kind of
 * record, or damaged up to there.
 */
extern bool ip_undo_rec_decode_saved(Page page, BlockNumber block,
									 const uint8 *item, uint32 len,
									 IpUndoRec *rec);

#endif							/* IP_UNDO_REC_H */
