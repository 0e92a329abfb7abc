/*-------------------------------------------------------------------------
 * ip_memo.h
 *	  What core's last call asked for, where the next call is told too little.
 *
 *	  Each of these is set by one callback and read by another one of the same backend,
 *	  with nothing in between that could ask for the same again.  None survives an error
 *	  harmfully: each names the row that it is about, a lock's and what was seen also the transaction and command,
 *	  and what the trigger queue needs the transaction and subtransaction.
 *
 *	                set by                            read by, and then
 *	  	seen     fetch with a dirty snapshot        row lock (ON CONFLICT, logical apply), fetch by TID (ON CONFLICT
 *	                                                DO SELECT); they and a change of the row forget it
 *	  	locked   row lock                           update; of no use after the command
 *	  	blind    change without an MVCC snapshot    fetch by TID; of no use after the command
 *	  	asked    deletion or move, a row            fetch of OLD for the trigger queue, which counts
 *	  	spec.    speculative insertion              its completion
 *	  	updated  update in place with triggers      fetch of OLD for the trigger queue, which forgets it
 *	  	ended    fetch of OLD by the trigger queue  the fetch of NEW, which is the next; forgets it
 *-------------------------------------------------------------------------
 */
#ifndef IP_MEMO_H
#define IP_MEMO_H

#include "ip_version.h"

/* A version that a caller has seen, with a dirty snapshot. */
typedef struct IpSeen
{
	Oid			relid;
	ItemPointerData tid;
	IpXid		xid;
	IpPtr		ptr;
	bool		by_index;
	uint64		serial;			/* of the note */
} IpSeen;

/* Name v.  What v needs of undo is read here. */
extern IpSeen ip_memo_seen(IpVersion *v, bool by_index);

/* It is returned to a caller; or (NULL) what was is not going to be locked.  Sets its serial number. */
extern void ip_memo_note_seen(IpSeen *seen);

/* Another scan returns a version of this row. */
extern void ip_memo_forget_seen(Relation rel, const ItemPointerData *tid);

/*
 * The scan that returned it ends, and the row is still to be locked, unless it has been.  Index expressions, evaluated for it, may
 * have done anything meanwhile.
 */
extern void ip_memo_note_seen_at_end(IpSeen *seen);

/* Was the row at tid the last one that was so returned, to the current command?  Then *seen is its version.  Forgets that row. */
extern bool ip_memo_was_seen(Relation rel, const ItemPointerData *tid, IpSeen *seen);

/* Is v, the row's newest version, that one, or what is left as that one was rolled back? */
extern bool ip_memo_is_seen(IpVersion *v, const IpSeen *seen);

/* The current transaction's command cid has locked the row. */
extern void ip_memo_note_locked(Relation rel, const ItemPointerData *tid, TransactionId xid,
								CommandId cid);

/*
 * Was that the transaction's last row lock?  Rows of our own need none, but core's xmax tells that they were
 * locked.
 */
extern bool ip_memo_was_locked(Relation rel, const ItemPointerData *tid, CommandId cid);

/* Was it a lock of a row of the same page, by this transaction and command? */
extern bool ip_memo_locked_beside(Relation rel, const ItemPointerData *tid, TransactionId xid, CommandId cid);

/*
 * The current transaction's command cid has changed the row without an MVCC snapshot, as logical replication does: the snapshot that is active may not see
 * the version that it has changed.
 */
extern void ip_memo_note_blind(Relation rel, const ItemPointerData *tid, TransactionId xid, CommandId cid);

/* Is v, which is not the newest version, the one before the last such change? */
extern bool ip_memo_was_blind(const IpVersion *v);

/*
 * The current transaction's command cid has deleted or moved the row, of which a snapshot of it may see an older version: the row's
 * TID does not say for ever which version that was.  The trigger queue is about to ask for it so often, IP_MEMO_ALWAYS if that cannot be
 * told, and wants its own TID.
 */
#define IP_MEMO_ALWAYS	(-1)
extern void ip_memo_note_asked_for(Relation rel, const ItemPointerData *tid, TransactionId xid, CommandId cid, int fetches);

/* Is v, which is not the newest version, the one before that change, and the queue still to ask for it?  Counts. */
extern bool ip_memo_is_asked_for(const IpVersion *v);

/* The command id of the speculative insertion; a backend has one at a time. */
extern void ip_memo_note_speculative(CommandId cid);
extern CommandId ip_memo_speculative(void);

/* The row has been updated in place, and the trigger queue is about to ask for the version before. */
extern void ip_memo_note_updated(Relation rel, const ItemPointerData *tid, CommandId cid);

/* Is v, which is not the newest version, the one before the last such update?  Then forgets it. */
extern bool ip_memo_was_updated(const IpVersion *v);

/*
 * A fetch by TID is about to return the target, which an update in place ended; or another version.
 * The trigger queue asks for NEW right after OLD.
 */
extern void ip_memo_note_ended(Relation rel, const IpTarget *target);

/* Was that the last fetch, of the row at tid?  Then *target is the version that the update made.  Forgets it anyway. */
extern bool ip_memo_was_ended(Relation rel, const ItemPointerData *tid, IpTarget *target);

#endif							/* IP_MEMO_H */
