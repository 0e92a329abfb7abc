/*-------------------------------------------------------------------------
 * pb_toast.h
 *	  Reading of a value of a TOAST table that may be lost.
 *-------------------------------------------------------------------------
 */
#ifndef PB_TOAST_H
#define PB_TOAST_H

/*
 * Read the value of a TOAST pointer as it was stored, maybe compressed;
 * palloc'd.  Returns NULL if not all of its chunks exist, which core's
 * detoasting makes an error.  It takes and releases AccessShareLock on the
 * TOAST table and its indexes.
 */
extern struct varlena *pb_toast_fetch(const struct varlena *pointer);

#endif							/* PB_TOAST_H */
