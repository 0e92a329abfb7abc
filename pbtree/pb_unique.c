/*-------------------------------------------------------------------------
 * pb_unique.c
 *	  Check for duplicates of a key that is inserted into a unique index.
 *
 * The first leaf that the key can be on stays locked for writing from the
 * check until the key is inserted: sessions that insert the same key pass it
 * one after the other.  Equal keys may continue on leaves to its right.
 */
#include "compat_index.h"

#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"

#include "pb_search.h"
#include "pb_unique.h"

/* NULL is not equal to NULL, unless the index is defined so. */
bool
pb_unique_applies(Relation rel, const PbIndex *index, const bool *isnull)
{
	if (rel->rd_index->indnullsnotdistinct)
		return true;
	for (int i = 0; i < index->nkeys; i++)
	{
		if (isnull[i])
			return false;
	}
	return true;
}

/*
 * Raise the error for a duplicate.  The pages are released first, since the
 * key's description may read any table.
 */
pg_noreturn static void
report(PbUnique *u, Buffer leaf, Buffer buffer)
{
	char	   *key;

	/* a writer would be in conflict here; that error takes precedence */
	CheckForSerializableConflictIn(u->rel, NULL, BufferGetBlockNumber(leaf));
	if (buffer != leaf)
		UnlockReleaseBuffer(buffer);
	UnlockReleaseBuffer(leaf);
	key = BuildIndexValueDescription(u->rel, unconstify(Datum *, u->values),
									 unconstify(bool *, u->isnull));
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"",
					RelationGetRelationName(u->rel)),
			 key ? errdetail("Key %s already exists.", key) : 0,
			 errtableconstraint(u->heap, RelationGetRelationName(u->rel))));
}

/*
 * True if the row itself has become dead.  CREATE INDEX CONCURRENTLY may
 * insert such a row.
 */
static bool
is_dead(PbUnique *u)
{
	ItemPointerData tid = u->tid;

	return !table_index_fetch_tuple_check(u->heap, &tid, SnapshotSelf, NULL);
}

/* Check an item with the key.  "over": the row no longer has to be unique. */
static PbVerdict
check_item(PbUnique *u, Buffer leaf, Buffer buffer, int slot, bool *over)
{
	Page		page = BufferGetPage(buffer);
	PbItem	   *item = palloc(sizeof(PbItem));
	ItemPointerData *tids = palloc(sizeof(ItemPointerData) * PB_MAX_TIDS);
	SnapshotData dirty;
	bool		dead = true;
	int			n;
	PbVerdict	verdict = PB_UNIQUE;

	InitDirtySnapshot(dirty);
	pb_item_get(u->rel, u->index, buffer, page, slot, item);
	n = pb_item_tids(u->rel, buffer, page, slot, item, tids);
	for (int i = 0; i < n && verdict == PB_UNIQUE && !*over; i++)
	{
		bool		all_dead = false;

		if (u->check == UNIQUE_CHECK_EXISTING &&
			ItemPointerEquals(&tids[i], &u->tid))
			u->found = true;
		else if (table_index_fetch_tuple_check(u->heap, &tids[i], &dirty,
											   &all_dead))
		{
			u->wait = TransactionIdIsValid(dirty.xmin) ?
				dirty.xmin : dirty.xmax;
			u->token = dirty.speculativeToken;
			if (u->check == UNIQUE_CHECK_PARTIAL)
				verdict = PB_DUPLICATE;
			else if (TransactionIdIsValid(u->wait))
				verdict = PB_WAIT;
			else if (is_dead(u))
				*over = true;
			else
				report(u, leaf, buffer);
		}
		dead &= all_dead;
	}
	if (dead && CompatBeginHint(buffer))
	{
		*(uint16 *) pb_page_slot(page, slot) |= PB_SLOT_DEAD;
		PbPageGetSpecial(page)->flags |= PB_PAGE_GARBAGE;
		CompatEndHint(buffer);
	}
	pfree(item);
	pfree(tids);
	return verdict;
}

/*
 * Check all rows with the key.  "first" is in front of them, at this slot of
 * the leaf, which stays locked for writing.  It does not return if there is a
 * duplicate.
 */
PbVerdict
pb_unique_check(PbUnique *u, Buffer leaf, PbPos *first, int slot)
{
	Buffer		buffer = leaf;
	PbVerdict	verdict = PB_UNIQUE;
	bool		over = false;
	bool		more;

	Assert(pb_index_is_locked(leaf, PB_WRITE)); /* I13 */
	Assert(!first->has_tid && !first->after &&
		   slot <= pb_page_nslots(BufferGetPage(leaf)));
	/* from here on the position is behind them */
	first->after = true;
	u->nequal = 0;
	u->found = false;
	do
	{
		Page		page = BufferGetPage(buffer);
		PbBounds	bounds = {0, 0};
		int			end;

		more = pb_pos_is_right_of(first, page);
		end = more ? pb_page_nslots(page) :
			pb_pos_search(first, buffer, &bounds);
		for (; slot < end && verdict == PB_UNIQUE && !over; slot++)
		{
			u->nequal++;
			if (!(pb_slot_get(page, slot) & PB_SLOT_DEAD))
				verdict = check_item(u, leaf, buffer, slot, &over);
		}
		more &= verdict == PB_UNIQUE && !over;
		if (more)
		{
			Buffer		next = pb_search_next(u->rel, buffer, PB_READ);

			if (buffer != leaf)
				UnlockReleaseBuffer(buffer);
			buffer = next;
		}
		slot = 0;
	} while (more);
	first->after = false;
	if (buffer != leaf)
		UnlockReleaseBuffer(buffer);
	if (u->check == UNIQUE_CHECK_EXISTING && !u->found &&
		verdict == PB_UNIQUE && !over)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("failed to re-find tuple within index \"%s\"",
						RelationGetRelationName(u->rel)),
				 errhint("This may be because of a non-immutable index expression."),
				 errtableconstraint(u->heap, RelationGetRelationName(u->rel))));
	Assert(pb_index_is_locked(leaf, PB_WRITE)); /* I13 */
	return verdict;
}

/* No page is locked. */
void
pb_unique_wait(PbUnique *u)
{
	/* otherwise it could not be cancelled */
	Assert(InterruptHoldoffCount == 0);
	if (u->token != 0)
		SpeculativeInsertionWait(u->wait, u->token);
	else
		XactLockTableWait(u->wait, u->rel, &u->tid, XLTW_InsertIndexUnique);
}

/* Raise the error for two rows with this key in CREATE INDEX. */
void
pb_unique_report_build(Relation heap, Relation rel, PbIndex *index,
					   const PbKey *key)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	PbArena    *arena = palloc(sizeof(PbArena));
	char	   *text;

	arena->used = 0;
	for (int i = 0; i < key->natts; i++)
		values[i] = pb_key_datum(index, key, i, &isnull[i], arena);
	text = BuildIndexValueDescription(rel, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(rel)),
			 text ? errdetail("Key %s is duplicated.", text) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(heap, RelationGetRelationName(rel))));
}
