/*-------------------------------------------------------------------------
 * pagedelta_generic_xlog.h
 *	  The server's names for pagedelta's functions.
 *
 * An extension that uses generic WAL is compiled with
 *
 *	-include pagedelta_generic_xlog.h
 *
 * and needs no other change: see docs/users/pagedelta.md.
 *-------------------------------------------------------------------------
 */
#ifndef PAGEDELTA_GENERIC_XLOG_H
#define PAGEDELTA_GENERIC_XLOG_H

#include "postgres.h"

#include "pagedelta_pg.h"

#define GenericXLogState			PageDeltaXLogState
#define GenericXLogStart			pagedelta_xlog_start
#define GenericXLogRegisterBuffer	pagedelta_xlog_register
#define GenericXLogFinish			pagedelta_xlog_finish
#define GenericXLogAbort			pagedelta_xlog_abort

#endif							/* PAGEDELTA_GENERIC_XLOG_H */
