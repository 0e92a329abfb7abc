/*-------------------------------------------------------------------------
 * ip_space.c
 *	  Metapage, extension of the relation, and pages with free space.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/relation.h"
#include "storage/buf_internals.h"
#include "storage/freespace.h"
#include "utils/memutils.h"

#include "ip_prune.h"
#include "ip_row.h"
#include "ip_space.h"
#include "ip_wal.h"
#include "ip_xid.h"

static void
check_meta_page(Relation rel, Page page)
{
	IpMeta	   *meta = IpPageGetMeta(page);

	if (ip_page_kind(rel, IP_META_BLOCK, page) != IP_PAGE_META ||
		!ip_item_is_decoy(&meta->decoy))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" is not the metapage of an inplace table",
						IP_META_BLOCK, RelationGetRelationName(rel))));
	if (meta->version != IP_FORMAT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("relation \"%s\" has format version %u, but this library knows version %u only",
						RelationGetRelationName(rel), meta->version, IP_FORMAT_VERSION),
				 errhint("Use the version of the inplace library that wrote the table.")));
	if (meta->nslots != IP_UNDO_SLOTS)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("metapage of relation \"%s\" has %u undo slots, expected %u",
						RelationGetRelationName(rel), meta->nslots, IP_UNDO_SLOTS)));
}

/* Block 0 exists; a crash may have left it empty. */
static void
ensure_meta(Relation rel, Buffer buffer)
{
	IpChange	change;

	if (PageIsNew(BufferGetPage(buffer)))
	{
		ip_change_begin(&change, rel, IP_XLOG_INIT, InvalidTransactionId);
		ip_op_simple(ip_change_block(&change, buffer, true), IP_OP_INIT_META);
		ip_change_apply(&change);
	}
	check_meta_page(rel, BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
}

static void
make_meta(Relation rel)
{
	Buffer		buffer = InvalidBuffer;

	LockRelationForExtension(rel, ExclusiveLock);
	if (RelationGetNumberOfBlocks(rel) == 0)
		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, P_NEW, RBM_ZERO_AND_LOCK, NULL);
	UnlockRelationForExtension(rel, ExclusiveLock);

	if (!BufferIsValid(buffer))
	{
		buffer = ReadBuffer(rel, IP_META_BLOCK);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	}
	ensure_meta(rel, buffer);
}

Relation
ip_open_to_inspect(Oid relid)
{
	Relation	rel = relation_open(relid, AccessShareLock);

	if (rel->rd_tableam == NULL || table_slot_callbacks(rel) != &IpSlotOps)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an inplace table", RelationGetRelationName(rel))));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));
	if (RecoveryInProgress() && !RelationIsPermanent(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	return rel;
}

/* The metapage is there and has been checked. */
static void
set_cache(Relation rel)
{
	IpRelCache *cache = MemoryContextAllocZero(CacheMemoryContext, sizeof(IpRelCache));

	cache->undo_slot = ip_own_slot();
	cache->undo_current = cache->undo_examined = InvalidBlockNumber;
	cache->undo_clean = cache->undo_bad = InvalidBlockNumber;
	rel->rd_amcache = cache;
}

IpRelCache *
ip_rel_cache(Relation rel)
{
	if (rel->rd_amcache == NULL)
	{
		make_meta(rel);
		set_cache(rel);
	}
	return rel->rd_amcache;
}

void
ip_check_meta(Relation rel)
{
	Buffer		buffer;
	bool		found;

	if (rel->rd_amcache != NULL || RelationGetNumberOfBlocks(rel) == 0)
		return;
	buffer = ReadBuffer(rel, IP_META_BLOCK);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	found = !PageIsNew(BufferGetPage(buffer));
	if (found)
		check_meta_page(rel, BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	if (found)
		set_cache(rel);
}

/*
 * The storage manager's cached size may be too low, but not too high: who
 * truncates a relation has all caches invalidated before he releases his lock.
 */
bool
ip_block_exists(Relation rel, BlockNumber block)
{
	BlockNumber cached = RelationGetSmgr(rel)->smgr_cached_nblocks[MAIN_FORKNUM];

	return (cached != InvalidBlockNumber && block < cached) ||
		block < RelationGetNumberOfBlocks(rel);
}

Buffer
ip_read_buffer(Relation rel, BlockNumber block)
{
	if (block == IP_META_BLOCK || block == InvalidBlockNumber)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("relation \"%s\" refers to block %u where a data or undo page is expected",
						RelationGetRelationName(rel), block)));
	if (unlikely(!ip_block_exists(rel, block)))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("relation \"%s\" refers to block %u, which is beyond its end",
						RelationGetRelationName(rel), block),
				 errhint("Run inplace_check('%s') to find all damage.",
						 RelationGetRelationName(rel))));
	return ReadBuffer(rel, block);
}

void
ip_extend(Relation rel, Buffer *buffers, int n)
{
	bool		lock = !RELATION_IS_LOCAL(rel);

	if (lock)
		LockRelationForExtension(rel, ExclusiveLock);
	for (int i = 0; i < n; i++)
		buffers[i] = ReadBufferExtended(rel, MAIN_FORKNUM, P_NEW, RBM_ZERO_AND_LOCK, NULL);
	if (lock)
		UnlockRelationForExtension(rel, ExclusiveLock);
}

/* May the page be made into any kind of page? */
static bool
page_is_free(Relation rel, BlockNumber block, Page page)
{
	return block != IP_META_BLOCK &&
		(PageIsNew(page) || ip_page_kind(rel, block, page) == IP_PAGE_FREE);
}

/*
 * Lock it, unless somebody else has it locked, or (this very change may have
 * picked the page already) we have.  Buffers of temporary tables have no locks.
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
	Buffer		buffer = ReadBuffer(rel, block);

	if (lock_if_nobody_has(buffer))
	{
		if (page_is_free(rel, block, BufferGetPage(buffer)))
		{
			/* so that others do not look at it */
			RecordPageWithFreeSpace(rel, block, 0);
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
	BlockNumber block = GetPageWithFreeSpace(rel, MaxHeapTupleSize);

	if (block == InvalidBlockNumber || !ip_block_exists(rel, block))
		return InvalidBuffer;
	return ip_space_try_free(rel, block);
}

void
ip_note_free_block(IpFreeBlocks *lowest, BlockNumber block)
{
	int			i = lowest->n;

	if (i == IP_UNDO_SLOTS && lowest->blocks[--i] < block)
		return;
	for (; i > 0 && lowest->blocks[i - 1] > block; i--)
		lowest->blocks[i] = lowest->blocks[i - 1];
	lowest->blocks[i] = block;
	lowest->n = Min(lowest->n + 1, IP_UNDO_SLOTS);
}

/* try_page: somebody else has the page, so its free space is not known */
#define NOT_LOOKED_AT	((Size) -1)

/* Lock and look at a candidate; InvalidBuffer if it will not do. */
static Buffer
try_page(Relation rel, BlockNumber block, Size size, Size *found,
		 BufferAccessStrategy strategy, bool conditional, Buffer other, bool *init)
{
	Buffer		buffer;
	Page		page;

	*found = NOT_LOOKED_AT;
	if (BufferIsValid(other) && BufferGetBlockNumber(other) == block)
		return InvalidBuffer;
	buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	if (!conditional)
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	else if (!ConditionalLockBuffer(buffer))
	{
		ReleaseBuffer(buffer);
		return InvalidBuffer;
	}
	*found = 0;
	page = BufferGetPage(buffer);
	*init = page_is_free(rel, block, page);
	if (*init)
		return buffer;
	if (ip_page_kind(rel, block, page) == IP_PAGE_DATA &&
		ip_free_offset(page, InvalidOffsetNumber) <= IP_MAX_ROWS_PER_PAGE)
		*found = ip_space_free(block, page);
	if (*found >= size && (!ip_page_base_is_old(page) || ip_prune_for_base(rel, buffer)))
		return buffer;
	*found = Min(*found, size - 1);
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

Buffer
ip_space_find(Relation rel, Size size, int options, BulkInsertState bistate,
			  bool conditional, Buffer other, bool *init)
{
	BufferAccessStrategy strategy = bistate ? bistate->strategy : NULL;
	bool		use_fsm = !(options & TABLE_INSERT_SKIP_FSM);
	Size		wanted = size + RelationGetTargetPageFreeSpace(rel, HEAP_DEFAULT_FILLFACTOR);
	BlockNumber block;
	Buffer		buffer;
	Size		found;

	(void) ip_rel_cache(rel);
	wanted = Min(wanted, IP_MAX_ITEM + sizeof(ItemIdData));
	block = RelationGetTargetBlock(rel);
	if (block == InvalidBlockNumber && use_fsm)
	{
		block = GetPageWithFreeSpace(rel, wanted);
		if (block == InvalidBlockNumber)
			block = RelationGetNumberOfBlocks(rel) - 1;
	}

	/* the free space map may be wrong: a few tries, then a new page */
	for (int tries = 0; block != InvalidBlockNumber && block != IP_META_BLOCK && tries < 10; tries++)
	{
		CHECK_FOR_INTERRUPTS();
		buffer = try_page(rel, block, wanted, &found, strategy, conditional, other, init);
		if (BufferIsValid(buffer))
		{
			RelationSetTargetBlock(rel, block);
			return buffer;
		}
		if (!use_fsm)
			break;
		if (found == NOT_LOOKED_AT)
			block = GetPageWithFreeSpace(rel, wanted);
		else
			block = RecordAndGetPageWithFreeSpace(rel, block, found, wanted);
	}
	ip_extend(rel, &buffer, 1);
	*init = true;
	RelationSetTargetBlock(rel, BufferGetBlockNumber(buffer));
	return buffer;
}
