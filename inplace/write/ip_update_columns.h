/*-------------------------------------------------------------------------
 * ip_update_columns.h
 *	  Which columns an update changes that somebody else looks at.
 *
 * Indexes, foreign keys and the queue of AFTER ROW triggers look at a row's columns, or at its TID.  What they look at says whether
 * a new version can stay in place, and which row lock the update takes.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UPDATE_COLUMNS_H
#define IP_UPDATE_COLUMNS_H

#include "ip_rel.h"
#include "ip_version.h"

typedef struct IpColumns
{
	/* of the table; bitmaps as core's for indexes */
	Relation	rel;
	Bitmapset  *blocking;		/* changes of these cannot be made in place */
	Bitmapset  *key;			/* changes of these exclude FOR KEY SHARE */
	Bitmapset  *summarized;		/* changes of these are inserted into
								 * summarizing indexes */
	bool		is_queued;		/* AFTER ROW triggers may fetch its versions
								 * ... */
	bool		is_deferrable;	/* ... perhaps at the transaction's end */
	bool		is_referencing; /* has foreign keys */

	/* of a version and the row to come */
	bool		blocked;		/* the version must move */
	bool		key_changed;
	bool		summarize;		/* a summarized column changes */
	uint16		changed;		/* and a followed one, of these indexes */

	int			nfollowed;
	IpFollowed	followed;		/* set if nfollowed > 0 */
}			IpColumns;

/* Of a table whose indexes the caller has locked.  Allocates in the current memory context. */
extern void ip_update_columns_init(IpColumns * c, Relation rel);

/* Set what is of a version and a row to come.  v's page is locked, or nobody else can change the row. */
extern void ip_update_columns_compare(IpColumns * c, IpVersion *v, const IpFormed *row);

#ifdef USE_ASSERT_CHECKING
/* I2: do no blocking columns differ? */
extern bool ip_update_columns_may_stay(const IpColumns * c, const IpFormed *from, const IpFormed *to);
#endif

#endif							/* IP_UPDATE_COLUMNS_H */
