/*-------------------------------------------------------------------------
 * speed.c
 *	  Size and speed of walpack against zstd -3 on the same segments.
 *
 *		speed [-l LEVEL] [-r ROUNDS] SEGMENT...
 *
 * One thread, in memory, CPU time.  Packing includes decoding back and
 * comparing, as it always does.  Each step is followed by zstd's, so that both
 * run under the same load of the machine; the result is the median of the
 * rounds' ratios. Prints: bytes raw, packed, zstd -3; medians of MB/s for
 * packing, zstd -3, unpacking, zstd -d; medians of speed relative to zstd,
 * packing and unpacking.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "wp_codec.h"

#define MAX_ROUNDS	100

/* Times of all segments in one round. */
typedef struct Sums
{
	double		seconds[4];
	size_t		bytes[3];
} Sums;

static uint8 raw[WP_MAX_CHUNK];
static uint8 back[WP_MAX_CHUNK];
static uint8 zstd_out[WP_MAX_CHUNK + WP_MAX_CHUNK / 8];

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void
check(bool ok, const char *what)
{
	if (!ok)
	{
		fprintf(stderr, "speed: %s\n", what);
		exit(1);
	}
}

static void
measure(WpCodec *codec, ZSTD_CCtx *c, ZSTD_DCtx *d, const char *path, Sums *s)
{
	FILE	   *file = fopen(path, "rb");
	const uint8 *packed;
	size_t		packed_len;
	size_t		zstd_len;
	size_t		len;
	WpChunkHeader header;
	double		start;

	check(file != NULL, path);
	len = fread(raw, 1, sizeof(raw), file);
	check(len > 0 && fgetc(file) == EOF, "segments of at most 16 MB only");
	fclose(file);

	start = now();
	check(wp_codec_pack(codec, raw, len, wp_codec_page_size(raw, len), &packed,
						&packed_len),
		  wp_codec_error(codec));
	s->seconds[0] += now() - start;
	start = now();
	zstd_len = ZSTD_compressCCtx(c, zstd_out, sizeof(zstd_out), raw, len, 3);
	s->seconds[1] += now() - start;
	check(!ZSTD_isError(zstd_len), "zstd failed");
	memcpy(&header, packed, sizeof(header));
	start = now();
	check(wp_codec_unpack(codec, &header, packed + sizeof(header), back),
		  wp_codec_error(codec));
	s->seconds[2] += now() - start;
	check(memcmp(raw, back, len) == 0, "unpacked bytes differ");
	start = now();
	check(ZSTD_decompressDCtx(d, back, sizeof(back), zstd_out, zstd_len) == len,
		  "zstd -d failed");
	s->seconds[3] += now() - start;
	s->bytes[0] += len;
	s->bytes[1] += packed_len;
	s->bytes[2] += zstd_len;
}

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static double
median(double *values, int n)
{
	qsort(values, n, sizeof(double), compare);
	return n == 0 ? 0 : (values[n / 2] + values[(n - 1) / 2]) / 2;
}

static void
report(const Sums *sums, int rounds)
{
	double		values[MAX_ROUNDS];

	printf("%zu %zu %zu", sums[0].bytes[0], sums[0].bytes[1], sums[0].bytes[2]);
	for (int i = 0; i < 4; i++)
	{
		for (int r = 0; r < rounds; r++)
			values[r] = sums[r + 1].bytes[0] / sums[r + 1].seconds[i] / 1e6;
		printf(" %.0f", median(values, rounds));
	}
	for (int i = 0; i < 4; i += 2)
	{
		for (int r = 0; r < rounds; r++)
			values[r] = sums[r + 1].seconds[i + 1] / sums[r + 1].seconds[i];
		printf(" %.3f", median(values, rounds));
	}
	printf("\n");
}

int
main(int argc, char **argv)
{
	static Sums sums[MAX_ROUNDS + 1];	/* the first round is a warm-up */
	int			level = WP_DEFAULT_LEVEL;
	int			rounds = 5;
	int			opt;
	WpCodec    *codec;
	ZSTD_CCtx  *c = ZSTD_createCCtx();
	ZSTD_DCtx  *d = ZSTD_createDCtx();
	const char *usage = "usage: speed [-l LEVEL] [-r ROUNDS] SEGMENT...";

	while ((opt = getopt(argc, argv, "l:r:")) != -1)
	{
		if (opt == 'l')
			level = atoi(optarg);
		else if (opt == 'r')
			rounds = atoi(optarg);
		else
			check(false, usage);
	}
	check(optind < argc && rounds >= 0 && rounds <= MAX_ROUNDS, usage);
	codec = wp_codec_new(level);
	check(codec != NULL, "out of memory");
	for (int round = 0; round <= rounds; round++)
		for (int i = optind; i < argc; i++)
			measure(codec, c, d, argv[i], &sums[round]);
	report(sums, rounds);
	return 0;
}
