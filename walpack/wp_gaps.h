/*-------------------------------------------------------------------------
 * wp_gaps.h
 *	  Is an archive complete?  Segments that are missing, or not what their
 *	  names say.
 *-------------------------------------------------------------------------
 */
#ifndef WP_GAPS_H
#define WP_GAPS_H

#include "wp_file.h"

typedef struct WpSegment
{
	uint32		timeline;
	uint32		log;			/* second and third part of the name */
	uint32		seg;
	uint32		size;			/* of segments, from its header; 0: not known */
} WpSegment;

/* Segments seen; starts out as zeros. */
typedef struct WpGaps
{
	WpSegment  *segments;
	int			n;
	int			max;
} WpGaps;

/* Is the file what its name says?  If not, a message. */
extern bool wp_check_segment(const char *name, const WpFileInfo *info, char *message, size_t size);

/* Remember the file, if it is a whole segment.  False: out of memory. */
extern bool wp_gaps_add(WpGaps *gaps, const char *name, const WpFileInfo *info);

/* Print the gaps in each timeline to stderr; returns their number. */
extern int	wp_gaps_report(WpGaps *gaps);

#endif							/* WP_GAPS_H */
