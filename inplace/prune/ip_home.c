/*-------------------------------------------------------------------------
 * ip_home.c
 *	  Undo records at home: finding those of a page that are no longer needed.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "ip_home.h"
#include "ip_row.h"

bool		ip_home_enabled = true;

void
ip_home_note(IpHomes *homes, BlockNumber block, Page page,
			 const IpItemList *list)
{
	static uint8 buf[BLCKSZ];

	Assert(ip_page_is_locked(page, true));
	memset(homes->keep, 0, sizeof(homes->keep));
	memset(homes->has_bytes, 0, sizeof(homes->has_bytes));
	homes->n = 0;
	for (int i = 0; i < list->n; i++)
	{
		IpPtr		ptr = {block, list->off[i]};
		IpHomeRecord *home = &homes->records[homes->n];
		IpUndoRec	rec;
		bool		found;

		if (!ip_item_is_undo(page, PageGetItemId(page, ptr.off)) ||
			ip_undo_item(page, ptr, buf, &rec, &found) != NULL || !found)
			continue;
		home->off = ptr.off;
		home->row = ItemPointerGetOffsetNumberNoCheck(&rec.row);
		home->xid = rec.xid;
		home->prev_xid = rec.prev_xid;
		home->status = homes->n > 0 && home[-1].xid == rec.xid ?
			home[-1].status : ip_xid_status_locked(rec.xid);
		if (home->row <= IP_MAX_ROWS_PER_PAGE)
			homes->n++;
	}
}

void
ip_home_keep_bytes(IpHomes *homes, BlockNumber block, uint8 state, IpPtr ptr)
{
	if (ip_row_bytes_at_home(state, ptr, block) &&
		ptr.off <= IP_MAX_ROWS_PER_PAGE)
		homes->has_bytes[ptr.off] = true;
}

int
ip_home_useless(const IpHomes *homes, Relation rel, IpXid horizon,
				OffsetNumber *offs, IpXid *conflict, IpXid *oldest)
{
	int			n = 0;

	for (int i = 0; i < homes->n; i++)
	{
		const IpHomeRecord *home = &homes->records[i];

		if (home->status == IP_STATUS_ABORTED && !homes->keep[home->row] &&
			!homes->has_bytes[home->off])
			offs[n++] = home->off;
		else if (home->status == IP_STATUS_COMMITTED &&
				 !homes->has_bytes[home->off] &&
				 (home->xid < horizon || ip_xid_removable(rel, home->xid)))
		{
			*conflict = Max(*conflict, home->xid);
			offs[n++] = home->off;
		}
		else
		{
			*oldest = Min(*oldest, home->xid);
			if (!IpXidIsFrozen(home->prev_xid))
				*oldest = Min(*oldest, home->prev_xid);
		}
	}
	return n;
}
