/*-------------------------------------------------------------------------
 * wp_io.h
 *	  Reading and writing of files, with all that durability takes.
 *
 * Functions that return false, or a failure, leave a message.
 *-------------------------------------------------------------------------
 */
#ifndef WP_IO_H
#define WP_IO_H

#include <sys/types.h>

#include "wp_file.h"

#define WP_TMP_SUFFIX		".tmp"

/* Leave a message; return false. */
extern bool wp_io_fail(WpFiles *f, const char *fmt,...) pg_attribute_printf(2, 3);
extern bool wp_io_fail_errno(WpFiles *f, const char *what, const char *path);

/* Open a regular file of at most 4 GB; sets f->missing. */
extern bool wp_io_open(WpFiles *f, const char *path, int *fd, uint64 *size);

/* Read and write all of len bytes. */
extern bool wp_io_read(WpFiles *f, int fd, const char *path, void *buf, size_t len);
extern bool wp_io_write(WpFiles *f, int fd, const char *path, const void *buf, size_t len);

/* Bring the directory that path is in to disk. */
extern bool wp_io_sync_directory(WpFiles *f, const char *path);

/* Is the file that was opened still the one of that name? */
extern bool wp_io_same_file(int fd, const char *path);

/* A file that is written under a temporary name. */
typedef struct WpOutput
{
	int			fd;
	char		tmp[MAXPGPATH];
} WpOutput;

/* What became of the file. */
typedef enum WpOutcome
{
	WP_OUTCOME_FAILED,
	WP_OUTCOME_DONE,
	WP_OUTCOME_EXISTS			/* and nothing was done */
} WpOutcome;

/*
 * The mode of a file like this one, and of one at that path: the group may
 * read it if it may read the source, or the directory, as in a cluster of
 * initdb -g.  The umask has the last word; the server's own suits its cluster.
 */
extern mode_t wp_io_mode_of(int fd);
extern mode_t wp_io_mode_in(const char *path);

/* Create the temporary file of dst, or take over one that nobody has locked. */
extern bool wp_output_open(WpFiles *f, WpOutput *out, const char *dst, mode_t mode);

/* Remove it. */
extern void wp_output_abandon(WpOutput *out);

/* Bring it to disk, if it is to be durable, and give it its name. */
extern WpOutcome wp_output_finish(WpFiles *f, WpOutput *out, const char *dst, bool durable, bool replace);

#endif							/* WP_IO_H */
