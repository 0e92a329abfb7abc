/*-------------------------------------------------------------------------
 * codec_test.c
 *	  Tests of the codec without a server: made-up WAL of all page magics,
 *	  damaged WAL, damaged archives.  Built with AddressSanitizer and
 *	  UndefinedBehaviorSanitizer.
 *
 *		codec_test SEED SECONDS [SEGMENT...]
 *
 * Every case checks the following: packing succeeds, the result is at most
 * SLACK bytes larger than the input, and unpacks to the input.  A damaged
 * packed chunk is refused or unpacks to something.  It must not write beyond
 * the chunk's length, crash, or hang. A failure prints the seed of its case:
 * run codec_test with that seed and 0 seconds to get only that one.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "wp_codec.h"
#include "wp_group.h"
#include "wp_record.h"
#include "codec_test.h"

#define SLACK			16		/* the chunk's header */
#define CASE_SECONDS	20

static WpCodec *codec;
static uint64 case_seed;
static uint64 random_state;
uint8		wal[MAX_CASE];
static uint8 back[MAX_CASE + 64];
static struct
{
	uint64		cases;
	uint64		as_records;
	uint64		refused;
	uint64		accepted;
}			count;

/* real segments to take pieces from */
static uint8 **segments;
static size_t *segment_sizes;
static int	nsegments;

void
check(bool ok, const char *what)
{
	if (ok)
		return;
	printf("FAILED: %s; seed of the case: %llu\n", what,
		   (unsigned long long) case_seed);
	exit(1);
}

static void
too_long(int sig)
{
	check(false, "the case takes too long");
}

/* ---- random numbers ---- */

uint64
random64(void)
{
	uint64		z = (random_state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* 0 to n - 1 */
uint32
below(uint32 n)
{
	return random64() % n;
}

static bool
one_in(uint32 n)
{
	return below(n) == 0;
}

/* ---- made-up WAL ---- */

typedef struct Maker
{
	uint8		record[MAX_CASE];
	uint32		page_size;
	uint16		magic;
	uint32		npages;
	uint32		pos;			/* in the file */
	uint64		address;		/* of the file */
	uint64		prev;
	uint32		xid;
	uint32		nrels;
} Maker;

static uint8 *
put16(uint8 *p, uint16 v)
{
	wp_set16(p, v);
	return p + 2;
}

static uint8 *
put32(uint8 *p, uint32 v)
{
	wp_set32(p, v);
	return p + 4;
}

/*
 * Make bytes with some regularity; some repeat earlier ones, like the key of
 * an index entry.
 */
static uint8 *
put_payload(uint8 *p, uint32 len)
{
	static uint8 counter;
	static uint8 earlier[512];

	counter++;
	for (uint32 i = 0; i < len; i++)
		p[i] = one_in(4) ? random64() : i == 3 ? counter : i;
	if (len >= 24 && len <= 128)
	{
		if (one_in(3))
			memcpy(p + 8, earlier + below(sizeof(earlier) - len),
				   len - 8 - below(8));
		else
			memcpy(earlier + below(sizeof(earlier) - len), p, len);
	}
	return p + len;
}

/*
 * Make the tuples of a multi-insert: int4, text, bool, text, some of them
 * null; sometimes other contents.  At most 4 kB.
 */
static uint8 *
put_tuples(uint8 *start)
{
	uint8	   *p = start;

	for (uint32 n = 1 + below(30); n > 0; n--)
	{
		bool		nulls = one_in(4);
		uint8		bitmap = nulls ? random64() | 0xF0 : 0xFF;
		uint8	   *header = p += (p - start) & 1;
		uint8	   *data;

		p = put16(p + 2, 4);
		p = put16(p, nulls);
		*p++ = 24;
		data = p + 1;
		*p++ = nulls ? bitmap : 0;
		if (bitmap & 1)
			p = put32(p, below(1000));
		for (int i = 1; i < 4; i++)
		{
			uint32		len = 1 + below(40);

			if ((bitmap >> i & 1) == 0)
				continue;
			if (i == 2)
				*p++ = below(2);
			else if (one_in(20))
			{
				while ((p - data) % 4 != 0)
					*p++ = 0;
				p = put_payload(put32(p, (len + 4) << 2), len);
			}
			else
			{
				*p++ = len << 1 | 1;
				p = put_payload(p, len - 1);
			}
		}
		put16(header, p - header - 7);
		if (one_in(50))
			header[below(8)] ^= 1 << below(8);
	}
	return p;
}

/* Make a page with tuples; returns its length without the hole. */
static uint32
make_page(uint8 *page, bool hole, uint16 *hole_off)
{
	uint32		nitems = below(40);
	uint32		special = 8192 - 8 * below(3);
	uint32		lower = 24 + 4 * nitems;
	uint32		upper = special;
	uint8		full[8192];

	put_payload(full, sizeof(full));
	if (one_in(2))
		memset(full + 24, 0, sizeof(full) - 24);
	for (uint32 i = 0; i < nitems; i++)
	{
		uint32		len = one_in(8) ? 0 : 8 + below(100);

		put32(full + 24 + 4 * i, len == 0 ? below(1 << 17) : 0);
		if (len == 0)
			continue;
		upper -= one_in(10) ? len : WP_ALIGN8(len);
		put_payload(full + upper, len);
		put32(full + 24 + 4 * i, upper | 1 << 15 | len << 17);
	}
	if (one_in(20))
		put32(full + 24, random64());
	put16(full + 12, lower);
	put16(full + 14, upper);
	put16(full + 16, special);
	*hole_off = hole ? lower : 0;
	memcpy(page, full, lower);
	if (!hole)
		upper = lower;
	memcpy(page + lower, full + upper, 8192 - upper);
	return lower + 8192 - upper;
}

/* Make tokens as pglz writes them. */
static uint32
make_pglz(uint8 *p, uint32 len)
{
	put_payload(p, len);
	if (one_in(2))
		memset(p, 0, len / 2);
	return len;
}

/* Write a block's header to p, and its data to the end of *data. */
static uint8 *
make_block(Maker *m, uint8 *p, uint8 id, bool same_rel, bool multi_insert,
		   uint8 **data)
{
	uint8		tuples[4096];
	uint16		data_len = multi_insert ? put_tuples(tuples) - tuples :
		one_in(3) ? 0 : one_in(10) ? 1 + below(600) : 1 + below(40);
	uint8		flags = (data_len > 0 ? WP_HAS_DATA : 0) |
		(same_rel ? WP_SAME_REL : 0) | (one_in(9) ? 1 : 0);
	bool		image = one_in(6);

	*p++ = id;
	*p++ = flags | (image ? WP_HAS_IMAGE : 0);
	p = put16(p, data_len);
	if (image)
	{
		uint8		info = one_in(3) ? WP_IMG_PGLZ : one_in(5) ? 8 : 0;
		bool		hole = one_in(2);
		uint16		hole_off = below(8192);
		uint32		len = info ? make_pglz(*data, below(3000)) :
			make_page(*data, hole, &hole_off);

		if (one_in(30))
			len = below(len + 1);
		info |= 2 | (hole ? WP_IMG_HAS_HOLE : 0);
		p = put16(p, len);
		p = put16(p, hole_off);
		*p++ = info;
		if (WP_IMG_HAS_HOLE_LEN(info))
			p = put16(p, below(8192));
		*data += len;
	}
	if (!same_rel)
	{
		p = put32(p, 1663);
		p = put32(p, 5);
		p = put32(p, 16384 + below(m->nrels));
	}
	if (multi_insert)
	{
		memcpy(*data, tuples, data_len);
		*data += data_len;
	}
	else
		*data = put_payload(*data, data_len);
	return put32(p, one_in(2) ? below(100) : below(1000000));
}

/* Make a record in m->record; returns its length. */
static uint32
make_record(Maker *m)
{
	static uint8 data_buf[MAX_CASE];
	uint8	   *data = data_buf;
	uint8	   *p = m->record + WP_REC_HEADER;
	bool		multi_insert = one_in(8);
	uint32		nblocks = multi_insert ? 1 : one_in(50) ? WP_MAX_BLOCK_ID + 1 :
		below(4);
	uint32		main_len = one_in(4) ? 0 : one_in(100) ? below(30000) :
		one_in(10) ? below(600) : below(20);
	uint8		id = 0;
	uint32		len;

	for (uint32 i = 0; i < nblocks; i++)
	{
		if (nblocks < 5 && one_in(20))
			id++;
		p = make_block(m, p, id++, i > 0 && one_in(2), multi_insert, &data);
	}
	if (one_in(20))
	{
		*p++ = WP_ID_ORIGIN;
		p = put16(p, below(4));
	}
	if (one_in(20))
	{
		*p++ = WP_ID_TOPXID;
		p = put32(p, m->xid);
	}
	if (main_len > 255 || (main_len > 0 && one_in(50)))
	{
		*p++ = WP_ID_MAIN_LONG;
		p = put32(p, main_len);
	}
	else if (main_len > 0 || one_in(50))
	{
		*p++ = WP_ID_MAIN_SHORT;
		*p++ = main_len;
	}
	data = put_payload(data, main_len);
	memcpy(p, data_buf, data - data_buf);
	len = p - m->record + (data - data_buf);
	if (one_in(5))
		m->xid += one_in(10) ? below(100) : 1;
	put32(m->record, len);
	put32(m->record + 4, one_in(5) ? 0 : m->xid - below(6));
	wp_set64(m->record + 8, one_in(100) ? random64() : m->prev);
	m->record[16] = below(16) << 4;
	m->record[17] = one_in(10) ? 128 + below(128) : below(22);
	if (multi_insert)
	{
		m->record[16] = 0x50;
		m->record[17] = WP_RMID_HEAP2;
	}
	put16(m->record + 18, one_in(500) ? 1 : 0);
	put32(m->record + 20,
		  one_in(200) ? random64() : wp_record_crc(m->record, len));
	return len;
}

static void
make_page_header(Maker *m, uint32 rem_len)
{
	uint8	   *p = wal + m->pos;
	bool		first = m->pos == 0;

	memset(p, 0, WP_LONG_HEADER);
	put16(p, m->magic);
	put16(p + 2, (first ? WP_XLP_LONG : 0) |
		  (rem_len > 0 ? WP_XLP_CONTRECORD : 0) |
		  (one_in(50) ? 0 : WP_XLP_REMOVABLE));
	put32(p + 4, one_in(300) ? 2 : 1);
	wp_set64(p + 8, m->address + m->pos);
	put32(p + 16, rem_len);
	if (first)
	{
		wp_set64(p + 24, UINT64CONST(0x1234567890ABCDEF));
		put32(p + 32, 16 * 1024 * 1024);
		put32(p + 36, m->page_size);
	}
	m->pos += first ? WP_LONG_HEADER : WP_PAGE_HEADER;
}

/* Write len bytes that belong to one record. */
static void
make_bytes(Maker *m, const uint8 *p, uint32 len)
{
	uint32		end = m->npages * m->page_size;

	while (len > 0 && m->pos < end)
	{
		uint32		room = m->page_size - m->pos % m->page_size;
		uint32		n = Min(len, room);

		if (m->pos % m->page_size == 0)
		{
			make_page_header(m, len);
			continue;
		}
		memcpy(wal + m->pos, p, n);
		m->pos += n;
		p += n;
		len -= n;
	}
}

uint32
make_wal(uint32 *page_size)
{
	static const uint16 magics[] = {
		WP_MAGIC_15, WP_MAGIC_16, WP_MAGIC_17, WP_MAGIC_18, WP_MAGIC_19
	};
	static Maker maker;
	Maker	   *m = &maker;
	uint32		end;

	m->page_size = *page_size = 1024 << below(5);
	m->npages = 1 + below(MAX_CASE / 4 / m->page_size);
	m->magic = magics[below(lengthof(magics))];
	m->pos = 0;
	m->address = (uint64) below(1000) * 16 * 1024 * 1024;
	m->prev = random64();
	m->xid = 1000 + below(1000);
	m->nrels = one_in(4) ? 500 : 5;
	memset(wal, 0, sizeof(wal));
	end = m->npages * m->page_size;
	if (one_in(2))
	{
		/* the segment starts within a record */
		make_page_header(m, below(3000));
		make_bytes(m, wal + sizeof(wal) - 4096, wp_get32(wal + 16));
		m->pos = (m->pos + 7) & ~7;
	}
	while (m->pos < end)
	{
		uint32		len = make_record(m);
		uint64		start;

		if (m->pos % m->page_size == 0)
			make_page_header(m, 0);
		start = m->address + m->pos;
		make_bytes(m, m->record, len);
		m->pos = (m->pos + 7) & ~7;
		m->prev = start;
		/* the end of WAL */
		if (one_in(2000))
			break;
	}
	return end;
}

/* Take a piece of a real segment, from its start so that it has a page size. */
static uint32
take_piece(uint32 *page_size)
{
	int			i = below(nsegments);
	uint32		len = Min(segment_sizes[i], (1 + below(16)) * 8192);

	memcpy(wal, segments[i], len);
	*page_size = wp_codec_page_size(wal, len);
	check(*page_size > 0, "a segment has no page size");
	if (one_in(2) && segment_sizes[i] > len)
	{
		/* pages from further on, after the first one */
		uint32		from = *page_size *
			(1 + below((segment_sizes[i] - len) / *page_size));

		memcpy(wal + *page_size, segments[i] + from, len - *page_size);
	}
	return len;
}

/* ---- cases ---- */

static void
damage(uint8 *p, uint32 len)
{
	uint32		at = below(len);
	uint32		n = 1 + below(one_in(3) ? len - at : Min(len - at, 100));

	switch (below(6))
	{
		case 0:
			p[at] ^= 1 << below(8);
			break;
		case 1:
			p[at] = random64();
			break;
		case 2:
			memset(p + at, one_in(2) ? 0 : 0xFF, n);
			break;
		case 3:					/* a recycled tail */
			memmove(p + at, p, Min(n, len - at));
			break;
		case 4:
			memmove(p + below(at + 1), p + at, n);
			break;
		case 5:
			for (uint32 i = 0; i < Min(n, 16); i++)
				p[at + i] = random64();
			break;
	}
}

/* Pack, unpack, compare. */
static void
round_trip(uint32 len, uint32 page_size, const uint8 **packed,
		   size_t *packed_len)
{
	uint32		raw_len;
	uint32		rest_len;
	WpChunkHeader header;

	check(wp_codec_pack(codec, wal, len, page_size, packed, packed_len), "packing failed");
	check(*packed_len <= len + SLACK, "packed bytes are more than the original's");
	memcpy(&header, *packed, sizeof(header));
	check(wp_codec_header(codec, &header, &raw_len, &rest_len), "header refused");
	check(raw_len == len && rest_len + sizeof(header) == *packed_len, "wrong lengths");
	memset(back, 0xAA, sizeof(back));
	check(wp_codec_unpack(codec, &header, *packed + sizeof(header), back), "unpacking failed");
	check(memcmp(back, wal, len) == 0, "unpacked bytes differ");
	check(back[len] == 0xAA, "too much was unpacked");
	count.as_records += header.kind == WP_CHUNK_RECORDS;
}

/*
 * Try to unpack damaged bytes.  The header is valid, and the zstd frame may be
 * valid.
 */
static void
unpack_damaged(const uint8 *packed, size_t packed_len)
{
	static uint8 bytes[MAX_CASE * 3];
	static uint8 body[MAX_CASE * 3];
	WpChunkHeader header;
	uint32		raw_len;
	uint32		rest_len = packed_len - sizeof(header);

	memcpy(&header, packed, sizeof(header));
	memcpy(bytes, packed + sizeof(header), rest_len);
	if (header.kind == WP_CHUNK_RECORDS && !one_in(10))
	{
		uint32		start = sizeof(WpBodyHeader) + wp_get32(bytes);
		uint32		body_len;

		check(start < rest_len, "wrong stored length");
		body_len = ZSTD_decompress(body, sizeof(body), bytes + start,
								   rest_len - start);
		check(body_len == wp_get32(header.body_len), "wrong body length");
		for (uint32 i = 1 + below(3); i > 0; i--)
			damage(body, one_in(2) ? body_len : Min(body_len, 2000));
		rest_len = ZSTD_compress(bytes + start, sizeof(bytes) - start, body,
								 body_len, 1);
		check(!ZSTD_isError(rest_len), "compression failed");
		rest_len += start;
		if (one_in(10))
			damage(bytes, one_in(2) ? start : sizeof(WpBodyHeader));
		wp_set32(header.packed_len, rest_len);
	}
	else
		damage(bytes, rest_len);
	if (one_in(50))
		damage((uint8 *) &header, sizeof(header));
	memset(back, 0xAA, sizeof(back));
	if (!wp_codec_header(codec, &header, &raw_len, &rest_len) ||
		raw_len > MAX_CASE || rest_len > sizeof(bytes) ||
		!wp_codec_unpack(codec, &header, bytes, back))
	{
		count.refused++;
		raw_len = wp_get32(header.raw_len);
	}
	else
		count.accepted++;
	if (raw_len <= MAX_CASE)
		check(back[raw_len] == 0xAA, "damage made it write too much");
}

static void
run_case(uint64 seed)
{
	uint32		page_size;
	uint32		len;
	const uint8 *packed;
	size_t		packed_len;

	case_seed = random_state = seed;
	alarm(CASE_SECONDS);
	len = nsegments > 0 && one_in(2) ? take_piece(&page_size) :
		make_wal(&page_size);
	if (one_in(2))
		for (uint32 i = 1 + below(5); i > 0; i--)
			damage(wal, len);
	if (one_in(50))
		page_size = 0;
	wp_codec_prefer_records(codec, !one_in(5));
	round_trip(len, page_size, &packed, &packed_len);
	for (int i = 0; i < 4; i++)
	{
		unpack_damaged(packed, packed_len);
		/* unpacking does not reuse the memory that "packed" points to */
	}
	count.cases++;
}

/* ---- fixed cases ---- */

/*
 * Test pages of which each begins an apparent record that reaches to the end,
 * so that each CRC could be computed over all of the rest.
 */
static void
test_bounded_work(void)
{
	const uint32 page_size = 1024;
	const uint8 *packed;
	size_t		packed_len;

	memset(wal, 0, MAX_CASE);
	for (uint32 page = 0; page < MAX_CASE / page_size; page++)
	{
		uint8	   *p = wal + page * page_size;
		uint32		header = page == 0 ? 40 : 24;
		uint32		rest = MAX_CASE - page * page_size - header -
			(MAX_CASE / page_size - page - 1) * 24;

		wp_set16(p, 0xD110);
		wp_set16(p + 2, page == 0 ? 2 : 0);
		wp_set32(p + 4, 1);
		wp_set64(p + 8, page * page_size);
		if (page == 0)
		{
			wp_set64(p + 24, 1);
			wp_set32(p + 32, 1024 * 1024);
			wp_set32(p + 36, page_size);
		}
		p += header;
		/* with its data in one piece, and a CRC of 0 */
		wp_set32(p, rest);
		p[24] = 0xFE;
		wp_set32(p + 25, rest - 29);
	}
	round_trip(MAX_CASE, page_size, &packed, &packed_len);
	check(wp_codec_checked(codec) >= MAX_CASE / 2, "nothing was taken for a record");
	check(wp_codec_checked(codec) <= 4 * MAX_CASE, "the work is not bounded by the length");
}

/*
 * A layout with an alignment that no server has must be refused; otherwise
 * padding would not end.
 */
static void
test_alignment(void)
{
	static const uint8 layout[] = {4, 4, 0, 4, 1, 1, 0, 4};
	static uint8 body[MAX_CASE * 3];
	static uint8 bytes[MAX_CASE * 3];
	int			found = 0;

	wp_codec_prefer_records(codec, true);
	for (uint64 seed = 1; seed <= 20; seed++)
	{
		WpChunkHeader header;
		uint32		page_size;
		uint32		start;
		size_t		body_len;
		const uint8 *packed;
		size_t		packed_len;
		uint32		len;

		case_seed = random_state = seed;
		len = make_wal(&page_size);
		round_trip(len, page_size, &packed, &packed_len);
		memcpy(&header, packed, sizeof(header));
		if (header.kind != WP_CHUNK_RECORDS)
			continue;
		packed += sizeof(header);
		start = sizeof(WpBodyHeader) + wp_get32(packed);
		body_len = ZSTD_decompress(body, sizeof(body), packed + start,
								   packed_len - sizeof(header) - start);
		check(body_len == wp_get32(header.body_len), "wrong body length");
		memcpy(bytes, packed, start);
		for (size_t i = 0; i + sizeof(layout) <= body_len; i++)
		{
			if (memcmp(body + i, layout, sizeof(layout)) != 0)
				continue;
			body[i + 5] = 64;
			packed_len = ZSTD_compress(bytes + start, sizeof(bytes) - start,
									   body, body_len, 1);
			check(!ZSTD_isError(packed_len), "compression failed");
			wp_set32(header.packed_len, start + packed_len);
			check(!wp_codec_unpack(codec, &header, bytes, back), "an alignment of 64 was accepted");
			found++;
			break;
		}
	}
	check(found > 0, "no layout found");
}

/* Check that made-up WAL without errors is parsed, and not stored literally. */
static void
test_understood(uint64 seed)
{
	uint64		before = count.as_records;
	const uint8 *packed;
	size_t		packed_len;

	wp_codec_prefer_records(codec, true);
	for (int i = 0; i < 50; i++)
	{
		uint32		page_size;
		uint32		len;

		case_seed = random_state = seed + i;
		len = make_wal(&page_size);
		round_trip(len, page_size, &packed, &packed_len);
	}
	check(count.as_records - before >= 48, "WAL was not packed as records");
}

static void
read_segment(const char *path)
{
	FILE	   *file = fopen(path, "rb");
	uint8	   *data = malloc(WP_MAX_CHUNK);
	size_t		len;

	if (file == NULL || data == NULL)
	{
		printf("could not read \"%s\"\n", path);
		exit(1);
	}
	len = fread(data, 1, WP_MAX_CHUNK, file);
	fclose(file);
	segments = realloc(segments, (nsegments + 1) * sizeof(*segments));
	segment_sizes = realloc(segment_sizes,
							(nsegments + 1) * sizeof(*segment_sizes));
	segments[nsegments] = data;
	segment_sizes[nsegments++] = len;
}

int
main(int argc, char **argv)
{
	uint64		seed;
	time_t		end;

	if (argc < 3)
	{
		printf("usage: codec_test SEED SECONDS [SEGMENT...]\n");
		return 1;
	}
	seed = strtoull(argv[1], NULL, 10);
	end = time(NULL) + atoi(argv[2]);
	for (int i = 3; i < argc; i++)
		read_segment(argv[i]);
	signal(SIGALRM, too_long);
	codec = wp_codec_new(WP_DEFAULT_LEVEL);
	check(codec != NULL, "out of memory");
	if (end == time(NULL))
		run_case(seed);
	else
	{
		case_seed = random_state = seed;
		test_util();
		test_understood(seed);
		test_alignment();
		test_bounded_work();
		case_seed = random_state = 1;
		test_plain();
		for (uint64 i = 0; time(NULL) < end; i++)
			run_case(seed * 1000000007 + i);
	}
	printf("seed %llu: %llu cases, %llu round trips as records; damaged chunks: %llu refused, %llu unpacked\n",
		   (unsigned long long) seed, (unsigned long long) count.cases,
		   (unsigned long long) count.as_records,
		   (unsigned long long) count.refused,
		   (unsigned long long) count.accepted);
	wp_codec_free(codec);
	return 0;
}
