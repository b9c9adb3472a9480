/* SPDX-License-Identifier: Apache-2.0 */
/* The second path: what the machine itself says of processes. */

#include <config.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/cleanup.h"
#include "runner.h"

#define MAX_PROC (1024 * 1024)
#define LOOK_NS 2000000

/* The runtime of a container may be a kernel of its own: probe says so. */
static int
has_own_kernel (struct kit *kit)
{
  const struct coffer_fact *fact;
  size_t n;

  for (n = 0; (fact = kit_fact (kit, n)) != NULL; n++)
    if (fact->name && strcmp (fact->name, "host_kernel_shared") == 0)
      return fact->state && strcmp (fact->state, "absent") == 0;
  return 0;
}

int
kit_sees_processes (struct kit *kit)
{
  static const char *const kinds[] = { "none", "namespaces", "container" };
  size_t i;

  if (has_own_kernel (kit))
    return 0;
  for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp (kit_isolation (kit), kinds[i]) == 0)
      return access ("/proc/self/stat", R_OK) == 0;
  return 0;
}

static int
file_has (pid_t pid, const char *name, const char *mark)
{
  char path[64];
  auto_free char *bytes = NULL;
  coffer_autoclose int fd = -1;
  size_t size = 0;

  snprintf (path, sizeof path, "/proc/%d/%s", (int) pid, name);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || coffer_read_whole (fd, MAX_PROC, &bytes, &size) < 0)
    return 0;
  return memmem (bytes, size, mark, strlen (mark)) != NULL;
}

static int
is_number (const char *name)
{
  return isdigit ((unsigned char) name[0]) != 0;        /* it is added up */
}

/* A zombie has neither arguments nor an environment. */
int
kit_marked_processes (struct kit *kit, const char *mark)
{
  DIR *proc = opendir ("/proc");
  const pid_t own = getpid (), parent = getppid ();
  struct dirent *item;
  int n = 0;
  pid_t pid;

  if (!proc)
    kit_fail (kit, "the kit cannot list /proc");
  while ((item = readdir (proc))) {
    pid = is_number (item->d_name) ? (pid_t) atoi (item->d_name) : 0;
    if (pid <= 0 || pid == own || pid == parent)
      continue;
    n += file_has (pid, "cmdline", mark) || file_has (pid, "environ", mark);
  }
  closedir (proc);
  return n;
}

void
kit_wait_until (struct kit *kit, int (*test) (void *data), void *data,
                const char *what)
{
  while (!test (data)) {
    if (kit_left_us (kit) == 0)
      kit_fail (kit, "expected in the time of the case: %s; it did not come",
                what);
    nanosleep (&(struct timespec){ 0, LOOK_NS }, NULL);
  }
}

int64_t
kit_now_us (void)
{
  return coffer_now_ns () / 1000;
}

int64_t
kit_left_us (struct kit *kit)
{
  const int64_t left = (kit->deadline_ns - coffer_now_ns ()) / 1000;

  return left > 0 ? left : 0;
}

/* ---- what a worker holds ------------------------------------------------- */

static uint32_t
count_entries (pid_t pid, const char *name)
{
  char path[64];
  struct dirent *item;
  uint32_t n = 0;
  DIR *dir;

  snprintf (path, sizeof path, "/proc/%d/%s", (int) pid, name);
  dir = opendir (path);
  while (dir && (item = readdir (dir)))
    n += is_number (item->d_name);
  if (dir)
    closedir (dir);
  return n;
}

/* What most of them are, by the links' text without its numbers; "" where they
 * may not be read. */
#define FD_KINDS 16

struct fd_kind {
  char name[64];
  uint32_t n;
};

static void
kind_name (const char *link, char out[64])
{
  size_t n = 0;

  for (; *link && n < 63; link++)
    if (*link < '0' || *link > '9')
      out[n++] = *link;
  out[n] = '\0';
}

static void
kind_count (struct fd_kind *kinds, const char *name)
{
  size_t i = 0;

  while (i < FD_KINDS - 1 && kinds[i].n && strcmp (kinds[i].name, name))
    i++;
  if (kinds[i].n++ == 0)
    snprintf (kinds[i].name, sizeof kinds[i].name, "%s", name);
}

void
kit_most_descriptors (struct kit_instance *instance, char *out, size_t size)
{
  struct fd_kind kinds[FD_KINDS] = { { "", 0 } };
  char path[64], link[256], name[64];
  const struct fd_kind *most = kinds;
  struct dirent *item;
  ssize_t n;
  size_t i;
  DIR *dir;

  snprintf (path, sizeof path, "/proc/%d/fd", (int) kit_worker_pid (instance));
  dir = opendir (path);
  while (dir && (item = readdir (dir)))
    if ((n = readlinkat (dirfd (dir), item->d_name, link, sizeof link - 1))
        > 0) {
      link[n] = '\0';
      kind_name (link, name);
      kind_count (kinds, name);
    }
  if (dir)
    closedir (dir);
  for (i = 1; i < FD_KINDS; i++)
    if (kinds[i].n > most->n)
      most = &kinds[i];
  *out = '\0';
  if (most->n)
    snprintf (out, size, "%u of them %s", most->n, most->name);
}

static uint32_t
count_children (pid_t parent)
{
  char path[64], line[256];
  DIR *proc = opendir ("/proc");
  struct dirent *item;
  uint32_t n = 0;
  int ppid;

  while (proc && (item = readdir (proc))) {
    FILE *stat = NULL;
    char *end;

    if (!is_number (item->d_name))
      continue;
    snprintf (path, sizeof path, "/proc/%.16s/stat", item->d_name);
    stat = fopen (path, "re");
    if (stat && fgets (line, sizeof line, stat)
        && (end = strrchr (line, ')'))
        && sscanf (end + 1, " %*c %d", &ppid) == 1)
      n += ppid == parent;
    if (stat)
      fclose (stat);
  }
  if (proc)
    closedir (proc);
  return n;
}

/* A number of /proc/PID/status, which everybody may read. */
static uint64_t
status_number (pid_t pid, const char *name)
{
  char path[64], line[256];
  unsigned long long value = 0;
  const size_t length = strlen (name);
  FILE *status;

  snprintf (path, sizeof path, "/proc/%d/status", (int) pid);
  status = fopen (path, "re");
  while (status && fgets (line, sizeof line, status))
    if (strncmp (line, name, length) == 0 && line[length] == ':'
        && sscanf (line + length + 1, "%llu", &value) == 1)
      break;
  if (status)
    fclose (status);
  return value;
}

/* Sanitizers keep what was freed, so that no growth says anything. */
static uint64_t
private_kib (pid_t pid)
{
#ifdef COFFER_SANITIZERS
  (void) pid;
  return 0;
#else
  return status_number (pid, "RssAnon") + status_number (pid, "VmSwap");
#endif
}

/* -1: there is no worker. */
int
kit_usage (struct kit_instance *instance, struct kit_usage *out)
{
  const pid_t pid = kit_worker_pid (instance);

  if (pid <= 0)
    return -1;
  *out = (struct kit_usage){
    .fds = count_entries (pid, "fd"), .children = count_children (pid),
    .fd_table = (uint32_t) status_number (pid, "FDSize"),
    .threads = (uint32_t) status_number (pid, "Threads"),
    .private_kib = private_kib (pid)
  };
  if (out->fds == 0)
    out->fds = out->fd_table;
  return out->threads ? 0 : -1;
}
