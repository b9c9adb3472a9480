/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups: one a sandbox, below the group that this process is in.
 *
 * Version 1 has a tree for each controller, version 2 one for all.  What was
 * made is written down, as the text of a link in the sandbox's folder, before
 * it is made, so that a later process removes what a killed one left. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "linux.h"

#define GROUP_PREFIX "coffer-"
#define HOST_LEAF "coffer-host"

/* Where this process is, a folder for each controller; "" is nowhere. */
struct place_of {
  int version;                  /* 0: none, 1, 2 */
  char memory[PATH_MAX], pids[PATH_MAX], cpu[PATH_MAX];
};

/* ---- files of a group --------------------------------------------------- */

static int
value_write (const char *dir, const char *name, const char *value)
{
  char path[PATH_MAX + 64];
  coffer_autoclose int fd = -1;
  size_t size = strlen (value);

  snprintf (path, sizeof path, "%s/%s", dir, name);
  fd = open (path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return -1;
  return write (fd, value, size) == (ssize_t) size ? 0 : -1;
}

static int
number_write (const char *dir, const char *name, uint64_t value)
{
  char text[24];

  snprintf (text, sizeof text, "%" PRIu64, value);
  return value_write (dir, name, text);
}

static int
text_read (const char *dir, const char *name, char *out, size_t size)
{
  char path[PATH_MAX + 64];
  coffer_autoclose int fd = -1;
  ssize_t n;

  snprintf (path, sizeof path, "%s/%s", dir, name);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -1;
  n = coffer_read_all (fd, out, size - 1);
  if (n < 0)
    return -1;
  out[n] = '\0';
  return 0;
}

static uint64_t
number_read (const char *dir, const char *name)
{
  char text[64];

  return text_read (dir, name, text, sizeof text) == 0
    ? strtoull (text, NULL, 10) : 0;
}

/* The number after a word at the start of a line. */
static uint64_t
keyed_read (const char *dir, const char *name, const char *key)
{
  char text[4096], *line;
  size_t n = strlen (key);

  if (text_read (dir, name, text, sizeof text) == -1)
    return 0;
  for (line = text; line != NULL; line = strchr (line, '\n')) {
    line += *line == '\n';
    if (strncmp (line, key, n) == 0 && line[n] == ' ')
      return strtoull (line + n + 1, NULL, 10);
  }
  return 0;
}

/* ---- where this process is ---------------------------------------------- */

static int
list_has (const char *list, const char *word)
{
  size_t n = strlen (word);

  for (; list != NULL; list = strchr (list, ',')) {
    list += *list == ',';
    if (strncmp (list, word, n) == 0 && (list[n] == ',' || list[n] == '\0'
                                         || list[n] == '\n'))
      return 1;
  }
  return 0;
}

/* This process's path in the tree of a controller (NULL: of version 2). */
static int
own_path (const char *controller, char *out, size_t size)
{
  char line[PATH_MAX + 128], *first, *second;
  FILE *file = fopen ("/proc/self/cgroup", "re");
  int found = 0;

  if (file == NULL)
    return -1;
  while (!found && fgets (line, sizeof line, file) != NULL) {
    first = strchr (line, ':');
    second = first ? strchr (first + 1, ':') : NULL;
    if (second == NULL)
      continue;
    *second++ = '\0';
    second[strcspn (second, "\n")] = '\0';
    if (controller != NULL ? list_has (first + 1, controller)
                           : first[1] == '\0')
      found = (size_t) snprintf (out, size, "%s", second) < size;
  }
  fclose (file);
  return found ? 0 : -1;
}

/* The folder that shows it: mountinfo names what part of the tree is mounted
 * where. */
static int
own_folder (const char *controller, char *out)
{
  char line[4 * PATH_MAX], root[PATH_MAX], point[PATH_MAX], own[PATH_MAX];
  char type[32], options[1024], *tail;
  FILE *file;
  size_t n;
  int found = 0;

  out[0] = '\0';
  if (own_path (controller, own, sizeof own) == -1)
    return -1;
  file = fopen ("/proc/self/mountinfo", "re");
  if (file == NULL)
    return -1;
  while (!found && fgets (line, sizeof line, file) != NULL) {
    if (sscanf (line, "%*s %*s %*s %4095s %4095s", root, point) != 2
        || (tail = strstr (line, " - ")) == NULL
        || sscanf (tail, " - %31s %*s %1023s", type, options) != 2)
      continue;
    if (strcmp (type, controller ? "cgroup" : "cgroup2") != 0
        || (controller != NULL && !list_has (options, controller)))
      continue;
    n = strcmp (root, "/") == 0 ? 0 : strlen (root);
    if (strncmp (own, root, n) != 0)
      continue;
    found = snprintf (out, PATH_MAX, "%s%s", point,
                      strcmp (own + n, "/") == 0 ? "" : own + n) < PATH_MAX;
  }
  fclose (file);
  if (found && access (out, W_OK | X_OK) == 0)
    return 0;
  out[0] = '\0';
  return -1;
}

/* Version 2 lets only groups without processes have groups with limits: this
 * process moves to a leaf beside them, when it is alone in its group. */
static int
v2_prepare (char *dir)
{
  static const char controllers[] = "+memory +pids +cpu";
  char enabled[256], leaf[PATH_MAX + 32];
  char *slash = strrchr (dir, '/');

  if (slash != NULL && strcmp (slash + 1, HOST_LEAF) == 0)
    *slash = '\0';
  if (text_read (dir, "cgroup.subtree_control", enabled, sizeof enabled) == -1)
    return -1;
  if (strstr (enabled, "memory") && strstr (enabled, "pids"))
    return 0;
  if (value_write (dir, "cgroup.subtree_control", controllers) == 0)
    return 0;
  snprintf (leaf, sizeof leaf, "%s/" HOST_LEAF, dir);
  if (mkdir (leaf, 0755) == -1 && errno != EEXIST)
    return -1;
  if (number_write (leaf, "cgroup.procs", (uint64_t) getpid ()) == 0
      && value_write (dir, "cgroup.subtree_control", controllers) == 0)
    return 0;
  number_write (dir, "cgroup.procs", (uint64_t) getpid ());
  rmdir (leaf);
  return -1;
}

static unsigned
place_find (struct place_of *place, const char **why)
{
  unsigned bits = 0;

  memset (place, 0, sizeof *place);
  if (own_folder ("memory", place->memory) == 0)
    bits |= CGROUP_MEMORY;
  if (own_folder ("pids", place->pids) == 0)
    bits |= CGROUP_PIDS;
  if (own_folder ("cpu", place->cpu) == 0)
    bits |= CGROUP_CPU;
  if (bits != 0) {
    place->version = 1;
    return bits;
  }
  if (own_folder (NULL, place->memory) == 0
      && v2_prepare (place->memory) == 0) {
    place->version = 2;
    return CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU;
  }
  if (why != NULL)
    *why = "no control group may be made here: `systemd-run --user --scope -p "
           "Delegate=yes` gives one to an ordinary user";
  return 0;
}

unsigned
cgroup_usable (const char **why)
{
  struct place_of *place = malloc (sizeof *place);
  unsigned bits = place ? place_find (place, why) : 0;

  free (place);
  return bits;
}

/* ---- making ------------------------------------------------------------- */

static int
group_new (const char *parent, const char *id, char *out)
{
  if (snprintf (out, PATH_MAX, "%s/" GROUP_PREFIX "%s", parent, id)
        >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return mkdir (out, 0700) == -1 && errno != EEXIST ? -1 : 0;
}

static int
v1_fill (const struct place_of *groups, unsigned bits, pid_t pid,
         const struct cgroup_limits *limits)
{
  const char *const dirs[] = { groups->memory, groups->pids, groups->cpu };
  size_t i;

  if (limits->memory_bytes != 0 && (bits & CGROUP_MEMORY)) {
    if (number_write (groups->memory, "memory.limit_in_bytes",
                      limits->memory_bytes) == -1)
      return -1;
    /* Swap on top of it, where that is counted. */
    if (number_write (groups->memory, "memory.memsw.limit_in_bytes",
                      limits->memory_bytes) == -1
        && errno != ENOENT && errno != EACCES)
      return -1;
  }
  if (limits->pids != 0 && (bits & CGROUP_PIDS)
      && number_write (groups->pids, "pids.max",
                       (uint64_t) limits->pids + 1) == -1)
    return -1;
  if (limits->cpu_millis != 0 && (bits & CGROUP_CPU)
      && (number_write (groups->cpu, "cpu.cfs_period_us", 100000) == -1
          || number_write (groups->cpu, "cpu.cfs_quota_us",
                           (uint64_t) limits->cpu_millis * 100) == -1))
    return -1;
  /* One thread: "tasks" moves it without the lock that a group takes. */
  for (i = 0; i < 3; i++)
    if ((bits & (1u << i))
        && number_write (dirs[i], "tasks", (uint64_t) pid) == -1)
      return -1;
  return 0;
}

static int
v2_fill (const char *dir, pid_t pid, const struct cgroup_limits *limits)
{
  char text[48];

  if (limits->memory_bytes != 0) {
    if (number_write (dir, "memory.max", limits->memory_bytes) == -1)
      return -1;
    value_write (dir, "memory.swap.max", "0");
  }
  if (limits->pids != 0
      && number_write (dir, "pids.max", (uint64_t) limits->pids + 1) == -1)
    return -1;
  snprintf (text, sizeof text, "%" PRIu64 " 100000",
            (uint64_t) limits->cpu_millis * 100);
  if (limits->cpu_millis != 0 && value_write (dir, "cpu.max", text) == -1)
    return -1;
  return number_write (dir, "cgroup.procs", (uint64_t) pid);
}

/* Only the controllers that have something to limit. */
static unsigned
bits_wanted (const struct cgroup_limits *limits)
{
  return (limits->memory_bytes ? CGROUP_MEMORY : 0u)
         | (limits->pids ? CGROUP_PIDS : 0u)
         | (limits->cpu_millis ? CGROUP_CPU : 0u);
}

/* Whether a file says a number that is set, and not above the limit; pages
 * are rounded. */
static int
limit_holds (const char *dir, const char *name, uint64_t limit)
{
  char text[64], *end;
  unsigned long long value;

  if (text_read (dir, name, text, sizeof text) == -1)
    return 0;
  value = strtoull (text, &end, 10);
  return end != text && value <= limit;
}

/* What was asked for, read back: the process is there and the limits are. */
static int
groups_hold (const struct place_of *place, unsigned bits, pid_t pid,
             const struct cgroup_limits *limits)
{
  const int v2 = place->version == 2;
  const char *const dirs[] = { place->memory, place->pids, place->cpu };
  const char *const names[]
    = { v2 ? "memory.max" : "memory.limit_in_bytes", "pids.max",
        v2 ? "cpu.max" : "cpu.cfs_quota_us" };
  const uint64_t most[]
    = { limits->memory_bytes, (uint64_t) limits->pids + 1,
        (uint64_t) limits->cpu_millis * 100 };
  const char *dir;
  size_t i;

  for (i = 0; i < 3; i++) {
    dir = v2 ? place->memory : dirs[i];
    if ((bits & (1u << i))
        && (number_read (dir, "cgroup.procs") != (uint64_t) pid
            || !limit_holds (dir, names[i], most[i]))) {
      errno = EPROTO;
      return -1;
    }
  }
  return 0;
}

static int
groups_make (struct place_of *place, unsigned bits, int folder,
             const char *id, pid_t pid, const struct cgroup_limits *limits)
{
  char *const dirs[] = { place->memory, place->pids, place->cpu };
  char parent[PATH_MAX], text[PATH_MAX] = "";
  size_t at = 0, i, count = place->version == 2 ? 1 : 3;

  for (i = 0; i < count; i++) {
    if (!(bits & (1u << i)) && count == 3)
      continue;
    at += (size_t) snprintf (text + at, sizeof text - at,
                             "%s/" GROUP_PREFIX "%s\n", dirs[i], id);
    if (at >= sizeof text) {
      errno = ENAMETOOLONG;
      return -1;
    }
  }
  if (symlinkat (text, folder, "cgroup") == -1)
    return -1;
  for (i = 0; i < count; i++) {
    if (!(bits & (1u << i)) && count == 3)
      continue;
    snprintf (parent, sizeof parent, "%s", dirs[i]);
    if (group_new (parent, id, dirs[i]) == -1)
      return -1;
  }
  if (place->version == 2)
    return v2_fill (place->memory, pid, limits) == -1
      ? -1 : groups_hold (place, bits, pid, limits);
  return v1_fill (place, bits, pid, limits) == -1
    ? -1 : groups_hold (place, bits, pid, limits);
}

int
cgroup_make (int folder, const char *id, pid_t pid,
             const struct cgroup_limits *limits)
{
  struct place_of *place = malloc (sizeof *place);
  unsigned bits;
  int r;

  if (place == NULL)
    return -1;
  bits = place_find (place, NULL) & bits_wanted (limits);
  r = bits == 0 ? 0 : groups_make (place, bits, folder, id, pid, limits);
  free (place);
  return r == -1 ? -1 : (int) bits;
}

/* ---- what was made ------------------------------------------------------ */

/* The folders that the link names, one a line; count. */
static size_t
groups_named (int folder, char text[PATH_MAX], char *dirs[3])
{
  ssize_t n = readlinkat (folder, "cgroup", text, PATH_MAX - 1);
  size_t count = 0;
  char *line, *end;

  if (n <= 0)
    return 0;
  text[n] = '\0';
  for (line = text; count < 3 && (end = strchr (line, '\n')) != NULL;
       line = end + 1) {
    *end = '\0';
    /* Only ever a group of a sandbox. */
    if (line[0] == '/' && strstr (line, "/" GROUP_PREFIX) != NULL
        && strstr (line, "/../") == NULL)
      dirs[count++] = line;
  }
  return count;
}

int
cgroup_remove (int folder)
{
  char text[PATH_MAX], *dirs[3];
  size_t n = groups_named (folder, text, dirs), i;
  int tries, failed = 0;

  for (i = 0; i < n; i++) {
    value_write (dirs[i], "cgroup.kill", "1");
    for (tries = 0; rmdir (dirs[i]) == -1 && errno == EBUSY && tries < 200;
         tries++)
      poll (NULL, 0, 5);        /* the last of it is still leaving */
    failed |= access (dirs[i], F_OK) == 0;
  }
  return failed ? -1 : 0;
}

int
cgroup_use (int folder, struct cgroup_use *use)
{
  char text[PATH_MAX], *dirs[3];
  size_t n = groups_named (folder, text, dirs), i;

  memset (use, 0, sizeof *use);
  if (n == 0) {
    errno = ENOENT;
    return -1;
  }
  for (i = 0; i < n; i++) {
    use->memory_bytes += number_read (dirs[i], "memory.usage_in_bytes")
                         + number_read (dirs[i], "memory.current");
    use->memory_peak_bytes
      += number_read (dirs[i], "memory.max_usage_in_bytes")
         + number_read (dirs[i], "memory.peak");
    use->oom_kills += keyed_read (dirs[i], "memory.oom_control", "oom_kill")
                      + keyed_read (dirs[i], "memory.events", "oom_kill");
    use->pids += (uint32_t) number_read (dirs[i], "pids.current");
    use->pids_denied += keyed_read (dirs[i], "pids.events", "max");
    use->cpu_us += keyed_read (dirs[i], "cpu.stat", "usage_usec");
  }
  return 0;
}

int
cgroup_use_of (const struct linux_provider *self, const char *id,
               struct cgroup_use *use)
{
  coffer_autoclose int folder = -1;

  memset (use, 0, sizeof *use);
  if (self->runtime < 0 || !sandbox_id_valid (id)) {
    errno = ENOENT;
    return -1;
  }
  folder = openat (self->runtime, id,
                   O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return folder < 0 ? -1 : cgroup_use (folder, use);
}
