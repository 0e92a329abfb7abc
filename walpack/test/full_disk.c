/*-------------------------------------------------------------------------
 * full_disk.c
 *	  For LD_PRELOAD: while the file named by FULL_DISK exists, a write to a
 *	  file ".tmp" takes half of the bytes, and the next one fails, as on a
 *	  full disk.  Before a file ".tmp" is brought to disk, RIVAL gets the name
 *	  RIVAL_NAME, if there is no such file: as by another archiver.
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
writes_to_tmp(int fd)
{
	char		link[64];
	char		path[4096];
	ssize_t		len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path));
	return len > 4 && memcmp(path + len - 4, ".tmp", 4) == 0;
}

__attribute__((visibility("default")))
int
fsync(int fd)
{
	static int	(*next) (int);
	const char *rival = getenv("RIVAL");

	if (next == NULL)
		next = (int (*) (int)) dlsym(RTLD_NEXT, "fsync");
	if (rival != NULL && writes_to_tmp(fd) &&
		link(rival, getenv("RIVAL_NAME")) != 0 && errno != EEXIST)
		abort();
	return next(fd);
}

__attribute__((visibility("default")))
ssize_t
write(int fd, const void *buf, size_t n)
{
	static ssize_t (*next) (int, const void *, size_t);
	static int	full;
	const char *flag = getenv("FULL_DISK");

	if (next == NULL)
		next = (ssize_t (*) (int, const void *, size_t)) dlsym(RTLD_NEXT, "write");
	if (flag != NULL && n > 1 && access(flag, F_OK) == 0 && writes_to_tmp(fd))
	{
		full = !full;
		if (!full)
		{
			errno = ENOSPC;
			return -1;
		}
		n /= 2;
	}
	return next(fd, buf, n);
}
