/*-------------------------------------------------------------------------
 * ip_wal.h
 *	  WAL records: reading, redo, description.
 *-------------------------------------------------------------------------
 */
#ifndef IP_WAL_H
#define IP_WAL_H

#include "access/xlogreader.h"
#include "lib/stringinfo.h"

#include "ip_change.h"

/* A record's main data, decoded. */
typedef struct IpMainData
{
	IpXid		conflict;		/* or IP_XID_NONE */
	uint16		visible;		/* a bit for each block that was all-visible
								 * before */
	IpXid		named;			/* newest xid on the pages, or IP_XID_NONE */
	const uint8 *logical;		/* or NULL */
	uint32		logical_len;
} IpMainData;

extern void ip_wal_main_data(XLogReaderState *record, IpMainData *data);

/* The resource manager's functions; ip_init.c has its table. */
extern void ip_wal_redo(XLogReaderState *record);
extern void ip_wal_desc(StringInfo buf, XLogReaderState *record);
extern const char *ip_wal_identify(uint8 info);
extern void ip_wal_mask(char *pagedata, BlockNumber block);

#endif							/* IP_WAL_H */
