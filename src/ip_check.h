/*-------------------------------------------------------------------------
 * ip_check.h
 *	  What the files of inplace_check() share; nobody else includes this.
 *
 *	  ip_check.c		the function, reading pages, pages by themselves
 *	  ip_check_row.c	rows, by themselves and against their undo
 *	  ip_check_undo.c	undo records against their rows, rings
 *-------------------------------------------------------------------------
 */
#ifndef IP_CHECK_H
#define IP_CHECK_H

#include "funcapi.h"
#include "storage/bufmgr.h"

#include "ip_page.h"
#include "ip_xid.h"

/* What is known about a page: its IpPageKind or one of these, and flags */
#define PAGE_NEW		0
#define PAGE_BAD		7
#define PAGE_KIND		0x07
#define PAGE_VERSIONS	0x10	/* has rows with version blocks */
#define PAGE_IN_RING	0x20

typedef struct IpCheck
{
	Relation	rel;
	ReturnSetInfo *rsinfo;
	BufferAccessStrategy strategy;
	Buffer		vm;				/* a page of the visibility map, or invalid */
	BlockNumber nblocks;		/* pages that the first pass has seen */
	uint8	   *pages;			/* of each: PAGE_* */
	IpXid		next;			/* next transaction id, at some time */
	IpXid		horizon;		/* undo of transactions before it may be gone, if they committed */
	struct Chain *chain;		/* the versions of a row, see ip_check_row.c */
	char		problem[200];	/* text of the last one, see ipc_fail() */
	PGAlignedBlock page;		/* the page that the first pass is at */
	PGAlignedBlock rows;		/* the data page whose rows' undo is being checked */
	PGAlignedBlock again;		/* the same, later */
	uint16		item_at[BLCKSZ];	/* lengths of the page's items, by their start */
} IpCheck;

/* Make the text of a problem, maybe out of the one before.  It stays until the next one. */
extern const char *ipc_fail(IpCheck *c, const char *fmt,...) pg_attribute_printf(2, 3);

/* Report a problem of an item, or (off is 0) of a page; none if it is NULL. */
extern void ipc_report(IpCheck *c, BlockNumber block, OffsetNumber off, const char *problem);

extern bool ipc_in_future(IpCheck *c, IpXid xid);

/* What became of xid, which is not in the future?  Nothing on the pages needs what pg_xact has forgotten. */
extern IpXidStatus ipc_status(IpXid xid);

/* Must there be undo for a version that xid made? */
extern bool ipc_is_needed(IpCheck *c, IpXid xid);

/*
 * May another backend have removed what the committed xid made obsolete?  Our horizon
 * may be older than his: a snapshot is as old as the oldest transaction of all
 * databases, a horizon without any as the oldest one of its own.  But he has respected
 * our snapshot.
 */
extern bool ipc_may_be_gone(IpXid xid);

/* Find the removal horizon of this moment. */
extern void ipc_refresh_horizon(IpCheck *c);

/* Copy a page; why it cannot be read, or NULL. */
extern const char *ipc_copy_page(IpCheck *c, BlockNumber block, Page copy);

/* What the first pass has found: an IpPageKind, PAGE_NEW or PAGE_BAD */
extern int	ipc_page_kind(IpCheck *c, BlockNumber block);

/* Is it a sound page of that kind?  The page may be a locked one. */
extern bool ipc_page_is(IpCheck *c, Page page, IpPageKind kind);

/* The first pass's check of one page */
extern void ipc_check_page(IpCheck *c, BlockNumber block);

/* First pass over the pages that it has not seen; false if there are none. */
extern bool ipc_check_new_pages(IpCheck *c);

/* ip_check_row.c: the first pass over a data page, c->page, whose items are sound */
extern void ipc_check_data_page(IpCheck *c, BlockNumber block);

/* The rows of a data page that have version blocks */
extern void ipc_check_undo_of_rows(IpCheck *c, BlockNumber block);

/* ip_check_undo.c: copy and decode the record at off of an undo page, which is locked. */
extern const char *ipc_record_on_page(BlockNumber block, Page page, OffsetNumber off,
									  uint8 *buf, IpUndoRec *rec);

extern void ipc_check_records(IpCheck *c, BlockNumber block);
extern void ipc_check_rings(IpCheck *c);

#endif							/* IP_CHECK_H */
