/*-------------------------------------------------------------------------
 * ip_compat.h
 *	  The only place that knows PostgreSQL's version.
 *
 * The rest of the code is written for version 15's interfaces where those of
 * later versions can be mapped to them here.
 *-------------------------------------------------------------------------
 */
#ifndef IP_COMPAT_H
#define IP_COMPAT_H

#include "postgres.h"
#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 190000
#error "unsupported PostgreSQL version"
#endif
/* 15's macro is empty outside of Windows, but we hide symbols by default */
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif
#include "access/genam.h"
#include "access/tableam.h"
#include "access/amapi.h"
#include "access/xloginsert.h"
#include "access/xlog_internal.h"
#include "access/xlogutils.h"
#include "access/transam.h"
#include "access/toast_internals.h"
#include "access/visibilitymap.h"
#include "catalog/storage.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "replication/decode.h"
#include "replication/reorderbuffer.h"
#include "replication/logical.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "storage/smgr.h"
#include "storage/standby.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#include "archive/archive_module.h"
#else
#include "postmaster/pgarch.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif

/* ---- relfile identity -------------------------------------------------- */
#if PG_VERSION_NUM < 160000
typedef RelFileNode RelFileLocator;
typedef Oid RelFileNumber;
#define InvalidRelFileNumber		InvalidOid
#define RelFileLocatorEquals(a, b)	RelFileNodeEquals(a, b)
#define RL_SPC(l)	((l).spcNode)
#define RL_DB(l)	((l).dbNode)
#define RL_REL(l)	((l).relNode)
#define REL_LOCATOR(rel)	((rel)->rd_node)
#define SMGR_LOCATOR(s)		((s)->smgr_rnode.node)
#define rd_newRelfilelocatorSubid	rd_newRelfilenodeSubid
#define relation_set_new_filelocator relation_set_new_filenode	/* TableAmRoutine member */
#define RelFileLocatorSkippingWAL	RelFileNodeSkippingWAL
#define CHANGE_LOCATOR(c)	((c)->data.tp.relnode)
#else
#define RL_SPC(l)	((l).spcOid)
#define RL_DB(l)	((l).dbOid)
#define RL_REL(l)	((l).relNumber)
#define REL_LOCATOR(rel)	((rel)->rd_locator)
#define SMGR_LOCATOR(s)		((s)->smgr_rlocator.locator)
#define CHANGE_LOCATOR(c)	((c)->data.tp.rlocator)
#endif

/* ---- backend numbers --------------------------------------------------- */
#if PG_VERSION_NUM < 170000
#define INVALID_PROC_NUMBER		InvalidBackendId
#define CompatMyProcNo			(MyProc->pgprocno)	/* 0-based slot */
#define TransamVariables		ShmemVariableCache
#define AmBackgroundWorkerProcess() IsBackgroundWorker
#else
#define CompatMyProcNo			MyProcNumber
#endif

/* ---- update_indexes ---------------------------------------------------- */
#if PG_VERSION_NUM < 160000
typedef bool CompatUpdateIndexes;
#define COMPAT_TU_NONE			false
#define COMPAT_TU_ALL			true
#define COMPAT_HAS_SUMMARIZING	0
#define INDEX_ATTR_BITMAP_HOT_BLOCKING INDEX_ATTR_BITMAP_ALL
#else
typedef TU_UpdateIndexes CompatUpdateIndexes;
#define COMPAT_TU_NONE			TU_None
#define COMPAT_TU_ALL			TU_All
#define COMPAT_HAS_SUMMARIZING	1
#endif

/* ---- pgstat ------------------------------------------------------------ */
#if PG_VERSION_NUM < 160000
#define CompatCountUpdate(rel, hot, newpage) pgstat_count_heap_update(rel, hot)
#else
#define CompatCountUpdate(rel, hot, newpage) pgstat_count_heap_update(rel, hot, newpage)
#endif
#if PG_VERSION_NUM < 180000
#define CompatReportVacuum(relid, shared, live, dead, start) pgstat_report_vacuum(relid, shared, live, dead)
#define compat_vacuum_delay_point(isanalyze) vacuum_delay_point()
#define CompatVacUpdateRelstats(rel, np, nt, nvis, nfroz, hasidx, fxid, mm, fu, mu, outer) \
	vac_update_relstats(rel, np, nt, nvis, hasidx, fxid, mm, fu, mu, outer)
#else
#define CompatReportVacuum(relid, shared, live, dead, start) pgstat_report_vacuum(relid, shared, live, dead, start)
#define compat_vacuum_delay_point(isanalyze) vacuum_delay_point(isanalyze)
#define CompatVacUpdateRelstats(rel, np, nt, nvis, nfroz, hasidx, fxid, mm, fu, mu, outer) \
	vac_update_relstats(rel, np, nt, nvis, nfroz, hasidx, fxid, mm, fu, mu, outer)
#endif

/* ---- vacuum cutoffs ---------------------------------------------------- */
#if PG_VERSION_NUM < 160000
struct VacuumCutoffs
{
	TransactionId relfrozenxid;
	MultiXactId relminmxid;
	TransactionId OldestXmin;
	MultiXactId OldestMxact;
	TransactionId FreezeLimit;
	MultiXactId MultiXactCutoff;
};
static inline bool
vacuum_get_cutoffs(Relation rel, const VacuumParams *p, struct VacuumCutoffs *c)
{
	c->relfrozenxid = rel->rd_rel->relfrozenxid;
	c->relminmxid = rel->rd_rel->relminmxid;
	return vacuum_set_xid_limits(rel, p->freeze_min_age, p->freeze_table_age,
								 p->multixact_freeze_min_age, p->multixact_freeze_table_age,
								 &c->OldestXmin, &c->OldestMxact,
								 &c->FreezeLimit, &c->MultiXactCutoff);
}
#define CompatFailsafeCheck(c) vacuum_xid_failsafe_check((c)->relfrozenxid, (c)->relminmxid)
#define CompatSetIvHeapRel(iv, h) ((void) 0)
#else
#define CompatFailsafeCheck(c) vacuum_xid_failsafe_check(c)
#define CompatSetIvHeapRel(iv, h) ((iv)->heaprel = (h))	/* mandatory: nbtree derefs it */
#endif

/* ---- buffers ----------------------------------------------------------- */
#if PG_VERSION_NUM < 160000
/* caller must hold its own extension lock; returned exclusively locked */
static inline Buffer
CompatExtendNoRel(RelFileLocator rl, ForkNumber fork, BufferAccessStrategy st)
{
	Buffer		b = ReadBufferWithoutRelcache(rl, fork, P_NEW, RBM_ZERO_AND_LOCK, st, true);

	return b;
}
static inline Buffer
CompatExtendRel(Relation rel, ForkNumber fork, BufferAccessStrategy st)
{
	Buffer		b;

	LockRelationForExtension(rel, ExclusiveLock);
	b = ReadBufferExtended(rel, fork, P_NEW, RBM_ZERO_AND_LOCK, st);
	UnlockRelationForExtension(rel, ExclusiveLock);
	return b;
}
#else
/* NEVER ReadBufferWithoutRelcache(P_NEW): NULL deref on 17+ */
static inline Buffer
CompatExtendNoRel(RelFileLocator rl, ForkNumber fork, BufferAccessStrategy st)
{
	return ExtendBufferedRel(BMR_SMGR(smgropen(rl, INVALID_PROC_NUMBER), RELPERSISTENCE_PERMANENT),
							 fork, st, EB_SKIP_EXTENSION_LOCK | EB_LOCK_FIRST);
}
static inline Buffer
CompatExtendRel(Relation rel, ForkNumber fork, BufferAccessStrategy st)
{
	return ExtendBufferedRel(BMR_REL(rel), fork, st, EB_LOCK_FIRST);
}
#endif

/* ---- WAL --------------------------------------------------------------- */
#define CompatXLogRegisterData(p, len)			XLogRegisterData((char *) (p), (len))
#define CompatXLogRegisterBufData(id, p, len)	XLogRegisterBufData((id), (char *) (p), (len))
#define CompatRegisterCustomRmgr(id, r)			RegisterCustomRmgr((id), (RmgrData *) (r))
#if PG_VERSION_NUM < 160000
#define CompatConflict(xid, iscat, rl) ResolveRecoveryConflictWithSnapshot(xid, rl)
#else
#define CompatConflict(xid, iscat, rl) ResolveRecoveryConflictWithSnapshot(xid, iscat, rl)
#endif
#if PG_VERSION_NUM < 170000
#define REGBUF_NO_CHANGE 0		/* 17+: required when registering a clean buffer */
#endif

/* ---- logical decoding -------------------------------------------------- */
#if PG_VERSION_NUM < 180000
#define ReorderBufferAllocChange(rb)	ReorderBufferGetChange(rb)
#endif
static inline HeapTuple
CompatRBAllocTuple(ReorderBufferChange *c, bool isnew, ReorderBuffer *rb, Size len)
{
#if PG_VERSION_NUM < 170000
	ReorderBufferTupleBuf *b = ReorderBufferGetTupleBuf(rb, len);

	if (isnew) c->data.tp.newtuple = b; else c->data.tp.oldtuple = b;
	return &b->tuple;
#else
#if PG_VERSION_NUM < 180000
	HeapTuple	t = ReorderBufferGetTupleBuf(rb, len);
#else
	HeapTuple	t = ReorderBufferAllocTupleBuf(rb, len);
#endif
	if (isnew) c->data.tp.newtuple = t; else c->data.tp.oldtuple = t;
	return t;
#endif
}
#define CompatFilterOrigin(ctx, origin) \
	((ctx)->callbacks.filter_by_origin_cb != NULL && filter_by_origin_cb_wrapper((ctx), (origin)))

/* ---- locks ------------------------------------------------------------- */
#if PG_VERSION_NUM < 180000
#define CompatCondLockTuple(rel, tid, mode) ConditionalLockTuple(rel, tid, mode)
#define CompatCondXactWait(xid) ConditionalXactLockTableWait(xid)
#else
#define CompatCondLockTuple(rel, tid, mode) ConditionalLockTuple(rel, tid, mode, false)
#define CompatCondXactWait(xid) ConditionalXactLockTableWait(xid, false)
#endif

/* ---- index AM ---------------------------------------------------------- */
#if PG_VERSION_NUM < 180000
#define CompatIndexBeginscan(h, i, s, nk, no) index_beginscan(h, i, s, nk, no)
#define CompatParallelScanOpaque(p) OffsetToPointer((void *) (p), (p)->ps_offset)
#define CompatCountSearch(scan) ((void) 0)
#else
#define CompatIndexBeginscan(h, i, s, nk, no) index_beginscan(h, i, s, NULL, nk, no)
#define CompatParallelScanOpaque(p) OffsetToPointer((void *) (p), (p)->ps_offset_am)
#define CompatCountSearch(scan) do { if ((scan)->instrument) (scan)->instrument->nsearches++; } while (0)
#endif
#if PG_VERSION_NUM < 170000
#define AMESTPARALLEL_ARGS void
#elif PG_VERSION_NUM < 180000
#define AMESTPARALLEL_ARGS int nkeys, int norderbys
#else
#define AMESTPARALLEL_ARGS Relation indexRelation, int nkeys, int norderbys
#endif

/* ---- misc -------------------------------------------------------------- */
#if PG_VERSION_NUM >= 180000
#define HandleMainLoopInterrupts ProcessMainLoopInterrupts
#define CompatRelPath(l, f, buf) strlcpy(buf, relpathperm(l, f).str, sizeof(buf))
#define CompatPrimaryKeyIndex(r) RelationGetPrimaryKeyIndex(r, false)
#define heap_copy_minimal_tuple_c(m) heap_copy_minimal_tuple(m, 0)
#else
#define CompatRelPath(l, f, buf) do { char *p_ = relpathperm(l, f); strlcpy(buf, p_, sizeof(buf)); pfree(p_); } while (0)
#define CompatPrimaryKeyIndex(r) RelationGetPrimaryKeyIndex(r)
#define heap_copy_minimal_tuple_c(m) heap_copy_minimal_tuple(m)
#endif
#if PG_VERSION_NUM < 160000
#define guc_malloc(e, s) malloc(s)	/* GUC check_hook *extra */
#define guc_free(p) free(p)
#endif
static inline uint32
CompatWaitEvent(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	return PG_WAIT_EXTENSION;
#endif
}
#endif							/* IP_COMPAT_H */
