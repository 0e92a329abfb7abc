/*-------------------------------------------------------------------------
 * wp_segment.c
 *	  Interpretation of a segment's name and first page.
 *
 * The page header is read in the byte order that fits, and its magic is not
 * checked: segments of big-endian machines and of later servers are archived,
 * too, and have the same headers.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include "wp_segment.h"

#define LONG_HEADER		0x0002
#define MIN_SEGMENT		(1024 * 1024)
#define MAX_SEGMENT		(1024 * 1024 * 1024)

/* The long header of a segment's first page. */
typedef struct Header
{
	uint64		address;
	uint64		system;
	uint32		segment_size;
} Header;

static uint64
field(const uint8 *p, int len, bool big_endian)
{
	uint64		value = 0;

	for (int i = 0; i < len; i++)
		value = value << 8 | p[big_endian ? i : len - 1 - i];
	return value;
}

static bool
parse_header(const uint8 *start, bool big_endian, Header *header)
{
	uint32		size = field(start + 32, 4, big_endian);
	uint32		page = field(start + 36, 4, big_endian);

	header->address = field(start + 8, 8, big_endian);
	header->system = field(start + 24, 8, big_endian);
	header->segment_size = size;
	return (field(start + 2, 2, big_endian) & LONG_HEADER) != 0 &&
		size >= MIN_SEGMENT && size <= MAX_SEGMENT &&
		(size & (size - 1)) == 0 && page >= 1024 && page <= 65536 &&
		(page & (page - 1)) == 0;
}

static bool
find_header(const WpFileInfo *info, Header *header)
{
	return info->raw_size >= sizeof(info->start) &&
		(parse_header(info->start, false, header) ||
		 parse_header(info->start, true, header));
}

bool
wp_segment_name(const char *name, WpSegment *s, const char **rest)
{
	if (strspn(name, "0123456789ABCDEF") != 24 ||
		sscanf(name, "%8X%8X%8X", &s->timeline, &s->log, &s->seg) != 3)
		return false;
	*rest = name + 24;
	return strcmp(*rest, "") == 0 || strcmp(*rest, WP_SUFFIX) == 0 ||
		strcmp(*rest, ".partial") == 0 ||
		strcmp(*rest, ".partial" WP_SUFFIX) == 0;
}

uint32
wp_segment_size(const WpFileInfo *info)
{
	Header		header;

	return find_header(info, &header) ? header.segment_size : 0;
}

bool
wp_segment_check(const char *name, const WpFileInfo *info, uint64 system,
				 WpError *error)
{
	WpSegment	s;
	Header		header;
	const char *rest;

	if (!wp_segment_name(name, &s, &rest))
		return true;
	if (!find_header(info, &header))
		return wp_io_fail(error, "\"%s\" is not WAL of PostgreSQL", name);
	if (info->raw_size != header.segment_size)
		return wp_io_fail(error, "\"%s\" has %llu bytes of a segment of %u",
						  name, (unsigned long long) info->raw_size,
						  header.segment_size);
	if (header.address !=
		((uint64) s.log << 32) + (uint64) s.seg * header.segment_size)
		return wp_io_fail(error,
						  "\"%s\" has the contents of another segment, which starts at %X/%08X",
						  name, (uint32) (header.address >> 32),
						  (uint32) header.address);
	if (system != 0 && header.system != system)
		return wp_io_fail(error,
						  "\"%s\" is a segment of another cluster: its system identifier is %llu, not %llu",
						  name, (unsigned long long) header.system,
						  (unsigned long long) system);
	return true;
}
