/*-------------------------------------------------------------------------
 * pb_index.h
 *	  What a backend knows about an index; its pages, read and locked.
 *-------------------------------------------------------------------------
 */
#ifndef PB_INDEX_H
#define PB_INDEX_H

#include "compat.h"

#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "pb_codec.h"
#include "pb_page.h"

#define PB_READ		BUFFER_LOCK_SHARE
#define PB_WRITE	BUFFER_LOCK_EXCLUSIVE

/* A copy of what is in the relation cache (rd_amcache), which an invalidation may take away. */
typedef struct PbIndex
{
	int			natts;
	int			nkeys;
	int			map_len;
	int			fixed;			/* length of each key without a map, or 0:
								 * they differ */
	bool		bytes;			/* keys compare as bytes */
	bool		equalimage;
	BlockNumber root;			/* may be out of date: then the leftmost page
								 * of its level */
	int			level;
	BlockNumber last;			/* the rightmost leaf, if keys have been
								 * appended to it, else PB_NONE; a guess */
	PbColumn	col[FLEXIBLE_ARRAY_MEMBER];
} PbIndex;

/* reloptions */
typedef struct PbOptions
{
	int32		vl_len_;
	int			fillfactor;
	bool		deduplicate_items;	/* btree's, so that its definitions can be
									 * used */
} PbOptions;

#define PB_MIN_FILLFACTOR		10
#define PB_DEFAULT_FILLFACTOR	90

static inline int
pb_index_fillfactor(Relation rel)
{
	return rel->rd_options ? ((PbOptions *) rel->rd_options)->fillfactor : PB_DEFAULT_FILLFACTOR;
}

/* Has this backend locked the page, as PB_READ or PB_WRITE asks?  A page of a temporary index is nobody else's. */
static inline bool
pb_index_is_locked(Buffer buffer, int lock)
{
	return BufferIsLocal(buffer) || compat_buffer_is_locked(buffer, lock == PB_WRITE);
}

/*
 * What the metapage of a new index says.  It reads catalogs: no page may be
 * locked.
 */
extern void pb_index_new_meta(Relation rel, PbMeta *meta);

/*
 * A palloc'd copy of what is known of the index.  It may read the metapage, so
 * that may not be locked.
 */
extern PbIndex *pb_index_get(Relation rel);

/*
 * The root and its level, or PB_NONE.  They may be out of date; then the root
 * is the leftmost page of its level, or was deleted.
 */
extern BlockNumber pb_index_root(Relation rel, PbIndex *index, int *level);

/* Remember the rightmost leaf, for insertions of ascending keys; a guess. */
extern void pb_index_set_last(Relation rel, PbIndex *index, BlockNumber last);

/* Have the root read from the metapage by the next pb_index_root. */
extern void pb_index_forget_root(Relation rel, PbIndex *index);

/*
 * The metapage, locked as asked, and a copy of it.  Error: it is damaged, or
 * of a newer format.
 */
extern Buffer pb_index_read_meta(Relation rel, int lock, PbMeta *meta);

/*
 * A page, locked as asked, of which header and special space are right.
 * Error: the link leads to no such page, or to one that the backend has
 * locked.
 */
extern Buffer pb_index_read(Relation rel, BlockNumber block, int lock);

/*
 * A new zeroed page at the end of the file.  Lock: write.  It takes the
 * extension lock meanwhile.
 */
extern Buffer pb_index_extend(Relation rel);

/*
 * Error: header or special space are damaged.  Lock: read.  Slots and items
 * may still be.
 */
extern void pb_index_check_page(Relation rel, Buffer buffer);

/*
 * The error for a damaged index.  slot is negative if it is about the page.
 * It may not be called in a critical section.
 */
pg_noreturn extern void pb_index_corrupt(Relation rel, BlockNumber block, int slot,
										 const char *problem);

#endif							/* PB_INDEX_H */
