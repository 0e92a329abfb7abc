/*-------------------------------------------------------------------------
 * wp_restore.h
 *	  The verb for restore_command.
 *-------------------------------------------------------------------------
 */
#ifndef WP_RESTORE_H
#define WP_RESTORE_H

/*
 * The server takes any exit code up to 125 for "not in the archive", which
 * ends recovery and starts a new timeline.  So only a file that is certainly
 * missing is answered with the first code.
 */
#define WP_EXIT_NOT_FOUND	1
#define WP_EXIT_STOP		255

/* walpack restore DIR NAME TARGET; returns the exit code. */
extern int	wp_restore(const char *directory, const char *name,
					   const char *target);

#endif							/* WP_RESTORE_H */
