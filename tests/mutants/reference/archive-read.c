/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking an archive that anybody may have written: every field is checked,
 * what is not known is refused, and nothing is made but folders, files and
 * links that stay inside. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "archive.h"

struct reader {
  struct coffer_call *call;
  int file, to;
  uint64_t at, end;             /* of the archive */
  unsigned entries;
  const char **why;
  /* of the entry, from its own header or the pax header before it */
  char name[PATH_MAX], link[PATH_MAX];
  uint64_t size;
  int has_name, has_link, has_size;
};

static int
refuse (struct reader *reader, const char *why)
{
  *reader->why = why;
  errno = EINVAL;
  return -1;
}

/* What `size` bytes take, in whole blocks.  Sizes have at most 18 digits. */
static uint64_t
in_blocks (uint64_t size)
{
  return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* -- fields ---- */

/* Octal digits, which a NUL, a space or the field's end ends. */
static int
parse_octal (const char *field, size_t size, uint64_t *out)
{
  uint64_t value = 0;
  size_t i = 0;

  while (i < size && field[i] == ' ')
    i++;
  if (i == size || field[i] < '0' || field[i] > '7')
    return -1;
  for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
    value = value * 8 + (uint64_t) (field[i] - '0');
  if (i < size && field[i] != '\0' && field[i] != ' ')
    return -1;
  *out = value;
  return 0;
}

static int
parse_decimal (const char *text, size_t size, uint64_t *out)
{
  uint64_t value = 0;

  if (size == 0 || size > 18)
    return -1;
  for (size_t i = 0; i < size; i++) {
    if (text[i] < '0' || text[i] > '9')
      return -1;
    value = value * 10 + (uint64_t) (text[i] - '0');
  }
  *out = value;
  return 0;
}

static int
take_text (struct reader *reader, const char *value, size_t size, char *out,
           int *has)
{
  if (size == 0 || size >= PATH_MAX || memchr (value, '\0', size))
    return refuse (reader, "a name in the archive is empty, too long or has a "
                   "NUL");
  memcpy (out, value, size);
  out[size] = '\0';
  *has = 1;
  return 0;
}

/* -- pax headers ---- */

static int
take_record (struct reader *reader, const char *key, size_t key_size,
             const char *value, size_t size)
{
  if (key_size == 4 && memcmp (key, "path", 4) == 0)
    return take_text (reader, value, size, reader->name, &reader->has_name);
  if (key_size == 8 && memcmp (key, "linkpath", 8) == 0)
    return take_text (reader, value, size, reader->link, &reader->has_link);
  if (key_size == 4 && memcmp (key, "size", 4) == 0) {
    reader->has_size = 1;
    if (parse_decimal (value, size, &reader->size) < 0)
      return refuse (reader, "a size in the archive is no number");
  }
  return 0;                     /* times, owners, comments */
}

/* "27 path=…\n", one after the other. */
static int
take_pax (struct reader *reader, const char *text, size_t size)
{
  const char *space, *equals;
  uint64_t length;

  for (; size > 0; text += length, size -= length) {
    space = memchr (text, ' ', size);
    if (!space || parse_decimal (text, (size_t) (space - text), &length) < 0
        || length > size || length < (uint64_t) (space - text) + 3
        || text[length - 1] != '\n'
        || !(equals = memchr (space, '=', (size_t) (text + length - space))))
      return refuse (reader, "a pax header in the archive is malformed");
    if (take_record (reader, space + 1, (size_t) (equals - space - 1),
                     equals + 1, (size_t) (text + length - 1 - (equals + 1)))
        < 0)
      return -1;
  }
  return 0;
}

static int
read_pax (struct reader *reader, uint64_t size)
{
  char text[32 << 10];

  if (size > sizeof text || in_blocks (size) > reader->end - reader->at)
    return refuse (reader, "a pax header in the archive is too long");
  if (pread (reader->file, text, (size_t) size, (off_t) reader->at)
      != (ssize_t) size)
    return -1;
  reader->at += in_blocks (size);
  return take_pax (reader, text, (size_t) size);
}

/* -- entries ---- */

/* Folders below the root that the path goes through, counted; -1 when it leaves
 * the root at any time.  `depth` is where it begins. */
static int
path_depth (const char *path, int depth)
{
  size_t length;

  for (; *path; path += length) {
    path += strspn (path, "/");
    length = strcspn (path, "/");
    if (length == 2 && path[0] == '.' && path[1] == '.')
      depth--;
    else if (length > 0 && !(length == 1 && path[0] == '.'))
      depth++;
    if (depth < 0)
      return -1;
  }
  return depth;
}

static int
has_dotdot (const char *path)
{
  for (const char *at = path; (at = strstr (at, "..")); at += 2)
    if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
      return 1;
  return 0;
}

static int
check_name (struct reader *reader)
{
  int depth = path_depth (reader->name, 0);

  if (reader->name[0] == '/' || has_dotdot (reader->name))
    return refuse (reader, "a name in the archive leaves the folder");
  if (depth > TAR_DEPTH_MAX)
    return refuse (reader, "a name in the archive is too deep");
  return depth;                 /* 0 is the folder itself */
}

static int
make_folder (struct reader *reader, mode_t mode)
{
  coffer_autoclose int fd = -1;

  if (coffer_mkdir_beneath (reader->to, reader->name, 0700, 1) < 0)
    return refuse (reader, "a folder in the archive is something else too");
  fd = coffer_open_beneath (reader->to, reader->name, O_RDONLY | O_DIRECTORY,
                            0);
  return fd < 0 ? -1 : fchmod (fd, mode | 0700);
}

static int
make_file (struct reader *reader, const struct tar_header *header,
           mode_t mode)
{
  coffer_autoclose int parent = -1, fd = -1;
  struct timespec times[2] = {{.tv_nsec = UTIME_NOW}};
  const char *last;
  uint64_t mtime, copied = 0;

  parent = coffer_open_parent (reader->to, reader->name, 1, &last);
  if (parent >= 0)
    fd = openat (parent, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
                               | O_CLOEXEC, 0600);
  if (fd < 0)
    return refuse (reader, "a file in the archive is there twice, or below "
                   "what is no folder");
  if (lseek (reader->file, (off_t) reader->at, SEEK_SET) < 0
      || (reader->size > 0
          && coffer_copy (reader->file, fd, reader->size,
                          reader->call->deadline_ns, reader->call->cancel_fd,
                          &copied) < 0)
      || fchmod (fd, mode) < 0)
    return -1;
  if (parse_octal (header->mtime, sizeof header->mtime, &mtime) == 0)
    times[1].tv_sec = (time_t) mtime;
  return futimens (fd, times);
}

static int
make_link (struct reader *reader)
{
  coffer_autoclose int parent = -1;
  const char *last;

  if (reader->link[0] == '/'
      || path_depth (reader->link, path_depth (reader->name, 0) - 1) < 0)
    return refuse (reader, "a link in the archive leaves the folder");
  parent = coffer_open_parent (reader->to, reader->name, 1, &last);
  if (parent < 0 || symlinkat (reader->link, parent, last) < 0)
    return refuse (reader, "a link in the archive is there twice, or below "
                   "what is no folder");
  return 0;
}

static int
make_entry (struct reader *reader, const struct tar_header *header)
{
  const char type = header->type ? header->type : '0';
  uint64_t mode;
  int depth = check_name (reader);

  if (depth < 0)
    return -1;
  if (parse_octal (header->mode, sizeof header->mode, &mode) < 0)
    return refuse (reader, "a mode in the archive is no number");
  if (type != '0' && type != '2' && type != '5')
    return refuse (reader, "the archive has what is no file, folder or "
                   "symbolic link");
  if (type == '5')
    return depth == 0 ? 0 : make_folder (reader, mode & 0777);
  if (depth == 0 || reader->name[strlen (reader->name) - 1] == '/')
    return refuse (reader, "a file in the archive has the name of a folder");
  return type == '2' ? make_link (reader) :
    make_file (reader, header, mode & 0777);
}

/* -- headers ---- */

/* A prefix and a name, each ended by a NUL or by its field's end. */
static int
take_header_names (struct reader *reader, const struct tar_header *header)
{
  char name[sizeof header->prefix + sizeof header->name + 2];
  int n = header->prefix[0] ?
    snprintf (name, sizeof name, "%.155s/%.100s", header->prefix,
              header->name) :
    snprintf (name, sizeof name, "%.100s", header->name);

  if (!reader->has_name
      && take_text (reader, name, (size_t) n, reader->name, &reader->has_name)
         < 0)
    return -1;
  if (!reader->has_link)
    snprintf (reader->link, sizeof reader->link, "%.100s", header->link);
  return 0;
}

static int
read_entry (struct reader *reader, const struct tar_header *header)
{
  uint64_t size;

  if (parse_octal (header->size, sizeof header->size, &size) < 0)
    return refuse (reader, "a size in the archive is no number");
  if (header->type == 'x')
    return read_pax (reader, size);
  if (!reader->has_size)
    reader->size = size;
  if (header->type != '0' && header->type != '\0')
    reader->size = 0;
  if (in_blocks (reader->size) > reader->end - reader->at)
    return refuse (reader, "the archive ends within a file");
  if (++reader->entries > TAR_ENTRIES_MAX)
    return refuse (reader, "the archive has too many entries");
  if (take_header_names (reader, header) < 0
      || make_entry (reader, header) < 0)
    return -1;
  reader->at += in_blocks (reader->size);
  reader->has_name = reader->has_link = reader->has_size = 0;
  return 0;
}

static int
is_zero (const struct tar_header *header)
{
  const char *bytes = (const void *) header;

  for (size_t i = 0; i < TAR_BLOCK; i++)
    if (bytes[i])
      return 0;
  return 1;
}

static int
read_header (struct reader *reader, struct tar_header *header)
{
  if (reader->end - reader->at < TAR_BLOCK)
    return refuse (reader, "the archive has no end");
  if (pread (reader->file, header, TAR_BLOCK, (off_t) reader->at) != TAR_BLOCK)
    return -1;
  reader->at += TAR_BLOCK;
  return 0;
}

static int
check_header (struct reader *reader, const struct tar_header *header)
{
  uint64_t sum;

  if (memcmp (header->magic, "ustar", 5) != 0
      || parse_octal (header->checksum, sizeof header->checksum, &sum) < 0
      || sum != tar_checksum (header))
    return refuse (reader, "this is no tar archive, or it is damaged");
  return 0;
}

/* Two blocks of zeros, and nothing but zeros after them. */
static int
check_end (struct reader *reader)
{
  struct tar_header block;
  int blocks = 1;

  while (reader->at < reader->end) {
    if (read_header (reader, &block) < 0)
      return -1;
    if (!is_zero (&block))
      return refuse (reader, "the archive goes on after its end");
    blocks++;
  }
  return blocks >= 2 ? 0 : refuse (reader, "the archive has no end");
}

int
tar_unpack (struct coffer_call *call, int file, int to, const char **why)
{
  struct reader reader = {.call = call, .file = file, .to = to, .why = why};
  struct tar_header header;
  struct stat st;

  if (fstat (file, &st) < 0)
    return -1;
  reader.end = (uint64_t) st.st_size;
  for (;;) {
    if (read_header (&reader, &header) < 0)
      return -1;
    if (is_zero (&header))
      return reader.has_name || reader.has_link || reader.has_size ?
        refuse (&reader, "the archive ends after a pax header") :
        check_end (&reader);
    if (check_header (&reader, &header) < 0
        || read_entry (&reader, &header) < 0)
      return -1;
  }
}
