/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker may do: for every permission a module that tries to go past
 * it, and one that uses it. */

#include "config.h"

#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider-fixture.h"

/* ---- what a worker may do ------------------------------------------------- */

static void
a_worker_starts_from_nothing (void **state)
{
  struct fixture *fixture;
  struct heard heard = { .facts = 0 };

  (void) state;
  setenv ("COFFER_TEST_LEAK", "yes", 1);
  fixture = fixture_start_plain ();
  assert_int_equal (fixture_say (fixture, "environment", 5000, -1, &heard,
                                 NULL), 0);
  /* 0 to 3, the module, two folders, this call's cancel; the maps are
   * closed. */
  assert_string_equal (heard.name, "open");
  assert_int_equal (atoi (heard.value), 8);
  fixture_free (fixture);
}

static void
files_need_permission (void **state)
{
  static const char *const paths[] = { "open:/etc/passwd", "open:/etc/shadow",
                                       "open:/root/.ssh/id_rsa",
                                       "open:/proc/self/environ",
                                       "open:/proc/1/environ", "open:/" };
  struct fixture *fixture = fixture_start_plain ();
  size_t i;

  (void) state;
  for (i = 0; i < sizeof paths / sizeof paths[0]; i++)
    fixture_assert_refused (fixture, paths[i], NULL);
  fixture_assert_refused (fixture, "write:/tmp/coffer-escape", "EACCES");
  fixture_assert_refused (fixture, "truncate:/etc/passwd", NULL);
  assert_int_equal (access ("/tmp/coffer-escape", F_OK), -1);
  fixture_assert_done (fixture, "runtime:mine", "");
  fixture_free (fixture);
}

/* By the filter, not by chance. */
static void
assert_filtered (struct fixture *fixture, const char *word)
{
  struct heard heard = { .facts = 0 };

  assert_int_equal (fixture_say (fixture, word, 5000, -1, &heard, NULL), 0);
  if (strcmp (heard.state, "refused") != 0
      || (strcmp (heard.value, "EPERM") != 0
          && strcmp (heard.value, "ENOSYS") != 0))
    fail_msg ("%s: %s %s", word, heard.state, heard.value);
}

static void
what_may_be_read_is_not_changed (void **state)
{
  static const char *const ways[] = { "chmod", "fchmodat", "fchmodat2",
                                      "setuid", "writable", "chown", "times",
                                      "setxattr", "watch", "lease", "owner",
                                      "signal" };
  char dir[] = "/tmp/coffer-unit-XXXXXX", path[64], word[128];
  auto_free char *yaml = NULL;
  struct fixture *fixture;
  struct stat before, after;
  void *remove = dir;
  size_t i;
  int fd;

  (void) state;
  assert_non_null (mkdtemp (dir));
  snprintf (path, sizeof path, "%s/file", dir);
  fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_true (fd >= 0 && fchmod (fd, 0644) == 0 && fstat (fd, &before) == 0);
  close (fd);
  yaml = text_printf ("permissions: {read: [%s]}", dir);
  fixture = fixture_start (&(struct fixture_spec){ .module = "hostile",
                                           .yaml = yaml });
  for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    snprintf (word, sizeof word, "change:%s:%s", ways[i], path);
    assert_filtered (fixture, word);
  }
  assert_int_equal (stat (path, &after), 0);
  assert_int_equal (before.st_mode, after.st_mode);
  assert_int_equal (before.st_mtim.tv_sec, after.st_mtim.tv_sec);
  /* What new files of a provider need works. */
  snprintf (word, sizeof word, "change:private:%s", path);
  fixture_assert_done (fixture, word, "");
  fixture_free (fixture);
  snprintf (word, sizeof word, "%s/file", dir);
  assert_int_equal (unlink (word), 0);
  assert_int_equal (rmdir (remove), 0);
}

static void
files_with_permission_open (void **state)
{
  char dir[] = "/tmp/coffer-unit-XXXXXX", word[128];
  auto_free char *yaml = NULL;
  struct fixture *fixture;
  void *remove = dir;

  (void) state;
  assert_non_null (mkdtemp (dir));
  yaml = text_printf ("permissions: {read: [/etc/passwd, /no/such], "
                      "write: [%s]}", dir);
  fixture = fixture_start (&(struct fixture_spec){ .module = "hostile",
                                           .yaml = yaml });
  fixture_assert_done (fixture, "open:/etc/passwd", "");
  fixture_assert_refused (fixture, "write:/etc/passwd", "EACCES");
  fixture_assert_refused (fixture, "open:/etc/group", "EACCES");
  snprintf (word, sizeof word, "write:%s/file", dir);
  fixture_assert_done (fixture, word, "");
  fixture_free (fixture);
  snprintf (word, sizeof word, "%s/file", dir);
  assert_int_equal (unlink (word), 0);
  assert_int_equal (rmdir (remove), 0);
}

/* A stranger's that asks to write `asked`, which is a link to `to` by the time it
 * is opened (NULL: no link); the error's number. */
static int
open_stranger (const char *asked, const char *to, int local)
{
  auto_free char *yaml = text_printf ("permissions: {write: [%s]}", asked);
  const struct fixture_spec spec
    = { .module = "hostile", .yaml = yaml, .local = local };
  struct fixture *fixture = fixture_new (&spec);
  auto_free char *target
    = to ? text_printf ("%s/%s", fixture->dir, to) : NULL;
  auto_error struct error *err = NULL;
  int number;

  if (target) {
    unlink (asked);
    assert_int_equal (symlink (target, asked), 0);
  }
  number = fixture_open (fixture, PROVIDER_WORKER, &err);
  fixture_free (fixture);
  return number;
}

/* Its receipt and the operator's keys among them: also by a link that leads
 * there, and as a part of more. */
static void
what_coffer_believes_is_nobodys_to_write (void **state)
{
  char dir[] = "/tmp/coffer-unit-XXXXXX", asked[64];
  void *remove = dir;

  (void) state;
  assert_non_null (mkdtemp (dir));
  snprintf (asked, sizeof asked, "%s/link", dir);
  assert_int_equal (open_stranger (asked, "state/providers", 1), E_DENIED);
  assert_int_equal (open_stranger (asked, "config", 1), E_DENIED);
  assert_int_equal (open_stranger (asked, "nothing/there", 1), 0);
  assert_int_equal (open_stranger (asked, ".", 1), E_DENIED);
  assert_int_equal (open_stranger ("/tmp", NULL, 1), E_DENIED);
  assert_int_equal (open_stranger ("/tmp", NULL, 0), 0);
  assert_int_equal (unlink (asked), 0);
  assert_int_equal (open_stranger (dir, NULL, 1), 0);
  assert_int_equal (rmdir (remove), 0);
}

static void
programs_need_permission (void **state)
{
  struct fixture *fixture = fixture_start_plain ();

  (void) state;
  fixture_assert_refused (fixture, "exec:/usr/bin/true", NULL);
  fixture_assert_refused (fixture, "fork", NULL);
  fixture_assert_refused (fixture, "memfd_exec", NULL);
  fixture_free (fixture);
  fixture = fixture_start (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {exec: [/usr/bin/true]}" });
  fixture_assert_done (fixture, "exec:/usr/bin/true", "0");
  fixture_assert_refused (fixture, "exec:/usr/bin/id", "EACCES");
  fixture_free (fixture);
}

static void
what_a_worker_started_ends_with_it (void **state)
{
  struct fixture *fixture = fixture_start (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {exec: [/usr/bin/true]}" });
  int status;

  (void) state;
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  fixture_assert_done (fixture, "fork", NULL);
  fixture_assert_done (fixture, "fork", NULL);
  fixture_assert_refused (fixture, "call:setsid", "EPERM");
  fixture_free (fixture);
  while (fixture_reap_within (5000, &status) > 0)
    ;
  assert_int_equal (fixture_children (getpid ()), 0);
}

static void
sockets_are_the_hosts (void **state)
{
  static const char *const kinds[] = { "inet", "udp", "inet6", "unix",
                                       "netlink", "vsock" };
  struct fixture *fixture = fixture_start_plain ();
  char word[64];
  size_t i;

  (void) state;
  for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    snprintf (word, sizeof word, "socket:%s", kinds[i]);
    fixture_assert_refused (fixture, word, "EPERM");
  }
  fixture_assert_done (fixture, "pair:stream", "");
  fixture_assert_refused (fixture, "pair:dgram", NULL);
  fixture_assert_refused (fixture, "connect:tcp:127.0.0.1:1", "code 4");
  fixture_assert_refused (fixture, "connect:unix:/run/dbus/system_bus_socket",
                  "code 4");
  fixture_assert_refused (fixture, "connect:nonsense", "code 4");
  fixture_free (fixture);
}

/* A server that echoes one line. */
struct echo {
  int listener, port;
  pthread_t thread;
  int stop;
};

static void *
echo_main (void *data)
{
  struct echo *echo = data;
  char line[64];
  ssize_t n;
  int fd;

  while ((fd = accept4 (echo->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
    n = read (fd, line, sizeof line);
    if (n > 0 && write (fd, line, n) < 0)
      n = 0;
    close (fd);
  }
  return NULL;
}

static void
echo_start (struct echo *echo)
{
  struct sockaddr_in address = { .sin_family = AF_INET };
  socklen_t size = sizeof address;

  address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  echo->listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal (bind (echo->listener, (struct sockaddr *) &address,
                          sizeof address), 0);
  assert_int_equal (listen (echo->listener, 8), 0);
  getsockname (echo->listener, (struct sockaddr *) &address, &size);
  echo->port = ntohs (address.sin_port);
  pthread_create (&echo->thread, NULL, echo_main, echo);
}

static void
echo_stop (struct echo *echo)
{
  shutdown (echo->listener, SHUT_RDWR);
  pthread_join (echo->thread, NULL);
  close (echo->listener);
}

/* Not where a network namespace has just been made. */
static int
loopback_is_up (int port)
{
  struct sockaddr_in address = { .sin_family = AF_INET };
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), up;

  address.sin_port = htons (port);
  address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  up = connect (fd, (struct sockaddr *) &address, sizeof address) == 0;
  close (fd);
  return up;
}

static void
permitted_connections_are_made_by_the_host (void **state)
{
  struct fixture *fixture;
  auto_free char *yaml = NULL;
  struct echo echo, other;
  char word[128];

  (void) state;
  if (!loopback_is_up (9))
    skip_missing ("a loopback interface that is up");
  echo_start (&echo);
  echo_start (&other);
  yaml = text_printf ("permissions: {connect: [config, \"localhost:%d\"]}\n"
                      "config:\n  api_url: {type: url, default: "
                      "\"http://127.0.0.1:%d/v1\"}", echo.port, echo.port);
  fixture = fixture_start (&(struct fixture_spec){ .module = "hostile",
                                           .yaml = yaml });
  fixture_assert_done (fixture, "connect:config:api_url", "hello\n");
  snprintf (word, sizeof word, "connect:tcp:127.0.0.1:%d", echo.port);
  fixture_assert_done (fixture, word, "hello\n");
  snprintf (word, sizeof word, "connect:tcp:LOCALHOST.:%d", echo.port);
  fixture_assert_done (fixture, word, "hello\n");
  snprintf (word, sizeof word, "connect:tcp:127.0.0.1:%d", other.port);
  fixture_assert_refused (fixture, word, "code 4");
  snprintf (word, sizeof word, "connect:tcp:127.1:%d", echo.port);
  fixture_assert_refused (fixture, word, "code 4");
  fixture_assert_refused (fixture, "connect:config:none", "code 4");
  /* What was connected cannot be connected to somewhere else. */
  snprintf (word, sizeof word, "reconnect:%d", other.port);
  fixture_assert_refused (fixture, word, NULL);
  fixture_free (fixture);
  echo_stop (&echo);
  echo_stop (&other);
}

static void
the_kernel_is_out_of_reach (void **state)
{
  static const char *const calls[] = { "unshare", "mount", "bpf",
                                       "io_uring_setup", "userfaultfd",
                                       "keyctl", "chroot",
                                       "process_vm_readv", "pidfd_open",
                                       "process_vm_writev", "setns",
                                       "perf_event_open", "add_key",
                                       "request_key", "personality",
                                       "sched_setaffinity", "setpriority",
                                       "timer_create", "shmget", "mq_open",
                                       "vmsplice", "quotactl",
                                       "io_uring_enter", "pidfd_getfd",
                                       "process_madvise", "mount_setattr",
                                       "landlock_add_rule", "clone3",
                                       "kexec_load" };
  struct fixture *fixture = fixture_start_plain ();
  char word[64];
  size_t i;

  (void) state;
  for (i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    snprintf (word, sizeof word, "call:%s", calls[i]);
    assert_filtered (fixture, word);
  }
  fixture_assert_refused (fixture, "ptrace", NULL);
  fixture_assert_refused (fixture, "kill:parent", NULL);
  fixture_assert_refused (fixture, "kill:all", NULL);
  fixture_assert_refused (fixture, "namespace", NULL);
  fixture_assert_refused (fixture, "limits", NULL);
  fixture_free (fixture);
}

static void
limits_hold (void **state)
{
  struct fixture *fixture = fixture_start (&(struct fixture_spec){
    .module = "hostile",
    .yaml = "limits: {memory: 64MiB, files: 64, calls: 4}" });
  struct heard heard = { .facts = 0 };

  (void) state;
#ifndef COFFER_SANITIZERS
  assert_int_equal (fixture_say (fixture, "eat:private", 20000, -1, &heard,
                                 NULL), 0);
  assert_string_equal (heard.state, "refused");
  assert_in_range (atoi (heard.value), 16, 64);
  fixture_assert_refused (fixture, "eat:shared", "0");
#endif
  assert_int_equal (fixture_say (fixture, "descriptors", 20000, -1, &heard,
                                 NULL), 0);
  assert_in_range (atoi (heard.value), 32, 64);
  fixture_free (fixture);
}

static void
threads_are_bounded (void **state)
{
  struct fixture *fixture;

  (void) state;
  if (geteuid () == 0)
    skip_missing ("a user that RLIMIT_NPROC holds: root is not");
  fixture = fixture_start (&(struct fixture_spec){
    .module = "hostile", .yaml = "limits: {processes: 16}" });
  fixture_assert_refused (fixture, "threads:5000", NULL);
  fixture_free (fixture);
}

static void
namespaces_are_for_who_asks (void **state)
{
  struct fixture *fixture = fixture_start (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {namespaces: true}" });
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "namespace", 5000, -1, &heard,
                                 NULL), 0);
  if (strcmp (heard.state, "refused") == 0
      && (strcmp (heard.value, "EPERM") == 0
          || strcmp (heard.value, "ENOSPC") == 0)) {
    fixture_free (fixture);
    skip_missing ("user namespaces");
  }
  assert_string_equal (heard.value, "mounted");
  fixture_assert_refused (fixture, "call:bpf", "EPERM");
  fixture_assert_refused (fixture, "call:kexec_load", "EPERM");
  fixture_assert_refused (fixture, "call:keyctl", "ENOSYS");
  fixture_assert_done (fixture, "exec:/usr/bin/true", "0");
  fixture_free (fixture);
}

static void
secrets_never_come_back (void **state)
{
  static const char secret[] = "sk-live/0123456789+abc def";
  struct fixture *fixture;
  struct heard heard = { .facts = 0 };
  struct error *error = NULL;
  char *details;

  (void) state;
  setenv ("COFFER_TEST_KEY", secret, 1);
  fixture = fixture_start (&(struct fixture_spec){
    .module = "hostile",
    .yaml = "config:\n  api_key: {type: secret, required: true, "
            "env: COFFER_TEST_KEY}" });
  assert_int_equal (fixture_say (fixture, "secret", 5000, -1, &heard, &error),
                    E_PROVIDER_FAILED);
  assert_string_equal (heard.value, "the key is [hidden] indeed");
  assert_null (strstr (error->message, "sk-live"));
  assert_non_null (strstr (error->message, "[hidden]"));
  details = json_dumps (error->details, 0);
  assert_null (strstr (details, "sk-live"));
  free (details);
  error_free (error);
  error = NULL;
  assert_int_equal (fixture_say (fixture, "crash:x", 5000, -1, NULL, &error),
                    E_PROVIDER_EXITED);
  error_free (error);
  fixture_free (fixture);
  unsetenv ("COFFER_TEST_KEY");
}

/* ---- without Landlock ------------------------------------------------------ */

/* A kernel without Landlock, for this process and what it starts. */
static void
forget_landlock (void)
{
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ALLOW);

  seccomp_rule_add (filter, SCMP_ACT_ERRNO (ENOSYS), 444, 0);
  if (seccomp_load (filter) < 0)
    _exit (9);
  seccomp_release (filter);
}

/* What a child without Landlock gets from open: the number, through its exit
 * status, less 8000. */
static int
open_without_landlock (const char *operator_yaml, const char *word)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .operator_yaml = operator_yaml });
  struct heard heard = { .facts = 0 };
  int status = 0, pid = fork (), number;

  if (pid == 0) {
    forget_landlock ();
    number = fixture_open (fixture, PROVIDER_WORKER, NULL);
    if (number == 0
        && (fixture_say (fixture, word, 5000, -1, &heard, NULL) != 0
            || strcmp (heard.state, "refused") != 0))
      _exit (250);
    provider_close (fixture->provider);
    _exit (number ? number - 8000 : 0);
  }
  waitpid (pid, &status, 0);
  fixture_free (fixture);
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void
a_right_that_cannot_be_enforced_refuses (void **state)
{
  (void) state;
  assert_int_equal (open_without_landlock (NULL, "socket:inet"),
                    E_PERMISSION - 8000);
  /* Sockets and programs are still out of reach then. */
  assert_int_equal (
    open_without_landlock ("worker: {allow_degraded: true}\n",
                           "socket:inet"), 0);
  assert_int_equal (
    open_without_landlock ("worker: {allow_degraded: true}\n",
                           "exec:/usr/bin/true"), 0);
}

/* The caller's own cgroups: where it has any. */
static int
own_cgroup (char *path, size_t size)
{
  FILE *file = fopen ("/proc/self/cgroup", "re");
  char line[512], *name;
  int found = 0;

  while (file && !found && fgets (line, sizeof line, file)) {
    line[strcspn (line, "\n")] = '\0';
    name = strncmp (line, "0::", 3) == 0 ? line + 3 : NULL;
    if (!name || strcmp (name, "/") == 0)
      continue;
    snprintf (path, size, "/sys/fs/cgroup%s/cgroup.procs", name);
    found = access (path, W_OK) == 0;
    if (!found) {
      snprintf (path, size, "/sys/fs/cgroup/unified%s/cgroup.procs", name);
      found = access (path, W_OK) == 0;
    }
  }
  if (file)
    fclose (file);
  return found;
}

/* Where a process of its own hierarchy stands, such as "/" or "/user". */
static int
freezer_of (char *path, size_t size)
{
  FILE *file = fopen ("/proc/self/cgroup", "re");
  char line[512], *name;
  int found = 0;

  while (file && !found && fgets (line, sizeof line, file)) {
    line[strcspn (line, "\n")] = '\0';
    name = strstr (line, ":freezer:");
    if (!name)
      continue;
    snprintf (path, size, "/sys/fs/cgroup/freezer%s", name + 9);
    found = 1;
  }
  if (file)
    fclose (file);
  return found;
}

static int
cgroup_enter (const char *folder)
{
  char path[1040];
  FILE *file;
  int written;

  snprintf (path, sizeof path, "%s/cgroup.procs", folder);
  file = fopen (path, "we");
  if (!file)
    return 0;
  written = fprintf (file, "%d\n", (int) getpid ()) > 0;
  return fclose (file) == 0 && written;
}

static char cgroup_home[1024], cgroup_made[1024];

/* Also after a test that failed: nothing stays. */
static int
cgroup_leave (void **state)
{
  int i;

  (void) state;
  if (!*cgroup_made)
    return 0;
  if (!cgroup_enter (cgroup_home))
    return -1;
  for (i = 0; rmdir (cgroup_made) < 0 && errno == EBUSY && i < 1000; i++)
    usleep (10000);
  return access (cgroup_made, F_OK) < 0 ? 0 : -1;
}

/* Root has none of its own: one of cgroup v1 is made, and entered. */
static int
cgroup_make (void)
{
  if (!freezer_of (cgroup_home, sizeof cgroup_home))
    return 0;
  snprintf (cgroup_made, sizeof cgroup_made, "%.900s/coffer-test-%d",
            cgroup_home, (int) getpid ());
  if (mkdir (cgroup_made, 0700) == 0) {
    if (cgroup_enter (cgroup_made))
      return 1;
    rmdir (cgroup_made);
  }
  *cgroup_made = '\0';
  return 0;
}

static void
cgroups_need_permission (void **state)
{
  struct fixture *fixture;
  char path[1040], word[1056];

  (void) state;
  if (!own_cgroup (path, sizeof path)) {
    if (!cgroup_make ())
      skip_missing ("a cgroup of its own that may be written");
    snprintf (path, sizeof path, "%s/cgroup.procs", cgroup_made);
  }
  snprintf (word, sizeof word, "open:%s", path);
  fixture = fixture_start_plain ();
  fixture_assert_refused (fixture, word, "EACCES");
  fixture_free (fixture);
  fixture = fixture_start (&(struct fixture_spec){
    .module = "hostile", .yaml = "permissions: {cgroup: true}" });
  fixture_assert_done (fixture, word, "");
  /* Its own, and not the one above it. */
  if (*cgroup_made) {
    snprintf (word, sizeof word, "open:%s/cgroup.procs", cgroup_home);
    fixture_assert_refused (fixture, word, "EACCES");
  }
  fixture_free (fixture);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_worker_starts_from_nothing),
    cmocka_unit_test (files_need_permission),
    cmocka_unit_test (what_may_be_read_is_not_changed),
    cmocka_unit_test (files_with_permission_open),
    cmocka_unit_test (what_coffer_believes_is_nobodys_to_write),
  cmocka_unit_test (programs_need_permission),
    cmocka_unit_test (what_a_worker_started_ends_with_it),
    cmocka_unit_test (sockets_are_the_hosts),
    cmocka_unit_test (permitted_connections_are_made_by_the_host),
    cmocka_unit_test (the_kernel_is_out_of_reach),
    cmocka_unit_test (limits_hold),
    cmocka_unit_test (threads_are_bounded),
    cmocka_unit_test (namespaces_are_for_who_asks),
    cmocka_unit_test (secrets_never_come_back),
    cmocka_unit_test (a_right_that_cannot_be_enforced_refuses),
    cmocka_unit_test_teardown (cgroups_need_permission, cgroup_leave),
  };

  log_set_level (LOG_LEVEL_ERROR);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
