/*-------------------------------------------------------------------------
 * wp_stats.c
 *	  Contents of WAL by record type.
 *
 * Records are followed from page to page and from file to file, as long as
 * the pages' addresses are consecutive.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <stdlib.h>

#include "wp_stats.h"

/* The operation: the high bits; for transactions the highest bit is a flag. */
static uint8
type_of(const WpRecord *rec)
{
	return rec->info & (rec->rmid == WP_RMID_XACT ? 0x70 : 0xF0);
}

void
wp_stats_file(WpStats *s, uint32 page_size)
{
	if (page_size != s->page_size)
		s->next_address = 0;
	s->page_size = page_size;
}

/*
 * The length with compact block headers, which have 0, 1 or 2 bytes of data
 * length, instead of always 2.
 */
static uint32
compact_length(const WpRecord *rec)
{
	uint32		len = rec->tot_len;

	for (uint32 i = 0; i < rec->nblocks; i++)
		len -= rec->blocks[i].data_len == 0 ? 2 :
			rec->blocks[i].data_len < 256 ? 1 : 0;
	return len;
}

static void
count_record(WpStats *s, const WpRecord *rec)
{
	WpTypeStats *t = &s->types[rec->rmid][type_of(rec)];
	uint32		compact = compact_length(rec);
	uint32		headers = rec->main_id == WP_ID_MAIN_LONG ? 5 :
		rec->main_id != 0 ? 2 : 0;
	uint32		data = rec->main_len;
	uint32		images = 0;

	for (uint32 i = 0; i < rec->nblocks; i++)
	{
		data += rec->blocks[i].data_len;
		images += rec->blocks[i].img_len;
	}
	headers += (rec->origin ? 3 : 0) + (rec->topxid ? 5 : 0);
	t->records++;
	t->bytes += rec->tot_len;
	t->aligned += WP_ALIGN8(rec->tot_len);
	t->compact += compact;
	t->compact_aligned += WP_ALIGN8(compact);
	t->images += images;
	s->record_headers += WP_REC_HEADER;
	s->data_headers += headers;
	s->block_headers += rec->tot_len - WP_REC_HEADER - headers - data - images;
	s->data += data;
	s->images += images;
	s->padding += WP_ALIGN8(rec->tot_len) - rec->tot_len;
}

/* Count bytes that are not a record. */
static void
count_other(WpStats *s, const uint8 *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*(p[i] == 0 ? &s->zeros : &s->other) += 1;
}

/* Give up the pending bytes, which nothing continues. */
static void
lose_track(WpStats *s)
{
	count_other(s, s->pending.data, s->pending.used);
	s->pending.used = 0;
	s->next_address = 0;
	s->skip = 0;
}

/* Count the complete records at the start of the pending bytes. */
static void
count_records(WpStats *s)
{
	size_t		done = 0;
	WpRecord	rec;

	while (s->pending.used - done >= WP_REC_HEADER)
	{
		const uint8 *p = s->pending.data + done;
		size_t		avail = s->pending.used - done;
		uint32		len = wp_get32(p);

		if (len >= WP_REC_HEADER && len <= 0x40000000 && WP_ALIGN8(len) > avail)
			break;
		if (!wp_record_parse(p, avail, &rec) ||
			wp_record_crc(p, len) != rec.crc)
		{
			memmove(s->pending.data, p, avail);
			s->pending.used = avail;
			lose_track(s);
			return;
		}
		count_record(s, &rec);
		done += WP_ALIGN8(len);
	}
	if (done > 0)
		memmove(s->pending.data, s->pending.data + done,
				s->pending.used - done);
	s->pending.used -= done;
}

static void
add_page(WpStats *s, const uint8 *page)
{
	uint16		info = wp_get16(page + 2);
	uint64		address = wp_get64(page + 8);
	uint32		header = (info & WP_XLP_LONG) ? WP_LONG_HEADER : WP_PAGE_HEADER;
	uint32		payload = s->page_size - header;
	const uint8 *p = page + header;

	if (wp_magic_version(wp_get16(page)) == 0)
	{
		lose_track(s);
		count_other(s, page, s->page_size);
		return;
	}
	if (address != s->next_address)
	{
		lose_track(s);
		if (info & WP_XLP_CONTRECORD)
			s->skip = WP_ALIGN8((uint64) wp_get32(page + 16));
	}
	s->magic = wp_get16(page);
	s->page_headers += header;
	if (s->skip > 0)
	{
		uint32		skip = Min(s->skip, payload);

		s->other += skip;
		s->skip -= skip;
		p += skip;
		payload -= skip;
	}
	s->next_address = address + s->page_size;
	wp_put_bytes(&s->ctx, &s->pending, p, payload);
	count_records(s);
}

static void
add_pages(WpStats *s, const uint8 *data, uint32 len)
{
	s->total += len;
	if (s->page_size == 0)
	{
		lose_track(s);
		count_other(s, data, len);
		return;
	}
	for (; len >= s->page_size; len -= s->page_size, data += s->page_size)
		add_page(s, data);
	count_other(s, data, len);
}

bool
wp_stats_add(WpStats *s, const uint8 *data, uint32 len)
{
	if (setjmp(s->ctx.jump) != 0)
		return false;
	add_pages(s, data, len);
	return true;
}

/* ---- tables ---- */

typedef struct TypeLine
{
	uint8		rmid;
	uint8		type;
	const WpTypeStats *stats;
} TypeLine;

static int
compare_lines(const void *a, const void *b)
{
	uint64		x = ((const TypeLine *) a)->stats->aligned;
	uint64		y = ((const TypeLine *) b)->stats->aligned;

	return x < y ? 1 : x > y ? -1 : 0;
}

static double
average(uint64 bytes, uint64 n)
{
	return n > 0 ? (double) bytes / n : 0;
}

static void
print_line(const char *name, const WpTypeStats *t, uint64 total)
{
	printf("%-28s %10llu %10.2f %10.2f %10.2f %10.2f %7.2f\n", name,
		   (unsigned long long) t->records, average(t->bytes, t->records),
		   average(t->aligned, t->records), average(t->compact, t->records),
		   average(t->compact_aligned, t->records),
		   total > 0 ? 100.0 * t->aligned / total : 0);
}

static void
print_share(const char *name, uint64 bytes, uint64 total)
{
	printf("%-28s %16llu %7.2f\n", name, (unsigned long long) bytes,
		   total > 0 ? 100.0 * bytes / total : 0);
}

void
wp_stats_print(WpStats *s)
{
	TypeLine	lines[256 * 16];
	WpTypeStats sum = {0};
	int			n = 0;

	lose_track(s);
	for (int rmid = 0; rmid < 256; rmid++)
		for (int type = 0; type < 256; type++)
		{
			const WpTypeStats *t = &s->types[rmid][type];

			if (t->records == 0)
				continue;
			lines[n++] = (TypeLine)
			{
				rmid, type, t
			};
			sum.records += t->records;
			sum.bytes += t->bytes;
			sum.aligned += t->aligned;
			sum.compact += t->compact;
			sum.compact_aligned += t->compact_aligned;
		}
	qsort(lines, n, sizeof(TypeLine), compare_lines);
	printf("%-28s %10s %10s %10s %10s %10s %7s\n", "record type", "records",
		   "length", "aligned", "compact", "aligned", "% WAL");
	for (int i = 0; i < n; i++)
	{
		char		name[64];

		wp_type_name(s->magic, lines[i].rmid, lines[i].type, name,
					 sizeof(name));
		print_line(name, lines[i].stats, s->total);
	}
	print_line("all", &sum, s->total);
	printf("\n%-28s %16s %7s\n", "where the bytes go", "bytes", "% WAL");
	print_share("record headers", s->record_headers, s->total);
	print_share("block headers", s->block_headers, s->total);
	print_share("data headers", s->data_headers, s->total);
	print_share("data", s->data, s->total);
	print_share("page images", s->images, s->total);
	print_share("padding", s->padding, s->total);
	print_share("WAL page headers", s->page_headers, s->total);
	print_share("zeros behind the last record", s->zeros, s->total);
	print_share("not read as records", s->other, s->total);
	print_share("all", s->total, s->total);
}
