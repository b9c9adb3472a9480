/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib/commands.c: the contract's commands, seen as a host sees them: by
 * what calls emit and fail with, and by the processes that there are. */

#define _GNU_SOURCE

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <coffer/commands.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/process.h>

#include "fakehost.h"

#define TIMEOUT_MS 20000        /* of a call that is to succeed */
#define PATH_ENTRY "PATH=/usr/local/bin:/usr/bin:/bin"

struct place {
  char mark[64];                /* "COFFER_TEST_SET=PID-N" */
  struct fakehost host;
  struct coffer_commands *commands;
  unsigned fds;                 /* that were open before */
};

static unsigned
count_entries (const char *path)
{
  DIR *dir = opendir (path);
  struct dirent *entry;
  unsigned n = 0;

  assert_non_null (dir);
  while ((entry = readdir (dir)))
    n += entry->d_name[0] != '.';
  closedir (dir);
  return n;
}

static int
place_new (void **state)
{
  struct place *place = calloc (1, sizeof *place);
  static unsigned n;

  if (!place)
    return -1;
  place->fds = count_entries ("/proc/self/fd");
  snprintf (place->mark, sizeof place->mark, "COFFER_TEST_SET=%ld-%u",
            (long) getpid (), n++);
  fakehost_init (&place->host, TIMEOUT_MS);
  place->commands = coffer_commands_new (place->mark, -1, 0);
  *state = place;
  return place->commands ? 0 : -1;
}

/* Attendants may have a few words left to say. */
static int
threads_are_gone (void)
{
  for (int i = 0; i < 2000; i++) {
    if (count_entries ("/proc/self/task") == 1)
      return 1;
    poll (NULL, 0, 5);
  }
  return 0;
}

/* No process, no thread, no descriptor and no memory of a test is left. */
static int
place_free (void **state)
{
  struct place *place = *state;
  int left = 0;

  if (place->commands) {
    left |= coffer_commands_end (NULL, place->commands) != COFFER_OK;
    coffer_commands_free (place->commands);
  }
  left |= coffer_process_signal_marked (place->mark, 0) != 0;
  left |= !threads_are_gone ();
  fakehost_fini (&place->host);
  left |= count_entries ("/proc/self/fd") != place->fds;
  left |= waitpid (-1, NULL, WNOHANG) != -1;
  free (place);
  return -left;
}

/* -- calls ---- */

static struct coffer_call *
next_call (struct place *place, int64_t timeout_ms)
{
  fakehost_reset (&place->host, timeout_ms);
  return &place->host.call;
}

static int32_t
start_with (struct place *place, const struct coffer_process *process,
            const struct coffer_exec_start_opts *opts)
{
  return coffer_commands_start (next_call (place, TIMEOUT_MS),
                                place->commands, process, opts);
}

/* The command's id, which lives as long as the test wants. */
static char *
start_shell_to (struct place *place, const char *script, int out,
                uint64_t timeout_ms)
{
  const struct coffer_exec_start_opts opts = {.size = sizeof opts,
                                              .timeout_ms = timeout_ms};
  const struct coffer_process process = {
    .argv = (const char *const[]) {"sh", "-c", script, NULL},
    .env = (const char *const[]) {PATH_ENTRY, NULL}, .in = -1, .out = out,
    .err = -1,
  };
  const struct coffer_exec_info *info;

  assert_int_equal (start_with (place, &process, &opts), COFFER_OK);
  info = FAKEHOST_GET (&place->host, exec_info, 0);
  assert_non_null (info);
  return strdup (info->exec);
}

static char *
start_shell (struct place *place, const char *script)
{
  return start_shell_to (place, script, -1, 0);
}

static const struct coffer_exec_exit *
wait_for (struct place *place, const char *exec)
{
  assert_int_equal (coffer_commands_wait (next_call (place, TIMEOUT_MS),
                                          place->commands, exec), COFFER_OK);
  assert_int_equal (fakehost_count (&place->host, COFFER_REC_exec_exit), 1);
  assert_string_equal (FAKEHOST_GET (&place->host, exec_exit, 0)->exec, exec);
  return FAKEHOST_GET (&place->host, exec_exit, 0);
}

static int32_t
signal_it (struct place *place, const char *exec, int32_t number)
{
  return coffer_commands_signal (next_call (place, TIMEOUT_MS),
                                 place->commands, exec, number);
}

static int
marked (const struct place *place)
{
  return coffer_process_signal_marked (place->mark, 0);
}

static void
await_marked (const struct place *place, int count)
{
  for (int i = 0; i < 2000 && marked (place) != count; i++)
    poll (NULL, 0, 5);
  assert_int_equal (marked (place), count);
}

/* -- their life ---- */

static void
a_command_runs_and_its_end_is_told_again_and_again (void **state)
{
  struct place *place = *state;
  char *id = start_shell (place, "exit 7");
  const struct coffer_exec_info *info
    = FAKEHOST_GET (&place->host, exec_info, 0);

  assert_string_equal (id, "x1");
  assert_string_equal (info->argv[2], "exit 7");
  assert_true (info->started_ns > 0
               && info->started_ns <= coffer_realtime_ns ());
  for (int i = 0; i < 3; i++) {
    const struct coffer_exec_exit *how = wait_for (place, id);

    assert_int_equal (how->code, 7);
    assert_int_equal (how->signal, 0);
    assert_int_equal (how->timed_out, 0);
    assert_int_equal (how->killed, 0);
    assert_int_equal (how->failure_errno, 0);
    assert_null (how->failure);
    assert_true (how->duration_us > 0);
  }
  free (id);
}

static void
the_list_has_all_that_were_ever_started (void **state)
{
  struct place *place = *state;
  char *ended = start_shell (place, "kill -9 $$");
  char *running = start_shell (place, "sleep 60");
  const struct coffer_exec_info *info;

  assert_int_equal (wait_for (place, ended)->signal, SIGKILL);
  assert_int_equal (coffer_commands_list (next_call (place, TIMEOUT_MS),
                                          place->commands), COFFER_OK);
  assert_int_equal (fakehost_count (&place->host, COFFER_REC_exec_info), 2);
  for (size_t i = 0; i < 2; i++) {
    info = FAKEHOST_GET (&place->host, exec_info, i);
    assert_string_equal (info->state, strcmp (info->exec, ended) == 0 ?
                                      "exited" : "running");
  }
  free (ended);
  free (running);
}

static void
one_that_never_ran_says_why_at_its_end (void **state)
{
  struct place *place = *state;
  const char *const env[] = {PATH_ENTRY, NULL};
  struct coffer_process process = {
    .argv = (const char *const[]) {"there-is-none", NULL}, .env = env,
    .in = -1, .out = -1, .err = -1,
  };
  const struct coffer_exec_exit *how;

  assert_int_equal (start_with (place, &process, NULL), COFFER_OK);
  assert_string_equal (FAKEHOST_GET (&place->host, exec_info, 0)->state,
                       "exited");
  how = wait_for (place, "x1");
  assert_int_equal (how->code, -1);
  assert_int_equal (how->failure_errno, ENOENT);
  assert_string_equal (how->failure, "the program: No such file or directory");
  process.argv = (const char *const[]) {"true", NULL};
  process.cwd = "/dev/null";
  assert_int_equal (start_with (place, &process, NULL), COFFER_OK);
  assert_string_equal (wait_for (place, "x2")->failure,
                       "the working folder: Not a directory");
  process.cwd = NULL;
  process.in = 987;
  assert_int_equal (start_with (place, &process, NULL), COFFER_OK);
  assert_string_equal (wait_for (place, "x3")->failure,
                       "the process: Bad file descriptor");
  assert_int_equal (signal_it (place, "x3", SIGTERM), COFFER_CONFLICT);
}

static void
unknown_commands_are_not_found (void **state)
{
  static const char *const ids[] = {"x2", "x0", "", "x", "1", "x01", "X1",
                                    "x4294967297", "../x1", "\xff"};
  struct place *place = *state;
  char *id = start_shell (place, "exit 0");

  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
    assert_int_equal (coffer_commands_wait (next_call (place, 100),
                                            place->commands, ids[i]),
                      COFFER_NOT_FOUND);
    assert_int_equal (place->host.failures, 1);
    assert_int_equal (signal_it (place, ids[i], 0), COFFER_NOT_FOUND);
  }
  wait_for (place, id);
  free (id);
}

static void
a_wait_ends_with_its_call_and_not_the_command (void **state)
{
  struct place *place = *state;
  char *id = start_shell (place, "sleep 60");

  assert_int_equal (coffer_commands_wait (next_call (place, 50),
                                          place->commands, id),
                    COFFER_TIMEOUT);
  next_call (place, TIMEOUT_MS);
  fakehost_cancel (&place->host);
  assert_int_equal (coffer_commands_wait (&place->host.call, place->commands,
                                          id), COFFER_CANCELLED);
  assert_int_equal (signal_it (place, id, 0), COFFER_OK);
  assert_int_equal (signal_it (place, id, SIGTERM), COFFER_OK);
  assert_int_equal (wait_for (place, id)->signal, SIGTERM);
  free (id);
}

static void
the_hosts_answer_to_an_emit_is_the_calls (void **state)
{
  struct place *place = *state;
  const struct coffer_process process = {
    .argv = (const char *const[]) {"true", NULL},
    .env = (const char *const[]) {PATH_ENTRY, NULL}, .in = -1, .out = -1,
    .err = -1,
  };

  next_call (place, TIMEOUT_MS);
  place->host.emit_answer = COFFER_CANCELLED;
  assert_int_equal (coffer_commands_start (&place->host.call, place->commands,
                                           &process, NULL), COFFER_CANCELLED);
  assert_int_equal (coffer_commands_list (&place->host.call, place->commands),
                    COFFER_CANCELLED);
  assert_int_equal (coffer_commands_wait (&place->host.call, place->commands,
                                          "x1"), COFFER_CANCELLED);
}

/* -- what they are given ---- */

static void
the_mark_goes_over_what_env_says (void **state)
{
  struct place *place = *state;
  char entry[80], expected[160], *text;
  const char *const env[] = {"A=1", entry, PATH_ENTRY, "B=\xff", NULL};
  struct coffer_process process = {
    .argv = (const char *const[]) {"env", NULL}, .env = env, .in = -1,
    .err = -1,
  };
  int ends[2];
  size_t size;

  snprintf (entry, sizeof entry, "%.*s=mine",
            (int) strcspn (place->mark, "="), place->mark);
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  process.out = ends[1];
  assert_int_equal (start_with (place, &process, NULL), COFFER_OK);
  coffer_fd_close (&ends[1]);
  assert_int_equal (coffer_read_whole (ends[0], 4096, &text, &size), 0);
  snprintf (expected, sizeof expected, "A=1\n%s/x1/\n" PATH_ENTRY "\nB=\xff\n",
            place->mark);
  assert_string_equal (text, expected);
  free (text);
  coffer_fd_close (&ends[0]);
  wait_for (place, "x1");
}

/* Whoever reads a stream sees its end with the command's: no copy is here. */
static void
streams_stay_the_callers_and_no_copy_is_kept (void **state)
{
  struct place *place = *state;
  int ends[2];
  char *id, byte;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  id = start_shell_to (place, "echo; sleep 0.1", ends[1], 0);
  assert_int_equal (fcntl (ends[1], F_GETFD), FD_CLOEXEC);
  coffer_fd_close (&ends[1]);
  assert_int_equal (coffer_read_all (ends[0], &byte, 1), 1);
  assert_int_equal (coffer_wait_fd (ends[0], POLLIN, coffer_now_ns ()
                                    + INT64_C (10000000000), -1), 1);
  assert_int_equal (read (ends[0], &byte, 1), 0);
  coffer_fd_close (&ends[0]);
  wait_for (place, id);
  free (id);
}

static void
options_of_an_older_caller_are_defaults (void **state)
{
  struct place *place = *state;
  const struct coffer_exec_start_opts older = {.size = 8, .timeout_ms = 1};
  const struct coffer_process process = {
    .argv = (const char *const[]) {"sleep", "0.1", NULL},
    .env = (const char *const[]) {PATH_ENTRY, NULL}, .in = -1, .out = -1,
    .err = -1,
  };

  assert_int_equal (start_with (place, &process, &older), COFFER_OK);
  assert_int_equal (wait_for (place, "x1")->timed_out, 0);
  assert_int_equal (FAKEHOST_GET (&place->host, exec_exit, 0)->code, 0);
}

/* -- signals and times ---- */

static void
a_signal_reaches_all_that_a_command_has_started (void **state)
{
  struct place *place = *state;
  char *other = start_shell (place, "exec sleep 60");
  char *id = start_shell (place, "setsid sleep 60 & (sleep 60 &) ; sleep 60; "
                                 "exit 1");

  await_marked (place, 1 + 4);
  assert_int_equal (signal_it (place, id, SIGTERM), COFFER_OK);
  assert_int_equal (wait_for (place, id)->signal, SIGTERM);
  await_marked (place, 1);
  assert_int_equal (signal_it (place, id, SIGTERM), COFFER_CONFLICT);
  assert_int_equal (signal_it (place, other, 0), COFFER_OK);
  free (other);
  free (id);
}

static void
numbers_that_are_no_signals_are_invalid (void **state)
{
  static const int32_t numbers[] = {-1, NSIG, 9999, INT32_MAX, INT32_MIN};
  struct place *place = *state;
  char *id = start_shell (place, "sleep 60");

  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    assert_int_equal (signal_it (place, id, numbers[i]), COFFER_INVALID);
  assert_int_equal (signal_it (place, id, 0), COFFER_OK);
  assert_int_equal (signal_it (place, id, NSIG - 1), COFFER_OK);
  assert_int_equal (wait_for (place, id)->signal, NSIG - 1);
  free (id);
}

/* Which ignore TERM, and have left their parents. */
static void
the_timeout_ends_a_command_and_its_descendants (void **state)
{
  struct place *place = *state;
  char *id = start_shell_to (place, "trap '' TERM; (setsid sleep 60 &) & "
                                    "wait; sleep 60; exit 0", -1, 1000);
  const struct coffer_exec_exit *how = wait_for (place, id);

  assert_int_equal (how->timed_out, 1);
  assert_int_equal (how->signal, SIGKILL);
  assert_int_equal (how->code, -1);
  assert_true (how->killed >= 1);
  assert_true (how->duration_us >= 1000000 && how->duration_us < 15000000);
  assert_int_equal (marked (place), 0);
  free (id);
}

static void
absurd_timeouts_are_none (void **state)
{
  static const uint64_t times[] = {UINT64_MAX, UINT64_C (1) << 63, INT64_MAX,
                                   INT64_MAX / 1000000,
                                   INT64_MAX / 2000000 - 1};
  struct place *place = *state;

  for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
    char *id = start_shell_to (place, "sleep 0.02; exit 5", -1, times[i]);
    const struct coffer_exec_exit *how = wait_for (place, id);

    assert_int_equal (how->code, 5);
    assert_int_equal (how->timed_out, 0);
    free (id);
  }
}

/* -- the end of a set ---- */

static struct coffer_commands *
other_set (struct place *place, int lifeline, int single)
{
  coffer_commands_free (place->commands);
  place->commands = coffer_commands_new (place->mark, lifeline, single);
  assert_non_null (place->commands);
  return place->commands;
}

static void
the_end_of_the_lifeline_ends_them (void **state)
{
  struct place *place = *state;
  int ends[2];
  char *id;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  other_set (place, ends[0], 0);
  id = start_shell (place, "trap '' TERM HUP; (setsid sleep 60 &); sleep 60;"
                           "exit 0");
  await_marked (place, 3);
  coffer_fd_close (&ends[1]);
  assert_int_equal (wait_for (place, id)->signal, SIGKILL);
  assert_int_equal (FAKEHOST_GET (&place->host, exec_exit, 0)->timed_out, 0);
  assert_int_equal (marked (place), 0);
  free (id);
  /* One that starts after it ends at once. */
  id = start_shell (place, "sleep 60");
  assert_int_equal (wait_for (place, id)->signal, SIGKILL);
  free (id);
  assert_int_equal (coffer_commands_end (NULL, place->commands), COFFER_OK);
  coffer_fd_close (&ends[0]);
}

static void
a_set_for_one_has_one_and_what_that_started_ends_with_it (void **state)
{
  struct place *place = *state;
  const struct coffer_process process = {
    .argv = (const char *const[]) {"true", NULL}, .in = -1, .out = -1,
    .err = -1,
  };
  char *id;

  other_set (place, -1, 1);
  id = start_shell (place, "(setsid sleep 60 &); sleep 0.1; exit 6");
  assert_int_equal (start_with (place, &process, NULL), COFFER_CONFLICT);
  assert_int_equal (wait_for (place, id)->code, 6);
  assert_true (FAKEHOST_GET (&place->host, exec_exit, 0)->killed >= 1);
  assert_int_equal (marked (place), 0);
  assert_int_equal (start_with (place, &process, NULL), COFFER_CONFLICT);
  free (id);
}

static void
descendants_outlive_a_command_and_end_with_the_set (void **state)
{
  struct place *place = *state;
  char *id = start_shell (place, "(setsid sleep 60 &); exit 0");

  assert_int_equal (wait_for (place, id)->killed, 0);
  await_marked (place, 1);
  assert_int_equal (coffer_commands_end (next_call (place, TIMEOUT_MS),
                                         place->commands), COFFER_OK);
  assert_int_equal (marked (place), 0);
  assert_int_equal (wait_for (place, id)->code, 0);
  free (id);
}

static void
nothing_starts_after_the_end (void **state)
{
  struct place *place = *state;
  const struct coffer_process process = {
    .argv = (const char *const[]) {"true", NULL}, .in = -1, .out = -1,
    .err = -1,
  };
  char *id = start_shell (place, "sleep 60");

  for (int i = 0; i < 2; i++) {
    assert_int_equal (coffer_commands_end (next_call (place, TIMEOUT_MS),
                                           place->commands), COFFER_OK);
    assert_int_equal (start_with (place, &process, NULL), COFFER_NOT_FOUND);
  }
  assert_int_equal (wait_for (place, id)->signal, SIGKILL);
  free (id);
}

/* A call whose time is over kills all the same, and says that it does not know
 * of the end. */
static void
an_end_that_is_out_of_time_may_be_asked_for_again (void **state)
{
  struct place *place = *state;
  char *id = start_shell (place, "sleep 60");

  assert_int_equal (coffer_commands_end (next_call (place, -1000),
                                         place->commands), COFFER_TIMEOUT);
  assert_int_equal (place->host.failures, 1);
  assert_int_equal (wait_for (place, id)->signal, SIGKILL);
  assert_int_equal (coffer_commands_end (next_call (place, TIMEOUT_MS),
                                         place->commands), COFFER_OK);
  free (id);
}

/* Each turn is another process, which leaves its parent at once. */
static void
who_forks_without_pause_ends_all_the_same (void **state)
{
  struct place *place = *state;
  char *ids[2];
  int64_t begun;

  for (int i = 0; i < 2; i++)
    ids[i] = start_shell (place, "trap '' TERM HUP INT; "
                          "while :; do (setsid sleep 30 &); sleep 0.005; done");
  poll (NULL, 0, 200);
  begun = coffer_now_ns ();
  assert_int_equal (coffer_commands_end (next_call (place, TIMEOUT_MS),
                                         place->commands), COFFER_OK);
  assert_true (coffer_now_ns () - begun < HARNESS_PATIENCE_NS);
  assert_int_equal (marked (place), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal (wait_for (place, ids[i])->signal, SIGKILL);
    free (ids[i]);
  }
}

/* -- limits ---- */

static void
there_is_a_most_of_commands (void **state)
{
  struct place *place = *state;
  const char *const none[] = {NULL};
  const struct coffer_process process = {
    .argv = none, .in = -1, .out = -1, .err = -1,       /* never runs */
  };

  for (int i = 0; i < 4096; i++)
    assert_int_equal (start_with (place, &process, NULL), COFFER_OK);
  assert_int_equal (wait_for (place, "x4096")->failure_errno, EINVAL);
  assert_int_equal (start_with (place, &process, NULL), COFFER_LIMIT);
  assert_int_equal (coffer_commands_list (next_call (place, TIMEOUT_MS),
                                          place->commands), COFFER_OK);
  assert_int_equal (fakehost_count (&place->host, COFFER_REC_exec_info), 4096);
}

/* However few there are, a command runs, or its call or its end says why. */
static void
without_descriptors_each_failure_is_told (void **state)
{
  struct place *place = *state;
  const struct coffer_process process = {
    .argv = (const char *const[]) {"true", NULL},
    .env = (const char *const[]) {PATH_ENTRY, NULL}, .in = -1, .out = -1,
    .err = -1,
  };
  struct rlimit limit;
  int32_t code, refused = 0, failed = 0, ran = 0;

  getrlimit (RLIMIT_NOFILE, &limit);
  for (rlim_t n = 3; n < 40; n++) {
    struct rlimit less = {n, limit.rlim_max};

    next_call (place, TIMEOUT_MS);
    assert_int_equal (setrlimit (RLIMIT_NOFILE, &less), 0);
    code = coffer_commands_start (&place->host.call, place->commands, &process,
                                  NULL);
    assert_int_equal (setrlimit (RLIMIT_NOFILE, &limit), 0);
    if (code != COFFER_OK) {
      assert_int_equal (code, coffer_code_from_errno (EMFILE));
      refused++;
      continue;
    }
    char *id = strdup (FAKEHOST_GET (&place->host, exec_info, 0)->exec);
    const struct coffer_exec_exit *how = wait_for (place, id);

    failed += how->failure_errno == EMFILE;
    ran += how->failure_errno == 0 && how->code == 0;
    free (id);
  }
  assert_true (refused > 0 && failed > 0 && ran > 0);
  assert_int_equal (refused + failed + ran, 37);
}

/* -- side by side ---- */

struct runner {
  struct coffer_commands *commands;
  pthread_t thread;
  int number, wrong;
};

static void *
run_some (void *data)
{
  struct runner *runner = data;
  char script[64];
  const struct coffer_process process = {
    .argv = (const char *const[]) {"sh", "-c", script, NULL},
    .env = (const char *const[]) {PATH_ENTRY, NULL}, .in = -1, .out = -1,
    .err = -1,
  };
  struct fakehost host;

  fakehost_init (&host, TIMEOUT_MS);
  for (int i = 0; i < 4; i++) {
    const struct coffer_exec_info *info;
    char id[32] = "";

    snprintf (script, sizeof script, "exit %d", runner->number);
    fakehost_reset (&host, TIMEOUT_MS);
    runner->wrong |= coffer_commands_start (&host.call, runner->commands,
                                            &process, NULL) != COFFER_OK;
    info = FAKEHOST_GET (&host, exec_info, 0);
    snprintf (id, sizeof id, "%s", info ? info->exec : "");
    fakehost_reset (&host, TIMEOUT_MS);
    runner->wrong |= coffer_commands_list (&host.call, runner->commands)
                     != COFFER_OK;
    runner->wrong |= coffer_commands_wait (&host.call, runner->commands, id)
                     != COFFER_OK;
    runner->wrong |= !FAKEHOST_GET (&host, exec_exit, 0)
                     || FAKEHOST_GET (&host, exec_exit, 0)->code
                          != runner->number;
  }
  fakehost_fini (&host);
  return NULL;
}

static void
twenty_at_once_get_each_its_own (void **state)
{
  struct place *place = *state;
  struct runner runners[20] = {0};

  for (int i = 0; i < 20; i++) {
    runners[i].commands = place->commands;
    runners[i].number = i;
    assert_int_equal (pthread_create (&runners[i].thread, NULL, run_some,
                                      &runners[i]), 0);
  }
  for (int i = 0; i < 20; i++) {
    pthread_join (runners[i].thread, NULL);
    assert_int_equal (runners[i].wrong, 0);
  }
}

static void *
wait_until_ended (void *data)
{
  struct runner *runner = data;
  struct fakehost host;

  fakehost_init (&host, TIMEOUT_MS);
  runner->wrong = coffer_commands_wait (&host.call, runner->commands, "x1")
                    != COFFER_OK
                  || FAKEHOST_GET (&host, exec_exit, 0)->signal != SIGKILL;
  fakehost_fini (&host);
  return NULL;
}

static void
everybody_who_waits_is_told (void **state)
{
  struct place *place = *state;
  struct runner runners[10] = {0};
  char *id = start_shell (place, "sleep 60");

  for (int i = 0; i < 10; i++) {
    runners[i].commands = place->commands;
    assert_int_equal (pthread_create (&runners[i].thread, NULL,
                                      wait_until_ended, &runners[i]), 0);
  }
  poll (NULL, 0, 20);
  assert_int_equal (signal_it (place, id, SIGKILL), COFFER_OK);
  for (int i = 0; i < 10; i++) {
    pthread_join (runners[i].thread, NULL);
    assert_int_equal (runners[i].wrong, 0);
  }
  free (id);
}

/* Two sets of one worker know nothing of each other, also where one mark is
 * the beginning of the other. */
static void
sets_are_apart (void **state)
{
  struct place *place = *state;
  char longer[80];
  struct coffer_commands *other;
  char *id = start_shell (place, "sleep 60");

  snprintf (longer, sizeof longer, "%s0", place->mark);
  other = coffer_commands_new (longer, -1, 0);
  assert_non_null (other);
  assert_int_equal (coffer_commands_wait (next_call (place, 100), other, id),
                    COFFER_NOT_FOUND);
  assert_int_equal (coffer_commands_end (NULL, place->commands), COFFER_OK);
  assert_int_equal (coffer_commands_end (NULL, other), COFFER_OK);
  coffer_commands_free (other);
  coffer_commands_free (NULL);  /* none is nothing to free */
  free (id);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, place_new, place_free)
  const struct CMUnitTest tests[] = {
    TEST (a_command_runs_and_its_end_is_told_again_and_again),
    TEST (the_list_has_all_that_were_ever_started),
    TEST (one_that_never_ran_says_why_at_its_end),
    TEST (unknown_commands_are_not_found),
    TEST (a_wait_ends_with_its_call_and_not_the_command),
    TEST (the_hosts_answer_to_an_emit_is_the_calls),
    TEST (the_mark_goes_over_what_env_says),
    TEST (streams_stay_the_callers_and_no_copy_is_kept),
    TEST (options_of_an_older_caller_are_defaults),
    TEST (a_signal_reaches_all_that_a_command_has_started),
    TEST (numbers_that_are_no_signals_are_invalid),
    TEST (the_timeout_ends_a_command_and_its_descendants),
    TEST (absurd_timeouts_are_none),
    TEST (the_end_of_the_lifeline_ends_them),
    TEST (a_set_for_one_has_one_and_what_that_started_ends_with_it),
    TEST (descendants_outlive_a_command_and_end_with_the_set),
    TEST (nothing_starts_after_the_end),
    TEST (an_end_that_is_out_of_time_may_be_asked_for_again),
    TEST (who_forks_without_pause_ends_all_the_same),
    TEST (there_is_a_most_of_commands),
    TEST (without_descriptors_each_failure_is_told),
    TEST (twenty_at_once_get_each_its_own),
    TEST (everybody_who_waits_is_told),
    TEST (sets_are_apart),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
