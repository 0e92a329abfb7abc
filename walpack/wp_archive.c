/*-------------------------------------------------------------------------
 * wp_archive.c
 *	  The marker of an archive.
 *
 * Two lines: "walpack archive 1", and "system identifier N", where N is 0 as
 * long as no cluster has archived there.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include <fcntl.h>
#include <unistd.h>

#include "wp_archive.h"
#include "wp_io.h"

#define MARKER_FORMAT	"walpack archive 1\nsystem identifier %llu\n"
#define MARKER_SIZE		128

static bool
marker_path(WpFiles *f, const char *directory, char *path)
{
	if (snprintf(path, MAXPGPATH, "%s/%s", directory, WP_MARKER) < MAXPGPATH)
		return true;
	return wp_io_fail(f, "path is too long: \"%s/%s\"", directory, WP_MARKER);
}

static bool
write_marker(WpFiles *f, const char *path, uint64 system)
{
	WpOutput	out;
	char		text[MARKER_SIZE];
	int			len = snprintf(text, sizeof(text), MARKER_FORMAT, (unsigned long long) system);

	if (!wp_output_open(f, &out, path, wp_io_mode_in(path)))
		return false;
	if (!wp_io_write(f, out.fd, path, text, len))
	{
		wp_output_abandon(&out);
		return false;
	}
	return wp_output_finish(f, &out, path, true, true) != WP_OUTCOME_FAILED;
}

/* f->missing: there is no marker. */
static bool
read_marker(WpFiles *f, const char *path, uint64 *system)
{
	char		text[MARKER_SIZE] = {0};
	unsigned long long id;
	uint64		size;
	int			fd;
	bool		ok;

	if (!wp_io_open(f, path, &fd, &size))
		return false;
	ok = wp_io_read(f, fd, path, text, Min(size, sizeof(text) - 1));
	close(fd);
	if (!ok)
		return false;
	if (sscanf(text, MARKER_FORMAT, &id) != 1)
		return wp_io_fail(f, "\"%s\" is damaged, or of a later version of walpack", path);
	*system = id;
	return true;
}

bool
wp_archive_check(WpFiles *f, const char *directory, uint64 system, bool claim)
{
	char		path[MAXPGPATH];
	uint64		owner;

	if (!marker_path(f, directory, path))
		return false;
	if (!read_marker(f, path, &owner))
	{
		if (f->missing)
			return wp_io_fail(f, "\"%s\" is not an archive of walpack: it has no file \"%s\"; "
							  "its file system may not be mounted, or \"walpack init\" was not run", directory, WP_MARKER);
		return false;
	}
	if (owner != 0 && system != 0 && owner != system)
		return wp_io_fail(f, "\"%s\" is the archive of another cluster, with system identifier %llu, and not %llu",
						  directory, (unsigned long long) owner, (unsigned long long) system);
	return owner != 0 || system == 0 || !claim || write_marker(f, path, system);
}

bool
wp_archive_init(WpFiles *f, const char *directory, uint64 system)
{
	char		path[MAXPGPATH];
	uint64		owner;

	if (!marker_path(f, directory, path))
		return false;
	if (read_marker(f, path, &owner))
		return wp_archive_check(f, directory, system, true);
	return f->missing && write_marker(f, path, system);
}

uint64
wp_archive_cluster(const char *pgdata)
{
	char		path[MAXPGPATH];
	uint64		system = 0;
	int			fd;

	if (snprintf(path, sizeof(path), "%s/global/pg_control", pgdata) >= (int) sizeof(path))
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
