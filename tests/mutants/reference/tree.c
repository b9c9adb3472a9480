/* SPDX-License-Identifier: Apache-2.0 */
/* Everything below this process, by the lists of children that the kernel keeps
 * for each thread.  This process has one thread. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "keeper.h"

#define DEPTH_MAX 64
#define TEXT_MAX (1u << 20)
#define KILL_NS (INT64_C (10) * 1000000000)

/* ---- children ------------------------------------------------------------ */

static char *
read_text (const char *path)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC);
  char *text = NULL;
  size_t size;

  return fd < 0 || coffer_read_whole (fd, TEXT_MAX, &text, &size) < 0 ? NULL :
    text;
}

/* The kernel may leave one out while others come and go: what is the same twice
 * is whole. */
static char *
read_children (const char *path)
{
  char *text = read_text (path), *again = NULL;

  for (int tries = 0; text && tries < 10; tries++) {
    again = read_text (path);
    if (again && strcmp (text, again) == 0)
      break;
    free (text);
    text = again;
    again = NULL;
  }
  free (again);
  return text;
}

static int walk (pid_t pid, unsigned depth, int last, tree_visit *visit,
                 void *data);

/* The children of one thread, which `text` lists. */
static int
walk_list (const char *text, unsigned depth, int last, tree_visit *visit,
           void *data)
{
  char *end;
  int r = 0;

  for (long pid; r == 0 && (pid = strtol (text, &end, 10)) > 0; text = end) {
    if (!last)
      r = visit (data, (pid_t) pid);
    if (r == 0 && depth > 0)
      r = walk ((pid_t) pid, depth - 1, last, visit, data);
    if (r == 0 && last)
      r = visit (data, (pid_t) pid);
  }
  return r;
}

/* Visits each descendant before those below it, or with `last` after them. */
static int
walk (pid_t pid, unsigned depth, int last, tree_visit *visit, void *data)
{
  char path[64], *text;
  struct dirent *entry;
  DIR *tasks;
  int r = 0;

  snprintf (path, sizeof path, "/proc/%d/task", (int) pid);
  tasks = opendir (path);
  while (r == 0 && tasks && (entry = readdir (tasks))) {
    if (entry->d_name[0] == '.')
      continue;
    snprintf (path, sizeof path, "/proc/%d/task/%.16s/children", (int) pid,
              entry->d_name);
    text = read_children (path);
    if (text)
      r = walk_list (text, depth, last, visit, data);
    free (text);
  }
  if (tasks)
    closedir (tasks);
  return r;
}

int
tree_walk (tree_visit *visit, void *data)
{
  return walk (getpid (), DEPTH_MAX, 0, visit, data);
}

/* ---- killing ------------------------------------------------------------- */

void
tree_kill (coffer_reaped *reaped, void *data)
{
  coffer_descendants_kill (NULL, 0, coffer_now_ns () + KILL_NS, reaped, data);
}

/* ---- stopping ------------------------------------------------------------ */

static int
is_still (char state)
{
  return strchr ("TtZXx", state) != NULL;
}

/* Waits until it is: then it can neither reap nor fork. */
static int
stop_one (void *data, pid_t pid)
{
  struct tree_facts facts;
  unsigned *moved = data;

  if (tree_facts_read (pid, &facts) < 0 || is_still (facts.state))
    return 0;
  ++*moved;
  kill (pid, SIGSTOP);
  for (int tries = 0; tries < 1000; tries++) {
    if (tree_facts_read (pid, &facts) < 0 || is_still (facts.state))
      break;
    poll (NULL, 0, 1);
  }
  return 0;
}

void
tree_stop (void)
{
  unsigned moved, rounds = 0;

  do {
    moved = 0;
    tree_walk (stop_one, &moved);
  } while (moved > 0 && ++rounds < 100);
}

static int
continue_one (void *data, pid_t pid)
{
  (void) data;
  kill (pid, SIGCONT);
  return 0;
}

/* Children first: a parent that goes on may reap. */
void
tree_continue (void)
{
  walk (getpid (), DEPTH_MAX, 1, continue_one, NULL);
}

/* ---- facts --------------------------------------------------------------- */

/* The name in /proc/PID/stat may hold anything, so the fields are found behind
 * its last parenthesis. */
int
tree_facts_read (pid_t pid, struct tree_facts *facts)
{
  unsigned long long user, system, children_user, children_system, pages;
  const uint64_t tick_us = 1000000 / (uint64_t) sysconf (_SC_CLK_TCK);
  char path[32], *text, *at;
  int n = 0;

  snprintf (path, sizeof path, "/proc/%d/stat", (int) pid);
  text = read_text (path);
  at = text ? strrchr (text, ')') : NULL;
  if (at)
    n = sscanf (at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu"
                " %llu %llu %*d %*d %*d %*d %*u %*u %llu", &facts->state, &user,
                &system, &children_user, &children_system, &pages);
  free (text);
  if (n != 6)
    return -1;
  facts->cpu_us = (user + system + children_user + children_system) * tick_us;
  facts->memory_bytes = pages * (uint64_t) sysconf (_SC_PAGESIZE);
  return 0;
}

/* ---- ports --------------------------------------------------------------- */

/* Sockets that listen on the port where loopback reaches them. */
struct listeners {
  unsigned long inodes[16];
  size_t n;
};

static void
find_listeners (const char *table, uint32_t port, struct listeners *out)
{
  char *text = read_text (table), *line = text;
  unsigned local, state;
  unsigned long inode;

  while (line && (line = strchr (line, '\n')) && *++line)
    if (sscanf (line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x"
                " %*x:%*x %*x %*u %*u %lu", &local, &state, &inode) == 3
        && local == port && state == 0x0A
        && out->n < sizeof out->inodes / sizeof out->inodes[0])
      out->inodes[out->n++] = inode;
  free (text);
}

static int
link_is_listener (const char *link, const struct listeners *listeners)
{
  unsigned long inode;

  if (sscanf (link, "socket:[%lu]", &inode) != 1)
    return 0;
  for (size_t i = 0; i < listeners->n; i++)
    if (listeners->inodes[i] == inode)
      return 1;
  return 0;
}

static int
has_listener (void *data, pid_t pid)
{
  struct dirent *entry;
  char path[64], link[64];
  int found = 0;
  ssize_t n;
  DIR *fds;

  snprintf (path, sizeof path, "/proc/%d/fd", (int) pid);
  fds = opendir (path);
  while (!found && fds && (entry = readdir (fds))) {
    n = readlinkat (dirfd (fds), entry->d_name, link, sizeof link - 1);
    link[n < 0 ? 0 : n] = '\0';
    found = link_is_listener (link, data);
  }
  if (fds)
    closedir (fds);
  return found;
}

uint32_t
tree_listens (uint32_t port)
{
  struct listeners v4 = {.n = 0}, v6 = {.n = 0};

  find_listeners ("/proc/net/tcp", port, &v4);
  if (v4.n > 0 && tree_walk (has_listener, &v4))
    return 4;
  find_listeners ("/proc/net/tcp6", port, &v6);
  return v6.n > 0 && tree_walk (has_listener, &v6) ? 6 : 0;
}
