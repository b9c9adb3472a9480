/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors: what providers and the host share.
 *
 * Unless said otherwise a function returns 0 or more on success and -1 with
 * errno set.  Every descriptor is close-on-exec from birth.  Nothing here
 * keeps state: all of it may be called from any thread, each descriptor from
 * one at a time.  Part of libcoffer-provider.a. */

#ifndef COFFER_FD_H
#define COFFER_FD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Closes *fd when it is not -1, and sets it to -1.  Keeps errno. */
void coffer_fd_close (int *fd);

/* `coffer_autoclose int fd = -1;` closes at the end of the scope. */
#define coffer_autoclose __attribute__ ((cleanup (coffer_fd_close)))

/* For a large local variable that is filled before it is read: hardened builds
 * would zero it at each declaration, which costs more than what fills it. */
#ifdef __has_attribute
#if __has_attribute (uninitialized)
#define coffer_unfilled __attribute__ ((uninitialized))
#endif
#endif
#ifndef coffer_unfilled
#define coffer_unfilled
#endif

/* Hands the descriptor to the caller: returns *fd and sets it to -1. */
int coffer_fd_steal (int *fd);

/* Closes every descriptor from 3 on but these, which it sorts; -1 is none. */
void coffer_close_others (int *keep, size_t n);

/* All of `size` bytes, over EINTR and short transfers.  Read returns fewer at
 * the end of file. */
ssize_t coffer_read_all (int fd, void *buffer, size_t size);
ssize_t coffer_write_all (int fd, const void *buffer, size_t size);

/* The whole rest of `fd` in fresh memory, NUL-terminated beyond *size.
 * More than `limit` bytes: EFBIG, nothing is kept.  The caller frees. */
int coffer_read_whole (int fd, size_t limit, char **out, size_t *size);

/* A sealed memory file with these bytes, at offset 0, not executable.
 * `name` is for people (seen in /proc/PID/fd). */
int coffer_memfd_sealed (const char *name, const void *bytes, size_t size);

/* Where an open file or folder lies, as this process sees it: for people and
 * for programs that take only names, since it may be moved at any time.  The
 * caller frees.  NULL with errno: ENOENT for what has no path (a pipe, memory,
 * a removed file), ENAMETOOLONG beyond 4095 bytes. */
char *coffer_fd_path (int fd);

/* A SOCK_SEQPACKET unix socket called `name` in `folder` (a descriptor, O_PATH
 * will do; needs /proc), since an address holds no path beyond 107 bytes.
 * Bind makes it, not yet listening.  Connect never waits with `flags`
 * SOCK_NONBLOCK, which the descriptor then keeps; else flags is 0. */
int coffer_socket_bind (int folder, const char *name);
int coffer_socket_connect (int folder, const char *name, int flags);

/* sendmsg over EINTR.  The kernel counts the descriptors that are on their way
 * for all processes of a user, and a sandbox may be of the same user: when its
 * are too many for the soft limit of this process (RLIMIT_NOFILE), that is
 * raised to the hard one.  Beyond that one it waits up to two seconds for others
 * to receive theirs, but with MSG_DONTWAIT. */
struct msghdr;
ssize_t coffer_send_message (int fd, const struct msghdr *message, int flags);

/* Waits until `fd` has `events` (poll's), `cancel_fd` is readable or
 * CLOCK_MONOTONIC reaches deadline_ns.  1: ready; 0 with errno ECANCELED or
 * ETIMEDOUT; -1: error.  cancel_fd -1: none. */
int coffer_wait_fd (int fd, short events, int64_t deadline_ns, int cancel_fd);

/* Writes all of it to a file, pipe, stream socket or terminal, and waits no
 * longer than coffer_wait_fd would, also when the descriptor may block.  0; -1
 * with errno, and some of it may have arrived.  A reader that has gone is EPIPE
 * and no signal. */
int coffer_write_until (int fd, const void *bytes, size_t size,
                        int64_t deadline_ns, int cancel_fd);

/* For poll: the milliseconds until then, at most an hour, so that it is asked
 * again; -1 for INT64_MAX, which is never. */
int coffer_poll_ms (int64_t deadline_ns);

/* Copies from one descriptor to another until the end of file, counting.
 * `limit` 0: no limit; reaching it is not an error.  Uses splice where both
 * ends allow it.  EBADF at once for an end that is not open that way. */
int coffer_copy (int from, int to, uint64_t limit, int64_t deadline_ns,
                 int cancel_fd, uint64_t *copied);

/* Nanoseconds of CLOCK_MONOTONIC, CLOCK_BOOTTIME and CLOCK_REALTIME. */
int64_t coffer_now_ns (void);
int64_t coffer_boottime_ns (void);
int64_t coffer_realtime_ns (void);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_FD_H */
