/*-------------------------------------------------------------------------
 * wp_io.h
 *	  Reading and writing of files, with all that durability takes.
 *
 * Functions that return false, or a failure, say why in *error.
 *-------------------------------------------------------------------------
 */
#ifndef WP_IO_H
#define WP_IO_H

#include <sys/types.h>

#include "wp_format.h"

#define WP_TMP_SUFFIX		".tmp"
#define WP_MESSAGE_SIZE		2048

/* A description of a failure, which the caller provides. */
typedef struct WpError
{
	char		message[WP_MESSAGE_SIZE];
} WpError;

/* Write the message; return false. */
extern bool wp_io_fail(WpError *error, const char *fmt,...)
			pg_attribute_printf(2, 3);

/* Write the message, and the reason in errno; return false. */
extern bool wp_io_fail_errno(WpError *error, const char *fmt,...)
			pg_attribute_printf(2, 3);

/* Open a regular file of at most 4 GB. */
extern bool wp_io_open(const char *path, int *fd, uint64 *size, WpError *error);

/* Read and write all of len bytes. */
extern bool wp_io_read(int fd, const char *path, void *buf, size_t len,
					   WpError *error);
extern bool wp_io_write(int fd, const char *path, const void *buf, size_t len,
						WpError *error);

/* Flush the directory of path to disk. */
extern bool wp_io_sync_directory(const char *path, WpError *error);

/* True if the file that was opened still has that name. */
extern bool wp_io_same_file(int fd, const char *path);

/* A file that is written under a temporary name. */
typedef struct WpOutput
{
	int			fd;
	char		tmp[MAXPGPATH];
} WpOutput;

/* The outcome for the file. */
typedef enum WpOutcome
{
	WP_OUTCOME_FAILED,
	WP_OUTCOME_DONE,
	WP_OUTCOME_EXISTS			/* and nothing was done */
} WpOutcome;

/*
 * The mode of a file like this one, and of one at that path: the group may
 * read it if it may read the source, or the directory, as in a cluster of
 * initdb -g.  The umask still applies; the server's own suits its cluster.
 */
extern mode_t wp_io_mode_of(int fd);
extern mode_t wp_io_mode_in(const char *path);

/* Create the temporary file of dst, or take over one that nobody has locked. */
extern bool wp_output_open(WpOutput *out, const char *dst, mode_t mode,
						   WpError *error);

/* Remove it. */
extern void wp_output_abandon(WpOutput *out);

/* Flush it to disk, if it is to be durable, and give it its name. */
extern WpOutcome wp_output_finish(WpOutput *out, const char *dst, bool durable,
								  bool replace, WpError *error);

#endif							/* WP_IO_H */
