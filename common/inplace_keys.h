/*-------------------------------------------------------------------------
 * inplace_keys.h
 *	  What inplace and an index access method tell each other about keys that
 *	  updates in place have changed.
 *
 * An update in place that changes columns of an index which follows (below) adds an
 * entry with the new key, for the same TID.  The entries before stay, for
 * snapshots that see the versions before, or for a rollback.  So an entry may be
 * stale: the version that a snapshot sees has another key.  Then
 * - a fetch by way of the entry finds no row;
 * - VACUUM, and whatever else cleans up an index, removes the entry when no version
 *	 that anybody may see, or that a rollback may put back, has its key.
 *
 * Each library publishes its part under a name (find_rendezvous_variable).
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_KEYS_H
#define INPLACE_KEYS_H

#include "access/amapi.h"
#include "access/tableam.h"
#include "fmgr.h"

#define INPLACE_KEYS_TABLE	"inplace_keys_table_4"
#define INPLACE_KEYS_INDEX	"inplace_keys_index_4"

/*
 * Would the index have an entry with this key for the row in the slot?  arg says which key.  Called without locks on
 * the table's pages.  *is_lost: not to be told, as the TOAST table lacks a value's chunks; NULL: that is an error.
 */
typedef bool (*InplaceKeyMatch) (void *arg, TupleTableSlot *slot, bool *is_lost);

/* What an entry is there for. */
typedef enum InplaceEntry
{
	INPLACE_ENTRY_STALE,		/* for nobody */
	INPLACE_ENTRY_OLD,			/* for older versions of its row, as far as is
								 * known */
	INPLACE_ENTRY_CURRENT		/* for the newest one, too */
} InplaceEntry;

/* By inplace. */
typedef struct InplaceKeysTable
{
	const TableAmRoutine *am;

	/*
	 * From now on the fetch finds rows only that match.  Before each row
	 * *read_at is an LSN of which it is known that the index's page, when it
	 * was read, had it or a higher one.
	 */
	void		(*expect) (IndexFetchTableData *fetch, InplaceKeyMatch match, void *arg,
						   const XLogRecPtr *read_at);

	/*
	 * Who needs an entry for tid?  If nobody does, snapshots of a standby
	 * that do not see *conflict, if that is valid, may need it all the same.
	 * *vm: a pinned page of the table's visibility map, or InvalidBuffer; the
	 * caller releases it.  Lock: the index's page, exclusively, for an answer
	 * by which an entry is removed; without it the next one may be another.
	 */
	InplaceEntry (*judge) (Relation table, ItemPointer tid, InplaceKeyMatch match, void *arg,
						   TupleTableSlot *slot, Buffer *vm, TransactionId *conflict);

	/* So many stale entries were removed, not by VACUUM. */
	void		(*removed) (Relation table, int n);

	/* Bulk deletion with this callback is VACUUM's: stale entries go, too. */
	IndexBulkDeleteCallback vacuum;

	/*
	 * At its end: so many went, and so many are old.  state is the
	 * callback's.
	 */
	void		(*vacuumed) (void *state, double removed, double old);
} InplaceKeysTable;

/* By the index access method. */
typedef struct InplaceKeysIndex
{
	aminsert_function insert;	/* which an index has that is of this access
								 * method */

	/*
	 * May entries be added to it for changed keys?  Not if it is unique, has
	 * expressions or a predicate, or if equal keys may differ in bytes.
	 */
	bool		(*follows) (Relation index);

	/* Add an entry, if it is not there. */
	void		(*add) (Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation table);
} InplaceKeysIndex;

static inline const InplaceKeysTable *
inplace_keys_table(void)
{
	return *(const InplaceKeysTable **) find_rendezvous_variable(INPLACE_KEYS_TABLE);
}

static inline const InplaceKeysIndex *
inplace_keys_index(void)
{
	return *(const InplaceKeysIndex **) find_rendezvous_variable(INPLACE_KEYS_INDEX);
}

#endif							/* INPLACE_KEYS_H */
