/*-------------------------------------------------------------------------
 * wp_segment.h
 *	  What a segment's name and its first page say of it.
 *-------------------------------------------------------------------------
 */
#ifndef WP_SEGMENT_H
#define WP_SEGMENT_H

#include "wp_file.h"

typedef struct WpSegment
{
	uint32		timeline;
	uint32		log;			/* second and third part of the name */
	uint32		seg;
	uint32		size;			/* of segments, from its header; 0: not known */
} WpSegment;

/* The name of a segment, packed or not; *rest is what follows the digits. */
extern bool wp_segment_name(const char *name, WpSegment *segment, const char **rest);

/* The size of segments by the file's first page; 0: it has no such header. */
extern uint32 wp_segment_size(const WpFileInfo *info);

/*
 * Is the file the segment of this name, whole, and of this cluster (0: of any)?
 * Names of other files pass.
 */
extern bool wp_segment_check(const char *name, const WpFileInfo *info, uint64 system, WpError *error);

#endif							/* WP_SEGMENT_H */
