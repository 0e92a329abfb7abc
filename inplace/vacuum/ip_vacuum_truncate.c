/*-------------------------------------------------------------------------
 * ip_vacuum_truncate.c
 *	  VACUUM cuts off free pages at the end of the file.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "storage/latch.h"
#include "utils/wait_event.h"

#include "ip_page.h"
#include "ip_space.h"
#include "ip_vacuum_truncate.h"

/*
 * Truncation must be worth an exclusive lock: it must free this number of
 * blocks, or the table's blocks divided by this.
 */
#define TRUNCATE_MIN			1000
#define TRUNCATE_FRACTION		16
#define TRUNCATE_TRIES			100
#define TRUNCATE_PAUSE			50L /* ms */
#define TRUNCATE_UNDISTURBED	20.0	/* ms */

static bool
lock_for_truncation(IpVacuum *v)
{
	for (int tries = 0; tries < TRUNCATE_TRIES; tries++)
	{
		CHECK_FOR_INTERRUPTS();
		if (ConditionalLockRelation(v->rel, AccessExclusiveLock))
			return true;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 TRUNCATE_PAUSE, WAIT_EVENT_VACUUM_TRUNCATE);
		ResetLatch(MyLatch);
	}
	ereport(v->elevel,
			(errmsg("\"%s\": stopping truncate due to conflicting lock request",
					RelationGetRelationName(v->rel))));
	return false;
}

/*
 * Returns whether somebody waits for the table, which we have locked since
 * "since".  Returns false while that is a short time.
 */
static bool
others_wait(IpVacuum *v, instr_time since)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, since);
	return INSTR_TIME_GET_MILLISEC(now) >= TRUNCATE_UNDISTURBED &&
		LockHasWaitersRelation(v->rel, AccessExclusiveLock);
}

/*
 * Returns whether nobody needs the page.  The metapage is not needed either if
 * there is no page of undo.
 */
static bool
page_is_unused(IpVacuum *v, BlockNumber block, Page page)
{
	switch (ip_page_kind(v->rel, block, page))
	{
		case IP_PAGE_META:
			return block == IP_META_BLOCK && ip_page_meta_is_idle(page);
		case IP_PAGE_DATA:
			return PageGetMaxOffsetNumber(page) < IpFirstOffset(block);
		case IP_PAGE_UNDO:
		case IP_PAGE_LOCK:
			return false;
		case IP_PAGE_FREE:
			return true;
	}

	/*
	 * a new page: if it is cut off, the file may grow again, and the block
	 * may get rows
	 */
	return !ip_space_is_lost_undo(v->rel, block, page);
}

/*
 * Returns the block from which on the file consists of free pages.  With
 * waited, the table is locked against all others: stops and sets *waited when
 * one of them waits.
 */
static BlockNumber
first_of_free_tail(IpVacuum *v, bool *waited)
{
	BlockNumber block = v->nblocks;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);

	while (block > 0)
	{
		Buffer		buffer;
		bool		unused;

		CHECK_FOR_INTERRUPTS();
		if (waited && block % 32 == 0 && others_wait(v, start))
		{
			*waited = true;
			break;
		}
		buffer = ReadBufferExtended(v->rel, MAIN_FORKNUM, block - 1, RBM_NORMAL,
									v->strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		unused = page_is_unused(v, block - 1, BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
		if (!unused)
			break;
		block--;
	}
	return block;
}

/*
 * Cut off what is free, or as much as there was time for before somebody waited
 * for the table.  Returns true if more may be possible.
 */
static bool
truncate_some(IpVacuum *v)
{
	bool		waited = false;
	BlockNumber block;

	if (!lock_for_truncation(v))
		return false;
	block = RelationGetNumberOfBlocks(v->rel) == v->nblocks ?
		first_of_free_tail(v, &waited) : v->nblocks;
	waited = waited && block < v->nblocks;
	if (block < v->nblocks)
	{
		RelationTruncate(v->rel, block);
		v->n.truncated += v->nblocks - block;
		ereport(v->elevel,
				(errmsg("table \"%s\": truncated %u to %u pages",
						RelationGetRelationName(v->rel), v->nblocks, block)));
		v->nblocks = block;
	}
	UnlockRelation(v->rel, AccessExclusiveLock);
	return waited;
}

void
ip_vacuum_truncate(IpVacuum *v)
{
	BlockNumber possible;

	v->nblocks = RelationGetNumberOfBlocks(v->rel);
	if (!v->do_truncate || CompatSnapshotsGrowTooOld())
		return;
	possible = v->nblocks - first_of_free_tail(v, NULL);
	if (possible == 0 ||
		(possible < TRUNCATE_MIN && possible < v->nblocks / TRUNCATE_FRACTION))
		return;
	pgstat_progress_update_param(PROGRESS_VACUUM_PHASE,
								 PROGRESS_VACUUM_PHASE_TRUNCATE);
	while (truncate_some(v))
		;
}
