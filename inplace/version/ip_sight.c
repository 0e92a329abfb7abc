/*-------------------------------------------------------------------------
 * ip_sight.c
 *	  Finding out without a walk what a snapshot sees of a row.
 *
 * The row's page, and for scans one undo record, decide about most rows, also
 * after a committed or aborted change of many rows.  That takes half the time
 * of a walk through the row's versions (ip_version_satisfy).
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "utils/snapmgr.h"

#include "ip_sight.h"
#include "ip_undo.h"
#include "ip_version_satisfy.h"
#include "ip_xid.h"

/*
 * Returns whether the MVCC snapshot sees what xid did.  The result is false,
 * too, if that cannot be decided here.  The snapshot does not see it for
 * certain only if xid is s->known->unseen afterwards.
 */
static inline bool
sees(IpSight *s, IpXid xid)
{
	IpKnownXids *known = s->known;
	TransactionId xid32 = (TransactionId) xid;
	IpXidStatus status;

	if (IpXidIsFrozen(xid) || xid == known->seen)
		return true;
	if (xid == known->unseen)
		return false;
	if (!TransactionIdPrecedes(xid32, s->snapshot->xmin))
	{
		if (TransactionIdIsCurrentTransactionId(xid32))
			return false;
		if (ip_xid_in_snapshot(xid, s->snapshot))
		{
			known->unseen = xid;
			return false;
		}
	}
	status = ip_xid_status(xid, s->horizon);
	if (status == IP_STATUS_COMMITTED)
		known->seen = xid;
	else if (status == IP_STATUS_ABORTED)
		known->unseen = xid;
	return status == IP_STATUS_COMMITTED;
}

/*
 * Take an overlaid row's first bytes from its undo record, if that is
 * available.
 */
static bool
uncover(IpSight *s)
{
	const uint8 *saved;
	uint8		recbuf[BLCKSZ];
	IpUndoRec	rec;

	if (s->row.bodylen > BLCKSZ)
		return false;
	saved = ip_undo_peek_saved(s->rel, s->row.ptr, &s->tid, s->row.xid,
							   s->page);
	if (saved == NULL && s->is_copy &&
		ip_undo_peek(s->rel, s->row.ptr, &s->tid, s->row.xid, s->page, recbuf,
					 &rec))
		saved = rec.saved;
	if (saved == NULL)
		return false;
	ip_row_uncover(&s->row, saved, s->space);
	s->row.body = s->space;
	return true;
}

/*
 * Decide about the version before the newest.  The snapshot does not see the
 * newest version, which has an undo record.
 */
static IpSightOf
previous(IpSight *s)
{
	bool		is_home = s->row.ptr.block ==
		ItemPointerGetBlockNumberNoCheck(&s->tid);
	uint8		recbuf[BLCKSZ];
	IpUndoRec	rec;
	int			len;

	if ((!is_home && !s->is_copy) ||
		!ip_undo_peek(s->rel, s->row.ptr, &s->tid, s->row.xid, s->page, recbuf,
					  &rec))
		return IP_SIGHT_WALK;
	if (!sees(s, rec.prev_xid))
		return rec.prev_inserted && rec.prev_xid == s->known->unseen ?
			IP_SIGHT_NOTHING : IP_SIGHT_WALK;
	len = ip_undo_body(&s->row, &rec, s->space, BLCKSZ);
	if (len < 0)
		return IP_SIGHT_WALK;
	s->end_xid = s->row.xid;
	s->end_cid = rec.cid;
	if (rec.flags & IP_REC_HDR)
		s->row.hdr = rec.hdr;
	s->row.state = rec.prev_inserted ? IP_ROW_INSERTED : 0;
	s->row.xid = rec.prev_xid;
	s->row.ptr = rec.prev_ptr;
	s->row.body = s->space;
	s->row.bodylen = len;
	return IP_SIGHT_PREVIOUS;
}

/* Decide about a row that is neither deleted nor visible to all. */
static IpSightOf
sight_of_change(IpSight *s)
{
	if (sees(s, s->row.xid))
	{
		Assert(!(s->row.state & IP_ROW_DELETED));
		return !(s->row.state & IP_ROW_OVERLAID) || uncover(s) ?
			IP_SIGHT_NEWEST : IP_SIGHT_WALK;
	}
	if (s->row.xid != s->known->unseen)
		return IP_SIGHT_WALK;
	if (s->row.state & IP_ROW_INSERTED)
		return IP_SIGHT_NOTHING;
	return ip_row_is_changed(&s->row) ? previous(s) : IP_SIGHT_WALK;
}

IpSightOf
ip_sight(IpSight *s)
{
	OffsetNumber off = ItemPointerGetOffsetNumberNoCheck(&s->tid);
	ItemId		lp = PageGetItemId(s->page, off);
	bool		is_mvcc = s->snapshot->snapshot_type == SNAPSHOT_MVCC &&
		!IsolationIsSerializable();

	Assert(ip_page_is_locked(s->page, false) &&
		   (!s->is_copy || !ip_page_in_buffers(s->page)));
	CompatInjectionPoint("inplace-sight");
	s->end_xid = IP_XID_NONE;
	s->end_cid = 0;
	if (is_mvcc && s->item != NULL &&
		ip_row_read_live(s->page, s->item, ItemIdGetLength(lp), s->hdr,
						 &s->row))
		return sight_of_change(s);
	if (!ip_row_read_deleted(s->rel, ItemPointerGetBlockNumberNoCheck(&s->tid),
							 s->page, off, &s->row))
		return IP_SIGHT_WALK;
	if (!is_mvcc)
		return ip_version_deletion_hides(s->row.xid, s->snapshot, s->horizon) ?
			IP_SIGHT_NOTHING : IP_SIGHT_WALK;
	if (sees(s, s->row.xid))
		return IP_SIGHT_NOTHING;
	return s->row.xid == s->known->unseen && ip_row_is_changed(&s->row) ?
		previous(s) : IP_SIGHT_WALK;
}

void
ip_sight_id(const IpSight *s, IpVersionId *id)
{
	const IpRow *row = &s->row;

	id->xmin = IpXidIsFrozen(row->xid) ? FrozenTransactionId :
		(TransactionId) row->xid;
	id->cmin = (row->state & IP_ROW_INSERTED) ? (CommandId) row->ptr.block : 0;
	id->ptr = row->ptr;
	id->xmax = (TransactionId) s->end_xid;
	id->cmax = s->end_xid != IP_XID_NONE ? s->end_cid : id->cmin;
}
