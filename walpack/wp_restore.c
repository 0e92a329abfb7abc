/*-------------------------------------------------------------------------
 * wp_restore.c
 *	  The verb for restore_command: walpack restore DIR %f %p
 *
 * Damage, an archive that can't be read, one that is not mounted, another
 * cluster's, and a segment that is not what its name says, stop recovery.  The
 * target appears under its name only when it is complete and its hash was
 * right.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wp_archive.h"
#include "wp_file.h"
#include "wp_restore.h"
#include "wp_segment.h"

/*
 * Check that the target is the segment of that name, of this cluster, at the
 * right address, and complete.
 */
static bool
check_target(WpFiles *f, const char *name, const char *target, uint64 system,
			 WpError *error)
{
	WpFileInfo	info;

	return wp_read_file(f, target, NULL, NULL, &info, error) &&
		wp_segment_check(name, &info, system, error);
}

static int	stop(const char *fmt,...) pg_attribute_printf(1, 2);

static int
stop(const char *fmt,...)
{
	va_list		args;

	fputs("walpack: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputs("\n", stderr);
	return WP_EXIT_STOP;
}

int
wp_restore(const char *directory, const char *name, const char *target)
{
	static const char *const suffixes[] = {WP_SUFFIX, ""};

	/* the server runs the command in its data directory */
	uint64		system = wp_archive_cluster(".");
	char		path[MAXPGPATH];
	WpFiles    *f = wp_files_new(WP_DEFAULT_LEVEL, WP_DEFAULT_MEMORY);
	struct stat st;
	WpError		error;

	if (f == NULL)
		return stop("out of memory");
	if (stat(directory, &st) != 0 || !S_ISDIR(st.st_mode))
		return stop("\"%s\" is not a directory that can be read", directory);
	for (int i = 0; i < lengthof(suffixes); i++)
	{
		if (snprintf(path, sizeof(path), "%s/%s%s", directory, name,
					 suffixes[i]) >= (int) sizeof(path))
			return stop("path is too long");
		/* a dangling link is not the same as no file */
		if (lstat(path, &st) != 0 && errno == ENOENT)
			continue;
		/* a crash may leave such a file that cp has archived */
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
			return stop("\"%s\" is empty", path);
		/* the server flushes the file to disk when it takes it over */
		if (!wp_unpack_file(f, path, target, false, true, &error))
			return stop("%s", error.message);
		if (check_target(f, name, target, system, &error))
			return 0;
		unlink(target);
		return stop("%s", error.message);
	}

	/*
	 * a file that was found needs no further proof, but its absence must be
	 * certain
	 */
	return wp_archive_check(directory, system, false, &error) ?
		WP_EXIT_NOT_FOUND : stop("%s", error.message);
}
