/*-------------------------------------------------------------------------
 * ip_vacuum_map.c
 *	  VACUUM and the visibility map.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"

#include "ip_row.h"
#include "ip_vacuum_map.h"

bool
ip_vacuum_map_is_plain(Page page)
{
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	if (TransactionIdIsValid(IpPageGetSpecial(page)->u.data.default_xid) ||
		TransactionIdIsValid(IpPageGetSpecial(page)->u.data.change_xid))
		return false;
	for (OffsetNumber off = FirstOffsetNumber; off <= max; off++)
	{
		ItemId		lp = PageGetItemId(page, off);

		if (ip_item_is_used(lp) && (!ip_item_is_ours(lp) || ip_item_state(page, lp) != 0))
			return false;
	}
	return true;
}

/* Do all see every row, and has every index entry one, with its key? */
static bool
is_all_visible(Page page)
{
	if (!ip_vacuum_map_is_plain(page) || IpPageGetSpecial(page)->keys != 0)
		return false;
	for (OffsetNumber off = FirstOffsetNumber; off <= PageGetMaxOffsetNumber(page); off++)
	{
		if (ItemIdIsDead(PageGetItemId(page, off)))
			return false;
	}
	return true;
}

/*
 * The page's flag and the map's bits must not say more than is true, nor may the bits say more
 * than the flag: a change of the page clears the bits by the flag.  v->vm is the map's page.
 */
void
ip_vacuum_map_distrust(IpVacuum *v, BlockNumber block, Buffer buffer, bool visible)
{
	Page		page = BufferGetPage(buffer);
	bool		flag = !PageIsNew(page) && PageIsAllVisible(page);
	bool		bits = visibilitymap_get_status(v->rel, block, &v->vm) != 0;

	Assert(ip_page_is_locked(page, true) && visibilitymap_pin_ok(block, v->vm));
	if (flag && !visible)
	{
		ereport(WARNING,
				(errmsg("page that is not all-visible is marked as all-visible in relation \"%s\" page %u",
						RelationGetRelationName(v->rel), block)));
		PageClearAllVisible(page);
		MarkBufferDirty(buffer);
		flag = false;
	}
	if (bits && !flag)
	{
		ereport(WARNING,
				(errmsg("page is not marked all-visible but visibility map bit is set in relation \"%s\" page %u",
						RelationGetRelationName(v->rel), block)));
		visibilitymap_clear(v->rel, block, v->vm, VISIBILITYMAP_VALID_BITS);
	}
}

/* Set the flag and the bits where they are missing.  The prunes that made the page so have told standbys already. */
static void
set_visible(IpVacuum *v, BlockNumber block, Buffer buffer)
{
	const uint8 both = VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_FROZEN;
	Page		page = BufferGetPage(buffer);
	uint8		bits = visibilitymap_get_status(v->rel, block, &v->vm);

	if (PageIsAllVisible(page) && bits == both)
		return;
	v->n.set_visible += (bits & VISIBILITYMAP_ALL_VISIBLE) ? 0 : 1;
	v->n.set_frozen += (bits & VISIBILITYMAP_ALL_FROZEN) ? 0 : 1;
	v->n.were_visible += bits == VISIBILITYMAP_ALL_VISIBLE ? 1 : 0;
	PageSetAllVisible(page);
	MarkBufferDirty(buffer);
	visibilitymap_set(v->rel, block, buffer, InvalidXLogRecPtr, v->vm, InvalidTransactionId, both);
}

void
ip_vacuum_map_reconcile(IpVacuum *v, BlockNumber block, Buffer buffer)
{
	bool		visible = is_all_visible(BufferGetPage(buffer));

	ip_vacuum_map_distrust(v, block, buffer, visible);
	if (visible)
		set_visible(v, block, buffer);
	Assert(!PageIsAllVisible(BufferGetPage(buffer)) == !visible);	/* I12 */
	Assert(visible || visibilitymap_get_status(v->rel, block, &v->vm) == 0);
}
