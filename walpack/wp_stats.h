/*-------------------------------------------------------------------------
 * wp_stats.h
 *	  Contents of WAL by record type.
 *-------------------------------------------------------------------------
 */
#ifndef WP_STATS_H
#define WP_STATS_H

#include "wp_record.h"
#include "wp_util.h"

typedef struct WpTypeStats
{
	uint64		records;
	uint64		bytes;
	uint64		aligned;
	uint64		compact;
	uint64		compact_aligned;
	uint64		images;
} WpTypeStats;

typedef struct WpStats
{
	WpContext	ctx;			/* for errors: out of memory */
	WpBuf		pending;		/* payload that is not a complete record yet */
	uint32		page_size;		/* of the current file */
	uint16		magic;			/* of the last page */
	uint64		next_address;	/* of the page that continues pending; 0 if
								 * none */
	uint64		skip;			/* rest of a record whose start is unknown */
	WpTypeStats types[256][256];	/* by resource manager and record type */
	uint64		total;
	uint64		page_headers;
	uint64		record_headers;
	uint64		block_headers;
	uint64		data_headers;
	uint64		data;
	uint64		images;
	uint64		padding;
	uint64		zeros;
	uint64		other;
} WpStats;

/* Begin a file with WAL pages of this size, or without if 0. */
extern void wp_stats_file(WpStats *s, uint32 page_size);

/*
 * Add the next bytes of the file, whole pages.  Returns false if out of
 * memory.
 */
extern bool wp_stats_add(WpStats *s, const uint8 *data, uint32 len);

/* After the last file: print the tables. */
extern void wp_stats_print(WpStats *s);

/* Name of a record type in WAL of this page magic: "Heap/INSERT" into buf. */
extern void wp_type_name(uint16 magic, uint8 rmid, uint8 type, char *buf,
						 size_t size);

#endif							/* WP_STATS_H */
