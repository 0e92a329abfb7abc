/*-------------------------------------------------------------------------
 * fake_rows.c
 *	  For tests: index entries of rows that are not there, in tables of any size.
 *
 *	  fake_insert(index regclass, key int, block bigint, item int)
 *	  fake_vacuum(index regclass, block bigint)		rows of the block are removed
 *	  fake_vacuum_stale(index regclass, block bigint)		entries for rows of the block are stale,
 *			all others are old: what VACUUM of an inplace table's index counts of both
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"

#include "inplace_keys.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT Datum fake_insert(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum fake_vacuum(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum fake_vacuum_stale(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(fake_insert);
PG_FUNCTION_INFO_V1(fake_vacuum);
PG_FUNCTION_INFO_V1(fake_vacuum_stale);

Datum
fake_insert(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), RowExclusiveLock);
	Relation	heap = table_open(index->rd_index->indrelid, RowExclusiveLock);
	Datum		value = PG_GETARG_DATUM(1);
	bool		isnull = false;
	ItemPointerData tid;

	ItemPointerSet(&tid, (BlockNumber) PG_GETARG_INT64(2), (OffsetNumber) PG_GETARG_INT32(3));
	index_insert(index, &value, &isnull, &tid, heap, UNIQUE_CHECK_NO, false, BuildIndexInfo(index));
	table_close(heap, RowExclusiveLock);
	index_close(index, RowExclusiveLock);
	PG_RETURN_VOID();
}

static bool
is_on_block(ItemPointer tid, void *block)
{
	return ItemPointerGetBlockNumber(tid) == *(BlockNumber *) block;
}

static int64
bulk_delete(Oid oid, IndexBulkDeleteCallback callback, void *state)
{
	Relation	index = index_open(oid, ShareUpdateExclusiveLock);
	IndexVacuumInfo info;
	IndexBulkDeleteResult *stats;

	memset(&info, 0, sizeof(info));
	info.index = index;
	info.message_level = DEBUG2;
	stats = index_bulk_delete(&info, NULL, callback, state);
	index_close(index, ShareUpdateExclusiveLock);
	return (int64) stats->tuples_removed;
}

Datum
fake_vacuum(PG_FUNCTION_ARGS)
{
	BlockNumber block = (BlockNumber) PG_GETARG_INT64(1);

	PG_RETURN_INT64(bulk_delete(PG_GETARG_OID(0), is_on_block, &block));
}

/* In place of inplace's part. */
static BlockNumber stale_block;
static double counted[2];

static InplaceEntry
fake_judge(Relation table, ItemPointer tid, InplaceKeyMatch match, void *arg, TupleTableSlot *slot, Buffer *vm,
		   TransactionId *conflict)
{
	*conflict = InvalidTransactionId;
	return ItemPointerGetBlockNumber(tid) == stale_block ? INPLACE_ENTRY_STALE : INPLACE_ENTRY_OLD;
}

static bool
is_never_dead(ItemPointer tid, void *state)
{
	return false;
}

static void
note_counts(void *state, double removed, double old)
{
	counted[0] = removed;
	counted[1] = old;
}

Datum
fake_vacuum_stale(PG_FUNCTION_ARGS)
{
	void	  **published = find_rendezvous_variable(INPLACE_KEYS_TABLE);
	void	   *before = *published;
	static InplaceKeysTable fake;

	fake = *inplace_keys_table();
	fake.judge = fake_judge;
	fake.vacuum = is_never_dead;
	fake.vacuumed = note_counts;
	stale_block = (BlockNumber) PG_GETARG_INT64(1);
	*published = &fake;
	(void) bulk_delete(PG_GETARG_OID(0), is_never_dead, NULL);
	*published = before;
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%.0f %.0f", counted[0], counted[1])));
}
