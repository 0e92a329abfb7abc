/*-------------------------------------------------------------------------
 * ip_undo.h
 *	  Reading undo records.
 *-------------------------------------------------------------------------
 */
#ifndef IP_UNDO_H
#define IP_UNDO_H

#include "ip_undo_rec.h"

/*
 * The block, locked, if it may be an undo page; InvalidBuffer if it is none.  The caller checks
 * the page's kind again.  A stale or damaged reference may lead to a data page, or to a free or
 * new page that is about to become one.  The caller may already hold that page's lock, so the
 * kind is checked before waiting for the lock.  A backend that holds such a page has held it since
 * before it could become an undo page again.  Nor is a page locked that the
 * server refuses to read.  *waited, if not NULL: the lock, which is exclusive, was not to be
 * had at once.
 */
extern Buffer ip_undo_lock_page(Relation rel, BlockNumber block, int mode, bool *waited);

/*
 * Read the record at ptr if it is about row (any, if NULL; then the caller holds no page's lock); false if it is not there (any
 * more).  buf must have BLCKSZ bytes, and rec points into it.  home: the row's page, locked, or
 * a copy of it; or NULL: the caller has not locked it.  xid: who made the change, if the caller wants no
 * other, nor a row lock; else IP_XID_NONE.  Takes and releases a share lock on the
 * record's page, unless it is home.  *problem: why it cannot be read, or NULL.
 * soft: on a page that the server refuses to read it is not there; else that is
 * the server's error.
 */
extern bool ip_undo_find(Relation rel, IpPtr ptr, const ItemPointerData *row, IpXid xid, Page home,
						 bool soft, uint8 *buf, IpUndoRec *rec, const char **problem);

/*
 * The same for the row's change by xid, but rec may point into the row's page or into a copy of an undo page, and is valid until the page is changed
 * or undo is read again.  Damage is not told apart from a record that is gone.  Lock: home share, or it is a private copy.
 */
extern bool ip_undo_peek(Relation rel, IpPtr ptr, const ItemPointerData *row, IpXid xid, Page home,
						 uint8 *buf, IpUndoRec *rec);

/*
 * The first bytes of a row that is overlaid by its change by xid, if the record is on the row's page or in a copy; else NULL, and NULL if
 * it is damaged up to these.  Valid as long.  Lock: as there.
 */
extern const uint8 *ip_undo_peek_saved(Relation rel, IpPtr ptr, const ItemPointerData *row, IpXid xid, Page home);

/*
 * The body of a row before its newest change, which the record is about, goes to body, which has room for so many bytes.  Its
 * length; -1: the record does not fit the row.
 */
extern int	ip_undo_body(const IpRow *row, const IpUndoRec *rec, uint8 *body, uint32 room);

/* Are the items on the list no rows, or sound ones, with the bytes of overlaid rows that records at home have?  Lock: share. */
extern bool ip_undo_rows_are_sound(BlockNumber block, Page page, const IpItemList *list);

/* As ip_undo_find.  Errors: data_corrupted. */
extern bool ip_undo_read(Relation rel, IpPtr ptr, const ItemPointerData *row, IpXid xid, Page home,
						 uint8 *buf, IpUndoRec *rec);

/*
 * Copy the item at ptr of the page, which is an undo page or (a record at home) a data page, to buf, which
 * has BLCKSZ bytes, and decode it; rec points into buf.  *found: there is such an item.  What is wrong with it, or NULL.  Lock: share.
 */
extern const char *ip_undo_item(Page page, IpPtr ptr, uint8 *buf, IpUndoRec *rec, bool *found);

#endif							/* IP_UNDO_H */
