/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a proxy: the list is read, rights are given up and read back,
 * the maker is told; then clients are served until the sandbox's init is gone. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"

#define LIST_MAX 65536

struct policy policy;

static struct connection *connections[CONNECTIONS_MAX];
static size_t n_connections;

int64_t
now_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- the start ------------------------------------------------------------- */

static void __attribute__ ((noreturn))
give_up (const char *what, int error)
{
  dprintf (PROXY_REPORT, "- %s: %s\n", what, strerror (error));
  _exit (1);
}

static void
list_read (void)
{
  static char text[LIST_MAX];
  ssize_t n = pread (PROXY_LIST, text, sizeof text, 0);
  const char *at = text;

  if (n < 0 || (n > 0 && text[n - 1] != '\0') || n == (ssize_t) sizeof text)
    give_up ("reading the list", n < 0 ? errno : EINVAL);
  for (; at < text + n; at += strlen (at) + 1)
    if (policy_add (&policy, at) < 0)
      give_up ("an entry of the list", EINVAL);
}

/* Nothing of what the maker has set for itself. */
static void
signals_reset (void)
{
  sigset_t none;
  int i;

  for (i = 1; i < NSIG; i++)
    signal (i, i == SIGCHLD || i == SIGPIPE ? SIG_IGN : SIG_DFL);
  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
}

static void
start (void)
{
  char line[256], report[300];
  int null;

  signals_reset ();
  setsid ();
  prctl (PR_SET_NAME, "coffer-proxy");  /* it has no file to be called after */
  if (fcntl (PROXY_LISTENER, F_SETFL, O_NONBLOCK) == -1)
    give_up ("the listener", errno);
  list_read ();
  null = open ("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2 (null, 0) < 0 || dup2 (null, 2) < 0)
    give_up ("/dev/null", errno);
  close (null);
  if (chdir ("/") == -1)
    give_up ("/", errno);
  if (confine (&policy, line, sizeof line) == -1)
    give_up (line, errno);
  snprintf (report, sizeof report, "+ %s\n", line);
  if (write (PROXY_REPORT, report, strlen (report)) < 0)
    _exit (1);
  dup2 (0, PROXY_REPORT);
}

/* ---- the loop -------------------------------------------------------------- */

static void
accept_some (void)
{
  struct connection *connection;
  int fd;

  while (n_connections < CONNECTIONS_MAX) {
    fd = accept4 (PROXY_LISTENER, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
      return;
    connection = connection_new (fd);
    if (connection != NULL)
      connections[n_connections++] = connection;
  }
}

struct waiting {
  struct pollfd polls[2 + 2 * CONNECTIONS_MAX];
  size_t first[CONNECTIONS_MAX + 1];    /* of each connection */
  size_t count;
};

/* Others wait in the listener's queue while all places are taken; each of
 * them comes free in its time. */
static int64_t
waiting_fill (struct waiting *waiting)
{
  int64_t until = INT64_MAX;
  size_t i;

  waiting->polls[0] = (struct pollfd){ .fd = PROXY_INIT, .events = POLLIN };
  waiting->polls[1] = (struct pollfd){ .fd = n_connections < CONNECTIONS_MAX
                                               ? PROXY_LISTENER : -1,
                                       .events = POLLIN };
  waiting->count = 2;
  for (i = 0; i < n_connections; i++) {
    waiting->first[i] = waiting->count;
    waiting->count += connection_polls (connections[i],
                                        waiting->polls + waiting->count);
    if (connection_deadline (connections[i]) < until)
      until = connection_deadline (connections[i]);
  }
  waiting->first[i] = waiting->count;
  return until;
}

static int
has_news (const struct waiting *waiting, size_t i)
{
  size_t at;

  for (at = waiting->first[i]; at < waiting->first[i + 1]; at++)
    if (waiting->polls[at].revents != 0)
      return 1;
  return 0;
}

static void
serve (const struct waiting *waiting, int64_t now)
{
  size_t i, kept = 0, n = n_connections;

  for (i = 0; i < n; i++) {
    struct connection *connection = connections[i];

    if ((has_news (waiting, i) || now >= connection_deadline (connection))
        && connection_step (connection, now))
      connection_free (connection);
    else
      connections[kept++] = connection;
  }
  n_connections = kept;
}

static void
loop_once (void)
{
  static struct waiting waiting;
  int64_t until = waiting_fill (&waiting), left = until - now_ns ();
  struct timespec limit;

  if (left < 0)
    left = 0;
  limit.tv_sec = left / 1000000000;
  limit.tv_nsec = left % 1000000000;
  if (ppoll (waiting.polls, waiting.count,
             until == INT64_MAX ? NULL : &limit, NULL) < 0) {
    if (errno != EINTR)
      _exit (1);
    return;
  }
  if (waiting.polls[0].revents != 0)
    _exit (0);                  /* the sandbox is gone */
  serve (&waiting, now_ns ());
  if (waiting.polls[1].revents & ~POLLIN)
    _exit (1);
  if (waiting.polls[1].revents != 0)
    accept_some ();
}

int
main (void)
{
  start ();
  for (;;)
    loop_once ();
}
