/*-------------------------------------------------------------------------
 * pagedelta_make.c
 *	  Making deltas: the implementations, and which one is used.
 *
 * Each implementation compares 64 bytes at a time and gets a bit for each byte
 * that differs.  It closes small gaps in these bits, so that only fragments are
 * left.  So alternating bytes cost no more than a block of bytes that all
 * differ.
 *-------------------------------------------------------------------------
 */
#include "pagedelta_int.h"

/* The number of bytes that are compared at once while nothing differs. */
#define PD_STRIDE	256

/* A loop that is to be unrolled.  clang does that by itself, gcc does not. */
#ifdef __clang__
#define PD_UNROLLED(i, end, step)	for (int i = 0; i < (end); i += (step))
#else
#define PD_UNROLLED(i, end, step) \
	_Pragma("GCC unroll 16") for (int i = 0; i < (end); i += (step))
#endif

/* The zeros that a hole is compared with. */
static const uint8_t pd_no_bytes[PD_STRIDE];

/* ---- without vector instructions --------------------------------------- */

/* Returns a byte with a bit for each of the eight bytes that is not zero. */
PD_INLINE uint64_t
pd_mask_of_word(uint64_t differs)
{
	const uint64_t low = UINT64_C(0x7F7F7F7F7F7F7F7F);
	uint64_t	top = (((differs & low) + low) | differs) & ~low;

	return ((top >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

PD_INLINE uint64_t
pd_mask_scalar(const uint8_t *a, const uint8_t *b)
{
	uint64_t	mask = 0;

	for (int i = 0; i < PAGEDELTA_UNIT; i += 8)
	{
		uint64_t	differs = pd_word64(a + i) ^ pd_word64(b + i);

		if (differs != 0)
			mask |= pd_mask_of_word(differs) << i;
	}
	return mask;
}

PD_INLINE bool
pd_same_scalar(const uint8_t *a, const uint8_t *b)
{
	uint64_t	differs = 0;

	PD_UNROLLED(i, PD_STRIDE, 8)
	{
		differs |= pd_word64(a + i) ^ pd_word64(b + i);
	}
	return differs == 0;
}

#define PD_NAME(name)	name##_scalar
#define PD_TARGET
#include "pagedelta_walk.h"

/* ---- x86 --------------------------------------------------------------- */

#if defined(__x86_64__) && !defined(PAGEDELTA_SCALAR)
#include <immintrin.h>

PD_INLINE uint64_t
pd_equal16(const uint8_t *a, const uint8_t *b)
{
	__m128i		equal = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *) a),
									   _mm_loadu_si128((const __m128i *) b));

	return (uint32_t) _mm_movemask_epi8(equal);
}

PD_INLINE uint64_t
pd_mask_sse2(const uint8_t *a, const uint8_t *b)
{
	return ~(pd_equal16(a, b) | pd_equal16(a + 16, b + 16) << 16 |
			 pd_equal16(a + 32, b + 32) << 32 |
			 pd_equal16(a + 48, b + 48) << 48);
}

PD_INLINE bool
pd_same_sse2(const uint8_t *a, const uint8_t *b)
{
	__m128i		same = _mm_set1_epi8(-1);

	PD_UNROLLED(i, PD_STRIDE, 16)
	{
		__m128i		x = _mm_loadu_si128((const __m128i *) (a + i));
		__m128i		y = _mm_loadu_si128((const __m128i *) (b + i));

		same = _mm_and_si128(same, _mm_cmpeq_epi8(x, y));
	}
	return _mm_movemask_epi8(same) == 0xFFFF;
}

#define PD_NAME(name)	name##_sse2
#define PD_TARGET
#include "pagedelta_walk.h"

#define PD_AVX2 __attribute__((target("avx2,bmi")))

static inline __attribute__((always_inline)) PD_AVX2 uint64_t
pd_mask_avx2(const uint8_t *a, const uint8_t *b)
{
	__m256i		low =
		_mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *) a),
						  _mm256_loadu_si256((const __m256i *) b));
	__m256i		high =
		_mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *) (a + 32)),
						  _mm256_loadu_si256((const __m256i *) (b + 32)));

	return ~((uint64_t) (uint32_t) _mm256_movemask_epi8(low) |
			 (uint64_t) (uint32_t) _mm256_movemask_epi8(high) << 32);
}

static inline __attribute__((always_inline)) PD_AVX2 bool
pd_same_avx2(const uint8_t *a, const uint8_t *b)
{
	__m256i		differs = _mm256_setzero_si256();

	PD_UNROLLED(i, PD_STRIDE, 32)
	{
		__m256i		x = _mm256_loadu_si256((const __m256i *) (a + i));
		__m256i		y = _mm256_loadu_si256((const __m256i *) (b + i));

		differs = _mm256_or_si256(differs, _mm256_xor_si256(x, y));
	}
	return _mm256_testz_si256(differs, differs);
}

#define PD_NAME(name)	name##_avx2
#define PD_TARGET		PD_AVX2
#include "pagedelta_walk.h"

#define PD_AVX512 __attribute__((target("avx512f,avx512bw,bmi")))

static inline __attribute__((always_inline)) PD_AVX512 uint64_t
pd_mask_avx512bw(const uint8_t *a, const uint8_t *b)
{
	return _mm512_cmpneq_epi8_mask(_mm512_loadu_si512(a),
								   _mm512_loadu_si512(b));
}

static inline __attribute__((always_inline)) PD_AVX512 bool
pd_same_avx512bw(const uint8_t *a, const uint8_t *b)
{
	__m512i		differs = _mm512_setzero_si512();

	PD_UNROLLED(i, PD_STRIDE, 64)
	{
		differs = _mm512_or_si512(differs,
								  _mm512_xor_si512(_mm512_loadu_si512(a + i),
												   _mm512_loadu_si512(b + i)));
	}
	return _mm512_test_epi64_mask(differs, differs) == 0;
}

#define PD_NAME(name)	name##_avx512bw
#define PD_TARGET		PD_AVX512
#include "pagedelta_walk.h"

#endif							/* x86 */

/* ---- ARM --------------------------------------------------------------- */

#if defined(__aarch64__) && !defined(PAGEDELTA_SCALAR)
#include <arm_neon.h>

/*
 * A byte that differs has one bit: another one for each of eight neighbours.
 * Three rounds of pairwise sums collect the bits of 64 bytes.
 */
PD_INLINE uint64_t
pd_mask_neon(const uint8_t *a, const uint8_t *b)
{
	const uint8x16_t bits = {
		1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128
	};
	uint8x16_t	v[4];

	for (int i = 0; i < 4; i++)
		v[i] = vbicq_u8(bits,
						vceqq_u8(vld1q_u8(a + 16 * i), vld1q_u8(b + 16 * i)));
	v[0] = vpaddq_u8(vpaddq_u8(v[0], v[1]), vpaddq_u8(v[2], v[3]));
	v[0] = vpaddq_u8(v[0], v[0]);
	return vgetq_lane_u64(vreinterpretq_u64_u8(v[0]), 0);
}

PD_INLINE bool
pd_same_neon(const uint8_t *a, const uint8_t *b)
{
	uint8x16_t	differs = vdupq_n_u8(0);

	PD_UNROLLED(i, PD_STRIDE, 16)
	{
		differs = vorrq_u8(differs, veorq_u8(vld1q_u8(a + i), vld1q_u8(b + i)));
	}
	return vmaxvq_u8(differs) == 0;
}

#define PD_NAME(name)	name##_neon
#define PD_TARGET
#include "pagedelta_walk.h"

#endif							/* ARM */

/* ---- choice ------------------------------------------------------------ */

typedef struct PdImplementation
{
	const char *name;
	PdMaker		make;
	bool		(*zeros) (const uint8_t *p, uint32_t len);
} PdImplementation;

/* The best one first. */
static const PdImplementation implementations[] = {
#if defined(__x86_64__) && !defined(PAGEDELTA_SCALAR)
	{"avx512bw", pd_make_avx512bw, pd_zeros_avx512bw},
	{"avx2", pd_make_avx2, pd_zeros_avx2},
	{"sse2", pd_make_sse2, pd_zeros_sse2},
#endif
#if defined(__aarch64__) && !defined(PAGEDELTA_SCALAR)
	{"neon", pd_make_neon, pd_zeros_neon},
#endif
	{"scalar", pd_make_scalar, pd_zeros_scalar}
};

#define IMPLEMENTATIONS (sizeof(implementations) / sizeof(implementations[0]))

/* Two threads that choose at the same time make the same choice. */
static const PdImplementation *chosen;

static bool
machine_has(const PdImplementation *implementation)
{
#if defined(__x86_64__) && !defined(PAGEDELTA_SCALAR)
	__builtin_cpu_init();
	if (implementation->make == pd_make_avx512bw)
		return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("bmi");
	if (implementation->make == pd_make_avx2)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
#else
	(void) implementation;
#endif
	return true;
}

/*
 * Processors that have AVX-512BW but not the later AVX-512VBMI2 slow down when
 * registers of 64 bytes are used.  With pages of an index AVX2 is as fast
 * there, or faster by a seventh.
 */
static bool
machine_likes(const PdImplementation *implementation)
{
#if defined(__x86_64__) && !defined(PAGEDELTA_SCALAR)
	if (implementation->make == pd_make_avx512bw)
		return __builtin_cpu_supports("avx512vbmi2");
#else
	(void) implementation;
#endif
	return true;
}

bool
pagedelta_use(const char *name)
{
	for (size_t i = 0; i < IMPLEMENTATIONS; i++)
	{
		const PdImplementation *implementation = &implementations[i];

		if (name != NULL && strcmp(name, implementation->name) != 0)
			continue;
		if (machine_has(implementation) &&
			(name != NULL || machine_likes(implementation)))
		{
			chosen = implementation;
			return true;
		}
	}
	return false;
}

const char *
pagedelta_instructions(void)
{
	if (chosen == NULL)
		(void) pagedelta_use(NULL);
	return chosen->name;
}

/* ---- making ------------------------------------------------------------ */

static int
check_arguments(uint32_t size, const PageDeltaBounds *b, uint32_t room)
{
	if (size == 0 || size > PAGEDELTA_MAX_PAGE || size % PAGEDELTA_UNIT != 0)
		return PAGEDELTA_BAD_SIZE;
	if (b->old_lower > size || b->old_upper > size ||
		b->new_lower > b->new_upper || b->new_upper > size)
		return PAGEDELTA_BAD_BOUNDS;
	return room < PAGEDELTA_ROOM(size) ? PAGEDELTA_NO_ROOM : PAGEDELTA_OK;
}

int
pagedelta_make_parts(const void *old_page, const void *new_page, uint32_t size,
					 const PageDeltaBounds *bounds, void *delta, uint32_t room,
					 PageDeltaPart *parts, int *nparts)
{
	int			problem = check_arguments(size, bounds, room);
	int			len = 0;
	PdJob		job = {old_page, new_page, (int) size, delta, delta, parts, 0};

	if (problem != PAGEDELTA_OK)
		return problem;
	if (chosen == NULL)
		(void) pagedelta_use(NULL);
	chosen->make(&job, bounds);
	if (parts == NULL)
		return (int) (job.p - job.begin);
	if (job.p > job.begin)
		parts[job.nparts++] = (PageDeltaPart)
	{
		job.begin, (uint32_t) (job.p - job.begin)
	};
	PD_ASSERT(job.nparts <= PAGEDELTA_MAX_PARTS);
	*nparts = job.nparts;
	for (int i = 0; i < job.nparts; i++)
		len += (int) parts[i].len;
	return len;
}

int
pagedelta_make(const void *old_page, const void *new_page, uint32_t size,
			   const PageDeltaBounds *bounds, void *delta, uint32_t room)
{
	return pagedelta_make_parts(old_page, new_page, size, bounds, delta, room,
								NULL, NULL);
}

/* ---- holes ------------------------------------------------------------- */

bool
pagedelta_zeros(const void *bytes, uint32_t len)
{
	if (chosen == NULL)
		(void) pagedelta_use(NULL);
	return chosen->zeros(bytes, len);
}
