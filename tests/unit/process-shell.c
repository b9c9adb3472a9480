/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a shell's, how they end, and who is left of them. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <coffer/fd.h>
#include <coffer/process.h>

#include "process-shell.h"

const char *const plain_env[] = {PATH_ENTRY, NULL};
char mark[64];           /* "COFFER_TEST_RUN=PID/" */

int
start (const char *const *argv, const char *const *env, int out,
       const char **failed)
{
  const struct coffer_process process = {
    .argv = argv, .env = env ? env : plain_env, .in = -1, .out = out,
    .err = -1,
  };

  return coffer_process_start (&process, failed);
}

/* How it ended, within ten seconds. */
struct coffer_process_end
end_of (int pidfd)
{
  struct coffer_process_end end = {.code = -2};

  assert_true (pidfd >= 0);
  assert_int_equal (coffer_wait_fd (pidfd, POLLIN, coffer_now_ns ()
                                                   + 10 * SECOND, -1), 1);
  assert_int_equal (coffer_process_reap (pidfd, &end), 0);
  coffer_fd_close (&pidfd);
  return end;
}

void
assert_no_children (void)
{
  assert_int_equal (waitpid (-1, NULL, WNOHANG), -1);
  assert_int_equal (errno, ECHILD);
}

/* Whatever else a test does, nobody is left. */
int
clear (void **state)
{
  (void) state;
  for (int i = 0; i < 1000; i++) {
    if (coffer_process_signal_marked (mark, SIGKILL) == 0)
      return 0;
    poll (NULL, 0, 5);
  }
  return -1;
}

void
handle (int number)
{
  (void) number;
}
