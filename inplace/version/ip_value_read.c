/*-------------------------------------------------------------------------
 * ip_value_read.c
 *	  Reading large values.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/table.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "ip_rel.h"
#include "ip_value_read.h"
#include "ip_version.h"

/* Read one row of a value, in v's memory.  Returns what is wrong, or NULL. */
static const char *
read_row(IpVersion *v, Relation toast, uint32 address, IpValueKind kind,
		 IpValueRow *row)
{
	const char *problem;
	ItemPointerData tid;

	if (address == 0 ||
		!compat_has_block(toast, IpValueAddressBlock(address)))
		return "there is no such row";
	ItemPointerSet(&tid, IpValueAddressBlock(address),
				   IpValueAddressOffset(address));
	if (!ip_version_fetch_newest(v, toast, &tid))
		return "there is no such row";
	problem = ip_value_read_row(v->hdr, v->body, v->bodylen, row);
	if (problem == NULL && ((row->kind & IP_VALUE_KIND_MASK) != kind ||
							row->address != address || row->len == 0))
		problem = "row does not belong there";
	return problem;
}

void
ip_value_note_row(IpValueRows *rows, uint32 address)
{
	if (rows->n == rows->size)
	{
		rows->size *= 2;
		rows->address = repalloc_huge(rows->address,
									  rows->size * sizeof(uint32));
	}
	rows->address[rows->n++] = address;
}

/*
 * Read the bytes that begin in the row at the address, but not more than
 * "most".  Returns what is wrong, or NULL.  *first_kind: that of the first row.
 */
static const char *
read_bytes(IpValue *value, uint32 *address, IpValueKind kind, uint32 most,
		   StringInfo bytes, uint8 *first_kind)
{
	IpVersion	v;
	IpValueRow	row;

	enlargeStringInfo(bytes, Min(most, BLCKSZ));
	for (bool first = true;; first = false)
	{
		const char *problem = read_row(&v, value->rel, *address,
									   first ? kind : IP_VALUE_MORE, &row);

		if (problem != NULL)
			return problem;
		if (first)
			*first_kind = row.kind;
		if (row.len > most - bytes->len)
			return "there are more bytes than there should be";
		if (value->rows != NULL)
			ip_value_note_row(value->rows, *address);
		appendBinaryStringInfo(bytes, row.data, row.len);
		if (row.next == 0)
			return NULL;
		*address = row.next;
		CHECK_FOR_INTERRUPTS();
	}
}

static bool
fail(IpValue *value, uint32 address, const char *problem)
{
	if (!value->soft)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not read TOAST value %u of relation \"%s\": %s",
						value->id, RelationGetRelationName(value->rel),
						problem),
				 errdetail("The row is at (%u,%u).",
						   IpValueAddressBlock(address),
						   IpValueAddressOffset(address)),
				 errhint("Run inplace_check on the table and its TOAST table to find all damage.")));
	value->problem = problem;
	value->bad_row = address;
	return false;
}

/* Read the list of blocks. */
static bool
read_list(IpValue *value, const char *list, uint32 len)
{
	uint64		total = 0;

	if (len != value->head.nblocks * (uint64) IP_VALUE_ENTRY_SZ)
		return fail(value, value->id, "list of blocks has a wrong length");
	value->blocks = MemoryContextAllocHuge(CurrentMemoryContext,
										   value->head.nblocks *
										   sizeof(IpValueBlock));
	for (uint32 i = 0; i < value->head.nblocks; i++)
	{
		ip_value_read_entry(list + i * IP_VALUE_ENTRY_SZ, &value->blocks[i]);
		if (value->blocks[i].rawlen == 0)
			return fail(value, value->id, "list of blocks has an empty one");
		total += value->blocks[i].rawlen;
	}
	if (total != value->head.rawsize)
		return fail(value, value->id, "blocks have another length than the value");
	return true;
}

bool
ip_value_open(IpValue *value, Relation toast, uint32 id, uint32 rawsize,
			  bool soft, IpValueRows *rows)
{
	uint32		most = rawsize > 0 ? rawsize : MaxAllocSize / 2;
	StringInfoData bytes;
	const char *problem;
	uint32		address = id;
	uint8		first;

	value->rel = toast;
	value->id = id;
	value->soft = soft;
	value->rows = rows;
	value->blocks = NULL;
	initStringInfo(&bytes);
	/* neither a list nor an image is longer than that */
	problem = read_bytes(value, &address, IP_VALUE_HEAD,
						 sizeof(IpValueHead) + most + VARHDRSZ, &bytes, &first);
	if (problem == NULL)
		problem = ip_value_read_head(bytes.data, bytes.len, &value->head);
	if (problem == NULL && rawsize > 0 && value->head.rawsize != rawsize)
		problem = "value has another length than its pointer says";
	if (problem != NULL)
		return fail(value, address, problem);
	value->image = bytes.data + sizeof(IpValueHead);
	value->image_len = bytes.len - sizeof(IpValueHead);
	value->compressed = (first & IP_VALUE_COMPRESSED) != 0;
	return value->head.nblocks == 0 ||
		read_list(value, value->image, value->image_len);
}

bool
ip_value_image(IpValue *value, uint32 i, IpValueImage *image)
{
	const char *problem;
	StringInfoData bytes;
	uint8		first = 0;

	image->bytes = value->image;
	image->len = value->image_len;
	image->compressed = value->compressed;
	image->address = value->id;
	if (value->head.nblocks == 0)
		return true;
	Assert(i < value->head.nblocks);
	image->address = value->blocks[i].address;
	initStringInfo(&bytes);
	problem = read_bytes(value, &image->address, IP_VALUE_BLOCK,
						 value->blocks[i].rawlen + VARHDRSZ, &bytes, &first);
	image->bytes = bytes.data;
	image->len = bytes.len;
	image->compressed = (first & IP_VALUE_COMPRESSED) != 0;
	if (problem == NULL && !image->compressed &&
		image->len != value->blocks[i].rawlen)
		problem = "block has a wrong length";
	return problem == NULL || fail(value, image->address, problem);
}

const char *
ip_value_block(IpValue *value, uint32 i)
{
	IpValueImage image;
	const char *raw;

	if (!ip_value_image(value, i, &image))
		return NULL;
	raw = ip_value_expand(image.bytes, image.len, image.compressed,
						  value->head.nblocks > 0 ? value->blocks[i].rawlen :
						  value->head.rawsize);
	if (raw == NULL)
		(void) fail(value, image.address,
					psprintf("block %u cannot be decompressed, or has a wrong length",
							 i));
	return raw;
}

bool
ip_value_read(IpValue *value, uint32 offset, uint32 length, char *to)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "inplace value",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	uint32		nblocks = Max(value->head.nblocks, 1);
	uint32		start = 0;
	bool		ok = true;

	for (uint32 i = 0; i < nblocks && start < offset + length && ok; i++)
	{
		uint32		rawlen = value->blocks == NULL ? value->head.rawsize :
			value->blocks[i].rawlen;
		uint32		from = Max(start, offset);
		uint32		end = Min(start + rawlen, offset + length);

		if (from < end)
		{
			const char *raw;

			CHECK_FOR_INTERRUPTS();
			raw = ip_value_block(value, i);
			ok = raw != NULL;
			if (ok)
				memcpy(to + (from - offset), raw + (from - start), end - from);
			MemoryContextReset(context);
		}
		start += rawlen;
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return ok;
}

void
ip_value_fetch_slice(Relation toast, Oid id, int32 attrsize, int32 offset,
					 int32 length, struct varlena *result)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "inplace value's head",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	IpValue		value;

	Assert(offset >= 0 && length >= 0 && offset + length <= attrsize);
	/* as in core: nothing else keeps the value */
	if (!HaveRegisteredOrActiveSnapshot())
		elog(ERROR, "cannot fetch toast data without an active snapshot");
	(void) ip_value_open(&value, toast, id, attrsize, false, NULL);
	(void) ip_value_read(&value, offset, length, VARDATA(result));
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

struct varlena *
ip_value_fetch_soft(const struct varlena *pointer)
{
	struct varatt_external external;
	struct varlena *result = NULL;
	uint32		rawsize;
	Relation	toast;
	IpValue		value;

	VARATT_EXTERNAL_GET_POINTER(external, pointer);
	rawsize = external.va_rawsize - VARHDRSZ;
	toast = table_open(external.va_toastrelid, AccessShareLock);
	if (toast->rd_tableam->relation_fetch_toast_slice != ip_value_fetch_slice)
		result = detoast_external_attr(unconstify(struct varlena *, pointer));
	else if (!VARATT_EXTERNAL_IS_COMPRESSED(external) &&
			 ip_value_open(&value, toast, external.va_valueid, rawsize, true,
						   NULL))
	{
		result = palloc(VARHDRSZ + rawsize);
		SET_VARSIZE(result, VARHDRSZ + rawsize);
		if (!ip_value_read(&value, 0, rawsize, VARDATA(result)))
			result = NULL;
	}
	table_close(toast, AccessShareLock);
	return result;
}
