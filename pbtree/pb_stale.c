/*-------------------------------------------------------------------------
 * pb_stale.c
 *	  Entries that are stale because inplace has changed their rows' keys in
 *	  place.
 *
 * An index follows updates in place if its keys are made of a row's columns
 * alone, and are compared as bytes.  Such a comparison calls no user code, so
 * it can be made while a leaf is locked.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/table.h"
#include "catalog/index.h"
#include "utils/memutils.h"

#include "pb_stale.h"

/*
 * An examination of all entries of a page may read a page of the table for
 * each, and is soon repeated if few of them can be removed.  A split costs less
 * then.  So of SAMPLE items from all over the page, one in SAMPLE_PART must
 * have a stale entry.
 */
#define SAMPLE			32
#define SAMPLE_PART		8


bool
pb_stale_can_follow(Relation rel, const PbIndex *index)
{
	Form_pg_index form = rel->rd_index;

	if (form->indisunique || form->indisexclusion ||
		form->indnatts != form->indnkeyatts || !index->equalimage ||
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
pb_stale_form(Relation rel, PbIndex *index, TupleTableSlot *slot, PbKey *key,
			  bool *is_lost)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	for (int i = 0; i < index->natts; i++)
	{
		struct varlena *value;

		values[i] = slot_getattr(slot, rel->rd_index->indkey.values[i],
								 &isnull[i]);
		if (is_lost == NULL || isnull[i] || index->col[i].len != -1 ||
			!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(values[i])))
			continue;
		value = inplace_keys_table()->value((struct varlena *)
											DatumGetPointer(values[i]));
		values[i] = PointerGetDatum(value);
		*is_lost = value == NULL;
		if (*is_lost)
			return false;
	}
	return pb_key_try_form(index, values, isnull, key);
}

/*
 * Lock the TOAST table from which long values are read.  That is done before a
 * leaf is locked: a transaction that has locked the TOAST table may wait for
 * the leaf.
 */
static void
lock_toast(PbStale *s)
{
	Oid			oid = s->heap->rd_rel->reltoastrelid;

	if (!OidIsValid(oid))
		return;
	s->toast = table_open(oid, AccessShareLock);
}

static void
unlock_toast(PbStale *s)
{
	if (s->toast != NULL)
		table_close(s->toast, AccessShareLock);
}

void
pb_stale_begin(PbStale *s, Relation rel, PbIndex *index, Relation heap)
{
	s->table = pb_stale_applies(rel, index, heap) ? inplace_keys_table() : NULL;
	if (s->table == NULL)
		return;
	s->heap = heap != NULL ? heap :
		RelationIdGetRelation(rel->rd_index->indrelid);
	s->owns_heap = heap == NULL;
	s->rel = rel;
	s->index = index;
	s->slot = table_slot_create(s->heap, NULL);
	s->context = AllocSetContextCreate(CurrentMemoryContext,
									   "pbtree stale entries",
									   ALLOCSET_SMALL_SIZES);
	s->vm = InvalidBuffer;
	s->suspects = NULL;
	s->nsuspects = 0;
	s->nold = 0;
	s->toast = NULL;
	if (s->owns_heap)
		lock_toast(s);
}

/* True if a value of one of the index's columns is not in the row itself. */
static bool
is_toasted(const PbStale *s, TupleTableSlot *slot)
{
	for (int i = 0; i < s->index->natts; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot,
										 s->rel->rd_index->indkey.values[i],
										 &isnull);

		if (!isnull && s->index->col[i].len == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(value)))
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

	CompatInjectionPoint("pbtree-stale-key");
	if (s->toast == NULL && is_toasted(s, slot))
		return true;
	old = MemoryContextSwitchTo(s->context);
	found = pb_stale_form(s->rel, s->index, slot, &key, is_lost) &&
		pb_key_is_identical(s->key, &key);
	MemoryContextSwitchTo(old);
	MemoryContextReset(s->context);
	return found;
}

bool
pb_stale_is_needed(PbStale *s, const PbKey *key, ItemPointer tid,
				   TransactionId *conflict)
{
	TransactionId xid;
	InplaceEntry entry;

	s->key = key;
	entry = s->table->judge(s->heap, tid, matches, s, s->slot, &s->vm, &xid);
	s->nold += entry == INPLACE_ENTRY_OLD ? 1 : 0;
	if (entry != INPLACE_ENTRY_STALE)
		return true;
	/* an invalid xid precedes all others */
	if (TransactionIdFollows(xid, *conflict))
		*conflict = xid;
	return false;
}

/* ---- the first look ---------------------------------------------------- */

static bool
sample_is_stale(PbStale *s, Buffer buffer, Page page, PbItem *item)
{
	int			nslots = pb_page_nslots(page);
	int			n = Min(nslots, SAMPLE);
	int			wanted = (n + SAMPLE_PART - 1) / SAMPLE_PART;
	TransactionId conflict = InvalidTransactionId;

	for (int i = 0; i < n; i++)
	{
		pb_item_get(s->rel, s->index, buffer, page, i * nslots / n, item);
		pb_item_first_tid(s->rel, buffer, page, i * nslots / n, item,
						  &item->key.tid);
		if (!pb_stale_is_needed(s, &item->key, &item->key.tid, &conflict) &&
			--wanted == 0)
			return true;
	}
	return false;
}

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) unconstify(void *, a),
							  (ItemPointer) unconstify(void *, b));
}

/*
 * Returns whether the page is a sound leaf.  One that was a leaf may have
 * become another kind of page while it was not locked, or be damaged since it
 * was read from disk again.
 */
bool
pb_stale_is_leaf(Page page)
{
	return pb_page_check(page) == NULL && pb_page_is_leaf(page) &&
		!(PbPageGetSpecial(page)->flags & (PB_PAGE_META | PB_PAGE_DELETED));
}

int
pb_stale_look(PbStale *s, Buffer buffer, bool sample)
{
	PGAlignedBlock *copy = palloc(sizeof(PGAlignedBlock));
	Page		page = copy->data;
	PbItem	   *item = palloc(sizeof(PbItem));
	ItemPointerData tids[PB_MAX_TIDS];
	TransactionId conflict = InvalidTransactionId;

	/* the table is read, so the leaf must only be pinned */
	Assert(BufferIsLocal(buffer) || !pb_index_is_locked(buffer, PB_READ));
	s->nsuspects = 0;
	s->nold = 0;
	LockBuffer(buffer, PB_READ);
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (s->suspects == NULL)
		s->suspects = palloc(PB_MAX_PAGE_TIDS * sizeof(ItemPointerData));
	if (pb_stale_is_leaf(page) &&
		(!sample || sample_is_stale(s, buffer, page, item)))
	{
		for (int slot = 0; slot < pb_page_nslots(page); slot++)
		{
			int			n;

			pb_item_get(s->rel, s->index, buffer, page, slot, item);
			n = pb_item_tids(s->rel, buffer, page, slot, item, tids);
			for (int i = 0; i < n; i++)
			{
				/* each may read a page of the table; only VACUUM delays here */
				compat_vacuum_delay_point(false);
				if (pb_stale_is_needed(s, &item->key, &tids[i], &conflict))
					continue;
				/* damage: items that overlap */
				if (s->nsuspects >= PB_MAX_PAGE_TIDS)
					pb_index_corrupt(s->rel, BufferGetBlockNumber(buffer), slot,
									 "The page has more rows than it can hold.");
				s->suspects[s->nsuspects++] = tids[i];
			}
		}
	}
	pfree(item);
	pfree(copy);
	qsort(s->suspects, s->nsuspects, sizeof(ItemPointerData), compare_tids);
	return s->nsuspects;
}

bool
pb_stale_is_suspect(const PbStale *s, ItemPointer tid)
{
	return s->nsuspects > 0 &&
		bsearch(tid, s->suspects, s->nsuspects, sizeof(ItemPointerData),
				compare_tids) != NULL;
}

void
pb_stale_end(PbStale *s)
{
	if (s->table == NULL)
		return;
	if (s->suspects)
		pfree(s->suspects);
	if (BufferIsValid(s->vm))
		ReleaseBuffer(s->vm);
	unlock_toast(s);
	ExecDropSingleTupleTableSlot(s->slot);
	MemoryContextDelete(s->context);
	if (s->owns_heap)
		RelationClose(s->heap);
}
