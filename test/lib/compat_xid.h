/*-------------------------------------------------------------------------
 * compat_xid.h
 *	  Names that differ between PostgreSQL's versions, for set_next_xid.c.
 *-------------------------------------------------------------------------
 */
#ifndef COMPAT_XID_H
#define COMPAT_XID_H

#if PG_VERSION_NUM < 170000
#define TransamVariables		ShmemVariableCache
#endif

#endif							/* COMPAT_XID_H */
