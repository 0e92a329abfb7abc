/*-------------------------------------------------------------------------
 * ip_toast.c
 *	  Forming rows from slots, and telling whether they must be toasted first
 *	  (ip_toaster.h).
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "ip_page.h"
#include "ip_toast.h"


void
ip_toast_form_values(Relation rel, const Datum *values, const bool *isnull,
					 bool final, IpFormed *row)
{
	TupleDesc	desc = RelationGetDescr(rel);

	row->bodylen = ip_body_size(desc, values, isnull);
	if (final && row->bodylen > IP_MAX_BODY)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row is too big: size %u, maximum size %zu",
						row->bodylen + IP_ROW_HDRSZ, (Size) IP_MAX_ITEM)));
	Assert(row->bodylen >= IP_ROW_MIN_BODY);
	row->body = palloc(row->bodylen);
	row->hdr = ip_body_form(desc, values, isnull, row->body, row->bodylen);
}

bool
ip_toast_needed(Relation rel, TupleTableSlot *slot)
{
	TupleDesc	desc = RelationGetDescr(rel);

	if (rel->rd_rel->relkind != RELKIND_RELATION &&
		rel->rd_rel->relkind != RELKIND_MATVIEW)
		return false;
	slot_getallattrs(slot);
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attlen == -1 && !slot->tts_isnull[i] &&
			VARATT_IS_EXTERNAL(DatumGetPointer(slot->tts_values[i])) &&
			!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(slot->tts_values[i])))
			return true;
	}
	return ip_body_size(desc, slot->tts_values, slot->tts_isnull) >
		TOAST_TUPLE_THRESHOLD;
}

bool
ip_toast_take_formed(Relation rel, TupleTableSlot *slot, IpFormed *row)
{
	IpSlot	   *islot = (IpSlot *) slot;
	TupleDesc	desc = RelationGetDescr(rel);

	if (!SlotIsInplace(slot) || slot->tts_tupleDescriptor != desc ||
		islot->body == NULL || !islot->formed ||
		(islot->hdr & IP_HDR_NATTS_MASK) != desc->natts ||
		(islot->hdr & IP_HDR_HASEXTERNAL) ||
		islot->bodylen > TOAST_TUPLE_THRESHOLD)
		return false;
	Assert(islot->bodylen >= IP_ROW_MIN_BODY);
	row->hdr = islot->hdr;
	row->body = unconstify(uint8 *, islot->body);
	row->bodylen = islot->bodylen;
	return true;
}

void
ip_toast_form(Relation rel, TupleTableSlot *slot, bool final, IpFormed *row)
{
	slot_getallattrs(slot);
	ip_toast_form_values(rel, slot->tts_values, slot->tts_isnull, final, row);
}

HeapTuple
ip_toast_heap_tuple(Relation rel, uint16 hdr, const uint8 *body, uint32 bodylen)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Datum	   *values = palloc(sizeof(Datum) * Max(desc->natts, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(desc->natts, 1));
	HeapTuple	tuple;

	ip_body_deform(desc, hdr, body, bodylen, desc->natts, false, values,
				   isnull);
	tuple = heap_form_tuple(desc, values, isnull);
	pfree(values);
	pfree(isnull);
	return tuple;
}

bool
ip_toast_needs_table(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int32		size = 0;
	bool		toastable = false;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		int32		max;

		if (att->attisdropped)
			continue;
		if (att->attlen > 0)
		{
			size += att->attlen;
			continue;
		}
		toastable |= att->attstorage != TYPSTORAGE_PLAIN;
		max = type_maximum_size(att->atttypid, att->atttypmod);
		if (max < 0 && att->attstorage != TYPSTORAGE_PLAIN)
			return true;		/* no limit */
		size += Max(max, 0);
	}
	return toastable &&
		size + BITMAPLEN(desc->natts) + IP_ROW_MIN_ITEM > TOAST_TUPLE_THRESHOLD;
}
