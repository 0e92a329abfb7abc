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

#include <sys/stat.h>
#include <unistd.h>

#include "wp_archive.h"
#include "wp_gaps.h"
#include "wp_record.h"
#include "wp_restore.h"
#include "wp_util.h"

/* All versions of WAL have this in the high byte of a page's magic number. */
#define MAGIC_HIGH		0xD1
#define LONG_HEADER		0x0002
#define LONG_HEADER_SIZE 40

/* Is it a segment of a later version of PostgreSQL, which is for the server to judge? */
static bool
is_of_later_version(const WpFileInfo *info)
{
	return info->raw_size >= LONG_HEADER_SIZE && wp_get16(info->start) >> 8 == MAGIC_HIGH &&
		wp_magic_version(wp_get16(info->start)) == 0;
}

/* Is the target, which is the segment of that name, of this cluster, at the right address, and whole? */
static bool
check_target(WpFiles *f, const char *name, const char *target, uint64 system)
{
	WpFileInfo	info;
	uint64		owner;

	if (strlen(name) != 24 || strspn(name, "0123456789ABCDEF") != 24)
		return true;			/* a history file */
	if (!wp_read_file(f, target, NULL, NULL, &info))
		return false;
	if (is_of_later_version(&info))
		return true;
	if (!wp_check_segment(name, &info, f->message, sizeof(f->message)))
		return false;
	owner = wp_get64(info.start + 24);
	if (system == 0 || !(wp_get16(info.start + 2) & LONG_HEADER) || owner == system)
		return true;
	snprintf(f->message, sizeof(f->message), "\"%s\" is of another cluster, with system identifier %llu, and not %llu",
			 name, (unsigned long long) owner, (unsigned long long) system);
	return false;
}

static int
stop(const char *message)
{
	fprintf(stderr, "walpack: %s\n", message);
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

	if (f == NULL)
		return stop("out of memory");
	if (stat(directory, &st) != 0 || !S_ISDIR(st.st_mode))
	{
		snprintf(f->message, sizeof(f->message), "\"%s\" is not a directory that can be read", directory);
		return stop(f->message);
	}
	for (int i = 0; i < lengthof(suffixes); i++)
	{
		if (snprintf(path, sizeof(path), "%s/%s%s", directory, name, suffixes[i]) >= (int) sizeof(path))
			return stop("path is too long");
		/* as a crash may leave what cp has archived */
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		{
			snprintf(f->message, sizeof(f->message), "\"%s\" is empty", path);
			return stop(f->message);
		}
		/* the server brings the file to disk when it takes it over */
		if (wp_unpack_file(f, path, target, false, true))
		{
			if (check_target(f, name, target, system))
				return 0;
			unlink(target);
			return stop(f->message);
		}
		if (!f->missing)
			return stop(f->message);
	}
	/* a found file speaks for itself; that there is none must be true */
	return wp_archive_check(f, directory, system, false) ? WP_EXIT_NOT_FOUND : stop(f->message);
}
