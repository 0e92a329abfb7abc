/*-------------------------------------------------------------------------
 * pb_run.c
 *	  Sorted runs of a new index's rows, and merging them.
 *
 * Each process that takes part in a build sorts its rows in its own way
 * (pb_sort.c).  Workers write the result to temporary files; the leader merges
 * these and its own sort.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "storage/buffile.h"

#include "pb_pos.h"
#include "pb_run.h"

/* The number of TIDs of a key that are read at a time. */
#define TIDS_AT_ONCE	1024

/*
 * Header of a key in a file.  It is followed by the map, if any, the key, and
 * the TIDs.
 */
typedef struct RunItem
{
	int			ntids;
	uint16		len;
	bool		has_map;
} RunItem;

/* The next data of a run: a key, and its TIDs or some of them. */
struct PbRun
{
	PbSort	   *sort;			/* or NULL */
	BufFile    *file;			/* or NULL */
	int			left;			/* TIDs of the key that are still in the file */
	int			n;
	const ItemPointerData *tids;
	ItemPointerData *own;		/* of a file */
	PbKey		key;			/* and the first of these TIDs */
};

/* ---- files ------------------------------------------------------------- */

void
pb_run_write(PbSort *sort, PbIndex *index, SharedFileSet *files,
			 const char *name)
{
	BufFile    *file = BufFileCreateFileSet(&files->fs, name);
	PbKey	   *key = palloc(sizeof(PbKey));
	const ItemPointerData *tids;
	RunItem		item = {0};

	while (pb_sort_next(sort, key, &tids, &item.ntids))
	{
		item.len = key->len;
		item.has_map = key->has_map;
		BufFileWrite(file, &item, sizeof(item));
		if (item.has_map)
			BufFileWrite(file, key->map, index->map_len);
		BufFileWrite(file, key->data, item.len);
		BufFileWrite(file, unconstify(ItemPointerData *, tids),
					 item.ntids * sizeof(ItemPointerData));
		CHECK_FOR_INTERRUPTS();
	}
	BufFileExportFileSet(file);
	BufFileClose(file);
	pfree(key);
}

/*
 * Read from a file.  Returns false at its end, which is allowed where an item
 * may begin.
 */
static bool
read_bytes(BufFile *file, void *to, size_t len, bool may_end)
{
	size_t		got = BufFileRead(file, to, len);

	if (got != len && (got > 0 || !may_end))
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from a temporary file of an index build: read only %zu of %zu bytes",
						got, len)));
	return got == len;
}

static bool
read_item(PbRun *run, PbIndex *index)
{
	RunItem		item;

	if (run->left == 0)
	{
		if (!read_bytes(run->file, &item, sizeof(item), true))
			return false;
		pb_key_begin(&run->key);
		run->key.natts = index->natts;
		run->key.has_map = item.has_map;
		if (item.has_map)
			read_bytes(run->file, run->key.map, index->map_len, false);
		read_bytes(run->file, run->key.data, item.len, false);
		(void) pb_key_parse(index, &run->key, run->key.natts, item.len);
		run->left = item.ntids;
	}
	run->n = Min(run->left, TIDS_AT_ONCE);
	read_bytes(run->file, run->own, run->n * sizeof(ItemPointerData), false);
	run->left -= run->n;
	run->tids = run->own;
	return true;
}

/* ---- merging ----------------------------------------------------------- */

PbMerge *
pb_run_merge_begin(Relation rel, PbIndex *index, int most)
{
	PbMerge    *merge = palloc(offsetof(PbMerge, runs) +
							   most * sizeof(PbRun *));

	merge->rel = rel;
	merge->index = index;
	merge->nruns = 0;
	merge->taken = 0;
	return merge;
}

/*
 * Compare two runs' keys: <0, 0, >0.  "equal" becomes the number of equal
 * columns.
 */
static int
compare_runs(PbMerge *merge, const PbRun *a, const PbRun *b, int *equal)
{
	PbPos		pos;

	if (merge->index->bytes && !a->key.has_map && !b->key.has_map)
	{
		int			cmp = memcmp(a->key.data, b->key.data,
								 Min(a->key.off[merge->index->nkeys],
									 b->key.off[merge->index->nkeys]));

		*equal = 0;
		if (cmp != 0)
			return cmp;
	}
	pb_pos_from_key(&pos, merge->rel, merge->index, &a->key);
	merge->arena.used = 0;
	pos.arena = &merge->arena;
	return pb_pos_compare(&pos, &b->key, true, 0, equal);
}

/*
 * Move the run at "at", which has reached its next key, to its place among
 * those behind it.
 */
static void
sink(PbMerge *merge, int at)
{
	PbRun	   *run = merge->runs[at];
	int			equal;

	for (; at + 1 < merge->nruns &&
		 compare_runs(merge, run, merge->runs[at + 1], &equal) > 0;
		 at++)
		merge->runs[at] = merge->runs[at + 1];
	merge->runs[at] = run;
}

static bool
advance(PbMerge *merge, PbRun *run)
{
	bool		more = run->sort != NULL ?
		pb_sort_next(run->sort, &run->key, &run->tids, &run->n) :
		read_item(run, merge->index);

	if (more)
	{
		run->key.has_tid = true;
		run->key.tid = run->tids[0];
	}
	return more;
}

static void
end_run(PbRun *run)
{
	if (run->file != NULL)
	{
		BufFileClose(run->file);
		pfree(run->own);
	}
	pfree(run);
}

static void
add_run(PbMerge *merge, PbSort *sort, BufFile *file)
{
	PbRun	   *run = palloc(sizeof(PbRun));

	run->sort = sort;
	run->file = file;
	run->left = 0;
	run->own = file ? palloc(TIDS_AT_ONCE * sizeof(ItemPointerData)) : NULL;
	if (!advance(merge, run))
	{
		end_run(run);
		return;
	}
	memmove(merge->runs + 1, merge->runs, merge->nruns * sizeof(PbRun *));
	merge->nruns++;
	merge->runs[0] = run;
	sink(merge, 0);
}

void
pb_run_add_sort(PbMerge *merge, PbSort *sort)
{
	add_run(merge, sort, NULL);
}

void
pb_run_add_file(PbMerge *merge, SharedFileSet *files, const char *name)
{
	add_run(merge, NULL, BufFileOpenFileSet(&files->fs, name, O_RDONLY, false));
}

/* The number of the first run's TIDs that precede the second run's. */
static int
tids_in_order(PbMerge *merge)
{
	PbRun	   *run = merge->runs[0];
	int			equal;
	int			n = 1;

	if (run->n == 1 || merge->nruns == 1)
		return run->n;
	(void) compare_runs(merge, run, merge->runs[1], &equal);
	if (equal < merge->index->nkeys)
		return run->n;
	while (n < run->n &&
		   ItemPointerCompare(unconstify(ItemPointerData *, &run->tids[n]),
							  &merge->runs[1]->key.tid) < 0)
		n++;
	return n;
}

bool
pb_run_next(PbMerge *merge, PbKey *key, const ItemPointerData **tids, int *n)
{
	PbRun	   *run;

	if (merge->taken > 0)
	{
		run = merge->runs[0];
		run->tids += merge->taken;
		run->n -= merge->taken;
		merge->taken = 0;
		if (run->n > 0)
			run->key.tid = run->tids[0];
		else if (!advance(merge, run))
		{
			end_run(run);
			merge->nruns--;
			memmove(merge->runs, merge->runs + 1,
					merge->nruns * sizeof(PbRun *));
			run = NULL;
		}
		if (run != NULL)
			sink(merge, 0);
	}
	if (merge->nruns == 0)
		return false;
	run = merge->runs[0];
	merge->taken = tids_in_order(merge);
	Assert(merge->taken > 0 && merge->taken <= run->n);
	pb_key_copy(key, &run->key);
	key->has_tid = false;
	*tids = run->tids;
	*n = merge->taken;
	return true;
}

void
pb_run_merge_end(PbMerge *merge)
{
	for (int i = 0; i < merge->nruns; i++)
		end_run(merge->runs[i]);
	pfree(merge);
}
