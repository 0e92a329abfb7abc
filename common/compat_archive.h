/*-------------------------------------------------------------------------
 * compat_archive.h
 *	  How an archive module tells the server its callbacks.
 *
 * From 16 on callbacks get a state, which COMPAT_ARCHIVE_MODULE keeps from
 * them.
 *-------------------------------------------------------------------------
 */
#ifndef PG_INPLACE_COMPAT_ARCHIVE_H
#define PG_INPLACE_COMPAT_ARCHIVE_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "walpack supports PostgreSQL 15 to 19"
#endif

/*
 * 15 defines it as empty outside of Windows, and symbols are hidden by default
 */
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))

#if PG_VERSION_NUM < 160000
#include "postmaster/pgarch.h"

#define COMPAT_ARCHIVE_MODULE(is_configured, archive_file, release) \
PGDLLEXPORT void _PG_archive_module_init(ArchiveModuleCallbacks *cb); \
\
void \
_PG_archive_module_init(ArchiveModuleCallbacks *cb) \
{ \
	cb->check_configured_cb = is_configured; \
	cb->archive_file_cb = archive_file; \
	cb->shutdown_cb = release; \
}

#else
#include "archive/archive_module.h"

#define COMPAT_ARCHIVE_MODULE(is_configured, archive_file, release) \
static bool \
configured_cb(ArchiveModuleState *state) \
{ \
	return is_configured(); \
} \
\
static bool \
archive_cb(ArchiveModuleState *state, const char *file, const char *path) \
{ \
	return archive_file(file, path); \
} \
\
static void \
release_cb(ArchiveModuleState *state) \
{ \
	release(); \
} \
\
static const ArchiveModuleCallbacks callbacks = { \
	.check_configured_cb = configured_cb, \
	.archive_file_cb = archive_cb, \
	.shutdown_cb = release_cb \
}; \
\
PGDLLEXPORT const ArchiveModuleCallbacks *_PG_archive_module_init(void); \
\
const ArchiveModuleCallbacks * \
_PG_archive_module_init(void) \
{ \
	return &callbacks; \
}

#endif

#endif							/* PG_INPLACE_COMPAT_ARCHIVE_H */
