/*-------------------------------------------------------------------------
 * ip_skip.c
 *	  Skip lists in long version chains: which undo records become part of one.
 *
 * Only a small part of the records do, so that their cost is negligible, and
 * only where chains get long: if there is an old snapshot, or a transaction
 * changes a row again and again.  See IpUndoSkip.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "common/hashfn.h"

#include "ip_skip.h"
#include "ip_xid.h"

/*
 * Records of a list are DISTANCE apart on average, and one more for each
 * BYTES_FOR_ONE bytes of the row, up to MAX_DISTANCE, because the previous one
 * must be found.  The list costs one or two bytes for an update of a short
 * row, and more for long ones.
 */
#define DISTANCE		48
#define BYTES_FOR_ONE	8
#define MAX_DISTANCE	80

/*
 * One change of TRY, plus one for each BYTES_FOR_TRY bytes of the row, up to
 * MAX_TRY, searches for the list's newest record.  If that is near, another
 * one is not needed yet.  So distances vary less than if they were left to
 * chance, and the first record of a list is not far above the chain's end.
 */
#define TRY				12
#define BYTES_FOR_TRY	4
#define MAX_TRY			40

/*
 * If a snapshot is older than this number of transactions, chains may get
 * long.
 */
#define OLD_SNAPSHOT	256

/* Records of longer rows could not hold the pointers and the body. */
#define MAX_BODY		(BLCKSZ / 2)

bool		ip_skip_enabled = true;

static inline uint32
distance(uint32 bodylen)
{
	return Min(DISTANCE + bodylen / BYTES_FOR_ONE, MAX_DISTANCE);
}

static inline uint32
tries(uint32 bodylen)
{
	return Min(TRY + bodylen / BYTES_FOR_TRY, MAX_TRY);
}

/* Returns true by chance, but repeatably. */
static bool
is_drawn(IpVersion *v, TransactionId xid, CommandId cid)
{
	uint32		hash = hash_combine(murmurhash32(xid), murmurhash32(cid));

	hash = hash_combine(hash, murmurhash32(ItemPointerGetBlockNumber(&v->tid)));
	hash = hash_combine(hash,
						murmurhash32(ItemPointerGetOffsetNumber(&v->tid)));
	return hash % tries(v->bodylen) == 0;
}

/*
 * Returns whether the row has a chain in undo pages that other backends may
 * have to pass.
 */
static bool
may_be_long(IpVersion *v, TransactionId xid)
{
	IpXid		full;

	if (IpXidIsFrozen(v->xid) ||
		(v->state & (IP_ROW_INSERTED | IP_ROW_CHANGED)) ||
		v->bodylen > MAX_BODY)
		return false;
	if (v->ptr.block == ItemPointerGetBlockNumber(&v->tid))
		return false;
	full = ip_xid_full(xid);
	return v->xid == full ||
		(full > OLD_SNAPSHOT && !ip_xid_removable(v->rel, v->xid) &&
		 !ip_xid_removable(v->rel, full - OLD_SNAPSHOT));
}

/* Point to the record below v; false if a record cannot name its xid. */
static bool
point_to(IpUndoSkip *skip, const IpVersion *v, IpXid newest)
{
	if (v->xid > newest || v->xid + IP_UNDO_MAX_AGE < ip_xid_next())
		return false;
	skip->ptr[skip->n] = v->ptr;
	skip->xid[skip->n++] = v->xid;
	return true;
}

/*
 * Move to above the chain's newest record that is part of its skip list; false
 * if there is none above the version that is visible to all.
 */
static bool
find_newest(IpVersion *below, IpVersion *v)
{
	ip_version_begin_below(below, v);
	/* damage in older versions does not concern the writer */
	below->soft = true;
	below->damaged = false;
	while (!ip_xid_removable(v->rel, below->xid) &&
		   ip_version_load_rec(below) == IPV_OK)
	{
		if (below->rec.has_skip)
			return true;
		if (ip_version_older(below) != IPV_OK)
			return false;
	}
	return false;
}

bool
ip_skip_make(IpVersion *v, TransactionId xid, CommandId cid, uint32 newlen,
			 IpUndoSkip *skip)
{
	IpVersion	below;
	IpXid		newest = Max(ip_xid_full(xid), v->xid);
	uint32		target;
	bool		found;

	Assert(v->steps == 0);
	if (!ip_skip_enabled || !may_be_long(v, xid) || !is_drawn(v, xid, cid))
		return false;
	found = find_newest(&below, v);
	if (found && below.steps + tries(v->bodylen) < distance(v->bodylen))
		return false;
	skip->newlen = newlen;
	skip->index = 0;
	skip->n = 0;
	if (!found || !point_to(skip, &below, newest))
		return true;
	skip->index = below.rec.skip.index + 1;
	target = skip->index & (skip->index - 1);
	/* from an odd index, the far pointers of records in between lead there */
	while (below.rec.skip.index > target && below.rec.skip.n > 0 &&
		   ip_version_skip(&below, below.rec.skip.n - 1))
		;
	if (skip->index - 1 > target && below.rec.skip.index == target &&
		below.rec_loaded)
		(void) point_to(skip, &below, newest);
	return true;
}
