/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a helper program of a provider: by a descriptor, since its bytes were
 * hashed through that and its name may mean others by now. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/process.h>

#define FIRST 3                 /* where the given descriptors begin */
#define FDS_MAX 60

/* Copies above all the places they are put at, so that none is overwritten
 * before it is used. */
static int
copy_fds (const int *fds, size_t n, int *copies)
{
  for (size_t i = 0; i < n; i++)
    if (fds[i] >= 0
        && (copies[i] = fcntl (fds[i], F_DUPFD_CLOEXEC, FIRST + FDS_MAX)) < 0)
      return errno;
  return 0;
}

static int
add_actions (posix_spawn_file_actions_t *actions, const int *copies, size_t n)
{
  int r = 0;

  for (int fd = 0; fd < FIRST && r == 0; fd++)
    r = posix_spawn_file_actions_addopen (actions, fd, "/dev/null", O_RDWR, 0);
  for (size_t i = 0; i < n && r == 0; i++) {
    const int to = FIRST + (int) i;

    r = copies[i] < 0 ? posix_spawn_file_actions_addclose (actions, to)
                      : posix_spawn_file_actions_adddup2 (actions, copies[i],
                                                          to);
  }
  return r ? r : posix_spawn_file_actions_addclosefrom_np (actions,
                                                           FIRST + (int) n);
}

/* The program is the last of them. */
static int
spawn_with (const char *name, const int *copies, size_t n, pid_t *pid)
{
  char path[32], *argv[] = {(char *) (uintptr_t) name, NULL}, *env[] = {NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t all, none;
  int r;

  snprintf (path, sizeof path, "/proc/self/fd/%d", FIRST + (int) n - 1);
  posix_spawn_file_actions_init (&actions);
  posix_spawnattr_init (&attr);
  sigfillset (&all);
  sigemptyset (&none);
  posix_spawnattr_setsigdefault (&attr, &all);
  posix_spawnattr_setsigmask (&attr, &none);
  posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSIGDEF
                                   | POSIX_SPAWN_SETSIGMASK);
  r = add_actions (&actions, copies, n);
  if (r == 0)
    r = posix_spawn (pid, path, &actions, &attr, argv, env);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&actions);
  return r;
}

static int
await_end (pid_t pid)
{
  int status;

  while (waitpid (pid, &status, 0) < 0)
    if (errno != EINTR)
      return errno;
  return WIFEXITED (status) && WEXITSTATUS (status) == 0 ? 0 : EAGAIN;
}

int
coffer_process_start_helper (const char *name, int program, const int *fds,
                             size_t n_fds)
{
  int copies[FDS_MAX], r;
  pid_t pid = -1;

  if (n_fds >= FDS_MAX || program < 0) {
    errno = EINVAL;
    return -1;
  }
  for (size_t i = 0; i < FDS_MAX; i++)
    copies[i] = -1;
  r = copy_fds (fds, n_fds, copies);
  if (r == 0)
    r = copy_fds (&program, 1, copies + n_fds);
  if (r == 0)
    r = spawn_with (name, copies, n_fds + 1, &pid);
  for (size_t i = 0; i <= n_fds; i++)
    coffer_fd_close (&copies[i]);
  if (r == 0)
    r = await_end (pid);
  errno = r;
  return r ? -1 : 0;
}
