/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the provider, from standard input. */

#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>

#include "work.h"

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
