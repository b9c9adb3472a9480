/* SPDX-License-Identifier: Apache-2.0 */
/* What coffer-verify is given, and what its answer is taken for.  Keys are the
 * operator's own files; the signature is read by coffer-verify alone. */

#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/helper.h"
#include "base/log.h"
#include "base/minisign.h"
#include "base/text.h"
#include "provider/signature.h"
#include "provider/verify/verify.h"

struct keys {
  size_t count;
  struct minisign_key items[VERIFY_MAX_KEYS];
};

void
signature_fini (struct signature *signature)
{
  free (signature->key_id);
  free (signature->comment);
  free (signature->unknown);
  memset (signature, 0, sizeof *signature);
}

/* -- keys ------------------------------------------------------------------ */

static int
add_key (struct keys *keys, int dir, const char *name, const char *shown,
         struct error **err)
{
  auto_free char *bytes = NULL;
  size_t size = 0;
  const char *wrong;

  if (keys->count == VERIFY_MAX_KEYS)
    return error_set (err, E_CONFIG, 0, "more than %d keys are trusted",
                      VERIFY_MAX_KEYS);
  if (place_read_trusted (dir, name, shown, MINISIGN_MAX_BYTES, E_CONFIG,
                          &bytes, &size, err) < 0)
    return -1;
  wrong = minisign_read_key (bytes, size, &keys->items[keys->count]);
  if (wrong)
    return error_set (err, E_CONFIG, 0, "%s: %s", shown, wrong);
  keys->count++;
  return 0;
}

static int
is_key_name (const char *name)
{
  const size_t length = strlen (name);

  return name[0] != '.' && length > 4
         && strcmp (name + length - 4, ".pub") == 0;
}

static int
add_keys (struct keys *keys, int dir, const char *path, struct error **err)
{
  int fd = openat (dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *item;
  int r = 0;

  if (stream == NULL) {
    error_set (err, E_IO, errno, "list %s", path);
    coffer_fd_close (&fd);
    return -1;
  }
  while (r == 0 && (item = readdir (stream))) {
    auto_free char *shown = NULL;

    if (!is_key_name (item->d_name))
      continue;
    shown = text_printf ("%s/%s", path, item->d_name);
    r = add_key (keys, dir, item->d_name, shown ? shown : path, err);
  }
  closedir (stream);
  return r;
}

/* One that is not there, or a system's that this user may not see, has none. */
static int
add_folder (struct keys *keys, const char *config, int ours,
            struct error **err)
{
  auto_free char *path = text_printf ("%s/trusted.d", config);
  auto_error struct error *error = NULL;
  coffer_autoclose int dir = -1;

  if (path == NULL)
    return error_set (err, E_NO_MEMORY, 0, "trusted.d");
  dir = place_open_trusted_dir (path, &error);
  if (dir >= 0)
    return add_keys (keys, dir, path, err);
  if (error->number == E_NOT_FOUND || (!ours && error->sys_errno == EACCES))
    return 0;
  return error_move (err, steal (error));
}

static int
read_keys (const struct place *place, struct keys *keys, struct error **err)
{
  keys->count = 0;
  if (!place->home_override
      && strcmp (place->config, place_builtin_sysconf) != 0
      && add_folder (keys, place_builtin_sysconf, 0, err) < 0)
    return -1;
  return add_folder (keys, place->config, 1, err);
}

int
signature_key_is_trusted (const struct place *place, const char *key_id,
                          struct error **err)
{
  char id[MINISIGN_ID_SIZE];
  struct keys keys;
  size_t i;

  if (read_keys (place, &keys, err) < 0)
    return -1;
  for (i = 0; i < keys.count; i++) {
    minisign_id_text (keys.items[i].id, id);
    if (strcmp (id, key_id) == 0)
      return 1;
  }
  return 0;
}

/* -- coffer-verify --------------------------------------------------------- */

/* A sealed memory file as verify.h says. */
static int
input_new (const struct keys *keys, const char *signature, size_t n_signature,
           const char *message, size_t n_message)
{
  const struct verify_header header
    = { (uint32_t) keys->count, (uint32_t) n_signature, (uint32_t) n_message };
  coffer_autobuffer struct coffer_buffer input = { 0 };

  coffer_buffer_add (&input, &header, sizeof header);
  coffer_buffer_add (&input, keys->items,
                     keys->count * sizeof keys->items[0]);
  coffer_buffer_add (&input, signature, n_signature);
  coffer_buffer_add (&input, message, n_message);
  if (input.failed) {
    errno = ENOMEM;
    return -1;
  }
  return coffer_memfd_sealed ("coffer-verify", input.data, input.size);
}

static int
run_verify (const struct place *place, int input, json_t **report,
            struct error **err)
{
  const struct helper_program program
    = { .name = "coffer-verify", .in = input, .out = -1, .folder = -1,
        .number = E_UNSIGNED };
  const struct helper_watch watch = { .cancel_fd = -1 };
  auto_helper struct helper helper = { .report = -1 };

  if (helper_start (place, &program, &helper, err) < 0)
    return -1;
  return helper_finish (&helper, &watch, -1, 0, report, err);
}

/* A tab, as minisign writes it, is a space to whoever reads. */
static int
take_answer (const json_t *report, const char *shown, struct signature *out,
             struct error **err)
{
  const char *id = json_string_value (json_object_get (report, "key_id"));
  const char *comment
    = json_string_value (json_object_get (report, "comment"));
  const char *unknown
    = json_string_value (json_object_get (report, "unknown"));
  auto_free char *line = comment ? strdup (comment) : NULL;
  char *c;

  if (unknown) {
    out->unknown = text_escape (unknown, strlen (unknown));
    return out->unknown ? 0 : error_set (err, E_NO_MEMORY, 0,
                                         "the signature of %s", shown);
  }
  if (id == NULL || line == NULL)
    return error_set (err, E_INTERNAL, 0, "coffer-verify gave no answer");
  for (c = line; *c; c++)
    if (*c == '\t')
      *c = ' ';
  out->key_id = strdup (id);
  out->comment = text_escape (line, strlen (line));
  if (out->key_id == NULL || out->comment == NULL)
    return error_set (err, E_NO_MEMORY, 0, "the signature of %s", shown);
  return 1;
}

int
signature_check (const struct place *place, int dir_fd, const char *name,
                 struct signature *out, struct error **err)
{
  auto_free char *file = text_printf ("%s.minisig", name);
  auto_free char *signature = NULL, *message = NULL;
  size_t n_signature = 0, n_message = 0;
  auto_error struct error *error = NULL;
  auto_json json_t *report = NULL;
  coffer_autoclose int input = -1;
  struct keys keys;

  *out = (struct signature){ .key_id = NULL };
  if (file == NULL)
    return error_set (err, E_NO_MEMORY, 0, "the signature of %s", name);
  if (place_read_trusted (dir_fd, file, file, MINISIGN_MAX_BYTES, E_UNSIGNED,
                          &signature, &n_signature, &error) < 0)
    return error->sys_errno == ENOENT && error->number == E_UNSIGNED
             ? 0 : error_move (err, steal (error));
  if (place_read_trusted (dir_fd, name, name, VERIFY_MAX_MESSAGE, E_UNSIGNED,
                          &message, &n_message, err) < 0
      || read_keys (place, &keys, err) < 0)
    return -1;
  input = input_new (&keys, signature, n_signature, message, n_message);
  if (input < 0)
    return error_set (err, E_IO, errno, "the signature of %s", name);
  if (run_verify (place, input, &report, err) < 0)
    return error_wrap (err, "%s", file);
  sha256_hex (message, n_message, out->sha256);
  return take_answer (report, name, out, err);
}

/* -- the demand ------------------------------------------------------------ */

static int
fail_unsigned (const struct registry_entry *entry, const char *what,
               struct error **err)
{
  return error_set (err, E_UNSIGNED, 0, "provider %s: %s", entry->id, what);
}

int
signature_demand (const struct registry_entry *entry,
                  const struct place *place, struct error **err)
{
  int r;

  if (!entry->require_signature)
    return 0;
  if (entry->receipt == NULL || entry->receipt->signature.key_id == NULL)
    return fail_unsigned (entry, "its receipt records no signature", err);
  r = signature_key_is_trusted (place, entry->receipt->signature.key_id, err);
  if (r == 0)
    return fail_unsigned (entry, "the key that signed it is not in trusted.d"
                          " any more", err);
  return r < 0 ? -1 : 0;
}
