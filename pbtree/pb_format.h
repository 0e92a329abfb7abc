/*-------------------------------------------------------------------------
 * pb_format.h
 *	  On-disk format of pbtree indexes, version 1.
 *
 * docs/internals/pbtree-format.md draws every structure byte by byte.  All
 * pages have PostgreSQL's standard page header and keep no data between
 * pd_lower and pd_upper.  Slots grow upwards from the page header, items and
 * blobs (prefix, fences) downwards from the special space, without gaps
 * between them.
 *
 *	slot				item
 *	+---------+------+	leaf:  [map] key's suffix, TIDs
 *	|off flags| head |	inner: downlink (4) natts (1) [map] key's suffix
 *	+---------+------+		   [TID (6)]
 *	off: 13 bits, flags: 3 bits; head: only on pages with PB_PAGE_HEADS
 *
 * A key is the columns' encodings (pb_codec.h), one behind the other.  Bytes
 * that all keys of the page begin with are stored once, as the page's prefix;
 * an item has the suffix only.  On pages with heads the suffix's first two
 * bytes are the slot's head, and not in the item.
 *-------------------------------------------------------------------------
 */
#ifndef PB_FORMAT_H
#define PB_FORMAT_H

#include "access/transam.h"
#include "storage/block.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"

#define PB_FORMAT_VERSION		1
#define PB_PAGE_MAGIC			0x5042	/* "PB" */
#define PB_META_MAGIC			0x50425452
#define PB_META_BLOCK			0

/* also the value of prev and next without a sibling; block 0 is the metapage */
#define PB_NONE					0

StaticAssertDecl(BLCKSZ <= 8192, "an offset of a slot has 13 bits");

/* Special space of every page, the metapage's too. */
typedef struct PbSpecial
{
	BlockNumber prev;			/* left sibling, or PB_NONE */
	BlockNumber next;			/* right sibling, or PB_NONE */
	uint16		prefix_off;		/* blobs: offset on the page, length */
	uint16		prefix_len;
	uint16		low_off;
	uint16		low_len;
	uint16		high_off;
	uint16		high_len;
	uint16		flags;			/* PB_PAGE_* */
	uint16		cycle;			/* VACUUM's cycle id of the latest split */
	uint8		level;			/* 0: leaf */
	uint8		map_len;		/* bytes of an item's map */
	uint16		magic;			/* PB_PAGE_MAGIC */
} PbSpecial;

StaticAssertDecl(sizeof(PbSpecial) == 28, "special space is 28 bytes, and 4 for alignment");
StaticAssertDecl(offsetof(PbSpecial, magic) == 26, "magic is at byte 26");

#define PB_SPECIAL_SIZE			MAXALIGN(sizeof(PbSpecial))
#define PbPageGetSpecial(page) ((PbSpecial *) PageGetSpecialPointer(page))

#define PB_PAGE_META			0x0001
#define PB_PAGE_DELETED			0x0002	/* its contents: the xid that must end
										 * before reuse */
#define PB_PAGE_INCOMPLETE		0x0004	/* split; its right sibling has no
										 * downlink yet */
#define PB_PAGE_HEADS			0x0008	/* slots have heads */
#define PB_PAGE_MAPS			0x0010	/* some item may have a map */
#define PB_PAGE_GARBAGE			0x0020	/* some slot may be marked dead (a
										 * hint) */
#define PB_PAGE_ALL_FLAGS		0x003F

/* ---- slots ------------------------------------------------------------- */
#define PB_SLOT_OFF				0x1FFF
#define PB_SLOT_DEAD			0x2000	/* all TIDs are dead to all snapshots
										 * (a hint) */
#define PB_SLOT_POSTING			0x4000	/* more than one TID */
#define PB_SLOT_MAP				0x8000	/* the item begins with a map */
#define PB_HEAD_LEN				2

/* ---- items ------------------------------------------------------------- */

/* A map has two bits for each column. */
#define PB_COL_PLAIN			0
#define PB_COL_NULL				1
#define PB_COL_PACKED			2	/* a compressed varlena; as
									 * PB_CODEC_VARLENA */

/* Inner items, and fences (without the downlink): the byte natts. */
#define PB_NATTS_MASK			0x3F
#define PB_NATTS_MAP			0x40	/* fences only: a map follows */
#define PB_NATTS_TID			0x80	/* a TID follows the key */
#define PB_PIVOT_LEN			5	/* downlink, natts */
#define PB_PIVOT_TID_LEN		6

StaticAssertDecl(INDEX_MAX_KEYS <= PB_NATTS_MASK, "natts has 6 bits");

/* The minimum size of a single TID. */
#define PB_TID_MIN_LEN			3

/* The maximum size of a posting list; a longer one becomes two. */
#define PB_MAX_POSTING			512

/* The maximum size of a low fence; a longer one is omitted (low_len is 0). */
#define PB_MAX_LOW_FENCE		1000

/*
 * The maximum size of a key.  A key that fits into an nbtree index also fits
 * here.  A page has room for an item with such a key, a high fence made of it,
 * and the longest low fence.
 */
#define PB_MAX_KEY				2696

StaticAssertDecl(SizeOfPageHeaderData + PB_SPECIAL_SIZE + PB_MAX_LOW_FENCE +
				 2 * (PB_MAX_KEY + 32) + PB_MAX_POSTING <=
				 BLCKSZ,
				 "a page has room for one item");

/* ---- the metapage ------------------------------------------------------ */
#define PB_META_BYTES			0x0001	/* keys compare as bytes */
#define PB_META_EQUALIMAGE		0x0002	/* equal keys are identical: posting
										 * lists */

typedef struct PbMeta
{
	uint32		magic;			/* PB_META_MAGIC */
	uint32		version;		/* PB_FORMAT_VERSION */
	BlockNumber root;			/* or PB_NONE: the index is empty */
	uint16		level;			/* the root's */
	uint16		flags;			/* PB_META_* */
	uint32		deleted;		/* deleted pages that the last VACUUM could
								 * not free yet */
	uint16		natts;			/* columns, INCLUDE's too */
	uint16		nkeys;
	uint8		codec[INDEX_MAX_KEYS];	/* of each column */
} PbMeta;

StaticAssertDecl(sizeof(PbMeta) == 24 + INDEX_MAX_KEYS, "metapage layout");

#define PbPageGetMeta(page) ((PbMeta *) PageGetContents(page))

/* Contents of a deleted page. */
typedef struct PbDeleted
{
	uint64		safe_xid;		/* transactions older than this may still be
								 * on their way to the page */
} PbDeleted;

#define PbPageGetDeleted(page) ((PbDeleted *) PageGetContents(page))

#endif							/* PB_FORMAT_H */
