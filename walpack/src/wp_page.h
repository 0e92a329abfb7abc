/*-------------------------------------------------------------------------
 * wp_page.h
 *	  Full-page images taken apart into header, item pointers, tuples.
 *-------------------------------------------------------------------------
 */
#ifndef WP_PAGE_H
#define WP_PAGE_H

#include "wp_group.h"
#include "wp_record.h"

/* What the codec knows of a relation's fork. */
typedef struct WpRelation
{
	uint8		key[13];		/* tablespace, database, relation, fork */
	uint32		last_block;
	WpGroup		headers;		/* WP_PAGE_ROW bytes a page */
	WpGroup		items;			/* 4 bytes an item pointer */
	WpGroup		special;
	WpGroup    *tuples;			/* WP_BUCKETS groups, if there are headers */
} WpRelation;

/* Where the tuples of a page start, and which item pointers they belong to. */
typedef struct WpPageMap
{
	uint16		lower;
	uint16		upper;
	uint16		special;
	uint16		nitems;
	uint64		starts[WP_PAGE_SIZE / 64];
	uint16		item_at[WP_PAGE_SIZE];
} WpPageMap;

/* Is the block's image a page of tuples that do not overlap?  Fills the map. */
extern bool wp_page_check(const WpBlock *block, WpPageMap *map);

/* Encoder: put the page that wp_page_check approved into the relation's groups. */
extern void wp_page_write(WpContext *ctx, WpRelation *rel, const WpBlock *block,
						  const WpPageMap *map, WpBuf *gaps);

/* Decoder: the image, at most WP_PAGE_SIZE bytes; sets img_len and hole_off. */
extern void wp_page_read(WpContext *ctx, WpRelation *rel, WpBlock *block,
						 WpPageMap *map, uint8 *image, WpReader *gaps);

#endif							/* WP_PAGE_H */
