/*-------------------------------------------------------------------------
 * ip_update_columns.h
 *	  Changed columns that matter to indexes, foreign keys and triggers.
 *
 * Indexes, foreign keys and the queue of AFTER ROW triggers use a row's
 * columns or its TID.  This decides whether a new version can stay in place,
 * and which row lock the update takes.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UPDATE_COLUMNS_H
#define IP_UPDATE_COLUMNS_H

#include "ip_rel.h"
#include "ip_version.h"

typedef struct IpColumns
{
	/* about the table; bitmaps are like core's for indexes */
	Relation	rel;
	Bitmapset  *blocking;		/* changes of these cannot be made in place */
	Bitmapset  *key;			/* changes of these exclude FOR KEY SHARE */
	Bitmapset  *summarized;		/* changes of these are inserted into
								 * summarizing indexes */
	bool		is_queued;		/* AFTER ROW triggers may fetch versions ... */
	bool		is_deferrable;	/* ... perhaps at the transaction's end */
	bool		is_referencing; /* has foreign keys */

	/* about a version and the new row */
	bool		blocked;		/* the version must move */
	bool		key_changed;
	bool		summarize;		/* a summarized column changes */
	uint16		changed;		/* indexes with a changed followed column */

	int			nfollowed;
	IpFollowed	followed;		/* set if nfollowed > 0 */
}			IpColumns;

/*
 * Set the members about the table, whose indexes the caller has locked.
 * Allocates in the current memory context.
 */
extern void ip_update_columns_init(IpColumns * c, Relation rel);

/*
 * Set the members about a version and the new row.  v's page is locked, or no
 * other transaction can change the row.
 */
extern void ip_update_columns_compare(IpColumns * c, IpVersion *v,
									  const IpFormed *row);

#ifdef USE_ASSERT_CHECKING
/* Returns whether no blocking columns differ (I2). */
extern bool ip_update_columns_may_stay(const IpColumns * c,
									   const IpFormed *from,
									   const IpFormed *to);
#endif

#endif							/* IP_UPDATE_COLUMNS_H */
