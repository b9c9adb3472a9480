/* SPDX-License-Identifier: Apache-2.0 */
/* A report counts for the bytes that it names: manifest, module and contract
 * are compared with those of now, and the report itself with the hash that
 * was recorded with it. */

#include <config.h>

#include <string.h>

#include "base/text.h"
#include "provider/conformance.h"
#include "provider/integrity.h"

static int
fail (const struct registry_entry *entry, struct error **err,
      const char *what)
{
  error_set (err, E_NOT_CONFORMANT, 0, "provider %s: %s", entry->id, what);
  error_hint (err, "coffer kit %s --record tries it and keeps the report",
              entry->id);
  return -1;
}

static int
check_verdict (const struct registry_entry *entry,
               const struct receipt_conformance *c, struct error **err)
{
  if (c->verdict == NULL)
    return fail (entry, err, "no report of the conformance kit is kept of it");
  if (strcmp (c->verdict, "failed") == 0)
    return fail (entry, err, "it failed the conformance kit");
  if (strcmp (c->verdict, "conformant") != 0)
    return fail (entry, err, "its run of the conformance kit is incomplete");
  if (c->mode == NULL || strcmp (c->mode, "worker") != 0)
    return fail (entry, err, "it was not tried in a worker");
  return 0;
}

static int
check_bytes (const struct registry_entry *entry,
             const struct receipt_conformance *c, struct error **err)
{
  const struct manifest *m = entry->manifest;
  const struct manifest_module *module;

  if (manifest_module (m, &module, err) < 0)
    return -1;
  if (strcmp (c->manifest_sha256, m->sha256) != 0)
    return fail (entry, err, "its report is of another manifest");
  if (strcmp (c->module_sha256, module->sha256) != 0)
    return fail (entry, err, "its report is of another module");
  if (c->contract_major != m->contract_major
      || c->contract_minor != m->contract_minor)
    return fail (entry, err, "its report is of another contract");
  return 0;
}

/* What the operator gave up when it was tried, and has now, was not tried. */
static int
check_claims (const struct registry_entry *entry,
              const struct receipt_conformance *c, struct error **err)
{
  auto_free char *words = c->without ? strdup (c->without) : NULL;
  char *word, *rest = words;

  if (c->without && !words)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  while ((word = strsep (&rest, " ")) != NULL)
    if (text_list_has ((const char *const *) entry->manifest->capabilities,
                       word))
      return fail (entry, err, "its report is of a run that did without claims "
                   "which it has now");
  return 0;
}

static int
check_report (const struct registry_entry *entry,
              const struct receipt_conformance *c, struct error **err)
{
  auto_error struct error *error = NULL;
  char found[SHA256_HEX_SIZE];

  if (c->report == NULL || !manifest_is_file_name (c->report)
      || integrity_hash (entry->dir_fd, c->report, found, &error) < 0)
    return fail (entry, err, "its report cannot be read");
  if (strcmp (found, c->report_sha256) != 0)
    return fail (entry, err, "its report is not the one that was recorded");
  return 0;
}

int
conformance_check (const struct registry_entry *entry, struct error **err)
{
  const struct receipt_conformance *c;

  if (entry->trust == TRUST_PACKAGED)
    return 0;
  if (entry->receipt == NULL || entry->manifest == NULL)
    return fail (entry, err, "no report of the conformance kit is kept of it");
  c = &entry->receipt->conformance;
  if (check_verdict (entry, c, err) < 0 || check_bytes (entry, c, err) < 0
      || check_claims (entry, c, err) < 0)
    return -1;
  return check_report (entry, c, err);
}

int
conformance_demand (const struct registry_entry *entry, struct error **err)
{
  return entry->require_conformance ? conformance_check (entry, err) : 0;
}
