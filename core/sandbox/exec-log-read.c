/* SPDX-License-Identifier: Apache-2.0 */
/* Reading logs of commands, while they are written and afterwards. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/exec-log-private.h"

void
exec_log_cut (struct exec_log *log)
{
  const uint64_t one = 1;
  struct exec_watch *watch;

  /* What is being written is counted before the files are. */
  pthread_mutex_lock (&log->writing);
  pthread_mutex_lock (&log->lock);
  log->removed = log->ended = 1;
  for (watch = log->watches; watch; watch = watch->next)
    coffer_write_all (watch->fd, &one, sizeof one);
  pthread_mutex_unlock (&log->lock);
  pthread_mutex_unlock (&log->writing);
}

static json_t *
stream_json (const struct exec_log *log, int stream)
{
  return json_pack ("{s:I, s:I}", "bytes", (json_int_t) log->size[stream],
                    "dropped", (json_int_t) log->dropped[stream]);
}

json_t *
exec_log_info (struct exec_log *log)
{
  json_t *info;

  pthread_mutex_lock (&log->lock);
  info = json_deep_copy (log->meta);
  json_object_set_new (info, "stdout", stream_json (log, 0));
  json_object_set_new (info, "stderr", stream_json (log, 1));
  json_object_set_new (info, "events",
                       json_integer ((json_int_t) log->count));
  pthread_mutex_unlock (&log->lock);
  return info;
}

int
exec_log_event (struct exec_log *log, uint64_t seq, struct exec_event *out)
{
  int there;

  pthread_mutex_lock (&log->lock);
  there = seq >= 1 && seq <= log->count ? 1 : log->ended || seq < 1 ? -1 : 0;
  if (log->removed)
    there = -1;
  pthread_mutex_unlock (&log->lock);
  if (there < 1)
    return there;
  return pread (log->index, out, sizeof *out,
                (off_t) (LOG_HEAD_SIZE + (seq - 1) * LOG_EVENT_SIZE))
             == (ssize_t) sizeof *out
           ? 1 : -1;
}

static int
is_there (struct exec_log *log, uint64_t seq)
{
  int there;

  pthread_mutex_lock (&log->lock);
  there = seq <= log->count || log->ended;
  pthread_mutex_unlock (&log->lock);
  return there;
}

static void
watch_remove (struct exec_log *log, struct exec_watch *watch)
{
  struct exec_watch **p;

  pthread_mutex_lock (&log->lock);
  for (p = &log->watches; *p != watch; p = &(*p)->next)
    ;
  *p = watch->next;
  pthread_mutex_unlock (&log->lock);
}

static void
watch_add (struct exec_log *log, struct exec_watch *watch)
{
  pthread_mutex_lock (&log->lock);
  watch->next = log->watches;
  log->watches = watch;
  pthread_mutex_unlock (&log->lock);
}

int
exec_log_wait (struct exec_log *log, uint64_t seq, int cancel_fd)
{
  coffer_autoclose int fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct exec_watch watch = { NULL, fd };
  struct pollfd fds[2] = { { .fd = fd, .events = POLLIN },
                           { .fd = cancel_fd, .events = POLLIN } };
  uint64_t count;
  int there, given_up = 0;

  if (fd < 0)
    return 0;
  watch_add (log, &watch);
  while (!(there = is_there (log, seq)) && !given_up) {
    if (poll (fds, 2, -1) < 0 && errno != EINTR)
      break;
    given_up = fds[1].revents != 0;
    if (fds[0].revents && read (fd, &count, sizeof count) < 0
        && errno != EAGAIN && errno != EINTR)
      break;
  }
  watch_remove (log, &watch);
  return there;
}

int
exec_log_data_dup (const struct exec_log *log, int stream)
{
  return fcntl (log->data[stream], F_DUPFD_CLOEXEC, 3);
}

ssize_t
exec_log_read (const struct exec_log *log, int stream, void *bytes,
               size_t size, uint64_t offset)
{
  size_t done = 0;
  ssize_t n;

  while (done < size) {
    n = pread (log->data[stream], (char *) bytes + done, size - done,
               (off_t) (offset + done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      if (n == 0)
        errno = ENODATA;
      return -1;
    }
    done += (size_t) n;
  }
  return (ssize_t) done;
}
