/* SPDX-License-Identifier: Apache-2.0 */
/* Setting one key of an operator's file.  The text is cut where the reader saw
 * key and value, so that comments, order and layout stay those of the person
 * who wrote it; what comes out is read again and must differ in that key
 * alone. */

#include <config.h>

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/place.h"
#include "base/text.h"
#include "base/yaml.h"

/* Another edit takes no longer than a write and an fsync. */
#define LOCK_TRIES 500
#define LOCK_PAUSE_US 20000

struct editing {
  const char *bytes;
  size_t size;
  const struct yaml_source *source;
  const char *key, *value;      /* value NULL: take the key out */
  struct yaml_node *root;       /* NULL: blank */
};

/* Replaces the bytes from `start` to `end`. */
struct splice {
  size_t start, end;
  char *text;
};

int
yaml_is_blank (const char *bytes, size_t size)
{
  size_t i;
  int comment = 0;

  for (i = 0; i < size; i++) {
    if (bytes[i] == '\n')
      comment = 0;
    else if (bytes[i] == '#')
      comment = 1;
    else if (!comment && !strchr (" \t\r", bytes[i]))
      return 0;
  }
  return 1;
}

static size_t
key_index (const struct yaml_node *map, const char *key)
{
  size_t i;

  for (i = 0; map && map->keys && i < map->count; i++) {
    if (strcmp (map->keys[i], key) == 0)
      return i;
  }
  return SIZE_MAX;
}

static int
fail_shape (const struct editing *e, struct error **err)
{
  error_set (err, e->source->number, 0,
             "%s: %s cannot be changed in its text without changing more",
             e->source->name, e->key);
  error_hint (err, e->value ? "write %s: %s into it by hand"
                            : "take %s out of it by hand",
              e->key, e->value);
  return -1;
}

/* -- the cuts -------------------------------------------------------------- */

/* A block scalar ends after its newline; after a colon there is a space. */
static void
cut_value (const struct editing *e, const struct yaml_node *node,
           struct splice *out)
{
  const int line = node->end > node->start && e->bytes[node->end - 1] == '\n';
  const int bare = node->end == node->start && node->start > 0
                   && e->bytes[node->start - 1] == ':';

  out->start = node->start;
  out->end = node->end;
  out->text = text_printf ("%s%s%s", bare ? " " : "", e->value,
                           line ? "\n" : "");
}

/* After the last value of {…}, or a line at the end of the file. */
static void
cut_new (const struct editing *e, struct splice *out)
{
  const struct yaml_node *root = e->root;
  const int open = e->size > 0 && e->bytes[e->size - 1] != '\n';

  if (root && root->flow) {
    out->start = root->count ? root->items[root->count - 1].end
                             : root->start + 1;
    out->text = text_printf ("%s%s: %s", root->count ? ", " : "", e->key,
                             e->value);
  } else {
    out->start = e->size;
    out->text = text_printf ("%s%*s%s: %s\n", open ? "\n" : "",
                             root ? (int) root->key_marks[0].column - 1 : 0,
                             "", e->key, e->value);
  }
  out->end = out->start;
}

/* Of {…} with the comma that goes with it; else all of its lines. */
static void
cut_out (const struct editing *e, size_t i, struct splice *out)
{
  const struct yaml_node *root = e->root;
  const char *newline;

  out->start = root->key_marks[i].start;
  out->end = root->items[i].end;
  if (root->flow && i > 0)
    out->start = root->items[i - 1].end;
  else if (root->flow && root->count > 1)
    out->end = root->key_marks[1].start;
  else if (!root->flow) {
    while (out->start > 0 && e->bytes[out->start - 1] == ' ')
      out->start--;
    newline = e->bytes[out->end - 1] == '\n'
                ? NULL : memchr (e->bytes + out->end, '\n',
                                 e->size - out->end);
    if (newline)
      out->end = (size_t) (newline - e->bytes) + 1;
    else if (e->bytes[out->end - 1] != '\n')
      out->end = e->size;
  }
  out->text = strdup ("");
}

static int
cut (const struct editing *e, struct splice *out, struct error **err)
{
  const size_t i = key_index (e->root, e->key);

  if (e->root && e->root->kind != YAML_MAP)
    return yaml_fail (e->source, e->root, err,
                      "expected a map of keys and values");
  if (i != SIZE_MAX && e->root->items[i].kind != YAML_SCALAR)
    return yaml_fail (e->source, &e->root->items[i], err,
                      "%s must be a single value", e->key);
  if (i == SIZE_MAX)
    cut_new (e, out);
  else if (e->value)
    cut_value (e, &e->root->items[i], out);
  else
    cut_out (e, i, out);
  return out->text ? 0 : error_set (err, E_NO_MEMORY, 0, "%s",
                                    e->source->name);
}

/* -- what comes out -------------------------------------------------------- */

static int
is_same (const struct yaml_node *a, const struct yaml_node *b)
{
  size_t i;

  if (a->kind != b->kind || a->count != b->count || a->quoted != b->quoted)
    return 0;
  if (a->kind == YAML_SCALAR)
    return strcmp (a->text, b->text) == 0;
  for (i = 0; i < a->count; i++) {
    if ((a->keys && strcmp (a->keys[i], b->keys[i]) != 0)
        || !is_same (&a->items[i], &b->items[i]))
      return 0;
  }
  return 1;
}

/* Every key of `a` but the edited one is in `b`, with the same value. */
static int
is_within (const struct yaml_node *a, const struct yaml_node *b,
           const char *key)
{
  size_t i;

  for (i = 0; a && i < a->count; i++) {
    const struct yaml_node *other = yaml_get (b, a->keys[i]);

    if (strcmp (a->keys[i], key) != 0
        && (other == NULL || !is_same (&a->items[i], other)))
      return 0;
  }
  return 1;
}

static int
check_result (const struct editing *e, const char *text, size_t size,
              struct error **err)
{
  auto_yaml struct yaml_node *root = NULL;
  const struct yaml_node *node;
  int good;

  if (!yaml_is_blank (text, size)
      && (yaml_read (text, size, e->source->name, e->source->number, &root,
                     NULL) < 0 || root->kind != YAML_MAP))
    return fail_shape (e, err);
  node = yaml_get (root, e->key);
  if (e->value)
    good = node && node->kind == YAML_SCALAR && !node->quoted
           && strcmp (node->text, e->value) == 0;
  else
    good = node == NULL;
  if (!good || !is_within (e->root, root, e->key)
      || !is_within (root, e->root, e->key))
    return fail_shape (e, err);
  return 0;
}

/* What is there already is not written anew. */
static int
is_done (const struct editing *e)
{
  const struct yaml_node *node = yaml_get (e->root, e->key);

  if (e->value == NULL)
    return e->root == NULL || (e->root->kind == YAML_MAP && node == NULL);
  return node && node->kind == YAML_SCALAR
         && strcmp (node->text, e->value) == 0;
}

int
yaml_edit (const char *bytes, size_t size, const struct yaml_source *source,
           const char *key, const char *value, char **out, size_t *out_size,
           struct error **err)
{
  struct editing e = { bytes, size, source, key, value, NULL };
  auto_yaml struct yaml_node *root = NULL;
  coffer_autobuffer struct coffer_buffer text = { 0 };
  struct splice splice = { size, size, NULL };

  if (!yaml_is_blank (bytes, size)
      && yaml_read (bytes, size, source->name, source->number, &root, err) < 0)
    return -1;
  e.root = root;
  if (!is_done (&e) && cut (&e, &splice, err) < 0)
    return -1;
  coffer_buffer_add (&text, bytes, splice.start);
  coffer_buffer_add_string (&text, splice.text ? splice.text : "");
  coffer_buffer_add (&text, bytes + splice.end, size - splice.end);
  free (splice.text);
  if (text.failed)
    return error_set (err, E_NO_MEMORY, 0, "%s", source->name);
  if (!is_done (&e)
      && check_result (&e, text.data ? text.data : "", text.size, err) < 0)
    return -1;
  *out_size = text.size;
  *out = coffer_buffer_steal (&text);
  if (*out == NULL)
    *out = strdup ("");
  return *out ? 0 : error_set (err, E_NO_MEMORY, 0, "%s", source->name);
}

/* -- the file -------------------------------------------------------------- */

/* One edit of a folder at a time; the lock goes with the descriptor. */
static int
lock_folder (int dir, const struct yaml_source *source, struct error **err)
{
  int i, fd = openat (dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (fd < 0)
    return error_set (err, E_IO, errno, "write %s", source->name);
  for (i = 0; flock (fd, LOCK_EX | LOCK_NB) < 0; i++) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || i == LOCK_TRIES) {
      error_set (err, errno == EWOULDBLOCK ? E_BUSY : E_IO, errno,
                 "lock the folder of %s", source->name);
      coffer_fd_close (&fd);
      return -1;
    }
    usleep (LOCK_PAUSE_US);
  }
  return fd;
}

/* The mode is kept; a new file is for everybody to read. */
static int
write_file (int dir, const char *name, const struct yaml_source *source,
            const char *text, size_t size, struct error **err)
{
  struct coffer_new_file file = { 0 };
  struct stat st;
  mode_t mode = 0644;
  int fd;

  if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
    mode = st.st_mode & 0777;
  fd = coffer_new_file_begin (&file, dir, name, mode, 0);
  if (fd < 0)
    return error_set (err, E_IO, errno, "write %s", source->name);
  if (coffer_write_all (fd, text, size) < 0
      || coffer_new_file_commit (&file, 1, 0) < 0) {
    error_set (err, E_IO, errno, "write %s", source->name);
    coffer_new_file_abort (&file);
    return -1;
  }
  return 0;
}

static int
read_file (int dir, const char *name, const struct yaml_source *source,
           char **bytes, size_t *size, struct error **err)
{
  if (faccessat (dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
    return 0;
  return place_read_trusted (dir, name, source->name, YAML_MAX_BYTES,
                             source->number, bytes, size, err);
}

int
yaml_edit_file (int dir, const char *name, const struct yaml_source *source,
                const char *key, const char *value, int *changed,
                struct error **err)
{
  coffer_autoclose int lock = lock_folder (dir, source, err);
  auto_free char *bytes = NULL, *text = NULL;
  size_t size = 0, text_size = 0;
  const char *old;

  if (lock < 0 || read_file (dir, name, source, &bytes, &size, err) < 0)
    return -1;
  old = bytes ? bytes : "";
  if (yaml_edit (old, size, source, key, value, &text, &text_size, err) < 0)
    return -1;
  *changed = text_size != size || memcmp (text, old, size) != 0;
  if (!*changed)
    return 0;
  place_sweep (dir);
  return write_file (dir, name, source, text, text_size, err);
}
