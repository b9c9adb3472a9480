/* SPDX-License-Identifier: Apache-2.0 */
/* plugins/host: whatever ends a command ends all that it started, wherever that
 * went.  Judged by who still holds its pipe. */

#define _GNU_SOURCE

#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "fakehost.h"
#include "host-provider.h"

/* ---- making sandboxes and running commands ---- */

static void
create_with_lifeline (struct fixture *fixture, uint32_t single)
{
  struct coffer_sandbox_spec spec = {.size = sizeof spec,
                                     .single_exec = single};
  int ends[2];

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  spec.lifeline = ends[0];
  fixture->lifeline = ends[1];
  assert_int_equal (create (fixture, &spec), 0);
  close (ends[0]);
}

/* ---- ends of trees ---- */

static void
a_timeout_ends_every_descendant (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 2500,
                                  &run), 0);
  wait_for_runaways (&run);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.timed_out, 1);
  assert_int_equal (run.exit.code, -1);
  assert_int_equal (run.exit.signal, SIGKILL);
  assert_true (run.exit.killed >= N_RUNAWAYS);
  assert_true (run.exit.duration_us >= 2500000);
  read_output (&run);
  run_free (&run);
}

/* Each child forks the next and ends: no list of processes is ever right. */
static void
a_timeout_ends_what_forks_for_ever (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  if (access ("/usr/bin/python3", X_OK) < 0)
    skip_missing ("python3");
  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_argv (fixture, (const char *[]) {
    "python3", "-c", "import os,time\n"
    "for i in range(8):\n"
    "  if os.fork() == 0:\n"
    "    while True:\n"
    "      if i % 2: os.setsid() if os.getsid(0) != os.getpid() else 0\n"
    "      if os.fork(): os._exit(0)\n"
    "time.sleep(300)", NULL}, NULL, NULL, -1,
    &(struct coffer_exec_start_opts) {
      .size = sizeof (struct coffer_exec_start_opts), .timeout_ms = 400},
    &run), 0);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.timed_out, 1);
  read_output (&run);
  run_free (&run);
}

static void
a_timeout_spares_the_other_commands (void **state)
{
  struct fixture *fixture = *state;
  struct run one, other;
  char line[64];

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, "(setsid sleep 1.2; echo done) & "
                                  "echo up; wait", 0, &other), 0);
  read_line (&other, line, sizeof line);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 400, &one),
                    0);
  wait_run (fixture, &one);
  assert_int_equal (one.exit.timed_out, 1);
  read_output (&other);
  assert_string_equal (other.output, "done\n");
  wait_run (fixture, &other);
  assert_int_equal (other.exit.code, 0);
  run_free (&one);
  run_free (&other);
}

static void
what_a_command_leaves_lives_until_the_sandbox_ends (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "exit 4", 0, &run), 0);
  wait_for_runaways (&run);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, 4);
  assert_int_equal (run.exit.killed, 0);
  assert_int_equal (coffer_wait_fd (run.out, POLLIN, coffer_now_ns () +
                                    200000000, -1), 0);
  assert_int_equal (kill_sandbox (fixture, SANDBOX), 0);
  read_output (&run);
  assert_int_equal (entries (fixture->dir), 0);
  run_free (&run);
}

static void
a_single_command_takes_all_it_started_along (void **state)
{
  struct fixture *fixture = *state;
  struct run run, second;

  create_with_lifeline (fixture, 1);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 0.5; exit 6", 0,
                                  &run), 0);
  assert_int_equal (start_script (fixture, "true", 0, &second),
                    COFFER_CONFLICT);
  wait_for_runaways (&run);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, 6);
  assert_true (run.exit.killed >= N_RUNAWAYS);
  read_output (&run);
  run_free (&run);
}

static void
the_end_of_the_lifeline_ends_everything (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  create_with_lifeline (fixture, 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 0, &run), 0);
  wait_for_runaways (&run);
  coffer_fd_close (&fixture->lifeline);
  read_output (&run);
  for (int i = 0; i < 2000 && entries (fixture->dir) > 0; i++)
    usleep (10000);
  assert_int_equal (entries (fixture->dir), 0);
  run_free (&run);
}

/* A host that is killed: here a child that made the sandbox. */
static void
a_host_that_is_killed_leaves_nothing (void **state)
{
  struct fixture *fixture = *state;
  struct run run;
  int ends[2];
  pid_t pid;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  pid = fork ();
  if (pid == 0) {
    create_with_lifeline (fixture, 1);
    start_script (fixture, RUNAWAYS "sleep 300", 0, &run);
    wait_for_runaways (&run);
    if (write (ends[1], "", 1) == 1)
      pause ();
    _exit (1);
  }
  close (ends[1]);
  assert_int_equal (read (ends[0], &(char) {0}, 1), 1);
  assert_true (entries (fixture->dir) == 1);
  kill (pid, SIGKILL);
  assert_int_equal (waitpid (pid, NULL, 0), pid);
  for (int i = 0; i < 2000 && entries (fixture->dir) > 0; i++)
    usleep (10000);
  assert_int_equal (entries (fixture->dir), 0);
  close (ends[0]);
}

static pid_t
keeper_pid (struct fixture *fixture)
{
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->sandbox_info (&fixture->host.call, fixture->self,
                                      SANDBOX, NULL), 0);
  return (pid_t) atoi (FAKEHOST_GET (&fixture->host, sandbox_info, 0)
                         ->native_id + strlen ("pid-"));
}

static void
kill_keeper (struct fixture *fixture, int by_list)
{
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 0, &run), 0);
  wait_for_runaways (&run);
  kill (keeper_pid (fixture), SIGKILL);
  read_output (&run);
  run_free (&run);
  /* Its folder is all that is left: no sandbox, and whoever comes by, to end
   * it or to list, clears it away. */
  if (by_list) {
    fakehost_reset (&fixture->host, 8000);
    assert_int_equal (OP->sandbox_list (&fixture->host.call, fixture->self,
                                        NULL), 0);
    assert_int_equal (fixture->host.count, 0);
  } else {
    assert_int_equal (entries (fixture->dir), 1);
    assert_int_equal (kill_sandbox (fixture, SANDBOX), COFFER_NOT_FOUND);
  }
  assert_int_equal (entries (fixture->dir), 0);
}

static void
a_keeper_that_is_killed_takes_its_commands_along (void **state)
{
  kill_keeper (*state, 0);
  kill_keeper (*state, 1);
}

/* It lets go of its lock last, which on a busy machine is a while after all else
 * of it is gone: here somebody has it half a second longer. */
static void
linger (struct fixture *fixture, int ms)
{
  char path[600];
  pid_t pid;
  int fd;

  snprintf (path, sizeof path, "%s/" SANDBOX, fixture->dir);
  fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true (fd >= 0);
  while (flock (fd, LOCK_EX | LOCK_NB) < 0)
    usleep (1000);
  pid = fork ();
  if (pid == 0) {
    usleep ((useconds_t) ms * 1000);
    _exit (0);
  }
  assert_true (pid > 0);
  close (fd);
}

static void
a_keeper_whose_lock_ends_last_is_no_sandbox (void **state)
{
  struct fixture *fixture = *state;

  for (int by_list = 0; by_list < 2; by_list++) {
    assert_int_equal (create (fixture, NULL), 0);
    kill (keeper_pid (fixture), SIGKILL);
    linger (fixture, 500);
    if (by_list) {
      fakehost_reset (&fixture->host, 8000);
      assert_int_equal (OP->sandbox_list (&fixture->host.call, fixture->self,
                                          NULL), 0);
      assert_int_equal (fixture->host.count, 0);
    } else {
      assert_int_equal (kill_sandbox (fixture, SANDBOX), COFFER_NOT_FOUND);
    }
    assert_int_equal (entries (fixture->dir), 0);
    assert_true (waitpid (-1, NULL, 0) > 0);
  }
}

/* For as long as the call has, and no longer. */
static void
a_lock_that_stays_is_waited_for_within_the_calls_time (void **state)
{
  struct fixture *fixture = *state;
  int64_t began;

  assert_int_equal (create (fixture, NULL), 0);
  kill (keeper_pid (fixture), SIGKILL);
  linger (fixture, 4000);
  fakehost_reset (&fixture->host, 300);
  began = coffer_now_ns ();
  OP->sandbox_list (&fixture->host.call, fixture->self, NULL);
  assert_true (coffer_now_ns () - began < INT64_C (2500) * 1000000);
  assert_true (waitpid (-1, NULL, 0) > 0);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->sandbox_list (&fixture->host.call, fixture->self,
                                      NULL), 0);
  assert_int_equal (entries (fixture->dir), 0);
}

/* The first child of a process, by /proc. */
static pid_t
child_of (pid_t parent)
{
  char path[64], text[64] = "";
  int fd;

  snprintf (path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  assert_true (fd >= 0);
  assert_true (read (fd, text, sizeof text - 1) >= 0);
  close (fd);
  return (pid_t) atoi (text);
}

static void
a_minder_that_is_killed_takes_its_command_along (void **state)
{
  struct fixture *fixture = *state;
  struct run run, after;
  pid_t minder;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 0, &run), 0);
  wait_for_runaways (&run);
  minder = child_of (keeper_pid (fixture));
  assert_true (minder > 1);
  kill (minder, SIGKILL);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, -1);
  assert_int_equal (run.exit.signal, SIGKILL);
  read_output (&run);
  run_free (&run);
  run_script (fixture, "echo still here", &after);
  assert_string_equal (after.output, "still here\n");
  run_free (&after);
}

int
main (void)
{
#define TEST(name)                                                            \
  cmocka_unit_test_setup_teardown (name, fixture_new, fixture_free)
  const struct CMUnitTest tests[] = {
    TEST (a_timeout_ends_every_descendant),
    TEST (a_timeout_ends_what_forks_for_ever),
    TEST (a_timeout_spares_the_other_commands),
    TEST (what_a_command_leaves_lives_until_the_sandbox_ends),
    TEST (a_single_command_takes_all_it_started_along),
    TEST (the_end_of_the_lifeline_ends_everything),
    TEST (a_host_that_is_killed_leaves_nothing),
    TEST (a_keeper_that_is_killed_takes_its_commands_along),
    TEST (a_keeper_whose_lock_ends_last_is_no_sandbox),
    TEST (a_lock_that_stays_is_waited_for_within_the_calls_time),
    TEST (a_minder_that_is_killed_takes_its_command_along),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
