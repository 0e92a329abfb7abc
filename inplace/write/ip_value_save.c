/*-------------------------------------------------------------------------
 * ip_value_save.c
 *	  Storing and deleting large values.
 *
 * The last row of a head or block is written first, because each row has the
 * address of the next one.
 *
 * While logical decoding may need the rows, blocks are not shared, and each is
 * one row: decoding makes the chunks that core's reorder buffer takes from the
 * rows' records (ip_logical_value), and the reorder buffer wants all of them.
 * They have the value's id, so the head is written first, and gets the address
 * of its list when the blocks have been written.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "common/hashfn.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "ip_change.h"
#include "ip_logical.h"
#include "ip_modify.h"
#include "ip_op.h"
#include "ip_rel.h"
#include "ip_space.h"
#include "ip_state.h"
#include "ip_undo_use.h"
#include "ip_value_read.h"
#include "ip_value_save.h"

/* The space that a row with these bytes of a value takes, at most. */
#define ROW_SPACE(len) \
	(IP_ROW_HDRSZ + IP_VERSION_BLOCK_SZ + IP_VALUE_ROW_OVERHEAD + (len) + \
	 sizeof(ItemIdData))

/*
 * Bytes are spread over rows so that pages become full, but a row has at least
 * a quarter of them, within these limits.
 */
#define LEAST_BYTES		512
#define ENOUGH_BYTES	(BLCKSZ / 4)

/* The longest image that has a row of its own. */
#define MAX_WHOLE_IMAGE	(IP_MAX_ITEM + sizeof(ItemIdData) - ROW_SPACE(0))

/* Number of old blocks with the same key that are compared with a new one. */
#define MAX_TRIES		4

/* A block of the old version, to be found by its content. */
typedef struct OldBlock
{
	uint64		key;
	uint32		at;				/* offset in the old value */
	uint32		i;
} OldBlock;

typedef struct Saver
{
	const IpValueChange *change;
	Relation	toast;
	bool		logical;		/* decoding needs the rows */
	char		method;
	/* the new value */
	const char *raw;
	IpValue    *source;			/* instead of raw: a value that is copied */
	uint32		rawsize;
	uint32		cut;
	IpValueBlock *blocks;
	uint32		nblocks;
	uint32		size;
	/* the old one */
	bool		shares;			/* there is one, and it can be read */
	IpValue		old;
	char	   *old_raw;
	OldBlock   *sorted;
	MemoryContext block_context;
} Saver;

/* ---- rows -------------------------------------------------------------- */

/*
 * Write a row with the last of the bytes: as many as the page takes, but at
 * least "least".  Returns their number.  kind: that of the row if it has all
 * bytes.  id: the value that decoding gives the row's bytes to; 0: the row is
 * the value's head.
 */
static uint32
put_row(Saver *s, uint8 kind, const char *bytes, uint32 len, uint32 least,
		uint32 next, uint32 id, int32 chunk, uint32 *address)
{
	const IpValueChange *c = s->change;
	bool		init;
	Buffer		buffer = ip_space_find(s->toast, ROW_SPACE(least), c->options,
									   NULL, false, InvalidBuffer, &init);
	BlockNumber block = BufferGetBlockNumber(buffer);
	Page		page = BufferGetPage(buffer);
	OffsetNumber off = ip_op_put_offset(buffer, init);
	Size		free = init ? IpPageRoom(block) :
		ip_space_free(block, page, BLCKSZ);
	uint32		take = Min(len, free > ROW_SPACE(least) ?
						   free - ROW_SPACE(0) : least);
	IpValueRow	row = {
		.address = IpValueAddress(block, off),.next = next,
		.kind = take == len ? kind : IP_VALUE_MORE,
		.data = bytes + (len - take),.len = take
	};
	IpInserter	inserter;
	IpFormed	formed;
	IpChange	change;
	ByteWriter *w;

	Assert(off <= IP_VALUE_MAX_OFFSET); /* I26 */
	if (block > IP_VALUE_MAX_BLOCK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("cannot extend TOAST table \"%s\" beyond %u blocks",
						RelationGetRelationName(s->toast),
						IP_VALUE_MAX_BLOCK + 1)));
	*address = row.address;
	ip_value_form_row(&row, &formed);
	ip_change_begin(&change, s->toast, IP_XLOG_SAVE_VALUE, c->xid);
	change.replay = c->replay;
	if (s->logical && chunk >= 0)
	{
		Assert(take == len);
		change.logical = ip_logical_value(s->toast, id == 0 ? *address : id,
										  chunk);
		change.logical_rows = true;
	}
	w = ip_change_block(&change, buffer, init);
	inserter = ip_op_put_inserter(w, page, init, c->xid, c->cid);
	ip_op_put_row(w, inserter, off, &formed, c->cid, InvalidOffsetNumber, NULL,
				  0);
	ip_change_apply(&change);
	UnlockReleaseBuffer(buffer);
	pfree(formed.body);
	pgstat_count_heap_insert(s->toast, 1);
	return take;
}

/*
 * Write a head or a block; returns its address.  chunk: its number for
 * decoding, or -1; then it is one row.
 */
static uint32
put_bytes(Saver *s, uint8 kind, const char *bytes, uint32 len, uint32 id,
		  int32 chunk)
{
	uint32		address = 0;

	while (len > 0)
	{
		uint32		least = s->logical && chunk >= 0 ? len :
			Min(len, Min(Max(len / 4, LEAST_BYTES), ENOUGH_BYTES));

		CHECK_FOR_INTERRUPTS();
		len -= put_row(s, kind, bytes, len, least, address, id, chunk,
					   &address);
	}
	return address;
}

/* Set where the bytes of a head, which we have just written, continue. */
static void
set_next(Saver *s, uint32 address, uint32 next)
{
	BlockNumber block = IpValueAddressBlock(address);
	OffsetNumber off = IpValueAddressOffset(address);
	Buffer		buffer = ip_rel_read(s->toast, block);
	IpRowOp		op = {.off = off,.base = IP_BASE_ROW};
	IpVersion	v;
	IpValueRow	row;
	IpFormed	formed;
	IpChange	change;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (ip_version_begin(&v, s->toast, block, BufferGetPage(buffer),
						 off) != IPV_OK ||
		ip_value_read_row(v.hdr, v.body, v.bodylen, &row) != NULL ||
		row.kind != IP_VALUE_HEAD || row.next != 0)
		elog(ERROR, "row (%u,%u) of relation \"%s\" is not the head just written",
			 block, off, RelationGetRelationName(s->toast));
	row.next = next;
	ip_value_form_row(&row, &formed);
	op.hdr = formed.hdr;
	op.own_xid = (v.top_state & IP_ROW_VERSION) != 0;
	if (v.top_state & IP_ROW_INSERTED)
		op.state = op.own_xid ? ip_state_insert() : ip_state_insert_default();
	op.ptr = ip_ptr_cid(s->change->cid);
	op.from = v.body;
	op.fromlen = v.bodylen;
	op.body = formed.body;
	op.bodylen = formed.bodylen;
	ip_change_begin(&change, s->toast, IP_XLOG_SAVE_VALUE, s->change->xid);
	ip_op_row(ip_change_block(&change, buffer, false), &op);
	ip_change_apply(&change);
	UnlockReleaseBuffer(buffer);
}

/* ---- deleting ------------------------------------------------------------ */

/* Open the TOAST table of the change's table. */
static Relation
open_toast(const IpValueChange *c)
{
	Relation	toast = table_open(c->rel->rd_rel->reltoastrelid,
								   RowExclusiveLock);

	if (toast->rd_tableam != c->rel->rd_tableam)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("TOAST table of relation \"%s\" is not an inplace table",
						RelationGetRelationName(c->rel)),
				 errdetail("A version of inplace before 1.0 has made it."),
				 errhint("ALTER TABLE ... SET ACCESS METHOD heap, and back, makes it again.")));
	return toast;
}

/*
 * Delete a row of a value, of that kind.  Returns what is wrong with it, or
 * NULL; *next is the row that continues it.
 */
static const char *
delete_row(const IpValueChange *c, Relation toast, uint32 address,
		   IpValueKind kind, uint32 *next)
{
	BlockNumber block = IpValueAddressBlock(address);
	const char *problem = NULL;
	ItemPointerData tid;
	IpVersion	v;
	IpValueRow	row;
	IpRowWrite	w;
	Buffer		buffer;
	Size		room;

	if (address == 0 || !compat_has_block(toast, block))
		return "there is no such row";
	ItemPointerSet(&tid, block, IpValueAddressOffset(address));
	if (c->replay)
	{
		/* the page has rows that only others' horizon allows to be pruned */
		buffer = ip_rel_read(toast, block);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		if (ip_version_begin(&v, toast, block, BufferGetPage(buffer),
							 IpValueAddressOffset(address)) != IPV_OK)
			problem = "there is no such row";
	}
	else
	{
		ip_undo_use_prepare(toast);
		if (ip_modify_begin(&v, toast, &tid, c->xid, IP_TO_DELETE,
							&buffer) == IPF_NONE)
			problem = "there is no such row";
	}
	if (problem == NULL)
		problem = ip_value_read_row(v.hdr, v.body, v.bodylen, &row);
	if (problem == NULL && ((row.kind & IP_VALUE_KIND_MASK) != kind ||
							row.address != address))
		problem = "row does not belong there";
	if (problem == NULL && (v.state & IP_ROW_DELETED))
		problem = "row has been deleted";
	if (problem == NULL)
	{
		*next = row.next;
		ip_modify_same(&w, &v, IP_XLOG_DELETE_VALUE, c->xid);
		w.replay = c->replay;
		w.undo.kind = IP_UNDO_DELETE;
		w.undo.flags = IP_REC_KEYS;
		w.undo.cid = c->cid;
		w.state = ip_state_delete(false);
		room = v.top_itemlen + ip_page_free(BufferGetPage(buffer));
		ip_modify_write(&v, buffer, &w);
	}
	UnlockReleaseBuffer(buffer);
	if (problem == NULL && !c->replay)
	{
		pgstat_count_heap_delete(toast);
		ip_space_expect(toast, block, room, c->xid);
	}
	return problem;
}

static void
delete_rows(const IpValueChange *c, Relation toast, uint32 id, uint32 address,
			IpValueKind kind)
{
	uint32		next = 0;

	do
	{
		const char *problem;

		CHECK_FOR_INTERRUPTS();
		problem = delete_row(c, toast, address, kind, &next);
		if (problem != NULL)
		{
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("could not delete all of TOAST value %u of relation \"%s\": %s",
							id, RelationGetRelationName(toast), problem),
					 errdetail("The row is at (%u,%u).",
							   IpValueAddressBlock(address),
							   IpValueAddressOffset(address))));
			return;
		}
		address = next;
		kind = IP_VALUE_MORE;
	} while (address != 0);
}

/*
 * Delete the value's head and its blocks, but those that the n kept blocks
 * have.  A value may have a block several times.
 */
static void
delete_value(const IpValueChange *c, Relation toast, const IpValue *value,
			 const IpValueBlock *kept, uint32 nkept)
{
	uint32		n = value->head.nblocks;
	Size		size = sizeof(uint32) * Max((Size) n + nkept, 1);
	uint32	   *addresses = MemoryContextAllocHuge(CurrentMemoryContext, size);
	uint32	   *keep = addresses + n;

	for (uint32 i = 0; i < n; i++)
		addresses[i] = value->blocks[i].address;
	for (uint32 i = 0; i < nkept; i++)
		keep[i] = kept[i].address;
	qsort(addresses, n, sizeof(uint32), oid_cmp);
	qsort(keep, nkept, sizeof(uint32), oid_cmp);
	for (uint32 i = 0, k = 0; i < n; i++)
	{
		while (k < nkept && keep[k] < addresses[i])
			k++;
		if ((k < nkept && keep[k] == addresses[i]) ||
			(i > 0 && addresses[i] == addresses[i - 1]))
			continue;
		delete_rows(c, toast, value->id, addresses[i], IP_VALUE_BLOCK);
	}
	delete_rows(c, toast, value->id, value->id, IP_VALUE_HEAD);
	pfree(addresses);
}

void
ip_value_delete(const IpValueChange *change, const struct varlena *pointer)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "inplace value",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct varatt_external external;
	Relation	toast;
	IpValue		value;

	Assert(ip_page_none_is_locked());
	VARATT_EXTERNAL_GET_POINTER(external, pointer);
	toast = open_toast(change);
	if (ip_value_open(&value, toast, external.va_valueid,
					  external.va_rawsize - VARHDRSZ, true, NULL))
		delete_value(change, toast, &value, NULL, 0);
	else
		ereport(WARNING,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not delete TOAST value %u of relation \"%s\": its head cannot be read",
						external.va_valueid, RelationGetRelationName(toast))));
	/* as core does, keep the lock */
	table_close(toast, NoLock);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* ---- sharing blocks ------------------------------------------------------ */

static uint64
block_key(const char *raw, uint32 len)
{
	return hash_bytes_extended((const unsigned char *) raw, Min(len, 32), len);
}

static int
compare_old(const void *a, const void *b)
{
	const OldBlock *x = a;
	const OldBlock *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

/* Read the old value, if its blocks can be shared. */
static void
read_old(Saver *s, const struct varlena *old)
{
	struct varatt_external external;

	s->shares = false;
	if (old == NULL || s->logical)
		return;
	VARATT_EXTERNAL_GET_POINTER(external, old);
	if (!ip_value_open(&s->old, s->toast, external.va_valueid,
					   external.va_rawsize - VARHDRSZ, true, NULL))
		return;
	s->old_raw = MemoryContextAllocHuge(CurrentMemoryContext,
										s->old.head.rawsize);
	s->shares = ip_value_read(&s->old, 0, s->old.head.rawsize, s->old_raw);
}

/* Sort the old value's blocks by their content. */
static void
sort_old(Saver *s)
{
	uint32		n = s->old.head.nblocks;
	uint32		at = 0;

	s->sorted = MemoryContextAllocHuge(CurrentMemoryContext,
									   sizeof(OldBlock) * Max(n, 1));
	for (uint32 i = 0; i < n; i++)
	{
		uint32		len = s->old.blocks[i].rawlen;

		s->sorted[i].key = block_key(s->old_raw + at, len);
		s->sorted[i].at = at;
		s->sorted[i].i = i;
		at += len;
	}
	qsort(s->sorted, n, sizeof(OldBlock), compare_old);
}

/* Returns an old block with these bytes, or NULL. */
static const OldBlock *
find_old(Saver *s, const char *raw, uint32 len)
{
	uint64		key = block_key(raw, len);
	uint32		low = 0;
	uint32		high = s->old.head.nblocks;

	while (low < high)
	{
		uint32		mid = low + (high - low) / 2;

		if (s->sorted[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	for (int tries = 0; low < s->old.head.nblocks && tries < MAX_TRIES &&
		 s->sorted[low].key == key; low++, tries++)
	{
		const OldBlock *o = &s->sorted[low];

		if (s->old.blocks[o->i].rawlen == len &&
			memcmp(s->old_raw + o->at, raw, len) == 0)
			return o;
	}
	return NULL;
}

static void
add_block(Saver *s, uint32 address, uint32 len)
{
	if (s->nblocks == s->size)
	{
		s->size = Max(64, 2 * s->size);
		s->blocks = s->blocks == NULL ?
			palloc(s->size * sizeof(IpValueBlock)) :
			repalloc_huge(s->blocks, s->size * sizeof(IpValueBlock));
	}
	s->blocks[s->nblocks].address = address;
	s->blocks[s->nblocks++].rawlen = len;
}

/*
 * Cut the value into blocks.  Those that the old value has get their address.
 * Behind a shared block the old value's next one is compared first: if its
 * bytes are there, it would be cut just so.  But the old value's last block was
 * cut by the end of the value.
 */
static void
cut_value(Saver *s)
{
	const uint32 nold = s->shares ? s->old.head.nblocks : 0;
	uint32		next = 0;		/* of the old blocks */
	uint32		next_at = 0;

	if (nold > 0)
		sort_old(s);
	for (uint32 at = 0; at < s->rawsize;)
	{
		uint32		left = s->rawsize - at;
		uint32		len = next < nold ? s->old.blocks[next].rawlen : 0;
		bool		shared = len > 0 && len <= left &&
			(next + 1 < nold || len == left) && s->old.head.cut == s->cut &&
			memcmp(s->raw + at, s->old_raw + next_at, len) == 0;

		CHECK_FOR_INTERRUPTS();
		if (!shared)
		{
			const OldBlock *found = NULL;

			len = ip_value_cut(s->raw + at, left, s->cut);
			if (s->logical)
				len = Min(len, MAX_WHOLE_IMAGE - sizeof(IpValueHead));
			if (nold > 0)
				found = find_old(s, s->raw + at, len);
			shared = found != NULL;
			if (shared)
			{
				next = found->i;
				next_at = found->at;
			}
		}
		add_block(s, shared ? s->old.blocks[next].address : 0, len);
		if (shared)
		{
			next++;
			next_at += len;
		}
		at += len;
	}
}

/* ---- saving ------------------------------------------------------------ */

/* The image of raw bytes; returns the flag of the row's kind. */
static uint8
make_image(Saver *s, const char *raw, uint32 rawlen, const char **image,
		   uint32 *len)
{
	if (s->method != 0)
	{
		*image = ip_value_compress(raw, rawlen, s->method, len);
		if (*image != NULL)
			return IP_VALUE_COMPRESSED;
	}
	*image = raw;
	*len = rawlen;
	return 0;
}

/*
 * The image of a block of the value that is copied.  It stays as it is stored,
 * unless it is to be compressed.
 */
static uint8
copy_image(Saver *s, uint32 i, const char **image, uint32 *len)
{
	IpValueImage stored;

	(void) ip_value_image(s->source, i, &stored);
	if (!stored.compressed)
		return make_image(s, stored.bytes, stored.len, image, len);
	*image = stored.bytes;
	*len = stored.len;
	return IP_VALUE_COMPRESSED;
}

/* Write the blocks that the old value does not have. */
static void
put_blocks(Saver *s, uint32 id)
{
	uint32		at = 0;

	for (uint32 i = 0; i < s->nblocks; i++)
	{
		IpValueBlock *block = &s->blocks[i];

		if (block->address == 0)
		{
			MemoryContext context = MemoryContextSwitchTo(s->block_context);
			const char *image;
			uint32		len;
			uint8		flag = s->source != NULL ?
				copy_image(s, i, &image, &len) :
				make_image(s, s->raw + at, block->rawlen, &image, &len);

			block->address = put_bytes(s, IP_VALUE_BLOCK | flag, image, len, id,
									   i);
			MemoryContextSwitchTo(context);
			MemoryContextReset(s->block_context);
		}
		at += block->rawlen;
	}
}

/* Write the value's head; returns the value's id. */
static uint32
put_value(Saver *s)
{
	IpValueHead head = {
		.rawsize = s->rawsize,.nblocks = s->nblocks,.cut = s->cut
	};
	const char *image = NULL;
	uint32		len = 0;
	uint8		flag = 0;
	uint32		id = 0;
	char	   *bytes;

	if (s->nblocks == 1)
	{
		flag = make_image(s, s->raw, s->rawsize, &image, &len);
		head.nblocks = 0;
	}
	else
	{
		if (s->logical)
			id = put_bytes(s, IP_VALUE_HEAD, (char *) &head, sizeof(head), 0,
						   -1);
		put_blocks(s, id);
		len = s->nblocks * IP_VALUE_ENTRY_SZ;
	}
	bytes = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(head) + len);
	memcpy(bytes, &head, sizeof(head));
	if (image != NULL)
		memcpy(bytes + sizeof(head), image, len);
	for (uint32 i = 0; i < head.nblocks; i++)
		ip_value_put_entry(bytes + sizeof(head) + i * IP_VALUE_ENTRY_SZ,
						   &s->blocks[i]);
	if (id != 0)
	{
		set_next(s, id, put_bytes(s, IP_VALUE_MORE, bytes + sizeof(head), len,
								  id, -1));
		return id;
	}
	return put_bytes(s, IP_VALUE_HEAD | flag, bytes, sizeof(head) + len, 0,
					 image != NULL ? 0 : -1);
}

static struct varlena *
make_pointer(const Saver *s, uint32 id)
{
	Relation	rel = s->change->rel;
	struct varlena *pointer = palloc(TOAST_POINTER_SIZE);
	struct varatt_external external = {
		.va_rawsize = s->rawsize + VARHDRSZ,
		.va_extinfo = s->rawsize,
		.va_valueid = id,
		/* CLUSTER swaps the files of the TOAST tables */
		.va_toastrelid = OidIsValid(rel->rd_toastoid) ? rel->rd_toastoid :
		RelationGetRelid(s->toast)
	};

	SET_VARTAG_EXTERNAL(pointer, VARTAG_ONDISK);
	memcpy(VARDATA_EXTERNAL(pointer), &external, sizeof(external));
	return pointer;
}

/* Returns whether the value is that of the version before. */
static bool
is_unchanged(const Saver *s)
{
	return s->shares && s->old.head.rawsize == s->rawsize &&
		memcmp(s->raw, s->old_raw, s->rawsize) == 0;
}

/* Begin with a value of s->change. */
static void
begin(Saver *s)
{
	const IpValueChange *c = s->change;

	Assert(ip_page_none_is_locked());
	s->toast = open_toast(c);
	/* decoding passes over the rows of a table that is a rewritten copy */
	s->logical = !c->replay && RelationIsLogicallyLogged(s->toast) &&
		!OidIsValid(c->rel->rd_rel->relrewrite) &&
		!(c->options & TABLE_INSERT_NO_LOGICAL);
	s->block_context = AllocSetContextCreate(CurrentMemoryContext,
											 "inplace blocks",
											 ALLOCSET_DEFAULT_SIZES);
}

struct varlena *
ip_value_save(const IpValueChange *change, const struct varlena *value,
			  char method, const struct varlena *old)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "inplace value",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	struct varlena *result;
	Saver		s = {
		.change = change,.method = method,.raw = VARDATA_ANY(value),
		.rawsize = VARSIZE_ANY_EXHDR(value)
	};

	begin(&s);
	read_old(&s, old);
	if (is_unchanged(&s))
	{
		MemoryContextSwitchTo(caller);
		result = palloc(TOAST_POINTER_SIZE);
		memcpy(result, old, TOAST_POINTER_SIZE);
	}
	else
	{
		uint32		id;

		s.cut = ip_value_cut_of(s.rawsize, s.shares ? s.old.head.cut : 0);
		cut_value(&s);
		id = put_value(&s);
		/* a value of one block has no list: its block is in the head */
		if (s.shares)
			delete_value(change, s.toast, &s.old, s.blocks,
						 s.nblocks > 1 ? s.nblocks : 0);
		MemoryContextSwitchTo(caller);
		result = make_pointer(&s, id);
		if (old != NULL && !s.shares)
			ip_value_delete(change, old);
	}
	table_close(s.toast, NoLock);
	MemoryContextDelete(context);
	return result;
}

struct varlena *
ip_value_copy(const IpValueChange *change, const struct varlena *pointer,
			  char method)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "inplace value",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	struct varlena *result = NULL;
	struct varatt_external external;
	Relation	source_toast;
	IpValue		source;
	Saver		s = {.change = change,.method = method,.source = &source};

	VARATT_EXTERNAL_GET_POINTER(external, pointer);
	begin(&s);
	source_toast = table_open(external.va_toastrelid, AccessShareLock);
	if (!s.logical && source_toast->rd_tableam == s.toast->rd_tableam)
	{
		(void) ip_value_open(&source, source_toast, external.va_valueid,
							 external.va_rawsize - VARHDRSZ, false, NULL);
		if (source.head.nblocks > 0)
		{
			uint32		id;

			s.rawsize = source.head.rawsize;
			s.cut = source.head.cut;
			for (uint32 i = 0; i < source.head.nblocks; i++)
				add_block(&s, 0, source.blocks[i].rawlen);
			id = put_value(&s);
			MemoryContextSwitchTo(caller);
			result = make_pointer(&s, id);
		}
	}
	table_close(source_toast, AccessShareLock);
	table_close(s.toast, NoLock);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return result;
}
