/* SPDX-License-Identifier: Apache-2.0 */
/* What everybody on the machine can read of a process is its command line,
 * which lies in memory that its module can write.  So it gets an empty one: to
 * the kernel it begins where it ends.  Its name stays, and cannot be changed
 * once the filter is there. */

#include "config.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "provider/worker/rights.h"

#define FIRST 26                /* of /proc/PID/stat, counted from 1 */
#define LAST 51

/* Fields FIRST to LAST: the layout of memory.  -1: there is no such line. */
static int
read_layout (unsigned long long fields[LAST + 1])
{
  coffer_autoclose int fd = open ("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  char line[2048], *at, *next;
  ssize_t n = fd < 0 ? -1 : read (fd, line, sizeof line - 1);
  int i;

  if (n <= 0)
    return -1;
  line[n] = '\0';
  at = strrchr (line, ')');     /* ends field 2, which may hold anything */
  for (i = 3; at && i <= LAST; i++) {
    at = strchr (at, ' ');
    if (at && i >= FIRST) {
      fields[i] = strtoull (at, &next, 10);
      if (next == at)
        return -1;
    }
    at = at ? at + 1 : NULL;
  }
  return at ? 0 : -1;
}

/* A kernel without it leaves the line as it was, and a module thirteen bytes
 * to show. */
void
title_hide (void)
{
  unsigned long long at[LAST + 1];
  struct prctl_mm_map map;

  if (read_layout (at) < 0)
    return;
  map = (struct prctl_mm_map){
    .start_code = at[26], .end_code = at[27], .start_stack = at[28],
    .start_data = at[45], .end_data = at[46], .start_brk = at[47],
    .brk = (uintptr_t) sbrk (0), .arg_start = at[48], .arg_end = at[48],
    .env_start = at[48], .env_end = at[48], .exe_fd = (uint32_t) -1
  };
  prctl (PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}
