/*-------------------------------------------------------------------------
 * codec_test.h
 *	  Definitions for the files of codec_test.
 *-------------------------------------------------------------------------
 */
#ifndef CODEC_TEST_H
#define CODEC_TEST_H

#include "wp_codec.h"

extern void check(bool ok, const char *what);

/* Random numbers; below(n) is from 0 to n - 1. */
extern uint64 random64(void);
extern uint32 below(uint32 n);

/* Write made-up WAL without errors to wal; returns its length. */
#define MAX_CASE		(512 * 1024)
extern uint8 wal[MAX_CASE];
extern uint32 make_wal(uint32 *page_size);

/*
 * Part of the codec in this program only: use the form of records even where
 * zstd alone is smaller.
 */
extern void wp_codec_prefer_records(WpCodec *codec, bool prefer);

/*
 * Bytes of the last chunk that were taken for records and checked; bytes
 * checked repeatedly count each time.
 */
extern uint64 wp_codec_checked(const WpCodec *codec);

/* plain_test.c, util_test.c */
extern void test_plain(void);
extern void test_util(void);

#endif							/* CODEC_TEST_H */
