/*-------------------------------------------------------------------------
 * core_delta.h
 *	  What deltas are compared with: the server's function, one that compares
 *	  words, one that does what the definition says.
 *-------------------------------------------------------------------------
 */
#ifndef CORE_DELTA_H
#define CORE_DELTA_H

/* Page headers tell lower and upper.  delta NULL: it is not copied out. */
extern int	core_delta_8k(const void *old_page, const void *new_page, void *delta);
extern int	core_delta_32k(const void *old_page, const void *new_page, void *delta);

/* Words of 8 bytes are compared, and what differs is written in whole words. */
extern int	words_delta(const void *old_page, const void *new_page, int size, void *delta);

/* Byte by byte, as the definition says; slow. */
extern int	model_delta(const void *old_page, const void *new_page, int size, const int *bounds, void *delta);

#endif							/* CORE_DELTA_H */
