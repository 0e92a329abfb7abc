/*-------------------------------------------------------------------------
 * pb_inspect.c
 *	  Functions that show the contents of an index.
 *-------------------------------------------------------------------------
 */
#include "compat_index.h"

#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#include "pb_inspect.h"
#include "pb_pos.h"

PGDLLEXPORT Datum pbtree_page(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum pbtree_items(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum pbtree_stats(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum pbtree_counters(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pbtree_page);
PG_FUNCTION_INFO_V1(pbtree_items);
PG_FUNCTION_INFO_V1(pbtree_stats);
PG_FUNCTION_INFO_V1(pbtree_counters);

void
pb_inspect_wrong_kind(Oid oid)
{
	char	   *name = get_rel_name(oid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", oid)));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not a pbtree index", name),
			 get_rel_relkind(oid) == RELKIND_PARTITIONED_INDEX ?
			 errhint("Name the index of a partition.") : 0));
}

Relation
pb_inspect_open(Oid oid, LOCKMODE lock)
{
	Relation	rel = try_relation_open(oid, lock);

	if (rel == NULL || rel->rd_rel->relkind != RELKIND_INDEX ||
		rel->rd_rel->relam != get_index_am_oid("pbtree", false))
		pb_inspect_wrong_kind(oid);
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	if (RecoveryInProgress() &&
		rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access unlogged indexes during recovery")));
	return rel;
}

static Buffer
read_block(Relation rel, int64 block)
{
	Buffer		buffer;

	if (block < 0 || block >= RelationGetNumberOfBlocks(rel))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("block number " INT64_FORMAT " is out of range for index \"%s\"",
						block, RelationGetRelationName(rel))));
	buffer = ReadBuffer(rel, (BlockNumber) block);
	LockBuffer(buffer, PB_READ);
	if (PageIsNew(BufferGetPage(buffer)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("block " INT64_FORMAT
						" of index \"%s\" has never been written",
						block, RelationGetRelationName(rel)),
				 errdetail("A crash can leave such a block; VACUUM makes it available for new pages.")));
	pb_index_check_page(rel, buffer);
	return buffer;
}

/* Make a bytea, which is the same varlena as a text. */
static Datum
bytes_datum(const uint8 *p, int len)
{
	return PointerGetDatum(cstring_to_text_with_len((const char *) p, len));
}

static Datum
flags_datum(int flags)
{
	static const char *const names[] = {
		"meta", "deleted", "incomplete", "heads", "maps", "garbage"
	};
	Datum		words[lengthof(names)];
	int			n = 0;

	for (int i = 0; i < lengthof(names); i++)
	{
		if (flags & (1 << i))
			words[n++] = CStringGetTextDatum(names[i]);
	}
	return PointerGetDatum(construct_array(words, n, TEXTOID, -1,
										   false, TYPALIGN_INT));
}

/* level, prev, next, flags, items, free bytes, prefix, low fence, high fence */
Datum
pbtree_page(PG_FUNCTION_ARGS)
{
	Relation	rel = pb_inspect_open(PG_GETARG_OID(0), AccessShareLock);
	Buffer		buffer = read_block(rel, PG_GETARG_INT64(1));
	Page		page = BufferGetPage(buffer);
	PbSpecial  *special = PbPageGetSpecial(page);
	bool		tree = !(special->flags & (PB_PAGE_META | PB_PAGE_DELETED));
	TupleDesc	desc;
	Datum		values[9];
	bool		isnull[9] = {false};
	HeapTuple	tuple;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int32GetDatum(special->level);
	values[1] = Int64GetDatum(special->prev);
	values[2] = Int64GetDatum(special->next);
	values[3] = flags_datum(special->flags);
	values[4] = Int32GetDatum(tree ? pb_page_nslots(page) : 0);
	values[5] = Int32GetDatum(pb_page_room(page));
	values[6] = bytes_datum(pb_page_prefix(page),
							tree ? special->prefix_len : 0);
	values[7] = bytes_datum(pb_page_low(page), tree ? special->low_len : 0);
	values[8] = bytes_datum(pb_page_high(page), tree ? special->high_len : 0);
	isnull[7] = !tree || special->low_len == 0;
	isnull[8] = !tree || special->high_len == 0;
	UnlockReleaseBuffer(buffer);
	relation_close(rel, AccessShareLock);
	tuple = heap_form_tuple(BlessTupleDesc(desc), values, isnull);
	PG_RETURN_DATUM(HeapTupleGetDatum(tuple));
}

/* ---- items ------------------------------------------------------------- */

static Datum
tids_datum(Relation rel, Buffer buffer, Page page, int slot, const PbItem *item)
{
	ItemPointerData *tids = palloc(PB_MAX_TIDS * sizeof(ItemPointerData));
	Datum	   *values = palloc(PB_MAX_TIDS * sizeof(Datum));
	int			n = pb_item_tids(rel, buffer, page, slot, item, tids);

	for (int i = 0; i < n; i++)
		values[i] = PointerGetDatum(&tids[i]);
	return PointerGetDatum(construct_array(values, n, TIDOID,
										   sizeof(ItemPointerData), false,
										   TYPALIGN_SHORT));
}

/* The columns, as text. */
static Datum
key_datum(Relation rel, PbIndex *index, const PbKey *key)
{
	Datum		words[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	int			dims[1] = {key->natts};
	int			lower[1] = {1};
	PbArena    *arena = palloc(sizeof(PbArena));

	arena->used = 0;
	for (int i = 0; i < key->natts; i++)
	{
		Datum		value = pb_key_datum(index, key, i, &isnull[i], arena);
		Oid			out;
		bool		is_varlena;

		if (isnull[i])
			continue;
		getTypeOutputInfo(TupleDescAttr(RelationGetDescr(rel), i)->atttypid,
						  &out, &is_varlena);
		words[i] = CStringGetTextDatum(OidOutputFunctionCall(out, value));
	}
	if (key->natts == 0)
		return PointerGetDatum(construct_empty_array(TEXTOID));
	return PointerGetDatum(construct_md_array(words, isnull, 1, dims, lower,
											  TEXTOID, -1, false,
											  TYPALIGN_INT));
}

static void
put_item(ReturnSetInfo *rsinfo, Relation rel, PbIndex *index, Buffer buffer,
		 Page page, int slot)
{
	PbItem		item;
	Datum		values[7];
	bool		isnull[7] = {false};
	bool		leaf = pb_page_is_leaf(page);

	pb_item_get(rel, index, buffer, page, slot, &item);
	values[0] = Int32GetDatum(slot + 1);
	values[1] = Int32GetDatum(pb_page_item_len(page, slot));
	values[2] = BoolGetDatum((item.flags & PB_SLOT_DEAD) != 0);
	values[3] = key_datum(rel, index, &item.key);
	values[4] = bytes_datum(item.key.data, item.key.len);
	isnull[5] = leaf;
	values[5] = Int64GetDatum(leaf ? 0 : item.down);
	if (leaf)
		values[6] = tids_datum(rel, buffer, page, slot, &item);
	else
	{
		Datum		tid = PointerGetDatum(&item.key.tid);

		isnull[6] = !item.key.has_tid;
		values[6] = PointerGetDatum(construct_array(&tid, 1, TIDOID,
													sizeof(ItemPointerData),
													false, TYPALIGN_SHORT));
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

/* offset, length, dead, key, its bytes, downlink, TIDs */
Datum
pbtree_items(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	rel = pb_inspect_open(PG_GETARG_OID(0), AccessShareLock);
	PbIndex    *index = pb_index_get(rel);
	Buffer		buffer = read_block(rel, PG_GETARG_INT64(1));
	Page		copy = palloc(BLCKSZ);

	/* from a copy: output functions may do anything */
	memcpy(copy, BufferGetPage(buffer), BLCKSZ);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	CompatInitMaterializedSRF(fcinfo);
	if (!(PbPageGetSpecial(copy)->flags & (PB_PAGE_META | PB_PAGE_DELETED)))
	{
		const char *problem = pb_page_check_slots(copy);

		if (problem)
			pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1, problem);
		for (int slot = 0; slot < pb_page_nslots(copy); slot++)
			put_item(rsinfo, rel, index, buffer, copy, slot);
	}
	ReleaseBuffer(buffer);
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* ---- statistics -------------------------------------------------------- */

/* Sum up the use of the file's bytes. */
typedef struct Sizes
{
	int64		pages[4];		/* leaf, inner, deleted, meta */
	int64		items;
	int64		rows;
	int64		slots;			/* bytes, from here on */
	int64		keys;
	int64		tids;
	int64		prefixes;
	int64		fences;
	int64		headers;
	int64		free;
	int64		saved;			/* saved by prefixes */
} Sizes;

static void
add_leaf(Relation rel, PbIndex *index, Buffer buffer, Page page, Sizes *s)
{
	PbItem	   *item = palloc(sizeof(PbItem));
	ItemPointerData *tids = palloc(PB_MAX_TIDS * sizeof(ItemPointerData));
	uint16	   *lens = palloc(BLCKSZ);

	if (!pb_page_item_lens(page, lens))
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1,
						 "The page's slots are damaged.");
	for (int slot = 0; slot < pb_page_nslots(page); slot++)
	{
		int			keep;

		pb_item_get(rel, index, buffer, page, slot, item);
		keep = pb_item_keep(page, slot, item->tail);
		s->rows += pb_item_tids(rel, buffer, page, slot, item, tids);
		s->keys += keep;
		s->tids += lens[slot] - keep;
	}
	pfree(item);
	pfree(tids);
	pfree(lens);
}

static void
add_page(Relation rel, PbIndex *index, BlockNumber block, Sizes *s)
{
	Buffer		buffer = ReadBuffer(rel, block);
	Page		page = BufferGetPage(buffer);
	PbSpecial  *special;
	int			n;

	LockBuffer(buffer, PB_READ);
	if (PageIsNew(page))
	{
		/* equivalent to deleted, as no change has reached it */
		s->pages[2]++;
		s->free += BLCKSZ;
		UnlockReleaseBuffer(buffer);
		return;
	}
	pb_index_check_page(rel, buffer);
	special = PbPageGetSpecial(page);
	s->headers += SizeOfPageHeaderData + PB_SPECIAL_SIZE;
	if (special->flags & (PB_PAGE_META | PB_PAGE_DELETED))
	{
		s->pages[special->flags & PB_PAGE_META ? 3 : 2]++;
		s->free += pb_page_room(page);
		UnlockReleaseBuffer(buffer);
		return;
	}
	n = pb_page_nslots(page);
	s->pages[special->level > 0]++;
	s->items += n;
	s->slots += n * pb_page_slot_size(page);
	s->prefixes += special->prefix_len;
	s->fences += special->low_len + special->high_len;
	s->free += pb_page_room(page);
	s->saved += (n - 1) * (int64) special->prefix_len;
	if (special->level == 0)
		add_leaf(rel, index, buffer, page, s);
	else
		s->keys += PbPageSpecial(page) - PbPageUpper(page) -
			special->prefix_len - special->low_len - special->high_len;
	UnlockReleaseBuffer(buffer);
}

Datum
pbtree_stats(PG_FUNCTION_ARGS)
{
	Relation	rel = pb_inspect_open(PG_GETARG_OID(0), AccessShareLock);
	PbIndex    *index = pb_index_get(rel);
	BlockNumber n = RelationGetNumberOfBlocks(rel);
	Sizes		s = {0};
	TupleDesc	desc;
	Datum		values[15];
	bool		isnull[15] = {false};
	int64	   *numbers = (int64 *) &s;
	int			level;
	HeapTuple	tuple;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for (BlockNumber block = 0; block < n; block++)
	{
		CHECK_FOR_INTERRUPTS();
		add_page(rel, index, block, &s);
	}
	(void) pb_index_root(rel, index, &level);
	values[0] = Int32GetDatum(level);
	for (int i = 0; i < lengthof(values) - 1; i++)
		values[i + 1] = Int64GetDatum(numbers[i]);
	relation_close(rel, AccessShareLock);
	tuple = heap_form_tuple(BlessTupleDesc(desc), values, isnull);
	PG_RETURN_DATUM(HeapTupleGetDatum(tuple));
}

/*
 * Show the costs of this session's searches: descents, keys, columns, bytes,
 * heads.  Optionally reset them.
 */
Datum
pbtree_counters(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[5];
	bool		isnull[5] = {false};
	HeapTuple	tuple;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum(pb_counters.descents);
	values[1] = Int64GetDatum(pb_counters.keys);
	values[2] = Int64GetDatum(pb_counters.columns);
	values[3] = Int64GetDatum(pb_counters.bytes);
	values[4] = Int64GetDatum(pb_counters.heads);
	if (PG_GETARG_BOOL(0))
		memset(&pb_counters, 0, sizeof(pb_counters));
	tuple = heap_form_tuple(BlessTupleDesc(desc), values, isnull);
	PG_RETURN_DATUM(HeapTupleGetDatum(tuple));
}
