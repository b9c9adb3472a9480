/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a manifest, and copying what belongs to it.  The folder is its
 * author's: whose files they are is no matter, as every byte is compared with
 * the hash in the manifest while it is copied, and links are not followed. */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/conformance.h"
#include "provider/integrity.h"
#include "provider/package.h"
#include "provider/provider.h"
#include "provider/registry.h"

#define MAX_EXTRA (4 * 1024 * 1024)     /* of a text that goes along */
#define MAX_NAMES 1024
#define CHUNK (64 * 1024)

void
package_fini (struct package *package)
{
  coffer_fd_close (&package->folder);
  free (package->shown);
  free (package->bytes);
  manifest_free (package->manifest);
  *package = (struct package){ .folder = -1 };
}

/* -- what is in a folder --------------------------------------------------- */

/* Names of one kind (S_IFREG, S_IFDIR), none of them hidden. */
static int
names_read (int folder, mode_t kind, struct coffer_strings *names,
            struct error **err)
{
  int fd = openat (folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *item;
  struct stat st;

  if (stream == NULL) {
    error_set (err, E_IO, errno, "read the folder");
    coffer_fd_close (&fd);
    return -1;
  }
  while ((item = readdir (stream)) && names->count <= MAX_NAMES) {
    if (item->d_name[0] != '.'
        && fstatat (folder, item->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
        && (st.st_mode & S_IFMT) == kind)
      coffer_strings_add (names, item->d_name);
  }
  closedir (stream);
  /* Which of them were read first would decide. */
  if (names->count > MAX_NAMES)
    return error_set (err, E_LIMIT, 0, "it has more than %d %s", MAX_NAMES,
                      kind == S_IFDIR ? "folders" : "files");
  return names->failed ? error_set (err, E_NO_MEMORY, 0, "read the folder")
                       : 0;
}

/* "ID" of "ID.yaml" into `id`; 0 when it is none. */
static int
id_of (const char *name, char id[64])
{
  const size_t length = strlen (name);

  if (length <= 5 || length - 5 >= 64
      || strcmp (name + length - 5, ".yaml") != 0)
    return 0;
  memcpy (id, name, length - 5);
  id[length - 5] = '\0';
  return text_is_id (id);
}

/* A regular file, at most `limit` bytes, without following a link. */
static int
file_open (int folder, const char *name, off_t limit, struct stat *st,
           struct error **err)
{
  coffer_autoclose int fd = openat (
    folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

  if (fd < 0)
    return error_set (err, errno == ELOOP ? E_UNSAFE_FILE : E_INTEGRITY, errno,
                      "open %s", name);
  if (fstat (fd, st) < 0 || !S_ISREG (st->st_mode))
    return error_set (err, E_UNSAFE_FILE, 0, "%s is not a regular file", name);
  if (st->st_size > limit)
    return error_set (err, E_INTEGRITY, 0, "%s is larger than %lld MiB", name,
                      (long long) limit >> 20);
  return coffer_fd_steal (&fd);
}

/* -- finding the manifest -------------------------------------------------- */

static int
manifest_read_in (int folder, const char *name, const char *shown,
                  struct package *package, struct error **err)
{
  auto_free char *path = text_printf ("%s/%s", shown, name);
  coffer_autoclose int fd = -1;
  struct stat st;

  if (path == NULL)
    return error_set (err, E_NO_MEMORY, 0, "read %s", name);
  fd = file_open (folder, name, YAML_MAX_BYTES, &st, err);
  if (fd < 0)
    return error_wrap (err, "%s", shown);
  if (coffer_read_whole (fd, YAML_MAX_BYTES, &package->bytes, &package->size)
      < 0)
    return error_set (err, E_IO, errno, "read %s", path);
  return manifest_parse (package->bytes, package->size, path,
                         &package->manifest, err);
}

static void
hint_subdirs (int folder, const struct coffer_strings *folders,
              struct error **err)
{
  coffer_autobuffer struct coffer_buffer found = { 0 };
  size_t i;

  for (i = 0; i < folders->count && found.size < 200; i++) {
    const char *name = folders->items[i];
    auto_free char *path = text_printf ("%s/%s.yaml", name, name);

    if (path && text_is_id (name)
        && faccessat (folder, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
      coffer_buffer_printf (&found, "%s%s", found.size ? ", " : "", name);
  }
  if (found.size)
    error_hint (err, "name one of its folders with --subdir: %s", found.data);
  else
    error_hint (err, "a provider's folder has ID.yaml, and its module beside"
                " it; --subdir names one further down");
}

/* The one file that is called like the id in it. */
static int
manifest_find (int folder, const char *shown, struct package *package,
               struct error **err)
{
  coffer_autostrings struct coffer_strings names = { 0 };
  const char *found = NULL;
  char id[64];
  size_t i;

  if (names_read (folder, S_IFREG, &names, err) < 0)
    return error_wrap (err, "%s", shown);
  for (i = 0; i < names.count; i++) {
    if (!id_of (names.items[i], id))
      continue;
    if (found)
      return error_set (err, E_MANIFEST, 0, "%s has two manifests: %s and %s",
                        shown, found, names.items[i]);
    found = names.items[i];
  }
  if (found == NULL)
    return 0;
  if (manifest_read_in (folder, found, shown, package, err) < 0)
    return -1;
  id_of (found, id);
  if (strcmp (package->manifest->id, id) != 0)
    return error_set (err, E_MANIFEST, 0, "%s/%s: the id in it is %s", shown,
                      found, package->manifest->id);
  return 1;
}

/* An archive has one folder, and that has all. */
static int
descend (int folder, const char *shown, struct package *package,
         struct error **err)
{
  coffer_autostrings struct coffer_strings folders = { 0 };

  if (names_read (folder, S_IFDIR, &folders, err) < 0)
    return error_wrap (err, "%s", shown);
  if (folders.count == 1) {
    package->folder = openat (folder, folders.items[0], O_RDONLY | O_DIRECTORY
                              | O_NOFOLLOW | O_CLOEXEC);
    package->shown = text_printf ("%s/%s", shown, folders.items[0]);
    if (package->folder < 0 || package->shown == NULL)
      return error_set (err, E_IO, errno, "open %s/%s", shown,
                        folders.items[0]);
    int r = manifest_find (package->folder, package->shown, package, err);

    if (r != 0)
      return r;
  }
  error_set (err, E_MANIFEST, 0, "there is no provider's manifest in %s",
             shown);
  hint_subdirs (folder, &folders, err);
  return -1;
}

int
package_open (int folder, const char *shown, int is_local,
              struct package *out, struct error **err)
{
  auto_package struct package package
    = { .folder = -1, .is_local = is_local };
  int r = manifest_find (folder, shown, &package, err);

  if (r == 0)
    r = descend (folder, shown, &package, err);
  if (r < 0)
    return -1;
  if (package.folder < 0) {
    package.folder = openat (folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    package.shown = strdup (shown);
  }
  if (package.folder < 0 || package.shown == NULL)
    return error_set (err, E_IO, errno, "open %s", shown);
  *out = package;
  package = (struct package){ .folder = -1 };
  return 0;
}

/* -- copying --------------------------------------------------------------- */

static int
fail_unbuilt (const struct package *package, const char *file,
              struct error **err)
{
  const char *id = package->manifest->id;

  error_set (err, E_MODULE, 0, "%s is not there: %s is not built", file, id);
  if (package->is_local)
    error_hint (err, "coffer does not build what it installs: run `make` in"
                " %s, then `coffer seal %s/%s.yaml`", package->shown,
                package->shown, id);
  else
    error_hint (err, "coffer does not build what it installs: get its source,"
                " run `make` there, then `coffer seal %s.yaml`, and install"
                " that folder", id);
  return -1;
}

static int
fail_unsealed (const struct package *package, const char *file,
               struct error **err)
{
  const char *id = package->manifest->id;

  error_set (err, E_INTEGRITY, 0, "%s is not sealed", file);
  error_hint (err, "run `coffer seal %s%s%s.yaml`%s",
              package->is_local ? package->shown : "",
              package->is_local ? "/" : "", id,
              package->is_local ? "" : " in its built source, and install"
                                       " that folder");
  return -1;
}

/* The bytes of `from`, all of them, hashed on the way. */
static int
pump (int from, int to, off_t size, char sha256[SHA256_HEX_SIZE],
      const char *name, struct error **err)
{
  coffer_unfilled char buffer[CHUNK];
  SHA2_CTX hash;

  sha256_begin (&hash);
  while (size > 0) {
    size_t want = size < CHUNK ? (size_t) size : CHUNK;
    ssize_t n = coffer_read_all (from, buffer, want);

    if (n < 0)
      return error_set (err, E_IO, errno, "read %s", name);
    if ((size_t) n < want)
      return error_set (err, E_INTEGRITY, 0,
                        "%s became shorter while it was read", name);
    if (coffer_write_all (to, buffer, want) < 0)
      return error_set (err, E_IO, errno, "write %s", name);
    sha256_add (&hash, buffer, want);
    size -= n;
  }
  sha256_end (&hash, sha256);
  return 0;
}

/* Modes are made plain: what its owner may execute, all may. */
static int
copy_open (int to, const char *name, mode_t mode, struct error **err)
{
  coffer_autoclose int fd = openat (
    to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

  if (fd < 0 && errno == EEXIST)
    return error_set (err, E_MANIFEST, 0, "%s is named twice", name);
  if (fd < 0 || fchmod (fd, mode & S_IXUSR ? 0755 : 0644) < 0)
    return error_set (err, E_IO, errno, "write %s", name);
  return coffer_fd_steal (&fd);
}

static int
copy_file (const struct package *package, const char *name, off_t limit,
           int to, char sha256[SHA256_HEX_SIZE], struct error **err)
{
  coffer_autoclose int from = -1, copy = -1;
  struct stat st;

  from = file_open (package->folder, name, limit, &st, err);
  if (from < 0)
    return -1;
  copy = copy_open (to, name, st.st_mode, err);
  if (copy < 0 || pump (from, copy, st.st_size, sha256, name, err) < 0)
    return -1;
  if (fsync (copy) < 0)
    return error_set (err, E_IO, errno, "write %s", name);
  return 0;
}

static int
copy_sealed (const struct package *package, const char *name,
             const char *sealed, int to, struct error **err)
{
  char found[SHA256_HEX_SIZE];

  if (strcmp (name, RECEIPT_FILE) == 0)
    return error_set (err, E_MANIFEST, 0, "a provider has no file called %s",
                      name);
  if (faccessat (package->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0
      && errno == ENOENT)
    return fail_unbuilt (package, name, err);
  if (sealed[0] == '\0')
    return fail_unsealed (package, name, err);
  if (copy_file (package, name, INTEGRITY_MAX_BYTES, to, found, err) < 0)
    return -1;
  if (strcmp (found, sealed) == 0)
    return 0;
  error_set (err, E_INTEGRITY, 0,
             "%s is not what the manifest was sealed for", name);
  error_detail (err, "sealed_sha256", json_string (sealed));
  error_detail (err, "found_sha256", json_string (found));
  if (package->is_local)
    error_hint (err, "if you built it: coffer seal %s/%s.yaml", package->shown,
                package->manifest->id);
  else
    error_hint (err, "it is damaged, or not what its author sealed");
  return -1;
}

static int
note_file (struct receipt_file **files, size_t *count, const char *arch,
           const char *name, const char *sha256, struct error **err)
{
  struct receipt_file *grown
    = reallocarray (*files, *count + 1, sizeof **files), *one;

  if (grown == NULL)
    return error_set (err, E_NO_MEMORY, 0, "note %s", name);
  *files = grown;
  one = &grown[(*count)++];
  *one = (struct receipt_file){ .arch = arch ? strdup (arch) : NULL,
                                .name = strdup (name) };
  memcpy (one->sha256, sha256, SHA256_HEX_SIZE);
  if (one->name == NULL || (arch && one->arch == NULL))
    return error_set (err, E_NO_MEMORY, 0, "note %s", name);
  return 0;
}

static int
named_before (const struct receipt *receipt, const char *name)
{
  size_t i;

  for (i = 0; i < receipt->n_modules; i++)
    if (strcmp (receipt->modules[i].name, name) == 0)
      return 1;
  return 0;
}

/* This machine's must be there; those of others go along when they are. */
static int
copy_modules (const struct package *package, int to, struct receipt *receipt,
              struct error **err)
{
  const struct manifest *m = package->manifest;
  const struct manifest_module *mine, *one;
  size_t i;

  if (manifest_module (m, &mine, err) < 0)
    return -1;
  for (i = 0; i < m->n_modules; i++) {
    one = &m->modules[i];
    if (one != mine
        && (one->sha256[0] == '\0' || strcmp (one->file, mine->file) == 0
            || named_before (receipt, one->file)
            || faccessat (package->folder, one->file, F_OK,
                          AT_SYMLINK_NOFOLLOW) < 0))
      continue;
    if (copy_sealed (package, one->file, one->sha256, to, err) < 0
        || note_file (&receipt->modules, &receipt->n_modules, one->arch,
                      one->file, one->sha256, err) < 0)
      return -1;
  }
  return 0;
}

static int
copy_files (const struct package *package, int to, struct receipt *receipt,
            struct error **err)
{
  const struct manifest *m = package->manifest;
  size_t i;

  for (i = 0; i < m->n_files; i++)
    if (copy_sealed (package, m->files[i].name, m->files[i].sha256, to, err)
          < 0
        || note_file (&receipt->files, &receipt->n_files, NULL,
                      m->files[i].name, m->files[i].sha256, err) < 0)
      return -1;
  return 0;
}

/* A text that goes along without a hash of its own. */
static int
is_extra (const struct package *package, const char *name)
{
  auto_free char *signature
    = text_printf ("%s.yaml.minisig", package->manifest->id);

  if (!manifest_is_file_name (name))
    return 0;
  return strncmp (name, "LICENSE", 7) == 0 || strncmp (name, "README", 6) == 0
         || strcmp (name, CONFORMANCE_FILE) == 0
         || strcmp (name, CONFORMANCE_FILE ".minisig") == 0
         || (signature && strcmp (name, signature) == 0);
}

static int
copy_extras (const struct package *package, int to, struct error **err)
{
  coffer_autostrings struct coffer_strings names = { 0 };
  char sha256[SHA256_HEX_SIZE];
  size_t i;

  if (names_read (package->folder, S_IFREG, &names, err) < 0)
    return -1;
  for (i = 0; i < names.count; i++)
    if (is_extra (package, names.items[i])
        && faccessat (to, names.items[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0
        && copy_file (package, names.items[i], MAX_EXTRA, to, sha256, err) < 0)
      return -1;
  return 0;
}

static int
copy_manifest (const struct package *package, int to, struct receipt *receipt,
               struct error **err)
{
  auto_free char *name = text_printf ("%s.yaml", package->manifest->id);
  coffer_autoclose int fd = -1;

  free (receipt->id);
  receipt->id = strdup (package->manifest->id);
  if (name == NULL || receipt->id == NULL)
    return error_set (err, E_NO_MEMORY, 0, "write the manifest");
  memcpy (receipt->manifest_sha256, package->manifest->sha256,
          SHA256_HEX_SIZE);
  fd = copy_open (to, name, 0, err);
  if (fd < 0)
    return -1;
  if (coffer_write_all (fd, package->bytes, package->size) < 0
      || fsync (fd) < 0)
    return error_set (err, E_IO, errno, "write %s", name);
  return 0;
}

int
package_copy (const struct package *package, int to, struct receipt *receipt,
              struct error **err)
{
  if (copy_manifest (package, to, receipt, err) < 0
      || copy_modules (package, to, receipt, err) < 0
      || copy_files (package, to, receipt, err) < 0
      || copy_extras (package, to, err) < 0)
    return error_wrap (err, "%s", package->shown);
  return 0;
}

/* -- checking -------------------------------------------------------------- */

static int
entry_check (const struct registry_entry *entry, const struct place *place,
             struct error **err)
{
  auto_json json_t *checks = registry_check (entry, place, 1);

  if (checks == NULL)
    return error_set (err, E_NO_MEMORY, 0, "check %s", entry->id);
  return registry_check_error (checks, err);
}

/* The registry keeps the place for as long as it lives. */
static int
load_staged (struct place *staged, const char *installed, const char *id,
             struct registry **out, struct error **err)
{
  auto_registry struct registry *registry = NULL;

  staged->installed = (char *) installed;
  if (registry_load_one (staged, id, &registry, err) < 0)
    return -1;
  if (registry->count == 0)
    return error_set (err, E_INTERNAL, 0, "%s is not where it was put", id);
  *out = steal (registry);
  return 0;
}

int
package_check (const struct place *place, const char *installed,
               const char *id, struct error **err)
{
  struct place staged = *place;
  auto_registry struct registry *registry = NULL;

  if (load_staged (&staged, installed, id, &registry, err) < 0)
    return -1;
  if (registry->entries[0].trust == TRUST_PACKAGED) {
    error_set (err, E_ALREADY_INSTALLED, 0, "%s comes with coffer", id);
    error_hint (err, "a provider of another origin needs an id of its own");
    return -1;
  }
  return entry_check (&registry->entries[0], place, err);
}

static int
is_configured (const struct registry_entry *entry)
{
  char **values = NULL, **secrets = NULL;

  if (registry_resolve_config (entry, &values, &secrets, NULL) < 0)
    return 0;
  yaml_free_texts (values);
  yaml_free_texts (secrets);
  return 1;
}

/* Its conformance is another matter, for the kit. */
int
package_try (const struct place *place, const char *installed, const char *id,
             struct error **err)
{
  struct place staged = *place;
  auto_registry struct registry *registry = NULL;
  auto_provider struct provider *provider = NULL;
  struct registry_entry entry;

  if (load_staged (&staged, installed, id, &registry, err) < 0)
    return -1;
  entry = registry->entries[0];
  if (entry.state != PROVIDER_ENABLED || !is_configured (&entry))
    return 0;
  entry.require_conformance = 0;
  return provider_open (&entry, place, PROVIDER_WORKER, &provider, err);
}
