/*-------------------------------------------------------------------------
 * ip_runs.h
 *	  The metapage's list of undo pages: runs of blocks, by which scans leave them out.
 *
 *	  The list may lack some, but has none that is not an undo page: a page leaves it with the record that frees the page.
 *	  So no MVCC snapshot that was taken before the list was read ever sees a row in one of its blocks.
 *-------------------------------------------------------------------------
 */
#ifndef IP_RUNS_H
#define IP_RUNS_H

#include "ip_format.h"

/* These n blocks are undo pages, or (n is 0) the one is none any more.  Lock: the metapage exclusively. */
extern void ip_runs_set(Page meta, BlockNumber first, uint32 n);

/* The number of runs, which are in order; damage: none. */
extern uint32 ip_runs_count(Page meta);

/* Is the block in one of these n runs? */
extern bool ip_runs_have(const IpUndoRun *runs, uint32 n, BlockNumber block);

/* Why the metapage cannot be right, or NULL. */
extern const char *ip_runs_problem(Page meta);

/* Compute the metapage's CRC, after each change of it.  Lock: exclusive. */
extern void ip_runs_seal(Page meta);

#endif							/* IP_RUNS_H */
