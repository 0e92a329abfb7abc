/*-------------------------------------------------------------------------
 * ip_format.h
 *	  On-disk format of inplace tables, version 1.
 *
 * docs/internals/on-disk-format.md draws every structure byte by byte.  All
 * pages live in the main fork, have PostgreSQL's standard page header and keep
 * no data between pd_lower and pd_upper.  Their kind is in the special space.
 *
 * Row (an item of a data page; bytes, not aligned):
 *
 *	0	  2		3			   3 or 13
 *	+-----+-----+--------------+------------------------------------+
 *	| hdr |state| version block| body: [NULL bitmap] column values  |
 *	+-----+-----+--------------+------------------------------------+
 *	 hdr: 11 bits number of columns, 3 bits flags (IP_HDR_*), 2 bits for
 *		  heap code
 *	 state: IP_ROW_*; the version block is there if IP_ROW_VERSION
 *	 version block: xid (4), undo pointer (4 block + 2 offset) or cid (4 + 0)
 *
 * A data page may also have undo records of its own rows, "at home": items
 * like those of undo pages, but with a byte that tells them from rows where a
 * row's state is.
 *
 * With IP_ROW_OVERLAID the version block covers the first 10 bytes of the
 * body, and those bytes are in the undo record that it points to: so a version
 * block fits on a page that has no free byte left, and where there is room, no
 * other item has to make way for it.  That is why a body is never shorter than
 * 10 bytes (it is padded with zeros).
 *-------------------------------------------------------------------------
 */
#ifndef IP_FORMAT_H
#define IP_FORMAT_H

#include "access/htup_details.h"
#include "access/transam.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"

#define IP_FORMAT_VERSION		1

/*
 * Every page names its format version: its magic number is the letter I and
 * the version.
 */
#define IP_MAGIC_LETTER			0x49
#define IP_PAGE_MAGIC			(IP_MAGIC_LETTER << 8 | IP_FORMAT_VERSION)

/*
 * The metapage's block is skipped when the relation is extended, and is all
 * zeros until the first ring is made.  So tables of one page, and others
 * without undo pages, have no metapage.
 */
#define IP_META_BLOCK			1

/* A transaction id with its epoch; 0 means "none", 2 "frozen". */
typedef uint64 IpXid;

#define IP_XID_NONE				((IpXid) 0)
#define IP_XID_FROZEN			((IpXid) FrozenTransactionId)
#define IP_XID_MAX				((IpXid) PG_UINT64_MAX)

/* True if visible to all: no transaction id, or the frozen one. */
#define IpXidIsFrozen(xid) ((xid) < FirstNormalTransactionId)

typedef enum IpPageKind
{
	IP_PAGE_META = 1,
	IP_PAGE_DATA = 2,
	IP_PAGE_UNDO = 3,
	IP_PAGE_FREE = 4,
	IP_PAGE_LOCK = 5
} IpPageKind;

/* Special space of every page; the last four bytes name the kind. */
typedef struct IpSpecial
{
	union
	{
		struct
		{
			TransactionId default_xid;	/* inserter of rows with
										 * IP_ROW_DEFAULT */
			CommandId	default_cid;
			TransactionId change_xid;	/* default changer: deleted or moved
										 * the rows with IP_ROW_CHANGED */
			BlockNumber lock_page;	/* where its lock sets begin, or 0; out of
									 * date if all of them are dead */
		}			data;
		struct
		{
			uint64		newest_xid; /* no record's xid is newer */
			BlockNumber next;	/* next page of the ring: the oldest, seen
								 * from the current one */
			uint16		slot;
			uint16		flags;	/* IP_UNDO_CURRENT */
		}			undo;
		struct
		{
			IpXid		lost;	/* sets of transactions before this one have
								 * been lost here, through damage; or 0 */
			BlockNumber next;	/* in the list of lock pages, or 0 */
			uint16		unused2;
			uint16		flags;	/* IP_LOCK_CONTINUED */
		}			lock;		/* lock page, and the metapage */
	}			u;
	union
	{
		struct
		{
			uint16		xid_base;	/* ip_data_xid_base() >>
									 * IP_DATA_BASE_SHIFT */
			uint16		change_cid; /* the default changer's command id */
		}			data;
		uint32		undo_base;	/* undo page: low half of its xid base */
		uint32		number;		/* lock page: higher than those of pages
								 * before it in the list; else 0 */
	}			w;
	uint8		kind;			/* IpPageKind */
	uint8		keys;			/* data page: IP_KEYS_*; else 0 */
	uint16		magic;			/* IP_PAGE_MAGIC */
} IpSpecial;

StaticAssertDecl(sizeof(IpSpecial) == 24, "special space is 24 bytes: a row may be as long as heap's");
StaticAssertDecl(offsetof(IpSpecial, kind) == 20, "kind is at byte 20");
StaticAssertDecl(offsetof(IpSpecial, u.lock.next) ==
				 offsetof(IpSpecial, u.undo.next) &&
				 offsetof(IpSpecial, u.lock.flags) ==
				 offsetof(IpSpecial, u.undo.flags),
				 "rings and the list of lock pages share an operation");

/*
 * All xids of a data page are in [base, base + 2^32); the base's lowest bits
 * are 0.
 */
#define IP_DATA_BASE_SHIFT		30
/*
 * When the base is written, it is this far before the next xid, or farther by
 * less than the value of its lowest bits.
 */
#define IP_DATA_XIDS_BEFORE		((IpXid) 1 << 31)

/* Only command ids up to this are a default changer's. */
#define IP_MAX_CHANGE_CID		PG_UINT16_MAX

/*
 * Updates in place have changed keys of rows of the page.  Index entries of
 * such rows may be stale: their key may differ from that of the version which
 * a snapshot sees.
 */
#define IP_KEYS_STALE			0x01
/*
 * With IP_KEYS_STALE: VACUUM has seen each row with a single version, and no
 * row has been updated in place since then.
 */
#define IP_KEYS_QUIET			0x02

#define IP_UNDO_CURRENT			0x0001	/* records are being appended to this
										 * page */

#define IP_LOCK_CONTINUED		0x0002	/* sets of a data page that begin on
										 * this page, or before it, may also
										 * be on the next one */

/*
 * An undo page's xid base is this far before the newest xid when the page is
 * made.
 */
#define IP_UNDO_XIDS_BEFORE		((IpXid) 1 << 31)
/* The page takes no more records once xids are this far beyond the base. */
#define IP_UNDO_XIDS			(((IpXid) 1 << 32) - ((IpXid) 1 << 28))

/*
 * The special space is the end of each page; in block 0 the decoy is before it
 * (IP_DECOY_BLOCK).
 */
#define IP_SPECIAL_START		(BLCKSZ - sizeof(IpSpecial))
#define IpPageGetSpecial(page) \
	((IpSpecial *) ((char *) (page) + IP_SPECIAL_START))

/*
 * The first item of block 0, which is a data page or free, is a heap tuple
 * whose xmax is a MultiXactId that does not exist: if the heap access method
 * reads an inplace table's file, scans and VACUUM end with an error there,
 * before they reach the rows.  The tuple is in the page's special space, which
 * no code for items reads.  The item is one byte shorter than any tuple that
 * heap inserts.
 */
#define IP_DECOY_BLOCK			0
#define IP_DECOY_SIZE			MAXALIGN(SizeofHeapTupleHeader)
#define IP_DECOY_START			(IP_SPECIAL_START - IP_DECOY_SIZE)
#define IP_DECOY_LENGTH			SizeofHeapTupleHeader

StaticAssertDecl(IP_DECOY_LENGTH < IP_DECOY_SIZE, "heap has no tuple that short");

/* The first offset that a row or an undo record can have in the block. */
#define IpFirstOffset(block) \
	((block) == IP_DECOY_BLOCK ? FirstOffsetNumber + 1 : FirstOffsetNumber)

/* Metapage contents, right behind the page header. */
#define IP_UNDO_SLOTS			16

typedef struct IpMetaSlot
{
	BlockNumber entry;			/* a page of the ring: the one that takes new
								 * records, or one a few links before it;
								 * InvalidBlockNumber if there is no ring */
	uint32		npages;			/* pages in this slot's ring */
} IpMetaSlot;

/* Consecutive blocks that are undo pages. */
typedef struct IpUndoRun
{
	BlockNumber first;
	uint32		n;
} IpUndoRun;

#define IP_MAX_UNDO_RUNS	480

/*
 * Scans skip the blocks that are listed here, so a wrong bit would hide rows.
 * The page has its own checksum, because the server may have none.
 */
typedef struct IpMeta
{
	uint32		crc;			/* CRC-32C of all that follows, without unused
								 * runs */
	uint32		nruns;
	IpMetaSlot	slots[IP_UNDO_SLOTS];
	IpUndoRun	runs[IP_MAX_UNDO_RUNS]; /* in order; nruns of them are used */
} IpMeta;

StaticAssertDecl(offsetof(IpMeta, runs) == 8 + 8 * IP_UNDO_SLOTS, "metapage layout");

#define IpPageGetMeta(page) ((IpMeta *) PageGetContents(page))

/*
 * TIDBitmap refuses offsets above MaxHeapTuplesPerPage (291 with 8 kB pages),
 * so no row gets one.
 */
#define IP_MAX_ROWS_PER_PAGE	MaxHeapTuplesPerPage

/* ---- row locks ----------------------------------------------------------- */

/*
 * Rows of one data page that a transaction has locked in one mode.  They are
 * locked as long as the transaction runs.  Then its set is dead, and any
 * backend may reuse its place.  A row's lockers are the transactions of all of
 * the page's live sets that contain it.
 *
 * Sets are on the metapage, which is the first of a list of lock pages, and on
 * the other pages of that list.  They fill the page from its special space
 * downwards.  They have no line pointers, because heap code would read these.
 */
typedef struct IpLockSet
{
	IpXid		xid;
	BlockNumber block;
	uint8		mode;			/* LockTupleMode */
	uint8		unused[3];
	/* bit n: item n + 1 */
	uint8		rows[MAXALIGN((IP_MAX_ROWS_PER_PAGE + 7) / 8)];
} IpLockSet;

StaticAssertDecl(BLCKSZ != 8192 || sizeof(IpLockSet) == 56, "a lock set is 56 bytes");
StaticAssertDecl(sizeof(IpLockSet) % MAXIMUM_ALIGNOF == 0, "lock sets are aligned");

/*
 * Number of sets that fit into "bytes": behind a page header, or behind a
 * metapage with all of its runs.
 */
#define IpLockSetsIn(bytes)		((int) ((bytes) / sizeof(IpLockSet)))
#define IP_LOCK_SETS_PER_PAGE \
	IpLockSetsIn(IP_SPECIAL_START - SizeOfPageHeaderData)
#define IP_LOCK_SETS_OF_META \
	IpLockSetsIn(IP_SPECIAL_START - MAXALIGN(SizeOfPageHeaderData) - \
				 sizeof(IpMeta))

#define IpPageLockSets(page) \
	IpLockSetsIn(IP_SPECIAL_START - ((PageHeader) (page))->pd_upper)
#define IpPageLockSet(page, i) \
	((IpLockSet *) ((char *) (page) + IP_SPECIAL_START) - ((i) + 1))

#define IpLockSetHas(set, off) \
	(((set)->rows[((off) - 1) / 8] & (1 << (((off) - 1) % 8))) != 0)

/*
 * Line pointers of rows and undo records are redirections to heap code, which
 * thus does not take them for tuples.  Some heap code reads the tuple's header
 * all the same.  So lp_off is less than the item's start by IP_ITEM_BIAS,
 * which makes t_infomask the item's first two bytes.  See
 * docs/internals/heap-code.md.
 */
#define IP_ITEM_BIAS			offsetof(HeapTupleHeaderData, t_infomask)

StaticAssertDecl(IP_ITEM_BIAS <= SizeOfPageHeaderData, "lp_off cannot be negative");

/*
 * These two bytes, the stored hdr of a row or the kind and flags of an undo
 * record, tell heap code that the inserter has aborted, so that heap code
 * ignores the item.
 */
#define IP_HDR_HEAP_MASK		(HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID)
#define IP_HDR_HEAP_BITS		HEAP_XMIN_INVALID

StaticAssertDecl(IP_HDR_HEAP_MASK == 0x0300, "bits 8 and 9 of hdr are heap's");

#define IpHdrStore(hdr) \
	(((hdr) & 0x00FF) | (((hdr) & 0x3F00) << 2) | IP_HDR_HEAP_BITS)
#define IpHdrLoad(stored) \
	(((stored) & 0x00FF) | (((stored) >> 2) & 0x3F00))

/* ---- rows ---------------------------------------------------------------- */
#define IP_HDR_NATTS_MASK		0x07FF
#define IP_HDR_HASNULL			0x0800	/* body starts with a NULL bitmap (bit
										 * set: not NULL) */
#define IP_HDR_HASEXTERNAL		0x1000	/* some value is a TOAST pointer */
#define IP_HDR_SPECULATIVE		0x2000	/* ON CONFLICT: cid field holds the
										 * token */

#define IP_ROW_VERSION			0x01	/* version block present */
#define IP_ROW_DEFAULT			0x02	/* inserted by the page's default
										 * inserter */
#define IP_ROW_INSERTED			0x04	/* the version was made by INSERT: no
										 * older one */
#define IP_ROW_DELETED			0x08	/* the change that made this state was
										 * a delete */
#define IP_ROW_OVERLAID			0x20	/* version block covers the body's
										 * first bytes */
#define IP_ROW_MOVED			0x40	/* DELETED, by an update to another
										 * TID */
#define IP_ROW_CHANGED			0x80	/* DELETED, perhaps MOVED, by the
										 * page's default changer, without
										 * version block and undo record: the
										 * version before is visible to all,
										 * or (DEFAULT) made by the default
										 * inserter */

/*
 * In place of a row's state, this says that the item is an undo record at
 * home.  No row has both bits.
 */
#define IP_STATE_UNDO			(IP_ROW_VERSION | IP_ROW_DEFAULT)

#define IP_ROW_STATE			2	/* byte of the item */
#define IP_ROW_HDRSZ			3
#define IP_VERSION_BLOCK_SZ		10
/* parts of the version block */
#define IP_BLOCK_XID			0
#define IP_BLOCK_PTR			4	/* block */
#define IP_BLOCK_PTR_OFF		8	/* offset */
#define IP_ROW_MIN_BODY			IP_VERSION_BLOCK_SZ
#define IP_ROW_MIN_ITEM			(IP_ROW_HDRSZ + IP_ROW_MIN_BODY)

/* Largest row item: one row alone on a page. */
#define IP_MAX_ITEM \
	(BLCKSZ - SizeOfPageHeaderData - sizeof(IpSpecial) - sizeof(ItemIdData))
#define IP_MAX_BODY				(IP_MAX_ITEM - IP_ROW_HDRSZ)

/*
 * Room for items and their line pointers on an empty page.  Block 0 has no
 * room for the very largest row.
 */
#define IpPageRoom(block) \
	(IP_MAX_ITEM + sizeof(ItemIdData) - \
	 ((block) == IP_DECOY_BLOCK ? IP_DECOY_SIZE + sizeof(ItemIdData) : 0))

/* ---- undo records (items of undo pages) ---------------------------------- */
typedef enum IpUndoKind
{
	IP_UNDO_UPDATE = 2,			/* update in place */
	IP_UNDO_DELETE = 3,			/* delete, or update to another TID (FORWARD) */
	IP_UNDO_MOVES = 4			/* at home: where the default changer has
								 * moved rows to */
} IpUndoKind;

#define IP_REC_PREV			0x01	/* previous version block follows; else
									 * the previous version is visible to all */
#define IP_REC_PREV_INSERTED	0x02	/* previous version made by INSERT:
										 * its pointer is a cid */
#define IP_REC_SAVED		0x04	/* the 10 bytes that an overlaid row's
									 * block covers */
#define IP_REC_HDR			0x08	/* the previous row's hdr, where it
									 * differs */
#define IP_REC_FORWARD		0x10	/* DELETE: TID of the row's next version */
#define IP_REC_KEYS			0x20	/* the change excludes FOR KEY SHARE */
#define IP_REC_PARTITION	0x80	/* DELETE: the row moved to another
									 * partition */

#define IP_KIND_MASK		0x0F
#define IP_KIND_CID			0x80	/* in the kind's byte: a cid follows, else
									 * it is 0 */
#define IP_KIND_SKIP		0x40	/* in the kind's byte: a skip section
									 * follows; bits 4 and 5 have the lowest
									 * flags */

/*
 * Kind and flags as stored, in one word.  Heap code reads the flags' lowest
 * bits there, so these bits are in the kind's byte instead.  See IP_ITEM_BIAS.
 */
#define IpRecStore(kind, flags) \
	((kind) | (((flags) & 0x03) << 4) | (((flags) & 0xFC) << 8) | \
	 IP_HDR_HEAP_BITS)
#define IpRecLoadKind(stored) \
	((stored) & (IP_KIND_MASK | IP_KIND_CID | IP_KIND_SKIP))
#define IpRecLoadFlags(stored) \
	((((stored) >> 8) & 0xFC) | (((stored) >> 4) & 0x03))

/*
 * Record: kind (1) flags (1) xid, row block, row offset, [cid]
 *		   [prev xid, prev pointer] [saved (10)] [hdr (2)]
 *		   [forward TID (6)] [skip section] [UPDATE: delta]
 *
 * At home, a byte IP_STATE_UNDO precedes xid (4), and there is no row block:
 * it is the record's own block.  In undo pages, xid is a zigzag difference,
 * see ip_undo_xid_origin().
 *
 * Row block and what follows are varints, where no size is given.  The
 * previous xid is the zigzag difference to xid.  The previous pointer is a cid
 * (PREV_INSERTED), or the zigzag difference of its block to the record's own
 * and its offset.
 *
 * A skip section: length of the body after the change, index, number of
 * pointers (1), and for each of them block (zigzag difference), offset, xid
 * (zigzag difference).  See IpUndoSkip.
 */
/* at home: kind, flags, IP_STATE_UNDO, xid, row offset */
#define IP_HOME_MIN_SZ			8
/* up to the row's offset, at most */
#define IP_REC_MAX_START		(2 + 5 + 5 + 3)
/* everything but the delta, at most */
#define IP_REC_MAX_HEAD \
	(IP_REC_MAX_START + 5 + 13 + 10 + 2 + 6 + IP_REC_MAX_SKIP)
#define IP_REC_MAX_SKIP			(5 + 5 + 1 + 2 * (5 + 3 + 5))
#define IP_MAX_UNDO_REC		IP_MAX_ITEM

/*
 * While a page has a default changer, it has at most one IP_UNDO_MOVES: kind
 * (1) flags (1) IP_STATE_UNDO, and runs.  A statement that moves a page's rows
 * one after another needs one run for each page that takes them.
 */
typedef struct IpMoveRun
{
	uint16		first;			/* the first of n rows that have moved; also
								 * has IP_MOVE_KEYS */
	uint16		n;				/* number of rows */
	ItemPointerData to;			/* TID of the first; the others are at the
								 * offsets behind it */
} IpMoveRun;

#define IP_MOVE_KEYS		0x8000	/* the moves exclude FOR KEY SHARE */
#define IP_MOVES_HDRSZ		3

StaticAssertDecl(sizeof(IpMoveRun) == 10, "a run of moves is 10 bytes");

/* Six bytes: an undo record's address, or a cid (block) with offset 0. */
typedef struct IpPtr
{
	BlockNumber block;
	OffsetNumber off;
} IpPtr;

#define IpPtrEquals(a, b) ((a).block == (b).block && (a).off == (b).off)

static inline IpPtr
ip_ptr_cid(CommandId cid)
{
	IpPtr		ptr = {(BlockNumber) cid, 0};

	return ptr;
}

#endif							/* IP_FORMAT_H */
