/*-------------------------------------------------------------------------
 * pb_index.c
 *	  A backend's description of an index; reading and locking of its pages.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "catalog/pg_type_d.h"
#include "storage/buf_internals.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "pb_index.h"

void
pb_index_corrupt(Relation rel, BlockNumber block, int slot, const char *problem)
{
	if (slot < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" is damaged at block %u",
						RelationGetRelationName(rel), block),
				 errdetail_internal("%s", problem),
				 errhint("Please REINDEX it.")));
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is damaged at block %u, offset %d",
					RelationGetRelationName(rel), block, slot + 1),
			 errdetail_internal("%s", problem),
			 errhint("Please REINDEX it.")));
}

void
pb_index_check_page(Relation rel, Buffer buffer)
{
	const char *problem = pb_page_check(BufferGetPage(buffer));

	Assert(pb_index_is_locked(buffer, PB_READ));
	if (problem)
		pb_index_corrupt(rel, BufferGetBlockNumber(buffer), -1, problem);
}

/*
 * True if this backend has locked the page already.  Locking it again would
 * wait for itself, without a way to cancel.
 */
static bool
is_locked(Buffer buffer)
{
	return !BufferIsLocal(buffer) && compat_buffer_is_locked(buffer, false);
}

/* Read and lock a page of the tree, or a deleted one. */
Buffer
pb_index_read(Relation rel, BlockNumber block, int lock)
{
	Buffer		buffer;

	Assert(CritSectionCount == 0);
	if (block == PB_META_BLOCK)
		pb_index_corrupt(rel, block, -1, "A link leads to the metapage.");
	if (!compat_has_block(rel, block))
		pb_index_corrupt(rel, block, -1,
						 "A link leads to the block, which does not exist.");
	buffer = ReadBuffer(rel, block);
	if (is_locked(buffer))
		pb_index_corrupt(rel, block, -1, "A link leads back to the page.");
	LockBuffer(buffer, lock);
	pb_index_check_page(rel, buffer);
	return buffer;
}

/* Add a page at the end of the file, and lock it. */
Buffer
pb_index_extend(Relation rel)
{
	bool		lock = !RELATION_IS_LOCAL(rel);
	Buffer		buffer;

	if (lock)
		LockRelationForExtension(rel, ExclusiveLock);
	buffer = ReadBuffer(rel, P_NEW);
	LockBuffer(buffer, PB_WRITE);
	if (lock)
		UnlockRelationForExtension(rel, ExclusiveLock);
	/* no other process knows it yet */
	Assert(PageIsNew(BufferGetPage(buffer)));
	return buffer;
}

/* ---- the metapage ------------------------------------------------------ */

/*
 * True if equal keys are identical; then duplicates share an item.  Equal
 * values of bpchar may differ in trailing blanks.  The answer of its operator
 * class is valid for bpchar(n), but such a column may become one of bpchar,
 * and keep its index.
 */
static bool
equal_is_identical(Relation rel, const PbMeta *meta)
{
	if (meta->natts != meta->nkeys)
		return false;
	for (int i = 0; i < meta->nkeys; i++)
	{
		Oid			type = rel->rd_opcintype[i];
		Oid			proc;

		if (PbCodecIsOrdered(meta->codec[i]))
			continue;
		proc = get_opfamily_proc(rel->rd_opfamily[i], type, type,
								 BTEQUALIMAGE_PROC);
		if (!OidIsValid(proc) || type == BPCHAROID ||
			!DatumGetBool(OidFunctionCall1Coll(proc, rel->rd_indcollation[i],
											   ObjectIdGetDatum(type))))
			return false;
	}
	return true;
}

void
pb_index_new_meta(Relation rel, PbMeta *meta)
{
	bool		bytes = true;

	memset(meta, 0, sizeof(*meta));
	meta->magic = PB_META_MAGIC;
	meta->version = PB_FORMAT_VERSION;
	meta->root = PB_NONE;
	meta->natts = IndexRelationGetNumberOfAttributes(rel);
	meta->nkeys = IndexRelationGetNumberOfKeyAttributes(rel);
	for (int i = 0; i < meta->natts; i++)
	{
		meta->codec[i] = pb_codec_choose(rel, i);
		bytes &= i >= meta->nkeys || PbCodecIsOrdered(meta->codec[i]);
	}
	meta->flags = (bytes ? PB_META_BYTES : 0) |
		(equal_is_identical(rel, meta) ? PB_META_EQUALIMAGE : 0);
}

/* Read and lock the metapage, and copy its contents. */
Buffer
pb_index_read_meta(Relation rel, int lock, PbMeta *meta)
{
	Buffer		buffer = ReadBuffer(rel, PB_META_BLOCK);
	Page		page;

	/* it is locked after pages of the tree, and once */
	Assert(!is_locked(buffer));
	LockBuffer(buffer, lock);
	page = BufferGetPage(buffer);
	pb_index_check_page(rel, buffer);
	memcpy(meta, PbPageGetMeta(page), sizeof(*meta));
	if (!(PbPageGetSpecial(page)->flags & PB_PAGE_META) ||
		meta->magic != PB_META_MAGIC)
		pb_index_corrupt(rel, PB_META_BLOCK, -1,
						 "The page is not a metapage of a pbtree index.");
	if (meta->version != PB_FORMAT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" has format %u, but this version of pbtree reads format %d",
						RelationGetRelationName(rel), meta->version,
						PB_FORMAT_VERSION),
				 errhint("Install a newer version of pbtree, or REINDEX the index.")));
	return buffer;
}

static void
load_column(Relation rel, int i, uint8 codec, PbColumn *col)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);
	bool		key = i < IndexRelationGetNumberOfKeyAttributes(rel);

	col->codec = codec;
	col->len = att->attlen;
	col->byval = att->attbyval;
	col->storage = att->attstorage;
	col->compressible = get_typstorage(att->atttypid) == TYPSTORAGE_EXTENDED ||
		get_typstorage(att->atttypid) == TYPSTORAGE_MAIN;
	col->fixed = pb_codec_width(codec, att->attlen);
	col->collation = key ? rel->rd_indcollation[i] : InvalidOid;
	col->desc = key && (rel->rd_indoption[i] & INDOPTION_DESC);
	col->nulls_first = key && (rel->rd_indoption[i] & INDOPTION_NULLS_FIRST);
}

/*
 * False if a codec is one of a newer version, or damaged, or does not suit the
 * column.
 */
static bool
codec_is_right(const PbColumn *col)
{
	switch (PbCodecKind(col->codec))
	{
		case PB_CODEC_BOOL:
		case PB_CODEC_CHAR:
			return col->len == 1;
		case PB_CODEC_INT2:
			return col->len == 2;
		case PB_CODEC_INT4:
		case PB_CODEC_UINT4:
			return col->len == 4;
		case PB_CODEC_INT8:
		case PB_CODEC_UINT8:
			return col->len == 8;
		case PB_CODEC_RAW:
		case PB_CODEC_BYTES:
			return col->len > 0;
		case PB_CODEC_NAME:
		case PB_CODEC_NAME_C:
			return col->len == NAMEDATALEN;
		case PB_CODEC_CSTRING:
			return col->len == -2;
		case PB_CODEC_VARLENA:
		case PB_CODEC_TEXT:
		case PB_CODEC_TEXT_C:
		case PB_CODEC_BYTEA:
			return col->len == -1;
	}
	return false;
}

static Size
index_size(Relation rel)
{
	return offsetof(PbIndex, col) +
		IndexRelationGetNumberOfAttributes(rel) * sizeof(PbColumn);
}

static PbIndex *
load_index(Relation rel)
{
	PbMeta		meta;
	int			natts = IndexRelationGetNumberOfAttributes(rel);
	PbIndex    *index;

	UnlockReleaseBuffer(pb_index_read_meta(rel, PB_READ, &meta));
	if (meta.flags & ~(PB_META_BYTES | PB_META_EQUALIMAGE))
		pb_index_corrupt(rel, PB_META_BLOCK, -1,
						 "The metapage has unknown flags.");
	if (meta.natts != natts ||
		meta.nkeys != IndexRelationGetNumberOfKeyAttributes(rel))
		pb_index_corrupt(rel, PB_META_BLOCK, -1,
						 "The number of columns in the metapage is wrong.");
	index = MemoryContextAllocZero(rel->rd_indexcxt, index_size(rel));
	index->natts = natts;
	index->nkeys = meta.nkeys;
	index->map_len = (natts * 2 + 7) / 8;
	index->bytes = (meta.flags & PB_META_BYTES) != 0;
	index->equalimage = (meta.flags & PB_META_EQUALIMAGE) != 0;
	index->root = meta.root;
	index->level = meta.level;
	index->last = PB_NONE;
	for (int i = 0; i < natts; i++)
	{
		load_column(rel, i, meta.codec[i], &index->col[i]);
		if (!codec_is_right(&index->col[i]) ||
			((meta.codec[i] & PB_CODEC_INVERTED) != 0) !=
			(index->col[i].desc && PbCodecIsOrdered(meta.codec[i])))
			pb_index_corrupt(rel, PB_META_BLOCK, -1,
							 "A column's encoding is unknown.");
		if (index->bytes && i < index->nkeys &&
			!PbCodecIsOrdered(meta.codec[i]))
			pb_index_corrupt(rel, PB_META_BLOCK, -1,
							 "A column's encoding has no order.");
		/* looked up here, not while a page is locked */
		if (i < index->nkeys)
			(void) index_getprocinfo(rel, i + 1, BTORDER_PROC);
		if (i == 0 || index->fixed > 0)
			index->fixed = index->col[i].fixed > 0 ?
				index->fixed + index->col[i].fixed : 0;
	}
	return index;
}

/* palloc'd */
PbIndex *
pb_index_get(Relation rel)
{
	PbIndex    *copy = palloc(index_size(rel));

	if (rel->rd_amcache == NULL)
		rel->rd_amcache = load_index(rel);
	memcpy(copy, rel->rd_amcache, index_size(rel));
	return copy;
}

/*
 * Get the root and its level, or PB_NONE.  The relation cache is newer than a
 * copy, which serves a whole statement.
 */
BlockNumber
pb_index_root(Relation rel, PbIndex *index, int *level)
{
	PbIndex    *cached;

	if (rel->rd_amcache == NULL)
		rel->rd_amcache = load_index(rel);
	cached = rel->rd_amcache;
	if (cached->root == PB_NONE)
	{
		PbMeta		meta;

		UnlockReleaseBuffer(pb_index_read_meta(rel, PB_READ, &meta));
		cached->root = meta.root;
		cached->level = meta.level;
	}
	index->root = cached->root;
	index->level = cached->level;
	*level = index->level;
	return index->root;
}

/*
 * Set the leaf that may get the next key greater than all others; PB_NONE if
 * unknown.
 */
void
pb_index_set_last(Relation rel, PbIndex *index, BlockNumber last)
{
	PbIndex    *cached = rel->rd_amcache;

	/* a root leaf needs no such guess */
	Assert(last == PB_NONE || index->level > 0);
	index->last = last;
	if (cached != NULL)
		cached->last = last;
}

/* Forget the root; there is a newer one. */
void
pb_index_forget_root(Relation rel, PbIndex *index)
{
	PbIndex    *cached = rel->rd_amcache;

	index->root = PB_NONE;
	if (cached != NULL)
		cached->root = PB_NONE;
	pb_index_set_last(rel, index, PB_NONE);
}
