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

#include "reference.h"

/* Listening before the keeper runs: whoever connects waits for it instead of
 * taking the sandbox for one that is gone. */
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
  coffer_autobuffer struct coffer_buffer bytes = {0};
  struct plan plan = {
    .flags = (spec->lifeline >= 0 ? PLAN_LIFELINE : 0)
             | (spec->single_exec ? PLAN_SINGLE : 0),
    .ttl_ms = spec->ttl_ms,
  };

  while (spec->env && spec->env[plan.n_env])
    plan.n_env++;
  coffer_buffer_add (&bytes, &plan, sizeof plan);
  add_string (&bytes, sandbox);
  add_string (&bytes, spec->workdir ? spec->workdir : "");
  for (uint32_t i = 0; i < plan.n_env; i++)
    add_string (&bytes, spec->env[i]);
  if (bytes.failed || bytes.size > BLOCK_MAX) {
    errno = bytes.failed ? ENOMEM : E2BIG;
    return -1;
  }
  return coffer_memfd_sealed ("plan", bytes.data, bytes.size);
}

/* The descriptors, each above all the places they are put at, so that none is
 * overwritten before it is used. */
static int
copy_fds (const int *fds, int *copies, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (fds[i] >= 0 && (copies[i] = fcntl (fds[i], F_DUPFD_CLOEXEC, 64)) < 0)
      return errno;
  return 0;
}

static int
add_actions (posix_spawn_file_actions_t *actions, const int *copies, size_t n)
{
  int r = 0;

  for (int fd = 0; fd < 3 && r == 0; fd++)
    r = posix_spawn_file_actions_addopen (actions, fd, "/dev/null", O_RDWR, 0);
  for (size_t i = 0; i < n && r == 0; i++) {
    const int to = KEEPER_FD_FOLDER + (int) i;

    r = copies[i] < 0 ? posix_spawn_file_actions_addclose (actions, to) :
      posix_spawn_file_actions_adddup2 (actions, copies[i], to);
  }
  if (r == 0)
    r = posix_spawn_file_actions_addclosefrom_np (actions, KEEPER_FD_END);
  return r;
}

/* With no environment, and with the signals of a fresh process. */
static int
spawn_with (const int *copies, size_t n, pid_t *pid)
{
  char path[32], *argv[] = {(char *) "reference-keeper", NULL}, *env[] = {NULL};
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
  posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSIGDEF
                                   | POSIX_SPAWN_SETSIGMASK);
  r = add_actions (&actions, copies, n);
  if (r == 0)
    r = posix_spawn (pid, path, &actions, &attr, argv, env);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&actions);
  return r;
}

int
keeper_spawn (const struct reference *self, const char *sandbox, int folder,
              const struct coffer_sandbox_spec *spec)
{
  coffer_autoclose int listener = make_listener (folder);
  coffer_autoclose int plan = -1;
  int copies[] = {-1, -1, -1, -1, -1, -1}, status, r;
  pid_t pid = -1;

  if (listener < 0 || (plan = make_plan (sandbox, spec)) < 0)
    return errno;
  r = copy_fds ((const int[]) {folder, self->runtime, listener, plan,
                               spec->lifeline, self->keeper}, copies, 6);
  if (r == 0)
    r = spawn_with (copies, 6, &pid);
  for (size_t i = 0; i < 6; i++)
    coffer_fd_close (&copies[i]);
  if (r)
    return r;
  /* What we started has forked the keeper, which is nobody's child, and ends. */
  while (waitpid (pid, &status, 0) < 0)
    if (errno != EINTR)
      return errno;
  return WIFEXITED (status) && WEXITSTATUS (status) == 0 ? 0 : EAGAIN;
}
