/*-------------------------------------------------------------------------
 * pb_tids.h
 *	  An item's TIDs, packed.
 *-------------------------------------------------------------------------
 */
#ifndef PB_TIDS_H
#define PB_TIDS_H

#include "port/pg_bswap.h"
#include "storage/itemptr.h"

/* The maximum size of a single TID. */
#define PB_TID_MAX_LEN			7

/*
 * The maximum number of TIDs of an item: a posting list has at least a byte
 * for each.
 */
#define PB_MAX_TIDS				1024

/* Write a TID.  Returns its length, at most PB_TID_MAX_LEN. */
extern int	pb_tid_put(uint8 *to, const ItemPointerData *tid);

/* Read a TID.  Returns the address behind it, or NULL if it is damaged. */
extern const uint8 *pb_tid_get(const uint8 *p, const uint8 *end,
							   ItemPointer tid);

/* The change that adds a TID to a list: bytes that replace others. */
typedef struct PbTidEdit
{
	int			at;				/* offset behind the list's beginning */
	int			remove;
	int			len;
	uint8		bytes[20];
	uint16		list_len;		/* new beginning of the list */
} PbTidEdit;

/* Like pb_tid_get, where eight bytes at p can be read, as on a page. */
static inline const uint8 *
pb_tid_load(const uint8 *p, const uint8 *end, ItemPointer tid)
{
	uint64		w;
	int			len;

	memcpy(&w, p, sizeof(w));
	w = pg_ntoh64(w);
	len = 3 + (w >> 62);
	if (len == 6 || end - p < len)
		return pb_tid_get(p, end, tid);
	w = (w & UINT64CONST(0x3FFFFFFFFFFFFFFF)) >> (64 - len * 8);
	if ((w & 0x1FF) == 0)
		return NULL;
	ItemPointerSet(tid, (BlockNumber) (w >> 9), w & 0x1FF);
	return p + len;
}

/* The size of b in a list behind a.  a must be less. */
extern int	pb_posting_distance(const ItemPointerData *a,
								const ItemPointerData *b);

/*
 * Write a list of more than one TID, ascending.  Returns its length, or 0 if
 * there is no room.
 */
extern int	pb_posting_put(uint8 *to, int room, const ItemPointerData *tids,
						   int n);

/*
 * Read a list of at most PB_MAX_TIDS.  Returns the address behind it, or NULL
 * if it is damaged.
 */
extern const uint8 *pb_posting_get(const uint8 *p, const uint8 *end,
								   ItemPointer tids, int *n);

/*
 * Compute the change that adds a TID to the list.  Returns false if the list
 * must be rewritten, or is damaged.
 */
extern bool pb_posting_add(const uint8 *p, const uint8 *end,
						   const ItemPointerData *tid, PbTidEdit *edit);

/* Returns the address behind an item's TIDs, or NULL if they are damaged. */
extern const uint8 *pb_tids_end(const uint8 *p, const uint8 *end, bool posting);

/*
 * Read a list's first TID.  Returns the address behind it, or NULL if it is
 * damaged.
 */
extern const uint8 *pb_posting_first(const uint8 *p, const uint8 *end,
									 ItemPointer tid);

#endif							/* PB_TIDS_H */
