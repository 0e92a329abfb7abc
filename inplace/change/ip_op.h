/*-------------------------------------------------------------------------
 * ip_op.h
 *	  Page operations.
 *
 *	  A change of a page is a list of page operations (IpOp).  The forward path
 *	  builds the list (which may fail), then applies it in a critical section and
 *	  puts it into the WAL record as the block's data; redo applies the same list
 *	  with the same function (ip_page_apply.h).
 *-------------------------------------------------------------------------
 */
#ifndef IP_OP_H
#define IP_OP_H

#include "bytes.h"
#include "ip_row.h"

typedef enum IpOp
{
	IP_OP_INIT_META = 1,
	IP_OP_INIT_DATA,			/* xid_base */
	IP_OP_INIT_UNDO,			/* newest_xid, slot, flags, next */
	IP_OP_DEFAULT,				/* set the default inserter: record's xid, cid */
	IP_OP_CLEAR_DEFAULT,		/* the default inserter's rows are visible to
								 * all */
	IP_OP_BASE,					/* xid_base */
	IP_OP_ROW,					/* put or change a row */
	IP_OP_DEAD,					/* a row's item becomes dead */
	IP_OP_UNDO,					/* append an undo record */
	IP_OP_INIT_LOCK,
	IP_OP_RING,					/* next, flags of an undo page or a lock page */
	IP_OP_SLOT,					/* slot, entry, npages of the metapage */
	IP_OP_ROWS,					/* put new rows of the default inserter */
	IP_OP_FINAL_ROWS,			/* put new rows that all see */
	IP_OP_XID,					/* what follows has this xid, not the record's */
	IP_OP_UNUSED,				/* dead items may be used again */
	IP_OP_INIT_FREE,			/* a page that nobody needs */
	IP_OP_CHANGER,				/* set the default changer: record's xid,
								 * change_cid */
	IP_OP_CLEAR_CHANGER,		/* no row needs it */
	IP_OP_CHANGED,				/* the default changer changes a row */
	IP_OP_DROP,					/* nobody needs these undo records at home */
	IP_OP_RESTORE,				/* put back rows' last change */
	IP_OP_KEYS,					/* IP_KEYS_* of a data page; it is quiet only
								 * if all see all of its rows now */
	IP_OP_UNDO_PAGES,			/* metapage: these blocks are undo or lock
								 * pages, or one is no more */
	IP_OP_MOVED,				/* the default changer moves a row */
	IP_OP_FREEZE,				/* rows lose their version blocks: all see
								 * what they are */
	IP_OP_DECOY,				/* block 0's decoy is put anew */
	IP_OP_LOCK,					/* lock page: add a row to a set */
	IP_OP_LOCK_PAGE,			/* where a data page's lock sets begin */
	IP_OP_LOST,					/* lock page: sets of transactions before this
								 * one have been lost */
	IP_OP_VISIBLE				/* the page is all-visible, if all see all of
								 * its rows now; of a page of the visibility
								 * map: reference 0 is */
} IpOp;

/* Where IP_OP_ROW's delta starts from */
typedef enum IpRowBase
{
	IP_BASE_NONE = 0,			/* nowhere: a new row, whole */
	IP_BASE_ROW,				/* the row as it is */
	IP_BASE_OVERLAID,			/* the same, with its overlaid bytes, in the
								 * operation or in its undo record */
	IP_BASE_OTHER				/* a new row, from another row of the page */
} IpRowBase;

/* IP_OP_ROW: an IpRowBase, and which of the version block's parts are the record's own */
#define IP_OP_BASE_MASK	0x03
#define IP_OP_OWN_XID		0x04
#define IP_OP_OWN_UNDO		0x08
#define IP_OP_HOME			0x10	/* the undo record is at home, and made
									 * here */
#define IP_OP_SAVED_AT_HOME	0x20	/* IP_BASE_OVERLAID: the row's undo
									 * record, at home, has the overlaid bytes */

/* IP_OP_HOME: what of the record is not derived from the row before and after */
#define IP_HOME_DELETE		0x01	/* a deletion, else an update */
#define IP_HOME_CID			0x02	/* cid follows, else it is 0 */
#define IP_HOME_KEYS		0x04
#define IP_HOME_PARTITION	0x08
#define IP_HOME_FORWARD		0x10	/* block, offset follow */
#define IP_HOME_PREV_ROW	0x20	/* the version before is that of the row */
#define IP_HOME_LEN			0x40	/* the length follows that the old body is
									 * cut to */

/* IP_OP_ROWS, for each row: hdr follows, else it is that of the row before; a delta to that one, else length and bytes */
#define IP_ROWS_HDR			0x01
#define IP_ROWS_DELTA		0x02

/* IP_OP_RESTORE, for each row: what its undo record says is read at home, or follows */
#define IP_RESTORE_HOME		0x01
#define IP_RESTORE_HDR		0x02
#define IP_RESTORE_SAVED	0x04
#define IP_RESTORE_DELTA	0x08
#define IP_RESTORE_DEFAULT	0x10	/* the row becomes the default inserter's,
									 * else visible to all */
#define IP_RESTORE_LEN		0x20	/* the length follows that the body is cut
									 * to */

/*
 * IP_OP_FREEZE, for each row: the step from the row before, four times, and
 * what follows: the length that its body is cut to; the overlaid bytes, which
 * else are in the row's undo record, at home.
 */
#define IP_FREEZE_LEN		0x01
#define IP_FREEZE_SAVED		0x02
#define IP_FREEZE_BITS		2

/* A row that is frozen. */
typedef struct IpFrozen
{
	OffsetNumber off;
	uint16		bodylen;		/* that the body is cut to; 0: it is not */
	bool		has_saved;
	uint8		saved[IP_VERSION_BLOCK_SZ]; /* overlaid bytes that are not at
											 * home */
} IpFrozen;

/* A row that is put back, as it will be. */
typedef struct IpRestored
{
	OffsetNumber off;
	uint16		hdr;
	uint8		state;
	const uint8 *body;
	uint32		bodylen;
} IpRestored;

/* The body that an IP_OP_ROW, whose arguments are from start to end, makes. */
typedef struct IpRowMade
{
	const uint8 *start;
	const uint8 *end;
	const uint8 *body;			/* not on the page */
	uint32		bodylen;
} IpRowMade;

typedef struct IpHomeOp
{
	uint8		flags;			/* IP_HOME_*, which say what of the rest
								 * counts */
	CommandId	cid;
	ItemPointerData forward;
	uint32		oldlen;
} IpHomeOp;

/* Arguments of IP_OP_ROW. */
typedef struct IpRowOp
{
	OffsetNumber off;			/* maximum + 1: a new item */
	uint16		hdr;
	uint8		state;
	bool		own_xid;		/* version block's xid is the record's */
	TransactionId xid;			/* else this one */
	OffsetNumber undo_off;		/* version block points to this record of the
								 * undo page */
	IpPtr		ptr;			/* or, if 0, here */
	OffsetNumber home_off;		/* or to this one, made here, at home */
	IpHomeOp	home;
	IpRowBase	base;
	OffsetNumber other;			/* IP_BASE_OTHER */
	const uint8 *saved;			/* IP_BASE_OVERLAID */
	bool		saved_at_home;	/* the row's undo record has these bytes: redo
								 * reads them there */
	const uint8 *from;			/* base's body, whole */
	uint32		fromlen;
	const uint8 *body;			/* new body, whole */
	uint32		bodylen;
	const uint8 *back;			/* a delta from it to the base's, or NULL */
	uint32		backlen;
} IpRowOp;

extern void ip_op_init_data(ByteWriter *w, uint64 xid_base);
extern void ip_op_init_undo(ByteWriter *w, uint64 newest_xid, uint16 slot, uint16 flags,
							BlockNumber next);
extern void ip_op_simple(ByteWriter *w, IpOp op);
extern void ip_op_init_lock(ByteWriter *w, uint32 number);
extern void ip_op_default(ByteWriter *w, CommandId cid);
extern void ip_op_base(ByteWriter *w, uint64 xid_base);
extern IpRowMade ip_op_row(ByteWriter *w, const IpRowOp *op);
extern void ip_op_xid(ByteWriter *w, TransactionId xid);

/*
 * Many new rows at consecutive offsets from off on, made by the page's default
 * inserter, or (final) visible to all.  Each is given as it is or as a delta to the one before (NULL: there
 * is none), whichever is shorter.  _begin returns what _end needs.
 */
extern uint8 *ip_op_rows_begin(ByteWriter *w, OffsetNumber off, bool final);
extern void ip_op_rows_add(ByteWriter *w, uint16 hdr, const uint8 *body, uint32 bodylen,
						   uint16 prev_hdr, const uint8 *prev, uint32 prevlen);
extern void ip_op_rows_end(ByteWriter *w, uint8 *begin, uint16 count);
extern void ip_op_dead(ByteWriter *w, OffsetNumber off);
extern void ip_op_drop(ByteWriter *w, const OffsetNumber *offs, int n);

/* Rows that all see and that have a version block, in order. */
extern void ip_op_freeze(ByteWriter *w, const IpFrozen *rows, int n);
extern void ip_op_keys(ByteWriter *w, uint8 keys);
extern void ip_op_changer(ByteWriter *w, CommandId change_cid);

/*
 * Rows are put back, in the order of their offsets.  _add: how (IP_RESTORE_*) says which of the rest follow; prev_off is
 * the row's before, or 0.  _begin returns what _end needs.
 */
extern uint8 *ip_op_restore_begin(ByteWriter *w);
extern void ip_op_restore_add(ByteWriter *w, uint8 how, OffsetNumber prev_off, OffsetNumber off, uint16 hdr,
							  const uint8 *saved, const uint8 *delta, uint32 deltalen, uint32 bodylen);
extern void ip_op_restore_end(ByteWriter *w, uint8 *begin);

extern void ip_op_changed(ByteWriter *w, OffsetNumber off);

/* list: where the page's list of moves is, or will be. */
extern void ip_op_moved(ByteWriter *w, OffsetNumber off, OffsetNumber list, const ItemPointerData *forward, bool keys);
extern void ip_op_unused(ByteWriter *w, const OffsetNumber *offs, int n);
extern void ip_op_undo(ByteWriter *w, OffsetNumber row_off, uint8 kind, uint8 flags,
					   const uint8 *tail, uint32 taillen);
extern void ip_op_ring(ByteWriter *w, BlockNumber next, uint16 flags);
extern void ip_op_undo_pages(ByteWriter *w, BlockNumber first, uint32 n);

/* set: its number; block, mode, and xid are given if it begins anew (fresh). */
extern void ip_op_lock(ByteWriter *w, int set, OffsetNumber off, bool fresh, BlockNumber block, uint8 mode, IpXid xid);

/* 0: nowhere. */
extern void ip_op_lock_page(ByteWriter *w, BlockNumber block);
extern void ip_op_lost(ByteWriter *w, IpXid xid);
extern void ip_op_slot(ByteWriter *w, uint16 slot, BlockNumber entry, uint32 npages);

/* ---- reading operations with rows --------------------------------------------------- */

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

/* ---- operations that put a new row on a page ---------------------------------------- */

/* Put the operation that makes a data page from nothing. */
extern void ip_op_put_init(ByteWriter *w);

/* The offset of the first new row on the page, which is about to be initialised or is a data page.  Lock: exclusive. */
extern OffsetNumber ip_op_put_offset(Buffer buffer, bool init);

/* How a new row names its inserter. */
typedef enum IpInserter
{
	IP_INSERTER_NONE,			/* it does not: the row is visible to all */
	IP_INSERTER_DEFAULT,		/* the page's default inserter */
	IP_INSERTER_OWN				/* a version block of its own */
} IpInserter;

/*
 * Put the operations that must come before a page's first new row of (xid, cid);
 * xid is invalid for rows that all shall see.  The rows need a version block if
 * the page has another default inserter.  (Only a prune clears that, because on a
 * standby it conflicts with snapshots that do not see its rows.)
 */
extern IpInserter ip_op_put_inserter(ByteWriter *w, Page page, bool init, TransactionId xid,
									 CommandId cid);

/* Put the operation that inserts a row; if other is valid, as a delta to that row of the page, which has the body from. */
extern void ip_op_put_row(ByteWriter *w, IpInserter inserter, OffsetNumber off,
						  const IpFormed *row, CommandId cid,
						  OffsetNumber other, const uint8 *from, uint32 fromlen);

#endif							/* IP_OP_H */
