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

extern IndexScanDesc pb_scan_begin(Relation rel, int nkeys, int norderbys);
extern void pb_scan_restart(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool pb_scan_next(IndexScanDesc scan, ScanDirection dir);
extern int64 pb_scan_bitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void pb_scan_end(IndexScanDesc scan);
extern void pb_scan_mark(IndexScanDesc scan);
extern void pb_scan_return(IndexScanDesc scan);

#endif							/* PB_SCAN_H */
