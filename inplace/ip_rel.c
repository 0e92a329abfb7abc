/*-------------------------------------------------------------------------
 * ip_rel.c
 *	  The relation: its metapage, reading its blocks, and its extension.
 *
 * A relation without rings has no metapage: its block is new, or beyond the end.
 * The backend that wants the first ring makes it, which a crash may undo at any point: what
 * that leaves is such a block again.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/relation.h"
#include "utils/memutils.h"

#include "ip_change.h"
#include "ip_lockset.h"
#include "ip_rel.h"
#include "ip_runs.h"
#include "ip_slot.h"

/* So often a buffer is used without looking up its block. */
#define RECENT_USES		16

/* Beyond so many blocks that are empty nobody looks for one that tells its version. */
#define MAX_EMPTY		8

/* A damaged block is read again: another backend may have been writing it. */
#define SOFT_TRIES		3

/*
 * Is the block sound in the file?  Nothing is left behind when it is not: core's
 * own read would leave an error, and a buffer that is not valid.
 */
static bool
file_is_sound(Relation rel, BlockNumber block)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	volatile bool sound = false;
	CompatIOBlock page;

	PG_TRY();
	{
		smgrread(RelationGetSmgr(rel), MAIN_FORKNUM, block, page.data);
		sound = compat_page_is_verified(&page, block);
	}
	PG_CATCH();
	{
		if (geterrcode() != ERRCODE_IO_ERROR && geterrcode() != ERRCODE_DATA_CORRUPTED)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		/* the error has let interrupts in; the caller may hold locks */
		InterruptHoldoffCount = holdoff;
	}
	PG_END_TRY();
	return sound;
}

Buffer
ip_rel_read_soft(Relation rel, BlockNumber block)
{
	Assert(CritSectionCount == 0);
	if (!compat_has_block(rel, block))
		return InvalidBuffer;
	for (int tries = 0; tries < SOFT_TRIES; tries++)
	{
		Buffer		recent = PrefetchBuffer(rel, MAIN_FORKNUM, block).recent_buffer;

		if (BufferIsValid(recent) && ReadRecentBuffer(CompatLocator(rel), MAIN_FORKNUM, block, recent))
		{
			CompatCountBufferHit(rel);
			return recent;
		}
		if (zero_damaged_pages || file_is_sound(rel, block))
			return ReadBuffer(rel, block);
	}
	return InvalidBuffer;
}

/* What is wrong with the page, which is to be the metapage and is not new, or NULL. */
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
	Buffer		buffer = ip_rel_read_soft(rel, IP_META_BLOCK);
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

const char *
ip_rel_meta_problem(Relation rel)
{
	const char *problem = NULL;
	Buffer		buffer;

	if (!compat_has_block(rel, IP_META_BLOCK))
		return NULL;
	buffer = ip_rel_read_soft(rel, IP_META_BLOCK);
	if (!BufferIsValid(buffer))
		return "it cannot be read";
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	ip_page_refuse_heap(rel, IP_META_BLOCK, BufferGetPage(buffer));
	if (!PageIsNew(BufferGetPage(buffer)))
		problem = meta_problem(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	return problem;
}

/* A block more, unless the metapage's is there by now. */
static void
extend_to_meta(Relation rel)
{
	uint32		extended;

	LockRelationForExtension(rel, ExclusiveLock);
	if (RelationGetNumberOfBlocks(rel) <= IP_META_BLOCK)
		UnlockReleaseBuffer(compat_extend(rel, NULL, 1, &extended));
	UnlockRelationForExtension(rel, ExclusiveLock);
}

/* A tool may have put a heap's file there, of which the metapage's block is a page of rows. */
static void
refuse_heap_file(Relation rel)
{
	Buffer		buffer = ip_rel_read_soft(rel, IP_DECOY_BLOCK);

	if (BufferIsInvalid(buffer))
		return;
	ip_page_refuse_heap(rel, IP_DECOY_BLOCK, BufferGetPage(buffer));
	ReleaseBuffer(buffer);
}

/* The metapage's block, locked exclusively; zeros where it cannot be read. */
static Buffer
read_meta_block(Relation rel)
{
	Buffer		buffer = ip_rel_read_soft(rel, IP_META_BLOCK);

	if (!BufferIsValid(buffer))
		return ReadBufferExtended(rel, MAIN_FORKNUM, IP_META_BLOCK, RBM_ZERO_AND_LOCK, NULL);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	return buffer;
}

Buffer
ip_rel_make_meta(Relation rel)
{
	const char *problem = NULL;
	Buffer		buffer;
	IpChange	change;
	Page		page;

	refuse_heap_file(rel);
	while (!compat_has_block(rel, IP_META_BLOCK))
		extend_to_meta(rel);
	buffer = read_meta_block(rel);
	page = BufferGetPage(buffer);
	ip_page_refuse_heap(rel, IP_META_BLOCK, page);
	if (!PageIsNew(page))
	{
		problem = meta_problem(page);
		if (problem == NULL)
			return buffer;		/* the first of several backends has made it */
	}
	ip_change_begin(&change, rel, IP_XLOG_INIT, InvalidTransactionId);
	ip_op_simple(ip_change_block(&change, buffer, true), IP_OP_INIT_META);
	ip_change_apply(&change);
	/* not to the client, which might keep us waiting while we hold locks */
	if (problem)
		ereport(LOG_SERVER_ONLY,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("metapage of relation \"%s\" is made anew: %s",
						RelationGetRelationName(rel), problem)));
	return buffer;
}

Relation
ip_rel_open_to_inspect(Oid relid)
{
	Relation	rel = relation_open(relid, AccessShareLock);

	if (rel->rd_tableam == NULL || table_slot_callbacks(rel) != &ip_slot_ops)
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

/* The other format version that the block says it has, or 0; not if it is empty, or unreadable, which *empty tells. */
static uint32
other_version(Relation rel, BlockNumber block, bool *empty)
{
	Buffer		buffer = ip_rel_read_soft(rel, block);
	uint32		version = 0;

	*empty = true;
	if (!BufferIsValid(buffer))
		return 0;
	*empty = PageIsNew(BufferGetPage(buffer));
	if (!*empty)
		version = ip_page_other_version(BufferGetPage(buffer));
	ReleaseBuffer(buffer);
	return version;
}

/* Each other page tells when it is read. */
void
ip_rel_check_format(Relation rel)
{
	IpRelCache *cache = ip_rel_cache(rel);
	BlockNumber block;
	uint32		version;
	bool		empty;

	if (cache->format_checked)
		return;
	block = RelationGetNumberOfBlocks(rel);
	if (block == 0)
		return;
	version = other_version(rel, IP_DECOY_BLOCK, &empty);
	for (int i = 0; version != 0 && i < MAX_EMPTY; i++)
	{
		if (other_version(rel, --block, &empty) == version)
			ip_page_refuse_version(rel, block, version);
		if (!empty || block == 0)
			break;
	}
	/* reading the page may have accepted invalidations */
	ip_rel_cache(rel)->format_checked = true;
}

/* ReadBuffer, of a block that is mostly the same as one of the last ones. */
static Buffer
read_recent(Relation rel, BlockNumber block)
{
	IpRelCache *cache = rel->rd_amcache;
	IpRecentBuffer *recent;

	/* VACUUM's cost is counted by ReadBuffer only */
	if (cache == NULL || VacuumCostActive)
		return ReadBuffer(rel, block);
	recent = &cache->recent[block % IP_RECENT_BUFFERS];
	if (recent->block == block && recent->uses > 0 &&
		ReadRecentBuffer(CompatLocator(rel), MAIN_FORKNUM, block, recent->buffer))
	{
		recent->uses--;
		CompatCountBufferHit(rel);
		return recent->buffer;
	}
	recent->block = block;
	recent->buffer = ReadBuffer(rel, block);
	recent->uses = RECENT_USES;
	return recent->buffer;
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
	/* both ends are looked at first, when the page is locked */
	__builtin_prefetch(BufferGetPage(buffer));
	__builtin_prefetch(IpPageGetSpecial(BufferGetPage(buffer)));
	return buffer;
}

Buffer
ip_rel_extend(Relation rel, BufferAccessStrategy strategy, uint32 n, uint32 *extended)
{
	Buffer		buffer;

	Assert(n > 0 && CritSectionCount == 0);
	Assert(n == 1 || compat_has_block(rel, IP_META_BLOCK));
	buffer = compat_extend(rel, strategy, n, extended);
	if (BufferGetBlockNumber(buffer) == IP_META_BLOCK)
	{
		/* it is left as it is until somebody wants a ring */
		UnlockReleaseBuffer(buffer);
		buffer = compat_extend(rel, strategy, n, extended);
	}
	Assert(BufferGetBlockNumber(buffer) != IP_META_BLOCK);
	return buffer;
}

double
ip_rel_dead_rows(Relation rel)
{
	PgStat_StatTabEntry *entry = pgstat_fetch_stat_tabentry_ext(rel->rd_rel->relisshared, RelationGetRelid(rel));

	return entry == NULL ? 0 : CompatDeadTuples(entry);
}
