/*-------------------------------------------------------------------------
 * ip_sight.h
 *	  Finding out without a walk what a snapshot sees of a row.
 *
 *	  Scans, bitmap scans, ANALYZE and index fetches try this first.  It reads
 *	  the row's page and at most one undo record.  Rows that it cannot decide
 *	  need a walk through the row's versions (ip_version_satisfy).
 *-------------------------------------------------------------------------
 */
#ifndef IP_SIGHT_H
#define IP_SIGHT_H

#include "ip_version.h"

typedef enum IpSightOf
{
	IP_SIGHT_NEWEST,			/* the snapshot sees the newest version ... */
	IP_SIGHT_PREVIOUS,			/* ... the version before the newest */
	IP_SIGHT_NOTHING,			/* ... no version */
	IP_SIGHT_WALK				/* this is not decided here */
} IpSightOf;

/* What a scan knows about the last xids that it met, or IP_XID_NONE. */
typedef struct IpKnownXids
{
	IpXid		seen;			/* the scan's snapshot sees it */
	IpXid		unseen;			/* the scan's snapshot does not see it */
} IpKnownXids;

/* Input and result of ip_sight, about one row. */
typedef struct IpSight
{
	Relation	rel;
	Page		page;			/* locked, or a private copy if is_copy */
	bool		is_copy;		/* undo pages may be read too */
	Snapshot	snapshot;		/* any kind of snapshot */
	IpXid		horizon;		/* as for ip_version_begin_copy */
	IpKnownXids *known;
	uint8	   *space;			/* BLCKSZ, for a body that is not on the page */
	ItemPointerData tid;
	const uint8 *item;			/* the row's item, as from ip_row_sound_item */
	uint16		hdr;
	/* NEWEST, PREVIOUS: the version; NOTHING: the row on its page */
	IpRow		row;
	/* PREVIOUS: the change that ended it */
	IpXid		end_xid;
	CommandId	end_cid;
} IpSight;

/*
 * Decide about the row at s->tid, which is in range and not an undo record.
 * NOTHING sets a dirty snapshot's results.  Errors: those of ip_row_read, only
 * for a row that is damaged and deleted.  Lock: share, or is_copy; undo pages
 * for a moment if is_copy.
 */
extern IpSightOf ip_sight(IpSight *s);

/* Get the id of the version that is seen. */
extern void ip_sight_id(const IpSight *s, IpVersionId *id);

#endif							/* IP_SIGHT_H */
