/*-------------------------------------------------------------------------
 * inplace_keys.h
 *	  The interface between inplace and an index access method for keys that
 *	  updates in place have changed.
 *
 * An update in place that changes columns of an index which follows (below)
 * adds an entry with the new key, for the same TID.  The earlier entries stay,
 * for snapshots that see earlier versions, or for a rollback.  So an entry may
 * be stale: the version that a snapshot sees has another key.  Then
 * - a fetch by way of the entry finds no row;
 * - VACUUM, and any other cleanup of an index, removes the entry when its key
 *	 belongs to no version that a snapshot may see or a rollback may restore.
 *
 * Each library publishes its part under a name (find_rendezvous_variable).
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_KEYS_H
#define INPLACE_KEYS_H

#include "access/amapi.h"
#include "access/tableam.h"
#include "fmgr.h"

#define INPLACE_KEYS_TABLE	"inplace_keys_table_5"
#define INPLACE_KEYS_INDEX	"inplace_keys_index_5"

/*
 * True if the index would have an entry with a given key, which arg describes,
 * for the row in the slot.  The caller holds no locks on the table's pages.
 * *is_lost is set if the answer is unknown because the TOAST table lacks a
 * value; with is_lost NULL that is an error.
 */
typedef bool (*InplaceKeyMatch) (void *arg, TupleTableSlot *slot,
								 bool *is_lost);

/* The versions that need an entry. */
typedef enum InplaceEntry
{
	INPLACE_ENTRY_STALE,		/* no version needs it */
	INPLACE_ENTRY_OLD,			/* older versions of its row need it, as far
								 * as is known */
	INPLACE_ENTRY_CURRENT		/* the newest version needs it, too */
} InplaceEntry;

/* The functions that inplace publishes. */
typedef struct InplaceKeysTable
{
	const TableAmRoutine *am;

	/*
	 * From this call on the fetch finds only rows that match.  Before each
	 * row, *read_at is an LSN at most that of the index's page when it was
	 * read.
	 */
	void		(*expect) (IndexFetchTableData *fetch, InplaceKeyMatch match,
						   void *arg, const XLogRecPtr *read_at);

	/*
	 * Find out which versions need an entry for tid.  Even if the result is
	 * INPLACE_ENTRY_STALE, snapshots of a standby that do not see *conflict,
	 * if that is valid, may need the entry.  *vm is a pinned page of the
	 * table's visibility map, or InvalidBuffer; the caller releases it. Lock:
	 * the index's page, exclusively, if the caller removes an entry because
	 * of the result; without the lock the next result may differ.
	 */
	InplaceEntry (*judge) (Relation table, ItemPointer tid,
						   InplaceKeyMatch match, void *arg,
						   TupleTableSlot *slot, Buffer *vm,
						   TransactionId *conflict);

	/*
	 * Returns the value of a TOAST pointer, palloc'd; NULL if it is lost: the
	 * version that has the pointer is dead to all.  Lock: the TOAST table,
	 * AccessShareLock.
	 */
	struct varlena *(*value) (const struct varlena *pointer);

	/* n stale entries were removed outside of VACUUM. */
	void		(*removed) (Relation table, int n);

	/*
	 * Bulk deletion with this callback is VACUUM's; it also removes stale
	 * entries.
	 */
	IndexBulkDeleteCallback vacuum;

	/*
	 * To be called at the end of such a bulk deletion, with the numbers of
	 * entries that were removed and that are old.  state is the callback's.
	 */
	void		(*vacuumed) (void *state, double removed, double old);
} InplaceKeysTable;

/* The functions that the index access method publishes. */
typedef struct InplaceKeysIndex
{
	aminsert_function insert;	/* the aminsert of the access method;
								 * identifies its indexes */

	/*
	 * True if entries may be added to the index for changed keys.  An index
	 * does not qualify if it is unique, has expressions or a predicate, or if
	 * equal keys may differ in bytes.
	 */
	bool		(*follows) (Relation index);

	/* Add an entry, if it does not exist. */
	void		(*add) (Relation index, Datum *values, bool *isnull,
						ItemPointer tid, Relation table);
} InplaceKeysIndex;

static inline const InplaceKeysTable *
inplace_keys_table(void)
{
	return *(const InplaceKeysTable **)
		find_rendezvous_variable(INPLACE_KEYS_TABLE);
}

static inline const InplaceKeysIndex *
inplace_keys_index(void)
{
	return *(const InplaceKeysIndex **)
		find_rendezvous_variable(INPLACE_KEYS_INDEX);
}

#endif							/* INPLACE_KEYS_H */
