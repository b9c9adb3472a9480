/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's side of coffer-keeper. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/packet.h>

#include "base/helper.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/execs-private.h"

/* For a program that does little else. */
#define ANSWER_MS 5000
#define END_MS 1000
/* It takes what is sent at once, and this much may lie before it: beyond that it
 * is stopped. */
#define SEND_MS 1000
#define SEND_BYTES (32 << 10)

static int
keeper_start (struct execs *execs, int folder, struct error **err)
{
  const struct place *place = execs->options.place;
  coffer_autoclose int listener = -1;
  struct helper_program program = { .name = KEEPER_PROGRAM, .out = -1,
                                    .folder = folder, .number = E_IO };
  struct helper helper = { .report = -1 };
  int r;

  /* One that nobody listens on any more. */
  unlinkat (folder, KEEPER_SOCKET, 0);
  listener = coffer_socket_listen (folder, KEEPER_SOCKET);
  if (listener < 0)
    return error_set (err, E_IO, errno, "%s/%s", place->runtime,
                      KEEPER_SOCKET);
  program.in = listener;
  r = helper_start (place, &program, &helper, err);
  /* It lives on. */
  coffer_fd_close (&helper.report);
  if (r == 0)
    execs->keeper_pid = helper.pid;
  return r;
}

/* One of an earlier build did not say that it listens: the number is then that of
 * the daemon which began it, or of anybody by now. */
static int
is_keeper (pid_t pid)
{
  auto_free char *path = text_printf ("/proc/%d/cmdline", (int) pid);
  coffer_autoclose int fd = path ? open (path, O_RDONLY | O_CLOEXEC) : -1;
  char name[256];
  ssize_t n = fd < 0 ? -1 : coffer_read_all (fd, name, sizeof name - 1);
  const char *slash;

  name[n > 0 ? n : 0] = '\0';
  slash = strrchr (name, '/');
  return strcmp (slash ? slash + 1 : name, KEEPER_PROGRAM) == 0;
}

/* Whoever listens is the keeper itself, but for one that has only just begun. */
static void
keeper_know (struct execs *execs)
{
  const struct timeval patience = { .tv_sec = SEND_MS / 1000 };
  const int room = SEND_BYTES;
  struct ucred peer = { 0 };
  socklen_t size = sizeof peer;

  setsockopt (execs->keeper, SOL_SOCKET, SO_SNDTIMEO, &patience,
              sizeof patience);
  setsockopt (execs->keeper, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  execs->keeper_peer = execs->keeper_pid;
  if (!execs->keeper_peer
      && getsockopt (execs->keeper, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
      && peer.pid != getpid () && is_keeper (peer.pid))
    execs->keeper_peer = peer.pid;
}

static int
keeper_connect (struct execs *execs, struct error **err)
{
  coffer_autoclose int folder = place_open_dir (execs->options.place->runtime,
                                                err);
  struct epoll_event event = { .events = EPOLLRDHUP,
                               .data.ptr = &execs->keeper_stream };
  int i;

  if (folder < 0)
    return -1;
  if (execs->keeper_pid && waitpid (execs->keeper_pid, NULL, WNOHANG) != 0)
    execs->keeper_pid = 0;
  for (i = 0; i < 2; i++) {
    execs->keeper = coffer_socket_connect (folder, KEEPER_SOCKET, 0);
    if (execs->keeper >= 0)
      keeper_know (execs);
    if (execs->keeper >= 0)
      return epoll_ctl (execs->epoll, EPOLL_CTL_ADD, execs->keeper, &event)
                 < 0
               ? error_set (err, E_IO, errno, "watching the keeper") : 0;
    if (i == 0 && keeper_start (execs, folder, err) < 0)
      return -1;
  }
  return error_set (err, E_IO, errno, "%s/%s", execs->options.place->runtime,
                    KEEPER_SOCKET);
}

/* ---- messages ------------------------------------------------------------- */

static void
message_fill (struct keeper_message *message, enum keeper_kind kind,
              const struct live_exec *live)
{
  *message = (struct keeper_message){ .size = sizeof *message,
                                      .version = KEEPER_VERSION,
                                      .kind = kind };
  if (!live)
    return;
  snprintf (message->sandbox, sizeof message->sandbox, "%s",
            live->log->sandbox);
  snprintf (message->exec, sizeof message->exec, "%s", live->log->exec);
}

static int
send_keep (struct execs *execs, const struct live_exec *live)
{
  struct keeper_message message;
  int fds[KEEPER_FDS], all[KEEPER_FDS], i;
  size_t n = 0;

  message_fill (&message, KEEPER_KEEP, live);
  memcpy (all, live->fds, sizeof all);
  all[KEEPER_OUT_FILE] = exec_log_data_fd (live->log, 0);
  all[KEEPER_ERR_FILE] = exec_log_data_fd (live->log, 1);
  all[KEEPER_INDEX_FILE] = exec_log_index_fd (live->log);
  for (i = 0; i < KEEPER_FDS; i++)
    if (all[i] >= 0) {
      message.has |= 1u << i;
      fds[n++] = all[i];
    }
  return coffer_packet_send (execs->keeper, &message, sizeof message, fds, n);
}

void
keeper_keep (struct execs *execs, struct live_exec *live)
{
  pthread_mutex_lock (&execs->keeper_lock);
  /* Descriptors of the others are the pump's, who does it all again. */
  if (execs->keeper < 0 || execs->keeper_failed || send_keep (execs, live) < 0)
    execs->keeper_failed = 1;
  pthread_mutex_unlock (&execs->keeper_lock);
}

int
keeper_is_lost (struct execs *execs)
{
  int failed;

  pthread_mutex_lock (&execs->keeper_lock);
  failed = execs->keeper_failed;
  pthread_mutex_unlock (&execs->keeper_lock);
  return failed;
}

/* One that is there and takes nothing is stopped, and holds nothing that is not
 * held here: going on later it would only be in another one's way. */
static void
keeper_end_locked (struct execs *execs)
{
  coffer_autoclose int folder = -1;
  struct pollfd gone = { .fd = execs->keeper, .events = POLLRDHUP };

  if (execs->keeper < 0 || !execs->keeper_peer
      || poll (&gone, 1, 0) > 0)
    return;
  log_event (LOG_LEVEL_WARNING, "exec", "coffer-keeper %d takes nothing, and "
             "another one takes its place", (int) execs->keeper_peer);
  kill (execs->keeper_peer, SIGKILL);
  folder = place_open_dir (execs->options.place->runtime, NULL);
  if (folder >= 0)
    unlinkat (folder, KEEPER_SOCKET, 0);
  if (execs->keeper_peer == execs->keeper_pid)
    waitpid (execs->keeper_pid, NULL, 0);
  execs->keeper_pid = 0;
}

static void
keeper_again_locked (struct execs *execs)
{
  auto_error struct error *error = NULL;
  struct live_exec *live;

  keeper_end_locked (execs);
  coffer_fd_close (&execs->keeper);
  execs->keeper_failed = 0;
  if (keeper_connect (execs, &error) < 0) {
    log_event (LOG_LEVEL_WARNING, "exec", "commands do not outlive this "
               "daemon: %s", error_message (error));
    return;
  }
  pthread_mutex_lock (&execs->lock);
  for (live = execs->live; live; live = live->next) {
    pthread_mutex_lock (&live->input_lock);
    if (send_keep (execs, live) < 0)
      log_event (LOG_LEVEL_WARNING, "exec", "%s %s does not outlive this "
                 "daemon", live->log->sandbox, live->log->exec);
    pthread_mutex_unlock (&live->input_lock);
  }
  pthread_mutex_unlock (&execs->lock);
}

void
keeper_lost (struct execs *execs)
{
  pthread_mutex_lock (&execs->keeper_lock);
  keeper_again_locked (execs);
  pthread_mutex_unlock (&execs->keeper_lock);
}

void
keeper_tell (struct execs *execs, const struct live_exec *live,
             enum keeper_kind kind)
{
  struct keeper_message message;

  message_fill (&message, kind, live);
  pthread_mutex_lock (&execs->keeper_lock);
  /* To one that is gone nothing need be told. */
  if (execs->keeper >= 0 && !execs->keeper_failed
      && coffer_packet_send (execs->keeper, &message, sizeof message, NULL, 0)
           < 0) {
    execs->keeper_failed = 1;
    pump_wake (execs);
  }
  pthread_mutex_unlock (&execs->keeper_lock);
}

/* ---- at the start --------------------------------------------------------- */

int
keeper_open (struct execs *execs, struct error **err)
{
  int r;

  pthread_mutex_lock (&execs->keeper_lock);
  r = keeper_connect (execs, err);
  pthread_mutex_unlock (&execs->keeper_lock);
  return r;
}

void
keeper_close (struct execs *execs)
{
  const int64_t patience = deadline_in (END_MS);

  coffer_fd_close (&execs->keeper);
  while (execs->keeper_pid && execs->count == 0
         && waitpid (execs->keeper_pid, NULL, WNOHANG) == 0
         && coffer_now_ns () < patience)
    poll (NULL, 0, 1);
}

static int
answer_wait (const struct execs *execs)
{
  if (coffer_wait_fd (execs->keeper, POLLIN, deadline_in (ANSWER_MS), -1) == 1)
    return 1;
  log_event (LOG_LEVEL_ERROR, "exec", "coffer-keeper %d does not answer: what "
             "it holds of commands of before is lost",
             (int) execs->keeper_peer);
  return 0;
}

/* 1: one; 0: the end. */
static int
kept_receive (struct execs *execs, struct keeper_message *message,
              int fds[KEEPER_FDS])
{
  int came[COFFER_PACKET_FDS_MAX], i;
  size_t n = COFFER_PACKET_FDS_MAX, at = 0;

  if (!answer_wait (execs)
      || coffer_packet_receive (execs->keeper, message, sizeof *message, came,
                                &n) < (ssize_t) sizeof *message)
    return 0;
  for (i = 0; i < KEEPER_FDS; i++)
    fds[i] = message->has & (1u << i) && at < n ? came[at++] : -1;
  for (; at < n; at++)
    coffer_fd_close (&came[at]);
  message->sandbox[sizeof message->sandbox - 1] = '\0';
  message->exec[sizeof message->exec - 1] = '\0';
  return message->kind == KEEPER_KEPT;
}

struct kept {
  struct keeper_message message;
  int fds[KEEPER_FDS];
};

/* All of them first: it waits for us to take what it says. */
void
keeper_list (struct execs *execs,
             void (*visit) (struct execs *execs,
                            const struct keeper_message *message,
                            int fds[KEEPER_FDS]))
{
  struct kept *kept = NULL, *grown;
  struct keeper_message ask;
  size_t n = 0, room = 0, i;

  /* One that was stopped goes on when it is told to. */
  if (execs->keeper_peer)
    kill (execs->keeper_peer, SIGCONT);
  message_fill (&ask, KEEPER_LIST, NULL);
  if (coffer_packet_send (execs->keeper, &ask, sizeof ask, NULL, 0) < 0)
    return;
  for (;;) {
    if (n == room) {
      room = room ? room * 2 : 16;
      grown = reallocarray (kept, room, sizeof *kept);
      if (!grown)
        break;
      kept = grown;
    }
    if (!kept_receive (execs, &kept[n].message, kept[n].fds))
      break;
    n++;
  }
  for (i = 0; i < n; i++)
    visit (execs, &kept[i].message, kept[i].fds);
  free (kept);
}
