/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the linux provider: what they hold, what comes of a tree of control
 * groups that cannot be used, and numbers at their bounds.
 *
 * The module takes open, mkdir and access from this program, where it defines
 * them: what it asks of a group of a sandbox then fails as it does on machines
 * that cannot be had here. */

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "linux-host.h"

static struct linux_host host;
static struct outcome outcome;

/* ---- what the module finds ---------------------------------------------- */

enum stage { STAGE_NONE, STAGE_TREE, STAGE_GROUP, STAGE_VALUE };
static enum stage fails_at;
static int fails_with, failed;

static int
fail_here (enum stage stage)
{
  if (fails_at != stage)
    return 0;
  failed++;
  errno = fails_with;
  return 1;
}

/* Of a sandbox; that of its makers is no such. */
static int
is_group (const char *path)
{
  const char *at = strstr (path, "/coffer-");

  if (strncmp (path, "/sys/fs/cgroup/", 15) != 0)
    return 0;
  while (at != NULL && strncmp (at, "/coffer-host", 12) == 0)
    at = strstr (at + 1, "/coffer-");
  return at != NULL;
}

#define SEEN __attribute__ ((visibility ("default")))
SEEN int access (const char *path, int mode);
SEEN int mkdir (const char *path, mode_t mode);
SEEN int open (const char *path, int flags, ...);

int
access (const char *path, int mode)
{
  if (strncmp (path, "/sys/fs/cgroup", 14) == 0 && !is_group (path)
      && fail_here (STAGE_TREE))
    return -1;
  return (int) syscall (SYS_faccessat, AT_FDCWD, path, mode);
}

int
mkdir (const char *path, mode_t mode)
{
  if (is_group (path) && fail_here (STAGE_GROUP))
    return -1;
  return (int) syscall (SYS_mkdirat, AT_FDCWD, path, mode);
}

int
open (const char *path, int flags, ...)
{
  va_list ap;
  mode_t mode;

  if (is_group (path) && (flags & O_ACCMODE) == O_WRONLY
      && fail_here (STAGE_VALUE))
    return -1;
  va_start (ap, flags);
  mode = flags & (O_CREAT | O_TMPFILE) ? va_arg (ap, mode_t) : 0;
  va_end (ap);
  return (int) syscall (SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- helpers ------------------------------------------------------------ */

/* An id that no other run of this test has. */
static const char *
own (const char *word)
{
  static char ids[4][64];
  static unsigned next;
  char *id = ids[next++ % 4];

  snprintf (id, sizeof ids[0], "%s-%d", word, (int) getpid ());
  return id;
}

/* Groups of sandboxes of these tests, anywhere in the trees. */
static int
groups_left (const char *name)
{
  char command[256];
  FILE *pipe;
  char line[4096];
  int count = 0;

  snprintf (command, sizeof command,
            "find /sys/fs/cgroup -type d -name 'coffer-%s-*' 2>/dev/null",
            name);
  pipe = popen (command, "r");
  assert_non_null (pipe);
  while (fgets (line, sizeof line, pipe) != NULL)
    count++;
  pclose (pipe);
  return count;
}

static void
sh (const char *id, const char *script)
{
  const char *argv[] = { "sh", "-c", script, NULL };

  assert_int_equal (host_run (&host, id, argv, NULL, NULL, 20000, &outcome),
                    COFFER_OK);
}

static void
create (const char *id, const struct coffer_sandbox_spec *spec)
{
  if (host_create (&host, id, spec) != COFFER_OK)
    fail_msg ("%s: %s", id, host.error);
}

static int
has_groups (const char *word)
{
  return strstr (host.facts, word) != NULL;
}

/* The program that takes memory, as ./memory. */
static void
memory_give (const char *id)
{
  struct coffer_file_write_opts opts = { .size = sizeof opts, .mode = 0755 };
  const char *build = getenv ("COFFER_BUILD");
  char path[4096];
  int fd;

  snprintf (path, sizeof path, "%s/tests/unit/linux-memory",
            build ? build : ".");
  fd = open (path, O_RDONLY | O_CLOEXEC);
  assert_true (fd >= 0);
  if (host.ops->file_write (host_call (&host, 10000), host.self, id, "memory",
                            fd, &opts)
        != COFFER_OK)
    fail_msg ("%s", host.error);
  close (fd);
}

#define LIMITED                                                               \
  { .size = sizeof (struct coffer_sandbox_spec), .lifeline = -1,              \
    .memory_bytes = 64 << 20, .pids = 24, .cpu_millis = 500 }

/* ---- trees that cannot be used ------------------------------------------ */

/* Whatever fails, and where: limits of processes, said so; nothing is left. */
static void
test_a_tree_that_fails_gives_rlimits_and_a_warning (void **state)
{
  static const int errors[] = { EROFS, EACCES, EBUSY };
  static const char *const why[] = { "read-only", "systemd-run", "others in" };
  const struct coffer_sandbox_spec spec = LIMITED;
  enum stage stage;
  size_t i;

  (void) state;
  create (own ("whole"), &spec);
  if (!has_groups ("\ncgroup ok")) {
    assert_int_equal (host_kill (&host, own ("whole")), COFFER_OK);
    skip_missing ("a writable control group");
  }
  assert_string_equal (host.not_applied, "");
  assert_int_equal (host_kill (&host, own ("whole")), COFFER_OK);
  for (stage = STAGE_TREE; stage <= STAGE_VALUE; stage++)
    for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
      failed = 0;
      fails_with = errors[i];
      fails_at = stage;
      create (own ("broken"), &spec);
      fails_at = STAGE_NONE;
      assert_true (failed > 0);
      assert_string_equal (host.not_applied, "limit.memory limit.cpu ");
      assert_true (has_groups ("\ncgroup absent"));
      assert_true (has_groups ("limit.memory degraded 67108864 private"));
      assert_true (has_groups ("limit.cpu off not limited"));
      assert_true (has_groups ("limit.pids ok 24 of the sandbox's user"));
      assert_non_null (strstr (host.remedies, why[i]));
      assert_int_equal (groups_left (own ("broken")), 0);
      sh (own ("broken"), "ulimit -d");
      assert_string_equal (outcome.out, "65536\n");
      assert_int_equal (host_kill (&host, own ("broken")), COFFER_OK);
    }
}

/* The same where a group is required: refused, with what helps, and nothing
 * made. */
static void
test_a_required_group_is_not_done_without (void **state)
{
  static const char *const require[] = { "cgroup", NULL };
  static const int errors[] = { EROFS, EACCES, EBUSY };
  static const char *const why[] = { "writable", "systemd-run --user",
                                     "systemd-run --scope" };
  struct coffer_sandbox_spec spec = LIMITED;
  enum stage stage;
  size_t i;

  (void) state;
  spec.require = require;
  if (host_create (&host, own ("needs"), &spec) != COFFER_OK) {
    assert_non_null (strstr (host.error, "require: cgroup"));
    skip_missing ("a writable control group");
  }
  assert_true (has_groups ("\ncgroup ok"));
  assert_int_equal (host_kill (&host, own ("needs")), COFFER_OK);
  for (stage = STAGE_TREE; stage <= STAGE_VALUE; stage++)
    for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
      fails_with = errors[i];
      fails_at = stage;
      assert_int_equal (host_create (&host, own ("needs"), &spec),
                        COFFER_UNAVAILABLE);
      fails_at = STAGE_NONE;
      assert_non_null (strstr (host.error, "require: cgroup"));
      assert_non_null (strstr (host.error, why[i]));
      assert_int_equal (groups_left (own ("needs")), 0);
      assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
      assert_int_equal (host_kill (&host, own ("needs")), COFFER_NOT_FOUND);
    }
}

/* Of a process, from outside: the namespace inside may begin there. */
static int
is_in_group (int pid, const char *name)
{
  char path[64], text[8192], group[80];
  ssize_t n;
  int fd;

  snprintf (path, sizeof path, "/proc/%d/cgroup", pid);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  assert_true (fd >= 0);
  n = read (fd, text, sizeof text - 1);
  close (fd);
  assert_true (n > 0);
  text[n] = '\0';
  snprintf (group, sizeof group, "/coffer-%s-", name);
  return strstr (text, group) != NULL;
}

/* A group is required and no limit asked for: there is one all the same. */
static void
test_a_required_group_is_there_without_limits (void **state)
{
  static const char *const require[] = { "cgroup", NULL };
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .require = require, .single_exec = 1 };

  (void) state;
  if (host_create (&host, own ("bare"), &spec) != COFFER_OK) {
    assert_non_null (strstr (host.error, "require: cgroup"));
    skip_missing ("a writable control group");
  }
  assert_true (has_groups ("limit.pids ok 1024 of the whole sandbox"));
  assert_true (groups_left (own ("bare")) > 0);
  assert_true (is_in_group (host.pid, own ("bare")));
  assert_int_equal (host_kill (&host, own ("bare")), COFFER_OK);
  assert_int_equal (groups_left (own ("bare")), 0);
}

/* What comes of an init that does not do its part; its facts are in host. */
static int32_t
hostile_create (struct linux_host *hostile, const char *mode,
                const struct coffer_sandbox_spec *given)
{
  const char *build = getenv ("COFFER_BUILD");
  const char *env[] = { NULL, NULL };
  struct coffer_sandbox_spec spec = *given;
  char path[4096], variable[32];
  int init;

  snprintf (path, sizeof path, "%s/tests/unit/linux-hostile",
            build ? build : ".");
  init = open (path, O_RDONLY | O_CLOEXEC);
  assert_true (init >= 0);
  linux_host_open_with (hostile, init);
  close (init);
  snprintf (variable, sizeof variable, "HOSTILE=%s", mode);
  env[0] = variable;
  spec.env = env;
  return host_create (hostile, own ("hostile"), &spec);
}

static void
hostile_end (struct linux_host *hostile)
{
  assert_int_equal (groups_left (own ("hostile")), 0);
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
  linux_host_close (hostile);
}

/* An init that stays out of its groups is no sandbox: version 1 leaves it to
 * put itself in, and who is in them is looked at.  Of version 2 it is begun in
 * its own. */
static void
test_an_init_outside_of_its_group_is_none (void **state)
{
  const struct coffer_sandbox_spec spec = LIMITED;
  static struct linux_host hostile;
  int32_t code = hostile_create (&hostile, "outside", &spec);
  const int absent = strstr (hostile.facts, "\ncgroup absent") != NULL;

  (void) state;
  if (strstr (hostile.facts, "\ncgroup ok version 2") != NULL) {
    assert_int_equal (code, COFFER_OK);
    assert_true (is_in_group (hostile.pid, own ("hostile")));
    assert_int_equal (host_kill (&hostile, own ("hostile")), COFFER_OK);
  } else {
    assert_int_equal (code, COFFER_INTERNAL);
    assert_non_null (strstr (hostile.error, absent
                               ? "the memory of its processes is not limited"
                               : "not in its control group"));
  }
  hostile_end (&hostile);
  if (absent)
    skip_missing ("a writable control group");
}

/* Where there are no groups it is to have the limits of a process, and each is
 * looked at: of memory, and of the number of processes. */
static void
test_an_init_without_its_limits_is_none (void **state)
{
  struct coffer_sandbox_spec spec = LIMITED;
  static struct linux_host hostile;

  (void) state;
  fails_at = STAGE_TREE;
  fails_with = EROFS;
  assert_int_equal (hostile_create (&hostile, "few", &spec), COFFER_INTERNAL);
  assert_non_null (strstr (hostile.error,
                           "the memory of its processes is not limited"));
  hostile_end (&hostile);
  spec.memory_bytes = 0;
  assert_int_equal (hostile_create (&hostile, "outside", &spec),
                    COFFER_INTERNAL);
  assert_non_null (strstr (hostile.error, "its processes are not limited"));
  hostile_end (&hostile);
  /* That is all there was to say against the first. */
  assert_int_equal (hostile_create (&hostile, "few", &spec), COFFER_OK);
  assert_int_equal (host_kill (&hostile, own ("hostile")), COFFER_OK);
  hostile_end (&hostile);
  fails_at = STAGE_NONE;
}

/* ---- what holds --------------------------------------------------------- */

/* Every limit as asked, read back from outside, and felt inside. */
static void
test_limits_hold_and_are_told (void **state)
{
  const struct coffer_sandbox_spec spec = LIMITED;

  (void) state;
  create (own ("holds"), &spec);
  if (!has_groups ("\ncgroup ok")) {
    assert_int_equal (host_kill (&host, own ("holds")), COFFER_OK);
    skip_missing ("a writable control group");
  }
  assert_true (has_groups ("limit.memory ok 67108864 bytes of the whole"));
  assert_true (has_groups ("no swap"));
  assert_true (has_groups ("limit.pids ok 24 of the whole sandbox"));
  assert_true (has_groups ("limit.cpu ok 0.500 processors"));
  assert_true (has_groups ("limit.core ok one byte"));
  /* Two busy ones for a second of the clock have half of one. */
  sh (own ("holds"), "timeout 1 sh -c 'while :; do :; done' & "
               "timeout 1 sh -c 'while :; do :; done'; wait; times");
  assert_true (host.exit.cpu_us > 50000);
  assert_true (host.exit.cpu_us < host.exit.duration_us * 3 / 4);
  /* All but the shell that starts them. */
  sh (own ("holds"), "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done "
               "2>/dev/null; kill $(jobs -p) 2>/dev/null");
  assert_non_null (strstr (host.limits, "pids "));
  sh (own ("holds"), "echo fine");
  assert_string_equal (outcome.out, "fine\n");
  assert_string_equal (host.limits, "");
  assert_int_equal (host_kill (&host, own ("holds")), COFFER_OK);
  assert_int_equal (groups_left (own ("holds")), 0);
}

/* Memory that is shared is counted: segments of System V, files without a
 * name, /dev/shm. */
static void
test_shared_memory_is_counted (void **state)
{
  static const char *const ways[] = { "sysv", "memfd", "mapped" };
  struct coffer_sandbox_spec spec = LIMITED;
  const char *argv[] = { "./memory", NULL, "268435456", NULL };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    create (own ("shared"), &spec);
    if (!has_groups ("limit.memory ok")) {
      assert_int_equal (host_kill (&host, own ("shared")), COFFER_OK);
      skip_missing ("a writable control group");
    }
    memory_give (own ("shared"));
    argv[1] = ways[i];
    assert_int_equal (host_run (&host, own ("shared"), argv, NULL, NULL, 20000,
                                &outcome),
                      COFFER_OK);
    if (host.exit.oom != 1)
      fail_msg ("%s: code %d signal %d %s%s", ways[i], host.exit.code,
                host.exit.signal, outcome.out, outcome.err);
    assert_non_null (strstr (host.limits, "memory "));
    assert_null (strstr (outcome.out, "touched 268435456"));
    assert_int_equal (host_kill (&host, own ("shared")), COFFER_OK);
  }
}

/* Segments of System V stay even when whoever made them has ended: as root
 * they are capped as files are, group or not. */
static void
test_segments_are_capped_as_the_disk (void **state)
{
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .disk_bytes = 8 << 20 };
  const char *over[] = { "./memory", "sysv", "16777216", NULL };
  const char *under[] = { "./memory", "sysv", "4194304", NULL };

  (void) state;
  create (own ("segments"), &spec);
  if (!has_groups ("limit.shm ok")) {
    assert_int_equal (host_kill (&host, own ("segments")), COFFER_OK);
    assert_int_not_equal (geteuid (), 0);
    skip_missing ("root");
  }
  memory_give (own ("segments"));
  assert_int_equal (host_run (&host, own ("segments"), over, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_non_null (strstr (outcome.out, "shmget 28"));   /* ENOSPC */
  assert_int_equal (host_run (&host, own ("segments"), under, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_non_null (strstr (outcome.out, "touched 4194304"));
  assert_int_equal (host_kill (&host, own ("segments")), COFFER_OK);
}

/* ENOSPC is seen inside, and named outside, as long as it lasts. */
static void
test_a_full_disk_is_named (void **state)
{
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .disk_bytes = 1 << 20, .inodes = 128 };

  (void) state;
  create (own ("full"), &spec);
  assert_true (has_groups ("limit.disk ok 1048576 bytes, 128 inodes"));
  sh (own ("full"), "head -c 3M /dev/zero > /dev/shm/big; echo $?");
  assert_non_null (strstr (outcome.err, "No space left"));
  assert_string_equal (host.limits, "disk ");
  sh (own ("full"), "rm /dev/shm/big; i=0; while : > f$i; do i=$((i+1)); done");
  assert_non_null (strstr (outcome.err, "No space left"));
  assert_string_equal (host.limits, "inodes ");
  sh (own ("full"), "rm -f f*; echo x > /tmp/x; cat /tmp/x");
  assert_string_equal (host.limits, "");
  assert_string_equal (outcome.out, "x\n");
  assert_int_equal (host_kill (&host, own ("full")), COFFER_OK);
  /* The same of one command, whose sandbox ends with it. */
  spec.single_exec = 1;
  create (own ("full"), &spec);
  sh (own ("full"), "head -c 3M /dev/zero > /tmp/big");
  assert_string_equal (host.limits, "disk ");
  assert_int_equal (host_kill (&host, own ("full")), COFFER_OK);
}

/* ---- numbers ------------------------------------------------------------ */

/* Beyond its bounds each is refused by name and range, and nothing is made. */
static void
test_numbers_are_refused_out_of_range (void **state)
{
#define SPEC .size = sizeof (struct coffer_sandbox_spec), .lifeline = -1
  static const struct {
    const char *field;
    struct coffer_sandbox_spec spec;
  } rows[] = {
    { "memory_bytes", { SPEC, .memory_bytes = 1 } },
    { "memory_bytes", { SPEC, .memory_bytes = (4 << 20) - 1 } },
    { "memory_bytes", { SPEC, .memory_bytes = (UINT64_C (1) << 60) + 1 } },
    { "memory_bytes", { SPEC, .memory_bytes = UINT64_MAX } },
    { "disk_bytes", { SPEC, .disk_bytes = 65535 } },
    { "disk_bytes", { SPEC, .disk_bytes = UINT64_MAX } },
    { "disk_bytes", { SPEC, .disk_bytes = UINT64_C (1) << 63 } },
    { "inodes", { SPEC, .inodes = 63 } },
    { "inodes", { SPEC, .inodes = UINT64_MAX } },
    { "pids", { SPEC, .pids = 4194305 } },
    { "pids", { SPEC, .pids = UINT32_MAX } },
    { "cpu_millis", { SPEC, .cpu_millis = 1024001 } },
    { "cpu_millis", { SPEC, .cpu_millis = UINT32_MAX } },
    { "address_bytes", { SPEC, .address_bytes = UINT64_MAX } },
    { "file_bytes", { SPEC, .file_bytes = UINT64_MAX } },
    { "open_files", { SPEC, .open_files = 1 } },
    { "open_files", { SPEC, .open_files = UINT32_MAX } },
    { "ttl_ms", { SPEC, .ttl_ms = UINT64_MAX } },
  };
  char range[64];
  size_t i;

  (void) state;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal (host_create (&host, own ("range"), &rows[i].spec),
                      COFFER_INVALID);
    snprintf (range, sizeof range, "%s: ", rows[i].field);
    assert_int_equal (strncmp (host.error, range, strlen (range)), 0);
    assert_non_null (strstr (host.error, " is not from "));
    assert_int_equal (host_kill (&host, own ("range")), COFFER_NOT_FOUND);
    assert_int_equal (groups_left (own ("range")), 0);
  }
}

/* The least and the most of each are good numbers, and are what holds. */
static void
test_bounds_themselves_hold (void **state)
{
  static const struct coffer_sandbox_spec rows[] = {
    { SPEC, .cpu_millis = 1 }, { SPEC, .cpu_millis = 9 },
    { SPEC, .cpu_millis = 10 }, { SPEC, .cpu_millis = 1024000 },
    { SPEC, .pids = 1 }, { SPEC, .pids = 4194304 },
    { SPEC, .memory_bytes = 4 << 20 },
    { SPEC, .memory_bytes = UINT64_C (1) << 60 },
    { SPEC, .disk_bytes = 65536 }, { SPEC, .inodes = 64 },
    { SPEC, .disk_bytes = 65537 },
  };
  int64_t begun = coffer_now_ns ();
  int groups, slow;
  size_t i;

  (void) state;
  create (own ("bounds"), &rows[2]);
  groups = has_groups ("\ncgroup ok");
  assert_int_equal (host_kill (&host, own ("bounds")), COFFER_OK);
  /* The init too has so little time: not where each step is emulated. */
  slow = coffer_now_ns () - begun > 2000000000;
  for (i = slow ? 2 : 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (host_create (&host, own ("bounds"), &rows[i]) != COFFER_OK)
      fail_msg ("row %zu: %s", i, host.error);
    if (groups && rows[i].disk_bytes == 0 && rows[i].inodes == 0
        && (!has_groups ("\ncgroup ok") || host.not_applied[0] != '\0'))
      fail_msg ("row %zu: %s", i, host.facts);
    assert_int_equal (host_kill (&host, own ("bounds")), COFFER_OK);
  }
}

/* ---- leftovers ---------------------------------------------------------- */

/* Two hosts may use the same id: neither ends the other's group. */
static void
test_groups_of_two_hosts_are_two (void **state)
{
  const struct coffer_sandbox_spec spec = LIMITED;
  static struct linux_host other;
  int one;

  (void) state;
  create (own ("twin"), &spec);
  if (!has_groups ("\ncgroup ok")) {
    assert_int_equal (host_kill (&host, own ("twin")), COFFER_OK);
    skip_missing ("a writable control group");
  }
  one = groups_left (own ("twin"));
  linux_host_open (&other);
  assert_int_equal (host_create (&other, own ("twin"), &spec), COFFER_OK);
  assert_int_equal (groups_left (own ("twin")), 2 * one);
  assert_int_equal (host_kill (&other, own ("twin")), COFFER_OK);
  linux_host_close (&other);
  assert_int_equal (groups_left (own ("twin")), one);
  sh (own ("twin"), "exit 3");
  assert_int_equal (host.exit.code, 3);
  assert_int_equal (host_kill (&host, own ("twin")), COFFER_OK);
  assert_int_equal (groups_left (own ("twin")), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_a_tree_that_fails_gives_rlimits_and_a_warning),
    cmocka_unit_test (test_a_required_group_is_not_done_without),
    cmocka_unit_test (test_a_required_group_is_there_without_limits),
    cmocka_unit_test (test_an_init_outside_of_its_group_is_none),
    cmocka_unit_test (test_an_init_without_its_limits_is_none),
    cmocka_unit_test (test_limits_hold_and_are_told),
    cmocka_unit_test (test_shared_memory_is_counted),
    cmocka_unit_test (test_segments_are_capped_as_the_disk),
    cmocka_unit_test (test_a_full_disk_is_named),
    cmocka_unit_test (test_numbers_are_refused_out_of_range),
    cmocka_unit_test (test_bounds_themselves_hold),
    cmocka_unit_test (test_groups_of_two_hosts_are_two),
  };

  return LINUX_TESTS_RUN (&host, "linux: limits", tests);
}
