/*-------------------------------------------------------------------------
 * ip_sight.h
 *	  What a row's page alone tells of what a snapshot sees of the row.
 *
 *	  Scans, bitmap scans, ANALYZE and index fetches ask this first.  The rest
 *	  is for a walk through the row's versions (ip_version_satisfy).
 *-------------------------------------------------------------------------
 */
#ifndef IP_SIGHT_H
#define IP_SIGHT_H

#include "ip_version.h"

typedef enum IpSightOf
{
	IP_SIGHT_NEWEST,			/* the snapshot sees the newest version */
	IP_SIGHT_PREVIOUS,			/* it sees the version before that */
	IP_SIGHT_NOTHING,			/* it sees none */
	IP_SIGHT_WALK				/* the page does not tell */
} IpSightOf;

/* What a scan has found out, of the last xids it met: IP_XID_NONE is none. */
typedef struct IpKnownXids
{
	IpXid		seen;			/* the scan's snapshot sees it */
	IpXid		unseen;			/* it does not */
} IpKnownXids;

/* A question about one row, and the answer. */
typedef struct IpSight
{
	Relation	rel;
	Page		page;			/* locked, or (is_copy) a private copy */
	bool		is_copy;		/* undo pages may be read, too */
	Snapshot	snapshot;		/* of any kind */
	IpXid		horizon;		/* as for ip_version_begin_copy */
	IpKnownXids *known;
	uint8	   *space;			/* BLCKSZ, for a body that is not on the page */
	ItemPointerData tid;
	/* NEWEST, PREVIOUS: the version; NOTHING: the row on its page */
	IpRow		row;
	/* PREVIOUS: the change that ended it */
	IpXid		end_xid;
	CommandId	end_cid;
} IpSight;

/*
 * Of the row at s->tid, which is no undo record, and in range.  NOTHING sets a
 * dirty snapshot's results.  No error but for a row that is damaged and
 * deleted, as ip_row_read has it.  Lock: share, or is_copy; undo pages for a
 * moment if is_copy.
 */
extern IpSightOf ip_sight(IpSight *s);

/* Of the version that is seen. */
extern void ip_sight_id(const IpSight *s, IpVersionId *id);

#endif							/* IP_SIGHT_H */
