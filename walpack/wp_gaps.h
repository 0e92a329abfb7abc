/*-------------------------------------------------------------------------
 * wp_gaps.h
 *	  Missing segments of an archive.
 *-------------------------------------------------------------------------
 */
#ifndef WP_GAPS_H
#define WP_GAPS_H

#include "wp_segment.h"

/* Segments seen; starts out as zeros. */
typedef struct WpGaps
{
	WpSegment  *segments;
	int			n;
	int			max;
} WpGaps;

/*
 * Remember the file, if it is a whole segment.  Returns false if out of
 * memory.
 */
extern bool wp_gaps_add(WpGaps *gaps, const char *name, const WpFileInfo *info);

/* Print the gaps in each timeline to stderr; returns their number. */
extern int	wp_gaps_report(WpGaps *gaps);

#endif							/* WP_GAPS_H */
