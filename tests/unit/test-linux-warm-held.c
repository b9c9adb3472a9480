/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of `linux` that are copies of an interpreter which stands ready are
 * held to all that a command is which was started in the sandbox, also when they
 * have waited there. */

#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "linux-host.h"
#include "linux-warm.h"

/* ---- what they are held to ---------------------------------------------- */

/* A command that is up, and a descriptor that ends it. */
struct standing {
  const char *id;
  int init, pid, end;
};

static void
stand_in (struct standing *standing, const char *id,
          const struct coffer_sandbox_spec *spec, const char *handle)
{
  static const char code[] = "posix.write(1, b'up\\n'); posix.read(0, 1)\n";
  const char *argv[] = { "python3", "-I", "-S", "-c", code, NULL };
  struct coffer_exec_start_opts opts = { .size = sizeof opts,
                                         .warm = handle };
  char byte[3], text[128];
  int pair[2], out[2];

  snprintf (text, sizeof text, "import posix\n%s", code);
  argv[4] = text;
  standing->id = id;
  create (id, spec);
  standing->init = host.pid;
  assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                    0);
  assert_int_equal (pipe2 (out, O_CLOEXEC), 0);
  if (host.ops->exec_start (host_call (&host, 20000), host.self, id, argv,
                            NULL, NULL, pair[1], out[1], out[1], &opts)
      != COFFER_OK)
    fail_msg ("%s", host.error);
  close (pair[1]);
  close (out[1]);
  assert_int_equal (coffer_read_all (out[0], byte, 3), 3);
  close (out[0]);
  standing->end = pair[0];
  standing->pid = child_of (standing->init, NULL);
  assert_true (standing->pid > 0);
}

static void
stand (struct standing *standing, const char *id, const char *handle)
{
  stand_in (standing, id, &strict, handle);
}

static void
fall (struct standing *standing)
{
  close (standing->end);
  host_kill (&host, standing->id);
}

static void
same_status (const struct standing *one, const struct standing *other)
{
  static const char *const keys[]
    = { "\nUmask:", "\nGroups:", "\nThreads:", "\nSigPnd:",
        "\nSigBlk:", "\nSigIgn:", "\nSigCgt:", "\nCapInh:", "\nCapPrm:",
        "\nCapEff:", "\nCapBnd:", "\nCapAmb:", "\nNoNewPrivs:",
        "\nSeccomp:", "\nSeccomp_filters:", "\nSpeculation_Store_Bypass:",
        "\nCpus_allowed:", "\nMems_allowed:" };
  char a[8192], b[8192], x[256], y[256];
  size_t i;

  file_of (one->pid, "status", a, sizeof a);
  file_of (other->pid, "status", b, sizeof b);
  for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    if (strstr (b, keys[i]) == NULL)
      continue;                 /* not of this kernel */
    line_of (a, keys[i] + 1, x, sizeof x);
    line_of (b, keys[i] + 1, y, sizeof y);
    assert_string_equal (x, y);
  }
}

static void
same_as_init (const struct standing *one, const char *what)
{
  char init[8192], own[8192];

  file_of (one->init, what, init, sizeof init);
  file_of (one->pid, what, own, sizeof own);
  assert_string_equal (own, init);
}

/* Each in the namespaces of its own init, with its ids. */
static void
at_home (const struct standing *one)
{
  static const char *const spaces[]
    = { "ns/user", "ns/mnt", "ns/pid", "ns/pid_for_children", "ns/net",
        "ns/ipc", "ns/uts", "ns/cgroup" };
  char status[8192], own[128], init[128], folder[512];
  size_t i;

  for (i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
    link_of (one->pid, spaces[i], own, sizeof own);
    link_of (one->init, spaces[i], init, sizeof init);
    assert_string_equal (own, init);
  }
  file_of (one->pid, "status", status, sizeof status);
  line_of (status, "Uid:", own, sizeof own);
  file_of (one->init, "status", status, sizeof status);
  line_of (status, "Uid:", init, sizeof init);
  assert_string_equal (own, init);
  same_as_init (one, "uid_map");
  same_as_init (one, "cgroup");
  same_as_init (one, "oom_score_adj");
  link_of (one->pid, "root", folder, sizeof folder);
  assert_string_equal (folder, "/");
  link_of (one->pid, "cwd", folder, sizeof folder);
  assert_string_equal (folder, "/workspace");
}

static void
only_streams (const struct standing *one)
{
  char path[64];
  struct dirent *entry;
  DIR *dir;
  int n = 0;

  snprintf (path, sizeof path, "/proc/%d/fd", one->pid);
  dir = opendir (path);
  assert_non_null (dir);
  while ((entry = readdir (dir)) != NULL)
    if (entry->d_name[0] != '.') {
      assert_in_range (atoi (entry->d_name), 0, 2);
      n++;
    }
  closedir (dir);
  assert_int_equal (n, 3);
}

/* "S parent group session": a leader of both. */
static void
leads (const struct standing *one)
{
  char text[4096], *at;
  int parent, group, session, tty;

  file_of (one->pid, "stat", text, sizeof text);
  at = strrchr (text, ')');
  assert_int_equal (sscanf (at, ") %*c %d %d %d %d", &parent, &group, &session,
                            &tty), 4);
  assert_int_equal (parent, one->init);
  assert_int_equal (group, one->pid);
  assert_int_equal (session, one->pid);
  assert_int_equal (tty, 0);
}

static void
held_as_any_command (int ahead)
{
  struct coffer_sandbox_spec spec = strict;
  struct standing cold, copy;
  char a[8192], b[8192];
  char handle[32];

  assert_int_equal (open_with (waiting, NULL), COFFER_OK);
  snprintf (handle, sizeof handle, "%s", host.exec);
  if (ahead)
    spec.warm = handle;
  stand (&cold, "cold", NULL);
  stand_in (&copy, "copy", &spec, handle);
  same_status (&copy, &cold);
  file_of (cold.pid, "limits", a, sizeof a);
  file_of (copy.pid, "limits", b, sizeof b);
  assert_string_equal (b, a);
  file_of (cold.pid, "comm", a, sizeof a);
  file_of (copy.pid, "comm", b, sizeof b);
  assert_string_equal (b, a);
  at_home (&cold);
  at_home (&copy);
  only_streams (&cold);
  only_streams (&copy);
  leads (&copy);
  fall (&cold);
  fall (&copy);
}

static void
test_it_is_held_as_any_command (void **state)
{
  (void) state;
  held_as_any_command (0);
}

/* ---- ahead -------------------------------------------------------------- */

static void
test_one_that_waited_is_held_as_any_command (void **state)
{
  (void) state;
  held_as_any_command (1);
}

/* A copy has been made and has come in by then. */
static int
waiting_in (const char *id)
{
  int pid;

  while ((pid = child_of (host.pid, NULL)) == 0)
    poll (NULL, 0, 5);
  assert_int_equal (host.ops->exec_list (host_call (&host, 5000), host.self, id,
                                         NULL), COFFER_OK);
  assert_string_equal (host.infos, "");
  return pid;
}

static void
test_what_waits_is_the_command_that_begins (void **state)
{
  struct coffer_sandbox_spec spec = strict;
  int single, init, pid;
  char expected[64];

  (void) state;
  for (single = 0; single < 2; single++) {
    spec.single_exec = single != 0;
    host.warm = spec.warm = warm ();
    create ("waits", &spec);
    init = host.pid;
    pid = waiting_in ("waits");
    assert_int_equal (host_run (&host, "waits", python, NULL,
                                "print(os.getpid(), count)", 0, &outcome),
                      COFFER_OK);
    /* Its number inside, where the init is 1, and nothing else was. */
    assert_true (pid != init);
    snprintf (expected, sizeof expected, "%d 1\n", atoi (outcome.out));
    assert_string_equal (outcome.out, expected);
    assert_int_equal (host.exit.code, 0);
    host_kill (&host, "waits");
  }
  host.warm = NULL;
}

/* What it did while it waited was nobody's. */
static void
test_time_begins_with_the_command (void **state)
{
  static const char busy[]
    = "import os, time\n"
      "def prepare(modules): return []\n"
      "def ahead():\n"
      "    until = time.process_time() + 0.3\n"
      "    while time.process_time() < until: pass\n"
      "def run():\n"
      "    os.read(0, 1)\n"
      "    os._exit(0)\n";
  struct coffer_sandbox_spec spec = strict;
  char handle[32], text[4096];
  unsigned long user, system;
  int pid;

  (void) state;
  assert_int_equal (open_with (busy, NULL), COFFER_OK);
  snprintf (handle, sizeof handle, "%s", host.exec);
  host.warm = spec.warm = handle;
  create ("busy", &spec);
  pid = waiting_in ("busy");
  /* In ticks of 10 ms, each rounded down: it is all but through. */
  do {
    poll (NULL, 0, 5);
    file_of (pid, "stat", text, sizeof text);
    assert_int_equal (sscanf (strrchr (text, ')'),
                              ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                              "%lu %lu", &user, &system), 2);
  } while (user + system < 28);
  assert_int_equal (host_run (&host, "busy", python, NULL, "x", 0, &outcome),
                    COFFER_OK);
  assert_true (host.exit.cpu_us < 200000);
  host.warm = NULL;
  host_kill (&host, "busy");
}

static void
test_a_command_does_without_what_waits (void **state)
{
  struct coffer_sandbox_spec spec = strict;
  int pid;

  (void) state;
  spec.warm = warm ();
  create ("without", &spec);
  pid = waiting_in ("without");
  assert_int_equal (host_run (&host, "without", python, NULL, NULL, 0,
                              &outcome), COFFER_OK);
  assert_string_equal (outcome.out, "cold");
  assert_int_equal (kill (pid, 0), -1);
  host_kill (&host, "without");
}

static void
test_one_that_has_ended_is_no_command (void **state)
{
  struct coffer_sandbox_spec spec = strict;
  int pid;

  (void) state;
  host.warm = spec.warm = warm ();
  create ("ended", &spec);
  pid = waiting_in ("ended");
  assert_int_equal (kill (pid, SIGKILL), 0);
  while (kill (pid, 0) == 0)
    poll (NULL, 0, 5);
  assert_int_equal (host_run (&host, "ended", python, NULL, "print(1)", 0,
                              &outcome), COFFER_OK);
  assert_string_equal (outcome.out, "");
  assert_true (host.exit.failure != NULL);
  host.warm = NULL;
  host_kill (&host, "ended");
}

static void
test_who_may_wait_inside (void **state)
{
  struct coffer_sandbox_spec spec = strict;

  (void) state;
  spec.warm = "w0";
  assert_int_equal (host_create (&host, "wrong", &spec), COFFER_NOT_FOUND);
  spec.warm = warm ();
  spec.filter = NULL;
  assert_int_equal (host_create (&host, "wrong", &spec), COFFER_CONFLICT);
}

/* The groups that a process is in, less the sandbox's own name. */
static void
groups_of (int pid, char *out, size_t size)
{
  char *at, *end;

  file_of (pid, "cgroup", out, size);
  while ((at = strstr (out, "coffer-")) != NULL) {
    end = at + strcspn (at, "/\n");
    memmove (at, end, strlen (end) + 1);
  }
}

static void
test_it_is_in_the_same_groups (void **state)
{
  struct coffer_sandbox_spec limited = strict;
  struct standing cold, copy;
  char a[8192], b[8192], handle[32];
  int single;

  (void) state;
  limited.memory_bytes = 64 << 20;
  limited.pids = 16;
  limited.cpu_millis = 500;
  assert_int_equal (open_with (waiting, NULL), COFFER_OK);
  snprintf (handle, sizeof handle, "%s", host.exec);
  for (single = 0; single < 2; single++) {
    limited.single_exec = single != 0;
    stand_in (&cold, "cold", &limited, NULL);
    stand_in (&copy, "copy", &limited, handle);
    groups_of (cold.pid, a, sizeof a);
    groups_of (copy.pid, b, sizeof b);
    assert_string_equal (b, a);
    file_of (cold.pid, "limits", a, sizeof a);
    file_of (copy.pid, "limits", b, sizeof b);
    assert_string_equal (b, a);
    fall (&cold);
    fall (&copy);
  }
  create ("memory", &limited);
  host.warm = warm ();
  assert_int_equal (host_run (&host, "memory", python, NULL,
                              "a = bytearray(200 << 20)", 0, &outcome),
                    COFFER_OK);
  host.warm = NULL;
  /* By the group, or by its own limit where there is none. */
  assert_true (host.exit.oom || strstr (outcome.err, "MemoryError") != NULL);
  host_kill (&host, "memory");
}

/* What is tried, and what comes of it: the same, whichever way it came. */
static const char attempts[]
  = "import os, sys, errno\n"
    "def attempt(name, call):\n"
    "    try: got = call()\n"
    "    except OSError as e: got = errno.errorcode[e.errno]\n"
    "    except Exception as e: got = type(e).__name__\n"
    "    print(name, got if isinstance(got, str) else 'done')\n"
    "def opened(path, flags):\n"
    "    return lambda: os.open(path, flags) and 'opened'\n"
    "for path in ('/', '/etc/passwd', '/etc/shadow', '/proc/self/exe',\n"
    "    '/proc/1/status', '/proc/1/mem', '/proc/1/environ', '/sys',\n"
    "    '/proc/self/mem', '/proc/version', '/dev/null', '/usr/bin/env',\n"
    "    '/proc/self/maps', '/proc/self/root/usr', '/proc/1/root'):\n"
    "    attempt('read ' + path, opened(path, os.O_RDONLY))\n"
    "    attempt('write ' + path, opened(path, os.O_RDWR))\n"
    "for path in ('/new', '/usr/new', '/tmp/new', '/workspace/new',\n"
    "    '/dev/shm/new', '/dev/new', '/proc/new'):\n"
    "    attempt('make ' + path, opened(path, os.O_RDWR | os.O_CREAT))\n"
    "attempt('ids', lambda: str(os.getuid()) + ' ' + str(os.getgid()))\n"
    "attempt('one', lambda: str(os.getpid() > 1))\n"
    "attempt('fork', os.fork)\n"
    "attempt('kill', lambda: os.kill(1, 9))\n"
    "attempt('exec', lambda: os.execv('/bin/true', ['true']))\n"
    "attempt('chmod', lambda: os.chmod('/tmp/new', 0o4755))\n"
    "attempt('setuid', lambda: os.setuid(0))\n"
    "attempt('nice', lambda: os.nice(-1))\n"
    "attempt('pipe', os.pipe)\n"
    "attempt('chdir', lambda: os.chdir('/'))\n"
    "attempt('link', lambda: os.link('/tmp/new', '/tmp/other'))\n"
    "attempt('sched', lambda: os.sched_setscheduler(0, 1,"
    " os.sched_param(1)))\n"
    "import _socket\n"
    "attempt('socket', lambda: _socket.socket(2, 1))\n"
    "attempt('unix', lambda: _socket.socket(1, 1))\n"
    "sys.stdout.flush()\n";

static void
test_what_it_tries_comes_to_the_same (void **state)
{
  const char *argv[] = { "python3", "-I", "-S", "-c", attempts, NULL };
  static char cold[HOST_TEXT];

  (void) state;
  create ("tries", &strict);
  assert_int_equal (host_run (&host, "tries", argv, NULL, NULL, 0, &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.err, "");
  memcpy (cold, outcome.out, sizeof cold);
  assert_int_equal (host_kill (&host, "tries"), COFFER_OK);
  assert_non_null (strstr (cold, "read /etc/passwd opened"));
  assert_non_null (strstr (cold, "fork EPERM"));
  run (attempts, 0);
  assert_string_equal (outcome.err, "");
  assert_string_equal (outcome.out, cold);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_it_is_held_as_any_command),
    cmocka_unit_test (test_one_that_waited_is_held_as_any_command),
    cmocka_unit_test (test_what_waits_is_the_command_that_begins),
    cmocka_unit_test (test_time_begins_with_the_command),
    cmocka_unit_test (test_a_command_does_without_what_waits),
    cmocka_unit_test (test_one_that_has_ended_is_no_command),
    cmocka_unit_test (test_who_may_wait_inside),
    cmocka_unit_test (test_it_is_in_the_same_groups),
    cmocka_unit_test (test_what_it_tries_comes_to_the_same),
  };

  if (!built ()) {
    puts ("1..0 # SKIP missing: Python.h");
    return 0;
  }
  return LINUX_TESTS_RUN (&host, "linux-warm", tests);
}
