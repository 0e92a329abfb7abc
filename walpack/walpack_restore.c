/*-------------------------------------------------------------------------
 * walpack_restore.c
 *	  The command for restore_command: walpack_restore DIR %f %p
 *
 * PostgreSQL takes any exit code up to 125 for "not in the archive", which
 * ends recovery, and then it starts a new timeline.  So only a file that is
 * certainly not there is answered with 1.  Damage, and an archive that can't
 * be read, are answered with 255, which stops recovery.  The target appears
 * under its name only when it is complete and its hash was right.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <sys/stat.h>
#include <unistd.h>

#include "wp_file.h"

#define EXIT_NOT_FOUND	1
#define EXIT_STOP		255

int
main(int argc, char **argv)
{
	static const char *const suffixes[] = {WP_SUFFIX, ""};
	WpFiles    *f;
	struct stat st;

	if (argc != 4)
	{
		fputs("walpack_restore fetches a file from an archive made by walpack.\n\n"
			  "Usage: walpack_restore DIR NAME TARGET\n\n"
			  "restore_command = 'walpack_restore /archive %f %p'\n\n"
			  "Exit code: 0 done; 1 the archive has no such file; 255 damage, or the archive can't be read.\n",
			  stderr);
		return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : EXIT_STOP;
	}
	if (stat(argv[1], &st) != 0 || !S_ISDIR(st.st_mode))
	{
		fprintf(stderr, "walpack_restore: \"%s\" is not a directory that can be read\n", argv[1]);
		return EXIT_STOP;
	}
	f = wp_files_new(WP_DEFAULT_LEVEL, WP_DEFAULT_MEMORY);
	if (f == NULL)
	{
		fputs("walpack_restore: out of memory\n", stderr);
		return EXIT_STOP;
	}
	for (int i = 0; i < lengthof(suffixes); i++)
	{
		char		path[MAXPGPATH];

		if (snprintf(path, sizeof(path), "%s/%s%s", argv[1], argv[2], suffixes[i]) >= (int) sizeof(path))
		{
			fprintf(stderr, "walpack_restore: path is too long: \"%s/%s\"\n", argv[1], argv[2]);
			return EXIT_STOP;
		}
		/* as a crash may leave what cp has archived */
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		{
			fprintf(stderr, "walpack_restore: \"%s\" is empty\n", path);
			return EXIT_STOP;
		}
		/* the server brings the file to disk when it takes it over */
		if (wp_unpack_file(f, path, argv[3], false, true))
			return 0;
		if (!f->missing)
		{
			fprintf(stderr, "walpack_restore: %s\n", f->message);
			return EXIT_STOP;
		}
	}
	return EXIT_NOT_FOUND;
}
