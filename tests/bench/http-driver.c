/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon does in a second, beside what this machine does without one.
 *
 *   http-driver rate SOCKET PATH BODY SECONDS CLIENTS
 *       POSTs BODY over connections that stay open, as fast as it is answered
 *   http-driver bare SECONDS CLIENTS PROGRAM…
 *       starts and awaits the program, as fast as it goes
 *   http-driver stream SOCKET PATH ACCEPT
 *       GETs and throws away what comes
 *   http-driver pipe PROGRAM…
 *       starts the program and throws away what comes out of a pipe
 *
 * Each prints one JSON object.  A reply that is not a success ends it. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#define CLIENTS_MAX 256
#define REPLY_MAX (1 << 20)
#define PIPE_BYTES (256 << 10)  /* as the daemon's */
#define TIMES_MAX (1 << 16)

static const char *socket_path, *target, *body;
static int64_t until_ns;
static char **program;

struct client {
  pthread_t thread;
  uint64_t done;
  uint32_t times_us[TIMES_MAX];
};

static void
fail (const char *what)
{
  fprintf (stderr, "http-driver: %s: %s\n", what, strerror (errno));
  exit (1);
}

static int
dial (void)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (strlen (socket_path) >= sizeof address.sun_path)
    fail ("a short path is needed");
  strcpy (address.sun_path, socket_path);
  if (fd < 0
      || connect (fd, (struct sockaddr *) &address, sizeof address) < 0)
    fail (socket_path);
  return fd;
}

/* ---- requests ------------------------------------------------------------- */

/* One reply with a Content-Length, whole. */
static void
reply_take (int fd, char *bytes)
{
  size_t n = 0, length = 0;
  char *end = NULL, *field;
  ssize_t got;

  while (!end || n < (size_t) (end - bytes) + 4 + length) {
    got = n < REPLY_MAX ? read (fd, bytes + n, REPLY_MAX - n) : 0;
    if (got <= 0)
      fail ("the connection ended");
    n += (size_t) got;
    bytes[n] = '\0';
    if (end || !(end = strstr (bytes, "\r\n\r\n")))
      continue;
    if (strncmp (bytes, "HTTP/1.1 2", 10) != 0) {
      fprintf (stderr, "%s\n", bytes);
      fail ("no success");
    }
    field = strcasestr (bytes, "\r\ncontent-length:");
    length = field ? strtoul (field + 17, NULL, 10) : 0;
  }
}

static void *
client_run (void *data)
{
  struct client *client = data;
  char *request, *reply = malloc (REPLY_MAX + 1);
  int fd = dial (), size;
  int64_t began;

  size = asprintf (&request, "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                   "Content-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n%s", target, strlen (body),
                   body);
  if (size < 0 || !reply)
    fail ("memory");
  while ((began = coffer_now_ns ()) < until_ns) {
    if (coffer_write_all (fd, request, (size_t) size) < 0)
      fail ("writing");
    reply_take (fd, reply);
    client->times_us[client->done++ % TIMES_MAX]
      = (uint32_t) ((coffer_now_ns () - began) / 1000);
  }
  close (fd);
  free (request);
  free (reply);
  return NULL;
}

static void *
bare_run (void *data)
{
  struct client *client = data;
  extern char **environ;
  int64_t began;
  int status;
  pid_t pid;

  while ((began = coffer_now_ns ()) < until_ns) {
    if ((errno = posix_spawn (&pid, program[0], NULL, NULL, program, environ)))
      fail (program[0]);
    if (waitpid (pid, &status, 0) != pid || status != 0)
      fail ("waiting");
    client->times_us[client->done++ % TIMES_MAX]
      = (uint32_t) ((coffer_now_ns () - began) / 1000);
  }
  return NULL;
}

/* ---- rates ---------------------------------------------------------------- */

static int
smaller (const void *a, const void *b)
{
  const uint32_t *x = a, *y = b;

  return *x < *y ? -1 : *x > *y;
}

static void
report (const struct client *clients, int n, double seconds)
{
  uint32_t *all = malloc ((size_t) n * TIMES_MAX * sizeof *all);
  size_t count = 0, have;
  uint64_t done = 0;
  int i;

  if (!all)
    fail ("memory");
  for (i = 0; i < n; i++) {
    have = clients[i].done < TIMES_MAX ? (size_t) clients[i].done : TIMES_MAX;
    memcpy (all + count, clients[i].times_us, have * sizeof *all);
    count += have;
    done += clients[i].done;
  }
  if (count == 0)
    fail ("nothing was done");
  qsort (all, count, sizeof *all, smaller);
  printf ("{\"done\":%ju,\"seconds\":%.3f,\"rate\":%.1f,\"p50_us\":%u,"
          "\"p99_us\":%u}\n", (uintmax_t) done, seconds,
          (double) done / seconds, all[count / 2], all[count * 99 / 100]);
  free (all);
}

static int
run_all (void *(*run) (void *), double seconds, int n)
{
  struct client *clients = calloc ((size_t) n, sizeof *clients);
  int64_t began = coffer_now_ns ();
  int i;

  if (!clients)
    fail ("memory");
  until_ns = began + (int64_t) (seconds * 1e9);
  for (i = 0; i < n; i++)
    if (pthread_create (&clients[i].thread, NULL, run, &clients[i]) != 0)
      fail ("a thread");
  for (i = 0; i < n; i++)
    pthread_join (clients[i].thread, NULL);
  report (clients, n, (double) (coffer_now_ns () - began) / 1e9);
  free (clients);
  return 0;
}

/* ---- a stream ------------------------------------------------------------- */

static int
bytes_report (uint64_t total, int64_t began)
{
  const double seconds = (double) (coffer_now_ns () - began) / 1e9;

  printf ("{\"bytes\":%ju,\"seconds\":%.3f,\"MB_per_s\":%.1f}\n",
          (uintmax_t) total, seconds, (double) total / 1e6 / seconds);
  return 0;
}

static int
stream (const char *accept)
{
  char *request, *bytes = malloc (REPLY_MAX);
  int fd = dial (), size;
  int64_t began = coffer_now_ns ();
  uint64_t total = 0;
  ssize_t n;

  size = asprintf (&request, "GET %s HTTP/1.1\r\nHost: localhost\r\n"
                   "Accept: %s\r\nConnection: close\r\n\r\n", target, accept);
  if (size < 0 || !bytes
      || coffer_write_all (fd, request, (size_t) size) < 0)
    fail ("asking");
  while ((n = read (fd, bytes, REPLY_MAX)) > 0) {
    if (total == 0 && strncmp (bytes, "HTTP/1.1 200", 12) != 0)
      fail ("no success");
    total += (uint64_t) n;
  }
  free (request);
  free (bytes);
  close (fd);
  return bytes_report (total, began);
}

static int
pipe_read (void)
{
  extern char **environ;
  posix_spawn_file_actions_t actions;
  char *bytes = malloc (REPLY_MAX);
  int64_t began = coffer_now_ns ();
  uint64_t total = 0;
  int ends[2], status;
  ssize_t n;
  pid_t pid;

  if (!bytes || pipe2 (ends, O_CLOEXEC) < 0
      || fcntl (ends[0], F_SETPIPE_SZ, PIPE_BYTES) < 0
      || (errno = posix_spawn_file_actions_init (&actions))
      || (errno = posix_spawn_file_actions_adddup2 (&actions, ends[1], 1))
      || (errno = posix_spawn (&pid, program[0], &actions, NULL, program,
                               environ)))
    fail (program[0]);
  posix_spawn_file_actions_destroy (&actions);
  close (ends[1]);
  while ((n = read (ends[0], bytes, REPLY_MAX)) > 0)
    total += (uint64_t) n;
  if (waitpid (pid, &status, 0) != pid || status != 0)
    fail ("waiting");
  free (bytes);
  close (ends[0]);
  return bytes_report (total, began);
}

static int
count_of (const char *text)
{
  int n = atoi (text);

  return n < 1 ? 1 : n > CLIENTS_MAX ? CLIENTS_MAX : n;
}

int
main (int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";

  if (strcmp (what, "bare") == 0 && argc > 4) {
    program = argv + 4;
    return run_all (bare_run, atof (argv[2]), count_of (argv[3]));
  }
  if (strcmp (what, "pipe") == 0 && argc > 2) {
    program = argv + 2;
    return pipe_read ();
  }
  if (argc > 3) {
    socket_path = argv[2];
    target = argv[3];
  }
  if (strcmp (what, "rate") == 0 && argc == 7) {
    body = argv[4];
    return run_all (client_run, atof (argv[5]), count_of (argv[6]));
  }
  if (strcmp (what, "stream") == 0 && argc == 5)
    return stream (argv[4]);
  fprintf (stderr, "http-driver: see the head of tests/bench/http-driver.c\n");
  return 2;
}
