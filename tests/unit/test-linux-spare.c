/* SPDX-License-Identifier: Apache-2.0 */
/* The init that is made ahead: taken when it is as if made now, ended when it
 * is not, and nobody's after its maker. */

#include <config.h>

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "linux-host.h"

static const struct coffer_sandbox_spec lasting
  = { .size = sizeof lasting, .lifeline = -1 };

static struct linux_host host;

static void
open_ahead (void)
{
  static const char *const config[] = { "spare=true", NULL };

  linux_host_open_config (&host, config);
}

static void
create (const char *id)
{
  if (host_create (&host, id, &lasting) != COFFER_OK)
    fail_msg ("%s", host.error);
}

static void
end (const char *id)
{
  assert_int_equal (host_kill (&host, id), COFFER_OK);
}

/* A child of any thread of this process, or 0, waited for a while. */
static pid_t
any_child (int64_t patience_ms)
{
  const int64_t until = coffer_now_ns () + patience_ms * 1000000;
  int pid = 0;
  size_t i;

  do {
    glob_t tasks;

    if (glob ("/proc/self/task/*/children", 0, NULL, &tasks) != 0)
      skip_missing ("/proc/PID/task/TID/children");
    for (i = 0; i < tasks.gl_pathc && pid == 0; i++) {
      FILE *file = fopen (tasks.gl_pathv[i], "re");

      if (file) {
        if (fscanf (file, "%d", &pid) != 1)
          pid = 0;
        fclose (file);
      }
    }
    globfree (&tasks);
    if (pid == 0)
      poll (NULL, 0, 2);
  } while (pid == 0 && coffer_now_ns () < until);
  return pid;
}

/* Whether all other threads of this process sleep. */
static int
others_sleep (void)
{
  int sleep = 1;
  glob_t tasks;
  size_t i;

  if (glob ("/proc/self/task/*/stat", 0, NULL, &tasks) != 0)
    return 0;
  for (i = 0; i < tasks.gl_pathc; i++) {
    FILE *file = fopen (tasks.gl_pathv[i], "re");
    char state = '?';
    int tid = 0;

    if (file) {
      if (fscanf (file, "%d (%*[^)]) %c", &tid, &state) == 2
          && tid != getpid () && state != 'S')
        sleep = 0;
      fclose (file);
    }
  }
  globfree (&tasks);
  return sleep;
}

/* A copy of a lock that a thread holds is held for ever. */
static void
maker_await (void)
{
  const int64_t until
    = coffer_now_ns () + (int64_t) HARNESS_PATIENCE_MS * 1000000;

  while (!others_sleep () && coffer_now_ns () < until)
    poll (NULL, 0, 2);
}

/* Two sandboxes have been made and are gone: what is left is the spare. */
static pid_t
spare_of_two (void)
{
  pid_t spare;

  open_ahead ();
  create ("one");
  end ("one");
  create ("two");
  end ("two");
  spare = any_child (HARNESS_PATIENCE_MS);
  assert_true (spare > 0);
  return spare;
}

static void
test_the_third_sandbox_is_the_one_made_ahead (void **state)
{
  const char *argv[] = { "sh", "-c", "test $(id -u) = 1000 && echo in", NULL };
  static struct outcome outcome;
  pid_t spare = spare_of_two ();

  (void) state;
  create ("three");
  assert_int_equal (host.pid, spare);
  assert_non_null (strstr (host.facts, "namespace.net ok"));
  assert_int_equal (host_run (&host, "three", argv, NULL, NULL, 5000,
                              &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.out, "in\n");
  end ("three");
  linux_host_close (&host);
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
  assert_int_equal (errno, ECHILD);
}

static void
test_one_sandbox_has_none (void **state)
{
  (void) state;
  open_ahead ();
  create ("one");
  end ("one");
  assert_int_equal (any_child (100), 0);
  linux_host_close (&host);
}

static void
test_a_dead_one_is_not_taken (void **state)
{
  pid_t spare = spare_of_two ();
  siginfo_t info;

  (void) state;
  assert_int_equal (kill (spare, SIGKILL), 0);
  /* Dead, and not reaped by this: its maker does, if it is still at work. */
  if (waitid (P_PID, (id_t) spare, &info, WEXITED | WNOWAIT) != 0)
    assert_int_equal (errno, ECHILD);
  create ("three");
  assert_int_not_equal (host.pid, spare);
  end ("three");
  linux_host_close (&host);
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
}

/* It has prepared what the last sandbox had, and waits for another like that. */
static void
test_one_of_another_shape_is_not_taken (void **state)
{
  const char *argv[] = { "sh", "-c", "touch /written && echo in", NULL };
  struct coffer_sandbox_spec writable = lasting;
  static struct outcome outcome;
  pid_t spare = spare_of_two (), next;

  (void) state;
  writable.root_writable = 1;
  assert_int_equal (host_create (&host, "three", &writable), COFFER_OK);
  assert_int_not_equal (host.pid, spare);
  assert_int_equal (host_run (&host, "three", argv, NULL, NULL, 5000,
                              &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.out, "in\n");
  end ("three");
  create ("four");
  assert_int_equal (host.pid, spare);
  end ("four");
  spare = any_child (HARNESS_PATIENCE_MS);
  assert_true (spare > 0);
  /* What was asked for twice is what the next is for. */
  assert_int_equal (host_create (&host, "five", &writable), COFFER_OK);
  end ("five");
  assert_int_equal (host_create (&host, "six", &writable), COFFER_OK);
  end ("six");
  do
    next = any_child (HARNESS_PATIENCE_MS);
  while (next == spare);
  assert_true (next > 0);
  assert_int_equal (host_create (&host, "seven", &writable), COFFER_OK);
  assert_int_equal (host.pid, next);
  end ("seven");
  linux_host_close (&host);
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
}

/* What is to be in control groups is begun in them, or enters them while it is
 * root: what it then takes of the kernel's memory is counted there from the
 * start.  One made ahead has taken its own, and has ids that may enter none: it
 * is left for the next, and where there are no groups it is as good as any. */
static void
test_one_for_a_control_group_is_not_taken (void **state)
{
  struct coffer_sandbox_spec limited = lasting;
  pid_t spare = spare_of_two ();
  int grouped;

  (void) state;
  limited.memory_bytes = 64 << 20;
  limited.pids = 40;
  assert_int_equal (host_create (&host, "three", &limited), COFFER_OK);
  grouped = strstr (host.facts, "\ncgroup absent") == NULL;
  if (!grouped)
    assert_int_equal (host.pid, spare);
  else
    assert_int_not_equal (host.pid, spare);
  end ("three");
  if (grouped) {
    create ("four");
    assert_int_equal (host.pid, spare);
    end ("four");
  }
  linux_host_close (&host);
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
}

/* The next is begun when the one that was taken has its plan: also when nothing
 * comes of that, as here, where a file is to be a folder. */
static void
test_the_next_is_begun_before_one_is_ready (void **state)
{
  char path[] = "/tmp/coffer-spare-XXXXXX";
  const int fd = mkstemp (path);
  const struct coffer_mount file = { sizeof file, .source = path,
                                     .source_fd = fd,
                                     .target = "/workspace/file" },
                            below = { sizeof below, .source = path,
                                      .source_fd = fd,
                                      .target = "/workspace/file/below" };
  const struct coffer_mount *mounts[] = { &file, &below, NULL };
  struct coffer_sandbox_spec spec = lasting;
  pid_t spare = spare_of_two (), next;
  cpu_set_t all;

  (void) state;
  assert_true (fd >= 0);
  spec.mounts = mounts;
  assert_int_not_equal (host_create (&host, "three", &spec), COFFER_OK);
  assert_int_equal (kill (spare, 0), -1);
  assert_int_equal (sched_getaffinity (0, sizeof all, &all), 0);
  next = any_child (CPU_COUNT (&all) > 1 ? HARNESS_PATIENCE_MS : 100);
  assert_int_equal (next > 0, CPU_COUNT (&all) > 1);
  create ("four");
  if (next > 0)
    assert_int_equal (host.pid, next);
  end ("four");
  close (fd);
  unlink (path);
  linux_host_close (&host);
}

/* A child that was forked has its copies of the descriptors, and no more. */
static void
test_a_forked_process_leaves_it_alone (void **state)
{
  pid_t spare = spare_of_two (), pid;
  int status = -1;

  (void) state;
  maker_await ();
  pid = fork ();
  if (pid == 0) {
    if (host_create (&host, "forked", &lasting) != COFFER_OK)
      _exit (1);
    if (host.pid == spare)
      _exit (2);
    if (host_kill (&host, "forked") != COFFER_OK)
      _exit (3);
    alarm (60);
    host.ops->close (host_call (&host, 5000), host.self, NULL);
    _exit (0);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_int_equal (kill (spare, 0), 0);
  create ("three");
  assert_int_equal (host.pid, spare);
  end ("three");
  linux_host_close (&host);
}

/* It has a copy of the mounts that were there when it was made. */
static int
changed_mounts (void)
{
  const char *argv[] = { "cat", "/tmp/data/new", NULL };
  char folder[] = "/tmp/coffer-spare-XXXXXX", path[64];
  struct coffer_mount shown = { sizeof shown, .source = folder,
                                .target = "/tmp/data" };
  const struct coffer_mount *mounts[] = { &shown, NULL };
  struct coffer_sandbox_spec spec = lasting;
  static struct outcome outcome;
  pid_t spare;
  int fd;

  if (unshare (CLONE_NEWNS) < 0
      || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
    return 77;
  spare = spare_of_two ();
  if (!mkdtemp (folder) || mount ("tmpfs", folder, "tmpfs", 0, NULL) < 0)
    return 1;
  snprintf (path, sizeof path, "%s/new", folder);
  fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || write (fd, "seen", 4) != 4)
    return 2;
  close (fd);
  shown.source_fd = open (folder, O_PATH | O_CLOEXEC);
  spec.mounts = mounts;
  if (host_create (&host, "three", &spec) != COFFER_OK || host.pid == spare)
    return 3;
  if (host_run (&host, "three", argv, NULL, NULL, 5000, &outcome) != COFFER_OK
      || strcmp (outcome.out, "seen") != 0)
    return 4;
  if (kill (spare, 0) == 0)
    return 5;
  host_kill (&host, "three");
  linux_host_close (&host);
  umount2 (folder, MNT_DETACH);
  rmdir (folder);
  return 0;
}

static void
test_one_with_other_mounts_is_not_taken (void **state)
{
  int status = -1;
  pid_t pid;

  (void) state;
  fflush (NULL);
  pid = fork ();
  if (pid == 0)
    _exit (changed_mounts ());
  assert_int_equal (waitpid (pid, &status, 0), pid);
  if (WIFEXITED (status) && WEXITSTATUS (status) == 77)
    skip_missing ("the right to mount");
  assert_int_equal (status, 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_the_third_sandbox_is_the_one_made_ahead),
    cmocka_unit_test (test_one_sandbox_has_none),
    cmocka_unit_test (test_a_dead_one_is_not_taken),
    cmocka_unit_test (test_one_of_another_shape_is_not_taken),
    cmocka_unit_test (test_one_for_a_control_group_is_not_taken),
    cmocka_unit_test (test_the_next_is_begun_before_one_is_ready),
    cmocka_unit_test (test_a_forked_process_leaves_it_alone),
    cmocka_unit_test (test_one_with_other_mounts_is_not_taken),
  };

  return LINUX_TESTS_RUN_WITH ("linux: an init made ahead", tests,
                               NULL, NULL);
}
