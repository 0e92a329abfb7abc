/*-------------------------------------------------------------------------
 * ip_salvage.c
 *	  Going on after damage.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/resowner.h"

#include "ip_salvage.h"

void
ip_salvage_forget(MemoryContext context, uint32 holdoff)
{
	if (!ip_salvage_is_damage(geterrcode()))
		PG_RE_THROW();
	MemoryContextSwitchTo(context);
	FlushErrorState();
	InterruptHoldoffCount = holdoff;
}

char *
ip_salvage_try(void (*function) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	char	   *volatile problem = NULL;

	Assert(InterruptHoldoffCount == 0 && CritSectionCount == 0);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		function(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		if (!ip_salvage_is_damage(error->sqlerrcode))
			ReThrowError(error);
		problem = pstrdup(error->message);
		FreeErrorData(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return problem;
}

bool
ip_salvage_wanted(void)
{
	return zero_damaged_pages && !IsInParallelMode();
}
