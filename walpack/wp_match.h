/*-------------------------------------------------------------------------
 * wp_match.h
 *	  Encoder: search for parts of block data that occur earlier in the chunk,
 *	  in the record of another relation.
 *
 * An index entry repeats bytes of its row.  Where they are random, each copy
 * costs its full length unless it is found here: the rows of different groups
 * lie too far apart for zstd.
 *-------------------------------------------------------------------------
 */
#ifndef WP_MATCH_H
#define WP_MATCH_H

#include "wp_record.h"
#include "wp_util.h"

typedef struct WpCopy
{
	uint32		skip;			/* number of bytes between the previous copy
								 * and this one */
	uint32		len;
	uint32		source;			/* position in the payload */
} WpCopy;

typedef struct WpMatcher WpMatcher;

/* Positions refer to the payload; raw_len bounds the memory used. */
extern WpMatcher *wp_match_begin(WpContext *ctx, const uint8 *payload,
								 uint32 raw_len);

/*
 * Find copies for the data of block number i of the record at pos.  from is
 * the expected place of a copy, rel the relation's index.  Returns their
 * number, at most WP_MAX_COPIES.
 */
extern uint32 wp_match_block(WpMatcher *m, uint32 pos, const WpRecord *rec,
							 uint32 i, uint32 rel, uint32 from, WpCopy *copies);

/*
 * Make the block's data, except for its copied parts, available to later
 * searches.
 */
extern void wp_match_remember(WpMatcher *m, const WpBlock *block, uint32 rel,
							  const WpCopy *copies, uint32 ncopies);

#endif							/* WP_MATCH_H */
