/*-------------------------------------------------------------------------
 * wp_gaps.c
 *	  Missing segments of an archive.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <stdlib.h>

#include "wp_gaps.h"

bool
wp_gaps_add(WpGaps *gaps, const char *name, const WpFileInfo *info)
{
	WpSegment	s;
	const char *rest;

	if (!wp_segment_name(name, &s, &rest) || strstr(rest, ".partial") != NULL)
		return true;
	s.size = wp_segment_size(info);
	if (gaps->n == gaps->max)
	{
		gaps->max = Max(1024, gaps->max * 2);
		gaps->segments = realloc(gaps->segments, gaps->max * sizeof(WpSegment));
		if (gaps->segments == NULL)
			return false;
	}
	gaps->segments[gaps->n++] = s;
	return true;
}

static int
compare_segments(const void *a, const void *b)
{
	const WpSegment *x = a;
	const WpSegment *y = b;

	if (x->timeline != y->timeline)
		return x->timeline < y->timeline ? -1 : 1;
	if (x->log != y->log)
		return x->log < y->log ? -1 : 1;
	return x->seg < y->seg ? -1 : x->seg > y->seg;
}

/* The number of the segment, counted from the start of WAL. */
static uint64
segment_number(const WpSegment *s, uint32 size)
{
	return s->log * (UINT64CONST(0x100000000) / size) + s->seg;
}

int
wp_gaps_report(WpGaps *gaps)
{
	uint32		size = 0;
	int			found = 0;

	/* a directory has the WAL of one cluster */
	for (int i = 0; i < gaps->n && size == 0; i++)
		size = gaps->segments[i].size;
	if (size == 0)
		return 0;
	qsort(gaps->segments, gaps->n, sizeof(WpSegment), compare_segments);
	for (int i = 1; i < gaps->n; i++)
	{
		const WpSegment *a = &gaps->segments[i - 1];
		const WpSegment *b = &gaps->segments[i];
		uint64		missing = segment_number(b, size) - segment_number(a, size);

		if (a->timeline != b->timeline || missing <= 1)
			continue;
		fprintf(stderr,
				"walpack: timeline %u: %llu missing between %08X%08X%08X and %08X%08X%08X\n",
				a->timeline, (unsigned long long) missing - 1, a->timeline,
				a->log, a->seg, b->timeline, b->log, b->seg);
		found++;
	}
	return found;
}
