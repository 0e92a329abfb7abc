/*-------------------------------------------------------------------------
 * pagedelta_apply.c
 *	  Applying deltas.
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "pagedelta.h"

/* Read a fragment's header. */
static void
get_header(const uint8_t *p, uint32_t *offset, uint32_t *len)
{
	uint16_t	header[2];

	memcpy(header, p, sizeof(header));
	*offset = header[0];
	*len = header[1];
}

int
pagedelta_check(const void *delta, uint32_t len, uint32_t size)
{
	const uint8_t *p = delta;
	uint32_t	done = 0;		/* end of the previous fragment */

	if (size == 0 || size > PAGEDELTA_MAX_PAGE || size % PAGEDELTA_UNIT != 0)
		return PAGEDELTA_BAD_SIZE;
	while (len > 0)
	{
		uint32_t	offset;
		uint32_t	bytes;

		if (len < PAGEDELTA_HEADER)
			return PAGEDELTA_BAD_DELTA;
		get_header(p, &offset, &bytes);
		p += PAGEDELTA_HEADER;
		len -= PAGEDELTA_HEADER;
		if (bytes == 0 || bytes > len || offset < done || offset + bytes > size)
			return PAGEDELTA_BAD_DELTA;
		p += bytes;
		len -= bytes;
		done = offset + bytes;
	}
	return PAGEDELTA_OK;
}

int
pagedelta_apply(void *page, uint32_t size, const void *delta, uint32_t len)
{
	const uint8_t *p = delta;
	int			problem = pagedelta_check(delta, len, size);

	if (problem != PAGEDELTA_OK)
		return problem;
	while (len > 0)
	{
		uint32_t	offset;
		uint32_t	bytes;

		get_header(p, &offset, &bytes);
		memcpy((uint8_t *) page + offset, p + PAGEDELTA_HEADER, bytes);
		p += PAGEDELTA_HEADER + bytes;
		len -= PAGEDELTA_HEADER + bytes;
	}
	return PAGEDELTA_OK;
}

uint32_t
pagedelta_apply_parts(void *page, const PageDeltaPart *parts, int nparts)
{
	uint32_t	copied = 0;

	for (int i = 0; i < nparts; i++)
	{
		const uint8_t *p = parts[i].data;
		const uint8_t *end = p + parts[i].len;

		while (p < end)
		{
			uint32_t	offset;
			uint32_t	bytes;

			get_header(p, &offset, &bytes);
			p += PAGEDELTA_HEADER;
			copied += bytes;
			if (p == end)
			{
				/* the next part holds the fragment's bytes, and nothing else */
				memcpy((uint8_t *) page + offset, parts[++i].data, bytes);
				break;
			}
			memcpy((uint8_t *) page + offset, p, bytes);
			p += bytes;
		}
	}
	return copied;
}
