/*-------------------------------------------------------------------------
 * ip_space.h
 *	  Pages with free space.
 *-------------------------------------------------------------------------
 */
#ifndef IP_SPACE_H
#define IP_SPACE_H

#include "access/heapam.h"
#include "access/hio.h"

#include "ip_home.h"
#include "ip_rel.h"

/* What the free space map knows about a page that may become any kind of page; block 0 has rows only. */
#define IpFreePageSpace(block) \
	((block) == IP_DECOY_BLOCK ? IpPageRoom(block) : BLCKSZ - SizeOfPageHeaderData)

/*
 * Tables of so many blocks or fewer have no free space map, which has three: to look at each page is as quick.
 */
#define IP_FEW_BLOCKS		4

/* Tables of fewer blocks are small. */
#define IP_SMALL_TABLE		64

/* What insertions leave free on a page for undo at home; larger rows would waste too much of it. */
#define IP_HOME_RESERVE		128
#define IP_HOME_ROW_SIZE	1024

/*
 * Bytes to be left free on a page when rows are inserted.  In small tables every
 * row is likely to be updated, so its version block gets room: that of each row that has none, and of the new one.
 * Where there is as much as wanted beside room for those of all rows, nobody counts which have one.
 */
extern Size ip_space_reserve(BlockNumber block, Page page, Size wanted);

/* Bytes that an insertion of a row of that size leaves for changes: the fillfactor's, or those for undo at home. */
static inline Size
ip_space_keep(Relation rel, Size size)
{
	Size		fill = RelationGetTargetPageFreeSpace(rel, HEAP_DEFAULT_FILLFACTOR);

	return ip_home_enabled && size <= IP_HOME_ROW_SIZE ? Max(fill, IP_HOME_RESERVE) : fill;
}

/* Free bytes for new rows, or at least as many as wanted if there are so many. */
static inline Size
ip_space_free(BlockNumber block, Page page, Size wanted)
{
	Size		free = ip_page_free(page);
	Size		reserve = ip_space_reserve(block, page, wanted);

	return free > reserve ? free - reserve : 0;
}

/*
 * A data page with at least size free bytes (item pointer included) and a free
 * offset, locked exclusively.  *init: the page has to be initialised.  With
 * conditional no lock is waited for, so that the caller may hold one on the
 * buffer "other"; that one is never returned.
 */
extern Buffer ip_space_find(Relation rel, Size size, CompatOptions options, BulkInsertState bistate,
							bool conditional, Buffer other, bool *init);

/*
 * A page that may be made into any kind of page, locked exclusively, or
 * InvalidBuffer if none is known, or (_try_) that one is not.  They wait for no
 * lock.
 */
extern Buffer ip_space_find_free(Relation rel);
extern Buffer ip_space_try_free(Relation rel, BlockNumber block);

/*
 * Is the page all zeros, but listed by the metapage as one of undo?  Damage has made it so, and scans leave it out: no row may be
 * put into that block.  Lock: the page's; the metapage is locked after it.
 */
extern bool ip_space_is_lost_undo(Relation rel, BlockNumber block, Page page);

/* Let the free space map know, if there is one, or the table is large enough for one. */
extern void ip_space_record(Relation rel, BlockNumber block, Size space);

/* The lowest free blocks that VACUUM has seen, in order. */
typedef struct IpFreeBlocks
{
	int			n;
	BlockNumber blocks[IP_UNDO_SLOTS];
} IpFreeBlocks;

extern void ip_space_note_free(IpFreeBlocks *lowest, BlockNumber block);

#endif							/* IP_SPACE_H */
