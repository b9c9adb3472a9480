/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile modules in workers: the host survives each, says what happened with
 * the right code, serves the next call, and leaves nothing behind. */

#include "config.h"

#include "harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider-fixture.h"

static struct fixture *
start (const struct fixture_spec *spec)
{
  struct fixture *fixture = fixture_new (spec);
  struct error *error = NULL;

  if (fixture_open (fixture, PROVIDER_WORKER, &error) != 0)
    fail_msg ("open: E%d %s", error->number, error->message);
  return fixture;
}

static struct fixture *
start_plain (void)
{
  return start (&(struct fixture_spec){ .module = "hostile" });
}

/* The next call is served, within a second. */
static void
assert_serves (struct fixture *fixture)
{
  struct heard heard = { .facts = 0 };
  int64_t began = coffer_now_ns ();
  struct error *error = NULL;

  if (fixture_say (fixture, "ok:still", 5000, -1, &heard, &error) != 0)
    fail_msg ("next call: E%d %s", error->number, error->message);
  assert_string_equal (heard.value, "still");
  assert_true (coffer_now_ns () - began < 1000000000LL);
}

/* Ends with `number`; then serves. */
static void
assert_ends (const char *word, int64_t ms, int number)
{
  struct fixture *fixture = start_plain ();
  int before = provider_worker_pid (fixture->provider);
  struct error *error = NULL;
  int got = fixture_say (fixture, word, ms, -1, NULL, &error);

  if (got != number)
    fail_msg ("%s: E%d %s", word, got, error ? error->message : "");
  if (error)
    assert_non_null (strstr (error->message, "hostile"));
  assert_serves (fixture);
  error_free (error);
  fixture_free (fixture);
  assert_false (fixture_process_lives (before));
}

static void
assert_refused (struct fixture *fixture, const char *word, const char *value)
{
  struct heard heard = { .facts = 0 };
  struct error *error = NULL;

  if (fixture_say (fixture, word, 5000, -1, &heard, &error) != 0)
    fail_msg ("%s: E%d %s", word, error->number, error->message);
  if (strcmp (heard.state, "refused") != 0
      || (value && strcmp (heard.value, value) != 0))
    fail_msg ("%s: %s %s", word, heard.state, heard.value);
}

static void
assert_done (struct fixture *fixture, const char *word, const char *value)
{
  struct heard heard = { .facts = 0 };
  struct error *error = NULL;

  if (fixture_say (fixture, word, 5000, -1, &heard, &error) != 0)
    fail_msg ("%s: E%d %s", word, error->number, error->message);
  if (strcmp (heard.state, "done") != 0
      || (value && strcmp (heard.value, value) != 0))
    fail_msg ("%s: %s %s", word, heard.state, heard.value);
}

/* ---- what a call ends with ------------------------------------------------ */

static void
calls_are_served (void **state)
{
  struct fixture *fixture = start_plain ();
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_true (provider_worker_pid (fixture->provider) > 0);
  assert_int_equal (fixture_say (fixture, "emits:2000", 5000, -1, &heard,
                                 NULL), 0);
  assert_int_equal (heard.facts, 2000);
  assert_int_equal (fixture_say (fixture, "progress:" VECTOR_NAME, 5000, -1,
                                 &heard, NULL), 0);
  assert_string_equal (heard.value, "1 of 2 " VECTOR_NAME);
  assert_int_equal (fixture_say (fixture, "ok:" VECTOR_BODY, 5000, -1,
                                 &heard, NULL), 0);
  assert_string_equal (heard.value, VECTOR_BODY);
  fixture_free (fixture);
}

static void
a_crash_is_told_with_its_log (void **state)
{
  struct fixture *fixture = start_plain ();
  struct error *error = NULL;
  json_t *log;

  (void) state;
  assert_int_equal (fixture_say (fixture, "log:before", 5000, -1, NULL,
                                 NULL), 0);
  assert_int_equal (fixture_say (fixture, "crash:why", 5000, -1, NULL,
                                 &error), E_PROVIDER_EXITED);
#ifndef COFFER_SANITIZERS       /* they catch it, and print pages */
  assert_int_equal (json_integer_value (json_object_get (error->details,
                                                         "signal")),
                    SIGSEGV);
  assert_int_equal (json_array_size (json_object_get (error->details, "log")),
                    2);
#endif
  log = json_object_get (error->details, "log");
#ifndef COFFER_SANITIZERS
  assert_string_equal (json_string_value (json_array_get (log, 1)), "why");
#endif
  assert_true (json_array_size (log) > 0);
  assert_int_equal (error->retryable, RETRY_YES);
  error_free (error);
  assert_serves (fixture);
  fixture_free (fixture);
}

static void
an_abort_is_told_with_what_it_printed (void **state)
{
  struct fixture *fixture = start_plain ();
  struct error *error = NULL;
  json_t *log;

  (void) state;
  assert_int_equal (fixture_say (fixture, "abort:it", 5000, -1, NULL, &error),
                    E_PROVIDER_EXITED);
  assert_int_equal (json_integer_value (json_object_get (error->details,
                                                         "signal")),
                    SIGABRT);
  log = json_object_get (error->details, "log");
  assert_string_equal (json_string_value (json_array_get (log, 0)),
                       "assertion of it failed");
  error_free (error);
  assert_serves (fixture);
  fixture_free (fixture);
}

static void
an_exit_is_told_with_its_code (void **state)
{
  struct fixture *fixture = start_plain ();
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_say (fixture, "exit:42", 5000, -1, NULL, &error),
                    E_PROVIDER_EXITED);
  assert_int_equal (json_integer_value (json_object_get (error->details,
                                                         "exit_code")), 42);
  error_free (error);
  assert_serves (fixture);
  fixture_free (fixture);
}

static void
a_hang_ends_at_the_deadline (void **state)
{
  int64_t began = coffer_now_ns ();

  (void) state;
  assert_ends ("hang", 200, E_PROVIDER_TIMEOUT);
  assert_ends ("spin", 200, E_PROVIDER_TIMEOUT);
  assert_ends ("stop_all", 200, E_PROVIDER_TIMEOUT);
  assert_true (coffer_now_ns () - began < 6000000000LL);
}

static void
a_deadline_that_the_module_keeps_costs_no_worker (void **state)
{
  struct fixture *fixture = start_plain ();
  int pid = provider_worker_pid (fixture->provider);

  (void) state;
  assert_int_equal (fixture_say (fixture, "wait", 100, -1, NULL, NULL),
                    E_EXEC_CANCELLED);
  assert_serves (fixture);
  assert_int_equal (provider_worker_pid (fixture->provider), pid);
  fixture_free (fixture);
}

static void *
cancel_soon (void *data)
{
  uint64_t one = 1;

  usleep (50 * 1000);
  if (write (*(int *) data, &one, sizeof one) < 0)
    abort ();
  return NULL;
}

static void
a_cancel_reaches_the_call (void **state)
{
  struct fixture *fixture = start_plain ();
  int cancel = eventfd (0, EFD_CLOEXEC);
  int pid = provider_worker_pid (fixture->provider);
  pthread_t thread;
  int64_t began = coffer_now_ns ();

  (void) state;
  pthread_create (&thread, NULL, cancel_soon, &cancel);
  assert_int_equal (fixture_say (fixture, "wait", 30000, cancel, NULL, NULL),
                    E_EXEC_CANCELLED);
  assert_true (coffer_now_ns () - began < 2000000000LL);
  pthread_join (thread, NULL);
  assert_int_equal (provider_worker_pid (fixture->provider), pid);
  /* One that does not listen is stopped. */
  assert_int_equal (fixture_say (fixture, "hang", 30000, cancel, NULL, NULL),
                    E_PROVIDER_TIMEOUT);
  assert_serves (fixture);
  close (cancel);
  fixture_free (fixture);
}

static void
a_sink_can_end_the_call (void **state)
{
  struct fixture *fixture = start_plain ();
  struct heard heard = { .stop_after = 3 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "emits:100000", 5000, -1, &heard,
                                 NULL), E_EXEC_CANCELLED);
  assert_int_equal (heard.facts, 3);
  assert_serves (fixture);
  fixture_free (fixture);
}

static void
codes_become_public_errors (void **state)
{
  struct fixture *fixture = start_plain ();
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_say (fixture, "code:999", 5000, -1, NULL, &error),
                    E_PROVIDER_FAILED);
  assert_string_equal (json_string_value (json_object_get (error->details,
                                                           "code")),
                       "INTERNAL");
  error_free (error);
  error = NULL;
  assert_int_equal (fixture_say (fixture, "code:-5", 5000, -1, NULL, NULL),
                    E_PROVIDER_FAILED);
  assert_int_equal (fixture_say (fixture, "code:5", 5000, -1, NULL, NULL),
                    E_UNKNOWN_SANDBOX);
  assert_int_equal (fixture_say (fixture, "code:1", 5000, -1, NULL, NULL),
                    E_CAPABILITY);
  assert_int_equal (fixture_say (fixture, "code:3", 5000, -1, NULL, NULL),
                    E_CREDENTIALS_INVALID);
  assert_int_equal (fixture_say (fixture, "fail:13", 5000, -1, NULL, &error),
                    E_PROVIDER_FAILED);
  assert_int_equal (error->retryable, RETRY_YES);
  assert_non_null (strstr (error->message, "as asked"));
  assert_string_equal (json_string_value (json_object_get (error->details,
                                                           "code")), "IO");
  assert_string_equal (json_string_value (json_object_get (error->details,
                                                           "operation")),
                       "sandbox_info");
  assert_non_null (json_object_get (json_object_get (error->details,
                                                     "reported"), "seen"));
  error_free (error);
  fixture_free (fixture);
}

static void
wrong_records_are_the_modules_fault (void **state)
{
  (void) state;
  assert_ends ("unknown_record", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("bad_text", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("short_record", 5000, E_PROVIDER_PROTOCOL);
}

static void
frames_that_break_the_rules_end_the_worker (void **state)
{
  (void) state;
  assert_ends ("garbage:not json", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{}", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:[1,2]", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{\"kind\":\"done\",\"call\":999999,\"code\":0}", 5000,
               E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{\"kind\":\"start\",\"call\":2}", 5000,
               E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{\"payload\":70000}", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("garbage:{\"kind\":\"done\",\"kind\":\"log\"}", 5000,
               E_PROVIDER_PROTOCOL);
  assert_ends ("oversized", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("fd_storm:17", 5000, E_PROVIDER_PROTOCOL);
  assert_ends ("fd_storm:200", 5000, E_PROVIDER_PROTOCOL);
}

static void
a_worker_that_closes_everything_is_stopped (void **state)
{
  (void) state;
  assert_ends ("close_fds", 5000, E_PROVIDER_EXITED);
}

static void
closed_output_costs_no_processor_time (void **state)
{
  struct fixture *fixture = start_plain ();
  struct timespec before, after;

  (void) state;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &before);
  assert_done (fixture, "close_output", "");
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &after);
  assert_true ((after.tv_sec - before.tv_sec) * 1000
                 + (after.tv_nsec - before.tv_nsec) / 1000000 < 100);
  fixture_free (fixture);
}

static void
floods_are_bounded (void **state)
{
  struct fixture *fixture = start_plain ();

  (void) state;
  log_set_level (LOG_LEVEL_ERROR);
  assert_done (fixture, "flood:100000", "");
  assert_done (fixture, "print:5000", "");
  assert_serves (fixture);
  fixture_free (fixture);
}

static void
large_records_pass (void **state)
{
  struct fixture *fixture = start_plain ();
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "large:1000000", 5000, -1, &heard,
                                 NULL), 0);
  assert_int_equal (heard.facts, 1);
  assert_int_equal (strlen (heard.value), sizeof heard.value - 1);
  fixture_free (fixture);
}

static void
large_arguments_pass (void **state)
{
  struct fixture *fixture = start_plain ();
  struct heard heard = { .facts = 0 };
  size_t size = 500000;
  char *word = malloc (size + 1);

  (void) state;
  memset (word, 'y', size);
  memcpy (word, "ok:", 3);
  word[size] = '\0';
  assert_int_equal (fixture_say (fixture, word, 5000, -1, &heard, NULL), 0);
  assert_int_equal (strlen (heard.value), sizeof heard.value - 1);
  free (word);
  fixture_free (fixture);
}

static void
descriptors_pass_both_ways (void **state)
{
  struct fixture *fixture = start_plain ();
  static const char *const argv[] = { "one", VECTOR_NAME, NULL };
  struct heard heard = { .fd = -1 };
  char text[256] = "";
  int ends[2], file;

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (INVOKE (fixture->provider, NULL, NULL, exec_start,
                            .sandbox = "x", .argv = argv, .in = -1,
                            .out = ends[1], .err = -1), 0);
  close (ends[1]);
  assert_true (coffer_read_all (ends[0], text, sizeof text - 1) > 0);
  assert_string_equal (text, "one\n" VECTOR_NAME "\n");
  close (ends[0]);
  /* A file of the caller's is refused. */
  file = open ("/dev/null", O_WRONLY | O_CLOEXEC);
  assert_int_equal (INVOKE (fixture->provider, NULL, NULL, exec_start,
                            .sandbox = "x", .argv = argv, .in = -1,
                            .out = file, .err = -1), -1);
  close (file);
  (void) heard;
  fixture_free (fixture);
}

static int
take_stream (void *data, const struct contract_record *type, void *record)
{
  struct coffer_stream *stream = record;

  (void) type;
  *(int *) data = stream->fd;
  stream->fd = -1;
  return 0;
}

static void
an_emitted_descriptor_belongs_to_the_caller (void **state)
{
  struct fixture *fixture = start_plain ();
  int fd = -1;
  struct provider_call call = { .cancel_fd = -1,
                                .sink = { .record = take_stream,
                                          .data = &fd } };
  char text[32] = "";

  (void) state;
  assert_int_equal (INVOKE (fixture->provider, &call, NULL, port_dial,
                            .sandbox = "x", .port = 1), 0);
  assert_true (fd >= 0);
  assert_int_equal (coffer_read_all (fd, text, sizeof text - 1), 8);
  assert_string_equal (text, "dialled\n");
  close (fd);
  fixture_free (fixture);
}

/* ---- a worker that is none ------------------------------------------------ */

static struct fixture *
fake_new (const char *mode)
{
  auto_free char *yaml = text_printf (
    "config:\n  mode: {type: text, default: %s}", mode);

  return fixture_new (&(struct fixture_spec){
    .module = "hostile", .yaml = yaml, .libexec = "tests/modules/fake" });
}

/* A call ends with `number` within two seconds, and the next one, of a new
 * process, likewise. */
static void
assert_fake (const char *mode, int number)
{
  struct fixture *fixture = fake_new (mode);
  struct error *error = NULL;
  int64_t began = coffer_now_ns ();
  int got, i;

  if (fixture_open (fixture, PROVIDER_WORKER, &error) != 0)
    fail_msg ("%s: open: %s", mode, error_message (error));
  for (i = 0; i < 2; i++) {
    error = NULL;
    got = fixture_say (fixture, "ok", 500, -1, NULL, &error);
    if (got != number)
      fail_msg ("%s: E%d %s", mode, got, error_message (error));
    error_free (error);
  }
  assert_true (coffer_now_ns () - began < 4000000000LL);
  fixture_free (fixture);
}

static void
a_worker_that_lies_is_ended (void **state)
{
  (void) state;
  assert_fake ("other", E_PROVIDER_PROTOCOL);
  assert_fake ("negative", E_PROVIDER_PROTOCOL);
  assert_fake ("truncated", E_PROVIDER_PROTOCOL);
  assert_fake ("oversized", E_PROVIDER_PROTOCOL);
  assert_fake ("storm", E_PROVIDER_PROTOCOL);
  assert_fake ("unsealed", E_PROVIDER_PROTOCOL);
  assert_fake ("short", E_PROVIDER_PROTOCOL);
  assert_fake ("huge", E_PROVIDER_PROTOCOL);
  assert_fake ("no_value", E_PROVIDER_PROTOCOL);
  assert_fake ("no_record", E_PROVIDER_PROTOCOL);
  assert_fake ("codes", E_PROVIDER_FAILED);
  assert_fake ("silent", E_PROVIDER_TIMEOUT);
  assert_fake ("endless", E_PROVIDER_TIMEOUT);
}

static void
answers_that_nobody_waits_for_end_the_worker (void **state)
{
  struct fixture *fixture = fake_new ("early");

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL), 0);
  assert_int_equal (fixture_say (fixture, "ok", 2000, -1, NULL, NULL), 0);
  /* Its second answer is there, and belongs to no call. */
  assert_int_equal (fixture_say (fixture, "ok", 2000, -1, NULL, NULL),
                    E_PROVIDER_PROTOCOL);
  fixture_free (fixture);
}

static void
odd_progress_is_harmless (void **state)
{
  struct fixture *fixture = fake_new ("progress");
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL), 0);
  assert_int_equal (fixture_say (fixture, "ok", 2000, -1, &heard, NULL), 0);
  assert_string_equal (heard.value, "0 of 0 ");
  fixture_free (fixture);
}

static void
a_worker_that_never_begins_is_told (void **state)
{
  static const struct {
    const char *mode;
    int number;
  } table[] = { { "not_ready", E_PROVIDER_PROTOCOL },
                { "bad_ready", E_PROVIDER_PROTOCOL },
                { "refused", E_INTERNAL } };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    struct fixture *fixture = fake_new (table[i].mode);
    assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL),
                      table[i].number);
    fixture_free (fixture);
  }
}

static void
without_a_worker_program_nothing_starts (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .libexec = "tests" });
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, &error), E_IO);
  assert_non_null (strstr (error_message (error), "coffer-worker"));
  error_free (error);
  fixture_free (fixture);
}

/* ---- without Landlock ------------------------------------------------------ */

/* A kernel without Landlock, for this process and what it starts. */
static void
forget_landlock (void)
{
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ALLOW);

  seccomp_rule_add (filter, SCMP_ACT_ERRNO (ENOSYS), 444, 0);
  if (seccomp_load (filter) < 0)
    _exit (9);
  seccomp_release (filter);
}

/* What a child without Landlock gets from open: the number, through its exit
 * status, less 8000. */
static int
open_without_landlock (const char *operator_yaml, const char *word)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .operator_yaml = operator_yaml });
  struct heard heard = { .facts = 0 };
  int status = 0, pid = fork (), number;

  if (pid == 0) {
    forget_landlock ();
    number = fixture_open (fixture, PROVIDER_WORKER, NULL);
    if (number == 0
        && (fixture_say (fixture, word, 5000, -1, &heard, NULL) != 0
            || strcmp (heard.state, "refused") != 0))
      _exit (250);
    provider_close (fixture->provider);
    _exit (number ? number - 8000 : 0);
  }
  waitpid (pid, &status, 0);
  fixture_free (fixture);
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void
a_right_that_cannot_be_enforced_refuses (void **state)
{
  (void) state;
  assert_int_equal (open_without_landlock (NULL, "socket:inet"),
                    E_PERMISSION - 8000);
  /* Sockets and programs are still out of reach then. */
  assert_int_equal (
    open_without_landlock ("worker: {allow_degraded: true}\n",
                           "socket:inet"), 0);
  assert_int_equal (
    open_without_landlock ("worker: {allow_degraded: true}\n",
                           "exec:/usr/bin/true"), 0);
}

/* The caller's own cgroups: where it has any. */
static int
own_cgroup (char *path, size_t size)
{
  FILE *file = fopen ("/proc/self/cgroup", "re");
  char line[512], *name;
  int found = 0;

  while (file && !found && fgets (line, sizeof line, file)) {
    line[strcspn (line, "\n")] = '\0';
    name = strncmp (line, "0::", 3) == 0 ? line + 3 : NULL;
    if (!name || strcmp (name, "/") == 0)
      continue;
    snprintf (path, size, "/sys/fs/cgroup%s/cgroup.procs", name);
    found = access (path, W_OK) == 0;
    if (!found) {
      snprintf (path, size, "/sys/fs/cgroup/unified%s/cgroup.procs", name);
      found = access (path, W_OK) == 0;
    }
  }
  if (file)
    fclose (file);
  return found;
}

static void
cgroups_need_permission (void **state)
{
  struct fixture *fixture;
  char path[1024], word[1040];

  (void) state;
  if (!own_cgroup (path, sizeof path))
    skip_missing ("a cgroup of its own that may be written");
  snprintf (word, sizeof word, "open:%s", path);
  fixture = start_plain ();
  assert_refused (fixture, word, "EACCES");
  fixture_free (fixture);
  fixture = start (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {cgroup: true}" });
  assert_done (fixture, word, "");
  fixture_free (fixture);
}

/* ---- many calls ----------------------------------------------------------- */

struct caller {
  struct fixture *fixture;
  const char *word;
  int times, failed;
};

static void *
call_often (void *data)
{
  struct caller *caller = data;
  struct heard heard = { .facts = 0 };
  int i;

  for (i = 0; i < caller->times; i++)
    caller->failed += fixture_say (caller->fixture, caller->word, 10000, -1,
                                   &heard, NULL) != 0;
  return NULL;
}

static void
many_threads_share_a_worker (void **state)
{
  struct fixture *fixture = start_plain ();
  struct caller callers[8];
  pthread_t threads[8];
  int i;

  (void) state;
  for (i = 0; i < 8; i++) {
    callers[i] = (struct caller){ fixture, i % 2 ? "emits:5" : "ok:x",
                                  (int) harness_scaled (200), 0 };
    pthread_create (&threads[i], NULL, call_often, &callers[i]);
  }
  for (i = 0; i < 8; i++) {
    pthread_join (threads[i], NULL);
    assert_int_equal (callers[i].failed, 0);
  }
  fixture_free (fixture);
}

static int64_t
time_of_sleeps (const char *module, const char *threads)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = module, .threads = threads });
  struct caller callers[4];
  pthread_t ids[4];
  int64_t began = coffer_now_ns ();
  int i;

  for (i = 0; i < 4; i++) {
    callers[i] = (struct caller){ fixture, "sleep:150", 1, 0 };
    pthread_create (&ids[i], NULL, call_often, &callers[i]);
  }
  for (i = 0; i < 4; i++) {
    pthread_join (ids[i], NULL);
    assert_int_equal (callers[i].failed, 0);
  }
  began = coffer_now_ns () - began;
  fixture_free (fixture);
  return began / 1000000;
}

static void
serial_modules_get_one_call_at_a_time (void **state)
{
  (void) state;
  assert_true (time_of_sleeps ("serial", "serial") >= 590);
  assert_true (time_of_sleeps ("hostile", "parallel") < 550);
}

static void *
wait_exec (void *data)
{
  struct fixture *fixture = data;

  INVOKE (fixture->provider, NULL, NULL, exec_wait, .sandbox = "x",
          .exec = "600");
  return NULL;
}

static void
waiting_holds_no_lock (void **state)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "serial", .threads = "serial" });
  int64_t began = coffer_now_ns ();
  pthread_t thread;

  (void) state;
  pthread_create (&thread, NULL, wait_exec, fixture);
  usleep (50 * 1000);
  assert_serves (fixture);
  assert_true (coffer_now_ns () - began < 500000000LL);
  pthread_join (thread, NULL);
  fixture_free (fixture);
}

static void
all_calls_of_a_dead_worker_fail (void **state)
{
  struct fixture *fixture = start_plain ();
  struct caller callers[3];
  pthread_t threads[3];
  int i;

  (void) state;
  for (i = 0; i < 3; i++) {
    callers[i] = (struct caller){ fixture, "wait", 1, 0 };
    pthread_create (&threads[i], NULL, call_often, &callers[i]);
  }
  usleep (50 * 1000);
  assert_int_equal (fixture_say (fixture, "crash", 5000, -1, NULL, NULL),
                    E_PROVIDER_EXITED);
  for (i = 0; i < 3; i++) {
    pthread_join (threads[i], NULL);
    assert_int_equal (callers[i].failed, 1);
  }
  assert_serves (fixture);
  fixture_free (fixture);
}

/* ---- dying often ---------------------------------------------------------- */

static void
a_worker_killed_while_idle_is_replaced (void **state)
{
  struct fixture *fixture = start_plain ();
  int pid = provider_worker_pid (fixture->provider);

  (void) state;
  assert_int_equal (kill (pid, SIGKILL), 0);
  usleep (20 * 1000);
  assert_serves (fixture);
  assert_int_not_equal (provider_worker_pid (fixture->provider), pid);
  fixture_free (fixture);
  assert_false (fixture_process_lives (pid));
}

static void
a_worker_that_dies_often_rests (void **state)
{
  struct fixture *fixture = start_plain ();
  struct error *error = NULL;
  int64_t began;
  int i;

  (void) state;
  for (i = 0; i < 5; i++)
    assert_int_equal (fixture_say (fixture, "exit:1", 5000, -1, NULL, NULL),
                      E_PROVIDER_EXITED);
  began = coffer_now_ns ();
  assert_int_equal (fixture_say (fixture, "ok", 5000, -1, NULL, &error),
                    E_PROVIDER_BREAKER);
  assert_true (coffer_now_ns () - began < 100000000LL);
  assert_int_equal (error->retryable, RETRY_YES);
  error_free (error);
  fixture_free (fixture);
}

/* ---- starting ------------------------------------------------------------- */

static void
a_constructor_that_dies_is_told (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "birth_abort" });
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, &error),
                    E_PROVIDER_EXITED);
  assert_non_null (strstr (error->message, "ABRT"));
  assert_string_equal (
    json_string_value (json_array_get (json_object_get (error->details,
                                                        "log"), 0)),
    "constructor: no");
  error_free (error);
  fixture_free (fixture);
}

static void
open_may_refuse (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile",
    .yaml = "config:\n  mode: {type: text, default: refuse}" });
  struct error *error = NULL;

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, &error),
                    E_CREDENTIALS_INVALID);
  assert_non_null (strstr (error->message, "the key is wrong"));
  error_free (error);
  fixture_free (fixture);
}

static void
open_may_crash (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile",
    .yaml = "config:\n  mode: {type: text, default: crash}" });

  (void) state;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL),
                    E_PROVIDER_EXITED);
  fixture_free (fixture);
}

static int
reap_within (int ms, int *status)
{
  int pid = 0;

  while (ms > 0 && (pid = waitpid (-1, status, WNOHANG)) == 0) {
    usleep (5000);
    ms -= 5;
  }
  return pid;
}

/* The host is killed while a call runs, and while a constructor hangs. */
static void
nothing_outlives_a_killed_host (void **state)
{
  const struct fixture_spec specs[2] = { { .module = "hostile" },
                                         { .module = "birth_hang" } };
  int i, pid, host, ends[2], status;

  (void) state;
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  for (i = 0; i < 2; i++) {
    struct fixture *fixture = fixture_new (&specs[i]);
    assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
    host = fork ();
    if (host == 0) {
      if (i == 1)
        fixture_open (fixture, PROVIDER_WORKER, NULL);
      if (fixture_open (fixture, PROVIDER_WORKER, NULL) != 0)
        _exit (1);
      pid = provider_worker_pid (fixture->provider);
      if (write (ends[1], &pid, sizeof pid) < 0)
        _exit (1);
      fixture_say (fixture, "hang", 30000, -1, NULL, NULL);
      _exit (0);
    }
    close (ends[1]);
    if (i == 0)
      assert_int_equal (read (ends[0], &pid, sizeof pid), sizeof pid);
    usleep (200 * 1000);
    assert_int_equal (kill (host, SIGKILL), 0);
    waitpid (host, &status, 0);
    /* Its worker is ours now, and has to end by itself. */
    assert_true (reap_within (5000, &status) > 0);
    assert_true (WIFEXITED (status));
    close (ends[0]);
    fixture_free (fixture);
  }
}

static void
only_what_is_shipped_runs_in_process (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .local = 1 });

  (void) state;
  if (fixture->entry->state != PROVIDER_ENABLED)
    fail_msg ("state %s", registry_state_name (fixture->entry->state));
  assert_int_equal (fixture_open (fixture, PROVIDER_IN_PROCESS, NULL),
                    E_DENIED);
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL), 0);
  assert_serves (fixture);
  fixture_free (fixture);
}

static void
only_what_is_shipped_gets_namespaces (void **state)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {namespaces: true}" });
  struct registry_entry *entry = (struct registry_entry *) fixture->entry;

  (void) state;
  /* The registry refuses it as well, so that this looks behind it. */
  entry->trust = TRUST_LOCAL;
  assert_int_equal (fixture_open (fixture, PROVIDER_WORKER, NULL), E_DENIED);
  fixture_free (fixture);
}

/* ---- what a worker may do ------------------------------------------------- */

static void
a_worker_starts_from_nothing (void **state)
{
  struct fixture *fixture;
  struct heard heard = { .facts = 0 };

  (void) state;
  setenv ("COFFER_TEST_LEAK", "yes", 1);
  fixture = start_plain ();
  assert_int_equal (fixture_say (fixture, "environment", 5000, -1, &heard,
                                 NULL), 0);
  /* 0 to 3, the module, two folders, this call's cancel; the maps are
   * closed. */
  assert_string_equal (heard.name, "open");
  assert_int_equal (atoi (heard.value), 8);
  fixture_free (fixture);
}

static void
files_need_permission (void **state)
{
  static const char *const paths[] = { "open:/etc/passwd", "open:/etc/shadow",
                                       "open:/root/.ssh/id_rsa",
                                       "open:/proc/self/environ",
                                       "open:/proc/1/environ", "open:/" };
  struct fixture *fixture = start_plain ();
  size_t i;

  (void) state;
  for (i = 0; i < sizeof paths / sizeof paths[0]; i++)
    assert_refused (fixture, paths[i], NULL);
  assert_refused (fixture, "write:/tmp/coffer-escape", "EACCES");
  assert_refused (fixture, "truncate:/etc/passwd", NULL);
  assert_int_equal (access ("/tmp/coffer-escape", F_OK), -1);
  assert_done (fixture, "runtime:mine", "");
  fixture_free (fixture);
}

static void
files_with_permission_open (void **state)
{
  char dir[] = "/tmp/coffer-unit-XXXXXX", word[128];
  auto_free char *yaml = NULL;
  struct fixture *fixture;
  void *remove = dir;

  (void) state;
  assert_non_null (mkdtemp (dir));
  yaml = text_printf ("permissions: {read: [/etc/passwd, /no/such], "
                      "write: [%s]}", dir);
  fixture = start (&(struct fixture_spec){ .module = "hostile",
                                           .yaml = yaml });
  assert_done (fixture, "open:/etc/passwd", "");
  assert_refused (fixture, "write:/etc/passwd", "EACCES");
  assert_refused (fixture, "open:/etc/group", "EACCES");
  snprintf (word, sizeof word, "write:%s/file", dir);
  assert_done (fixture, word, "");
  fixture_free (fixture);
  snprintf (word, sizeof word, "%s/file", dir);
  assert_int_equal (unlink (word), 0);
  assert_int_equal (rmdir (remove), 0);
}

static void
programs_need_permission (void **state)
{
  struct fixture *fixture = start_plain ();

  (void) state;
  assert_refused (fixture, "exec:/usr/bin/true", NULL);
  assert_refused (fixture, "fork", NULL);
  assert_refused (fixture, "memfd_exec", NULL);
  fixture_free (fixture);
  fixture = start (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {exec: [/usr/bin/true]}" });
  assert_done (fixture, "exec:/usr/bin/true", "0");
  assert_refused (fixture, "exec:/usr/bin/id", "EACCES");
  fixture_free (fixture);
}

/* What a worker has started ends with it. */
static int
children_of_tests (void)
{
  DIR *proc = opendir ("/proc");
  struct dirent *entry;
  char path[300], line[64];
  int n = 0;
  FILE *file;

  while ((entry = readdir (proc))) {
    snprintf (path, sizeof path, "/proc/%s/comm", entry->d_name);
    file = fopen (path, "re");
    if (!file)
      continue;
    if (fgets (line, sizeof line, file)
        && strcmp (line, "coffer-worker\n") == 0) {
      char stat_path[300];
      int ppid = 0;
      snprintf (stat_path, sizeof stat_path, "/proc/%s/stat", entry->d_name);
      fclose (file);
      file = fopen (stat_path, "re");
      if (file && fscanf (file, "%*d %*s %*c %d", &ppid) == 1)
        n += ppid == getpid ();
    }
    if (file)
      fclose (file);
  }
  closedir (proc);
  return n;
}

static void
what_a_worker_started_ends_with_it (void **state)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {exec: [/usr/bin/true]}" });
  int status;

  (void) state;
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  assert_done (fixture, "fork", NULL);
  assert_done (fixture, "fork", NULL);
  assert_refused (fixture, "call:setsid", "EPERM");
  fixture_free (fixture);
  while (reap_within (5000, &status) > 0)
    ;
  assert_int_equal (children_of_tests (), 0);
}

static void
sockets_are_the_hosts (void **state)
{
  static const char *const kinds[] = { "inet", "udp", "inet6", "unix",
                                       "netlink", "vsock" };
  struct fixture *fixture = start_plain ();
  char word[64];
  size_t i;

  (void) state;
  for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    snprintf (word, sizeof word, "socket:%s", kinds[i]);
    assert_refused (fixture, word, "EPERM");
  }
  assert_done (fixture, "pair:stream", "");
  assert_refused (fixture, "pair:dgram", NULL);
  assert_refused (fixture, "connect:tcp:127.0.0.1:1", "code 4");
  assert_refused (fixture, "connect:unix:/run/dbus/system_bus_socket",
                  "code 4");
  assert_refused (fixture, "connect:nonsense", "code 4");
  fixture_free (fixture);
}

/* A server that echoes one line. */
struct echo {
  int listener, port;
  pthread_t thread;
  int stop;
};

static void *
echo_main (void *data)
{
  struct echo *echo = data;
  char line[64];
  ssize_t n;
  int fd;

  while ((fd = accept4 (echo->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
    n = read (fd, line, sizeof line);
    if (n > 0 && write (fd, line, n) < 0)
      n = 0;
    close (fd);
  }
  return NULL;
}

static void
echo_start (struct echo *echo)
{
  struct sockaddr_in address = { .sin_family = AF_INET };
  socklen_t size = sizeof address;

  address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  echo->listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal (bind (echo->listener, (struct sockaddr *) &address,
                          sizeof address), 0);
  assert_int_equal (listen (echo->listener, 8), 0);
  getsockname (echo->listener, (struct sockaddr *) &address, &size);
  echo->port = ntohs (address.sin_port);
  pthread_create (&echo->thread, NULL, echo_main, echo);
}

static void
echo_stop (struct echo *echo)
{
  shutdown (echo->listener, SHUT_RDWR);
  pthread_join (echo->thread, NULL);
  close (echo->listener);
}

static void
permitted_connections_are_made_by_the_host (void **state)
{
  struct fixture *fixture;
  auto_free char *yaml = NULL;
  struct echo echo, other;
  char word[128];

  (void) state;
  echo_start (&echo);
  echo_start (&other);
  yaml = text_printf ("permissions: {connect: [config, \"localhost:%d\"]}\n"
                      "config:\n  api_url: {type: url, default: "
                      "\"http://127.0.0.1:%d/v1\"}", echo.port, echo.port);
  fixture = start (&(struct fixture_spec){ .module = "hostile",
                                           .yaml = yaml });
  assert_done (fixture, "connect:config:api_url", "hello\n");
  snprintf (word, sizeof word, "connect:tcp:127.0.0.1:%d", echo.port);
  assert_done (fixture, word, "hello\n");
  snprintf (word, sizeof word, "connect:tcp:LOCALHOST.:%d", echo.port);
  assert_done (fixture, word, "hello\n");
  snprintf (word, sizeof word, "connect:tcp:127.0.0.1:%d", other.port);
  assert_refused (fixture, word, "code 4");
  snprintf (word, sizeof word, "connect:tcp:127.1:%d", echo.port);
  assert_refused (fixture, word, "code 4");
  assert_refused (fixture, "connect:config:none", "code 4");
  /* What was connected cannot be connected to somewhere else. */
  snprintf (word, sizeof word, "reconnect:%d", other.port);
  assert_refused (fixture, word, NULL);
  fixture_free (fixture);
  echo_stop (&echo);
  echo_stop (&other);
}

static void
the_kernel_is_out_of_reach (void **state)
{
  static const char *const calls[] = { "unshare", "mount", "bpf",
                                       "io_uring_setup", "userfaultfd",
                                       "keyctl", "chroot",
                                       "process_vm_readv", "pidfd_open",
                                       "kexec_load" };
  struct fixture *fixture = start_plain ();
  char word[64];
  size_t i;

  (void) state;
  for (i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    snprintf (word, sizeof word, "call:%s", calls[i]);
    assert_refused (fixture, word, NULL);
  }
  assert_refused (fixture, "ptrace", NULL);
  assert_refused (fixture, "kill:parent", NULL);
  assert_refused (fixture, "kill:all", NULL);
  assert_refused (fixture, "namespace", NULL);
  assert_refused (fixture, "limits", NULL);
  fixture_free (fixture);
}

static void
limits_hold (void **state)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile",
    .yaml = "limits: {memory: 64MiB, files: 64, calls: 4}" });
  struct heard heard = { .facts = 0 };

  (void) state;
#ifndef COFFER_SANITIZERS
  assert_int_equal (fixture_say (fixture, "eat:private", 5000, -1, &heard,
                                 NULL), 0);
  assert_string_equal (heard.state, "refused");
  assert_in_range (atoi (heard.value), 16, 64);
  assert_refused (fixture, "eat:shared", "0");
#endif
  assert_int_equal (fixture_say (fixture, "descriptors", 5000, -1, &heard,
                                 NULL), 0);
  assert_in_range (atoi (heard.value), 32, 64);
  fixture_free (fixture);
}

static void
threads_are_bounded (void **state)
{
  struct fixture *fixture;

  (void) state;
  if (geteuid () == 0)
    skip_missing ("a user that RLIMIT_NPROC holds: root is not");
  fixture = start (&(struct fixture_spec){
    .module = "hostile", .yaml = "limits: {processes: 16}" });
  assert_refused (fixture, "threads:5000", NULL);
  fixture_free (fixture);
}

static void
namespaces_are_for_who_asks (void **state)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {namespaces: true}" });
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "namespace", 5000, -1, &heard,
                                 NULL), 0);
  if (strcmp (heard.state, "refused") == 0
      && (strcmp (heard.value, "EPERM") == 0
          || strcmp (heard.value, "ENOSPC") == 0)) {
    fixture_free (fixture);
    skip_missing ("user namespaces");
  }
  assert_string_equal (heard.value, "mounted");
  assert_refused (fixture, "call:bpf", "EPERM");
  assert_refused (fixture, "call:kexec_load", "EPERM");
  assert_refused (fixture, "call:keyctl", "ENOSYS");
  assert_done (fixture, "exec:/usr/bin/true", "0");
  fixture_free (fixture);
}

static void
secrets_never_come_back (void **state)
{
  static const char secret[] = "sk-live/0123456789+abc def";
  struct fixture *fixture;
  struct heard heard = { .facts = 0 };
  struct error *error = NULL;
  char *details;

  (void) state;
  setenv ("COFFER_TEST_KEY", secret, 1);
  fixture = start (&(struct fixture_spec){
    .module = "hostile",
    .yaml = "config:\n  api_key: {type: secret, required: true, "
            "env: COFFER_TEST_KEY}" });
  assert_int_equal (fixture_say (fixture, "secret", 5000, -1, &heard, &error),
                    E_PROVIDER_FAILED);
  assert_string_equal (heard.value, "the key is [hidden] indeed");
  assert_null (strstr (error->message, "sk-live"));
  assert_non_null (strstr (error->message, "[hidden]"));
  details = json_dumps (error->details, 0);
  assert_null (strstr (details, "sk-live"));
  free (details);
  error_free (error);
  error = NULL;
  assert_int_equal (fixture_say (fixture, "crash:x", 5000, -1, NULL, &error),
                    E_PROVIDER_EXITED);
  error_free (error);
  fixture_free (fixture);
  unsetenv ("COFFER_TEST_KEY");
}

static void
a_killed_worker_makes_room_for_another_provider (void **state)
{
  struct fixture *one = start_plain (), *two = start_plain ();

  (void) state;
  assert_int_equal (fixture_say (one, "hang", 100, -1, NULL, NULL),
                    E_PROVIDER_TIMEOUT);
  assert_serves (two);
  fixture_free (one);
  fixture_free (two);
}

static void
probe_narrows_and_never_widens (void **state)
{
  struct fixture *fixture = start_plain ();
  json_t *facts = NULL;
  struct error *error = NULL;

  (void) state;
  assert_true (provider_claims (fixture->provider, "metrics"));
  assert_int_equal (provider_probe (fixture->provider, &facts, NULL), 0);
  assert_int_equal (json_array_size (facts), 1);
  json_decref (facts);
  assert_false (provider_claims (fixture->provider, "metrics"));
  assert_false (provider_claims (fixture->provider, "snapshot"));
  assert_true (provider_claims (fixture->provider, "exec"));
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, metrics,
                            .sandbox = "x"), -1);
  assert_int_equal (error->number, E_CAPABILITY);
  error_free (error);
  fixture_free (fixture);
}

static void
no_descriptor_is_left (void **state)
{
  struct fixture *fixture;
  int i, before = 0, after = 0;

  (void) state;
  for (i = 0; i < 1024; i++)
    before += fcntl (i, F_GETFD) >= 0;
  fixture = start_plain ();
  fixture_say (fixture, "crash", 5000, -1, NULL, NULL);
  fixture_say (fixture, "fd_storm:17", 5000, -1, NULL, NULL);
  fixture_say (fixture, "hang", 100, -1, NULL, NULL);
  fixture_free (fixture);
  for (i = 0; i < 1024; i++)
    after += fcntl (i, F_GETFD) >= 0;
  assert_int_equal (before, after);
  assert_int_equal (children_of_tests (), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (calls_are_served),
    cmocka_unit_test (a_crash_is_told_with_its_log),
    cmocka_unit_test (an_abort_is_told_with_what_it_printed),
    cmocka_unit_test (an_exit_is_told_with_its_code),
    cmocka_unit_test (a_hang_ends_at_the_deadline),
    cmocka_unit_test (a_deadline_that_the_module_keeps_costs_no_worker),
    cmocka_unit_test (a_cancel_reaches_the_call),
    cmocka_unit_test (a_sink_can_end_the_call),
    cmocka_unit_test (codes_become_public_errors),
    cmocka_unit_test (wrong_records_are_the_modules_fault),
    cmocka_unit_test (frames_that_break_the_rules_end_the_worker),
    cmocka_unit_test (a_worker_that_closes_everything_is_stopped),
    cmocka_unit_test (closed_output_costs_no_processor_time),
    cmocka_unit_test (floods_are_bounded),
    cmocka_unit_test (large_records_pass),
    cmocka_unit_test (large_arguments_pass),
    cmocka_unit_test (descriptors_pass_both_ways),
    cmocka_unit_test (an_emitted_descriptor_belongs_to_the_caller),
    cmocka_unit_test (a_worker_that_lies_is_ended),
    cmocka_unit_test (answers_that_nobody_waits_for_end_the_worker),
    cmocka_unit_test (odd_progress_is_harmless),
    cmocka_unit_test (a_worker_that_never_begins_is_told),
    cmocka_unit_test (without_a_worker_program_nothing_starts),
    cmocka_unit_test (a_right_that_cannot_be_enforced_refuses),
    cmocka_unit_test (cgroups_need_permission),
    cmocka_unit_test (many_threads_share_a_worker),
    cmocka_unit_test (serial_modules_get_one_call_at_a_time),
    cmocka_unit_test (waiting_holds_no_lock),
    cmocka_unit_test (all_calls_of_a_dead_worker_fail),
    cmocka_unit_test (a_worker_killed_while_idle_is_replaced),
    cmocka_unit_test (a_worker_that_dies_often_rests),
    cmocka_unit_test (a_constructor_that_dies_is_told),
    cmocka_unit_test (open_may_refuse),
    cmocka_unit_test (open_may_crash),
    cmocka_unit_test (nothing_outlives_a_killed_host),
    cmocka_unit_test (only_what_is_shipped_runs_in_process),
    cmocka_unit_test (only_what_is_shipped_gets_namespaces),
    cmocka_unit_test (a_worker_starts_from_nothing),
    cmocka_unit_test (files_need_permission),
    cmocka_unit_test (files_with_permission_open),
    cmocka_unit_test (programs_need_permission),
    cmocka_unit_test (what_a_worker_started_ends_with_it),
    cmocka_unit_test (sockets_are_the_hosts),
    cmocka_unit_test (permitted_connections_are_made_by_the_host),
    cmocka_unit_test (the_kernel_is_out_of_reach),
    cmocka_unit_test (limits_hold),
    cmocka_unit_test (threads_are_bounded),
    cmocka_unit_test (namespaces_are_for_who_asks),
    cmocka_unit_test (secrets_never_come_back),
    cmocka_unit_test (a_killed_worker_makes_room_for_another_provider),
    cmocka_unit_test (probe_narrows_and_never_widens),
    cmocka_unit_test (no_descriptor_is_left),
  };

  log_set_level (LOG_LEVEL_ERROR);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
