/*-------------------------------------------------------------------------
 * pb_verify.h
 *	  Do pages keep the invariants of keys, fences, and links?  Asserts ask.
 *-------------------------------------------------------------------------
 */
#ifndef PB_VERIFY_H
#define PB_VERIFY_H

#include "pb_pos.h"

#ifdef USE_ASSERT_CHECKING

/*
 * What is wrong with the keys and TIDs of a page of the tree, whatever is on it; NULL: nothing.  Lock: any.  Keys are compared
 * if the comparison functions are core's: others may contradict themselves.  Memory is palloc'd.  Never an error about the page.
 */
extern const char *pb_verify_page(Relation rel, PbIndex *index, Page page);

/*
 * What is wrong between two pages of the tree that pb_verify_page has found right, as siblings or as parent and child (I1, I4);
 * NULL: nothing, or they are neither.  Locks: any.
 */
extern const char *pb_verify_pair(PbIndex *index, Page a, BlockNumber a_block, Page b, BlockNumber b_block);

#endif

#endif							/* PB_VERIFY_H */
