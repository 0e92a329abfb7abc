/*-------------------------------------------------------------------------
 * core_delta.c
 *	  The server's own function, out of its source (see the Makefile), to
 *	  compare with.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "storage/bufpage.h"

#include "core_delta.h"

/* the comparison is with a server without assertions */
#undef USE_ASSERT_CHECKING
#undef Assert
#define Assert(condition) ((void) 0)

#ifdef CORE_BLCKSZ
#undef BLCKSZ
#define BLCKSZ CORE_BLCKSZ
#endif

#include "core_delta.inc"

int
CORE_NAME(const void *old_page, const void *new_page, void *delta)
{
	static CORE_PAGE data;

	computeDelta(&data, (Page) old_page, (Page) new_page);
	if (delta != NULL)
		memcpy(delta, data.delta, data.deltaLen);
	return data.deltaLen;
}
