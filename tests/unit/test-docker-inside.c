/* SPDX-License-Identifier: Apache-2.0 */
/* What the program inside a container does for a call when nobody takes what it
 * says, and nobody says that its caller is gone, as when an engine was killed: it
 * ends when the call's time is over. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/provider.h>

#include "wire.h"

#define MANY 1200               /* names, whose frames are more than a pipe holds */
#define LARGE (4 << 20)

struct begun {
  pid_t pid;
  int in, out, err;             /* our ends */
};

/* With a request, and its input left open. */
static struct begun
begin (struct wire_request *request, const char *path)
{
  const char *build = getenv ("COFFER_BUILD");
  char program[4096];
  int in[2], out[2], err[2];
  struct begun begun;

  snprintf (program, sizeof program, "%s/plugins/docker/coffer-inside",
            build ? build : ".");
  assert_int_equal (pipe2 (in, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (out, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (err, O_CLOEXEC), 0);
  begun = (struct begun) {fork (), in[1], out[0], err[0]};
  assert_true (begun.pid >= 0);
  if (begun.pid == 0) {
    if (dup2 (in[0], 0) < 0 || dup2 (out[1], 1) < 0 || dup2 (err[1], 2) < 0)
      _exit (99);
    execl (program, program, "work", NULL);
    _exit (98);
  }
  close (in[0]);
  close (out[1]);
  close (err[1]);
  request->magic = WIRE_MAGIC;
  request->signal = -1;
  request->block = (uint32_t) strlen (path) + 1;
  assert_true (coffer_write_all (begun.in, request, sizeof *request) > 0);
  assert_true (coffer_write_all (begun.in, path, request->block) > 0);
  return begun;
}

/* Its status, once it has ended by itself. */
static int
end (struct begun *begun)
{
  const int64_t until = coffer_now_ns () + HARNESS_PATIENCE_NS;
  int status = -1;
  pid_t pid;

  while ((pid = waitpid (begun->pid, &status, WNOHANG)) == 0
         && coffer_now_ns () < until)
    poll (NULL, 0, 20);
  if (pid == 0) {
    kill (begun->pid, SIGKILL);
    waitpid (begun->pid, NULL, 0);
    fail_msg ("it had not ended after %d ms", HARNESS_PATIENCE_MS);
  }
  assert_int_equal (pid, begun->pid);
  close (begun->in);
  close (begun->out);
  return status;
}

/* That of the failure that it has said; -1: none. */
static int32_t
failure_of (struct begun *begun)
{
  struct wire_frame frame;
  struct wire_failure failure = {-1, 0};
  char bytes[512];

  while (coffer_read_all (begun->err, &frame, sizeof frame)
           == sizeof frame
         && frame.size <= sizeof bytes
         && coffer_read_all (begun->err, bytes, frame.size)
              == (ssize_t) frame.size)
    if (frame.kind == WIRE_FAILED)
      memcpy (&failure, bytes, sizeof failure);
  close (begun->err);
  return failure.code;
}

static void
test_unread (void **state)
{
  char large[4096], many[4096], name[8192];
  struct wire_request read_it = {.op = WIRE_READ, .timeout_ms = 1},
    export_it = {.op = WIRE_EXPORT, .timeout_ms = 1},
    write_it = {.op = WIRE_WRITE, .mode = 0600, .timeout_ms = 1},
    list_it = {.op = WIRE_LIST_FILES, .timeout_ms = 1};
  struct begun reads, exports, writes, lists;
  int status, fd;

  snprintf (large, sizeof large, "%s/large", (const char *) *state);
  snprintf (many, sizeof many, "%s/many", (const char *) *state);
  fd = open (large, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_true (fd >= 0 && ftruncate (fd, LARGE) == 0);
  close (fd);
  assert_int_equal (mkdir (many, 0700), 0);
  for (int i = 0; i < MANY; i++) {
    snprintf (name, sizeof name, "%s/%04d-with-a-name-that-is-not-short", many, i);
    fd = open (name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true (fd >= 0);
    close (fd);
  }
  reads = begin (&read_it, large);
  exports = begin (&export_it, *state);
  snprintf (name, sizeof name, "%s/written", (const char *) *state);
  writes = begin (&write_it, name);
  lists = begin (&list_it, many);
  status = end (&reads);
  assert_true (WIFEXITED (status) && WEXITSTATUS (status) != 0);
  assert_int_equal (failure_of (&reads), COFFER_TIMEOUT);
  status = end (&exports);
  assert_true (WIFEXITED (status) && WEXITSTATUS (status) != 0);
  assert_int_equal (failure_of (&exports), COFFER_TIMEOUT);
  status = end (&writes);
  assert_true (WIFEXITED (status) || WTERMSIG (status) == SIGALRM);
  assert_int_equal (failure_of (&writes), COFFER_TIMEOUT);
  assert_int_equal (access (name, F_OK), -1);
  /* Frames wait for a reader without a look at the clock. */
  status = end (&lists);
  assert_true (WIFSIGNALED (status) && WTERMSIG (status) == SIGALRM);
  close (lists.err);
}

/* It waits for its caller as long as that has time. */
static void
test_in_time (void **state)
{
  struct wire_request request = {.op = WIRE_STAT,
                                 .timeout_ms = HARNESS_PATIENCE_MS};
  struct begun begun = begin (&request, *state);
  int status = end (&begun);

  assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
  assert_int_equal (failure_of (&begun), -1);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_unread), cmocka_unit_test (test_in_time),
  };

  return cmocka_run_group_tests_name ("docker-inside", tests,
                                      harness_folder_new, harness_folder_free);
}
