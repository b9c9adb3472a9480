/* SPDX-License-Identifier: Apache-2.0 */
/* The steps from a registry entry to what a module is opened with.  Each that
 * fails names itself; none runs anything of the provider. */

#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider/opening.h"

/* The same for every process of one host and one state folder, and telling
 * nobody the machine's own id. */
static void
host_id (const struct place *place, char out[33])
{
  static const char *const sources[] = { "/etc/machine-id",
                                         "/var/lib/dbus/machine-id",
                                         "/proc/sys/kernel/random/boot_id" };
  char hex[SHA256_HEX_SIZE], bytes[64];
  SHA2_CTX context;
  ssize_t n = 0;
  size_t i;

  for (i = 0; i < sizeof sources / sizeof sources[0] && n <= 0; i++) {
    coffer_autoclose int fd = open (sources[i], O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
      n = coffer_read_all (fd, bytes, sizeof bytes);
  }
  sha256_begin (&context);
  sha256_add (&context, "coffer host", sizeof "coffer host");
  sha256_add (&context, bytes, n > 0 ? (size_t) n : 0);
  sha256_add (&context, place->state, strlen (place->state));
  sha256_end (&context, hex);
  memcpy (out, hex, 32);
  out[32] = '\0';
}

/* What the file says of itself, once it is known to be the one. */
static int
read_module (struct opening *opening, const struct registry_entry *entry,
             const struct manifest_module *module,
             const struct contract *contract, struct error **err)
{
  auto_elf_facts struct elf_facts *facts = NULL;

  opening->module_fd = integrity_open (entry->dir_fd, module->file,
                                       module->sha256, 0, err);
  if (opening->module_fd < 0)
    return error_wrap (err, "integrity of %s", module->file);
  if (elf_gate_for (opening->module_fd, module->file, contract, &facts, err) < 0)
    return error_wrap (err, "module %s", module->file);
  opening->note = facts->note;
  return 0;
}

/* The same of what the program has in itself. */
static void
note_built_in (struct opening *opening)
{
  const struct coffer_provider *own = opening->built_in->entry ();

  opening->note = (struct coffer_note){
    .contract_major = own->contract_major,
    .contract_minor = own->contract_minor, .least_minor = own->least_minor,
    .threads = own->threads, .needs = own->needs
  };
  snprintf (opening->note.name, sizeof opening->note.name, "%s", own->name);
}

static int
open_module (struct opening *opening, const struct registry_entry *entry,
             const struct contract *contract, struct error **err)
{
  const struct manifest *manifest = entry->manifest;
  const struct manifest_module *module;

  if (manifest_module (manifest, &module, err) < 0)
    return -1;
  if (opening->built_in)
    note_built_in (opening);
  else if (read_module (opening, entry, module, contract, err) < 0)
    return -1;
  opening->claim = (struct module_claim){
    .file = module->file, .contract_major = manifest->contract_major,
    .contract_minor = manifest->contract_minor, .threads = manifest->threads,
    .capabilities = manifest->capabilities
  };
  if (module_check (contract, &opening->note, &opening->claim, err) < 0)
    return error_wrap (err, "handshake with %s", module->file);
  log_event (LOG_LEVEL_INFO, "provider", "%s: %s", entry->id,
             opening->built_in
               ? "built in, of the same build as its module"
               : "its module is as it was sealed");
  return 0;
}

static int
open_files (struct opening *opening, const struct registry_entry *entry,
            struct error **err)
{
  const struct manifest *manifest = entry->manifest;
  struct coffer_file *file;
  size_t i, n = manifest->n_files;

  opening->files = calloc (n + 1, sizeof opening->files[0]);
  opening->file_vector = calloc (n + 1, sizeof opening->file_vector[0]);
  if (!opening->files || !opening->file_vector)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  for (i = 0; i < n; i++) {
    if (manifest->files[i].late)
      continue;
    file = &opening->files[opening->n_files];
    *file = (struct coffer_file){ .size = sizeof *file,
                                  .name = manifest->files[i].name };
    if (opening->built_in
        && strcmp (file->name, opening->built_in->file) == 0)
      file->fd = built_in_file (opening->built_in, err);
    else
      file->fd = integrity_open (entry->dir_fd, file->name,
                                 manifest->files[i].sha256, 1, err);
    if (file->fd < 0)
      return error_wrap (err, "integrity of %s", file->name);
    opening->file_vector[opening->n_files++] = file;
  }
  return 0;
}

/* The runtime folder must be there; state may be on a read-only disk. */
static int
open_folders (struct opening *opening, const struct registry_entry *entry,
              const struct place *place, struct error **err)
{
  auto_free char *runtime = place_provider_runtime (place, entry->id);
  auto_free char *state = place_provider_state (place, entry->id);

  if (!runtime || !state)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  opening->runtime_dir = place_open_dir (runtime, err);
  if (opening->runtime_dir < 0)
    return -1;
  opening->state_dir = place_open_dir (state, NULL);
  if (opening->state_dir < 0)
    log_event (LOG_LEVEL_INFO, "provider",
               "%s: no state folder %s: nothing of it lasts", entry->id,
               state);
  return 0;
}

int
opening_new (const struct registry_entry *entry, const struct place *place,
             const struct contract *contract,
             const struct built_in *built_in, struct opening **out,
             struct error **err)
{
  auto_opening struct opening *opening = calloc (1, sizeof *opening);

  if (!opening)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  opening->built_in = built_in;
  opening->module_fd = opening->runtime_dir = opening->state_dir = -1;
  if (open_module (opening, entry, contract, err) < 0
      || open_files (opening, entry, err) < 0
      || registry_resolve_config (entry, &opening->config, &opening->secrets,
                                  err) < 0
      || open_folders (opening, entry, place, err) < 0)
    return -1;
  host_id (place, opening->host);
  opening->opts = (struct coffer_open_opts){
    .size = sizeof opening->opts, .files = opening->file_vector,
    .runtime_dir = opening->runtime_dir, .state_dir = opening->state_dir,
    .host = opening->host
  };
  *out = steal (opening);
  return 0;
}

void
opening_free (struct opening *opening)
{
  size_t i;

  if (!opening)
    return;
  for (i = 0; i < opening->n_files; i++)
    coffer_fd_close (&opening->files[i].fd);
  free (opening->files);
  free (opening->file_vector);
  coffer_fd_close (&opening->module_fd);
  coffer_fd_close (&opening->runtime_dir);
  coffer_fd_close (&opening->state_dir);
  yaml_free_texts (opening->config);
  yaml_free_texts (opening->secrets);
  free (opening);
}
