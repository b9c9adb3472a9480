/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of `linux` that are copies of an interpreter which stands ready: what
 * they do, what stands ready and what is refused. */

#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "linux-host.h"
#include "linux-warm.h"

/* ---- what they do ------------------------------------------------------- */

static void
test_runs (void **state)
{
  (void) state;
  run ("print('six times seven is', 6 * 7)", 0);
  assert_string_equal (outcome.err, "");
  assert_string_equal (outcome.out, "six times seven is 42\n");
  assert_int_equal (host.exit.code, 0);
  assert_true (host.exit.duration_us > 0);
  run ("os._exit(7)", 0);
  assert_int_equal (host.exit.code, 7);
  run ("sys.stderr.write('oh'); sys.stderr.flush(); import faulthandler\n"
       "faulthandler._read_null()", 0);
  assert_string_equal (outcome.err, "oh");
  assert_int_equal (host.exit.signal, SIGSEGV);
}

static void
test_nothing_is_left_for_the_next (void **state)
{
  static const char code[]
    = "print(count, os.listdir('/tmp'), os.listdir('.'))\n"
      "open('/tmp/left', 'w').write('x'); open('left', 'w').write('x')\n"
      "os.environ['LEFT'] = 'x'; count = 7\n"
      "print('LEFT' in os.environ, os.getcwd())\n";
  static const char expected[] = "1 [] []\nTrue /workspace\n";
  int i;

  (void) state;
  for (i = 0; i < 3; i++) {
    run (code, 0);
    assert_string_equal (outcome.err, "");
    assert_string_equal (outcome.out, expected);
  }
  run ("print('LEFT' in os.environ)", 0);
  assert_string_equal (outcome.out, "False\n");
}

static void
test_chance_is_not_the_last_ones (void **state)
{
  static const char *const modules[] = { "random", NULL };
  char first[64];
  char handle[32];

  (void) state;
  if (open_with (program, modules) != COFFER_OK)
    fail_msg ("%s", host.error);
  snprintf (handle, sizeof handle, "%s", host.exec);
  host.warm = handle;
  create ("chance1", &strict);
  assert_int_equal (host_run (&host, "chance1", python, NULL,
                              "import random; print(random.random())", 0,
                              &outcome), COFFER_OK);
  snprintf (first, sizeof first, "%.60s", outcome.out);
  create ("chance2", &strict);
  assert_int_equal (host_run (&host, "chance2", python, NULL,
                              "import random; print(random.random())", 0,
                              &outcome), COFFER_OK);
  host.warm = NULL;
  assert_true (strncmp (first, "0.", 2) == 0);
  assert_string_not_equal (first, outcome.out);
  host_kill (&host, "chance1");
  host_kill (&host, "chance2");
}

static void
test_environment_and_folder (void **state)
{
  const char *env[] = { "A=1", "USER=me", NULL };

  (void) state;
  create ("environment", &strict);
  host.warm = warm ();
  assert_int_equal (
    host_run (&host, "environment", python, env,
              "print(sorted(os.environ.items()))", 0, &outcome),
    COFFER_OK);
  host.warm = NULL;
  assert_string_equal (
    outcome.out,
    "[('A', '1'), ('HOME', '/workspace'), ('LANG', 'C.UTF-8'), ('PATH', "
    "'/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'), "
    "('TMPDIR', '/tmp'), ('USER', 'me')]\n");
  assert_int_equal (host_kill (&host, "environment"), COFFER_OK);
}

static void
test_time_ends_it (void **state)
{
  (void) state;
  run ("print('on', flush=True)\nwhile True: pass", 300);
  assert_string_equal (outcome.out, "on\n");
  assert_int_equal (host.exit.timed_out, 1);
  assert_int_equal (host.exit.signal, SIGKILL);
  assert_string_equal (host.limits, "timeout ");
}

static void
test_a_sandbox_for_one (void **state)
{
  struct coffer_sandbox_spec spec = strict;

  (void) state;
  spec.single_exec = 1;
  create ("single", &spec);
  host.warm = warm ();
  assert_int_equal (host_run (&host, "single", python, NULL, "print(1)", 0,
                              &outcome), COFFER_OK);
  assert_string_equal (outcome.out, "1\n");
  assert_int_equal (host.exit.code, 0);
  host_kill (&host, "single");
  create ("single", &spec);
  assert_int_equal (host_run (&host, "single", python, NULL,
                              "while True: pass", 200, &outcome), COFFER_OK);
  assert_int_equal (host.exit.timed_out, 1);
  host.warm = NULL;
  host_kill (&host, "single");
}

/* ---- what stands ready -------------------------------------------------- */

static int
interpreter (void)
{
  return child_of (getpid (), "(python3)");
}

static void
test_it_has_no_rights_itself (void **state)
{
  char status[8192], line[256], own[128], ours[128];
  int pid;

  (void) state;
  warm ();
  pid = interpreter ();
  assert_true (pid > 0);
  file_of (pid, "status", status, sizeof status);
  line_of (status, "CapEff:", line, sizeof line);
  assert_string_equal (line, "CapEff:\t0000000000000000");
  line_of (status, "CapPrm:", line, sizeof line);
  assert_string_equal (line, "CapPrm:\t0000000000000000");
  line_of (status, "NoNewPrivs:", line, sizeof line);
  assert_string_equal (line, "NoNewPrivs:\t1");
  line_of (status, "Threads:", line, sizeof line);
  assert_string_equal (line, "Threads:\t1");
  if (geteuid () != 0)
    return;
  line_of (status, "CapBnd:", line, sizeof line);
  assert_string_equal (line, "CapBnd:\t0000000000000000");
  line_of (status, "Groups:", line, sizeof line);
  assert_string_equal (line, "Groups:\t ");
  link_of (pid, "ns/net", own, sizeof own);
  link_of (getpid (), "ns/net", ours, sizeof ours);
  assert_string_not_equal (own, ours);
  link_of (pid, "ns/mnt", own, sizeof own);
  link_of (getpid (), "ns/mnt", ours, sizeof ours);
  assert_string_not_equal (own, ours);
  snprintf (line, sizeof line, "/proc/%d/root/etc/shadow", pid);
  assert_int_equal (access (line, F_OK), -1);
  snprintf (line, sizeof line, "/proc/%d/root/home", pid);
  assert_int_equal (access (line, F_OK), -1);
}

static void
test_the_handle_outlives_it (void **state)
{
  int pid;

  (void) state;
  run ("print(1)", 0);
  assert_true (interpreter () > 0);
  while ((pid = interpreter ()) != 0)
    assert_int_equal (kill (pid, SIGKILL), 0);
  run ("print(2)", 0);
  assert_string_equal (outcome.out, "2\n");
  assert_true (interpreter () > 0);
}

static void
test_threads_are_refused (void **state)
{
  static const char threaded[]
    = "import _thread, time\n"
      "def prepare(modules):\n"
      "    _thread.start_new_thread(time.sleep, (60,))\n"
      "    return []\n"
      "def run(): pass\n";

  (void) state;
  assert_int_equal (open_with (threaded, NULL), COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.error, "thread"));
}

static void
test_programs_that_fail (void **state)
{
  static const char *const wrong[]
    = { "this is no python", "def prepare(m): raise ValueError('wrong')",
        "import posix\nposix._exit(3)" };
  size_t i;

  (void) state;
  assert_int_equal (open_with ("", NULL), COFFER_INVALID);
  for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal (open_with (wrong[i], NULL), COFFER_UNAVAILABLE);
    assert_true (strlen (host.error) > 0);
  }
}

static void
test_the_same_is_opened_once (void **state)
{
  static const char *const none[] = { "no_such_module", NULL };
  static const char *const odd[] = { "-c", NULL };
  char first[32];

  (void) state;
  snprintf (first, sizeof first, "%s", warm ());
  assert_string_equal (warm (), first);
  assert_int_equal (open_with (program, none), COFFER_OK);
  assert_string_not_equal (host.exec, first);
  assert_int_equal (open_with (program, odd), COFFER_INVALID);
}

/* ---- refusals ----------------------------------------------------------- */

static int32_t
start_with (const char *id, const char *handle, uint32_t background)
{
  struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .warm = handle, .background = background };

  return host.ops->exec_start (host_call (&host, 20000), host.self, id, python,
                               NULL, NULL, -1, -1, -1, &opts);
}

static void
test_refusals (void **state)
{
  const struct coffer_sandbox_spec general
    = { .size = sizeof general, .lifeline = -1 };
  char handle[32];

  (void) state;
  snprintf (handle, sizeof handle, "%s", warm ());
  assert_int_equal (host.ops->warm_open (host_call (&host, 5000), host.self,
                                         "minimal", -1, NULL),
                    COFFER_INVALID);
  create ("refuse", &strict);
  assert_int_equal (start_with ("refuse", "w99", 0), COFFER_NOT_FOUND);
  assert_int_equal (start_with ("refuse", "", 0), COFFER_NOT_FOUND);
  assert_int_equal (start_with ("refuse", handle, 1), COFFER_UNSUPPORTED);
  assert_int_equal (start_with ("nobody", handle, 0), COFFER_NOT_FOUND);
  assert_int_equal (start_with ("refuse", handle, 0), COFFER_OK);
  assert_int_equal (start_with ("refuse", handle, 0), COFFER_CONFLICT);
  assert_int_equal (host_kill (&host, "refuse"), COFFER_OK);
  create ("general", &general);
  assert_int_equal (start_with ("general", handle, 0), COFFER_CONFLICT);
  assert_int_equal (host_kill (&host, "general"), COFFER_OK);
}

/* Whoever comes in has rights over the sandbox, so that nobody is even sent for
 * where something ran. */
static void
test_a_refusal_sends_for_nobody (void **state)
{
  char handle[32];
  int pid;

  (void) state;
  snprintf (handle, sizeof handle, "%s", warm ());
  create ("used", &strict);
  assert_int_equal (host_run (&host, "used", python, NULL, NULL, 0, &outcome),
                    COFFER_OK);
  pid = interpreter ();
  assert_true (pid > 0);
  assert_int_equal (kill (pid, SIGSTOP), 0);
  assert_int_equal (start_with ("used", handle, 0), COFFER_CONFLICT);
  assert_non_null (strstr (host.error, "started in this sandbox before"));
  assert_int_equal (kill (pid, SIGCONT), 0);
  assert_int_equal (host_kill (&host, "used"), COFFER_OK);
}

/* ---- handles ------------------------------------------------------------ */

static void
test_handles_are_given_back (void **state)
{
  char first[32], used[32], text[8192];
  int i;

  (void) state;
  snprintf (used, sizeof used, "%s", warm ());
  assert_int_equal (open_with (waiting, NULL), COFFER_OK);
  snprintf (first, sizeof first, "%s", host.exec);
  for (i = 0; i < 16; i++) {
    snprintf (text, sizeof text, "number = %d\n%s", i, program);
    assert_int_equal (open_with (text, NULL), COFFER_OK);
    /* One that is used stays. */
    assert_string_equal (warm (), used);
  }
  create ("back", &strict);
  assert_int_equal (start_with ("back", first, 0), COFFER_NOT_FOUND);
  assert_int_equal (start_with ("back", used, 0), COFFER_OK);
  assert_int_equal (host_kill (&host, "back"), COFFER_OK);
  assert_int_equal (open_with (waiting, NULL), COFFER_OK);
  assert_string_not_equal (host.exec, first);
}

/* ---- many --------------------------------------------------------------- */

#define THREADS 4
#define TURNS 8

struct many {
  const char *handle;
  unsigned index;
  int failed;
};

static void *
many_run (void *data)
{
  struct many *many = data;
  struct coffer_exec_start_opts opts = { .size = sizeof opts,
                                         .warm = many->handle };
  char id[32], byte;
  int in[2], out[2], turn;

  for (turn = 0; turn < TURNS; turn++) {
    snprintf (id, sizeof id, "many%u-%d", many->index, turn);
    if (host_create (&host, id, &strict) != COFFER_OK
        || pipe2 (in, O_CLOEXEC) != 0 || pipe2 (out, O_CLOEXEC) != 0
        || write (in[1], "print(4)", 8) != 8)
      many->failed++;
    close (in[1]);
    if (host.ops->exec_start (host_call (&host, 20000), host.self, id, python,
                              NULL, NULL, in[0], out[1], -1, &opts)
        != COFFER_OK)
      many->failed++;
    close (in[0]);
    close (out[1]);
    if (read (out[0], &byte, 1) != 1 || byte != '4')
      many->failed++;
    close (out[0]);
    if (host_kill (&host, id) != COFFER_OK)
      many->failed++;
  }
  return NULL;
}

static void
test_many_at_once (void **state)
{
  struct many many[THREADS];
  pthread_t threads[THREADS];
  char handle[32];
  unsigned i;

  (void) state;
  snprintf (handle, sizeof handle, "%s", warm ());
  for (i = 0; i < THREADS; i++) {
    many[i] = (struct many){ handle, i, 0 };
    assert_int_equal (pthread_create (&threads[i], NULL, many_run, &many[i]),
                      0);
  }
  for (i = 0; i < THREADS; i++) {
    pthread_join (threads[i], NULL);
    assert_int_equal (many[i].failed, 0);
  }
  assert_int_equal (child_of (interpreter (), NULL), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_runs),
    cmocka_unit_test (test_nothing_is_left_for_the_next),
    cmocka_unit_test (test_chance_is_not_the_last_ones),
    cmocka_unit_test (test_environment_and_folder),
    cmocka_unit_test (test_time_ends_it),
    cmocka_unit_test (test_a_sandbox_for_one),
    cmocka_unit_test (test_it_has_no_rights_itself),
    cmocka_unit_test (test_the_handle_outlives_it),
    cmocka_unit_test (test_threads_are_refused),
    cmocka_unit_test (test_programs_that_fail),
    cmocka_unit_test (test_the_same_is_opened_once),
    cmocka_unit_test (test_refusals),
    cmocka_unit_test (test_a_refusal_sends_for_nobody),
    cmocka_unit_test (test_handles_are_given_back),
    cmocka_unit_test (test_many_at_once),
  };

  if (!built ()) {
    puts ("1..0 # SKIP missing: Python.h");
    return 0;
  }
  return LINUX_TESTS_RUN (&host, "linux-warm", tests);
}
