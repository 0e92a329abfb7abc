/*-------------------------------------------------------------------------
 * ip_check_page.h
 *	  What the files of inplace_check() share; included by no other file.
 *
 *	  ip_check.c		the function
 *	  ip_check_row.c	rows against their undo
 *	  ip_check_undo.c	undo records against their rows, rings
 *	  ip_check_page.c	results, reading pages, pages by themselves
 *-------------------------------------------------------------------------
 */
#ifndef IP_CHECK_PAGE_H
#define IP_CHECK_PAGE_H

#include "funcapi.h"
#include "storage/bufmgr.h"

#include "ip_page_check.h"
#include "ip_xid.h"

/* What is known about a page: its IpPageKind or one of these, and flags. */
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
	uint8	   *pages;			/* PAGE_* of each page */
	IpXid		next;			/* next transaction id, at some time */
	IpXid		horizon;		/* undo of committed transactions before it
								 * may have been removed */
	struct Chain *chain;		/* the versions of a row, see ip_check_row.c */
	char		problem[IP_PAGE_PROBLEM];	/* text of the last problem: see
											 * ip_check_fail() */
	IpPageCheck of_page;		/* check of a page by itself ... */
	BlockNumber block;			/* ... which is this one */
	PGAlignedBlock page;		/* the current page of the first pass */
	PGAlignedBlock rows;		/* the data page whose rows' undo is being
								 * checked */
	PGAlignedBlock again;		/* a later copy of that page */
} IpCheck;

/*
 * Format the text of a problem, which may include the previous one.  It stays
 * until the next call.
 */
extern const char *ip_check_fail(IpCheck *c,
								 const char *fmt,...) pg_attribute_printf(2, 3);

/*
 * Report a problem of an item, or, if off is 0, of a page.  NULL is no problem.
 */
extern void ip_check_report(IpCheck *c, BlockNumber block, OffsetNumber off,
							const char *problem);

extern bool ip_check_in_future(IpCheck *c, IpXid xid);

/*
 * Returns the status of xid, which is not in the future.  Nothing on the pages
 * needs what pg_xact has forgotten.
 */
extern IpXidStatus ip_check_status(IpXid xid);

/* Returns whether there must be undo for a version that xid made. */
extern bool ip_check_is_needed(IpCheck *c, IpXid xid);

/*
 * Returns whether another backend may have removed what the committed xid made
 * obsolete.  Our horizon may be older than that backend's: a snapshot is as old
 * as the oldest transaction of all databases, a horizon without one as the
 * oldest transaction of its own database.  But every backend respects our
 * snapshot.
 */
extern bool ip_check_may_be_gone(IpXid xid);

/* Find the removal horizon of this moment. */
extern void ip_check_refresh_horizon(IpCheck *c);

/* Copy a page.  Returns why it cannot be read, or NULL. */
extern const char *ip_check_copy_page(IpCheck *c, BlockNumber block, Page copy);

/*
 * Returns what the first pass has found: an IpPageKind, PAGE_NEW or PAGE_BAD.
 */
extern int	ip_check_page_kind(IpCheck *c, BlockNumber block);

/*
 * Returns whether it is a sound page of that kind.  The page may be a locked
 * one.
 */
extern bool ip_check_page_is(IpCheck *c, Page page, IpPageKind kind);

/* The first pass's check of one page. */
extern void ip_check_page(IpCheck *c, BlockNumber block);

/*
 * Run the first pass over the pages that it has not seen.  Returns false if
 * there are no such pages.
 */
extern bool ip_check_new_pages(IpCheck *c);

/*
 * Returns whether xid has aborted.  The rows of such a transaction may have had
 * columns that were never committed either.
 */
extern bool ip_check_has_aborted(IpXid xid);

/*
 * Returns what is wrong with the body if it does not consist of values of the
 * table's columns, and zeros; otherwise NULL.
 */
extern const char *ip_check_body(IpCheck *c, uint16 hdr, const uint8 *body,
								 uint32 bodylen);

/*
 * Returns what is wrong with a row, as far as its own page tells, or NULL.
 * Fills in *row.
 */
extern const char *ip_check_row(IpCheck *c, Page page, OffsetNumber off,
								IpRow *row);

#endif							/* IP_CHECK_PAGE_H */
