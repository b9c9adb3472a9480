/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of `linux` that are copies of an interpreter which stands ready: what
 * they do, and that they are held to all that a command is which was started in
 * the sandbox. */

#include "harness.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "linux-host.h"

static struct linux_host host;
static struct outcome outcome;

static const char *const python[]
  = { "python3", "-I", "-S", "-c", "import posix\nposix.write(1, b'cold')",
      NULL };

/* Runs what it reads; `told` is of its modules. */
static const char program[]
  = "import os, sys\n"
    "count = 0\n"
    "def prepare(modules):\n"
    "    missing = []\n"
    "    for name in modules:\n"
    "        try: __import__(name)\n"
    "        except ImportError: missing.append(name)\n"
    "    return missing\n"
    "def run():\n"
    "    global count\n"
    "    count += 1\n"
    "    code = b''\n"
    "    while piece := os.read(0, 65536):\n"
    "        code += piece\n"
    "    exec(compile(code, '<test>', 'exec'), globals())\n"
    "    sys.stdout.flush()\n"
    "    os._exit(0)\n";

static const struct coffer_sandbox_spec strict
  = { .size = sizeof strict, .lifeline = -1, .filter = "strict" };

static int32_t
open_with (const char *text, const char *const *modules)
{
  const struct coffer_warm_open_opts opts = { .size = sizeof opts,
                                              .modules = modules };
  const int in = coffer_memfd_sealed ("program", text, strlen (text));
  int32_t code;

  assert_true (in >= 0);
  code = host.ops->warm_open (host_call (&host, 60000), host.self, "minimal",
                              in, &opts);
  close (in);
  return code;
}

static const char *
warm (void)
{
  static char handle[32];

  if (open_with (program, NULL) != COFFER_OK)
    fail_msg ("%s", host.error);
  snprintf (handle, sizeof handle, "%s", host.exec);
  return handle;
}

static void
create (const char *id, const struct coffer_sandbox_spec *spec)
{
  if (host_create (&host, id, spec) != COFFER_OK)
    fail_msg ("%s", host.error);
}

/* In a sandbox of its own; what the last one was stays known. */
static void
run (const char *code, uint64_t timeout_ms)
{
  static unsigned n;
  char id[32];

  snprintf (id, sizeof id, "warm%u", n++);
  create (id, &strict);
  host.warm = warm ();
  if (host_run (&host, id, python, NULL, code, timeout_ms, &outcome)
      != COFFER_OK)
    fail_msg ("%s", host.error);
  host.warm = NULL;
  assert_int_equal (host_kill (&host, id), COFFER_OK);
}

/* ---- what they do ------------------------------------------------------- */

static void
test_runs (void **state)
{
  (void) state;
  run ("print('six times seven is', 6 * 7)", 0);
  assert_string_equal (outcome.err, "");
  assert_string_equal (outcome.out, "six times seven is 42\n");
  assert_int_equal (host.exit.code, 0);
  assert_true (host.exit.duration_us > 0);
  run ("os._exit(7)", 0);
  assert_int_equal (host.exit.code, 7);
  run ("sys.stderr.write('oh'); sys.stderr.flush(); import faulthandler\n"
       "faulthandler._read_null()", 0);
  assert_string_equal (outcome.err, "oh");
  assert_int_equal (host.exit.signal, SIGSEGV);
}

static void
test_nothing_is_left_for_the_next (void **state)
{
  static const char code[]
    = "print(count, os.listdir('/tmp'), os.listdir('.'))\n"
      "open('/tmp/left', 'w').write('x'); open('left', 'w').write('x')\n"
      "os.environ['LEFT'] = 'x'; count = 7\n"
      "print('LEFT' in os.environ, os.getcwd())\n";
  static const char expected[] = "1 [] []\nTrue /workspace\n";
  int i;

  (void) state;
  for (i = 0; i < 3; i++) {
    run (code, 0);
    assert_string_equal (outcome.err, "");
    assert_string_equal (outcome.out, expected);
  }
  run ("print('LEFT' in os.environ)", 0);
  assert_string_equal (outcome.out, "False\n");
}

static void
test_chance_is_not_the_last_ones (void **state)
{
  static const char *const modules[] = { "random", NULL };
  char first[64];
  char handle[32];

  (void) state;
  if (open_with (program, modules) != COFFER_OK)
    fail_msg ("%s", host.error);
  snprintf (handle, sizeof handle, "%s", host.exec);
  host.warm = handle;
  create ("chance1", &strict);
  assert_int_equal (host_run (&host, "chance1", python, NULL,
                              "import random; print(random.random())", 0,
                              &outcome), COFFER_OK);
  snprintf (first, sizeof first, "%.60s", outcome.out);
  create ("chance2", &strict);
  assert_int_equal (host_run (&host, "chance2", python, NULL,
                              "import random; print(random.random())", 0,
                              &outcome), COFFER_OK);
  host.warm = NULL;
  assert_true (strncmp (first, "0.", 2) == 0);
  assert_string_not_equal (first, outcome.out);
  host_kill (&host, "chance1");
  host_kill (&host, "chance2");
}

static void
test_environment_and_folder (void **state)
{
  const char *env[] = { "A=1", "USER=me", NULL };

  (void) state;
  create ("environment", &strict);
  host.warm = warm ();
  assert_int_equal (
    host_run (&host, "environment", python, env,
              "print(sorted(os.environ.items()))", 0, &outcome),
    COFFER_OK);
  host.warm = NULL;
  assert_string_equal (
    outcome.out,
    "[('A', '1'), ('HOME', '/workspace'), ('LANG', 'C.UTF-8'), ('PATH', "
    "'/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'), "
    "('TMPDIR', '/tmp'), ('USER', 'me')]\n");
  assert_int_equal (host_kill (&host, "environment"), COFFER_OK);
}

static void
test_time_ends_it (void **state)
{
  (void) state;
  run ("print('on', flush=True)\nwhile True: pass", 300);
  assert_string_equal (outcome.out, "on\n");
  assert_int_equal (host.exit.timed_out, 1);
  assert_int_equal (host.exit.signal, SIGKILL);
  assert_string_equal (host.limits, "timeout ");
}

static void
test_a_sandbox_for_one (void **state)
{
  struct coffer_sandbox_spec spec = strict;

  (void) state;
  spec.single_exec = 1;
  create ("single", &spec);
  host.warm = warm ();
  assert_int_equal (host_run (&host, "single", python, NULL, "print(1)", 0,
                              &outcome), COFFER_OK);
  assert_string_equal (outcome.out, "1\n");
  assert_int_equal (host.exit.code, 0);
  host_kill (&host, "single");
  create ("single", &spec);
  assert_int_equal (host_run (&host, "single", python, NULL,
                              "while True: pass", 200, &outcome), COFFER_OK);
  assert_int_equal (host.exit.timed_out, 1);
  host.warm = NULL;
  host_kill (&host, "single");
}

/* ---- what they are held to ---------------------------------------------- */

/* The only child of an init. */
static int
child_of (int init)
{
  char path[64], text[4096], *at;
  DIR *dir = opendir ("/proc");
  struct dirent *entry;
  int found = 0, parent, fd;
  ssize_t n;

  assert_non_null (dir);
  while ((entry = readdir (dir)) != NULL) {
    if (!isdigit ((unsigned char) entry->d_name[0]))
      continue;
    snprintf (path, sizeof path, "/proc/%.20s/stat", entry->d_name);
    fd = open (path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read (fd, text, sizeof text - 1);
    coffer_fd_close (&fd);
    text[n > 0 ? n : 0] = '\0';
    at = strrchr (text, ')');
    if (at != NULL && sscanf (at, ") %*c %d", &parent) == 1 && parent == init)
      found = atoi (entry->d_name);
  }
  closedir (dir);
  return found;
}

static void
file_of (int pid, const char *name, char *out, size_t size)
{
  char path[64];
  ssize_t n;
  int fd;

  snprintf (path, sizeof path, "/proc/%d/%s", pid, name);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    fail_msg ("%s: %s", path, strerror (errno));
  n = coffer_read_all (fd, out, size - 1);
  assert_true (n >= 0);
  out[n] = '\0';
  close (fd);
}

static void
link_of (int pid, const char *name, char *out, size_t size)
{
  char path[64];
  ssize_t n;

  snprintf (path, sizeof path, "/proc/%d/%s", pid, name);
  n = readlink (path, out, size - 1);
  if (n < 0)
    fail_msg ("%s: %s", path, strerror (errno));
  out[n] = '\0';
}

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
  standing->pid = child_of (standing->init);
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

/* Like the program above, but it waits instead of reading code. */
static const char waiting[]
  = "import posix\n"
    "def prepare(modules): return []\n"
    "def run():\n"
    "    posix.write(1, b'up\\n')\n"
    "    posix.read(0, 1)\n";

static void
line_of (const char *text, const char *key, char *out, size_t size)
{
  const char *at = strstr (text, key);

  if (at == NULL)
    fail_msg ("no %s", key);
  snprintf (out, size, "%.*s", (int) strcspn (at, "\n"), at);
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

  while ((pid = child_of (host.pid)) == 0)
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

/* ---- what stands ready -------------------------------------------------- */

/* A child of this process that is alive and has an interpreter's name. */
static int
interpreter (void)
{
  char path[64], state;
  DIR *dir = opendir ("/proc");
  struct dirent *entry;
  int found = 0, fd;
  char stat[4096], *at;
  int parent;

  assert_non_null (dir);
  while ((entry = readdir (dir)) != NULL) {
    if (!isdigit ((unsigned char) entry->d_name[0]))
      continue;
    snprintf (path, sizeof path, "/proc/%.20s/stat", entry->d_name);
    fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      continue;
    memset (stat, 0, sizeof stat);
    if (read (fd, stat, sizeof stat - 1) > 0
        && (at = strrchr (stat, ')')) != NULL
        && sscanf (at, ") %c %d", &state, &parent) == 2 && state != 'Z'
        && parent == getpid () && strstr (stat, "(python3)") != NULL)
      found = atoi (entry->d_name);
    close (fd);
  }
  closedir (dir);
  return found;
}

static void
test_it_has_no_rights_itself (void **state)
{
  char status[8192], line[256], own[128], ours[128];
  int pid;

  (void) state;
  warm ();
  pid = interpreter ();
  assert_true (pid > 0);
  file_of (pid, "status", status, sizeof status);
  line_of (status, "CapEff:", line, sizeof line);
  assert_string_equal (line, "CapEff:\t0000000000000000");
  line_of (status, "CapPrm:", line, sizeof line);
  assert_string_equal (line, "CapPrm:\t0000000000000000");
  line_of (status, "NoNewPrivs:", line, sizeof line);
  assert_string_equal (line, "NoNewPrivs:\t1");
  line_of (status, "Threads:", line, sizeof line);
  assert_string_equal (line, "Threads:\t1");
  if (geteuid () != 0)
    return;
  line_of (status, "CapBnd:", line, sizeof line);
  assert_string_equal (line, "CapBnd:\t0000000000000000");
  line_of (status, "Groups:", line, sizeof line);
  assert_string_equal (line, "Groups:\t ");
  link_of (pid, "ns/net", own, sizeof own);
  link_of (getpid (), "ns/net", ours, sizeof ours);
  assert_string_not_equal (own, ours);
  link_of (pid, "ns/mnt", own, sizeof own);
  link_of (getpid (), "ns/mnt", ours, sizeof ours);
  assert_string_not_equal (own, ours);
  snprintf (line, sizeof line, "/proc/%d/root/etc/shadow", pid);
  assert_int_equal (access (line, F_OK), -1);
  snprintf (line, sizeof line, "/proc/%d/root/home", pid);
  assert_int_equal (access (line, F_OK), -1);
}

static void
test_the_handle_outlives_it (void **state)
{
  int pid;

  (void) state;
  run ("print(1)", 0);
  assert_true (interpreter () > 0);
  while ((pid = interpreter ()) != 0)
    assert_int_equal (kill (pid, SIGKILL), 0);
  run ("print(2)", 0);
  assert_string_equal (outcome.out, "2\n");
  assert_true (interpreter () > 0);
}

static void
test_threads_are_refused (void **state)
{
  static const char threaded[]
    = "import _thread, time\n"
      "def prepare(modules):\n"
      "    _thread.start_new_thread(time.sleep, (60,))\n"
      "    return []\n"
      "def run(): pass\n";

  (void) state;
  assert_int_equal (open_with (threaded, NULL), COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.error, "thread"));
}

static void
test_programs_that_fail (void **state)
{
  static const char *const wrong[]
    = { "this is no python", "def prepare(m): raise ValueError('wrong')",
        "import posix\nposix._exit(3)" };
  size_t i;

  (void) state;
  assert_int_equal (open_with ("", NULL), COFFER_INVALID);
  for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal (open_with (wrong[i], NULL), COFFER_UNAVAILABLE);
    assert_true (strlen (host.error) > 0);
  }
}

static void
test_the_same_is_opened_once (void **state)
{
  static const char *const none[] = { "no_such_module", NULL };
  static const char *const odd[] = { "-c", NULL };
  char first[32];

  (void) state;
  snprintf (first, sizeof first, "%s", warm ());
  assert_string_equal (warm (), first);
  assert_int_equal (open_with (program, none), COFFER_OK);
  assert_string_not_equal (host.exec, first);
  assert_int_equal (open_with (program, odd), COFFER_INVALID);
}

/* ---- refusals ----------------------------------------------------------- */

static int32_t
start_with (const char *id, const char *handle, uint32_t background)
{
  struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .warm = handle, .background = background };

  return host.ops->exec_start (host_call (&host, 20000), host.self, id, python,
                               NULL, NULL, -1, -1, -1, &opts);
}

static void
test_refusals (void **state)
{
  const struct coffer_sandbox_spec general
    = { .size = sizeof general, .lifeline = -1 };
  char handle[32];

  (void) state;
  snprintf (handle, sizeof handle, "%s", warm ());
  assert_int_equal (host.ops->warm_open (host_call (&host, 5000), host.self,
                                         "minimal", -1, NULL),
                    COFFER_INVALID);
  create ("refuse", &strict);
  assert_int_equal (start_with ("refuse", "w99", 0), COFFER_NOT_FOUND);
  assert_int_equal (start_with ("refuse", "", 0), COFFER_NOT_FOUND);
  assert_int_equal (start_with ("refuse", handle, 1), COFFER_UNSUPPORTED);
  assert_int_equal (start_with ("nobody", handle, 0), COFFER_NOT_FOUND);
  assert_int_equal (start_with ("refuse", handle, 0), COFFER_OK);
  assert_int_equal (start_with ("refuse", handle, 0), COFFER_CONFLICT);
  assert_int_equal (host_kill (&host, "refuse"), COFFER_OK);
  create ("general", &general);
  assert_int_equal (start_with ("general", handle, 0), COFFER_CONFLICT);
  assert_int_equal (host_kill (&host, "general"), COFFER_OK);
}

/* Whoever comes in has rights over the sandbox, so that nobody is even sent for
 * where something ran. */
static void
test_a_refusal_sends_for_nobody (void **state)
{
  char handle[32];
  int pid;

  (void) state;
  snprintf (handle, sizeof handle, "%s", warm ());
  create ("used", &strict);
  assert_int_equal (host_run (&host, "used", python, NULL, NULL, 0, &outcome),
                    COFFER_OK);
  pid = interpreter ();
  assert_true (pid > 0);
  assert_int_equal (kill (pid, SIGSTOP), 0);
  assert_int_equal (start_with ("used", handle, 0), COFFER_CONFLICT);
  assert_non_null (strstr (host.error, "started in this sandbox before"));
  assert_int_equal (kill (pid, SIGCONT), 0);
  assert_int_equal (host_kill (&host, "used"), COFFER_OK);
}

/* ---- handles ------------------------------------------------------------ */

static void
test_handles_are_given_back (void **state)
{
  char first[32], used[32], text[8192];
  int i;

  (void) state;
  snprintf (used, sizeof used, "%s", warm ());
  assert_int_equal (open_with (waiting, NULL), COFFER_OK);
  snprintf (first, sizeof first, "%s", host.exec);
  for (i = 0; i < 16; i++) {
    snprintf (text, sizeof text, "number = %d\n%s", i, program);
    assert_int_equal (open_with (text, NULL), COFFER_OK);
    /* One that is used stays. */
    assert_string_equal (warm (), used);
  }
  create ("back", &strict);
  assert_int_equal (start_with ("back", first, 0), COFFER_NOT_FOUND);
  assert_int_equal (start_with ("back", used, 0), COFFER_OK);
  assert_int_equal (host_kill (&host, "back"), COFFER_OK);
  assert_int_equal (open_with (waiting, NULL), COFFER_OK);
  assert_string_not_equal (host.exec, first);
}

/* ---- many --------------------------------------------------------------- */

#define THREADS 4
#define TURNS 8

struct many {
  const char *handle;
  unsigned index;
  int failed;
};

static void *
many_run (void *data)
{
  struct many *many = data;
  struct coffer_exec_start_opts opts = { .size = sizeof opts,
                                         .warm = many->handle };
  char id[32], byte;
  int in[2], out[2], turn;

  for (turn = 0; turn < TURNS; turn++) {
    snprintf (id, sizeof id, "many%u-%d", many->index, turn);
    if (host_create (&host, id, &strict) != COFFER_OK
        || pipe2 (in, O_CLOEXEC) != 0 || pipe2 (out, O_CLOEXEC) != 0
        || write (in[1], "print(4)", 8) != 8)
      many->failed++;
    close (in[1]);
    if (host.ops->exec_start (host_call (&host, 20000), host.self, id, python,
                              NULL, NULL, in[0], out[1], -1, &opts)
        != COFFER_OK)
      many->failed++;
    close (in[0]);
    close (out[1]);
    if (read (out[0], &byte, 1) != 1 || byte != '4')
      many->failed++;
    close (out[0]);
    if (host_kill (&host, id) != COFFER_OK)
      many->failed++;
  }
  return NULL;
}

static void
test_many_at_once (void **state)
{
  struct many many[THREADS];
  pthread_t threads[THREADS];
  char handle[32];
  unsigned i;

  (void) state;
  snprintf (handle, sizeof handle, "%s", warm ());
  for (i = 0; i < THREADS; i++) {
    many[i] = (struct many){ handle, i, 0 };
    assert_int_equal (pthread_create (&threads[i], NULL, many_run, &many[i]),
                      0);
  }
  for (i = 0; i < THREADS; i++) {
    pthread_join (threads[i], NULL);
    assert_int_equal (many[i].failed, 0);
  }
  assert_int_equal (child_of (interpreter ()), 0);
}

/* Whether coffer was built with it. */
static int
built (void)
{
  const char *build = getenv ("COFFER_BUILD");
  char path[4096];

  snprintf (path, sizeof path, "%s/plugins/linux/coffer-warm.so",
            build ? build : ".");
  return access (path, F_OK) == 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_runs),
    cmocka_unit_test (test_nothing_is_left_for_the_next),
    cmocka_unit_test (test_chance_is_not_the_last_ones),
    cmocka_unit_test (test_environment_and_folder),
    cmocka_unit_test (test_time_ends_it),
    cmocka_unit_test (test_a_sandbox_for_one),
    cmocka_unit_test (test_it_is_held_as_any_command),
    cmocka_unit_test (test_one_that_waited_is_held_as_any_command),
    cmocka_unit_test (test_what_waits_is_the_command_that_begins),
    cmocka_unit_test (test_time_begins_with_the_command),
    cmocka_unit_test (test_a_command_does_without_what_waits),
    cmocka_unit_test (test_one_that_has_ended_is_no_command),
    cmocka_unit_test (test_who_may_wait_inside),
    cmocka_unit_test (test_it_is_in_the_same_groups),
    cmocka_unit_test (test_what_it_tries_comes_to_the_same),
    cmocka_unit_test (test_it_has_no_rights_itself),
    cmocka_unit_test (test_the_handle_outlives_it),
    cmocka_unit_test (test_threads_are_refused),
    cmocka_unit_test (test_programs_that_fail),
    cmocka_unit_test (test_the_same_is_opened_once),
    cmocka_unit_test (test_refusals),
    cmocka_unit_test (test_a_refusal_sends_for_nobody),
    cmocka_unit_test (test_handles_are_given_back),
    cmocka_unit_test (test_many_at_once),
  };

  if (!built ()) {
    puts ("1..0 # SKIP missing: Python.h");
    return 0;
  }
  return LINUX_TESTS_RUN (&host, "linux-warm", tests);
}
