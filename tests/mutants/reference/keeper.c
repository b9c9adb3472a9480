/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper of one sandbox: a folder and the processes that were started for
 * it are one thing because this process makes them one.
 *
 * It outlives whoever started it.  It ends, and takes all of it along, when its
 * lifeline does, at its ttl, at ASK_KILL or on SIGTERM.  It has one thread and
 * one loop: nothing is locked. */

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
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/packet.h>
#include <coffer/path.h>

#include "keeper.h"

#define CLIENTS_MAX 128
#define COMMANDS_MAX 128        /* at once */
#define UNCOLLECTED_NS (INT64_C (60) * 1000000000)

struct minder {
  uint32_t number;              /* of the command */
  pid_t pid;
};

static struct keeper {
  int folder, runtime, listener, lifeline, signals, timer;
  int alive[2];                 /* minders read [0]; [1] ends with us */
  const char *name;             /* of the folder */
  const char *workdir;          /* NULL: the workspace */
  struct coffer_strings base, env;
  int single, paused, ending;
  int64_t created_ns;           /* since the epoch */
  int64_t ends_ns;              /* CLOCK_BOOTTIME; 0: never */
  int64_t expires_ns;           /* the same, since the epoch */
  int64_t single_ns;            /* when the single command ended */
  uint32_t commands;            /* so many were started */
  struct minder minders[COMMANDS_MAX];
  size_t n_minders;
  int clients[CLIENTS_MAX];
  size_t n_clients;
  int killers[CLIENTS_MAX];     /* who waits for the end */
  size_t n_killers;
} keeper;

/* ---- beginning ----------------------------------------------------------- */

static int
set_end (uint64_t ttl_ms)
{
  if (ttl_ms == 0 || ttl_ms >= UINT64_C (1) << 40)
    return EINVAL;
  keeper.ends_ns = coffer_boottime_ns () + (int64_t) ttl_ms * 1000000;
  keeper.expires_ns = coffer_realtime_ns () + (int64_t) ttl_ms * 1000000;
  return 0;
}

/* The bytes stay: what is found in them is used to the end. */
static int
read_plan (void)
{
  const char *at, *end, *s;
  struct plan plan;
  char *bytes;
  size_t size;

  if (coffer_read_whole (KEEPER_FD_PLAN, BLOCK_MAX, &bytes, &size) < 0
      || size < sizeof plan)
    return -1;
  memcpy (&plan, bytes, sizeof plan);
  at = bytes + sizeof plan;
  end = bytes + size;
  keeper.name = coffer_strings_next (&at, end);
  keeper.workdir = coffer_strings_next (&at, end);
  if (!keeper.workdir)
    return -1;
  if (!*keeper.workdir)
    keeper.workdir = NULL;
  for (uint32_t i = 0; i < plan.n_env && (s = coffer_strings_next (&at, end)); i++)
    coffer_strings_add (&keeper.env, s);
  keeper.single = (plan.flags & PLAN_SINGLE) != 0;
  keeper.lifeline = plan.flags & PLAN_LIFELINE ? KEEPER_FD_LIFELINE : -1;
  set_end (plan.ttl_ms);
  close (KEEPER_FD_PLAN);
  return keeper.env.count == plan.n_env ? 0 : -1;
}

static int
make_environment (void)
{
  const struct passwd *user = NULL;
  FILE *file = fopen ("/etc/passwd", "re");
  char path[PATH_MAX];

  if (fchdir (KEEPER_FD_FOLDER) < 0 || !getcwd (path, sizeof path))
    return -1;
  /* Name services would load their modules into this process. */
  while (file && (user = fgetpwent (file)) && user->pw_uid != getuid ())
    ;
  coffer_strings_add (&keeper.base, "PATH=/usr/local/sbin:/usr/local/bin:"
                      "/usr/sbin:/usr/bin:/sbin:/bin");
  coffer_strings_printf (&keeper.base, "HOME=%s/" WORKSPACE, path);
  if (user)
    coffer_strings_printf (&keeper.base, "USER=%s", user->pw_name);
  coffer_strings_add (&keeper.base, "LANG=C.UTF-8");
  coffer_strings_printf (&keeper.base, "TMPDIR=%s/" TEMPORARY, path);
  if (file)
    fclose (file);
  return keeper.base.failed ? -1 : 0;
}

/* The timer runs on while the machine sleeps: a ttl is a promise in real
 * time. */
static void
arm_timer (void)
{
  const struct itimerspec when = {
    .it_value = {.tv_sec = keeper.ends_ns / 1000000000,
                 .tv_nsec = keeper.ends_ns % 1000000000},
  };

  timerfd_settime (keeper.timer, TFD_TIMER_ABSTIME, &when, NULL);
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
  if (keeper.signals < 0 || keeper.timer < 0
      || pipe2 (keeper.alive, O_CLOEXEC) < 0)
    return -1;
  for (int fd = KEEPER_FD_FOLDER; fd < KEEPER_FD_END; fd++)
    fcntl (fd, F_SETFD, FD_CLOEXEC);
  if (keeper.ends_ns)
    arm_timer ();
  return 0;
}

/* ---- starting a command -------------------------------------------------- */

struct block {
  char *bytes;
  const char **argv, **env, *cwd;
  struct coffer_strings merged;
};

static void
block_fini (struct block *block)
{
  free (block->bytes);
  free (block->argv);
  free (block->env);
  coffer_strings_free (&block->merged);
}

static void
merge (struct coffer_strings *env, const char *const *entries)
{
  for (; entries && *entries; entries++)
    coffer_strings_set (env, *entries);
}

static int
block_read (const struct packet *packet, struct block *block)
{
  const char *at, *end;
  size_t size = 0;

  if (packet->request.argc == 0 || packet->fds[0] < 0
      || lseek (packet->fds[0], 0, SEEK_SET) < 0
      || coffer_read_whole (packet->fds[0], BLOCK_MAX, &block->bytes, &size)
         < 0)
    return EPROTO;
  at = block->bytes;
  end = block->bytes + size;
  block->argv = coffer_strings_split (&at, end, packet->request.argc);
  if (block->argv)
    block->env = coffer_strings_split (&at, end, packet->request.envc);
  if (block->env)
    block->cwd = coffer_strings_next (&at, end);
  if (!block->cwd)
    return EPROTO;
  merge (&block->merged, coffer_strings_view (&keeper.base));
  merge (&block->merged, coffer_strings_view (&keeper.env));
  merge (&block->merged, block->env);
  return block->merged.failed ? ENOMEM : 0;
}

/* The descriptors that the flags name, in their order. */
static int
take_streams (const struct packet *packet, struct coffer_process *process)
{
  const uint32_t flags = packet->request.flags;
  size_t next = 1;

  if (flags & START_IN)
    process->in = packet->fds[next++];
  if (flags & START_OUT)
    process->out = packet->fds[next++];
  if (flags & START_ERR)
    process->err = packet->fds[next++];
  return next == packet->n_fds ? 0 : EPROTO;
}

/* Before its minder opens them: who attaches at once finds them. */
static int
make_kept (int folder)
{
  static const char *const names[] = {"out", "err"};
  int fd;

  for (size_t i = 0; i < 2; i++) {
    fd = openat (folder, names[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                 0600);
    if (fd < 0)
      return -1;
    close (fd);
  }
  return 0;
}

/* The command's folder, with its minder's socket and the file `begun`. */
static int
make_exec_folder (uint32_t number, const struct begun *begun,
                  struct assignment *task)
{
  coffer_autoclose int file = -1;
  char path[32];

  snprintf (path, sizeof path, EXECS "/%u", number);
  if (mkdirat (keeper.folder, path, 0700) < 0)
    return -1;
  task->folder = coffer_open_beneath (keeper.folder, path, O_RDONLY
                                      | O_DIRECTORY, 0);
  if (task->folder < 0)
    return -1;
  task->listener = coffer_socket_bind (task->folder, MINDER_SOCKET);
  file = openat (task->folder, BEGUN, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                 0600);
  if (task->listener < 0 || listen (task->listener, 64) < 0 || file < 0
      || (task->background && make_kept (task->folder) < 0))
    return -1;
  return coffer_write_all (file, begun, sizeof *begun) < 0 ? -1 : 0;
}

static int
fork_minder (uint32_t number, const struct assignment *task)
{
  const struct coffer_session *session = &task->session;
  pid_t pid = fork ();

  if (pid == 0) {
    int keep[] = {task->folder, task->listener, task->keeper, session->folder,
                  session->process.in, session->process.out,
                  session->process.err};

    coffer_close_others (keep, sizeof keep / sizeof keep[0]);
    minder_main (task);
  }
  if (pid < 0)
    return errno;
  keeper.minders[keeper.n_minders++] = (struct minder) {number, pid};
  return 0;
}

static int
start_with (const struct request *request, const struct block *block,
            struct coffer_session *session, struct reply *reply)
{
  coffer_autoclose int workspace = coffer_open_beneath (
    keeper.folder, WORKSPACE, O_RDONLY | O_DIRECTORY, 0);
  struct assignment task = {
    .folder = -1, .listener = -1, .keeper = keeper.alive[0],
    .timeout_ms = request->timeout_ms, .single = keeper.single,
    .background = (request->flags & START_BACKGROUND) != 0,
    .cap_bytes = request->cap_bytes ? request->cap_bytes : CAP_DEFAULT,
  };
  const struct begun begun = {coffer_realtime_ns (), (uint32_t) task.background,
                              0};
  const uint32_t number = keeper.commands + 1;
  int r = 0;

  session->process.argv = block->argv;
  session->process.env = coffer_strings_view (&block->merged);
  session->process.cwd = *block->cwd ? block->cwd : keeper.workdir;
  session->folder = workspace;
  task.session = *session;
  if (workspace < 0 || make_exec_folder (number, &begun, &task) < 0)
    r = errno;
  keeper.commands++;
  if (r == 0)
    r = fork_minder (number, &task);
  coffer_fd_close (&task.folder);
  coffer_fd_close (&task.listener);
  reply->exec = number;
  reply->started_ns = begun.started_ns;
  return r;
}

static int
start (const struct packet *packet, struct reply *reply)
{
  const struct request *request = &packet->request;
  struct coffer_session session = {
    .process = {.in = -1, .out = -1, .err = -1}, .folder = -1,
    .tty = (request->flags & START_TTY) != 0, .rows = request->rows,
    .columns = request->columns,
  };
  struct block block = {0};
  int r;

  if (keeper.paused)
    return ESTALE;
  if (keeper.single && keeper.commands > 0)
    return EBUSY;               /* it was made for one */
  if (keeper.n_minders == COMMANDS_MAX)
    return EAGAIN;
  r = block_read (packet, &block);
  if (r == 0)
    r = take_streams (packet, &session.process);
  if (r == 0)
    r = start_with (request, &block, &session, reply);
  block_fini (&block);
  return r;
}

/* ---- the other requests -------------------------------------------------- */

static void
fill_info (struct reply *reply)
{
  reply->pid = getpid ();
  reply->paused = (uint32_t) keeper.paused;
  reply->created_ns = keeper.created_ns;
  reply->expires_ns = keeper.expires_ns;
}

static int
extend (uint64_t ttl_ms)
{
  int r = set_end (ttl_ms);

  if (r == 0)
    arm_timer ();
  return r;
}

/* Each minder stops what is its own: only a parent knows its children's numbers
 * for sure. */
static void
order_minder (const struct minder *minder, uint32_t op)
{
  struct request request = {.size = sizeof request, .op = op};
  coffer_autoclose int folder = -1, fd = -1;
  struct reply reply;
  char path[32];

  snprintf (path, sizeof path, EXECS "/%u", minder->number);
  folder = coffer_open_beneath (keeper.folder, path, O_PATH | O_DIRECTORY, 0);
  if (folder >= 0)
    fd = coffer_socket_connect (folder, MINDER_SOCKET, 0);
  if (fd >= 0 && send (fd, &request, sizeof request, MSG_NOSIGNAL) > 0
      && coffer_wait_fd (fd, POLLIN, coffer_now_ns () + 10000000000, -1) == 1)
    (void) !recv (fd, &reply, sizeof reply, 0);
}

static void
set_paused (int paused)
{
  for (size_t i = 0; i < keeper.n_minders; i++)
    order_minder (&keeper.minders[i], paused ? ASK_STOP : ASK_CONTINUE);
  keeper.paused = paused;
}

static int
add_usage (void *data, pid_t pid)
{
  struct reply *reply = data;
  struct tree_facts facts;

  if (tree_facts_read (pid, &facts) < 0)
    return 0;
  reply->cpu_us += facts.cpu_us;
  for (size_t i = 0; i < keeper.n_minders; i++)
    if (keeper.minders[i].pid == pid)
      return 0;
  reply->memory_bytes += facts.memory_bytes;
  reply->processes++;
  return 0;
}

/* Of what lives, with the time of what was reaped; and of minders that have
 * gone, with all that was below them. */
static void
fill_metrics (struct reply *reply)
{
  struct rusage usage;

  getrusage (RUSAGE_CHILDREN, &usage);
  reply->cpu_us = coffer_usage_us (&usage);
  tree_walk (add_usage, reply);
}

static int
answer (const struct packet *packet, struct reply *reply)
{
  const struct request *request = &packet->request;
  int r = 0;

  switch (request->op) {
  case ASK_INFO:
    break;
  case ASK_START:
    r = start (packet, reply);
    break;
  case ASK_EXTEND:
    r = extend (request->ttl_ms);
    break;
  case ASK_PAUSE:
  case ASK_RESUME:
    set_paused (request->op == ASK_PAUSE);
    break;
  case ASK_METRICS:
    fill_metrics (reply);
    break;
  case ASK_PORT:
    reply->family = tree_listens (request->port);
    r = reply->family ? 0 : EADDRNOTAVAIL;
    break;
  default:
    r = EOPNOTSUPP;
  }
  fill_info (reply);
  return r;
}

/* ---- the loop ------------------------------------------------------------ */

static void
serve (int *client)
{
  struct reply reply = {0};
  struct packet packet;

  if (packet_receive (*client, &packet) == 0) {
    if (packet.request.op == ASK_KILL) {
      keeper.ending = 1;
      keeper.killers[keeper.n_killers++] = coffer_fd_steal (client);
    } else {
      reply.error = answer (&packet, &reply);
      reply_send (*client, &reply);
    }
  }
  packet_fini (&packet);
  coffer_fd_close (client);
}

static void
accept_client (void)
{
  int fd = coffer_socket_accept (keeper.listener);

  if (fd >= 0 && keeper.n_clients + keeper.n_killers < CLIENTS_MAX)
    keeper.clients[keeper.n_clients++] = fd;
  else
    coffer_fd_close (&fd);
}

static void
sweep_clients (void)
{
  size_t kept = 0;

  for (size_t i = 0; i < keeper.n_clients; i++)
    if (keeper.clients[i] >= 0)
      keeper.clients[kept++] = keeper.clients[i];
  keeper.n_clients = kept;
}

static void
keeper_reaped (void *data, pid_t pid, int status, const struct rusage *usage)
{
  (void) data, (void) usage;
  for (size_t i = 0; i < keeper.n_minders; i++)
    if (keeper.minders[i].pid == pid) {
      keeper.minders[i] = keeper.minders[--keeper.n_minders];
      keeper.single_ns = coffer_now_ns ();
      /* It leaves by itself when nothing is left below it.  One that was killed
       * left all of it to us, among what is of others: the sandbox is broken. */
      if (WIFSIGNALED (status))
        keeper.ending = 1;
      break;
    }
}

static void
check_signals (void)
{
  struct signalfd_siginfo info;

  while (read (keeper.signals, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD)
      keeper.ending = 1;
  coffer_descendants_reap (keeper_reaped, NULL);
}

static void
check_timer (void)
{
  uint64_t times;

  if (read (keeper.timer, &times, sizeof times) == sizeof times
      && keeper.ends_ns && coffer_boottime_ns () >= keeper.ends_ns)
    keeper.ending = 1;
}

static void
check_lifeline (void)
{
  char bytes[64];
  ssize_t n = read (keeper.lifeline, bytes, sizeof bytes);

  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
    keeper.ending = 1;
}

/* A sandbox for one command that nothing else holds gives whoever started it a
 * minute to ask how that ended. */
static int
check_single (void)
{
  if (!keeper.single || keeper.lifeline >= 0 || !keeper.single_ns)
    return -1;
  if (coffer_now_ns () >= keeper.single_ns + UNCOLLECTED_NS)
    keeper.ending = 1;
  return 1000;
}

static void
turn (void)
{
  struct pollfd fds[4 + CLIENTS_MAX] = {
    {.fd = keeper.listener, .events = POLLIN},
    {.fd = keeper.lifeline, .events = POLLIN},
    {.fd = keeper.signals, .events = POLLIN},
    {.fd = keeper.timer, .events = POLLIN},
  };
  const size_t n = keeper.n_clients;

  for (size_t i = 0; i < n; i++)
    fds[4 + i] = (struct pollfd) {.fd = keeper.clients[i], .events = POLLIN};
  if (poll (fds, 4 + n, check_single ()) < 0) {
    keeper.ending = errno != EINTR;
    return;
  }
  if (fds[1].revents)
    check_lifeline ();
  if (fds[2].revents)
    check_signals ();
  if (fds[3].revents)
    check_timer ();
  for (size_t i = 0; i < n; i++)
    if (fds[4 + i].revents)
      serve (&keeper.clients[i]);
  if (fds[0].revents)
    accept_client ();
  sweep_clients ();
}

/* ---- the end ------------------------------------------------------------- */

/* All processes first; then the name, so that a new sandbox may have it; then
 * what lies there.  Who asked meanwhile finds the connection closed. */
static int
end (void)
{
  char gone[96];

  tree_kill (keeper_reaped, NULL);
  snprintf (gone, sizeof gone, ".gone-%.64s-%d", keeper.name, (int) getpid ());
  if (renameat (keeper.runtime, keeper.name, keeper.runtime, gone) < 0)
    return errno;
  coffer_fd_close (&keeper.listener);
  for (size_t i = 0; i < keeper.n_clients; i++)
    coffer_fd_close (&keeper.clients[i]);
  return coffer_remove_beneath (keeper.runtime, gone, 1, NULL) < 0 ? errno : 0;
}

int
main (void)
{
  int r = fork ();

  if (r != 0)                   /* whoever starts us waits for this one */
    _exit (r < 0);
  prctl (PR_SET_NAME, "keeper");
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  umask (022);
  close (KEEPER_FD_PROGRAM);
  keeper.created_ns = coffer_realtime_ns ();
  if (setsid () < 0 || read_plan () < 0 || make_environment () < 0
      || make_descriptors () < 0)
    return 1;
  while (!keeper.ending)
    turn ();
  r = end ();
  for (size_t i = 0; i < keeper.n_killers; i++)
    reply_error (keeper.killers[i], r);
  return r != 0;
}
