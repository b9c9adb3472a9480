/* SPDX-License-Identifier: Apache-2.0 */
/* From fork to the program: what a command finds when it begins.
 *
 * A session of its own, no descriptor but three, signals as a shell leaves
 * them, umask 022, the working folder.  What fails on the way is written to a
 * pipe that the program's start closes. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "keeper.h"

/* ---- environment --------------------------------------------------------- */

static size_t
count (const char *const *v)
{
  size_t n = 0;

  while (v && v[n])
    n++;
  return n;
}

static void
environment_set (const char **env, const char *entry)
{
  size_t length = strcspn (entry, "="), i;

  for (i = 0; env[i]; i++)
    if (strncmp (env[i], entry, length) == 0
        && (env[i][length] == '=' || env[i][length] == '\0'))
      break;
  env[i] = entry;
}

const char **
environment_merge (const char *const *base, const char *const *sandbox,
                   const char *const *own)
{
  const char *const *parts[] = {base, sandbox, own};
  const char **env = calloc (count (base) + count (sandbox) + count (own) + 1,
                             sizeof *env);

  for (size_t i = 0; env && i < 3; i++)
    for (size_t j = 0; parts[i] && parts[i][j]; j++)
      environment_set (env, parts[i][j]);
  return env;
}

static const char *
environment_get (const char *const *env, const char *name)
{
  size_t length = strlen (name);

  for (size_t i = 0; env[i]; i++)
    if (strncmp (env[i], name, length) == 0 && env[i][length] == '=')
      return env[i] + length + 1;
  return NULL;
}

/* ---- in the child -------------------------------------------------------- */

static void __attribute__ ((noreturn))
give_up (int report, uint32_t stage)
{
  struct start_failure failure = {errno, stage};

  coffer_write_all (report, &failure, sizeof failure);
  _exit (127);
}

/* Above 0, 1 and 2, so that no dup2 overwrites one that is still needed. */
static int
raise_fd (int fd)
{
  return fd >= 0 ? fcntl (fd, F_DUPFD_CLOEXEC, 3) :
                   open ("/dev/null", O_RDWR | O_CLOEXEC);
}

static int
set_streams (const struct command *command)
{
  int in = raise_fd (command->in);
  int out = raise_fd (command->tty ? command->in : command->out);
  int err = raise_fd (command->tty ? command->in : command->err);

  return in < 0 || out < 0 || err < 0 || dup2 (in, 0) < 0 || dup2 (out, 1) < 0
         || dup2 (err, 2) < 0 ? -1 : 0;
}

static int
set_terminal (const struct command *command)
{
  struct winsize size = {.ws_row = (unsigned short) command->rows,
                         .ws_col = (unsigned short) command->columns};

  if (!command->tty)
    return 0;
  if (size.ws_row && size.ws_col && ioctl (0, TIOCSWINSZ, &size) < 0)
    return -1;
  return ioctl (0, TIOCSCTTY, 0);
}

/* Soft limits of the worker are not the command's. */
static void
reset_process (void)
{
  struct rlimit limit;
  sigset_t none;

  for (int s = 1; s < NSIG; s++)
    signal (s, SIG_DFL);
  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
  for (int i = 0; i < RLIM_NLIMITS; i++)
    if (getrlimit (i, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
      if (i == RLIMIT_NOFILE || i == RLIMIT_STACK)
        continue;               /* where more is not better */
      limit.rlim_cur = limit.rlim_max;
      setrlimit (i, &limit);
    }
}

/* A program is looked for as a shell does: a name with a slash as it is, any
 * other along PATH, and what exists but may not be run is said rather than what
 * was not found after it. */
static void
run_program (const struct command *command)
{
  const char *name = command->argv[0];
  const char *path = environment_get (command->env, "PATH"), *end;
  char full[PATH_MAX];
  int denied = 0;

  errno = ENOENT;
  if (*name == '\0')
    return;
  if (strchr (name, '/')) {
    execve (name, (char *const *) command->argv, (char *const *) command->env);
    return;
  }
  for (; path; path = *end ? end + 1 : NULL) {
    end = strchrnul (path, ':');
    if ((size_t) snprintf (full, sizeof full, "%.*s%s%s", (int) (end - path),
                           path, end == path ? "./" : "/", name)
        >= sizeof full)
      continue;
    execve (full, (char *const *) command->argv, (char *const *) command->env);
    if (errno == EACCES)
      denied = 1;
    else if (errno != ENOENT && errno != ENOTDIR)
      return;
  }
  errno = denied ? EACCES : ENOENT;
}

static void __attribute__ ((noreturn))
command_main (const struct command *command, int report)
{
  umask (022);
  if (setsid () < 0 || set_streams (command) < 0 || set_terminal (command) < 0)
    give_up (report, STAGE_SETUP);
  if ((command->cwd ? chdir (command->cwd) : fchdir (command->folder)) < 0)
    give_up (report, STAGE_FOLDER);
  if (close_range (3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
    give_up (report, STAGE_SETUP);
  reset_process ();
  run_program (command);
  give_up (report, STAGE_PROGRAM);
}

pid_t
command_start (const struct command *command, int *report)
{
  int ends[2], high;
  pid_t pid;

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return -1;
  pid = fork ();
  if (pid == 0) {
    /* The report must not be among the first three descriptors. */
    high = fcntl (ends[1], F_DUPFD_CLOEXEC, 10);
    if (high < 0)
      _exit (127);
    command_main (command, high);
  }
  coffer_fd_close (&ends[1]);
  if (pid < 0)
    coffer_fd_close (&ends[0]);
  else
    *report = ends[0];
  return pid;
}
