/*-------------------------------------------------------------------------
 * ip_logical.h
 *	  What a change's WAL record holds for logical decoding.
 *
 * A record's page operations change pages; of an update they have only the
 * difference to a version that decoding cannot look at, and no columns can be
 * told apart without the table's descriptor.  So with wal_level = logical the
 * record's main data end in a logical section: the action and the rows it is
 * about, as heap tuples, which is what output plugins take.  Records of anything
 * but a user's change (locks, prunes, rewrites) have none.
 *
 * Section: action (1), tuples.
 * Tuple: columns (varint), flags (1), length (varint), NULL bitmap and values.
 *
 * The bitmap and the values are those of the heap tuple, or (IP_TUPLE_DELTA) a
 * delta: of an inserted row to the body in the record's page operations, which
 * mostly lacks nothing but padding; of an updated row, which follows the new one,
 * to that.
 *-------------------------------------------------------------------------
 */
#ifndef IP_LOGICAL_H
#define IP_LOGICAL_H

#include "access/htup.h"
#include "lib/stringinfo.h"
#include "utils/relcache.h"

#include "ip_body.h"


/* First byte of a section: the action, and what is special about it. */
typedef enum IpLogicalAction
{
	IP_LOGICAL_INSERT = 1,		/* one or many new rows */
	IP_LOGICAL_UPDATE,
	IP_LOGICAL_DELETE,
	IP_LOGICAL_SPEC_INSERT,		/* not inserted until it is confirmed */
	IP_LOGICAL_SPEC_CONFIRM,
	IP_LOGICAL_SPEC_ABORT
} IpLogicalAction;

#define IP_LOGICAL_ACTION_MASK	0x0F
#define IP_LOGICAL_OLD			0x10	/* the last tuple is the old row, or
										 * its key */
#define IP_LOGICAL_MORE			0x20	/* more rows that were toasted
										 * together follow */

/* A tuple's flags: bits of t_infomask, and ours. */
#define IP_TUPLE_INFOMASK		(HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL)
#define IP_TUPLE_DELTA			0x80

/*
 * The section for a change of rel, to be IpChange.logical; NULL if the table's
 * changes are not to be decoded.  It lasts until the next one is made, or
 * ip_logical_end.  Errors: feature_not_supported (catalog tables),
 * program_limit_exceeded.  They may read TOAST tables.
 */
extern StringInfo ip_logical_begin(Relation rel, IpLogicalAction action);

/*
 * Rows are inserted, by operations on the record's first block (set
 * IpChange.logical_rows); more: others of the same command follow.
 */
extern StringInfo ip_logical_insert(Relation rel, IpLogicalAction action, const IpFormed *rows,
									int nrows, bool more);
extern StringInfo ip_logical_update(Relation rel, const IpFormed *old, const IpFormed *row);
extern StringInfo ip_logical_delete(Relation rel, const IpFormed *old);

/* Give back the memory. */
extern void ip_logical_end(void);

#endif							/* IP_LOGICAL_H */
