/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile sandbox can do to those who watch over it: its
 * init, and the host that speaks with an init that was taken over.  Judged
 * from outside, by a pipe that everything inside holds. */

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
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
    assert_true (all_gone (held, HARNESS_PATIENCE_NS));
    close (held);
    assert_int_equal (host_kill (&host, "blind"), COFFER_OK);
    assert_int_equal (faccessat (host.runtime, "blind", F_OK, 0), -1);
  }
}

/* ---- an init that was taken over ---------------------------------------- */

/* Made by another process, which is gone: nothing is known of it but what the
 * runtime folder says. */
static void
create_elsewhere (struct linux_host *where, const char *id,
                  const char *hostile)
{
  const char *env[] = { hostile, NULL };
  struct coffer_sandbox_spec spec = lasting;
  static struct linux_host maker;
  int status = 0;
  pid_t pid;

  spec.env = env;
  pid = fork ();
  if (pid == 0) {
    maker = *where;
    _exit (host_create (&maker, id, &spec) == COFFER_OK ? 0 : 1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
}

static int
hostile_open (void)
{
  const char *build = getenv ("COFFER_BUILD");
  char path[4096];
  int fd;

  snprintf (path, sizeof path, "%s/tests/unit/linux-hostile",
            build ? build : ".");
  fd = open (path, O_RDONLY | O_CLOEXEC);
  assert_true (fd >= 0);
  return fd;
}

static void
hostile_begin (struct linux_host *hostile, const char *variable)
{
  const char *env[] = { variable, NULL };
  struct coffer_sandbox_spec spec = lasting;
  int init = hostile_open ();

  linux_host_open_with (hostile, init);
  close (init);
  spec.env = env;
  if (host_create (hostile, "taken", &spec) != COFFER_OK)
    fail_msg ("%s", hostile->error);
}

static void
hostile_end (struct linux_host *hostile)
{
  assert_int_equal (host_kill (hostile, "taken"), COFFER_OK);
  linux_host_close (hostile);
}

/* What is said to be ready is looked at, not believed. */
static void
test_ready_is_not_believed (void **state)
{
  const char *env[] = { "HOSTILE=lie", NULL };
  struct coffer_sandbox_spec spec = lasting;
  static struct linux_host hostile;
  int init = hostile_open ();

  (void) state;
  linux_host_open_with (&hostile, init);
  close (init);
  spec.env = env;
  assert_int_equal (host_create (&hostile, "lie", &spec), COFFER_INTERNAL);
  assert_non_null (strstr (hostile.error, "processes are not limited"));
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
  linux_host_close (&hostile);
}

/* Every call ends at its deadline, whatever the init sends or does not read. */
static void
test_deadlines_hold_against_the_init (void **state)
{
  static const char *const modes[] = { "HOSTILE=flood", "HOSTILE=deaf" };
  static struct linux_host hostile;
  int64_t begun;
  size_t i;
  int k;

  (void) state;
  for (i = 0; i < 2; i++) {
    hostile_begin (&hostile, modes[i]);
    for (k = 0; k < 3; k++) {
      begun = coffer_now_ns ();
      assert_int_not_equal (hostile.ops->sandbox_info (
                              host_call (&hostile, 100), hostile.self,
                              "taken", NULL),
                            COFFER_OK);
      assert_true (coffer_now_ns () - begun < HARNESS_PATIENCE_NS);
    }
    hostile_end (&hostile);
  }
}

/* A deaf one takes what its socket can hold; then sending waits, too. */
static void
test_sending_has_a_deadline (void **state)
{
  const char *env[] = { NULL, NULL }, *argv[] = { "true", NULL };
  static struct linux_host hostile;
  static char big[40000];
  int64_t begun = coffer_now_ns ();
  int i;

  (void) state;
  memset (big, 'x', sizeof big - 1);
  memcpy (big, "BIG=", 4);
  env[0] = big;
  hostile_begin (&hostile, "HOSTILE=deaf");
  for (i = 0; i < 20; i++)
    assert_int_equal (hostile.ops->exec_start (
                        host_call (&hostile, 20), hostile.self, "taken",
                        argv, env, NULL, -1, -1, -1, NULL),
                      COFFER_TIMEOUT);
  assert_true (coffer_now_ns () - begun < HARNESS_PATIENCE_NS);
  hostile_end (&hostile);
}

static void
test_what_an_init_hands_out_is_checked (void **state)
{
  static struct linux_host hostile;
  int out = open ("/dev/null", O_WRONLY | O_CLOEXEC), ends[2];

  (void) state;
  hostile_begin (&hostile, "HOSTILE=list");
  assert_int_equal (hostile.ops->exec_list (host_call (&hostile, 5000),
                                            hostile.self, "taken", NULL),
                    COFFER_INTERNAL);
  hostile_end (&hostile);
  hostile_begin (&hostile, "HOSTILE=root");
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  if (geteuid () == 0)          /* whose capabilities would go along */
    assert_int_equal (hostile.ops->file_read (host_call (&hostile, 5000),
                                              hostile.self, "taken",
                                              "/bin/env", ends[1], NULL),
                      COFFER_INTERNAL);
  close (ends[0]);
  close (ends[1]);
  hostile_end (&hostile);
  hostile_begin (&hostile, "HOSTILE=pipe");
  assert_int_equal (hostile.ops->exec_attach (host_call (&hostile, 5000),
                                              hostile.self, "taken", "e1",
                                              out, -1, NULL),
                    COFFER_INTERNAL);
  hostile_end (&hostile);
  hostile_begin (&hostile, "HOSTILE=boast");
  assert_int_equal (hostile.ops->exec_attach (host_call (&hostile, 5000),
                                              hostile.self, "taken", "e1",
                                              out, -1, NULL),
                    COFFER_INTERNAL);
  hostile_end (&hostile);
  close (out);
}

static int
descriptors (void)
{
  DIR *dir = opendir ("/proc/self/fd");
  int n = 0;

  assert_non_null (dir);
  while (readdir (dir) != NULL)
    n++;
  closedir (dir);
  return n;
}

/* A host that keeps what comes unasked has none left after a while. */
static void
test_what_was_not_asked_for_is_closed (void **state)
{
  static struct linux_host hostile;
  void *self;
  int before, i;

  (void) state;
  hostile_begin (&hostile, "HOSTILE=litter");
  self = hostile.self;
  before = descriptors ();
  for (i = 0; i < 3; i++) {
    assert_int_equal (hostile.ops->sandbox_info (host_call (&hostile, 5000),
                                                 self, "taken", NULL),
                      COFFER_OK);
    hostile.ops->sandbox_extend (host_call (&hostile, 5000), self, "taken",
                                 60000, NULL);
    hostile.ops->sandbox_resume (host_call (&hostile, 5000), self, "taken",
                                 NULL);
    hostile.ops->exec_wait (host_call (&hostile, 5000), self, "taken", "e1",
                            NULL);
    hostile.ops->exec_signal (host_call (&hostile, 5000), self, "taken", "e1",
                              SIGTERM, NULL);
    hostile.ops->metrics (host_call (&hostile, 5000), self, "taken", NULL);
  }
  assert_int_equal (descriptors (), before);
  hostile_end (&hostile);
}

/* What is killed is the process that was made first, whoever listens: its
 * number is the parent's of the one that does. */
static void
test_kill_ends_the_first_process (void **state)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct ucred peer = { 0 };
  socklen_t size = sizeof peer;
  static struct linux_host hostile;
  int init = hostile_open (), fd, parent = 0, pidfd;
  char path[64], line[512] = "";

  (void) state;
  linux_host_open_with (&hostile, init);
  close (init);
  create_elsewhere (&hostile, "posed", "HOSTILE=listen");
  snprintf (address.sun_path, sizeof address.sun_path, "%s/posed/init.sock",
            hostile.runtime_path);
  fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  assert_int_equal (connect (fd, (struct sockaddr *) &address,
                             sizeof address),
                    0);
  assert_int_equal (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size),
                    0);
  close (fd);
  snprintf (path, sizeof path, "/proc/%d/stat", (int) peer.pid);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  assert_true (read (fd, line, sizeof line - 1) > 0);
  close (fd);
  assert_int_equal (sscanf (strrchr (line, ')'), ") %*c %d", &parent), 1);
  pidfd = (int) syscall (SYS_pidfd_open, parent, 0);
  assert_true (pidfd >= 0);
  assert_int_equal (host_kill (&hostile, "posed"), COFFER_OK);
  assert_int_equal (coffer_wait_fd (pidfd, POLLIN, coffer_now_ns (), -1), 1);
  close (pidfd);
  linux_host_close (&hostile);
}

/* A stopped init accepts nobody, however many have come: nobody waits beyond
 * the deadline, and killing works. */
static void
test_a_stopped_init_holds_nobody_up (void **state)
{
  int64_t begun;
  int i;

  (void) state;
  create_elsewhere (&host, "asleep", "A=b");
  assert_int_equal (host.ops->sandbox_info (host_call (&host, 5000),
                                            host.self, "asleep", NULL),
                    COFFER_OK);
  assert_true (host.pid > 1);
  assert_int_equal (kill (host.pid, SIGSTOP), 0);
  begun = coffer_now_ns ();
  for (i = 0; i < 25; i++)
    assert_int_not_equal (host.ops->sandbox_info (host_call (&host, 20),
                                                  host.self, "asleep", NULL),
                          COFFER_OK);
  assert_int_equal (host_kill (&host, "asleep"), COFFER_OK);
  assert_true (coffer_now_ns () - begun < HARNESS_PATIENCE_NS);
  assert_int_equal (faccessat (host.runtime, "asleep", F_OK, 0), -1);
}

/* ---- set-up that fails, at every step ----------------------------------- */

struct step {
  const char *name;
  long number;
  int option;                   /* first argument, -1: any */
};

#define STEP(name) { #name, SYS_##name, -1 }
static const struct step steps[] = {
  STEP (capget), STEP (capset), STEP (chdir), STEP (close_range),
  STEP (dup3), STEP (execveat), STEP (fchdir), STEP (getdents64),
  STEP (ioctl), STEP (listen), STEP (mknodat), STEP (mount),
  STEP (pidfd_send_signal), STEP (pivot_root), STEP (prlimit64),
  STEP (readlinkat), STEP (seccomp), STEP (sethostname), STEP (signalfd4),
  STEP (socket), STEP (socketpair), STEP (statfs), STEP (statx),
  STEP (symlinkat), STEP (timerfd_create), STEP (timerfd_settime),
  STEP (umount2),
  { "open_tree", 428, -1 },
  { "move_mount", 429, -1 },
  { "fsopen", 430, -1 },
  { "fsconfig", 431, -1 },
  { "fsmount", 432, -1 },
  { "mount_setattr", 442, -1 },
  { "landlock_create_ruleset", 444, -1 },
  { "landlock_add_rule", 445, -1 },
  { "landlock_restrict_self", 446, -1 },
  { "no_new_privs", SYS_prctl, 38 },
  { "bounding set", SYS_prctl, 24 },
  { "securebits", SYS_prctl, 28 },
  { "ambient", SYS_prctl, 47 },
  { "dumpable", SYS_prctl, 4 },
};
static const struct step steps_of_root[] = {
  STEP (setgroups), STEP (setresgid), STEP (setresuid),
};

/* The system call fails with that errno, from here on and for all children. */
static void
step_break (const struct step *step, int error)
{
  const uint32_t no = SECCOMP_RET_ERRNO | (uint32_t) error;
  struct sock_filter program[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) step->number, 0, 3),
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS,
              offsetof (struct seccomp_data, args[0])),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) step->option, 0, 1),
    BPF_STMT (BPF_RET | BPF_K, no),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = { sizeof program / sizeof program[0], program };

  if (step->option < 0)
    program[2] = program[4];
  if (geteuid () != 0)
    prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == -1)
    _exit (99);
}

/* In a process of its own: 0, or what is wrong. */
static const char *
step_try (const struct step *step, int error)
{
  struct coffer_sandbox_spec spec = lasting;
  static struct linux_host own;
  int64_t begun = coffer_now_ns ();
  int32_t code;

  /* What an instance has looked up once it knows. */
  if (step->number == SYS_getdents64)
    linux_host_open (&own);
  else
    own = host;
  spec.ttl_ms = 60000;
  step_break (step, error);
  code = host_create (&own, "broken", &spec);
  if (code == COFFER_OK) {
    host_kill (&own, "broken");
    return "a sandbox was made without it";
  }
  if (own.error[0] == '\0')
    return "no word of it";
  if (waitpid (-1, NULL, WNOHANG | __WALL) != -1 || errno != ECHILD)
    return "a process is left";
  if (faccessat (own.runtime, "broken", F_OK, 0) == 0)
    return "a folder is left";
  if (coffer_now_ns () - begun > HARNESS_PATIENCE_NS)
    return "it took too long";
  if (own.self != host.self)
    linux_host_close (&own);
  return NULL;
}

/* Without Landlock no rules are made; test_landlock_is_missed_aloud. */
static int
step_is_taken (const struct step *step)
{
  return strncmp (step->name, "landlock_", 9) != 0
         || syscall (444, NULL, 0, 1) > 0;
}

static void
steps_break (const struct step *list, size_t n)
{
  static const int errors[] = { EPERM, ENOMEM };
  char why[256];
  int ends[2], status;
  size_t i, k;
  ssize_t got;
  pid_t pid;

  for (i = 0; i < n; i++)
    for (k = 0; k < 2 && step_is_taken (&list[i]); k++) {
      assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
      pid = fork ();
      if (pid == 0) {
        const char *wrong = step_try (&list[i], errors[k]);

        if (wrong != NULL)
          (void) !write (ends[1], wrong, strlen (wrong));
        _exit (wrong != NULL);
      }
      close (ends[1]);
      if (coffer_wait_fd (ends[0], POLLIN,
                          coffer_now_ns () + 2 * HARNESS_PATIENCE_NS, -1)
            != 1) {
        kill (pid, SIGKILL);
        waitpid (pid, NULL, 0);
        fail_msg ("%s: hangs", list[i].name);
      }
      got = read (ends[0], why, sizeof why - 1);
      why[got > 0 ? got : 0] = '\0';
      close (ends[0]);
      assert_int_equal (waitpid (pid, &status, 0), pid);
      if (status != 0)
        fail_msg ("%s, %s: %s (status %x)", list[i].name,
                  strerror (errors[k]), why, (unsigned) status);
    }
}

static void
test_every_step_counts (void **state)
{
  (void) state;
  steps_break (steps, sizeof steps / sizeof steps[0]);
  if (geteuid () == 0)
    steps_break (steps_of_root,
                 sizeof steps_of_root / sizeof steps_of_root[0]);
}

/* A kernel without Landlock is no failure, and is said. */
static void
test_landlock_is_missed_aloud (void **state)
{
  static const struct step step = { "landlock", 444, -1 };
  static struct linux_host own;
  int status = 0;
  pid_t pid = fork ();

  (void) state;
  if (pid == 0) {
    own = host;
    step_break (&step, ENOSYS);
    if (host_create (&own, "unlocked", &lasting) != COFFER_OK
        || strstr (own.facts, "landlock absent") == NULL)
      _exit (1);
    _exit (host_kill (&own, "unlocked") == COFFER_OK ? 0 : 2);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_an_init_that_cannot_wait_ends),
    cmocka_unit_test (test_ready_is_not_believed),
    cmocka_unit_test (test_deadlines_hold_against_the_init),
    cmocka_unit_test (test_sending_has_a_deadline),
    cmocka_unit_test (test_what_an_init_hands_out_is_checked),
    cmocka_unit_test (test_what_was_not_asked_for_is_closed),
    cmocka_unit_test (test_kill_ends_the_first_process),
    cmocka_unit_test (test_a_stopped_init_holds_nobody_up),
    cmocka_unit_test (test_every_step_counts),
    cmocka_unit_test (test_landlock_is_missed_aloud),
  };

  return LINUX_TESTS_RUN (&host, "linux: a sandbox against its keepers", tests);
}
