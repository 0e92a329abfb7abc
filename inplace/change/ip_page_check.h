/*-------------------------------------------------------------------------
 * ip_page_check.h
 *	  Checks of a page that need no other page.
 *
 *	  For inplace_check(), and for builds with assertions, in which each change
 *	  of a sound page must leave a sound page (I20).
 *-------------------------------------------------------------------------
 */
#ifndef IP_PAGE_CHECK_H
#define IP_PAGE_CHECK_H

#include "ip_row.h"
#include "ip_undo_rec.h"

/* Length of the text of a problem */
#define IP_PAGE_PROBLEM	200

typedef struct IpPageCheck
{
	/* called for each problem of an item or, if off is 0, of the page */
	void		(*report) (void *arg, OffsetNumber off, const char *problem);
	void	   *arg;
	char		problem[IP_PAGE_PROBLEM];	/* text of the last problem */
} IpPageCheck;

/* Returns what is wrong with the header of a page that is not new, or NULL. */
extern const char *ip_page_check_header(IpPageCheck *c, Page page);

/*
 * Returns what is wrong with the row at off, whose item is sound, or NULL;
 * fills in *row.
 */
extern const char *ip_page_check_row(IpPageCheck *c, Page page,
									 OffsetNumber off, IpRow *row);

/*
 * Copy the record at off of an undo page, or at home on a data page, to buf,
 * and decode it.  Returns what is wrong with it, or NULL.
 */
extern const char *ip_page_check_record(Page page, BlockNumber block,
										OffsetNumber off, uint8 *buf,
										IpUndoRec *rec);

/*
 * Report what is wrong with a page whose header is sound.  False if its items
 * cannot be checked one by one.
 */
extern bool ip_page_check(IpPageCheck *c, Page page, BlockNumber block);

/* Returns the first problem of a page, or NULL.  Lock: share. */
extern const char *ip_page_problem(Page page, BlockNumber block);

/*
 * Returns whether the page is a metapage whose lock sets can be kept, whatever
 * else is damaged.  Any page.
 */
extern bool ip_page_has_sound_locks(Page page);

#endif							/* IP_PAGE_CHECK_H */
