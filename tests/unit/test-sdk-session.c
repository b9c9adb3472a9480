/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider's helper program uses: it is started by a descriptor
 * (helper.c), starts commands as sessions (process.c), and ends all that is
 * below it (descendants.c).  Each test is a process of its own, whose
 * descendants are nobody else's. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <coffer/descendants.h>
#include <coffer/fd.h>
#include <coffer/process.h>

#define SECOND INT64_C (1000000000)

static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};

/* A subreaper, which forgets nothing: its exit status is 0 when `body` and all
 * it has asserted went well. */
static void
in_child (void (*body) (const char *folder), const char *folder)
{
  pid_t pid = fork ();
  int status;

  if (pid == 0) {
    alarm (30);
    prctl (PR_SET_CHILD_SUBREAPER, 1);
    body (folder);
    _exit (0);
  }
  assert_true (pid > 0);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
}

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf (stderr, "# line %d: %s: errno %d\n", __LINE__, #condition,     \
               errno);                                                        \
      _exit (1);                                                              \
    }                                                                         \
  } while (0)

/* -- commands as sessions ---- */

static struct coffer_session
session_of (const char *const *argv, int out)
{
  return (struct coffer_session) {
    .process = {.argv = argv, .env = env, .in = -1, .out = out, .err = -1},
    .folder = -1,
  };
}

/* Its status, when it ran. */
static int
status_of (const struct coffer_session *session)
{
  struct coffer_start_failure failure;
  int report = -1, status;
  pid_t pid = coffer_session_start (session, &report);

  CHECK (pid > 0);
  CHECK (fcntl (report, F_GETFD) == FD_CLOEXEC);
  CHECK (coffer_read_all (report, &failure, sizeof failure) == 0);
  coffer_fd_close (&report);
  CHECK (waitpid (pid, &status, 0) == pid);
  return status;
}

static void
session_body (const char *path)
{
  static const char script[] =
    "read _ _ _ _ group session _ < /proc/self/stat;"
    "[ $group = $$ ] || exit 2; [ $session = $$ ] || exit 3;"
    "[ \"$(pwd -P)\" = \"$0\" ] || exit 4;"
    "[ $(ls /proc/self/fd | wc -l) -eq 4 ] || exit 5";
  const struct rlimit low = {1 << 30, RLIM_INFINITY};
  coffer_autoclose int folder = open (path, O_RDONLY | O_CLOEXEC);
  struct coffer_session session = session_of (
    (const char *const[]) {"sh", "-c", script, path, NULL}, -1);
  int leak = open ("/dev/null", O_RDONLY);      /* without O_CLOEXEC */
  struct rlimit limit;

  CHECK (folder >= 0 && leak >= 0);
  session.folder = folder;
  CHECK (status_of (&session) == 0);
  session.folder = -1;
  session.process.cwd = path;
  CHECK (status_of (&session) == 0);
  session.process.cwd = NULL;
  session.process.argv = (const char *const[]) {
    "sh", "-c", "[ $(ulimit -f) = unlimited ]", NULL};
  CHECK (getrlimit (RLIMIT_FSIZE, &limit) == 0);
  if (limit.rlim_max == RLIM_INFINITY) {
    CHECK (setrlimit (RLIMIT_FSIZE, &low) == 0);
    CHECK (status_of (&session) == 0);
  }
}

static void
a_session_leads_itself_in_its_folder_with_three_descriptors (void **state)
{
  char *path = realpath (*state, NULL);

  in_child (session_body, path);
  free (path);
}

/* In this session, and the leader of a group all the same. */
static void
joining_body (const char *folder)
{
  char wanted[32];
  struct coffer_session session = session_of (
    (const char *const[]) {
      "sh", "-c", "read _ _ _ parent group session _ < /proc/self/stat;"
      "[ $group = $$ ] || exit 2; [ $session = $0 ]", wanted, NULL}, -1);

  (void) folder;
  snprintf (wanted, sizeof wanted, "%d", (int) getsid (0));
  session.joins = 1;
  CHECK (status_of (&session) == 0);
}

static void
one_that_joins_leads_a_group_alone (void **state)
{
  in_child (joining_body, *state);
}

static void
tty_body (const char *folder)
{
  int terminal = posix_openpt (O_RDWR | O_NOCTTY | O_CLOEXEC), side, report;
  char text[64] = "";
  struct coffer_session session;
  struct winsize size = {0};
  pid_t pid;

  (void) folder;
  CHECK (terminal >= 0 && grantpt (terminal) == 0 && unlockpt (terminal) == 0);
  side = open (ptsname (terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  CHECK (side >= 0);
  session = session_of ((const char *const[]) {
    "sh", "-c", "stty size </dev/tty; test -t 0 -a -t 1 -a -t 2", NULL}, -1);
  session.process.in = side;
  session.tty = 1;
  session.rows = 33;
  session.columns = 77;
  pid = coffer_session_start (&session, &report);
  CHECK (pid > 0 && read (terminal, text, sizeof text - 1) > 0);
  CHECK (strncmp (text, "33 77", 5) == 0);
  CHECK (ioctl (side, TIOCGWINSZ, &size) == 0 && size.ws_row == 33);
  int status;

  CHECK (waitpid (pid, &status, 0) == pid && status == 0);
}

static void
a_terminal_is_its_own (void **state)
{
  in_child (tty_body, *state);
}

static void
failure_body (const char *folder)
{
  const struct {
    const char *name, *cwd;
    int in, sys_errno;
    uint32_t stage;
  } cases[] = {
    {"there-is-none", NULL, -1, ENOENT, COFFER_STAGE_PROGRAM},
    {"", NULL, -1, ENOENT, COFFER_STAGE_PROGRAM},
    {"true", "/there/is/none", -1, ENOENT, COFFER_STAGE_FOLDER},
    {"true", "/dev/null", -1, ENOTDIR, COFFER_STAGE_FOLDER},
    {"true", NULL, 987, EBADF, COFFER_STAGE_PROCESS},
  };
  struct coffer_start_failure failure;
  int report, status;

  (void) folder;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *const argv[] = {cases[i].name, NULL};
    struct coffer_session session = session_of (argv, -1);

    session.process.in = cases[i].in;
    session.process.cwd = cases[i].cwd;
    pid_t pid = coffer_session_start (&session, &report);

    CHECK (pid > 0);
    CHECK (coffer_read_all (report, &failure, sizeof failure)
           == sizeof failure);
    CHECK (failure.sys_errno == cases[i].sys_errno
           && failure.stage == cases[i].stage);
    coffer_fd_close (&report);
    CHECK (waitpid (pid, &status, 0) == pid && WEXITSTATUS (status) == 127);
  }
  struct coffer_session none = session_of ((const char *const[]) {NULL}, -1);

  CHECK (coffer_session_start (&none, &report) == -1 && errno == EINVAL);
}

static void
one_that_never_ran_says_why (void **state)
{
  in_child (failure_body, *state);
}

/* -- ending what is below ---- */

struct count {
  unsigned reaped, killed;
  uint64_t cpu_us;
};

static void
count_one (void *data, pid_t pid, int status, const struct rusage *usage)
{
  struct count *count = data;

  (void) pid;
  count->reaped++;
  count->killed += WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL;
  count->cpu_us += coffer_usage_us (usage);
}

static pid_t
start_script (const char *script, int out)
{
  struct coffer_session session = session_of (
    (const char *const[]) {"sh", "-c", script, NULL}, out);
  int report = -1;
  pid_t pid = coffer_session_start (&session, &report);

  CHECK (pid > 0);
  coffer_fd_close (&report);
  return pid;
}

static void
reap_body (const char *folder)
{
  struct count count = {0};
  int64_t until = coffer_now_ns () + 10 * SECOND;

  (void) folder;
  CHECK (coffer_descendants_reap (count_one, &count) == 0);
  start_script ("i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done", -1);
  start_script ("kill -9 $$", -1);
  CHECK (coffer_descendants_reap (count_one, &count) == 1
         || count.reaped == 2);
  while (coffer_descendants_reap (count_one, &count)
         && coffer_now_ns () < until)
    poll (NULL, 0, 2);
  CHECK (count.reaped == 2 && count.killed == 1 && count.cpu_us > 1000);
  /* With nothing below there is nothing to do. */
  CHECK (coffer_descendants_kill (NULL, 0,
                                  coffer_now_ns () + HARNESS_PATIENCE_NS,
                                  count_one, &count) == 0);
  CHECK (count.reaped == 2);
}

static void
what_has_ended_is_reaped_once (void **state)
{
  in_child (reap_body, *state);
}

/* TERM and HUP are ignored, sessions and parents left, and forks go on. */
static void
kill_body (const char *folder)
{
  struct count count = {0};
  int ends[2];
  char byte;

  (void) folder;
  CHECK (pipe2 (ends, O_CLOEXEC) == 0);
  start_script ("trap '' TERM HUP INT; echo;"
                "while :; do (setsid sh -c 'sleep 30 & sleep 30' &);"
                " sleep 0.002; done", ends[1]);
  start_script ("(setsid sleep 30 &); kill -STOP $$", ends[1]);
  coffer_fd_close (&ends[1]);
  CHECK (coffer_read_all (ends[0], &byte, 1) == 1);
  poll (NULL, 0, 150);
  CHECK (coffer_descendants_kill (NULL, 0, coffer_now_ns () + 20 * SECOND,
                                  count_one, &count) == 0);
  CHECK (waitpid (-1, NULL, WNOHANG) == -1 && errno == ECHILD);
  CHECK (count.killed >= 4);
  /* The pipe's end is open in none of them. */
  CHECK (coffer_wait_fd (ends[0], POLLIN,
                         coffer_now_ns () + HARNESS_PATIENCE_NS, -1) == 1);
  CHECK (read (ends[0], &byte, 1) == 0);
}

static void
nothing_outlives_a_kill (void **state)
{
  in_child (kill_body, *state);
}

/* Eight at a time fork the next and end, every other in a session of its own: who
 * comes to the place of one finds it gone, and a list has none of them. */
static void
never_still (void)
{
  int own;

  setsid ();
  for (int i = 0; i < 8; i++)
    if (fork () == 0)
      for (own = i % 2;;) {
        if (own)
          setsid ();
        if (fork () > 0)
          _exit (0);
      }
  for (;;)
    pause ();
}

static void
still_body (const char *folder)
{
  struct count count = {0};
  pid_t pid;

  (void) folder;
  for (unsigned long i = harness_scaled (3); i > 0; i--) {
    alarm (60);
    pid = fork ();
    if (pid == 0)
      never_still ();
    CHECK (pid > 0);
    poll (NULL, 0, 100);
    CHECK (coffer_descendants_kill (NULL, 0, coffer_now_ns () + 40 * SECOND,
                                    count_one, &count) == 0);
    CHECK (waitpid (-1, NULL, WNOHANG) == -1 && errno == ECHILD);
  }
}

static void
what_never_stands_still_is_ended (void **state)
{
  in_child (still_body, *state);
}

static void
spare_body (const char *folder)
{
  const pid_t spared = start_script ("trap 'exit 7' TERM; sleep 30 &"
                                     "while :; do sleep 0.05; done", -1);
  struct count count = {0};
  int status;

  (void) folder;
  start_script ("exec sleep 30", -1);
  poll (NULL, 0, 100);
  CHECK (coffer_descendants_kill (&spared, 1, coffer_now_ns () + 10 * SECOND,
                                  count_one, &count) == 0);
  CHECK (count.killed == 1 && kill (spared, 0) == 0);
  CHECK (kill (spared, SIGTERM) == 0 && waitpid (spared, &status, 0) == spared);
  CHECK (WEXITSTATUS (status) == 7);
  coffer_descendants_kill (NULL, 0, coffer_now_ns () + 10 * SECOND, count_one,
                           &count);
}

static void
those_who_are_spared_live (void **state)
{
  in_child (spare_body, *state);
}

/* -- the helper itself ---- */

/* This program again, as a helper that looks at what it has: see main. */
static int
helper_main (void)
{
  char byte;

  if (fcntl (4, F_GETFD) != -1 || fcntl (7, F_GETFD) != -1
      || fcntl (3, F_GETFD) != 0 || fcntl (5, F_GETFD) != 0
      || fcntl (6, F_GETFD) != 0)
    return 10;
  if (environ[0] || read (0, &byte, 1) != 0)
    return 11;
  if (read (3, &byte, 1) != 1)
    return 12;
  if (byte == 'f')
    return 13;
  if (byte == 'k')
    raise (SIGKILL);
  return write (5, &byte, 1) == 1 ? 0 : 14;
}

static void
a_helper_gets_what_it_is_given_and_no_more (void **state)
{
  coffer_autoclose int program = open ("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  int in[2], out[2];
  char byte;

  (void) state;
  assert_int_equal (pipe2 (in, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (out, O_CLOEXEC), 0);
  const int fds[] = {in[0], -1, out[1]};

  for (const char *say = "xfk"; *say; say++) {
    int r;

    assert_int_equal (write (in[1], say, 1), 1);
    r = coffer_process_start_helper ("the-helper", program, fds, 3);
    if (*say == 'x') {
      assert_int_equal (r, 0);
      assert_int_equal (read (out[0], &byte, 1), 1);
      assert_int_equal (byte, 'x');
    } else {
      assert_int_equal (r, -1);
      assert_int_equal (errno, EAGAIN);
    }
  }
  for (int i = 0; i < 2; i++) {
    coffer_fd_close (&in[i]);
    coffer_fd_close (&out[i]);
  }
  assert_int_equal (waitpid (-1, NULL, WNOHANG), -1);
}

static void
a_helper_that_cannot_be_is_an_error (void **state)
{
  coffer_autoclose int null = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  int many[80] = {0};

  (void) state;
  assert_int_equal (coffer_process_start_helper ("x", -1, NULL, 0), -1);
  assert_int_equal (errno, EINVAL);
  assert_int_equal (coffer_process_start_helper ("x", null, NULL, 0), -1);
  assert_int_equal (errno, EACCES);
  assert_int_equal (coffer_process_start_helper ("x", null, (const int[]) {987},
                                                 1), -1);
  assert_int_equal (errno, EBADF);
  assert_int_equal (coffer_process_start_helper ("x", null, many, 80), -1);
  assert_int_equal (errno, EINVAL);
}

static void
others_body (const char *folder)
{
  int fds[30], keep[3];

  (void) folder;
  for (int i = 0; i < 30; i++)
    CHECK ((fds[i] = open ("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
  keep[0] = fds[20];
  keep[1] = -1;
  keep[2] = fds[3];
  coffer_close_others (keep, 3);
  for (int i = 0; i < 30; i++)
    CHECK ((fcntl (fds[i], F_GETFD) != -1) == (i == 3 || i == 20));
  CHECK (fcntl (0, F_GETFD) != -1 && fcntl (2, F_GETFD) != -1);
  coffer_close_others (NULL, 0);
  CHECK (fcntl (fds[3], F_GETFD) == -1);
}

static void
all_but_the_kept_are_closed (void **state)
{
  in_child (others_body, *state);
}

int
main (int argc, char **argv)
{
#define TEST(name)                                                            \
  cmocka_unit_test_setup_teardown (name, harness_folder_new,                  \
                                   harness_folder_free)
  const struct CMUnitTest tests[] = {
    TEST (a_session_leads_itself_in_its_folder_with_three_descriptors),
    TEST (one_that_joins_leads_a_group_alone),
    TEST (a_terminal_is_its_own),
    TEST (one_that_never_ran_says_why),
    TEST (what_has_ended_is_reaped_once),
    TEST (nothing_outlives_a_kill),
    TEST (what_never_stands_still_is_ended),
    TEST (those_who_are_spared_live),
    TEST (a_helper_gets_what_it_is_given_and_no_more),
    TEST (a_helper_that_cannot_be_is_an_error),
    TEST (all_but_the_kept_are_closed),
  };

  if (argc == 1 && strcmp (argv[0], "the-helper") == 0)
    return helper_main ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
