/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of version 2 in a folder that stands for their tree, and where
 * this process is, for kernels and containers that are not this one.
 *
 * The sources are linked here with open, mkdir and rmdir of this program: a new
 * group is given the files that the kernel gives it, and a group is removed
 * with them.  The same path runs on a real kernel in the guests. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "cgroup.h"

static char base[] = "/tmp/coffer-cgroup-XXXXXX";
static char tree[PATH_MAX];
static const char *busy;        /* writing to a file of that name fails so */
static int busy_times;

/* ---- a tree ------------------------------------------------------------- */

static const char *const files[]
  = { "cgroup.procs", "cgroup.subtree_control", "cgroup.controllers",
      "cgroup.kill", "cgroup.freeze", "cgroup.events", "memory.max",
      "memory.swap.max", "memory.oom.group", "memory.events", "pids.max",
      "pids.events", "cpu.max", "cpu.stat" };

static void
put (const char *dir, const char *name, const char *text)
{
  char path[PATH_MAX];
  FILE *file;

  assert_int_equal (group_path (path, dir, name), 0);
  file = fopen (path, "we");
  assert_non_null (file);
  fputs (text, file);
  fclose (file);
}

static int
is_ours (const char *path)
{
  return tree[0] != '\0' && strncmp (path, tree, strlen (tree)) == 0;
}

int
mkdir (const char *path, mode_t mode)
{
  int r = (int) syscall (SYS_mkdirat, AT_FDCWD, path, mode);
  size_t i;

  for (i = 0; r == 0 && is_ours (path) && i < sizeof files / sizeof files[0];
       i++)
    put (path, files[i], "");
  return r;
}

int
rmdir (const char *path)
{
  char name[PATH_MAX];
  size_t i;

  for (i = 0; is_ours (path) && i < sizeof files / sizeof files[0]; i++)
    if (group_path (name, path, files[i]) == 0)
      unlink (name);
  return (int) syscall (SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int
open (const char *path, int flags, ...)
{
  const char *name = strrchr (path, '/');
  va_list ap;
  mode_t mode;

  if (busy != NULL && is_ours (path) && strcmp (name + 1, busy) == 0
      && (flags & O_ACCMODE) == O_WRONLY && busy_times-- > 0) {
    errno = EBUSY;
    return -1;
  }
  /* A value takes the place of the last one. */
  if (is_ours (path) && (flags & O_ACCMODE) == O_WRONLY)
    flags |= O_TRUNC;
  va_start (ap, flags);
  mode = flags & (O_CREAT | O_TMPFILE) ? va_arg (ap, mode_t) : 0;
  va_end (ap);
  return (int) syscall (SYS_openat, AT_FDCWD, path, flags, mode);
}

static int
set_up (void **state)
{
  (void) state;
  assert_non_null (mkdtemp (base));
  snprintf (tree, sizeof tree, "%s/user.slice", base);
  assert_int_equal (mkdir (tree, 0755), 0);
  put (tree, "cgroup.controllers", "cpu memory pids\n");
  put (tree, "cgroup.subtree_control", "cpu memory pids\n");
  busy = NULL;
  return 0;
}

static int
tear_down (void **state)
{
  (void) state;
  rmdir (tree);
  if (rmdir (base) == -1)
    fail_msg ("%s: %s", base, strerror (errno));
  strcpy (base + strlen (base) - 6, "XXXXXX");
  return 0;
}

static const char *
value (const char *dir, const char *name)
{
  static char texts[8][128];
  static unsigned next;
  char *text = texts[next++ % 8];

  if (group_read (dir, name, text, sizeof texts[0]) == -1)
    fail_msg ("%s/%s: %s", dir, name, strerror (errno));
  return text;
}

static const struct cgroup_limits limits = { 64 << 20, 20, 500 };

/* ---- the groups --------------------------------------------------------- */

static void
test_a_lasting_sandbox_has_leaves (void **state)
{
  struct cgroup group = CGROUP_NONE;
  char dir[PATH_MAX], init[PATH_MAX], commands[PATH_MAX];

  (void) state;
  group.bits = CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU | CGROUP_FREEZE;
  assert_int_equal (group_path (dir, tree, "coffer-x"), 0);
  assert_int_equal (group_path (init, dir, "init"), 0);
  assert_int_equal (group_path (commands, dir, "commands"), 0);
  v2_make (dir, &limits, &group);
  assert_int_equal (group.bits, 15);
  assert_string_equal (value (dir, "memory.max"), "67108864");
  assert_string_equal (value (dir, "memory.swap.max"), "0");
  assert_string_equal (value (dir, "memory.oom.group"), "");
  assert_string_equal (value (commands, "memory.oom.group"), "1");
  assert_string_equal (value (commands, "pids.max"), "20");
  assert_string_equal (value (dir, "cpu.max"), "50000 100000");
  assert_true (group.into >= 0);
  assert_true (group.commands >= 0);
  /* The init's number is what the kernel shows of who is in. */
  v2_enter (dir, 4321, &limits, &group);
  assert_int_equal (group.bits, 15);
  assert_string_equal (value (init, "cgroup.procs"), "4321");
  assert_string_equal (value (commands, "cgroup.procs"), "");
  cgroup_fini (&group);
  assert_int_equal (rmdir (init), 0);
  assert_int_equal (rmdir (commands), 0);
  assert_int_equal (rmdir (dir), 0);
}

static void
test_a_sandbox_for_one_command_has_none (void **state)
{
  struct cgroup group = CGROUP_NONE;
  char dir[PATH_MAX];

  (void) state;
  group.single = 1;
  group.bits = CGROUP_MEMORY | CGROUP_PIDS;
  assert_int_equal (group_path (dir, tree, "coffer-x"), 0);
  v2_make (dir, &limits, &group);
  assert_int_equal (group.bits, CGROUP_MEMORY | CGROUP_PIDS);
  assert_string_equal (value (dir, "memory.oom.group"), "1");
  assert_string_equal (value (dir, "pids.max"), "21");
  assert_string_equal (value (dir, "cpu.max"), "");
  assert_int_equal (group.commands, -1);
  /* Begun there by clone3: nothing is moved. */
  put (dir, "cgroup.procs", "4321\n");
  group.entered = 1;
  v2_enter (dir, 4321, &limits, &group);
  assert_int_equal (group.bits, CGROUP_MEMORY | CGROUP_PIDS);
  cgroup_fini (&group);
  assert_int_equal (rmdir (dir), 0);
}

/* What is read back decides, not what was written. */
static void
test_a_limit_that_is_not_there_does_not_hold (void **state)
{
  static const struct {
    const char *file, *text;
    unsigned bit;
  } rows[] = {
    { "memory.max", "max\n", CGROUP_MEMORY },
    { "memory.max", "67108865\n", CGROUP_MEMORY },
    { "memory.oom.group", "0\n", CGROUP_MEMORY },
    { "pids.max", "max\n", CGROUP_PIDS },
    { "cpu.max", "max 100000\n", CGROUP_CPU },
    { "cpu.max", "50001 100000\n", CGROUP_CPU },
    { "cgroup.procs", "4322\n", CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU },
  };
  const unsigned all = CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU;
  char dir[PATH_MAX];
  size_t i;

  (void) state;
  assert_int_equal (group_path (dir, tree, "coffer-x"), 0);
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct cgroup group = CGROUP_NONE;

    group.single = 1;
    group.bits = all;
    v2_make (dir, &limits, &group);
    assert_int_equal (group.bits, all);
    put (dir, "cgroup.procs", "4321\n");
    put (dir, rows[i].file, rows[i].text);
    group.entered = 1;
    v2_enter (dir, 4321, &limits, &group);
    assert_int_equal (group.bits, all & ~rows[i].bit);
    assert_non_null (group.why);
    cgroup_fini (&group);
    assert_int_equal (rmdir (dir), 0);
  }
}

/* ---- where -------------------------------------------------------------- */

/* A group with processes in it cannot have such below it: they go to a leaf,
 * where that is ours to do. */
static void
test_processes_are_moved_out_of_a_delegated_group (void **state)
{
  char dir[PATH_MAX], leaf[PATH_MAX];
  int error = 0;

  (void) state;
  put (tree, "cgroup.subtree_control", "\n");
  put (tree, "cgroup.procs", "77\n");
  busy = "cgroup.subtree_control";
  busy_times = 1;
  snprintf (dir, sizeof dir, "%s", tree);
  assert_int_equal (group_path (leaf, tree, HOST_LEAF), 0);
  if (geteuid () == 0) {
    /* Root's own session is not handed over: nobody is moved. */
    busy_times = 100;
    assert_int_equal (v2_prepare (dir, CGROUP_MEMORY, &error), 0);
    assert_int_equal (error, EBUSY);
    assert_int_equal (access (leaf, F_OK), -1);
    assert_non_null (strstr (place_why (error), "systemd-run --scope"));
    return;
  }
  assert_int_equal (v2_prepare (dir, CGROUP_MEMORY, &error), CGROUP_MEMORY);
  assert_int_equal (error, 0);
  assert_string_equal (value (leaf, "cgroup.procs"), "77");
  /* From there groups are made beside that leaf. */
  snprintf (dir, sizeof dir, "%s", leaf);
  v2_prepare (dir, CGROUP_MEMORY, &error);
  assert_string_equal (dir, tree);
  assert_int_equal (rmdir (leaf), 0);
}

static void
test_only_what_is_offered_is_enabled (void **state)
{
  char dir[PATH_MAX];
  int error = 0;

  (void) state;
  put (tree, "cgroup.controllers", "cpuset memory pids\n");
  put (tree, "cgroup.subtree_control", "memory\n");
  snprintf (dir, sizeof dir, "%s", tree);
  assert_int_equal (v2_prepare (dir,
                                CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU,
                                &error),
                    CGROUP_MEMORY | CGROUP_PIDS);
  assert_string_equal (value (tree, "cgroup.subtree_control"), "+pids");
  assert_int_equal (error, 0);
}

/* Lines of /proc/self/cgroup and mountinfo, and the folder that they mean. */
static void
test_the_own_group_is_found (void **state)
{
  static const struct {
    const char *own, *mounts;   /* @ stands for the tree */
    int version;
  } rows[] = {
    { "0::/\n", "30 1 0:1 / @ rw - cgroup2 cgroup2 rw\n", 2 },
    { "0::/user.slice\n", "30 1 0:1 / ^ rw - cgroup2 cgroup2 rw\n", 2 },
    { "0::/a/user.slice\n", "30 1 0:1 /a ^ rw - cgroup2 cgroup2 rw\n", 2 },
    { "4:memory:/user.slice\n0::/\n",
      "1 1 0:1 / ^ rw - cgroup cgroup rw,memory\n", 1 },
    { "4:memory,x:/user.slice\n", "1 1 0:1 / ^ rw - cgroup c rw,x,memory\n",
      1 },
    /* Not ours: another tree, another part of it, outside of the namespace. */
    { "0::/b\n", "30 1 0:1 /a ^ rw - cgroup2 cgroup2 rw\n", 0 },
    { "0::/ab\n", "30 1 0:1 /a ^ rw - cgroup2 cgroup2 rw\n", 0 },
    { "0::/../x\n", "30 1 0:1 / ^ rw - cgroup2 cgroup2 rw\n", 0 },
    { "4:memory:/\n", "1 1 0:1 / ^ rw - cgroup cgroup rw,cpu\n", 0 },
    { "", "30 1 0:1 / ^ rw - cgroup2 cgroup2 rw\n", 0 },
    { "0::/\n", "", 0 },
    { "0::/\n", "nonsense\n30 1\n - cgroup2\n", 0 },
  };
  char own[PATH_MAX], mounts[PATH_MAX], text[2 * PATH_MAX];
  struct place *place = malloc (sizeof *place);
  const char *at;
  size_t i, n;

  (void) state;
  assert_non_null (place);
  snprintf (own, sizeof own, "%s/own", base);
  snprintf (mounts, sizeof mounts, "%s/mounts", base);
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    for (n = 0, at = rows[i].mounts; *at != '\0'; at++)
      if (*at == '@' || *at == '^')
        n += (size_t) snprintf (text + n, sizeof text - n, "%s",
                                *at == '@' ? tree : base);
      else
        text[n++] = *at;
    text[n] = '\0';
    put (base, "own", rows[i].own);
    put (base, "mounts", text);
    place_find (place, CGROUP_MEMORY, own, mounts);
    if (place->version != rows[i].version)
      fail_msg ("row %zu: version %d", i, place->version);
    assert_int_equal (place->bits, rows[i].version ? CGROUP_MEMORY : 0);
    if (rows[i].version != 0)
      assert_string_equal (place->dirs[0], tree);
    else
      assert_non_null (place->why);
  }
  unlink (own);
  unlink (mounts);
  free (place);
}

/* The kernel has no quota below a millisecond, and nothing wraps. */
static void
test_quotas_are_what_the_kernel_takes (void **state)
{
  static const uint32_t millis[]
    = { 1, 9, 10, 500, 1000, 1024000, UINT32_MAX };
  uint64_t quota, period;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof millis / sizeof millis[0]; i++) {
    group_cpu (millis[i], &quota, &period);
    assert_true (quota >= 1000);
    assert_true (period == 100000 || period == 1000000);
    assert_true (quota * 1000 == period * millis[i]);
  }
}

int
main (void)
{
#define IN_A_TREE(test)                                                       \
  cmocka_unit_test_setup_teardown (test, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    IN_A_TREE (test_a_lasting_sandbox_has_leaves),
    IN_A_TREE (test_a_sandbox_for_one_command_has_none),
    IN_A_TREE (test_a_limit_that_is_not_there_does_not_hold),
    IN_A_TREE (test_processes_are_moved_out_of_a_delegated_group),
    IN_A_TREE (test_only_what_is_offered_is_enabled),
    IN_A_TREE (test_the_own_group_is_found),
    cmocka_unit_test (test_quotas_are_what_the_kernel_takes),
  };

  return cmocka_run_group_tests_name ("linux: control groups", tests, NULL,
                                      NULL);
}
