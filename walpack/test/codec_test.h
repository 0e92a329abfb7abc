/*-------------------------------------------------------------------------
 * codec_test.h
 *	  What the files of codec_test share.
 *-------------------------------------------------------------------------
 */
#ifndef CODEC_TEST_H
#define CODEC_TEST_H

extern void check(bool ok, const char *what);

/* Random numbers; below: from 0 to n - 1. */
extern uint64 random64(void);
extern uint32 below(uint32 n);

/* plain_test.c */
extern void test_plain(void);

#endif							/* CODEC_TEST_H */
