/*-------------------------------------------------------------------------
 * wp_archive.h
 *	  The marker of an archive: a file that says that a directory is one, and
 *	  of which cluster.
 *
 * A directory where an archive's file system is to be mounted looks like an
 * empty archive.  Without a marker "the archive has no such file" would be
 * taken for the end of WAL.
 *-------------------------------------------------------------------------
 */
#ifndef WP_ARCHIVE_H
#define WP_ARCHIVE_H

#include "wp_io.h"

#define WP_MARKER	"walpack.archive"

/*
 * Make the directory an archive, of the cluster with this system identifier, or
 * (0) of the first that archives there.  One that is an archive already stays
 * what it is, and must not be of another cluster.  On disk when true is
 * returned.
 */
extern bool wp_archive_init(const char *directory, uint64 system, WpError *error);

/*
 * Is the directory an archive, and not of another cluster than this one (0: not
 * known)?  claim: from now on it is this one's, if it was nobody's.
 */
extern bool wp_archive_check(const char *directory, uint64 system, bool claim, WpError *error);

/*
 * The system identifier of the cluster with this data directory; 0: none is
 * there.
 */
extern uint64 wp_archive_cluster(const char *pgdata);

#endif							/* WP_ARCHIVE_H */
