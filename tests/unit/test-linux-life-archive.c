/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of a sandbox of `linux` as archives, and watched: whatever its user
 * makes of them meanwhile, nothing beyond the sandbox is read or written, and
 * its end is the end of who watches. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "linux-host.h"

#define SECOND INT64_C (1000000000)
#define BLOCK 512
#define WATCHES 16

static struct linux_host host;
static struct outcome outcome;
static char canary[] = "/tmp/coffer-archive-canary.XXXXXX";

static const struct coffer_sandbox_spec lasting
  = { .size = sizeof lasting, .lifeline = -1 };

static void
create (const struct coffer_sandbox_spec *spec)
{
  if (host_create (&host, "box", spec) != COFFER_OK)
    fail_msg ("%s", host.error);
}

static const char *
sh_in (const char *script)
{
  const char *argv[] = { "sh", "-c", script, NULL };

  if (host_run (&host, "box", argv, NULL, NULL, HARNESS_PATIENCE_MS, &outcome)
        != COFFER_OK)
    fail_msg ("%s", host.error);
  return outcome.out;
}

/* ---- archives ------------------------------------------------------------- */

static void
add (struct coffer_buffer *tar, char type, const char *name, const char *body,
     size_t size)
{
  static const char zeros[BLOCK];
  char header[BLOCK] = "";
  unsigned sum = 0;
  size_t i;

  memcpy (header, name, strnlen (name, 100));
  snprintf (header + 100, 8, "%07o", type == '5' ? 0755u : 0644u);
  snprintf (header + 124, 12, "%011o", (unsigned) size & 077777777);
  snprintf (header + 136, 12, "%011o", 1577934245u);
  memset (header + 148, ' ', 8);
  header[156] = type;
  memcpy (header + 257, "ustar\0" "00", 8);
  for (i = 0; i < BLOCK; i++)
    sum += (unsigned char) header[i];
  snprintf (header + 148, 8, "%06o", sum);
  coffer_buffer_add (tar, header, BLOCK);
  coffer_buffer_add (tar, body, size);
  coffer_buffer_add (tar, zeros, (BLOCK - size % BLOCK) % BLOCK);
}

static void
end (struct coffer_buffer *tar)
{
  static const char zeros[2 * BLOCK];

  coffer_buffer_add (tar, zeros, sizeof zeros);
}

static int32_t
import (const struct coffer_buffer *tar, const char *path)
{
  coffer_autoclose int file = coffer_memfd_sealed ("tar", tar->data,
                                                   tar->size);

  return host.ops->archive_import (host_call (&host, HARNESS_PATIENCE_MS),
                                   host.self, "box", path, file, NULL);
}

/* What came, also of one that failed; the caller frees. */
static int32_t
export (const char *path, char **bytes, size_t *size)
{
  coffer_autoclose int file = memfd_create ("tar", MFD_CLOEXEC);
  int32_t code
    = host.ops->archive_export (host_call (&host, HARNESS_PATIENCE_MS),
                                host.self, "box", path, file, NULL);

  assert_int_equal (lseek (file, 0, SEEK_SET), 0);
  assert_int_equal (coffer_read_whole (file, 64 << 20, bytes, size), 0);
  return code;
}

static void
test_there_and_back (void **state)
{
  coffer_autobuffer struct coffer_buffer tar = { 0 };
  char *bytes;
  size_t size;

  (void) state;
  create (&lasting);
  add (&tar, '5', "d/", NULL, 0);
  add (&tar, '0', "d/f", VECTOR_BODY, strlen (VECTOR_BODY));
  end (&tar);
  if (import (&tar, "/tmp") != COFFER_OK)
    fail_msg ("%s", host.error);
  assert_string_equal (sh_in ("stat -c '%u %g %a' /tmp/d /tmp/d/f; "
                              "cat /tmp/d/f; ls -A /tmp"),
                       "1000 1000 755\n1000 1000 644\n" VECTOR_BODY "d\n");
  assert_int_equal (export ("/tmp/d", &bytes, &size), COFFER_OK);
  assert_non_null (memmem (bytes, size, VECTOR_BODY, strlen (VECTOR_BODY)));
  free (bytes);
  assert_int_equal (import (&tar, "/proc"), COFFER_DENIED);
  assert_int_equal (import (&tar, "/"), COFFER_DENIED);
  assert_int_equal (import (&tar, "/usr"), COFFER_DENIED);
  assert_int_equal (import (&tar, "absent"), COFFER_NOT_FOUND);
  assert_int_equal (import (&tar, "../workspace"), COFFER_INVALID);
  sh_in ("ln -s /tmp link; : > file");
  assert_int_equal (import (&tar, "link"), COFFER_DENIED);
  assert_int_equal (import (&tar, "file"), COFFER_CONFLICT);
  assert_int_equal (export ("/dev", &bytes, &size), COFFER_DENIED);
  assert_int_equal (size, 0);
  free (bytes);
  assert_int_equal (host_kill (&host, "box"), COFFER_OK);
  assert_int_equal (import (&tar, "."), COFFER_NOT_FOUND);
}

static void
test_more_than_there_is_room_for (void **state)
{
  coffer_autobuffer struct coffer_buffer tar = { 0 };
  struct coffer_sandbox_spec spec = lasting;
  char *body = calloc (1, 4 << 20);

  (void) state;
  assert_non_null (body);
  spec.disk_bytes = 2 << 20;
  create (&spec);
  add (&tar, '0', "small", "x", 1);
  add (&tar, '0', "large", body, 4 << 20);
  end (&tar);
  free (body);
  assert_int_equal (import (&tar, "."), COFFER_LIMIT);
  assert_string_equal (sh_in ("ls -A"), "");
  assert_int_equal (host_kill (&host, "box"), COFFER_OK);
}

/* Whatever stands under a name when it is used, the folder outside is not read
 * and not written, and what goes wrong does so before its time is over. */
static void
test_swapped_meanwhile (void **state)
{
  const char secret[] = "what is outside, word for word";
  coffer_autobuffer struct coffer_buffer tar = { 0 };
  const int64_t begun = coffer_now_ns ();
  unsigned imports = 0, refused = 0, n;
  char path[300], *bytes;
  size_t size;
  int held;

  (void) state;
  snprintf (path, sizeof path, "%s/secret", canary);
  held = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  assert_int_equal (write (held, secret, sizeof secret), sizeof secret);
  close (held);
  add (&tar, '5', "d/", NULL, 0);
  for (n = 0; n < 64; n++) {
    snprintf (path, sizeof path, "d/f%u", n);
    add (&tar, '0', path, "x", 1);
  }
  add (&tar, '0', "d/secret", "inside", 6);
  end (&tar);
  create (&lasting);
  host_payload (&host, "box");
  snprintf (path, sizeof path, "exec ./payload stager %s", canary);
  held = host_start (&host, "box", path, 0);
  assert_int_equal (coffer_wait_fd (held, POLLIN, begun + HARNESS_PATIENCE_NS,
                                    -1), 1);
  while (coffer_now_ns () < begun + SECOND || imports == 0 || refused == 0) {
    if (coffer_now_ns () > begun + 2 * HARNESS_PATIENCE_NS)
      fail_msg ("imported %u, refused %u", imports, refused);
    if (import (&tar, "spot") == COFFER_OK)
      imports++;
    else
      refused++;
    export ("spot", &bytes, &size);
    assert_null (memmem (bytes, size, secret, sizeof secret));
    free (bytes);
  }
  assert_int_equal (host_kill (&host, "box"), COFFER_OK);
  close (held);
  snprintf (path, sizeof path, "%s/secret", canary);
  held = open (path, O_RDONLY | O_CLOEXEC);
  assert_int_equal (coffer_read_whole (held, 64, &bytes, &size), 0);
  assert_memory_equal (bytes, secret, sizeof secret);
  free (bytes);
  close (held);
  /* Nothing beside it: it goes when it is alone. */
  assert_int_equal (unlink (path), 0);
  assert_int_equal (rmdir (canary), 0);
  assert_int_equal (mkdir (canary, 0777), 0);
}

/* ---- watching ------------------------------------------------------------- */

struct watcher {
  pthread_t thread;
  struct coffer_call *call;
  int32_t code;
};

static _Atomic int ended;

static void *
watcher_main (void *data)
{
  struct watcher *watcher = data;

  watcher->code = host.ops->file_watch (watcher->call, host.self, "box", ".",
                                        NULL);
  ended++;
  return NULL;
}

/* One more than there may be of one sandbox: which it is that is refused is not
 * said. */
static void
test_watches (void **state)
{
  const int64_t begun = coffer_now_ns ();
  struct watcher watchers[WATCHES + 1];
  int i, limited = 0, gone = 0;

  (void) state;
  create (&lasting);
  for (i = 0; i <= WATCHES; i++) {
    watchers[i].call = host_call (&host, 4 * HARNESS_PATIENCE_MS);
    assert_int_equal (pthread_create (&watchers[i].thread, NULL, watcher_main,
                                      &watchers[i]), 0);
  }
  while (ended == 0 && coffer_now_ns () < begun + HARNESS_PATIENCE_NS)
    poll (NULL, 0, 1);
  assert_int_equal (ended, 1);
  assert_int_equal (host_kill (&host, "box"), COFFER_OK);
  for (i = 0; i <= WATCHES; i++) {
    pthread_join (watchers[i].thread, NULL);
    limited += watchers[i].code == COFFER_LIMIT;
    gone += watchers[i].code == COFFER_NOT_FOUND;
  }
  assert_int_equal (limited, 1);
  assert_int_equal (gone, WATCHES);
  assert_true (coffer_now_ns () - begun < 3 * HARNESS_PATIENCE_NS);
}

static void
test_watch_elsewhere (void **state)
{
  (void) state;
  create (&lasting);
  assert_int_equal (host.ops->file_watch (host_call (&host, 1000), host.self,
                                          "box", "/proc", NULL),
                    COFFER_DENIED);
  assert_int_equal (host.ops->file_watch (host_call (&host, 1000), host.self,
                                          "box", "absent", NULL),
                    COFFER_NOT_FOUND);
  assert_int_equal (host.ops->file_watch (host_call (&host, 50), host.self,
                                          "box", "/tmp", NULL),
                    COFFER_TIMEOUT);
  assert_int_equal (host_kill (&host, "box"), COFFER_OK);
}

static int
set_up (void **state)
{
  if (linux_tests_open (state) != 0 || mkdtemp (canary) == NULL)
    return -1;
  return chmod (canary, 0777);
}

static int
tear_down (void **state)
{
  rmdir (canary);
  return linux_tests_close (state);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_there_and_back),
    cmocka_unit_test (test_more_than_there_is_room_for),
    cmocka_unit_test (test_swapped_meanwhile),
    cmocka_unit_test (test_watches),
    cmocka_unit_test (test_watch_elsewhere),
  };

  linux_tests_host (&host);
  return LINUX_TESTS_RUN_WITH ("linux: archives and watches", tests, set_up,
                               tear_down);
}
