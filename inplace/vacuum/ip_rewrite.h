/*-------------------------------------------------------------------------
 * ip_rewrite.h
 *	  CLUSTER and VACUUM FULL.
 *-------------------------------------------------------------------------
 */
#ifndef IP_REWRITE_H
#define IP_REWRITE_H

#include "compat.h"

/*
 * relation_copy_for_cluster: copies what any snapshot may still see.  Both
 * tables are locked AccessExclusive; nobody else can see the new one.  It is an
 * error to pass a snapshot, as REPACK (CONCURRENTLY) would.
 */
extern void ip_rewrite_for_cluster(Relation old, Relation new, Relation index,
								   bool use_sort, TransactionId oldest_xmin,
								   Snapshot snapshot, TransactionId *xid_cutoff,
								   MultiXactId *multi_cutoff,
								   double *num_tuples, double *tups_vacuumed,
								   double *tups_recently_dead);

#endif							/* IP_REWRITE_H */
