/*-------------------------------------------------------------------------
 * ip_memo.h
 *	  Notes about core's last call, where the next call gets too little
 *	  information.
 *
 *	  Each note is set by one callback and read by another one in the same
 *	  backend, with nothing in between that could make the same request.  None
 *	  does harm if it survives an error: each names the row that it is about.
 *	  Notes of locks and of versions seen also name the transaction and
 *	  command; notes for the trigger queue name the transaction and
 *	  subtransaction.
 *
 *	  	note     set by                        read by
 *	  	seen     fetch with a dirty snapshot   row lock (ON CONFLICT, logical
 *	                                           apply), fetch by TID (ON
 *	                                           CONFLICT DO SELECT); they and a
 *	                                           change of the row forget it
 *	  	locked   row lock                      update; not used after the
 *	                                           command
 *	  	blind    change without an MVCC        fetch by TID; not used after
 *	             snapshot                      the command
 *	  	asked    deletion or move, for a row   fetch of OLD for the trigger
 *	                                           queue, which counts
 *	  	spec.    speculative insertion         its completion
 *	  	updated  update in place with          fetch of OLD for the trigger
 *	             triggers                      queue, which forgets it
 *	  	ended    fetch of OLD by the trigger   the fetch of NEW, which is the
 *	             queue                         next; forgets it
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
	uint64		serial;			/* serial number of the note */
} IpSeen;

/* Make a note that names v.  This reads the undo that v needs. */
extern IpSeen ip_memo_seen(IpVersion *v, bool by_index);

/*
 * Note that the version is returned to a caller; NULL: the one noted before is
 * not going to be locked.  Sets its serial number.
 */
extern void ip_memo_note_seen(IpSeen *seen);

/* Forget the row, as another scan returns a version of it. */
extern void ip_memo_forget_seen(Relation rel, const ItemPointerData *tid);

/*
 * The scan that returned the version ends, and the row is still to be locked,
 * unless it has been.  Index expressions evaluated for it may have run any
 * other calls in between.
 */
extern void ip_memo_note_seen_at_end(IpSeen *seen);

/*
 * Returns whether the row at tid was the last one so returned to the current
 * command; *seen is then its version.  Forgets that row.
 */
extern bool ip_memo_was_seen(Relation rel, const ItemPointerData *tid,
							 IpSeen *seen);

/*
 * Returns whether v, the row's newest version, is the one that was seen, or is
 * what is left after that one was rolled back.
 */
extern bool ip_memo_is_seen(IpVersion *v, const IpSeen *seen);

/* Note that the current transaction's command cid has locked the row. */
extern void ip_memo_note_locked(Relation rel, const ItemPointerData *tid,
								TransactionId xid, CommandId cid);

/*
 * Returns whether that was the transaction's last row lock.  Rows that we made
 * need no lock, but core's xmax says that they were locked.
 */
extern bool ip_memo_was_locked(Relation rel, const ItemPointerData *tid,
							   CommandId cid);

/*
 * Returns whether the last row lock was on a row of the same page, by this
 * transaction and command.
 */
extern bool ip_memo_locked_beside(Relation rel, const ItemPointerData *tid,
								  TransactionId xid, CommandId cid);

/*
 * Note that the current transaction's command cid has changed the row without
 * an MVCC snapshot, as logical replication does.  The active snapshot may not
 * see the version that the command has changed.
 */
extern void ip_memo_note_blind(Relation rel, const ItemPointerData *tid,
							   TransactionId xid, CommandId cid);

/*
 * Returns whether v, which is not the newest version, is the one before the
 * last change noted by ip_memo_note_blind.
 */
extern bool ip_memo_was_blind(const IpVersion *v);

/*
 * Note that the current transaction's command cid has deleted or moved the
 * row.  A snapshot of the transaction may see an older version, so the row's
 * TID alone does not always identify the version that was deleted.  The
 * trigger queue is about to fetch that version "times" times, or
 * IP_MEMO_ALWAYS if the number is unknown, and needs the version's own TID.
 */
#define IP_MEMO_ALWAYS	(-1)
extern void ip_memo_note_asked_for(Relation rel, const ItemPointerData *tid,
								   TransactionId xid, CommandId cid,
								   int fetches);

/*
 * Returns whether v, which is not the newest version, is the one before that
 * change, and the queue is still to fetch it.  Counts the fetches.
 */
extern bool ip_memo_is_asked_for(const IpVersion *v);

/*
 * Note the command id of the speculative insertion; a backend has one at a
 * time.
 */
extern void ip_memo_note_speculative(CommandId cid);
extern CommandId ip_memo_speculative(void);

/*
 * Note that the row has been updated in place, and the trigger queue is about
 * to fetch the version before.
 */
extern void ip_memo_note_updated(Relation rel, const ItemPointerData *tid,
								 CommandId cid);

/*
 * Returns whether v, which is not the newest version, is the one before the
 * last such update; if so, forgets it.
 */
extern bool ip_memo_was_updated(const IpVersion *v);

/*
 * Note that a fetch by TID is about to return the target, which an update in
 * place ended, or another version.  The trigger queue fetches NEW right after
 * OLD.
 */
extern void ip_memo_note_ended(Relation rel, const IpTarget *target);

/*
 * Returns whether that was the last fetch, and of the row at tid; *target is
 * then the version that the update made.  Forgets the note in any case.
 */
extern bool ip_memo_was_ended(Relation rel, const ItemPointerData *tid,
							  IpTarget *target);

#endif							/* IP_MEMO_H */
