/*-------------------------------------------------------------------------
 * ip_insert.c
 *	  Inserting rows: one, many, speculatively.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heaptoast.h"
#include "access/xact.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

#include "ip_change.h"
#include "ip_insert.h"
#include "ip_logical.h"
#include "ip_memo.h"
#include "ip_op.h"
#include "ip_rel.h"
#include "ip_slot.h"
#include "ip_space.h"
#include "ip_state.h"
#include "ip_toast.h"
#include "ip_toaster.h"
#include "ip_version.h"
#include "ip_xid.h"

/* Room for a row with a version block and its line pointer. */
#define INSERT_SPACE(bodylen) (IP_ROW_MIN_ITEM + (bodylen) + sizeof(ItemIdData))

void
ip_insert_form(const IpValueChange *change, TupleTableSlot *slot,
			   IpFormed *row)
{
	if (ip_toast_needed(change->rel, slot))
		ip_toaster_form(change, slot, NULL, row);
	else
		ip_toast_form(change->rel, slot, true, row);
}

/* Find a page for a row of that size. */
static Buffer
find_page(Relation rel, uint32 bodylen, CompatOptions options,
		  BulkInsertState bistate, bool *init)
{
	/*
	 * a row alone on its page uses the default inserter and has no version
	 * block
	 */
	Size		size = Min(INSERT_SPACE(bodylen),
						   IP_MAX_ITEM + sizeof(ItemIdData));

	return ip_space_find(rel, size, options, bistate, false, InvalidBuffer,
						 init);
}

/* Add these new rows to the change for logical decoding. */
static void
set_logical(IpChange *change, IpLogicalAction action, const IpFormed *rows,
			int nrows, bool more)
{
	change->logical = ip_logical_insert(change->rel, action, rows, nrows, more);
	change->logical_rows = change->logical != NULL;
}

/* Insert one row; xid is invalid for a row that is to be visible to all. */
static void
insert_row(Relation rel, const IpFormed *row, TransactionId xid, CommandId cid,
		   bool replay, CompatOptions options, BulkInsertState bistate,
		   ItemPointer tid)
{
	IpInserter	inserter;
	IpChange	change;
	ByteWriter *w;
	Buffer		buffer;
	Page		page;
	OffsetNumber off;
	bool		init;

	buffer = find_page(rel, row->bodylen, options, bistate, &init);
	page = BufferGetPage(buffer);
	off = ip_op_put_offset(buffer, init);
	CheckForSerializableConflictIn(rel, NULL, InvalidBlockNumber);

	ip_change_begin(&change, rel, IP_XLOG_INSERT, xid);
	change.replay = replay;
	if (!replay && !(options & TABLE_INSERT_NO_LOGICAL))
		set_logical(&change, IP_LOGICAL_INSERT, row, 1, false);
	w = ip_change_block(&change, buffer, init);
	inserter = ip_op_put_inserter(w, page, init, xid, cid);
	ip_op_put_row(w, inserter, off, row, cid, InvalidOffsetNumber, NULL, 0);
	ip_change_apply(&change);
	ItemPointerSet(tid, BufferGetBlockNumber(buffer), off);
	UnlockReleaseBuffer(buffer);
}

/*
 * Returns the inserter to be noted; invalid for COPY FREEZE and other
 * insertions of frozen rows.  But triggers that read the row again, such as
 * those of foreign keys, must see its inserter: heap's frozen rows keep their
 * xmin.
 */
static TransactionId
inserter_xid(Relation rel, CompatOptions options)
{
	TransactionId xid = GetCurrentTransactionId();

	return (options & TABLE_INSERT_FROZEN) &&
		!(rel->trigdesc && rel->trigdesc->trig_insert_after_row) ?
		InvalidTransactionId : xid;
}

/* Form the slot's row for an insertion by (xid, cid). */
static void
form_as(Relation rel, TupleTableSlot *slot, TransactionId xid, CommandId cid,
		CompatOptions options, IpFormed *row)
{
	IpValueChange change = {
		.rel = rel,.xid = xid,.cid = cid,.options = options
	};

	ip_insert_form(&change, slot, row);
}

void
ip_insert_tuple(Relation rel, TupleTableSlot *slot, CommandId cid,
				CompatOptions options, BulkInsertState bistate)
{
	TransactionId xid = inserter_xid(rel, options);
	ItemPointerData tid;
	IpFormed	row;
	bool		is_slots = ip_toast_take_formed(rel, slot, &row);

	if (!is_slots)
		form_as(rel, slot, xid, cid, options, &row);
	insert_row(rel, &row, xid, cid, false, options, bistate, &tid);
	ip_slot_set_written(slot, rel, ItemPointerGetBlockNumber(&tid),
						ItemPointerGetOffsetNumber(&tid), xid, cid,
						InvalidTransactionId);
	if (!is_slots)
		pfree(row.body);
	pgstat_count_heap_insert(rel, 1);
}

void
ip_insert_as(Relation rel, const IpFormed *row, TransactionId xid,
			 CommandId cid, ItemPointer tid)
{
	insert_row(rel, row, xid, cid, true, TABLE_INSERT_SKIP_FSM, NULL, tid);
}

/* ---- ON CONFLICT --------------------------------------------------------- */

/*
 * A speculative row has the token in place of its cid until the insertion is
 * confirmed.  If that fails, the row becomes dead at once.
 */
void
ip_insert_speculative(Relation rel, TupleTableSlot *slot, CommandId cid,
					  CompatOptions options, BulkInsertState bistate,
					  uint32 token)
{
	TransactionId xid = GetCurrentTransactionId();
	IpRowOp		op = {
		.state = ip_state_insert(),.own_xid = true,
		.base = IP_BASE_NONE,.ptr = ip_ptr_cid(token)
	};
	IpFormed	row;
	IpChange	change;
	ByteWriter *w;
	Buffer		buffer;
	bool		init;

	ip_memo_note_speculative(cid);
	form_as(rel, slot, xid, cid, options, &row);
	buffer = find_page(rel, row.bodylen, options, bistate, &init);
	op.off = ip_op_put_offset(buffer, init);
	Assert(op.off <= IP_MAX_ROWS_PER_PAGE); /* I1 */
	op.hdr = row.hdr | IP_HDR_SPECULATIVE;
	op.body = row.body;
	op.bodylen = row.bodylen;
	if (ip_item_size(op.state, row.bodylen) > IP_MAX_ITEM)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row is too big for INSERT ... ON CONFLICT: size %u, maximum size %zu",
						ip_item_size(op.state, row.bodylen),
						(Size) IP_MAX_ITEM)));
	CheckForSerializableConflictIn(rel, NULL, InvalidBlockNumber);

	ip_change_begin(&change, rel, IP_XLOG_INSERT, xid);
	set_logical(&change, IP_LOGICAL_SPEC_INSERT, &row, 1, false);
	w = ip_change_block(&change, buffer, init);
	if (init)
		ip_op_put_init(w);
	ip_op_row(w, &op);
	ip_change_apply(&change);
	ip_slot_set_written(slot, rel, BufferGetBlockNumber(buffer), op.off, xid,
						cid, InvalidTransactionId);
	UnlockReleaseBuffer(buffer);
	pfree(row.body);
	pgstat_count_heap_insert(rel, 1);
}

void
ip_insert_complete_speculative(Relation rel, TupleTableSlot *slot, uint32 token,
							   bool succeeded)
{
	IpVersion	v;
	TransactionId xid = GetCurrentTransactionId();
	BlockNumber block = ItemPointerGetBlockNumber(&slot->tts_tid);
	OffsetNumber off = ItemPointerGetOffsetNumber(&slot->tts_tid);
	Buffer		buffer = ip_rel_read(rel, block);
	HeapTuple	old = NULL;
	IpChange	change;
	ByteWriter *w;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (ip_version_begin(&v, rel, block, BufferGetPage(buffer),
						 off) != IPV_OK ||
		!(v.hdr & IP_HDR_SPECULATIVE) || v.ptr.block != token)
		elog(ERROR, "row (%u,%u) of relation \"%s\" is not a speculative insertion",
			 block, off, RelationGetRelationName(rel));
	if (!succeeded && (v.hdr & IP_HDR_HASEXTERNAL))
		old = ip_toast_heap_tuple(rel, v.hdr, v.body, v.bodylen);

	ip_change_begin(&change, rel, IP_XLOG_SPECULATIVE, xid);
	change.logical = ip_logical_begin(rel, succeeded ? IP_LOGICAL_SPEC_CONFIRM :
									  IP_LOGICAL_SPEC_ABORT);
	w = ip_change_block(&change, buffer, false);
	if (succeeded)
	{
		IpRowOp		op = {
			.off = off,.hdr = v.hdr & ~IP_HDR_SPECULATIVE,.state = v.top_state,
			.own_xid = true,.ptr = ip_ptr_cid(ip_memo_speculative()),
			.base = IP_BASE_ROW,.from = v.body,.fromlen = v.bodylen,
			.body = v.body,.bodylen = v.bodylen
		};

		ip_op_row(w, &op);
	}
	else
		ip_op_dead(w, off);
	ip_change_apply(&change);
	UnlockReleaseBuffer(buffer);
	if (old)
	{
		IpValueChange value_change = {
			.rel = rel,.xid = xid,.cid = GetCurrentCommandId(true)
		};

		ip_toaster_delete(&value_change, old);
	}
}

/* ---- many ---------------------------------------------------------------- */

/*
 * Fill one page with rows, in one change; returns the number of rows.  slots
 * may be NULL.
 */
static int
insert_page(Relation rel, const IpFormed *rows, int nrows,
			TupleTableSlot **slots, TransactionId xid, CommandId cid,
			CompatOptions options, BulkInsertState bistate)
{
	Size		reserve;
	IpChange	change;
	ByteWriter *w;
	Buffer		buffer;
	Page		page;
	OffsetNumber off;
	Size		free;
	IpInserter	inserter;
	bool		init;
	bool		together;		/* all in one operation */
	uint8	   *begin = NULL;
	int			n = 0;

	Assert(nrows > 0);
	reserve = ip_space_keep(rel, INSERT_SPACE(rows[0].bodylen));
	buffer = find_page(rel, rows[0].bodylen, options, bistate, &init);
	page = BufferGetPage(buffer);
	off = ip_op_put_offset(buffer, init);
	free = init ? IpPageRoom(BufferGetBlockNumber(buffer)) :
		ip_space_free(BufferGetBlockNumber(buffer), page, BLCKSZ);
	CheckForSerializableConflictIn(rel, NULL, InvalidBlockNumber);

	ip_change_begin(&change, rel, IP_XLOG_MULTI_INSERT, xid);
	w = ip_change_block(&change, buffer, init);
	inserter = ip_op_put_inserter(w, page, init, xid, cid);
	together = inserter != IP_INSERTER_OWN &&
		(init || off > PageGetMaxOffsetNumber(page));
	if (together)
		begin = ip_op_rows_begin(w, off, inserter == IP_INSERTER_NONE);
	do
	{
		Size		size = INSERT_SPACE(rows[n].bodylen);

		if (inserter != IP_INSERTER_OWN)
			size -= IP_VERSION_BLOCK_SZ;
		if (BufferGetBlockNumber(buffer) < IP_SMALL_TABLE)
			size += IP_VERSION_BLOCK_SZ;
		if (n > 0 && (size + reserve > free || off > IP_MAX_ROWS_PER_PAGE))
			break;
		if (!together)
			ip_op_put_row(w, inserter, off, &rows[n], cid, InvalidOffsetNumber,
						  NULL, 0);
		else if (n == 0)
			ip_op_rows_add(w, rows[n].hdr, rows[n].body, rows[n].bodylen, 0,
						   NULL, 0);
		else
			ip_op_rows_add(w, rows[n].hdr, rows[n].body, rows[n].bodylen,
						   rows[n - 1].hdr, rows[n - 1].body,
						   rows[n - 1].bodylen);
		if (slots)
			ip_slot_set_written(slots[n], rel, BufferGetBlockNumber(buffer),
								off, xid, cid, InvalidTransactionId);
		free -= Min(size, free);
		off = init ? off + 1 : ip_page_free_offset(page, off);
		n++;
	} while (n < nrows);
	if (together)
	{
		ip_op_rows_end(w, begin, n);
		change.rows = rows;
	}
	if (slots && !(options & TABLE_INSERT_NO_LOGICAL))
		set_logical(&change, IP_LOGICAL_INSERT, rows, n, n < nrows);
	ip_change_apply(&change);
	UnlockReleaseBuffer(buffer);
	return n;
}

void
ip_insert_multi(Relation rel, TupleTableSlot **slots, int nslots, CommandId cid,
				CompatOptions options, BulkInsertState bistate)
{
	TransactionId xid = inserter_xid(rel, options);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "inplace multi insert",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	IpFormed   *rows = palloc(sizeof(IpFormed) * nslots);

	for (int i = 0; i < nslots; i++)
	{
		if (!ip_toast_take_formed(rel, slots[i], &rows[i]))
			form_as(rel, slots[i], xid, cid, options, &rows[i]);
	}
	for (int done = 0; done < nslots;)
	{
		CHECK_FOR_INTERRUPTS();
		done += insert_page(rel, rows + done, nslots - done, slots + done, xid,
							cid, options, bistate);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	pgstat_count_heap_insert(rel, nslots);
}

void
ip_insert_frozen(Relation rel, const IpFormed *rows, int nrows)
{
	for (int done = 0; done < nrows;)
	{
		CHECK_FOR_INTERRUPTS();
		done += insert_page(rel, rows + done, nrows - done, NULL,
							InvalidTransactionId, 0, TABLE_INSERT_SKIP_FSM,
							NULL);
	}
}
