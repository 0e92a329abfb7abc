/*-------------------------------------------------------------------------
 * pb_verify.h
 *	  Check of the invariants of keys, fences, and links, for asserts.
 *-------------------------------------------------------------------------
 */
#ifndef PB_VERIFY_H
#define PB_VERIFY_H

#include "pb_pos.h"

#ifdef USE_ASSERT_CHECKING

/*
 * Check the keys and TIDs of a page of the tree, which may contain any bytes.
 * Returns a description of the fault, or NULL.  Lock: any.  Keys are compared
 * if the comparison functions are core's; others may contradict themselves.
 * Memory is palloc'd.  It never raises an error about the page.
 */
extern const char *pb_verify_page(Relation rel, PbIndex *index, Page page);

/*
 * Check two pages of the tree, both verified by pb_verify_page, as siblings or
 * as parent and child (I1, I4).  Returns a description of the fault; NULL if
 * there is none, or they are neither.  Locks: any.
 */
extern const char *pb_verify_pair(PbIndex *index, Page a, BlockNumber a_block,
								  Page b, BlockNumber b_block);

#endif

#endif							/* PB_VERIFY_H */
