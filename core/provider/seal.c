/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing a manifest: the manifest is read as strictly as when a provider is
 * loaded, each file is hashed, and the text is edited where the reader saw
 * the values. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/text.h"
#include "provider/integrity.h"
#include "provider/loader.h"
#include "provider/manifest.h"
#include "provider/seal.h"

#define MAX_EDITS (MANIFEST_MAX_MODULES + MANIFEST_MAX_FILES)

/* Replaces the bytes from `start` to `end`. */
struct edit {
  size_t start, end;
  char *text;
};

struct sealing {
  const char *path;
  int dir;
  char *bytes;
  size_t size;
  struct manifest *manifest;
  struct yaml_node *root;
  struct edit edits[MAX_EDITS];
  size_t n_edits;
};

static void
sealing_fini (struct sealing *s)
{
  size_t i;

  for (i = 0; i < s->n_edits; i++)
    free (s->edits[i].text);
  manifest_free (s->manifest);
  yaml_node_free (s->root);
  free (s->bytes);
  coffer_fd_close (&s->dir);
}

/* -- edits ----------------------------------------------------------------- */

/* Where the last value of a map ends. */
static size_t
last_end (const struct yaml_node *map)
{
  size_t i, end = map->start;

  for (i = 0; i < map->count; i++) {
    if (map->items[i].end > end)
      end = map->items[i].end;
  }
  return end;
}

/* A key that is not there yet: before the closing brace, or on a line of its
 * own below the last one, whose comment stays where it is. */
static char *
new_key (const struct sealing *s, const struct yaml_node *map,
         const char *sha256, size_t *at)
{
  const char *newline;

  *at = last_end (map);
  if (map->flow)
    return text_printf (", sha256: \"%s\"", sha256);
  newline = memchr (s->bytes + *at, '\n', s->size - *at);
  *at = newline ? (size_t) (newline - s->bytes) : s->size;
  return text_printf ("\n%*ssha256: \"%s\"",
                      (int) map->key_marks[0].column - 1, "", sha256);
}

static int
add_edit (struct sealing *s, const struct yaml_node *map, const char *sha256,
          struct error **err)
{
  const struct yaml_node *node = yaml_get (map, "sha256");
  struct edit *edit = &s->edits[s->n_edits];

  if (node) {
    edit->start = node->start;
    edit->end = node->end;
    edit->text = text_printf ("\"%s\"", sha256);
  } else {
    edit->text = new_key (s, map, sha256, &edit->start);
    edit->end = edit->start;
  }
  if (edit->text == NULL)
    return error_set (err, E_NO_MEMORY, 0, "seal %s", s->path);
  s->n_edits++;
  return 0;
}

static int
compare_edits (const void *a, const void *b)
{
  const struct edit *x = a, *y = b;

  return (x->start > y->start) - (x->start < y->start);
}

/* The text with all edits made; the caller frees. */
static char *
apply_edits (struct sealing *s, size_t *size, struct error **err)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  size_t i, at = 0;
  char *text;

  qsort (s->edits, s->n_edits, sizeof s->edits[0], compare_edits);
  for (i = 0; i < s->n_edits; i++) {
    coffer_buffer_add (&out, s->bytes + at, s->edits[i].start - at);
    coffer_buffer_add_string (&out, s->edits[i].text);
    at = s->edits[i].end;
  }
  coffer_buffer_add (&out, s->bytes + at, s->size - at);
  *size = out.size;
  text = coffer_buffer_steal (&out);
  if (text == NULL)
    error_set (err, E_NO_MEMORY, 0, "seal %s", s->path);
  return text;
}

/* -- hashing --------------------------------------------------------------- */

/* What is to be sealed is not there: nothing that anybody changed. */
static int
copy_file (const struct sealing *s, const char *name,
           char sha256[SHA256_HEX_SIZE], struct error **err)
{
  struct error *error = NULL;
  int fd = integrity_copy (s->dir, name, 0, 0, sha256, &error);
  int missing;

  if (fd >= 0)
    return fd;
  missing = error->sys_errno == ENOENT;
  error_move (err, error);
  if (missing)
    error_hint (err, "build it first; --dir names the folder that it is in,"
                " where that is not the manifest's");
  return -1;
}

static int
seal_module (struct sealing *s, const struct manifest_module *module,
             const struct yaml_node *map, struct error **err)
{
  const struct manifest *m = s->manifest;
  auto_elf_facts struct elf_facts *facts = NULL;
  coffer_autoclose int fd = -1;
  char sha256[SHA256_HEX_SIZE];
  struct module_claim claim = {
    .file = module->file, .contract_major = m->contract_major,
    .contract_minor = m->contract_minor, .threads = m->threads,
    .capabilities = m->capabilities
  };

  fd = copy_file (s, module->file, sha256, err);
  if (fd < 0 || elf_gate (fd, module->file, &facts, err) < 0
      || module_check (contract_builtin (), &facts->note, &claim, err) < 0)
    return -1;
  return add_edit (s, map, sha256, err);
}

/* The entries of other architectures keep the hashes they have. */
static int
seal_modules (struct sealing *s, struct seal_report *report,
              struct error **err)
{
  const struct yaml_node *list = yaml_get (s->root, "module");
  const struct manifest_module *module;
  size_t i;

  if (manifest_module (s->manifest, &module, err) < 0)
    return -1;
  i = (size_t) (module - s->manifest->modules);
  if (seal_module (s, module, &list->items[i], err) < 0)
    return -1;
  report->modules++;
  return 0;
}

static int
seal_files (struct sealing *s, struct seal_report *report, struct error **err)
{
  const struct yaml_node *list = yaml_get (s->root, "files");
  char sha256[SHA256_HEX_SIZE];
  size_t i;

  for (i = 0; i < s->manifest->n_files; i++) {
    coffer_autoclose int fd
      = copy_file (s, s->manifest->files[i].name, sha256, err);

    if (fd < 0 || add_edit (s, &list->items[i], sha256, err) < 0)
      return -1;
    report->files++;
  }
  return 0;
}

/* -- reading and writing --------------------------------------------------- */

/* The folder of a path; *name is its last component. */
static int
open_parent (const char *path, const char **name, struct error **err)
{
  auto_free char *folder = strdup (path);
  char *slash;
  int fd;

  if (folder == NULL)
    return error_set (err, E_NO_MEMORY, 0, "open %s", path);
  slash = strrchr (folder, '/');
  *name = slash ? path + (slash - folder) + 1 : path;
  if (slash)
    slash[slash == folder] = '\0';
  fd = open (slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno,
                      "open %s", slash ? folder : ".");
  return fd;
}

/* The author's own file: whose it is and where links lead is their matter. */
static int
read_text (struct sealing *s, struct error **err)
{
  coffer_autoclose int fd = -1;
  struct stat st;

  fd = open (s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || fstat (fd, &st) < 0)
    return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno,
                      "open %s", s->path);
  if (!S_ISREG (st.st_mode))
    return error_set (err, E_MANIFEST, 0, "%s is not a regular file", s->path);
  if (coffer_read_whole (fd, YAML_MAX_BYTES, &s->bytes, &s->size) < 0)
    return error_set (err, errno == EFBIG ? E_MANIFEST : E_IO, errno,
                      "read %s", s->path);
  return 0;
}

static int
write_text (const char *path, const char *text, size_t size,
            struct error **err)
{
  coffer_autoclose int dir = -1;
  struct coffer_new_file file = { 0 };
  const char *name;
  int fd;

  dir = open_parent (path, &name, err);
  if (dir < 0)
    return -1;
  fd = coffer_new_file_begin (&file, dir, name, 0644, 0);
  if (fd < 0)
    return error_set (err, E_IO, errno, "write %s", path);
  if (coffer_write_all (fd, text, size) < 0
      || coffer_new_file_commit (&file, 1, 0) < 0) {
    error_set (err, E_IO, errno, "write %s", path);
    coffer_new_file_abort (&file);
    return -1;
  }
  return 0;
}

static int
open_folder (struct sealing *s, const char *dir, struct error **err)
{
  const char *name;

  if (dir == NULL)
    s->dir = open_parent (s->path, &name, err);
  else {
    s->dir = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0)
      error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno, "open %s",
                 dir);
  }
  return s->dir < 0 ? -1 : 0;
}

/* What was written must read back as the same manifest, now with hashes. */
static int
check_result (const struct sealing *s, const char *text, size_t size,
              struct error **err)
{
  auto_manifest struct manifest *sealed = NULL;
  const struct manifest_module *module;
  size_t i;
  int good;

  if (manifest_parse (text, size, s->path, &sealed, err) < 0
      || manifest_module (sealed, &module, err) < 0)
    return -1;
  good = module->sha256[0] != '\0';
  for (i = 0; i < sealed->n_files; i++)
    good = good && sealed->files[i].sha256[0] != '\0';
  if (!good)
    return error_set (err, E_MANIFEST, 0,
                      "%s: the hashes cannot be written into its text; give "
                      "each entry a sha256: \"\"", s->path);
  return 0;
}

static int
seal (struct sealing *s, const char *dir, const char *output,
      struct seal_report *report, struct error **err)
{
  auto_free char *text = NULL;
  size_t size = 0;

  if (read_text (s, err) < 0
      || manifest_parse (s->bytes, s->size, s->path, &s->manifest, err) < 0
      || yaml_read (s->bytes, s->size, s->path, E_MANIFEST, &s->root, err) < 0
      || open_folder (s, dir, err) < 0 || seal_modules (s, report, err) < 0
      || seal_files (s, report, err) < 0)
    return -1;
  text = apply_edits (s, &size, err);
  if (text == NULL || check_result (s, text, size, err) < 0)
    return -1;
  report->changed
    = size != s->size || memcmp (text, s->bytes, size) != 0;
  report->id = strdup (s->manifest->id);
  report->output = strdup (output ? output : s->path);
  if (report->id == NULL || report->output == NULL)
    return error_set (err, E_NO_MEMORY, 0, "seal %s", s->path);
  return write_text (report->output, text, size, err);
}

int
seal_manifest (const char *manifest, const char *dir, const char *output,
               struct seal_report *report, struct error **err)
{
  struct sealing s = { .path = manifest, .dir = -1 };
  int r;

  memset (report, 0, sizeof *report);
  r = seal (&s, dir, output, report, err);
  sealing_fini (&s);
  if (r < 0)
    seal_report_fini (report);
  return r;
}

void
seal_report_fini (struct seal_report *report)
{
  free (report->id);
  free (report->output);
  memset (report, 0, sizeof *report);
}
