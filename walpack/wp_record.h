/*-------------------------------------------------------------------------
 * wp_record.h
 *	  The layout of WAL pages and records, the same in PostgreSQL 15 to 19.
 *
 * A record:
 *
 *		tot_len u32 | xid u32 | prev u64 | info u8 | rmid u8 | 0 u16 | crc u32
 *		for each block:	id u8 | flags u8 | data length u16
 *						[ image length u16 | hole offset u16 | image info u8
 *						  [ hole length u16: compressed images with a hole ] ]
 *						[ tablespace u32 | database u32 | relation u32:
 *						  unless SAME_REL ]
 *						block number u32
 *		[ 253 u8 | origin u16 ]  [ 252 u8 | top-level xid u32 ]
 *		[ 255 u8 | length u8  or  254 u8 | length u32 ]
 *		for each block: image, data; then the main data
 *
 * and zeros to the next multiple of 8.  The server's own headers are not used:
 * one program reads the WAL of four versions.
 *-------------------------------------------------------------------------
 */
#ifndef WP_RECORD_H
#define WP_RECORD_H

#define WP_PAGE_HEADER			24
#define WP_LONG_HEADER			40	/* first page of a segment */
#define WP_XLP_CONTRECORD		0x0001
#define WP_XLP_LONG				0x0002
#define WP_XLP_REMOVABLE		0x0004

#define WP_REC_HEADER			24
#define WP_REC_CRC				20	/* offset of its CRC */
#define WP_MAX_BLOCK_ID			32
#define WP_RMID_XACT			1
#define WP_RMID_HEAP2			9
#define WP_RMID_HEAP			10
#define WP_IS_MULTI_INSERT(rmid, info) \
	((rmid) == WP_RMID_HEAP2 && ((info) & 0x70) == 0x50)
#define WP_RMID_BRIN			17
#define WP_MAGIC_15				0xD110
#define WP_MAGIC_16				0xD113
#define WP_MAGIC_17				0xD116
#define WP_MAGIC_18				0xD118
#define WP_MAGIC_19				0xD122

/* flags of a block reference */
#define WP_FORK_MASK			0x0F
#define WP_HAS_IMAGE			0x10
#define WP_HAS_DATA				0x20
#define WP_SAME_REL				0x80

/* image info */
#define WP_IMG_HAS_HOLE			0x01
#define WP_IMG_PGLZ				0x04
#define WP_IMG_LZ4				0x08
#define WP_IMG_COMPRESSED		0x1C

/* ids that are not blocks */
#define WP_ID_TOPXID			252
#define WP_ID_ORIGIN			253
#define WP_ID_MAIN_LONG			254
#define WP_ID_MAIN_SHORT		255

#define WP_ALIGN8(n)			(((n) + 7) & ~(uint32) 7)

typedef struct WpBlock
{
	uint8		id;
	uint8		flags;
	uint8		img_info;
	uint16		data_len;
	uint16		img_len;
	uint16		hole_off;
	uint16		hole_len;		/* of compressed images with a hole */
	uint32		number;
	const uint8 *rel;			/* 12 bytes; of an earlier block where
								 * SAME_REL */
	const uint8 *image;
	const uint8 *data;
} WpBlock;

typedef struct WpRecord
{
	uint32		tot_len;
	uint32		xid;
	uint64		prev;
	uint8		info;
	uint8		rmid;
	uint32		crc;
	uint8		main_id;		/* 0: none, or WP_ID_MAIN_... */
	uint32		main_len;
	const uint8 *main;
	const uint8 *origin;		/* 2 bytes, or NULL */
	const uint8 *topxid;		/* 4 bytes, or NULL */
	uint32		nblocks;
	WpBlock		blocks[WP_MAX_BLOCK_ID + 1];
} WpRecord;

/* True if the image header has a hole length after the info byte. */
#define WP_IMG_HAS_HOLE_LEN(info) \
	(((info) & WP_IMG_COMPRESSED) != 0 && ((info) & WP_IMG_HAS_HOLE) != 0)

/*
 * Split the record at p, of which avail bytes are present.  Returns false if a
 * server of the known versions would not have written exactly this; the CRC is
 * not examined.
 */
extern bool wp_record_parse(const uint8 *p, size_t avail, WpRecord *rec);

/* Compute the CRC of a record of this length. */
extern uint32 wp_record_crc(const uint8 *p, uint32 tot_len);

/*
 * The PostgreSQL version, 15 to 19, whose WAL pages have this magic; 0 if
 * none.
 */
extern int	wp_magic_version(uint16 magic);

#endif							/* WP_RECORD_H */
