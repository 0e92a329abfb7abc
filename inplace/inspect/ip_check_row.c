/*-------------------------------------------------------------------------
 * ip_check_row.c
 *	  inplace_check(): rows, by themselves and against their undo.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "access/visibilitymap.h"

#include "ip_body.h"
#include "ip_check_row.h"
#include "ip_delta.h"
#include "ip_row.h"

/*
 * A row that changes while it is being checked is checked again, up to this
 * number of times.
 */
#define MAX_TRIES		10

/*
 * The versions of one row.  It is like IpVersion, but nothing in it raises an
 * error.
 */
typedef struct Chain
{
	ItemPointerData tid;
	uint16		hdr;
	uint8		state;
	IpXid		xid;
	IpPtr		ptr;
	const uint8 *body;
	uint32		bodylen;
	IpXid		needed_by;		/* the problem counts only while this xid
								 * needs undo */
	bool		gone;			/* the cause may be that undo was recycled */
	ItemPointerData forward;	/* where the row has moved, or invalid */
	IpUndoRec	rec;
	int			bodycur;
	uint8		bodybuf[2][BLCKSZ];
	uint8		recbuf[BLCKSZ];
} Chain;

/* ---- rows and their undo ----------------------------------------------- */

/*
 * Load ch->rec, the record about ch's row at ptr.  Returns why it cannot be
 * loaded, or NULL.
 */
static const char *
load_record(IpCheck *c, Chain *ch, IpPtr ptr)
{
	const char *problem = "there is no undo page";
	Page		page = c->rows.data;
	Buffer		buffer;

	/* the row's page has been copied */
	if (ptr.block == ItemPointerGetBlockNumberNoCheck(&ch->tid))
	{
		if (ptr.off < FirstOffsetNumber ||
			ptr.off > PageGetMaxOffsetNumber(page) ||
			!ip_item_is_undo(page, PageGetItemId(page, ptr.off)))
			return "it is not on the row's page";
		problem = ip_page_check_record(page, ptr.block, ptr.off, ch->recbuf,
									   &ch->rec);
	}
	else
	{
		if (ptr.block >= c->nblocks)
			(void) ip_check_new_pages(c);
		if (ptr.block == IP_META_BLOCK || ptr.block >= c->nblocks)
			return "there is no such page";
		if (ip_check_page_kind(c, ptr.block) == PAGE_BAD)
			return "the page is damaged";
		buffer = ReadBuffer(c->rel, ptr.block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (ip_check_page_is(c, BufferGetPage(buffer), IP_PAGE_UNDO))
			problem = ip_page_check_record(BufferGetPage(buffer), ptr.block,
										   ptr.off, ch->recbuf, &ch->rec);
		UnlockReleaseBuffer(buffer);
	}
	if (problem == NULL &&
		memcmp(&ch->rec.row, &ch->tid, sizeof(ItemPointerData)) != 0)
		problem = "it is about another row";
	return problem;
}

/* Load the record of the change that made the version. */
static const char *
chain_load(IpCheck *c, Chain *ch)
{
	const char *problem = load_record(c, ch, ch->ptr);
	const IpUndoRec *rec = &ch->rec;
	bool		deleted = (ch->state & IP_ROW_DELETED) != 0;
	bool		moved = (ch->state & IP_ROW_MOVED) != 0;

	if (problem == NULL && rec->xid != ch->xid)
		problem = "it is another transaction's";
	if (problem == NULL &&
		rec->kind != (deleted ? IP_UNDO_DELETE : IP_UNDO_UPDATE))
		problem = "it is of the wrong kind";
	if (problem == NULL && deleted &&
		moved != ((rec->flags & (IP_REC_FORWARD | IP_REC_PARTITION)) != 0))
		problem = "row and record disagree about where the row has moved";
	ch->gone = problem != NULL && !(ch->state & IP_ROW_OVERLAID);
	return problem == NULL ? NULL :
		ip_check_fail(c, "undo record (%u,%u) of xid " UINT64_FORMAT ": %s",
					  ch->ptr.block, ch->ptr.off, ch->xid, problem);
}

/* Stand on the newest version. */
static const char *
chain_begin(IpCheck *c, Chain *ch, const IpRow *row)
{
	const uint8 *saved = NULL;
	const char *problem = NULL;
	uint8	   *body = ch->bodybuf[0];

	ch->hdr = row->hdr;
	ch->state = row->state;
	ch->xid = row->xid;
	ch->ptr = row->ptr;
	ch->body = row->body;
	ch->bodylen = row->bodylen;
	ch->bodycur = 0;
	ch->needed_by = IP_XID_NONE;
	ch->gone = false;
	ItemPointerSetInvalid(&ch->forward);
	if (row->state & IP_ROW_OVERLAID)
	{
		problem = chain_load(c, ch);
		saved = ch->rec.saved;
	}
	if (problem || !(row->state & IP_ROW_OVERLAID))
		return problem;
	if (saved == NULL)
		return ip_check_fail(c, "undo record (%u,%u) has not kept the overlaid bytes",
							 row->ptr.block, row->ptr.off);
	ip_row_uncover(row, saved, body);
	ch->body = body;
	return ip_check_has_aborted(ch->xid) ? NULL :
		ip_check_body(c, ch->hdr, ch->body, ch->bodylen);
}

/* Go to the next older version. */
static const char *
chain_older(IpCheck *c, Chain *ch)
{
	const IpUndoRec *rec = &ch->rec;
	uint32		newlen = ch->bodylen;
	const char *problem;

	ch->needed_by = ch->xid;
	problem = chain_load(c, ch);
	if (problem)
		return problem;
	if (rec->kind == IP_UNDO_UPDATE)
	{
		ByteReader	r = {rec->delta, rec->delta + rec->deltalen, false};
		int			to = 1 - ch->bodycur;
		int			len = ip_delta_apply(&r, ch->body, ch->bodylen,
										 ch->bodybuf[to], BLCKSZ);

		if (len < IP_ROW_MIN_BODY || r.p != r.end)
			return ip_check_fail(c, "delta of undo record (%u,%u) does not fit the row",
								 ch->ptr.block, ch->ptr.off);
		ch->bodycur = to;
		ch->body = ch->bodybuf[to];
		ch->bodylen = len;
	}
	if (rec->has_skip && rec->skip.newlen != newlen)
		return ip_check_fail(c, "skip section of undo record (%u,%u) does not fit the row",
							 ch->ptr.block, ch->ptr.off);
	if (rec->flags & IP_REC_HDR)
		ch->hdr = rec->hdr;
	if (rec->flags & IP_REC_FORWARD)
		ch->forward = rec->forward;
	ch->xid = rec->prev_xid;
	ch->ptr = rec->prev_ptr;
	ch->state = (rec->flags & IP_REC_PREV_INSERTED) ? IP_ROW_INSERTED : 0;
	if (ip_check_in_future(c, ch->xid))
		return ip_check_fail(c, "older version has xid " UINT64_FORMAT ", which is in the future",
							 ch->xid);
	if (ip_check_has_aborted(ch->xid))
		return NULL;
	problem = ip_check_body(c, ch->hdr, ch->body, ch->bodylen);
	return problem == NULL ? NULL :
		ip_check_fail(c, "older version: %s", problem);
}

/* Check all versions that a snapshot may see, or a rollback may restore. */
static const char *
chain_problem(IpCheck *c, Chain *ch, const IpRow *row)
{
	const char *problem = chain_begin(c, ch, row);
	IpPtr		mark = {InvalidBlockNumber, 0};
	uint64		n = 0;

	if (problem == NULL && (ch->hdr & IP_HDR_SPECULATIVE) &&
		!IpXidIsFrozen(ch->xid) &&
		ip_check_status(ch->xid) == IP_STATUS_COMMITTED)
		return "speculative insertion was never confirmed";
	while (problem == NULL && !(ch->state & IP_ROW_INSERTED) &&
		   ip_check_is_needed(c, ch->xid))
	{
		CHECK_FOR_INTERRUPTS();
		if (IpPtrEquals(ch->ptr, mark))
			return "the row's undo records form a circle";
		if ((n & (n - 1)) == 0)
			mark = ch->ptr;
		n++;
		problem = chain_older(c, ch);
	}
	return problem;
}

/*
 * Returns a problem if there is no row, and never was one, where an update has
 * moved the row.
 */
static const char *
forward_problem(IpCheck *c, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(tid);
	bool		ok = false;
	Buffer		buffer;

	if (block >= c->nblocks)
		(void) ip_check_new_pages(c);
	if (block < c->nblocks && ip_check_page_kind(c, block) == PAGE_BAD)
		return NULL;
	if (block < c->nblocks)
	{
		buffer = ReadBuffer(c->rel, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		ok = ip_check_page_is(c, BufferGetPage(buffer), IP_PAGE_DATA) &&
			off >= FirstOffsetNumber &&
			off <= PageGetMaxOffsetNumber(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
	}
	return ok ? NULL :
		ip_check_fail(c, "row has moved to (%u,%u), where no row is",
					  block, off);
}

/*
 * Check the place to which the row has moved; if forward is invalid, it has not
 * moved.
 */
static void
check_forward(IpCheck *c, BlockNumber block, OffsetNumber off, IpXid xid,
			  const ItemPointerData *forward)
{
	if (ItemPointerIsValid(forward) && ip_check_is_needed(c, xid) &&
		!ip_check_may_be_gone(xid) && !ip_check_has_aborted(xid))
		ip_check_report(c, block, off, forward_problem(c, forward));
}

/*
 * Returns whether the row's item is the same in both copies, and has the same
 * meaning.
 */
static bool
row_is_unchanged(IpCheck *c, OffsetNumber off)
{
	ItemId		lp = PageGetItemId(c->rows.data, off);
	ItemId		lp2 = PageGetItemId(c->again.data, off);

	return ip_check_page_is(c, c->again.data, IP_PAGE_DATA) &&
		off <= PageGetMaxOffsetNumber(c->again.data) && ip_item_is_ours(lp2) &&
		ItemIdGetLength(lp) == ItemIdGetLength(lp2) &&
		ip_item_start(lp2) + ItemIdGetLength(lp2) <= BLCKSZ &&
		memcmp(c->rows.data + ip_item_start(lp),
			   c->again.data + ip_item_start(lp2), ItemIdGetLength(lp)) == 0 &&
		memcmp(IpPageGetSpecial(c->rows.data), IpPageGetSpecial(c->again.data),
			   sizeof(IpSpecial)) == 0;
}

/* Returns whether the row's record may be missing, or be another one. */
static bool
may_lack_undo(IpCheck *c, const IpRow *row)
{
	if (!(row->state & IP_ROW_VERSION))
		return true;
	if ((row->state & IP_ROW_OVERLAID) || (row->hdr & IP_HDR_SPECULATIVE))
		return false;
	return (row->state & IP_ROW_INSERTED) || !ip_check_is_needed(c, row->xid);
}

/*
 * Check the undo of the row at off of c->rows.  Returns false if the page has
 * changed meanwhile: then it has been copied again, and the row is to be
 * checked again.
 */
static bool
check_row_undo(IpCheck *c, Chain *ch, BlockNumber block, OffsetNumber off)
{
	char		text[sizeof(c->problem)];
	const char *problem;
	IpRow		row;

	if (off > PageGetMaxOffsetNumber(c->rows.data) ||
		!ip_row_is_at(c->rows.data, off) ||
		!ip_item_is_ours(PageGetItemId(c->rows.data, off)) ||
		ip_check_row(c, c->rows.data, off, &row) != NULL)
		return true;
	if ((row.state & IP_ROW_CHANGED) && (row.state & IP_ROW_MOVED))
		check_forward(c, block, off, row.xid, &row.changed.forward);
	if (may_lack_undo(c, &row))
		return true;
	ItemPointerSet(&ch->tid, block, off);
	problem = chain_problem(c, ch, &row);
	if (problem == NULL)
	{
		check_forward(c, block, off, row.xid, &ch->forward);
		return true;
	}
	strlcpy(text, problem, sizeof(text));
	if (ip_check_copy_page(c, block, c->again.data) != NULL)
		return true;
	if (!row_is_unchanged(c, off))
	{
		if (!ip_check_page_is(c, c->again.data, IP_PAGE_DATA))
			return true;
		memcpy(c->rows.data, c->again.data, BLCKSZ);
		return false;
	}
	ip_check_refresh_horizon(c);
	if (IpXidIsFrozen(ch->needed_by) ||
		(ip_check_is_needed(c, ch->needed_by) &&
		 !(ch->gone && ip_check_may_be_gone(ch->needed_by))))
		ip_check_report(c, block, off, text);
	return true;
}

void
ip_check_row_undo(IpCheck *c, BlockNumber block)
{
	OffsetNumber max;

	if (c->chain == NULL)
		c->chain = palloc(sizeof(Chain));
	if (ip_check_copy_page(c, block, c->rows.data) != NULL ||
		!ip_check_page_is(c, c->rows.data, IP_PAGE_DATA))
		return;
	max = PageGetMaxOffsetNumber(c->rows.data);
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		int			tries = 0;

		while (!check_row_undo(c, c->chain, block, off) && ++tries < MAX_TRIES)
			CHECK_FOR_INTERRUPTS();
	}
}
