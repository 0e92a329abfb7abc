/*-------------------------------------------------------------------------
 * walpack.c
 *	  The command walpack: init, pack, unpack, restore, verify, list, stats.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <dirent.h>
#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wp_archive.h"
#include "wp_gaps.h"
#include "wp_restore.h"
#include "wp_stats.h"

#define MAX_JOBS	64

typedef enum Verb
{
	VERB_PACK,
	VERB_UNPACK,
	VERB_VERIFY,
	VERB_LIST,
	VERB_STATS,
	VERB_INIT,
	VERB_RESTORE
} Verb;

static const char *const verbs[] = {
	"pack", "unpack", "verify", "list", "stats", "init", "restore"
};

typedef struct Run
{
	Verb		verb;
	int			level;
	int			memory;
	int			jobs;
	bool		quiet;
	bool		force;			/* unpack replaces files */
	bool		only_named;		/* pack skips segments that do not match their
								 * names */
	const char *pgdata;			/* init */
	const char *dst;			/* for pack and unpack */
	bool		dst_is_dir;
	char	  **files;
	int			nfiles;
	/* under the lock: */
	pthread_mutex_t lock;
	int			next;
	int			done;
	int			failed;
	int			skipped;
	uint64		raw_bytes;
	uint64		file_bytes;
	WpStats    *stats;
	WpGaps		gaps;			/* for verify: the segments of directories */
} Run;

static void
usage(FILE *out)
{
	fputs("walpack archives write-ahead log of PostgreSQL 15 to 19, several times smaller.\n\n"
		  "Usage:\n"
		  "  walpack init    [OPTION]... DIR...            make directories archives, before the first use\n"
		  "  walpack pack    [OPTION]... SOURCE... DEST    pack segments; DEST is a file or a directory\n"
		  "  walpack restore DIR NAME TARGET               get a file of an archive, for restore_command\n"
		  "  walpack unpack  [OPTION]... SOURCE... DEST    restore the original files\n"
		  "  walpack verify  [OPTION]... SOURCE...         decode and check the hash\n"
		  "  walpack list    SOURCE...                     sizes, timeline, position of each file\n"
		  "  walpack stats   SOURCE...                     record types, and where the bytes go\n\n"
		  "A SOURCE that is a directory stands for the WAL, history and backup files in it; pack leaves out\n"
		  "segments that are not what their names say, such as those that the server has recycled.\n\n"
		  "Options:\n"
		  "  -j, --jobs=N      work on N files at a time (default 1)\n"
		  "  -l, --level=N     level of compression, 1 to 19 (default 3)\n"
		  "  -m, --memory=MB   memory for each job (default 128, at least 24)\n"
		  "  -f, --force       unpack: replace files of other contents\n"
		  "  -D, --pgdata=DIR  init: the archive is that of the cluster with this data directory\n"
		  "  -q, --quiet       no progress bar, no summary\n"
		  "  -V, --version     print the version, then exit\n"
		  "  -?, --help        print this, then exit\n\n"
		  "As archive_command: walpack pack %p /archive    restore_command: walpack restore /archive %f %p\n\n"
		  "Exit code: 0 done, 1 failed; of restore: 0 done, 1 the archive has no such file, 255 failed.\n",
		  out);
}

/* Exit code */
static int	failure = 1;

pg_noreturn static void die(const char *fmt,...) pg_attribute_printf(1, 2);

static void
die(const char *fmt,...)
{
	va_list		args;

	fputs("walpack: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputs("\n", stderr);
	exit(failure);
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool
has_suffix(const char *name, const char *suffix)
{
	size_t		len = strlen(name);
	size_t		suffix_len = strlen(suffix);

	return len > suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

static bool
is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- the files ---- */

/* True if this is the name of a file that archives have, packed or not. */
static bool
is_archive_name(const char *name)
{
	size_t		digits = strspn(name, "0123456789ABCDEF");
	const char *rest = name + digits;

	if (digits == 8)
		return strcmp(rest, ".history") == 0;
	if (digits != 24)
		return false;
	if (strcmp(rest, "") == 0 || strcmp(rest, ".partial") == 0 ||
		strcmp(rest, WP_SUFFIX) == 0 || strcmp(rest, ".partial" WP_SUFFIX) == 0)
		return true;
	return has_suffix(rest, ".backup");
}

static void
add_file(Run *run, const char *path)
{
	if ((run->nfiles & (run->nfiles + 1)) == 0)
		run->files = realloc(run->files,
							 (run->nfiles + 1) * 2 * sizeof(char *));
	if (run->files == NULL ||
		(run->files[run->nfiles++] = strdup(path)) == NULL)
		die("out of memory");
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(base_name(*(char *const *) a), base_name(*(char *const *) b));
}

static void
add_source(Run *run, const char *path)
{
	int			first = run->nfiles;
	DIR		   *dir;
	struct dirent *entry;

	if (!is_dir(path))
	{
		add_file(run, path);
		return;
	}
	dir = opendir(path);
	if (dir == NULL)
		die("could not open directory \"%s\": %m", path);
	while (errno = 0, (entry = readdir(dir)) != NULL)
	{
		char		file[MAXPGPATH];

		if (!is_archive_name(entry->d_name))
			continue;
		if (snprintf(file, sizeof(file), "%s/%s", path, entry->d_name) >=
			(int) sizeof(file))
			die("path is too long: \"%s/%s\"", path, entry->d_name);
		add_file(run, file);
	}
	if (errno != 0)
		die("could not read directory \"%s\": %m", path);
	closedir(dir);
	if (run->nfiles == first)
		die("no WAL, history or backup files in directory \"%s\"", path);
	qsort(run->files + first, run->nfiles - first, sizeof(char *),
		  compare_names);
}

/*
 * Check that a segment is archived under its own name.  Under another one,
 * like that of a missing directory, recovery would not find it.
 */
static void
check_name(const char *name, const char *dst)
{
	const char *given = base_name(dst);
	size_t		len = strlen(name);

	if (strncmp(given, name, len) == 0 &&
		(given[len] == '\0' || strcmp(given + len, WP_SUFFIX) == 0))
		return;
	die("\"%s\" is not a directory, and not a path that ends in \"%s\" or \"%s%s\"\n"
		"hint: If it should be a directory, create it, or check that its file system is mounted.",
		dst, name, name, WP_SUFFIX);
}

/*
 * Make the destination of a file.  Packed segments in a directory have a
 * suffix; small files never have one.
 */
static void
destination(const Run *run, const char *src, char *dst)
{
	const char *name = base_name(src);
	int			len = strlen(name);

	if (!run->dst_is_dir)
		len = snprintf(dst, MAXPGPATH, "%s", run->dst);
	else if (run->verb == VERB_UNPACK && has_suffix(name, WP_SUFFIX))
		len = snprintf(dst, MAXPGPATH, "%s/%.*s", run->dst,
					   len - (int) strlen(WP_SUFFIX), name);
	else
		len = snprintf(dst, MAXPGPATH, "%s/%s%s", run->dst, name,
					   run->verb == VERB_PACK && !wp_is_small_file(name) &&
					   !has_suffix(name, WP_SUFFIX) ?
					   WP_SUFFIX : "");
	if (len >= MAXPGPATH)
		die("path is too long: \"%s/%s\"", run->dst, name);
	if (run->verb == VERB_PACK && !run->dst_is_dir)
		check_name(name, dst);
	if (run->verb == VERB_PACK && wp_is_small_file(name) &&
		has_suffix(dst, WP_SUFFIX))
		dst[len - strlen(WP_SUFFIX)] = '\0';
}

/* ---- one file ---- */

typedef struct Look
{
	Run		   *run;
	bool		begun;
	bool		enough;
} Look;

/* Callback of list, which needs only the first piece. */
static bool
look_once(void *arg, const uint8 *data, uint32 len)
{
	Look	   *look = arg;

	look->enough = true;
	return false;
}

static bool
look_records(void *arg, const uint8 *data, uint32 len)
{
	Look	   *look = arg;

	if (!look->begun)
		wp_stats_file(look->run->stats, wp_codec_page_size(data, len));
	look->begun = true;
	if (!wp_stats_add(look->run->stats, data, len))
		die("out of memory");
	return true;
}

static bool
list_file(WpFiles *f, Look *look, const char *path, WpFileInfo *info,
		  WpError *error)
{
	static const char *const kinds[] = {"empty", "stored", "zstd", "records"};
	const char *kind = "not packed";
	char		lsn[32] = "-";
	int			version;

	if (!wp_read_file(f, path, look_once, look, info, error) && !look->enough)
		return false;
	if (info->is_packed)
		kind = kinds[0];
	for (int i = 1; i < lengthof(kinds); i++)
		if (info->chunks[i] > 0)
			kind = kinds[i];
	version = wp_codec_page_size(info->start, sizeof(info->start)) ?
		wp_magic_version(wp_get16(info->start)) : 0;
	if (version)
		snprintf(lsn, sizeof(lsn), "%X/%08X", wp_get32(info->start + 12),
				 wp_get32(info->start + 8));
	printf("%-36s %12llu %12llu %6.3f  %-10s  %3d  %8u  %s\n", base_name(path),
		   (unsigned long long) info->raw_size,
		   (unsigned long long) info->file_size,
		   info->raw_size ? (double) info->file_size / info->raw_size : 1.0,
		   kind, version, version ? wp_get32(info->start + 4) : 0, lsn);
	return true;
}

/* The outcome for a file. */
typedef enum Outcome
{
	FAILED,
	DONE,
	LEFT_OUT
} Outcome;

/*
 * Skip a segment that does not match its name: the server gives segments that
 * it no longer needs the names of future segments.
 */
static Outcome
check_segment_name(WpFiles *f, const char *path, WpError *error)
{
	Look		look = {0};
	WpFileInfo	info;
	WpError		unsaid;
	struct stat st;

	if (wp_is_small_file(path))
		return DONE;
	if (!wp_read_file(f, path, look_once, &look, &info, error) && !look.enough)
		return FAILED;
	if (!info.is_packed && stat(path, &st) == 0)
		info.raw_size = st.st_size;
	return wp_segment_check(base_name(path), &info, 0, &unsaid) ?
		DONE : LEFT_OUT;
}

static Outcome
pack_one(Run *run, WpFiles *f, const char *path, WpFileInfo *info,
		 WpError *error)
{
	char		dst[MAXPGPATH];
	struct stat st;
	Outcome		named = run->only_named ?
		check_segment_name(f, path, error) : DONE;

	if (named != DONE)
		return named;
	destination(run, path, dst);
	if (!wp_pack_file(f, path, dst, error))
		return FAILED;
	info->raw_size = stat(path, &st) == 0 ? st.st_size : 0;
	info->file_size = stat(dst, &st) == 0 ? st.st_size : 0;
	return DONE;
}

static Outcome
unpack_one(Run *run, WpFiles *f, const char *path, WpFileInfo *info,
		   WpError *error)
{
	char		dst[MAXPGPATH];
	struct stat st;

	destination(run, path, dst);
	if (!wp_unpack_file(f, path, dst, true, run->force, error))
		return FAILED;
	info->raw_size = stat(dst, &st) == 0 ? st.st_size : 0;
	info->file_size = stat(path, &st) == 0 ? st.st_size : 0;
	return DONE;
}

static Outcome
work_on(Run *run, WpFiles *f, const char *path, WpFileInfo *info,
		WpError *error)
{
	Look		look = {.run = run};
	bool		ok = false;

	memset(info, 0, sizeof(*info));
	switch (run->verb)
	{
		case VERB_PACK:
			return pack_one(run, f, path, info, error);
		case VERB_UNPACK:
			return unpack_one(run, f, path, info, error);
		case VERB_VERIFY:
			ok = wp_read_file(f, path, NULL, NULL, info, error) &&
				wp_segment_check(base_name(path), info, 0, error);
			break;
		case VERB_LIST:
			ok = list_file(f, &look, path, info, error);
			break;
		case VERB_STATS:
			ok = wp_read_file(f, path, look_records, &look, info, error);
			break;
		case VERB_INIT:
		case VERB_RESTORE:
			break;				/* these are not about files */
	}
	return ok ? DONE : FAILED;
}

/* ---- all files ---- */

static void
show_progress(const Run *run)
{
	char		bar[31];
	int			filled = run->done * (sizeof(bar) - 1) / run->nfiles;

	memset(bar, ' ', sizeof(bar));
	memset(bar, '#', filled);
	bar[sizeof(bar) - 1] = '\0';
	fprintf(stderr, "\r[%s] %d/%d files, %llu MB", bar, run->done, run->nfiles,
			(unsigned long long) run->raw_bytes / (1024 * 1024));
}

static void *
worker(void *arg)
{
	Run		   *run = arg;
	bool		progress = !run->quiet && run->verb <= VERB_VERIFY &&
		run->nfiles > 1 && isatty(STDERR_FILENO);
	WpFiles    *f = wp_files_new(run->level, run->memory);

	if (f == NULL)
		die("out of memory");
	pthread_mutex_lock(&run->lock);
	while (run->next < run->nfiles)
	{
		const char *path = run->files[run->next++];
		WpFileInfo	info;
		WpError		error;
		Outcome		outcome;

		pthread_mutex_unlock(&run->lock);
		outcome = work_on(run, f, path, &info, &error);
		pthread_mutex_lock(&run->lock);
		run->done++;
		switch (outcome)
		{
			case FAILED:
				run->failed++;
				fprintf(stderr, "%swalpack: %s\n", progress ? "\r\033[K" : "",
						error.message);
				break;
			case LEFT_OUT:
				run->skipped++;
				break;
			case DONE:
				run->raw_bytes += info.raw_size;
				run->file_bytes += info.file_size;
				break;
		}
		/* a damaged file is one failure, and not also a gap */
		if (run->verb == VERB_VERIFY &&
			!wp_gaps_add(&run->gaps, base_name(path), &info))
			die("out of memory");
		if (progress)
			show_progress(run);
	}
	pthread_mutex_unlock(&run->lock);
	wp_files_free(f);
	return NULL;
}

static void
work(Run *run)
{
	pthread_t	threads[MAX_JOBS];
	int			n = Min(run->jobs, Max(1, run->nfiles));

	pthread_mutex_init(&run->lock, NULL);
	for (int i = 1; i < n; i++)
		if ((errno = pthread_create(&threads[i], NULL, worker, run)) != 0)
			die("could not start a thread: %m");
	worker(run);
	for (int i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
	if (!run->quiet && run->skipped > 0)
		fprintf(stderr,
				"%d segments are not what their names say, and were left out\n",
				run->skipped);
	if (!run->quiet && run->verb <= VERB_VERIFY && run->nfiles > 1)
		fprintf(stderr,
				"%s%d files, %d failed; original %llu bytes, archive %llu (%.3f)\n",
				isatty(STDERR_FILENO) ? "\r\033[K" : "", run->nfiles,
				run->failed, (unsigned long long) run->raw_bytes,
				(unsigned long long) run->file_bytes,
				run->raw_bytes ? (double) run->file_bytes / run->raw_bytes :
				1.0);
}

/* ---- command line ---- */

static int
number(const char *text, int min, int max, const char *what)
{
	char	   *end;
	long		v = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || v < min || v > max)
		die("%s must be a number from %d to %d, not \"%s\"", what, min, max,
			text);
	return v;
}

static void
parse_options(Run *run, int argc, char **argv)
{
	static const struct option options[] = {
		{"jobs", required_argument, NULL, 'j'},
		{"level", required_argument, NULL, 'l'},
		{"memory", required_argument, NULL, 'm'},
		{"force", no_argument, NULL, 'f'},
		{"quiet", no_argument, NULL, 'q'},
		{"pgdata", required_argument, NULL, 'D'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}
	};
	int			c;

	while ((c = getopt_long(argc, argv, "fj:l:m:qD:V", options, NULL)) != -1)
		switch (c)
		{
			case 'D':
				run->pgdata = optarg;
				break;
			case 'V':
				printf("walpack 1.0 (format %d)\n",
					   WP_MAGIC[WP_MAGIC_SIZE - 1]);
				exit(0);
			case 'j':
				run->jobs = number(optarg, 1, MAX_JOBS, "the number of jobs");
				break;
			case 'l':
				run->level = number(optarg, 1, WP_MAX_LEVEL, "the level");
				break;
			case 'm':
				run->memory = number(optarg, WP_MIN_MEMORY, 1024 * 1024, "the memory");
				break;
			case 'f':
				run->force = true;
				break;
			case 'q':
				run->quiet = true;
				break;
			case 'h':
				usage(stdout);
				exit(0);
			default:
				if (optopt == '?')
				{
					usage(stdout);
					exit(0);
				}
				fputs("Try \"walpack --help\".\n", stderr);
				exit(failure);
		}
}

static void
parse_verb(Run *run, const char *name)
{
	for (int i = 0; i < lengthof(verbs); i++)
	{
		if (strcmp(name, verbs[i]) == 0)
		{
			run->verb = i;
			return;
		}
	}
	die("no verb \"%s\"; walpack --help lists them", name);
}

static int
init_archives(const Run *run, char **directories, int n)
{
	uint64		system = run->pgdata ? wp_archive_cluster(run->pgdata) : 0;
	WpError		error;

	if (run->pgdata && system == 0)
		die("\"%s\" is not the data directory of a cluster", run->pgdata);
	for (int i = 0; i < n; i++)
	{
		if (!wp_archive_init(directories[i], system, &error))
			die("%s", error.message);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	Run			run = {
		.level = WP_DEFAULT_LEVEL,
		.memory = WP_DEFAULT_MEMORY,
		.jobs = 1
	};
	bool		two_sided;
	bool		from_directory = false;

	if (argc < 2)
	{
		usage(stderr);
		return 1;
	}
	/* the server takes other exit codes for the end of the archive */
	for (int i = 1; i < argc; i++)
	{
		if (strcmp(argv[i], verbs[VERB_RESTORE]) == 0)
			failure = WP_EXIT_STOP;
		if (argv[i][0] != '-')
			break;
	}
	parse_options(&run, argc, argv);
	if (optind == argc)
		die("a verb is missing; walpack --help lists them");
	parse_verb(&run, argv[optind]);
	argv += optind + 1;
	argc -= optind + 1;
	if (run.verb == VERB_RESTORE)
	{
		failure = WP_EXIT_STOP;
		if (argc != 3)
			die("restore needs an archive, a name and a target");
		return wp_restore(argv[0], argv[1], argv[2]);
	}
	if (run.verb == VERB_INIT)
	{
		if (argc < 1)
			die("init needs a directory");
		return init_archives(&run, argv, argc);
	}
	two_sided = run.verb == VERB_PACK || run.verb == VERB_UNPACK;
	if (argc < (two_sided ? 2 : 1))
		die(two_sided ? "%s needs a source and a destination" :
			"%s needs a file or directory",
			verbs[run.verb]);
	if (two_sided)
	{
		run.dst = argv[--argc];
		run.dst_is_dir = is_dir(run.dst);
		if (!run.dst_is_dir && (argc != 1 || is_dir(argv[0])))
			die("\"%s\" is not a directory", run.dst);
	}
	for (int i = 0; i < argc; i++)
	{
		from_directory |= is_dir(argv[i]);
		add_source(&run, argv[i]);
	}
	run.only_named = run.verb == VERB_PACK && from_directory;
	if (run.verb == VERB_LIST)
		printf("%-36s %12s %12s %6s  %-10s  %3s  %8s  %s\n", "file", "original",
			   "stored", "ratio", "as", "ver", "timeline", "starts at");
	if (run.verb == VERB_STATS &&
		(run.stats = calloc(1, sizeof(WpStats))) == NULL)
		die("out of memory");
	if (run.verb == VERB_LIST || run.verb == VERB_STATS)
		run.jobs = 1;			/* in the order of the files */
	work(&run);
	if (run.verb == VERB_STATS)
		wp_stats_print(run.stats);
	if (run.verb == VERB_VERIFY && from_directory)
		run.failed += wp_gaps_report(&run.gaps);
	if (fflush(stdout) != 0)
		die("could not write: %m");
	return run.failed > 0;
}
