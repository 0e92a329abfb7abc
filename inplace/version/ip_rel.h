/*-------------------------------------------------------------------------
 * ip_rel.h
 *	  The relation: its metapage, reading its blocks, and its extension.
 *-------------------------------------------------------------------------
 */
#ifndef IP_REL_H
#define IP_REL_H

#include "compat.h"

#include "ip_page.h"

/* The slot of undo records that a backend starts with. */
static inline uint16
ip_own_slot(void)
{
	return CompatMyProcNo % IP_UNDO_SLOTS;
}

/*
 * The buffers of the last blocks that were read.  A change returns to its
 * page, and a statement to the page of its previous row.  Then the block need
 * not be looked up, which would take the shared lock of a partition of core's
 * buffer table.
 */
#define IP_RECENT_BUFFERS	16

typedef struct IpRecentBuffer
{
	BlockNumber block;
	Buffer		buffer;
	int			uses;			/* uses left before the block is looked up,
								 * which makes core keep the page */
} IpRecentBuffer;

/*
 * Indexes that follow updates in place of their columns, and those columns
 * (see ip_keys.h).
 */
#define IP_MAX_FOLLOWING		16
#define IP_MAX_FOLLOWED_COLUMNS	32

typedef struct IpFollowed
{
	bool		known;
	uint16		nindexes;
	uint16		ncolumns;
	Oid			indexes[IP_MAX_FOLLOWING];
	AttrNumber	columns[IP_MAX_FOLLOWED_COLUMNS];
	/* a bit for each index that has the column */
	uint16		column_indexes[IP_MAX_FOLLOWED_COLUMNS];
} IpFollowed;

/* Kept in rd_amcache: every relcache invalidation frees it. */
typedef struct IpRelCache
{
	IpRecentBuffer recent[IP_RECENT_BUFFERS];
	bool		format_checked;
	uint16		undo_slot;		/* the ring that this backend writes to */
	bool		undo_alone;		/* uses another's ring only if its own is too
								 * long */
	uint16		undo_waits;		/* number of waits for the lock of another's
								 * ring */
	BlockNumber undo_current;	/* its current page, if it still is */
	uint32		undo_free;		/* free bytes in it when last read */
	BlockNumber undo_examined;	/* current page when the oldest was cleaned */
	OffsetNumber undo_count;	/* records on the current page when last read */
	BlockNumber undo_clean;		/* that oldest page: no row depends on it ... */
	IpXid		undo_clean_xid; /* ... as long as this is its newest xid */
	BlockNumber undo_bad;		/* a page that cannot be cleaned, because of
								 * damage ... */
	IpXid		undo_bad_xid;	/* ... with this newest xid */
	uint32		undo_largest;	/* the most that records have needed at once */
	LocalTransactionId undo_looked; /* transaction that has examined the
									 * current page; invalid: examine again */
	uint32		undo_to_log;	/* number of undo pages that is to be logged,
								 * or 0 */
	BlockNumber lock_page;		/* where the backend last found room for a
								 * lock set, or 0 */
	IpFollowed	followed;
} IpRelCache;

static inline bool
ip_rel_is_toast(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_TOASTVALUE;
}

/*
 * Make the backend write to this ring from now on.  Of the ring it knows only
 * the current page, or not even that.
 */
static inline void
ip_rel_set_ring(IpRelCache *cache, uint16 slot, BlockNumber current)
{
	cache->undo_slot = slot;
	cache->undo_current = current;
	cache->undo_examined = cache->undo_clean = cache->undo_bad =
		InvalidBlockNumber;
	cache->undo_count = 0;
	cache->undo_free = 0;
	cache->undo_looked = InvalidLocalTransactionId;
}

/*
 * Open an inplace table to inspect its pages.  Lock: takes and keeps
 * AccessShareLock.  Errors: wrong_object_type, feature_not_supported.
 */
extern Relation ip_rel_open_to_inspect(Oid relid);

/*
 * The same, but returns NULL, without a lock, if the table does not exist, or
 * is no inplace table.
 */
extern Relation ip_rel_try_open_to_inspect(Oid relid);

/* The relation's cache.  May be called with pages locked. */
extern IpRelCache *ip_rel_cache(Relation rel);

/*
 * Check the format version before reading or changing the table; an empty
 * relation needs no check.  One damaged page is not enough to refuse the
 * others: if there are two pages, two must agree.  Lock: none.  Errors:
 * feature_not_supported for a version that this library does not know.
 */
extern void ip_rel_check_format(Relation rel);

/*
 * Returns the metapage, locked in this mode; InvalidBuffer if there is none,
 * as there are no rings, or if it is damaged: everything in it is only a hint.
 */
extern Buffer ip_rel_lock_meta(Relation rel, int mode);

/*
 * Returns the metapage, locked exclusively.  If there is none, or if it is
 * damaged, it is made by a change of its own.  Then references to rings are
 * lost, but not their records.  Lock sets are kept if they are sound; else the
 * metapage notes that they are lost.
 */
extern Buffer ip_rel_make_meta(Relation rel);

/*
 * If anything is wrong with the metapage, make it again, with a warning.  No
 * lock is held.
 */
extern void ip_rel_repair_meta(Relation rel);

/*
 * ReadBuffer for a block number that comes from a page.  Errors:
 * data_corrupted, also if the relation has no such block.
 */
extern Buffer ip_rel_read(Relation rel, BlockNumber block);

/*
 * ReadBuffer for a block that is not indispensable: InvalidBuffer if the
 * relation has no such block, or if the server would refuse to read it.  A
 * block that is not in a buffer may be read twice, the second time with
 * "strategy", which may be NULL.  May be called with pages locked.
 */
extern Buffer ip_rel_read_soft(Relation rel, BlockNumber block,
							   BufferAccessStrategy strategy);

/*
 * Extend rel by up to n pages, which are all zeros; returns the first, pinned
 * and exclusively locked.  Any backend may use the *extended - 1 others behind
 * it.  The metapage's block is skipped; n is 1 as long as the relation does
 * not have that block.
 */
extern Buffer ip_rel_extend(Relation rel, BufferAccessStrategy strategy,
							uint32 n, uint32 *extended);

/*
 * Dead rows of the table, as far as the cumulative statistics know.  A crash,
 * a promotion or a reset may have lost these.  *vacuumed, if not NULL, is set
 * to whether the statistics know of a VACUUM, and so of all rows that have
 * died since.
 */
extern double ip_rel_dead_rows(Relation rel, bool *vacuumed);

#endif							/* IP_REL_H */
