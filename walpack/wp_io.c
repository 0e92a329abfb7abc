/*-------------------------------------------------------------------------
 * wp_io.c
 *	  Reading and writing of files, with all that durability takes.
 *
 * A file is written under its name and ".tmp", flushed to disk, and renamed;
 * then the directory is flushed.  So a crash leaves at most a file ".tmp",
 * which the next attempt takes over.  Its writer holds a lock on it: two
 * archivers at work in one directory do not write into one file.
 *
 * An existing file is not replaced, even if it appears at the last moment:
 * renameat2() with RENAME_NOREPLACE, or link() where the system or the file
 * system does not have that.  Only where neither works, a test for the file
 * just before rename() must suffice.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wp_io.h"

/* ---- messages ---- */

bool
wp_io_fail(WpError *error, const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	vsnprintf(error->message, sizeof(error->message), fmt, args);
	va_end(args);
	return false;
}

bool
wp_io_fail_errno(WpError *error, const char *fmt,...)
{
	const char *reason = strerror(errno);
	va_list		args;
	size_t		len;

	va_start(args, fmt);
	vsnprintf(error->message, sizeof(error->message), fmt, args);
	va_end(args);
	len = strlen(error->message);
	snprintf(error->message + len, sizeof(error->message) - len, ": %s",
			 reason);
	return false;
}

/* ---- plain reading and writing ---- */

bool
wp_io_open(const char *path, int *fd, uint64 *size, WpError *error)
{
	struct stat st;

	/* without O_NONBLOCK, open() would wait for a FIFO */
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
	{
		/* that of a socket */
		if (errno == ENXIO)
			return wp_io_fail(error, "\"%s\" is not a regular file", path);
		return wp_io_fail_errno(error, "could not open file \"%s\"", path);
	}
	if (fstat(*fd, &st) != 0)
		wp_io_fail_errno(error, "could not stat file \"%s\"", path);
	else if (!S_ISREG(st.st_mode))
		wp_io_fail(error, "\"%s\" is not a regular file", path);
	else if ((uint64) st.st_size > WP_MAX_FILE)
		wp_io_fail(error, "\"%s\" has more than 4 GB", path);
	else
	{
		*size = st.st_size;
		return true;
	}
	close(*fd);
	return false;
}

bool
wp_io_read(int fd, const char *path, void *buf, size_t len, WpError *error)
{
	for (size_t done = 0; done < len;)
	{
		ssize_t		n = read(fd, (char *) buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return wp_io_fail_errno(error, "could not read file \"%s\"", path);
		if (n == 0)
			return wp_io_fail(error, "file \"%s\" ends too early", path);
		done += n;
	}
	return true;
}

bool
wp_io_write(int fd, const char *path, const void *buf, size_t len,
			WpError *error)
{
	for (size_t done = 0; done < len;)
	{
		ssize_t		n;

		errno = 0;
		n = write(fd, (const char *) buf + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
		{
			if (errno == 0)
				errno = ENOSPC;
			return wp_io_fail_errno(error, "could not write file \"%s\"",
									path);
		}
		done += n;
	}
	return true;
}

/* Get the directory of path. */
static void
directory_of(const char *path, char *dir)
{
	char	   *slash;

	strlcpy(dir, path, MAXPGPATH);
	slash = strrchr(dir, '/');
	if (slash == NULL)
		strlcpy(dir, ".", MAXPGPATH);
	else
		slash[slash == dir ? 1 : 0] = '\0';
}

bool
wp_io_sync_directory(const char *path, WpError *error)
{
	char		dir[MAXPGPATH];
	int			fd;
	bool		ok;

	directory_of(path, dir);
	fd = open(dir, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return wp_io_fail_errno(error, "could not open file \"%s\"", dir);
	/* some file systems can't flush directories */
	ok = fsync(fd) == 0 || errno == EBADF || errno == EINVAL;
	if (!ok)
		wp_io_fail_errno(error, "could not fsync file \"%s\"", dir);
	close(fd);
	return ok;
}

/* ---- the temporary file ---- */

/* True if the file that was opened still has that name. */
bool
wp_io_same_file(int fd, const char *path)
{
	struct stat a;
	struct stat b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino;
}

/* found: stat() succeeded. */
static mode_t
mode_like(bool found, const struct stat *st)
{
	return found && (st->st_mode & S_IRGRP) ? 0640 : 0600;
}

mode_t
wp_io_mode_of(int fd)
{
	struct stat st;
	bool		found = fstat(fd, &st) == 0;

	return mode_like(found, &st);
}

mode_t
wp_io_mode_in(const char *path)
{
	char		dir[MAXPGPATH];
	struct stat st;
	bool		found;

	directory_of(path, dir);
	found = stat(dir, &st) == 0;
	return mode_like(found, &st);
}

/* Open the temporary file, and lock it; sets *links. */
static bool
open_tmp(WpOutput *out, mode_t mode, int *links, WpError *error)
{
	struct stat st;

	out->fd = open(out->tmp,
				   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
				   O_NOCTTY,
				   mode);
	if (out->fd < 0)
		return wp_io_fail_errno(error, "could not create file \"%s\"",
								out->tmp);
	if (fstat(out->fd, &st) != 0)
		wp_io_fail_errno(error, "could not stat file \"%s\"", out->tmp);
	else if (!S_ISREG(st.st_mode))
		wp_io_fail(error, "\"%s\" is not a regular file", out->tmp);
	else if (flock(out->fd, LOCK_EX | LOCK_NB) != 0)
		wp_io_fail(error, "could not lock file \"%s\": %s", out->tmp,
				   strerror(errno));
	else if (!wp_io_same_file(out->fd, out->tmp))
		wp_io_fail(error, "file \"%s\" is in use by another process", out->tmp);

	/*
	 * now that it is locked: another archiver may have given it its final
	 * name
	 */
	else if (fstat(out->fd, &st) != 0)
		wp_io_fail_errno(error, "could not stat file \"%s\"", out->tmp);
	else
	{
		*links = st.st_nlink;
		return true;
	}
	close(out->fd);
	return false;
}

bool
wp_output_open(WpOutput *out, const char *dst, mode_t mode, WpError *error)
{
	int			links;

	if (snprintf(out->tmp, sizeof(out->tmp), "%s%s", dst, WP_TMP_SUFFIX) >=
		(int) sizeof(out->tmp))
		return wp_io_fail(error, "path is too long: \"%s\"", dst);
	if (!open_tmp(out, mode, &links, error))
		return false;
	if (links > 1)
	{
		/* a crash between link() and unlink(): this is an archived file, too */
		unlink(out->tmp);
		close(out->fd);
		if (!open_tmp(out, mode, &links, error))
			return false;
	}
	if (ftruncate(out->fd, 0) == 0)
		return true;
	wp_io_fail_errno(error, "could not truncate file \"%s\"", out->tmp);
	close(out->fd);
	return false;
}

void
wp_output_abandon(WpOutput *out)
{
	unlink(out->tmp);
	close(out->fd);
}

/*
 * Give the file its name, unless one of that name exists: then returns -1, and
 * errno is EEXIST.
 */
static int
rename_to_new(const char *tmp, const char *dst)
{
	struct stat st;

#ifdef RENAME_NOREPLACE
	if (renameat2(AT_FDCWD, tmp, AT_FDCWD, dst, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
#endif
	if (link(tmp, dst) == 0)
	{
		unlink(tmp);
		return 0;
	}
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
		return -1;
	if (lstat(dst, &st) == 0)
	{
		errno = EEXIST;
		return -1;
	}
	return rename(tmp, dst);
}

/* Flush the file, if needed, and give it its name. */
WpOutcome
wp_output_finish(WpOutput *out, const char *dst, bool durable, bool replace,
				 WpError *error)
{
	if (durable && fsync(out->fd) != 0)
	{
		wp_io_fail_errno(error, "could not fsync file \"%s\"", out->tmp);
		wp_output_abandon(out);
		return WP_OUTCOME_FAILED;
	}
	if ((replace ? rename(out->tmp, dst) : rename_to_new(out->tmp, dst)) != 0)
	{
		WpOutcome	outcome = errno == EEXIST ?
			WP_OUTCOME_EXISTS : WP_OUTCOME_FAILED;

		wp_io_fail_errno(error, "could not rename file \"%s\"", out->tmp);
		wp_output_abandon(out);
		return outcome;
	}
	if (close(out->fd) != 0)
	{
		wp_io_fail_errno(error, "could not close file \"%s\"", dst);
		return WP_OUTCOME_FAILED;
	}
	return !durable || wp_io_sync_directory(dst, error) ?
		WP_OUTCOME_DONE : WP_OUTCOME_FAILED;
}
