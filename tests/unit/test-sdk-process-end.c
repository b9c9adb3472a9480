/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib/process.c: how an end is told, and who is found by a mark. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/process.h>

#include "process-shell.h"

/* -- what the tests do with a process ---- */

static int
start_shell (const char *script, const char *const *env, int out)
{
  return start ((const char *const[]) {"sh", "-c", script, NULL}, env, out,
                NULL);
}

/* Polls until so many are marked, for ten seconds. */
static void
await_marked (const char *prefix, int count)
{
  const int64_t until = coffer_now_ns () + 10 * SECOND;
  int n;

  while ((n = coffer_process_signal_marked (prefix, 0)) != count
         && coffer_now_ns () < until)
    poll (NULL, 0, 5);
  assert_int_equal (n, count);
}

/* -- its end ---- */

static void
ends_are_told_as_they_were (void **state)
{
  struct coffer_process_end end;

  (void) state;
  assert_int_equal (end_of (start_shell ("exit 0", NULL, -1)).code, 0);
  end = end_of (start_shell ("exit 255", NULL, -1));
  assert_int_equal (end.code, 255);
  assert_int_equal (end.signal, 0);
  end = end_of (start_shell ("kill -9 $$", NULL, -1));
  assert_int_equal (end.code, -1);
  assert_int_equal (end.signal, SIGKILL);
  end = end_of (start_shell ("ulimit -c 0; kill -6 $$", NULL, -1));
  assert_int_equal (end.code, -1);
  assert_int_equal (end.signal, SIGABRT);
  assert_no_children ();
}

static void
a_descriptor_is_readable_once_the_process_has_ended (void **state)
{
  int ends[2], pidfd;
  struct coffer_process process = {
    .argv = (const char *const[]) {"cat", NULL}, .env = plain_env,
    .out = -1, .err = -1,
  };

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  process.in = ends[0];
  pidfd = coffer_process_start (&process, NULL);
  assert_true (pidfd >= 0);
  coffer_fd_close (&ends[0]);
  assert_int_equal (poll (&(struct pollfd) {pidfd, POLLIN, 0}, 1, 50), 0);
  coffer_fd_close (&ends[1]);
  assert_int_equal (end_of (pidfd).code, 0);
}

static void
an_end_is_collected_once (void **state)
{
  struct coffer_process_end end = {.code = 42};
  coffer_autoclose int pidfd = start_shell ("exit 3", NULL, -1);
  coffer_autoclose int null = open ("/dev/null", O_RDONLY | O_CLOEXEC);

  (void) state;
  assert_int_equal (coffer_process_reap (pidfd, &end), 0);
  assert_int_equal (end.code, 3);
  end.code = 42;
  assert_int_equal (coffer_process_reap (pidfd, &end), -1);
  assert_int_equal (errno, ECHILD);
  assert_int_equal (coffer_process_reap (null, &end), -1);
  assert_int_equal (errno, EBADF);
  assert_int_equal (coffer_process_reap (-1, &end), -1);
  assert_int_equal (end.code, 42);      /* only written on success */
}

static void
time_of_reaped_children_counts (void **state)
{
  static const char script[]
    = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; exit 4";
  struct coffer_process_end busy = end_of (start_shell (script, NULL, -1));
  struct coffer_process_end idle = end_of (start_shell ("exit 4", NULL, -1));

  (void) state;
  assert_int_equal (busy.code, 4);
  assert_true (busy.cpu_us > 10000 && busy.cpu_us < 60000000);
  assert_true (idle.cpu_us < busy.cpu_us);
}

/* A handler that interrupts system calls, all the while. */
static void
signals_interrupt_neither_start_nor_reap (void **state)
{
  const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  struct sigaction old;

  (void) state;
  sigaction (SIGALRM, &(struct sigaction) {.sa_handler = handle}, &old);
  setitimer (ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 5; i++) {
    struct coffer_process_end end = {0};
    coffer_autoclose int pidfd = start_shell ("sleep 0.05; exit 9", NULL, -1);

    assert_true (pidfd >= 0);
    assert_int_equal (coffer_process_reap (pidfd, &end), 0);
    assert_int_equal (end.code, 9);
  }
  setitimer (ITIMER_REAL, &never, NULL);
  sigaction (SIGALRM, &old, NULL);
}

static void *
start_many (void *data)
{
  unsigned long *wrong = data;

  for (int i = 0; i < 20; i++) {
    char script[32];
    struct coffer_process_end end = {0};
    int pidfd;

    snprintf (script, sizeof script, "exit %d", i);
    pidfd = start_shell (script, NULL, -1);
    *wrong += pidfd < 0 || coffer_process_reap (pidfd, &end) < 0
              || end.code != i;
    coffer_fd_close (&pidfd);
  }
  return NULL;
}

static void
threads_start_and_reap_side_by_side (void **state)
{
  unsigned long wrong[8] = {0};
  pthread_t threads[8];

  (void) state;
  for (int i = 0; i < 8; i++)
    assert_int_equal (pthread_create (&threads[i], NULL, start_many,
                                      &wrong[i]), 0);
  for (int i = 0; i < 8; i++) {
    pthread_join (threads[i], NULL);
    assert_int_equal (wrong[i], 0);
  }
  assert_no_children ();
}

/* -- by their mark ---- */

static const char *
entry_of (const char *name)
{
  static char entry[128];

  snprintf (entry, sizeof entry, "%s%s", mark, name);
  return entry;
}

static void
a_mark_is_the_beginning_of_an_entry (void **state)
{
  const char *const env[] = {PATH_ENTRY, "X=1", entry_of ("one/x1"), "Y=2",
                             NULL};
  int pidfd = start ((const char *const[]) {"sleep", "60", NULL}, env, -1,
                     NULL);
  struct coffer_process_end end;

  (void) state;
  assert_true (pidfd >= 0);
  assert_int_equal (coffer_process_signal_marked (mark, 0), 1);
  assert_int_equal (coffer_process_signal_marked (entry_of ("one/"), 0), 1);
  assert_int_equal (coffer_process_signal_marked (entry_of ("one/x1"), 0), 1);
  assert_int_equal (coffer_process_signal_marked (entry_of ("one/x11"), 0), 0);
  assert_int_equal (coffer_process_signal_marked (entry_of ("on/"), 0), 0);
  assert_int_equal (coffer_process_signal_marked (mark + 1, 0), 0);
  /* No signal of the system's, so that nobody gets it. */
  assert_int_equal (coffer_process_signal_marked (mark, -1), 0);
  assert_int_equal (coffer_process_signal_marked (mark, 9999), 0);
  assert_int_equal (coffer_process_signal_marked (mark, SIGTERM), 1);
  end = end_of (pidfd);
  assert_int_equal (end.signal, SIGTERM);
  assert_int_equal (coffer_process_signal_marked (mark, 0), 0);
}

/* Those that have left their parent, their session and their group. */
static void
descendants_are_found_wherever_they_went (void **state)
{
  static const char script[]
    = "trap '' TERM; (setsid sh -c 'trap \"\" TERM HUP; sleep 60; :' &) &"
      " (sleep 60 &) & wait; exit 0";
  const char *const env[] = {PATH_ENTRY, entry_of ("two/"), NULL};
  int pidfd = start_shell (script, env, -1);

  (void) state;
  assert_int_equal (end_of (pidfd).code, 0);
  await_marked (mark, 3);       /* a shell and its sleep, another sleep */
  assert_int_equal (coffer_process_signal_marked (mark, SIGTERM), 3);
  poll (NULL, 0, 20);           /* which they ignore */
  assert_int_equal (coffer_process_signal_marked (mark, SIGKILL), 3);
  await_marked (mark, 0);
}

static void
who_ignores_signals_is_killed (void **state)
{
  const char *const env[] = {PATH_ENTRY, entry_of ("three/"), NULL};
  int ends[2], pidfd;
  char byte;

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  pidfd = start_shell ("trap '' TERM INT HUP; echo; while :; do sleep 60; "
                       "done", env, ends[1]);
  coffer_fd_close (&ends[1]);
  assert_int_equal (coffer_read_all (ends[0], &byte, 1), 1);
  assert_true (coffer_process_signal_marked (mark, SIGTERM) >= 1);
  assert_int_equal (poll (&(struct pollfd) {pidfd, POLLIN, 0}, 1, 50), 0);
  while (coffer_process_signal_marked (mark, SIGKILL) > 0)
    poll (NULL, 0, 1);
  assert_int_equal (end_of (pidfd).signal, SIGKILL);
  coffer_fd_close (&ends[0]);
}

/* Behind two megabytes of others. */
static void
a_mark_in_an_absurd_environment_is_found (void **state)
{
  coffer_autostrings struct coffer_strings env = {0};
  char *large = malloc (100000);
  int pidfd;

  (void) state;
  memset (large, 'z', 99999);
  large[99999] = '\0';
  for (int i = 0; i < 12; i++)
    coffer_strings_printf (&env, "L%d=%s", i, large);
  coffer_strings_add (&env, PATH_ENTRY);
  coffer_strings_add (&env, entry_of ("four/"));
  free (large);
  pidfd = start ((const char *const[]) {"sleep", "60", NULL},
                 coffer_strings_view (&env), -1, NULL);
  assert_true (pidfd >= 0);
  assert_int_equal (coffer_process_signal_marked (mark, SIGKILL), 1);
  assert_int_equal (end_of (pidfd).signal, SIGKILL);
}

/* This program again, which asks for its own mark: see main. */
static void
the_caller_is_never_meant (void **state)
{
  const char *const env[] = {entry_of ("five/"), NULL};
  const char *const argv[] = {"/proc/self/exe", mark, NULL};

  (void) state;
  assert_int_equal (end_of (start (argv, env, -1, NULL)).code, 0);
}

static void
another_users_process_is_not_meant (void **state)
{
  const char *const env[] = {PATH_ENTRY, entry_of ("six/"), NULL};
  const char *const argv[] = {"setpriv", "--reuid", "61234", "--regid",
                              "61234", "--clear-groups", "sleep", "60", NULL};
  const struct coffer_process process = {
    .argv = argv, .env = env, .in = -1, .out = -1, .err = -1,
  };
  struct coffer_process_end end;
  const int64_t until = coffer_now_ns () + 5 * SECOND;
  int pidfd;

  (void) state;
  if (geteuid () != 0)
    skip_missing ("root");
  pidfd = coffer_process_start (&process, NULL);
  assert_true (pidfd >= 0);
  while (coffer_process_signal_marked (mark, 0) > 0
         && coffer_now_ns () < until)
    poll (NULL, 0, 2);          /* until it has changed its user */
  assert_int_equal (coffer_process_signal_marked (mark, SIGKILL), 0);
  assert_int_equal (poll (&(struct pollfd) {pidfd, POLLIN, 0}, 1, 20), 0);
  assert_int_equal (syscall (SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0),
                    0);
  end = end_of (pidfd);
  assert_int_equal (end.signal, SIGKILL);
}

int
main (int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_teardown (name, clear)
#define FOLDER_TEST(name)                                                     \
  cmocka_unit_test_setup_teardown (name, harness_folder_new,                  \
                                   harness_folder_free)
  const struct CMUnitTest tests[] = {
    TEST (ends_are_told_as_they_were),
    TEST (a_descriptor_is_readable_once_the_process_has_ended),
    TEST (an_end_is_collected_once),
    TEST (time_of_reaped_children_counts),
    TEST (signals_interrupt_neither_start_nor_reap),
    TEST (threads_start_and_reap_side_by_side),
    TEST (a_mark_is_the_beginning_of_an_entry),
    TEST (descendants_are_found_wherever_they_went),
    TEST (who_ignores_signals_is_killed),
    TEST (a_mark_in_an_absurd_environment_is_found),
    TEST (the_caller_is_never_meant),
    TEST (another_users_process_is_not_meant),
  };

  if (argc == 2 && strncmp (argv[1], "COFFER_TEST_RUN=", 16) == 0)
    return coffer_process_signal_marked (argv[1], 0);
  snprintf (mark, sizeof mark, "COFFER_TEST_RUN=%ld/", (long) getpid ());
  return cmocka_run_group_tests (tests, NULL, NULL);
}
