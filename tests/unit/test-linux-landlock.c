/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock as the init asks for it: the function of the ABI number for every
 * ABI there is and some that there are not, what the kernel here makes of each
 * that it knows, judged by what a process can then do, and sandboxes on a
 * kernel that says it has none. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "init/landlock.h"
#include "linux-host.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define LENGTH(array) (sizeof (array) / sizeof (array)[0])
#define ABI_KNOWN 10

/* ---- the function ------------------------------------------------------- */

/* Written down by itself, from the kernel's history: 5.13, 5.19, 6.2, 6.7,
 * 6.10, 6.12, 6.15, 7.0, 7.1, 7.2. */
static const struct {
  uint64_t files, net, scoped;
  size_t size;
} expected[ABI_KNOWN + 1] = {
  { 0, 0, 0, 0 },
  { 0x01fff, 0, 0, 8 },
  { 0x03fff, 0, 0, 8 },
  { 0x07fff, 0, 0, 8 },
  { 0x07fff, 3, 0, 16 },
  { 0x0ffff, 3, 0, 16 },
  { 0x0ffff, 3, 3, 24 },
  { 0x0ffff, 3, 3, 24 },
  { 0x0ffff, 3, 3, 24 },
  { 0x1ffff, 3, 3, 24 },
  { 0x1ffff, 3, 3, 24 },
};

static void
every_abi_is_asked_for_what_it_knows (void **state)
{
  long abi;
  int without;

  (void) state;
  for (abi = 0; abi <= ABI_KNOWN; abi++)
    for (without = 0; without < 2; without++) {
      struct landlock_shape shape = landlock_negotiate (abi, without);

      assert_int_equal (shape.handled.files, expected[abi].files);
      assert_int_equal (shape.handled.net, without ? expected[abi].net : 0);
      assert_int_equal (shape.handled.scoped, expected[abi].scoped);
      assert_int_equal (shape.size, expected[abi].size);
    }
}

static void
signals_are_of_each_command (void **state)
{
  long abi;

  (void) state;
  for (abi = 0; abi <= ABI_KNOWN; abi++) {
    struct landlock_shape whole = landlock_negotiate (abi, 1), command;
    const struct landlock_shape before = whole;

    command = landlock_command_shape (&whole);
    assert_int_equal (command.size, before.size);
    assert_int_equal (command.handled.files | command.handled.net, 0);
    assert_int_equal (whole.handled.scoped & LL_SCOPE_SIGNALS, 0);
    assert_int_equal (whole.handled.scoped | command.handled.scoped,
                      before.handled.scoped);
    assert_int_equal (whole.handled.files, before.handled.files);
    assert_int_equal (whole.handled.net, before.handled.net);
  }
}

static void
later_abis_are_asked_for_no_more (void **state)
{
  static const long later[] = { 11, 12, 99, INT_MAX, LONG_MAX };
  static const long none[] = { 0, -1, -38, INT_MIN, LONG_MIN };
  struct landlock_shape last = landlock_negotiate (ABI_KNOWN, 1), shape;
  size_t i;

  (void) state;
  for (i = 0; i < LENGTH (later); i++) {
    shape = landlock_negotiate (later[i], 1);
    assert_memory_equal (&shape, &last, sizeof shape);
  }
  for (i = 0; i < LENGTH (none); i++) {
    shape = landlock_negotiate (none[i], 1);
    assert_int_equal (shape.size, 0);
    assert_int_equal (shape.handled.files | shape.handled.net
                        | shape.handled.scoped,
                      0);
  }
}

static void
grants_are_of_what_is_handled (void **state)
{
  const uint64_t writes = LL_FIRST & ~(uint64_t) (LL_EXECUTE | LL_READ_FILE
                                                  | LL_READ_DIR);
  const uint64_t of_files = LL_EXECUTE | LL_READ_FILE | LL_WRITE_FILE
                            | LL_TRUNCATE | LL_IOCTL_DEV | LL_RESOLVE_UNIX;
  enum landlock_place place;
  long abi;

  (void) state;
  for (abi = 0; abi <= ABI_KNOWN; abi++)
    for (place = LANDLOCK_ROOT; place <= LANDLOCK_SHARED_FILE; place++) {
      struct landlock_shape shape = landlock_negotiate (abi, 0);
      uint64_t access = landlock_grant (place, &shape);

      assert_int_equal (access & ~shape.handled.files, 0);
      assert_int_equal (access & (LL_MAKE_CHAR | LL_MAKE_BLOCK), 0);
      assert_int_equal (access & LL_RESOLVE_UNIX, 0);
      if (place == LANDLOCK_ROOT || place == LANDLOCK_PROGRAMS
          || place == LANDLOCK_SHOWN || place == LANDLOCK_SHOWN_FILE)
        assert_int_equal (access & (writes | LL_TRUNCATE | LL_REFER), 0);
      /* The kernel refuses a rule for a file that speaks of folders. */
      if (place == LANDLOCK_SHARED_FILE || place == LANDLOCK_SHOWN_FILE)
        assert_int_equal (access & ~of_files, 0);
      if (place == LANDLOCK_PROC || place == LANDLOCK_DEVICES
          || place == LANDLOCK_ROOT || place == LANDLOCK_TERMINALS)
        assert_int_equal (access & LL_EXECUTE, 0);
      /* A kernel refuses a rule that grants nothing. */
      assert_true (abi == 0 || access != 0);
    }
}

/* ---- what the kernel makes of it ---------------------------------------- */

static long
kernel_abi (void)
{
  return syscall (SYS_landlock_create_ruleset, NULL, 0, 1);
}

static int
rule_add (int ruleset, const char *path, uint64_t access)
{
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__ ((packed)) rule
    = { access, open (path, O_PATH | O_CLOEXEC) };

  return (int) syscall (SYS_landlock_add_rule, ruleset, 1, &rule, 0);
}

/* In a folder with `in` (data), `out` and what a test made ready. */
static int
domain_enter (const struct landlock_shape *shape)
{
  int fd = (int) syscall (SYS_landlock_create_ruleset, &shape->handled,
                          shape->size, 0);

  if (fd < 0 || rule_add (fd, "in", landlock_grant (LANDLOCK_DATA, shape))
      || rule_add (fd, "/dev/full", landlock_grant (LANDLOCK_SHARED_FILE,
                                                    shape))
      || prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
    return -1;
  return (int) syscall (SYS_landlock_restrict_self, fd, 0);
}

static int
errno_of (long ret)
{
  return ret < 0 ? errno : 0;
}

static int
connect_tcp (void)
{
  struct sockaddr_in in = { .sin_family = AF_INET,
                            .sin_addr.s_addr = htonl (INADDR_LOOPBACK),
                            .sin_port = htons (1) };
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  return connect (fd, (struct sockaddr *) &in, sizeof in);
}

static int
connect_unix (const char *name, size_t size)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  memcpy (un.sun_path, name, size);
  return connect (fd, (struct sockaddr *) &un,
                  (socklen_t) (offsetof (struct sockaddr_un, sun_path)
                               + size));
}

static char abstract_name[64];  /* listened on outside of the domain */
static int tcp_errno;           /* nobody listens, or there is no loopback */

#define TELL(expected, ...) \
  told (#__VA_ARGS__, errno_of (__VA_ARGS__), expected, abi)

static int wrong;

static void
told (const char *what, int have, int want, long abi)
{
  if (have == want)
    return;
  fprintf (stderr, "ABI %ld: %s: %s instead of %s\n", abi, what,
           have ? strerror (have) : "done", want ? strerror (want) : "done");
  wrong = 1;
}

/* What each ABI adds, tried in a domain of that shape. */
static void
domain_tell (long abi)
{
  int device, number = 0;

  TELL (EACCES, open ("out/file", O_RDONLY | O_CLOEXEC));
  TELL (EACCES, open ("out/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  TELL (EACCES, unlink ("out/file"));
  TELL (0, open ("in/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  TELL (EACCES, mknod ("in/device", S_IFCHR | 0600, 0x103));
  TELL (0, mkfifo ("in/fifo", 0600));
  /* From folder to folder: never without REFER, which ABI 2 can grant. */
  TELL (abi >= 2 ? 0 : EXDEV, link ("in/new", "in/folder/new"));
  TELL (EACCES, link ("in/new", "out/link"));
  TELL (abi >= 3 ? EACCES : 0, truncate ("out/file", 0));
  TELL (abi >= 4 ? EACCES : tcp_errno, connect_tcp ());
  device = open ("/dev/full", O_RDWR | O_CLOEXEC);
  TELL (abi >= 5 ? EACCES : ENOTTY, ioctl (device, 0x5413, &number));
  TELL (abi >= 6 ? EPERM : 0, connect_unix (abstract_name,
                                            strlen (abstract_name + 1) + 1));
  TELL (abi >= 6 ? EPERM : 0, kill (getppid (), 0));
  TELL (abi >= 9 ? EACCES : 0, connect_unix ("out/socket", 11));
}

static int
listen_unix (const char *name, size_t size)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  memcpy (un.sun_path, name, size);
  assert_int_equal (bind (fd, (struct sockaddr *) &un,
                          (socklen_t) (offsetof (struct sockaddr_un, sun_path)
                                       + size)),
                    0);
  assert_int_equal (listen (fd, 16), 0);
  return fd;
}

static void
folder_run (long abi)
{
  struct landlock_shape shape = landlock_negotiate (abi, 1);
  char path[] = "/tmp/coffer-landlock-XXXXXX", clear[96];
  int fds[3], status;
  pid_t pid;

  assert_non_null (mkdtemp (path));
  assert_int_equal (chdir (path), 0);
  assert_int_equal (mkdir ("in", 0700) | mkdir ("in/folder", 0700)
                      | mkdir ("out", 0700),
                    0);
  fds[0] = open ("out/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  fds[1] = listen_unix ("out/socket", 11);
  fds[2] = listen_unix (abstract_name, strlen (abstract_name + 1) + 1);
  pid = fork ();
  if (pid == 0) {
    if (domain_enter (&shape) == -1) {
      fprintf (stderr, "ABI %ld: %s\n", abi, strerror (errno));
      _exit (2);
    }
    domain_tell (abi);
    _exit (wrong);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  close (fds[0]);
  close (fds[1]);
  close (fds[2]);
  assert_int_equal (chdir ("/"), 0);
  snprintf (clear, sizeof clear, "rm -rf -- '%s'", path);
  assert_int_equal (system (clear), 0);
  assert_int_equal (status, 0);
}

static void
each_abi_holds_what_it_says (void **state)
{
  long abi, most = kernel_abi ();

  (void) state;
  if (most < 1)
    skip_missing ("Landlock");
  snprintf (abstract_name + 1, sizeof abstract_name - 1, "coffer-landlock-%d",
            (int) getpid ());
  tcp_errno = errno_of (connect_tcp ());
  for (abi = 1; abi <= most && abi <= ABI_KNOWN; abi++)
    folder_run (abi);
}

/* Why it is negotiated: a kernel takes nothing that it does not know. */
static void
more_than_the_kernel_knows_is_refused (void **state)
{
  long most = kernel_abi (), abi;
  struct landlock_shape shape;

  (void) state;
  if (most < 1)
    skip_missing ("Landlock");
  for (abi = most + 1; abi <= ABI_KNOWN; abi++) {
    shape = landlock_negotiate (abi, 1);
    if (shape.handled.files != landlock_negotiate (most, 1).handled.files)
      assert_int_equal (syscall (SYS_landlock_create_ruleset, &shape.handled,
                                 shape.size, 0),
                        -1);
  }
  shape = landlock_negotiate (most, 1);
  shape.handled.files |= UINT64_C (1) << 40;
  assert_int_equal (syscall (SYS_landlock_create_ruleset, &shape.handled,
                             shape.size, 0),
                    -1);
}

/* ---- sandboxes ---------------------------------------------------------- */

static struct linux_host host;

static int
create (const char *id, const char *filter, int require)
{
  const char *const words[] = { require ? "landlock" : NULL, NULL };
  struct coffer_sandbox_spec spec
    = { .size = sizeof spec, .lifeline = -1, .single_exec = 1,
        .filter = filter, .require = words };

  return host_create (&host, id, &spec);
}

static void
the_abi_of_this_kernel_is_a_fact (void **state)
{
  long abi = kernel_abi ();
  char want[32];

  (void) state;
  if (abi < 1)
    skip_missing ("Landlock");
  snprintf (want, sizeof want, "landlock ok ABI %ld", abi);
  assert_int_equal (create ("there", "general", 1), COFFER_OK);
  assert_non_null (strstr (host.facts, want));
  assert_int_equal (strstr (host.facts, ", scopes") != NULL, abi >= 6);
  assert_null (strstr (host.facts, ", TCP"));
  assert_int_equal (host_kill (&host, "there"), COFFER_OK);
  assert_int_equal (create ("there", "strict", 1), COFFER_OK);
  assert_int_equal (strstr (host.facts, ", TCP") != NULL, abi >= 4);
  assert_int_equal (host_kill (&host, "there"), COFFER_OK);
}

static int
landlock_hide (int error)
{
  struct sock_filter program[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t) error),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = { LENGTH (program), program };

  return prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
         || prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* 0: as it must be. */
static int
absent_run (int error)
{
  static struct outcome outcome;
  const char *argv[] = { "echo", "works", NULL };

  if (landlock_hide (error) != 0)
    return 2;
  if (create ("absent", "general", 0) != COFFER_OK
      || strstr (host.facts, "landlock absent") == NULL
      || host_run (&host, "absent", argv, NULL, NULL, 20000, &outcome)
           != COFFER_OK
      || strcmp (outcome.out, "works\n") != 0
      || host_kill (&host, "absent") != COFFER_OK)
    return 3;
  if (create ("absent", "general", 1) != COFFER_UNAVAILABLE
      || strstr (host.error, "landlock") == NULL)
    return 4;
  return 0;
}

static void
a_kernel_without_it_is_reported_or_refused (void **state)
{
  static const int errors[] = { ENOSYS, EOPNOTSUPP };
  int status;
  size_t i;
  pid_t pid;

  (void) state;
  for (i = 0; i < LENGTH (errors); i++) {
    pid = fork ();
    if (pid == 0)
      _exit (absent_run (errors[i]));
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_int_equal (status, 0);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (every_abi_is_asked_for_what_it_knows),
    cmocka_unit_test (signals_are_of_each_command),
    cmocka_unit_test (later_abis_are_asked_for_no_more),
    cmocka_unit_test (grants_are_of_what_is_handled),
    cmocka_unit_test (each_abi_holds_what_it_says),
    cmocka_unit_test (more_than_the_kernel_knows_is_refused),
    cmocka_unit_test (the_abi_of_this_kernel_is_a_fact),
    cmocka_unit_test (a_kernel_without_it_is_reported_or_refused),
  };

  return LINUX_TESTS_RUN (&host, "linux: Landlock", tests);
}
