/*-------------------------------------------------------------------------
 * pb_parallel.c
 *	  The position of a scan that several processes share.
 *
 * One process at a time has seized the scan.  It reads a page, and publishes
 * where the scan continues before it returns the page's rows.  A process that
 * fails in between ends the whole query, so the others do not wait for it.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

#include "pb_parallel.h"

typedef enum State
{
	IS_FREE,
	IS_SEIZED,
	IS_OVER
} State;

typedef struct Shared
{
	slock_t		mutex;
	State		state;
	PbPlace		place;
	ConditionVariable changed;
} Shared;

static Shared *
get_shared(IndexScanDesc scan)
{
	ParallelIndexScanDesc pscan = scan->parallel_scan;

	return (Shared *) ((char *) pscan + CompatParallelOffset(pscan));
}

Size
pb_parallel_size(COMPAT_ESTIMATE_PARALLEL_PARAMETERS)
{
	return sizeof(Shared);
}

void
pb_parallel_init(void *target)
{
	Shared	   *shared = target;

	memset(shared, 0, sizeof(*shared));
	SpinLockInit(&shared->mutex);
	ConditionVariableInit(&shared->changed);
	shared->state = IS_FREE;
	shared->place.start = true;
}

/* No process is scanning. */
void
pb_parallel_restart(IndexScanDesc scan)
{
	Shared	   *shared = get_shared(scan);

	SpinLockAcquire(&shared->mutex);
	shared->state = IS_FREE;
	shared->place.start = true;
	SpinLockRelease(&shared->mutex);
}

/*
 * Wait until no other process has seized the scan.  Returns false if the scan
 * is over.
 */
bool
pb_parallel_seize(IndexScanDesc scan, PbPlace *place)
{
	Shared	   *shared = get_shared(scan);
	State		state;

	for (;;)
	{
		SpinLockAcquire(&shared->mutex);
		state = shared->state;
		if (state == IS_FREE)
		{
			*place = shared->place;
			shared->state = IS_SEIZED;
		}
		SpinLockRelease(&shared->mutex);
		if (state != IS_SEIZED)
			break;
		ConditionVariableSleep(&shared->changed, PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
	return state == IS_FREE;
}

void
pb_parallel_release(IndexScanDesc scan, const PbPlace *place)
{
	Shared	   *shared = get_shared(scan);

	SpinLockAcquire(&shared->mutex);
	Assert(shared->state == IS_SEIZED);
	shared->place = *place;
	shared->state = IS_FREE;
	SpinLockRelease(&shared->mutex);
	ConditionVariableSignal(&shared->changed);
}

/* There is no further page. */
void
pb_parallel_end(IndexScanDesc scan)
{
	Shared	   *shared = get_shared(scan);

	SpinLockAcquire(&shared->mutex);
	/* seized by this process; no other one waits for a place */
	Assert(shared->state == IS_SEIZED);
	shared->state = IS_OVER;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->changed);
}
