/*-------------------------------------------------------------------------
 * speed.c
 *	  Size and speed of walpack against zstd -3 on the same segments.
 *
 *		speed [-l LEVEL] [-r ROUNDS] SEGMENT...
 *
 * One thread, in memory, CPU time; of each round's sums over all segments the
 * best counts.  Packing includes decoding back and comparing, as it always
 * does.  Prints: bytes raw, packed, zstd -3; MB/s for packing, zstd -3,
 * unpacking, zstd -d.
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "wp_codec.h"

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
	check(wp_codec_pack(codec, raw, len, wp_codec_page_size(raw, len), &packed, &packed_len),
		  wp_codec_error(codec));
	s->seconds[0] += now() - start;
	start = now();
	zstd_len = ZSTD_compressCCtx(c, zstd_out, sizeof(zstd_out), raw, len, 3);
	s->seconds[1] += now() - start;
	check(!ZSTD_isError(zstd_len), "zstd failed");
	memcpy(&header, packed, sizeof(header));
	start = now();
	check(wp_codec_unpack(codec, &header, packed + sizeof(header), back), wp_codec_error(codec));
	s->seconds[2] += now() - start;
	check(memcmp(raw, back, len) == 0, "unpacked bytes differ");
	start = now();
	check(ZSTD_decompressDCtx(d, back, sizeof(back), zstd_out, zstd_len) == len, "zstd -d failed");
	s->seconds[3] += now() - start;
	s->bytes[0] += len;
	s->bytes[1] += packed_len;
	s->bytes[2] += zstd_len;
}

int
main(int argc, char **argv)
{
	int			level = WP_DEFAULT_LEVEL;
	int			rounds = 3;
	int			opt;
	Sums		best = {{1e9, 1e9, 1e9, 1e9}};
	WpCodec    *codec;
	ZSTD_CCtx  *c = ZSTD_createCCtx();
	ZSTD_DCtx  *d = ZSTD_createDCtx();

	while ((opt = getopt(argc, argv, "l:r:")) != -1)
	{
		if (opt == 'l')
			level = atoi(optarg);
		else if (opt == 'r')
			rounds = atoi(optarg);
		else
			check(false, "usage: speed [-l LEVEL] [-r ROUNDS] SEGMENT...");
	}
	check(optind < argc && rounds >= 0, "usage: speed [-l LEVEL] [-r ROUNDS] SEGMENT...");
	codec = wp_codec_new(level);
	check(codec != NULL, "out of memory");
	for (int round = 0; round <= rounds; round++)
	{
		Sums		s = {{0}};

		for (int i = optind; i < argc; i++)
			measure(codec, c, d, argv[i], &s);
		/* the first round only warms up */
		for (int i = 0; i < 4 && round > 0; i++)
			best.seconds[i] = Min(best.seconds[i], s.seconds[i]);
		memcpy(best.bytes, s.bytes, sizeof(s.bytes));
	}
	printf("%zu %zu %zu", best.bytes[0], best.bytes[1], best.bytes[2]);
	for (int i = 0; i < 4; i++)
		printf(" %.0f", best.bytes[0] / best.seconds[i] / 1e6);
	printf("\n");
	return 0;
}
