/*-------------------------------------------------------------------------
 * ip_lockset_vacuum.c
 *	  VACUUM's part: frees lock pages whose sets are dead, repairs the list.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_change.h"
#include "ip_lockset_use.h"
#include "ip_lockset_vacuum.h"
#include "ip_page_check.h"
#include "ip_rel.h"
#include "ip_runs.h"

/* What VACUUM does with the list of lock pages. */
typedef struct LockList
{
	Relation	rel;
	IpFreeBlocks *lowest;		/* free blocks */
	BlockNumber n;				/* number of pages that were in the list */
	const char *problem;		/* problem of the page ... */
	BlockNumber bad;			/* ... that was just examined; or NULL */
} LockList;

/*
 * Make the page free.  If it is in the list, it is behind prev, which may be
 * the metapage, and leaves the list.
 */
static void
free_page(Relation rel, Buffer meta, Buffer prev, Buffer buffer)
{
	IpChange	change;
	ByteWriter *ops;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ops = ip_change_block(&change, meta, false);
	ip_op_undo_pages(ops, BufferGetBlockNumber(buffer), 0);
	if (BufferIsValid(prev))
	{
		if (prev != meta)
			ops = ip_change_block(&change, prev, false);
		ip_op_ring(ops, ip_lockset_link(buffer), 0);
	}
	ip_op_simple(ip_change_block(&change, buffer, true), IP_OP_INIT_FREE);
	ip_change_apply(&change);
}

/*
 * End the list at the page in the buffer.  Sets that were continued behind it
 * are lost.
 */
static void
end_list(Relation rel, Buffer buffer)
{
	bool		continued = ip_lockset_is_continued(BufferGetPage(buffer));
	IpChange	change;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	ip_op_ring(ip_change_block(&change, buffer, false), 0, 0);
	if (continued)
		ip_change_lost(&change);
	ip_change_apply(&change);
}

/*
 * Initialize the damaged page behind "before", which is locked exclusively, as
 * the list's last page.
 */
static void
renew_page(Relation rel, Buffer before, Buffer buffer)
{
	IpChange	change;

	ip_change_begin(&change, rel, IP_XLOG_LOCK, InvalidTransactionId);
	(void) ip_lockset_init_page(&change, buffer, before);
	ip_change_lost(&change);
	ip_change_apply(&change);
}

/*
 * Make the block that the page "before" leads to a lock page, if it is damaged.
 * Returns false if there is no such page.  Other processes may hold its lock,
 * and wait for the metapage.  So we do not wait for that lock: the next VACUUM
 * will repair the page.
 */
static bool
renew_block(LockList *l, Buffer before, BlockNumber block)
{
	Buffer		buffer = ip_rel_read_soft(l->rel, block, NULL);
	bool		damaged = true;

	if (BufferIsInvalid(buffer))
	{
		buffer = ReadBufferExtended(l->rel, MAIN_FORKNUM, block,
									RBM_ZERO_AND_LOCK, NULL);
		/* another process may have read it meanwhile */
		damaged = PageIsNew(BufferGetPage(buffer)) ||
			ip_lockset_is_damaged(block, BufferGetPage(buffer));
	}
	else if (ConditionalLockBuffer(buffer))
		damaged = ip_lockset_is_damaged(block, BufferGetPage(buffer));
	else
	{
		ReleaseBuffer(buffer);
		return true;
	}
	if (damaged)
	{
		l->problem = "page is unreadable or not a lock page";
		renew_page(l->rel, before, buffer);
	}
	UnlockReleaseBuffer(buffer);
	return damaged;
}

/*
 * Returns whether the block is in the list.  Lock: the metapage exclusively, so
 * that the list does not change.
 */
static bool
is_in_list(Relation rel, Buffer meta, BlockNumber block)
{
	Buffer		at = meta;
	bool		found = false;

	while (BufferIsValid(at) && !found)
	{
		Buffer		next = ip_lockset_next(rel, at, BUFFER_LOCK_SHARE);

		found = BufferIsValid(next) && BufferGetBlockNumber(next) == block;
		if (at != meta)
			UnlockReleaseBuffer(at);
		if (found)
			UnlockReleaseBuffer(next);
		at = next;
	}
	return found;
}

/*
 * Returns the page behind "before", locked exclusively, or InvalidBuffer if
 * there is none.  Repairs damage.  A page was a lock page if a page of the list
 * leads to it and the metapage lists it, unless it is a sound page of another
 * kind, or earlier in the list.
 */
static Buffer
look_behind(LockList *l, Buffer meta, Buffer before)
{
	BlockNumber block = ip_lockset_link(before);
	Page		page = BufferGetPage(meta);
	Buffer		buffer;

	if (block == 0 && !ip_lockset_is_continued(BufferGetPage(before)))
		return InvalidBuffer;
	l->bad = block;
	buffer = ip_lockset_next(l->rel, before, BUFFER_LOCK_EXCLUSIVE);
	if (BufferIsValid(buffer))
	{
		l->n++;
		l->problem = ip_page_problem(BufferGetPage(buffer), block);
		if (l->problem)
			renew_page(l->rel, before, buffer);
	}
	else if (block == IP_META_BLOCK || block == BufferGetBlockNumber(before) ||
			 !compat_has_block(l->rel, block) ||
			 !ip_runs_have(IpPageGetMeta(page)->runs, ip_runs_count(page),
						   block) ||
			 !renew_block(l, before, block))
	{
		l->problem = "list of lock pages leads nowhere, or back to itself";
		end_list(l->rel, before);
	}
	return buffer;
}

/*
 * Examine the page behind *prev, and free it, or move *prev on to it.  Returns
 * false if there is no such page.
 */
static bool
vacuum_next(LockList *l, BlockNumber *prev, BlockNumber *freed)
{
	Relation	rel = l->rel;
	Buffer		meta = ip_rel_lock_meta(rel, BUFFER_LOCK_EXCLUSIVE);
	Buffer		before;
	Buffer		buffer = InvalidBuffer;

	*freed = 0;
	l->problem = NULL;
	if (!BufferIsValid(meta))
		return false;
	before = *prev == IP_META_BLOCK ? meta :
		ip_lockset_open(rel, *prev, BUFFER_LOCK_EXCLUSIVE);
	if (BufferIsValid(before))
		buffer = look_behind(l, meta, before);
	if (BufferIsValid(buffer))
	{
		if (!ip_lockset_is_in_use(rel, buffer))
		{
			*freed = BufferGetBlockNumber(buffer);
			free_page(rel, meta, before, buffer);
		}
		else
			*prev = BufferGetBlockNumber(buffer);
		UnlockReleaseBuffer(buffer);
	}
	if (BufferIsValid(before) && before != meta)
		UnlockReleaseBuffer(before);
	UnlockReleaseBuffer(meta);
	return BufferIsValid(buffer);
}

/* A lock page, and its number. */
typedef struct Stray
{
	BlockNumber block;
	uint32		number;
} Stray;

/* Returns whether the lock page leads to the block. */
static bool
leads_to(Relation rel, BlockNumber from, BlockNumber block)
{
	Buffer		buffer = from == block ? InvalidBuffer :
		ip_lockset_open(rel, from, BUFFER_LOCK_SHARE);
	Buffer		next = InvalidBuffer;

	if (BufferIsValid(buffer) && ip_lockset_link(buffer) == block)
		next = ip_lockset_next(rel, buffer, BUFFER_LOCK_SHARE);
	if (BufferIsValid(next))
		UnlockReleaseBuffer(next);
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	return BufferIsValid(next);
}

/*
 * Free a lock page that is not in the list, because a page before it, or the
 * metapage, was damaged.  But it stays as long as another page leads to it that
 * is in use: otherwise it would not be known what was there.  before: n lock
 * pages, among them all those of lower numbers.
 */
static bool
free_stray(LockList *l, const Stray *before, BlockNumber n, BlockNumber block)
{
	Buffer		meta = ip_rel_lock_meta(l->rel, BUFFER_LOCK_EXCLUSIVE);
	Buffer		buffer = InvalidBuffer;
	bool		free;

	if (!BufferIsValid(meta))
		return false;
	free = !is_in_list(l->rel, meta, block);
	for (BlockNumber i = 0; i < n && free; i++)
		free = !leads_to(l->rel, before[i].block, block);
	if (free)
		buffer = ip_lockset_open(l->rel, block, BUFFER_LOCK_EXCLUSIVE);
	free = BufferIsValid(buffer) && !ip_lockset_is_in_use(l->rel, buffer);
	if (free)
		free_page(l->rel, meta, InvalidBuffer, buffer);
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	UnlockReleaseBuffer(meta);
	return free;
}

static void
note_freed(LockList *l, BlockNumber block)
{
	ip_space_record(l->rel, block, IpFreePageSpace(block));
	ip_space_note_free(l->lowest, block);
}

static int
compare_strays(const void *a, const void *b)
{
	uint32		x = ((const Stray *) a)->number;
	uint32		y = ((const Stray *) b)->number;

	return x < y ? -1 : x > y;
}

/*
 * Free lock pages that are not in the list: VACUUM has met more undo pages and
 * lock pages than are in rings and in the list.  They are freed in the order of
 * their numbers, so that a page that leads to another one is freed before it.
 */
static void
free_strays(LockList *l, const BlockNumber *pages, BlockNumber npages)
{
	Stray	   *strays = MemoryContextAllocHuge(CurrentMemoryContext,
												npages * sizeof(Stray));
	BlockNumber n = 0;

	for (BlockNumber i = 0; i < npages; i++)
	{
		Buffer		buffer;

		compat_vacuum_delay_point(false);
		buffer = pages[i] == IP_META_BLOCK ? InvalidBuffer :
			ip_lockset_open(l->rel, pages[i], BUFFER_LOCK_SHARE);
		if (!BufferIsValid(buffer))
			continue;
		strays[n++] = (Stray)
		{
			pages[i], IpPageGetSpecial(BufferGetPage(buffer))->w.number
		};
		UnlockReleaseBuffer(buffer);
	}
	qsort(strays, n, sizeof(Stray), compare_strays);
	for (BlockNumber i = 0; i < n; i++)
	{
		compat_vacuum_delay_point(false);
		if (free_stray(l, strays, i, strays[i].block))
			note_freed(l, strays[i].block);
	}
	pfree(strays);
}

void
ip_lockset_vacuum(Relation rel, const BlockNumber *pages, BlockNumber npages,
				  BlockNumber nundo, IpFreeBlocks *lowest)
{
	LockList	l = {.rel = rel,.lowest = lowest};
	BlockNumber prev = IP_META_BLOCK;
	BlockNumber freed;
	bool		more;

	Assert(ip_page_none_is_locked());
	do
	{
		compat_vacuum_delay_point(false);
		more = vacuum_next(&l, &prev, &freed);
		if (l.problem)
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("repaired list of lock pages of relation \"%s\" at block %u: %s",
							RelationGetRelationName(rel), l.bad, l.problem)));
		if (freed != 0)
		{
			note_freed(&l, freed);
			CompatInjectionPoint("inplace-lock-page-freed");
		}
	} while (more);
	if (npages > nundo + l.n)
		free_strays(&l, pages, npages);
}
