/*-------------------------------------------------------------------------
 * pb_op.h
 *	  Operations on pages, of which WAL records consist.
 *
 * A change of a page is a list of operations.  pb_op_* append one to a list;
 * pb_op_apply carries a list out, when the change is made and when it is
 * redone.
 *-------------------------------------------------------------------------
 */
#ifndef PB_OP_H
#define PB_OP_H

#include "lib/stringinfo.h"

#include "bytes.h"
#include "pb_page.h"

typedef enum PbOp
{
	PB_OP_IMAGE = 1,			/* a new page: its used parts */
	PB_OP_INSERT,				/* an item */
	PB_OP_DELETE,				/* slots */
	PB_OP_REBUILD,				/* in another shape */
	PB_OP_ADD_TID,				/* to an item */
	PB_OP_TIDS,					/* an item gets others */
	PB_OP_PREV,					/* left sibling */
	PB_OP_NEXT,					/* right sibling, cycle id */
	PB_OP_FLAGS,				/* clear some, set some */
	PB_OP_DOWNLINK,				/* an item gets another */
	PB_OP_FREE,					/* the page is deleted */
	PB_OP_META					/* the metapage's contents */
} PbOp;

/* Append the page's contents, which become those of a new page. */
extern void pb_op_image(ByteWriter *w, Page page);

/*
 * Append an item's insertion in front of a slot.  flags: PB_SLOT_MAP,
 * PB_SLOT_POSTING.
 */
extern void pb_op_insert(ByteWriter *w, int slot, int flags, const uint8 *item,
						 int len);

/* Append the deletion of slots, in ascending order. */
extern void pb_op_delete(ByteWriter *w, const uint16 *slots, int n);

/*
 * Append a rebuild of the page with another shape.  Fences that are NULL stay.
 */
extern void pb_op_rebuild(ByteWriter *w, const PbShape *shape);

/*
 * Append the addition of a TID to an item, whose TIDs are behind "keep" bytes.
 */
extern void pb_op_add_tid(ByteWriter *w, int slot, int keep,
						  const ItemPointerData *tid);

/*
 * Append the replacement of an item's contents behind "keep" bytes by these
 * TIDs, in order.
 */
extern void pb_op_tids(ByteWriter *w, int slot, int keep,
					   const ItemPointerData *tids, int n);

/* Append a new left link. */
extern void pb_op_prev(ByteWriter *w, BlockNumber prev);

/* Append a new right link, and VACUUM's cycle id. */
extern void pb_op_next(ByteWriter *w, BlockNumber next, uint16 cycle);

/*
 * Append that flags PB_PAGE_INCOMPLETE or PB_PAGE_GARBAGE are cleared, then
 * set.
 */
extern void pb_op_flags(ByteWriter *w, uint16 clear, uint16 set);

/* Append another downlink for an inner page's item. */
extern void pb_op_downlink(ByteWriter *w, int slot, BlockNumber block);

/* Append the deletion of the page; safe_xid: see I11. */
extern void pb_op_free(ByteWriter *w, uint64 safe_xid);

/* Append the metapage's new contents. */
extern void pb_op_meta(ByteWriter *w, const PbMeta *meta);

/*
 * Carry out operations, in redo, too.  Lock: write, or the page is a copy.
 * Returns false if the page does not match them; then its contents are
 * undefined.
 */
extern bool pb_op_apply(Page page, const uint8 *ops, uint32 len);
#ifdef USE_ASSERT_CHECKING
/* True if it is one operation that changes nothing if it fails. */
extern bool pb_op_is_simple(const uint8 *ops, uint32 len);

/* True if the operations succeed on any page. */
extern bool pb_op_cannot_fail(const uint8 *ops, uint32 len);
#endif
/* Describe operations, for pg_waldump. */
extern void pb_op_desc(StringInfo buf, const uint8 *ops, uint32 len);

#endif							/* PB_OP_H */
