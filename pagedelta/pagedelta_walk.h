/*-------------------------------------------------------------------------
 * pagedelta_walk.h
 *	  One implementation; pagedelta_make.c includes this for each.
 *
 *	PD_NAME(name)				the name with the implementation's ending
 *	PD_TARGET					function attribute that allows the instructions
 *	PD_NAME(pd_mask)(a, b)		of 64 bytes: a bit for each that differs
 *	PD_NAME(pd_same)(a, b)		are these PD_STRIDE bytes the same?
 *
 * Pages are read in units of 64 bytes that are aligned to the page's
 * beginning.  No unit crosses the page's end, whatever the region's borders
 * are.
 *-------------------------------------------------------------------------
 */

/*
 * Write the runs of one unit.  The first may continue the last run of earlier
 * units.  The last one is kept, in begin and last, because the next unit may
 * continue it.
 */
static inline __attribute__((always_inline)) PD_TARGET void
PD_NAME(pd_walk) (PdJob *job, uint64_t mask, int unit, int *begin, int *last)
{
	int			start = unit + __builtin_ctzll(mask);
	uint64_t	spread = pd_spread(mask);
	uint64_t	runs;
	uint64_t	starts;
	uint64_t	ends;

	if (start - *last > PD_MAX_GAP)
	{
		if (*last >= 0)
			pd_put_fragment(job, *begin, *last);
		*begin = start;
	}
	*last = unit + PAGEDELTA_UNIT;
	if (spread == UINT64_MAX)
		return;					/* one run, to the end */

	runs = pd_close_gaps(mask, spread);
	starts = runs & ~(runs << 1);
	ends = ~runs & (runs << 1);
	for (starts &= starts - 1; starts != 0; starts &= starts - 1)
	{
		pd_put_fragment(job, *begin, unit + __builtin_ctzll(ends));
		*begin = unit + __builtin_ctzll(starts);
		ends &= ends - 1;
	}
	if (ends != 0)
		*last = unit + __builtin_ctzll(ends);
}

static inline __attribute__((always_inline)) PD_TARGET void
PD_NAME(pd_region) (PdJob *job, PdRegion r)
{
	int			begin = r.begin;
	int			last = r.known_begin > r.begin ? r.known_begin : PD_NOWHERE;
	int			from = r.known_begin > r.begin ? r.known_begin : r.begin;
	int			to = r.known_end < r.end ? r.known_end : r.end;
	int			unit = from & ~(PAGEDELTA_UNIT - 1);
	uint64_t	wanted = UINT64_MAX << (from - unit);

	while (unit < to)
	{
		int			next = (unit | (PD_STRIDE - 1)) + 1;

		if (next <= to && unit + PD_STRIDE == next &&
			PD_NAME(pd_same) (job->old_page + unit, job->new_page + unit))
		{
			unit = next;
			wanted = UINT64_MAX;
			continue;
		}
		for (next = next < to ? next : to; unit < next; unit += PAGEDELTA_UNIT)
		{
			uint64_t	mask = PD_NAME(pd_mask) (job->old_page + unit,
												 job->new_page + unit) &
				wanted;

			if (to - unit < PAGEDELTA_UNIT)
				mask &= UINT64_MAX >> (PAGEDELTA_UNIT - (to - unit));
			if (mask != 0)
				PD_NAME(pd_walk) (job, mask, unit, &begin, &last);
			wanted = UINT64_MAX;
		}
	}

	/* bytes that the old image lacks continue the last fragment, or form one */
	if (to < r.end)
	{
		if (to - last > PD_MAX_GAP)
		{
			if (last >= 0)
				pd_put_fragment(job, begin, last);
			begin = to;
		}
		last = r.end;
	}
	if (last >= 0)
		pd_put_fragment(job, begin, last);
}

static PD_TARGET void
PD_NAME(pd_make) (PdJob *job, const PageDeltaBounds *b)
{
	PdRegion	regions[2] = {
		{0, (int) b->new_lower, 0, (int) b->old_lower},
		{(int) b->new_upper, job->size, (int) b->old_upper, job->size}
	};

	/* a copy whose address is never taken, so it stays in registers */
	PdJob		copy = *job;

	for (int i = 0; i < 2; i++)
		PD_NAME(pd_region) (&copy, regions[i]);
	*job = copy;
}

/* Compare with zeros in the same way as pd_same compares two images. */
static PD_TARGET bool
PD_NAME(pd_zeros) (const uint8_t *p, uint32_t len)
{
	uint8_t		rest = 0;

	for (; len >= PD_STRIDE; p += PD_STRIDE, len -= PD_STRIDE)
		if (!PD_NAME(pd_same) (p, pd_no_bytes))
			return false;
	for (; len >= PAGEDELTA_UNIT; p += PAGEDELTA_UNIT, len -= PAGEDELTA_UNIT)
		if (PD_NAME(pd_mask) (p, pd_no_bytes) != 0)
			return false;
	for (; len > 0; p++, len--)
		rest |= *p;
	return rest == 0;
}

#undef PD_NAME
#undef PD_TARGET
