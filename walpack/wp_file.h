/*-------------------------------------------------------------------------
 * wp_file.h
 *	  Files: packing, unpacking, verifying, with all that durability takes.
 *
 * Used by the archive module and by the programs.  Nothing here writes to a
 * log or exits: functions return false and say why in *error.
 *-------------------------------------------------------------------------
 */
#ifndef WP_FILE_H
#define WP_FILE_H

#include "wp_codec.h"
#include "wp_io.h"

#define WP_SUFFIX			".wpk"
#define WP_DEFAULT_MEMORY	128 /* MB */
#define WP_MIN_MEMORY		24

typedef struct WpFiles
{
	WpCodec    *codec;
	uint32		chunk_size;
	uint8	   *raw;			/* room for a chunk, and for one read from
								 * disk */
	uint8	   *packed;
	bool		(*stop) (void); /* called between chunks; may be NULL */
} WpFiles;

/* The contents of a packed or plain file. */
typedef struct WpFileInfo
{
	bool		is_packed;
	uint64		raw_size;
	uint64		file_size;
	uint32		chunks[4];		/* by WpChunkKind */
	uint64		hash;			/* of the original, if it is packed and
								 * complete */
	uint8		start[40];		/* the original's first bytes */
} WpFileInfo;

/*
 * Callback to which wp_read_file delivers the original, piece by piece.  If it
 * returns false, wp_read_file stops and returns false; the callback sets
 * *error.
 */
typedef bool (*WpConsumer) (void *arg, const uint8 *data, uint32 len);

/* memory in MB.  Returns NULL if out of memory. */
extern WpFiles *wp_files_new(int level, int memory);
extern void wp_files_free(WpFiles *f);

/*
 * True if this is the name of a timeline history or backup label file.  These
 * are not packed.
 */
extern bool wp_is_small_file(const char *name);

/*
 * Pack src as dst, or copy it if it is a small file or already packed (then it
 * is checked).  An existing dst with the same contents is success, one with
 * other contents an error.  When true is returned, dst and its name are on
 * disk.
 */
extern bool wp_pack_file(WpFiles *f, const char *src, const char *dst,
						 WpError *error);

/*
 * Write the original of src, packed or not, to dst; flushed to disk, if
 * durable.  Unless it may replace a file, dst is treated as by wp_pack_file.
 */
extern bool wp_unpack_file(WpFiles *f, const char *src, const char *dst,
						   bool durable, bool replace, WpError *error);

/* Read the original of src, packed or not, and make all possible checks. */
extern bool wp_read_file(WpFiles *f, const char *src, WpConsumer consumer,
						 void *arg, WpFileInfo *info, WpError *error);

#endif							/* WP_FILE_H */
