/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of `linux` side by side: at its timeout all that is one command's is
 * ended, whatever it does to be missed, and nothing of another's. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <coffer/fd.h>

#include "linux-life.h"

static int
start (const char *id, const char *script, uint64_t timeout_ms)
{
  return host_start (&host, id, script, timeout_ms);
}

static void
wait_exec (const char *id, const char *exec)
{
  if (host.ops->exec_wait (host_call (&host, 10000), host.self, id, exec,
                           NULL)
        != COFFER_OK)
    fail_msg ("%s: %s", exec, host.error);
}

static void
run (const char *id, const char *script)
{
  sh_in (id, script, 20000);
}

/* e1: an innocent one; e2: the same, over by itself, which leaves a child. */
static void
others_begin (const char *id, int others[2])
{
  create (id, &lasting);
  host_payload (&host, id);
  others[0] = start (id, "exec sleep 1000", 0);
  others[1] = start (id, "sleep 1001 >&2 & echo", 0);
  wait_exec (id, "e2");
  assert_int_equal (host.exit.code, 0);
}

/* Each is still there, judged by who it is. */
static void
others_live (const char *id, int others[2])
{
  /* A machine with much to do may not have made it one yet. */
  run (id, "count () { ps axo args= | grep -c '^sleep 100[01]$'; }; i=0; "
       "while [ $(count) -lt 2 ] && [ $i -lt 50 ]; do i=$((i+1)); "
       "sleep 0.1; done; count");
  assert_string_equal (outcome.out, "2\n");
  assert_false (host_gone (others[0], 0));
  assert_int_equal (host.ops->exec_signal (host_call (&host, 5000),
                                           host.self, id, "e1", SIGTERM,
                                           NULL),
                    COFFER_OK);
  wait_exec (id, "e1");
  assert_int_equal (host.exit.signal, SIGTERM);
  assert_int_equal (host.exit.timed_out, 0);
  close (others[0]);
  close (others[1]);
  assert_int_equal (host_kill (&host, id), COFFER_OK);
}

static const char *const fugitives[] = {
  "setsid sleep 60 & setsid sh -c 'sleep 60 & exec sleep 60' & sleep 60",
  "(setsid sh -c '(sleep 60 &) & (setsid sleep 60 &)' &) & sleep 60",
  ("trap '' TERM INT HUP; setsid sh -c \"trap '' TERM; sleep 60 & wait\" & "
   "while :; do :; done"),
  "sh -c 'kill -STOP $$' & setsid sh -c 'kill -STOP $$' & kill -STOP $$",
  /* Each of the limits that tell whose it is, lowered, and both. */
  "ulimit -w 5; setsid sleep 60 & sleep 60",
  "(setsid sh -c 'ulimit -w 0; sleep 60' &) & ./payload untag & sleep 60",
  "setsid ./payload undumpable & ./payload undumpable",
  "./payload orphanage & sleep 60",
  "./payload leaderless & sleep 60",
};

static void
test_nothing_is_missed_and_nobody_else_hit (void **state)
{
  int others[2], held;
  int64_t begun;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof fugitives / sizeof fugitives[0]; i++) {
    others_begin ("fugitive", others);
    begun = coffer_now_ns ();
    held = start ("fugitive", fugitives[i], 400);
    if (!host_gone (held, HARNESS_PATIENCE_NS))
      fail_msg ("lives on: %s", fugitives[i]);
    close (held);
    wait_exec ("fugitive", "e3");
    assert_int_equal (host.exit.timed_out, 1);
    assert_int_equal (host.exit.signal, SIGKILL);
    assert_int_equal (host.exit.code, -1);
    assert_string_equal (host.limits, "timeout ");
    assert_true (coffer_now_ns () - begun < HARNESS_PATIENCE_NS);
    others_live ("fugitive", others);
  }
}

/* Processes that fork faster than they can be looked for, most of them gone
 * before their number is read. */
static void
test_a_fleeing_fork_bomb_is_over (void **state)
{
  struct coffer_sandbox_spec spec = lasting;
  int held, other;

  (void) state;
  spec.pids = 200;
  if (host_create (&host, "bomb", &spec) != COFFER_OK)
    fail_msg ("%s", host.error);
  host_payload (&host, "bomb");
  other = start ("bomb", "sleep 1000", 0);
  held = start ("bomb", "exec ./payload bomb", 500);
  /* Less than a second; but on one slow processor, of which the init has its
   * share among the bomb's. */
  assert_true (host_gone (held, HARNESS_PATIENCE_NS));
  close (held);
  wait_exec ("bomb", "e2");
  assert_int_equal (host.exit.timed_out, 1);
  assert_false (host_gone (other, 0));
  close (other);
  run ("bomb", "ps ax | grep -c '[p]ayload'; exit 4");
  assert_string_equal (outcome.out, "0\n");
  assert_int_equal (host.exit.code, 4);
  assert_int_equal (host_kill (&host, "bomb"), COFFER_OK);
}

/* Each one that was killed with it is counted, also one that is nobody's child
 * any more or has lowered its limits. */
static void
test_the_killed_are_counted (void **state)
{
  unsigned ms;
  int held;

  (void) state;
  create ("count", &lasting);
  host_payload (&host, "count");
  /* Until there was time for all of them to be there. */
  for (ms = 1000; ms <= 16000; ms *= 4) {
    held = start ("count", "sleep 60 & (setsid sleep 60 &) & "
                  "./payload untag & sleep 60", ms);
    if (host.ops->exec_wait (host_call (&host, 30000), host.self, "count",
                             host.exec, NULL)
          != COFFER_OK)
      fail_msg ("%s", host.error);
    close (held);
    assert_int_equal (host.exit.timed_out, 1);
    if (host.exit.killed == 4)
      break;
  }
  assert_int_equal (host.exit.killed, 4);
  assert_int_equal (host_kill (&host, "count"), COFFER_OK);
}

/* Who takes another's part only puts itself into danger: the limits that tell
 * whose a process is go down and never up. */
static void
test_a_tag_cannot_be_another_s (void **state)
{
  int others[2], liar, held;

  (void) state;
  others_begin ("masks", others);
  liar = start ("masks", "exec ./payload untag", 0);
  assert_int_equal (coffer_wait_fd (liar, POLLIN, coffer_now_ns ()
                                    + HARNESS_PATIENCE_NS, -1),
                    1);
  held = start ("masks", "sleep 60", 300);
  assert_true (host_gone (held, HARNESS_PATIENCE_NS));
  /* It may have been e4's, as far as could be seen. */
  assert_true (host_gone (liar, HARNESS_PATIENCE_NS));
  close (held);
  close (liar);
  wait_exec ("masks", "e3");
  assert_int_equal (host.exit.signal, SIGKILL);
  assert_int_equal (host.exit.timed_out, 0);
  others_live ("masks", others);
}

/* All at once cannot be signalled at all, and what has the reach of a user's
 * signals keeps nothing of the sandbox alive. */
static void
test_a_signal_to_everybody_reaches_nobody (void **state)
{
  int others[2];

  (void) state;
  others_begin ("everybody", others);
  run ("everybody",
       "kill -9 -1; kill -STOP -1; kill -9 1; kill -STOP 1; "
       "kill -9 $PPID; echo alive");
  assert_string_equal (outcome.out, "alive\n");
  assert_non_null (strstr (outcome.err, "Operation not permitted"));
  others_live ("everybody", others);
}

/* One by one, they are the same user's; the facts say what happened, and the
 * sandbox goes on. */
static void
test_signals_one_by_one_are_told (void **state)
{
  int other;

  (void) state;
  create ("each", &lasting);
  other = start ("each", "sleep 1000", 0);
  run ("each", "for p in /proc/[0-9]*; do p=${p#/proc/}; "
       "[ $p != $$ ] && kill -9 $p; done; echo over");
  assert_string_equal (outcome.out, "over\n");
  wait_exec ("each", "e1");
  assert_int_equal (host.exit.signal, SIGKILL);
  assert_int_equal (host.exit.timed_out, 0);
  close (other);
  run ("each", "echo alive");
  assert_string_equal (outcome.out, "alive\n");
  assert_int_equal (host_kill (&host, "each"), COFFER_OK);
}

/* A command that stops whatever appears stops none on its way to a program for
 * good, and the init not at all: its own time comes all the same. */
static void
test_who_stops_newcomers_stops_nothing (void **state)
{
  int stopper, i;

  (void) state;
  create ("stopper", &lasting);
  host_payload (&host, "stopper");
  stopper = start ("stopper", "exec ./payload stopper", 0);
  for (i = 0; i < 20; i++) {
    close (start ("stopper", "exit 4", 3000));
    assert_int_equal (host.ops->sandbox_info (host_call (&host, 5000),
                                              host.self, "stopper", NULL),
                      COFFER_OK);
  }
  assert_int_equal (host.ops->exec_signal (host_call (&host, 5000),
                                           host.self, "stopper", "e1",
                                           SIGKILL, NULL),
                    COFFER_OK);
  assert_true (host_gone (stopper, HARNESS_PATIENCE_NS));
  close (stopper);
  run ("stopper", "exit 7");
  assert_int_equal (host.exit.code, 7);
  assert_int_equal (host_kill (&host, "stopper"), COFFER_OK);
}

/* A command that ended in time is not timed out for what it has left behind. */
static void
test_leftovers_outlive_an_end_in_time (void **state)
{
  unsigned ms;
  int held;

  (void) state;
  create ("leaves", &lasting);
  /* On a machine with much to do it may need more to end in time. */
  for (ms = 300;; ms *= 4) {
    held = start ("leaves", "sleep 1000 & exit 5", ms);
    wait_exec ("leaves", host.exec);
    if (!host.exit.timed_out || ms > 4000)
      break;
    close (held);
  }
  assert_int_equal (host.exit.code, 5);
  assert_int_equal (host.exit.timed_out, 0);
  assert_false (host_gone (held, ms * INT64_C (1000000) + SECOND));
  close (held);
  assert_int_equal (host_kill (&host, "leaves"), COFFER_OK);
}

/* Processor time of what a command has left to nobody counts as its own. */
static void
test_orphans_count (void **state)
{
  (void) state;
  create ("orphans", &lasting);
  run ("orphans",
       "(sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; "
       "echo > done' &) & while [ ! -e done ]; do sleep 0.05; done; "
       "sleep 0.1");
  assert_true (host.exit.cpu_us > 30000);
  assert_int_equal (host_kill (&host, "orphans"), COFFER_OK);
}

/* The writer of a command's input hears that the command has closed it. */
static void
test_a_closed_input_is_heard_of (void **state)
{
  const char *argv[] = { "sh", "-c", "exec <&-; sleep 1000", NULL };
  int in[2];

  (void) state;
  create ("input", &lasting);
  assert_int_equal (pipe2 (in, O_CLOEXEC), 0);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "input", argv, NULL, NULL, in[0],
                                          -1, -1, NULL),
                    COFFER_OK);
  close (in[0]);
  assert_int_equal (coffer_wait_fd (in[1], POLLERR, coffer_now_ns ()
                                    + HARNESS_PATIENCE_NS, -1),
                    1);
  close (in[1]);
  assert_int_equal (host_kill (&host, "input"), COFFER_OK);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_nothing_is_missed_and_nobody_else_hit),
    cmocka_unit_test (test_a_fleeing_fork_bomb_is_over),
    cmocka_unit_test (test_the_killed_are_counted),
    cmocka_unit_test (test_a_tag_cannot_be_another_s),
    cmocka_unit_test (test_a_signal_to_everybody_reaches_nobody),
    cmocka_unit_test (test_signals_one_by_one_are_told),
    cmocka_unit_test (test_who_stops_newcomers_stops_nothing),
    cmocka_unit_test (test_leftovers_outlive_an_end_in_time),
    cmocka_unit_test (test_orphans_count),
    cmocka_unit_test (test_a_closed_input_is_heard_of),
  };

  return LINUX_TESTS_RUN (&host, "linux: commands side by side", tests);
}
