/*-------------------------------------------------------------------------
 * ip_init.c
 *	  Loading of the library.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "ip_guard.h"
#include "ip_wal.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	/* without the resource manager a crash could not be recovered from */
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("inplace must be loaded via shared_preload_libraries"),
				 errhint("Add inplace to shared_preload_libraries in postgresql.conf and restart the server.")));
	ip_wal_register();
	ip_guard_init();
}
