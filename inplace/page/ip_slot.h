/*-------------------------------------------------------------------------
 * ip_slot.h
 *	  The tuple table slot of inplace tables.
 *-------------------------------------------------------------------------
 */
#ifndef IP_SLOT_H
#define IP_SLOT_H

#include "utils/rel.h"

#include "ip_body.h"

extern const TupleTableSlotOps ip_slot_ops;

#define SlotIsInplace(slot) ((slot)->tts_ops == &ip_slot_ops)

/*
 * Store a row in the slot.  ip_slot_store copies the body; ip_slot_borrow
 * points into memory that belongs to owner.  id may be NULL.
 */
extern void ip_slot_store(TupleTableSlot *slot, uint16 hdr, const uint8 *body,
						  uint32 bodylen, const ItemPointerData *tid,
						  const IpVersionId *id);
extern void ip_slot_borrow(TupleTableSlot *slot, IpSlotOwner *owner, uint16 hdr,
						   const uint8 *body, uint32 bodylen,
						   const ItemPointerData *tid, const IpVersionId *id);

/* Make the borrower, if any, keep its row in its own buffer. */
extern void ip_slot_owner_release(IpSlotOwner *owner);

/*
 * The slot now holds a version that we have just made; xmax: its locker, or
 * invalid.
 */
extern void ip_slot_set_written(TupleTableSlot *slot, Relation rel,
								BlockNumber block, OffsetNumber off,
								TransactionId xid, CommandId cid,
								TransactionId xmax);

#endif							/* IP_SLOT_H */
