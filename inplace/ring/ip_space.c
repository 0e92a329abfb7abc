/*-------------------------------------------------------------------------
 * ip_space.c
 *	  Pages with free space.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "storage/buf_internals.h"
#include "storage/freespace.h"
#include "utils/snapmgr.h"

#include "ip_change.h"
#include "ip_prune.h"
#include "ip_row.h"
#include "ip_runs.h"
#include "ip_space.h"
#include "ip_value.h"
#include "ip_xid.h"

/*
 * A bulk insertion adds this part of the table's pages at once, but not more
 * than BULK_EXTEND_MAX.
 */
#define BULK_EXTEND_PART		64
#define BULK_EXTEND_MAX			16

static bool
has_map(Relation rel)
{
	return compat_has_block(rel, IP_FEW_BLOCKS) ||
		smgrexists(RelationGetSmgr(rel), FSM_FORKNUM);
}

Size
ip_space_reserve(BlockNumber block, Page page, Size wanted)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	int			n = max + 1;	/* at most */
	Size		free = ip_page_free(page);

	if (block >= IP_SMALL_TABLE)
		return 0;
	for (OffsetNumber off = FirstOffsetNumber;
		 off <= max && n * IP_VERSION_BLOCK_SZ + wanted > free; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (!ip_item_is_used(lp) || ip_item_is_undo(page, lp) ||
			ip_row_may_be(page, off, IP_ROW_VERSION))
			n--;
	}
	return n * IP_VERSION_BLOCK_SZ;
}

void
ip_space_record(Relation rel, BlockNumber block, Size space)
{
	Assert(block != IP_META_BLOCK);
	if (has_map(rel))
		RecordPageWithFreeSpace(rel, block, space);
}

/* Returns whether the page may be made into any kind of page. */
static bool
page_is_free(BlockNumber block, Page page)
{
	return block != IP_META_BLOCK &&
		(PageIsNew(page) ||
		 (ip_page_is_ours(page) &&
		  IpPageGetSpecial(page)->kind == IP_PAGE_FREE));
}

/*
 * Lock the buffer, unless another backend has locked it, or we have: this very
 * change may have picked the page already.  Buffers of temporary tables have no
 * locks.
 */
static bool
lock_if_nobody_has(Buffer buffer)
{
	if (BufferIsLocal(buffer))
		return LocalRefCount[-buffer - 1] == 1;
	return ConditionalLockBuffer(buffer);
}

Buffer
ip_space_try_free(Relation rel, BlockNumber block)
{
	Buffer		buffer;

	if (block == IP_DECOY_BLOCK)
		return InvalidBuffer;
	buffer = ip_rel_read_soft(rel, block, NULL);
	if (BufferIsInvalid(buffer))
	{
		/* so that others do not examine it */
		ip_space_record(rel, block, 0);
		return InvalidBuffer;
	}
	if (lock_if_nobody_has(buffer))
	{
		if (page_is_free(block, BufferGetPage(buffer)))
		{
			/* so that others do not examine it */
			ip_space_record(rel, block, 0);
			return buffer;
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	ReleaseBuffer(buffer);
	return InvalidBuffer;
}

Buffer
ip_space_find_free(Relation rel)
{
	BlockNumber block = IP_META_BLOCK;
	Buffer		buffer;

	if (has_map(rel))
	{
		block = GetPageWithFreeSpace(rel, MaxHeapTupleSize);
		if (block == InvalidBlockNumber || !compat_has_block(rel, block))
			return InvalidBuffer;
		return ip_space_try_free(rel, block);
	}
	while (compat_has_block(rel, ++block))
	{
		buffer = ip_space_try_free(rel, block);
		if (BufferIsValid(buffer))
			return buffer;
	}
	return InvalidBuffer;
}

void
ip_space_note_free(IpFreeBlocks *lowest, BlockNumber block)
{
	int			i = lowest->n;

	if (block == IP_DECOY_BLOCK ||
		(i == IP_UNDO_SLOTS && lowest->blocks[--i] < block))
		return;
	for (; i > 0 && lowest->blocks[i - 1] > block; i--)
		lowest->blocks[i] = lowest->blocks[i - 1];
	Assert(block != IP_META_BLOCK && i < IP_UNDO_SLOTS);
	Assert(i == 0 || lowest->blocks[i - 1] <= block);
	lowest->blocks[i] = block;
	lowest->n = Min(lowest->n + 1, IP_UNDO_SLOTS);
}

bool
ip_space_is_lost_undo(Relation rel, BlockNumber block, Page page)
{
	Buffer		buffer;
	Page		meta;
	bool		listed;

	/* the metapage, which the caller has locked, may be new */
	if (!PageIsNew(page) || block <= IP_META_BLOCK)
		return false;
	buffer = ip_rel_lock_meta(rel, BUFFER_LOCK_SHARE);
	if (BufferIsInvalid(buffer))
		return false;
	meta = BufferGetPage(buffer);
	listed = ip_runs_have(IpPageGetMeta(meta)->runs, ip_runs_count(meta),
						  block);
	UnlockReleaseBuffer(buffer);
	return listed;
}

/* ---- room to come ------------------------------------------------------ */

/*
 * Deleted rows of TOAST tables, whose room nobody may use yet.  The free space
 * map gets to know of it when the horizon has passed the deletion: a search
 * that comes too early would make the map forget the page.  If the list is
 * full, or the session ends before, VACUUM finds the room.
 */
typedef struct Expected
{
	RelFileNumber number;
	BlockNumber block;
	uint32		room;			/* of the page then, at least */
	TransactionId xid;			/* has deleted the row */
} Expected;

#define MAX_EXPECTED	512

static Expected expected[MAX_EXPECTED];
static int	nexpected;

void
ip_space_expect(Relation rel, BlockNumber block, Size space, TransactionId xid)
{
	if (nexpected == MAX_EXPECTED)
		memmove(&expected[0], &expected[1], --nexpected * sizeof(Expected));
	expected[nexpected++] = (Expected)
	{
		CompatRelNumber(rel), block, Min(space, IP_MAX_ITEM), xid
	};
}

/* Record the room of the table's rows that nobody needs any more. */
static void
record_expected(Relation rel)
{
	static RelFileNumber last_number;
	static TransactionId last_xmin;
	RelFileNumber number = CompatRelNumber(rel);
	int			n = 0;

	/* nothing has changed since the last look */
	if (number == last_number && TransactionXmin == last_xmin)
		return;
	last_number = number;
	last_xmin = TransactionXmin;
	for (int i = 0; i < nexpected; i++)
	{
		const Expected *e = &expected[i];

		if (e->number != number || !ip_xid_removable(rel, ip_xid_full(e->xid)))
			expected[n++] = *e;
		else if (compat_has_block(rel, e->block))
		{
			ip_space_record(rel, e->block, e->room);
			/* searches begin at the map's root */
			if (has_map(rel))
				FreeSpaceMapVacuumRange(rel, e->block, e->block + 1);
		}
	}
	nexpected = n;
}

/* ---- searching --------------------------------------------------------- */

Size
ip_space_room(Relation rel, BlockNumber block, Page page, Size wanted)
{
	/* the address of a row of a TOAST table has few bits for the offset */
	OffsetNumber max = ip_rel_is_toast(rel) ? IP_VALUE_MAX_OFFSET :
		IP_MAX_ROWS_PER_PAGE;

	return ip_page_free_offset(page, InvalidOffsetNumber) <= max ?
		ip_space_free(block, page, wanted) : 0;
}

/*
 * try_page: another backend has locked the page, so its free space is not
 * known.
 */
#define NOT_LOOKED_AT	((Size) -1)

/*
 * Lock and examine a candidate; returns InvalidBuffer if it is not suitable.
 * prunes: the page may be pruned to make room.
 */
static Buffer
try_page(Relation rel, BlockNumber block, Size size, Size *found,
		 BufferAccessStrategy strategy, bool conditional, bool prunes,
		 Buffer other, bool *init)
{
	Buffer		buffer;
	Page		page;

	*found = block == IP_META_BLOCK ? 0 : NOT_LOOKED_AT;
	if (block == IP_META_BLOCK ||
		(BufferIsValid(other) && BufferGetBlockNumber(other) == block))
		return InvalidBuffer;
	buffer = ip_rel_read_soft(rel, block, strategy);
	if (BufferIsInvalid(buffer))
	{
		/* damaged, or cut off: try another one */
		*found = 0;
		return InvalidBuffer;
	}
	if (!conditional)
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	else if (!ConditionalLockBuffer(buffer))
	{
		ReleaseBuffer(buffer);
		return InvalidBuffer;
	}
	*found = 0;
	page = BufferGetPage(buffer);
	/* a damaged page is passed over, but not a heap's file */
	ip_page_refuse_heap(rel, block, page);
	*init = page_is_free(block, page) &&
		!ip_space_is_lost_undo(rel, block, page);
	if (*init)
		*found = IpPageRoom(block);
	else if (ip_page_is_ours(page) &&
			 IpPageGetSpecial(page)->kind == IP_PAGE_DATA)
	{
		*found = ip_space_room(rel, block, page, size);
		/* its room is that of rows which nobody needs any more */
		if (*found < size && prunes && ip_prune_page_opt(rel, buffer))
			*found = ip_space_room(rel, block, page, size);
	}
	/* the prune changes what is free, and how much of it rows may need */
	if (*found >= size && !*init && ip_prune_base_is_old(page))
		*found = ip_prune_for_base(rel, buffer) ?
			ip_space_free(block, page, size) : size - 1;
	if (*found >= size)
		return buffer;
	*found = Min(*found, size - 1);
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/*
 * Returns another block to examine, after this number of tries; found is what
 * is free in the last one.
 */
static BlockNumber
next_candidate(Relation rel, BlockNumber block, Size found, Size wanted,
			   int tries)
{
	BlockNumber nblocks;

	if (has_map(rel))
		return found == NOT_LOOKED_AT ? GetPageWithFreeSpace(rel, wanted) :
			RecordAndGetPageWithFreeSpace(rel, block, found, wanted);
	/* each of them once */
	nblocks = RelationGetNumberOfBlocks(rel);
	return tries < nblocks ? (block + nblocks - 1) % nblocks :
		InvalidBlockNumber;
}

/* A new block 0 has no room for the row: make it a free page with a decoy. */
static void
leave_decoy_block(Relation rel, Buffer buffer)
{
	IpChange	change;

	ip_change_begin(&change, rel, IP_XLOG_INIT, InvalidTransactionId);
	ip_op_simple(ip_change_block(&change, buffer, true), IP_OP_INIT_FREE);
	ip_change_apply(&change);
	UnlockReleaseBuffer(buffer);
}

/*
 * Extend the relation by a new page for the caller's row.  A bulk insertion
 * adds some more for itself, which others find in the free space map: the
 * larger the table, the more pages.
 */
static Buffer
extend(Relation rel, Size size, BulkInsertState bistate)
{
	uint32		n = 1;
	Buffer		buffer;
	BlockNumber block;

	if (bistate)
		n = Min(Max(RelationGetNumberOfBlocks(rel) / BULK_EXTEND_PART, 1),
				BULK_EXTEND_MAX);
	buffer = ip_rel_extend(rel, bistate ? bistate->strategy : NULL, n, &n);
	block = BufferGetBlockNumber(buffer);
	Assert(PageIsNew(BufferGetPage(buffer)));
	if (size > IpPageRoom(block))
	{
		leave_decoy_block(rel, buffer);
		return extend(rel, size, bistate);
	}
	for (uint32 i = 1; i < n; i++)
		ip_space_record(rel, block + i, IpFreePageSpace(block + i));
	return buffer;
}

Buffer
ip_space_find(Relation rel, Size size, CompatOptions options,
			  BulkInsertState bistate, bool conditional, Buffer other,
			  bool *init)
{
	BufferAccessStrategy strategy = bistate ? bistate->strategy : NULL;
	bool		use_fsm = !(options & TABLE_INSERT_SKIP_FSM);
	Size		wanted = size + ip_space_keep(rel, size);
	BlockNumber block;
	Buffer		buffer;
	Size		found;

	Assert(size <= IP_MAX_ITEM + sizeof(ItemIdData));
	Assert(conditional || ip_page_none_is_locked());
	if (!conditional)
		ip_rel_check_format(rel);
	wanted = Min(wanted, IP_MAX_ITEM + sizeof(ItemIdData));
	if (nexpected > 0 && use_fsm && ip_rel_is_toast(rel))
		record_expected(rel);
	block = RelationGetTargetBlock(rel);
	if (block == InvalidBlockNumber && use_fsm)
	{
		block = GetPageWithFreeSpace(rel, wanted);
		if (block == InvalidBlockNumber)
			block = RelationGetNumberOfBlocks(rel) - 1;
	}

	/* the free space map may be wrong: a few tries, then a new page */
	for (int tries = 0; block != InvalidBlockNumber && tries < 10; tries++)
	{
		CHECK_FOR_INTERRUPTS();
		buffer = try_page(rel, block, Min(wanted, Max(size, IpPageRoom(block))),
						  &found, strategy, conditional,
						  use_fsm && ip_rel_is_toast(rel), other, init);
		if (BufferIsValid(buffer))
		{
			RelationSetTargetBlock(rel, block);
			return buffer;
		}
		if (!use_fsm)
		{
			/* the next page may have been made with this one */
			if (tries > 0 || !compat_has_block(rel, block + 1))
				break;
			block++;
		}
		else
			block = next_candidate(rel, block, found, wanted, tries + 1);
	}
	buffer = extend(rel, size, bistate);
	Assert(buffer != other);
	*init = true;
	RelationSetTargetBlock(rel, BufferGetBlockNumber(buffer));
	return buffer;
}
