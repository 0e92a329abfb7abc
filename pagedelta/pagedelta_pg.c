/*-------------------------------------------------------------------------
 * pagedelta_pg.c
 *	  Generic WAL records, made with pagedelta.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xloginsert.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "pagedelta_pg.h"

/*
 * Vector instructions run faster with this alignment.  Versions that support
 * direct I/O require a larger one.
 */
#define IMAGE_ALIGNMENT 4096

/*
 * The number of states that are kept for reuse.  A caller that begins a record
 * before it ends another one uses two.
 */
#define MAX_KEPT	2

typedef struct PageState
{
	Buffer		buffer;
	int			flags;
	Page		image;
	uint8	   *delta;			/* PAGEDELTA_ROOM(BLCKSZ) */
	PageDeltaPart parts[PAGEDELTA_MAX_PARTS];
	int			nparts;

	/*
	 * The hole of the buffer at registration if it was all zeros; else both
	 * are 0.
	 */
	int			zeros_begin;
	int			zeros_end;
} PageState;

struct PageDeltaXLogState
{
	dlist_node	node;			/* in used or kept */
	SubTransactionId subid;		/* subtransaction that began it */
	bool		logged;
	int			npages;
	PageState	pages[MAX_GENERIC_XLOG_PAGES];
};

static dlist_head used = DLIST_STATIC_INIT(used);
static dlist_head kept = DLIST_STATIC_INIT(kept);
static int	nkept;
static PageDeltaXLogStats stats;

StaticAssertDecl(BLCKSZ % PAGEDELTA_UNIT == 0 && BLCKSZ <= PAGEDELTA_MAX_PAGE, "pages of this size are not supported");

/* The server has room for this number of parts without a reservation. */
StaticAssertDecl(MAX_GENERIC_XLOG_PAGES * PAGEDELTA_MAX_PARTS <= 20, "too many parts");

/* ---- states ------------------------------------------------------------ */

static void
put_back(PageDeltaXLogState *state)
{
	dlist_delete(&state->node);
	if (nkept == MAX_KEPT)
	{
		pfree(state);
		return;
	}
	dlist_push_head(&kept, &state->node);
	nkept++;
}

/*
 * Put back the states that were begun in this subtransaction or below it.
 * Subtransactions below it have higher IDs.
 */
static void
put_back_from(SubTransactionId subid)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &used)
	{
		PageDeltaXLogState *state = dlist_container(PageDeltaXLogState, node,
													iter.cur);

		if (state->subid >= subid)
			put_back(state);
	}
}

static void
at_end_of_xact(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_PRE_COMMIT &&
		event != XACT_EVENT_PARALLEL_PRE_COMMIT &&
		event != XACT_EVENT_PRE_PREPARE)
		put_back_from(InvalidSubTransactionId);
}

static void
at_end_of_subxact(SubXactEvent event, SubTransactionId subid,
				  SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		put_back_from(subid);
}

static PageDeltaXLogState *
make_state(void)
{
	static bool registered = false;
	Size		head = MAXALIGN(sizeof(PageDeltaXLogState));
	Size		delta = MAXALIGN(PAGEDELTA_ROOM(BLCKSZ));
	PageDeltaXLogState *state;
	char	   *p;

	if (!registered)
	{
		RegisterXactCallback(at_end_of_xact, NULL);
		RegisterSubXactCallback(at_end_of_subxact, NULL);
		registered = true;
	}
	state = MemoryContextAlloc(TopMemoryContext, head + IMAGE_ALIGNMENT +
							   MAX_GENERIC_XLOG_PAGES * (BLCKSZ + delta));
	p = (char *) TYPEALIGN(IMAGE_ALIGNMENT, (char *) state + head);
	for (int i = 0; i < MAX_GENERIC_XLOG_PAGES; i++)
	{
		state->pages[i].image = p + (Size) i * BLCKSZ;
		state->pages[i].delta = (uint8 *) p + MAX_GENERIC_XLOG_PAGES * BLCKSZ +
			i * delta;
	}
	stats.states++;
	return state;
}

PageDeltaXLogState *
pagedelta_xlog_start(Relation relation)
{
	PageDeltaXLogState *state;

	if (dlist_is_empty(&kept))
		state = make_state();
	else
	{
		state = dlist_container(PageDeltaXLogState, node,
								dlist_pop_head_node(&kept));
		nkept--;
	}
	dlist_push_head(&used, &state->node);
	state->subid = GetCurrentSubTransactionId();
	state->logged = RelationNeedsWAL(relation);
	state->npages = 0;
	return state;
}

void
pagedelta_xlog_abort(PageDeltaXLogState *state)
{
	put_back(state);
}

/*
 * Make the image, a copy of the page with its hole: the caller may read the
 * hole, or make a part of it belong to the page by moving lower and upper.  A
 * hole that generic WAL has left behind is all zeros, and is not copied but set
 * to zeros.
 */
static void
take_image(PageState *ps, Page page)
{
	PageHeader	old = (PageHeader) page;
	int			lower = old->pd_lower;
	int			upper = old->pd_upper;

	if (lower < upper && upper <= BLCKSZ &&
		pagedelta_zeros(page + lower, upper - lower))
	{
		memcpy(ps->image, page, lower);
		memset(ps->image + lower, 0, upper - lower);
		memcpy(ps->image + upper, page + upper, BLCKSZ - upper);
	}
	else
	{
		lower = upper = 0;
		memcpy(ps->image, page, BLCKSZ);
	}
	ps->zeros_begin = lower;
	ps->zeros_end = upper;
	stats.copied += BLCKSZ - (upper - lower);
	stats.zeros += upper - lower;
}

Page
pagedelta_xlog_register(PageDeltaXLogState *state, Buffer buffer, int flags)
{
	PageState  *ps;

	for (int i = 0; i < state->npages; i++)
	{
		if (state->pages[i].buffer == buffer)
			return state->pages[i].image;
	}
	if (state->npages == MAX_GENERIC_XLOG_PAGES)
		elog(ERROR, "maximum number %d of generic xlog buffers is exceeded",
			 MAX_GENERIC_XLOG_PAGES);
	ps = &state->pages[state->npages++];
	ps->buffer = buffer;
	ps->flags = flags;
	take_image(ps, BufferGetPage(buffer));
	return ps->image;
}

/* ---- writing ----------------------------------------------------------- */

/* Make a page's delta.  An error is possible here: no page has changed yet. */
static void
prepare_page(PageState *ps)
{
	Page		page = BufferGetPage(ps->buffer);
	PageHeader	old = (PageHeader) page;
	PageHeader	new = (PageHeader) ps->image;
	PageDeltaBounds bounds = {
		old->pd_lower, old->pd_upper, new->pd_lower, new->pd_upper
	};
	int			len;

	ps->nparts = 0;
	if (new->pd_lower > new->pd_upper || new->pd_upper > BLCKSZ)
		elog(ERROR, "impossible bounds of a page to be logged: lower = %u, upper = %u",
			 new->pd_lower, new->pd_upper);
	if (ps->flags & GENERIC_XLOG_FULL_IMAGE)
		return;
	len = pagedelta_make_parts(page, ps->image, BLCKSZ, &bounds, ps->delta,
							   PAGEDELTA_ROOM(BLCKSZ), ps->parts, &ps->nparts);
	if (len < 0)
		elog(ERROR, "impossible bounds of a page to be changed: lower = %u, upper = %u",
			 old->pd_lower, old->pd_upper);
	stats.delta += len;
	for (int i = 0; i < ps->nparts; i++)
	{
		if ((uint8 *) ps->parts[i].data >= ps->delta &&
			(uint8 *) ps->parts[i].data < ps->delta + PAGEDELTA_ROOM(BLCKSZ))
			stats.copied += ps->parts[i].len;
	}
}

/* Write zeros to a page's new hole, except where the page has zeros already. */
static void
zero_hole(PageState *ps, Page page, int lower, int upper)
{
	int			begin = Min(Max(ps->zeros_begin, lower), upper);
	int			end = Max(Min(ps->zeros_end, upper), begin);

	memset(page + lower, 0, begin - lower);
	memset(page + end, 0, upper - end);
}

/*
 * Copy the image into the buffer.  Its hole becomes zeros, because replay
 * makes it so.
 */
static void
change_page(PageState *ps)
{
	Page		page = BufferGetPage(ps->buffer);
	PageHeader	new = (PageHeader) ps->image;
	uint16		lower = new->pd_lower;
	uint16		upper = new->pd_upper;

	if (ps->flags & GENERIC_XLOG_FULL_IMAGE)
	{
		memcpy(page, ps->image, lower);
		memcpy(page + upper, ps->image + upper, BLCKSZ - upper);
		stats.copied += lower + BLCKSZ - upper;
	}
	else
		stats.copied += pagedelta_apply_parts(page, ps->parts, ps->nparts);
	zero_hole(ps, page, lower, upper);
	Assert(pagedelta_zeros(page + lower, upper - lower));
	Assert(memcmp(page, ps->image, lower) == 0);
	Assert(memcmp(page + upper, ps->image + upper, BLCKSZ - upper) == 0);
}

static void
register_page(PageState *ps, uint8 id)
{
	if (ps->flags & GENERIC_XLOG_FULL_IMAGE)
	{
		XLogRegisterBuffer(id, ps->buffer,
						   REGBUF_FORCE_IMAGE | REGBUF_STANDARD);
		stats.images++;
		return;
	}
	XLogRegisterBuffer(id, ps->buffer, REGBUF_STANDARD);
	for (int i = 0; i < ps->nparts; i++)
		XLogRegisterBufData(id, (char *) ps->parts[i].data, ps->parts[i].len);
}

static XLogRecPtr
write_record(PageDeltaXLogState *state)
{
	XLogRecPtr	lsn;

	for (int i = 0; i < state->npages; i++)
		prepare_page(&state->pages[i]);
	XLogBeginInsert();
	START_CRIT_SECTION();
	for (int i = 0; i < state->npages; i++)
	{
		change_page(&state->pages[i]);
		MarkBufferDirty(state->pages[i].buffer);
		register_page(&state->pages[i], (uint8) i);
	}
	lsn = XLogInsert(RM_GENERIC_ID, 0);
	for (int i = 0; i < state->npages; i++)
		PageSetLSN(BufferGetPage(state->pages[i].buffer), lsn);
	END_CRIT_SECTION();
	stats.records++;
	stats.pages += state->npages;
	return lsn;
}

XLogRecPtr
pagedelta_xlog_finish(PageDeltaXLogState *state)
{
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	if (state->logged)
		lsn = write_record(state);
	else
	{
		START_CRIT_SECTION();
		for (int i = 0; i < state->npages; i++)
		{
			memcpy(BufferGetPage(state->pages[i].buffer), state->pages[i].image,
				   BLCKSZ);
			MarkBufferDirty(state->pages[i].buffer);
		}
		END_CRIT_SECTION();
		stats.copied += (uint64) state->npages * BLCKSZ;
	}
	put_back(state);
	return lsn;
}

const PageDeltaXLogStats *
pagedelta_xlog_stats(void)
{
	return &stats;
}
