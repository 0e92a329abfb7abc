/*-------------------------------------------------------------------------
 * pb_tids.h
 *	  An item's TIDs, packed.
 *-------------------------------------------------------------------------
 */
#ifndef PB_TIDS_H
#define PB_TIDS_H

#include "port/pg_bswap.h"
#include "storage/itemptr.h"

/* A TID of its own needs at most so many bytes. */
#define PB_TID_MAX_LEN			7

/* A posting list has at least a byte for each TID. */
#define PB_MAX_TIDS				1024

/* Write a TID; its length, at most PB_TID_MAX_LEN. */
extern int	pb_tid_put(uint8 *to, const ItemPointerData *tid);

/* Read a TID; what is behind it, or NULL if it is damaged. */
extern const uint8 *pb_tid_get(const uint8 *p, const uint8 *end, ItemPointer tid);

/* What adds a TID to a list: bytes that come in place of others. */
typedef struct PbTidEdit
{
	int			at;				/* behind the list's beginning */
	int			remove;
	int			len;
	uint8		bytes[20];
	uint16		list_len;		/* what the list then begins with */
} PbTidEdit;

/* As pb_tid_get, where eight bytes at p can be read, on a page say. */
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

/* Bytes that b takes in a list behind a.  a must be less. */
extern int	pb_posting_distance(const ItemPointerData *a, const ItemPointerData *b);

/*
 * Write a list of more than one TID, ascending; its length, or 0 if there is
 * no room.
 */
extern int	pb_posting_put(uint8 *to, int room, const ItemPointerData *tids, int n);

/*
 * Read a list of at most PB_MAX_TIDS; what is behind it, or NULL if it is
 * damaged.
 */
extern const uint8 *pb_posting_get(const uint8 *p, const uint8 *end, ItemPointer tids, int *n);

/*
 * How the list gets another TID; false if it must be written anew, or is
 * damaged.
 */
extern bool pb_posting_add(const uint8 *p, const uint8 *end, const ItemPointerData *tid, PbTidEdit *edit);

/* What is behind an item's TIDs, or NULL if they are damaged. */
extern const uint8 *pb_tids_end(const uint8 *p, const uint8 *end, bool posting);

/* Read a list's first TID; what is behind it, or NULL if it is damaged. */
extern const uint8 *pb_posting_first(const uint8 *p, const uint8 *end, ItemPointer tid);

#endif							/* PB_TIDS_H */
