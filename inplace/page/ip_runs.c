/*-------------------------------------------------------------------------
 * ip_runs.c
 *	  The metapage's list of undo pages.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "port/pg_crc32c.h"

#include "ip_runs.h"

static inline uint64
end_of(const IpUndoRun *run)
{
	return (uint64) run->first + run->n;
}

/* The first of n runs that ends behind the block, or n. */
static uint32
find_run(const IpUndoRun *runs, uint32 n, BlockNumber block)
{
	uint32		low = 0;

	while (low < n)
	{
		uint32		middle = low + (n - low) / 2;

		if (end_of(&runs[middle]) > block)
			n = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint32
ip_runs_count(Page meta)
{
	uint32		n = IpPageGetMeta(meta)->nruns;

	return n <= IP_MAX_UNDO_RUNS ? n : 0;
}

bool
ip_runs_have(const IpUndoRun *runs, uint32 n, BlockNumber block)
{
	uint32		i = find_run(runs, n, block);

	return i < n && runs[i].first <= block;
}

static pg_crc32c
crc_of(const IpMeta *m)
{
	const char *start = (const char *) &m->nruns;
	pg_crc32c	crc;

	Assert(m->nruns <= IP_MAX_UNDO_RUNS);
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, start, (const char *) &m->runs[m->nruns] - start);
	FIN_CRC32C(crc);
	return crc;
}

void
ip_runs_seal(Page meta)
{
	IpMeta	   *m = IpPageGetMeta(meta);

	if (m->nruns <= IP_MAX_UNDO_RUNS)
		m->crc = crc_of(m);
}

const char *
ip_runs_problem(Page meta)
{
	const IpMeta *m = IpPageGetMeta(meta);
	uint64		end = IP_META_BLOCK + 1;

	if (m->nruns > IP_MAX_UNDO_RUNS)
		return "metapage has too many runs of undo pages";
	if (m->crc != crc_of(m))
		return "metapage has a wrong checksum of its own";
	for (uint32 i = 0; i < m->nruns; i++)
	{
		if (m->runs[i].first < end || m->runs[i].n == 0)
			return "metapage's runs of undo pages are not in order";
		end = end_of(&m->runs[i]);
	}
	return end > InvalidBlockNumber ?
		"metapage's runs of undo pages are beyond all blocks" : NULL;
}

/* Set the number of runs to n, which is also all that the page then holds. */
static void
set_count(Page page, uint32 n)
{
	IpMeta	   *m = IpPageGetMeta(page);

	m->nruns = n;
	((PageHeader) page)->pd_lower = (char *) &m->runs[n] - (char *) page;
}

/* Insert a run as number i; false if there is no room. */
static bool
insert_run(Page page, uint32 i, BlockNumber first, uint32 n)
{
	IpMeta	   *m = IpPageGetMeta(page);
	uint32		count = ip_runs_count(page);

	if (count == IP_MAX_UNDO_RUNS)
		return false;
	memmove(&m->runs[i + 1], &m->runs[i], (count - i) * sizeof(IpUndoRun));
	m->runs[i].first = first;
	m->runs[i].n = n;
	set_count(page, count + 1);
	return true;
}

static void
remove_run(Page page, uint32 i)
{
	IpMeta	   *m = IpPageGetMeta(page);
	uint32		count = ip_runs_count(page);

	memmove(&m->runs[i], &m->runs[i + 1], (count - i - 1) * sizeof(IpUndoRun));
	set_count(page, count - 1);
	/* leave no data in the hole */
	memset(&m->runs[count - 1], 0, sizeof(IpUndoRun));
}

/*
 * If there is no room for another run, the blocks are not listed, and scans
 * read them.
 */
static void
add_blocks(Page page, uint32 i, BlockNumber first, uint32 n)
{
	IpUndoRun  *runs = IpPageGetMeta(page)->runs;
	uint32		count = ip_runs_count(page);
	bool		before = i > 0 && end_of(&runs[i - 1]) == first;
	bool		behind = i < count && runs[i].first == first + n;

	if (before)
		runs[i - 1].n += n;
	if (before && behind)
	{
		runs[i - 1].n += runs[i].n;
		remove_run(page, i);
	}
	else if (behind)
	{
		runs[i].first = first;
		runs[i].n += n;
	}
	else if (!before)
		(void) insert_run(page, i, first, n);
}

/* If there is no room to split the run in two, the longer part stays. */
static void
remove_block(Page page, uint32 i, BlockNumber block)
{
	IpUndoRun  *run = &IpPageGetMeta(page)->runs[i];
	uint32		before = block - run->first;
	uint32		behind = run->n - before - 1;

	run->n = before;
	if (behind > 0 &&
		(before == 0 ||
		 (!insert_run(page, i + 1, block + 1, behind) && behind > before)))
	{
		run->first = block + 1;
		run->n = behind;
	}
	if (run->n == 0)
		remove_run(page, i);
}

void
ip_runs_set(Page meta, BlockNumber first, uint32 n)
{
	const IpUndoRun *runs = IpPageGetMeta(meta)->runs;
	uint32		count = ip_runs_count(meta);
	uint32		i = find_run(runs, count, first);
	bool		known = i < count && runs[i].first <= first;

	if (n == 0 && known)
		remove_block(meta, i, first);
	/* runs that overlap are damaged: leave them as they are */
	if (n > 0 && !known && (i == count || first + n <= runs[i].first))
		add_blocks(meta, i, first, n);
}
