/*-------------------------------------------------------------------------
 * ip_update_columns.c
 *	  Changed columns that matter to indexes, foreign keys and triggers.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"

#include "ip_keys.h"
#include "ip_update_columns.h"
#include "ip_version_satisfy.h"

/*
 * Find out which versions the queue of AFTER ROW triggers may have to fetch by
 * TID.
 */
static void
queued_versions(IpColumns * c)
{
	TriggerDesc *desc = c->rel->trigdesc;

	for (int i = 0; desc && i < desc->numtriggers; i++)
	{
		Trigger    *trigger = &desc->triggers[i];

		if (!TRIGGER_FOR_AFTER(trigger->tgtype) ||
			!TRIGGER_FOR_ROW(trigger->tgtype))
			continue;
		switch (RI_FKey_trigger_type(trigger->tgfoid))
		{
			case RI_TRIGGER_NONE:

				/*
				 * triggers of deferrable constraints, queued after index
				 * insertions
				 */
				if (trigger->tgfoid == F_UNIQUE_KEY_RECHECK)
					continue;
				break;
			case RI_TRIGGER_FK:
				c->is_referencing = true;
				break;
			case RI_TRIGGER_PK:
				continue;		/* referenced columns have a unique index */
		}
		c->is_queued = true;
		c->is_deferrable |= trigger->tgdeferrable;
	}
}

void
ip_update_columns_init(IpColumns * c, Relation rel)
{
	const IpFollowed *followed = ip_keys_followed(rel);
	ListCell   *lc;

	memset(c, 0, offsetof(IpColumns, followed));
	c->rel = rel;
	c->nfollowed = followed->ncolumns;
	if (followed->ncolumns > 0)
		c->followed = *followed;
	queued_versions(c);
	c->blocking = RelationGetIndexAttrBitmap(c->rel,
											 INDEX_ATTR_BITMAP_HOT_BLOCKING);
	for (int i = 0; i < c->nfollowed; i++)
		c->blocking = bms_del_member(c->blocking, c->followed.columns[i] -
									 FirstLowInvalidHeapAttributeNumber);
	c->summarized = CompatSummarizedColumns(c->rel);
	c->key = RelationGetIndexAttrBitmap(c->rel, INDEX_ATTR_BITMAP_KEY);
	if (!c->is_referencing)
		return;
	foreach(lc, RelationGetFKeyList(c->rel))
	{
		ForeignKeyCacheInfo *fk = lfirst(lc);

		for (int i = 0; i < fk->nkeys; i++)
			c->blocking = bms_add_member(c->blocking,
										 fk->conkey[i] -
										 FirstLowInvalidHeapAttributeNumber);
	}
}

static bool
column_changed(TupleDesc desc, int attno, const Datum *olds,
			   const bool *old_null, const Datum *news, const bool *new_null)
{
	Form_pg_attribute att;

	/* whole-row references, and system columns */
	if (attno <= 0)
		return attno != TableOidAttributeNumber;
	attno--;
	if (old_null[attno] || new_null[attno])
		return old_null[attno] != new_null[attno];
	att = TupleDescAttr(desc, attno);
	return !datumIsEqual(olds[attno], news[attno], att->attbyval, att->attlen);
}

/*
 * Returns whether a trigger for an event of our own transaction may be queued
 * that knows only the row's TID.  The trigger of an insertion does (COPY
 * FREEZE's rows do not show it).  The trigger of an update in place knows its
 * undo record, but finding a version that many others have followed takes as
 * many steps.
 */
static bool
may_be_queued(const IpColumns * c, IpVersion *v)
{
	if (!c->is_queued)
		return false;
	if (CompatFileIsNew(c->rel))
		return true;
	return ((v->state & IP_ROW_INSERTED) || c->is_deferrable) &&
		ip_version_status(v) == IP_STATUS_MINE;
}

/*
 * Compare the column that i stands for in bitmaps, and note the consequences
 * if it changes.
 */
static void
compare_column(IpColumns * c, int i, const Datum *olds, const bool *old_null,
			   const Datum *news, const bool *new_null)
{
	if (!column_changed(RelationGetDescr(c->rel),
						i + FirstLowInvalidHeapAttributeNumber, olds, old_null,
						news, new_null))
		return;
	if (bms_is_member(i, c->blocking))
		c->blocked = true;
	if (bms_is_member(i, c->summarized))
		c->summarize = true;
	for (int k = 0; k < c->nfollowed; k++)
	{
		if (c->followed.columns[k] == i + FirstLowInvalidHeapAttributeNumber)
			c->changed |= c->followed.column_indexes[k];
	}
	if (bms_is_member(i, c->key))
		c->key_changed = true;
}

/*
 * Returns the last column that is compared; later columns need not be
 * deformed.
 */
static int
last_column(const IpColumns * c)
{
	int			last = Max(bms_prev_member(c->blocking, -1),
						   bms_prev_member(c->summarized, -1)) +
		FirstLowInvalidHeapAttributeNumber;

	for (int i = 0; i < c->nfollowed; i++)
		last = Max(last, c->followed.columns[i]);
	return Max(last, 0);
}

void
ip_update_columns_compare(IpColumns * c, IpVersion *v, const IpFormed *row)
{
	static Datum olds[MaxHeapAttributeNumber];
	static Datum news[MaxHeapAttributeNumber];
	static bool old_null[MaxHeapAttributeNumber];
	static bool new_null[MaxHeapAttributeNumber];
	TupleDesc	desc = RelationGetDescr(c->rel);
	int			natts;
	int			i;

	c->summarize = false;
	c->key_changed = false;
	c->changed = 0;
	c->blocked = may_be_queued(c, v);
	if (c->blocking == NULL && c->summarized == NULL && c->nfollowed == 0)
		return;
	natts = last_column(c);
	ip_body_deform(desc, v->hdr, v->body, v->bodylen, natts, false, olds,
				   old_null);
	ip_body_deform(desc, row->hdr, row->body, row->bodylen, natts, true, news,
				   new_null);
	for (i = -1; (i = bms_next_member(c->blocking, i)) >= 0;)
		compare_column(c, i, olds, old_null, news, new_null);
	for (i = -1; (i = bms_next_member(c->summarized, i)) >= 0;)
		compare_column(c, i, olds, old_null, news, new_null);
	for (i = 0; i < c->nfollowed; i++)
		compare_column(c, c->followed.columns[i] -
					   FirstLowInvalidHeapAttributeNumber, olds, old_null, news,
					   new_null);

	/* an index's expression may change rows before core fetches OLD */
	c->blocked |= c->summarize && c->is_queued;
}

#ifdef USE_ASSERT_CHECKING
bool
ip_update_columns_may_stay(const IpColumns * c, const IpFormed *from,
						   const IpFormed *to)
{
	TupleDesc	desc = RelationGetDescr(c->rel);
	Datum	   *values = palloc(2 * desc->natts * sizeof(Datum));
	bool	   *isnull = palloc(2 * desc->natts * sizeof(bool));
	int			i = -1;

	ip_body_deform(desc, from->hdr, from->body, from->bodylen, desc->natts,
				   false, values, isnull);
	ip_body_deform(desc, to->hdr, to->body, to->bodylen, desc->natts, true,
				   values + desc->natts, isnull + desc->natts);
	while ((i = bms_next_member(c->blocking, i)) >= 0)
	{
		if (column_changed(desc, i + FirstLowInvalidHeapAttributeNumber, values,
						   isnull, values + desc->natts, isnull + desc->natts))
			return false;
	}
	return true;
}
#endif
