/*-------------------------------------------------------------------------
 * wp_segment.h
 *	  Interpretation of a segment's name and first page.
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
	uint32		size;			/* of segments, from its header; 0 if unknown */
} WpSegment;

/*
 * Parse the name of a segment, packed or not; *rest is the part after the
 * digits.
 */
extern bool wp_segment_name(const char *name, WpSegment *segment,
							const char **rest);

/*
 * The size of segments according to the file's first page; 0 if it has no such
 * header.
 */
extern uint32 wp_segment_size(const WpFileInfo *info);

/*
 * True if the file is the segment of this name, complete, and of this cluster
 * (0: of any).  Names of other files pass.
 */
extern bool wp_segment_check(const char *name, const WpFileInfo *info,
							 uint64 system, WpError *error);

#endif							/* WP_SEGMENT_H */
