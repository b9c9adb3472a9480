/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a debugger, before the module is loaded: so that breakpoints in
 * its constructors and in `open` can be set.  With all rights given up already,
 * so that what is debugged is what runs; only the file that says whether
 * somebody traces us is opened before. */

#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "provider/worker/rights.h"

#define LOOK_NS 20000000
#define LONGEST_NS (INT64_C (600) * 1000000000)

int
hold_open (const struct rights *rights)
{
  return rights->hold ? open ("/proc/self/status", O_RDONLY | O_CLOEXEC) : -1;
}

static int
is_traced (int status)
{
  char text[4096];
  ssize_t n = pread (status, text, sizeof text - 1, 0);
  const char *at;
  int tracer = 0;

  if (n <= 0)
    return 1;                   /* no way to tell: go on */
  text[n] = '\0';
  at = strstr (text, "\nTracerPid:");
  return !at || sscanf (at, "\nTracerPid: %d", &tracer) != 1 || tracer != 0;
}

void
hold_wait (int status)
{
  int64_t until = coffer_now_ns () + LONGEST_NS;

  while (status >= 0 && !is_traced (status) && coffer_now_ns () < until)
    nanosleep (&(struct timespec){ 0, LOOK_NS }, NULL);
}
