/* SPDX-License-Identifier: Apache-2.0 */
/* See inventory.h. */

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "inventory.h"

char complaint[2048];

void
complain (const char *fmt, ...)
{
  va_list ap;

  if (complaint[0] != '\0')
    return;
  va_start (ap, fmt);
  vsnprintf (complaint, sizeof complaint, fmt, ap);
  va_end (ap);
}

static size_t
entries (const char *path)
{
  DIR *dir = opendir (path);
  size_t n = 0;

  while (dir != NULL && readdir (dir) != NULL)
    n++;
  if (dir != NULL)
    closedir (dir);
  return n;
}

static size_t
lines (const char *path)
{
  FILE *file = fopen (path, "re");
  size_t n = 0;
  int c;

  while (file != NULL && (c = getc (file)) != EOF)
    n += c == '\n';
  if (file != NULL)
    fclose (file);
  return n;
}

struct inventory
inventory_take (const struct arena *arena)
{
  static const char *const trees[] = { "memory", "pids", "cpu" };
  struct inventory now = { 0 };
  char path[256];
  size_t i;

  now.descriptors = entries ("/proc/self/fd");
  now.mounts = lines ("/proc/self/mountinfo");
  now.files = entries ("/tmp") + entries ("/srv/rw");
  now.runtime = entries (arena->host->runtime_path);
  for (i = 0; arena->cage->cgroup[0] != '\0' && i < 3; i++) {
    snprintf (path, sizeof path, "/sys/fs/cgroup/%s/%.100s", trees[i],
              arena->cage->cgroup);
    now.groups += entries (path);
  }
  return now;
}

void
inventory_same (const struct arena *arena, const struct inventory *before)
{
  struct inventory now = inventory_take (arena);

  if (now.descriptors != before->descriptors)
    complain ("descriptors: %zu, then %zu", before->descriptors,
              now.descriptors);
  if (now.mounts != before->mounts)
    complain ("mounts: %zu, then %zu", before->mounts, now.mounts);
  if (now.files != before->files)
    complain ("files: %zu, then %zu", before->files, now.files);
  if (now.runtime != before->runtime)
    complain ("the runtime folder: %zu, then %zu", before->runtime,
              now.runtime);
  if (now.groups != before->groups)
    complain ("control groups: %zu, then %zu", before->groups, now.groups);
  if (waitpid (-1, NULL, WNOHANG | __WALL) != -1 || errno != ECHILD)
    complain ("a process is left");
}
