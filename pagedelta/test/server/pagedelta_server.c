/*-------------------------------------------------------------------------
 * pagedelta_server.c
 *	  Functions for test_pagedelta.py: generic WAL by pagedelta and by the
 *	  server, side by side.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

#include "pagedelta_pg.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(pagedelta_twins);
PG_FUNCTION_INFO_V1(pagedelta_too_many);
PG_FUNCTION_INFO_V1(pagedelta_impossible);
PG_FUNCTION_INFO_V1(pagedelta_nested);
PG_FUNCTION_INFO_V1(pagedelta_states);
PG_FUNCTION_INFO_V1(pagedelta_copied);

#define PAGES	8

static uint64 seed;

static uint32
draw(uint32 below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32) (seed >> 20) % below;
}

static Buffer
get_page(Relation rel, BlockNumber block)
{
	Buffer		buffer;

	while (RelationGetNumberOfBlocks(rel) <= block)
	{
		LockRelationForExtension(rel, ExclusiveLock);
		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, P_NEW, RBM_ZERO_AND_LOCK,
									NULL);
		UnlockRelationForExtension(rel, ExclusiveLock);
		UnlockReleaseBuffer(buffer);
	}
	buffer = ReadBuffer(rel, block);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	return buffer;
}

/* Change a page at random; in the same way for the same seed. */
static void
change(Page page)
{
	PageHeader	ph = (PageHeader) page;
	int			n = draw(5);

	if (PageIsNew(page) || draw(30) == 0)
		PageInit(page, BLCKSZ, draw(64));
	for (; n > 0; n--)
	{
		uint32		at = SizeOfPageHeaderData +
			draw(BLCKSZ - SizeOfPageHeaderData);
		uint32		len = 1 + draw(1 << draw(12));

		len = Min(len, BLCKSZ - at);
		switch (draw(4))
		{
			case 0:
				for (uint32 i = 0; i < len; i++)
					page[at + i] = (char) draw(3);
				break;
			case 1:
				memmove(page + at,
						page + SizeOfPageHeaderData +
						draw(at - SizeOfPageHeaderData + 1),
						len);
				break;
			default:
				page[at] ^= 1;
				break;
		}
	}
	if (draw(2) == 0)
	{
		ph->pd_lower = SizeOfPageHeaderData +
			draw(ph->pd_special - SizeOfPageHeaderData + 1);
		ph->pd_upper = ph->pd_lower + draw(ph->pd_special - ph->pd_lower + 1);
	}
}

/*
 * Write bytes into the hole of a buffer's page.  The caller of generic WAL
 * sees them in the image, and may make them part of the page.
 */
static void
scribble(Page page)
{
	PageHeader	ph = (PageHeader) page;

	if (draw(4) == 0 && ph->pd_lower < ph->pd_upper)
		page[ph->pd_lower + draw(ph->pd_upper - ph->pd_lower)] = 'x';
}

static void
round_of_core(Relation rel)
{
	GenericXLogState *state = GenericXLogStart(rel);
	Buffer		buffers[MAX_GENERIC_XLOG_PAGES];
	int			n = 1 + draw(MAX_GENERIC_XLOG_PAGES);
	int			first = draw(PAGES);

	for (int i = 0; i < n; i++)
	{
		buffers[i] = get_page(rel, (first + i) % PAGES);
		scribble(BufferGetPage(buffers[i]));
		change(GenericXLogRegisterBuffer(state, buffers[i],
										 draw(8) == 0 ?
										 GENERIC_XLOG_FULL_IMAGE : 0));
	}
	if (draw(10) == 0)
		GenericXLogAbort(state);
	else
		GenericXLogFinish(state);
	for (int i = 0; i < n; i++)
		UnlockReleaseBuffer(buffers[i]);
}

static void
round_of_ours(Relation rel)
{
	PageDeltaXLogState *state = pagedelta_xlog_start(rel);
	Buffer		buffers[MAX_GENERIC_XLOG_PAGES];
	int			n = 1 + draw(MAX_GENERIC_XLOG_PAGES);
	int			first = draw(PAGES);

	for (int i = 0; i < n; i++)
	{
		buffers[i] = get_page(rel, (first + i) % PAGES);
		scribble(BufferGetPage(buffers[i]));
		change(pagedelta_xlog_register(state, buffers[i],
									   draw(8) == 0 ? GENERIC_XLOG_FULL_IMAGE :
									   0));
	}
	if (draw(10) == 0)
		pagedelta_xlog_abort(state);
	else
		pagedelta_xlog_finish(state);
	for (int i = 0; i < n; i++)
		UnlockReleaseBuffer(buffers[i]);
}

/* Raise an error unless all pages are equal except for their LSNs. */
static void
compare(Relation a, Relation b, int round)
{
	for (BlockNumber block = 0; block < PAGES; block++)
	{
		Buffer		x = get_page(a, block);
		Buffer		y = get_page(b, block);

		if (memcmp((char *) BufferGetPage(x) + 8, (char *) BufferGetPage(y) + 8,
				   BLCKSZ - 8) != 0)
			elog(ERROR, "round %d: block %u differs", round, block);
		UnlockReleaseBuffer(x);
		UnlockReleaseBuffer(y);
	}
}

/*
 * twins(a, b, rounds, seed): make the same random changes of both relations,
 * one by the server, one by pagedelta
 */
Datum
pagedelta_twins(PG_FUNCTION_ARGS)
{
	Relation	a = relation_open(PG_GETARG_OID(0), AccessExclusiveLock);
	Relation	b = relation_open(PG_GETARG_OID(1), AccessExclusiveLock);
	int			rounds = PG_GETARG_INT32(2);
	uint64		start = ((uint64) PG_GETARG_INT32(3) + 1) *
		UINT64CONST(0x9E3779B97F4A7C15);

	for (int i = 0; i < rounds; i++)
	{
		seed = start;
		round_of_core(a);
		seed = start;
		round_of_ours(b);
		start = seed;
		if (i % 16 == 0 || i == rounds - 1)
			compare(a, b, i);
	}
	relation_close(a, NoLock);
	relation_close(b, NoLock);
	PG_RETURN_VOID();
}

/*
 * Register one buffer more than the limit.  pagedelta raises the server's
 * error.
 */
Datum
pagedelta_too_many(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessExclusiveLock);
	PageDeltaXLogState *state = pagedelta_xlog_start(rel);

	for (BlockNumber block = 0; block <= MAX_GENERIC_XLOG_PAGES; block++)
		(void) pagedelta_xlog_register(state, get_page(rel, block), 0);
	PG_RETURN_VOID();
}

/*
 * impossible(rel, lower, upper): set impossible bounds in the image of block 0
 */
Datum
pagedelta_impossible(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessExclusiveLock);
	PageDeltaXLogState *state = pagedelta_xlog_start(rel);
	Page		page = pagedelta_xlog_register(state, get_page(rel, 0), 0);

	((PageHeader) page)->pd_lower = PG_GETARG_INT32(1);
	((PageHeader) page)->pd_upper = PG_GETARG_INT32(2);
	(void) pagedelta_xlog_finish(state);
	PG_RETURN_VOID();
}

/*
 * Build two records at a time.  A buffer that is registered twice has one
 * image.
 */
Datum
pagedelta_nested(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessExclusiveLock);
	PageDeltaXLogState *outer = pagedelta_xlog_start(rel);
	PageDeltaXLogState *inner = pagedelta_xlog_start(rel);
	Buffer		first = get_page(rel, 0);
	Buffer		second = get_page(rel, 1);
	Page		page = pagedelta_xlog_register(outer, first, 0);
	Page		other = pagedelta_xlog_register(inner, second,
												GENERIC_XLOG_FULL_IMAGE);

	if (page == other || pagedelta_xlog_register(outer, first, 0) != page)
		elog(ERROR, "images are mixed up");
	PageInit(page, BLCKSZ, MAXIMUM_ALIGNOF);
	PageInit(other, BLCKSZ, MAXIMUM_ALIGNOF);
	page[BLCKSZ - 1] = 1;
	other[BLCKSZ - 1] = 2;
	(void) pagedelta_xlog_finish(outer);
	(void) pagedelta_xlog_finish(inner);
	page = BufferGetPage(first);
	other = BufferGetPage(second);
	if (page[BLCKSZ - 1] != 1 || other[BLCKSZ - 1] != 2)
		elog(ERROR, "pages are mixed up");
	UnlockReleaseBuffer(first);
	UnlockReleaseBuffer(second);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}

Datum
pagedelta_states(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) pagedelta_xlog_stats()->states);
}

/*
 * copied(rel): bytes copied for a record that appends 32 bytes to block 0.
 * The extremes are a full and an empty page.
 */
Datum
pagedelta_copied(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessExclusiveLock);
	Buffer		buffer = get_page(rel, 0);
	char		item[32] = "item";
	uint64		most = 0;
	bool		full = false;

	PageInit(BufferGetPage(buffer), BLCKSZ, 0);
	while (!full)
	{
		PageDeltaXLogState *state = pagedelta_xlog_start(rel);
		uint64		before = pagedelta_xlog_stats()->copied;
		Page		page = pagedelta_xlog_register(state, buffer, 0);
		Size		used = BLCKSZ - PageGetExactFreeSpace(page);
		uint64		copied;

		full = PageAddItem(page, (void *) item, sizeof(item),
						   InvalidOffsetNumber, false,
						   false) == InvalidOffsetNumber;
		(void) pagedelta_xlog_finish(state);
		copied = pagedelta_xlog_stats()->copied - before;
		if (copied < used || copied > used + 200)
			elog(ERROR, "%llu bytes copied for a page that has %zu",
				 (unsigned long long) copied, used);
		most = Max(most, copied);
	}
	UnlockReleaseBuffer(buffer);
	relation_close(rel, NoLock);
	PG_RETURN_INT64((int64) most);
}
