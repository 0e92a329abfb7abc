/*-------------------------------------------------------------------------
 * walpack_archive.c
 *	  archive_library = 'walpack'
 *
 * Failures are reported as warnings, and the archiver tries the file again.
 * An error thrown from the callback would end the archiver process of
 * PostgreSQL 15.
 *-------------------------------------------------------------------------
 */
#include "compat_archive.h"

#include <limits.h>
#include <sys/stat.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/pmsignal.h"
#include "utils/guc.h"

#include "wp_archive.h"
#include "wp_file.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static char *archive_directory = NULL;
static int	compression_level = WP_DEFAULT_LEVEL;
static int	memory_limit = WP_DEFAULT_MEMORY;

/* The codec and the settings for which it was made. */
static WpFiles *files = NULL;
static int	files_level;
static int	files_memory;

static ErrorData *interrupt_error;

/*
 * Callback between the chunks of a segment.  An error must not jump over
 * wp_pack_file, which has files open and one of them locked.  It is rethrown
 * after wp_pack_file has returned.
 */
static bool
should_stop(void)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		CHECK_FOR_INTERRUPTS();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		interrupt_error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	return interrupt_error != NULL || ShutdownRequestPending ||
		!PostmasterIsAlive();
}

static bool
check_directory(char **newval, void **extra, GucSource source)
{
	if (*newval != NULL &&
		strlen(*newval) + 64 + sizeof(WP_SUFFIX) >= MAXPGPATH)
	{
		GUC_check_errdetail("The path of the archive directory is too long.");
		return false;
	}
	return true;
}

void
_PG_init(void)
{
	DefineCustomStringVariable("walpack.directory",
							   "Directory to which WAL is archived.",
							   NULL, &archive_directory, "", PGC_SIGHUP, 0,
							   check_directory, NULL, NULL);
	DefineCustomIntVariable("walpack.level", "Level of compression.",
							"Higher levels take more time, and make the archive a little smaller.",
							&compression_level, WP_DEFAULT_LEVEL, 1,
							WP_MAX_LEVEL, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("walpack.memory",
							"Memory that the archiver may use for packing.",
							"With less than the default, segments are packed in smaller pieces.",
							&memory_limit, WP_DEFAULT_MEMORY, WP_MIN_MEMORY,
							MAX_KILOBYTES / 1024, PGC_SIGHUP, GUC_UNIT_MB, NULL,
							NULL, NULL);
	MarkGUCPrefixReserved("walpack");
}

/*
 * Callback before each round.  If it returns false, the server warns and does
 * not count a failure.  So a missing directory must pass: archiving into it
 * fails.
 */
static bool
is_configured(void)
{
	return archive_directory != NULL && archive_directory[0] != '\0';
}

/*
 * Check that the directory exists.  The message of a file that can't be
 * created would not tell that.
 */
static bool
directory_ok(const char *file)
{
	struct stat st;

	errno = 0;
	if (stat(archive_directory, &st) == 0 && S_ISDIR(st.st_mode))
		return true;
	if (errno == 0)
		errno = ENOTDIR;
	ereport(WARNING,
			(errcode_for_file_access(),
			 errmsg("could not archive WAL file \"%s\"", file),
			 errdetail("Archive directory \"%s\" cannot be used: %m.",
					   archive_directory),
			 errhint("Check \"walpack.directory\", and that its file system is mounted.")));
	return false;
}

static bool
ready(void)
{
	if (files != NULL &&
		(files_level != compression_level || files_memory != memory_limit))
	{
		wp_files_free(files);
		files = NULL;
	}
	if (files == NULL)
	{
		files = wp_files_new(compression_level, memory_limit);
		if (files == NULL)
			return false;
		files->stop = should_stop;
		files_level = compression_level;
		files_memory = memory_limit;
	}
	return true;
}

static bool
archive_file(const char *file, const char *path)
{
	char		dst[MAXPGPATH];
	const char *suffix = wp_is_small_file(file) ? "" : WP_SUFFIX;
	bool		archived;
	WpError		error;

	if (!ready())
	{
		ereport(WARNING,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("walpack could not allocate its buffers.")));
		return false;
	}
	if (!directory_ok(file))
		return false;
	if (!wp_archive_check(archive_directory, GetSystemIdentifier(), true,
						  &error))
	{
		ereport(WARNING,
				(errmsg("could not archive WAL file \"%s\"", file),
				 errdetail_internal("%s", error.message),
				 errhint("For a new archive, run \"walpack init %s\".",
						 archive_directory)));
		return false;
	}
	snprintf(dst, sizeof(dst), "%s/%s%s", archive_directory, file, suffix);
	interrupt_error = NULL;
	archived = wp_pack_file(files, path, dst, &error);
	if (interrupt_error != NULL)
		ReThrowError(interrupt_error);
	if (archived)
	{
		ereport(DEBUG1,
				(errmsg_internal("archived \"%s\" as \"%s\"", file, dst)));
		return true;
	}
	if (!ShutdownRequestPending)
		ereport(WARNING,
				(errmsg("could not archive WAL file \"%s\"", file),
				 errdetail_internal("%s", error.message)));
	return false;
}

static void
release(void)
{
	if (files != NULL)
		wp_files_free(files);
	files = NULL;
}

COMPAT_ARCHIVE_MODULE(is_configured, archive_file, release)
