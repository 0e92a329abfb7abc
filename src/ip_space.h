/*-------------------------------------------------------------------------
 * ip_space.h
 *	  Metapage, extension of the relation, and pages with free space.
 *-------------------------------------------------------------------------
 */
#ifndef IP_SPACE_H
#define IP_SPACE_H

#include "access/heapam.h"
#include "access/hio.h"

#include "ip_page.h"

/* What the free space map knows about a page that may become any kind of page. */
#define IP_FREE_PAGE_SPACE	(BLCKSZ - SizeOfPageHeaderData)

/* Tables of fewer blocks are small. */
#define IP_SMALL_TABLE		64

/* The slot of undo records that a backend uses at first. */
static inline uint16
ip_own_slot(void)
{
	return CompatMyProcNo % IP_UNDO_SLOTS;
}

/* In rd_amcache: gone with every relcache invalidation. */
typedef struct IpRelCache
{
	uint16		undo_slot;		/* the ring that this backend writes to */
	BlockNumber undo_current;	/* its current page, if it still is */
	uint32		undo_free;		/* free bytes in it, when last seen */
	BlockNumber undo_examined;	/* current page when the oldest one was cleaned */
	OffsetNumber undo_count;	/* records on the current page when last looked at */
	BlockNumber undo_clean;		/* that oldest page: no row depends on it ... */
	IpXid		undo_clean_xid; /* ... as long as this is its newest xid */
	BlockNumber undo_bad;		/* a page that cannot be cleaned, because of damage ... */
	IpXid		undo_bad_xid;	/* ... with this newest xid */
	uint32		undo_largest;	/* the most that records have needed at once */
	LocalTransactionId undo_looked; /* who has looked at the current page; invalid: look again */
} IpRelCache;

/*
 * Open an inplace table for somebody who looks at its pages.  Lock: takes and keeps
 * AccessShareLock.  Errors: wrong_object_type, feature_not_supported.
 */
extern Relation ip_open_to_inspect(Oid relid);

/*
 * The relation's cache.  On first use makes the metapage if there is none,
 * and checks its format version.  Errors: feature_not_supported for a version
 * that this library does not know, data_corrupted.
 */
extern IpRelCache *ip_rel_cache(Relation rel);

/* Check the metapage before reading; nothing to do for an empty relation. */
extern void ip_check_meta(Relation rel);

/*
 * ReadBuffer for a block number that comes from a page.  Errors: data_corrupted,
 * also if the relation has no such block.
 */
extern Buffer ip_read_buffer(Relation rel, BlockNumber block);

/* Extend rel by n pages, returned pinned, exclusively locked and all zeros. */
extern void ip_extend(Relation rel, Buffer *buffers, int n);

/*
 * Bytes to be left free on a page when rows are inserted.  In small tables every
 * row is likely to be updated, so its version block gets room.
 */
static inline Size
ip_space_reserve(BlockNumber block, Page page)
{
	return block < IP_SMALL_TABLE ?
		(PageGetMaxOffsetNumber(page) + 1) * IP_VERSION_BLOCK_SZ : 0;
}

/* Free bytes for new rows: what the free space map shall know. */
static inline Size
ip_space_free(BlockNumber block, Page page)
{
	Size		free = ip_page_free(page);
	Size		reserve = ip_space_reserve(block, page);

	return free > reserve ? free - reserve : 0;
}

/*
 * A data page with at least size free bytes (item pointer included) and a free
 * offset, locked exclusively.  *init: the page has to be initialised.  With
 * conditional no lock is waited for, so that the caller may hold one on the
 * buffer "other"; that one is never returned.
 */
extern Buffer ip_space_find(Relation rel, Size size, int options, BulkInsertState bistate,
							bool conditional, Buffer other, bool *init);

/*
 * A page that may be made into any kind of page, locked exclusively, or
 * InvalidBuffer if none is known, or (_try_) that one is not.  They wait for no
 * lock.
 */
extern Buffer ip_space_find_free(Relation rel);
extern Buffer ip_space_try_free(Relation rel, BlockNumber block);

/* The lowest free blocks that VACUUM has seen, in order. */
typedef struct IpFreeBlocks
{
	int			n;
	BlockNumber blocks[IP_UNDO_SLOTS];
} IpFreeBlocks;

extern void ip_note_free_block(IpFreeBlocks *lowest, BlockNumber block);

/* Does the relation have this block?  Cheap unless it is near the end. */
extern bool ip_block_exists(Relation rel, BlockNumber block);

#endif							/* IP_SPACE_H */
