/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile sandbox can do to those who watch over it: its monitors, its
 * init, and the host that speaks with an init that was taken over.  Judged
 * from outside, by a pipe that everything inside holds. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "linux-host.h"

#define SECOND INT64_C (1000000000)

static struct linux_host host;

static const struct coffer_sandbox_spec lasting
  = { .size = sizeof lasting, .lifeline = -1 };

static void
create (const char *id, const struct coffer_sandbox_spec *spec)
{
  if (host_create (&host, id, spec) != COFFER_OK)
    fail_msg ("%s", host.error);
}

/* Starts a script that holds the other end of what is returned. */
static int
start (const char *id, const char *script, uint64_t timeout_ms)
{
  const char *argv[] = { "sh", "-c", script, NULL };
  struct coffer_exec_start_opts opts = { .size = sizeof opts,
                                         .timeout_ms = timeout_ms };
  int held[2];

  assert_int_equal (pipe2 (held, O_CLOEXEC), 0);
  if (host.ops->exec_start (host_call (&host, 20000), host.self, id, argv,
                            NULL, NULL, -1, held[1], -1, &opts)
        != COFFER_OK)
    fail_msg ("%s", host.error);
  close (held[1]);
  return held[0];
}

/* Whether everything that held the pipe is gone, within that time. */
static int
all_gone (int held, int64_t ns)
{
  const int64_t stop = coffer_now_ns () + ns;
  char bytes[4096];

  while (coffer_wait_fd (held, POLLIN, stop, -1) == 1)
    if (read (held, bytes, sizeof bytes) == 0)
      return 1;
  return 0;
}

static int32_t
wait_exec (const char *id, const char *exec, int64_t timeout_ms)
{
  return host.ops->exec_wait (host_call (&host, timeout_ms), host.self, id,
                              exec, NULL);
}

/* ---- monitors ----------------------------------------------------------- */

/* A command that stops, starves or ends its monitor is over in time all the
 * same, with all that it started. */
static void
test_timeouts_hold_without_the_monitor (void **state)
{
  static const char *const scripts[] = {
    "kill -STOP $PPID; (setsid sleep 60 &); sleep 60",
    "p=$PPID; (setsid sleep 60 &); "
    "while :; do kill -STOP $p; done 2>/dev/null",
    "(setsid sleep 60 &); kill -STOP -1; sleep 60",
    "sleep 0.2; kill -KILL $PPID; sleep 60",
  };
  int64_t begun;
  size_t i;
  int held;

  (void) state;
  for (i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
    create ("stopped", &lasting);
    begun = coffer_now_ns ();
    held = start ("stopped", scripts[i], 700);
    if (!all_gone (held, 4500000000))
      fail_msg ("lives on: %s", scripts[i]);
    close (held);
    /* The sandbox may have had to end as well. */
    if (wait_exec ("stopped", "e1", 5000) == COFFER_OK && i < 3)
      assert_int_equal (host.exit.timed_out, 1);
    assert_true (coffer_now_ns () - begun < 6 * SECOND);
    host_kill (&host, "stopped");
  }
}

/* A monitor that is only stopped goes on: the news of the end come, without a
 * timeout, and the sandbox is as before. */
static void
test_a_stopped_monitor_goes_on (void **state)
{
  int held;

  (void) state;
  create ("resumed", &lasting);
  held = start ("resumed", "kill -STOP $PPID; exit 3", 0);
  assert_int_equal (wait_exec ("resumed", "e1", 10000), COFFER_OK);
  assert_int_equal (host.exit.code, 3);
  close (held);
  held = start ("resumed", "exit 4", 0);
  assert_int_equal (wait_exec ("resumed", "e2", 10000), COFFER_OK);
  assert_int_equal (host.exit.code, 4);
  close (held);
  assert_int_equal (host_kill (&host, "resumed"), COFFER_OK);
}

/* ---- the init ----------------------------------------------------------- */

/* An init that cannot wait ends, with everything: it neither spins nor forgets
 * what it watches. */
static void
test_an_init_that_cannot_wait_ends (void **state)
{
  const struct rlimit none = { 0, 0 };
  struct coffer_sandbox_spec spec = lasting;
  int single, held;

  (void) state;
  for (single = 0; single < 2; single++) {
    spec.single_exec = (uint32_t) single;
    create ("blind", &spec);
    held = start ("blind", "setsid sleep 60 & sleep 60", 0);
    assert_int_equal (host.ops->sandbox_info (host_call (&host, 5000),
                                              host.self, "blind", NULL),
                      COFFER_OK);
    assert_true (host.pid > 1);
    if (prlimit (host.pid, RLIMIT_NOFILE, &none, NULL) == -1)
      fail_msg ("prlimit: %s", strerror (errno));
    /* Whatever makes it wait anew. */
    host.ops->sandbox_info (host_call (&host, 500), host.self, "blind", NULL);
    assert_true (all_gone (held, 5 * SECOND));
    close (held);
    assert_int_equal (host_kill (&host, "blind"), COFFER_OK);
    assert_int_equal (faccessat (host.runtime, "blind", F_OK, 0), -1);
  }
}

static int
set_up (void **state)
{
  (void) state;
  linux_host_open (&host);
  return 0;
}

static int
tear_down (void **state)
{
  (void) state;
  linux_host_close (&host);
  return 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_timeouts_hold_without_the_monitor),
    cmocka_unit_test (test_a_stopped_monitor_goes_on),
    cmocka_unit_test (test_an_init_that_cannot_wait_ends),
  };

  if (!host_can ()) {
    printf ("1..0 # SKIP missing: user namespaces\n");
    return 0;
  }
  return cmocka_run_group_tests_name ("linux: a sandbox against its keepers",
                                      tests, set_up, tear_down);
}
