/* SPDX-License-Identifier: Apache-2.0 */
/* Who a sandbox is for the rest of the machine.
 *
 * An ordinary user's sandbox is that user.  Root's is nobody else: an id of
 * its own (id-pool.c), and never the host's 0: with that, files of root would
 * open again.  One is all it gets: without a capability or a setuid bit nothing
 * inside could become another, and what is another's is written by nobody, as
 * the kernel could not name its owner.
 *
 * What outlives a sandbox, a folder of the host or the image of a workspace, is
 * shown id-mapped: on the disk it belongs to its owner, whichever id the
 * sandbox has this time, and no file is left that belongs to an id of the
 * pool. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "id-pool.h"
#include "layer.h"

/* Whether root here is known not to be the machine's root. */
static int
root_is_mapped_away (const char *map)
{
  uint64_t inside, outside, count;
  FILE *file = fopen (map, "re");
  int away = 0;

  if (file == NULL)
    return 0;
  while (fscanf (file, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside,
                 &count) == 3)
    if (inside == 0)
      away = outside != 0;
  fclose (file);
  return away;
}

static struct id_pool *
pool_locked (struct linux_provider *self)
{
  if (self->pool == NULL)
    self->pool = pool_new (self->runtime);
  return self->pool;
}

/* What root gives its sandboxes: 0, with the window in *window, or -1. */
static int
root_gives (struct linux_provider *self, struct pool_window *window)
{
  struct id_pool *pool;
  int r = -1;

  pthread_mutex_lock (&self->lock);
  pool = pool_locked (self);
  if (pool != NULL)
    r = pool_window (pool, window);
  pthread_mutex_unlock (&self->lock);
  return r;
}

static int
place_take (struct linux_provider *self, struct ids *ids)
{
  struct id_pool *pool;
  int r = -1;

  pthread_mutex_lock (&self->lock);
  pool = pool_locked (self);
  if (pool != NULL)
    r = pool_take (pool, &ids->place, &ids->uid);
  pthread_mutex_unlock (&self->lock);
  if (r == -1)
    return -1;
  ids->gid = ids->uid;
  ids->owner = getpid ();
  ids->privileged = 1;
  if (!LAYER_ON (IDS))
    ids->uid = ids->gid = 0;
  return 0;
}

static int
user_take (struct ids *ids, const char **why)
{
  ids->uid = geteuid ();
  ids->gid = getegid ();
  if (ids->gid != 0)
    return 0;
  *why = "the group of this process is 0, which no sandbox may have";
  return -1;
}

/* Without a place there may be an id all the same: 0 here can be an ordinary
 * user outside. */
static int
root_lacks (int error, const char **why)
{
  if (error == EUSERS)
    *why = "every user id that root has for sandboxes here is in use: "
           "`coffer sandbox list` shows whose";
  else if (error != ENOENT)
    *why = "the table of user ids in the runtime folder cannot be used: is "
           ".ids there root's own file, and has its disk room?";
  else if (root_is_mapped_away ("/proc/self/uid_map")
           && root_is_mapped_away ("/proc/self/gid_map"))
    return 0;
  else
    *why = "root has no other user id here to give to a sandbox: run as an "
           "ordinary user, or where more ids are mapped";
  return -1;
}

int
ids_take (struct linux_provider *self, struct ids *ids, const char **why)
{
  memset (ids, 0, sizeof *ids);
  if (geteuid () != 0)
    return user_take (ids, why);
  if (place_take (self, ids) == 0)
    return 0;
  return root_lacks (errno, why);
}

int
ids_look (struct linux_provider *self, char *text, size_t size,
          const char **why)
{
  struct pool_window window;
  struct ids ids = { 0 };

  if (geteuid () != 0) {
    if (user_take (&ids, why) == -1)
      return -1;
    snprintf (text, size, "%u, the caller's", ids.uid);
    return 0;
  }
  if (root_gives (self, &window) == 0) {
    snprintf (text, size, "one for each, of %u from %u on", window.count,
              window.first);
    return 0;
  }
  snprintf (text, size, "0, which is an ordinary user outside");
  return root_lacks (errno, why);
}

void
ids_note (struct linux_provider *self, struct ids *ids, pid_t init)
{
  if (!ids->privileged)
    return;
  pool_note (self->pool, ids->place, init);
  ids->owner = init;
}

void
ids_found (struct linux_provider *self, const struct ids *ids)
{
  pthread_mutex_lock (&self->lock);
  if (ids->privileged)
    pool_locked (self);
  pthread_mutex_unlock (&self->lock);
}

/* Of one that another process took, and whose table was not opened here since,
 * the owner will be seen to be gone. */
void
ids_give (struct linux_provider *self, const struct ids *ids)
{
  if (ids->privileged && self->pool != NULL)
    pool_give (self->pool, ids->place, ids->owner);
}

static int
map_write (int proc, const char *name, const char *text)
{
  coffer_autoclose int fd = openat (proc, name, O_WRONLY | O_CLOEXEC);
  size_t size = strlen (text);

  if (fd < 0)
    return -1;
  return write (fd, text, size) == (ssize_t) size ? 0 : -1;
}

int
ids_write (int proc, const struct ids *ids)
{
  char uid[64], gid[64];

  snprintf (uid, sizeof uid, "%u %u 1\n", SANDBOX_UID, ids->uid);
  snprintf (gid, sizeof gid, "%u %u 1\n", SANDBOX_UID, ids->gid);
  if (map_write (proc, "setgroups", "deny") == -1
      || map_write (proc, "uid_map", uid) == -1
      || map_write (proc, "gid_map", gid) == -1)
    return -1;
  return 0;
}

/* ---- id-mapped mounts --------------------------------------------------- */

static int
sleeper (void *data)
{
  (void) data;
  for (;;)
    syscall (SYS_ppoll, NULL, 0, NULL, NULL, 8);
  return 0;
}

int
ids_namespace (uint32_t uid, uint32_t gid, const struct ids *ids)
{
  static const size_t stack_size = 16384;
  char path[40], text[64], *stack = malloc (stack_size);
  int proc = -1, ns = -1, saved;
  pid_t pid;

  if (stack == NULL)
    return -1;
  /* It shares this memory and only ever sleeps. */
  pid = clone (sleeper, stack + stack_size,
               CLONE_VM | CLONE_NEWUSER | SIGCHLD, NULL);
  if (pid < 0) {
    free (stack);
    return -1;
  }
  snprintf (path, sizeof path, "/proc/%d", (int) pid);
  proc = open (path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (proc >= 0) {
    snprintf (text, sizeof text, "%u %u 1\n", uid, ids->uid);
    if (map_write (proc, "uid_map", text) == 0) {
      snprintf (text, sizeof text, "%u %u 1\n", gid, ids->gid);
      if (map_write (proc, "gid_map", text) == 0)
        ns = openat (proc, "ns/user", O_RDONLY | O_CLOEXEC);
    }
  }
  saved = errno;
  kill (pid, SIGKILL);
  while (waitpid (pid, NULL, __WALL) == -1 && errno == EINTR)
    ;
  coffer_fd_close (&proc);
  free (stack);
  errno = saved;
  return ns;
}
