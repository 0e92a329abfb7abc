/*-------------------------------------------------------------------------
 * ip_wal_summary.c
 *	  SQL function that sums up WAL: what pg_waldump --stats=record would show,
 *	  if it could load resource managers.
 *
 * Our records have several rows: one for the records, and one for each kind of
 * page operation in them.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "access/xlogrecovery.h"
#include "access/xlogstats.h"
#include "access/xlogutils.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/pg_lsn.h"

#include "ip_change.h"
#include "ip_page_desc.h"
#include "ip_result.h"

PG_FUNCTION_INFO_V1(inplace_wal_summary);

PGDLLEXPORT Datum inplace_wal_summary(PG_FUNCTION_ARGS);

typedef struct IpWalKey
{
	uint8		rmid;
	uint8		info;
	uint8		op;				/* 0 for the records */
} IpWalKey;

typedef struct IpWalRow
{
	IpWalKey	key;			/* must be first */
	int64		count;
	int64		bytes;
	int64		image_bytes;
	int64		aligned_bytes;
} IpWalRow;

/* ---- counting ---------------------------------------------------------- */

static IpWalRow *
find_row(HTAB *rows, XLogReaderState *record, uint8 op)
{
	IpWalKey	key = {
		XLogRecGetRmid(record),
		XLogRecGetInfo(record) & ~XLR_INFO_MASK,
		op
	};
	IpWalRow   *row;
	bool		found;

	/* the other bits tell what is in the record, not which kind it is */
	if (key.rmid == RM_XACT_ID)
		key.info &= XLOG_XACT_OPMASK;
	row = hash_search(rows, &key, HASH_ENTER, &found);
	if (!found)
		memset((char *) row + sizeof(key), 0, sizeof(*row) - sizeof(key));
	row->count++;
	return row;
}

static void
count_operations(HTAB *rows, XLogReaderState *record, StringInfo scratch)
{
	for (int id = 0; id <= XLogRecMaxBlockId(record); id++)
	{
		Size		len;
		char	   *ops = XLogRecGetBlockData(record, id, &len);
		ByteReader	r = {(uint8 *) ops, (uint8 *) ops + (ops ? len : 0), false};

		while (ops != NULL && r.p < r.end && !r.bad)
		{
			const uint8 *begin = r.p;
			IpOp		op;

			resetStringInfo(scratch);
			op = ip_page_desc_next(scratch, &r);
			find_row(rows, record, op)->bytes += r.p - begin;
		}
	}
}

static void
count_record(HTAB *rows, XLogReaderState *record, StringInfo scratch)
{
	IpWalRow   *row = find_row(rows, record, 0);
	uint32		len;
	uint32		image_len;

	XLogRecGetLen(record, &len, &image_len);
	row->bytes += len;
	row->image_bytes += image_len;
	row->aligned_bytes += MAXALIGN(XLogRecGetTotalLen(record));
	if (row->key.rmid == IP_RMGR_ID)
		count_operations(rows, record, scratch);
}

/* ---- reading ----------------------------------------------------------- */

/* Returns the end of the WAL that can be read now. */
static XLogRecPtr
end_of_wal(void)
{
	return RecoveryInProgress() ? GetXLogReplayRecPtr(NULL) :
		GetFlushRecPtr(NULL);
}

static void
check_range(XLogRecPtr from, XLogRecPtr to)
{
	XLogRecPtr	end = end_of_wal();

	if (from > to)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("from_lsn %X/%X is behind to_lsn %X/%X",
						LSN_FORMAT_ARGS(from), LSN_FORMAT_ARGS(to))));
	if (to > end)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is no WAL up to %X/%X yet", LSN_FORMAT_ARGS(to)),
				 errhint("It can be read up to %X/%X.", LSN_FORMAT_ARGS(end))));
	/* the very first page of WAL is never written */
	if (from < XLOG_BLCKSZ)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is no WAL at %X/%X", LSN_FORMAT_ARGS(from)),
				 errhint("pg_ls_waldir() shows which WAL there is.")));
}

/* Add a hint to the error about a WAL file that does not exist. */
static void
add_hint(void *arg)
{
	if (geterrcode() != ERRCODE_UNDEFINED_FILE)
		return;
	errhint("WAL that has been removed cannot be read: pg_ls_waldir() shows which there is.");
}

static XLogReaderState *
begin_reading(XLogRecPtr from)
{
	ReadLocalXLogPageNoWaitPrivate *private = palloc0(sizeof(*private));
	XLogReaderRoutine routine = {
		.page_read = &read_local_xlog_page_no_wait,
		.segment_open = &wal_segment_open,
		.segment_close = &wal_segment_close
	};
	XLogReaderState *reader = XLogReaderAllocate(wal_segment_size, NULL,
												 &routine, private);

	if (reader == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	return reader;
}

static void
read_range(HTAB *rows, XLogRecPtr from, XLogRecPtr to)
{
	XLogReaderState *reader = begin_reading(from);
	ErrorContextCallback callback = {error_context_stack, add_hint, NULL};
	StringInfoData scratch;
	XLogRecPtr	first;
	char	   *problem = NULL;

	initStringInfo(&scratch);
	error_context_stack = &callback;
	first = CompatFindNextRecord(reader, from, &problem);
	while (!XLogRecPtrIsInvalid(first) &&
		   XLogReadRecord(reader, &problem) != NULL && reader->EndRecPtr <= to)
	{
		CHECK_FOR_INTERRUPTS();
		count_record(rows, reader, &scratch);
	}
	if (XLogRecPtrIsInvalid(first) &&
		!((ReadLocalXLogPageNoWaitPrivate *) reader->private_data)->end_of_wal)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not find a valid record after %X/%X",
						LSN_FORMAT_ARGS(from))));
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not read WAL at %X/%X: %s",
						LSN_FORMAT_ARGS(reader->EndRecPtr), problem)));
	error_context_stack = callback.previous;
	XLogReaderFree(reader);
}

/* ---- showing ----------------------------------------------------------- */

static void
put_names(IpResult *r, const IpWalKey *key)
{
	const char *name = NULL;

	if (!RmgrIdExists(key->rmid))
		ip_result_put_text(r, psprintf("custom%03u", key->rmid));
	else
	{
		ip_result_put_text(r, GetRmgr(key->rmid).rm_name);
		name = GetRmgr(key->rmid).rm_identify(key->info);
	}
	ip_result_put_text(r, name ? name : psprintf("0x%X", key->info));
	ip_result_put_if(r, key->op != 0,
					 CStringGetTextDatum(ip_page_desc_name(key->op)));
}

Datum
inplace_wal_summary(PG_FUNCTION_ARGS)
{
	XLogRecPtr	from = PG_GETARG_LSN(0);
	XLogRecPtr	to = PG_GETARG_LSN(1);
	HASHCTL		ctl = {
		.keysize = sizeof(IpWalKey),.entrysize = sizeof(IpWalRow),
		.hcxt = CurrentMemoryContext
	};
	HTAB	   *rows = hash_create("inplace WAL summary", 64, &ctl,
								   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	HASH_SEQ_STATUS seq;
	IpWalRow   *row;

	check_range(from, to);
	CompatInitMaterializedSRF(fcinfo);
	read_range(rows, from, to);
	hash_seq_init(&seq, rows);
	while ((row = hash_seq_search(&seq)) != NULL)
	{
		IpResult	r = {.n = 0};
		bool		is_record = row->key.op == 0;

		put_names(&r, &row->key);
		ip_result_put(&r, Int64GetDatum(row->count));
		ip_result_put(&r, Int64GetDatum(row->bytes));
		ip_result_put_if(&r, is_record, Int64GetDatum(row->image_bytes));
		ip_result_put_if(&r, is_record, Int64GetDatum(row->aligned_bytes));
		ip_result_emit((ReturnSetInfo *) fcinfo->resultinfo, &r);
	}
	PG_RETURN_NULL();
}
