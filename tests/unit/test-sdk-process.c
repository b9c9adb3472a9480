/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib/process.c: what a program finds when it begins, and what is said of
 * one that never began. */

#define _GNU_SOURCE

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/process.h>

#include "process-shell.h"

/* -- what the tests do with a process ---- */

/* All that it writes, to be freed. */
static char *
output_of (const char *const *argv, const char *const *env, size_t *size)
{
  int ends[2], pidfd;
  char *text;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  pidfd = start (argv, env, ends[1], NULL);
  coffer_fd_close (&ends[1]);
  assert_true (pidfd >= 0);
  assert_int_equal (coffer_read_whole (ends[0], 16 << 20, &text, size), 0);
  coffer_fd_close (&ends[0]);
  assert_int_equal (end_of (pidfd).code, 0);
  return text;
}

static char *
said_by_shell (const char *script)
{
  size_t size;

  return output_of ((const char *const[]) {"sh", "-c", script, NULL}, NULL,
                    &size);
}

/* Descriptors that are open, or that a program would be given. */
static unsigned
count_fds (int inherited)
{
  DIR *dir = opendir ("/proc/self/fd");
  struct dirent *entry;
  unsigned n = 0;
  int fd;

  assert_non_null (dir);
  while ((entry = readdir (dir)))
    if (entry->d_name[0] != '.') {
      fd = atoi (entry->d_name);
      n += !inherited || (fd > 2 && !(fcntl (fd, F_GETFD) & FD_CLOEXEC));
    }
  closedir (dir);
  return n;
}

/* What may change this process is tried in another. */
static void
in_child (void (*body) (void))
{
  pid_t pid = fork ();
  int status;

  if (pid == 0) {
    alarm (10);
    body ();
    _exit (0);
  }
  assert_true (pid > 0);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  assert_int_equal (WEXITSTATUS (status), 0);
}

#define CHILD_ASSERT(condition)                                               \
  do {                                                                        \
    if (!(condition)) {                                                       \
      dprintf (report_fd, "# %s: errno %d\n", #condition, errno);             \
      _exit (1);                                                              \
    }                                                                         \
  } while (0)
static int report_fd = 2;

/* -- what a program finds ---- */

static void
arguments_arrive_byte_for_byte (void **state)
{
  static const char script[] = "printf '%s\\0' \"$@\"";
  const char *const argv[] = {
    "sh", "-c", script, "name", "", VECTOR_NAME, VECTOR_BODY, "\xff\x01\n", "",
    "$(exit 1) `id` \\ * ~", NULL,
  };
  coffer_autobuffer struct coffer_buffer expected = {0};
  size_t size;
  char *said = output_of (argv, NULL, &size);

  (void) state;
  for (size_t i = 4; argv[i]; i++)
    coffer_buffer_add (&expected, argv[i], strlen (argv[i]) + 1);
  assert_int_equal (size, expected.size);
  assert_memory_equal (said, expected.data, size);
  free (said);
}

static void
the_environment_is_the_given_one_and_no_more (void **state)
{
  const char *const env[] = {"A=", "odd=\xff\n=", "A=again", "no sign",
                             PATH_ENTRY, NULL};
  coffer_autobuffer struct coffer_buffer expected = {0};
  size_t size;
  char *said;

  (void) state;
  setenv ("OF_THE_CALLER", "1", 1);
  said = output_of ((const char *const[]) {"env", "-0", NULL}, env, &size);
  for (size_t i = 0; env[i]; i++)
    coffer_buffer_add (&expected, env[i], strlen (env[i]) + 1);
  assert_int_equal (size, expected.size);
  assert_memory_equal (said, expected.data, size);
  free (said);
  /* NULL is an empty one, and programs are found all the same. */
  const struct coffer_process bare = {
    .argv = (const char *const[]) {"true", NULL}, .in = -1, .out = -1,
    .err = -1,
  };

  assert_int_equal (end_of (coffer_process_start (&bare, NULL)).code, 0);
}

static void
streams_that_are_not_given_are_dev_null (void **state)
{
  char *said = said_by_shell ("readlink /proc/$$/fd/0 /proc/$$/fd/2; "
                              "cat; echo lost >&2");

  (void) state;
  assert_string_equal (said, "/dev/null\n/dev/null\n");
  free (said);
}

/* The report's pipe and our copies are not in it. */
static void
no_other_descriptor_gets_through (void **state)
{
  coffer_autoclose int own = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  char *said = output_of ((const char *const[]) {"ls", "/proc/self/fd", NULL},
                          NULL, &(size_t) {0});
  unsigned lines = 0;

  (void) state;
  assert_true (own >= 0);
  for (const char *s = said; *s; s++)
    lines += *s == '\n';
  assert_int_equal (lines, 3 + 1 + count_fds (1));      /* 1: the folder */
  free (said);
}

static void
given_descriptors_stay_the_callers (void **state)
{
  const unsigned before = count_fds (0);
  int ends[2], pidfd;
  const struct coffer_process process = {
    .argv = (const char *const[]) {"true", NULL}, .env = plain_env,
    .in = -1, .out = -1, .err = -1,
  };
  struct coffer_process given = process;

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  given.in = ends[0];
  given.out = given.err = ends[1];
  pidfd = coffer_process_start (&given, NULL);
  assert_true (pidfd >= 0);
  assert_int_equal (fcntl (pidfd, F_GETFD), FD_CLOEXEC);
  assert_int_equal (count_fds (0), before + 3);
  assert_int_equal (end_of (pidfd).code, 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal (fcntl (ends[i], F_GETFD), FD_CLOEXEC);
    coffer_fd_close (&ends[i]);
  }
  assert_int_equal (count_fds (0), before);
}

/* The caller's 0, 1 and 2 are the streams, each in another's place. */
static void
streams_turned_round_body (void)
{
  const char *const argv[] = {
    "sh", "-c", "read x; echo out-$x; echo err-$x >&2", NULL};
  struct coffer_process process = {
    .argv = argv, .env = plain_env, .in = 2, .out = 0, .err = 1,
  };
  struct coffer_process_end end;
  int in[2], out[2], err[2];
  char text[64] = "";

  report_fd = fcntl (2, F_DUPFD_CLOEXEC, 30);
  CHILD_ASSERT (pipe2 (in, O_CLOEXEC) == 0 && pipe2 (out, O_CLOEXEC) == 0
                && pipe2 (err, O_CLOEXEC) == 0);
  CHILD_ASSERT (dup2 (in[0], 2) == 2 && dup2 (out[1], 0) == 0
                && dup2 (err[1], 1) == 1);
  CHILD_ASSERT (write (in[1], "café\n", 6) == 6);
  int pidfd = coffer_process_start (&process, NULL);

  CHILD_ASSERT (pidfd >= 0 && coffer_process_reap (pidfd, &end) == 0);
  CHILD_ASSERT (end.code == 0);
  CHILD_ASSERT (read (out[0], text, sizeof text - 1) == 10
                && strcmp (text, "out-café\n") == 0);
  CHILD_ASSERT (read (err[0], text, sizeof text - 1) == 10
                && strcmp (text, "err-café\n") == 0);
}

static void
streams_may_be_the_callers_own_turned_round (void **state)
{
  (void) state;
  in_child (streams_turned_round_body);
}

/* So every descriptor that is made on the way is one of the three. */
static void
nothing_open_body (void)
{
  const char *const argv[] = {"sh", "-c", "cat; echo to-$1 >&2; echo there",
                              "sh", "nobody", NULL};
  struct coffer_process process = {
    .argv = argv, .env = plain_env, .in = -1, .err = -1,
  };
  struct coffer_process_end end;
  char text[64] = "";
  const char *failed;
  int out[2], high[2];

  report_fd = fcntl (2, F_DUPFD_CLOEXEC, 30);
  CHILD_ASSERT (pipe2 (out, O_CLOEXEC) == 0);
  for (int i = 0; i < 2; i++)
    CHILD_ASSERT ((high[i] = fcntl (out[i], F_DUPFD_CLOEXEC, 20)) >= 20);
  for (int fd = 0; fd < 20; fd++)
    close (fd);
  process.out = high[1];
  int pidfd = coffer_process_start (&process, &failed);

  CHILD_ASSERT (pidfd >= 0 && coffer_process_reap (pidfd, &end) == 0);
  CHILD_ASSERT (end.code == 0);
  CHILD_ASSERT (read (high[0], text, sizeof text - 1) == 6
                && strcmp (text, "there\n") == 0);
  /* A failure finds its way too. */
  process.cwd = "/there/is/none";
  CHILD_ASSERT (coffer_process_start (&process, &failed) == -1
                && errno == ENOENT && strcmp (failed, "working folder") == 0);
}

static void
a_caller_may_have_no_streams_at_all (void **state)
{
  (void) state;
  in_child (nothing_open_body);
}

static void
signals_and_umask_are_those_of_a_fresh_process (void **state)
{
  struct sigaction old[3];
  sigset_t some, before, after;
  mode_t mask;
  char *said;

  (void) state;
  sigemptyset (&some);
  sigaddset (&some, SIGUSR1);
  sigaddset (&some, SIGCHLD);
  sigaddset (&some, SIGRTMIN + 3);
  pthread_sigmask (SIG_BLOCK, &some, &before);
  sigaction (SIGTERM, &(struct sigaction) {.sa_handler = SIG_IGN}, &old[0]);
  sigaction (SIGPIPE, &(struct sigaction) {.sa_handler = SIG_IGN}, &old[1]);
  sigaction (SIGUSR2, &(struct sigaction) {.sa_handler = handle}, &old[2]);
  mask = umask (0);
  said = output_of ((const char *const[]) {"cat", "/proc/self/status", NULL},
                    NULL, &(size_t) {0});
  assert_int_equal (umask (mask), 0);
  sigaction (SIGTERM, &old[0], NULL);
  sigaction (SIGPIPE, &old[1], NULL);
  sigaction (SIGUSR2, &old[2], NULL);
  pthread_sigmask (SIG_SETMASK, &before, &after);
  assert_true (sigismember (&after, SIGUSR1) && !sigismember (&after, SIGHUP));
  assert_non_null (strstr (said, "\nUmask:\t0022\n"));
  assert_non_null (strstr (said, "\nSigBlk:\t0000000000000000\n"
                           "SigIgn:\t0000000000000000\n"
                           "SigCgt:\t0000000000000000\n"));
  free (said);
}

/* -- where it begins, and what it is ---- */

static void
the_working_folder_is_the_given_one (void **state)
{
  const char *folder = harness_path (*state, "你好 世界");
  struct coffer_process process = {
    .argv = (const char *const[]) {"sh", "-c", "echo here >f", NULL},
    .env = plain_env, .cwd = folder, .in = -1, .out = -1, .err = -1,
  };

  assert_int_equal (mkdir (folder, 0700), 0);
  assert_int_equal (end_of (coffer_process_start (&process, NULL)).code, 0);
  assert_int_equal (access (harness_path (folder, "f"), F_OK), 0);
}

/* With nothing left of the try. */
static void
fails (const struct coffer_process *process, int sys_errno, const char *what)
{
  const unsigned before = count_fds (0);
  const char *failed = NULL;

  errno = 0;
  assert_int_equal (coffer_process_start (process, &failed), -1);
  assert_int_equal (errno, sys_errno);
  assert_string_equal (failed, what);
  assert_int_equal (coffer_process_start (process, NULL), -1);
  assert_int_equal (errno, sys_errno);
  assert_int_equal (count_fds (0), before);
  assert_no_children ();
}

static void
a_working_folder_that_cannot_be_entered_is_named (void **state)
{
  const char *file = harness_path (*state, "file");
  const char *closed = harness_path (*state, "closed");
  coffer_autoclose int fd = open (file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  char *long_one = malloc (10000);
  struct coffer_process process = {
    .argv = (const char *const[]) {"true", NULL}, .env = plain_env,
    .in = -1, .out = -1, .err = -1,
  };

  assert_true (fd >= 0 && mkdir (closed, 0) == 0);
  process.cwd = harness_path (*state, "none");
  fails (&process, ENOENT, "working folder");
  process.cwd = "";
  fails (&process, ENOENT, "working folder");
  process.cwd = file;
  fails (&process, ENOTDIR, "working folder");
  memset (long_one, 'x', 9999);
  long_one[9999] = '\0';
  process.cwd = long_one;
  fails (&process, ENAMETOOLONG, "working folder");
  free (long_one);
  process.cwd = closed;
  if (geteuid () != 0)
    fails (&process, EACCES, "working folder");
  else
    assert_int_equal (end_of (coffer_process_start (&process, NULL)).code, 0);
}

static void
write_program (const char *path, const char *text, mode_t mode)
{
  int fd = open (path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0700);

  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, text, strlen (text)),
                    (ssize_t) strlen (text));
  assert_int_equal (fchmod (fd, mode), 0);
  coffer_fd_close (&fd);
}

static void
a_program_that_cannot_run_is_named (void **state)
{
  const char *text = harness_path (*state, "text");
  const char *locked = harness_path (*state, "locked");
  const char *const cases[] = {"there-is-no-such-program", "/none/such", "",
                               "./there-is-none", NULL};
  struct coffer_process process = {
    .env = plain_env, .in = -1, .out = -1, .err = -1,
  };
  const char *argv[] = {NULL, NULL};

  write_program (text, "no program\n", 0700);
  write_program (locked, "#!/bin/sh\n", 0600);
  process.argv = argv;
  for (size_t i = 0; cases[i]; i++) {
    argv[0] = cases[i];
    fails (&process, ENOENT, "program");
  }
  argv[0] = text;
  fails (&process, ENOEXEC, "program");
  argv[0] = locked;
  fails (&process, EACCES, "program");
  argv[0] = *state;
  fails (&process, EACCES, "program");
  argv[0] = NULL;
  fails (&process, EINVAL, "process");
  process.argv = NULL;
  fails (&process, EINVAL, "process");
}

static void
arguments_of_absurd_size_are_refused_by_the_kernel (void **state)
{
  const size_t size = 8 << 20;
  char *huge = malloc (size);
  const char *argv[] = {"true", huge, NULL};
  const char *env[] = {huge, NULL};
  struct coffer_process process = {
    .argv = argv, .env = plain_env, .in = -1, .out = -1, .err = -1,
  };

  (void) state;
  memset (huge, 'x', size);
  huge[size - 1] = '\0';
  fails (&process, E2BIG, "program");
  argv[1] = NULL;
  process.env = env;
  fails (&process, E2BIG, "program");
  process.env = plain_env;
  argv[0] = huge;               /* a name that no path has room for */
  fails (&process, ENOENT, "program");
  free (huge);
}

/* What may not be run is passed over for one that may, and is said when there
 * is none: as a shell does. */
static void
a_name_is_looked_for_along_the_path_of_env (void **state)
{
  const char *first = harness_path (*state, "first");
  const char *second = harness_path (*state, "second");
  char *path, *far;
  const char *env[] = {NULL, NULL};
  struct coffer_process process = {
    .argv = (const char *const[]) {"prog", NULL}, .env = env, .in = -1,
    .out = -1, .err = -1,
  };

  assert_int_equal (mkdir (first, 0700), 0);
  assert_int_equal (mkdir (second, 0700), 0);
  write_program (harness_path (first, "prog"), "#!/bin/sh\nexit 1\n", 0600);
  assert_true (asprintf (&path, "PATH=%s", first) > 0);
  env[0] = path;
  fails (&process, EACCES, "program");
  free (path);
  assert_true (asprintf (&path, "PATH=/none:%s:%s/prog:%s:%s", first, first,
                         second, second) > 0);
  env[0] = path;
  fails (&process, EACCES, "program");
  write_program (harness_path (second, "prog"), "#!/bin/sh\nexit 7\n", 0700);
  assert_int_equal (end_of (coffer_process_start (&process, NULL)).code, 7);
  /* An entry beyond what a path can be is none. */
  far = malloc (100000);
  memset (far, 'y', 99999);
  far[99999] = '\0';
  free (path);
  assert_true (asprintf (&path, "PATH=%s:%s", far, second) > 0);
  env[0] = path;
  assert_int_equal (end_of (coffer_process_start (&process, NULL)).code, 7);
  free (path);
  free (far);
  env[0] = "PATHOLOGY=/bin";    /* is no PATH */
  fails (&process, ENOENT, "program");
}

static void
closed_descriptors_are_refused (void **state)
{
  struct coffer_process process = {
    .argv = (const char *const[]) {"true", NULL}, .env = plain_env,
    .in = -1, .out = -1, .err = -1,
  };

  (void) state;
  process.in = 987;
  fails (&process, EBADF, "process");
  process.in = -1;
  process.out = INT32_MAX;
  fails (&process, EBADF, "process");
  process.out = -1;
  process.err = 987;
  fails (&process, EBADF, "process");
}

/* However many there are: none is left over, and nobody is started. */
static void
few_descriptors_body (void)
{
  struct coffer_process process = {
    .argv = (const char *const[]) {"true", NULL}, .env = plain_env,
    .in = -1, .out = -1, .err = -1,
  };
  struct rlimit limit = {0, 0};
  const unsigned before = count_fds (0);
  int pidfd = -1, refused = 0;

  getrlimit (RLIMIT_NOFILE, &limit);
  for (rlim_t n = 0; n < 30 && pidfd < 0; n++) {
    struct rlimit less = {n, limit.rlim_max};

    CHILD_ASSERT (setrlimit (RLIMIT_NOFILE, &less) == 0);
    pidfd = coffer_process_start (&process, NULL);
    if (pidfd < 0) {
      CHILD_ASSERT (errno == EMFILE || errno == EINVAL);
      CHILD_ASSERT (waitpid (-1, NULL, WNOHANG) == -1 && errno == ECHILD);
      refused++;
    }
  }
  CHILD_ASSERT (setrlimit (RLIMIT_NOFILE, &limit) == 0);
  CHILD_ASSERT (pidfd >= 0 && refused > 3);
  close (pidfd);
  CHILD_ASSERT (count_fds (0) == before);
}

static void
without_descriptors_nothing_starts_and_nothing_leaks (void **state)
{
  (void) state;
  in_child (few_descriptors_body);
}

static void
no_processes_body (void)
{
  struct coffer_process process = {
    .argv = (const char *const[]) {"true", NULL}, .env = plain_env,
    .in = -1, .out = -1, .err = -1,
  };
  const struct rlimit none = {0, 0};
  const char *failed = "";

  CHILD_ASSERT (setrlimit (RLIMIT_NPROC, &none) == 0);
  if (geteuid () == 0)          /* whom that limit does not hold */
    CHILD_ASSERT (setresgid (61234, 61234, 61234) == 0
                  && setresuid (61234, 61234, 61234) == 0);
  CHILD_ASSERT (coffer_process_start (&process, &failed) == -1
                && errno == EAGAIN && strcmp (failed, "process") == 0);
}

static void
without_processes_nothing_starts (void **state)
{
  (void) state;
  in_child (no_processes_body);
}

int
main (int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_teardown (name, clear)
#define FOLDER_TEST(name)                                                     \
  cmocka_unit_test_setup_teardown (name, harness_folder_new,                  \
                                   harness_folder_free)
  const struct CMUnitTest tests[] = {
    TEST (arguments_arrive_byte_for_byte),
    TEST (the_environment_is_the_given_one_and_no_more),
    TEST (streams_that_are_not_given_are_dev_null),
    TEST (no_other_descriptor_gets_through),
    TEST (given_descriptors_stay_the_callers),
    TEST (streams_may_be_the_callers_own_turned_round),
    TEST (a_caller_may_have_no_streams_at_all),
    TEST (signals_and_umask_are_those_of_a_fresh_process),
    FOLDER_TEST (the_working_folder_is_the_given_one),
    FOLDER_TEST (a_working_folder_that_cannot_be_entered_is_named),
    FOLDER_TEST (a_program_that_cannot_run_is_named),
    TEST (arguments_of_absurd_size_are_refused_by_the_kernel),
    FOLDER_TEST (a_name_is_looked_for_along_the_path_of_env),
    TEST (closed_descriptors_are_refused),
    TEST (without_descriptors_nothing_starts_and_nothing_leaks),
    TEST (without_processes_nothing_starts),
  };

  if (argc == 2 && strncmp (argv[1], "COFFER_TEST_RUN=", 16) == 0)
    return coffer_process_signal_marked (argv[1], 0);
  snprintf (mark, sizeof mark, "COFFER_TEST_RUN=%ld/", (long) getpid ());
  return cmocka_run_group_tests (tests, NULL, NULL);
}
