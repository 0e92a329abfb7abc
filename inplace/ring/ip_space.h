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

/*
 * The space that the free space map records for a page that may become any kind
 * of page; block 0 has rows only.
 */
#define IpFreePageSpace(block) \
	((block) == IP_DECOY_BLOCK ? IpPageRoom(block) : \
	 BLCKSZ - SizeOfPageHeaderData)

/*
 * Tables of this number of blocks or fewer have no free space map, which itself
 * has three: examining each page is as fast.
 */
#define IP_FEW_BLOCKS		4

/* Tables of fewer blocks are small. */
#define IP_SMALL_TABLE		64

/*
 * The space that insertions leave free on a page for undo at home; larger rows
 * would waste too much of it.
 */
#define IP_HOME_RESERVE		128
#define IP_HOME_ROW_SIZE	1024

/*
 * Returns the number of bytes to be left free on a page when rows are inserted.
 * In small tables every row is likely to be updated, so there is room for its
 * version block: that of each row that has none, and of the new one.  If there
 * is as much space as wanted besides room for the version blocks of all rows,
 * the rows that have one are not counted.
 */
extern Size ip_space_reserve(BlockNumber block, Page page, Size wanted);

/*
 * Returns the number of bytes that an insertion of a row of that size leaves
 * for changes: those of the fillfactor, or those for undo at home.
 */
static inline Size
ip_space_keep(Relation rel, Size size)
{
	Size		fill = RelationGetTargetPageFreeSpace(rel,
													  HEAP_DEFAULT_FILLFACTOR);

	return ip_home_enabled && size <= IP_HOME_ROW_SIZE ?
		Max(fill, IP_HOME_RESERVE) : fill;
}

/*
 * Returns the number of free bytes for new rows.  If there are at least as many
 * as wanted, the result may be smaller than the real number, but not than
 * wanted.
 */
static inline Size
ip_space_free(BlockNumber block, Page page, Size wanted)
{
	Size		free = ip_page_free(page);
	Size		reserve = ip_space_reserve(block, page, wanted);

	return free > reserve ? free - reserve : 0;
}

/*
 * Like ip_space_free, but 0 if the page has no offset for a new row.  Lock: the
 * page.
 */
extern Size ip_space_room(Relation rel, BlockNumber block, Page page,
						  Size wanted);

/*
 * Returns a data page with at least size free bytes (line pointer included) and
 * a free offset, locked exclusively.  *init: the page has to be initialized.
 * With conditional no lock is waited for, so that the caller may hold one on
 * the buffer "other"; that buffer is never returned.
 */
extern Buffer ip_space_find(Relation rel, Size size, CompatOptions options,
							BulkInsertState bistate, bool conditional,
							Buffer other, bool *init);

/*
 * Return a page that may be made into any kind of page, locked exclusively, or
 * InvalidBuffer if none is known, or (_try_) the block is not such a page.
 * These functions wait for no lock.
 */
extern Buffer ip_space_find_free(Relation rel);
extern Buffer ip_space_try_free(Relation rel, BlockNumber block);

/*
 * Returns whether the page is all zeros, but listed by the metapage as a page
 * of undo.  Damage has made it so, and scans leave it out: no row may be put
 * into that block.  Lock: the page's; the metapage is locked after it.
 */
extern bool ip_space_is_lost_undo(Relation rel, BlockNumber block, Page page);

/*
 * Record the space in the free space map, if there is one, or the table is
 * large enough for one.
 */
extern void ip_space_record(Relation rel, BlockNumber block, Size space);

/*
 * Note that a page of a TOAST table will have this room when nobody needs the
 * row that xid has deleted.
 */
extern void ip_space_expect(Relation rel, BlockNumber block, Size space,
							TransactionId xid);

/* The lowest free blocks that VACUUM has seen, in order. */
typedef struct IpFreeBlocks
{
	int			n;
	BlockNumber blocks[IP_UNDO_SLOTS];
} IpFreeBlocks;

extern void ip_space_note_free(IpFreeBlocks *lowest, BlockNumber block);

#endif							/* IP_SPACE_H */
