/*-------------------------------------------------------------------------
 * test_model.c
 *	  Slots, sizes at which nodes change, and random operations compared with
 *	  an oracle.
 *-------------------------------------------------------------------------
 */
#include "tidset_test.h"

/* ---- slots ---- */

static void
check_slot(const TsBits *bits, const bool *expected)
{
	uint8_t		far[TS_FAR_MAX + TIDSET_PAD];
	uint16_t	offsets[TIDSET_MAX_OFFSET];
	uint32_t	len;
	uint64_t	slot = ts_slot_encode(bits, far, &len);
	int			count = 0;
	int			n = ts_slot_offsets(slot, far, offsets);

	CHECK(len <= TS_FAR_MAX && len == ts_slot_far_len(slot));
	for (int o = 0; o <= TIDSET_MAX_OFFSET; o++)
	{
		CHECK(ts_slot_member(slot, far, (uint16_t) o) == expected[o]);
		if (expected[o])
			CHECK(count < n && offsets[count++] == o);
	}
	CHECK(!ts_slot_member(slot, far, UINT16_MAX));
	CHECK(count == n && count == ts_slot_count(slot));
	CHECK(ts_slot_max(slot, far) == offsets[n - 1]);
	if (len > 0)
		CHECK(ts_slot_far_pos(ts_slot_moved(slot, 0xFFFFF)) == 0xFFFFF &&
			  ts_slot_moved(ts_slot_moved(slot, 0xFFFFF), 0) == slot);
	else
		CHECK(TS_SLOT_TAG(slot) != TS_SLOT_FAR);
	/* never larger than PostgreSQL's own bitmap of 8-byte words */
	CHECK(len <= (uint32_t) (offsets[n - 1] / 64 + 1) * 8);
}

void
test_slots(void)
{
	Rng			rng = {test_seed};

	for (int round = 0; round < 2000; round++)
	{
		uint16_t	offsets[TIDSET_MAX_OFFSET];
		bool		expected[TIDSET_MAX_OFFSET + 1] = {false};
		TsBits		bits;
		int			n = random_offsets(&rng, round % OFFSET_MANNERS, offsets);

		ts_bits_clear(&bits);
		for (int i = 0; i < n; i++)
		{
			ts_bits_add(&bits, offsets[i]);
			expected[offsets[i]] = true;
		}
		check_slot(&bits, expected);
	}
}

/* ---- sizes ---- */

/*
 * Fill one leaf, or one inner node, with 1, 2, ... 256 children, from either
 * side.
 */
static void
grow_one(int shift, bool down, int manner, Rng *rng)
{
	Counter		counter = {0};
	TidSetAllocator allocator = counting_allocator(&counter);
	TidSet	   *set = tidset_create(&allocator, &allocator, 1 << 26);
	Oracle		oracle;

	oracle_init(&oracle);
	for (int i = 0; i < 256; i++)
	{
		uint32_t	block = (uint32_t) (down ? 255 - i : i) << shift;
		uint16_t	offsets[TIDSET_MAX_OFFSET];
		int			n = random_offsets(rng, manner, offsets);

		CHECK(tidset_add_block(set, block, offsets, n));
		for (int o = 0; o < n; o++)
			oracle_add(&oracle, block, offsets[o]);
		check_same(set, &oracle);
		CHECK_SET(set);
		CHECK(tidset_memory(set) == counter.bytes);
		for (int other = 0; other < 256; other += 7)
			CHECK(tidset_member(set, (uint32_t) other << shift, 1) ==
				  oracle_has(&oracle, (uint64_t) other << shift, 1));
	}
	digest_set(set);
	tidset_destroy(set);
	CHECK(counter.bytes == 0);
	oracle_free(&oracle);
}

static void
check_empty(void)
{
	TidSet	   *set = tidset_create_malloc(100000);
	uint16_t	offset = 1;
	uint16_t	offsets[TIDSET_MAX_OFFSET];
	uint32_t	block;
	TidSetIter	iter;

	CHECK(!tidset_member(set, 0, 1) && !tidset_member(set, UINT32_MAX, 1));
	tidset_iter_begin(set, &iter);
	CHECK(tidset_iter_next(&iter, &block, offsets, TIDSET_MAX_OFFSET) == 0);
	CHECK(tidset_add_block(set, 5, &offset, 0));
	CHECK(tidset_count(set) == 0);
	CHECK_SET(set);
	/* the last possible block of a table */
	CHECK(tidset_add_block(set, UINT32_MAX - 1, &offset, 1));
	CHECK(tidset_member(set, UINT32_MAX - 1, 1) &&
		  !tidset_member(set, UINT32_MAX, 1));
	CHECK(!tidset_member(set, UINT32_MAX - 1, 0) && !tidset_member(set, 0, 1));
	CHECK(tidset_add_block(set, 0, &offset, 1));
	tidset_iter_begin(set, &iter);
	CHECK(tidset_iter_next(&iter, &block, offsets, TIDSET_MAX_OFFSET) == 1 &&
		  block == 0);
	CHECK(tidset_iter_next(&iter, &block, offsets, TIDSET_MAX_OFFSET) == 1 &&
		  block == UINT32_MAX - 1);
	CHECK(tidset_iter_next(&iter, &block, offsets, TIDSET_MAX_OFFSET) == 0);
	CHECK(tidset_iter_next(&iter, &block, offsets, TIDSET_MAX_OFFSET) == 0);
	tidset_destroy(set);

	/* a block always fits */
	set = tidset_create_malloc(100);
	CHECK(set != NULL && tidset_limit(set) == TIDSET_MIN_MEMORY);
	CHECK(tidset_add_block(set, 5, &offset, 1) && tidset_member(set, 5, 1));
	tidset_destroy(set);
}

/* Test invalid offsets, and a buffer that is too small for a block. */
static void
check_misuse(void)
{
	static const uint16_t wrong[] = {0, TIDSET_MAX_OFFSET + 1, UINT16_MAX};
	TidSet	   *set = tidset_create_malloc(1 << 20);
	TidSetIter	iter;
	uint32_t	block;

	for (int i = 0; i < 3; i++)
	{
		uint16_t	offsets[] = {1, wrong[i], 2};

		CHECK(!tidset_add_block(set, 7, offsets, 3));
		CHECK(tidset_count(set) == 0 && !tidset_member(set, 7, 1));
	}
	for (int manner = 0; manner < OFFSET_MANNERS; manner++)
	{
		Rng			rng = {test_seed + manner};
		uint16_t	offsets[TIDSET_MAX_OFFSET];
		uint16_t	back[TIDSET_MAX_OFFSET + 1];
		int			n = random_offsets(&rng, manner, offsets);
		int			distinct;

		/* in leaves of all forms */
		for (uint32_t i = 0; i < (manner % 2 ? 1 : 40); i++)
			CHECK(tidset_add_block(set, i, offsets, n));
		distinct = (int) (tidset_count(set) / tidset_blocks(set));
		tidset_iter_begin(set, &iter);
		for (int room = 0; room < distinct; room++)
		{
			back[room] = 12345;
			CHECK(tidset_iter_next(&iter, &block, back, room) == -1 &&
				  back[room] == 12345);
		}
		CHECK(tidset_iter_next(&iter, &block, back, distinct) == distinct &&
			  block == 0);
		tidset_reset(set);
	}
	tidset_destroy(set);
}

/* Check that a lookup does not write to the set, sealed or not. */
static void
check_const(void)
{
	TidSet	   *set = tidset_create_malloc(1 << 20);
	TidSet		before;
	TidSetLookup a;
	TidSetLookup b;

	for (uint32_t block = 0; block < 600; block++)
	{
		uint16_t	offsets[] = {1 + block % 60, 200, 3000};

		CHECK(tidset_add_block(set, block, offsets, 1 + block % 3));
	}
	for (int pass = 0; pass < 2; pass++)
	{
		memcpy(&before, set, sizeof(before));
		tidset_lookup_begin(set, &a);
		tidset_lookup_begin(set, &b);
		for (uint32_t block = 0; block < 600; block++)
		{
			CHECK(tidset_lookup(&a, block, 1 + block % 60) &&
				  tidset_lookup(&a, block, 200) == (block % 3 >= 1));
			CHECK(tidset_lookup(&b, 599 - block, 3000) ==
				  ((599 - block) % 3 == 2));
			CHECK(!tidset_member(set, block, 62));
		}
		CHECK(memcmp(&before, set, sizeof(before)) == 0);
		tidset_seal(set);
	}
	tidset_destroy(set);
}

void
test_edges(void)
{
	Rng			rng = {test_seed};

	check_empty();
	check_misuse();
	check_const();
	for (int manner = 0; manner < OFFSET_MANNERS - 1; manner++)
	{
		grow_one(0, manner % 2 != 0, manner, &rng);
		grow_one(8, manner % 2 == 0, manner, &rng);
	}
	grow_one(16, false, 1, &rng);
	grow_one(24, true, 1, &rng);
}

/* ---- the model ---- */

typedef struct Model
{
	TidSet	   *set;
	Oracle		oracle;
	Counter		counter;
	Rng			rng;
	int			keys;			/* distribution of keys */
	int			manner;			/* distribution of offsets; OFFSET_MANNERS:
								 * any */
	uint64_t	sequence;
} Model;

static uint64_t
random_key(Model *model)
{
	Rng		   *rng = &model->rng;

	switch (model->keys)
	{
		case 0:					/* ascending without gaps */
			return model->sequence++;
		case 1:					/* ascending with gaps */
			return model->sequence += 1 + rng_below(rng, 200);
		case 2:					/* a small table */
			return rng_below(rng, 3000);
		case 3:					/* any block */
			return rng_next(rng) >> 32;
		case 4:					/* runs */
			if (rng_below(rng, 50) == 0)
				model->sequence = rng_below(rng, 1 << 24);
			return model->sequence++;
		case 5:					/* few in each byte */
			return rng_next(rng) & 0x07030303;
		case 6:					/* ends of the range */
			return (rng_below(rng, 2) ? UINT32_MAX : 0) ^ rng_below(rng, 700);
		default:				/* longer than block numbers */
			return rng_next(rng) & UINT64_C(0x03000700FF0007);
	}
}

static void
model_add(Model *model)
{
	uint16_t	offsets[TIDSET_MAX_OFFSET];
	uint64_t	key = random_key(model);
	int			manner = model->manner < OFFSET_MANNERS ? model->manner :
		(int) rng_below(&model->rng, OFFSET_MANNERS);
	int			n = random_offsets(&model->rng, manner, offsets);

	CHECK(ts_add(model->set, key, offsets, n));
	for (int i = 0; i < n; i++)
		oracle_add(&model->oracle, key, offsets[i]);
	CHECK(tidset_count(model->set) == model->oracle.used);
	CHECK(tidset_memory(model->set) == model->counter.bytes);
}

static void
model_look(Model *model)
{
	uint64_t	was = model->sequence;
	uint64_t	key = random_key(model);
	uint16_t	offset =
		(uint16_t) (1 + rng_below(&model->rng,
								  rng_below(&model->rng, 2) ? 62 : 300));

	model->sequence = was;
	for (int i = -1; i <= 1; i++)
	{
		uint64_t	near = (key + (uint64_t) i) & TS_MAX_KEY;

		CHECK(ts_member(model->set, near, offset) ==
			  oracle_has(&model->oracle, near, offset));
	}
}

/* Look up sorted and unsorted batches of TIDs around those in the set. */
static void
model_batch(Model *model)
{
	TidSetTid	tids[300];
	bool		found[300];
	int			expected = 0;
	uint32_t	block = rng_below(&model->rng, 3000);

	for (int i = 0; i < 300; i++)
	{
		block += rng_below(&model->rng, 2);
		tids[i].block_hi = (uint16_t) (block >> 16);
		tids[i].block_lo = (uint16_t) block;
		tids[i].offset = (uint16_t) (1 + rng_below(&model->rng, 70));
		expected += oracle_has(&model->oracle, block, tids[i].offset);
	}
	CHECK(tidset_member_batch(model->set, tids, 300, found) == expected);
	for (int i = 0; i < 300; i++)
		CHECK(found[i] ==
			  oracle_has(&model->oracle,
						 (uint32_t) tids[i].block_hi << 16 | tids[i].block_lo,
						 tids[i].offset));
}

static void
model_reset(Model *model)
{
	uint64_t	before;

	tidset_reset(model->set);
	before = model->counter.bytes;
	CHECK(tidset_memory(model->set) == before);
	CHECK(tidset_count(model->set) == 0 && tidset_blocks(model->set) == 0);
	oracle_clear(&model->oracle);
	check_same(model->set, &model->oracle);
	model->sequence = 0;
}

static void
run_round(int round, int operations)
{
	Model		model = {.rng = {test_seed * 1000003 + (uint64_t) round}};
	TidSetAllocator allocator = counting_allocator(&model.counter);

	model.keys = round % 8;
	model.manner = round / 8 % 2 ?
		OFFSET_MANNERS : (int) rng_below(&model.rng, OFFSET_MANNERS - 1);
	model.set = tidset_create(&allocator, &allocator, UINT64_C(1) << 30);
	oracle_init(&model.oracle);
	for (int i = 0; i < operations; i++)
	{
		uint32_t	what = rng_below(&model.rng, 1000);

		if (what < 900 || (round % 3 == 0 && what < 990))
			model_add(&model);
		else if (what < 997)
			model_look(&model);
		else if (what == 997)
			model_batch(&model);
		else if (what == 998)
			CHECK_SET(model.set);
		else if (rng_below(&model.rng, 10) == 0)
			model_reset(&model);
	}
	check_same(model.set, &model.oracle);
	CHECK_SET(model.set);
	for (int i = 0; i < 2000; i++)
		model_look(&model);
	digest_set(model.set);
	CHECK(tidset_memory(model.set) == model.counter.bytes);
	CHECK(tidset_memory_peak(model.set) == model.counter.peak);
	tidset_destroy(model.set);
	CHECK(model.counter.bytes == 0);
	oracle_free(&model.oracle);
}

void
test_model(int rounds)
{
	for (int round = 0; round < rounds; round++)
		run_round(round, round / 8 % 2 ? 2000 : 10000);
}
