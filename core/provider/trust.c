/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures become lines of the receipt: what was verified once is compared
 * by its hash from then on. */

#include <config.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "provider/conformance.h"
#include "provider/signature.h"
#include "provider/trust.h"

/* A signature that counts for nothing is said where somebody means it to. */
static void
note_unknown (const char *name, const struct signature *signature)
{
  if (signature->unknown)
    log_event (LOG_LEVEL_WARNING, "registry", "%s is signed by the key %s,"
               " which is not in trusted.d and counts for nothing", name,
               signature->unknown);
}

/* One that its author made and signed; whether it is of these bytes is looked
 * at whenever it has to count. */
static int
record_report (const struct place *place, int dir_fd,
               struct receipt *receipt, struct error **err)
{
  auto_signature struct signature signature = { .key_id = NULL };
  int r;

  if (faccessat (dir_fd, CONFORMANCE_FILE, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
    return 0;
  r = signature_check (place, dir_fd, CONFORMANCE_FILE, &signature, err);
  note_unknown (CONFORMANCE_FILE, &signature);
  if (r <= 0)
    return r;
  if (strcmp (signature.key_id, receipt->signature.key_id) != 0) {
    log_event (LOG_LEVEL_WARNING, "registry", "%s is signed by another key than the"
               " manifest", CONFORMANCE_FILE);
    return 0;
  }
  if (conformance_read (dir_fd, &receipt->conformance, err) < 0)
    return -1;
  if (strcmp (receipt->conformance.report_sha256, signature.sha256) != 0)
    return error_set (err, E_UNSIGNED, 0, CONFORMANCE_FILE
                      " changed meanwhile");
  return 0;
}

int
trust_record (const struct place *place, int dir_fd,
              const struct manifest *manifest, struct receipt *receipt,
              struct error **err)
{
  auto_signature struct signature signature = { .key_id = NULL };
  auto_free char *name = text_printf ("%s.yaml", manifest->id);
  int r;

  if (name == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", manifest->id);
  r = signature_check (place, dir_fd, name, &signature, err);
  note_unknown (name, &signature);
  if (r <= 0)
    return r;
  if (strcmp (signature.sha256, manifest->sha256) != 0)
    return error_set (err, E_UNSIGNED, 0, "%s changed meanwhile", name);
  free (receipt->signature.key_id);
  free (receipt->signature.comment);
  receipt->signature.key_id = steal (signature.key_id);
  receipt->signature.comment = steal (signature.comment);
  return record_report (place, dir_fd, receipt, err);
}

/* -- what was dropped in by hand ------------------------------------------- */

/* A copy without demands that are met only once there is a receipt. */
static int
check_folder (const struct place *place, const struct registry_entry *found,
              struct error **err)
{
  struct registry_entry entry = *found;
  auto_json json_t *checks = NULL;

  entry.require_signature = 0;
  checks = registry_check (&entry, place, 1);
  if (checks == NULL)
    return error_set (err, E_NO_MEMORY, 0, "check %s", entry.id);
  return registry_check_error (checks, err);
}

static int
note_files (const struct manifest *m, struct receipt *receipt,
            struct error **err)
{
  const struct manifest_module *module;
  size_t i;

  if (manifest_module (m, &module, err) < 0)
    return -1;
  receipt->modules = calloc (1, sizeof *receipt->modules);
  receipt->files = calloc (m->n_files + 1, sizeof *receipt->files);
  if (receipt->modules == NULL || receipt->files == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", m->id);
  receipt->n_modules = 1;
  receipt->modules[0].arch = strdup (module->arch);
  receipt->modules[0].name = strdup (module->file);
  if (!receipt->modules[0].arch || !receipt->modules[0].name)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", m->id);
  memcpy (receipt->modules[0].sha256, module->sha256, SHA256_HEX_SIZE);
  receipt->n_files = m->n_files;
  for (i = 0; i < m->n_files; i++) {
    receipt->files[i].name = strdup (m->files[i].name);
    if (!receipt->files[i].name)
      return error_set (err, E_NO_MEMORY, 0, "provider %s", m->id);
    memcpy (receipt->files[i].sha256, m->files[i].sha256, SHA256_HEX_SIZE);
  }
  return 0;
}

static int
fill_receipt (const struct registry_entry *entry, struct receipt *receipt,
              struct error **err)
{
  const struct manifest *m = entry->manifest;

  if (note_files (m, receipt, err) < 0)
    return -1;
  memcpy (receipt->manifest_sha256, m->sha256, SHA256_HEX_SIZE);
  receipt->id = strdup (m->id);
  receipt->source.kind = strdup ("folder");
  receipt->source.location = strdup (entry->dir);
  receipt->installed = receipt_time ();
  receipt->trust = strdup (receipt->signature.key_id ? "signed" : "local");
  if (!receipt->id || !receipt->source.kind || !receipt->source.location
      || !receipt->installed || !receipt->trust)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", m->id);
  return 0;
}

/* The lock of the folder of providers that this one lies in. */
static int
lock (int dir_fd, struct error **err)
{
  coffer_autoclose int providers
    = openat (dir_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

  if (providers < 0)
    return error_set (err, E_IO, errno, "lock the installed providers");
  return receipt_lock (providers, err);
}

static int
admit (const struct place *place, const struct registry_entry *entry,
       struct error **err)
{
  auto_receipt struct receipt *receipt = calloc (1, sizeof *receipt);
  coffer_autoclose int held = -1;

  if (receipt == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  if (check_folder (place, entry, err) < 0
      || trust_record (place, entry->dir_fd, entry->manifest, receipt, err)
           < 0)
    return -1;
  if (entry->require_signature && receipt->signature.key_id == NULL)
    return error_set (err, E_UNSIGNED, 0, "provider %s has no signature by a"
                      " key of trusted.d", entry->id);
  if (fill_receipt (entry, receipt, err) < 0)
    return -1;
  held = lock (entry->dir_fd, err);
  if (held < 0)
    return -1;
  if (faccessat (entry->dir_fd, RECEIPT_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
    return error_set (err, E_BUSY, 0, "another command enabled %s meanwhile",
                      entry->id);
  place_sweep (entry->dir_fd);
  if (receipt_write (entry->dir_fd, receipt, err) == 0)
    return 0;
  /* It may have its name and be lost with the power all the same. */
  unlinkat (entry->dir_fd, RECEIPT_FILE, 0);
  return -1;
}

int
trust_admit (const struct place *place, const struct registry_entry *entry,
             struct error **err)
{
  auto_registry struct registry *registry = NULL;
  struct registry_entry *found;

  if (registry_load_folder (place, entry->dir, &registry, err) < 0)
    return -1;
  found = &registry->entries[0];
  if (found->state == PROVIDER_BROKEN)
    return error_move (err, steal (found->error));
  if (strcmp (found->id, entry->id) != 0)
    return error_set (err, E_MANIFEST, 0, "%s: the id in it is %s", entry->dir,
                      found->id);
  return admit (place, found, err);
}

int
trust_dismiss (const struct registry_entry *entry, struct error **err)
{
  coffer_autoclose int held = lock (entry->dir_fd, err);

  if (held < 0)
    return -1;
  if (unlinkat (entry->dir_fd, RECEIPT_FILE, 0) < 0 && errno != ENOENT)
    return error_set (err, E_IO, errno, "remove %s/" RECEIPT_FILE, entry->dir);
  return 0;
}

int
trust_renew (const struct place *place, const struct registry_entry *entry,
             struct error **err)
{
  auto_receipt struct receipt *receipt = NULL;
  coffer_autoclose int held = -1;
  int r;

  if (entry->receipt == NULL || entry->receipt->signature.key_id)
    return 0;
  held = lock (entry->dir_fd, err);
  if (held < 0)
    return -1;
  r = receipt_read (entry->dir_fd, &receipt, err);
  if (r <= 0
      || trust_record (place, entry->dir_fd, entry->manifest, receipt, err)
           < 0)
    return r == 0 ? 0 : -1;
  if (receipt->signature.key_id == NULL)
    return 0;
  free (receipt->trust);
  receipt->trust = strdup ("signed");
  if (!receipt->trust)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", receipt->id);
  return receipt_write (entry->dir_fd, receipt, err);
}
