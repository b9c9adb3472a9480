/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox of `linux` from outside: whatever its user makes of them,
 * nothing beyond the sandbox is read or written, and nobody waits for ever. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <coffer/fd.h>

#include "linux-life.h"

static int32_t
file_put (const char *path, const char *body)
{
  struct coffer_file_write_opts opts = { .size = sizeof opts, .parents = 1 };
  int ends[2];
  int32_t code;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (write (ends[1], body, strlen (body)), strlen (body));
  close (ends[1]);
  code = host.ops->file_write (host_call (&host, 5000), host.self, "files",
                               path, ends[0], &opts);
  close (ends[0]);
  return code;
}

static int32_t
file_get (const char *path, char *out, size_t size)
{
  int ends[2];
  int32_t code;
  ssize_t n;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  code = host.ops->file_read (host_call (&host, 5000), host.self, "files",
                              path, ends[1], NULL);
  close (ends[1]);
  n = read (ends[0], out, size - 1);
  out[n > 0 ? n : 0] = '\0';
  close (ends[0]);
  return code;
}

static void
test_files (void **state)
{
  char text[4096];

  (void) state;
  create ("files", &lasting);
  if (file_put ("/tmp/" VECTOR_NAME, VECTOR_BODY) != COFFER_OK)
    fail_msg ("%s", host.error);
  assert_int_equal (file_get ("/tmp/" VECTOR_NAME, text, sizeof text),
                    COFFER_OK);
  assert_string_equal (text, VECTOR_BODY);
  sh_in ("files", "cat \"/tmp/你好 世界/\"*; stat -c '%u %a' /tmp/*/*",
         5000);
  assert_string_equal (outcome.out, VECTOR_BODY "1000 644\n");
  /* Links lead nowhere, least of all to the host's files. */
  sh_in ("files", "ln -s /etc/passwd link; ln -s / all; mkfifo pipe", 5000);
  assert_int_not_equal (file_get ("link", text, sizeof text), COFFER_OK);
  assert_string_equal (text, "");
  assert_int_not_equal (file_get ("all/etc/passwd", text, sizeof text),
                        COFFER_OK);
  assert_int_not_equal (file_get ("pipe", text, sizeof text), COFFER_OK);
  assert_int_not_equal (file_put ("all/tmp/x", "x"), COFFER_OK);
  assert_int_equal (file_get ("/proc/1/status", text, sizeof text),
                    COFFER_DENIED);
  assert_int_equal (file_get ("//./proc/version", text, sizeof text),
                    COFFER_DENIED);
  assert_int_equal (file_put ("/proc/sys/kernel/core_pattern", "x"),
                    COFFER_DENIED);
  assert_int_not_equal (file_put ("/usr/x", "x"), COFFER_OK);
  assert_int_not_equal (file_get ("../../etc/passwd", text, sizeof text),
                        COFFER_OK);
  assert_int_equal (host.ops->file_list (host_call (&host, 5000), host.self,
                                         "files", "/workspace", NULL),
                    COFFER_OK);
  assert_non_null (strstr (host.files, "symlink link"));
  assert_non_null (strstr (host.files, "fifo pipe"));
  assert_int_equal (host_kill (&host, "files"), COFFER_OK);
}

/* ---- names, sizes, shapes ------------------------------------------------ */

static void
test_names_of_any_bytes (void **state)
{
  char longest[256], text[64], list[1024];
  const char *names[] = { "\xff\xfe\x80", "a\nb", "-rf", "$(id)", "*", ".hid",
                          "\xe2\x80\xae", " ", "caf\xc3\xa9", longest };
  size_t i;

  (void) state;
  memset (longest, 'n', 255);
  longest[255] = '\0';
  create ("files", &lasting);
  for (i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf (list, sizeof list, "made/%s", names[i]);
    if (file_put (list, names[i]) != COFFER_OK)
      fail_msg ("%zu: %s", i, host.error);
    assert_int_equal (file_get (list, text, sizeof text), COFFER_OK);
    assert_memory_equal (text, names[i],
                         strlen (names[i]) < 63 ? strlen (names[i]) : 63);
  }
  sh_in ("files", "ls made | wc -l; ls -A made | wc -c", 5000);
  assert_int_equal (host.ops->file_list (host_call (&host, 5000), host.self,
                                         "files", "made", NULL),
                    COFFER_OK);
  for (i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf (list, sizeof list, "file %s %zu\n", names[i],
              strlen (names[i]));
    assert_non_null (strstr (host.files, list));
  }
  longest[254] = 'm';
  memmove (list, "made/", 6);
  strcat (list, longest);
  assert_int_equal (host.ops->file_rename (host_call (&host, 5000),
                                           host.self, "files",
                                           "made/\xff\xfe\x80", list, NULL),
                    COFFER_OK);
  strcat (list, "m");           /* one more than a name can have */
  assert_int_equal (file_put (list, "x"), COFFER_INVALID);
  assert_int_equal (host_kill (&host, "files"), COFFER_OK);
}

/* A file of a terabyte that is none: its end is read, and nobody reads on to
 * it from the beginning beyond the deadline. */
static void
test_sparse (void **state)
{
  struct coffer_file_read_opts opts
    = { .size = sizeof opts,
        .offset_bytes = (UINT64_C (1) << 40) - 3, .length_bytes = 100 };
  int64_t begun = coffer_now_ns ();
  int ends[2];
  char text[8] = "";

  (void) state;
  create ("files", &lasting);
  sh_in ("files", "truncate -s 1T big; printf end | dd of=big bs=1 "
         "seek=1099511627773 conv=notrunc 2>/dev/null", 5000);
  assert_int_equal (host.ops->file_stat (host_call (&host, 5000), host.self,
                                         "files", "big", NULL),
                    COFFER_OK);
  assert_string_equal (host.files, "file /workspace/big 1099511627776\n");
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (host.ops->file_read (host_call (&host, 5000), host.self,
                                         "files", "big", ends[1], &opts),
                    COFFER_OK);
  assert_int_equal (read (ends[0], text, sizeof text), 3);
  assert_string_equal (text, "end");
  /* A reader that takes nothing holds the call until its deadline. */
  assert_int_equal (host.ops->file_read (host_call (&host, 300), host.self,
                                         "files", "big", ends[1], NULL),
                    COFFER_TIMEOUT);
  close (ends[0]);
  close (ends[1]);
  assert_true (host_metric (&host, "files", "disk_bytes") < 2000000);
  assert_true (coffer_now_ns () - begun < HARNESS_PATIENCE_NS);
  assert_int_equal (host_kill (&host, "files"), COFFER_OK);
}

static void
test_deep_and_many (void **state)
{
  struct coffer_file_remove_opts all = { .size = sizeof all, .recursive = 1 };
  struct coffer_file_list_opts deeply = { .size = sizeof deeply, .depth = 5 };
  int64_t begun = coffer_now_ns ();

  (void) state;
  create ("files", &lasting);
  host_payload (&host, "files");
  sh_in ("files", "mkdir tree; cd tree; ../payload deep 3000; "
         "cd /workspace; mkdir many; cd many; "
         "i=0; while [ $i -lt 40 ]; do mkdir $i; i=$((i+1)); done; "
         "for d in *; do touch $d/1 $d/2 $d/3; done", 15000);
  assert_string_equal (outcome.err, "");
  assert_int_equal (host.ops->file_list (host_call (&host, 5000), host.self,
                                         "files", "tree", &deeply),
                    COFFER_OK);
  assert_non_null (strstr (host.files, "directory d/d/d/d/d "));
  assert_null (strstr (host.files, "directory d/d/d/d/d/d "));
  assert_int_equal (host.ops->file_list (host_call (&host, 5000), host.self,
                                         "files", "many", &deeply),
                    COFFER_OK);
  assert_non_null (strstr (host.files, "file 39/3 0\n"));
  assert_int_equal (host.ops->file_remove (host_call (&host, 10000),
                                           host.self, "files", "tree", &all),
                    COFFER_OK);
  assert_int_equal (host.ops->file_remove (host_call (&host, 10000),
                                           host.self, "files", "many", &all),
                    COFFER_OK);
  sh_in ("files", "ls", 5000);
  assert_string_equal (outcome.out, "payload\n");
  assert_true (coffer_now_ns () - begun < 2 * HARNESS_PATIENCE_NS);
  assert_int_equal (host_kill (&host, "files"), COFFER_OK);
}

/* Fifos, sockets and devices are no files, and are told so at once. */
static void
test_what_is_no_file (void **state)
{
  static const char *const paths[] = { "fifo", "socket", ".", "/tmp" };
  int64_t begun = coffer_now_ns ();
  char text[64];
  size_t i;

  (void) state;
  create ("files", &lasting);
  sh_in ("files", "mkfifo fifo; python3 -c 'import socket; "
         "socket.socket(socket.AF_UNIX).bind(\"socket\")' || mkfifo socket",
         10000);
  for (i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    assert_int_not_equal (file_get (paths[i], text, sizeof text), COFFER_OK);
    assert_string_equal (text, "");
    assert_int_not_equal (file_put (paths[i], "x"), COFFER_OK);
  }
  assert_int_equal (file_get ("/dev/zero", text, sizeof text), COFFER_DENIED);
  assert_int_equal (file_get ("/dev/../dev/zero", text, sizeof text),
                    COFFER_DENIED);
  assert_true (coffer_now_ns () - begun < HARNESS_PATIENCE_NS);
  assert_int_equal (host_kill (&host, "files"), COFFER_OK);
}

/* ---- while somebody changes them ----------------------------------------- */

/* Each look at a name finds one of the things that take turns there; whatever
 * it is, only the sandbox's own file is read, and only its folder written. */
static void
test_swapped_while_open (void **state)
{
  int64_t begun = coffer_now_ns (), stop;
  unsigned reads = 0, writes = 0, refused = 0;
  char text[4096];
  int held;

  (void) state;
  create ("files", &lasting);
  host_payload (&host, "files");
  assert_int_equal (file_put ("file", "inside\n"), COFFER_OK);
  held = host_start (&host, "files", "exec ./payload swapper", 0);
  assert_int_equal (coffer_wait_fd (held, POLLIN, begun + HARNESS_PATIENCE_NS,
                                    -1), 1);
  stop = coffer_now_ns () + SECOND;
  while (coffer_now_ns () < stop || reads == 0 || writes == 0
         || refused == 0) {
    if (coffer_now_ns () > begun + HARNESS_PATIENCE_NS)
      fail_msg ("reads %u, writes %u, refused %u", reads, writes, refused);
    if (file_get ("file", text, sizeof text) == COFFER_OK) {
      assert_string_equal (text, "inside\n");
      reads++;
    } else {
      assert_string_equal (text, "");
      refused++;
    }
    if (file_put ("folder/new", "x") == COFFER_OK)
      writes++;
    else
      refused++;
  }
  assert_int_equal (host.ops->exec_signal (host_call (&host, 5000),
                                           host.self, "files", "e1", SIGKILL,
                                           NULL),
                    COFFER_OK);
  assert_true (host_gone (held, HARNESS_PATIENCE_NS));
  close (held);
  sh_in ("files", "ls -A /tmp/other; ls -d /etc/passwd; wc -c < fifo",
         1000);
  assert_int_equal (strncmp (outcome.out, "/etc/passwd\n", 12), 0);
  assert_int_equal (host_kill (&host, "files"), COFFER_OK);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_files),
    cmocka_unit_test (test_names_of_any_bytes),
    cmocka_unit_test (test_sparse),
    cmocka_unit_test (test_deep_and_many),
    cmocka_unit_test (test_what_is_no_file),
    cmocka_unit_test (test_swapped_while_open),
  };

  return LINUX_TESTS_RUN (&host, "linux: files from outside", tests);
}
