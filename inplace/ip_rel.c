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
#include "ip_rel.h"
#include "ip_slot.h"

/* So often a buffer is used without looking up its block. */
#define RECENT_USES		16

static void
check_meta_page(Relation rel, Page page)
{
	IpMeta	   *meta = IpPageGetMeta(page);

	if (ip_page_kind(rel, IP_META_BLOCK, page) != IP_PAGE_META)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" is not the metapage of an inplace table",
						IP_META_BLOCK, RelationGetRelationName(rel))));
	if (meta->nslots != IP_UNDO_SLOTS)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("metapage of relation \"%s\" has %u undo slots, expected %u",
						RelationGetRelationName(rel), meta->nslots, IP_UNDO_SLOTS)));
}

Buffer
ip_rel_lock_meta(Relation rel, int mode)
{
	Buffer		buffer;
	Page		page;

	if (!compat_has_block(rel, IP_META_BLOCK))
		return InvalidBuffer;
	buffer = ReadBuffer(rel, IP_META_BLOCK);
	LockBuffer(buffer, mode);
	page = BufferGetPage(buffer);
	if (!PageIsNew(page))
	{
		check_meta_page(rel, page);
		return buffer;
	}
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
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

Buffer
ip_rel_make_meta(Relation rel)
{
	Buffer		buffer;
	IpChange	change;

	while (!compat_has_block(rel, IP_META_BLOCK))
		extend_to_meta(rel);
	buffer = ReadBuffer(rel, IP_META_BLOCK);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	/* the first of several backends has made it */
	if (PageIsNew(BufferGetPage(buffer)))
	{
		ip_change_begin(&change, rel, IP_XLOG_INIT, InvalidTransactionId);
		ip_op_simple(ip_change_block(&change, buffer, true), IP_OP_INIT_META);
		ip_change_apply(&change);
	}
	check_meta_page(rel, BufferGetPage(buffer));
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

/* Where a crash has left block 0 empty, or it is damaged, each other page tells when it is read. */
void
ip_rel_check_format(Relation rel)
{
	IpRelCache *cache = ip_rel_cache(rel);
	Buffer		buffer;
	Page		page;

	if (cache->format_checked || RelationGetNumberOfBlocks(rel) == 0)
		return;
	buffer = ReadBuffer(rel, IP_DECOY_BLOCK);
	page = BufferGetPage(buffer);
	Assert(RelationUsesLocalBuffers(rel) || !ip_page_is_locked(page, true));
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (ip_page_other_version(page) != 0)
		(void) ip_page_kind(rel, IP_DECOY_BLOCK, page);
	UnlockReleaseBuffer(buffer);
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
