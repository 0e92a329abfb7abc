/*-------------------------------------------------------------------------
 * page_change.h
 *	  Changes of pages that are lists of operations.
 *
 *	  A change has blocks, and each block has operations: bytes that the module
 *	  writes and reads.  They are built completely (which may fail and changes
 *	  nothing), then applied in a critical section, and logged as the blocks'
 *	  data.  Redo applies the same bytes by the same function, and keeps all
 *	  pages locked until all are changed.  What becomes of a block does not
 *	  depend on the order of blocks.
 *
 *	  Whoever applies the operations makes sure before that they fit: no
 *	  operation fails in the critical section.
 *-------------------------------------------------------------------------
 */
#ifndef PAGE_CHANGE_H
#define PAGE_CHANGE_H

#include "compat.h"

#include "access/xlogreader.h"
#include "lib/stringinfo.h"
#include "storage/buf.h"
#include "storage/bufpage.h"

#include "bytes.h"

#define PAGE_CHANGE_MAX_BLOCKS	31

typedef struct PageChangeBlock
{
	Buffer		buffer;
	bool		init;			/* the operations make the page from nothing */
	uint8	   *ops;
	uint32		len;
} PageChangeBlock;

typedef struct PageChange
{
	int			nblocks;
	PageChangeBlock blocks[PAGE_CHANGE_MAX_BLOCKS];
	ByteWriter	w;				/* the last block's operations */
} PageChange;

/*
 * Applies a block's operations.  Returns NULL, or why they do not fit the page,
 * which is undefined then.  arg is the caller's of page_change_redo.
 */
typedef const char *(*PageChangeApply) (Page page, BlockNumber block,
										const uint8 *ops, uint32 len,
										void *arg);

/* Describes them. */
typedef void (*PageChangeDesc) (StringInfo buf, const uint8 *ops, uint32 len);

/* Begin to build a change; its operations go to space. */
extern void page_change_begin(PageChange *c, uint8 *space, uint32 size);

/*
 * Begin the operations of another block, which is none of the change's yet, and
 * is locked until the change has been applied; returns where to put them.
 * Error: those before are too long.
 */
extern ByteWriter *page_change_block(PageChange *c, Buffer buffer, bool init);

/* All operations have been put.  Error: they are too long. */
extern void page_change_end(PageChange *c);

/*
 * Register block i and its operations with the WAL record.  flags: REGBUF_*,
 * beside STANDARD and WILL_INIT.
 */
extern void page_change_register(const PageChange *c, int i, uint8 flags);

/*
 * Redo block id of the record.  Returns its buffer, locked, or InvalidBuffer.
 * cleanup: wait until no other backend has it pinned.  is_hint (may be NULL):
 * operations that leave the page's LSN alone.  PANIC: the page does not fit.
 */
extern Buffer page_change_redo(XLogReaderState *record, int id, bool cleanup,
							   PageChangeApply apply, void *arg,
							   bool (*is_hint) (const uint8 *ops, uint32 len));

/* Describe the operations of the record's blocks, the first behind sep. */
extern void page_change_desc(StringInfo buf, XLogReaderState *record,
							 const char *sep, PageChangeDesc desc);

#ifdef USE_ASSERT_CHECKING
/*
 * Returns whether to check the pages of a change, which takes much longer than
 * the change: of a backend's first changes of a kind, and of one in 16.
 * *changes counts them.
 */
static inline bool
page_change_is_checked(uint64 *changes, uint64 first)
{
	++*changes;
	return *changes < first || *changes % 16 == 0;
}
#endif

#endif							/* PAGE_CHANGE_H */
