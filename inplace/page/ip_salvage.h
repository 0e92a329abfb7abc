/*-------------------------------------------------------------------------
 * ip_salvage.h
 *	  Going on after damage.
 *-------------------------------------------------------------------------
 */
#ifndef IP_SALVAGE_H
#define IP_SALVAGE_H

/*
 * Returns whether an error with this SQLSTATE is about the data that was read.
 */
static inline bool
ip_salvage_is_damage(int sqlerrcode)
{
	return sqlerrcode == ERRCODE_DATA_CORRUPTED ||
		ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_SYSTEM_ERROR;
}

/*
 * For a PG_CATCH around code that leaves nothing behind: if the error is about
 * damage, forget it, else rethrow it.  context and holdoff: the values of
 * CurrentMemoryContext and InterruptHoldoffCount before the PG_TRY.  The error
 * has allowed interrupts, but the caller may hold locks.
 */
extern void ip_salvage_forget(MemoryContext context, uint32 holdoff);

/*
 * Call function(arg) in a subtransaction.  Returns the message of its error,
 * palloc'd, if that is about damage, else NULL; other errors are rethrown.
 * Lock: none may be held.  Not in parallel mode.
 */
extern char *ip_salvage_try(void (*function) (void *arg), void *arg);

/*
 * Returns whether scans are to skip damaged data with a warning, instead of
 * raising an error.  The server's own setting for damaged pages decides.
 */
extern bool ip_salvage_wanted(void);

#endif							/* IP_SALVAGE_H */
