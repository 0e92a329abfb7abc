/*-------------------------------------------------------------------------
 * wp_port.h
 *	  First include of every source file: the server's or the frontend's
 *	  base header.
 *-------------------------------------------------------------------------
 */
#ifndef WP_PORT_H
#define WP_PORT_H

#ifdef FRONTEND
#include "postgres_fe.h"
#else
#include "postgres.h"
#endif

#endif							/* WP_PORT_H */
