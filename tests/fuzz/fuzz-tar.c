/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of anybody, unpacked into a folder beside a canary: nothing but that
 * folder changes, and an archive that is refused leaves it empty. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#define CHECK(condition) do { if (!(condition)) abort (); } while (0)

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/coffer-fuzz-tar.XXXXXX";
static int root = -1;

static int32_t
failed (struct coffer_call *call, int32_t code, int32_t retryable,
        const char *message, const char *details)
{
  (void) call, (void) retryable, (void) details;
  CHECK (code > COFFER_OK && code <= COFFER_INTERNAL && message);
  return code;
}

static void
logged (struct coffer_call *call, int32_t level, const char *text)
{
  (void) call, (void) level, (void) text;
}

static void
folder_remove (void)
{
  coffer_remove_beneath (root, "in", 1, NULL);
  coffer_remove_beneath (root, "canary", 1, NULL);
  rmdir (folder);
}

static void
begin (void)
{
  if (root >= 0)
    return;
  CHECK (mkdtemp (folder));
  root = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CHECK (root >= 0 && mkdirat (root, "canary", 0755) == 0
         && mkdirat (root, "in", 0755) == 0);
  atexit (folder_remove);
}

static int
count_one (void *data, const char *path, int dir, const char *name,
           const struct stat *st)
{
  (void) path, (void) dir, (void) name, (void) st;
  ++*(unsigned *) data;
  return 0;
}

static unsigned
names_in (const char *path)
{
  unsigned n = 0;

  CHECK (coffer_walk (root, path, 1, count_one, &n) == 0);
  return n;
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  static const struct coffer_host host = {
    .size = sizeof host, .fail = failed, .log = logged
  };
  struct coffer_call call = {
    .size = sizeof call, .host = &host, .deadline_ns = INT64_MAX,
    .cancel_fd = -1
  };
  static int file = -1;
  int32_t code;

  begin ();
  if (file < 0)
    file = memfd_create ("tar", MFD_CLOEXEC);
  CHECK (ftruncate (file, 0) == 0 && lseek (file, 0, SEEK_SET) == 0
         && coffer_write_all (file, bytes, size) == (ssize_t) size
         && lseek (file, 0, SEEK_SET) == 0);
  code = coffer_files_import (&call, root, "in", file);
  CHECK (names_in ("/") == 2 && names_in ("canary") == 0);
  if (code != COFFER_OK)
    CHECK (names_in ("in") == 0);
  else if (names_in ("in") > 0) {
    CHECK (coffer_remove_beneath (root, "in", 1, NULL) == 0
           && mkdirat (root, "in", 0755) == 0);
  }
  return 0;
}
