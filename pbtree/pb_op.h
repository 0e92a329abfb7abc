/*-------------------------------------------------------------------------
 * pb_op.h
 *	  Operations on pages: what WAL records are made of.
 *
 * A change of a page is a list of operations.  pb_op_* append one to a list;
 * pb_op_apply carries a list out, when the change is made and when it is redone.
 *-------------------------------------------------------------------------
 */
#ifndef PB_OP_H
#define PB_OP_H

#include "lib/stringinfo.h"

#include "bytes.h"
#include "pb_page.h"

typedef enum PbOp
{
	PB_OP_IMAGE = 1,			/* a new page: what is in use of it */
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

extern void pb_op_image(ByteWriter *w, Page page);
extern void pb_op_insert(ByteWriter *w, int slot, int flags, const uint8 *item, int len);
extern void pb_op_delete(ByteWriter *w, const uint16 *slots, int n);
extern void pb_op_rebuild(ByteWriter *w, const PbShape *shape);
extern void pb_op_add_tid(ByteWriter *w, int slot, int keep, const ItemPointerData *tid);
extern void pb_op_tids(ByteWriter *w, int slot, int keep, const ItemPointerData *tids, int n);
extern void pb_op_prev(ByteWriter *w, BlockNumber prev);
extern void pb_op_next(ByteWriter *w, BlockNumber next, uint16 cycle);
extern void pb_op_flags(ByteWriter *w, uint16 clear, uint16 set);
extern void pb_op_downlink(ByteWriter *w, int slot, BlockNumber block);
extern void pb_op_free(ByteWriter *w, uint64 safe_xid);
extern void pb_op_meta(ByteWriter *w, const PbMeta *meta);

extern bool pb_op_apply(Page page, const uint8 *ops, uint32 len);
#ifdef USE_ASSERT_CHECKING
extern bool pb_op_is_simple(const uint8 *ops, uint32 len);
extern bool pb_op_cannot_fail(const uint8 *ops, uint32 len);
#endif
extern void pb_op_desc(StringInfo buf, const uint8 *ops, uint32 len);

#endif							/* PB_OP_H */
