/*-------------------------------------------------------------------------
 * ip_modify_write.c
 *	  Writing a change of a row, and its undo record.
 *
 * The undo record is kept at home, on the row's page, if that has room; else
 * in an undo page.  A deletion of a row that has no version block needs no
 * undo record if it can be a change by the page's default changer.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/commit_ts.h"

#include "ip_change.h"
#include "ip_home.h"
#include "ip_modify_write.h"
#include "ip_moves.h"
#include "ip_op.h"
#include "ip_page.h"
#include "ip_space.h"
#include "ip_state.h"
#include "ip_undo.h"
#include "ip_undo_use.h"
#include "ip_xid.h"

/*
 * Moving this number of bytes costs more than reading a row's first bytes in
 * its undo record.
 */
#define MIN_SPARED	512

/*
 * An update that makes a row longer by MUCH_LONGER bytes or more leaves
 * ROOM_TO_LEAVE on the page, unless the row is large.  The room is for the undo
 * record, and for the list of moves: other rows may have to move later because
 * this row has taken their room.
 */
#define MUCH_LONGER		16
#define ROOM_TO_LEAVE \
	(IP_VERSION_BLOCK_SZ + IP_HOME_MIN_SZ + MUCH_LONGER + IP_MOVES_ROOM)

/*
 * Number of changes of a page's rows before the backend checks again whether a
 * prune could free line pointers.
 */
#define TIMES_WITHOUT	100

void
ip_modify_same(IpRowWrite *w, IpVersion *v, uint8 info, TransactionId xid)
{
	memset(w, 0, sizeof(*w));
	Assert(v->body != NULL && v->steps == 0);
	w->info = info;
	w->xid = xid;
	w->hdr = v->hdr;
	w->body = w->from = v->body;
	w->bodylen = w->fromlen = w->oldlen = v->bodylen;
	w->saved = v->saved;
}

/* Returns whether the row's version block may cover the start of its body. */
static bool
may_overlay(IpVersion *v)
{
	return !(v->top_state & IP_ROW_VERSION) || (v->top_state & IP_ROW_OVERLAID);
}

/*
 * Returns whether the version block is to cover the body's start although the
 * page has room.  That is so if at least MIN_SPARED bytes lie below the row:
 * these would have to move for the block, and again when a prune removes it.
 * If the row's next change comes before the prune, the row gets a whole block,
 * because records without the bytes are shorter.  With track_commit_timestamp
 * the row keeps its xid after the prune, so its block is whole.
 */
static bool
spares_a_move(IpVersion *v, Page page, uint32 bodylen)
{
	ItemId		lp = PageGetItemId(page, ItemPointerGetOffsetNumber(&v->tid));

	return !track_commit_timestamp && !(v->top_state & IP_ROW_VERSION) &&
		ip_item_size(IP_ROW_VERSION | IP_ROW_OVERLAID,
					 bodylen) == v->top_itemlen &&
		ip_item_start(lp) - ((PageHeader) page)->pd_upper >= MIN_SPARED;
}

bool
ip_modify_fits(IpVersion *v, Page page, uint32 bodylen)
{
	uint32		have = v->top_itemlen + ip_page_free(page);

	return ip_item_size(IP_ROW_VERSION, bodylen) <= have ||
		(may_overlay(v) &&
		 ip_item_size(IP_ROW_VERSION | IP_ROW_OVERLAID, bodylen) <= have);
}

bool
ip_modify_may_grow(IpVersion *v, Page page, uint32 bodylen)
{
	uint32		size = ip_item_size(0, bodylen);
	uint32		have = v->top_itemlen + ip_page_free(page);

	return ip_modify_fits(v, page, bodylen) &&
		(size < v->top_itemlen + MUCH_LONGER || size > IP_HOME_ROW_SIZE ||
		 size + ROOM_TO_LEAVE <= have);
}

/*
 * Returns whether the version is visible to all, so that its maker does not
 * matter, or so old that a record cannot name it.  An older snapshot on a
 * standby conflicts with the change.
 */
static bool
is_frozen(IpVersion *v)
{
	return IpXidIsFrozen(v->xid) ||
		(v->xid + IP_UNDO_MAX_AGE < ip_xid_next() &&
		 !(v->state & IP_ROW_DELETED) && ip_xid_removable(v->rel, v->xid) &&
		 ip_version_status(v) == IP_STATUS_COMMITTED);
}

/*
 * Let an undo record point to the version before, v.  A frozen version has no
 * xid and no record.
 */
static void
set_prev(IpUndoRec *rec, IpVersion *v, bool frozen)
{
	rec->prev_xid = IP_XID_NONE;
	rec->prev_inserted = false;
	rec->prev_ptr = ip_ptr_cid(0);
	if (frozen)
		return;
	rec->prev_xid = v->xid;
	rec->prev_inserted = (v->state & IP_ROW_INSERTED) != 0;
	rec->prev_ptr = v->ptr;
}

/* ---- undo at home -------------------------------------------------------- */

/* The undo record that is kept on the row's page. */
typedef struct Home
{
	OffsetNumber off;			/* 0: no record at home */
	uint32		len;
	IpHomeOp	op;
	uint8		record[BLCKSZ];
} Home;

static Home home_space;

/*
 * Set the arguments of IP_OP_HOME, from which redo derives the record w->undo.
 */
static void
home_args(IpVersion *v, const IpRowWrite *w, IpHomeOp *op)
{
	const IpUndoRec *rec = &w->undo;
	uint8		flags = rec->kind == IP_UNDO_DELETE ? IP_HOME_DELETE : 0;

	flags |= rec->cid != 0 ? IP_HOME_CID : 0;
	flags |= rec->flags & IP_REC_KEYS ? IP_HOME_KEYS : 0;
	flags |= rec->flags & IP_REC_PARTITION ? IP_HOME_PARTITION : 0;
	flags |= ItemPointerIsValid(&rec->forward) ? IP_HOME_FORWARD : 0;
	flags |= w->oldlen != w->fromlen ? IP_HOME_LEN : 0;

	flags |= IpXidIsFrozen(rec->prev_xid) ? 0 : IP_HOME_PREV_ROW;
	op->flags = flags;
	op->cid = rec->cid;
	op->forward = rec->forward;
	op->oldlen = w->oldlen;
}

/*
 * Returns the number of bytes that the page has for the row and its undo
 * record.
 */
static uint32
room_at_home(IpVersion *v, Buffer buffer, const IpRowWrite *w)
{
	uint32		have = v->top_itemlen + ip_page_free(BufferGetPage(buffer));
	uint32		moved = w->moved.buffer == buffer ?
		IP_ROW_MIN_ITEM + w->moved.row.bodylen + sizeof(ItemIdData) : 0;

	return have > moved ? have - moved : 0;
}

static bool
may_be_home(const IpRowWrite *w)
{
	return !w->away && !w->undo.has_skip && ip_home_enabled;
}

/*
 * Make the record.  Returns the space that it and the row take, or 0 if it
 * cannot be at home.
 */
static uint32
make_home(IpVersion *v, Buffer buffer, IpRowWrite *w, bool frozen,
		  bool overlaid, Home *home)
{
	ByteWriter	out = {
		home->record, home->record + sizeof(home->record), false
	};
	BlockNumber block = BufferGetBlockNumber(buffer);
	OffsetNumber after = w->moved.buffer == buffer ? w->moved.off :
		InvalidOffsetNumber;

	home->off = 0;
	if (!may_be_home(w))
		return 0;
	home->off = ip_page_free_offset(BufferGetPage(buffer), InvalidOffsetNumber);
	if (home->off == after)
		home->off = ip_page_free_offset(BufferGetPage(buffer), after);
	if (home->off > IP_MAX_ROWS_PER_PAGE)
		return 0;
	set_prev(&w->undo, v, frozen || w->cut);
	w->undo.saved = overlaid ? w->body : NULL;
	home_args(v, w, &home->op);
	ip_undo_rec_put_home(&out, block, w->xid,
						 ItemPointerGetOffsetNumber(&v->tid), &w->undo);
	if (out.bad)
		return 0;
	home->len = out.p - home->record;
	return ip_item_size(overlaid ? IP_ROW_VERSION | IP_ROW_OVERLAID :
						IP_ROW_VERSION,
						w->bodylen) + home->len +
		sizeof(ItemIdData);
}

static bool
has_home_records(Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		if (ip_item_is_undo(page, PageGetItemId(page, off)))
			return true;
	}
	return false;
}

/*
 * Returns whether a prune could free line pointers of undo records at home.  A
 * page that has no spare line pointers, and no records, mostly stays so.  Many
 * of its rows may change one after another, and each of these changes must not
 * examine all items.
 */
static bool
may_free_pointers(Relation rel, Buffer buffer)
{
	static RelFileNumber number;
	static BlockNumber block;
	static int	times;

	if (times > 0 && block == BufferGetBlockNumber(buffer) &&
		number == CompatRelNumber(rel))
	{
		times--;
		return false;
	}
	if (has_home_records(BufferGetPage(buffer)))
		return true;
	number = CompatRelNumber(rel);
	block = BufferGetBlockNumber(buffer);
	times = TIMES_WITHOUT;
	return false;
}

/*
 * Returns whether there is too little room even for the shortest form of
 * w->undo.
 */
static bool
is_too_long(const IpRowWrite *w, uint32 have)
{
	return have < ip_item_size(IP_ROW_VERSION, w->bodylen) + IP_HOME_MIN_SZ +
		w->undo.deltalen + sizeof(ItemIdData);
}

bool
ip_modify_lacks_home(IpVersion *v, Buffer buffer, IpRowWrite *w)
{
	uint32		have = room_at_home(v, buffer, w);
	uint32		size;

	if (!may_be_home(w))
		return false;
	/* in most cases there is much more than needed, or almost nothing */
	if (have >= ip_item_size(IP_ROW_VERSION, w->bodylen) +
		IP_UNDO_SPACE(w->undo.deltalen) &&
		PageGetMaxOffsetNumber(BufferGetPage(buffer)) < IP_MAX_ROWS_PER_PAGE)
		return false;
	w->away = is_too_long(w, have);
	if (w->away)
		return true;
	size = make_home(v, buffer, w, is_frozen(v), false, &home_space);
	w->away = size == 0 || size > have;
	/* only a line pointer is missing; a prune may free some */
	return size == 0 ? may_free_pointers(v->rel, buffer) : w->away;
}

/* ---- the page's default changer ------------------------------------------ */

/*
 * Put the new row of an update that moves it.  It is a delta to the old version
 * if redo finds all of that on the same page.
 */
static void
put_moved(ByteWriter *ops, IpVersion *v, const IpRowWrite *w, Buffer buffer)
{
	const IpRowMoved *moved = &w->moved;
	IpInserter	inserter = ip_op_put_inserter(ops, BufferGetPage(moved->buffer),
											  moved->init, w->xid, w->cid);

	if (moved->buffer == buffer &&
		(w->saved == NULL || ip_version_saved_at_home(v)))
		ip_op_put_row(ops, inserter, moved->off, &moved->row, w->cid,
					  ItemPointerGetOffsetNumber(&v->tid), w->from, w->fromlen);
	else
		ip_op_put_row(ops, inserter, moved->off, &moved->row, w->cid,
					  InvalidOffsetNumber, NULL, 0);
}

/*
 * Returns whether the page's default changer can say all that an undo record
 * would say about the change.
 */
static bool
is_changers(IpVersion *v, const IpRowWrite *w)
{
	if ((v->top_state & IP_ROW_VERSION) || w->replay || !ip_home_enabled ||
		(v->hdr & IP_HDR_SPECULATIVE))
		return false;
	return w->undo.kind == IP_UNDO_DELETE && w->undo.cid <= IP_MAX_CHANGE_CID &&
		(BufferIsValid(w->moved.buffer) ? !(w->undo.flags & IP_REC_PARTITION) :
		 w->undo.flags == IP_REC_KEYS);
}

/*
 * Returns the offset for a new list of moves: the first item that is unused
 * when the list is put.  Before that, the new row gets the item "taken" if it
 * is on this page, and the former list at "old", if any, is removed.
 */
static OffsetNumber
place_of_new_list(Page page, OffsetNumber old, OffsetNumber taken)
{
	OffsetNumber off;

	for (off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		if (off == old || (!ItemIdIsUsed(PageGetItemId(page, off)) &&
						   off != taken))
			return off;
	}
	return off == taken ? off + 1 : off;
}

/*
 * Returns the offset of the list to which w's move is to be added, existing or
 * new; InvalidOffsetNumber if there is no room for it.  clear: the old list is
 * removed.
 */
static OffsetNumber
place_of_list(IpVersion *v, Buffer buffer, const IpRowWrite *w, bool clear)
{
	Page		page = BufferGetPage(buffer);
	bool		here = w->moved.buffer == buffer;
	OffsetNumber old = ip_moves_find(page);
	OffsetNumber list = clear ? InvalidOffsetNumber : old;
	uint32		size =
		ip_moves_space(page, list, ItemPointerGetOffsetNumber(&v->tid),
					   &w->undo.forward, (w->undo.flags & IP_REC_KEYS) != 0);

	if (here)
		size += IP_ROW_MIN_ITEM + w->moved.row.bodylen + sizeof(ItemIdData);
	if (size > ip_page_free(page))
		return InvalidOffsetNumber;
	if (list == InvalidOffsetNumber)
		list = place_of_new_list(page, old,
								 here ? w->moved.off : InvalidOffsetNumber);
	return list <= IP_MAX_ROWS_PER_PAGE ? list : InvalidOffsetNumber;
}

/*
 * If v's lockers were looked up, and no row of the page is locked, clear the
 * page's reference to lock sets, so that they need not be looked up again.
 */
static void
forget_locks(ByteWriter *ops, const IpVersion *v, Page page)
{
	if (v->lockers_known && !v->lockers.any &&
		IpPageGetSpecial(page)->u.data.lock_page != 0)
		ip_op_lock_page(ops, 0);
}

/*
 * Delete or move the row without a version block or an undo record, if we are,
 * or can become, the page's default changer; false if not.
 */
static bool
write_changed(IpVersion *v, Buffer buffer, IpRowWrite *w)
{
	Page		page = BufferGetPage(buffer);
	const IpSpecial *special = IpPageGetSpecial(page);
	CommandId	cid = w->undo.cid;
	bool		is_ours = special->u.data.change_xid == w->xid &&
		special->w.data.change_cid == cid;
	bool		clear = TransactionIdIsValid(special->u.data.change_xid) &&
		!is_ours;
	bool		moves = BufferIsValid(w->moved.buffer);
	OffsetNumber list = InvalidOffsetNumber;
	IpChange	change;
	ByteWriter *ops;

	if (!is_changers(v, w) || (clear && !ip_page_changer_is_over(page)))
		return false;
	/* damage: an item overlaps the list that is to be removed */
	if (clear && ip_moves_find(page) != InvalidOffsetNumber &&
		!ip_page_may_move_items(page))
		return false;
	if (moves)
	{
		list = place_of_list(v, buffer, w, clear);
		if (list == InvalidOffsetNumber)
			return false;
	}
	ip_change_begin(&change, v->rel, w->info, w->xid);
	change.logical = w->logical;
	ops = ip_change_block(&change, buffer, false);
	/* first, because the new row may be a delta to the old one */
	if (w->moved.buffer == buffer)
		put_moved(ops, v, w, buffer);
	if (clear)
		ip_op_simple(ops, IP_OP_CLEAR_CHANGER);
	if (!is_ours)
		ip_op_changer(ops, cid);
	if (moves)
		ip_op_moved(ops, ItemPointerGetOffsetNumber(&v->tid), list,
					&w->undo.forward, (w->undo.flags & IP_REC_KEYS) != 0);
	else
		ip_op_changed(ops, ItemPointerGetOffsetNumber(&v->tid));
	forget_locks(ops, v, page);
	if (moves && w->moved.buffer != buffer)
		put_moved(ip_change_block(&change, w->moved.buffer, w->moved.init), v,
				  w, buffer);
	ip_change_apply(&change);
	w->top.block = InvalidBlockNumber;
	return true;
}

/* ---- any change ---------------------------------------------------------- */

static IpRowMade
put_row(ByteWriter *ops, IpVersion *v, IpRowWrite *w, bool overlaid,
		OffsetNumber undo_off, const Home *home)
{
	IpRowOp		op = {
		.off = ItemPointerGetOffsetNumber(&v->tid),.hdr = w->hdr,
		.state = overlaid ? ip_state_overlay(w->state) : w->state,
		.own_xid = true,
		.undo_off = undo_off,
		.base = w->saved ? IP_BASE_OVERLAID : IP_BASE_ROW,
		.saved = w->saved,.saved_at_home = ip_version_saved_at_home(v),
		.from = w->from,.fromlen = w->fromlen,
		.body = w->body,.bodylen = w->bodylen
	};

	/* redo can use the undo delta if it gives back the whole old body */
	if (w->undo.kind == IP_UNDO_UPDATE && !w->undo.has_skip &&
		w->oldlen == w->fromlen)
	{
		op.back = w->undo.delta;
		op.backlen = w->undo.deltalen;
	}
	if (home->off != 0)
	{
		op.home_off = home->off;
		op.home = home->op;
	}
	return ip_op_row(ops, &op);
}

#ifdef USE_ASSERT_CHECKING
/* Returns whether the row can have the state that the caller wants to write. */
static bool
may_write(IpVersion *v, const IpRowWrite *w)
{
	IpXidStatus status = ip_version_status(v);

	/* I4 */
	if (!w->replay &&
		(status == IP_STATUS_ABORTED || status == IP_STATUS_RUNNING))
		return false;
	/* I6, unless no rollback can go below v */
	if (!w->cut && w->bodylen < w->fromlen)
		return false;
	if (v->state & IP_ROW_DELETED)
		return false;
	return (w->saved != NULL) == ((v->top_state & IP_ROW_OVERLAID) != 0) &&
		BufferIsValid(w->moved.buffer) == (w->info == IP_XLOG_MOVE);
}

/*
 * Returns whether the record at w->top, which has just been written, has the
 * bytes under the version block (I8), and no xid newer than its page says
 * (I9).
 */
static bool
top_is_right(Page undo, const IpRowWrite *w, bool overlaid)
{
	IpSpecial  *special = IpPageGetSpecial(undo);
	IpXid		newest = special->kind == IP_PAGE_UNDO ?
		special->u.undo.newest_xid : PG_UINT64_MAX;
	uint8		buf[BLCKSZ];
	IpUndoRec	rec;
	bool		found;

	if (ip_undo_item(undo, w->top, buf, &rec, &found) != NULL || !found ||
		rec.kind != w->undo.kind ||
		(rec.saved != NULL) != overlaid)
		return false;
	return newest >= ip_xid_full(w->xid);
}
#endif

/*
 * Returns whether the page must be marked as having stale entries, or is no
 * longer quiet (I23).  Any update in place ends that a page is quiet: a column
 * without an index may get one before VACUUM examines the page.
 */
static bool
makes_stale(const IpRowWrite *w, uint8 keys)
{
	return w->info == IP_XLOG_UPDATE && (w->keys || (keys & IP_KEYS_QUIET)) &&
		keys != IP_KEYS_STALE;
}

void
ip_modify_write(IpVersion *v, Buffer buffer, IpRowWrite *w)
{
	uint32		have = room_at_home(v, buffer, w);
	uint32		size;
	OffsetNumber undo_off = 0;
	Buffer		undo = InvalidBuffer;
	Home	   *home = &home_space;
	IpRowMade	made;
	IpChange	change;
	ByteWriter *ops;
	bool		overlaid;
	bool		frozen;			/* computed once for row and undo, because the
								 * horizon moves */

	Assert(ip_page_is_locked(BufferGetPage(buffer), true));
	Assert(BufferGetBlockNumber(buffer) == ItemPointerGetBlockNumber(&v->tid));
	Assert(may_write(v, w));
	if (write_changed(v, buffer, w))
		return;
	frozen = is_frozen(v);
	/* damage of the row must not be copied to the undo page */
	if (!frozen && !(v->state & IP_ROW_INSERTED) && v->ptr.off == 0)
		ip_version_damaged(v);
	w->away |= is_too_long(w, have);
	overlaid = spares_a_move(v, BufferGetPage(buffer), w->bodylen);
	size = make_home(v, buffer, w, frozen, overlaid, home);
	if (size == 0 || size > have)
	{
		home->off = 0;
		overlaid = ip_item_size(IP_ROW_VERSION, w->bodylen) > have;
		undo = ip_undo_use_begin(v->rel, ip_undo_rec_space(&w->undo, overlaid),
								 &undo_off);
	}

	Assert(!overlaid || may_overlay(v));	/* I7 */
	ip_change_begin(&change, v->rel, w->info, w->xid);
	change.conflict = frozen ? Max(w->conflict, v->xid) : w->conflict;
	change.replay = w->replay;
	change.logical = w->logical;
	ops = ip_change_block(&change, buffer, false);
	/* first, because the new row may be a delta to the old one */
	if (w->moved.buffer == buffer)
		put_moved(ops, v, w, buffer);
	made = put_row(ops, v, w, overlaid, undo_off, home);
	/* other changes may have the body on the page, which they change */
	if (w->info == IP_XLOG_UPDATE || w->info == IP_XLOG_MOVE)
		change.made = made;
	forget_locks(ops, v, BufferGetPage(buffer));
	if (makes_stale(w, IpPageGetSpecial(BufferGetPage(buffer))->keys))
		ip_op_keys(ops, IP_KEYS_STALE);
	if (home->off != 0)
	{
		change.home = home->record;
		change.homelen = home->len;
		w->top.block = BufferGetBlockNumber(buffer);
		w->top.off = home->off;
	}
	else
	{
		w->top.block = BufferGetBlockNumber(undo);
		w->top.off = undo_off;
		ops = ip_change_block(&change, undo, false);
		set_prev(&w->undo, v, frozen || w->cut);
		w->undo.saved = overlaid ? w->body : NULL;
		ip_undo_rec_put(ops, w->top.block, w->xid,
						ItemPointerGetOffsetNumber(&v->tid), &w->undo);
	}
	if (BufferIsValid(w->moved.buffer) && w->moved.buffer != buffer)
		put_moved(ip_change_block(&change, w->moved.buffer, w->moved.init), v,
				  w, buffer);
	ip_change_apply(&change);
	Assert(top_is_right(BufferGetPage(BufferIsValid(undo) ? undo : buffer), w,
						overlaid));
	if (BufferIsValid(undo))
		UnlockReleaseBuffer(undo);
}
