/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking an archive that anybody may have written, while it comes: every
 * field is checked, what is not known is refused and not left out, and nothing
 * is made but folders, files and links that stay inside. */

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

#include "internal.h"
#include "tar.h"

#define EXTRA_MAX (32 << 10)    /* a pax header, a long name */

struct reader {
  struct coffer_call *call;
  int in, to, links_out;
  uint64_t taken, names;        /* bytes so far; of names */
  unsigned entries;
  const char *why;
  /* of the entry, from its own header or from those before it */
  char name[PATH_LIMIT], link[PATH_LIMIT];
  uint64_t size;
  int has_name, has_link, has_size;
};

static int
refuse (struct reader *reader, const char *why)
{
  reader->why = why;
  errno = EINVAL;
  return -1;
}

/* `size` bytes of the archive: 1; 0 at its end; -1. */
static int
take (struct reader *reader, void *bytes, size_t size)
{
  ssize_t n = fd_take (reader->in, bytes, size, reader->call->deadline_ns,
                       reader->call->cancel_fd);

  if (n < 0 || (n == 0 && size > 0))
    return (int) n;
  if ((size_t) n != size)
    return refuse (reader, "the archive is cut off");
  reader->taken += size;
  if (reader->taken > TAR_BYTES_MAX) {
    errno = EFBIG;
    return -1;
  }
  return 1;
}

static int
take_whole (struct reader *reader, void *bytes, size_t size)
{
  int r = take (reader, bytes, size);

  return r == 0 ? refuse (reader, "the archive is cut off") : r;
}

static int
skip_padding (struct reader *reader, uint64_t size)
{
  char rest[TAR_BLOCK];

  return take_whole (reader, rest, tar_padding (size));
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
  if (size == 0 || size >= PATH_LIMIT || memchr (value, '\0', size))
    return refuse (reader, "a name in the archive is empty, too long or has a "
                   "NUL");
  memcpy (out, value, size);
  out[size] = '\0';
  *has = 1;
  return 0;
}

/* -- headers before an entry ---- */

static int
key_is (const char *key, size_t size, const char *word)
{
  return size == strlen (word) && memcmp (key, word, size) == 0;
}

static int
take_record (struct reader *reader, const char *key, size_t key_size,
             const char *value, size_t size)
{
  if (key_is (key, key_size, "path"))
    return take_text (reader, value, size, reader->name, &reader->has_name);
  if (key_is (key, key_size, "linkpath"))
    return take_text (reader, value, size, reader->link, &reader->has_link);
  if (key_is (key, key_size, "size")) {
    reader->has_size = 1;
    if (parse_decimal (value, size, &reader->size) < 0)
      return refuse (reader, "a size in the archive is no number");
  }
  if (key_size >= 10 && memcmp (key, "GNU.sparse", 10) == 0)
    return refuse (reader, "the archive has a sparse file: make it without");
  return 0;                     /* times, owners, comments */
}

/* "27 path=…\n", one after the other. */
static int
take_records (struct reader *reader, const char *text, size_t size)
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

/* What one of these would say of all entries is said of none. */
static int
take_global (struct reader *reader, const char *text, size_t size)
{
  if (reader->has_name || reader->has_link || reader->has_size
      || take_records (reader, text, size) < 0)
    return reader->why ? -1 :
      refuse (reader, "the archive has headers in a wrong order");
  if (reader->has_name || reader->has_link || reader->has_size)
    return refuse (reader, "a header in the archive names all of its entries");
  return 0;
}

static int
take_extra (struct reader *reader, char type, uint64_t size)
{
  char text[EXTRA_MAX];

  if (size > sizeof text)
    return refuse (reader, "a pax header in the archive is too long");
  if (take_whole (reader, text, (size_t) size) < 0
      || skip_padding (reader, size) < 0)
    return -1;
  if (type == 'x')
    return take_records (reader, text, (size_t) size);
  if (type == 'g')
    return take_global (reader, text, (size_t) size);
  if (size > 0 && text[size - 1] == '\0')
    size--;
  return type == 'L' ?
    take_text (reader, text, (size_t) size, reader->name, &reader->has_name) :
    take_text (reader, text, (size_t) size, reader->link, &reader->has_link);
}

/* -- entries ---- */

/* Folders below the root that the path goes through, counted; -1 when it leaves
 * the root at any time.  `depth` is where it begins. */
static int
depth_after (const char *path, int depth)
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
check_name (struct reader *reader, const char *name)
{
  int depth = depth_after (name, 0);

  if (name[0] == '/' || has_dotdot (name))
    return refuse (reader, "a name in the archive leaves the folder");
  if (depth > TAR_DEPTH_MAX)
    return refuse (reader, "a name in the archive is too deep");
  return depth;                 /* 0 is the folder itself */
}

/* What the sandbox has no room for is no fault of the archive's. */
static int
refuse_making (struct reader *reader, const char *why)
{
  return errno == ENOTDIR || errno == EEXIST || errno == ELOOP ?
    refuse (reader, why) : -1;
}

static int
make_folder (struct reader *reader, mode_t mode)
{
  coffer_autoclose int fd = -1;

  if (coffer_mkdir_beneath (reader->to, reader->name, 0700, 1) < 0)
    return refuse_making (reader, "a folder in the archive is something else "
                          "too");
  fd = coffer_open_beneath (reader->to, reader->name, O_RDONLY | O_DIRECTORY,
                            0);
  return fd < 0 ? -1 : fchmod (fd, mode | 0700);
}

static int
fill_file (struct reader *reader, int fd, const struct tar_header *header,
           mode_t mode)
{
  struct timespec times[2] = {{.tv_nsec = UTIME_NOW}};
  uint64_t mtime, copied = 0;

  if (reader->size > 0
      && coffer_copy (reader->in, fd, reader->size, reader->call->deadline_ns,
                      reader->call->cancel_fd, &copied) < 0)
    return -1;
  reader->taken += copied;
  if (copied != reader->size)
    return refuse (reader, "the archive is cut off");
  if (fchmod (fd, mode) < 0)
    return -1;
  if (parse_octal (header->mtime, sizeof header->mtime, &mtime) == 0)
    times[1].tv_sec = (time_t) mtime;
  return futimens (fd, times);
}

static int
make_file (struct reader *reader, const struct tar_header *header,
           mode_t mode)
{
  coffer_autoclose int parent = -1, fd = -1;
  const char *last;

  parent = coffer_open_parent (reader->to, reader->name, 1, &last);
  if (parent >= 0)
    fd = openat (parent, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
                               | O_CLOEXEC, 0600);
  if (fd < 0)
    return refuse_making (reader, "a file in the archive is there twice, or "
                          "below what is no folder");
  if (fill_file (reader, fd, header, mode) < 0)
    return -1;
  return skip_padding (reader, reader->size);
}

static int
make_link (struct reader *reader)
{
  coffer_autoclose int parent = -1;
  const char *last;

  if (reader->link[0] == '\0'
      || (!reader->links_out
          && (reader->link[0] == '/'
              || depth_after (reader->link,
                              depth_after (reader->name, 0) - 1) < 0)))
    return refuse (reader, "a link in the archive leaves the folder");
  parent = coffer_open_parent (reader->to, reader->name, 1, &last);
  if (parent < 0 || symlinkat (reader->link, parent, last) < 0)
    return refuse_making (reader, "a link in the archive is there twice, or "
                          "below what is no folder");
  return 0;
}

/* A second name of a file that came before. */
static int
make_hard_link (struct reader *reader)
{
  coffer_autoclose int from = -1, parent = -1;
  const char *first, *last;
  struct stat st;

  if (check_name (reader, reader->link) <= 0)
    return refuse (reader, "a link in the archive leaves the folder");
  from = coffer_open_parent (reader->to, reader->link, 0, &first);
  if (from < 0 || fstatat (from, first, &st, AT_SYMLINK_NOFOLLOW) < 0
      || !S_ISREG (st.st_mode))
    return refuse (reader, "a hard link in the archive is to no file before "
                   "it");
  parent = coffer_open_parent (reader->to, reader->name, 1, &last);
  if (parent < 0 || linkat (from, first, parent, last, 0) < 0)
    return refuse_making (reader, "a link in the archive is there twice, or "
                          "below what is no folder");
  return 0;
}

/* The kind, the mode and the size, as far as they are known here. */
static int
check_entry (struct reader *reader, const struct tar_header *header,
             char type, uint64_t *mode)
{
  if (parse_octal (header->mode, sizeof header->mode, mode) < 0)
    return refuse (reader, "a mode in the archive is no number");
  if (type != '0' && type != '1' && type != '2' && type != '5')
    return refuse (reader, "the archive has what is no file, folder or link");
  if (type != '2' && (*mode & 07000) != 0)
    return refuse (reader, "the archive has setuid, setgid or sticky bits");
  if (type != '0' && reader->size != 0)
    return refuse (reader, "the archive has bytes of what has none");
  return 0;
}

static int
make_entry (struct reader *reader, const struct tar_header *header)
{
  const char type = header->type ? header->type : '0';
  int depth = check_name (reader, reader->name);
  uint64_t mode;

  if (depth < 0 || check_entry (reader, header, type, &mode) < 0)
    return -1;
  if (type == '5')
    return depth == 0 ? 0 : make_folder (reader, mode & 0777);
  if (depth == 0 || reader->name[strlen (reader->name) - 1] == '/')
    return refuse (reader, "a file in the archive has the name of a folder");
  if (type == '1')
    return make_hard_link (reader);
  return type == '2' ? make_link (reader) :
    make_file (reader, header, mode & 0777);
}

/* -- headers ---- */

/* A prefix, which GNU tar has not, and a name, each ended by a NUL or by its
 * field's end. */
static int
take_header_names (struct reader *reader, const struct tar_header *header)
{
  char name[sizeof header->prefix + sizeof header->name + 2];
  int n = header->prefix[0] && header->magic[5] == '\0' ?
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
  if (header->type != '\0' && strchr ("xgLK", header->type))
    return take_extra (reader, header->type, size);
  if (!reader->has_size)
    reader->size = size;
  if (take_header_names (reader, header) < 0)
    return -1;
  reader->names += strlen (reader->name);
  if (++reader->entries > TAR_ENTRIES_MAX || reader->names > TAR_NAMES_MAX
      || reader->size > TAR_BYTES_MAX) {
    errno = EFBIG;
    return -1;
  }
  if (make_entry (reader, header) < 0)
    return -1;
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
check_header (struct reader *reader, const struct tar_header *header)
{
  uint64_t sum;

  if (memcmp (header->magic, "ustar", 5) != 0
      || parse_octal (header->checksum, sizeof header->checksum, &sum) < 0
      || sum != tar_checksum (header))
    return refuse (reader, "this is no tar archive, or it is damaged or "
                   "compressed");
  return 0;
}

/* A second block of zeros, and nothing but zeros after it. */
static int
check_end (struct reader *reader)
{
  struct tar_header block;
  int r, blocks = 1;

  if (reader->has_name || reader->has_link || reader->has_size)
    return refuse (reader, "the archive ends after a header of an entry");
  for (; (r = take (reader, &block, sizeof block)) > 0; blocks++)
    if (!is_zero (&block))
      return refuse (reader, "the archive goes on after its end");
  return r < 0 || blocks >= 2 ? r :
    refuse (reader, "the archive has no end");
}

static int
unpack (struct reader *reader)
{
  struct tar_header header;
  int r;

  for (;;) {
    r = take (reader, &header, sizeof header);
    if (r <= 0)
      return r < 0 ? -1 : refuse (reader, "the archive has no end");
    if (is_zero (&header))
      return check_end (reader);
    if (check_header (reader, &header) < 0
        || read_entry (reader, &header) < 0)
      return -1;
  }
}

int
tar_unpack (struct coffer_call *call, int in, int to, int links_out,
            const char **why)
{
  coffer_unfilled struct reader reader;
  int r;

  reader.call = call;
  reader.in = in;
  reader.to = to;
  reader.links_out = links_out;
  reader.taken = reader.names = reader.size = 0;
  reader.entries = 0;
  reader.why = NULL;
  reader.has_name = reader.has_link = reader.has_size = 0;
  r = unpack (&reader);
  *why = reader.why;
  return r;
}
