/* SPDX-License-Identifier: Apache-2.0 */
/* A program of libexec as a child. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/helper.h"
#include "base/text.h"

#define REPORT_MAX 16384
/* An archive of the largest size that is taken, on a slow disk. */
#define WORK_NS (INT64_C (3600) * 1000000000)
#define END_NS 5000000000       /* that it may take to end after its report */
#define LOOK_NS 200000000       /* until the next look at how far it is */
#define FIRST_FREE 5            /* 0 to 4 are given a meaning */

struct birth {
  int program, in, out, folder, report, null;
  char *const *arguments, *const *environment;
};

int
helper_program_open (const struct place *place, const char *name,
                     struct error **err)
{
  coffer_autoclose int dir = place_open_trusted_dir (place->libexec, err);
  coffer_autoclose int fd = -1;
  auto_free char *shown = text_printf ("%s/%s", place->libexec, name);

  if (dir < 0)
    return -1;
  fd = openat (dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return error_set (err, E_IO, errno, "open %s", shown ? shown : name);
  if (place_check_trusted (fd, shown ? shown : name, err) < 0)
    return -1;
  return coffer_fd_steal (&fd);
}

/* In the child, which shares the parent's memory until it executes: system
 * calls only. */
static void
child_exec (const struct birth *birth)
{
  const int from[] = { birth->in, birth->out, birth->null, birth->folder,
                       birth->report };
  int high[5], i, program;
  sigset_t none;

  /* Out of the way, so that no dup2 hits what is still needed. */
  for (i = 0; i < 5; i++) {
    high[i] = fcntl (from[i] < 0 ? birth->null : from[i], F_DUPFD_CLOEXEC,
                     FIRST_FREE);
    if (high[i] < 0)
      return;
  }
  program = fcntl (birth->program, F_DUPFD_CLOEXEC, FIRST_FREE);
  for (i = 0; i < 5; i++)
    if (dup2 (high[i], i) < 0)
      return;
  /* None of the caller's files goes along, whoever opened it. */
  if (program < 0
      || syscall (SYS_close_range, FIRST_FREE, ~0U, 4 /* CLOEXEC */) < 0)
    return;
  sigemptyset (&none);
  syscall (SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
  syscall (SYS_execveat, program, "", birth->arguments, birth->environment,
           AT_EMPTY_PATH);
}

/* vfork with every signal blocked until the child has executed. */
static int
child_start (const struct birth *birth, pid_t *pid)
{
  volatile int failed = 0;
  sigset_t all, old;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  *pid = vfork ();
  if (*pid == 0) {
    child_exec (birth);
    failed = errno ? errno : ENOEXEC;
    _exit (127);
  }
  if (*pid < 0)
    failed = errno;
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  return failed;
}

/* A vector of at most `room` texts, as exec takes it; its length. */
static size_t
texts_copy (const char *const *from, char **out, size_t room)
{
  size_t n = 0;

  for (; from && from[n] && n < room; n++)
    out[n] = (char *) from[n];
  return n;
}

int
helper_start (const struct place *place, const struct helper_program *program,
              struct helper *helper, struct error **err)
{
  coffer_autoclose int fd = helper_program_open (place, program->name, err);
  coffer_autoclose int null = -1, writes = -1;
  char *arguments[HELPER_MAX_ARGUMENTS + 2] = { (char *) program->name };
  char *environment[HELPER_MAX_ARGUMENTS + 2] = { NULL };
  struct birth birth;
  int report[2], failed;

  if (fd < 0)
    return -1;
  null = open ("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || pipe2 (report, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "starting %s", program->name);
  helper->report = report[0];
  helper->name = program->name;
  helper->number = program->number;
  writes = report[1];
  texts_copy (program->arguments, arguments + 1, HELPER_MAX_ARGUMENTS);
#ifdef COFFER_SANITIZERS
  environment[0] = (char *) "ASAN_OPTIONS=detect_leaks=0";
#endif
  texts_copy (program->environment, environment + (environment[0] != NULL),
              HELPER_MAX_ARGUMENTS);
  birth = (struct birth){ fd, program->in, program->out, program->folder,
                          writes, null, arguments, environment };
  failed = child_start (&birth, &helper->pid);
  if (failed)
    return error_set (err, E_IO, failed, "starting %s", program->name);
  return 0;
}

/* One that was asked for, as the place of the file says, or the end of time. */
static int
report_wait (struct helper *helper, const struct helper_watch *watch,
             int source, uint64_t total, int64_t deadline, struct error **err)
{
  for (;;) {
    int64_t next = coffer_now_ns () + LOOK_NS;
    int r = coffer_wait_fd (helper->report, POLLIN,
                            next < deadline ? next : deadline,
                            watch->cancel_fd);
    off_t done;

    if (r > 0)
      return 0;
    if (r == 0 && errno == ECANCELED)
      return error_set (err, E_EXEC_CANCELLED, 0,
                        "%s was left before it was through", helper->name);
    if (r < 0 || coffer_now_ns () >= deadline)
      return error_set (err, E_IO, r < 0 ? errno : ETIMEDOUT,
                        "waiting for %s", helper->name);
    /* It reads from the same open file, or writes to it. */
    done = source >= 0 ? lseek (source, 0, SEEK_CUR) : 0;
    if (watch->progress && done > 0)
      watch->progress (watch->data, (uint64_t) done, total, NULL);
  }
}

/* A line before the report: how much it is going to be, where that is known only
 * to the helper.  What comes after it stays in the text. */
static void
total_take (char *text, size_t *used, uint64_t *total)
{
  const size_t n = strlen (HELPER_TOTAL);
  char *end = memchr (text, '\n', *used);

  if (!end || *used < n || memcmp (text, HELPER_TOTAL, n) != 0)
    return;
  *end++ = '\0';
  text_parse_u64 (text + n, 1, INT64_MAX, total);
  *used -= (size_t) (end - text);
  memmove (text, end, *used);
}

/* All of the report: its end is the helper's. */
static int
report_read (struct helper *helper, const struct helper_watch *watch,
             int source, uint64_t total, char *text, size_t size,
             struct error **err)
{
  const int64_t deadline = coffer_now_ns () + WORK_NS;
  size_t used = 0;
  ssize_t n;

  for (;;) {
    if (report_wait (helper, watch, source, total, deadline, err) < 0)
      return -1;
    n = read (helper->report, text + used, size - 1 - used);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0 || (used += (size_t) n) >= size - 1)
      break;
    total_take (text, &used, &total);
  }
  text[used] = '\0';
  return 0;
}

static int
fail_report (const struct helper *helper, const json_t *report,
             struct error **err)
{
  const char *why = json_string_value (json_object_get (report, "error"));
  const char *entry = json_string_value (json_object_get (report, "entry"));

  error_set (err, helper->number, 0, "%s%s%s", entry ? entry : "",
             entry && *entry ? ": " : "", why);
  if (entry && *entry)
    error_detail (err, "entry", json_string (entry));
  return -1;
}

/* Its end, which is made where it does not come: what has read an archive is
 * not to be waited for.  The status of waitpid. */
static int
end_take (struct helper *helper)
{
  coffer_autoclose int pidfd = (int) syscall (SYS_pidfd_open, helper->pid, 0);
  int status = 0;

  if (pidfd < 0
      || coffer_wait_fd (pidfd, POLLIN, coffer_now_ns () + END_NS, -1) != 1)
    kill (helper->pid, SIGKILL);        /* not yet waited for: still the same */
  while (waitpid (helper->pid, &status, 0) < 0 && errno == EINTR)
    ;
  helper->pid = 0;
  return status;
}

int
helper_finish (struct helper *helper, const struct helper_watch *watch,
               int source, uint64_t size, json_t **report, struct error **err)
{
  auto_json json_t *json = NULL;
  char text[REPORT_MAX];
  int status;

  if (report_read (helper, watch, source, size, text, sizeof text, err) < 0)
    return -1;
  /* A report that is too long: whoever still writes is to hear that. */
  coffer_fd_close (&helper->report);
  status = end_take (helper);
  if (json_parse (text, strlen (text), &json, NULL) == 0
      && json_object_get (json, "error"))
    return fail_report (helper, json, err);
  if (!json || !WIFEXITED (status) || WEXITSTATUS (status) != 0) {
    if (WIFSIGNALED (status))
      return error_set (err, helper->number, 0, "%s was ended by signal %d",
                        helper->name, WTERMSIG (status));
    return error_set (err, helper->number, 0, "%s failed without a word",
                      helper->name);
  }
  *report = steal (json);
  return 0;
}

void
helper_fini (struct helper *helper)
{
  if (helper->pid > 0) {
    kill (helper->pid, SIGKILL);
    while (waitpid (helper->pid, NULL, 0) < 0 && errno == EINTR)
      ;
  }
  helper->pid = 0;
  coffer_fd_close (&helper->report);
}
