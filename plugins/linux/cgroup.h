/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups: what their files share.
 *
 * cgroup.c        what the provider asks for, and what is left to remove
 * cgroup-place.c  where this process may make groups
 * cgroup-v1.c     a tree for each controller
 * cgroup-v2.c     one tree
 *
 * Whatever cannot be had of a tree is a bit that is not set and a sentence that
 * says why; it is for the caller to do without or to refuse. */

#ifndef LINUX_CGROUP_H
#define LINUX_CGROUP_H

#include <limits.h>

#include "linux.h"

#define GROUP_PREFIX "coffer-"
#define HOST_LEAF "coffer-host" /* of the process that makes groups */
#define INIT_LEAF "init"
#define COMMANDS_LEAF "commands"

enum cgroup_tree { TREE_MEMORY, TREE_PIDS, TREE_CPU, TREES };

/* Where this process is: a folder for each controller of version 1, the first
 * alone of version 2; "" is nowhere. */
struct place {
  int version;                  /* 0: none */
  unsigned bits;                /* CGROUP_*, that groups here can have */
  const char *why;              /* of the first that is missing */
  char dirs[TREES][PATH_MAX];
};

/* ---- files of a group --------------------------------------------------- */

/* -1 with errno. */
int group_write (const char *dir, const char *name, const char *value);
int group_write_number (const char *dir, const char *name, uint64_t value);
int group_read (const char *dir, const char *name, char *out, size_t size);
/* 0 where there is none. */
uint64_t group_number (const char *dir, const char *name);
/* Whether a file says a number that is set and not above the limit; the kernel
 * rounds to pages. */
int group_holds (const char *dir, const char *name, uint64_t limit);
/* "DIR/NAME", or -1 with ENAMETOOLONG. */
int group_path (char out[PATH_MAX], const char *dir, const char *name);
/* A new and empty one. */
int group_new (const char *dir);
/* The quota for a period: short ones are more even, and the kernel has no quota
 * below a millisecond. */
void group_cpu (uint32_t millis, uint64_t *quota_us, uint64_t *period_us);
/* Whether swap is nothing to limit: this machine has none. */
int group_swapless (void);

/* ---- cgroup-place.c ----------------------------------------------------- */

/* `own` and `mounts` are files as /proc/self/cgroup and mountinfo are. */
void place_find (struct place *place, unsigned wanted, const char *own,
                 const char *mounts);
/* For people: what an error means, and what helps. */
const char *place_why (int error);

/* ---- the two versions --------------------------------------------------- */

/* Makes the groups that the place names now, with their limits, without a process: the
 * bits that could be had stay in group->bits. */
void v1_make (const struct place *place,
              const struct cgroup_limits *limits, struct cgroup *group);
void v2_make (const char *dir, const struct cgroup_limits *limits,
              struct cgroup *group);
/* Whether the first process has put itself where it belongs. */
int v1_has (const struct place *place, pid_t pid, const struct cgroup *group);
/* Moves it in, and reads all of it back. */
void v2_enter (const char *dir, pid_t pid, const struct cgroup_limits *limits,
               struct cgroup *group);
/* Whether groups below this one can have limits, once processes in it have
 * been moved to a leaf where that is for us to do.  The bits, or an errno. */
unsigned v2_prepare (char dir[PATH_MAX], unsigned wanted, int *error);

#endif /* LINUX_CGROUP_H */
