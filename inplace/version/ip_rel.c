/*-------------------------------------------------------------------------
 * ip_rel.c
 *	  The relation: its metapage, reading its blocks, and its extension.
 *
 * A relation without rings has no metapage: the metapage's block is new, or
 * beyond the end.  The backend that needs the first ring makes it.  A crash
 * may interrupt that at any point, and leaves such a block again.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/relation.h"
#include "utils/memutils.h"

#include "ip_change.h"
#include "ip_lockset.h"
#include "ip_page_check.h"
#include "ip_rel.h"
#include "ip_runs.h"
#include "ip_salvage.h"
#include "ip_slot.h"
#include "ip_xid.h"

/* Number of times that a buffer is used without looking up its block. */
#define RECENT_USES		16

/*
 * Number of pages at either end of the table that are searched for one that
 * tells its version; more pages than an extension makes at once.
 */
#define VERSION_PAGES	64

/*
 * Number of reads of a damaged block: another backend may have been writing
 * it.
 */
#define SOFT_TRIES		3

/*
 * Returns the block's buffer, pinned, if it was used recently and still has
 * the block.
 */
static Buffer
read_again(Relation rel, BlockNumber block)
{
	IpRelCache *cache = rel->rd_amcache;
	IpRecentBuffer *recent;

	/* only ReadBuffer counts VACUUM's cost */
	if (cache == NULL || VacuumCostActive)
		return InvalidBuffer;
	recent = &cache->recent[block % IP_RECENT_BUFFERS];
	if (recent->block != block || recent->uses == 0 ||
		!compat_read_recent(rel, block, recent->buffer))
		return InvalidBuffer;
	recent->uses--;
	CompatCountBufferHit(rel);
	return recent->buffer;
}

static void
note_recent(Relation rel, BlockNumber block, Buffer buffer)
{
	IpRelCache *cache = rel->rd_amcache;

	if (cache != NULL && !VacuumCostActive)
		cache->recent[block % IP_RECENT_BUFFERS] = (IpRecentBuffer)
	{
		.block = block,.buffer = buffer,.uses = RECENT_USES
	};
}

/*
 * Returns the block's buffer, pinned, if it is in one; else, *is_sound says
 * whether the block is sound in the file.  If it is not, nothing is left
 * behind, whereas core's read would leave an error and an invalid buffer.
 */
static Buffer
look_up(Relation rel, BlockNumber block, bool *is_sound)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	volatile Buffer found = InvalidBuffer;
	volatile bool sound = false;
	CompatIOBlock page;

	PG_TRY();
	{
		Buffer		recent = PrefetchBuffer(rel, MAIN_FORKNUM,
											block).recent_buffer;

		if (BufferIsValid(recent) && compat_read_recent(rel, block, recent))
			found = recent;
		else if (zero_damaged_pages)
			sound = true;
		else
		{
			smgrread(RelationGetSmgr(rel), MAIN_FORKNUM, block, page.data);
			sound = compat_page_is_verified(&page, block);
		}
	}
	PG_CATCH();
	{
		ip_salvage_forget(context, holdoff);
	}
	PG_END_TRY();
	*is_sound = sound;
	return found;
}

Buffer
ip_rel_read_soft(Relation rel, BlockNumber block, BufferAccessStrategy strategy)
{
	Buffer		buffer = read_again(rel, block);
	bool		sound;

	Assert(CritSectionCount == 0);
	if (BufferIsValid(buffer))
		return buffer;
	if (!compat_has_block(rel, block))
		return InvalidBuffer;
	for (int tries = 0; tries < SOFT_TRIES && !BufferIsValid(buffer); tries++)
	{
		buffer = look_up(rel, block, &sound);
		if (BufferIsValid(buffer))
			CompatCountBufferHit(rel);
		else if (sound)
			buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL,
										strategy);
	}
	if (BufferIsValid(buffer))
		note_recent(rel, block, buffer);
	return buffer;
}

/*
 * Returns what is wrong with the page, which should be the metapage and is not
 * new, or NULL.
 */
static const char *
meta_problem(Page page)
{
	const char *problem;

	if (!ip_page_is_ours(page) || IpPageGetSpecial(page)->kind != IP_PAGE_META)
		return "it is not a metapage";
	problem = ip_runs_problem(page);
	return problem == NULL ? ip_lockset_place_problem(page) : problem;
}

Buffer
ip_rel_lock_meta(Relation rel, int mode)
{
	Buffer		buffer = ip_rel_read_soft(rel, IP_META_BLOCK, NULL);
	Page		page;

	if (!BufferIsValid(buffer))
		return InvalidBuffer;
	LockBuffer(buffer, mode);
	page = BufferGetPage(buffer);
	if (!PageIsNew(page) && meta_problem(page) == NULL)
		return buffer;
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/* Returns whether two pages name the same version, not ours. */
static bool
versions_agree(uint32 a, uint32 b)
{
	return a != 0 && a == b;
}

/*
 * Extend the relation by a block, unless it already has the metapage's block.
 */
static void
extend_to_meta(Relation rel)
{
	uint32		extended;

	LockRelationForExtension(rel, ExclusiveLock);
	if (RelationGetNumberOfBlocks(rel) <= IP_META_BLOCK)
		UnlockReleaseBuffer(compat_extend(rel, NULL, 1, &extended));
	UnlockRelationForExtension(rel, ExclusiveLock);
}

/*
 * Raise an error if the file is not ours.  A tool may have put a heap's file
 * there, whose block for the metapage is a page of rows, or the table may have
 * another format.  meta: the current page, or NULL.
 */
static void
refuse_foreign_file(Relation rel, Page meta)
{
	Buffer		buffer = ip_rel_read_soft(rel, IP_DECOY_BLOCK, NULL);
	Page		page;

	if (meta != NULL)
		ip_page_refuse_heap(rel, IP_META_BLOCK, meta);
	if (BufferIsInvalid(buffer))
		return;
	page = BufferGetPage(buffer);
	ip_page_refuse_heap(rel, IP_DECOY_BLOCK, page);
	if (meta != NULL &&
		versions_agree(ip_page_other_version(page),
					   ip_page_other_version(meta)))
		ip_page_refuse_version(rel, IP_DECOY_BLOCK,
							   ip_page_other_version(page));
	ReleaseBuffer(buffer);
}

/*
 * Read the metapage's block and lock it exclusively.  *problem is what is
 * wrong with it, or NULL if it is sound or new.
 */
static Buffer
read_meta_block(Relation rel, const char **problem)
{
	Buffer		buffer = ip_rel_read_soft(rel, IP_META_BLOCK, NULL);
	bool		readable = BufferIsValid(buffer);

	if (readable)
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	else
	{
		refuse_foreign_file(rel, NULL);
		/* it is then all zeros, unless another backend has made it */
		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, IP_META_BLOCK,
									RBM_ZERO_AND_LOCK, NULL);
	}
	if (!PageIsNew(BufferGetPage(buffer)))
		*problem = meta_problem(BufferGetPage(buffer));
	else
		*problem = readable ? NULL : "it cannot be read";
	return buffer;
}

/*
 * Make the metapage in the buffer, which is locked exclusively, or make it
 * again.
 */
static void
init_meta(Relation rel, Buffer buffer, const char *problem)
{
	bool		keeps = ip_page_has_sound_locks(BufferGetPage(buffer));
	IpChange	change;
	ByteWriter *ops;

	refuse_foreign_file(rel, BufferGetPage(buffer));
	ip_change_begin(&change, rel, IP_XLOG_INIT, InvalidTransactionId);
	ops = ip_change_block(&change, buffer, !keeps);
	ip_op_simple(ops, IP_OP_INIT_META);
	if (problem && !keeps)
		ip_change_lost(&change);
	ip_change_apply(&change);
	/* not to the client, which might make us wait while we hold locks */
	if (problem)
		ereport(LOG_SERVER_ONLY,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("rebuilding metapage of relation \"%s\": %s",
						RelationGetRelationName(rel), problem)));
}

/*
 * This is called for each row that is locked, so for a sound metapage it only
 * reads the buffer.
 */
Buffer
ip_rel_make_meta(Relation rel)
{
	const char *problem;
	Buffer		buffer;

	if (!compat_has_block(rel, IP_META_BLOCK))
		refuse_foreign_file(rel, NULL);
	while (!compat_has_block(rel, IP_META_BLOCK))
		extend_to_meta(rel);
	buffer = read_meta_block(rel, &problem);
	/* another backend may have made it in the meantime */
	if (problem != NULL || PageIsNew(BufferGetPage(buffer)))
		init_meta(rel, buffer, problem);
	return buffer;
}

void
ip_rel_repair_meta(Relation rel)
{
	const char *problem;
	Buffer		buffer;

	if (!compat_has_block(rel, IP_META_BLOCK))
		return;
	buffer = read_meta_block(rel, &problem);
	if (problem == NULL && !PageIsNew(BufferGetPage(buffer)))
		problem = ip_page_problem(BufferGetPage(buffer), IP_META_BLOCK);
	if (problem != NULL)
		init_meta(rel, buffer, problem);
	UnlockReleaseBuffer(buffer);
	if (problem != NULL)
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("rebuilding damaged metapage of relation \"%s\": %s",
						RelationGetRelationName(rel), problem)));
}

static bool
is_inplace_table(Relation rel)
{
	return rel->rd_tableam != NULL &&
		table_slot_callbacks(rel) == &ip_slot_ops;
}

static void
check_readable(Relation rel)
{
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));
	if (RecoveryInProgress() && !RelationIsPermanent(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
}

Relation
ip_rel_open_to_inspect(Oid relid)
{
	Relation	rel = relation_open(relid, AccessShareLock);

	if (!is_inplace_table(rel))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an inplace table",
						RelationGetRelationName(rel))));
	check_readable(rel);
	return rel;
}

Relation
ip_rel_try_open_to_inspect(Oid relid)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);

	if (rel != NULL && !is_inplace_table(rel))
	{
		relation_close(rel, AccessShareLock);
		return NULL;
	}
	if (rel != NULL)
		check_readable(rel);
	return rel;
}

IpRelCache *
ip_rel_cache(Relation rel)
{
	IpRelCache *cache = rel->rd_amcache;

	if (cache == NULL)
	{
		cache = MemoryContextAllocZero(CacheMemoryContext, sizeof(IpRelCache));
		ip_rel_set_ring(cache, ip_own_slot(), InvalidBlockNumber);
		rel->rd_amcache = cache;
	}
	return cache;
}

/*
 * Returns whether the version that block 0 names is right.  Another page
 * decides: the first that is found from both ends of the table.  New pages, of
 * which a bulk insertion or a crash may leave many, and unreadable pages do
 * not count.  If there is no other page, the version is right.
 */
static bool
is_of_version(Relation rel, uint32 version)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);

	for (BlockNumber i = 0; i < 2 * VERSION_PAGES && i < nblocks - 1; i++)
	{
		BlockNumber block = i % 2 == 0 ? nblocks - 1 - i / 2 : 1 + i / 2;
		Buffer		buffer = ip_rel_read_soft(rel, block, NULL);
		bool		tells;
		bool		agrees;

		if (!BufferIsValid(buffer))
			continue;
		tells = !PageIsNew(BufferGetPage(buffer));
		agrees = versions_agree(version,
								ip_page_other_version(BufferGetPage(buffer)));
		ReleaseBuffer(buffer);
		if (tells)
			return agrees;
	}
	return true;
}

/* Checks block 0; the version of other pages is checked when they are read. */
void
ip_rel_check_format(Relation rel)
{
	uint32		version = 0;
	Buffer		buffer;

	if (ip_rel_cache(rel)->format_checked ||
		RelationGetNumberOfBlocks(rel) == 0)
		return;
	buffer = ip_rel_read_soft(rel, IP_DECOY_BLOCK, NULL);
	if (BufferIsValid(buffer))
	{
		version = ip_page_other_version(BufferGetPage(buffer));
		ReleaseBuffer(buffer);
	}
	if (version != 0 && is_of_version(rel, version))
		ip_page_refuse_version(rel, IP_DECOY_BLOCK, version);
	/* reading the page may have accepted invalidations */
	ip_rel_cache(rel)->format_checked = true;
}

/* ReadBuffer, for a block that mostly is one of those read last. */
static Buffer
read_recent(Relation rel, BlockNumber block)
{
	Buffer		buffer = read_again(rel, block);

	if (BufferIsValid(buffer))
		return buffer;
	buffer = ReadBuffer(rel, block);
	note_recent(rel, block, buffer);
	return buffer;
}

Buffer
ip_rel_read(Relation rel, BlockNumber block)
{
	Buffer		buffer;

	Assert(CritSectionCount == 0);
	if (block == IP_META_BLOCK || block == InvalidBlockNumber)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("relation \"%s\" refers to block %u where a data or undo page is expected",
						RelationGetRelationName(rel), block)));
	if (unlikely(!compat_has_block(rel, block)))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("relation \"%s\" refers to block %u, which is beyond its end",
						RelationGetRelationName(rel), block),
				 ip_page_check_hint(rel)));
	buffer = read_recent(rel, block);
	/* both ends are read first when the page is locked */
	__builtin_prefetch(BufferGetPage(buffer));
	__builtin_prefetch(IpPageGetSpecial(BufferGetPage(buffer)));
	return buffer;
}

Buffer
ip_rel_extend(Relation rel, BufferAccessStrategy strategy, uint32 n,
			  uint32 *extended)
{
	Buffer		buffer;

	Assert(n > 0 && CritSectionCount == 0);
	Assert(n == 1 || compat_has_block(rel, IP_META_BLOCK));
	buffer = compat_extend(rel, strategy, n, extended);
	if (BufferGetBlockNumber(buffer) == IP_META_BLOCK)
	{
		/* it stays as it is until a backend needs a ring */
		UnlockReleaseBuffer(buffer);
		buffer = compat_extend(rel, strategy, n, extended);
	}
	Assert(BufferGetBlockNumber(buffer) != IP_META_BLOCK);
	return buffer;
}

double
ip_rel_dead_rows(Relation rel, bool *vacuumed)
{
	PgStat_StatTabEntry *entry = CompatTableStats(rel);

	if (vacuumed)
		*vacuumed = entry != NULL && CompatVacuums(entry) > 0;
	return entry == NULL ? 0 : CompatDeadTuples(entry);
}
