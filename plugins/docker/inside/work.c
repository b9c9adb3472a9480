/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the provider, from standard input.
 *
 * When the engine is gone nobody tells a program inside: its input does not end,
 * and what it writes is taken by nobody.  So work has the time that its call has,
 * and gives up then. */

#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "work.h"

#define LATER_SECONDS 2         /* than the call ends */

int64_t
work_end_ns (const struct wire_request *request)
{
  const uint64_t most_ms = UINT64_C (1000) * WORK_SECONDS_MAX;
  const uint64_t ms = request->timeout_ms;

  if (ms == 0)
    return INT64_MAX;
  return coffer_now_ns () + LATER_SECONDS * INT64_C (1000000000)
         + (int64_t) (ms < most_ms ? ms : most_ms) * 1000000;
}

/* What waits for nobody to read it looks at no clock, and is ended from outside:
 * but what keeps others still, which has its own way. */
static void
limit_time (const struct wire_request *request)
{
  const int64_t left_ns = work_end_ns (request) - coffer_now_ns ();

  signal (SIGALRM, SIG_DFL);
  if (request->timeout_ms > 0 && !(request->flags & WIRE_STILL))
    alarm ((unsigned) (left_ns / 1000000000) + LATER_SECONDS + 1);
}

/* Ends all that this user runs in the sandbox, when what keeps a command's time was
 * stopped or ended from inside. */
static int
sweep (void)
{
  kill (-1, SIGKILL);           /* ESRCH: there was none */
  say (WIRE_DONE, NULL, 0);
  return INSIDE_OK;
}

int
inside_work (int argc, char **argv)
{
  struct wire_request request;
  char *block;
  int status;

  (void) argc, (void) argv;
  signal (SIGPIPE, SIG_IGN);
  if (hear (&request, &block) < 0)
    return INSIDE_USAGE;
  if (request.op != WIRE_RUN)
    limit_time (&request);
  if (request.op == WIRE_RUN)
    status = run_command (&request, block);
  else if (request.op == WIRE_SWEEP)
    status = sweep ();
  else if (request.op == WIRE_DIAL)
    status = dial_port (&request);
  else if (request.op < WIRE_SWEEP)
    status = kept_work (&request);
  else
    status = files_work (&request, block);
  free (block);
  return status;
}
