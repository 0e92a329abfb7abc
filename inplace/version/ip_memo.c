/*-------------------------------------------------------------------------
 * ip_memo.c
 *	  Notes about core's last call, where the next call gets too little
 *	  information.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "ip_memo.h"

typedef struct RowName
{
	Oid			relid;			/* InvalidOid: none */
	ItemPointerData tid;
} RowName;

/* A command's action on a row. */
typedef struct RowAct
{
	RowName		name;
	TransactionId xid;
	CommandId	cid;
} RowAct;

/* A row that the trigger queue is about to fetch. */
typedef struct NotedRow
{
	RowName		name;
	int			fetches;
	TransactionId end_xid;		/* xid of the deletion or move */
	CommandId	end_cid;
} NotedRow;

/* A (sub)transaction, with which notes end. */
typedef struct Moment
{
	LocalTransactionId transaction;
	SubTransactionId subtransaction;
} Moment;

static IpSeen seen;
static uint64 taken;			/* last note that ip_memo_was_seen returned */
static Moment seen_at;
static CommandId seen_cid;
static RowAct locked;
static RowAct blind;
static LocalTransactionId rows_at = InvalidLocalTransactionId;
static HTAB *rows;				/* in memory of the transaction */
static CommandId speculative_cid;
static RowName updated;
static Moment updated_at;
static CommandId updated_cid;
static RowName ended;
static Moment ended_at;
static IpXid ended_by_xid;
static IpPtr ended_by_ptr;

/* Set a name for use as a hash key, in which all bytes count. */
static void
set_name(RowName *name, Relation rel, const ItemPointerData *tid)
{
	memset(name, 0, sizeof(*name));
	name->relid = RelationGetRelid(rel);
	name->tid = *tid;
}

static void
set_act(RowAct *act, Relation rel, const ItemPointerData *tid,
		TransactionId xid, CommandId cid)
{
	set_name(&act->name, rel, tid);
	act->xid = xid;
	act->cid = cid;
}

static bool
is_row(const RowName *name, Relation rel, const ItemPointerData *tid)
{
	return name->relid == RelationGetRelid(rel) &&
		ItemPointerEquals(unconstify(ItemPointerData *, &name->tid),
						  unconstify(ItemPointerData *, tid));
}

static Moment
now(void)
{
	Moment		moment = {CompatMyLocalXid, GetCurrentSubTransactionId()};

	return moment;
}

static bool
is_now(const Moment *moment)
{
	return moment->transaction == CompatMyLocalXid &&
		moment->subtransaction == GetCurrentSubTransactionId();
}

IpSeen
ip_memo_seen(IpVersion *v, bool by_index)
{
	return (IpSeen)
	{
		.relid = RelationGetRelid(v->rel),.tid = v->tid,
			.xid = v->xid,.ptr = v->ptr,.by_index = by_index
	};
}

void
ip_memo_note_seen(IpSeen *version)
{
	static uint64 serial = 0;

	if (version == NULL)
	{
		seen.relid = InvalidOid;
		return;
	}
	version->serial = ++serial;
	seen = *version;
	seen_at = now();
	seen_cid = GetCurrentCommandId(false);
}

void
ip_memo_forget_seen(Relation rel, const ItemPointerData *tid)
{
	if (unlikely(seen.relid == RelationGetRelid(rel)) &&
		ItemPointerEquals(&seen.tid, unconstify(ItemPointerData *, tid)))
		seen.relid = InvalidOid;
}

void
ip_memo_note_seen_at_end(IpSeen *version)
{
	if (taken != version->serial)
		ip_memo_note_seen(version);
}

bool
ip_memo_was_seen(Relation rel, const ItemPointerData *tid, IpSeen *result)
{
	if (seen.relid != RelationGetRelid(rel) ||
		!ItemPointerEquals(&seen.tid, unconstify(ItemPointerData *, tid)))
		return false;
	*result = seen;
	seen.relid = InvalidOid;
	if (!is_now(&seen_at) || seen_cid != GetCurrentCommandId(false))
		return false;
	taken = seen.serial;
	return true;
}

bool
ip_memo_is_seen(IpVersion *v, const IpSeen *version)
{
	if (v->xid == version->xid && IpPtrEquals(v->ptr, version->ptr))
		return true;
	/* ON CONFLICT does not wait before it requests the lock */
	if (!IpXidIsFrozen(version->xid) &&
		ip_xid_status(version->xid, v->horizon) == IP_STATUS_ABORTED)
		return true;
	/* a version that is visible to all is not a new one */
	return IpXidIsFrozen(v->xid) ||
		(ip_xid_removable(v->rel, v->xid) &&
		 ip_xid_removable(v->rel, version->xid));
}

void
ip_memo_note_locked(Relation rel, const ItemPointerData *tid, TransactionId xid,
					CommandId cid)
{
	Assert(TransactionIdIsValid(xid) && !ip_tid_is_version(tid));
	set_act(&locked, rel, tid, xid, cid);
}

bool
ip_memo_locked_beside(Relation rel, const ItemPointerData *tid,
					  TransactionId xid, CommandId cid)
{
	return locked.xid == xid && locked.cid == cid &&
		locked.name.relid == RelationGetRelid(rel) &&
		ItemPointerGetBlockNumberNoCheck(&locked.name.tid) ==
		ItemPointerGetBlockNumberNoCheck(tid);
}

bool
ip_memo_was_locked(Relation rel, const ItemPointerData *tid, CommandId cid)
{
	return locked.xid == GetCurrentTransactionIdIfAny() && locked.cid == cid &&
		is_row(&locked.name, rel, tid);
}

void
ip_memo_note_blind(Relation rel, const ItemPointerData *tid, TransactionId xid,
				   CommandId cid)
{
	set_act(&blind, rel, tid, xid, cid);
}

bool
ip_memo_was_blind(const IpVersion *v)
{
	return is_row(&blind.name, v->rel, &v->tid) &&
		blind.xid == (TransactionId) v->end_xid && blind.cid == v->end_cid;
}

void
ip_memo_note_asked_for(Relation rel, const ItemPointerData *tid,
					   TransactionId xid, CommandId cid, int fetches)
{
	NotedRow   *row;
	RowName		name;

	if (rows_at != CompatMyLocalXid)
	{
		HASHCTL		ctl = {
			.keysize = sizeof(RowName),.entrysize = sizeof(NotedRow),
			.hcxt = TopTransactionContext
		};

		rows = hash_create("inplace noted rows", 16, &ctl,
						   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		rows_at = CompatMyLocalXid;
	}
	set_name(&name, rel, tid);
	row = hash_search(rows, &name, HASH_ENTER, NULL);
	row->fetches = fetches;
	row->end_xid = xid;
	row->end_cid = cid;
}

bool
ip_memo_is_asked_for(const IpVersion *v)
{
	NotedRow   *row = NULL;
	RowName		name;

	set_name(&name, v->rel, &v->tid);
	if (rows_at == CompatMyLocalXid)
		row = hash_search(rows, &name, HASH_FIND, NULL);
	if (row == NULL || row->end_xid != (TransactionId) v->end_xid ||
		row->end_cid != v->end_cid)
		return false;
	if (row->fetches != IP_MEMO_ALWAYS && --row->fetches == 0)
		(void) hash_search(rows, &row->name, HASH_REMOVE, NULL);
	return true;
}

void
ip_memo_note_speculative(CommandId cid)
{
	speculative_cid = cid;
}

CommandId
ip_memo_speculative(void)
{
	return speculative_cid;
}

void
ip_memo_note_updated(Relation rel, const ItemPointerData *tid, CommandId cid)
{
	set_name(&updated, rel, tid);
	updated_at = now();
	updated_cid = cid;
}

bool
ip_memo_was_updated(const IpVersion *v)
{
	bool		result = is_row(&updated, v->rel, &v->tid) &&
		is_now(&updated_at) && updated_cid == v->end_cid &&
		(TransactionId) v->end_xid == GetCurrentTransactionIdIfAny();

	if (result)
		updated.relid = InvalidOid;
	return result;
}

void
ip_memo_note_ended(Relation rel, const IpTarget *target)
{
	ended.relid = target->next_xid == IP_XID_NONE ? InvalidOid :
		RelationGetRelid(rel);
	ended.tid = target->row;
	ended_at = now();
	ended_by_xid = target->next_xid;
	ended_by_ptr = target->next_ptr;
}

bool
ip_memo_was_ended(Relation rel, const ItemPointerData *tid, IpTarget *target)
{
	bool		result = is_row(&ended, rel, tid) && is_now(&ended_at);

	ended.relid = InvalidOid;
	if (!result)
		return false;
	target->row = *tid;
	target->exact = true;
	target->inserted = false;
	target->xid = ended_by_xid;
	target->ptr = ended_by_ptr;
	target->next_xid = IP_XID_NONE;
	target->next_ptr = ip_ptr_cid(0);
	return true;
}
