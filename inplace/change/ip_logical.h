/*-------------------------------------------------------------------------
 * ip_logical.h
 *	  What a change's WAL record holds for logical decoding.
 *
 * A record's page operations change pages.  For an update they have only the
 * difference to a version that decoding cannot read, and columns cannot be
 * told apart without the table's descriptor.  So with wal_level = logical the
 * record's main data end in a logical section: the action and the rows it is
 * about, as heap tuples, which is what output plugins take.  Only records of a
 * user's changes have a section; those of locks, prunes and rewrites do not.
 *
 * Section: action (1), tuples.
 * Tuple: columns (varint), flags (1), length (varint), NULL bitmap and values.
 *
 * The bitmap and the values are those of the heap tuple or, with
 * IP_TUPLE_DELTA, a delta that makes them.  An inserted row has a delta to the
 * body in the record's page operations; mostly only padding is missing there.
 * The old row of an update follows the new one and has a delta to it.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOGICAL_H
#define IP_LOGICAL_H

#include "access/htup.h"
#include "lib/stringinfo.h"
#include "utils/relcache.h"

#include "ip_body.h"


/* First byte of a section: the action, and flags. */
typedef enum IpLogicalAction
{
	IP_LOGICAL_INSERT = 1,		/* one or many new rows */
	IP_LOGICAL_UPDATE,
	IP_LOGICAL_DELETE,
	IP_LOGICAL_SPEC_INSERT,		/* not inserted until it is confirmed */
	IP_LOGICAL_SPEC_CONFIRM,
	IP_LOGICAL_SPEC_ABORT,
	IP_LOGICAL_VALUE			/* a block of a large value: its id and the
								 * block's number (varints) */
} IpLogicalAction;

#define IP_LOGICAL_ACTION_MASK	0x0F
#define IP_LOGICAL_OLD			0x10	/* the last tuple is the old row, or
										 * its key */
#define IP_LOGICAL_MORE			0x20	/* more rows that were toasted
										 * together follow */

/* A tuple's flags: bits of t_infomask, and ours. */
#define IP_TUPLE_INFOMASK \
	(HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL)
#define IP_TUPLE_DELTA			0x80

/*
 * Begin the section for a change of rel, for IpChange.logical; NULL if the
 * table's changes are not decoded.  It lasts until the next section is made,
 * or until ip_logical_end.  Errors: feature_not_supported (catalog tables),
 * program_limit_exceeded.  The ip_logical functions may read TOAST tables.
 */
extern StringInfo ip_logical_begin(Relation rel, IpLogicalAction action);

/*
 * Make the section for rows that operations on the record's first block insert
 * (set IpChange.logical_rows).  more: other rows of the same command follow.
 */
extern StringInfo ip_logical_insert(Relation rel, IpLogicalAction action,
									const IpFormed *rows, int nrows, bool more);
extern StringInfo ip_logical_update(Relation rel, const IpFormed *old,
									const IpFormed *row);
extern StringInfo ip_logical_delete(Relation rel, const IpFormed *old);

/*
 * Make the section for a row of a TOAST table that is block number "block" of a
 * large value (set IpChange.logical_rows).
 */
extern StringInfo ip_logical_value(Relation toast, uint32 id, uint32 block);

/* Free the memory. */
extern void ip_logical_end(void);

#endif							/* IP_LOGICAL_H */
