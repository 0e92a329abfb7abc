/*-------------------------------------------------------------------------
 * wp_file.c
 *	  Files: packing, unpacking, verifying.
 *-------------------------------------------------------------------------
 */
#include "wp_port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wp_file.h"

/* ---- setup ---- */

WpFiles *
wp_files_new(int level, int memory)
{
	WpFiles    *f = calloc(1, sizeof(WpFiles));

	if (f == NULL)
		return NULL;
	/* a chunk needs about eight times its size */
	f->chunk_size = WP_MAX_CHUNK;
	while (f->chunk_size > 1024 * 1024 &&
		   f->chunk_size / (1024 * 1024) * 8 > memory)
		f->chunk_size /= 2;
	f->codec = wp_codec_new(level);
	f->raw = malloc(WP_MAX_CHUNK);
	f->packed = malloc(WP_MAX_CHUNK);
	if (f->codec && f->raw && f->packed)
		return f;
	wp_files_free(f);
	return NULL;
}

void
wp_files_free(WpFiles *f)
{
	if (f->codec)
		wp_codec_free(f->codec);
	free(f->raw);
	free(f->packed);
	free(f);
}

static bool
ends_with(const char *s, const char *suffix)
{
	size_t		len = strlen(s);
	size_t		suffix_len = strlen(suffix);

	return len >= suffix_len && strcmp(s + len - suffix_len, suffix) == 0;
}

bool
wp_is_small_file(const char *name)
{
	return ends_with(name, ".history") || ends_with(name, ".backup");
}

/* ---- reading, packed or not ---- */

static bool
asked_to_stop(WpFiles *f, WpError *error)
{
	if (f->stop == NULL || !f->stop())
		return false;
	wp_io_fail(error, "interrupted");
	return true;
}

typedef struct Input
{
	int			fd;
	const char *path;
	WpConsumer	consumer;
	void	   *arg;
	WpFileInfo *info;
	WpError    *error;
	WpHash		hash;
	uint64		delivered;
} Input;

static bool
deliver(Input *in, const uint8 *data, uint32 len)
{
	if (in->delivered == 0)
		memcpy(in->info->start, data, Min(len, sizeof(in->info->start)));
	in->delivered += len;
	wp_hash_add(&in->hash, data, len);
	if (in->consumer == NULL || in->consumer(in->arg, data, len))
		return true;
	return false;
}

static bool
read_plain(WpFiles *f, Input *in)
{
	in->info->raw_size = in->info->file_size;
	if (lseek(in->fd, 0, SEEK_SET) != 0)
		return wp_io_fail_errno(in->error, "could not seek in file \"%s\"",
								in->path);
	for (uint64 left = in->info->raw_size; left > 0;)
	{
		uint32		len = Min(left, f->chunk_size);

		if (asked_to_stop(f, in->error) ||
			!wp_io_read(in->fd, in->path, f->raw, len, in->error) ||
			!deliver(in, f->raw, len))
			return false;
		left -= len;
	}
	return true;
}

/*
 * Read the next chunk.  At the end *end becomes true, and *header is the
 * trailer.
 */
static bool
read_chunk(WpFiles *f, Input *in, WpChunkHeader *header, bool *end)
{
	uint32		raw_len;
	uint32		packed_len;

	StaticAssertStmt(sizeof(WpChunkHeader) == sizeof(WpFileTrailer), "read alike");
	if (asked_to_stop(f, in->error) ||
		!wp_io_read(in->fd, in->path, header, sizeof(*header), in->error))
		return false;
	*end = header->kind == WP_CHUNK_END;
	if (*end)
		return true;
	if (!wp_codec_header(f->codec, header, &raw_len, &packed_len))
		return wp_io_fail(in->error, "\"%s\": %s", in->path,
						  wp_codec_error(f->codec));
	if (raw_len > in->info->raw_size - in->delivered)
		return wp_io_fail(in->error, "\"%s\": more data than announced",
						  in->path);
	if (!wp_io_read(in->fd, in->path, f->packed, packed_len, in->error))
		return false;
	if (!wp_codec_unpack(f->codec, header, f->packed, f->raw))
		return wp_io_fail(in->error, "\"%s\": damaged: %s", in->path,
						  wp_codec_error(f->codec));
	in->info->chunks[header->kind]++;
	return deliver(in, f->raw, raw_len);
}

static bool
read_packed(WpFiles *f, Input *in, const WpFileHeader *header)
{
	WpChunkHeader chunk;
	WpFileTrailer trailer;
	bool		end = false;

	in->info->is_packed = true;
	in->info->raw_size = wp_get64(header->raw_size);
	if (in->info->raw_size > WP_MAX_FILE)
		return wp_io_fail(in->error, "\"%s\": damaged header", in->path);
	while (!end)
		if (!read_chunk(f, in, &chunk, &end))
			return false;
	memcpy(&trailer, &chunk, sizeof(trailer));
	for (int i = 0; i < lengthof(trailer.reserved); i++)
		if (trailer.reserved[i] != 0)
			return wp_io_fail(in->error, "\"%s\": damaged trailer", in->path);
	if (in->delivered != in->info->raw_size)
		return wp_io_fail(in->error, "\"%s\": less data than announced",
						  in->path);
	if (wp_get64(trailer.hash) != wp_hash_end(&in->hash))
		return wp_io_fail(in->error, "\"%s\": damaged: wrong hash", in->path);
	in->info->hash = wp_get64(trailer.hash);
	if (lseek(in->fd, 0, SEEK_CUR) != (off_t) in->info->file_size)
		return wp_io_fail(in->error, "\"%s\": unknown data after the end",
						  in->path);
	return true;
}

bool
wp_read_file(WpFiles *f, const char *src, WpConsumer consumer, void *arg,
			 WpFileInfo *info, WpError *error)
{
	Input		in = {
		.path = src,
		.consumer = consumer,
		.arg = arg,
		.info = info,
		.error = error
	};
	WpFileHeader header;
	bool		ok;

	memset(info, 0, sizeof(*info));
	if (!wp_io_open(src, &in.fd, &info->file_size, error))
		return false;
	wp_hash_init(&in.hash);
	memset(&header, 0, sizeof(header));
	ok = wp_io_read(in.fd, src, &header, Min(info->file_size, sizeof(header)),
					error);
	if (ok && memcmp(header.magic, WP_MAGIC, WP_MAGIC_SIZE) == 0)
		ok = read_packed(f, &in, &header);
	else if (ok && memcmp(header.magic, WP_MAGIC, WP_MAGIC_SIZE - 1) == 0)
		ok =
			wp_io_fail(error,
					   "\"%s\" was written by another version of walpack (format %d, this one reads %d)",
					   src, header.magic[WP_MAGIC_SIZE - 1],
					   WP_MAGIC[WP_MAGIC_SIZE - 1]);
	else if (ok && ends_with(src, WP_SUFFIX))
		ok = wp_io_fail(error, "\"%s\" is not a packed file", src);
	else if (ok)
		ok = read_plain(f, &in);
	close(in.fd);
	return ok;
}

/* ---- destinations that exist ---- */

typedef struct CompareWith
{
	int			fd;
	const char *path;
	WpError    *error;
	uint8	   *buf;
	uint64		left;
	bool		differs;
} CompareWith;

static bool
compare_piece(void *arg, const uint8 *data, uint32 len)
{
	CompareWith *with = arg;

	if (len <= with->left)
	{
		if (!wp_io_read(with->fd, with->path, with->buf, len, with->error))
			return false;
		if (memcmp(with->buf, data, len) == 0)
		{
			with->left -= len;
			return true;
		}
	}
	with->differs = true;
	return wp_io_fail(with->error, "contents differ");
}

/*
 * Compare the original of "packed" with the contents of "plain".  If the result
 * is false, either *differs is true, or there is an error.
 */
static bool
same_contents(WpFiles *f, const char *packed, const char *plain, bool *differs,
			  WpError *error)
{
	CompareWith with = {
		.path = plain,
		.error = error,
		.buf = malloc(WP_MAX_CHUNK)
	};
	WpFileInfo	info;
	bool		ok;

	*differs = false;
	if (with.buf == NULL)
		return wp_io_fail(error, "out of memory");
	if (!wp_io_open(plain, &with.fd, &with.left, error))
	{
		free(with.buf);
		return false;
	}
	ok = wp_read_file(f, packed, compare_piece, &with, &info, error);
	*differs = with.differs || (ok && with.left > 0);
	close(with.fd);
	free(with.buf);
	return ok && !*differs;
}

/*
 * Flush an existing file to disk, and remove its temporary name if a crash has
 * left that.
 */
static bool
sync_existing(const char *path, WpError *error)
{
	char		tmp[MAXPGPATH];
	int			fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool		ok;

	/* the file was opened for reading, because it may be read-only */
	if (fd < 0)
		return wp_io_fail_errno(error, "could not open file \"%s\"", path);
	snprintf(tmp, sizeof(tmp), "%s%s", path, WP_TMP_SUFFIX);
	if (wp_io_same_file(fd, tmp))
		unlink(tmp);
	ok = fsync(fd) == 0 || wp_io_fail_errno(error, "could not fsync file \"%s\"",
											path);
	close(fd);
	return ok && wp_io_sync_directory(path, error);
}

static bool
exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* ---- unpacking ---- */

typedef struct UnpackTo
{
	WpOutput	out;
	WpError    *error;
} UnpackTo;

static bool
write_piece(void *arg, const uint8 *data, uint32 len)
{
	UnpackTo   *to = arg;

	return wp_io_write(to->out.fd, to->out.tmp, data, len, to->error);
}

/* Handle an existing dst that must not be replaced. */
static bool
unpacked_before(WpFiles *f, const char *src, const char *dst, WpError *error)
{
	bool		differs;

	if (same_contents(f, src, dst, &differs, error))
		return sync_existing(dst, error);
	if (differs)
		wp_io_fail(error,
				   "\"%s\" exists, with contents other than those of \"%s\"",
				   dst, src);
	return false;
}

bool
wp_unpack_file(WpFiles *f, const char *src, const char *dst, bool durable,
			   bool replace, WpError *error)
{
	UnpackTo	to = {.error = error};
	WpFileInfo	info;

	/* a missing source is an error even if the destination exists */
	if (!exists(src))
		return wp_io_fail_errno(error, "could not open file \"%s\"", src);
	if (!replace && exists(dst))
		return unpacked_before(f, src, dst, error);
	if (!wp_output_open(&to.out, dst, wp_io_mode_in(dst), error))
		return false;
	if (!wp_read_file(f, src, write_piece, &to, &info, error))
	{
		wp_output_abandon(&to.out);
		return false;
	}
	switch (wp_output_finish(&to.out, dst, durable, replace, error))
	{
		case WP_OUTCOME_DONE:
			return true;
		case WP_OUTCOME_EXISTS:
			return unpacked_before(f, src, dst, error);
		case WP_OUTCOME_FAILED:
			break;
	}
	return false;
}

/* ---- packing ---- */

/* True if two packed files have the same original. */
static bool
same_packed(WpFiles *f, const char *a, const char *b, bool *differs,
			WpError *error)
{
	WpFileInfo	info_a;
	WpFileInfo	info_b;

	*differs = false;
	if (!wp_read_file(f, a, NULL, NULL, &info_a, error) ||
		!wp_read_file(f, b, NULL, NULL, &info_b, error))
		return false;
	*differs = !info_a.is_packed || !info_b.is_packed ||
		info_a.raw_size != info_b.raw_size || info_a.hash != info_b.hash;
	return !*differs;
}

/* If dst has the contents of the source, make sure that it is on disk. */
static bool
archived_before(WpFiles *f, const char *src, bool src_packed, const char *dst,
				WpError *error)
{
	bool		differs;

	if (src_packed ? same_packed(f, src, dst, &differs, error) :
		same_contents(f, dst, src, &differs, error))
		return sync_existing(dst, error);
	if (differs)
		wp_io_fail(error,
				   "\"%s\" is archived already, with contents other than those of \"%s\"",
				   dst, src);
	return false;
}

static bool
copy_chunks(WpFiles *f, int fd, const char *src, uint64 size, WpOutput *out,
			WpError *error)
{
	for (uint64 left = size; left > 0;)
	{
		uint32		len = Min(left, f->chunk_size);

		if (asked_to_stop(f, error) ||
			!wp_io_read(fd, src, f->raw, len, error) ||
			!wp_io_write(out->fd, out->tmp, f->raw, len, error))
			return false;
		left -= len;
	}
	return true;
}

static bool
pack_chunks(WpFiles *f, int fd, const char *src, uint64 size, WpOutput *out,
			WpError *error)
{
	WpFileHeader header;
	WpFileTrailer trailer;
	WpHash		hash;
	uint32		page_size = 0;

	memcpy(header.magic, WP_MAGIC, WP_MAGIC_SIZE);
	wp_set64(header.raw_size, size);
	if (!wp_io_write(out->fd, out->tmp, &header, sizeof(header), error))
		return false;
	wp_hash_init(&hash);
	for (uint64 left = size; left > 0;)
	{
		uint32		len = Min(left, f->chunk_size);
		const uint8 *packed;
		size_t		packed_len;

		if (asked_to_stop(f, error) || !wp_io_read(fd, src, f->raw, len, error))
			return false;
		wp_hash_add(&hash, f->raw, len);
		if (left == size)
			page_size = wp_codec_page_size(f->raw, len);
		if (!wp_codec_pack(f->codec, f->raw, len, page_size, &packed,
						   &packed_len))
			return wp_io_fail(error, "could not pack \"%s\": %s", src,
							  wp_codec_error(f->codec));
		if (!wp_io_write(out->fd, out->tmp, packed, packed_len, error))
			return false;
		left -= len;
	}
	memset(&trailer, 0, sizeof(trailer));
	wp_set64(trailer.hash, wp_hash_end(&hash));
	return wp_io_write(out->fd, out->tmp, &trailer, sizeof(trailer), error);
}

/* True if this is a packed file, of any version. */
static bool
begins_packed(int fd)
{
	char		magic[WP_MAGIC_SIZE];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
		memcmp(magic, WP_MAGIC, WP_MAGIC_SIZE - 1) == 0;
}

bool
wp_pack_file(WpFiles *f, const char *src, const char *dst, WpError *error)
{
	WpOutput	out;
	WpFileInfo	info;
	uint64		size;
	int			fd;
	bool		packed;
	bool		ok;

	if (!wp_io_open(src, &fd, &size, error))
		return false;
	packed = begins_packed(fd);
	ok = !exists(dst);
	if (!ok || (packed && !wp_read_file(f, src, NULL, NULL, &info, error)) ||
		!wp_output_open(&out, dst, wp_io_mode_of(fd), error))
	{
		close(fd);
		return !ok && archived_before(f, src, packed, dst, error);
	}
	ok = packed || wp_is_small_file(src) ?
		copy_chunks(f, fd, src, size, &out, error) :
		pack_chunks(f, fd, src, size, &out, error);
	close(fd);
	if (!ok)
	{
		wp_output_abandon(&out);
		return false;
	}
	switch (wp_output_finish(&out, dst, true, false, error))
	{
		case WP_OUTCOME_DONE:
			return true;
		case WP_OUTCOME_EXISTS:
			return archived_before(f, src, packed, dst, error);
		case WP_OUTCOME_FAILED:
			break;
	}
	return false;
}
