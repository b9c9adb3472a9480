/* SPDX-License-Identifier: Apache-2.0 */
/* Who a sandbox is for the rest of the machine: the window of ids as a
 * function of what the files say; and, of sandboxes, what the kernel says of
 * their processes and of the files that they leave. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "id-pool.h"
#include "linux-host.h"

#define LENGTH(array) (sizeof (array) / sizeof (array)[0])

static struct linux_host host;
static struct outcome outcome;

/* ---- the window --------------------------------------------------------- */

#define WHOLE "         0          0 4294967295\n"

static struct pool_window
window (const struct pool_files *files, uint32_t random)
{
  struct pool_window out = { 0, 0 };

  if (pool_window_choose (files, random, &out) == -1)
    return (struct pool_window){ 0, 0 };
  assert_true (pool_window_good (files, out.first, out.count, 1));
  assert_true (out.first > 0);
  assert_true (out.count > 0 && out.count <= POOL_SLOTS);
  return out;
}

static void
windows_lie_beside_everybody_elses (void **state)
{
  static const char taken[] = "root:1000000:65536\nu:1879048192:16384\n"
                              "v:1900000000:100000000\n";
  const struct pool_files files = { WHOLE, WHOLE, taken, "" };
  const struct pool_files groups = { WHOLE, WHOLE, "", taken };
  struct pool_window one, two;
  uint32_t random;

  (void) state;
  for (random = 0; random < 3000; random++) {
    one = window (&files, random * 2654435761u);
    two = window (&groups, random * 2654435761u);
    assert_int_equal (one.first, two.first);
    assert_int_equal (one.count, POOL_SLOTS);
    assert_in_range (one.first, 1879048192u + 16384, 0x7effffff);
    assert_true (one.first + one.count <= 1900000000u
                 || one.first >= 2000000000u);
  }
  assert_int_not_equal (window (&files, 1).first, window (&files, 2).first);
}

static void
windows_are_what_is_mapped (void **state)
{
  static const struct {
    const char *uid_map, *gid_map, *subuid;
    uint32_t least, end;
  } cases[] = {
    /* A container's 64 Ki: below the accounts of systemd, above people's. */
    { "0 100000 65536\n", "0 100000 65536\n", "", 10000, 60001 },
    /* Only what both maps have. */
    { "0 100000 65536\n", "0 100000 30000\n", "", 10000, 30000 },
    /* Two ranges, the second one large. */
    { "0 1000 1\n1 100000 65536\n", "0 1000 1\n1 100000 65536\n", "", 10000,
      60001 },
    { "0 100000 65536\n", "0 100000 65536\n", "a:20000:50000\n", 10000,
      20000 },
    /* Few: neither root nor nobody, and no more is asked. */
    { "0 100000 3000\n", "0 100000 3000\n", "", 1, 3000 },
    { "0 100000 2\n", "0 100000 2\n", "", 1, 2 },
    { "70000 1000000 10\n", "70000 1000000 10\n", "", 70000, 70010 },
  };
  struct pool_window out;
  size_t i;

  (void) state;
  for (i = 0; i < LENGTH (cases); i++) {
    const struct pool_files files
      = { cases[i].uid_map, cases[i].gid_map, cases[i].subuid, "" };

    out = window (&files, 7);
    if (out.count == 0 || out.first < cases[i].least
        || out.first + out.count > cases[i].end)
      fail_msg ("case %zu: %u of %u", i, out.count, out.first);
  }
}

static void
where_there_is_none_there_is_none (void **state)
{
  static const struct pool_files cases[] = {
    { "0 1000 1\n", "0 1000 1\n", "", "" },
    { "", "", "", "" },
    { "garbage\n", "garbage\n", "", "" },
    { WHOLE, "0 0 1\n", "", "" },
    { "65534 7 1\n", "65534 7 1\n", "", "" },
    { "0 100000 2\n", "0 100000 2\n", "a:0:100000\n", "" },
  };
  size_t i;

  (void) state;
  for (i = 0; i < LENGTH (cases); i++)
    assert_int_equal (window (&cases[i], 0).count, 0);
}

static void
reserved_ids_are_nobodys (void **state)
{
  static const uint32_t reserved[]
    = { 0, 1000, 60100, 61184, 65519, 65534, 65535, 524288, 0x6fffffff,
        0x7ffe0000, 0xfffffffe };
  const struct pool_files files = { WHOLE, WHOLE, "", "" };
  size_t i;

  (void) state;
  for (i = 0; i < LENGTH (reserved); i++)
    assert_int_equal (pool_window_good (&files, reserved[i], 1, 0), 0);
  assert_int_equal (pool_window_good (&files, 0x70000000, 16384, 0), 1);
}

/* ---- the table ---------------------------------------------------------- */

#define TAKERS 8
#define EACH 50

/* Takes, and stays until it is told to go. */
static int
taker (int runtime, uint32_t *ids, int ready, int go)
{
  struct id_pool *pool = pool_new (runtime);
  uint32_t place;
  char byte = 0;
  int i;

  if (pool == NULL)
    return 1;
  for (i = 0; i < EACH; i++)
    if (pool_take (pool, &place, &ids[i]) == -1)
      return 2;
  if (write (ready, &byte, 1) != 1 || read (go, &byte, 1) != 0)
    return 3;
  return 0;
}

static int
ids_order (const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

  return x < y ? -1 : x > y;
}

static void
several_processes_never_get_the_same (void **state)
{
  char path[] = "/tmp/coffer-ids-XXXXXX", byte;
  const size_t size = TAKERS * EACH * sizeof (uint32_t);
  uint32_t *ids, first, place;
  int runtime, ready[2], go[2], status, i;
  struct id_pool *pool;

  (void) state;
  if (geteuid () != 0)
    skip_missing ("root");
  assert_non_null (mkdtemp (path));
  runtime = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ids = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
              -1, 0);
  assert_true (ids != MAP_FAILED);
  assert_int_equal (pipe2 (ready, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (go, O_CLOEXEC), 0);
  for (i = 0; i < TAKERS; i++)
    if (fork () == 0) {
      close (go[1]);
      _exit (taker (runtime, ids + i * EACH, ready[1], go[0]));
    }
  close (ready[1]);
  for (i = 0; i < TAKERS; i++)
    assert_int_equal (read (ready[0], &byte, 1), 1);
  qsort (ids, TAKERS * EACH, sizeof ids[0], ids_order);
  assert_true (ids[0] > 0);
  for (i = 1; i < TAKERS * EACH; i++)
    assert_true (ids[i] > ids[i - 1]);
  first = ids[0];
  close (go[1]);
  for (i = 0; i < TAKERS; i++)
    assert_true (wait (&status) > 0 && status == 0);
  /* What the dead had is to be had again: after all others. */
  pool = pool_new (runtime);
  assert_non_null (pool);
  for (i = 0; i < (int) POOL_SLOTS; i++) {
    assert_int_equal (pool_take (pool, &place, &ids[0]), 0);
    pool_give (pool, place, getpid ());
    if (ids[0] == first)
      break;
  }
  assert_in_range (i, POOL_SLOTS - TAKERS * EACH - 1, POOL_SLOTS - 1);
  pool_free (pool);
  munmap (ids, size);
  close (ready[0]);
  close (go[0]);
  assert_int_equal (unlinkat (runtime, ".ids", 0), 0);
  close (runtime);
  assert_int_equal (rmdir (path), 0);
}

/* A table that was damaged gives nothing that is not a sandbox's to have. */
static void
a_damaged_table_gives_no_other_ids (void **state)
{
  static const uint32_t heads[][4] = {
    /* magic as it is; cursor, first, count */
    { 1, 0, 0, 16384 }, { 1, UINT32_MAX, 0, 0 }, { 1, 5, 1, UINT32_MAX },
    { 1, 5, UINT32_MAX - 5, 16384 }, { 1, UINT32_MAX, 0x7effffff, 16384 },
    { 0, 7, 0, 1 }, { 0, UINT32_MAX, UINT32_MAX, UINT32_MAX },
  };
  char path[] = "/tmp/coffer-ids-XXXXXX";
  uint32_t place, id, head[4];
  struct id_pool *pool;
  int runtime, table;
  size_t i;

  (void) state;
  if (geteuid () != 0)
    skip_missing ("root");
  assert_non_null (mkdtemp (path));
  runtime = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (i = 0; i < LENGTH (heads); i++) {
    pool = pool_new (runtime);
    assert_non_null (pool);
    assert_int_equal (pool_take (pool, &place, &id), 0);
    table = openat (runtime, ".ids", O_RDWR | O_CLOEXEC);
    assert_int_equal (pread (table, head, sizeof head, 0), sizeof head);
    if (heads[i][0] == 0)
      head[0] ^= 0x55555555;
    memcpy (head + 1, heads[i] + 1, 3 * sizeof head[0]);
    assert_int_equal (pwrite (table, head, sizeof head, 0), sizeof head);
    close (table);
    assert_int_equal (pool_take (pool, &place, &id), 0);
    assert_true (place < POOL_SLOTS);
    assert_in_range (id, 1, 0x7effffff);
    assert_int_not_equal (id, 65534);
    pool_free (pool);
  }
  assert_int_equal (unlinkat (runtime, ".ids", 0), 0);
  /* Nor is one that others may write, or that is no file. */
  table = openat (runtime, ".ids", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal (fchmod (table, 0622), 0);
  close (table);
  assert_null (pool_new (runtime));
  assert_int_equal (unlinkat (runtime, ".ids", 0), 0);
  assert_int_equal (symlinkat ("/etc/passwd", runtime, ".ids"), 0);
  assert_null (pool_new (runtime));
  assert_int_equal (unlinkat (runtime, ".ids", 0), 0);
  close (runtime);
  assert_int_equal (rmdir (path), 0);
}

/* ---- sandboxes ---------------------------------------------------------- */

/* What /proc/PID/NAME has, from outside. */
static const char *
proc_text (int pid, const char *name)
{
  static char text[8192];
  char path[64];
  ssize_t n;
  int fd;

  snprintf (path, sizeof path, "/proc/%d/%s", pid, name);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  n = fd < 0 ? -1 : read (fd, text, sizeof text - 1);
  close (fd);
  text[n > 0 ? n : 0] = '\0';
  return text;
}

static unsigned
outside_id (int pid, const char *map)
{
  unsigned inside = 0, outside = 0, count = 0;

  assert_int_equal (sscanf (proc_text (pid, map), "%u %u %u", &inside,
                            &outside, &count),
                    3);
  assert_int_equal (inside, 1000);
  assert_int_equal (count, 1);
  assert_int_not_equal (outside, 0);
  return outside;
}

static void
sandbox_make (const char *id)
{
  if (host_create (&host, id, NULL) != COFFER_OK)
    fail_msg ("%s: %s", id, host.error);
}

#define MANY 24

static void
each_sandbox_of_root_has_an_id_of_its_own (void **state)
{
  unsigned ids[MANY];
  char id[16], line[64];
  int i, k;

  (void) state;
  for (i = 0; i < MANY; i++) {
    snprintf (id, sizeof id, "own-%d", i);
    sandbox_make (id);
    ids[i] = outside_id (host.pid, "uid_map");
    assert_int_equal (outside_id (host.pid, "gid_map"),
                      geteuid () == 0 ? ids[i] : getegid ());
    assert_string_equal (proc_text (host.pid, "setgroups"), "deny\n");
    snprintf (line, sizeof line, "\nUid:\t%u\t%u\t%u\t%u\n", ids[i], ids[i],
              ids[i], ids[i]);
    assert_non_null (strstr (proc_text (host.pid, "status"), line));
    for (k = 0; k < i; k++)
      assert_int_equal (ids[k] == ids[i], geteuid () != 0);
  }
  for (i = 0; i < MANY; i++) {
    snprintf (id, sizeof id, "own-%d", i);
    assert_int_equal (host_kill (&host, id), COFFER_OK);
  }
}

/* The table's file: 56 bytes, then for each place a process and the namespace
 * that its number is of. */
static uint32_t *
table_map (void)
{
  int fd = openat (host.runtime, ".ids", O_RDWR | O_CLOEXEC);
  struct stat st;
  void *at;

  assert_true (fd >= 0);
  assert_int_equal (fstat (fd, &st), 0);
  assert_int_equal (st.st_mode, S_IFREG | 0600);
  assert_true (st.st_size % 8 == 0
               && (size_t) st.st_size > POOL_SLOTS * 8);
  at = mmap (NULL, (size_t) st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
             fd, 0);
  assert_true (at != MAP_FAILED);
  close (fd);
  return (uint32_t *) at + ((size_t) st.st_size - POOL_SLOTS * 8) / 4;
}

/* All others being taken, an id comes back with the end of whoever has it, and
 * not before. */
static void
an_id_is_free_when_its_init_is_gone (void **state)
{
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1 };
  uint32_t *slots, *mine = NULL, i;
  unsigned id;
  int pid;

  (void) state;
  if (geteuid () != 0)
    skip_missing ("root");
  sandbox_make ("first");
  pid = host.pid;
  id = outside_id (pid, "uid_map");
  slots = table_map ();
  for (i = 0; i < POOL_SLOTS; i++)
    if (slots[2 * i] == (uint32_t) pid)
      mine = &slots[2 * i];
    else {
      slots[2 * i] = (uint32_t) getpid ();
      slots[2 * i + 1] = UINT32_MAX;    /* of another namespace: left alone */
    }
  assert_non_null (mine);
  assert_int_equal (host_create (&host, "second", &spec), COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.error, "in use"));
  assert_int_equal (host_kill (&host, "first"), COFFER_OK);
  assert_int_equal (*mine, 0);
  sandbox_make ("second");
  assert_int_equal (outside_id (host.pid, "uid_map"), id);
  /* Whoever made it may be gone without a word: the owner is looked for. */
  assert_int_equal (*mine, host.pid);
  assert_int_equal (kill (host.pid, SIGKILL), 0);
  assert_int_equal (host_kill (&host, "second"), COFFER_OK);
  *mine = 0x7ffffff0;
  mine[1] = (uint32_t) host.pid;
  assert_int_equal (host_create (&host, "third", &spec), COFFER_UNAVAILABLE);
  for (i = 0; i < POOL_SLOTS; i++)
    slots[2 * i] = slots[2 * i + 1] = 0;
  sandbox_make ("third");
  assert_int_equal (host_kill (&host, "third"), COFFER_OK);
}

static void
groups_of_the_caller_are_given_up_or_reported (void **state)
{
  const gid_t some[] = { 4, 24, 27 };
  gid_t before[256];
  int n = getgroups (256, before), others = 0, i;
  const int root = geteuid () == 0;

  (void) state;
  assert_true (n >= 0);
  for (i = 0; i < n; i++)
    others += before[i] != getegid ();
  if (root)
    assert_int_equal (setgroups (LENGTH (some), some), 0);
  sandbox_make ("groups");
  assert_non_null (strstr (host.facts, root || others == 0
                                         ? "user.groups ok none"
                                         : "user.groups degraded inherited"));
  if (root) {
    assert_non_null (strstr (proc_text (host.pid, "status"),
                             "\nGroups:\t \n"));
    /* Whoever made it has them still. */
    assert_int_equal (getgroups (0, NULL), LENGTH (some));
    assert_int_equal (setgroups ((size_t) n, before), 0);
  }
  assert_int_equal (host_kill (&host, "groups"), COFFER_OK);
}

/* Lines of /proc/PID/status that say what a process may do. */
static void
rights_read (int pid, char *out, size_t size)
{
  static const char *const names[]
    = { "\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapBnd:", "\nCapAmb:",
        "\nNoNewPrivs:", "\nSeccomp:", "\nSeccomp_filters:", "\nUid:",
        "\nGid:", "\nGroups:" };
  const char *text = proc_text (pid, "status"), *at;
  size_t i, n = 0;

  for (i = 0; i < LENGTH (names); i++) {
    at = strstr (text, names[i]);
    if (at != NULL)
      n += (size_t) snprintf (out + n, size - n, "%.*s",
                              (int) strcspn (at + 1, "\n") + 1, at);
  }
}

/* The child of the init that is there, waited for. */
static int
child_of (int pid)
{
  char name[64];
  int child = 0, tries;

  snprintf (name, sizeof name, "task/%d/children", pid);
  for (tries = 0; tries < 500 && child == 0; tries++) {
    sscanf (proc_text (pid, name), "%d", &child);
    usleep (10000);
  }
  return child;
}

static int
sleeper_start (const char *id)
{
  struct coffer_exec_start_opts opts = { .size = sizeof opts,
                                         .background = 1 };
  const char *argv[] = { "sleep", "100", NULL };

  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          id, argv, NULL, NULL, -1, -1, -1,
                                          &opts),
                    COFFER_OK);
  return child_of (host.pid);
}

static void
the_init_is_as_confined_as_its_children (void **state)
{
  char of_init[2048] = "", of_child[2048] = "";
  int pid, child, tries;

  (void) state;
  sandbox_make ("confined");
  pid = host.pid;
  assert_non_null (strstr (host.facts, "securebits ok locked"));
  assert_non_null (strstr (host.facts, "capabilities ok none"));
  assert_non_null (strstr (host.facts, "init ok not dumpable"));
  rights_read (pid, of_init, sizeof of_init);
  child = sleeper_start ("confined");
  if (child == 0)
    skip_missing ("/proc/PID/task/TID/children");
  /* It is the program by now, or will be. */
  for (tries = 0; tries < 2000; tries++) {
    rights_read (child, of_child, sizeof of_child);
    if (strcmp (of_init, of_child) == 0)
      break;
    usleep (10000);
  }
  assert_string_equal (of_child, of_init);
  assert_non_null (strstr (of_init, "\nCapBnd:\t0000000000000000"));
  assert_non_null (strstr (of_init, "\nNoNewPrivs:\t1"));
  assert_non_null (strstr (of_init, "\nSeccomp:\t2"));
  assert_int_equal (host_kill (&host, "confined"), COFFER_OK);
}

/* ---- a folder of the host ----------------------------------------------- */

static int bits_seen;

static void
folder_look (int dir, const char *name)
{
  struct stat st;

  if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
    return;
  bits_seen |= st.st_mode & (S_ISUID | S_ISGID);
  assert_false (S_ISCHR (st.st_mode) || S_ISBLK (st.st_mode));
  assert_int_equal (st.st_uid, geteuid ());
}

/* Whoever writes in a folder that is shown writable is its owner there, and
 * makes nothing that would run as its owner. */
static void
no_setuid_bit_reaches_the_host (void **state)
{
  static const char script[]
    = "cp /bin/true a; chmod 4755 a; chmod u+s a; chmod 2755 a; chmod g+s a; "
      "install -m 4755 /bin/true b; mkdir -m 2755 c; mkdir c; chmod g+s c; "
      "(umask 0; cp /usr/bin/passwd d; cp -p /usr/bin/passwd e); "
      "mknod f c 1 3; mknod g b 8 0; tar -cf h /usr/bin/passwd && "
      "tar -xpf h --strip-components=2; touch i; true";
  const char *argv[] = { "sh", "-c", script, NULL };
  const char *names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i",
                          "passwd", "payload" };
  char path[] = "/tmp/coffer-shown-XXXXXX", clear[64];
  struct coffer_mount mount = { .size = sizeof mount, .source = path,
                                .target = "/workspace", .writable = 1 };
  const struct coffer_mount *mounts[] = { &mount, NULL };
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .mounts = mounts };
  const char *attempt[] = { "/workspace/payload", "setuid", NULL };
  int32_t code;
  size_t i;
  int dir;

  (void) state;
  assert_non_null (mkdtemp (path));
  mount.source_fd = open (path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  code = host_create (&host, "shown", &spec);
  if (code == COFFER_UNAVAILABLE && strstr (host.error, "id-mapped")) {
    close (mount.source_fd);
    rmdir (path);
    skip_missing ("id-mapped mounts on the file system of /tmp");
  }
  assert_int_equal (code, COFFER_OK);
  host_payload (&host, "shown");
  assert_int_equal (host_run (&host, "shown", argv, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_int_equal (host_run (&host, "shown", attempt, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.out, "");
  dir = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_int_equal (faccessat (dir, "i", F_OK, 0), 0);
  for (i = 0; i < LENGTH (names); i++)
    folder_look (dir, names[i]);
  assert_int_equal (bits_seen, 0);
  close (dir);
  close (mount.source_fd);
  assert_int_equal (host_kill (&host, "shown"), COFFER_OK);
  snprintf (clear, sizeof clear, "rm -rf -- '%s'", path);
  assert_int_equal (system (clear), 0);
}

static void
folder_make (char *path, struct coffer_mount *mount, const char *source)
{
  assert_non_null (mkdtemp (path));
  *mount = (struct coffer_mount){ .size = sizeof *mount, .writable = 1,
                                  .target = "/workspace" };
  mount->source = source ? source : path;
  mount->source_fd = open (mount->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
  assert_true (mount->source_fd >= 0);
}

/* Root shows nothing that it cannot map: there files would be made that belong
 * to an id of the pool, or to nobody. */
static void
what_cannot_be_mapped_is_refused_by_root (void **state)
{
  char path[] = "/tmp/coffer-mapped-XXXXXX";
  struct coffer_mount mount;
  const struct coffer_mount *mounts[] = { &mount, NULL };
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .mounts = mounts };

  (void) state;
  if (geteuid () != 0)
    skip_missing ("root");
  /* The proc file system has no id-mapped mounts. */
  folder_make (path, &mount, "/proc/self/fdinfo");
  assert_int_equal (host_create (&host, "unmapped", &spec),
                    COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.error, "id-mapped"));
  assert_non_null (strstr (host.error, "/proc/self/fdinfo"));
  assert_int_equal (faccessat (host.runtime, "unmapped", F_OK, 0), -1);
  close (mount.source_fd);
  assert_int_equal (rmdir (path), 0);
}

/* Two sandboxes with two ids, one after the other: what the first one leaves
 * in a folder is the second one's, and its owner's outside. */
static void
what_a_sandbox_leaves_is_the_next_ones (void **state)
{
  const char *make[] = { "sh", "-c", "umask 077; echo 1 > mine", NULL };
  const char *use[] = { "sh", "-c", "stat -c '%u %g' mine; cat mine; "
                                    "echo 2 > mine; rm mine; echo done",
                        NULL };
  char path[] = "/tmp/coffer-left-XXXXXX";
  struct coffer_mount mount;
  const struct coffer_mount *mounts[] = { &mount, NULL };
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .mounts = mounts };
  struct stat st;
  unsigned first;
  int32_t code;

  (void) state;
  folder_make (path, &mount, NULL);
  code = host_create (&host, "left", &spec);
  if (code == COFFER_UNAVAILABLE && strstr (host.error, "id-mapped")) {
    close (mount.source_fd);
    rmdir (path);
    skip_missing ("id-mapped mounts on the file system of /tmp");
  }
  assert_int_equal (code, COFFER_OK);
  first = outside_id (host.pid, "uid_map");
  assert_int_equal (host_run (&host, "left", make, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_int_equal (host_kill (&host, "left"), COFFER_OK);
  assert_int_equal (fstatat (mount.source_fd, "mine", &st, 0), 0);
  assert_int_equal (st.st_uid, geteuid ());
  assert_int_equal (st.st_gid, getegid ());
  assert_int_equal (host_create (&host, "left", &spec), COFFER_OK);
  assert_int_equal (outside_id (host.pid, "uid_map") == first,
                    geteuid () != 0);
  assert_int_equal (host_run (&host, "left", use, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.err, "");
  assert_string_equal (outcome.out, "1000 1000\n1\ndone\n");
  assert_int_equal (host_kill (&host, "left"), COFFER_OK);
  close (mount.source_fd);
  assert_int_equal (rmdir (path), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (windows_lie_beside_everybody_elses),
    cmocka_unit_test (windows_are_what_is_mapped),
    cmocka_unit_test (where_there_is_none_there_is_none),
    cmocka_unit_test (reserved_ids_are_nobodys),
    cmocka_unit_test (several_processes_never_get_the_same),
    cmocka_unit_test (a_damaged_table_gives_no_other_ids),
    cmocka_unit_test (each_sandbox_of_root_has_an_id_of_its_own),
    cmocka_unit_test (an_id_is_free_when_its_init_is_gone),
    cmocka_unit_test (groups_of_the_caller_are_given_up_or_reported),
    cmocka_unit_test (the_init_is_as_confined_as_its_children),
    cmocka_unit_test (no_setuid_bit_reaches_the_host),
    cmocka_unit_test (what_cannot_be_mapped_is_refused_by_root),
    cmocka_unit_test (what_a_sandbox_leaves_is_the_next_ones),
  };

  return LINUX_TESTS_RUN (&host, "linux: ids", tests);
}
