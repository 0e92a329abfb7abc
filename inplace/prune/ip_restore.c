/*-------------------------------------------------------------------------
 * ip_restore.c
 *	  Putting back a page's aborted changes in one pass.
 *
 * After the rollback of a statement that has changed many rows, nearly all of them are alike: one
 * change to undo, of a row.  For these the general way (ip_prune.c, by
 * ip_version.c) takes five times as long.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_restore.h"
#include "ip_undo.h"
#include "ip_xid.h"

/* Rows of a page that are looked at to find out whether others are worth it */
#define LOOKS	8

/* One page's. */
typedef struct Restore
{
	Relation	rel;
	BlockNumber block;
	Page		page;
	IpXid		horizon;
	IpXid		kept_from;
	ByteWriter *w;
	IpXid		aborted;		/* an xid that has; or IP_XID_NONE */
	IpXid		removable;		/* an xid whose changes all see; or
								 * IP_XID_NONE */
	IpXid		conflict;
	uint32		used;			/* of bodies */
	int			n;
} Restore;

/* What is made for the forward path. */
static IpRestored rows[IP_MAX_ROWS_PER_PAGE];
static uint8 bodies[BLCKSZ];

static bool
has_aborted(Restore *r, IpXid xid)
{
	if (xid != r->aborted && ip_xid_status_locked(xid) == IP_STATUS_ABORTED)
		r->aborted = xid;
	return xid == r->aborted;
}

/* Do all see what it has made, and may its rows forget it? */
static bool
all_see(Restore *r, IpXid xid)
{
	if (xid != r->removable && !IpXidIsFinal(xid) && xid < r->kept_from && ip_xid_status_locked(xid) == IP_STATUS_COMMITTED &&
		(xid < r->horizon || ip_xid_removable(r->rel, xid)))
	{
		r->removable = xid;
		r->conflict = Max(r->conflict, xid);
	}
	return IpXidIsFinal(xid) || xid == r->removable;
}

/*
 * The row's stored state after its change has been undone; false: it would need a version block, or be dead, for
 * the default inserter has not committed.
 */
static bool
state_before(Restore *r, const IpUndoRec *rec, uint8 *state)
{
	const IpSpecial *special = IpPageGetSpecial(r->page);

	*state = 0;
	if (all_see(r, rec->prev_xid))
		return true;
	*state = IP_ROW_DEFAULT;
	return rec->prev_inserted &&
		special->u.data.default_xid == (TransactionId) rec->prev_xid &&
		special->u.data.default_cid == (CommandId) rec->prev_ptr.block &&
		ip_xid_status_locked(rec->prev_xid) == IP_STATUS_COMMITTED;
}

/* Put what the operation says of the row. */
static void
put_row(Restore *r, const IpRestored *row, const IpUndoRec *rec, bool home, bool cut)
{
	uint8		how = row->state == IP_ROW_DEFAULT ? IP_RESTORE_DEFAULT : 0;

	if (home)
		how |= IP_RESTORE_HOME;
	else
	{
		how |= (rec->flags & IP_REC_HDR) ? IP_RESTORE_HDR : 0;
		how |= rec->saved ? IP_RESTORE_SAVED : 0;
		how |= rec->kind == IP_UNDO_UPDATE ? IP_RESTORE_DELTA : 0;
	}
	how |= cut ? IP_RESTORE_LEN : 0;
	ip_op_restore_add(r->w, how, r->n > 0 ? rows[r->n - 1].off : 0, row->off, rec->hdr, rec->saved, rec->delta,
					  rec->deltalen, row->bodylen);
}

/* Read the row at off, if its last change has aborted. */
static bool
read_aborted(Restore *r, OffsetNumber off, IpRow *row)
{
	return ip_row_read_changed(r->page, off, row) && has_aborted(r, row->xid);
}

/* A look at some rows: are there such? */
static bool
is_likely(Restore *r, const IpItemList *list)
{
	IpRow		row;

	for (int i = 0; i < list->n; i += list->n / LOOKS + 1)
	{
		if (read_aborted(r, list->off[i], &row))
			return true;
	}
	return false;
}

/* Put back the row at off, if it is one of those. */
static void
restore_row(Restore *r, OffsetNumber off)
{
	static uint8 buf[BLCKSZ];
	IpRestored *result = &rows[r->n];
	ItemPointerData tid;
	IpUndoRec	rec;
	IpRow		row;
	int			column;
	int			len;
	int			whole;

	if (!read_aborted(r, off, &row))
		return;
	ItemPointerSet(&tid, r->block, off);
	if (!ip_undo_peek(r->rel, row.ptr, &tid, row.xid, r->page, buf, &rec) ||
		rec.prev_xid >= ip_xid_next() || !state_before(r, &rec, &result->state))
		return;
	whole = len = ip_undo_body(&row, &rec, bodies + r->used, sizeof(bodies) - r->used);
	result->off = off;
	result->hdr = (rec.flags & IP_REC_HDR) ? rec.hdr : row.hdr;
	result->body = bodies + r->used;
	/* no longer version will be put back: trailing zeros are dropped */
	if (len >= 0 && result->state == 0 && ip_body_may_be_padded(result->body, len))
		len = ip_body_measure(RelationGetDescr(r->rel), result->hdr, result->body, len, &column);
	if (len < 0)
		return;
	result->bodylen = Min(whole, Max(IP_ROW_MIN_BODY, len));
	if (result->bodylen < IP_ROW_MIN_BODY ||
		ip_item_size(result->state, result->bodylen) > ItemIdGetLength(PageGetItemId(r->page, off)))
		return;
	put_row(r, result, &rec, row.ptr.block == r->block, result->bodylen < whole);
	r->used += result->bodylen;
	r->n++;
}

int
ip_restore_rows(Relation rel, BlockNumber block, Page page, const IpItemList *list, IpXid horizon, IpXid kept_from,
				IpChange *c)
{
	Restore		r = {rel, block, page, horizon, kept_from, &c->w, IP_XID_NONE, IP_XID_NONE, c->conflict};
	uint8	   *start = c->w.p;
	uint8	   *begin;

	Assert(ip_page_is_locked(page, true));
	if (!is_likely(&r, list))
		return 0;
	begin = ip_op_restore_begin(&c->w);
	for (int i = 0; i < list->n; i++)
		restore_row(&r, list->off[i]);
	ip_op_restore_end(&c->w, begin);
	if (r.n == 0)
	{
		c->w.p = start;
		return 0;
	}
	c->conflict = r.conflict;
	c->restored = rows;
	c->nrestored = r.n;
	return r.n;
}
