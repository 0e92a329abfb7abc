/*-------------------------------------------------------------------------
 * test_shared.c
 *	  A set in shared memory: processes map it at different addresses.
 *
 * Handles are offsets in a file in memory.  Each process maps the file at an
 * address where the others have other memory.
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include "tidset_test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define AREA_SIZE	(32 << 20)
#define NBLOCKS		60000

typedef struct Area
{
	uint8_t    *base;
	uint64_t	used;			/* freed memory is not reused */
	uint64_t	allocated;
} Area;

static uint64_t
area_alloc(void *arg, size_t size)
{
	Area	   *area = arg;
	uint64_t	handle = area->used;

	if (handle + size > AREA_SIZE)
		return 0;
	area->used += (size + 7) & ~(size_t) 7;
	area->allocated++;
	return handle;
}

static void
area_free(void *arg, uint64_t handle)
{
	Area	   *area = arg;

	memset(area->base + handle, 0xDD, 8);
	area->allocated--;
}

static void *
area_address(void *arg, uint64_t handle)
{
	return ((Area *) arg)->base + handle;
}

static TidSetAllocator
area_allocator(Area *area)
{
	TidSetAllocator allocator = {
		area_alloc, area_free, area_address, area, 0, 0
	};

	return allocator;
}

static int
expected_offsets(uint32_t block, uint16_t *offsets)
{
	Rng			rng = {test_seed ^ block};

	if (block % 7 == 3)
		return 0;
	return random_offsets(&rng, (int) (block / 512 % (OFFSET_MANNERS - 1)),
						  offsets);
}

/*
 * A worker's task: check that every TID is in the set, and its neighbours only
 * if they should be.
 */
static int
look_at_all(TidSet *set, uint32_t first)
{
	int			wrong = 0;

	for (uint32_t i = 0; i < NBLOCKS; i++)
	{
		uint32_t	block = (first + i * 7919) % NBLOCKS;
		uint16_t	offsets[TIDSET_MAX_OFFSET];
		static bool has[TIDSET_MAX_OFFSET + 1];
		int			n = expected_offsets(block, offsets);

		for (int o = 0; o < n; o++)
			has[offsets[o]] = true;
		for (int o = 0; o <= 700; o++)
			wrong += tidset_member(set, block, (uint16_t) o) != has[o];
		for (int o = 0; o < n; o++)
			wrong += !tidset_member(set, block, offsets[o]);
		for (int o = 0; o < n; o++)
			has[offsets[o]] = false;
	}
	return wrong;
}

static void
worker(int file, uint64_t handle, const uint8_t *not_here, uint32_t first)
{
	Counter		counter = {0};
	TidSetAllocator local = counting_allocator(&counter);
	Area		area = {
		.base = mmap(NULL, AREA_SIZE, PROT_READ, MAP_SHARED, file, 0)
	};
	TidSetAllocator shared = area_allocator(&area);
	TidSet	   *set;
	int			wrong;

	if (area.base == MAP_FAILED || area.base == not_here)
		_exit(2);
	set = tidset_attach(&local, &shared, handle);
	if (set == NULL)
		_exit(3);
	wrong = look_at_all(set, first) > 0;
	tidset_detach(set);
	if (counter.bytes != 0)
		_exit(4);
	_exit(wrong);
}

static void
fill_set(TidSet *set, Oracle *oracle)
{
	for (uint32_t block = 0; block < NBLOCKS; block++)
	{
		uint16_t	offsets[TIDSET_MAX_OFFSET];
		int			n = expected_offsets(block, offsets);

		CHECK(tidset_add_block(set, block, offsets, n));
		for (int i = 0; i < n; i++)
			oracle_add(oracle, block, offsets[i]);
	}
	tidset_seal(set);
}

void
test_shared(void)
{
	int			file = memfd_create("tidset", 0);
	Area		area = {.used = 64};
	Counter		counter = {0};
	TidSetAllocator local = counting_allocator(&counter);
	TidSetAllocator shared;
	TidSet	   *set;
	Oracle		oracle;

	CHECK(file >= 0 && ftruncate(file, AREA_SIZE) == 0);
	area.base = mmap(NULL, AREA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file,
					 0);
	CHECK(area.base != MAP_FAILED);
	shared = area_allocator(&area);
	set = tidset_create(&local, &shared, AREA_SIZE);
	CHECK(set != NULL);
	oracle_init(&oracle);
	/* twice, as in a VACUUM whose memory was full */
	for (int pass = 0; pass < 2; pass++)
	{
		fill_set(set, &oracle);
		for (uint32_t i = 0; i < 2; i++)
		{
			if (fork() == 0)
				worker(file, tidset_handle(set), area.base, i * 1234567);
		}
		CHECK(look_at_all(set, 99) == 0);
		for (int i = 0; i < 2; i++)
		{
			int			status;

			CHECK(wait(&status) > 0);
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		}
		check_same(set, &oracle);
		CHECK_SET(set);
		digest_set(set);
		tidset_reset(set);
		oracle_clear(&oracle);
	}
	tidset_destroy(set);
	CHECK(counter.bytes == 0 && area.allocated == 0);
	oracle_free(&oracle);
	munmap(area.base, AREA_SIZE);
	close(file);
}
