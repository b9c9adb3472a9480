/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what will be loaded or executed: looked at before it is read,
 * copied into memory that nobody can change, hashed there. */

#include <config.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/place.h"
#include "base/text.h"
#include "provider/integrity.h"
#include "provider/manifest.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

#define CHUNK (32 * 1024)       /* on the stack */

/* A regular file of a possible size; nothing is read yet, so that a FIFO, a
 * device or a sparse giant costs nothing. */
static int
open_file (int dir, const char *name, int owned, off_t *size,
           struct error **err)
{
  coffer_autoclose int fd = -1;
  struct stat st;

  if (!manifest_is_file_name (name))
    return error_set (err, E_INVALID, 0,
                      "a module or file must be a name in its folder");
  fd = openat (dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && errno == ELOOP)
    return error_set (err, E_UNSAFE_FILE, 0, "%s is a symbolic link", name);
  if (fd < 0)
    return error_set (err, E_INTEGRITY, errno, "open %s", name);
  if (fstat (fd, &st) < 0)
    return error_set (err, E_IO, errno, "stat %s", name);
  if (!S_ISREG (st.st_mode))
    return error_set (err, E_UNSAFE_FILE, 0, "%s is not a regular file", name);
  if (owned && place_check_trusted (fd, name, err) < 0)
    return -1;
  if (st.st_size == 0)
    return error_set (err, E_INTEGRITY, 0, "%s is empty", name);
  if (st.st_size > INTEGRITY_MAX_BYTES)
    return error_set (err, E_INTEGRITY, 0, "%s is larger than %d MiB", name,
                      INTEGRITY_MAX_BYTES >> 20);
  *size = st.st_size;
  return coffer_fd_steal (&fd);
}

/* Linux before 6.3 does not know the two flags; with vm.memfd_noexec=2 no
 * memory file may be executed at all. */
static int
new_memfd (const char *name, int executable, struct error **err)
{
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  auto_free char *shown = text_printf ("coffer:%s", name);
  int fd;

  if (shown == NULL)
    return error_set (err, E_NO_MEMORY, 0, "open %s", name);
  fd = memfd_create (shown, flags | (executable ? MFD_EXEC : MFD_NOEXEC_SEAL));
  if (fd < 0 && errno == EINVAL)
    fd = memfd_create (shown, flags);
  if (fd < 0) {
    int refused = executable && errno == EACCES;

    error_set (err, E_IO, errno, "make a memory file for %s", name);
    if (refused)
      error_hint (err, "vm.memfd_noexec=2 forbids it: set it to 1 or 0");
  }
  return fd;
}

/* Reads `size` bytes of a file into `hash` and, when to >= 0, writes them. */
static int
pump (int from, int to, off_t size, SHA2_CTX *hash, const char *name,
      struct error **err)
{
  coffer_unfilled char buffer[CHUNK];

  while (size > 0) {
    size_t want = size < CHUNK ? (size_t) size : CHUNK;
    ssize_t n = coffer_read_all (from, buffer, want);

    if (n < 0)
      return error_set (err, E_IO, errno, "read %s", name);
    if ((size_t) n < want)
      return error_set (err, E_INTEGRITY, 0,
                        "%s became shorter while it was read", name);
    if (to >= 0 && coffer_write_all (to, buffer, want) < 0)
      return error_set (err, E_IO, errno, "copy %s", name);
    if (hash)
      sha256_add (hash, buffer, want);
    size -= n;
  }
  return 0;
}

/* From the page cache into the memory file, by way of no buffer of ours.  A
 * file system that cannot do that leaves it to pump. */
static int
copy_file (int from, int to, off_t size, const char *name, struct error **err)
{
  off_t left = size;
  ssize_t n = 1;

  while (left > 0 && (n = sendfile (to, from, NULL, (size_t) left)) > 0)
    left -= n;
  if (left > 0 && n == 0)
    return error_set (err, E_INTEGRITY, 0,
                      "%s became shorter while it was read", name);
  if (left == size && n < 0)
    return pump (from, to, size, NULL, name, err);
  return left > 0 ? error_set (err, E_IO, errno, "copy %s", name) : 0;
}

/* The hash of the copy as it lies there, not of what passed by.  Read, as a
 * mapping of some dozen pages takes longer than to copy them. */
static int
hash_sealed (int fd, off_t size, const char *name, char *out,
             struct error **err)
{
  SHA2_CTX hash;

  sha256_begin (&hash);
  if (pump (fd, -1, size, &hash, name, err) < 0)
    return -1;
  sha256_end (&hash, out);
  return 0;
}

/* Nobody changes it any more, and who reads it begins at its first byte. */
static int
seal_file (int fd, const char *name, struct error **err)
{
  if (fcntl (fd, F_ADD_SEALS,
             F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0
      || lseek (fd, 0, SEEK_SET) < 0)
    return error_set (err, E_IO, errno, "seal the copy of %s", name);
  return 0;
}

int
integrity_keep (const char *name, const void *bytes, size_t size,
                struct error **err)
{
  coffer_autoclose int copy = new_memfd (name, 1, err);

  if (copy < 0)
    return -1;
  if (coffer_write_all (copy, bytes, size) < 0)
    return error_set (err, E_IO, errno, "copy %s", name);
  return seal_file (copy, name, err) < 0 ? -1 : coffer_fd_steal (&copy);
}

int
integrity_copy (int dir, const char *name, int executable, int owned,
                char out[SHA256_HEX_SIZE], struct error **err)
{
  coffer_autoclose int fd = -1, copy = -1;
  off_t size = 0;

  fd = open_file (dir, name, owned, &size, err);
  if (fd < 0)
    return -1;
  copy = new_memfd (name, executable, err);
  if (copy < 0 || copy_file (fd, copy, size, name, err) < 0)
    return -1;
  if (seal_file (copy, name, err) < 0)
    return -1;
  if (hash_sealed (copy, size, name, out, err) < 0)
    return -1;
  if (lseek (copy, 0, SEEK_SET) < 0)
    return error_set (err, E_IO, errno, "seal the copy of %s", name);
  return coffer_fd_steal (&copy);
}

int
integrity_open (int dir, const char *name, const char *sha256, int executable,
                struct error **err)
{
  coffer_autoclose int copy = -1;
  char found[SHA256_HEX_SIZE];

  if (sha256 == NULL || sha256[0] == '\0') {
    error_set (err, E_INTEGRITY, 0, "%s is not sealed", name);
    error_hint (err, "coffer seal MANIFEST writes its hash into the manifest");
    return -1;
  }
  copy = integrity_copy (dir, name, executable, 1, found, err);
  if (copy < 0)
    return -1;
  if (strcmp (found, sha256) != 0) {
    error_set (err, E_INTEGRITY, 0,
               "%s is not what the manifest was sealed for", name);
    error_detail (err, "sealed_sha256", json_string (sha256));
    error_detail (err, "found_sha256", json_string (found));
    return -1;
  }
  return coffer_fd_steal (&copy);
}

int
integrity_hash (int dir, const char *name, char out[SHA256_HEX_SIZE],
                struct error **err)
{
  coffer_autoclose int fd = -1;
  SHA2_CTX hash;
  off_t size = 0;

  fd = open_file (dir, name, 1, &size, err);
  if (fd < 0)
    return -1;
  sha256_begin (&hash);
  if (pump (fd, -1, size, &hash, name, err) < 0)
    return -1;
  sha256_end (&hash, out);
  return 0;
}
