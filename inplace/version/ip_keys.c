/*-------------------------------------------------------------------------
 * ip_keys.c
 *	  Index keys that updates in place have changed.
 *
 * The row changes first, and its page then says that entries may be stale
 * (I23); the entries are inserted after that.  A backend that removes an entry
 * holds the index page's lock from reading the row to the removal.  So if a
 * row gets back a key that it had before, either that backend sees the
 * version, or the entry is inserted again.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/visibilitymap.h"
#include "optimizer/optimizer.h"
#include "storage/procarray.h"
#include "utils/memutils.h"

#include "ip_change.h"
#include "ip_keys.h"
#include "ip_version.h"
#include "ip_xid.h"

/*
 * Versions of a row that are examined, perhaps while an index page is locked,
 * before its entries are taken as needed.
 */
#define MAX_VERSIONS	32

/*
 * Undo that changes under us more often than this is taken to be gone, because
 * the version or a deletion is visible to all.
 */
#define MAX_TRIES		3


bool
ip_keys_can_follow(Relation index)
{
	const InplaceKeysIndex *am = inplace_keys_index();

	return am != NULL && index->rd_indam->aminsert == am->insert &&
		am->follows(index);
}

/*
 * Returns whether the index follows updates in place.  An index that is being
 * built or dropped does not; see ip_index_validate_scan.
 */
static bool
follows(Relation index)
{
	return index->rd_index->indisvalid && index->rd_index->indisready &&
		index->rd_index->indislive && ip_keys_can_follow(index);
}

/* Returns the columns that an index uses in any way. */
static Bitmapset *
columns_of(Relation index)
{
	const		int2vector *key = &index->rd_index->indkey;
	Bitmapset  *columns = NULL;

	for (int i = 0; i < key->dim1; i++)
	{
		if (key->values[i] != 0)
			columns = bms_add_member(columns, key->values[i] -
									 FirstLowInvalidHeapAttributeNumber);
	}
	pull_varattnos((Node *) RelationGetIndexExpressions(index), 1, &columns);
	pull_varattnos((Node *) RelationGetIndexPredicate(index), 1, &columns);
	return columns;
}

/* Add the columns of index number i, except those of "others". */
static void
add_columns(IpFollowed *f, Relation index, int i, const Bitmapset *others)
{
	const		int2vector *key = &index->rd_index->indkey;

	for (int k = 0; k < key->dim1; k++)
	{
		int			at = 0;

		Assert(key->values[k] > 0);
		if (bms_is_member(key->values[k] - FirstLowInvalidHeapAttributeNumber,
						  others))
			continue;
		while (at < f->ncolumns && f->columns[at] != key->values[k])
			at++;
		if (at == IP_MAX_FOLLOWED_COLUMNS)
			continue;			/* changes of this column move rows */
		if (at == f->ncolumns)
		{
			f->columns[f->ncolumns++] = key->values[k];
			f->column_indexes[at] = 0;
		}
		f->column_indexes[at] |= 1 << i;
	}
}

/* Two passes: first the indexes that do not follow, then those that do. */
static void
find_of_indexes(const List *oids, IpFollowed *f)
{
	Bitmapset  *others = NULL;
	ListCell   *lc;

	memset(f, 0, sizeof(*f));
	foreach(lc, oids)
	{
		Relation	index = index_open(lfirst_oid(lc), RowExclusiveLock);

		if (follows(index) && f->nindexes < IP_MAX_FOLLOWING)
			f->indexes[f->nindexes++] = RelationGetRelid(index);
		else if (!CompatIsSummarizing(index))
			others = bms_join(others, columns_of(index));
		index_close(index, NoLock);
	}
	for (int i = 0; i < f->nindexes; i++)
	{
		Relation	index = index_open(f->indexes[i], NoLock);

		add_columns(f, index, i, others);
		index_close(index, NoLock);
	}
	bms_free(others);
	f->known = true;
}

/*
 * Catalog lookups in between may process the only invalidation message about a
 * new index.  So the result must not come from an outdated list of indexes.
 * RelationGetIndexAttrBitmap in core repeats its work for the same reason.
 */
static void
find_followed(Relation rel, IpFollowed *f)
{
	List	   *oids = RelationGetIndexList(rel);
	bool		is_outdated;

	do
	{
		List	   *before = oids;

		find_of_indexes(before, f);
		oids = RelationGetIndexList(rel);
		is_outdated = !equal(before, oids);
		list_free(before);
	} while (is_outdated);
	list_free(oids);
}

const IpFollowed *
ip_keys_followed(Relation rel)
{
	IpFollowed	found;

	if (!ip_rel_cache(rel)->followed.known)
	{
		find_followed(rel, &found);
		/* find_followed may have freed the cache */
		ip_rel_cache(rel)->followed = found;
	}
	return &ip_rel_cache(rel)->followed;
}

void
ip_keys_insert(Relation rel, const Oid *indexes, uint16 which,
			   TupleTableSlot *slot)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "inplace index entries",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	const InplaceKeysIndex *am = inplace_keys_index();

	for (int i = 0; which >> i != 0; i++)
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];
		Relation	index;

		if (!(which & (1 << i)))
			continue;
		index = index_open(indexes[i], RowExclusiveLock);
		for (int k = 0; k < index->rd_index->indnatts; k++)
			values[k] = slot_getattr(slot, index->rd_index->indkey.values[k],
									 &isnull[k]);
		am->add(index, values, isnull, &slot->tts_tid, rel);
		index_close(index, NoLock);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* ---- what a page says of its rows' entries ------------------------------- */

void
ip_keys_write(Relation rel, Buffer buffer, uint8 keys, Buffer map)
{
	IpChange	change;

	ip_change_begin(&change, rel, IP_XLOG_VACUUM, InvalidTransactionId);
	ip_op_keys(ip_change_block(&change, buffer, false), keys);
	if (keys == 0)
		ip_change_visible(&change, map);
	ip_change_apply(&change);
}

/*
 * An entry stays, although it may not be needed: VACUUM must not conclude that
 * no entry of the page is stale (I23).
 */
static void
end_quiet(Relation rel, BlockNumber block)
{
	Buffer		buffer = ip_rel_read(rel, block);
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (ip_page_kind(rel, block, page) == IP_PAGE_DATA &&
		(IpPageGetSpecial(page)->keys & IP_KEYS_QUIET))
		ip_keys_write(rel, buffer, IP_KEYS_STALE, InvalidBuffer);
	UnlockReleaseBuffer(buffer);
}

/* ---- entries that are not needed ----------------------------------------- */

/* Returns a row's page, pinned, if its entries may be stale. */
static Buffer
read_page(Relation rel, ItemPointer tid, Buffer *vm)
{
	BlockNumber block = ItemPointerGetBlockNumber(tid);

	if (visibilitymap_get_status(rel, block, vm) != 0 ||
		!compat_has_block(rel, block))
		return InvalidBuffer;
	return ip_rel_read(rel, block);
}

/*
 * Begin with the row at tid, on the page in this buffer, if the page's entries
 * may be stale; releases the buffer.  False if the entry is taken as needed.
 */
static bool
begin_row(Relation rel, ItemPointer tid, Buffer buffer, IpVersion *v,
		  uint8 *keys)
{
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	IpvResult	result = IPV_NONE;
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	*keys = ip_page_kind(rel, block, page) == IP_PAGE_DATA ?
		IpPageGetSpecial(page)->keys : 0;
	if (*keys & IP_KEYS_STALE)
	{
		v->horizon = ip_xid_horizon();
		result = ip_version_begin(v, rel, block, page,
								  ItemPointerGetOffsetNumber(tid));
		if (result == IPV_OK)
			ip_version_let_go(v);
	}
	UnlockReleaseBuffer(buffer);
	return result == IPV_OK;
}

/*
 * Search for a version that has the key, down to the newest that is visible to
 * all.  Versions that were rolled back do not count: they never become current
 * again.  IPV_OK: there may be one; *newest: it is the newest version.
 */
static IpvResult
find_match(Relation rel, IpVersion *v, InplaceKeyMatch match, void *arg,
		   TupleTableSlot *slot, TransactionId *conflict, bool *newest)
{
	*newest = true;
	for (int n = 0; n < MAX_VERSIONS; n++)
	{
		IpXidStatus status = ip_version_status(v);
		IpvResult	result;

		if (status != IP_STATUS_ABORTED)
		{
			bool		is_lost = false;

			ip_version_to_slot(v, slot);
			if (match(arg, slot, &is_lost))
				return IPV_OK;

			/*
			 * the row has been deleted since, and its long values are gone;
			 * an older version that has lost a value is not needed
			 */
			if (is_lost && n == 0)
				return IPV_STALE;
			*newest = false;
		}
		if (status == IP_STATUS_COMMITTED && ip_xid_removable(rel, v->xid))
		{
			*conflict = IpXidIsFrozen(v->xid) ? InvalidTransactionId :
				(TransactionId) v->xid;
			return IPV_NONE;
		}
		result = ip_version_older(v);
		if (result != IPV_OK)
			return result;
	}
	return IPV_OK;
}

/*
 * Returns whether the row has long values and is dead to all.  VACUUM of the
 * TOAST table may have removed the values, so its key is unknown, but none of
 * its entries is needed.  That VACUUM's horizon may be newer than the one that
 * ip_xid_removable knows.
 */
static bool
has_died(Relation rel, IpVersion *v)
{
	return (v->state & IP_ROW_DELETED) && (v->hdr & IP_HDR_HASEXTERNAL) &&
		ip_version_status(v) == IP_STATUS_COMMITTED &&
		(ip_xid_removable(rel, v->xid) ||
		 v->xid < ip_xid_full(GetOldestNonRemovableTransactionId(rel)));
}

InplaceEntry
ip_keys_judge(Relation rel, ItemPointer tid, InplaceKeyMatch match, void *arg,
			  TupleTableSlot *slot, Buffer *vm, TransactionId *conflict)
{
	IpVersion	version;
	IpVersion  *v = &version;
	IpvResult	result = IPV_STALE;
	uint8		keys = IP_KEYS_QUIET;
	bool		newest = false;

	/*
	 * if the page is quiet, its flag is removed when VACUUM has all answers,
	 * so undo that changes under us is no reason to stop early
	 */
	for (int n = 0; result == IPV_STALE && (keys & IP_KEYS_QUIET) &&
		 n < MAX_TRIES; n++)
	{
		Buffer		buffer = read_page(rel, tid, vm);

		if (BufferIsInvalid(buffer) || !begin_row(rel, tid, buffer, v, &keys))
			return INPLACE_ENTRY_CURRENT;
		*conflict = InvalidTransactionId;
		if (has_died(rel, v))
		{
			*conflict = (TransactionId) v->xid;
			return INPLACE_ENTRY_STALE;
		}

		result = find_match(rel, v, match, arg, slot, conflict, &newest);
		ExecClearTuple(slot);
	}
	if (result == IPV_NONE)
		return INPLACE_ENTRY_STALE;
	if (result == IPV_OK && newest)
		return INPLACE_ENTRY_CURRENT;

	/*
	 * on a quiet page there are no older versions with other keys, so it is
	 * unknown whether the entry is stale
	 */
	if (keys & IP_KEYS_QUIET)
		end_quiet(rel, ItemPointerGetBlockNumber(tid));
	return INPLACE_ENTRY_OLD;
}

/*
 * An update counts as one dead row, and may have left an entry in each index.
 * So the number of dead rows that have certainly been removed is n divided by
 * the number of indexes.
 */
void
ip_keys_removed(Relation rel, int n)
{
	const IpFollowed *f = &ip_rel_cache(rel)->followed;

	if (f->known && f->nindexes > 0)
		pgstat_update_heap_dead_tuples(rel, n / f->nindexes);
}
