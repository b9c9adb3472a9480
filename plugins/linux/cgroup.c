/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups: one a sandbox, below the group that this process is in.
 *
 * What was made is written down, as the text of a link in the sandbox's folder,
 * before it is made, so that a later process removes what a killed one left. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"

#define OWN "/proc/self/cgroup"
#define MOUNTS "/proc/self/mountinfo"
#define REMOVE_NS SETTLE_NS     /* that the last process may take to leave */

/* ---- files of a group --------------------------------------------------- */

int
group_path (char out[PATH_MAX], const char *dir, const char *name)
{
  if (snprintf (out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX)
    return 0;
  errno = ENAMETOOLONG;
  return -1;
}

int
group_write (const char *dir, const char *name, const char *value)
{
  char path[PATH_MAX];
  coffer_autoclose int fd = -1;
  size_t size = strlen (value);

  if (group_path (path, dir, name) == -1)
    return -1;
  fd = open (path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return -1;
  return write (fd, value, size) == (ssize_t) size ? 0 : -1;
}

int
group_write_number (const char *dir, const char *name, uint64_t value)
{
  char text[24];

  snprintf (text, sizeof text, "%" PRIu64, value);
  return group_write (dir, name, text);
}

int
group_read (const char *dir, const char *name, char *out, size_t size)
{
  char path[PATH_MAX];
  coffer_autoclose int fd = -1;
  ssize_t n;

  if (group_path (path, dir, name) == -1)
    return -1;
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -1;
  n = coffer_read_all (fd, out, size - 1);
  if (n < 0)
    return -1;
  out[n] = '\0';
  return 0;
}

uint64_t
group_number (const char *dir, const char *name)
{
  char text[64];

  return group_read (dir, name, text, sizeof text) == 0
    ? strtoull (text, NULL, 10) : 0;
}

/* The number after a word at the start of a line. */
static uint64_t
keyed (const char *text, const char *key)
{
  const char *line;
  size_t n = strlen (key);

  for (line = text; line != NULL; line = strchr (line, '\n')) {
    line += *line == '\n';
    if (strncmp (line, key, n) == 0 && line[n] == ' ')
      return strtoull (line + n + 1, NULL, 10);
  }
  return 0;
}

static uint64_t
group_keyed (const char *dir, const char *name, const char *key)
{
  char text[4096];

  return group_read (dir, name, text, sizeof text) == -1 ? 0
                                                         : keyed (text, key);
}

int
group_holds (const char *dir, const char *name, uint64_t limit)
{
  char text[64], *end;
  unsigned long long value;

  if (group_read (dir, name, text, sizeof text) == -1)
    return 0;
  value = strtoull (text, &end, 10);
  return end != text && text[0] != '-' && value <= limit;
}

int
group_new (const char *dir)
{
  if (mkdir (dir, 0700) == 0)
    return 0;
  /* Left by one that is gone; never one that somebody is in. */
  return errno == EEXIST && rmdir (dir) == 0 ? mkdir (dir, 0700) : -1;
}

void
group_cpu (uint32_t millis, uint64_t *quota_us, uint64_t *period_us)
{
  *period_us = millis < 10 ? 1000000 : 100000;
  *quota_us = (uint64_t) millis * (*period_us / 1000);
}

int
group_swapless (void)
{
  char text[512];

  /* A heading and no line. */
  return group_read ("/proc", "swaps", text, sizeof text) == -1
         || strchr (text, '\n') == NULL
         || strchr (text, '\n')[1] == '\0';
}

/* ---- making ------------------------------------------------------------- */

unsigned
cgroup_usable (const char **why)
{
  struct place *place = malloc (sizeof *place);
  unsigned bits = 0;

  *why = NULL;
  if (place != NULL) {
    place_find (place, CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU, OWN, MOUNTS);
    bits = place->bits;
    *why = place->why;
  }
  free (place);
  return bits;
}

/* Only the controllers that have something to limit. */
static unsigned
bits_wanted (const struct cgroup_limits *limits, int single)
{
  return (limits->memory_bytes ? CGROUP_MEMORY : 0u)
         | (limits->pids ? CGROUP_PIDS : 0u)
         | (limits->cpu_millis ? CGROUP_CPU : 0u)
         | (single ? 0u : CGROUP_FREEZE);
}

static int
tree_used (const struct place *place, int tree)
{
  return place->version == 2 ? tree == 0 : (place->bits & (1u << tree)) != 0;
}

/* From where groups go to which they are, written down.  The name is the
 * folder's as well: another host may have a sandbox of that id. */
static int
groups_note (struct place *place, const char *id, int folder)
{
  char text[PATH_MAX] = "", parent[PATH_MAX], name[SANDBOX_ID_MAX + 64];
  struct stat st;
  size_t at = 0;
  int tree;

  if (fstat (folder, &st) == -1)
    return -1;
  snprintf (name, sizeof name, GROUP_PREFIX "%s-%jx-%jx", id,
            (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
  for (tree = 0; tree < TREES; tree++) {
    if (!tree_used (place, tree))
      continue;
    memcpy (parent, place->dirs[tree], sizeof parent);
    if (group_path (place->dirs[tree], parent, name) == -1)
      return -1;
    at += (size_t) snprintf (text + at, sizeof text - at, "%s\n",
                             place->dirs[tree]);
    if (at >= sizeof text) {
      errno = ENAMETOOLONG;
      return -1;
    }
  }
  return symlinkat (text, folder, "cgroup");
}

static void
group_close (struct cgroup *group)
{
  int i;

  coffer_fd_close (&group->into);
  coffer_fd_close (&group->commands);
  coffer_fd_close (&group->whole);
  for (i = 0; i < 3; i++)
    coffer_fd_close (&group->own[i]);
}

static void
group_give_up (int folder, struct cgroup *group)
{
  group_close (group);
  if (cgroup_remove (folder) == 0)
    unlinkat (folder, "cgroup", 0);
}

void
cgroup_make (int folder, const char *id, int single,
             const struct cgroup_limits *limits, struct cgroup *group)
{
  struct place *place = calloc (1, sizeof *place);
  unsigned wanted = bits_wanted (limits, single);

  group->single = single;
  group->place = place;
  if (place == NULL)
    group->why = place_why (ENOMEM);
  if (place == NULL || wanted == 0)
    return;
  place_find (place, wanted, OWN, MOUNTS);
  group->version = place->version;
  group->bits = place->bits;
  group->why = place->why;
  if (group->bits == 0)
    return;
  if (groups_note (place, id, folder) == -1) {
    group->why = place_why (errno);
    group->bits = 0;
    return;
  }
  if (place->version == 1)
    v1_make (place, limits, group);
  else
    v2_make (place->dirs[0], limits, group);
  if (group->bits == 0)
    group_give_up (folder, group);
}

void
cgroup_enter (int folder, pid_t pid, const struct cgroup_limits *limits,
              struct cgroup *group)
{
  if (group->bits == 0 || group->version == 1)
    return;
  v2_enter (group->place->dirs[0], pid, limits, group);
  if (group->bits == 0)
    group_give_up (folder, group);
}

int
cgroup_check (pid_t pid, const struct cgroup *group)
{
  return group->bits == 0 || group->version != 1
             || v1_has (group->place, pid, group)
    ? 0 : -1;
}

void
cgroup_fini (struct cgroup *group)
{
  group_close (group);
  free (group->place);
  group->place = NULL;
}

/* ---- what was made ------------------------------------------------------ */

/* The folders that the link names, one a line; count. */
static size_t
groups_named (int folder, char text[PATH_MAX], char *dirs[TREES])
{
  ssize_t n = readlinkat (folder, "cgroup", text, PATH_MAX - 1);
  size_t count = 0;
  char *line, *end;

  if (n <= 0)
    return 0;
  text[n] = '\0';
  for (line = text; count < TREES && (end = strchr (line, '\n')) != NULL;
       line = end + 1) {
    *end = '\0';
    /* Only ever a group of a sandbox. */
    if (line[0] == '/' && strstr (line, "/" GROUP_PREFIX) != NULL
        && strstr (line, "/../") == NULL)
      dirs[count++] = line;
  }
  return count;
}

static int
group_remove (const char *dir, int64_t until_ns)
{
  while (rmdir (dir) == -1) {
    if (errno == ENOENT)
      return 0;
    if (errno != EBUSY || coffer_now_ns () >= until_ns)
      return -1;
    poll (NULL, 0, 5);          /* the last of it is still leaving */
  }
  return 0;
}

/* With the leaves that one of version 2 has. */
static int
groups_remove (const char *dir, int64_t until_ns)
{
  static const char *const leaves[] = { COMMANDS_LEAF, INIT_LEAF };
  char path[PATH_MAX];
  size_t i;
  int r = 0;

  group_write (dir, "cgroup.kill", "1");
  for (i = 0; i < sizeof leaves / sizeof leaves[0]; i++)
    if (group_path (path, dir, leaves[i]) == -1
        || group_remove (path, until_ns) == -1)
      r = -1;
  return group_remove (dir, until_ns) == -1 ? -1 : r;
}

int
cgroup_remove (int folder)
{
  const int64_t until_ns = coffer_now_ns () + REMOVE_NS;
  char text[PATH_MAX], *dirs[TREES];
  size_t n = groups_named (folder, text, dirs), i;
  int r = 0;

  for (i = 0; i < n; i++)
    if (groups_remove (dirs[i], until_ns) == -1)
      r = -1;
  return r;
}

int
cgroup_use (int folder, struct cgroup_use *use)
{
  char text[PATH_MAX], *dirs[TREES];
  size_t n = groups_named (folder, text, dirs), i;

  memset (use, 0, sizeof *use);
  if (n == 0) {
    errno = ENOENT;
    return -1;
  }
  for (i = 0; i < n; i++) {
    use->memory_bytes += group_number (dirs[i], "memory.usage_in_bytes")
                         + group_number (dirs[i], "memory.current");
    use->memory_peak_bytes
      += group_number (dirs[i], "memory.max_usage_in_bytes")
         + group_number (dirs[i], "memory.peak");
  }
  return 0;
}

/* Beneath the group's folder, which is not looked up for each. */
static uint64_t
counted_at (int dir, const char *name, const char *key)
{
  coffer_autoclose int fd = openat (dir, name, O_RDONLY | O_CLOEXEC);
  char text[4096];
  ssize_t n = fd < 0 ? -1 : coffer_read_all (fd, text, sizeof text - 1);

  text[n > 0 ? n : 0] = '\0';
  return keyed (text, key);
}

int
cgroup_denials (int folder, struct cgroup_denials *denials)
{
  char text[PATH_MAX], *dirs[TREES];
  size_t n = groups_named (folder, text, dirs), i;
  int dir;

  memset (denials, 0, sizeof *denials);
  if (n == 0) {
    errno = ENOENT;
    return -1;
  }
  for (i = 0; i < n; i++) {
    dir = open (dirs[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
    denials->oom_kills += counted_at (dir, "memory.oom_control", "oom_kill")
                          + counted_at (dir, "memory.events", "oom_kill");
    denials->pids_denied += counted_at (dir, "pids.events", "max")
                            + counted_at (dir, COMMANDS_LEAF "/pids.events",
                                          "max");
    coffer_fd_close (&dir);
  }
  return 0;
}

/* ---- stopping ----------------------------------------------------------- */

/* The group that stops commands: of version 2 alone, see cgroup-v1.c.  0 or
 * -1. */
static int
freezer_of (char *const dirs[TREES], size_t n, char out[PATH_MAX])
{
  char path[PATH_MAX];
  size_t i;

  for (i = 0; i < n; i++)
    if (group_path (out, dirs[i], COMMANDS_LEAF) == 0
        && group_path (path, out, "cgroup.freeze") == 0
        && access (path, F_OK) == 0)
      return 0;
  errno = ENOENT;
  return -1;
}

int
cgroup_freeze (int folder, int frozen, int64_t deadline_ns)
{
  char text[PATH_MAX], dir[PATH_MAX], *dirs[TREES];
  size_t n = groups_named (folder, text, dirs);

  if (freezer_of (dirs, n, dir) == -1
      || group_write (dir, "cgroup.freeze", frozen ? "1" : "0") == -1)
    return -1;
  while (group_keyed (dir, "cgroup.events", "frozen") != (uint64_t) frozen) {
    if (coffer_now_ns () >= deadline_ns) {
      errno = ETIMEDOUT;
      return -1;
    }
    poll (NULL, 0, 2);          /* each process stops on its own way out */
  }
  return 0;
}
