/* SPDX-License-Identifier: Apache-2.0 */
/* Files, by the library that other providers use for theirs, as the sandbox's user
 * and in its root: no link is followed.  What the library emits goes out as
 * frames. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "work.h"

/* ---- a host for the library ------------------------------------------------------- */

static int32_t
host_emit (struct coffer_call *call, uint32_t record, const void *data)
{
  const struct coffer_file_stat *stat = data;
  coffer_autobuffer struct coffer_buffer out = {0};
  struct wire_file file = {
    .size_bytes = stat->size_bytes, .moved_bytes = stat->moved_bytes,
    .modified_ns = stat->modified_ns, .mode = stat->mode,
    .has_target = stat->target != NULL,
  };

  (void) call;
  if (record != COFFER_REC_file_stat)
    return COFFER_OK;
  strncpy (file.kind, stat->kind ? stat->kind : "", sizeof file.kind - 1);
  coffer_buffer_add (&out, &file, sizeof file);
  coffer_buffer_add (&out, stat->path, strlen (stat->path) + 1);
  if (stat->target)
    coffer_buffer_add (&out, stat->target, strlen (stat->target) + 1);
  if (out.failed)
    return COFFER_INTERNAL;
  say (WIRE_FILE, out.data, out.size);
  return COFFER_OK;
}

static int32_t
host_fail (struct coffer_call *call, int32_t code, int32_t retryable,
           const char *message, const char *details)
{
  (void) call, (void) details;
  say_failed (code, retryable, message);
  return code;
}

static void
host_log (struct coffer_call *call, int32_t level, const char *text)
{
  (void) call, (void) level, (void) text;
}

static void
host_progress (struct coffer_call *call, uint64_t done, uint64_t total,
               const char *what)
{
  (void) call, (void) done, (void) total, (void) what;
}

static const struct coffer_host host = {
  .size = sizeof host, .emit = host_emit, .fail = host_fail, .log = host_log,
  .progress = host_progress,
};

/* ---- what is written, which must be whole --------------------------------------------- */

/* Standard input comes in pieces with a size each, the last of which is 0.  An end
 * without that is no end: the file is given up, and the old one stays. */
#define DRAIN_SECONDS 5

struct feed {
  int out, cancel;
};

static void *
feed_main (void *data)
{
  struct feed *feed = data;
  static char bytes[64 << 10];
  uint32_t size;

  for (;;) {
    if (coffer_read_all (0, &size, sizeof size) != sizeof size
        || size > sizeof bytes
        || coffer_read_all (0, bytes, size) != (ssize_t) size)
      break;
    if (size == 0) {
      coffer_fd_close (&feed->out);
      return NULL;
    }
    if (coffer_write_all (feed->out, bytes, size) < 0)
      continue;                 /* it has failed, which is said elsewhere */
  }
  coffer_fd_close (&feed->cancel);
  return NULL;
}

/* An engine that cannot give a command its input any more gives up what the command
 * has said (Podman does): so the rest is read, until who was answered is gone. */
static void
drain (pthread_t thread, int unread)
{
  struct timespec until;

  close (unread);
  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += DRAIN_SECONDS;
  pthread_timedjoin_np (thread, NULL, &until);
}

static int32_t
write_file (struct coffer_call *call, int root, const char *path,
            const struct wire_request *request)
{
  const struct coffer_file_write_opts opts = {
    .size = sizeof opts, .mode = request->mode,
    .parents = (request->flags & WIRE_PARENTS) != 0,
    .exclusive = (request->flags & WIRE_EXCLUSIVE) != 0,
  };
  static struct feed feed;      /* the thread may outlive this function */
  int data[2], cancel[2];
  pthread_t thread;
  int32_t code;

  if (pipe2 (data, O_CLOEXEC) < 0 || pipe2 (cancel, O_CLOEXEC) < 0)
    return coffer_fail_errno (call, errno, path);
  feed = (struct feed) {data[1], cancel[1]};
  if (pthread_create (&thread, NULL, feed_main, &feed) != 0)
    return coffer_fail_errno (call, EAGAIN, path);
  call->cancel_fd = cancel[0];
  code = coffer_files_write (call, root, path, data[0], &opts);
  if (code != COFFER_OK)
    drain (thread, data[0]);
  return code;
}

/* ---- the operations ---------------------------------------------------------------------- */

static int32_t
work (struct coffer_call *call, int root, const struct wire_request *request,
      const char *path, const char *other)
{
  const struct coffer_file_read_opts read_opts = {
    .size = sizeof read_opts, .offset_bytes = request->offset,
    .length_bytes = request->length,
  };
  const struct coffer_file_list_opts list_opts = {
    .size = sizeof list_opts, .depth = request->depth,
  };
  const struct coffer_file_mkdir_opts mkdir_opts = {
    .size = sizeof mkdir_opts,
    .parents = (request->flags & WIRE_PARENTS) != 0,
  };
  const struct coffer_file_remove_opts remove_opts = {
    .size = sizeof remove_opts,
    .recursive = (request->flags & WIRE_RECURSIVE) != 0,
  };

  switch (request->op) {
  case WIRE_READ:
    return coffer_files_read (call, root, path, 1, &read_opts);
  case WIRE_WRITE:
    return write_file (call, root, path, request);
  case WIRE_STAT:
    return coffer_files_stat (call, root, path);
  case WIRE_LIST_FILES:
    return coffer_files_list (call, root, path, &list_opts);
  case WIRE_MKDIR:
    return coffer_files_mkdir (call, root, path, &mkdir_opts);
  case WIRE_REMOVE:
    return coffer_files_remove (call, root, path, &remove_opts);
  case WIRE_RENAME:
    return coffer_files_rename (call, root, path, other ? other : "");
  default:
    return coffer_fail (call, COFFER_UNSUPPORTED, "no such work");
  }
}

/* An absolute path is from the root, another below the workspace. */
static char *
path_from_root (const char *path)
{
  coffer_autobuffer struct coffer_buffer whole = {0};

  if (path[0] != '/' && path[0])
    coffer_buffer_add_string (&whole, SANDBOX_WORKSPACE "/");
  coffer_buffer_add_string (&whole, path);
  return coffer_buffer_steal (&whole);
}

/* A rename has both of its paths in one folder: the root, when one is absolute. */
int
files_work (const struct wire_request *request, const char *block)
{
  struct coffer_call call = {
    .size = sizeof call, .host = &host, .deadline_ns = INT64_MAX,
    .cancel_fd = -1,
  };
  const char *at = block, *end = block + request->block;
  const char *path = coffer_strings_next (&at, end);
  const char *other = coffer_strings_next (&at, end);
  coffer_autoclose int root = -1;
  int below;

  if (!path)
    return INSIDE_USAGE;
  below = path[0] != '/' && (!other || other[0] != '/');
  root = open (below ? SANDBOX_WORKSPACE : "/",
               O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    coffer_fail_errno (&call, errno, "the sandbox's root");
    return INSIDE_FAILED;
  }
  if (!below && other) {
    path = path_from_root (path);
    other = path_from_root (other);
  }
  if (!path || work (&call, root, request, path, other) != COFFER_OK)
    return INSIDE_FAILED;
  say (WIRE_DONE, NULL, 0);
  return INSIDE_OK;
}
