/*-------------------------------------------------------------------------
 * wp_page.h
 *	  Full-page images taken apart into header, item pointers, tuples.
 *-------------------------------------------------------------------------
 */
#ifndef WP_PAGE_H
#define WP_PAGE_H

#include "wp_group.h"
#include "wp_record.h"
#include "wp_tuple.h"

/* The codec's data of a relation's fork. */
typedef struct WpRelation
{
	uint8		key[13];		/* tablespace, database, relation, fork */
	uint32		last_block;
	WpGroup		headers;		/* WP_PAGE_ROW bytes a page */
	WpGroup		items;			/* 4 bytes an item pointer */
	WpGroup		special;
	WpGroup    *tuples;			/* WP_BUCKETS groups, if there are headers */
	WpTuples	inserted;		/* of multi-insert records */
} WpRelation;

/* The starts of a page's tuples, and the item pointers to which they belong. */
typedef struct WpPageMap
{
	uint16		lower;
	uint16		upper;
	uint16		special;
	uint16		nitems;
	uint64		starts[WP_PAGE_SIZE / 64];
	uint16		item_at[WP_PAGE_SIZE];
} WpPageMap;

/*
 * True if the block's image is a page of tuples that do not overlap.  Fills
 * the map.
 */
extern bool wp_page_check(const WpBlock *block, WpPageMap *map);

/*
 * Encoder: add the page that wp_page_check approved to the relation's groups.
 */
extern void wp_page_write(WpContext *ctx, WpRelation *rel, const WpBlock *block,
						  const WpPageMap *map, WpBuf *gaps);

/*
 * Decoder: make the image, at most WP_PAGE_SIZE bytes; sets img_len and
 * hole_off.
 */
extern void wp_page_read(WpContext *ctx, WpRelation *rel, WpBlock *block,
						 WpPageMap *map, uint8 *image, WpReader *gaps);

/*
 * Images compressed by pglz are not decompressed: to compress them again
 * exactly as the server did would take far more time than all of the rest.
 * But their control bytes, tags and literals differ so much that they compress
 * better separately.
 */

/*
 * Encoder: add the image to the WP_SEC_PGLZ sections.  Returns false, without
 * an addition, if it is not a sequence of whole pglz tokens.
 */
extern bool wp_pglz_write(WpContext *ctx, const WpBlock *block,
						  WpBuf *sections);

/* Decoder: make an image of len bytes. */
extern void wp_pglz_read(WpContext *ctx, uint8 *image, uint32 len,
						 WpReader *sections);

#endif							/* WP_PAGE_H */
