/*-------------------------------------------------------------------------
 * pb_toast.h
 *	  A value of a TOAST table that may be gone.
 *-------------------------------------------------------------------------
 */
#ifndef PB_TOAST_H
#define PB_TOAST_H

/*
 * The value that a pointer into a TOAST table stands for, as it was stored, maybe compressed; palloc'd.  NULL: not all of its chunks
 * are there, which core's detoasting makes an error.  Takes and releases AccessShareLock of the TOAST table and its indexes.
 */
extern struct varlena *pb_toast_fetch(const struct varlena *pointer);

#endif							/* PB_TOAST_H */
