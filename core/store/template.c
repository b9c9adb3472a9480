/* SPDX-License-Identifier: Apache-2.0 */
/* Adding, listing, using and removing templates. */

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/helper.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/template.h"

#define ENTRY_MAX 65536
#define NAMES_MAX 4096

/* ---- the folder ---------------------------------------------------------- */

static int
store_open (const struct place *place, struct error **err)
{
  auto_free char *path = text_printf ("%s/templates", place->state);

  if (!path)
    return error_set (err, E_NO_MEMORY, 0, "templates");
  return place_open_dir (path, err);
}

/* As store_open, but what is not there is not made: -1 without an error. */
static int
store_look (const struct place *place, struct error **err)
{
  auto_free char *path = text_printf ("%s/templates", place->state);
  struct error *error = NULL;
  int fd;

  if (!path)
    return error_set (err, E_NO_MEMORY, 0, "templates");
  fd = place_open_trusted_dir (path, &error);
  if (fd < 0 && error->number == E_NOT_FOUND) {
    error_free (error);
    return -1;
  }
  if (fd < 0)
    error_move (err, error);
  return fd;
}

static int
fail_unknown (const char *name, const json_t *list, struct error **err)
{
  auto_free char *shown = text_escape (name, strlen (name));
  auto_free const char **names = NULL;
  const char *nearest = NULL;
  json_t *item;
  size_t i;

  names = calloc (json_array_size (list) + 1, sizeof *names);
  json_array_foreach (list, i, item)
    if (names)
      names[i] = json_string_value (json_object_get (item, "name"));
  if (names)
    nearest = text_nearest (name, names);
  error_set (err, E_NOT_FOUND, 0, "there is no template %.64s on this host",
             shown ? shown : "?");
  if (nearest)
    error_hint (err, "did you mean %s? coffer template list shows all",
                nearest);
  else
    error_hint (err, "coffer template list shows the templates there are;"
                " coffer template add makes one");
  return -1;
}

/* ---- entries ------------------------------------------------------------- */

/* 1: read; 0: no such name. */
static int
entry_read (int store, const char *name, json_t **out, struct error **err)
{
  auto_free char *file = text_printf ("%s.json", name), *bytes = NULL;
  const char *digest;
  size_t size = 0;

  if (!file)
    return error_set (err, E_NO_MEMORY, 0, "template %s", name);
  if (!text_is_id (name)
      || (faccessat (store, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0
          && errno == ENOENT))
    return 0;
  if (place_read_trusted (store, file, file, ENTRY_MAX, E_IO, &bytes, &size,
                          err) < 0
      || json_parse (bytes, size, out, err) < 0)
    return error_wrap (err, "template %s", name);
  digest = json_string_value (json_object_get (*out, "digest"));
  if (digest && sha256_is_hex (digest))
    return 1;
  json_decref (*out);
  *out = NULL;
  return error_set (err, E_IO, 0, "template %s: its entry has no digest",
                    name);
}

static int
entry_write (int store, const char *name, const json_t *entry,
             struct error **err)
{
  auto_free char *file = text_printf ("%s.json", name);
  auto_free char *text = json_text (entry);
  struct coffer_new_file out = { 0 };
  int saved;

  if (!file || !text)
    return error_set (err, E_NO_MEMORY, 0, "template %s", name);
  if (coffer_new_file_begin (&out, store, file, 0600, 0) >= 0
      && coffer_write_all (out.fd, text, strlen (text)) >= 0
      && coffer_new_file_commit (&out, 1, 1) == 0)
    return 0;
  saved = errno;
  coffer_new_file_abort (&out);
  if (saved == EEXIST)
    return error_set (err, E_TEMPLATE_EXISTS, 0,
                      "there is a template %s already", name);
  return error_set (err, E_IO, saved, "template %s", name);
}

static int
compare_names (const void *a, const void *b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

/* The names, sorted; freed one by one and then the vector. */
static char **
names_read (int store, size_t *count)
{
  int fd = openat (store, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  char **names = calloc (NAMES_MAX, sizeof *names);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *entry;

  *count = 0;
  if (!stream)
    coffer_fd_close (&fd);
  while (names && stream && (entry = readdir (stream))
         && *count < NAMES_MAX) {
    size_t length = strlen (entry->d_name);

    if (length < 6 || strcmp (entry->d_name + length - 5, ".json") != 0)
      continue;
    entry->d_name[length - 5] = '\0';
    if (text_is_id (entry->d_name)
        && (names[*count] = strdup (entry->d_name)))
      ++*count;
  }
  if (stream)
    closedir (stream);
  if (names)
    qsort (names, *count, sizeof *names, compare_names);
  return names;
}

static int
entries_read (int store, json_t **out, struct error **err)
{
  size_t count = 0, i;
  char **names = names_read (store, &count);
  json_t *list = json_array (), *entry;
  int r = names ? 0 : error_set (err, E_NO_MEMORY, 0, "templates");

  for (i = 0; i < count; i++) {
    entry = NULL;
    if (r == 0 && entry_read (store, names[i], &entry, err) < 0)
      r = -1;
    else if (entry)
      json_array_append_new (list, entry);
    free (names[i]);
  }
  free (names);
  if (r < 0) {
    json_decref (list);
    return -1;
  }
  *out = list;
  return 0;
}

int
template_list (const struct place *place, json_t **out, struct error **err)
{
  struct error *error = NULL;
  coffer_autoclose int store = store_look (place, &error);

  if (store < 0 && error)
    return error_move (err, error);
  if (store < 0) {
    *out = json_array ();
    return 0;
  }
  return entries_read (store, out, err);
}

/* Shared by who uses the tree, alone for who removes it. */
static int
folder_lock (int store, const char *digest, int how, int *folder,
             struct error **err)
{
  coffer_autoclose int dir = -1, lock = -1;

  dir = openat (store, digest,
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0)
    return error_set (err, E_IO, errno, "template %.12s", digest);
  lock = openat (dir, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0)
    return error_set (err, E_IO, errno, "template %.12s", digest);
  if (flock (lock, how | LOCK_NB) < 0)
    return error_set (err, errno == EWOULDBLOCK ? E_BUSY : E_IO,
                      errno == EWOULDBLOCK ? 0 : errno,
                      "template %.12s is in use", digest);
  *folder = coffer_fd_steal (&dir);
  return coffer_fd_steal (&lock);
}

/* ---- adding -------------------------------------------------------------- */

struct adding {
  const struct place *place;
  int store;
  char folder[32];              /* .new-RANDOM; "": it is in place */
  int lock;                     /* the folder, held */
  int shared;                   /* that of the same tree; -1: it is new */
  int root;
};

static void
adding_fini (struct adding *adding)
{
  if (adding->folder[0])
    coffer_remove_beneath (adding->store, adding->folder, 1, NULL);
  coffer_fd_close (&adding->root);
  coffer_fd_close (&adding->lock);
  coffer_fd_close (&adding->shared);
  coffer_fd_close (&adding->store);
}

/* Nobody's: no maker holds the folder, and no user or maker of a second name
 * its lock. */
static int
is_free (int folder)
{
  coffer_autoclose int lock = -1;

  if (flock (folder, LOCK_EX | LOCK_NB) < 0)
    return 0;
  lock = openat (folder, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  return lock < 0 || flock (lock, LOCK_EX | LOCK_NB) == 0;
}

/* A tree that no name leads to, and what was not even finished. */
static int
is_left (const char *folder, const json_t *names)
{
  json_t *entry;
  size_t i;

  if (strncmp (folder, ".new-", 5) == 0)
    return 1;
  if (!sha256_is_hex (folder))
    return 0;
  json_array_foreach (names, i, entry)
    if (strcmp (json_string_value (json_object_get (entry, "digest")), folder)
        == 0)
      return 0;
  return 1;
}

/* What a process that was killed left half done. */
static void
sweep (int store)
{
  auto_json json_t *names = NULL;
  int fd = openat (store, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *entry;

  if (!stream) {
    coffer_fd_close (&fd);
    return;
  }
  while ((entry = readdir (stream))) {
    coffer_autoclose int left = -1;

    left = openat (store, entry->d_name,
                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (left < 0 || !is_free (left))
      continue;
    /* Read while it is held: its maker may just have written the name. */
    json_decref (steal (names));
    if (entries_read (store, &names, NULL) < 0)
      break;
    if (is_left (entry->d_name, names)
        && coffer_remove_beneath (store, entry->d_name, 1, NULL) < 0
        && errno != ENOENT)
      log_event (LOG_LEVEL_WARNING, "template", "%s is left: %s",
                 entry->d_name, strerror (errno));
  }
  closedir (stream);
}

static int
adding_begin (struct adding *adding, struct error **err)
{
  coffer_autoclose int file = -1;
  uint64_t random;

  if (getrandom (&random, sizeof random, 0) != sizeof random)
    return error_set (err, E_IO, errno, "random bytes");
  snprintf (adding->folder, sizeof adding->folder, ".new-%016llx",
            (unsigned long long) random);
  if (mkdirat (adding->store, adding->folder, 0700) < 0) {
    adding->folder[0] = '\0';
    return error_set (err, E_IO, errno, "a folder for the template");
  }
  adding->lock = openat (adding->store, adding->folder,
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (adding->lock < 0 || flock (adding->lock, LOCK_EX | LOCK_NB) < 0
      || mkdirat (adding->lock, "root", 0755) < 0)
    return error_set (err, E_IO, errno, "a folder for the template");
  file = openat (adding->lock, "lock",
                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  adding->root = openat (adding->lock, "root",
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0 || adding->root < 0)
    return error_set (err, E_IO, errno, "a folder for the template");
  return 0;
}

static int
source_open (const char *path, int *is_folder, uint64_t *size,
             struct error **err)
{
  coffer_autoclose int fd = -1;
  struct stat st;

  *is_folder = 0;
  *size = 0;
  if (strcmp (path, "-") == 0) {
    fd = fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? error_set (err, E_IO, errno, "standard input")
                  : coffer_fd_steal (&fd);
  }
  fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 || fstat (fd, &st) < 0)
    return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno,
                      "opening it");
  *is_folder = S_ISDIR (st.st_mode);
  if (!*is_folder && !S_ISREG (st.st_mode))
    return error_set (err, E_INVALID, 0,
                      "%s is neither a folder nor an archive", path);
  if (!*is_folder)
    *size = (uint64_t) st.st_size;
  return coffer_fd_steal (&fd);
}

static int
archive_start (const struct adding *adding, const char *mode, int in, int out,
               int folder, struct helper *helper, struct error **err)
{
  const char *const arguments[] = { mode, NULL };
  const struct helper_program program = {
    .name = "coffer-archive", .arguments = arguments, .in = in, .out = out,
    .folder = folder, .number = E_ARCHIVE
  };

  return helper_start (adding->place, &program, helper, err);
}

/* A folder goes through the same strict reader as what a stranger packed. */
static int
fill (struct adding *adding, const char *path,
      const struct helper_watch *watch, json_t **report, struct error **err)
{
  auto_helper struct helper packer = { .report = -1 };
  auto_helper struct helper unpacker = { .report = -1 };
  auto_error struct error *unpacked = NULL;
  auto_json json_t *packed = NULL;
  uint64_t size;
  int is_folder, ends[2], r;
  coffer_autoclose int source = source_open (path, &is_folder, &size, err);
  coffer_autoclose int reads = -1, writes = -1;

  if (source < 0)
    return -1;
  if (!is_folder)
    return archive_start (adding, "unpack", source, -1, adding->root,
                          &unpacker, err) < 0
             ? -1 : helper_finish (&unpacker, watch, source, size, report, err);
  if (pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a pipe");
  reads = ends[0];
  writes = ends[1];
  if (archive_start (adding, "pack", -1, writes, source, &packer, err) < 0
      || archive_start (adding, "unpack", reads, -1, adding->root, &unpacker,
                        err) < 0)
    return -1;
  coffer_fd_close (&reads);
  coffer_fd_close (&writes);
  r = helper_finish (&unpacker, watch, -1, 0, report, &unpacked);
  /* A packer that was cut off says less than who cut it off. */
  if (r < 0 && unpacked->number != E_ARCHIVE)
    return error_move (err, steal (unpacked));
  if (helper_finish (&packer, watch, -1, 0, &packed, r < 0 ? NULL : err) < 0
      && r == 0)
    return -1;
  return r < 0 ? error_move (err, steal (unpacked)) : 0;
}

/* Under the digest, unless the same tree is there already: then it is held, so
 * that nobody removes it before it has one more name. */
static int
put (struct adding *adding, const char *digest, struct error **err)
{
  coffer_autoclose int folder = -1;

  if (renameat (adding->store, adding->folder, adding->store, digest) == 0) {
    adding->folder[0] = '\0';
    fsync (adding->store);
    return 0;
  }
  if (errno != EEXIST && errno != ENOTEMPTY)
    return error_set (err, E_IO, errno, "template %s", digest);
  adding->shared = folder_lock (adding->store, digest, LOCK_SH, &folder, err);
  return adding->shared < 0 ? -1 : 0;
}

static int
add (struct adding *adding, const char *name, const char *path,
     const struct helper_watch *watch, json_t **out, struct error **err)
{
  auto_json json_t *report = NULL, *entry = NULL;
  const char *digest;

  if (adding_begin (adding, err) < 0)
    return -1;
  if (fill (adding, path, watch, &report, err) < 0)
    return error_wrap (err, "%s", path);
  digest = json_string_value (json_object_get (report, "digest"));
  if (!digest || !sha256_is_hex (digest))
    return error_set (err, E_ARCHIVE, 0, "%s: no digest was reported", path);
  if (!json_is_true (json_object_get (report, "confined")))
    log_event (LOG_LEVEL_WARNING, "template", "this kernel has no Landlock:"
               " the archive was read with a filter of system calls alone");
  json_object_del (report, "confined");
  entry = json_pack ("{s:s, s:s, s:I}", "name", name, "source", path,
                     "created_ns", (json_int_t) coffer_realtime_ns ());
  if (!entry || json_object_update (entry, report) < 0)
    return error_set (err, E_NO_MEMORY, 0, "template %s", name);
  if (put (adding, digest, err) < 0
      || entry_write (adding->store, name, entry, err) < 0)
    return -1;
  *out = steal (entry);
  return 0;
}

int
template_add (const struct place *place, const char *name, const char *path,
              const struct helper_watch *watch, json_t **out,
              struct error **err)
{
  __attribute__ ((cleanup (adding_fini))) struct adding adding
    = { .place = place, .store = -1, .lock = -1, .shared = -1, .root = -1 };
  auto_json json_t *there = NULL;
  int r;

  if (!text_is_id (name))
    return error_set (err, E_INVALID, 0, "%.64s is not a template's name: a"
                      " letter, then at most 31 letters, digits and dashes,"
                      " in lower case", name);
  adding.store = store_open (place, err);
  if (adding.store < 0)
    return -1;
  sweep (adding.store);
  r = entry_read (adding.store, name, &there, err);
  if (r < 0)
    return -1;
  if (r > 0)
    return error_set (err, E_TEMPLATE_EXISTS, 0,
                      "there is a template %s already", name);
  return add (&adding, name, path, watch, out, err);
}

/* ---- using --------------------------------------------------------------- */

void
template_use_fini (struct template_use *use)
{
  free (use->digest);
  use->digest = NULL;
  coffer_fd_close (&use->root);
  coffer_fd_close (&use->lock);
}

static int
digest_find (int store, const char *name, char **digest, struct error **err)
{
  auto_json json_t *entry = NULL, *list = NULL;
  int r = store < 0 ? 0 : entry_read (store, name, &entry, err);

  if (r < 0)
    return -1;
  if (r == 0) {
    if (store >= 0)
      entries_read (store, &list, NULL);
    return fail_unknown (name, list, err);
  }
  *digest = strdup (json_string_value (json_object_get (entry, "digest")));
  return *digest ? 0 : error_set (err, E_NO_MEMORY, 0, "template %s", name);
}

int
template_open (const struct place *place, const char *name,
               struct template_use *out, struct error **err)
{
  struct error *error = NULL;
  coffer_autoclose int store = store_look (place, &error), folder = -1;

  if (error)
    return error_move (err, error);
  if (digest_find (store, name, &out->digest, err) < 0)
    return -1;
  out->lock = folder_lock (store, out->digest, LOCK_SH, &folder, err);
  if (out->lock < 0)
    return -1;
  out->root = openat (folder, "root",
                      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return out->root < 0
           ? error_set (err, E_IO, errno, "template %s", name) : 0;
}

/* ---- removing ------------------------------------------------------------ */

static int
names_of (int store, const char *digest, size_t *count, struct error **err)
{
  auto_json json_t *list = NULL;
  json_t *entry;
  size_t i;

  *count = 0;
  if (entries_read (store, &list, err) < 0)
    return -1;
  json_array_foreach (list, i, entry)
    *count += strcmp (json_string_value (json_object_get (entry, "digest")),
                      digest) == 0;
  return 0;
}

/* Held alone: whoever wants it now is told that it is in use. */
static int
tree_remove (int store, const char *name, const char *file,
             const char *digest, int last, struct error **err)
{
  char gone[32];
  uint64_t random;

  if (unlinkat (store, file, 0) < 0)
    return error_set (err, E_IO, errno, "template %s", name);
  fsync (store);
  if (!last)
    return 0;
  if (getrandom (&random, sizeof random, 0) != sizeof random)
    return error_set (err, E_IO, errno, "random bytes");
  snprintf (gone, sizeof gone, ".new-%016llx", (unsigned long long) random);
  if (renameat (store, digest, store, gone) < 0
      || (coffer_remove_beneath (store, gone, 1, NULL) < 0
          && errno != ENOENT))
    return error_set (err, E_IO, errno, "template %s", name);
  return 0;
}

int
template_remove (const struct place *place, const char *name,
                 template_in_use *in_use, void *data, struct error **err)
{
  struct error *error = NULL;
  coffer_autoclose int store = store_look (place, &error);
  coffer_autoclose int lock = -1, folder = -1;
  auto_free char *digest = NULL, *who = NULL, *file = NULL;
  size_t names;

  if (error)
    return error_move (err, error);
  if (digest_find (store, name, &digest, err) < 0)
    return -1;
  sweep (store);
  lock = folder_lock (store, digest, LOCK_EX, &folder, err);
  if (lock < 0 || in_use (data, digest, &who, err) < 0)
    return lock < 0 ? error_wrap (err, "%s", name) : -1;
  if (who)
    return error_set (err, E_BUSY, 0, "template %s is in use by %s", name,
                      who);
  file = text_printf ("%s.json", name);
  if (!file)
    return error_set (err, E_NO_MEMORY, 0, "template %s", name);
  if (names_of (store, digest, &names, err) < 0)
    return -1;
  return tree_remove (store, name, file, digest, names == 1, err);
}
