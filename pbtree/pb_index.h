/*-------------------------------------------------------------------------
 * pb_index.h
 *	  A backend's description of an index; reading and locking of its pages.
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

/*
 * A copy of the description in the relation cache (rd_amcache), which an
 * invalidation may free.
 */
typedef struct PbIndex
{
	int			natts;
	int			nkeys;
	int			map_len;
	int			fixed;			/* length of each key without a map, or 0 if
								 * it varies */
	bool		bytes;			/* keys compare as bytes */
	bool		equalimage;
	BlockNumber root;			/* may be out of date, and then the leftmost
								 * page of its level */
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
	bool		deduplicate_items;	/* btree's option, so that definitions of
									 * its indexes work */
} PbOptions;

#define PB_MIN_FILLFACTOR		10
#define PB_DEFAULT_FILLFACTOR	90

static inline int
pb_index_fillfactor(Relation rel)
{
	return rel->rd_options ?
		((PbOptions *) rel->rd_options)->fillfactor : PB_DEFAULT_FILLFACTOR;
}

/*
 * True if this backend has locked the page for PB_READ or PB_WRITE.  A page of
 * a temporary index belongs to this backend.
 */
static inline bool
pb_index_is_locked(Buffer buffer, int lock)
{
	return BufferIsLocal(buffer) ||
		compat_buffer_is_locked(buffer, lock == PB_WRITE);
}

/*
 * Fill in the metapage of a new index.  It reads catalogs, so no page may be
 * locked.
 */
extern void pb_index_new_meta(Relation rel, PbMeta *meta);

/*
 * Get a palloc'd copy of the index's description.  It may read the metapage,
 * which must not be locked.
 */
extern PbIndex *pb_index_get(Relation rel);

/*
 * Get the root and its level, or PB_NONE.  They may be out of date; then the
 * root is the leftmost page of its level, or was deleted.
 */
extern BlockNumber pb_index_root(Relation rel, PbIndex *index, int *level);

/* Remember the rightmost leaf, for insertions of ascending keys; a guess. */
extern void pb_index_set_last(Relation rel, PbIndex *index, BlockNumber last);

/* Make the next pb_index_root read the root from the metapage. */
extern void pb_index_forget_root(Relation rel, PbIndex *index);

/*
 * Read the metapage, lock it as requested, and copy its contents.  Error: it
 * is damaged, or of a newer format.
 */
extern Buffer pb_index_read_meta(Relation rel, int lock, PbMeta *meta);

/*
 * Read a page, lock it as requested, and check its header and special space.
 * Error: the link leads to no page, or to one that the backend has locked.
 */
extern Buffer pb_index_read(Relation rel, BlockNumber block, int lock);

/*
 * Add a zeroed page at the end of the file.  Lock: write.  It takes the
 * extension lock in between.
 */
extern Buffer pb_index_extend(Relation rel);

/*
 * Check header and special space.  Error: they are damaged.  Lock: read.
 * Slots and items may be damaged all the same.
 */
extern void pb_index_check_page(Relation rel, Buffer buffer);

/*
 * Raise the error for a damaged index.  problem is a whole sentence.  slot is
 * negative if it is about the page.  It must not be called in a critical
 * section.
 */
pg_noreturn extern void pb_index_corrupt(Relation rel, BlockNumber block,
										 int slot, const char *problem);

#endif							/* PB_INDEX_H */
