/*-------------------------------------------------------------------------
 * ip_modify_write.h
 *	  Writing a change of a row, and its undo record.
 *-------------------------------------------------------------------------
 */
#ifndef IP_MODIFY_WRITE_H
#define IP_MODIFY_WRITE_H

#include "lib/stringinfo.h"

#include "ip_version.h"

/*
 * For an update to another TID: the new row, without its version block, and
 * where it is put.
 */
typedef struct IpRowMoved
{
	Buffer		buffer;			/* may be the old row's; InvalidBuffer: not
								 * moved */
	bool		init;			/* the page has to be initialised */
	OffsetNumber off;
	IpFormed	row;
} IpRowMoved;

/* A new state of a row. */
typedef struct IpRowWrite
{
	uint8		info;			/* IP_XLOG_* */
	TransactionId xid;			/* the new version's maker: ours, unless
								 * replay */
	bool		replay;			/* see IpChange */
	IpUndoRec	undo;			/* ip_modify_write sets prev and saved */
	uint8		state;			/* of ip_state_update or ip_state_delete */
	uint16		hdr;
	const uint8 *body;
	uint32		bodylen;
	/* the row's current body, and its overlaid bytes */
	const uint8 *from;
	uint32		fromlen;
	uint32		oldlen;			/* length of it that the undo record restores */
	const uint8 *saved;
	bool		away;			/* the page has no room for the undo record */
	IpRowMoved	moved;			/* update to another TID */
	CommandId	cid;
	IpXid		conflict;		/* see IpChange */
	bool		keys;			/* update in place that changes index keys */
	bool		cut;			/* the undo record does not link to versions
								 * before v */
	StringInfo	logical;		/* see IpChange */
	/* result */
	IpPtr		top;			/* topmost undo record of the row; or block is
								 * invalid */
} IpRowWrite;

/* Fill in w from v, so that the row keeps its body and state. */
extern void ip_modify_same(IpRowWrite *w, IpVersion *v, uint8 info,
						   TransactionId xid);

/*
 * Returns whether the row's item can take a body of this length, with a
 * version block.
 */
extern bool ip_modify_fits(IpVersion *v, Page page, uint32 bodylen);

/*
 * Like ip_modify_fits, for an update; a row that becomes much longer must
 * leave room for a list of moves.
 */
extern bool ip_modify_may_grow(IpVersion *v, Page page, uint32 bodylen);

/*
 * Returns whether the data page lacks room for the undo record of w, which is
 * an update in place, and a prune may make that room.  Lock: exclusive.
 */
extern bool ip_modify_lacks_home(IpVersion *v, Buffer buffer, IpRowWrite *w);

/*
 * Write w in one atomic change of the data page, the new row's page and, if
 * the data page has no room for the undo record, an undo page.  v stands on
 * the version before.  Lock: the buffers exclusively, held on return.
 */
extern void ip_modify_write(IpVersion *v, Buffer buffer, IpRowWrite *w);

#endif							/* IP_MODIFY_WRITE_H */
