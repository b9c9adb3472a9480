/* SPDX-License-Identifier: Apache-2.0 */
/* Version 1: a group in the tree of each controller that has something to
 * limit, each for itself: one that cannot be had is no reason to go without the
 * others.
 *
 * The init puts itself into those for memory and time: by who is moved alone
 * the kernel need not wait for all its processors (measured: 2 to 15 ms when
 * another process moves it).  Commands put themselves into the
 * one that counts processes, through a descriptor that the init has, which is
 * not counted.  In a sandbox for one command it is counted along.
 *
 * The freezer of this version is not used: what it holds cannot be killed, not
 * even by the end of its namespace's init, and would outlast its time to live
 * (measured: the init hangs in its exit until somebody thaws the group). */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"

static int
memory_fill (const char *dir, const struct cgroup_limits *limits,
             struct cgroup *group)
{
  if (group_write_number (dir, "memory.limit_in_bytes", limits->memory_bytes)
        == -1)
    return -1;
  group_write (dir, "memory.swappiness", "0");
  group->swap_off = group_swapless ();
  if (group_write_number (dir, "memory.memsw.limit_in_bytes",
                          limits->memory_bytes) == 0)
    group->swap_off = 1;
  else if (errno != ENOENT && errno != EACCES)
    return -1;
  return 0;
}

static int
pids_fill (const char *dir, const struct cgroup_limits *limits,
           struct cgroup *group)
{
  return group_write_number (dir, "pids.max",
                             (uint64_t) limits->pids + (group->single != 0));
}

static int
cpu_fill (const char *dir, const struct cgroup_limits *limits,
          struct cgroup *group)
{
  uint64_t quota, period;

  (void) group;
  group_cpu (limits->cpu_millis, &quota, &period);
  return group_write_number (dir, "cpu.cfs_period_us", period) == -1
             || group_write_number (dir, "cpu.cfs_quota_us", quota) == -1
    ? -1 : 0;
}

/* Where a process writes itself in.  Opened by who may: what is written is
 * judged by that. */
static int
tasks_open (const char *dir, int *out)
{
  char path[PATH_MAX];

  if (group_path (path, dir, "tasks") == -1)
    return -1;
  *out = open (path, O_WRONLY | O_CLOEXEC);
  return *out < 0 ? -1 : 0;
}

static int
for_commands (int tree, const struct cgroup *group)
{
  return !group->single && tree == TREE_PIDS;
}

static void
tree_drop (const char *dir, int tree, struct cgroup *group)
{
  int error = errno;

  rmdir (dir);
  group->bits &= ~(1u << tree);
  if (group->why == NULL)
    group->why = place_why (error);
}

static int
tree_holds (const char *dir, int tree, const struct cgroup_limits *limits)
{
  uint64_t quota, period;

  errno = EPROTO;
  switch (tree) {
  case TREE_MEMORY:
    return group_holds (dir, "memory.limit_in_bytes", limits->memory_bytes);
  case TREE_PIDS:
    return group_holds (dir, "pids.max", (uint64_t) limits->pids + 1);
  default:
    group_cpu (limits->cpu_millis, &quota, &period);
    return group_number (dir, "cpu.cfs_period_us") == period
           && group_holds (dir, "cpu.cfs_quota_us", quota);
  }
}

void
v1_make (const struct place *place, const struct cgroup_limits *limits,
         struct cgroup *group)
{
  static int (*const fill[TREES]) (const char *, const struct cgroup_limits *,
                                   struct cgroup *)
    = { memory_fill, pids_fill, cpu_fill };
  int tree;

  for (tree = 0; tree < TREES; tree++) {
    if (!(group->bits & (1u << tree)))
      continue;
    if (group_new (place->dirs[tree]) == -1
        || fill[tree](place->dirs[tree], limits, group) == -1
        || !tree_holds (place->dirs[tree], tree, limits)
        || tasks_open (place->dirs[tree],
                       for_commands (tree, group) ? &group->commands
                                                  : &group->own[tree])
             == -1)
      tree_drop (place->dirs[tree], tree, group);
  }
}

int
v1_has (const struct place *place, pid_t pid, const struct cgroup *group)
{
  int tree;

  for (tree = 0; tree < TREES; tree++)
    if ((group->bits & (1u << tree)) && !for_commands (tree, group)
        && group_number (place->dirs[tree], "cgroup.procs") != (uint64_t) pid)
      return 0;
  return 1;
}
