/*-------------------------------------------------------------------------
 * ip_rel.h
 *	  The relation: its metapage, reading its blocks, and its extension.
 *-------------------------------------------------------------------------
 */
#ifndef IP_REL_H
#define IP_REL_H

#include "compat.h"

#include "ip_page.h"

/* The slot of undo records that a backend uses at first. */
static inline uint16
ip_own_slot(void)
{
	return CompatMyProcNo % IP_UNDO_SLOTS;
}

/*
 * The buffers that the last blocks read were in.  A change comes back to its page, and a statement to the page of the row
 * before: then there is no need to look up the block, and to share the lock of a part of core's table.
 */
#define IP_RECENT_BUFFERS	16

typedef struct IpRecentBuffer
{
	BlockNumber block;
	Buffer		buffer;
	int			uses;			/* that are left: looking up the block makes
								 * core keep the page */
} IpRecentBuffer;

/* Indexes that follow updates in place of their columns, and those columns (see ip_keys.h). */
#define IP_MAX_FOLLOWING		16
#define IP_MAX_FOLLOWED_COLUMNS	32

typedef struct IpFollowed
{
	bool		known;
	uint16		nindexes;
	uint16		ncolumns;
	Oid			indexes[IP_MAX_FOLLOWING];
	AttrNumber	columns[IP_MAX_FOLLOWED_COLUMNS];
	uint16		column_indexes[IP_MAX_FOLLOWED_COLUMNS];	/* a bit for each index
															 * that has the column */
} IpFollowed;

/* In rd_amcache: gone with every relcache invalidation. */
typedef struct IpRelCache
{
	IpRecentBuffer recent[IP_RECENT_BUFFERS];
	bool		format_checked;
	uint16		undo_slot;		/* the ring that this backend writes to */
	bool		undo_alone;		/* another's only if its own is too long */
	uint16		undo_waits;		/* for the lock of another's ring */
	BlockNumber undo_current;	/* its current page, if it still is */
	uint32		undo_free;		/* free bytes in it, when last seen */
	BlockNumber undo_examined;	/* current page when the oldest one was
								 * cleaned */
	OffsetNumber undo_count;	/* records on the current page when last
								 * looked at */
	BlockNumber undo_clean;		/* that oldest page: no row depends on it ... */
	IpXid		undo_clean_xid; /* ... as long as this is its newest xid */
	BlockNumber undo_bad;		/* a page that cannot be cleaned, because of
								 * damage ... */
	IpXid		undo_bad_xid;	/* ... with this newest xid */
	uint32		undo_largest;	/* the most that records have needed at once */
	LocalTransactionId undo_looked; /* transaction that has looked at the
									 * current page; invalid: look again */
	BlockNumber lock_page;		/* where the backend has found room for a lock
								 * set the last time, or 0 */
	IpFollowed	followed;
} IpRelCache;

/* The backend writes to this ring from now on, about which it knows no more than its current page, or not even that. */
static inline void
ip_rel_set_ring(IpRelCache *cache, uint16 slot, BlockNumber current)
{
	cache->undo_slot = slot;
	cache->undo_current = current;
	cache->undo_examined = cache->undo_clean = cache->undo_bad = InvalidBlockNumber;
	cache->undo_count = 0;
	cache->undo_free = 0;
	cache->undo_looked = InvalidLocalTransactionId;
}

/*
 * Open an inplace table to look at its pages.  Lock: takes and keeps
 * AccessShareLock.  Errors: wrong_object_type, feature_not_supported.
 */
extern Relation ip_rel_open_to_inspect(Oid relid);

/* The relation's cache.  May be called with pages locked. */
extern IpRelCache *ip_rel_cache(Relation rel);

/*
 * Check the format version, before reading or changing; nothing to do for an
 * empty relation.  One damaged page is not enough to refuse the others: two
 * pages have to agree, if there are two.  Lock: none.  Errors:
 * feature_not_supported for a version that this library does not know.
 */
extern void ip_rel_check_format(Relation rel);

/*
 * The metapage, locked in this mode; InvalidBuffer if there is none, for want
 * of rings, or if it is damaged: nothing in it is more than a hint.
 */
extern Buffer ip_rel_lock_meta(Relation rel, int mode);

/*
 * The metapage, locked exclusively.  It is made if there is none, or if it is
 * damaged, by a change of its own; then the rings that it knew are lost, their
 * records are not.  Lock sets are kept if they are sound; else it notes that
 * they are lost.
 */
extern Buffer ip_rel_make_meta(Relation rel);

/* Make it anew if there is anything wrong with it, with a warning.  No lock is held. */
extern void ip_rel_repair_meta(Relation rel);

/*
 * ReadBuffer for a block number that comes from a page.  Errors: data_corrupted,
 * also if the relation has no such block.
 */
extern Buffer ip_rel_read(Relation rel, BlockNumber block);

/*
 * ReadBuffer for a block that can be done without: InvalidBuffer if the
 * relation has no such block, or if the server would refuse to read it.  A
 * block that is not in a buffer may be read twice, the second time by way of
 * strategy, or NULL.  May be called with pages locked.
 */
extern Buffer ip_rel_read_soft(Relation rel, BlockNumber block, BufferAccessStrategy strategy);

/*
 * Extend rel by up to n pages, which are all zeros; returns the first, pinned and
 * exclusively locked.  The *extended - 1 others behind it are anybody's.  The
 * metapage's block is left out; n is 1 as long as that is not there.
 */
extern Buffer ip_rel_extend(Relation rel, BufferAccessStrategy strategy, uint32 n,
							uint32 *extended);

/*
 * Dead rows of the table, as far as the cumulative statistics know.  A crash, a
 * promotion or a reset may have lost them: *vacuumed, which may be NULL, tells
 * whether they know of a VACUUM, so of all that has died since.
 */
extern double ip_rel_dead_rows(Relation rel, bool *vacuumed);

#endif							/* IP_REL_H */
