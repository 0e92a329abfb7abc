/*-------------------------------------------------------------------------
 * pb_op.c
 *	  Operations on pages, of which WAL records consist.
 *
 * An operation is a byte that says which, and its arguments;
 * docs/internals/pbtree-format.md lists them.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "page_change.h"
#include "pb_op.h"
#include "pb_tids.h"

/* PB_OP_REBUILD's byte "what" */
#define REBUILD_HEADS	0x01
#define REBUILD_MAPS	0x02
#define REBUILD_LOW		0x04
#define REBUILD_HIGH	0x08

void
pb_op_image(ByteWriter *w, Page page)
{
	uint16		lower = PbPageLower(page);
	uint16		upper = PbPageUpper(page);

	Assert(pb_page_check(page) == NULL);
	bytes_put_u8(w, PB_OP_IMAGE);
	bytes_put_u16(w, lower);
	bytes_put_u16(w, upper);
	bytes_put(w, (uint8 *) page + SizeOfPageHeaderData,
			  lower - SizeOfPageHeaderData);
	bytes_put(w, (uint8 *) page + upper, BLCKSZ - upper);
}

void
pb_op_insert(ByteWriter *w, int slot, int flags, const uint8 *item, int len)
{
	Assert(len > 0 && len < PB_SLOT_DEAD);
	Assert((flags & ~(PB_SLOT_MAP | PB_SLOT_POSTING)) == 0);
	bytes_put_u8(w, PB_OP_INSERT);
	bytes_put_u16(w, slot);
	bytes_put_u16(w, len | flags);
	bytes_put(w, item, len);
}

#ifdef USE_ASSERT_CHECKING
static bool
slots_ascend(const uint16 *slots, int n)
{
	for (int i = 1; i < n; i++)
	{
		if (slots[i] <= slots[i - 1])
			return false;
	}
	return true;
}
#endif

void
pb_op_delete(ByteWriter *w, const uint16 *slots, int n)
{
	Assert(n > 0 && slots_ascend(slots, n));
	bytes_put_u8(w, PB_OP_DELETE);
	bytes_put_u16(w, n);
	bytes_put(w, slots, n * sizeof(uint16));
}

static void
put_fence(ByteWriter *w, const uint8 *fence, int len)
{
	if (fence != NULL)
	{
		bytes_put_u16(w, len);
		bytes_put(w, fence, len);
	}
}

void
pb_op_rebuild(ByteWriter *w, const PbShape *shape)
{
	Assert(shape->from >= 0 && shape->n >= 0 && shape->prefix_len >= 0);
	bytes_put_u8(w, PB_OP_REBUILD);
	bytes_put_u16(w, shape->from);
	bytes_put_u16(w, shape->n);
	bytes_put_u16(w, shape->prefix_len);
	bytes_put_u8(w, (shape->heads ? REBUILD_HEADS : 0) |
				 (shape->maps ? REBUILD_MAPS : 0) |
				 (shape->low ? REBUILD_LOW : 0) |
				 (shape->high ? REBUILD_HIGH : 0));
	put_fence(w, shape->low, shape->low_len);
	put_fence(w, shape->high, shape->high_len);
}

void
pb_op_add_tid(ByteWriter *w, int slot, int keep, const ItemPointerData *tid)
{
	Assert(slot >= 0 && keep >= 0 && ItemPointerIsValid(tid));
	bytes_put_u8(w, PB_OP_ADD_TID);
	bytes_put_u16(w, slot);
	bytes_put_u16(w, keep);
	bytes_put(w, tid, sizeof(ItemPointerData));
}

void
pb_op_tids(ByteWriter *w, int slot, int keep, const ItemPointerData *tids,
		   int n)
{
	uint8		tail[BLCKSZ];
	int			len = n > 1 ? pb_posting_put(tail, sizeof(tail), tids, n) :
		pb_tid_put(tail, &tids[0]);

	Assert(n >= 1 && len > 0 && keep >= 0);
	bytes_put_u8(w, PB_OP_TIDS);
	bytes_put_u16(w, slot);
	bytes_put_u16(w, keep);
	bytes_put_u16(w, len | (n > 1 ? PB_SLOT_POSTING : 0));
	bytes_put(w, tail, len);
}

void
pb_op_prev(ByteWriter *w, BlockNumber prev)
{
	bytes_put_u8(w, PB_OP_PREV);
	bytes_put_u32(w, prev);
}

void
pb_op_next(ByteWriter *w, BlockNumber next, uint16 cycle)
{
	bytes_put_u8(w, PB_OP_NEXT);
	bytes_put_u32(w, next);
	bytes_put_u16(w, cycle);
}

void
pb_op_flags(ByteWriter *w, uint16 clear, uint16 set)
{
	/* other operations change the kind of a page */
	Assert(((clear | set) & ~(PB_PAGE_INCOMPLETE | PB_PAGE_GARBAGE)) == 0 &&
		   (clear & set) == 0);
	bytes_put_u8(w, PB_OP_FLAGS);
	bytes_put_u16(w, clear);
	bytes_put_u16(w, set);
}

void
pb_op_downlink(ByteWriter *w, int slot, BlockNumber block)
{
	Assert(block != PB_NONE);
	bytes_put_u8(w, PB_OP_DOWNLINK);
	bytes_put_u16(w, slot);
	bytes_put_u32(w, block);
}

void
pb_op_free(ByteWriter *w, uint64 safe_xid)
{
	bytes_put_u8(w, PB_OP_FREE);
	bytes_put_u64(w, safe_xid);
}

void
pb_op_meta(ByteWriter *w, const PbMeta *meta)
{
	Assert(meta->magic == PB_META_MAGIC && meta->version == PB_FORMAT_VERSION);
	bytes_put_u8(w, PB_OP_META);
	bytes_put(w, meta, sizeof(PbMeta));
}

/* ---- carrying out ------------------------------------------------------ */

static bool
apply_image(Page page, ByteReader *r)
{
	int			lower = bytes_get_u16(r);
	int			upper = bytes_get_u16(r);
	const uint8 *low;
	const uint8 *up;

	if (r->bad || lower < SizeOfPageHeaderData || lower > upper ||
		upper > BLCKSZ)
		return false;
	low = bytes_get(r, lower - SizeOfPageHeaderData);
	up = bytes_get(r, BLCKSZ - upper);
	if (r->bad)
		return false;
	pb_page_init(page, 0, 0, 0);
	PbPageLower(page) = lower;
	PbPageUpper(page) = upper;
	memcpy((uint8 *) page + SizeOfPageHeaderData, low,
		   lower - SizeOfPageHeaderData);
	memcpy((uint8 *) page + upper, up, BLCKSZ - upper);
	return true;
}

static bool
apply_insert(Page page, ByteReader *r)
{
	int			slot = bytes_get_u16(r);
	int			len = bytes_get_u16(r);
	int			flags = len & (PB_SLOT_MAP | PB_SLOT_POSTING);
	const uint8 *item;

	len &= PB_SLOT_OFF;
	item = bytes_get(r, len);
	return !r->bad && pb_page_insert(page, slot, flags, item, len);
}

static bool
apply_delete(Page page, ByteReader *r)
{
	static uint16 slots[BLCKSZ / sizeof(uint16)];
	int			n = bytes_get_u16(r);
	const uint8 *p = bytes_get(r, n * sizeof(uint16));

	if (r->bad || n > lengthof(slots))
		return false;
	memcpy(slots, p, n * sizeof(uint16));
	return pb_page_delete(page, slots, n);
}

static bool
apply_rebuild(Page page, ByteReader *r)
{
	PbShape		shape = {0};
	uint8		what;

	shape.from = bytes_get_u16(r);
	shape.n = bytes_get_u16(r);
	shape.prefix_len = bytes_get_u16(r);
	what = bytes_get_u8(r);
	shape.heads = (what & REBUILD_HEADS) != 0;
	shape.maps = (what & REBUILD_MAPS) != 0;
	if (what & REBUILD_LOW)
	{
		shape.low_len = bytes_get_u16(r);
		shape.low = bytes_get(r, shape.low_len);
	}
	if (what & REBUILD_HIGH)
	{
		shape.high_len = bytes_get_u16(r);
		shape.high = bytes_get(r, shape.high_len);
	}
	return !r->bad && pb_page_rebuild(page, &shape);
}

/*
 * Convert one TID to two, or rewrite a list, if a TID has to come first, or
 * the numbers become wider.
 */
static bool
add_tid_anew(Page page, int slot, int keep, const uint8 *p,
			 const ItemPointerData *new)
{
	ItemPointerData tids[PB_MAX_TIDS + 1];
	uint8		tail[BLCKSZ];
	const uint8 *end = (uint8 *) page + PbPageSpecial(page);
	bool		posting = (pb_slot_get(page, slot) & PB_SLOT_POSTING) != 0;
	const uint8 *behind;
	int			n = 1;
	int			at;
	int			len;

	behind = posting ? pb_posting_get(p, end, tids, &n) :
		pb_tid_get(p, end, tids);
	if (behind == NULL)
		return false;
	for (at = n;
		 at > 0 && ItemPointerCompare(&tids[at - 1],
									  unconstify(ItemPointerData *, new)) > 0;
		 at--)
		tids[at] = tids[at - 1];
	if (at > 0 &&
		ItemPointerEquals(&tids[at - 1], unconstify(ItemPointerData *, new)))
		return false;
	tids[at] = *new;
	len = pb_posting_put(tail, sizeof(tail), tids, n + 1);
	return len > 0 && pb_page_splice(page, slot, keep, behind - p, tail, len);
}

/* Add a TID to a single TID or a posting list. */
static bool
apply_add_tid(Page page, ByteReader *r)
{
	int			slot = bytes_get_u16(r);
	int			keep = bytes_get_u16(r);
	const uint8 *tid = bytes_get(r, sizeof(ItemPointerData));
	const uint8 *p;
	const uint8 *end = (uint8 *) page + PbPageSpecial(page);
	uint16		bits;
	ItemPointerData new;
	PbTidEdit	edit;

	if (r->bad || slot >= pb_page_nslots(page))
		return false;
	memcpy(&new, tid, sizeof(new));
	bits = pb_slot_get(page, slot);
	p = (uint8 *) page + (bits & PB_SLOT_OFF) + keep;
	if (p >= end)
		return false;
	if ((bits & PB_SLOT_POSTING) && pb_posting_add(p, end, &new, &edit))
	{
		if (!pb_page_splice(page, slot, keep + edit.at, edit.remove, edit.bytes,
							edit.len))
			return false;
		p = (uint8 *) page + (pb_slot_get(page, slot) & PB_SLOT_OFF) + keep;
		memcpy(unconstify(uint8 *, p), &edit.list_len, sizeof(edit.list_len));
	}
	else if (!add_tid_anew(page, slot, keep, p, &new))
		return false;
	pb_page_mark_posting(page, slot, true);
	return true;
}

static bool
apply_tids(Page page, ByteReader *r)
{
	int			slot = bytes_get_u16(r);
	int			keep = bytes_get_u16(r);
	int			len = bytes_get_u16(r);
	bool		posting = (len & PB_SLOT_POSTING) != 0;
	const uint8 *tail;
	const uint8 *old;
	const uint8 *behind;
	uint16		bits;

	len &= PB_SLOT_OFF;
	tail = bytes_get(r, len);
	if (r->bad || slot >= pb_page_nslots(page))
		return false;
	bits = pb_slot_get(page, slot);
	old = (uint8 *) page + (bits & PB_SLOT_OFF) + keep;
	behind = pb_tids_end(old, (uint8 *) page + PbPageSpecial(page),
						 (bits & PB_SLOT_POSTING) != 0);
	if (behind == NULL ||
		!pb_page_splice(page, slot, keep, behind - old, tail, len))
		return false;
	pb_page_mark_posting(page, slot, posting);
	return true;
}

static bool
apply_downlink(Page page, ByteReader *r)
{
	int			slot = bytes_get_u16(r);
	BlockNumber block = bytes_get_u32(r);

	if (r->bad || pb_page_is_leaf(page) || slot >= pb_page_nslots(page) ||
		pb_page_check_slots(page))
		return false;
	memcpy((uint8 *) page + (pb_slot_get(page, slot) & PB_SLOT_OFF), &block,
		   sizeof(block));
	return true;
}

static bool
apply_free(Page page, ByteReader *r)
{
	PbSpecial	was = *PbPageGetSpecial(page);
	uint64		xid = bytes_get_u64(r);
	PbSpecial  *s;

	pb_page_init(page, was.level, was.map_len, PB_PAGE_DELETED);
	s = PbPageGetSpecial(page);
	s->prev = was.prev;
	s->next = was.next;
	PbPageGetDeleted(page)->safe_xid = xid;
	PbPageLower(page) = SizeOfPageHeaderData + sizeof(PbDeleted);
	return !r->bad;
}

static bool
apply_links(Page page, uint8 op, ByteReader *r)
{
	PbSpecial  *s = PbPageGetSpecial(page);

	if (op == PB_OP_PREV)
		s->prev = bytes_get_u32(r);
	else if (op == PB_OP_NEXT)
	{
		s->next = bytes_get_u32(r);
		s->cycle = bytes_get_u16(r);
	}
	else
	{
		s->flags &= ~bytes_get_u16(r);
		s->flags |= bytes_get_u16(r);
	}
	return !r->bad;
}

static bool
apply_meta(Page page, ByteReader *r)
{
	const uint8 *meta = bytes_get(r, sizeof(PbMeta));

	if (r->bad)
		return false;
	memcpy(PbPageGetMeta(page), meta, sizeof(PbMeta));
	return true;
}

static bool
apply_ops(Page page, const uint8 *ops, uint32 len)
{
	ByteReader	r = {ops, ops + len, false};

	while (r.p < r.end)
	{
		uint8		op = bytes_get_u8(&r);
		bool		ok = false;

		switch (op)
		{
			case PB_OP_IMAGE:
				ok = apply_image(page, &r);
				break;
			case PB_OP_INSERT:
				ok = apply_insert(page, &r);
				break;
			case PB_OP_DELETE:
				ok = apply_delete(page, &r);
				break;
			case PB_OP_REBUILD:
				ok = apply_rebuild(page, &r);
				break;
			case PB_OP_ADD_TID:
				ok = apply_add_tid(page, &r);
				break;
			case PB_OP_TIDS:
				ok = apply_tids(page, &r);
				break;
			case PB_OP_PREV:
			case PB_OP_NEXT:
			case PB_OP_FLAGS:
				ok = apply_links(page, op, &r);
				break;
			case PB_OP_DOWNLINK:
				ok = apply_downlink(page, &r);
				break;
			case PB_OP_FREE:
				ok = apply_free(page, &r);
				break;
			case PB_OP_META:
				ok = apply_meta(page, &r);
				break;
		}
		if (!ok || r.bad)
			return false;
	}
	return true;
}

#ifdef USE_ASSERT_CHECKING
/*
 * A simple change that fails has changed nothing.  It consists of one
 * operation that checks before it writes.
 */
bool
pb_op_is_simple(const uint8 *ops, uint32 len)
{
	ByteReader	r = {ops, ops + len, false};
	uint8		op = bytes_get_u8(&r);

	bytes_get_u16(&r);
	if (op == PB_OP_INSERT)
		bytes_get(&r, bytes_get_u16(&r) & PB_SLOT_OFF);
	else if (op == PB_OP_ADD_TID)
		bytes_get(&r, sizeof(uint16) + sizeof(ItemPointerData));
	else
		return false;
	return !r.bad && r.p == r.end;
}

/* Operations that succeed on any page. */
bool
pb_op_cannot_fail(const uint8 *ops, uint32 len)
{
	ByteReader	r = {ops, ops + len, false};

	while (r.p < r.end && !r.bad)
	{
		uint8		op = bytes_get_u8(&r);

		if (op != PB_OP_PREV && op != PB_OP_FLAGS && op != PB_OP_NEXT)
			return false;
		bytes_get(&r, op == PB_OP_NEXT ? sizeof(uint32) + sizeof(uint16) :
				  sizeof(uint32));
	}
	return !r.bad;
}
#endif

/*
 * I2: a change of a page that is in order leaves it in order; the effect on a
 * damaged page is undefined.
 */
bool
pb_op_apply(Page page, const uint8 *ops, uint32 len)
{
#ifdef USE_ASSERT_CHECKING
	static uint64 changes;
	bool		was_right = page_change_is_checked(&changes, 2000) &&
		pb_page_problem(page) == NULL;
	bool		done = apply_ops(page, ops, len);

	Assert(!done || !was_right || pb_page_problem(page) == NULL);
	Assert(!done || len == 0 || ops[0] != PB_OP_IMAGE ||
		   pb_page_check(page) == NULL);
	return done;
#else
	return apply_ops(page, ops, len);
#endif
}

/* ---- description ------------------------------------------------------- */

static void
desc_one(StringInfo buf, uint8 op, ByteReader *r)
{
	int			a = op == PB_OP_FREE || op == PB_OP_META ? 0 :
		op == PB_OP_PREV || op == PB_OP_NEXT ? bytes_get_u32(r) :
		bytes_get_u16(r);
	int			b = op == PB_OP_PREV || op == PB_OP_DELETE ||
		op == PB_OP_FREE || op == PB_OP_META ?
		0 : op == PB_OP_DOWNLINK ? bytes_get_u32(r) : bytes_get_u16(r);
	int			c;

	switch (op)
	{
		case PB_OP_IMAGE:
			appendStringInfo(buf, "image: lower %d upper %d", a, b);
			bytes_get(r, a - SizeOfPageHeaderData + BLCKSZ - b);
			break;
		case PB_OP_INSERT:
			appendStringInfo(buf, "insert: slot %d len %d", a, b & PB_SLOT_OFF);
			bytes_get(r, b & PB_SLOT_OFF);
			break;
		case PB_OP_DELETE:
			appendStringInfo(buf, "delete: %d slots", a);
			bytes_get(r, a * sizeof(uint16));
			break;
		case PB_OP_REBUILD:
			c = bytes_get_u16(r);
			appendStringInfo(buf, "rebuild: from %d count %d prefix %d", a, b,
							 c);
			c = bytes_get_u8(r);
			if (c & REBUILD_LOW)
				bytes_get(r, bytes_get_u16(r));
			if (c & REBUILD_HIGH)
				bytes_get(r, bytes_get_u16(r));
			break;
		case PB_OP_ADD_TID:
			appendStringInfo(buf, "add tid: slot %d", a);
			bytes_get(r, sizeof(ItemPointerData));
			break;
		case PB_OP_TIDS:
			c = bytes_get_u16(r);
			appendStringInfo(buf, "tids: slot %d len %d", a, c & PB_SLOT_OFF);
			bytes_get(r, c & PB_SLOT_OFF);
			break;
		case PB_OP_PREV:
			appendStringInfo(buf, "prev: %d", a);
			break;
		case PB_OP_NEXT:
			appendStringInfo(buf, "next: %d cycle %d", a, b);
			break;
		case PB_OP_FLAGS:
			appendStringInfo(buf, "flags: clear 0x%x set 0x%x", a, b);
			break;
		case PB_OP_DOWNLINK:
			appendStringInfo(buf, "downlink: slot %d block %d", a, b);
			break;
		case PB_OP_FREE:
			appendStringInfo(buf, "free: xid " UINT64_FORMAT, bytes_get_u64(r));
			break;
		case PB_OP_META:
			appendStringInfoString(buf, "meta");
			bytes_get(r, sizeof(PbMeta));
			break;
		default:
			appendStringInfo(buf, "unknown operation %d", op);
			r->bad = true;
	}
}

void
pb_op_desc(StringInfo buf, const uint8 *ops, uint32 len)
{
	ByteReader	r = {ops, ops + len, false};
	const char *sep = "";

	while (r.p < r.end && !r.bad)
	{
		appendStringInfoString(buf, sep);
		desc_one(buf, bytes_get_u8(&r), &r);
		sep = ", ";
	}
}
