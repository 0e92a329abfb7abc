/*-------------------------------------------------------------------------
 * pb_wal.h
 *	  The resource manager's functions; pb_handler.c has its table.
 *-------------------------------------------------------------------------
 */
#ifndef PB_WAL_H
#define PB_WAL_H

#include "access/xlogreader.h"
#include "lib/stringinfo.h"

extern void pb_wal_redo(XLogReaderState *record);
extern void pb_wal_desc(StringInfo buf, XLogReaderState *record);
extern const char *pb_wal_identify(uint8 info);
extern void pb_wal_mask(char *pagedata, BlockNumber block);

#endif							/* PB_WAL_H */
