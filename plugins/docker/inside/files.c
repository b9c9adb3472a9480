/* SPDX-License-Identifier: Apache-2.0 */
/* Files, by the library that other providers use for theirs, as the sandbox's user
 * and in its root: no link is followed.  What the library emits goes out as
 * frames. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "work.h"

/* ---- a host for the library ------------------------------------------------------- */

static int32_t
say_event (const struct coffer_file_event *event)
{
  coffer_autobuffer struct coffer_buffer out = {0};

  coffer_buffer_add_vector (&out, (const char *const[]) {event->kind,
                                                         event->path, NULL});
  if (out.failed)
    return COFFER_INTERNAL;
  say (WIRE_EVENT, out.data, out.size);
  return COFFER_OK;
}

static int32_t
say_file (const struct coffer_file_stat *stat)
{
  coffer_autobuffer struct coffer_buffer out = {0};
  struct wire_file file = {
    .size_bytes = stat->size_bytes, .moved_bytes = stat->moved_bytes,
    .modified_ns = stat->modified_ns, .mode = stat->mode,
    .has_target = stat->target != NULL,
  };

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
host_emit (struct coffer_call *call, uint32_t record, const void *data)
{
  (void) call;
  if (record == COFFER_REC_file_event)
    return say_event (data);
  return record == COFFER_REC_file_stat ? say_file (data) : COFFER_OK;
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
  (void) call;
  if (level >= COFFER_LOG_WARNING)
    say (WIRE_WARNING, text, strlen (text) + 1);
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

/* ---- what is written ------------------------------------------------------------------- */

struct writing {
  int root;
  const char *path;
  const struct wire_request *request;
};

static int32_t
write_file (struct coffer_call *call, int in, void *data)
{
  const struct writing *writing = data;
  const uint32_t flags = writing->request->flags;
  const struct coffer_file_write_opts opts = {
    .size = sizeof opts, .mode = writing->request->mode,
    .parents = (flags & WIRE_PARENTS) != 0,
    .exclusive = (flags & WIRE_EXCLUSIVE) != 0,
  };

  return coffer_files_write (call, writing->root, writing->path, in, &opts);
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
  struct writing writing = {root, path, request};

  switch (request->op) {
  case WIRE_READ:
    return coffer_files_read (call, root, path, 1, &read_opts);
  case WIRE_WRITE:
    return fed (call, path, write_file, &writing);
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
  case WIRE_EXPORT:
    return request->flags & WIRE_STILL
             ? stand_still (call, root, path, request->timeout_ms)
             : tree_export (call, root, path);
  case WIRE_IMPORT:
    return tree_import (call, root, path, (request->flags & WIRE_LINKS) != 0);
  case WIRE_WATCH:
    return tree_watch (call, root, path);
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
    .size = sizeof call, .host = &host,
    .deadline_ns = work_end_ns (request), .cancel_fd = -1,
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
