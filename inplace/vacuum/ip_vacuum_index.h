/*-------------------------------------------------------------------------
 * ip_vacuum_index.h
 *	  A VACUUM, and its work on indexes.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_INDEX_H
#define IP_VACUUM_INDEX_H

#include "compat.h"

#include "tidset_pg.h"

#include "ip_ring.h"
#include "ip_space.h"

/* What VACUUM has done, for its log line. */
typedef struct IpVacuumCounts
{
	double		live;			/* rows on scanned pages */
	double		recently_dead;	/* deleted rows that some snapshot may still
								 * see */
	double		removed;		/* rows that became dead items */
	double		dead_items;		/* dead items collected, in all */
	BlockNumber dead_item_pages;
	BlockNumber stale_pages;	/* pages for whose rows the indexes may have
								 * stale entries */
	BlockNumber scanned;
	BlockNumber data_pages;		/* of the scanned ones */
	BlockNumber undo_seen;
	BlockNumber undo_pages;
	BlockNumber undo_freed;
	BlockNumber truncated;
	BlockNumber frozen_pages;	/* pages with frozen rows */
	int64		frozen_rows;	/* rows that named a transaction, and no
								 * longer name one */
	BlockNumber set_visible;	/* bits set in the visibility map */
	BlockNumber set_frozen;
	BlockNumber were_visible;	/* of set_frozen */
	Size		dead_memory;	/* taken by TIDs of dead rows, in all */
	Size		dead_limit;
	int			dead_resets;
	int			index_scans;
	TransactionId frozenxid;	/* for pg_class */
	bool		frozenxid_updated;
	bool		minmulti_updated;
} IpVacuumCounts;

typedef struct IpVacuumIndexes IpVacuumIndexes;

typedef struct IpVacuum
{
	Relation	rel;
	const VacuumParams *params;
	BufferAccessStrategy strategy;
	struct VacuumCutoffs cutoffs;
	IpXid		horizon;		/* OldestXmin with its epoch */
	IpXid		kept_from;		/* of this VACUUM: see ip_xid_kept_from */
	IpXid		unresolved;		/* oldest xid that could not be rolled back,
								 * or IP_XID_NONE */
	BlockNumber nblocks;
	IpFreeBlocks free;
	IpRuns	   *runs;			/* undo pages that need not be read, or NULL */
	BlockNumber *undo;			/* the undo pages, n.undo_seen of them, in an
								 * array of undo_size */
	BlockNumber undo_size;
	bool		rings_moved;
	IpVacuumIndexes *indexes;
	TidSet	   *dead;			/* dead items that indexes may name */
	bool		follows;		/* an index can follow updates in place */
	double		dead_before;	/* dead rows by statistics, other work of
								 * VACUUM included */
	bool		vacuumed_before;	/* the statistics know of a VACUUM */
	uint8	   *quiet;			/* a bit for each page: clear its flag when
								 * the indexes are clean; or NULL */
	bool		do_indexes;		/* clean them; else dead items stay */
	bool		always_indexes; /* even for a few dead items */
	bool		do_truncate;
	bool		failsafe;
	int			elevel;
	TimestampTz start;
	Buffer		vm;				/* a page of the visibility map */
	BlockNumber ahead;			/* the next block to consider for reading
								 * ahead */
	Buffer		ahead_vm;
	IpVacuumCounts n;
} IpVacuum;

/*
 * Open the table's indexes, and create v->dead within the memory that VACUUM
 * may use.  Workers are prepared if the parameters ask for them and it pays.
 */
extern void ip_vacuum_indexes_begin(IpVacuum *v);
extern int	ip_vacuum_nindexes(const IpVacuum *v);

/* Callbacks of bulk deletion: see InplaceKeysTable. */
extern bool ip_vacuum_is_dead(ItemPointer tid, void *state);
extern void ip_vacuum_note_stale(void *state, double removed, double old);

/* Remove the entries of v->dead's TIDs from all indexes. */
extern void ip_vacuum_indexes_delete(IpVacuum *v);

/* Let index access methods clean up at the end.  exact: row_count is exact. */
extern void ip_vacuum_indexes_cleanup(IpVacuum *v, double row_count,
									  bool exact);

/*
 * Returns the number of old entries that were left, in the index that has most
 * of them.
 */
extern double ip_vacuum_indexes_old(const IpVacuum *v);

/* End parallel mode, and write the indexes' statistics to pg_class. */
extern void ip_vacuum_indexes_end(IpVacuum *v);
extern void ip_vacuum_indexes_close(IpVacuum *v);

/* Add a line for each index that was cleaned. */
extern void ip_vacuum_indexes_report(IpVacuum *v, StringInfo buf);

#endif							/* IP_VACUUM_INDEX_H */
