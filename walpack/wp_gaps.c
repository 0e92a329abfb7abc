/*-------------------------------------------------------------------------
 * wp_gaps.c
 *	  Is an archive complete?  Segments that are missing, or not what their
 *	  names say.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <stdlib.h>

#include "wp_gaps.h"
#include "wp_record.h"

/* Split the name of a segment, which may be packed or partial; *rest is what follows the digits. */
static bool
parse_name(const char *name, WpSegment *s, const char **rest)
{
	if (strspn(name, "0123456789ABCDEF") != 24 || sscanf(name, "%8X%8X%8X", &s->timeline, &s->log, &s->seg) != 3)
		return false;
	*rest = name + 24;
	return strcmp(*rest, "") == 0 || strcmp(*rest, WP_SUFFIX) == 0 ||
		strcmp(*rest, ".partial") == 0 || strcmp(*rest, ".partial" WP_SUFFIX) == 0;
}

/* The size of segments that the first page's header says; 0: there is no such header. */
static uint32
segment_size(const WpFileInfo *info)
{
	return info->raw_size >= sizeof(info->start) && wp_codec_page_size(info->start, sizeof(info->start)) > 0 ?
		wp_get32(info->start + 32) : 0;
}

bool
wp_check_segment(const char *name, const WpFileInfo *info, char *message, size_t size)
{
	WpSegment	s;
	const char *rest;
	uint64		address;

	if (!parse_name(name, &s, &rest))
		return true;
	s.size = segment_size(info);
	if (s.size == 0)
	{
		snprintf(message, size, "\"%s\" is not WAL of PostgreSQL 15 to 18", name);
		return false;
	}
	if (info->raw_size != s.size)
	{
		snprintf(message, size, "\"%s\" has %llu bytes of a segment of %u", name,
				 (unsigned long long) info->raw_size, s.size);
		return false;
	}
	address = wp_get64(info->start + 8);
	if (address != ((uint64) s.log << 32) + (uint64) s.seg * s.size)
	{
		snprintf(message, size, "\"%s\" has the contents of another segment, which starts at %X/%08X", name,
				 (uint32) (address >> 32), (uint32) address);
		return false;
	}
	return true;
}

bool
wp_gaps_add(WpGaps *gaps, const char *name, const WpFileInfo *info)
{
	WpSegment	s;
	const char *rest;

	if (!parse_name(name, &s, &rest) || strstr(rest, ".partial") != NULL)
		return true;
	s.size = segment_size(info);
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
		fprintf(stderr, "walpack: timeline %u: %llu missing between %08X%08X%08X and %08X%08X%08X\n", a->timeline,
				(unsigned long long) missing - 1, a->timeline, a->log, a->seg, b->timeline, b->log, b->seg);
		found++;
	}
	return found;
}
