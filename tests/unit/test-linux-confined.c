/* SPDX-License-Identifier: Apache-2.0 */
/* What a program in a sandbox of `linux` cannot do.  The attempts are made by
 * linux-payload, uploaded into a fresh sandbox each; the verdict comes from
 * outside where there is something to be seen from there. */

#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <coffer/fd.h>

#include "linux-host.h"

static struct linux_host host;
static struct outcome outcome;

static void
attempt (const char *name, const char *argument)
{
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .single_exec = 1 };
  const char *argv[] = { "./payload", name, argument, NULL };

  if (host_create (&host, "confined", &spec) != COFFER_OK)
    fail_msg ("%s", host.error);
  host_payload (&host, "confined");
  assert_int_equal (host_run (&host, "confined", argv, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_int_equal (host_kill (&host, "confined"), COFFER_OK);
}

static void
attempt_held (const char *name, const char *argument)
{
  attempt (name, argument);
  if (host.exit.code != 0)
    fail_msg ("%s: code %d signal %d\n%s%s", name, host.exit.code,
              host.exit.signal, outcome.out, outcome.err);
}

#define HELD(name)                                                            \
  static void test_##name (void **state)                                      \
  {                                                                           \
    (void) state;                                                             \
    attempt_held (#name, NULL);                                               \
  }
HELD (sockets)
HELD (namespaces)
HELD (mounts)
HELD (setuid)
HELD (kernel)
HELD (terminal)
HELD (init)
HELD (proc)
HELD (system)
HELD (descriptors)
HELD (foreign)

/* Listeners outside that nobody may reach. */
static void
test_network (void **state)
{
  struct sockaddr_in in = { .sin_family = AF_INET };
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  socklen_t size = sizeof in;
  char argument[128];
  int tcp, local;

  (void) state;
  in.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  tcp = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  assert_int_equal (bind (tcp, (struct sockaddr *) &in, sizeof in), 0);
  assert_int_equal (listen (tcp, 4), 0);
  assert_int_equal (getsockname (tcp, (struct sockaddr *) &in, &size), 0);
  snprintf (argument, sizeof argument, "%d coffer-test-%d",
            ntohs (in.sin_port), (int) getpid ());
  snprintf (un.sun_path + 1, sizeof un.sun_path - 1, "coffer-test-%d",
            (int) getpid ());
  local = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  assert_int_equal (bind (local, (struct sockaddr *) &un,
                          (socklen_t) (sizeof (sa_family_t) + 1
                                       + strlen (un.sun_path + 1))),
                    0);
  assert_int_equal (listen (local, 4), 0);
  attempt_held ("network", argument);
  assert_int_equal (accept (tcp, NULL, NULL), -1);
  assert_int_equal (errno, EAGAIN);
  assert_int_equal (accept (local, NULL, NULL), -1);
  assert_int_equal (errno, EAGAIN);
  close (tcp);
  close (local);
}

static void
test_host_files (void **state)
{
  static const char canary[] = "a canary of the host";
  char path[] = "/var/tmp/coffer-canary-XXXXXX";
  int fd = mkstemp (path);

  (void) state;
  assert_true (fd >= 0);
  assert_int_equal (fchmod (fd, 0666), 0);
  assert_int_equal (write (fd, canary, sizeof canary), sizeof canary);
  close (fd);
  attempt_held ("read", path);
  assert_null (strstr (outcome.out, "canary"));
  unlink (path);
  attempt_held ("read", "/etc/shadow");
  attempt_held ("read", "/etc/hostname");
  attempt_held ("read", "/root/.bashrc");
}

static void
run (const char *script)
{
  const char *argv[] = { "sh", "-c", script, NULL };

  if (host_run_once (&host, NULL, argv, 20000, &outcome) != COFFER_OK)
    fail_msg ("%s", host.error);
}

static void
test_status (void **state)
{
  (void) state;
  run ("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
  assert_string_equal (outcome.out,
                       "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n"
                       "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
                       "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"
                       "Seccomp:\t2\n");
}

static void
test_environment (void **state)
{
  (void) state;
  setenv ("COFFER_TEST_SECRET", "s3cret", 1);
  run ("env | sort");
  unsetenv ("COFFER_TEST_SECRET");
  assert_string_equal (
    outcome.out,
    "HOME=/workspace\nLANG=C.UTF-8\n"
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
    "PWD=/workspace\nTMPDIR=/tmp\nUSER=user\n");
}

/* Seen from inside the id is 1000; outside it is never root. */
static void
test_ids (void **state)
{
  unsigned inside, outside, count;
  char fact[64];

  (void) state;
  run ("id -u; id -g; id -G; cat /proc/self/uid_map");
  assert_int_equal (sscanf (outcome.out, "1000\n1000\n1000\n%u %u %u",
                            &inside, &outside, &count),
                    3);
  assert_int_equal (inside, 1000);
  assert_int_equal (count, 1);
  assert_int_not_equal (outside, 0);
  snprintf (fact, sizeof fact, "user ok 1000 is %u outside\n", outside);
  assert_int_equal (host_create (&host, "ids", NULL), COFFER_OK);
  assert_non_null (strstr (host.facts, geteuid () == 0 ? "user ok 1000 is "
                                                       : fact));
  assert_null (strstr (host.facts, "user ok 1000 is 0 outside"));
  assert_int_equal (host_kill (&host, "ids"), COFFER_OK);
  if (geteuid () != 0)
    assert_int_equal (outside, geteuid ());
}

static void
test_limits (void **state)
{
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .disk_bytes = 1 << 20, .inodes = 128,
                                      .pids = 16 };
  const char *disk[] = { "sh", "-c",
                         "head -c 3M /dev/zero > /workspace/big 2>/dev/null;"
                         "wc -c < /workspace/big; head -c 1M /dev/zero "
                         "> /dev/shm/more 2>/dev/null || echo full", NULL };
  const char *inodes[] = { "sh", "-c",
                           "i=0; while [ $i -lt 200 ]; do : > f$i || break; "
                           "i=$((i+1)); done 2>/dev/null; echo $i", NULL };
  const char *forks[] = { "./payload", "forks", "60", NULL };

  (void) state;
  assert_int_equal (host_run_once (&host, &spec, disk, 20000, &outcome), 0);
  assert_true (atol (outcome.out) <= 1 << 20);
  assert_non_null (strstr (outcome.out, "full"));
  assert_int_equal (host_run_once (&host, &spec, inodes, 20000, &outcome), 0);
  assert_true (atol (outcome.out) < 128);
  spec.disk_bytes = 0;
  assert_int_equal (host_create (&host, "forks", &spec), COFFER_OK);
  host_payload (&host, "forks");
  assert_int_equal (host_run (&host, "forks", forks, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_in_range (atol (outcome.out), 8, 16);
  assert_int_equal (host_kill (&host, "forks"), COFFER_OK);
}

/* What is counted for a user or the whole machine is never all used up by one
 * sandbox: terminals, inotify instances, queued signals. */
static void
test_shared_counts (void **state)
{
  int ptys = 0, instances = 0, signals = 0;

  (void) state;
  attempt ("counts", "");
  assert_int_equal (sscanf (outcome.out, "ptys %d inotify %d signals %d",
                            &ptys, &instances, &signals),
                    3);
  assert_in_range (ptys, 16, 256);
  assert_in_range (instances, 16, 64);
  assert_in_range (signals, 16, 4096);
}

/* Node, java and go ask for more addresses than memory, and tools for figures of
 * the machine; an interpreter's profile caps the former where it says so, and its
 * filter leaves of the latter the processes. */
static void
test_what_ordinary_programs_count_on (void **state)
{
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1 };
  const char *addresses[] = { "sh", "-c", "ulimit -v", NULL };
  const char *list[] = { "ls", "/proc", NULL };

  (void) state;
  run ("ulimit -v; cat /proc/uptime /proc/loadavg /proc/meminfo");
  assert_int_equal (strncmp (outcome.out, "unlimited\n", 10), 0);
  assert_non_null (strstr (outcome.out, "MemAvailable:"));
  assert_string_equal (outcome.err, "");
  spec.address_bytes = UINT64_C (1) << 30;
  assert_int_equal (host_run_once (&host, &spec, addresses, 20000, &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.out, "1048576\n");
  spec.filter = "strict";
  assert_int_equal (host_run_once (&host, &spec, list, 20000, &outcome),
                    COFFER_OK);
  assert_non_null (strstr (outcome.out, "self\n"));
  assert_null (strstr (outcome.out, "meminfo"));
  assert_null (strstr (outcome.out, "uptime"));
}

/* Standard streams can be opened by their names. */
static void
test_streams_by_name (void **state)
{
  (void) state;
  run ("echo one > /dev/stdout; echo two > /proc/self/fd/1; "
       "echo three > /dev/stderr; echo four | cat /dev/stdin");
  assert_string_equal (outcome.out, "one\ntwo\nfour\n");
  assert_string_equal (outcome.err, "three\n");
}

/* Soft limits of the maker do not reach into a sandbox. */
static void
test_soft_limits (void **state)
{
  struct rlimit old, low;

  (void) state;
  assert_int_equal (getrlimit (RLIMIT_FSIZE, &old), 0);
  low = old;
  low.rlim_cur = 64 << 20;
  assert_int_equal (setrlimit (RLIMIT_FSIZE, &low), 0);
  run ("ulimit -Sf; ulimit -Hc; ulimit -Sn; ulimit -Hl");
  assert_int_equal (setrlimit (RLIMIT_FSIZE, &old), 0);
  if (old.rlim_max == RLIM_INFINITY)
    assert_string_equal (outcome.out, "unlimited\n0\n1024\n0\n");
}

/* A limit of memory ends the command, and is named: where a control group
 * may be made. */
static void
test_memory (void **state)
{
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .single_exec = 1,
                                      .memory_bytes = 64 << 20 };
  const char *argv[] = { "./payload", "memory", "268435456", NULL };
  const char *after[] = { "true", NULL };

  (void) state;
  assert_int_equal (host_create (&host, "memory", &spec), COFFER_OK);
  if (strstr (host.facts, "limit.memory ok") == NULL) {
    assert_non_null (strstr (host.facts, "limit.memory degraded"));
    assert_int_equal (host_kill (&host, "memory"), COFFER_OK);
    skip_missing ("a writable control group");
  }
  host_payload (&host, "memory");
  assert_int_equal (host_run (&host, "memory", argv, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_int_equal (host.exit.signal, 9);
  assert_int_equal (host.exit.oom, 1);
  assert_string_equal (host.limits, "memory ");
  assert_null (strstr (outcome.out, "touched 268435456"));
  assert_int_equal (host_kill (&host, "memory"), COFFER_OK);
  /* Where there are several commands, only the one is blamed. */
  spec.single_exec = 0;
  assert_int_equal (host_create (&host, "memory", &spec), COFFER_OK);
  host_payload (&host, "memory");
  assert_int_equal (host_run (&host, "memory", argv, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_int_equal (host.exit.oom, 1);
  assert_int_equal (host_run (&host, "memory", after, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_int_equal (host.exit.code, 0);
  assert_int_equal (host.exit.oom, 0);
  assert_string_equal (host.limits, "");
  assert_int_equal (host_kill (&host, "memory"), COFFER_OK);
}

static void
test_tools (void **state)
{
  (void) state;
  run ("echo 'BEGIN{print 6*7}' > p && awk -f p && ls / > /dev/null "
       "&& echo x | sort && getconf _NPROCESSORS_ONLN > /dev/null "
       "&& date > /dev/null && free > /dev/null && uname -a > /dev/null");
  assert_string_equal (outcome.out, "42\nx\n");
  assert_string_equal (outcome.err, "");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_sockets), cmocka_unit_test (test_namespaces),
    cmocka_unit_test (test_mounts), cmocka_unit_test (test_setuid),
    cmocka_unit_test (test_kernel), cmocka_unit_test (test_terminal),
    cmocka_unit_test (test_init), cmocka_unit_test (test_proc),
    cmocka_unit_test (test_system),
    cmocka_unit_test (test_descriptors), cmocka_unit_test (test_foreign),
    cmocka_unit_test (test_network), cmocka_unit_test (test_host_files),
    cmocka_unit_test (test_status), cmocka_unit_test (test_environment),
    cmocka_unit_test (test_ids), cmocka_unit_test (test_limits),
    cmocka_unit_test (test_soft_limits), cmocka_unit_test (test_memory),
    cmocka_unit_test (test_tools), cmocka_unit_test (test_shared_counts),
    cmocka_unit_test (test_what_ordinary_programs_count_on),
    cmocka_unit_test (test_streams_by_name),
  };

  return LINUX_TESTS_RUN (&host, "linux: what a sandbox refuses", tests);
}
