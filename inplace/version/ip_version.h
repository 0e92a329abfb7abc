/*-------------------------------------------------------------------------
 * ip_version.h
 *	  The versions of one row, newest first, and what a snapshot sees.
 *
 * An IpVersion stands on one version of a row.  It begins on the newest, which
 * is on the data page, and goes to older ones through undo.  A backend that
 * does not hold the data page's lock may find that an undo record is gone,
 * because an aborted change was rolled back and its undo page used again.  The
 * result is then IPV_STALE, and the caller starts again from the row.
 *-------------------------------------------------------------------------
 */
#ifndef IP_VERSION_H
#define IP_VERSION_H

#include "compat.h"

#include "utils/snapshot.h"

#include "ip_body.h"
#include "ip_lockset.h"
#include "ip_page.h"
#include "ip_row.h"
#include "ip_undo_rec.h"
#include "ip_xid.h"

typedef enum IpvResult
{
	IPV_OK,						/* there is a version */
	IPV_NONE,					/* there is none */
	IPV_STALE,					/* undo changed under us: start again */
	IPV_FAR						/* too far down for a backend that holds the
								 * page's lock */
} IpvResult;

/*
 * A backend that holds a data page's lock reads no more undo records of a row
 * than this.
 */
#define IP_MAX_LOCKED_STEPS	200

typedef struct IpVersion
{
	Relation	rel;
	ItemPointerData tid;
	Page		page;			/* the row's page, while it is locked, or a
								 * copy; has its undo records at home */
	IpChanged	changed;		/* change by the page's default changer */
	/* this version */
	uint16		hdr;
	uint8		state;			/* IP_ROW_* */
	IpXid		xid;			/* made it; frozen: visible to all */
	IpPtr		ptr;			/* undo record of the change that made it, or
								 * cid */
	const uint8 *body;
	uint32		bodylen;
	IpXid		horizon;		/* pg_xact's horizon when the page was locked,
								 * or earlier */
	bool		locked;			/* the page is still locked: xids that pg_xact
								 * drops meanwhile have committed */
	bool		forgotten;		/* it is not locked, and pg_xact has dropped
								 * an xid since: IPV_STALE */
	/* the row on its page */
	uint8		top_state;
	uint32		top_itemlen;	/* bytes that its item takes */
	IpXid		top_xid;
	IpPtr		top_ptr;
	/* the change that made the next newer version, if this is not the newest */
	IpXid		end_xid;
	CommandId	end_cid;
	IpXid		pending;		/* for a dirty snapshot: see
								 * ip_version_has_before */
	uint64		steps;			/* versions passed ... */
	uint64		limit;			/* ... and their limit: then IPV_FAR */
	uint64		mark_at;		/* number of the marked version, a power of
								 * two: see note_step */
	IpXid		mark_xid;
	IpPtr		mark_ptr;
	bool		soft;			/* unreadable undo is not an error, ... */
	bool		damaged;		/* ... but noted here */
	/* record at ptr, if loaded */
	bool		rec_loaded;
	IpUndoRec	rec;
	uint8	   *saved;			/* the overlaid bytes of the newest version */
	uint8		savedbuf[IP_VERSION_BLOCK_SZ];
	uint8		bodybuf[2][BLCKSZ];
	int			bodycur;
	uint8		recbuf[BLCKSZ];
	/* the row's lockers; read, and valid, while its page is locked */
	bool		lockers_known;
	IpLockers	lockers;
} IpVersion;

/*
 * What a TID from core names: a row, or exactly one version of it.  The TID of
 * a version has an offset beyond those of rows.  It comes from the undo record
 * of the update that ended the version (below) or made it (above), or from the
 * row whose insertion made it (inserted).  Such a TID never reaches an index.
 */
#define IP_VERSION_TID_OFFSET	0x1000
#define IP_TID_BELOW			IP_VERSION_TID_OFFSET
#define IP_TID_ABOVE			0x2000
#define IP_TID_INSERTED			0x3000
#define IP_TID_KIND_MASK		0xF000

StaticAssertDecl(BLCKSZ / IP_HOME_MIN_SZ < IP_VERSION_TID_OFFSET, "no item has a version's offset");

typedef struct IpTarget
{
	ItemPointerData row;
	bool		exact;			/* version with this maker and pointer ... */
	bool		inserted;		/* ... or the one that was inserted */
	IpXid		xid;
	IpPtr		ptr;
	IpXid		next_xid;		/* the update that ended it, or IP_XID_NONE */
	IpPtr		next_ptr;
} IpTarget;

#define ip_tid_is_version(tid) \
	(ItemPointerGetOffsetNumberNoCheck(tid) >= IP_VERSION_TID_OFFSET)

/*
 * Set the target that tid names.  Errors: data_corrupted if it is a version's
 * TID, but not of the current transaction.
 */
extern void ip_version_target(Relation rel, const ItemPointerData *tid,
							  IpTarget *target);

/*
 * Make the TID of the version below the undo record at ptr; or that of v,
 * which is not visible to all and not a deletion.
 */
extern void ip_version_tid_below(IpPtr ptr, ItemPointer tid);
extern void ip_version_tid(const IpVersion *v, ItemPointer tid);

/* Returns whether v is the exact version that the target names. */
extern bool ip_version_is_target(IpVersion *v, const IpTarget *target);

/*
 * Stand on the newest version of the row at off of page.  The page is the
 * locked data page and stays locked as long as v is used, or until
 * ip_version_let_go.  IPV_NONE: no row.
 */
extern IpvResult ip_version_begin(IpVersion *v, Relation rel, BlockNumber block,
								  Page page, OffsetNumber off);

/*
 * Like ip_version_begin, but damaged undo does not raise an error: it sets
 * v->damaged, and functions that need the undo return IPV_STALE.
 */
extern IpvResult ip_version_begin_soft(IpVersion *v, Relation rel,
									   BlockNumber block, Page page,
									   OffsetNumber off);

/*
 * Like ip_version_begin, for a copy of the page that outlives the use of v.
 * horizon was ip_xid_horizon() before the page was copied.
 */
extern IpvResult ip_version_begin_copy(IpVersion *v, Relation rel,
									   BlockNumber block, Page copy,
									   OffsetNumber off, IpXid horizon);

/*
 * Stand on the version that v stands on, without its body, to examine the xids
 * of older changes.  v keeps its place.
 */
extern void ip_version_begin_below(IpVersion *below, IpVersion *v);

/* Like ip_version_begin_below, but with a copy of the body. */
extern void ip_version_fork(IpVersion *below, IpVersion *v);

/*
 * Before the page is unlocked: make v->body a private copy.  From now on v may
 * pass any number of versions, and undo may disappear (IPV_STALE).
 */
extern void ip_version_let_go(IpVersion *v);

/*
 * For a row with more aborted changes than may be passed while its page is
 * locked: pass them with no lock held, then lock the page.  IPV_OK and
 * IPV_NONE as for ip_version_skip_aborted: the buffer is locked exclusively,
 * and the row's newest change is still the one that v began with, which has
 * aborted.  IPV_STALE: the newest change is another one, or v->damaged;
 * nothing is locked.  Errors: data_corrupted, unless soft.
 */
extern IpvResult ip_version_find_far(IpVersion *v, Relation rel,
									 const ItemPointerData *tid, bool soft,
									 Buffer *buffer);

/*
 * Returns whether the row's newest change is the one that v began with.  Lock:
 * the page, share.
 */
extern bool ip_version_is_newest(const IpVersion *v, Page page);

/*
 * Returns the status of the transaction that made this version.  If pg_xact
 * has dropped it since the page was unlocked, the change counts as aborted,
 * and going to an older version gives IPV_STALE.
 */
extern IpXidStatus ip_version_status(IpVersion *v);

/*
 * Stand on the newest version of the row at tid.  Locks the page for a moment;
 * the body is copied.
 */
extern IpvResult ip_version_fetch(IpVersion *v, Relation rel,
								  const ItemPointerData *tid);

/*
 * Like ip_version_fetch, but a frozen row, which all snapshots see as it is, is
 * stored in the slot at once: *frozen is then true, and v is not set.
 */
extern IpvResult ip_version_fetch_unless_frozen(IpVersion *v, Relation rel,
												const ItemPointerData *tid,
												TupleTableSlot *slot,
												bool *frozen);

/*
 * Store the row in the slot if it is frozen; else false.  Any off.  Lock:
 * share.
 */
extern bool ip_version_store_frozen(Relation rel, BlockNumber block, Page page,
									OffsetNumber off, TupleTableSlot *slot);

/*
 * ip_version_fetch, repeated while undo changes under us; false if there is no
 * row.
 */
extern bool ip_version_fetch_newest(IpVersion *v, Relation rel,
									const ItemPointerData *tid);

/*
 * A reader that finds undo gone starts again, but at most this often: it
 * cannot happen for ever.
 */
#define IP_MAX_STALE	1000

/* Make v->body a private copy. */
extern void ip_version_own_body(IpVersion *v);

/*
 * Returns whether the row's overlaid bytes, if it has any, are in an undo
 * record at home.
 */
static inline bool
ip_version_saved_at_home(const IpVersion *v)
{
	return v->saved != NULL &&
		ip_row_bytes_at_home(v->top_state, v->top_ptr,
							 ItemPointerGetBlockNumberNoCheck(&v->tid));
}

/* Load v->rec.  IPV_NONE: the version was inserted, or is visible to all. */
extern IpvResult ip_version_load_rec(IpVersion *v);

/*
 * v stands on a hidden version: one that the MVCC snapshot does not see or,
 * without a snapshot, one that has aborted.  Move v to an older hidden
 * version, on the way to the first that is not hidden, if the chain has
 * pointers for that.  v->body is then not that version's body, but
 * ip_version_older can go on from there.  All versions between the two are
 * hidden: each change by another transaction is made after the previous one
 * has ended, so if a snapshot does not see the older change, it sees none of
 * the later ones; and aborted changes are rolled back before others are made.
 * Below a change of our own this does not hold: our snapshot may be older than
 * the end of the transaction that we waited for.
 */
extern void ip_version_skip_hidden(IpVersion *v, Snapshot snapshot);

/*
 * Move v, like ip_version_skip_hidden, to where pointer number "which" in
 * v->rec leads; false if the record there is gone, and then v stays where it
 * is.
 */
extern bool ip_version_skip(IpVersion *v, int which);

/* Go to the next older version. */
extern IpvResult ip_version_older(IpVersion *v);

/* Go below aborted changes.  IPV_NONE: the insertion has aborted too. */
extern IpvResult ip_version_skip_aborted(IpVersion *v);

/*
 * Returns the command that made this version or deleted the row; the current
 * transaction made it.
 */
extern CommandId ip_version_cid(IpVersion *v);

extern void ip_version_id(IpVersion *v, IpVersionId *id);

/*
 * Switch to a memory context for the work of one call of the access method;
 * the next call resets it.  Returns the caller's context.
 */
extern MemoryContext ip_version_work_begin(void);

/* Put the version into a slot, by copying it. */
extern void ip_version_to_slot(IpVersion *v, TupleTableSlot *slot);

/*
 * Raise the error that the row's undo record is missing: corruption, or a bug.
 */
pg_noreturn extern void ip_version_missing(IpVersion *v);

/*
 * Report corruption: v's version cannot have been the row.  An error, or noted
 * in v if that is soft.
 */
extern void ip_version_damaged(IpVersion *v);

#endif							/* IP_VERSION_H */
