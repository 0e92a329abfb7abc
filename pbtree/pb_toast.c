/*-------------------------------------------------------------------------
 * pb_toast.c
 *	  Reading of a value of a TOAST table that may be lost.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "utils/fmgroids.h"

#include "pb_toast.h"

/*
 * Append the chunk's bytes to the value.  Returns false if they do not belong
 * there.
 */
static bool
append(struct varlena *value, int32 *size, int32 limit, TupleDesc desc,
	   HeapTuple chunk, int32 expected)
{
	bool		isnull[2];
	int32		number = DatumGetInt32(fastgetattr(chunk, 2, desc, &isnull[0]));
	Datum		data = fastgetattr(chunk, 3, desc, &isnull[1]);
	struct varlena *bytes = (struct varlena *) DatumGetPointer(data);
	int32		n;

	if (isnull[0] || isnull[1] || number != expected ||
		VARATT_IS_EXTENDED(bytes) != VARATT_IS_SHORT(bytes))
		return false;
	n = VARSIZE_ANY_EXHDR(bytes);
	if (n > limit - *size)
		return false;
	memcpy(VARDATA(value) + *size, VARDATA_ANY(bytes), n);
	*size += n;
	return true;
}

struct varlena *
pb_toast_fetch(const struct varlena *pointer)
{
	struct varatt_external external;
	struct varlena *value;
	int32		limit;
	int32		size = 0;
	Relation	toast;
	Relation   *indexes;
	int			nindexes;
	int			valid;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	chunk;
	SnapshotData room;

	VARATT_EXTERNAL_GET_POINTER(external, pointer);
	limit = VARATT_EXTERNAL_GET_EXTSIZE(external);
	value = palloc(limit + VARHDRSZ);
	if (VARATT_EXTERNAL_IS_COMPRESSED(external))
		SET_VARSIZE_COMPRESSED(value, limit + VARHDRSZ);
	else
		SET_VARSIZE(value, limit + VARHDRSZ);
	toast = table_open(external.va_toastrelid, AccessShareLock);
	valid = toast_open_indexes(toast, AccessShareLock, &indexes, &nindexes);
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(external.va_valueid));
	scan = systable_beginscan_ordered(toast, indexes[valid],
									  CompatToastSnapshot(&room), 1, &key);
	for (int32 n = 0;
		 (chunk = systable_getnext_ordered(scan, ForwardScanDirection)) != NULL;
		 n++)
	{
		if (!append(value, &size, limit, RelationGetDescr(toast), chunk, n))
			break;
	}
	systable_endscan_ordered(scan);
	toast_close_indexes(indexes, nindexes, AccessShareLock);
	table_close(toast, AccessShareLock);
	return size == limit ? value : NULL;
}
