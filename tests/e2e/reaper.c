/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one scenario and adopts whatever it leaves: `reaper COMMAND ARG…`.
 *
 * A subreaper is the parent of every orphan below it, daemons included, so
 * that "the processes of this scenario" is an exact set even when others run
 * beside it.  The scenario finds the reaper's pid in E2E_REAPER.  When it has
 * ended, what it left is killed; the scenario itself has reported it.
 *
 * A shell cannot take back that a signal is ignored, as nohup and `&` have it:
 * here every signal is given its default, so that signals can be tried. */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The pid of some child that has not ended, or 0. */
static pid_t
living_child (void)
{
  char path[64];
  FILE *list;
  int pid = 0;

  snprintf (path, sizeof path, "/proc/self/task/%d/children", (int) getpid ());
  list = fopen (path, "re");
  if (!list)
    return 0;
  if (fscanf (list, "%d", &pid) != 1)
    pid = 0;
  fclose (list);
  return pid;
}

static pid_t child;

/* Whoever ends the reaper means the scenario, which cleans up after itself. */
static void
pass_on (int number)
{
  if (child > 0)
    kill (child, number);
}

static void
signals_default (void)
{
  int number;

  for (number = 1; number < NSIG; number++)
    if (number != SIGKILL && number != SIGSTOP)
      signal (number, SIG_DFL);
}

int
main (int argc, char **argv)
{
  char number[16];
  struct sigaction action = { .sa_handler = pass_on };
  pid_t ended, left;
  int status = 0, kept = 0;

  if (argc < 2)
    return 2;
  if (prctl (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) {
    perror ("reaper: PR_SET_CHILD_SUBREAPER");
    return 1;
  }
  snprintf (number, sizeof number, "%d", (int) getpid ());
  setenv ("E2E_REAPER", number, 1);
  child = fork ();
  if (child > 0) {
    sigaction (SIGTERM, &action, NULL);
    sigaction (SIGINT, &action, NULL);
    sigaction (SIGHUP, &action, NULL);
  }
  if (child == 0) {
    signals_default ();
    execvp (argv[1], argv + 1);
    perror ("reaper: exec");
    _exit (127);
  }
  while (child > 0 && ((ended = wait (&status)) >= 0 || errno == EINTR))
    if (ended == child) {
      kept = status;
      break;
    }
  while ((left = living_child ()) > 0) {
    kill (left, SIGKILL);
    waitpid (left, NULL, 0);
  }
  return WIFEXITED (kept) ? WEXITSTATUS (kept) : 1;
}
