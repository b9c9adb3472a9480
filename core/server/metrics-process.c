/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel counts of this process, and which build it is. */

#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/cleanup.h"
#include "server/metrics.h"

/* The 20th to 24th number of /proc/self/stat, which stand behind the name. */
struct stat_line {
  long long threads, start_ticks, pages;
  unsigned long long bytes;
};

static int
stat_read (struct stat_line *out)
{
  char text[1024];
  FILE *file = fopen ("/proc/self/stat", "re");
  char *p = file ? fgets (text, sizeof text, file) : NULL;

  if (file)
    fclose (file);
  p = p ? strrchr (p, ')') : NULL;
  return p && sscanf (p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
                      "%*u %*d %*d %*d %*d %lld %*d %lld %llu %lld",
                      &out->threads, &out->start_ticks, &out->bytes,
                      &out->pages) == 4 ? 0 : -1;
}

static int
files_count (void)
{
  DIR *dir = opendir ("/proc/self/fd");
  int n = 0;

  if (dir == NULL)
    return -1;
  while (readdir (dir))
    n++;
  closedir (dir);
  return n - 3;                 /* . and .. and the folder's own */
}

static double
start_seconds (long long ticks)
{
  const double up = (double) ticks / (double) sysconf (_SC_CLK_TCK);

  return (double) (coffer_realtime_ns () - coffer_boottime_ns ()) / 1e9 + up;
}

static void
one (struct metrics_page *page, const char *name, const char *type,
     const char *help, double value)
{
  metrics_page_family (page, name, type, help);
  metrics_page_value (page, NULL, NULL, value);
}

void
metrics_process (void *data, struct metrics_page *page)
{
  struct stat_line line;
  struct rusage usage;
  struct rlimit files;
  int n = files_count ();

  (void) data;
  metrics_page_family (page, "coffer_build_info", "gauge",
                       "Which coffer this is; always 1.");
  metrics_page_value (page, "version", PACKAGE_VERSION, 1);
  if (getrusage (RUSAGE_SELF, &usage) == 0)
    one (page, "process_cpu_seconds_total", "counter",
         "Processor time that the daemon has used.",
         (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
           + (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
  if (n >= 0)
    one (page, "process_open_fds", "gauge", "Descriptors that are open.", n);
  if (getrlimit (RLIMIT_NOFILE, &files) == 0)
    one (page, "process_max_fds", "gauge", "Descriptors that may be open.",
         (double) files.rlim_cur);
  if (stat_read (&line) < 0)
    return;
  one (page, "process_virtual_memory_bytes", "gauge",
       "Address space of the daemon.", (double) line.bytes);
  one (page, "process_resident_memory_bytes", "gauge",
       "Memory that the daemon holds.",
       (double) line.pages * (double) sysconf (_SC_PAGESIZE));
  one (page, "process_start_time_seconds", "gauge",
       "When the daemon was started, since the epoch.",
       start_seconds (line.start_ticks));
  one (page, "process_threads", "gauge", "Threads of the daemon.",
       (double) line.threads);
}
