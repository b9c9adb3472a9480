/* SPDX-License-Identifier: Apache-2.0 */
/* See quiet.h.  Threads are looked at before children: whoever gives a child
 * something to do has woken it before he sleeps himself. */

#define _GNU_SOURCE

#include "quiet.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKS_MAX 20000         /* some seconds */
#define PF_EXITING_ 4

static ssize_t
text_read (const char *path, char *out, size_t size)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read (fd, out, size - 1);

  if (fd >= 0)
    close (fd);
  out[n > 0 ? n : 0] = '\0';
  return n;
}

/* One that is gone does nothing. */
static int
task_works (const char *path)
{
  unsigned flags = 0;
  char text[1024], state = 'X';
  const char *name_end;

  text_read (path, text, sizeof text);
  name_end = strrchr (text, ')');
  if (!name_end
      || sscanf (name_end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags)
           != 2)
    return 0;
  if (state == 'Z' || state == 'X')
    return 0;
  return state != 'S' || (flags & PF_EXITING_) != 0;
}

static int
children_work (const char *tid)
{
  char path[64], text[8192], *at = text, *end;
  long pid;

  snprintf (path, sizeof path, "/proc/self/task/%.16s/children", tid);
  text_read (path, text, sizeof text);  /* of a thread that has gone: none */
  for (; (pid = strtol (at, &end, 10)) > 0; at = end) {
    snprintf (path, sizeof path, "/proc/%ld/stat", pid);
    if (task_works (path))
      return 1;
  }
  return 0;
}

/* 1: yes; -1: nobody knows. */
static int
any_works (int children)
{
  DIR *tasks = opendir ("/proc/self/task");
  struct dirent *entry;
  char path[64];
  int r = tasks ? 0 : -1;

  while (r == 0 && (entry = readdir (tasks)) != NULL) {
    if (entry->d_name[0] == '.')
      continue;
    snprintf (path, sizeof path, "/proc/self/task/%.16s/stat", entry->d_name);
    if (children)
      r = children_work (entry->d_name);
    else if (atoi (entry->d_name) != gettid ())
      r = task_works (path);
  }
  if (tasks)
    closedir (tasks);
  return r;
}

int
quiet_await (void)
{
  int i, r;

  if (access ("/proc/thread-self/children", R_OK) < 0)
    return -1;                  /* CONFIG_PROC_CHILDREN is not set */
  for (i = 0; i < LOOKS_MAX; i++) {
    r = any_works (0);
    if (r == 0)
      r = any_works (1);
    if (r <= 0)
      return r;
    sched_yield ();
  }
  return -1;
}
