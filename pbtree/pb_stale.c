/*-------------------------------------------------------------------------
 * pb_stale.c
 *	  Entries that are stale, since inplace has changed their rows' keys in place.
 *
 * An index follows if its entries can be told from a row's columns alone, and by their
 * bytes: then the comparison runs no function, and may be made while a leaf is locked.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/table.h"
#include "access/toast_internals.h"
#include "catalog/index.h"
#include "utils/memutils.h"

#include "pb_stale.h"
#include "pb_toast.h"

bool
pb_stale_can_follow(Relation rel, const PbIndex *index)
{
	Form_pg_index form = rel->rd_index;

	if (form->indisunique || form->indisexclusion || form->indnatts != form->indnkeyatts || !index->equalimage ||
		!heap_attisnull(rel->rd_indextuple, Anum_pg_index_indpred, NULL))
		return false;
	for (int i = 0; i < form->indnatts; i++)
	{
		if (form->indkey.values[i] <= 0)
			return false;
	}
	return true;
}

static bool
follows(Relation rel)
{
	PbIndex    *index = pb_index_get(rel);
	bool		result = pb_stale_can_follow(rel, index);

	pfree(index);
	return result;
}

void
pb_stale_init(InplaceKeysIndex *keys)
{
	keys->follows = follows;
	*find_rendezvous_variable(INPLACE_KEYS_INDEX) = keys;
}

bool
pb_stale_applies(Relation rel, const PbIndex *index, Relation heap)
{
	const InplaceKeysTable *table = inplace_keys_table();
	bool		result;

	if (table == NULL || !pb_stale_can_follow(rel, index))
		return false;
	if (heap != NULL)
		return heap->rd_tableam == table->am;
	heap = RelationIdGetRelation(rel->rd_index->indrelid);
	result = RelationIsValid(heap) && heap->rd_tableam == table->am;
	if (RelationIsValid(heap))
		RelationClose(heap);
	return result;
}

bool
pb_stale_form(Relation rel, PbIndex *index, TupleTableSlot *slot, PbKey *key, bool *is_lost)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	for (int i = 0; i < index->natts; i++)
	{
		values[i] = slot_getattr(slot, rel->rd_index->indkey.values[i], &isnull[i]);
		if (is_lost == NULL || isnull[i] || index->col[i].len != -1 || !VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(values[i])))
			continue;
		values[i] = PointerGetDatum(pb_toast_fetch((struct varlena *) DatumGetPointer(values[i])));
		*is_lost = DatumGetPointer(values[i]) == NULL;
		if (*is_lost)
			return false;
	}
	return pb_key_try_form(index, values, isnull, key);
}

/* What a long value of a row is read from.  A transaction that has a lock of that may wait for the leaf that will be locked. */
static void
lock_toast(PbStale *s)
{
	Oid			oid = s->heap->rd_rel->reltoastrelid;

	if (!OidIsValid(oid))
		return;
	s->toast = table_open(oid, AccessShareLock);
	(void) toast_open_indexes(s->toast, AccessShareLock, &s->toast_indexes, &s->ntoast_indexes);
}

static void
unlock_toast(PbStale *s)
{
	if (s->toast == NULL)
		return;
	toast_close_indexes(s->toast_indexes, s->ntoast_indexes, AccessShareLock);
	table_close(s->toast, AccessShareLock);
}

void
pb_stale_begin(PbStale *s, Relation rel, PbIndex *index, Relation heap)
{
	s->table = pb_stale_applies(rel, index, heap) ? inplace_keys_table() : NULL;
	if (s->table == NULL)
		return;
	s->heap = heap != NULL ? heap : RelationIdGetRelation(rel->rd_index->indrelid);
	s->owns_heap = heap == NULL;
	s->rel = rel;
	s->index = index;
	s->slot = table_slot_create(s->heap, NULL);
	s->context = AllocSetContextCreate(CurrentMemoryContext, "pbtree stale entries", ALLOCSET_SMALL_SIZES);
	s->vm = InvalidBuffer;
	s->ntids = s->nread = s->nasked = 0;
	s->nold = 0;
	s->toast = NULL;
	if (s->owns_heap)
		lock_toast(s);
}

void
pb_stale_ahead(PbStale *s, const ItemPointerData *tids, int n)
{
	s->tids = tids;
	s->ntids = n;
	s->nread = s->nasked = 0;
}

/* The page of the entry that is asked about now, or InvalidBuffer; those behind it are read ahead. */
static Buffer
next_page(PbStale *s)
{
	if (s->nasked >= s->ntids)
		return InvalidBuffer;
	for (; s->nread < s->ntids && s->nread < s->nasked + PB_STALE_AHEAD; s->nread++)
		s->ahead[s->nread % PB_STALE_AHEAD] =
			s->table->read_ahead(s->heap, unconstify(ItemPointerData *, &s->tids[s->nread]), &s->vm);
	return s->ahead[s->nasked++ % PB_STALE_AHEAD];
}

/* Is one of the index's columns not in the row itself? */
static bool
is_toasted(const PbStale *s, TupleTableSlot *slot)
{
	for (int i = 0; i < s->index->natts; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, s->rel->rd_index->indkey.values[i], &isnull);

		if (!isnull && s->index->col[i].len == -1 && VARATT_IS_EXTERNAL(DatumGetPointer(value)))
			return true;
	}
	return false;
}

static bool
matches(void *arg, TupleTableSlot *slot, bool *is_lost)
{
	PbStale    *s = arg;
	MemoryContext old;
	PbKey		key;
	bool		found;

	if (s->toast == NULL && is_toasted(s, slot))
		return true;
	old = MemoryContextSwitchTo(s->context);
	found = pb_stale_form(s->rel, s->index, slot, &key, is_lost) && pb_key_is_identical(s->key, &key);
	MemoryContextSwitchTo(old);
	MemoryContextReset(s->context);
	return found;
}

bool
pb_stale_is_needed(PbStale *s, const PbKey *key, ItemPointer tid, TransactionId *conflict)
{
	TransactionId xid;
	InplaceEntry entry;

	s->key = key;
	Assert(s->nasked >= s->ntids || ItemPointerEquals(tid, unconstify(ItemPointerData *, &s->tids[s->nasked])));
	entry = s->table->judge(s->heap, tid, next_page(s), matches, s, s->slot, &s->vm, &xid);
	s->nold += entry == INPLACE_ENTRY_OLD ? 1 : 0;
	if (entry != INPLACE_ENTRY_STALE)
		return true;
	/* an invalid one precedes all others */
	if (TransactionIdFollows(xid, *conflict))
		*conflict = xid;
	return false;
}

void
pb_stale_end(PbStale *s)
{
	if (s->table == NULL)
		return;
	for (int i = s->nasked; i < s->nread; i++)
	{
		if (BufferIsValid(s->ahead[i % PB_STALE_AHEAD]))
			ReleaseBuffer(s->ahead[i % PB_STALE_AHEAD]);
	}
	if (BufferIsValid(s->vm))
		ReleaseBuffer(s->vm);
	unlock_toast(s);
	ExecDropSingleTupleTableSlot(s->slot);
	MemoryContextDelete(s->context);
	if (s->owns_heap)
		RelationClose(s->heap);
}
