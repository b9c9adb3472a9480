/* SPDX-License-Identifier: Apache-2.0 */
/* plugins/host, called as a host calls it: what it says of itself, and its
 * commands.  What it does is judged by processes, pipes and files, not by its
 * word. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>

#include <coffer/fd.h>

#include "fakehost.h"
#include "host-provider.h"

/* ---- what it says about itself ---- */

static void
probe_and_create_say_that_it_isolates_nothing (void **state)
{
  struct fixture *fixture = *state;
  const struct coffer_sandbox_info *info;
  const struct coffer_fact *fact;

  for (int round = 0; round < 2; round++) {
    fakehost_reset (&fixture->host, 8000);
    if (round == 0)
      assert_int_equal (OP->probe (&fixture->host.call, fixture->self, NULL),
                        0);
    else
      assert_int_equal (create (fixture, NULL), 0);
    fact = fakehost_fact (&fixture->host, "isolation");
    assert_non_null (fact);
    assert_string_equal (fact->state, "off");
    assert_string_equal (fact->value, "none");
    fact = fakehost_fact (&fixture->host, "user");
    assert_string_equal (fact->state, geteuid () == 0 ? "degraded" : "ok");
  }
  info = FAKEHOST_GET (&fixture->host, sandbox_info, 0);
  assert_string_equal (info->isolation, "none");
  assert_string_equal (info->not_applied[0], "network.none");
  assert_true (fakehost_logged (&fixture->host, "not a sandbox"));
  assert_int_equal (fakehost_logged (&fixture->host, "run as root"),
                    geteuid () == 0);
}

static void
every_option_it_cannot_honour_is_refused (void **state)
{
  struct fixture *fixture = *state;
  static const char *const one[] = {"x:1", NULL};
  struct coffer_mount mount = {.size = sizeof mount, .source = "/tmp",
                               .source_fd = -1, .target = "/workspace",
                               .writable = 1};
  const struct coffer_mount *const mounts[] = {&mount, NULL};
  const struct coffer_sandbox_spec specs[] = {
    {SPEC, .template_name = "t"}, {SPEC, .image = "i"}, {SPEC, .user = "0"},
    {SPEC, .memory_bytes = 1}, {SPEC, .cpu_millis = 1}, {SPEC, .pids = 1},
    {SPEC, .disk_bytes = 1}, {SPEC, .inodes = 1}, {SPEC, .network = "none"},
    {SPEC, .network = "allow"}, {SPEC, .allow = one}, {SPEC, .ports = one},
    {SPEC, .mounts = mounts}, {SPEC, .profile = "p"},
    {SPEC, .address_bytes = 1}, {SPEC, .file_bytes = 1},
    {SPEC, .open_files = 1}, {SPEC, .filter = "strict"},
    {SPEC, .require = one},
  };
  const struct coffer_exec_start_opts starts[] = {
    {.size = sizeof starts[0], .user = "0"},
    {.size = sizeof starts[0], .background = 1},
    {.size = sizeof starts[0], .warm = "w"},
  };
  struct run run;

  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    assert_int_equal (create (fixture, &specs[i]), COFFER_UNSUPPORTED);
    assert_int_equal (fixture->host.failures, 1);
    assert_non_null (strstr (fixture->host.message, "host provider"));
    assert_int_equal (entries (fixture->dir), 0);
  }
  assert_int_equal (create (fixture, &(struct coffer_sandbox_spec) {
                                       SPEC, .network = "host"}), 0);
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
    assert_int_equal (start_argv (fixture, (const char *[]) {"true", NULL},
                                  NULL, NULL, -1, &starts[i], &run),
                      COFFER_UNSUPPORTED);
}

static void
ids_that_are_no_plain_names_are_refused (void **state)
{
  struct fixture *fixture = *state;
  static const char *const bad[] = {"", ".", "..", "a/b", "../x", ".hidden",
                                    "a\nb", "你好"};
  struct coffer_sandbox_spec spec = {SPEC};

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    fakehost_reset (&fixture->host, 8000);
    assert_int_equal (OP->sandbox_create (&fixture->host.call, fixture->self,
                                          bad[i], &spec, NULL),
                      COFFER_INVALID);
    assert_int_equal (kill_sandbox (fixture, bad[i]), COFFER_NOT_FOUND);
  }
}

/* ---- commands ---- */

static void
ends_are_reported_exactly (void **state)
{
  struct fixture *fixture = *state;
  static const struct {
    const char *script;
    int code, signal;
  } cases[] = {
    {"exit 0", 0, 0}, {"exit 7", 7, 0}, {"exit 255", 255, 0},
    {"kill -9 $$", -1, 9}, {"kill -TERM $$", -1, 15},
    {"kill -SEGV $$", -1, 11},
  };
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    run_script (fixture, cases[i].script, &run);
    assert_int_equal (run.exit.code, cases[i].code);
    assert_int_equal (run.exit.signal, cases[i].signal);
    assert_int_equal (run.exit.timed_out, 0);
    assert_int_equal (run.exit.failure_errno, 0);
    assert_true (run.exit.duration_us > 0);
    run_free (&run);
  }
}

static void
arguments_environment_and_input_arrive_byte_for_byte (void **state)
{
  struct fixture *fixture = *state;
  static const char *const argv[] = {
    "sh", "-c", "printf '%s|%s|%s|' \"$1\" \"$V\" \"$HOME\"; cat; "
    "env -0 | cut -z -d= -f1 | grep -zv -e _ -e PWD -e SHLVL | sort -z | "
    "tr '\\0' ' '", "x", VECTOR_NAME "\xff", NULL,
  };
  static const char *const env[] = {"V=" VECTOR_BODY, "V=two\n", NULL};
  const struct coffer_sandbox_info *info;
  char want[1000];
  struct run run;
  int ends[2];

  assert_int_equal (create (fixture, NULL), 0);
  info = FAKEHOST_GET (&fixture->host, sandbox_info, 0);
  snprintf (want, sizeof want, "%s|two\n|%s|%sHOME LANG PATH TMPDIR USER V ",
            VECTOR_NAME "\xff", info->workspace, VECTOR_BODY);
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_true (write (ends[1], VECTOR_BODY, strlen (VECTOR_BODY)) > 0);
  close (ends[1]);
  setenv ("SECRET_OF_THE_HOST", "1", 1);
  assert_int_equal (start_argv (fixture, argv, env, NULL, ends[0], NULL, &run),
                    0);
  close (ends[0]);
  read_output (&run);
  assert_string_equal (run.output, want);
  wait_run (fixture, &run);
  run_free (&run);
}

static void
a_command_has_three_descriptors_a_session_and_default_signals (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  signal (SIGPIPE, SIG_IGN);
  assert_int_equal (create (fixture, NULL), 0);
  run_script (fixture,
              "ls /proc/self/fd | wc -l; grep -E '^Sig(Ign|Blk)' "
              "/proc/self/status | tr -d '\\t\\n'; umask; "
              "set -- $(cut -d' ' -f1,6 /proc/$$/stat); "
              "[ $1 = $2 ] && echo leader; cat", &run);
  signal (SIGPIPE, SIG_DFL);
  /* 0, 1, 2 and the one that ls reads the folder by. */
  assert_string_equal (run.output, "4\nSigBlk:0000000000000000"
                       "SigIgn:00000000000000000022\nleader\n");
  assert_int_equal (run.exit.code, 0);
  run_free (&run);
}

static void
the_working_folder_is_the_workspace_unless_named (void **state)
{
  struct fixture *fixture = *state;
  struct coffer_sandbox_spec spec = {SPEC, .workdir = "/usr"};
  static const char *const pwd[] = {"pwd", NULL};
  struct run run;

  assert_int_equal (create (fixture, &spec), 0);
  assert_int_equal (start_argv (fixture, pwd, NULL, NULL, -1, NULL, &run), 0);
  read_output (&run);
  assert_string_equal (run.output, "/usr\n");
  run_free (&run);
  assert_int_equal (start_argv (fixture, pwd, NULL, "/", -1, NULL, &run), 0);
  read_output (&run);
  assert_string_equal (run.output, "/\n");
  run_free (&run);
  assert_int_equal (start_argv (fixture, pwd, NULL, "not/absolute", -1, NULL,
                                &run), COFFER_INVALID);
  assert_int_equal (kill_sandbox (fixture, SANDBOX), 0);

  assert_int_equal (create (fixture, NULL), 0);
  run_script (fixture, "pwd; touch \"$TMPDIR/t\" && echo yes", &run);
  assert_non_null (strstr (run.output, "/" SANDBOX "/workspace\nyes\n"));
  run_free (&run);
}

static void
what_cannot_start_says_why (void **state)
{
  struct fixture *fixture = *state;
  static const struct {
    const char *program, *cwd;
    int sys_errno;
    const char *text;
  } cases[] = {
    {"no-such-program-here", NULL, ENOENT, "the program: No such file"},
    {"", NULL, ENOENT, "the program: "},
    {"/etc", NULL, EACCES, "the program: Permission denied"},
    {"/etc/passwd", NULL, EACCES, "the program: Permission denied"},
    {"true", "/no/such/folder", ENOENT, "the working folder: No such file"},
  };
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal (start_argv (fixture,
                                  (const char *[]) {cases[i].program, NULL},
                                  NULL, cases[i].cwd, -1, NULL, &run), 0);
    fakehost_reset (&fixture->host, 8000);
    assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self,
                                     SANDBOX, run.exec, NULL), 0);
    run.exit = *FAKEHOST_GET (&fixture->host, exec_exit, 0);
    assert_int_equal (run.exit.failure_errno, cases[i].sys_errno);
    assert_non_null (strstr (run.exit.failure, cases[i].text));
    run_free (&run);
  }
}

static void *
cancel_main (void *data)
{
  usleep (50000);
  fakehost_cancel (data);
  return NULL;
}

static void
waiting_ends_at_the_deadline_and_when_cancelled (void **state)
{
  struct fixture *fixture = *state;
  pthread_t thread;
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, "sleep 100", 0, &run), 0);
  fakehost_reset (&fixture->host, 50);
  assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self, SANDBOX,
                                   run.exec, NULL), COFFER_TIMEOUT);
  fakehost_reset (&fixture->host, 8000);
  pthread_create (&thread, NULL, cancel_main, &fixture->host);
  assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self, SANDBOX,
                                   run.exec, NULL), COFFER_CANCELLED);
  pthread_join (thread, NULL);
  /* Neither has ended the command. */
  assert_int_equal (coffer_wait_fd (run.out, POLLIN, 0, -1), 0);
  run_free (&run);
}

static void
unknown_sandboxes_and_commands_are_not_found (void **state)
{
  struct fixture *fixture = *state;
  static const char *const bad[] = {"x0", "x2", "1", "x", "x1 ", "x01",
                                    "x99999999999", NULL};
  struct run run;

  assert_int_equal (start_script (fixture, "true", 0, &run), COFFER_NOT_FOUND);
  assert_int_equal (create (fixture, NULL), 0);
  run_script (fixture, "true", &run);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    fakehost_reset (&fixture->host, 8000);
    assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self,
                                     SANDBOX, bad[i], NULL),
                      COFFER_NOT_FOUND);
  }
  /* An end can be asked for again. */
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, 0);
  run_free (&run);
}

static void
signals_reach_the_group_and_ended_commands_conflict (void **state)
{
  struct fixture *fixture = *state;
  char line[64];
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, "trap 'echo got; exit 3' USR1; "
                                  "echo ready; while :; do sleep 0.05; done",
                                  0, &run), 0);
  read_line (&run, line, sizeof line);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->exec_signal (&fixture->host.call, fixture->self,
                                     SANDBOX, run.exec, 999, NULL),
                    COFFER_INVALID);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->exec_signal (&fixture->host.call, fixture->self,
                                     SANDBOX, run.exec, SIGUSR1, NULL), 0);
  read_output (&run);
  wait_run (fixture, &run);
  assert_true (run.exit.code == 3 || run.exit.signal == SIGUSR1);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->exec_signal (&fixture->host.call, fixture->self,
                                     SANDBOX, run.exec, SIGTERM, NULL),
                    COFFER_CONFLICT);
  run_free (&run);
}

static void
a_terminal_has_its_size_and_controls_the_command (void **state)
{
  struct fixture *fixture = *state;
  struct coffer_exec_start_opts opts = {.size = sizeof opts, .tty = 1,
                                        .rows = 33, .columns = 77};
  static const char *const argv[] = {
    "sh", "-c", "tty -s && echo tty:$TERM; stty size; trap 'stty size; exit 5'"
    " WINCH; : < /dev/tty && echo control; while :; do sleep 0.02; done",
    NULL};
  char text[4096] = "";
  size_t size = 0;
  struct run run = {.out = -1};
  int master, slave;

  assert_int_equal (openpty (&master, &slave, NULL, NULL, NULL), 0);
  assert_int_equal (create (fixture, NULL), 0);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->exec_start (&fixture->host.call, fixture->self,
                                    SANDBOX, argv, NULL, NULL, slave, slave,
                                    -1, &opts), 0);
  snprintf (run.exec, sizeof run.exec, "%s",
            FAKEHOST_GET (&fixture->host, exec_info, 0)->exec);
  close (slave);
  for (int resized = 0; size < sizeof text - 1;) {
    ssize_t n;

    if (coffer_wait_fd (master, POLLIN, SOON, -1) != 1
        || (n = read (master, text + size, sizeof text - 1 - size)) <= 0)
      break;                    /* the last holder of the slave has gone */
    size += (size_t) n;
    if (!resized && strstr (text, "control")) {
      resized = 1;
      fakehost_reset (&fixture->host, 8000);
      assert_int_equal (OP->exec_resize (&fixture->host.call, fixture->self,
                                         SANDBOX, run.exec, 11, 22, NULL), 0);
    }
  }
  assert_string_equal (text, "tty:xterm\r\n33 77\r\ncontrol\r\n11 22\r\n");
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, 5);
  close (master);
}

int
main (void)
{
#define TEST(name)                                                            \
  cmocka_unit_test_setup_teardown (name, fixture_new, fixture_free)
  const struct CMUnitTest tests[] = {
    TEST (probe_and_create_say_that_it_isolates_nothing),
    TEST (every_option_it_cannot_honour_is_refused),
    TEST (ids_that_are_no_plain_names_are_refused),
    TEST (ends_are_reported_exactly),
    TEST (arguments_environment_and_input_arrive_byte_for_byte),
    TEST (a_command_has_three_descriptors_a_session_and_default_signals),
    TEST (the_working_folder_is_the_workspace_unless_named),
    TEST (what_cannot_start_says_why),
    TEST (waiting_ends_at_the_deadline_and_when_cancelled),
    TEST (unknown_sandboxes_and_commands_are_not_found),
    TEST (signals_reach_the_group_and_ended_commands_conflict),
    TEST (a_terminal_has_its_size_and_controls_the_command),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
