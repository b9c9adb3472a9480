/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a keeper: its socket, its plan, its descriptors. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "host.h"

/* Bound and listening before the keeper runs, so that whoever connects waits
 * for it instead of missing it. */
static int
make_listener (int folder)
{
  coffer_autoclose int fd = coffer_socket_bind (folder, KEEPER_SOCKET);

  if (fd < 0 || listen (fd, 64) < 0)
    return -1;
  return coffer_fd_steal (&fd);
}

static void
add_string (struct coffer_buffer *plan, const char *s)
{
  coffer_buffer_add (plan, s, strlen (s) + 1);
}

/* In a memory file and not in arguments: the environment may be secret. */
static int
make_plan (const char *sandbox, const struct coffer_sandbox_spec *spec)
{
  coffer_autobuffer struct coffer_buffer plan = {0};
  struct keeper_plan head = {
    .size = sizeof head,
    .flags = (spec->lifeline >= 0 ? KEEPER_HAS_LIFELINE : 0) |
             (spec->single_exec ? KEEPER_SINGLE : 0),
    .ttl_ms = spec->ttl_ms,
  };

  while (spec->env && spec->env[head.n_env])
    head.n_env++;
  coffer_buffer_add (&plan, &head, sizeof head);
  add_string (&plan, sandbox);
  add_string (&plan, spec->workdir ? spec->workdir : "");
  for (uint32_t i = 0; i < head.n_env; i++)
    add_string (&plan, spec->env[i]);
  if (plan.failed || plan.size > KEEPER_BLOCK_MAX) {
    errno = plan.failed ? ENOMEM : E2BIG;
    return -1;
  }
  return coffer_memfd_sealed ("coffer-plan", plan.data, plan.size);
}

/* `from` as `to` in the child.  A copy above all the targets, so that none is
 * overwritten before it is used. */
static int
pass_fd (posix_spawn_file_actions_t *actions, int from, int to, int *copy)
{
  *copy = fcntl (from, F_DUPFD_CLOEXEC, 64);
  if (*copy < 0)
    return errno;
  return posix_spawn_file_actions_adddup2 (actions, *copy, to);
}

static int
add_actions (posix_spawn_file_actions_t *actions, const int *fds, int *copies)
{
  int r = 0;

  for (int fd = 0; fd < 3 && r == 0; fd++)
    r = posix_spawn_file_actions_addopen (actions, fd, "/dev/null", O_RDWR, 0);
  for (size_t i = 0; i < KEEPER_FD_END - KEEPER_FD_FOLDER && r == 0; i++)
    if (fds[i] >= 0)
      r = pass_fd (actions, fds[i], KEEPER_FD_FOLDER + (int) i, &copies[i]);
  if (r == 0 && fds[KEEPER_FD_LIFELINE - KEEPER_FD_FOLDER] < 0)
    r = posix_spawn_file_actions_addclose (actions, KEEPER_FD_LIFELINE);
  if (r == 0)
    r = posix_spawn_file_actions_addclosefrom_np (actions, KEEPER_FD_END);
  return r;
}

static int
spawn (const int *fds, pid_t *pid)
{
  int copies[KEEPER_FD_END - KEEPER_FD_FOLDER] = {-1, -1, -1, -1, -1, -1};
  char path[32], *argv[] = {(char *) "coffer-keeper", NULL}, *env[] = {NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t all, none;
  int r;

  snprintf (path, sizeof path, "/proc/self/fd/%d", KEEPER_FD_PROGRAM);
  posix_spawn_file_actions_init (&actions);
  posix_spawnattr_init (&attr);
  sigfillset (&all);
  sigemptyset (&none);
  posix_spawnattr_setsigdefault (&attr, &all);
  posix_spawnattr_setsigmask (&attr, &none);
  posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSIGDEF |
                            POSIX_SPAWN_SETSIGMASK);
  r = add_actions (&actions, fds, copies);
  if (r == 0)
    r = posix_spawn (pid, path, &actions, &attr, argv, env);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&actions);
  for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++)
    coffer_fd_close (&copies[i]);
  return r;
}

int
keeper_spawn (const struct host *host, const char *sandbox, int folder,
              const struct coffer_sandbox_spec *spec)
{
  coffer_autoclose int listener = make_listener (folder);
  coffer_autoclose int plan = -1;
  int status, r;
  pid_t pid;

  if (listener < 0 || (plan = make_plan (sandbox, spec)) < 0)
    return errno;
  r = spawn ((const int[]) {folder, host->runtime, listener, plan,
                            spec->lifeline, host->keeper}, &pid);
  if (r)
    return r;
  /* It has forked the keeper and ends. */
  while (waitpid (pid, &status, 0) < 0)
    if (errno != EINTR)
      return errno;
  return WIFEXITED (status) && WEXITSTATUS (status) == 0 ? 0 : EAGAIN;
}
