/*-------------------------------------------------------------------------
 * wp_names.c
 *	  Names of record types, as in pg_waldump.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "wp_stats.h"

typedef struct Manager
{
	const char *name;
	const char *types[16];		/* by the high four info bits */
} Manager;

static const Manager managers[] = {
	{"XLOG",
		{"CHECKPOINT_SHUTDOWN", "CHECKPOINT_ONLINE", "NOOP", "NEXTOID", "SWITCH",
			"BACKUP_END", "PARAMETER_CHANGE", "RESTORE_POINT", "FPW_CHANGE",
			"END_OF_RECOVERY", "FPI_FOR_HINT", "FPI", "ASSIGN_LSN",
			"OVERWRITE_CONTRECORD", "CHECKPOINT_REDO",
	"LOGICAL_DECODING_STATUS_CHANGE"}},
	{"Transaction",
		{"COMMIT", "PREPARE", "ABORT", "COMMIT_PREPARED", "ABORT_PREPARED",
	"ASSIGNMENT", "INVALIDATION"}},
	{"Storage", {NULL, "CREATE", "TRUNCATE"}},
	{"CLOG", {"ZEROPAGE", "TRUNCATE"}},
	{"Database", {"CREATE_FILE_COPY", "CREATE_WAL_LOG", "DROP"}},
	{"Tablespace", {"CREATE", "DROP"}},
	{"MultiXact",
	{"ZERO_OFF_PAGE", "ZERO_MEM_PAGE", "CREATE_ID", "TRUNCATE_ID"}},
	{"RelMap", {"UPDATE"}},
	{"Standby", {"LOCK", "RUNNING_XACTS", "INVALIDATIONS"}},
	{"Heap2",
		{"REWRITE", "PRUNE", "VACUUM", "FREEZE_PAGE", "VISIBLE", "MULTI_INSERT",
	"LOCK_UPDATED", "NEW_CID"}},
	{"Heap",
		{"INSERT", "DELETE", "UPDATE", "TRUNCATE", "HOT_UPDATE", "CONFIRM", "LOCK",
	"INPLACE"}},
	{"Btree",
		{"INSERT_LEAF", "INSERT_UPPER", "INSERT_META", "SPLIT_L", "SPLIT_R",
			"INSERT_POST", "DEDUP", "DELETE", "UNLINK_PAGE", "UNLINK_PAGE_META",
	"NEWROOT", "MARK_PAGE_HALFDEAD", "VACUUM", "REUSE_PAGE", "META_CLEANUP"}},
	{"Hash",
		{"INIT_META_PAGE", "INIT_BITMAP_PAGE", "INSERT", "ADD_OVFL_PAGE",
			"SPLIT_ALLOCATE_PAGE", "SPLIT_PAGE", "SPLIT_COMPLETE",
			"MOVE_PAGE_CONTENTS", "SQUEEZE_PAGE", "DELETE", "SPLIT_CLEANUP",
	"UPDATE_META_PAGE", "VACUUM_ONE_PAGE"}},
	{"Gin",
		{NULL, "CREATE_PTREE", "INSERT", "SPLIT", "VACUUM_PAGE", "DELETE_PAGE",
			"UPDATE_META_PAGE", "INSERT_LISTPAGE", "DELETE_LISTPAGE",
	"VACUUM_DATA_LEAF_PAGE"}},
	{"Gist",
		{"PAGE_UPDATE", "DELETE", "PAGE_REUSE", "PAGE_SPLIT", NULL, NULL,
	"PAGE_DELETE", "ASSIGN_LSN"}},
	{"Sequence", {"LOG"}},
	{"SPGist",
		{NULL, "ADD_LEAF", "MOVE_LEAFS", "ADD_NODE", "SPLIT_TUPLE", "PICKSPLIT",
	"VACUUM_LEAF", "VACUUM_ROOT", "VACUUM_REDIRECT"}},
	{"BRIN",
		{"CREATE_INDEX", "INSERT", "UPDATE", "SAMEPAGE_UPDATE", "REVMAP_EXTEND",
	"DESUMMARIZE"}},
	{"CommitTs", {"ZEROPAGE", "TRUNCATE"}},
	{"ReplicationOrigin", {"SET", "DROP"}},
	{"Generic", {"GENERIC"}},
	{"LogicalMessage", {"MESSAGE"}},
};

/* Version 17 gave these operations new meanings. */
static const char *const heap2_17[] = {
	"REWRITE", "PRUNE_ON_ACCESS", "PRUNE_VACUUM_SCAN", "PRUNE_VACUUM_CLEANUP"
};

void
wp_type_name(uint16 magic, uint8 rmid, uint8 type, char *buf, size_t size)
{
	uint8		op = type >> 4;
	bool		init = false;
	const Manager *manager = NULL;
	const char *name;

	if (rmid < lengthof(managers))
		manager = &managers[rmid];
	else
	{
		snprintf(buf, size, "Custom%03d/%02X", rmid, type);
		return;
	}
	if ((rmid == WP_RMID_HEAP2 || rmid == WP_RMID_HEAP ||
		 rmid == WP_RMID_BRIN) &&
		op >= 8)
	{
		init = true;
		op -= 8;
	}
	name = manager->types[op];
	if (rmid == WP_RMID_HEAP2 && magic >= WP_MAGIC_17 &&
		op < lengthof(heap2_17))
		name = heap2_17[op];
	if (name != NULL)
		snprintf(buf, size, "%s/%s%s", manager->name, name, init ? "+INIT" : "");
	else
		snprintf(buf, size, "%s/%02X", manager->name, type);
}
