/* SPDX-License-Identifier: Apache-2.0 */
/* See kit-run.h.  The kit says one JSON object at its end, its report or an
 * error, which is kept here until then, up to a cap. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/helper.h"
#include "base/text.h"
#include "server/api/kit-run.h"

#define KIT_NAME "coffer-kit"
#define REPORT_MAX (4 << 20)
#define CLEAR_NS (INT64_C (20) * 1000000000)
#define WORDS_MAX 10

struct kit_run {
  pid_t pid;                    /* 0: waited for */
  int pidfd, out;
  struct coffer_buffer text;
};

static atomic_flag running = ATOMIC_FLAG_INIT;

/* ---- its start ----------------------------------------------------------- */

/* Its signals are as at the start of any program; its words go to the pipe, and
 * what it says to people nowhere. */
static int
spawn (int program, char *const *words, int out, pid_t *pid)
{
  auto_free char *path = text_printf ("/proc/self/fd/%d", program);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t all, none;
  int r;

  if (!path)
    return ENOMEM;
  sigfillset (&all);
  sigemptyset (&none);
  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_addopen (&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2 (&actions, out, 1);
  posix_spawn_file_actions_addopen (&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_init (&attributes);
  posix_spawnattr_setsigdefault (&attributes, &all);
  posix_spawnattr_setsigmask (&attributes, &none);
  posix_spawnattr_setflags (&attributes, POSIX_SPAWN_SETSIGDEF
                                         | POSIX_SPAWN_SETSIGMASK);
  r = posix_spawn (pid, path, &actions, &attributes, words, environ);
  posix_spawnattr_destroy (&attributes);
  posix_spawn_file_actions_destroy (&actions);
  return r;
}

static int
start (struct kit_run *run, const struct place *place,
       const struct kit_options *options, struct error **err)
{
  coffer_autoclose int program = helper_program_open (place, KIT_NAME, err);
  coffer_autostrings struct coffer_strings words = { 0 };
  coffer_autoclose int theirs = -1;
  int ends[2], r;

  if (program < 0)
    return -1;
  coffer_strings_add (&words, KIT_NAME);
  coffer_strings_add (&words, "--json");
  coffer_strings_add (&words, "--yes");
  if (options->record)
    coffer_strings_add (&words, "--record");
  if (options->only)
    coffer_strings_printf (&words, "--only=%s", options->only);
  if (options->seed)
    coffer_strings_printf (&words, "--seed=%s", options->seed);
  coffer_strings_add (&words, "--");
  coffer_strings_add (&words, options->provider);
  if (words.failed)
    return error_set (err, E_NO_MEMORY, 0, "the kit");
  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe for the kit");
  run->out = ends[0];
  theirs = ends[1];
  fcntl (run->out, F_SETFL, O_NONBLOCK);
  r = spawn (program, words.items, theirs, &run->pid);
  if (r != 0) {
    run->pid = 0;
    return error_set (err, E_IO, r, "start " KIT_NAME);
  }
  run->pidfd = (int) syscall (SYS_pidfd_open, run->pid, 0);
  return run->pidfd < 0 ? error_set (err, E_IO, errno, "watch " KIT_NAME) : 0;
}

int
kit_run_begin (const struct place *place, const struct kit_options *options,
               struct kit_run **out, struct error **err)
{
  auto_kit_run struct kit_run *run = NULL;

  if (!text_is_id (options->provider))
    return error_set (err, E_UNKNOWN_PROVIDER, 0, "no provider %s",
                      options->provider);
  if (atomic_flag_test_and_set (&running))
    return error_set (err, E_BUSY, 0, "the kit already runs");
  run = calloc (1, sizeof *run);
  if (!run) {
    atomic_flag_clear (&running);
    return error_set (err, E_NO_MEMORY, 0, "the kit");
  }
  run->out = run->pidfd = -1;
  if (start (run, place, options, err) < 0)
    return -1;
  *out = steal (run);
  return 0;
}

/* ---- its end ------------------------------------------------------------- */

static void
reap (struct kit_run *run)
{
  while (waitpid (run->pid, NULL, 0) < 0 && errno == EINTR)
    ;
  run->pid = 0;
}

void
kit_run_free (struct kit_run *run)
{
  if (!run)
    return;
  coffer_fd_close (&run->out);
  if (run->pid > 0) {
    kill (run->pid, SIGTERM);   /* not waited for yet: it is still that one */
    if (run->pidfd < 0
        || coffer_wait_fd (run->pidfd, POLLIN, coffer_now_ns () + CLEAR_NS, -1)
             != 1)
      kill (run->pid, SIGKILL);
    reap (run);
  }
  coffer_fd_close (&run->pidfd);
  coffer_buffer_free (&run->text);
  free (run);
  atomic_flag_clear (&running);
}

/* It has closed its output, and is about to end.  One that does not is ended
 * when the run is freed. */
static void
end_wait (struct kit_run *run, int cancel_fd)
{
  if (coffer_wait_fd (run->pidfd, POLLIN, coffer_now_ns () + CLEAR_NS,
                      cancel_fd) == 1)
    reap (run);
}

/* Its last words. */
static int
take_report (struct kit_run *run, json_t **report, struct error **err)
{
  if (run->text.failed)
    return error_set (err, E_NO_MEMORY, 0, "the kit's report");
  if (run->text.size > 0
      && json_parse (run->text.data, run->text.size, report, NULL) == 0) {
    if (json_is_object (*report))
      return 1;
    json_decref (steal (*report));
  }
  return error_set (err, E_INTERNAL, 0, "the kit ended without a report");
}

/* 1: that was its end. */
static int
read_some (struct kit_run *run, struct error **err)
{
  char bytes[16384];
  ssize_t n = read (run->out, bytes, sizeof bytes);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return 0;
  if (n <= 0)
    return 1;
  coffer_buffer_add (&run->text, bytes, (size_t) n);
  if (run->text.size > REPORT_MAX)
    return error_set (err, E_INTERNAL, 0, "the kit's report is too long");
  return 0;
}

int
kit_run_wait (struct kit_run *run, int wait_ms, int cancel_fd,
              json_t **report, struct error **err)
{
  const int64_t deadline = coffer_now_ns () + (int64_t) wait_ms * 1000000;
  int r;

  for (;;) {
    r = coffer_wait_fd (run->out, POLLIN, deadline, cancel_fd);
    if (r < 0 && errno == EINTR)
      continue;
    if (r != 1)
      break;
    r = read_some (run, err);
    if (r < 0)
      return -1;
    if (r > 0) {
      end_wait (run, cancel_fd);
      return take_report (run, report, err);
    }
  }
  if (coffer_now_ns () >= deadline)
    return 0;
  return error_set (err, E_EXEC_CANCELLED, 0, "the kit was left");
}
