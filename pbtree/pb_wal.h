/*-------------------------------------------------------------------------
 * pb_wal.h
 *	  The resource manager's functions; pb_handler.c has its table.
 *-------------------------------------------------------------------------
 */
#ifndef PB_WAL_H
#define PB_WAL_H

#include "access/xlogreader.h"
#include "lib/stringinfo.h"

/* Redo a record.  All its pages stay locked until all are changed. */
extern void pb_wal_redo(XLogReaderState *record);

/* Describe a record. */
extern void pb_wal_desc(StringInfo buf, XLogReaderState *record);

/* The name of a record's kind, or NULL. */
extern const char *pb_wal_identify(uint8 info);

/* Clear what is not logged, for wal_consistency_checking. */
extern void pb_wal_mask(char *pagedata, BlockNumber block);

#endif							/* PB_WAL_H */
