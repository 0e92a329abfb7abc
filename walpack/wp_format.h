/*-------------------------------------------------------------------------
 * wp_format.h
 *	  The packed file, byte by byte: docs/internals/walpack-format.md.
 *
 *		+--------------------------------------------------+
 *		| WpFileHeader                                     |
 *		+--------------------------------------------------+
 *		| WpChunkHeader | packed bytes of the first chunk  |
 *		+--------------------------------------------------+
 *		| WpChunkHeader | packed bytes of the next chunk   |
 *		+--------------------------------------------------+
 *		| WpFileTrailer                                    |
 *		+--------------------------------------------------+
 *
 * A chunk is up to 16 MB of the original, and needs no other chunk to be
 * decoded.  All integers are little-endian.
 *-------------------------------------------------------------------------
 */
#ifndef WP_FORMAT_H
#define WP_FORMAT_H

#define WP_MAGIC			"WALPACK\002"	/* the last byte is the version */
#define WP_MAGIC_SIZE		8
#define WP_MAX_CHUNK		(16 * 1024 * 1024)
#define WP_MAX_FILE			UINT64CONST(0x100000000)

typedef struct WpFileHeader
{
	char		magic[WP_MAGIC_SIZE];
	uint8		raw_size[8];	/* bytes of the original */
} WpFileHeader;

typedef enum WpChunkKind
{
	WP_CHUNK_END = 0,			/* the trailer starts here */
	WP_CHUNK_STORED = 1,		/* bytes of the original */
	WP_CHUNK_ZSTD = 2,			/* these in a zstd frame */
	WP_CHUNK_RECORDS = 3		/* a WpBodyHeader and sections */
} WpChunkKind;

typedef struct WpChunkHeader
{
	uint8		kind;
	uint8		reserved[3];	/* 0 */
	uint8		raw_len[4];		/* bytes of the original, > 0 */
	uint8		packed_len[4];	/* bytes that follow */
	uint8		body_len[4];	/* bytes that the frames decompress to */
} WpChunkHeader;

/* Header of a chunk of records.  The stored sections and the frames follow. */
typedef struct WpBodyHeader
{
	uint8		stored_len[4];	/* bytes of the stored sections, which zstd
								 * would not shrink */
} WpBodyHeader;

typedef struct WpFileTrailer
{
	uint8		kind;			/* WP_CHUNK_END */
	uint8		reserved[7];	/* 0 */
	uint8		hash[8];		/* XXH64 of the original */
} WpFileTrailer;

StaticAssertDecl(sizeof(WpFileHeader) == 16, "WpFileHeader is 16 bytes");
StaticAssertDecl(sizeof(WpChunkHeader) == 16, "WpChunkHeader is 16 bytes");
StaticAssertDecl(sizeof(WpFileTrailer) == 16, "WpFileTrailer is 16 bytes");

/*
 * The sections of a chunk of records, in this order.  What the frames
 * decompress to starts with a variable-length integer for each section: twice
 * its length, plus 1 if the section is stored in front of the frames.  The
 * other sections follow.
 */
typedef enum WpSection
{
	WP_SEC_PAGES,				/* first page; headers that are not as
								 * predicted */
	WP_SEC_ITEMS,				/* runs of records and literal bytes */
	WP_SEC_CLASSES,				/* shapes of records */
	WP_SEC_NUMBERS,				/* xids that are not predicted */
	WP_SEC_GROUPS,				/* descriptions of the groups */
	WP_SEC_KINDS,				/* a WpColumn, one byte, for each column */
	WP_SEC_CONSTANTS,			/* values of constant columns */
	WP_SEC_LENGTHS,				/* lengths of rows that differ */
	WP_SEC_COLUMNS,				/* columns of kinds raw and delta */
	WP_SEC_TAILS,				/* the bytes of rows behind the columns */
	WP_SEC_STORED,				/* columns and tails that zstd cannot shrink */
	WP_SEC_GAPS,				/* bytes between the tuples of page images */
	WP_SEC_IMAGES,				/* images that are not pages of a known kind */
	WP_SEC_PGLZ_CONTROL,		/* images compressed by pglz: a bit for each
								 * token says whether it is a tag */
	WP_SEC_PGLZ_TAGS,			/* the first two bytes of the tags */
	WP_SEC_PGLZ_LENGTHS,		/* the third byte of longer tags */
	WP_SEC_PGLZ_LITERALS,		/* the other tokens */
	WP_SEC_LITERAL				/* bytes that are not in records */
} WpSection;

#define WP_SECTIONS			(WP_SEC_LITERAL + 1)

/*
 * One more section, which is not stored: the positions where columns start, u32
 * each.  zstd's blocks start at some of them.
 */
#define WP_CUTS				WP_SECTIONS

/* The way a column is stored. */
typedef enum WpColumn
{
	WP_COL_RAW = 0,
	WP_COL_DELTA = 1,			/* difference to the row before, which is 0
								 * for the first row */
	WP_COL_CONST = 2,			/* one byte in WP_SEC_CONSTANTS */
	WP_COL_STORED = 3			/* unchanged, in WP_SEC_STORED */
} WpColumn;

/* Flags of a group's description. */
#define WP_GROUP_VARLEN		0x01
#define WP_GROUP_BLOCK_REL	0x02	/* block numbers are differences to the
									 * last one of their relation */
#define WP_GROUP_STORED		0x04	/* the tails are in WP_SEC_STORED */
#define WP_GROUP_FLAGS		0x07

/* Flags of a class, and the ways in which its images are stored. */
#define WP_CLASS_MAIN_SHORT	0x01
#define WP_CLASS_MAIN_LONG	0x02
#define WP_CLASS_ORIGIN		0x04
#define WP_CLASS_TOPXID		0x08
#define WP_CLASS_PREV		0x10	/* xl_prev is not predicted */

#define WP_IMAGE_OPAQUE		0
#define WP_IMAGE_PAGE		1
#define WP_IMAGE_PGLZ		2

/*
 * Block data can be copied in part from earlier bytes of the chunk.  A row
 * describes one copy: the number of bytes before it, u16, its length, u16, and
 * the difference between its source and the expected one, u32.
 */
#define WP_COPY_ROW			8
#define WP_MAX_COPIES		64	/* in one block's data */
#define WP_COPY_SOURCE		48	/* the least length of a record that becomes
								 * the expected source: see WpCopyFrom */

/*
 * A symbol for a record's xid is its rank among the last xids, below
 * WP_XID_SLOTS, or one of these.
 */
#define WP_XID_SLOTS		64
#define WP_XID_NEXT			64	/* one more than the highest so far */
#define WP_XID_NONE			65	/* 0 */
#define WP_XID_OTHER		66	/* WP_SEC_NUMBERS has the zigzag difference to
								 * the highest */

/* A class code is one byte, or this and two bytes. */
#define WP_CODE_SHORT		255

/* The way block data is stored. */
#define WP_DATA_PLAIN		0
#define WP_DATA_COPIED		1	/* parts of it are copied */
#define WP_DATA_TUPLES		2	/* tuples of a multi-insert record: see
								 * wp_tuple.h; the row has their number, u16 */

/* Limits that bound the decoder. */
#define WP_MAX_CLASSES		0xFFFF
#define WP_MAX_RELS			0xFFFF
#define WP_PAGE_SIZE		8192	/* of images that are taken apart */
#define WP_PAGE_ROW			25	/* page header and one byte of flags */
#define WP_PAGE_GAPS		0x01	/* the gaps between tuples are not all
									 * zero */
#define WP_BUCKETS			64	/* groups by length of the tuples of a
								 * relation's images */

/*
 * The limit of the sizes of all rows in a chunk's groups, where a row counts as
 * one byte more than it has.
 */
#define WP_ROW_BUDGET(raw_len)	((size_t) (raw_len) * 3 + 65536)

#endif							/* WP_FORMAT_H */
