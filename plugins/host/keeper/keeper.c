/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper of one sandbox of the host provider.
 *
 * A sandbox here is a folder and the processes that were started for it; this
 * process is what makes it one thing.  It ends, and takes all of it along,
 * when its lifeline does, at its ttl, at KEEPER_KILL or on SIGTERM.  Its
 * folder is locked as long as it lives: a folder without a lock is what a
 * keeper has left that was killed itself. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/packet.h>
#include <coffer/path.h>

#include "state.h"

static struct keeper keeper;
static struct coffer_strings base_env, sandbox_env;

/* -- beginning ---- */

static int
read_plan (void)
{
  struct keeper_plan plan = {0};
  const char *at, *end, *s;
  char *bytes;
  size_t size;

  if (coffer_read_whole (KEEPER_FD_PLAN, KEEPER_BLOCK_MAX, &bytes, &size) < 0
      || size < sizeof plan)
    return -1;
  memcpy (&plan, bytes, sizeof plan);
  at = bytes + sizeof plan;
  end = bytes + size;
  if (!(s = coffer_strings_next (&at, end)) || !(keeper.name = strdup (s)) ||
      !(s = coffer_strings_next (&at, end)))
    return -1;
  keeper.workdir = *s ? strdup (s) : NULL;
  for (uint32_t i = 0; i < plan.n_env; i++) {
    if (!(s = coffer_strings_next (&at, end)))
      return -1;
    coffer_strings_add (&sandbox_env, s);
  }
  keeper.single = (plan.flags & KEEPER_SINGLE) != 0;
  keeper.lifeline = plan.flags & KEEPER_HAS_LIFELINE ? KEEPER_FD_LIFELINE : -1;
  if (plan.ttl_ms > 0 && plan.ttl_ms <= INT64_MAX / 2000000)
    keeper.expires_ns = coffer_boottime_ns () +
                        (int64_t) plan.ttl_ms * 1000000;
  free (bytes);
  close (KEEPER_FD_PLAN);
  return sandbox_env.failed ? -1 : 0;
}

/* The caller's name as /etc/passwd has it: name services are not asked, which
 * would load their modules into this process. */
static void
add_user (void)
{
  FILE *file = fopen ("/etc/passwd", "re");
  struct passwd *entry = NULL;

  while (file && (entry = fgetpwent (file)) && entry->pw_uid != getuid ())
    ;
  if (entry)
    coffer_strings_printf (&base_env, "USER=%s", entry->pw_name);
  else
    coffer_strings_printf (&base_env, "USER=%u", (unsigned) getuid ());
  if (file)
    fclose (file);
}

static int
make_environment (void)
{
  char path[PATH_MAX];

  if (fchdir (KEEPER_FD_FOLDER) < 0 || !getcwd (path, sizeof path) ||
      !(keeper.path = strdup (path)))
    return -1;
  coffer_strings_add (&base_env, "PATH=/usr/local/sbin:/usr/local/bin:"
                      "/usr/sbin:/usr/bin:/sbin:/bin");
  coffer_strings_printf (&base_env, "HOME=%s/" KEEPER_WORKSPACE, path);
  add_user ();
  coffer_strings_add (&base_env, "LANG=C.UTF-8");
  coffer_strings_printf (&base_env, "TMPDIR=%s/" KEEPER_TMP, path);
  keeper.base = coffer_strings_view (&base_env);
  keeper.env = coffer_strings_view (&sandbox_env);
  return base_env.failed ? -1 : 0;
}

static int
make_descriptors (void)
{
  sigset_t set;

  keeper.folder = KEEPER_FD_FOLDER;
  keeper.runtime = KEEPER_FD_RUNTIME;
  keeper.listener = KEEPER_FD_LISTENER;
  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGHUP);
  sigprocmask (SIG_SETMASK, &set, NULL);
  keeper.signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  keeper.timer = timerfd_create (CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  keeper.workspace = openat (keeper.folder, KEEPER_WORKSPACE,
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (keeper.signals < 0 || keeper.timer < 0 || keeper.workspace < 0)
    return -1;
  for (int fd = KEEPER_FD_FOLDER; fd < KEEPER_FD_END; fd++)
    fcntl (fd, F_SETFD, FD_CLOEXEC);
  if (keeper.expires_ns)
    keeper_arm (&keeper);
  return 0;
}

/* -- the loop ---- */

static void
accept_client (void)
{
  int fd = coffer_socket_accept (keeper.listener);

  if (fd >= 0 && keeper.n_clients < KEEPER_CLIENTS_MAX)
    keeper.clients[keeper.n_clients++] = (struct client) {.fd = fd};
  else
    coffer_fd_close (&fd);
}

/* A client that waits and becomes readable has gone away. */
static void
serve_client (struct client *client)
{
  if (client->waits_for || client->waits_for_end ||
      keeper_serve (&keeper, client) < 0) {
    if (!client->waits_for_end)
      coffer_fd_close (&client->fd);
  }
}

static void
sweep_clients (void)
{
  size_t kept = 0;

  for (size_t i = 0; i < keeper.n_clients; i++)
    if (keeper.clients[i].fd >= 0)
      keeper.clients[kept++] = keeper.clients[i];
  keeper.n_clients = kept;
}

static void
check_lifeline (void)
{
  char bytes[64];
  ssize_t n = read (keeper.lifeline, bytes, sizeof bytes);

  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
    keeper.ending = 1;
}

static void
check_signals (void)
{
  struct signalfd_siginfo info;

  while (read (keeper.signals, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD)
      keeper.ending = 1;
  keeper_reap (&keeper);
}

static void
check_timer (void)
{
  uint64_t times;

  if (read (keeper.timer, &times, sizeof times) == sizeof times &&
      keeper.expires_ns && coffer_boottime_ns () >= keeper.expires_ns)
    keeper.ending = 1;
}

/* A sandbox for one command that nothing else holds ends once its end has been
 * asked for, or nobody has come to ask. */
static int
check_single (void)
{
  if (!keeper.single || keeper.lifeline >= 0 || !keeper.uncollected_ns)
    return -1;
  if (keeper.execs[0]->collected || coffer_now_ns () >= keeper.uncollected_ns)
    keeper.ending = 1;
  return 1000;
}

static void
dispatch (const struct pollfd *fds, size_t n_clients, size_t n_execs)
{
  const struct pollfd *clients = fds + 4, *execs = clients + n_clients;

  if (fds[1].fd >= 0 && fds[1].revents)
    check_lifeline ();
  if (fds[3].revents)
    check_timer ();
  /* Reports first: a minder's last words come before its end. */
  for (size_t i = 0; i < n_execs; i++)
    if (execs[i].revents)
      keeper_report (&keeper, keeper.execs[i]);
  if (fds[2].revents)
    check_signals ();
  for (size_t i = 0; i < n_clients; i++)
    if (clients[i].revents && keeper.clients[i].fd >= 0)
      serve_client (&keeper.clients[i]);
  if (fds[0].revents)
    accept_client ();
  sweep_clients ();
}

static void
run (void)
{
  struct pollfd fds[4 + KEEPER_CLIENTS_MAX + KEEPER_EXECS_MAX];
  size_t n_clients, n_execs;

  while (!keeper.ending) {
    n_clients = keeper.n_clients;
    n_execs = keeper.n_execs;
    fds[0] = (struct pollfd) {.fd = keeper.listener, .events = POLLIN};
    fds[1] = (struct pollfd) {.fd = keeper.lifeline, .events = POLLIN};
    fds[2] = (struct pollfd) {.fd = keeper.signals, .events = POLLIN};
    fds[3] = (struct pollfd) {.fd = keeper.timer, .events = POLLIN};
    for (size_t i = 0; i < n_clients; i++)
      fds[4 + i] = (struct pollfd) {.fd = keeper.clients[i].fd,
                                    .events = POLLIN};
    for (size_t i = 0; i < n_execs; i++)
      fds[4 + n_clients + i] =
        (struct pollfd) {.fd = keeper.execs[i]->control, .events = POLLIN};
    if (poll (fds, 4 + n_clients + n_execs, check_single ()) < 0 &&
        errno != EINTR)
      break;
    dispatch (fds, n_clients, n_execs);
  }
}

/* -- the end ---- */

/* All processes first, then the folder: nobody is left to fill it again. */
static int
end (void)
{
  unsigned left;

  unlinkat (keeper.folder, KEEPER_SOCKET, 0);
  coffer_fd_close (&keeper.listener);
  left = keeper_kill_all (&keeper);
  if (coffer_remove_beneath (keeper.runtime, keeper.name, 1, NULL) < 0 &&
      errno != ENOENT)
    return errno;
  return left ? EPERM : 0;
}

int
main (void)
{
  int r;

  /* The starter waits for a parent that ends at once; the keeper is nobody's
   * child. */
  r = fork ();
  if (r != 0)
    _exit (r < 0);
  prctl (PR_SET_NAME, "coffer-keeper");
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  umask (022);
  close (KEEPER_FD_PROGRAM);
  keeper.created_ns = coffer_realtime_ns ();
  if (setsid () < 0 || read_plan () < 0 || make_environment () < 0 ||
      make_descriptors () < 0)
    return 1;
  run ();
  r = end ();
  for (size_t i = 0; i < keeper.n_clients; i++)
    if (keeper.clients[i].fd >= 0)
      keeper_reply_error (keeper.clients[i].fd, r);
  return r != 0;
}
