/*-------------------------------------------------------------------------
 * ip_change.h
 *	  Atomic changes of up to IP_CHANGE_MAX_BLOCKS pages: apply and log.
 *
 * Use:
 *		ip_change_begin(&c, rel, info, xid);
 *		w = ip_change_block(&c, buffer, false);		-- reference 0
 *		ip_op_row(w, ...);
 *		w = ip_change_block(&c, undo_buffer, false);	-- reference 1
 *		ip_op_undo(w, ...);
 *		ip_change_apply(&c);
 *
 * Each block's operations are built completely before the next block begins.
 * Everything up to ip_change_apply may fail and changes nothing;
 * ip_change_apply cannot fail: the caller made sure that the operations fit
 * their pages.  All buffers must be locked exclusively from ip_change_block to
 * after ip_change_apply.
 *
 * A change unmarks the all-visible pages that it changes, unless it is of type
 * IP_XLOG_LOCK, or ip_change_visible finds that the page is all-visible after
 * the change.
 *-------------------------------------------------------------------------
 */
#ifndef IP_CHANGE_H
#define IP_CHANGE_H

#include "lib/stringinfo.h"

#include "ip_op.h"
#include "page_change.h"

/* Resource manager id; also in docs/internals/on-disk-format.md. */
#define IP_RMGR_ID				164

/* Record types: the purpose of a change.  Redo is the same for all types. */
#define IP_XLOG_INSERT			0x00
#define IP_XLOG_MULTI_INSERT	0x10
#define IP_XLOG_UPDATE			0x20
#define IP_XLOG_MOVE			0x30	/* update to another TID */
#define IP_XLOG_DELETE			0x40
#define IP_XLOG_LOCK			0x50
#define IP_XLOG_PRUNE			0x60
#define IP_XLOG_RESTORE			0x70	/* an aborted change is rolled back */
#define IP_XLOG_RING			0x80	/* undo ring advances or grows */
#define IP_XLOG_INIT			0x90	/* metapage */
#define IP_XLOG_SPECULATIVE		0xA0	/* speculative insertion confirmed or
										 * killed */

#define IP_XLOG_VACUUM			0xB0	/* dead items become unused */
#define IP_XLOG_SAVE_VALUE		0xC0	/* a row of a large value */
#define IP_XLOG_DELETE_VALUE	0xD0

/*
 * A record's block data are the page operations.  Its main data, if any, are a
 * byte of flags and the fields that the flags announce, in this order.  Redo
 * ignores the logical section.
 */
#define IP_MAIN_CONFLICT	0x01	/* xid with its epoch (8) */
#define IP_MAIN_VISIBLE		0x02	/* bits (2) */
#define IP_MAIN_LOGICAL		0x04	/* logical section: the rest */
#define IP_MAIN_NAMED		0x08	/* xid with epoch (8), behind the bits */

/* Flags and all fields of fixed size. */
#define IP_MAIN_MAX_HEAD	(1 + sizeof(IpXid) + sizeof(uint16) + sizeof(IpXid))

#define IP_CHANGE_MAX_BLOCKS	12

/* References 0 and 1 have fixed roles, see IpOpContext. */
#define IP_REF_DATA				0
#define IP_REF_UNDO				1

typedef struct IpChange
{
	Relation	rel;
	uint8		info;
	TransactionId xid;
	bool		replay;			/* xid is not our own: a table's history is
								 * rewritten */
	IpXid		conflict;		/* a standby cancels queries whose snapshots
								 * do not see this xid */
	IpXid		named;			/* newest xid that the operations name; its
								 * transaction may not have written WAL yet */
	StringInfo	logical;		/* section for logical decoding, or NULL: see
								 * ip_logical.h */
	bool		logical_rows;	/* the section needs the new rows of the first
								 * block's operations, too */
	/* results that the caller has in memory: see IpOpContext */
	const IpFormed *rows;		/* the rows of an IP_OP_ROWS, which is the
								 * last operation of the only block; or NULL */
	const uint8 *home;			/* the record that IP_OP_HOME makes, or NULL */
	uint32		homelen;
	const IpRestored *restored; /* the rows of IP_OP_RESTORE, or NULL */
	int			nrestored;
	IpRowMade	made;			/* the body that an IP_OP_ROW makes; start is
								 * NULL if it is not set */
	uint16		dead_until;		/* stored in the dead items: see ip_dead.h */
	Buffer		map;			/* with IP_OP_VISIBLE: the page of the
								 * visibility map; else invalid */
	PageChange	pages;
	Buffer		vm[IP_CHANGE_MAX_BLOCKS];	/* pages of the visibility map
											 * whose bits are cleared */
} IpChange;

/* xid: the record's transaction id, or invalid if no operation needs it. */
extern void ip_change_begin(IpChange *c, Relation rel, uint8 info,
							TransactionId xid);

/*
 * Begin the operations of another block.  Returns the writer for them.  init:
 * they make the page, whatever its contents are.
 */
extern ByteWriter *ip_change_block(IpChange *c, Buffer buffer, bool init);

/*
 * Add the operation that notes a loss: lock sets of any transaction that has
 * begun may have been on this page, or on later pages of the list, and may be
 * lost.
 */
extern void ip_change_lost(IpChange *c);

/*
 * The last step before ip_change_apply: if all rows of the page, the change's
 * only block, are visible to all after the change, mark it as all-visible, and
 * set its bits in the map.  map: its page of the map, pinned but not locked.
 */
extern void ip_change_visible(IpChange *c, Buffer map);

/*
 * Returns whether a block's operations only mark it as all-visible.  Then, as
 * with hint bits, no image of it is taken and its LSN does not change, unless
 * checksums or tools that copy only changed pages need these.
 */
extern bool ip_change_is_hint(const uint8 *ops, uint32 len);

/* Apply and log.  Afterwards the buffers are dirty and still locked. */
extern void ip_change_apply(IpChange *c);

#endif							/* IP_CHANGE_H */
