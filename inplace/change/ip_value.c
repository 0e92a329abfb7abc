/*-------------------------------------------------------------------------
 * ip_value.c
 *	  Format of large values.
 *
 * Blocks end where a hash of the last bytes has zeros ("gear" hashing, from
 * "FastCDC: a Fast and Efficient Content-Defined Chunking Approach for Data
 * Deduplication", Xia et al., USENIX ATC 2016).  So a change, even one that
 * moves all bytes behind it, changes the blocks around it only.
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/toast_internals.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "ip_salvage.h"
#include "ip_value.h"

const char *
ip_value_read_row(uint16 hdr, const uint8 *body, uint32 bodylen,
				  IpValueRow *row)
{
	uint32		size;

	if (hdr != IP_VALUE_NATTS)
		return "row does not have the columns of a TOAST table";
	if (bodylen < IP_VALUE_ROW_OVERHEAD)
		return "row is too short";
	memcpy(&row->address, body, sizeof(uint32));
	memcpy(&row->next, body + sizeof(uint32), sizeof(uint32));
	memcpy(&size, body + 2 * sizeof(uint32), VARHDRSZ);
	row->kind = body[IP_VALUE_ROW_OVERHEAD - 1];
	if (!VARATT_IS_4B_U(&size) ||
		VARSIZE_4B(&size) < VARHDRSZ + 1 ||
		VARSIZE_4B(&size) > bodylen - 2 * sizeof(uint32))
		return "chunk_data is damaged";
	row->data = (const char *) body + IP_VALUE_ROW_OVERHEAD;
	row->len = VARSIZE_4B(&size) - VARHDRSZ - 1;
	return NULL;
}

void
ip_value_form_row(const IpValueRow *row, IpFormed *formed)
{
	uint32		size;

	SET_VARSIZE(&size, VARHDRSZ + 1 + row->len);
	formed->hdr = IP_VALUE_NATTS;
	formed->bodylen = IP_VALUE_ROW_OVERHEAD + row->len;
	formed->body = palloc(formed->bodylen);
	memcpy(formed->body, &row->address, sizeof(uint32));
	memcpy(formed->body + sizeof(uint32), &row->next, sizeof(uint32));
	memcpy(formed->body + 2 * sizeof(uint32), &size, VARHDRSZ);
	formed->body[IP_VALUE_ROW_OVERHEAD - 1] = row->kind;
	memcpy(formed->body + IP_VALUE_ROW_OVERHEAD, row->data, row->len);
}

const char *
ip_value_read_head(const char *data, uint32 len, IpValueHead *head)
{
	if (len < sizeof(IpValueHead))
		return "head is too short";
	memcpy(head, data, sizeof(IpValueHead));
	if (head->rawsize == 0 || head->rawsize > MaxAllocSize - VARHDRSZ)
		return "length is wrong";
	if (head->nblocks == 1 || head->nblocks > head->rawsize)
		return "number of blocks is wrong";
	if (head->cut < IP_VALUE_MIN_CUT || head->cut > IP_VALUE_MAX_CUT)
		return "parameter for cutting is wrong";
	return NULL;
}

void
ip_value_read_entry(const char *data, IpValueBlock *block)
{
	uint16		rawlen;

	memcpy(&block->address, data, sizeof(uint32));
	memcpy(&rawlen, data + sizeof(uint32), sizeof(uint16));
	block->rawlen = rawlen;
}

void
ip_value_put_entry(char *data, const IpValueBlock *block)
{
	uint16		rawlen = block->rawlen;

	Assert(block->rawlen <= PG_UINT16_MAX);
	memcpy(data, &block->address, sizeof(uint32));
	memcpy(data + sizeof(uint32), &rawlen, sizeof(uint16));
}

/* Returns NULL if the bytes are damaged. */
static struct varlena *
decompress(struct varlena *packed)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	struct varlena *volatile raw = NULL;

	PG_TRY();
	{
		raw = detoast_attr(packed);
	}
	PG_CATCH();
	{
		ip_salvage_forget(context, holdoff);
	}
	PG_END_TRY();
	return raw;
}

const char *
ip_value_expand(const char *image, uint32 len, bool compressed, uint32 rawlen)
{
	struct varlena *packed;
	struct varlena *raw;

	if (!compressed)
		return len == rawlen ? image : NULL;
	if (len < VARHDRSZ_COMPRESSED - VARHDRSZ)
		return NULL;
	packed = palloc(VARHDRSZ + len);
	SET_VARSIZE_COMPRESSED(packed, VARHDRSZ + len);
	memcpy((char *) packed + VARHDRSZ, image, len);
	raw = VARDATA_COMPRESSED_GET_EXTSIZE(packed) == rawlen &&
		VARDATA_COMPRESSED_GET_COMPRESS_METHOD(packed) <
		TOAST_INVALID_COMPRESSION_ID ? decompress(packed) : NULL;
	pfree(packed);
	return raw != NULL && VARSIZE(raw) - VARHDRSZ == rawlen ?
		VARDATA(raw) : NULL;
}

uint32
ip_value_image_length(const IpValueRow *row)
{
	uint32		info;

	if (!(row->kind & IP_VALUE_COMPRESSED))
		return row->len;
	if (row->len < sizeof(info))
		return 0;
	memcpy(&info, row->data, sizeof(info));
	return info & VARLENA_EXTSIZE_MASK;
}

char *
ip_value_compress(const char *raw, uint32 rawlen, char method, uint32 *len)
{
	struct varlena *value = palloc(VARHDRSZ + rawlen);
	struct varlena *packed;

	SET_VARSIZE(value, VARHDRSZ + rawlen);
	memcpy(VARDATA(value), raw, rawlen);
	packed = (struct varlena *)
		DatumGetPointer(toast_compress_datum(PointerGetDatum(value), method));
	pfree(value);
	if (packed == NULL)
		return NULL;
	*len = VARSIZE(packed) - VARHDRSZ;
	return (char *) packed + VARHDRSZ;
}

/* ---- cutting ------------------------------------------------------------- */

/*
 * Longer values have longer blocks, which compress better: the parameter grows
 * by one for each eightfold length.
 */
#define SHORT_VALUE		(64 * 1024)

uint32
ip_value_cut_of(uint32 rawsize, uint32 old)
{
	uint32		cut = IP_VALUE_MIN_CUT;

	for (uint32 size = rawsize; size >= SHORT_VALUE && cut < IP_VALUE_MAX_CUT;
		 size /= 8)
		cut++;
	return old + 1 >= cut && old <= cut + 1 && old >= IP_VALUE_MIN_CUT &&
		old <= IP_VALUE_MAX_CUT ? old : cut;
}

uint32
ip_value_cut(const char *p, uint32 left, uint32 cut)
{
	static uint64 gear[256];
	uint64		mask = (((uint64) 1 << (cut - 1)) - 1) << (64 - (cut - 1));
	uint32		end = Min(left, IpValueMaxBlock(cut));
	uint64		hash = 0;

	if (gear[0] == 0)
	{
		for (int i = 0; i < lengthof(gear); i++)
			gear[i] = hash_bytes_uint32_extended(i, PG_UINT64_MAX) | 1;
	}
	for (uint32 i = IpValueMinBlock(cut); i < end; i++)
	{
		hash = (hash << 1) + gear[(uint8) p[i]];
		if ((hash & mask) == 0)
			return i + 1;
	}
	return end;
}
