/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors: whole transfers, waits that end, copies that use splice
 * where that cannot block.
 *
 * Nothing here sets O_NONBLOCK: that flag belongs to the open file, which the
 * other side of a pipe's end may share.  A transfer that must not block is
 * made so by its own call instead (SPLICE_F_NONBLOCK, MSG_DONTWAIT), or by
 * asking for no more than what poll has promised. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "internal.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define COPY_CHUNK (128 * 1024)

void
coffer_fd_close (int *fd)
{
  int keep = errno;

  if (*fd >= 0)
    close (*fd);
  *fd = -1;
  errno = keep;
}

int
coffer_fd_steal (int *fd)
{
  int value = *fd;

  *fd = -1;
  return value;
}

static int
compare_fds (const void *a, const void *b)
{
  const int p = *(const int *) a, q = *(const int *) b;

  return p < q ? -1 : p > q;
}

void
coffer_close_others (int *keep, size_t n)
{
  unsigned from = 3;

  if (n > 0)
    qsort (keep, n, sizeof *keep, compare_fds);
  for (size_t i = 0; i < n; i++) {
    if (keep[i] < (int) from)
      continue;
    if ((unsigned) keep[i] > from)
      syscall (SYS_close_range, from, (unsigned) keep[i] - 1, 0);
    from = (unsigned) keep[i] + 1;
  }
  syscall (SYS_close_range, from, ~0U, 0);
}

/* How long others may take to receive what is on its way to them. */
#define OTHERS_MS 5
#define OTHERS_TRIES 400

static int
files_raise (void)
{
  struct rlimit files;

  if (getrlimit (RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == files.rlim_max)
    return -1;
  files.rlim_cur = files.rlim_max;
  return setrlimit (RLIMIT_NOFILE, &files);
}

ssize_t
coffer_send_message (int fd, const struct msghdr *message, int flags)
{
  int tries = flags & MSG_DONTWAIT ? 0 : OTHERS_TRIES;
  ssize_t n;

  for (;;) {
    n = sendmsg (fd, message, flags);
    if (n >= 0 || (errno != EINTR && errno != ETOOMANYREFS))
      return n;
    if (errno == EINTR || files_raise () == 0)
      continue;
    if (tries-- <= 0) {
      errno = ETOOMANYREFS;
      return -1;
    }
    poll (NULL, 0, OTHERS_MS);
  }
}

/* A write to a pipe without a reader must be an error and no signal, whatever
 * the process has done about SIGPIPE. */
struct pipe_guard {
  sigset_t old;
  int pending;                  /* one was waiting before: it is not ours */
};

static void
pipe_guard_enter (struct pipe_guard *guard)
{
  sigset_t pipe, waiting;

  sigemptyset (&pipe);
  sigaddset (&pipe, SIGPIPE);
  pthread_sigmask (SIG_BLOCK, &pipe, &guard->old);
  guard->pending = sigpending (&waiting) == 0 &&
                   sigismember (&waiting, SIGPIPE) == 1;
}

static void
pipe_guard_leave (struct pipe_guard *guard)
{
  static const struct timespec now = {0, 0};
  int keep = errno;
  sigset_t pipe;

  if (keep == EPIPE && !guard->pending) {
    sigemptyset (&pipe);
    sigaddset (&pipe, SIGPIPE);
    while (sigtimedwait (&pipe, NULL, &now) < 0 && errno == EINTR)
      ;
  }
  pthread_sigmask (SIG_SETMASK, &guard->old, NULL);
  errno = keep;
}

ssize_t
coffer_read_all (int fd, void *buffer, size_t size)
{
  size_t done = 0;
  ssize_t n;

  while (done < size) {
    n = read (fd, (char *) buffer + done, size - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -1;
    if (n == 0)
      break;
    done += (size_t) n;
  }
  return (ssize_t) done;
}

ssize_t
coffer_write_all (int fd, const void *buffer, size_t size)
{
  struct pipe_guard guard;
  size_t done = 0;
  ssize_t n = 0;

  pipe_guard_enter (&guard);
  errno = 0;
  while (done < size) {
    n = write (fd, (const char *) buffer + done, size - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      break;
    if (n == 0) {               /* no file does this twice: do not spin */
      errno = EIO;
      n = -1;
      break;
    }
    done += (size_t) n;
  }
  pipe_guard_leave (&guard);
  return n < 0 ? -1 : (ssize_t) done;
}

/* Where to begin with the room: the size, if the file knows one. */
static size_t
whole_hint (int fd, size_t limit)
{
  struct stat st;

  if (fstat (fd, &st) < 0 || !S_ISREG (st.st_mode) || st.st_size <= 0)
    return limit < 4096 ? limit : 4096;
  return (uint64_t) st.st_size < limit ? (size_t) st.st_size : limit;
}

int
coffer_read_whole (int fd, size_t limit, char **out, size_t *size)
{
  size_t done = 0, room;
  char *data = NULL, *more;
  ssize_t n;

  if (limit > (size_t) SSIZE_MAX - 2)
    limit = (size_t) SSIZE_MAX - 2;
  room = whole_hint (fd, limit);
  for (;;) {
    /* One byte more than is wanted shows whether there is more. */
    more = realloc (data, room + 2);
    if (!more)
      goto failed;
    data = more;
    n = coffer_read_all (fd, data + done, room + 1 - done);
    if (n < 0)
      goto failed;
    done += (size_t) n;
    if (done <= room)
      break;
    if (room >= limit) {
      errno = EFBIG;
      goto failed;
    }
    room = room > limit / 2 ? limit : room * 2 + 1;
    if (room > limit)
      room = limit;
  }
  data[done] = '\0';
  *out = data;
  if (size)
    *size = done;
  return 0;

failed:
  free (data);
  return -1;
}

/* memfd_create takes at most 249 bytes of name. */
static int
memfd_open (const char *name)
{
  char small[200];
  int fd;

  strncpy (small, name, sizeof small - 1);
  small[sizeof small - 1] = '\0';
  fd = memfd_create (small, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) {
    /* Linux before 6.3. */
    fd = memfd_create (small, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && fchmod (fd, 0600) < 0)
      coffer_fd_close (&fd);
  }
  return fd;
}

int
coffer_memfd_sealed (const char *name, const void *bytes, size_t size)
{
  coffer_autoclose int fd = memfd_open (name);

  if (fd < 0)
    return -1;
  if (coffer_write_all (fd, bytes, size) < 0 || lseek (fd, 0, SEEK_SET) < 0 ||
      fcntl (fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE |
             F_SEAL_SEAL) < 0)
    return -1;
  return coffer_fd_steal (&fd);
}

static int64_t
clock_ns (clockid_t clock)
{
  struct timespec t;

  clock_gettime (clock, &t);
  return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t
coffer_now_ns (void)
{
  return clock_ns (CLOCK_MONOTONIC);
}

int64_t
coffer_boottime_ns (void)
{
  return clock_ns (CLOCK_BOOTTIME);
}

int64_t
coffer_realtime_ns (void)
{
  return clock_ns (CLOCK_REALTIME);
}

static struct timespec
time_left (int64_t deadline_ns)
{
  int64_t now = coffer_now_ns (), left = 0;

  if (deadline_ns > now)
    left = deadline_ns - now;
  return (struct timespec) {.tv_sec = (time_t) (left / 1000000000),
                            .tv_nsec = (long) (left % 1000000000)};
}

/* 1: go on; 0 with errno: the caller gave up or time is over. */
static int
wait_result (int ready, const struct pollfd *fds)
{
  if (fds[1].revents & POLLNVAL || fds[0].revents & POLLNVAL) {
    errno = EBADF;
    return -1;
  }
  if (fds[1].revents) {
    errno = ECANCELED;
    return 0;
  }
  if (fds[0].revents)
    return 1;
  if (ready == 0)
    errno = ETIMEDOUT;
  return 0;
}

int
coffer_wait_fd (int fd, short events, int64_t deadline_ns, int cancel_fd)
{
  struct pollfd fds[2] = {
    {.fd = fd, .events = events}, {.fd = cancel_fd, .events = POLLIN},
  };
  struct timespec left;
  int ready;

  do {
    left = time_left (deadline_ns);
    ready = ppoll (fds, 2, &left, NULL);
  } while (ready < 0 && errno == EINTR);
  if (ready < 0)
    return -1;
  return wait_result (ready, fds);
}

int
coffer_poll_ms (int64_t deadline_ns)
{
  int64_t left;

  if (deadline_ns == INT64_MAX)
    return -1;
  left = deadline_ns - coffer_now_ns ();
  if (left <= 0)
    return 0;
  return left >= INT64_C (3600000000000) ? 3600000 : (int) (left / 1000000) + 1;
}

/* -- copying ----------------------------------------------------------------
 *
 * What an end is decides how it is waited for and written to.  A regular file
 * is never waited for.  A pipe that poll calls writable takes PIPE_BUF bytes
 * without blocking; more is left to splice or to the next round. */

enum end_kind { END_FILE, END_PIPE, END_SOCKET, END_OTHER };

struct copy {
  int from, to;
  enum end_kind from_kind, to_kind;
  int64_t deadline_ns;
  int cancel_fd;
  uint64_t moved;               /* bytes that have arrived */
  int splice;                   /* 0 once the kernel has refused it */
  char *bytes;                  /* COPY_CHUNK, made when first needed */
};

static enum end_kind
end_kind (int fd)
{
  struct stat st;

  if (fstat (fd, &st) < 0)
    return END_OTHER;
  if (S_ISREG (st.st_mode))
    return END_FILE;
  if (S_ISFIFO (st.st_mode))
    return END_PIPE;
  return S_ISSOCK (st.st_mode) ? END_SOCKET : END_OTHER;
}

/* Waits for one end.  0: go on; -1 with errno.  The clock is looked at even
 * when the end is ready: an end that always is must not hold us for ever. */
static int
copy_wait (const struct copy *copy, int fd, enum end_kind kind, short events)
{
  if (coffer_now_ns () >= copy->deadline_ns) {
    errno = ETIMEDOUT;
    return -1;
  }
  if (kind == END_FILE && copy->cancel_fd < 0)
    return 0;
  return coffer_wait_fd (fd, events, copy->deadline_ns,
                         copy->cancel_fd) == 1 ? 0 : -1;
}

static size_t
copy_most (uint64_t left)
{
  return left > 0 && left < COPY_CHUNK ? (size_t) left : COPY_CHUNK;
}

/* One step by splice.  Bytes moved, 0 at the end of file, -1 with EINVAL when
 * the ends do not allow it. */
static ssize_t
copy_splice (struct copy *copy, uint64_t left)
{
  ssize_t n;

  for (;;) {
    if (copy_wait (copy, copy->from, copy->from_kind, POLLIN) < 0 ||
        copy_wait (copy, copy->to, copy->to_kind, POLLOUT) < 0)
      return -1;
    n = splice (copy->from, NULL, copy->to, NULL, copy_most (left),
                SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n > 0)
      copy->moved += (uint64_t) n;
    if (n >= 0 || (errno != EAGAIN && errno != EINTR))
      return n;
  }
}

/* Writes all of it, never more at once than cannot block. */
static int
copy_put (struct copy *copy, const char *bytes, size_t size)
{
  size_t done = 0, most;
  ssize_t n;

  while (done < size) {
    if (copy_wait (copy, copy->to, copy->to_kind, POLLOUT) < 0)
      return -1;
    most = size - done;
    if (copy->to_kind == END_PIPE && most > PIPE_BUF)
      most = PIPE_BUF;
    if (copy->to_kind == END_OTHER && most > 256)
      most = 256;               /* what a terminal promises */
    n = copy->to_kind == END_SOCKET ?
      send (copy->to, bytes + done, most, MSG_DONTWAIT | MSG_NOSIGNAL) :
      write (copy->to, bytes + done, most);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return -1;
    done += (size_t) n;
    copy->moved += (uint64_t) n;
  }
  return 0;
}

static ssize_t
copy_bytes (struct copy *copy, uint64_t left)
{
  ssize_t n;

  if (!copy->bytes && !(copy->bytes = malloc (COPY_CHUNK)))
    return -1;
  do {
    if (copy_wait (copy, copy->from, copy->from_kind, POLLIN) < 0)
      return -1;
    n = read (copy->from, copy->bytes, copy_most (left));
  } while (n < 0 && (errno == EINTR || errno == EAGAIN));
  if (n > 0 && copy_put (copy, copy->bytes, (size_t) n) < 0)
    return -1;
  return n;
}

static ssize_t
copy_step (struct copy *copy, uint64_t left)
{
  ssize_t n;

  if (copy->splice) {
    n = copy_splice (copy, left);
    if (n >= 0 || errno != EINVAL)
      return n;
    copy->splice = 0;
  }
  return copy_bytes (copy, left);
}

/* An end that is not open that way is never ready: an error at once, where it
 * would be waited for until time is over. */
static int
end_check (int fd, int not_for)
{
  const int flags = fcntl (fd, F_GETFL);

  if (flags >= 0 && (flags & O_ACCMODE) != not_for && !(flags & O_PATH))
    return 0;
  errno = EBADF;
  return -1;
}

int
coffer_copy (int from, int to, uint64_t limit, int64_t deadline_ns,
             int cancel_fd, uint64_t *copied)
{
  struct copy copy = {
    .from = from, .to = to, .from_kind = end_kind (from),
    .to_kind = end_kind (to), .deadline_ns = deadline_ns,
    .cancel_fd = cancel_fd,
  };
  struct pipe_guard guard;
  ssize_t n = 1;

  if (end_check (from, O_WRONLY) < 0 || end_check (to, O_RDONLY) < 0) {
    if (copied)
      *copied = 0;
    return -1;
  }
  /* Splicing to a socket may block in spite of SPLICE_F_NONBLOCK. */
  copy.splice = copy.from_kind <= END_PIPE && copy.to_kind <= END_PIPE &&
                (copy.from_kind == END_PIPE || copy.to_kind == END_PIPE);
  pipe_guard_enter (&guard);
  errno = 0;
  while (n > 0 && (limit == 0 || copy.moved < limit))
    n = copy_step (&copy, limit ? limit - copy.moved : 0);
  pipe_guard_leave (&guard);
  if (copied)
    *copied = copy.moved;
  free (copy.bytes);
  return n < 0 ? -1 : 0;
}

int
coffer_write_until (int fd, const void *bytes, size_t size,
                    int64_t deadline_ns, int cancel_fd)
{
  struct copy copy = {
    .to = fd, .to_kind = end_kind (fd), .deadline_ns = deadline_ns,
    .cancel_fd = cancel_fd,
  };
  struct pipe_guard guard;
  int r;

  if (end_check (fd, O_RDONLY) < 0)
    return -1;
  pipe_guard_enter (&guard);
  r = copy_put (&copy, bytes, size);
  pipe_guard_leave (&guard);
  return r;
}

ssize_t
fd_take (int from, void *bytes, size_t size, int64_t deadline_ns,
         int cancel_fd)
{
  const struct copy copy = {
    .deadline_ns = deadline_ns, .cancel_fd = cancel_fd,
  };
  size_t done = 0;
  ssize_t n;

  if (end_check (from, O_WRONLY) < 0)
    return -1;
  while (done < size) {
    if (copy_wait (&copy, from, END_OTHER, POLLIN) < 0)
      return -1;
    n = read (from, (char *) bytes + done, size - done);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return -1;
    if (n == 0)
      break;
    done += (size_t) n;
  }
  return (ssize_t) done;
}
