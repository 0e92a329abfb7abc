/*-------------------------------------------------------------------------
 * wp_archive.h
 *	  The marker of an archive: a file that says that a directory is one, and
 *	  of which cluster.
 *
 * A mount point of an archive's file system looks like an empty archive.
 * Without a marker, a missing file would be taken for the end of WAL.
 *-------------------------------------------------------------------------
 */
#ifndef WP_ARCHIVE_H
#define WP_ARCHIVE_H

#include "wp_io.h"

#define WP_MARKER	"walpack.archive"

/*
 * Make the directory an archive, of the cluster with this system identifier,
 * or (0) of the first that archives there.  An existing archive is unchanged,
 * and must not be of another cluster.  The marker is durable when true is
 * returned.
 */
extern bool wp_archive_init(const char *directory, uint64 system,
							WpError *error);

/*
 * True if the directory is an archive, and not of another cluster than this
 * one (0: unknown).  With claim, an archive of no cluster becomes this
 * cluster's.
 */
extern bool wp_archive_check(const char *directory, uint64 system, bool claim,
							 WpError *error);

/*
 * The system identifier of the cluster with this data directory; 0 if there is
 * none.
 */
extern uint64 wp_archive_cluster(const char *pgdata);

#endif							/* WP_ARCHIVE_H */
