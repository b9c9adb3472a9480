/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts are read strictly and written whole.  One that was written by hand
 * may have no more than `trust` and `manifest_sha256`. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/json.h"
#include "base/place.h"
#include "base/text.h"
#include "provider/manifest.h"
#include "provider/receipt.h"

#define MAX_RECEIPT (64 * 1024)
#define MAX_TEXT 4096
#define LOCK_NS INT64_C (10000000000)
#define LOCK_LOOK_US 20000

static const char *const trusts[] = { "local", "pinned", "signed", NULL };
static const char *const kinds[] = { "folder", "archive", "url", "git", NULL };
static const char *const verdicts[]
  = { "conformant", "failed", "incomplete", NULL };

static void
files_free (struct receipt_file *files, size_t count)
{
  size_t i;

  for (i = 0; i < count; i++) {
    free (files[i].arch);
    free (files[i].name);
  }
  free (files);
}

void
receipt_conformance_fini (struct receipt_conformance *c)
{
  free (c->verdict);
  free (c->report);
  free (c->kit);
  free (c->mode);
  free (c->without);
  free (c->time);
  memset (c, 0, sizeof *c);
}

void
receipt_free (struct receipt *receipt)
{
  if (receipt == NULL)
    return;
  free (receipt->id);
  free (receipt->trust);
  free (receipt->source.kind);
  free (receipt->source.location);
  free (receipt->source.ref);
  free (receipt->source.commit);
  free (receipt->source.subdir);
  files_free (receipt->modules, receipt->n_modules);
  files_free (receipt->files, receipt->n_files);
  free (receipt->installed);
  free (receipt->signature.key_id);
  free (receipt->signature.comment);
  receipt_conformance_fini (&receipt->conformance);
  free (receipt);
}

/* -- reading --------------------------------------------------------------- */

static int
malformed (const char *key, struct error **err)
{
  return error_set (err, E_INTEGRITY, 0, RECEIPT_FILE " is malformed: %s",
                    key);
}

/* One line; what is not there stays NULL. */
static int
take_text (const json_t *object, const char *key, char **out,
           struct error **err)
{
  const json_t *value = json_object_get (object, key);
  const char *text = json_string_value (value), *c;

  if (value == NULL || json_is_null (value))
    return 0;
  if (text == NULL || strlen (text) > MAX_TEXT)
    return malformed (key, err);
  for (c = text; *c; c++)
    if ((unsigned char) *c < 0x20 || *c == 0x7f)
      return malformed (key, err);
  *out = strdup (text);
  return *out ? 0 : error_set (err, E_NO_MEMORY, 0, RECEIPT_FILE);
}

static int
take_word (const json_t *object, const char *key, const char *const *words,
           char **out, struct error **err)
{
  if (take_text (object, key, out, err) < 0)
    return -1;
  if (*out && !text_list_has (words, *out))
    return malformed (key, err);
  return 0;
}

static int
take_hash (const json_t *object, const char *key, char out[SHA256_HEX_SIZE],
           struct error **err)
{
  const json_t *value = json_object_get (object, key);
  const char *text = json_string_value (value);

  if (value == NULL || json_is_null (value))
    return 0;
  if (text == NULL || !sha256_is_hex (text))
    return malformed (key, err);
  memcpy (out, text, SHA256_HEX_SIZE);
  return 0;
}

/* The object of that name; NULL in *out when there is none. */
static int
take_object (const json_t *object, const char *key, const json_t **out,
             struct error **err)
{
  *out = json_object_get (object, key);
  if (*out && json_is_null (*out))
    *out = NULL;
  return *out && !json_is_object (*out) ? malformed (key, err) : 0;
}

static int
take_file (const json_t *item, const char *key, const char *name,
           struct receipt_file *out, struct error **err)
{
  if (!json_is_object (item))
    return malformed (key, err);
  if (take_text (item, "arch", &out->arch, err) < 0
      || take_text (item, name, &out->name, err) < 0
      || take_hash (item, "sha256", out->sha256, err) < 0)
    return -1;
  if (out->name == NULL || !manifest_is_file_name (out->name)
      || out->sha256[0] == '\0')
    return malformed (key, err);
  return 0;
}

static int
take_files (const json_t *object, const char *key, const char *name,
            size_t most, struct receipt_file **out, size_t *count,
            struct error **err)
{
  const json_t *list = json_object_get (object, key);
  size_t i, n = json_array_size (list);

  if (list == NULL)
    return 0;
  if (!json_is_array (list) || n > most)
    return malformed (key, err);
  *out = calloc (n + 1, sizeof **out);
  if (*out == NULL)
    return error_set (err, E_NO_MEMORY, 0, RECEIPT_FILE);
  *count = n;
  for (i = 0; i < n; i++)
    if (take_file (json_array_get (list, i), key, name, &(*out)[i], err) < 0)
      return -1;
  return 0;
}

static int
take_source (const json_t *root, struct receipt_source *out,
             struct error **err)
{
  const json_t *source;

  if (take_object (root, "source", &source, err) < 0)
    return -1;
  if (source == NULL)
    return 0;
  if (take_word (source, "kind", kinds, &out->kind, err) < 0
      || take_text (source, "location", &out->location, err) < 0
      || take_text (source, "ref", &out->ref, err) < 0
      || take_text (source, "commit", &out->commit, err) < 0
      || take_text (source, "subdir", &out->subdir, err) < 0
      || take_hash (source, "sha256", out->sha256, err) < 0)
    return -1;
  return out->kind && out->location ? 0 : malformed ("source", err);
}

static int
take_signature (const json_t *root, struct receipt_signature *out,
                struct error **err)
{
  const json_t *signature;

  if (take_object (root, "signature", &signature, err) < 0)
    return -1;
  if (signature == NULL)
    return 0;
  if (take_text (signature, "key_id", &out->key_id, err) < 0
      || take_text (signature, "comment", &out->comment, err) < 0)
    return -1;
  return out->key_id ? 0 : malformed ("signature", err);
}

static int
take_contract (const json_t *conformance, struct receipt_conformance *out,
               struct error **err)
{
  const json_t *contract = json_object_get (conformance, "contract");
  const json_int_t major
    = json_integer_value (json_object_get (contract, "major"));
  const json_int_t minor
    = json_integer_value (json_object_get (contract, "minor"));

  if (major < 0 || major > UINT16_MAX || minor < 0 || minor > UINT16_MAX)
    return malformed ("contract", err);
  out->contract_major = (uint16_t) major;
  out->contract_minor = (uint16_t) minor;
  return 0;
}

static int
take_conformance (const json_t *root, struct receipt_conformance *out,
                  struct error **err)
{
  const json_t *c;

  if (take_object (root, "conformance", &c, err) < 0)
    return -1;
  if (c == NULL)
    return 0;
  if (take_word (c, "verdict", verdicts, &out->verdict, err) < 0
      || take_text (c, "report", &out->report, err) < 0
      || take_hash (c, "report_sha256", out->report_sha256, err) < 0
      || take_hash (c, "manifest_sha256", out->manifest_sha256, err) < 0
      || take_hash (c, "module_sha256", out->module_sha256, err) < 0
      || take_text (c, "kit", &out->kit, err) < 0
      || take_contract (c, out, err) < 0
      || take_text (c, "mode", &out->mode, err) < 0
      || take_text (c, "without", &out->without, err) < 0
      || take_text (c, "time", &out->time, err) < 0)
    return -1;
  return out->verdict ? 0 : malformed ("conformance", err);
}

/* Keys that are not known say nothing that this coffer would need; in another
 * format known ones may mean something else. */
static int
check_format (const json_t *root, struct error **err)
{
  const json_t *format = json_object_get (root, "receipt");

  if (!json_is_object (root))
    return malformed ("it is no object", err);
  if (format && json_integer_value (format) != RECEIPT_FORMAT)
    return error_set (err, E_INTEGRITY, 0,
                      RECEIPT_FILE " is of another format than %d",
                      RECEIPT_FORMAT);
  return 0;
}

static int
take_all (const json_t *root, struct receipt *r, struct error **err)
{
  if (check_format (root, err) < 0
      || take_text (root, "id", &r->id, err) < 0
      || take_word (root, "trust", trusts, &r->trust, err) < 0
      || take_source (root, &r->source, err) < 0
      || take_hash (root, "manifest_sha256", r->manifest_sha256, err) < 0
      || take_files (root, "modules", "file", MANIFEST_MAX_MODULES,
                     &r->modules, &r->n_modules, err) < 0
      || take_files (root, "files", "name", MANIFEST_MAX_FILES, &r->files,
                     &r->n_files, err) < 0
      || take_text (root, "installed", &r->installed, err) < 0
      || take_signature (root, &r->signature, err) < 0
      || take_conformance (root, &r->conformance, err) < 0)
    return -1;
  if (r->trust == NULL)
    return malformed ("trust", err);
  if (r->manifest_sha256[0] == '\0')
    return malformed ("manifest_sha256", err);
  return 0;
}

int
receipt_parse (const char *bytes, size_t size, struct receipt **out,
               struct error **err)
{
  auto_receipt struct receipt *receipt = NULL;
  auto_json json_t *root = NULL;
  struct error *error = NULL;

  if (json_parse (bytes, size, &root, &error) < 0) {
    error_set (err, E_INTEGRITY, 0, RECEIPT_FILE " is malformed: %s",
               error_message (error));
    error_free (error);
    return -1;
  }
  receipt = calloc (1, sizeof *receipt);
  if (receipt == NULL)
    return error_set (err, E_NO_MEMORY, 0, RECEIPT_FILE);
  if (take_all (root, receipt, &error) < 0)
    return error_move (err, error);
  *out = steal (receipt);
  return 0;
}

int
receipt_read (int dir_fd, struct receipt **out, struct error **err)
{
  auto_free char *bytes = NULL;
  struct error *error = NULL;
  size_t size = 0;

  if (place_read_trusted (dir_fd, RECEIPT_FILE, RECEIPT_FILE, MAX_RECEIPT,
                          E_INTEGRITY, &bytes, &size, &error) < 0) {
    if (error->sys_errno != ENOENT)
      return error_move (err, error);
    error_free (error);
    return 0;
  }
  return receipt_parse (bytes, size, out, err) < 0 ? -1 : 1;
}

/* -- writing --------------------------------------------------------------- */

static void
put_hash (json_t *object, const char *key, const char *sha256)
{
  if (sha256[0])
    json_object_set_new (object, key, json_string (sha256));
}

static json_t *
source_json (const struct receipt_source *source)
{
  json_t *object = json_object ();

  json_put_text (object, "kind", source->kind);
  json_put_text (object, "location", source->location);
  json_put_text (object, "ref", source->ref);
  json_put_text (object, "commit", source->commit);
  json_put_text (object, "subdir", source->subdir);
  put_hash (object, "sha256", source->sha256);
  return object;
}

static json_t *
files_json (const struct receipt_file *files, size_t count, const char *name)
{
  json_t *list = json_array ();
  size_t i;

  for (i = 0; i < count; i++) {
    json_t *item = json_object ();

    json_put_text (item, "arch", files[i].arch);
    json_put_text (item, name, files[i].name);
    put_hash (item, "sha256", files[i].sha256);
    json_array_append_new (list, item);
  }
  return list;
}

static json_t *
conformance_json (const struct receipt_conformance *c)
{
  json_t *object = json_object ();

  json_put_text (object, "verdict", c->verdict);
  json_put_text (object, "report", c->report);
  put_hash (object, "report_sha256", c->report_sha256);
  put_hash (object, "manifest_sha256", c->manifest_sha256);
  put_hash (object, "module_sha256", c->module_sha256);
  json_put_text (object, "kit", c->kit);
  json_object_set_new (object, "contract",
                       json_pack ("{s:i, s:i}", "major", c->contract_major,
                                  "minor", c->contract_minor));
  json_put_text (object, "mode", c->mode);
  json_put_text (object, "without", c->without);
  json_put_text (object, "time", c->time);
  return object;
}

json_t *
receipt_to_json (const struct receipt *r)
{
  json_t *root = json_pack ("{s:i}", "receipt", RECEIPT_FORMAT);
  json_t *signature;

  json_put_text (root, "id", r->id);
  json_put_text (root, "trust", r->trust);
  if (r->source.kind)
    json_object_set_new (root, "source", source_json (&r->source));
  put_hash (root, "manifest_sha256", r->manifest_sha256);
  json_object_set_new (root, "modules",
                       files_json (r->modules, r->n_modules, "file"));
  json_object_set_new (root, "files",
                       files_json (r->files, r->n_files, "name"));
  json_put_text (root, "installed", r->installed);
  if (r->signature.key_id) {
    signature = json_object ();
    json_put_text (signature, "key_id", r->signature.key_id);
    json_put_text (signature, "comment", r->signature.comment);
    json_object_set_new (root, "signature", signature);
  }
  if (r->conformance.verdict)
    json_object_set_new (root, "conformance",
                         conformance_json (&r->conformance));
  return root;
}

static int
write_new (int dir_fd, const char *name, const char *text, struct error **err)
{
  struct coffer_new_file file = { 0 };

  if (coffer_new_file_begin (&file, dir_fd, name, 0644, 0) < 0
      || coffer_write_all (file.fd, text, strlen (text)) < 0
      || coffer_new_file_commit (&file, 1, 0) < 0) {
    error_set (err, E_IO, errno, "write %s", name);
    coffer_new_file_abort (&file);
    return -1;
  }
  return 0;
}

int
receipt_write (int dir_fd, const struct receipt *receipt, struct error **err)
{
  auto_json json_t *root = receipt_to_json (receipt);
  auto_free char *text = root ? json_text (root) : NULL;
  auto_free char *line = text ? text_printf ("%s\n", text) : NULL;

  if (line == NULL)
    return error_set (err, E_NO_MEMORY, 0, RECEIPT_FILE);
  return write_new (dir_fd, RECEIPT_FILE, line, err);
}

/* -- changing -------------------------------------------------------------- */

int
receipt_lock (int providers_dir, struct error **err)
{
  const int64_t deadline = coffer_now_ns () + LOCK_NS;
  coffer_autoclose int fd = openat (providers_dir, ".",
                                    O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (fd < 0)
    return error_set (err, E_IO, errno, "lock the installed providers");
  while (flock (fd, LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return error_set (err, E_IO, errno, "lock the installed providers");
    if (coffer_now_ns () >= deadline)
      return error_set (err, E_BUSY, 0,
                        "another command changes the installed providers");
    usleep (LOCK_LOOK_US);
  }
  return coffer_fd_steal (&fd);
}

int
receipt_set_conformance (int dir_fd, const char *report,
                         const struct receipt_conformance *conformance,
                         struct error **err)
{
  coffer_autoclose int providers = -1, lock = -1;
  auto_receipt struct receipt *receipt = NULL;
  struct receipt_conformance old;
  int r;

  providers = openat (dir_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (providers < 0)
    return error_set (err, E_IO, errno, "lock the installed providers");
  lock = receipt_lock (providers, err);
  if (lock < 0)
    return -1;
  r = receipt_read (dir_fd, &receipt, err);
  if (r == 0)
    return error_set (err, E_NOT_FOUND, 0, "there is no " RECEIPT_FILE);
  if (r < 0)
    return -1;
  place_sweep (dir_fd);
  if (report && write_new (dir_fd, conformance->report, report, err) < 0)
    return -1;
  old = receipt->conformance;
  receipt->conformance = *conformance;
  r = receipt_write (dir_fd, receipt, err);
  receipt->conformance = old;
  return r;
}

/* -- what stands in one ---------------------------------------------------- */

char *
receipt_time (void)
{
  const time_t now = time (NULL);
  char text[32];
  struct tm tm;

  if (gmtime_r (&now, &tm) == NULL
      || strftime (text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
    return NULL;
  return strdup (text);
}

char *
receipt_location (const char *address)
{
  const char *authority = strstr (address, "://"), *at;
  size_t length;

  if (authority == NULL)
    return strdup (address);
  authority += 3;
  length = strcspn (authority, "/?#");
  at = memrchr (authority, '@', length);
  if (at == NULL)
    return strdup (address);
  return text_printf ("%.*s%s", (int) (authority - address), address, at + 1);
}
