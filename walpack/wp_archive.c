/*-------------------------------------------------------------------------
 * wp_archive.c
 *	  The marker of an archive.
 *
 * Two lines: "walpack archive 1", and "system identifier N", where N is 0 as
 * long as no cluster has archived there.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wp_archive.h"

#define MARKER_FORMAT	"walpack archive 1\nsystem identifier %llu\n"
#define MARKER_SIZE		128

static bool
marker_path(const char *directory, char *path, WpError *error)
{
	if (snprintf(path, MAXPGPATH, "%s/%s", directory, WP_MARKER) < MAXPGPATH)
		return true;
	return wp_io_fail(error, "path is too long: \"%s/%s\"", directory,
					  WP_MARKER);
}

static bool
write_marker(const char *path, uint64 system, WpError *error)
{
	WpOutput	out;
	char		text[MARKER_SIZE];
	int			len = snprintf(text, sizeof(text), MARKER_FORMAT,
							   (unsigned long long) system);

	if (!wp_output_open(&out, path, wp_io_mode_in(path), error))
		return false;
	if (!wp_io_write(out.fd, path, text, len, error))
	{
		wp_output_abandon(&out);
		return false;
	}
	return wp_output_finish(&out, path, true, true, error) != WP_OUTCOME_FAILED;
}

/*
 * True if the marker exists, or that is unknown; then reading it reports the
 * reason.
 */
static bool
has_marker(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 || errno != ENOENT;
}

static bool
read_marker(const char *path, uint64 *system, WpError *error)
{
	char		text[MARKER_SIZE] = {0};
	unsigned long long id;
	uint64		size;
	int			fd;
	bool		ok;

	if (!wp_io_open(path, &fd, &size, error))
		return false;
	ok = wp_io_read(fd, path, text, Min(size, sizeof(text) - 1), error);
	close(fd);
	if (!ok)
		return false;
	if (sscanf(text, MARKER_FORMAT, &id) != 1)
		return wp_io_fail(error,
						  "\"%s\" is damaged, or of a later version of walpack",
						  path);
	*system = id;
	return true;
}

bool
wp_archive_check(const char *directory, uint64 system, bool claim,
				 WpError *error)
{
	char		path[MAXPGPATH];
	uint64		owner = 0;

	if (!marker_path(directory, path, error))
		return false;
	if (!has_marker(path))
		return wp_io_fail(error,
						  "\"%s\" is not an archive of walpack: it has no file \"%s\"; "
						  "its file system may not be mounted, or \"walpack init\" was not run",
						  directory, WP_MARKER);
	if (!read_marker(path, &owner, error))
		return false;
	if (owner != 0 && system != 0 && owner != system)
		return wp_io_fail(error,
						  "\"%s\" is the archive of another cluster, with system identifier %llu, and not %llu",
						  directory, (unsigned long long) owner,
						  (unsigned long long) system);
	return owner != 0 || system == 0 || !claim ||
		write_marker(path, system, error);
}

bool
wp_archive_init(const char *directory, uint64 system, WpError *error)
{
	char		path[MAXPGPATH];

	if (!marker_path(directory, path, error))
		return false;
	if (has_marker(path))
		return wp_archive_check(directory, system, true, error);
	return write_marker(path, system, error);
}

uint64
wp_archive_cluster(const char *pgdata)
{
	char		path[MAXPGPATH];
	uint64		system = 0;
	int			fd;

	if (snprintf(path, sizeof(path), "%s/global/pg_control", pgdata) >=
		(int) sizeof(path))
		return 0;
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	/* the file begins with it */
	if (read(fd, &system, sizeof(system)) != sizeof(system))
		system = 0;
	close(fd);
	return system;
}
