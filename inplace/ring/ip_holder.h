/*-------------------------------------------------------------------------
 * ip_holder.h
 *	  The server's log on undo that keeps growing, and what keeps it.
 *-------------------------------------------------------------------------
 */
#ifndef IP_HOLDER_H
#define IP_HOLDER_H

#include "utils/rel.h"

/* inplace.log_undo_size, in blocks; -1: nothing is logged */
extern int	ip_holder_log_size;

/*
 * The relation has "pages" undo pages, "grown" of which are new.  Note that
 * for ip_holder_log if they have passed the setting, or twice as much, four
 * times, and so on.  May be called with pages locked.
 */
extern void ip_holder_note(Relation rel, uint32 pages, uint32 grown);

/*
 * Log what this backend has noted, if anything, and the oldest snapshot or
 * transaction.  No buffer lock may be held.
 */
extern void ip_holder_log(Relation rel);

#endif							/* IP_HOLDER_H */
