/*-------------------------------------------------------------------------
 * ip_compat.h
 *	  What differs between PostgreSQL's versions.
 *
 * The code is written for version 15; the names here are those that change in
 * later versions.
 *-------------------------------------------------------------------------
 */
#ifndef IP_COMPAT_H
#define IP_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 160000
#error "pg_inplace supports PostgreSQL 15"
#endif

/* 15's macro is empty outside of Windows, but we hide symbols by default */
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))

#include "access/genam.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xlog_internal.h"
#include "access/xloginsert.h"
#include "access/xlogutils.h"
#include "catalog/storage.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "storage/standby.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* files (16: RelFileLocator) */
typedef RelFileNode RelFileLocator;

#define CompatLocatorDatabase(locator) ((locator).dbNode)

#define relation_set_new_filelocator relation_set_new_filenode

/* processes and transactions (17: MyProcNumber, MyProc->vxid.lxid, TransamVariables) */
#define CompatMyProcNo			(MyProc->pgprocno)
#define CompatMyLocalXid		(MyProc->lxid)
#define TransamVariables		ShmemVariableCache

/* tuple_update's last argument (16: TU_UpdateIndexes) */
typedef bool CompatUpdateIndexes;

#define COMPAT_TU_NONE			false
#define COMPAT_TU_ALL			true
#define INDEX_ATTR_BITMAP_HOT_BLOCKING INDEX_ATTR_BITMAP_ALL

/* statistics (16: newpage; 18: start time, all-frozen pages) */
#define CompatCountUpdate(rel, hot, newpage) pgstat_count_heap_update(rel, hot)
#define CompatReportVacuum(relid, shared, live, dead, start) \
	pgstat_report_vacuum(relid, shared, live, dead)
#define CompatVacUpdateRelstats(rel, np, nt, nvis, nfrozen, hasidx, fxid, mm, fu, mu, outer) \
	vac_update_relstats(rel, np, nt, nvis, hasidx, fxid, mm, fu, mu, outer)

/* VACUUM (16: struct VacuumCutoffs, IndexVacuumInfo.heaprel; 18: is_analyze) */
struct VacuumCutoffs
{
	TransactionId OldestXmin;
	MultiXactId OldestMxact;
};

static inline void
vacuum_get_cutoffs(Relation rel, const VacuumParams *p, struct VacuumCutoffs *c)
{
	TransactionId freeze_limit;
	MultiXactId multi_cutoff;

	(void) vacuum_set_xid_limits(rel, p->freeze_min_age, p->freeze_table_age,
								 p->multixact_freeze_min_age, p->multixact_freeze_table_age,
								 &c->OldestXmin, &c->OldestMxact,
								 &freeze_limit, &multi_cutoff);
}

#define CompatSetIvHeapRel(iv, h) ((void) 0)
#define compat_vacuum_delay_point(is_analyze) vacuum_delay_point()

/* WAL (18: const void *; 16: is_catalog) */
#define CompatXLogRegisterData(p, len) XLogRegisterData((char *) (p), (len))
#define CompatXLogRegisterBufData(id, p, len) XLogRegisterBufData((id), (char *) (p), (len))
#define CompatRegisterCustomRmgr(id, r) RegisterCustomRmgr((id), unconstify(RmgrData *, (r)))
#define CompatConflict(fxid, iscat, locator) ResolveRecoveryConflictWithSnapshotFullXid(fxid, locator)

/* logical decoding (16: rlocator; 17: changes have HeapTuples) */
#define CompatChangeLocator(change) ((change)->data.tp.relnode)
#define CompatChangeTuple		ReorderBufferTupleBuf
#define CompatChangeTupleHeap(t) (&(t)->tuple)

/* locks (18: logLockFailure) */
#define CompatCondLockTuple(rel, tid, mode) ConditionalLockTuple(rel, tid, mode)
#define CompatCondXactWait(xid) ConditionalXactLockTableWait(xid)

#endif							/* IP_COMPAT_H */
