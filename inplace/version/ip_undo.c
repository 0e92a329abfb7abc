/*-------------------------------------------------------------------------
 * ip_undo.c
 *	  Undo records: reading and writing one.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_delta.h"
#include "ip_moves.h"
#include "ip_rel.h"
#include "ip_row.h"
#include "ip_undo.h"
#include "ip_xid.h"

/*
 * Returns whether no xid of a record is newer than its page says or, at home,
 * yet to be assigned.
 */
static bool
xids_are_old(const IpUndoRec *rec, const IpSpecial *special)
{
	IpXid		newest = Max(rec->xid, rec->prev_xid);

	for (int i = 0; rec->has_skip && i < rec->skip.n; i++)
		newest = Max(newest, rec->skip.xid[i]);
	return !IpXidIsFrozen(rec->xid) &&
		(!(rec->flags & IP_REC_PREV) || !IpXidIsFrozen(rec->prev_xid)) &&
		(special->kind == IP_PAGE_DATA ? ip_xid_next() > newest :
		 newest <= special->u.undo.newest_xid);
}

const char *
ip_undo_item(Page page, IpPtr ptr, uint8 *buf, IpUndoRec *rec, bool *found)
{
	IpSpecial  *special = IpPageGetSpecial(page);
	bool		home = special->kind == IP_PAGE_DATA;
	const char *problem;
	ItemId		lp;
	uint32		len;

	Assert(ip_page_is_locked(page, false));
	Assert(home || special->kind == IP_PAGE_UNDO);
	*found = false;
	if (ptr.off < FirstOffsetNumber || ptr.off > PageGetMaxOffsetNumber(page))
		return NULL;
	lp = PageGetItemId(page, ptr.off);

	/*
	 * the record is gone; another item, such as a list of moves, may be there
	 */
	if (home && (!ip_item_is_undo(page, lp) || ip_moves_is_list(page, ptr.off)))
		return NULL;
	len = ItemIdGetLength(lp);
	if (!ip_item_is_ours(lp) || !ip_item_is_inside(page, lp))
		return "item reaches outside of the page's item space";
	memcpy(buf, page + ip_item_start(lp), len);
	*found = true;
	problem = ip_undo_rec_decode(page, ptr.block, buf, len, rec);
	/* the status of a transaction that has not begun must not be looked up */
	return problem == NULL && !xids_are_old(rec, special) ?
		"bad transaction id" : problem;
}

/*
 * The buffers that undo pages were in.  The walk down a long chain goes from
 * one page to another, and the next row's walk to the same pages.  Mostly a
 * page is still in the same buffer.  Then its block need not be looked up,
 * which would take the shared lock of a partition of core's buffer table for
 * each record.
 */
#define KNOWN_BUFFERS	4096

/*
 * Number of times that a buffer is used without looking up its block, which
 * makes core keep the page.
 */
#define KNOWN_USES		16

typedef struct KnownBuffer
{
	BlockNumber block;			/* block of any relation */
	Buffer		buffer;
	uint16		uses;			/* uses left; 0 at first */
} KnownBuffer;

static KnownBuffer known_buffers[KNOWN_BUFFERS];

/* ip_rel_read or, if soft, ip_rel_read_soft, for an undo page. */
static Buffer
read_known(Relation rel, BlockNumber block, bool soft)
{
	KnownBuffer *known = &known_buffers[block % KNOWN_BUFFERS];

	/*
	 * VACUUM's cost is counted elsewhere; a temporary table may have the file
	 * number of another one
	 */
	if (VacuumCostActive || RelationUsesLocalBuffers(rel))
		return soft ? ip_rel_read_soft(rel, block, NULL) :
			ip_rel_read(rel, block);
	if (known->uses > 0 && known->block == block &&
		compat_read_recent(rel, block, known->buffer))
	{
		known->uses--;
		CompatCountBufferHit(rel);
		return known->buffer;
	}
	known->uses = 0;
	known->buffer = soft ? ip_rel_read_soft(rel, block, NULL) :
		ip_rel_read(rel, block);
	if (BufferIsInvalid(known->buffer))
		return InvalidBuffer;
	known->block = block;
	known->uses = KNOWN_USES;
	return known->buffer;
}

/* ip_undo_lock_page; an error, unless soft, if the page cannot be read. */
static Buffer
lock_page(Relation rel, BlockNumber block, int mode, bool *waited, bool soft)
{
	volatile IpSpecial *special;
	Buffer		buffer;
	uint16		kind;

	Assert(mode == BUFFER_LOCK_EXCLUSIVE ||
		   (mode == BUFFER_LOCK_SHARE && waited == NULL));
	/* the page may have been recycled, and VACUUM may have truncated it */
	if (block == IP_META_BLOCK || block == InvalidBlockNumber ||
		!compat_has_block(rel, block))
		return InvalidBuffer;
	buffer = read_known(rel, block, soft);
	if (BufferIsInvalid(buffer))
		return InvalidBuffer;
	special = IpPageGetSpecial(BufferGetPage(buffer));
	kind = special->kind;

	/*
	 * a standby waits for a page that replay is restoring: no backend there
	 * holds another page's lock
	 */
	if (kind == IP_PAGE_DATA || kind == IP_PAGE_FREE || kind == IP_PAGE_LOCK ||
		(kind == 0 && !RecoveryInProgress()))
	{
		ReleaseBuffer(buffer);
		return InvalidBuffer;
	}
	if (waited == NULL || (*waited = !ConditionalLockBuffer(buffer)))
		LockBuffer(buffer, mode);
	return buffer;
}

Buffer
ip_undo_lock_page(Relation rel, BlockNumber block, int mode, bool *waited)
{
	return lock_page(rel, block, mode, waited, true);
}

/* Returns whether the record is on the row's own page. */
static bool
is_home(IpPtr ptr, const ItemPointerData *row)
{
	return row != NULL && ptr.block == ItemPointerGetBlockNumberNoCheck(row);
}

/*
 * Returns whether the server would refuse to read the page.  Its records are
 * then damaged, not gone.
 */
static bool
is_unreadable(Relation rel, BlockNumber block)
{
	Buffer		buffer;

	if (block == IP_META_BLOCK || block == InvalidBlockNumber ||
		!compat_has_block(rel, block))
		return false;
	buffer = ip_rel_read_soft(rel, block, NULL);
	if (BufferIsInvalid(buffer))
		return true;
	ReleaseBuffer(buffer);
	return false;
}

/*
 * Returns the record's page, locked unless it is home, which the caller has;
 * or NULL.
 */
static Page
get_page(Relation rel, IpPtr ptr, const ItemPointerData *row, Page home,
		 bool soft, Buffer *buffer, const char **problem)
{
	bool		at_home = is_home(ptr, row);
	Page		page;
	uint16		kind;

	*buffer = InvalidBuffer;
	if (at_home && home != NULL)
		return home;
	if (row == NULL &&
		(ptr.block == IP_META_BLOCK || !compat_has_block(rel, ptr.block)))
		return NULL;
	/* a caller that does not know the row holds no page's lock */
	if (at_home || row == NULL)
	{
		*buffer = ip_rel_read(rel, ptr.block);
		LockBuffer(*buffer, BUFFER_LOCK_SHARE);
	}
	else
		*buffer = lock_page(rel, ptr.block, BUFFER_LOCK_SHARE, NULL, soft);
	if (!BufferIsValid(*buffer))
	{
		if (soft && is_unreadable(rel, ptr.block))
			*problem = "its page cannot be read";
		return NULL;
	}
	page = BufferGetPage(*buffer);
	if (!PageIsNew(page) && !ip_page_is_ours(page))
		*problem = "its page is not of an inplace table";
	else if (!PageIsNew(page))
	{
		kind = IpPageGetSpecial(page)->kind;
		if ((kind == IP_PAGE_DATA && (at_home || row == NULL)) ||
			(kind == IP_PAGE_UNDO && !at_home))
			return page;
	}
	return NULL;
}

/* ---- copies of undo pages ------------------------------------------------ */

/*
 * A scan that passes many changes of rows reads one record after another of
 * the same undo pages.  So a page is copied when it is read the third time in
 * a row among the pages that compete for its copy's place.  By chance, as in
 * walks down chains whose records are anywhere, that is rare; a copy costs as
 * much as several reads.  A copy may be old: records that it does not have are
 * looked up on the page.  But a record in the copy, of a change of the row by
 * that xid, is still valid: an address is used again only when its record's
 * xid is visible to all or has aborted, so not for the same xid, unless a
 * transaction empties a file that it has made.
 */
#define UNDO_COPIES		8
#define READS_BEFORE	3

typedef struct UndoCopy
{
	Oid			relid;			/* InvalidOid: no copy */
	RelFileNumber number;
	BlockNumber block;
	bool		copied;
	uint8		reads;			/* reads of the page itself since it was
								 * copied */
	PGAlignedBlock page;
} UndoCopy;

static UndoCopy undo_copies[UNDO_COPIES];

static bool
is_copy_of(const UndoCopy *copy, Relation rel, BlockNumber block)
{
	return copy->block == block && copy->relid == RelationGetRelid(rel) &&
		copy->number == CompatRelNumber(rel);
}

/*
 * Returns the place of the page's copy; the place belongs to that page from
 * now on.
 */
static UndoCopy *
copy_of(Relation rel, BlockNumber block)
{
	UndoCopy   *copy = &undo_copies[block % UNDO_COPIES];

	if (!is_copy_of(copy, rel, block))
	{
		copy->relid = RelationGetRelid(rel);
		copy->number = CompatRelNumber(rel);
		copy->block = block;
		copy->copied = false;
		copy->reads = 0;
	}
	return copy;
}

static inline bool
is_about(const IpUndoRec *rec, const ItemPointerData *row)
{
	return row == NULL ||
		(ItemPointerGetBlockNumberNoCheck(&rec->row) ==
		 ItemPointerGetBlockNumberNoCheck(row) &&
		 ItemPointerGetOffsetNumberNoCheck(&rec->row) ==
		 ItemPointerGetOffsetNumberNoCheck(row));
}

bool
ip_undo_find(Relation rel, IpPtr ptr, const ItemPointerData *row,
			 IpXid xid, Page home, bool soft, uint8 *buf, IpUndoRec *rec,
			 const char **problem)
{
	bool		found = false;
	UndoCopy   *copy = is_home(ptr, row) || xid == IP_XID_NONE ||
		CompatFileIsNew(rel) ? NULL :
		copy_of(rel, ptr.block);
	Buffer		buffer;
	Page		page;

	*problem = NULL;
	if (copy != NULL && copy->copied &&
		ip_undo_item(copy->page.data, ptr, buf, rec, &found) == NULL && found &&
		rec->xid == xid && is_about(rec, row))
		return true;
	found = false;
	page = get_page(rel, ptr, row, home, soft, &buffer, problem);
	if (page != NULL)
		*problem = ip_undo_item(page, ptr, buf, rec, &found);
	if (page != NULL && copy != NULL && *problem == NULL &&
		++copy->reads >= READS_BEFORE)
	{
		memcpy(copy->page.data, page, BLCKSZ);
		copy->copied = true;
		copy->reads = 0;
	}
	if (BufferIsValid(buffer))
		UnlockReleaseBuffer(buffer);
	return found && *problem == NULL && is_about(rec, row);
}

/*
 * Decode the item at ptr in its place, whole or only up to the saved bytes, if
 * it is the row's record of a change by xid.
 */
static inline bool
peek_item(Page page, IpPtr ptr, const ItemPointerData *row, IpXid xid,
		  bool whole, IpUndoRec *rec)
{
	const uint8 *item;
	ItemId		lp;

	if (ptr.off < FirstOffsetNumber || ptr.off > PageGetMaxOffsetNumber(page))
		return false;
	lp = PageGetItemId(page, ptr.off);
	item = (uint8 *) page + ip_item_start(lp);
	return ip_item_is_ours(lp) && ip_item_is_inside(page, lp) &&
		(whole ?
		 ip_undo_rec_decode(page, ptr.block, item, ItemIdGetLength(lp),
							rec) == NULL :
		 ip_undo_rec_decode_saved(page, ptr.block, item, ItemIdGetLength(lp),
								  rec)) &&
		xids_are_old(rec, IpPageGetSpecial(page)) && rec->xid == xid &&
		is_about(rec, row);
}

/* peek_item on the row's own page or on the copy of an undo page. */
static inline bool
peek_near(Relation rel, IpPtr ptr, const ItemPointerData *row, IpXid xid,
		  Page home, bool whole, IpUndoRec *rec)
{
	UndoCopy   *copy = &undo_copies[ptr.block % UNDO_COPIES];

	if (is_home(ptr, row))
		return peek_item(home, ptr, row, xid, whole, rec);
	return copy->copied && is_copy_of(copy, rel, ptr.block) &&
		!CompatFileIsNew(rel) &&
		peek_item(copy->page.data, ptr, row, xid, whole, rec);
}

bool
ip_undo_peek(Relation rel, IpPtr ptr, const ItemPointerData *row, IpXid xid,
			 Page home, uint8 *buf, IpUndoRec *rec)
{
	const char *problem;

	Assert(ip_page_is_locked(home, false) && xid != IP_XID_NONE);
	return peek_near(rel, ptr, row, xid, home, true, rec) ||
		(!is_home(ptr, row) &&
		 ip_undo_find(rel, ptr, row, xid, home, true, buf, rec, &problem) &&
		 rec->xid == xid);
}

const uint8 *
ip_undo_peek_saved(Relation rel, IpPtr ptr, const ItemPointerData *row,
				   IpXid xid, Page home)
{
	IpUndoRec	rec;

	return peek_near(rel, ptr, row, xid, home, false, &rec) ? rec.saved : NULL;
}

/*
 * Returns whether the row at off, which is sound, can get its first bytes, if
 * these are in a record at home.  True if there is no row.
 */
static bool
has_bytes(BlockNumber block, Page page, OffsetNumber off)
{
	ItemPointerData tid;
	IpUndoRec	rec;
	IpRow		row;

	if (!ip_row_may_be(page, off, IP_ROW_OVERLAID) ||
		!ip_row_is_at(page, off) || ip_row_decode(page, off, &row) != NULL ||
		!ip_row_bytes_at_home(row.state, row.ptr, block))
		return true;
	ItemPointerSet(&tid, block, off);
	return peek_item(page, row.ptr, &tid, row.xid, true, &rec) &&
		rec.saved != NULL;
}

bool
ip_undo_rows_are_sound(BlockNumber block, Page page, const IpItemList *list)
{
	for (int i = 0; i < list->n; i++)
	{
		if (!ip_row_is_sound(page, list->off[i]) ||
			!has_bytes(block, page, list->off[i]))
			return false;
	}
	return true;
}

int
ip_undo_body(const IpRow *row, const IpUndoRec *rec, uint8 *body, uint32 room)
{
	static uint8 whole[BLCKSZ];
	const uint8 *from = row->body;
	ByteReader	delta = {rec->delta, rec->delta + rec->deltalen, false};
	int			len;

	if (((row->state & IP_ROW_OVERLAID) != 0) != (rec->saved != NULL) ||
		row->bodylen > BLCKSZ)
		return -1;
	if (rec->saved != NULL)
	{
		ip_row_uncover(row, rec->saved, whole);
		from = whole;
	}
	if (rec->kind == IP_UNDO_UPDATE)
	{
		len = ip_delta_apply(&delta, from, row->bodylen, body, room);
		return delta.p == delta.end ? len : -1;
	}
	if (row->bodylen > room)
		return -1;
	memcpy(body, from, row->bodylen);
	return row->bodylen;
}

bool
ip_undo_read(Relation rel, IpPtr ptr, const ItemPointerData *row, IpXid xid,
			 Page home, uint8 *buf, IpUndoRec *rec)
{
	const char *problem;
	bool		found = ip_undo_find(rel, ptr, row, xid, home, false, buf, rec,
									 &problem);

	if (problem)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("corrupted undo record (%u,%u) of relation \"%s\": %s",
						ptr.block, ptr.off, RelationGetRelationName(rel),
						problem), ip_page_check_hint(rel)));
	return found;
}
