/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the entries of a folder, by inotify, until the caller gives up or
 * the sandbox ends.  The folder is looked up once, by descriptor, and nothing of
 * the sandbox is held open meanwhile; what it may write to fills no more than
 * the kernel's queue, and then it is said that something was lost. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "internal.h"

#define EVENTS                                                                \
  (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM              \
   | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

int
coffer_watch_open (int root, const char *path)
{
  coffer_autoclose int folder = coffer_open_beneath (root, path, O_PATH
                                                     | O_DIRECTORY, 0);
  coffer_autoclose int watch = -1;
  char name[48];

  if (folder < 0)
    return -1;
  watch = inotify_init1 (IN_CLOEXEC | IN_NONBLOCK);
  snprintf (name, sizeof name, "/proc/self/fd/%d", folder);
  if (watch < 0 || inotify_add_watch (watch, name, EVENTS) < 0) {
    if (errno == ENOSPC)        /* of watches, not of bytes */
      errno = EMFILE;
    return -1;
  }
  return coffer_fd_steal (&watch);
}

/* A name that something uses until it is whole. */
static int
is_passing (const char *name)
{
  return strncmp (name, ".coffer-", 8) == 0;
}

static const char *
kind_of (uint32_t mask)
{
  if (mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF
              | IN_UNMOUNT))
    return "lost";
  if (mask & (IN_DELETE | IN_MOVED_FROM))
    return "removed";
  if (mask & IN_CREATE)
    return "created";
  return mask & IN_MOVED_TO ? "renamed" : "changed";
}

/* What a write put in its place is not known to be new or not: changed. */
static int32_t
emit_event (struct coffer_call *call, const struct inotify_event *event,
            uint32_t *passing)
{
  struct coffer_file_event record = {
    .size = sizeof record, .path = event->len ? event->name : "",
    .kind = kind_of (event->mask),
  };

  if (event->len && is_passing (event->name)) {
    if (event->mask & IN_MOVED_FROM)
      *passing = event->cookie;
    return COFFER_OK;
  }
  if (event->mask & IN_MOVED_TO && event->cookie == *passing)
    record.kind = "changed";
  return coffer_emit_file_event (call, &record);
}

/* *more: there was something, and there may be more. */
static int32_t
emit_events (struct coffer_call *call, int watch, uint32_t *passing, int *more)
{
  char bytes[16 * (sizeof (struct inotify_event) + NAME_MAX + 1)]
    __attribute__ ((aligned (__alignof__ (struct inotify_event))));
  const struct inotify_event *event;
  ssize_t n = read (watch, bytes, sizeof bytes);
  int32_t code = COFFER_OK;

  *more = n > 0;
  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? COFFER_OK :
      coffer_fail_errno (call, errno, "watching");
  for (ssize_t at = 0; at < n && code == COFFER_OK;
       at += (ssize_t) (sizeof *event + event->len)) {
    event = (const void *) (bytes + at);
    code = emit_event (call, event, passing);
    if (code == COFFER_OK && event->mask & IN_IGNORED)
      code = coffer_fail (call, COFFER_NOT_FOUND, "the folder has gone");
  }
  return code;
}

int32_t
coffer_files_watch (struct coffer_call *call, int watch, int ended)
{
  struct pollfd fds[3] = {
    {.fd = watch, .events = POLLIN}, {.fd = ended, .events = POLLIN},
    {.fd = call->cancel_fd, .events = POLLIN},
  };
  uint32_t passing = 0;
  int32_t code = COFFER_OK;
  int more;

  while (code == COFFER_OK) {
    if (poll (fds, 3, coffer_poll_ms (call->deadline_ns)) < 0
        && errno != EINTR)
      return coffer_fail_errno (call, errno, "watching");
    /* The clock also where something always is there to be told. */
    if (path_check (call->deadline_ns, call->cancel_fd) < 0)
      return coffer_fail_errno (call, errno, "watching");
    code = emit_events (call, watch, &passing, &more);
    if (code == COFFER_OK && fds[1].revents && !more)
      code = coffer_fail (call, COFFER_NOT_FOUND, "the sandbox has ended");
  }
  return code;
}
