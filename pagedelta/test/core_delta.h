/*-------------------------------------------------------------------------
 * core_delta.h
 *	  References for deltas: the server's function, one that compares words,
 *	  and one that follows the definition.
 *-------------------------------------------------------------------------
 */
#ifndef CORE_DELTA_H
#define CORE_DELTA_H

/*
 * lower and upper come from the page headers.  If delta is NULL, the result is
 * not copied out.
 */
extern int	core_delta_8k(const void *old_page, const void *new_page,
						  void *delta);
extern int	core_delta_32k(const void *old_page, const void *new_page,
						   void *delta);

/* Compare words of 8 bytes, and write those that differ as whole words. */
extern int	words_delta(const void *old_page, const void *new_page, int size,
						void *delta);

/* Compare byte by byte, as in the definition; slow. */
extern int	model_delta(const void *old_page, const void *new_page, int size,
						const int *bounds, void *delta);

#endif							/* CORE_DELTA_H */
