/* SPDX-License-Identifier: Apache-2.0 */
/* See contained.h.  coffer-contained does the confining and reports it; here are
 * its folder, its streams, its time and its end.  The strict filter lets it
 * start no process, so that ending it ends all of it. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/helper.h"
#include "base/text.h"
#include "python/contained.h"
#include "sandbox/host.h"

#define PROGRAM "coffer-contained"
#define PYTHON "/usr/bin/python3"
/* An id that no account has: beside those of systemd and of nobody. */
#define OWN_UID 65521
#define WAIT_MS 20000           /* for who runs now */
#define START_MS 10000
#define REPORT_MAX 4096
#define ARGUMENTS 7

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

struct contained {
  const struct contained_request *request;
  char *folder;
  int folder_fd, above_fd;
  int out[2], err[2];
  struct helper helper;
  int pidfd;
};

/* ---- its folder --------------------------------------------------------- */

static int
folder_make (const struct place *place, struct contained *run,
             struct error **err)
{
  char *path;

  run->above_fd = place_open_dir (place->runtime, err);
  if (run->above_fd < 0)
    return -1;
  path = text_printf ("%s/python.XXXXXX", place->runtime);
  if (!path || !mkdtemp (path)) {
    free (path);
    return error_set (err, E_IO, errno, "a folder in %s", place->runtime);
  }
  run->folder = path;
  run->folder_fd = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW
                               | O_CLOEXEC);
  if (run->folder_fd < 0 || fchown (run->folder_fd, OWN_UID, OWN_UID) < 0)
    return error_set (err, E_IO, errno, "%s", path);
  return 0;
}

static void
contained_fini (struct contained *run)
{
  helper_fini (&run->helper);
  if (run->folder)
    coffer_remove_beneath (run->above_fd, strrchr (run->folder, '/') + 1, 1,
                           NULL);
  free (run->folder);
  coffer_fd_close (&run->folder_fd);
  coffer_fd_close (&run->above_fd);
  coffer_fd_close (&run->out[0]);
  coffer_fd_close (&run->out[1]);
  coffer_fd_close (&run->err[0]);
  coffer_fd_close (&run->err[1]);
  coffer_fd_close (&run->pidfd);
}
#define auto_contained __attribute__ ((cleanup (contained_fini)))

/* ---- its start ---------------------------------------------------------- */

static uint64_t
limit_of (const struct contained_request *request, enum profile_field field,
          uint64_t otherwise)
{
  const uint64_t said = request->profile->number[field];

  return said ? said : otherwise;
}

static int
program_start (const struct place *place, struct contained *run,
               struct error **err)
{
  const struct contained_request *request = run->request;
  const uint64_t values[ARGUMENTS - 1] = {
    OWN_UID, limit_of (request, PROFILE_ADDRESS_SPACE, 1 << 30),
    limit_of (request, PROFILE_FILE_SIZE, 16 << 20),
    limit_of (request, PROFILE_OPEN_FILES, 64),
    limit_of (request, PROFILE_PIDS, 32), request->timeout_ms / 1000 + 2
  };
  char numbers[ARGUMENTS - 1][24];
  const char *arguments[HELPER_MAX_ARGUMENTS + 1] = { NULL };
  const struct helper_program program = {
    .name = PROGRAM, .arguments = arguments, .in = *request->channel,
    .out = run->out[1], .folder = run->err[1],
    .number = E_ISOLATION_UNAVAILABLE
  };
  size_t i, n;

  for (i = 0; i < ARGUMENTS - 1; i++) {
    snprintf (numbers[i], sizeof numbers[i], "%llu",
              (unsigned long long) values[i]);
    arguments[i] = numbers[i];
  }
  arguments[i++] = run->folder;
  arguments[i++] = PYTHON;
  for (n = 1; request->argv[n] && i < HELPER_MAX_ARGUMENTS; n++)
    arguments[i++] = request->argv[n];
  if (helper_start (place, &program, &run->helper, err) < 0)
    return -1;
  coffer_fd_close (request->channel);
  coffer_fd_close (&run->out[1]);
  coffer_fd_close (&run->err[1]);
  run->pidfd = (int) syscall (SYS_pidfd_open, run->helper.pid, 0);
  return run->pidfd < 0
           ? error_set (err, E_IO, errno, "watching " PROGRAM) : 0;
}

/* What it said before it became the program, or why it did not. */
static int
report_take (struct contained *run, json_t **facts, struct error **err)
{
  const int64_t deadline = deadline_in (START_MS);
  auto_json json_t *report = NULL;
  char text[REPORT_MAX];
  size_t used = 0;
  ssize_t n = 0;

  while (used < sizeof text
         && coffer_wait_fd (run->helper.report, POLLIN, deadline,
                            run->request->cancel_fd) == 1
         && (n = read (run->helper.report, text + used, sizeof text - used))
              > 0)
    used += (size_t) n;
  if (n != 0 || json_parse (text, used, &report, NULL) < 0
      || !json_is_array (json_object_get (report, "facts"))) {
    error_set (err, E_ISOLATION_UNAVAILABLE, 0, "without namespaces: %s",
               json_is_string (json_object_get (report, "error"))
                 ? json_string_value (json_object_get (report, "error"))
                 : PROGRAM " ended without a word");
    error_hint (err, "isolation.layer5: container needs a daemon of root, "
                "Landlock and seccomp");
    return -1;
  }
  *facts = json_incref (json_object_get (report, "facts"));
  return 0;
}

/* ---- while it runs ------------------------------------------------------ */

/* 0: the end of the stream. */
static int
take_output (int fd, struct kept *kept)
{
  char piece[16384];
  const ssize_t n = read (fd, piece, sizeof piece);

  if (n > 0)
    kept_add (kept, piece, (size_t) n);
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Until it has ended and its output is read.  1: its time is over; 2: given
 * up. */
static int
watch (struct contained *run)
{
  const int64_t deadline = deadline_in ((int64_t) run->request->timeout_ms);
  struct pollfd fds[] = { { run->out[0], POLLIN, 0 },
                          { run->err[0], POLLIN, 0 },
                          { run->pidfd, POLLIN, 0 },
                          { run->request->cancel_fd, POLLIN, 0 } };
  int why = 0;
  int64_t left;

  while (fds[0].fd >= 0 || fds[1].fd >= 0 || fds[2].fd >= 0) {
    left = why ? 1000 : (deadline - coffer_now_ns ()) / 1000000 + 1;
    if (poll (fds, 4, left > 0 ? (int) left : 0) < 0 && errno != EINTR)
      break;
    if (fds[0].revents && !take_output (fds[0].fd, run->request->out))
      fds[0].fd = -1;
    if (fds[1].revents && !take_output (fds[1].fd, run->request->err))
      fds[1].fd = -1;
    if (fds[2].revents)
      fds[2].fd = -1;
    if (!why && fds[3].revents)
      why = 2;
    else if (!why && coffer_now_ns () >= deadline)
      why = 1;
    else
      continue;
    fds[3].fd = -1;
    kill (run->helper.pid, SIGKILL);    /* not waited for: still the same */
  }
  return why;
}

static uint64_t
microseconds (const struct timeval *time)
{
  return (uint64_t) time->tv_sec * 1000000 + (uint64_t) time->tv_usec;
}

static int
end_take (struct contained *run, int why, int64_t began,
          struct exec_result *result, struct error **err)
{
  struct rusage usage = { 0 };
  int status = 0;

  while (wait4 (run->helper.pid, &status, 0, &usage) < 0 && errno == EINTR)
    ;
  run->helper.pid = 0;
  result->code = WIFEXITED (status) ? WEXITSTATUS (status) : -1;
  result->signal = WIFSIGNALED (status) ? WTERMSIG (status) : 0;
  result->timed_out = why == 1;
  result->timeout_ms = run->request->timeout_ms;
  result->duration_us = (uint64_t) (coffer_now_ns () - began) / 1000;
  result->cpu_us = microseconds (&usage.ru_utime)
                   + microseconds (&usage.ru_stime);
  result->limits_hit = calloc (2, sizeof *result->limits_hit);
  if (!result->limits_hit
      || (why == 1 && !(result->limits_hit[0] = strdup ("timeout"))))
    return error_set (err, E_NO_MEMORY, 0, "a result");
  return why == 2 ? error_set (err, E_EXEC_CANCELLED, 0,
                               "interrupted; the code was ended") : 0;
}

static int
run_alone (const struct place *place, struct contained *run,
           struct exec_result *result, json_t **facts, struct error **err)
{
  const int64_t began = coffer_now_ns ();

  if (folder_make (place, run, err) < 0)
    return -1;
  if (pipe2 (run->out, O_CLOEXEC) < 0 || pipe2 (run->err, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  if (program_start (place, run, err) < 0
      || report_take (run, facts, err) < 0)
    return -1;
  return end_take (run, watch (run), began, result, err);
}

int
contained_run (const struct place *place,
               const struct contained_request *request,
               struct exec_result *result, json_t **facts,
               struct error **err)
{
  auto_contained struct contained run = {
    .request = request, .folder_fd = -1, .above_fd = -1, .out = { -1, -1 },
    .err = { -1, -1 }, .helper = { .report = -1 }, .pidfd = -1
  };
  struct timespec until;
  int r;

  clock_gettime (CLOCK_MONOTONIC, &until);
  until.tv_sec += WAIT_MS / 1000;
  if (pthread_mutex_clocklock (&one, CLOCK_MONOTONIC, &until) != 0)
    return error_set (err, E_LIMIT, 0, "without namespaces one run at a time "
                      "is all there is, and another one goes on");
  memset (result, 0, sizeof *result);
  r = run_alone (place, &run, result, facts, err);
  /* Before another one has the same id. */
  contained_fini (&run);
  run.folder = NULL;
  pthread_mutex_unlock (&one);
  return r;
}
