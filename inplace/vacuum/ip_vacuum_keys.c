/*-------------------------------------------------------------------------
 * ip_vacuum_keys.c
 *	  VACUUM and index entries that are stale.
 *
 * Bulk deletion asks for each entry whether a version of its row has the key that
 * somebody may need (ip_keys_judge).  That says nothing of the page: meanwhile
 * there may be other entries.  But if a page has been pruned, and all see all of
 * its rows, each row has one version.  Then the page is quiet, until the next
 * update in place.  Bulk deletion visits all entries of all indexes that follow,
 * so if a page is quiet still, none of its entries is stale: where that cannot be
 * told of an entry, the page is quiet no more.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/visibilitymap.h"

#include "ip_keys.h"
#include "ip_map.h"
#include "ip_rel.h"
#include "ip_vacuum_keys.h"

void
ip_vacuum_keys_note(IpVacuum *v, BlockNumber block, Buffer buffer)
{
	IpSpecial  *special = IpPageGetSpecial(BufferGetPage(buffer));

	if (special->keys == 0)
		return;
	v->n.stale_pages += v->follows ? 1 : 0;
	if (!v->do_indexes || !ip_map_is_plain(BufferGetPage(buffer)))
		return;
	if (!v->follows)
	{
		/* the indexes that had such entries have been dropped */
		ip_keys_write(v->rel, buffer, 0, v->vm);
		return;
	}
	if (!(special->keys & IP_KEYS_QUIET))
		ip_keys_write(v->rel, buffer, IP_KEYS_STALE | IP_KEYS_QUIET, v->vm);
	/* the table may have grown since, but not by pages that are scanned */
	Assert(block < v->nblocks);
	if (v->quiet == NULL)
		v->quiet = MemoryContextAllocExtended(CurrentMemoryContext, v->nblocks / 8 + 1,
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	v->quiet[block / 8] |= 1 << block % 8;
}

static void
clear_page(IpVacuum *v, BlockNumber block)
{
	Buffer		buffer = ReadBufferExtended(v->rel, MAIN_FORKNUM, block, RBM_NORMAL, v->strategy);
	Page		page = BufferGetPage(buffer);

	visibilitymap_pin(v->rel, block, &v->vm);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (ip_page_kind(v->rel, block, page) == IP_PAGE_DATA && (IpPageGetSpecial(page)->keys & IP_KEYS_QUIET))
		ip_keys_write(v->rel, buffer, 0, v->vm);
	UnlockReleaseBuffer(buffer);
}

void
ip_vacuum_keys_clear(IpVacuum *v)
{
	for (BlockNumber i = 0; v->quiet != NULL && i <= v->nblocks / 8; i++)
	{
		for (int bit = 0; v->quiet[i] >> bit != 0; bit++)
		{
			if (!(v->quiet[i] & (1 << bit)))
				continue;
			compat_vacuum_delay_point(false);
			clear_page(v, i * 8 + bit);
		}
		v->quiet[i] = 0;
	}
}
