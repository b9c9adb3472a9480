/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: a copy of a workspace in the state folder, which outlives the
 * sandbox.  A new sandbox begins with one when its template_name is a
 * snapshot's id. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/spec.h>

#include "files.h"

#define SNAPSHOTS "snapshots"
#define ABOUT "about"
#define TREE "tree"

/* The file `about`. */
struct about {
  uint64_t size_bytes;
  int64_t created_ns;
  char name[240];               /* NUL at its end; "": none was given */
};

static int32_t
check_state (struct coffer_call *call, const struct reference *self)
{
  return self->state >= 0 ? COFFER_OK :
    coffer_fail (call, COFFER_UNAVAILABLE, "there is no state folder");
}

static int
snapshots_open (const struct reference *self)
{
  if (mkdirat (self->state, SNAPSHOTS, 0700) < 0 && errno != EEXIST)
    return -1;
  return coffer_open_beneath (self->state, SNAPSHOTS, O_RDONLY | O_DIRECTORY,
                              0);
}

int
snapshot_open (const struct reference *self, const char *snapshot)
{
  coffer_autobuffer struct coffer_buffer path = {0};

  if (self->state < 0 || !coffer_id_is_valid (snapshot)) {
    errno = ENOENT;
    return -1;
  }
  coffer_buffer_printf (&path, SNAPSHOTS "/%s/" TREE, snapshot);
  if (path.failed) {
    errno = ENOMEM;
    return -1;
  }
  return coffer_open_beneath (self->state, path.data, O_RDONLY | O_DIRECTORY,
                              0);
}

static int32_t
emit_snapshot (struct coffer_call *call, const char *id,
               const struct about *about)
{
  const struct coffer_snapshot record = {
    .size = sizeof record, .snapshot = id,
    .name = about->name[0] ? about->name : NULL,
    .size_bytes = about->size_bytes, .created_ns = about->created_ns,
  };

  return coffer_emit_snapshot (call, &record);
}

/* -- making one ---- */

/* The tree in a folder whose name begins with a dot: it is none yet. */
static int
fill (struct coffer_call *call, int snapshots, const char *hidden,
      int workspace, struct about *about)
{
  coffer_autoclose int folder = -1, tree = -1, file = -1;

  if (mkdirat (snapshots, hidden, 0700) < 0
      || (folder = openat (snapshots, hidden, O_RDONLY | O_DIRECTORY
                           | O_CLOEXEC)) < 0
      || mkdirat (folder, TREE, 0700) < 0
      || (tree = openat (folder, TREE, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0
      || tree_copy (call, workspace, tree, &about->size_bytes) < 0)
    return -1;
  about->created_ns = coffer_realtime_ns ();
  file = openat (folder, ABOUT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return file < 0 || coffer_write_all (file, about, sizeof *about) < 0
         || fsync (file) < 0 ? -1 : 0;
}

/* Nothing inside changes while it is copied. */
static int32_t
copy_held (struct coffer_call *call, const struct place *place, int snapshots,
           const char *hidden, struct about *about)
{
  struct request request = {.op = ASK_INFO};
  struct reply before, reply;
  int r;

  if (ask (call, place->folder, KEEPER_SOCKET, &request, NULL, 0, &before) < 0)
    return fail_sandbox (call, errno);
  request.op = ASK_PAUSE;
  if (ask (call, place->folder, KEEPER_SOCKET, &request, NULL, 0, &reply) < 0)
    return fail_sandbox (call, errno);
  r = fill (call, snapshots, hidden, place->root, about) < 0 ? errno : 0;
  request.op = ASK_RESUME;
  if (!before.paused
      && ask (call, place->folder, KEEPER_SOCKET, &request, NULL, 0, &reply)
         < 0 && r == 0)
    return fail_sandbox (call, errno);
  return r ? coffer_fail_errno (call, r, "the snapshot") : COFFER_OK;
}

int32_t
reference_snapshot_create (struct coffer_call *call, void *data,
                           const char *sandbox, const char *name,
                           const struct coffer_snapshot_create_opts *opts)
{
  const struct reference *self = data;
  auto_place struct place place = PLACE (".", NULL);
  coffer_autoclose int snapshots = -1;
  struct about about = {0};
  char hidden[40], *id = hidden + 1;
  uint64_t number;
  int32_t code = check_state (call, self);

  (void) opts;
  if (code == COFFER_OK && strlen (name ? name : "") >= sizeof about.name)
    code = coffer_fail (call, COFFER_INVALID, "the name is too long");
  if (code == COFFER_OK)
    code = place_find (call, self, sandbox, &place);
  if (code != COFFER_OK)
    return code;
  snapshots = snapshots_open (self);
  if (snapshots < 0 || getrandom (&number, sizeof number, 0) != sizeof number)
    return coffer_fail_errno (call, errno, "the folder of snapshots");
  snprintf (hidden, sizeof hidden, ".snap-%016llx", (unsigned long long) number);
  snprintf (about.name, sizeof about.name, "%s", name ? name : "");
  code = copy_held (call, &place, snapshots, hidden, &about);
  if (code == COFFER_OK && renameat (snapshots, hidden, snapshots, id) < 0)
    code = coffer_fail_errno (call, errno, "the snapshot");
  if (code != COFFER_OK) {
    coffer_remove_beneath (snapshots, hidden, 1, NULL);
    return code;
  }
  return emit_snapshot (call, id, &about);
}

/* -- the others ---- */

static int32_t
list_one (struct coffer_call *call, int snapshots, const char *id)
{
  coffer_autoclose int folder = coffer_open_beneath (snapshots, id, O_RDONLY
                                                     | O_DIRECTORY, 0);
  struct about about;

  if (folder < 0 || file_load (folder, ABOUT, &about, sizeof about) < 0)
    return COFFER_OK;           /* it is being removed */
  about.name[sizeof about.name - 1] = '\0';
  return emit_snapshot (call, id, &about);
}

int32_t
reference_snapshot_list (struct coffer_call *call, void *data,
                         const struct coffer_snapshot_list_opts *opts)
{
  const struct reference *self = data;
  int32_t code = check_state (call, self);
  struct dirent *entry;
  DIR *stream;
  int fd;

  (void) opts;
  if (code != COFFER_OK)
    return code;
  fd = snapshots_open (self);
  stream = fd < 0 ? NULL : fdopendir (fd);
  if (!stream) {
    code = coffer_fail_errno (call, errno, "the folder of snapshots");
    coffer_fd_close (&fd);
    return code;
  }
  while (code == COFFER_OK && (entry = readdir (stream)))
    if (coffer_id_is_valid (entry->d_name))
      code = list_one (call, fd, entry->d_name);
  closedir (stream);
  return code;
}

/* Out of sight first: who lists sees it whole or not at all. */
int32_t
reference_snapshot_delete (struct coffer_call *call, void *data,
                           const char *snapshot,
                           const struct coffer_snapshot_delete_opts *opts)
{
  const struct reference *self = data;
  int32_t code = check_state (call, self);
  coffer_autoclose int snapshots = -1;
  char hidden[80];

  (void) opts;
  if (code != COFFER_OK)
    return code;
  snapshots = snapshots_open (self);
  if (snapshots < 0)
    return coffer_fail_errno (call, errno, "the folder of snapshots");
  snprintf (hidden, sizeof hidden, ".%.64s", snapshot);
  if (!coffer_id_is_valid (snapshot)
      || renameat (snapshots, snapshot, snapshots, hidden) < 0)
    return coffer_fail (call, COFFER_NOT_FOUND, "no such snapshot");
  if (coffer_remove_beneath (snapshots, hidden, 1, NULL) < 0)
    return coffer_fail_errno (call, errno, "the snapshot");
  return COFFER_OK;
}
