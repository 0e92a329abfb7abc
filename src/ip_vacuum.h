/*-------------------------------------------------------------------------
 * ip_vacuum.h
 *	  VACUUM of inplace tables.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VACUUM_H
#define IP_VACUUM_H

#include "ip_compat.h"

#include "../tidset/tidset_pg.h"

#include "ip_space.h"

/* What VACUUM has done; for its log line. */
typedef struct IpVacuumCounts
{
	double		live;			/* rows on scanned pages */
	double		recently_dead;	/* rows that somebody may still see, though deleted */
	double		removed;		/* rows that became dead items */
	double		dead_items;		/* dead items collected, in all */
	BlockNumber dead_item_pages;
	BlockNumber scanned;
	BlockNumber data_pages;		/* of the scanned ones */
	BlockNumber undo_seen;
	BlockNumber undo_pages;
	BlockNumber undo_freed;
	BlockNumber truncated;
	int			index_scans;
} IpVacuumCounts;

typedef struct IpVacuumIndexes IpVacuumIndexes;

typedef struct IpVacuum
{
	Relation	rel;
	VacuumParams *params;
	BufferAccessStrategy strategy;
	struct VacuumCutoffs cutoffs;
	IpXid		horizon;		/* OldestXmin with its epoch */
	IpXid		unresolved;		/* oldest xid that could not be put back, or none */
	BlockNumber nblocks;
	IpFreeBlocks free;
	BlockNumber *undo;			/* the undo pages, n.undo_seen of them, in an array of undo_size */
	BlockNumber undo_size;
	bool		rings_moved;
	IpVacuumIndexes *indexes;
	TidSet	   *dead;			/* dead items that indexes may name */
	bool		do_indexes;		/* clean them; else dead items stay */
	bool		always_indexes; /* even for a few dead items */
	bool		do_truncate;
	bool		failsafe;
	int			elevel;
	Buffer		vm;				/* a page of the visibility map */
	IpVacuumCounts n;
} IpVacuum;

extern void ip_relation_vacuum(Relation rel, VacuumParams *params,
							   BufferAccessStrategy bstrategy);

/*
 * ip_vacuum_index.c: open the table's indexes, and make v->dead within the memory
 * that VACUUM may use; with workers if the parameters ask for them and it pays.
 */
extern void ip_vacuum_indexes_begin(IpVacuum *v);
extern int	ip_vacuum_nindexes(const IpVacuum *v);

/* Remove the entries of v->dead's TIDs from all indexes. */
extern void ip_vacuum_indexes_delete(IpVacuum *v);

/* What index access methods do at the end; row_count is exact, or not. */
extern void ip_vacuum_indexes_cleanup(IpVacuum *v, double row_count, bool exact);

/* End parallel mode, and write the indexes' statistics to pg_class. */
extern void ip_vacuum_indexes_end(IpVacuum *v);
extern void ip_vacuum_indexes_close(IpVacuum *v);

/* A line for each index that was cleaned. */
extern void ip_vacuum_indexes_report(IpVacuum *v, StringInfo buf);

/* ip_vacuum_report.c: what has been used since the beginning. */
typedef struct IpVacuumUsage IpVacuumUsage;

extern IpVacuumUsage *ip_vacuum_usage_begin(void);
extern void ip_vacuum_report(IpVacuum *v, IpVacuumUsage *usage, double row_count,
							 TransactionId frozenxid, bool frozenxid_updated);

#endif							/* IP_VACUUM_H */
