/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox, from outside.
 *
 * The root is a descriptor that the init opened itself: nothing but what a
 * process in there could reach, however this process is privileged, and no
 * number of a process to be mistaken.  Paths are walked beneath it without
 * following any link.  As root the walk has the ids of the sandbox's user, so
 * that nothing is done that this user could not do; and what is not a plain
 * file system, /proc, /dev and /sys, is out of bounds. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clone.h"
#include "linux.h"

struct visit {
  int root;
  const char *path;
  char full[4200], second[4200];
  int changed;                  /* ids of this thread, to these */
  uid_t uid;
  gid_t gid;
};

static void
visit_end (struct visit *visit)
{
  if (visit->changed) {
    setfsuid (geteuid ());
    setfsgid (getegid ());
  }
  coffer_fd_close (&visit->root);
}
#define auto_visit __attribute__ ((cleanup (visit_end)))

static const char *
skip_slashes (const char *at)
{
  while (*at == '/' || (at[0] == '.' && (at[1] == '/' || !at[1])))
    at++;
  return at;
}

/* An absolute path below the root; others are below the workspace. */
static int32_t
path_full (struct coffer_call *call, const char *path, char *out, size_t size)
{
  static const char *const bounds[] = { "proc", "dev", "sys" };
  size_t n = path ? strlen (path) : 0, i;
  const char *at;

  if (n == 0 || n + sizeof "/workspace/" > size)
    return coffer_fail (call, COFFER_INVALID, "path: empty or too long");
  if (path[0] == '/')
    memcpy (out, path, n + 1);
  else {
    memcpy (out, "/workspace/", 11);
    memcpy (out + 11, path, n + 1);
  }
  at = skip_slashes (out);
  for (i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
    n = strlen (bounds[i]);
    if (strncmp (at, bounds[i], n) == 0 && (at[n] == '/' || at[n] == '\0'))
      return fail_with (call, COFFER_DENIED, "/%s is out of bounds",
                        bounds[i]);
  }
  return COFFER_OK;
}

/* A root whose names are made once for many sandboxes (skeleton.c) belongs to
 * none of them: whose it is now was written down when it was made. */
static void
owner_find (struct linux_provider *self, const char *sandbox, int root,
            struct stat *st)
{
  struct statfs fs;
  struct ids ids;

  if (st->st_uid != 0 || fstatfs (root, &fs) == -1
      || fs.f_type != TMPFS_MAGIC || (fs.f_flags & ST_RDONLY) == 0
      || sandbox_ids (self, sandbox, &ids) == -1 || !ids.privileged)
    return;
  st->st_uid = ids.uid;
  st->st_gid = ids.gid;
}

/* The ids that the sandbox's user has out here: the owner of its /tmp's
 * siblings, read from the root itself. */
static int32_t
ids_enter (struct linux_provider *self, struct coffer_call *call,
           const char *sandbox, struct visit *visit)
{
  struct stat st;

  if (geteuid () != 0)
    return COFFER_OK;
  if (fstat (visit->root, &st) == -1)
    return coffer_fail_errno (call, errno, "the sandbox's root");
  owner_find (self, sandbox, visit->root, &st);
  /* No init owns such a thing, whatever it hands out as its root. */
  if (st.st_uid == 0 || st.st_gid == 0 || !S_ISDIR (st.st_mode))
    return coffer_fail (call, COFFER_INTERNAL,
                        "the init's root is none of the sandbox's");
  visit->changed = 1;
  visit->uid = st.st_uid;
  visit->gid = st.st_gid;
  setfsgid (st.st_gid);
  setfsuid (st.st_uid);
  if ((uid_t) setfsuid ((uid_t) -1) != st.st_uid
      || (gid_t) setfsgid ((gid_t) -1) != st.st_gid)
    return coffer_fail (call, COFFER_INTERNAL,
                        "the sandbox user's ids could not be taken");
  return COFFER_OK;
}

static int32_t
visit_begin (void *self, struct coffer_call *call, const char *sandbox,
             const char *path, struct visit *visit)
{
  struct request request = { .type = INIT_ROOT, .takes_fd = 1 };
  auto_link struct link link = { .fd = -1 };
  coffer_unfilled struct reply reply;
  int32_t code;

  code = path_full (call, path, visit->full, sizeof visit->full);
  if (code == COFFER_OK)
    code = sandbox_reach (self, call, sandbox, &link);
  if (code != COFFER_OK)
    return code;
  if (link_ask (&link, &request, &reply, call) == -1)
    return sandbox_ask_failed (call, "the sandbox's root");
  visit->root = reply.fd;
  visit->path = visit->full;
  if (visit->root < 0)
    return coffer_fail (call, COFFER_INTERNAL, "the init gave no root");
  return ids_enter (self, call, sandbox, visit);
}

int32_t
linux_file_read (struct coffer_call *call, void *self, const char *sandbox,
                 const char *path, int32_t out,
                 const struct coffer_file_read_opts *opts)
{
  auto_visit struct visit visit = { .root = -1 };
  int32_t code = visit_begin (self, call, sandbox, path, &visit);

  return code != COFFER_OK
    ? code : coffer_files_read (call, visit.root, visit.path, out, opts);
}

int32_t
linux_file_write (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, int32_t in,
                  const struct coffer_file_write_opts *opts)
{
  auto_visit struct visit visit = { .root = -1 };
  int32_t code = COFFER_OK;

  if (opts != NULL && (opts->mode & 07000) != 0)
    code = coffer_fail (call, COFFER_INVALID,
                        "mode: no setuid, setgid or sticky bits");
  if (code == COFFER_OK)
    code = visit_begin (self, call, sandbox, path, &visit);
  return code != COFFER_OK
    ? code : coffer_files_write (call, visit.root, visit.path, in, opts);
}

int32_t
linux_file_stat (struct coffer_call *call, void *self, const char *sandbox,
                 const char *path, const struct coffer_file_stat_opts *opts)
{
  auto_visit struct visit visit = { .root = -1 };
  int32_t code = visit_begin (self, call, sandbox, path, &visit);

  (void) opts;
  return code != COFFER_OK ? code
                           : coffer_files_stat (call, visit.root, visit.path);
}

int32_t
linux_file_list (struct coffer_call *call, void *self, const char *sandbox,
                 const char *path, const struct coffer_file_list_opts *opts)
{
  auto_visit struct visit visit = { .root = -1 };
  int32_t code = visit_begin (self, call, sandbox, path, &visit);

  return code != COFFER_OK
    ? code : coffer_files_list (call, visit.root, visit.path, opts);
}

int32_t
linux_file_mkdir (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, const struct coffer_file_mkdir_opts *opts)
{
  auto_visit struct visit visit = { .root = -1 };
  int32_t code = visit_begin (self, call, sandbox, path, &visit);

  return code != COFFER_OK
    ? code : coffer_files_mkdir (call, visit.root, visit.path, opts);
}

int32_t
inside_folder (struct linux_provider *self, struct coffer_call *call,
               const char *sandbox, const char *path, int *folder,
               struct aide *as)
{
  auto_visit struct visit visit = { .root = -1 };
  int32_t code = visit_begin (self, call, sandbox, path, &visit);

  if (code != COFFER_OK)
    return code;
  as->privileged = visit.changed;
  as->uid = visit.uid;
  as->gid = visit.gid;
  *folder = coffer_open_beneath (visit.root, visit.path,
                                 O_RDONLY | O_DIRECTORY, 0);
  return *folder < 0 ? coffer_fail_errno (call, errno, "the folder")
                     : COFFER_OK;
}

int32_t
inside_watch (struct linux_provider *self, struct coffer_call *call,
              const char *sandbox, const char *path, int *watch)
{
  auto_visit struct visit visit = { .root = -1 };
  int32_t code = visit_begin (self, call, sandbox, path, &visit);

  if (code != COFFER_OK)
    return code;
  *watch = coffer_watch_open (visit.root, visit.path);
  return *watch < 0 ? coffer_fail_errno (call, errno, "the folder to watch")
                    : COFFER_OK;
}

/* The workspace itself is in use, also where it could be taken away. */
static int32_t
refuse_workspace (struct coffer_call *call, const char *full)
{
  const char *at = skip_slashes (full);

  if (strncmp (at, "workspace", 9) != 0 || (at[9] != '/' && at[9] != '\0')
      || *skip_slashes (at + 9) != '\0')
    return COFFER_OK;
  return coffer_fail (call, COFFER_BUSY,
                      "/workspace is in use: name what is in it");
}

int32_t
linux_file_remove (struct coffer_call *call, void *self, const char *sandbox,
                   const char *path,
                   const struct coffer_file_remove_opts *opts)
{
  auto_visit struct visit visit = { .root = -1 };
  int32_t code = visit_begin (self, call, sandbox, path, &visit);

  if (code == COFFER_OK)
    code = refuse_workspace (call, visit.path);
  return code != COFFER_OK
    ? code : coffer_files_remove (call, visit.root, visit.path, opts);
}

int32_t
linux_file_rename (struct coffer_call *call, void *self, const char *sandbox,
                   const char *from, const char *to,
                   const struct coffer_file_rename_opts *opts)
{
  auto_visit struct visit visit = { .root = -1 };
  int32_t code = path_full (call, to, visit.second, sizeof visit.second);

  (void) opts;
  if (code == COFFER_OK)
    code = visit_begin (self, call, sandbox, from, &visit);
  if (code == COFFER_OK)
    code = refuse_workspace (call, visit.path);
  if (code == COFFER_OK)
    code = refuse_workspace (call, visit.second);
  return code != COFFER_OK
    ? code : coffer_files_rename (call, visit.root, visit.path, visit.second);
}
