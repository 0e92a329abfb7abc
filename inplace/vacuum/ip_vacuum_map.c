/*-------------------------------------------------------------------------
 * ip_vacuum_map.c
 *	  VACUUM and the visibility map.
 *
 *	  It sets bits as everybody does: with the change that makes a page all-visible (ip_map.h).
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"

#include "ip_map.h"
#include "ip_vacuum_map.h"

/* Nor may the bits say more than the flag: a change of the page clears the bits by the flag. */
uint8
ip_vacuum_map_distrust(IpVacuum *v, BlockNumber block, Buffer buffer, bool is_data)
{
	Page		page = BufferGetPage(buffer);
	bool		flag = !PageIsNew(page) && PageIsAllVisible(page);
	uint8		bits = visibilitymap_get_status(v->rel, block, &v->vm);

	Assert(ip_page_is_locked(page, true) && visibilitymap_pin_ok(block, v->vm));
	if (flag && !(is_data && ip_map_is_visible(page)))
	{
		ereport(WARNING,
				(errmsg("page that is not all-visible is marked as all-visible in relation \"%s\" page %u",
						RelationGetRelationName(v->rel), block)));
		PageClearAllVisible(page);
		MarkBufferDirty(buffer);
		flag = false;
	}
	if (bits != 0 && !flag)
	{
		ereport(WARNING,
				(errmsg("page is not marked all-visible but visibility map bit is set in relation \"%s\" page %u",
						RelationGetRelationName(v->rel), block)));
		CompatMapClear(v->rel, block, v->vm);
		bits = 0;
	}
	return bits;
}

void
ip_vacuum_map_count(IpVacuum *v, BlockNumber block, Buffer buffer, uint8 before)
{
	uint8		bits = visibilitymap_get_status(v->rel, block, &v->vm) & ~before;

	Assert(!PageIsAllVisible(BufferGetPage(buffer)) == !ip_map_is_visible(BufferGetPage(buffer)));	/* I12 */
	Assert(PageIsAllVisible(BufferGetPage(buffer)) || (bits | before) == 0);
	v->n.set_visible += (bits & VISIBILITYMAP_ALL_VISIBLE) ? 1 : 0;
	v->n.set_frozen += (bits & VISIBILITYMAP_ALL_FROZEN) ? 1 : 0;
	v->n.were_visible += bits == VISIBILITYMAP_ALL_FROZEN ? 1 : 0;
}
