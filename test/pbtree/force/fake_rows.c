/*-------------------------------------------------------------------------
 * fake_rows.c
 *	  For tests: index entries of rows that are not there, in tables of any size.
 *
 *	  fake_insert(index regclass, key int, block bigint, item int)
 *	  fake_vacuum(index regclass, block bigint)		rows of the block are removed
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "fmgr.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT Datum fake_insert(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum fake_vacuum(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(fake_insert);
PG_FUNCTION_INFO_V1(fake_vacuum);

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

Datum
fake_vacuum(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), ShareUpdateExclusiveLock);
	BlockNumber block = (BlockNumber) PG_GETARG_INT64(1);
	IndexVacuumInfo info;
	IndexBulkDeleteResult *stats;

	memset(&info, 0, sizeof(info));
	info.index = index;
	info.message_level = DEBUG2;
	stats = index_bulk_delete(&info, NULL, is_on_block, &block);
	index_close(index, ShareUpdateExclusiveLock);
	PG_RETURN_INT64((int64) stats->tuples_removed);
}
