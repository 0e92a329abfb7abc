/*-------------------------------------------------------------------------
 * ip_runs.h
 *	  The metapage's list of undo pages: runs of blocks that scans skip.
 *
 *	  The list may lack some undo pages, but has no other pages: the record
 *	  that frees a page also removes it from the list.  So no MVCC snapshot
 *	  that was taken before the list was read ever sees a row in one of its
 *	  blocks.
 *-------------------------------------------------------------------------
 */
#ifndef IP_RUNS_H
#define IP_RUNS_H

#include "ip_format.h"

/*
 * Note that these n blocks are undo pages, or, if n is 0, that the one block
 * is no longer an undo page.  Lock: the metapage exclusively.
 */
extern void ip_runs_set(Page meta, BlockNumber first, uint32 n);

/* The number of runs, which are in order; 0 if the list is damaged. */
extern uint32 ip_runs_count(Page meta);

/* Returns whether the block is in one of these n runs. */
extern bool ip_runs_have(const IpUndoRun *runs, uint32 n, BlockNumber block);

/* Returns why the metapage cannot be right, or NULL. */
extern const char *ip_runs_problem(Page meta);

/* Compute the metapage's CRC, after each change of it.  Lock: exclusive. */
extern void ip_runs_seal(Page meta);

#endif							/* IP_RUNS_H */
