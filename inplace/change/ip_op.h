/*-------------------------------------------------------------------------
 * ip_op.h
 *	  Page operations.
 *
 *	  A change of a page is a list of page operations (IpOp).  The forward path
 *	  builds the list (which may fail), then applies it in a critical section
 *	  and puts it into the WAL record as the block's data; redo applies the
 *	  same list with the same function (ip_page_apply.h).
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
	IP_OP_DEFAULT,				/* set the default inserter: record's xid, and
								 * cid */
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
	IP_OP_FROZEN_ROWS,			/* put new rows that are visible to all */
	IP_OP_XID,					/* later operations have this xid, not the
								 * record's */
	IP_OP_UNUSED,				/* dead items may be used again */
	IP_OP_INIT_FREE,			/* make a page that is not needed free */
	IP_OP_CHANGER,				/* set the default changer: record's xid,
								 * change_cid */
	IP_OP_CLEAR_CHANGER,		/* clear the default changer: no row needs it */
	IP_OP_CHANGED,				/* the default changer changes a row */
	IP_OP_DROP,					/* remove undo records at home that are not
								 * needed */
	IP_OP_RESTORE,				/* roll back rows' last change */
	IP_OP_KEYS,					/* IP_KEYS_* of a data page; it becomes quiet
								 * only if all of its rows are now visible to
								 * all */
	IP_OP_UNDO_PAGES,			/* metapage: these blocks are undo or lock
								 * pages, or one is no longer */
	IP_OP_MOVED,				/* the default changer moves a row */
	IP_OP_FREEZE,				/* freeze rows: they lose their version
								 * blocks, as they are visible to all */
	IP_OP_DECOY,				/* write block 0's decoy again */
	IP_OP_LOCK,					/* lock page: add a row to a set */
	IP_OP_LOCK_PAGE,			/* where a data page's lock sets begin */
	IP_OP_LOST,					/* lock page: sets of transactions before this
								 * one have been lost */
	IP_OP_VISIBLE				/* the page is all-visible if all of its rows
								 * are now visible to all; on a page of the
								 * visibility map: reference 0 is all-visible */
} IpOp;

/* Where IP_OP_ROW's delta starts from */
typedef enum IpRowBase
{
	IP_BASE_NONE = 0,			/* none: a whole new row */
	IP_BASE_ROW,				/* the row's current body */
	IP_BASE_OVERLAID,			/* the row's current body; its overlaid bytes
								 * are in the operation or in its undo record */
	IP_BASE_OTHER				/* another row of the page, for a new row */
} IpRowBase;

/*
 * IP_OP_ROW: an IpRowBase, and which parts of the version block come from the
 * WAL record
 */
#define IP_OP_BASE_MASK	0x03
#define IP_OP_OWN_XID		0x04
#define IP_OP_OWN_UNDO		0x08
#define IP_OP_HOME			0x10	/* the operation makes the undo record, at
									 * home */
#define IP_OP_SAVED_AT_HOME	0x20	/* IP_BASE_OVERLAID: the overlaid bytes
									 * are in the row's undo record, at home */

/*
 * IP_OP_HOME: parts of the undo record that cannot be derived from the row
 * before and after the change
 */
#define IP_HOME_DELETE		0x01	/* a deletion, else an update */
#define IP_HOME_CID			0x02	/* cid follows, else it is 0 */
#define IP_HOME_KEYS		0x04
#define IP_HOME_PARTITION	0x08
#define IP_HOME_FORWARD		0x10	/* block, offset follow */
#define IP_HOME_PREV_ROW	0x20	/* the version before is that of the row */
#define IP_HOME_LEN			0x40	/* the length to which the old body is cut
									 * follows */

/*
 * IP_OP_ROWS, for each row: hdr follows, else it is that of the previous row;
 * a delta to the previous row, else length and bytes
 */
#define IP_ROWS_HDR			0x01
#define IP_ROWS_DELTA		0x02

/*
 * IP_OP_RESTORE, for each row: the contents of its undo record are read at
 * home, or follow
 */
#define IP_RESTORE_HOME		0x01
#define IP_RESTORE_HDR		0x02
#define IP_RESTORE_SAVED	0x04
#define IP_RESTORE_DELTA	0x08
#define IP_RESTORE_DEFAULT	0x10	/* the row becomes one of the default
									 * inserter, else visible to all */
#define IP_RESTORE_LEN		0x20	/* the length to which the body is cut
									 * follows */

/*
 * IP_OP_FREEZE, for each row: four times the step from the previous row, plus
 * flags for what follows: the length to which its body is cut; the overlaid
 * bytes, which otherwise are in the row's undo record, at home.
 */
#define IP_FREEZE_LEN		0x01
#define IP_FREEZE_SAVED		0x02
#define IP_FREEZE_BITS		2

/* A row that is frozen. */
typedef struct IpFrozen
{
	OffsetNumber off;
	uint16		bodylen;		/* new length if the body is cut, else 0 */
	bool		has_saved;
	uint8		saved[IP_VERSION_BLOCK_SZ]; /* overlaid bytes that are not at
											 * home */
} IpFrozen;

/* A row that is rolled back, as it will be. */
typedef struct IpRestored
{
	OffsetNumber off;
	uint16		hdr;
	uint8		state;
	const uint8 *body;
	uint32		bodylen;
} IpRestored;

/* The body that an IP_OP_ROW makes, whose arguments are from start to end. */
typedef struct IpRowMade
{
	const uint8 *start;
	const uint8 *end;
	const uint8 *body;			/* not on the page */
	uint32		bodylen;
} IpRowMade;

typedef struct IpHomeOp
{
	uint8		flags;			/* IP_HOME_*: which of the other members are
								 * used */
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
	bool		own_xid;		/* version block's xid is the record's, else
								 * xid */
	TransactionId xid;			/* unless own_xid */
	OffsetNumber undo_off;		/* version block points to this record of the
								 * undo page */
	IpPtr		ptr;			/* ... or, if undo_off is 0, here */
	OffsetNumber home_off;		/* ... or to this record, made here, at home */
	IpHomeOp	home;
	IpRowBase	base;
	OffsetNumber other;			/* IP_BASE_OTHER */
	const uint8 *saved;			/* IP_BASE_OVERLAID */
	bool		saved_at_home;	/* the row's undo record at home has these
								 * bytes, and redo reads them there */
	const uint8 *from;			/* base's whole body */
	uint32		fromlen;
	const uint8 *body;			/* whole new body */
	uint32		bodylen;
	const uint8 *back;			/* a delta from body to the base's, or NULL */
	uint32		backlen;
} IpRowOp;

extern void ip_op_init_data(ByteWriter *w, uint64 xid_base);
extern void ip_op_init_undo(ByteWriter *w, uint64 newest_xid, uint16 slot,
							uint16 flags, BlockNumber next);
extern void ip_op_simple(ByteWriter *w, IpOp op);
extern void ip_op_init_lock(ByteWriter *w, uint32 number);
extern void ip_op_default(ByteWriter *w, CommandId cid);
extern void ip_op_base(ByteWriter *w, uint64 xid_base);
extern IpRowMade ip_op_row(ByteWriter *w, const IpRowOp *op);
extern void ip_op_xid(ByteWriter *w, TransactionId xid);

/*
 * Many new rows at consecutive offsets from off on, made by the page's default
 * inserter or, with "frozen", visible to all.  Each is written whole or as a
 * delta to the previous row (NULL: there is none), whichever is shorter.
 * _begin returns what _end needs.
 */
extern uint8 *ip_op_rows_begin(ByteWriter *w, OffsetNumber off, bool frozen);
extern void ip_op_rows_add(ByteWriter *w, uint16 hdr, const uint8 *body,
						   uint32 bodylen, uint16 prev_hdr, const uint8 *prev,
						   uint32 prevlen);
extern void ip_op_rows_end(ByteWriter *w, uint8 *begin, uint16 count);
extern void ip_op_dead(ByteWriter *w, OffsetNumber off);
extern void ip_op_drop(ByteWriter *w, const OffsetNumber *offs, int n);

/*
 * Freeze rows that are visible to all and have a version block; they are in
 * order.
 */
extern void ip_op_freeze(ByteWriter *w, const IpFrozen *rows, int n);
extern void ip_op_keys(ByteWriter *w, uint8 keys);
extern void ip_op_changer(ByteWriter *w, CommandId change_cid);

/*
 * Roll rows back, in the order of their offsets.  _add: "how" (IP_RESTORE_*)
 * says which of the following arguments are used; prev_off is the offset of
 * the previous row, or 0.  _begin returns what _end needs.
 */
extern uint8 *ip_op_restore_begin(ByteWriter *w);
extern void ip_op_restore_add(ByteWriter *w, uint8 how, OffsetNumber prev_off,
							  OffsetNumber off, uint16 hdr, const uint8 *saved,
							  const uint8 *delta, uint32 deltalen,
							  uint32 bodylen);
extern void ip_op_restore_end(ByteWriter *w, uint8 *begin);

extern void ip_op_changed(ByteWriter *w, OffsetNumber off);

/* Move a row.  list: where the page's list of moves is, or will be. */
extern void ip_op_moved(ByteWriter *w, OffsetNumber off, OffsetNumber list,
						const ItemPointerData *forward, bool keys);
extern void ip_op_unused(ByteWriter *w, const OffsetNumber *offs, int n);
extern void ip_op_undo(ByteWriter *w, OffsetNumber row_off, uint8 kind,
					   uint8 flags, const uint8 *tail, uint32 taillen);
extern void ip_op_ring(ByteWriter *w, BlockNumber next, uint16 flags);
extern void ip_op_undo_pages(ByteWriter *w, BlockNumber first, uint32 n);

/*
 * Add a row to a lock set.  set: its number; block, mode and xid are used if
 * the set is a new one (fresh).
 */
extern void ip_op_lock(ByteWriter *w, int set, OffsetNumber off, bool fresh,
					   BlockNumber block, uint8 mode, IpXid xid);

/* Set where a data page's lock sets begin; block 0: nowhere. */
extern void ip_op_lock_page(ByteWriter *w, BlockNumber block);
extern void ip_op_lost(ByteWriter *w, IpXid xid);
extern void ip_op_slot(ByteWriter *w, uint16 slot, BlockNumber entry,
					   uint32 npages);

/* ---- reading operations with rows ---------------------------------------- */

/*
 * What a record's operations share; redo takes the first three from the
 * record.
 */
typedef struct IpOpContext
{
	TransactionId xid;			/* record's xid, or invalid */
	BlockNumber data_block;		/* block of reference 0 */
	BlockNumber undo_block;		/* block of reference 1 */
	const IpFormed *rows;		/* if not NULL: the rows of the last
								 * operation, IP_OP_ROWS */
	const uint8 *home;			/* if not NULL: the undo record that
								 * IP_OP_HOME makes */
	uint32		homelen;
	const IpRestored *restored; /* if not NULL: the rows of IP_OP_RESTORE */
	int			nrestored;
	IpRowMade	made;			/* if start is not NULL: what one of the
								 * IP_OP_ROWs makes */
	uint16		dead_until;		/* what an item that becomes dead says, see
								 * ip_dead.h */
} IpOpContext;

/* Arguments of IP_OP_ROW before its delta. */
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

/* Read an IpRowHead; false if the operation is too short. */
extern bool ip_op_read_row(ByteReader *r, const IpOpContext *ctx, IpRowHead *h);

/* Two rows' bodies, because each row is a delta to the previous one. */
typedef struct IpRowBuffers
{
	uint8		body[2][BLCKSZ];
	uint32		len[2];
	int			last;			/* index of the last one */
} IpRowBuffers;

/*
 * Read the next row of IP_OP_ROWS into b, which has the previous one; false if
 * it cannot be read.
 */
extern bool ip_op_read_next(ByteReader *r, IpRowBuffers *b, uint16 *hdr);

/* State of a loop over the new rows that a block's operations put. */
typedef struct IpNewRows
{
	ByteReader	ops;
	uint32		left;			/* remaining rows of the current operation */
	IpRowBuffers buffers;
} IpNewRows;

extern void ip_op_new_rows_begin(IpNewRows *n, const uint8 *ops, uint32 len);

/*
 * Returns the body of the next row; NULL if there are no more rows, or the
 * operations are of another kind.
 */
extern const uint8 *ip_op_new_rows_next(IpNewRows *n, uint32 *len);

/* ---- operations that put a new row on a page ----------------------------- */

/* Put the operation that initialises a data page. */
extern void ip_op_put_init(ByteWriter *w);

/*
 * The offset of the first new row on the page, which is about to be
 * initialised or is a data page.  Lock: exclusive.
 */
extern OffsetNumber ip_op_put_offset(Buffer buffer, bool init);

/* How a new row names its inserter. */
typedef enum IpInserter
{
	IP_INSERTER_NONE,			/* none: the row is visible to all */
	IP_INSERTER_DEFAULT,		/* the page's default inserter */
	IP_INSERTER_OWN				/* a version block of its own */
} IpInserter;

/*
 * Put the operations that must come before a page's first new row of (xid,
 * cid); xid is invalid for rows that are to be visible to all.  The rows need
 * a version block if the page has another default inserter.  (Only a prune
 * clears that, because on a standby it conflicts with snapshots that do not
 * see its rows.)
 */
extern IpInserter ip_op_put_inserter(ByteWriter *w, Page page, bool init,
									 TransactionId xid, CommandId cid);

/*
 * Put the operation that inserts a row; if other is valid, as a delta to that
 * row of the page, which has the body from.
 */
extern void ip_op_put_row(ByteWriter *w, IpInserter inserter, OffsetNumber off,
						  const IpFormed *row, CommandId cid,
						  OffsetNumber other, const uint8 *from,
						  uint32 fromlen);

#endif							/* IP_OP_H */
