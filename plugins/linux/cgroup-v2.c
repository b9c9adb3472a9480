/* SPDX-License-Identifier: Apache-2.0 */
/* Version 2: one group for each sandbox.
 *
 *   coffer-ID            memory.max, memory.swap.max, cpu.max
 *   coffer-ID/init       the init and its monitors, which are never stopped
 *   coffer-ID/commands   memory.oom.group, pids.max, cgroup.freeze
 *
 * For memory all commands end together, and the init is left to say so.  A
 * sandbox for one command has no leaves: moving a process waits for every
 * processor, and what is left of it to tell is told from outside. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cgroup.h"

#define SETTLE_ROUNDS 8

static const struct {
  unsigned bit;
  const char *name, *enable;
} controllers[] = {
  { CGROUP_MEMORY, "memory", "+memory" },
  { CGROUP_PIDS, "pids", "+pids" },
  { CGROUP_CPU, "cpu", "+cpu" },
};

/* ---- where groups are made ---------------------------------------------- */

static int
words_have (const char *words, const char *word)
{
  size_t n = strlen (word);
  const char *at = words;

  while ((at = strstr (at, word)) != NULL) {
    if ((at == words || at[-1] == ' ')
        && (at[n] == ' ' || at[n] == '\n' || at[n] == '\0'))
      return 1;
    at += n;
  }
  return 0;
}

static unsigned
controllers_of (const char *dir, const char *file)
{
  char words[512];
  unsigned bits = 0;
  size_t i;

  if (group_read (dir, file, words, sizeof words) == -1)
    return 0;
  for (i = 0; i < sizeof controllers / sizeof controllers[0]; i++)
    if (words_have (words, controllers[i].name))
      bits |= controllers[i].bit;
  return bits;
}

/* Whether the group is handed over to whoever is in it, so that its processes
 * are ours to move: systemd says so; an ordinary user owns no other. */
static int
is_delegated (const char *dir)
{
  char value[8];

  return geteuid () != 0 || getxattr (dir, "user.delegate", value, 8) > 0
         || getxattr (dir, "trusted.delegate", value, 8) > 0;
}

/* Moves every process of the group to a leaf of it; some may just be made. */
static int
processes_settle (const char *dir)
{
  char leaf[PATH_MAX], text[8192], *line, *end;
  int moved = 0;

  if (group_path (leaf, dir, HOST_LEAF) == -1
      || (mkdir (leaf, 0755) == -1 && errno != EEXIST)
      || group_read (dir, "cgroup.procs", text, sizeof text) == -1)
    return -1;
  for (line = text; (end = strchr (line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    if (group_write (leaf, "cgroup.procs", line) == 0)
      moved = 1;
    else if (errno != ESRCH)
      return -1;
  }
  return moved;
}

/* For pids and cpu alone the kernel lets a group keep its processes, and then
 * nothing can be put into the groups below it.  Only the root may have both. */
static int
processes_leave (const char *dir)
{
  char text[512];
  int round;

  if (group_read (dir, "cgroup.type", text, sizeof text) == -1)
    return 0;
  for (round = 0;; round++) {
    if (group_read (dir, "cgroup.procs", text, sizeof text) == -1)
      return -1;
    if (text[0] == '\0')
      return 0;
    if (round == SETTLE_ROUNDS || !is_delegated (dir)
        || processes_settle (dir) == -1) {
      errno = EBUSY;
      return -1;
    }
  }
}

static int
controller_enable (const char *dir, const char *enable)
{
  int round;

  for (round = 0;; round++) {
    if (group_write (dir, "cgroup.subtree_control", enable) == 0)
      return 0;
    if (errno != EBUSY)
      return -1;
    if (round == SETTLE_ROUNDS || !is_delegated (dir)
        || processes_settle (dir) == -1) {
      errno = EBUSY;
      return -1;
    }
  }
}

unsigned
v2_prepare (char dir[PATH_MAX], unsigned wanted, int *error)
{
  unsigned bits, offered;
  char *slash = strrchr (dir, '/');
  size_t i;

  if (slash != NULL && strcmp (slash + 1, HOST_LEAF) == 0)
    *slash = '\0';
  *error = 0;
  bits = controllers_of (dir, "cgroup.subtree_control");
  offered = controllers_of (dir, "cgroup.controllers");
  if ((wanted & offered) != 0 && processes_leave (dir) == -1) {
    *error = errno;
    return CGROUP_FREEZE & wanted;
  }
  for (i = 0; i < sizeof controllers / sizeof controllers[0]; i++) {
    if (!(wanted & offered & ~bits & controllers[i].bit))
      continue;
    if (controller_enable (dir, controllers[i].enable) == 0)
      bits |= controllers[i].bit;
    else if (*error == 0)
      *error = errno;
  }
  return (bits | CGROUP_FREEZE) & wanted;
}

/* ---- one group ---------------------------------------------------------- */

static void
bit_drop (unsigned bit, struct cgroup *group)
{
  if (group->why == NULL)
    group->why = place_why (errno);
  group->bits &= ~bit;
}

static void
memory_fill (const char *dir, const char *leaf,
             const struct cgroup_limits *limits, struct cgroup *group)
{
  if (group_write_number (dir, "memory.max", limits->memory_bytes) == -1
      || group_write (leaf, "memory.oom.group", "1") == -1)
    bit_drop (CGROUP_MEMORY, group);
  else
    group->swap_off = group_write (dir, "memory.swap.max", "0") == 0
                      || group_swapless ();
}

static void
pids_fill (const char *leaf, const struct cgroup_limits *limits,
           struct cgroup *group)
{
  if (group_write_number (leaf, "pids.max",
                          (uint64_t) limits->pids + (group->single != 0))
        == -1)
    bit_drop (CGROUP_PIDS, group);
}

static void
cpu_fill (const char *dir, const struct cgroup_limits *limits,
          struct cgroup *group)
{
  uint64_t quota, period;
  char text[48];

  group_cpu (limits->cpu_millis, &quota, &period);
  snprintf (text, sizeof text, "%" PRIu64 " %" PRIu64, quota, period);
  if (group_write (dir, "cpu.max", text) == -1)
    bit_drop (CGROUP_CPU, group);
}

static int
leaf_make (char out[PATH_MAX], const char *dir, const char *name)
{
  return group_path (out, dir, name) == -1 || group_new (out) == -1 ? -1 : 0;
}

/* The two leaves, and what of the controllers the second needs. */
static int
leaves_make (const char *dir, char init[PATH_MAX], char commands[PATH_MAX],
             const struct cgroup *group)
{
  return ((group->bits & CGROUP_MEMORY)
          && group_write (dir, "cgroup.subtree_control", "+memory") == -1)
             || ((group->bits & CGROUP_PIDS)
                 && group_write (dir, "cgroup.subtree_control", "+pids") == -1)
             || leaf_make (init, dir, INIT_LEAF) == -1
             || leaf_make (commands, dir, COMMANDS_LEAF) == -1
    ? -1 : 0;
}

static void
group_fill (const char *dir, const char *leaf,
            const struct cgroup_limits *limits, struct cgroup *group)
{
  if (group->bits & CGROUP_MEMORY)
    memory_fill (dir, leaf, limits, group);
  if (group->bits & CGROUP_PIDS)
    pids_fill (leaf, limits, group);
  if (group->bits & CGROUP_CPU)
    cpu_fill (dir, limits, group);
}

void
v2_make (const char *dir, const struct cgroup_limits *limits,
         struct cgroup *group)
{
  char init[PATH_MAX], commands[PATH_MAX], path[PATH_MAX];
  const char *leaf = group->single ? dir : commands;

  if (group_new (dir) == -1
      || (!group->single && leaves_make (dir, init, commands, group) == -1)) {
    bit_drop (~0u, group);
    return;
  }
  group_fill (dir, leaf, limits, group);
  group->into = open (group->single ? dir : init,
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (group_path (path, leaf, "cgroup.procs") == 0)
    *(group->single ? &group->whole : &group->commands)
      = open (path, O_WRONLY | O_CLOEXEC);
  /* What no command could enter holds none. */
  if (group->into < 0
      || (group->single ? group->whole : group->commands) < 0)
    bit_drop (~0u, group);
}

static unsigned
bits_holding (const char *dir, const char *leaf,
              const struct cgroup_limits *limits)
{
  unsigned bits = CGROUP_FREEZE;
  uint64_t quota, period;

  group_cpu (limits->cpu_millis, &quota, &period);
  if (group_holds (dir, "memory.max", limits->memory_bytes)
      && group_number (leaf, "memory.oom.group") == 1)
    bits |= CGROUP_MEMORY;
  if (group_holds (leaf, "pids.max", (uint64_t) limits->pids + 1))
    bits |= CGROUP_PIDS;
  if (group_holds (dir, "cpu.max", quota))
    bits |= CGROUP_CPU;
  return bits;
}

void
v2_enter (const char *dir, pid_t pid, const struct cgroup_limits *limits,
          struct cgroup *group)
{
  const char *const own = group->single ? "." : INIT_LEAF;
  const char *const theirs = group->single ? "." : COMMANDS_LEAF;
  char init[PATH_MAX], commands[PATH_MAX];

  if (group_path (init, dir, own) == -1
      || group_path (commands, dir, theirs) == -1)
    return bit_drop (~0u, group);
  if (!group->entered
      && group_write_number (init, "cgroup.procs", (uint64_t) pid) == -1)
    return bit_drop (~0u, group);
  errno = EPROTO;
  if (group_number (init, "cgroup.procs") != (uint64_t) pid)
    return bit_drop (~0u, group);
  errno = EPROTO;
  if (group->bits & ~bits_holding (dir, commands, limits))
    bit_drop (group->bits & ~bits_holding (dir, commands, limits), group);
}
