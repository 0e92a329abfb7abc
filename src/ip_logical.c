/*-------------------------------------------------------------------------
 * ip_logical.c
 *	  Making the section of a WAL record that logical decoding reads.
 *
 * What is logged of the old row depends on the table's replica identity, as in
 * heap: nothing, its key (of an update only if that changes), or all of it.
 *-------------------------------------------------------------------------
 */
#include "ip_compat.h"

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "catalog/catalog.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "ip_logical.h"

/* A WAL record, with everything else that is in it, must stay below 1 GB. */
#define MAX_SECTION		((Size) 1000 * 1024 * 1024)

/* The section being made, and whatever that takes. */
static MemoryContext logical_context;

StringInfo
ip_logical_begin(Relation rel, IpLogicalAction action)
{
	MemoryContext old;
	StringInfo	section;

	if (!RelationIsLogicallyLogged(rel))
		return NULL;
	/* decoding would read it as of the past; nothing keeps its versions for that */
	if (RelationIsUsedAsCatalogTable(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("inplace table \"%s\" cannot be used as a catalog table",
						RelationGetRelationName(rel)),
				 errhint("Reset its storage parameter user_catalog_table.")));
	if (logical_context == NULL)
		logical_context = AllocSetContextCreate(TopMemoryContext, "inplace logical section",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(logical_context);
	old = MemoryContextSwitchTo(logical_context);
	section = makeStringInfo();
	MemoryContextSwitchTo(old);
	appendStringInfoChar(section, action);
	return section;
}

void
ip_logical_end(void)
{
	if (logical_context)
		MemoryContextReset(logical_context);
}

/* ---- tuples ---------------------------------------------------------------------- */

/* What it takes to make the tuple again; its xids and TIDs mean nothing. */
static void
add_tuple(StringInfo section, HeapTuple tuple)
{
	HeapTupleHeader header = tuple->t_data;
	uint32		natts = HeapTupleHeaderGetNatts(header);
	uint32		len = tuple->t_len - header->t_hoff;
	uint8		head[16];
	IpWriter	w = {head, head + sizeof(head), false};

	if (section->len + (Size) tuple->t_len > MAX_SECTION)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row is too big for logical replication: size %u", tuple->t_len)));
	ip_put_varint(&w, natts);
	ip_put_u8(&w, header->t_infomask & (HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL));
	ip_put_varint(&w, len);
	appendBinaryStringInfo(section, (char *) head, w.p - head);
	if (header->t_infomask & HEAP_HASNULL)
		appendBinaryStringInfo(section, (char *) header->t_bits, BITMAPLEN(natts));
	appendBinaryStringInfo(section, (char *) header + header->t_hoff, len);
}

static HeapTuple
row_tuple(Relation rel, const IpFormed *row)
{
	return ip_heap_tuple(rel, row->hdr, row->body, row->bodylen);
}

/* The tuple without TOAST pointers: what they point to is about to go. */
static HeapTuple
flatten(Relation rel, HeapTuple tuple)
{
	return HeapTupleHasExternal(tuple) ? toast_flatten_tuple(tuple, RelationGetDescr(rel)) : tuple;
}

/* ---- the old row -------------------------------------------------------------------- */

/*
 * Can the row's key not be taken from the new row?  It cannot either where it is
 * in the TOAST table, as decoding does not see what an update leaves there.
 */
static bool
key_is_needed(Relation rel, Bitmapset *key, HeapTuple old, HeapTuple new)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int			i = -1;

	while ((i = bms_next_member(key, i)) >= 0)
	{
		int			attno = i + FirstLowInvalidHeapAttributeNumber;
		Form_pg_attribute att = TupleDescAttr(desc, attno - 1);
		bool		old_null;
		bool		new_null;
		Datum		o = heap_getattr(old, attno, desc, &old_null);
		Datum		n = heap_getattr(new, attno, desc, &new_null);

		if (old_null != new_null)
			return true;
		if (!old_null && (!datumIsEqual(o, n, att->attbyval, att->attlen) ||
						  (att->attlen == -1 && VARATT_IS_EXTERNAL(DatumGetPointer(o)))))
			return true;
	}
	return false;
}

/* The key's columns alone, the others NULL. */
static HeapTuple
key_tuple(Relation rel, Bitmapset *key, HeapTuple tuple)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Datum	   *values = palloc(sizeof(Datum) * desc->natts);
	bool	   *isnull = palloc(sizeof(bool) * desc->natts);

	heap_deform_tuple(tuple, desc, values, isnull);
	for (int i = 0; i < desc->natts; i++)
	{
		if (!bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, key))
			isnull[i] = true;
	}
	return heap_form_tuple(desc, values, isnull);
}

/* Add what identifies the row that was, if anything; new is NULL if it was deleted. */
static void
add_old(StringInfo section, Relation rel, HeapTuple old, HeapTuple new)
{
	HeapTuple	tuple = old;

	if (rel->rd_rel->relreplident == REPLICA_IDENTITY_NOTHING)
		return;
	if (rel->rd_rel->relreplident != REPLICA_IDENTITY_FULL)
	{
		Bitmapset  *key = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_IDENTITY_KEY);

		if (bms_is_empty(key) || (new && !key_is_needed(rel, key, old, new)))
			return;
		tuple = key_tuple(rel, key, old);
	}
	section->data[0] |= IP_LOGICAL_OLD;
	add_tuple(section, flatten(rel, tuple));
}

/* ---- sections ---------------------------------------------------------------------- */

StringInfo
ip_logical_insert(Relation rel, IpLogicalAction action, const IpFormed *rows, int nrows,
				  bool more)
{
	StringInfo	section = ip_logical_begin(rel, action);
	MemoryContext context;

	if (section == NULL)
		return NULL;
	context = MemoryContextSwitchTo(logical_context);
	if (more)
		section->data[0] |= IP_LOGICAL_MORE;
	for (int i = 0; i < nrows; i++)
	{
		HeapTuple	tuple = row_tuple(rel, &rows[i]);

		add_tuple(section, tuple);
		heap_freetuple(tuple);
	}
	MemoryContextSwitchTo(context);
	return section;
}

StringInfo
ip_logical_update(Relation rel, const IpFormed *old, const IpFormed *row)
{
	StringInfo	section = ip_logical_begin(rel, IP_LOGICAL_UPDATE);
	MemoryContext context;
	HeapTuple	new;

	if (section == NULL)
		return NULL;
	context = MemoryContextSwitchTo(logical_context);
	new = row_tuple(rel, row);
	add_old(section, rel, row_tuple(rel, old), new);
	add_tuple(section, new);
	MemoryContextSwitchTo(context);
	return section;
}

StringInfo
ip_logical_delete(Relation rel, const IpFormed *old)
{
	StringInfo	section = ip_logical_begin(rel, IP_LOGICAL_DELETE);
	MemoryContext context;

	if (section == NULL)
		return NULL;
	context = MemoryContextSwitchTo(logical_context);
	add_old(section, rel, row_tuple(rel, old), NULL);
	MemoryContextSwitchTo(context);
	return section;
}
