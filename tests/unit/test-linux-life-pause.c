/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox of `linux` that rests: nothing in it moves, its time goes on, and
 * afterwards all is as before. */

#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "linux-life.h"

static void
run (const char *id, const char *script)
{
  sh_in (id, script, 20000);
}

static int32_t
sandbox_pause (const char *id)
{
  return host.ops->sandbox_pause (host_call (&host, 10000), host.self, id,
                                  NULL);
}

static void
paused (const char *id)
{
  if (sandbox_pause (id) != COFFER_OK)
    fail_msg ("%s", host.error);
}

static void
resumed (const char *id)
{
  if (host.ops->sandbox_resume (host_call (&host, 10000), host.self, id, NULL)
        != COFFER_OK)
    fail_msg ("%s", host.error);
}

static const char *
state_of (const char *id)
{
  assert_int_equal (host.ops->sandbox_info (host_call (&host, 5000),
                                            host.self, id, NULL),
                    COFFER_OK);
  return host.infos;
}

/* The size of a file, looked at from outside. */
static unsigned long long
size_of (const char *id, const char *path)
{
  unsigned long long size = 0;

  if (host.ops->file_stat (host_call (&host, 5000), host.self, id, path, NULL)
        == COFFER_OK)
    sscanf (strrchr (host.files, ' '), "%llu", &size);
  return size;
}

static void
wait_for_more (const char *id, const char *path, unsigned long long than)
{
  const int64_t stop = coffer_now_ns () + HARNESS_PATIENCE_NS;

  while (size_of (id, path) <= than)
    if (coffer_now_ns () >= stop)
      fail_msg ("%s does not grow", path);
    else
      usleep (5000);
}

/* What forks all the time is caught, and none of its children is missed. */
static void
test_nothing_moves (void **state)
{
  unsigned long long size;
  double used;
  int held, round;

  (void) state;
  create ("still", &lasting);
  host_payload (&host, "still");
  held = host_start (&host, "still",
                     "for i in 1 2 3; do setsid ./payload ticker t$i & done; "
                     "while :; do :; done",
                     0);
  for (round = 0; round < 5; round++) {
    size = size_of ("still", "t2");
    wait_for_more ("still", "t2", size);
    paused ("still");
    assert_string_equal (state_of ("still"), "still paused\n");
    size = size_of ("still", "t2");
    used = host_metric (&host, "still", "cpu_seconds_total");
    usleep (400000);
    assert_true (size_of ("still", "t2") == size);
    /* Some ticks, for what the init itself has done. */
    assert_true (host_metric (&host, "still", "cpu_seconds_total")
                 < used + 0.2);
    paused ("still");           /* twice is once */
    resumed ("still");
    assert_string_equal (state_of ("still"), "still running\n");
    wait_for_more ("still", "t2", size);
    resumed ("still");
  }
  assert_false (host_gone (held, 0));
  close (held);
  assert_int_equal (host_kill (&host, "still"), COFFER_OK);
}

/* What had stopped by itself is not woken by the end of a pause, and a shell
 * does not take a pause for a job that has stopped. */
static void
test_stopped_stays_stopped (void **state)
{
  int held;

  (void) state;
  create ("own", &lasting);
  held = host_start (&host, "own",
                     "sh -c 'kill -STOP $$; echo woken' & "
                     "set -m; sleep 1000 & wait; echo through",
                     0);
  run ("own", "there () { ps axo stat=,args= | grep -q \"$1\"; }; i=0; "
       "until there '^T[^ ]* *sh -c kill -STOP' "
       "&& there '^S[^ ]* *sleep 1000$'; "
       "do i=$((i+1)); [ $i -lt 100 ] || exit 1; sleep 0.1; done");
  assert_int_equal (host.exit.code, 0);
  paused ("own");
  resumed ("own");
  run ("own", "ps axo stat=,args= | grep -c '^T[^ ]* *sh -c kill -STOP'");
  assert_string_equal (outcome.out, "1\n");
  run ("own", "ps axo stat=,args= | grep -c '^S[^ ]* *sleep 1000$'");
  assert_string_equal (outcome.out, "1\n");
  assert_int_equal (coffer_wait_fd (held, POLLIN, coffer_now_ns (), -1), 0);
  close (held);
  assert_int_equal (host_kill (&host, "own"), COFFER_OK);
}

static void
test_what_a_paused_one_refuses (void **state)
{
  const char *argv[] = { "true", NULL };
  int held;

  (void) state;
  create ("closed", &lasting);
  held = host_start (&host, "closed", "echo body > file; sleep 1000", 0);
  wait_for_more ("closed", "file", 0);
  paused ("closed");
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "closed", argv, NULL, NULL, -1, -1,
                                          -1, NULL),
                    COFFER_CONFLICT);
  assert_non_null (strstr (host.error, "paused"));
  assert_int_equal (host.ops->exec_signal (host_call (&host, 5000),
                                           host.self, "closed", "e1",
                                           SIGCONT, NULL),
                    COFFER_CONFLICT);
  /* Files and facts are there, and what is sent waits, but for the last. */
  assert_true (size_of ("closed", "file") == 5);
  assert_int_equal (host.ops->exec_signal (host_call (&host, 5000),
                                           host.self, "closed", "e1",
                                           SIGKILL, NULL),
                    COFFER_OK);
  assert_int_equal (host.ops->exec_wait (host_call (&host, 5000), host.self,
                                         "closed", "e1", NULL),
                    COFFER_OK);
  assert_int_equal (host.exit.signal, SIGKILL);
  resumed ("closed");
  run ("closed", "echo open");
  assert_string_equal (outcome.out, "open\n");
  close (held);
  assert_int_equal (host_kill (&host, "closed"), COFFER_OK);
  assert_int_equal (sandbox_pause ("closed"), COFFER_NOT_FOUND);
}

/* Timeouts and the time to live go on. */
static void
test_time_goes_on (void **state)
{
  struct coffer_sandbox_spec spec = lasting;
  int timed, mortal;

  (void) state;
  spec.ttl_ms = 6000;
  create ("mortal", &spec);
  mortal = host_start (&host, "mortal", "sleep 1000 & sleep 1000", 0);
  timed = host_start (&host, "mortal", "setsid sleep 1000 & sleep 1000", 500);
  paused ("mortal");
  assert_true (host_gone (timed, 4 * SECOND));
  assert_int_equal (host.ops->exec_wait (host_call (&host, 2000), host.self,
                                         "mortal", "e2", NULL),
                    COFFER_OK);
  assert_int_equal (host.exit.timed_out, 1);
  assert_false (host_gone (mortal, 0));
  assert_true (host_gone (mortal, HARNESS_PATIENCE_NS));
  close (timed);
  close (mortal);
  host_kill (&host, "mortal");
}

static void
test_a_paused_one_is_killed (void **state)
{
  int held;

  (void) state;
  create ("asleep", &lasting);
  held = host_start (&host, "asleep", "sleep 1000 & sleep 1000", 0);
  paused ("asleep");
  assert_int_equal (host_kill (&host, "asleep"), COFFER_OK);
  assert_true (host_gone (held, HARNESS_PATIENCE_NS));
  close (held);
}

/* It was paused by a host that is gone: another one finds it so. */
static void
test_another_host_resumes (void **state)
{
  static struct linux_host maker;
  int status = 0;
  pid_t pid;

  (void) state;
  pid = fork ();
  if (pid == 0) {
    maker = host;
    if (host_create (&maker, "left", &lasting) != COFFER_OK)
      _exit (1);
    host_start (&maker, "left", "while :; do echo >> f; sleep 0.01; done", 0);
    _exit (maker.ops->sandbox_pause (host_call (&maker, 5000), maker.self,
                                     "left", NULL)
             == COFFER_OK ? 0 : 2);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_string_equal (state_of ("left"), "left paused\n");
  resumed ("left");
  wait_for_more ("left", "f", size_of ("left", "f"));
  assert_int_equal (host_kill (&host, "left"), COFFER_OK);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_nothing_moves),
    cmocka_unit_test (test_stopped_stays_stopped),
    cmocka_unit_test (test_what_a_paused_one_refuses),
    cmocka_unit_test (test_time_goes_on),
    cmocka_unit_test (test_a_paused_one_is_killed),
    cmocka_unit_test (test_another_host_resumes),
  };

  return LINUX_TESTS_RUN (&host, "linux: a sandbox that rests", tests);
}
