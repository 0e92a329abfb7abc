/*-------------------------------------------------------------------------
 * ip_init.c
 *	  Loading of the library.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/guc.h"

#include "ip_decode.h"
#include "ip_guard.h"
#include "ip_handler.h"
#include "ip_heal.h"
#include "ip_holder.h"
#include "ip_home.h"
#include "ip_lockset_use.h"
#include "ip_skip.h"
#include "ip_wal.h"

COMPAT_MODULE_MAGIC("inplace");

PGDLLEXPORT void _PG_init(void);

static const RmgrData ip_rmgr = {
	.rm_name = "inplace",
	.rm_redo = ip_wal_redo,
	.rm_desc = ip_wal_desc,
	.rm_identify = ip_wal_identify,
	.rm_mask = ip_wal_mask,
	.rm_decode = ip_decode,
};

void
_PG_init(void)
{
	/* without the resource manager, crash recovery would not be possible */
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("inplace must be loaded via shared_preload_libraries"),
				 errhint("Add inplace to shared_preload_libraries in postgresql.conf and restart the server.")));
	CompatRegisterCustomRmgr(IP_RMGR_ID, &ip_rmgr);
	RegisterXactCallback(ip_lockset_at_end, NULL);
	*find_rendezvous_variable(INPLACE_KEYS_TABLE) = (void *) &ip_handler_keys;
	DefineCustomIntVariable("inplace.log_undo_size",
							"Sets the size of a table's undo pages that is logged once they pass it.",
							"The log names the process that keeps them. Each doubling is logged again. -1 turns this off.",
							&ip_holder_log_size, 1024 * 1024 / (BLCKSZ / 1024),
							-1, INT_MAX / 2, PGC_SUSET, GUC_UNIT_BLOCKS, NULL,
							NULL, NULL);
	DefineCustomBoolVariable("inplace.debug_undo_at_home",
							 "Keeps undo records on the pages of their rows while these have room.",
							 "For tests: if off, all undo records are written to undo rings, and backends share rings by slot only.",
							 &ip_home_enabled, true, PGC_SUSET,
							 GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, NULL, NULL,
							 NULL);
	DefineCustomBoolVariable("inplace.debug_skip_lists",
							 "Adds skip lists to long version chains.",
							 "For tests: if off, readers pass every version of a chain.",
							 &ip_skip_enabled, true, PGC_SUSET,
							 GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, NULL, NULL,
							 NULL);
	DefineCustomBoolVariable("inplace.debug_heal",
							 "Lets readers prune pages that are no longer changed.",
							 "For tests: if off, readers leave pages as they are.",
							 &ip_heal_enabled, true, PGC_SUSET,
							 GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, NULL, NULL,
							 NULL);
	ip_guard_init(&ip_handler_methods);
	MarkGUCPrefixReserved("inplace");
}
