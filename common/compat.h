/*-------------------------------------------------------------------------
 * compat.h
 *	  What differs between PostgreSQL's versions.
 *
 * Only files named compat* examine the version.  The names here are those of
 * the newest version where that is possible, and Compat* elsewhere.  The code
 * uses nothing that the first minor releases of a version lack.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_COMPAT_H
#define PG_INPLACE_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "pg_inplace supports PostgreSQL 15 to 19"
#endif

/* the version in META.json */
#define PG_INPLACE_VERSION		"1.0.0"

/* 18 shows a module's name and version: pg_get_loaded_modules() */
#if PG_VERSION_NUM >= 180000
#define COMPAT_MODULE_MAGIC(module) \
	PG_MODULE_MAGIC_EXT(.name = module, .version = PG_INPLACE_VERSION)
#else
#define COMPAT_MODULE_MAGIC(module) PG_MODULE_MAGIC
#endif

/*
 * 15 defines it as empty outside of Windows, but symbols are hidden by default
 */
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))

/* 18 puts it in front of a declaration, not behind */
#if PG_VERSION_NUM < 180000
#define pg_noreturn				__attribute__((noreturn))
#endif

#include "access/genam.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/twophase.h"
#include "access/xlog_internal.h"
#include "access/xloginsert.h"
#include "access/xlogutils.h"
#include "catalog/storage.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/smgr.h"
#include "storage/standby.h"
#include "storage/buf_internals.h"
#if PG_VERSION_NUM >= 190000
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "replication/logicalworker.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "utils/injection_point.h"
#endif
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
#if PG_VERSION_NUM < 170000
#include "storage/sinvaladt.h"
#endif

/*
 * A place where tests let a session wait, on servers that were made for it;
 * nothing elsewhere.  It must not be in a critical section: the first visit
 * allocates memory.  A session that waits there with a page's content lock
 * cannot be cancelled: tests must wake it up.
 */
#if PG_VERSION_NUM < 170000
#define CompatInjectionPoint(name) ((void) 0)
#elif PG_VERSION_NUM < 180000
#define CompatInjectionPoint(name) INJECTION_POINT(name)
#else
#define CompatInjectionPoint(name) INJECTION_POINT(name, NULL)
#endif

/* ---- files ------------------------------------------------------------- */

#if PG_VERSION_NUM < 160000
typedef RelFileNode RelFileLocator;

typedef Oid RelFileNumber;

#define CompatLocatorDatabase(locator) ((locator).dbNode)
#define CompatLocator(rel) ((rel)->rd_node)
#define CompatRelNumber(rel)	((rel)->rd_node.relNode)
/* The current transaction has made the file, and may truncate it in place. */
#define CompatFileIsNew(rel) \
	((rel)->rd_createSubid != InvalidSubTransactionId || \
	 (rel)->rd_firstRelfilenodeSubid != InvalidSubTransactionId)
#define relation_set_new_filelocator relation_set_new_filenode
#else
#define CompatLocatorDatabase(locator) ((locator).dbOid)
#define CompatLocator(rel) ((rel)->rd_locator)
#define CompatRelNumber(rel)	((rel)->rd_locator.relNumber)
#define CompatFileIsNew(rel) \
	((rel)->rd_createSubid != InvalidSubTransactionId || \
	 (rel)->rd_firstRelfilelocatorSubid != InvalidSubTransactionId)
#endif

/*
 * True if the relation has this block.  The test is cheap unless the block is
 * near the end.  The storage manager's cached size may be too low, but not too
 * high: a backend that truncates a relation invalidates all caches before it
 * releases its lock.
 */
static inline bool
compat_has_block(Relation rel, BlockNumber block)
{
	BlockNumber cached =
		RelationGetSmgr(rel)->smgr_cached_nblocks[MAIN_FORKNUM];

	return (cached != InvalidBlockNumber && block < cached) ||
		block < RelationGetNumberOfBlocks(rel);
}

/* A page to read a file into, also by direct I/O. */
#if PG_VERSION_NUM < 160000
typedef PGAlignedBlock CompatIOBlock;
#else
typedef PGIOAlignedBlock CompatIOBlock;
#endif

/* True if the server would accept this page, which was read from a file. */
static inline bool
compat_page_is_verified(CompatIOBlock *page, BlockNumber block)
{
#if PG_VERSION_NUM < 180000
	return PageIsVerifiedExtended((Page) page->data, block, 0);
#else
	return PageIsVerified((Page) page->data, block,
						  ignore_checksum_failure ?
						  PIV_IGNORE_CHECKSUM_FAILURE : 0,
						  NULL);
#endif
}

/* ReadRecentBuffer leaves statistics to its caller. */
static inline void
CompatCountBufferHit(Relation rel)
{
#if PG_VERSION_NUM >= 160000
	IOObject	object = RelationUsesLocalBuffers(rel) ?
		IOOBJECT_TEMP_RELATION : IOOBJECT_RELATION;
#endif

	pgstat_count_buffer_read(rel);
	pgstat_count_buffer_hit(rel);
#if PG_VERSION_NUM >= 180000
	pgstat_count_io_op(object, IOCONTEXT_NORMAL, IOOP_HIT, 1, 0);
#elif PG_VERSION_NUM >= 160000
	pgstat_count_io_op(object, IOCONTEXT_NORMAL, IOOP_HIT);
#endif
}

/* ---- processes and transactions ---------------------------------------- */

#if PG_VERSION_NUM < 170000
#define CompatMyProcNo			(MyProc->pgprocno)
#define CompatMyLocalXid		(MyProc->lxid)
#define TransamVariables		ShmemVariableCache
#define AmAutoVacuumWorkerProcess() IsAutoVacuumWorkerProcess()
/* True if old snapshots may be ignored, and must then notice changed pages. */
#define CompatSnapshotsGrowTooOld() (old_snapshot_threshold >= 0)
#else
#define CompatMyProcNo			MyProcNumber
#define CompatMyLocalXid		(MyProc->vxid.lxid)
#define CompatSnapshotsGrowTooOld() false
#endif

/*
 * The xid of a transaction that is running or prepared, if it has one.  *more
 * is set if two prepared transactions may share the vxid.
 */
static inline TransactionId
compat_vxid_xid(VirtualTransactionId vxid, bool *more)
{
	PGPROC	   *proc;

	*more = false;
	if (VirtualTransactionIdIsRecoveredPreparedXact(vxid))
		return vxid.localTransactionId;
#if PG_VERSION_NUM < 170000
	proc = BackendIdGetProc(vxid.backendId);
	if (proc != NULL && proc->lxid == vxid.localTransactionId)
		return proc->xid;
#else
	proc = ProcNumberGetProc(vxid.procNumber);
	if (proc != NULL && proc->vxid.lxid == vxid.localTransactionId)
		return proc->xid;
#endif
	return TwoPhaseGetXidByVirtualXID(vxid, more);
}

/* ---- buffers ----------------------------------------------------------- */

/*
 * True if this backend holds the content lock of the shared buffer; with
 * exclusive, only if it holds it in that mode.
 */
static inline bool
compat_buffer_is_locked(Buffer buffer, bool exclusive)
{
#if PG_VERSION_NUM < 190000
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);
	LWLock	   *lock = BufferDescriptorGetContentLock(desc);

	return exclusive ? LWLockHeldByMeInMode(lock, LW_EXCLUSIVE) :
		LWLockHeldByMe(lock);
#else
	return exclusive ? BufferIsLockedByMeInMode(buffer, BUFFER_LOCK_EXCLUSIVE) :
		BufferIsLockedByMe(buffer);
#endif
}

/*
 * ReadRecentBuffer, without its leaked pin: 19's leaves a pin behind if this
 * backend has pinned the buffer for a read ahead that has not finished.  A
 * valid buffer that this backend has pinned stays pinned.
 */
static inline bool
compat_read_recent(Relation rel, BlockNumber block, Buffer buffer)
{
#if PG_VERSION_NUM >= 190000
	if (!BufferIsLocal(buffer) &&
		!(pg_atomic_read_u64(&GetBufferDescriptor(buffer - 1)->state) &
		  BM_VALID))
		return false;
#endif
	return ReadRecentBuffer(CompatLocator(rel), MAIN_FORKNUM, block, buffer);
}

/*
 * Hints change a page that is locked for reading.  From 19 on one backend at a
 * time may set them, and not while the page is written.  CompatBeginHint asks
 * for permission before the first hint; if it returns false, the page must not
 * be changed.
 */
#if PG_VERSION_NUM < 190000
#define CompatBeginHint(buffer) true
#define CompatEndHint(buffer)	MarkBufferDirtyHint(buffer, true)
#else
#define CompatBeginHint(buffer) BufferBeginSetHintBits(buffer)
#define CompatEndHint(buffer)	BufferFinishSetHintBits(buffer, true, true)
#endif

/*
 * Clear both bits of a block in the visibility map, whose page is pinned.
 * Core locks that page exclusively, but from 19 on leaves the lock to its
 * caller, with unchanged parameters.  Needs access/visibilitymap.h.
 */
#if PG_VERSION_NUM < 190000
#define CompatMapClear(rel, block, map) \
	visibilitymap_clear(rel, block, map, VISIBILITYMAP_VALID_BITS)
#else
#define CompatMapClear(rel, block, map) \
	(LockBuffer(map, BUFFER_LOCK_EXCLUSIVE), \
	 visibilitymap_clear(rel, block, map, VISIBILITYMAP_VALID_BITS), \
	 LockBuffer(map, BUFFER_LOCK_UNLOCK))
#endif

/* ---- descriptors ------------------------------------------------------- */

/* To be called after the last TupleDescInitEntry. */
#if PG_VERSION_NUM < 190000
#define CompatFinalizeDesc(desc) ((void) 0)
#else
#define CompatFinalizeDesc(desc) TupleDescFinalize(desc)
#endif

/* ---- snapshots --------------------------------------------------------- */

/* 19 lets the caller choose whether the horizon may be recomputed. */
#if PG_VERSION_NUM < 190000
#define CompatIsRemovableFullXid(state, fxid) \
	GlobalVisTestIsRemovableFullXid(state, fxid)
#else
#define CompatIsRemovableFullXid(state, fxid) \
	GlobalVisTestIsRemovableFullXid(state, fxid, true)
#endif

/* ---- slots ------------------------------------------------------------- */

/*
 * 17 asks a slot whether the current transaction made its row, which
 * getsysattr does not return for some slots
 */
#if PG_VERSION_NUM < 170000
#define COMPAT_SLOT_IS_CURRENT_XACT_TUPLE(function)
#else
#define COMPAT_SLOT_IS_CURRENT_XACT_TUPLE(function) \
	.is_current_xact_tuple = function,
#endif

/* copy_minimal_tuple: 18 wants "extra" bytes before the tuple */
#if PG_VERSION_NUM < 180000
#define COMPAT_EXTRA_PARAMETER
#define CompatFormMinimalTuple(desc, values, isnull, extra) \
	heap_form_minimal_tuple(desc, values, isnull)
#else
#define COMPAT_EXTRA_PARAMETER	, Size extra
#define CompatFormMinimalTuple(desc, values, isnull, extra) \
	heap_form_minimal_tuple(desc, values, isnull, extra)
#endif

/* ---- changes (see also inplace/compat_table.c) ------------------------- */

/*
 * Options of an insertion, as callbacks get them.  19 also has options of an
 * update and of a deletion.
 */
#if PG_VERSION_NUM < 190000
typedef int CompatOptions;

#define TABLE_DELETE_CHANGING_PARTITION (1 << 0)
#define TABLE_DELETE_NO_LOGICAL (1 << 1)
#define TABLE_UPDATE_NO_LOGICAL (1 << 0)
#else
typedef uint32 CompatOptions;
#endif

/*
 * 16 distinguishes columns that only summarizing indexes (BRIN) use.  An
 * update of these columns can be made in place; it is then inserted into such
 * indexes only.
 */
#if PG_VERSION_NUM < 160000
typedef bool CompatUpdateIndexes;

#define COMPAT_TU_NONE			false
#define COMPAT_TU_SUMMARIZING	false
#define COMPAT_TU_ALL			true
#define INDEX_ATTR_BITMAP_HOT_BLOCKING INDEX_ATTR_BITMAP_ALL
#define CompatSummarizedColumns(rel) ((Bitmapset *) NULL)
#define CompatIsSummarizing(index) false
#define CompatCountUpdate(rel, hot, newpage) \
	((void) (newpage), pgstat_count_heap_update(rel, hot))
#define CompatDeadTuples(entry) ((entry)->n_dead_tuples)
#define CompatVacuums(entry) \
	((entry)->vacuum_count + (entry)->autovac_vacuum_count)
#define CompatPendingDead(rel) \
	((rel)->pgstat_info->t_counts.t_delta_dead_tuples)
#else
typedef TU_UpdateIndexes CompatUpdateIndexes;

#define COMPAT_TU_NONE			TU_None
#define COMPAT_TU_SUMMARIZING	TU_Summarizing
#define COMPAT_TU_ALL			TU_All
#define CompatSummarizedColumns(rel) \
	RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_SUMMARIZED)
#define CompatIsSummarizing(index) ((index)->rd_indam->amsummarizing)
#define CompatCountUpdate(rel, hot, newpage) \
	pgstat_count_heap_update(rel, hot, newpage)
#define CompatDeadTuples(entry) ((entry)->dead_tuples)
#define CompatVacuums(entry) ((entry)->vacuum_count + (entry)->autovacuum_count)
#define CompatPendingDead(rel) ((rel)->pgstat_info->counts.delta_dead_tuples)
#endif

/* INSERT ... ON CONFLICT DO SELECT */
#define COMPAT_HAS_DO_SELECT	(PG_VERSION_NUM >= 190000)

/* A table's cumulative statistics, or NULL. */
#if PG_VERSION_NUM < 190000
#define CompatTableStats(rel) \
	pgstat_fetch_stat_tabentry_ext((rel)->rd_rel->relisshared, \
								   RelationGetRelid(rel))
#else
#define CompatTableStats(rel) \
	pgstat_fetch_stat_tabentry_ext((rel)->rd_rel->relisshared, \
								   RelationGetRelid(rel), NULL)
#endif

/* ---- scans (see also compat_reads.h) ----------------------------------- */

#if PG_VERSION_NUM < 180000
#define CompatScanMinTid(scan)	((scan)->rs_mintid)
#define CompatScanMaxTid(scan)	((scan)->rs_maxtid)
#else
#define CompatScanMinTid(scan)	((scan)->st.tidrange.rs_mintid)
#define CompatScanMaxTid(scan)	((scan)->st.tidrange.rs_maxtid)
#endif

/* 18 can count searches; 19 takes the flags of a scan */
#if PG_VERSION_NUM < 180000
#define CompatIndexBeginScan(heap, index, snapshot, nkeys, norderbys) \
	index_beginscan(heap, index, snapshot, nkeys, norderbys)
#elif PG_VERSION_NUM < 190000
#define CompatIndexBeginScan(heap, index, snapshot, nkeys, norderbys) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, norderbys)
#else
#define CompatIndexBeginScan(heap, index, snapshot, nkeys, norderbys) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, norderbys, SO_NONE)
#endif
#if PG_VERSION_NUM < 190000
#define CompatBeginParallelScan(rel, pscan) table_beginscan_parallel(rel, pscan)
#else
#define CompatBeginParallelScan(rel, pscan) \
	table_beginscan_parallel(rel, pscan, SO_NONE)
#endif

/* 19's flags tell also the index access method what the scan may do */
#if PG_VERSION_NUM < 190000
#define CompatIndexFetchInit(fetch, table, flag_bits) \
	((void) (flag_bits), (fetch)->rel = (table))
#else
#define CompatIndexFetchInit(fetch, table, flag_bits) \
	((fetch)->rel = (table), (fetch)->flags = (flag_bits))
#endif

/*
 * TID ranges are scanned in parallel from 19 on.  start and n are
 * InvalidBlockNumber if the whole table is scanned.
 */
#if PG_VERSION_NUM < 190000
#define CompatParallelStart(rel, worker, pbscan, start, n) \
	((void) (start), (void) (n), \
	 table_block_parallelscan_startblock_init(rel, worker, pbscan))
#else
#define CompatParallelStart(rel, worker, pbscan, start, n) \
	table_block_parallelscan_startblock_init(rel, worker, pbscan, start, n)
#endif

/*
 * An apply worker of 19 that finds no row searches all versions for one that
 * was deleted, if the subscription keeps these (retain_dead_tuples).  It takes
 * the slots for heap's, with a buffer.
 */
#if PG_VERSION_NUM < 190000
#define CompatLooksForDeleted(snapshot) false
#else
#define CompatLooksForDeleted(snapshot) \
	(unlikely((snapshot)->snapshot_type == SNAPSHOT_ANY) && IsLogicalWorker())
#endif

/* the datum is by value, so it makes no difference whether it is a copy */
#if PG_VERSION_NUM < 160000
#define CompatSortGetInt64(sort, value, isnull) \
	tuplesort_getdatum(sort, true, value, isnull, NULL)
#else
#define CompatSortGetInt64(sort, value, isnull) \
	tuplesort_getdatum(sort, true, false, value, isnull, NULL)
#endif

/* ---- extension --------------------------------------------------------- */

/*
 * Extend rel by up to n pages of zeros.  The result is the first of them,
 * pinned and exclusively locked; *extended is their number.  15 adds one page
 * at a time.
 */
#if PG_VERSION_NUM < 160000
static inline Buffer
compat_extend(Relation rel, BufferAccessStrategy strategy, uint32 n,
			  uint32 *extended)
{
	bool		lock = !RELATION_IS_LOCAL(rel);
	Buffer		buffer;

	if (lock)
		LockRelationForExtension(rel, ExclusiveLock);
	buffer = ReadBufferExtended(rel, MAIN_FORKNUM, P_NEW, RBM_ZERO_AND_LOCK,
								strategy);
	if (lock)
		UnlockRelationForExtension(rel, ExclusiveLock);
	*extended = 1;
	return buffer;
}
#else
#define COMPAT_MAX_EXTEND		16

static inline Buffer
compat_extend(Relation rel, BufferAccessStrategy strategy, uint32 n,
			  uint32 *extended)
{
	Buffer		buffers[COMPAT_MAX_EXTEND];

	(void) ExtendBufferedRelBy(BMR_REL(rel), MAIN_FORKNUM, strategy,
							   EB_LOCK_FIRST | (RELATION_IS_LOCAL(rel) ?
												EB_SKIP_EXTENSION_LOCK : 0),
							   Min(n, COMPAT_MAX_EXTEND), buffers, extended);
	for (uint32 i = 1; i < *extended; i++)
		ReleaseBuffer(buffers[i]);
	return buffers[0];
}
#endif

/* ---- VACUUM ------------------------------------------------------------ */

#if PG_VERSION_NUM < 160000
struct VacuumCutoffs
{
	TransactionId relfrozenxid;
	MultiXactId relminmxid;
	TransactionId OldestXmin;
	MultiXactId OldestMxact;
	TransactionId FreezeLimit;
};

static inline void
vacuum_get_cutoffs(Relation rel, const VacuumParams *p, struct VacuumCutoffs *c)
{
	MultiXactId multi_cutoff;

	c->relfrozenxid = rel->rd_rel->relfrozenxid;
	c->relminmxid = rel->rd_rel->relminmxid;
	(void) vacuum_set_xid_limits(rel, p->freeze_min_age, p->freeze_table_age,
								 p->multixact_freeze_min_age,
								 p->multixact_freeze_table_age, &c->OldestXmin,
								 &c->OldestMxact, &c->FreezeLimit,
								 &multi_cutoff);
}

#define CompatFailsafeCheck(cutoffs) \
	vacuum_xid_failsafe_check((cutoffs)->relfrozenxid, (cutoffs)->relminmxid)
#define CompatSetIvHeapRel(iv, h) ((void) 0)
#else
#define CompatFailsafeCheck(cutoffs) vacuum_xid_failsafe_check(cutoffs)
#define CompatSetIvHeapRel(iv, h) ((iv)->heaprel = (h))
#endif

/*
 * Before 19 an index tests whether the process is an autovacuum worker.  That
 * is false in autovacuum's parallel workers.
 */
#if PG_VERSION_NUM < 190000
#define CompatSetIvAutovacuum(iv, autovacuum) ((void) (autovacuum))
#else
#define CompatSetIvAutovacuum(iv, autovacuum) \
	((iv)->is_autovacuum = (autovacuum))
#endif

/*
 * With old_snapshot_threshold a cutoff may be newer than what snapshots see,
 * because heap then examines a page's LSN, and raises "snapshot too old".
 * Rows that change in place have no such way out: the older horizon counts.
 */
#if PG_VERSION_NUM < 170000
static inline TransactionId
CompatHorizon(Relation rel, TransactionId cutoff)
{
	TransactionId oldest = GetOldestNonRemovableTransactionId(rel);

	return TransactionIdPrecedes(oldest, cutoff) ? oldest : cutoff;
}
#else
#define CompatHorizon(rel, cutoff) (cutoff)
#endif

static inline void
compat_vacuum_cutoffs(Relation rel, const VacuumParams *p,
					  struct VacuumCutoffs *c)
{
	vacuum_get_cutoffs(rel, p, c);
	c->OldestXmin = CompatHorizon(rel, c->OldestXmin);
}

/* the duration from which on autovacuum logs its actions */
#if PG_VERSION_NUM < 190000
#define CompatLogDuration(params) ((params)->log_min_duration)
#else
#define CompatLogDuration(params) ((params)->log_vacuum_min_duration)
#endif

#if PG_VERSION_NUM < 180000
#define CompatReportVacuum(rel, live, dead, start) \
	pgstat_report_vacuum(RelationGetRelid(rel), (rel)->rd_rel->relisshared, \
						 live, dead)
#elif PG_VERSION_NUM < 190000
#define CompatReportVacuum(rel, live, dead, start) \
	pgstat_report_vacuum(RelationGetRelid(rel), (rel)->rd_rel->relisshared, \
						 live, dead, start)
#else
#define CompatReportVacuum(rel, live, dead, start) \
	pgstat_report_vacuum(rel, live, dead, start)
#endif

#if PG_VERSION_NUM < 180000
#define compat_vacuum_delay_point(is_analyze) vacuum_delay_point()
#define CompatVacUpdateRelstats(rel, np, nt, nvis, nfrozen, hasidx, fxid, mm, \
								fu, mu, outer) \
	vac_update_relstats(rel, np, nt, nvis, hasidx, fxid, mm, fu, mu, outer)
#else
#define compat_vacuum_delay_point(is_analyze) vacuum_delay_point(is_analyze)
#define CompatVacUpdateRelstats(rel, np, nt, nvis, nfrozen, hasidx, fxid, mm, \
								fu, mu, outer) \
	vac_update_relstats(rel, np, nt, nvis, nfrozen, hasidx, fxid, mm, fu, mu, \
						outer)
#endif

/*
 * A parallel worker's buffer ring is as large as the leader's, which may have
 * a given size (BUFFER_USAGE_LIMIT) from 16 on; 0 means no ring.  Also from 16
 * on VACUUM's cost-based delay uses a copy of the settings.
 */
#if PG_VERSION_NUM < 160000
#define CompatRingBuffers(strategy) 0
#define CompatVacuumRing(nbuffers) GetAccessStrategy(BAS_VACUUM)
#define CompatWorkerCosts()		(VacuumCostActive = (VacuumCostDelay > 0))
#define CompatFailsafeBegins()	((void) 0)
#else
#define CompatRingBuffers(strategy) GetAccessStrategyBufferCount(strategy)
#define CompatVacuumRing(nbuffers) \
	GetAccessStrategyWithSize(BAS_VACUUM, (nbuffers) * (BLCKSZ / 1024))
#define CompatWorkerCosts()		VacuumUpdateCosts()
/* a reload of the configuration must not restore the delay */
#define CompatFailsafeBegins()	(VacuumFailsafeActive = true)
#endif

/*
 * Autovacuum has parallel workers from 19 on.  They use autovacuum's cost
 * parameters, which are not the settings that a worker has, and autovacuum's
 * own setting limits their number.
 */
typedef struct CompatCosts
{
	bool		autovacuum;
	double		delay;
	int			limit;
} CompatCosts;

#if PG_VERSION_NUM < 190000
#define CompatMaxVacuumWorkers() max_parallel_maintenance_workers
#define CompatGetCosts(costs)	((void) (costs))
#define CompatTakeCosts(costs)	((void) (costs), CompatWorkerCosts())
#else
#define CompatMaxVacuumWorkers() \
	(AmAutoVacuumWorkerProcess() ? \
	 autovacuum_max_parallel_workers : max_parallel_maintenance_workers)

static inline void
CompatGetCosts(CompatCosts *costs)
{
	costs->autovacuum = AmAutoVacuumWorkerProcess();
	costs->delay = vacuum_cost_delay;
	costs->limit = vacuum_cost_limit;
}

static inline void
CompatTakeCosts(const CompatCosts *costs)
{
	if (costs->autovacuum)
	{
		VacuumCostDelay = costs->delay;
		VacuumCostLimit = costs->limit;
	}
	CompatWorkerCosts();
}
#endif

/*
 * 18 shows how long VACUUM has slept.  A worker reports the remaining time at
 * its end.
 */
#if PG_VERSION_NUM < 180000
#define CompatReportWorkerDelay() ((void) 0)
#else
#define CompatReportWorkerDelay() \
	(track_cost_delay_timing ? \
	 pgstat_progress_parallel_incr_param(PROGRESS_VACUUM_DELAY_TIME, \
										 parallel_vacuum_worker_delay_ns) : \
	 (void) 0)
#endif

/*
 * pg_stat_progress_vacuum: 17 has bytes in place of a number of TIDs, and
 * shows indexes
 */
#if PG_VERSION_NUM < 170000
#define COMPAT_BYTES_PER_DEAD_TID 6

static inline void
compat_progress_dead_limit(Size bytes)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_MAX_DEAD_TUPLES,
								 bytes / COMPAT_BYTES_PER_DEAD_TID);
}

static inline void
compat_progress_dead(Size bytes, uint64 tids)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_DEAD_TUPLES, tids);
}

static inline void
compat_progress_indexes(int n)
{
}

static inline void
compat_progress_index_done(void)
{
}
#else
static inline void
compat_progress_dead_limit(Size bytes)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_MAX_DEAD_TUPLE_BYTES, bytes);
}

static inline void
compat_progress_dead(Size bytes, uint64 tids)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_DEAD_TUPLE_BYTES, bytes);
	pgstat_progress_update_param(PROGRESS_VACUUM_NUM_DEAD_ITEM_IDS, tids);
}

/* Report the number of indexes to process; 0 ends the phase. */
static inline void
compat_progress_indexes(int n)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_INDEXES_TOTAL, n);
	pgstat_progress_update_param(PROGRESS_VACUUM_INDEXES_PROCESSED, 0);
}

/* Count a processed index; a parallel worker may call it, too. */
static inline void
compat_progress_index_done(void)
{
	pgstat_progress_parallel_incr_param(PROGRESS_VACUUM_INDEXES_PROCESSED, 1);
}
#endif

/*
 * 19 shows why VACUUM runs, and whether the failsafe is active.  inplace has
 * nothing like an "aggressive" VACUUM.
 */
#if PG_VERSION_NUM < 190000
static inline void
compat_progress_began(bool is_wraparound)
{
}

static inline void
compat_progress_failsafe(void)
{
}
#else
static inline void
compat_progress_began(bool is_wraparound)
{
	int			started_by = PROGRESS_VACUUM_STARTED_BY_MANUAL;

	if (AmAutoVacuumWorkerProcess())
		started_by = is_wraparound ?
			PROGRESS_VACUUM_STARTED_BY_AUTOVACUUM_WRAPAROUND :
			PROGRESS_VACUUM_STARTED_BY_AUTOVACUUM;
	pgstat_progress_update_param(PROGRESS_VACUUM_STARTED_BY, started_by);
	pgstat_progress_update_param(PROGRESS_VACUUM_MODE,
								 PROGRESS_VACUUM_MODE_NORMAL);
}

static inline void
compat_progress_failsafe(void)
{
	pgstat_progress_update_param(PROGRESS_VACUUM_MODE,
								 PROGRESS_VACUUM_MODE_FAILSAFE);
}
#endif

/* 19 reports the progress of CLUSTER and VACUUM FULL as REPACK's */
#if PG_VERSION_NUM < 190000
#define PROGRESS_REPACK_PHASE	PROGRESS_CLUSTER_PHASE
#define PROGRESS_REPACK_INDEX_RELID PROGRESS_CLUSTER_INDEX_RELID
#define PROGRESS_REPACK_HEAP_TUPLES_SCANNED PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED
#define PROGRESS_REPACK_HEAP_TUPLES_INSERTED \
	PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN
#define PROGRESS_REPACK_TOTAL_HEAP_BLKS PROGRESS_CLUSTER_TOTAL_HEAP_BLKS
#define PROGRESS_REPACK_HEAP_BLKS_SCANNED PROGRESS_CLUSTER_HEAP_BLKS_SCANNED
#define PROGRESS_REPACK_PHASE_SEQ_SCAN_HEAP PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP
#define PROGRESS_REPACK_PHASE_INDEX_SCAN_HEAP \
	PROGRESS_CLUSTER_PHASE_INDEX_SCAN_HEAP
#define PROGRESS_REPACK_PHASE_SORT_TUPLES PROGRESS_CLUSTER_PHASE_SORT_TUPLES
#define PROGRESS_REPACK_PHASE_WRITE_NEW_HEAP \
	PROGRESS_CLUSTER_PHASE_WRITE_NEW_HEAP
#endif

/* ---- WAL --------------------------------------------------------------- */

/* the parameter is char * in 15, const void * in 18 */
#define CompatXLogRegisterData(p, len) XLogRegisterData((char *) (p), (len))
#define CompatXLogRegisterBufData(id, p, len) \
	XLogRegisterBufData((id), (char *) (p), (len))
#if PG_VERSION_NUM < 170000
#define REGBUF_NO_CHANGE		0	/* the buffer need not be locked */
#endif
#define CompatRegisterCustomRmgr(id, r) \
	RegisterCustomRmgr((id), unconstify(RmgrData *, (r)))
#if PG_VERSION_NUM < 160000
#define CompatConflict(fxid, iscat, locator) \
	ResolveRecoveryConflictWithSnapshotFullXid(fxid, locator)
#define CompatConflictXid(xid, iscat, locator) \
	ResolveRecoveryConflictWithSnapshot(xid, locator)
#else
#define CompatConflict(fxid, iscat, locator) \
	ResolveRecoveryConflictWithSnapshotFullXid(fxid, iscat, locator)
#define CompatConflictXid(xid, iscat, locator) \
	ResolveRecoveryConflictWithSnapshot(xid, iscat, locator)
#endif

/* ---- SQL functions ----------------------------------------------------- */

/* 17 runs functions of indexes with a restricted search_path */
#if PG_VERSION_NUM < 170000
#define CompatRestrictSearchPath() ((void) 0)
#else
#define CompatRestrictSearchPath() RestrictSearchPath()
#endif

/* A function returns its rows in a tuplestore; 15.0 has only the old name. */
#if PG_VERSION_NUM < 160000
#define CompatInitMaterializedSRF(fcinfo) SetSingleFuncCall(fcinfo, 0)
#else
#define CompatInitMaterializedSRF(fcinfo) InitMaterializedSRF(fcinfo, 0)
#endif

/* ---- logical decoding -------------------------------------------------- */

#if PG_VERSION_NUM < 160000
#define CompatChangeLocator(change) ((change)->data.tp.relnode)
#else
#define CompatChangeLocator(change) ((change)->data.tp.rlocator)
#endif
#if PG_VERSION_NUM < 170000
#define CompatChangeTuple		ReorderBufferTupleBuf
#define CompatChangeTupleHeap(t) (&(t)->tuple)
#else
#define CompatChangeTuple		HeapTupleData
#define CompatChangeTupleHeap(t) (t)
#endif
#if PG_VERSION_NUM < 180000
#define ReorderBufferAllocChange(rb) ReorderBufferGetChange(rb)
#define ReorderBufferAllocTupleBuf(rb, len) ReorderBufferGetTupleBuf(rb, len)
#endif

/*
 * REPACK (CONCURRENTLY) of 19 decodes one table, and takes every change that
 * it gets for one of that table's rows.
 */
#if PG_VERSION_NUM < 190000
#define CompatRepackDrops(buf)	false
#else
#define CompatRepackDrops(buf)	change_useless_for_repack(buf)
#endif

/* 19 also returns a message about the record that it could not read */
#if PG_VERSION_NUM < 190000
#define CompatFindNextRecord(reader, from, problem) \
	((void) (problem), XLogFindNextRecord(reader, from))
#else
#define CompatFindNextRecord(reader, from, problem) \
	XLogFindNextRecord(reader, from, problem)
#endif

/* ---- hooks ------------------------------------------------------------- */

#if PG_VERSION_NUM < 190000
#define CompatJumbleState JumbleState
#else
#define CompatJumbleState const JumbleState
#endif

/* The table of a REPACK (CONCURRENTLY); NULL if the statement is not one. */
#if PG_VERSION_NUM < 190000
#define compat_concurrent_repack(statement) ((const RangeVar *) NULL)
#else
static inline const RangeVar *
compat_concurrent_repack(const Node *statement)
{
	const RepackStmt *repack = (const RepackStmt *) statement;
	bool		is_concurrent = false;

	if (!IsA(statement, RepackStmt) || repack->relation == NULL)
		return NULL;
	foreach_node(DefElem, option, repack->params)
	{
		if (strcmp(option->defname, "concurrently") == 0)
			is_concurrent = defGetBoolean(option);
	}
	return is_concurrent ? repack->relation->relation : NULL;
}
#endif

/* ---- locks ------------------------------------------------------------- */

/* 18: log_lock_failures concerns locks whose failure is an error */
#if PG_VERSION_NUM < 180000
#define CompatCondLockTuple(rel, tid, mode, error) \
	ConditionalLockTuple(rel, tid, mode)
#define CompatCondXactWait(xid, error) ConditionalXactLockTableWait(xid)
#else
#define CompatCondLockTuple(rel, tid, mode, error) \
	ConditionalLockTuple(rel, tid, mode, (error) && log_lock_failures)
#define CompatCondXactWait(xid, error) \
	ConditionalXactLockTableWait(xid, (error) && log_lock_failures)
#endif

#if PG_VERSION_NUM < 190000
#define CompatNewTranche(name)	LWLockNewTrancheId()
#else
#define CompatNewTranche(name)	LWLockNewTrancheId(name)
#endif

/* ---- what other versions have to compare with -------------------------- */

#if PG_VERSION_NUM >= 170000
#define COMPAT_HAS_TIDSTORE		1	/* access/tidstore.h, lib/radixtree.h */
#endif

#endif							/* PG_INPLACE_COMPAT_H */
