/*-------------------------------------------------------------------------
 * ip_undo.h
 *	  Reading undo records.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UNDO_H
#define IP_UNDO_H

#include "ip_undo_rec.h"

/*
 * Returns the block, locked, if it may be an undo page, else InvalidBuffer.
 * The caller checks the page's kind again.  A stale or damaged reference may
 * lead to a data page, or to a free or new page that is about to become one.
 * The caller may already hold that page's lock, so the kind is checked before
 * waiting for the lock.  A backend that holds such a page has held it since
 * before it could become an undo page again.  A page that the server refuses
 * to read is not locked either.  *waited, if not NULL: the backend had to wait
 * for the lock, which is exclusive.
 */
extern Buffer ip_undo_lock_page(Relation rel, BlockNumber block, int mode,
								bool *waited);

/*
 * Read the record at ptr if it is about row (NULL: any row; then the caller
 * holds no page's lock); false if there is no such record, or it is gone.  buf
 * must have BLCKSZ bytes, and rec points into it.  home: the row's page,
 * locked, or a copy of it; NULL if the caller has not locked it.  xid: the
 * transaction of the change, if the caller accepts no other; else IP_XID_NONE.
 * Takes and releases a share lock on the record's page, unless it is home.
 * *problem: why the record cannot be read, or NULL.  soft: a page that the
 * server refuses to read counts as having no such record; otherwise the server
 * raises its error.
 */
extern bool ip_undo_find(Relation rel, IpPtr ptr, const ItemPointerData *row,
						 IpXid xid, Page home, bool soft, uint8 *buf,
						 IpUndoRec *rec, const char **problem);

/*
 * Like ip_undo_find, for the row's change by xid.  But rec may point into the
 * row's page or into a copy of an undo page, and is valid until the page is
 * changed or undo is read again.  A damaged record is treated as one that is
 * gone.  Lock: home share, or it is a private copy.
 */
extern bool ip_undo_peek(Relation rel, IpPtr ptr, const ItemPointerData *row,
						 IpXid xid, Page home, uint8 *buf, IpUndoRec *rec);

/*
 * Returns the first bytes of a row that is overlaid by its change by xid, if
 * the record is on the row's page or in a copy, and not damaged up to these
 * bytes; else NULL.  They are valid until the page is changed or undo is read
 * again.  Lock: home share, or it is a private copy.
 */
extern const uint8 *ip_undo_peek_saved(Relation rel, IpPtr ptr,
									   const ItemPointerData *row, IpXid xid,
									   Page home);

/*
 * Write the body of a row before its newest change, which the record is about,
 * to body, which has room for "room" bytes.  Returns its length; -1 if the
 * record does not fit the row.
 */
extern int	ip_undo_body(const IpRow *row, const IpUndoRec *rec, uint8 *body,
						 uint32 room);

/*
 * Returns whether all rows on the list of items are sound, including the bytes
 * of overlaid rows that records at home have.  Lock: share.
 */
extern bool ip_undo_rows_are_sound(BlockNumber block, Page page,
								   const IpItemList *list);

/* Like ip_undo_find.  Errors: data_corrupted. */
extern bool ip_undo_read(Relation rel, IpPtr ptr, const ItemPointerData *row,
						 IpXid xid, Page home, uint8 *buf, IpUndoRec *rec);

/*
 * Copy the item at ptr of the page, which is an undo page or, for a record at
 * home, a data page, to buf, which has BLCKSZ bytes, and decode it; rec points
 * into buf.  *found: there is such an item.  Returns what is wrong with it, or
 * NULL.  Lock: share.
 */
extern const char *ip_undo_item(Page page, IpPtr ptr, uint8 *buf,
								IpUndoRec *rec, bool *found);

#endif							/* IP_UNDO_H */
