/*-------------------------------------------------------------------------
 * bytes.c
 *	  Bounded readers and writers of bytes: numbers of more than one byte.
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bytes.h"

uint32
bytes_get_long_varint(ByteReader *r)
{
	uint32		v = 0;
	int			shift;

	for (shift = 0; shift < 35; shift += 7)
	{
		uint8		b = bytes_get_u8(r);

		v |= (uint32) (b & 0x7F) << shift;
		if ((b & 0x80) == 0)
			return v;
	}
	r->bad = true;
	return 0;
}

void
bytes_put_long_varint(ByteWriter *w, uint32 v)
{
	uint8		buf[5];
	int			n = 0;

	while (v >= 0x80)
	{
		buf[n++] = (uint8) (v | 0x80);
		v >>= 7;
	}
	buf[n++] = (uint8) v;
	bytes_put(w, buf, n);
}
