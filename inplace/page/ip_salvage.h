/*-------------------------------------------------------------------------
 * ip_salvage.h
 *	  Going on after damage.
 *-------------------------------------------------------------------------
 */
#ifndef IP_SALVAGE_H
#define IP_SALVAGE_H

/* Is an error with this SQLSTATE about what was read, and not about us? */
static inline bool
ip_salvage_is_damage(int sqlerrcode)
{
	return sqlerrcode == ERRCODE_DATA_CORRUPTED || ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_SYSTEM_ERROR;
}

/*
 * Call function(arg) in a subtransaction.  Returns the message of its error,
 * palloc'd, if that is about damage, else NULL; other errors are rethrown.
 * Lock: none may be held.  Not in parallel mode.
 */
extern char *ip_salvage_try(void (*function) (void *arg), void *arg);

/*
 * Shall scans leave out what is damaged, with a warning, instead of raising an
 * error?  The setting by which the server does so with pages.
 */
extern bool ip_salvage_wanted(void);

#endif							/* IP_SALVAGE_H */
