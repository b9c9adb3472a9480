/* SPDX-License-Identifier: Apache-2.0 */
/* Who a sandbox is for the rest of the machine.
 *
 * An ordinary user's sandbox is that user.  Root's is nobody else: an id of
 * its own, from a range that neither accounts nor subordinate ids use, and
 * never the host's 0: with that, files of root would open again. */

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

#include "layer.h"
#include "linux.h"

/* 0x70000000 and above: beyond what systemd, useradd and the distributions
 * hand out, below what a signed id can hold. */
#define POOL_FIRST 0x70000000u
#define POOL_SIZE 0x01000000u
#define POOL_LAST 0x7e000000u

static int
range_used (const char *text, uint64_t first, uint64_t count)
{
  const char *line = text, *field;
  uint64_t start, size;

  for (; line != NULL && *line != '\0';
       line = strchr (line, '\n') ? strchr (line, '\n') + 1 : NULL) {
    field = strchr (line, ':');
    if (field == NULL
        || sscanf (field, ":%" SCNu64 ":%" SCNu64, &start, &size) != 2)
      continue;
    if (start < first + count && first < start + size)
      return 1;
  }
  return 0;
}

/* The first block of ids that /etc/subuid and /etc/subgid leave alone. */
uint32_t
ids_pool (void)
{
  static const char *const files[] = { "/etc/subuid", "/etc/subgid" };
  uint32_t first = POOL_FIRST;
  char *text;
  size_t size, i;
  int fd;

  for (i = 0; i < 2; i++) {
    fd = open (files[i], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      continue;
    text = NULL;
    if (coffer_read_whole (fd, 1 << 20, &text, &size) == 0)
      while (first < POOL_LAST && range_used (text, first, POOL_SIZE))
        first += POOL_SIZE;
    free (text);
    close (fd);
  }
  return first;
}

/* The range of the table in /proc/self/uid_map that holds `id`, or the widest
 * one: where a sandbox of root can get an id from. */
static int
map_pick (const char *path, uint32_t wanted, uint32_t *out)
{
  uint64_t inside, outside, count, best = 0;
  FILE *file = fopen (path, "re");

  if (file == NULL)
    return -1;
  *out = 0;
  while (fscanf (file, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside,
                 &count) == 3) {
    if (wanted >= inside && wanted < inside + count) {
      *out = wanted;
      break;
    }
    /* The last id of a range is the one least likely to own anything. */
    if (count > best && inside + count - 1 != 0) {
      best = count;
      *out = (uint32_t) (inside + count - 1);
    }
  }
  fclose (file);
  return *out == 0 ? -1 : 0;
}

static uint32_t
id_hash (const char *id)
{
  uint32_t hash = 2166136261u;

  for (; *id != '\0'; id++)
    hash = (hash ^ (unsigned char) *id) * 16777619u;
  return hash & (POOL_SIZE - 1);
}

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

int
ids_choose (const struct linux_provider *self, const char *id,
            struct ids *ids, const char **why)
{
  uint32_t wanted = self->pool + id_hash (id);

  memset (ids, 0, sizeof *ids);
  if (geteuid () != 0) {
    ids->uid = geteuid ();
    ids->gid = getegid ();
    if (ids->gid == 0) {
      *why = "the group of this process is 0, which no sandbox may have";
      return -1;
    }
    return 0;
  }
  if (map_pick ("/proc/self/uid_map", wanted, &ids->uid) == 0
      && map_pick ("/proc/self/gid_map", wanted, &ids->gid) == 0) {
    ids->privileged = 1;
    if (!LAYER_ON (IDS))
      ids->uid = ids->gid = 0;
    return 0;
  }
  if (root_is_mapped_away ("/proc/self/uid_map")
      && root_is_mapped_away ("/proc/self/gid_map"))
    return 0;                   /* 0 here is an ordinary user outside */
  *why = "root has no other user id here to give to a sandbox: run as an "
         "ordinary user, or where more ids are mapped";
  return -1;
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
