/*-------------------------------------------------------------------------
 * full_disk.c
 *	  For LD_PRELOAD: while the file that FULL_DISK names exists, no file of a
 *	  database grows, as on a full disk.
 *-------------------------------------------------------------------------
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int
is_refused(int fd, off_t end)
{
	const char *flag = getenv("FULL_DISK");
	char		link[64];
	char		path[4096];
	ssize_t		len;
	struct stat st;

	if (flag == NULL || access(flag, F_OK) != 0)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return 0;
	path[len] = '\0';
	return strstr(path, "/base/") != NULL && fstat(fd, &st) == 0 && st.st_size < end;
}

static off_t
bytes(const struct iovec *iov, int n)
{
	off_t		sum = 0;

	for (int i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

/* Both names of each: which one the server calls is the C library's and the build's affair. */
#define REPLACE(result, name, len, declared, passed) \
__attribute__((visibility("default"))) \
result \
name declared \
{ \
	static result (*next) declared; \
\
	if (next == NULL) \
		next = (result (*) declared) dlsym(RTLD_NEXT, #name); \
	if (!is_refused(fd, offset + (len))) \
		return next passed; \
	FAIL; \
}

#define FAIL errno = ENOSPC; return -1
REPLACE(ssize_t, pwrite, n, (int fd, const void *buf, size_t n, off_t offset), (fd, buf, n, offset))
REPLACE(ssize_t, pwrite64, n, (int fd, const void *buf, size_t n, off_t offset), (fd, buf, n, offset))
REPLACE(ssize_t, pwritev, bytes(iov, n), (int fd, const struct iovec *iov, int n, off_t offset), (fd, iov, n, offset))
REPLACE(ssize_t, pwritev64, bytes(iov, n), (int fd, const struct iovec *iov, int n, off_t offset), (fd, iov, n, offset))
#undef FAIL

/* These return the error. */
#define FAIL return ENOSPC
REPLACE(int, posix_fallocate, len, (int fd, off_t offset, off_t len), (fd, offset, len))
REPLACE(int, posix_fallocate64, len, (int fd, off_t offset, off_t len), (fd, offset, len))
