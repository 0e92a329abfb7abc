/*-------------------------------------------------------------------------
 * pb_scan.h
 *	  Scans.
 *-------------------------------------------------------------------------
 */
#ifndef PB_SCAN_H
#define PB_SCAN_H

#include "access/genam.h"
#include "access/relscan.h"
#include "nodes/tidbitmap.h"

/* Begin a scan, as ambeginscan does. */
extern IndexScanDesc pb_scan_begin(Relation rel, int nkeys, int norderbys);

/* Set conditions, as amrescan does.  Lock: none on a page. */
extern void pb_scan_restart(IndexScanDesc scan, ScanKey keys, int nkeys,
							ScanKey orderbys, int norderbys);

/*
 * Move to the next row.  Returns false if there is none.  On return the page
 * is pinned where rows must not be removed, and not locked.
 */
extern bool pb_scan_next(IndexScanDesc scan, ScanDirection dir);

/* Add all rows to the bitmap; returns their number. */
extern int64 pb_scan_bitmap(IndexScanDesc scan, TIDBitmap *bitmap);

/* Leave the pages, and free the memory. */
extern void pb_scan_end(IndexScanDesc scan);

/* Remember the current row. */
extern void pb_scan_mark(IndexScanDesc scan);

/* Return to the row that was remembered. */
extern void pb_scan_return(IndexScanDesc scan);

#endif							/* PB_SCAN_H */
