/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `provider doctor` and `provider verify` that run nothing of
 * the provider.  Each says what it looked at and, when it fails, what to do. */

#include <config.h>

#include <string.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "contract/contract.h"
#include "provider/built-in.h"
#include "provider/conformance.h"
#include "provider/integrity.h"
#include "provider/loader.h"
#include "provider/proxy.h"
#include "provider/registry-read.h"
#include "provider/signature.h"

json_t *
registry_check_new (const char *check, int ok, const char *detail,
                    const char *remedy)
{
  return json_pack ("{s:s, s:b, s:s, s:s?}", "check", check, "ok", ok,
                    "detail", detail, "remedy", ok ? NULL : remedy);
}

int
registry_check_passed (const json_t *checks)
{
  json_t *check;
  size_t i;

  json_array_foreach (checks, i, check) {
    if (!json_is_true (json_object_get (check, "ok")))
      return 0;
  }
  return json_array_size (checks) > 0;
}

static int
fail_check (const json_t *check, struct error **err)
{
  const char *code = json_string_value (json_object_get (check, "code"));
  const char *detail = json_string_value (json_object_get (check, "detail"));
  const char *remedy = json_string_value (json_object_get (check, "remedy"));
  uint64_t number = E_INTEGRITY;

  if (code && code[0] == 'E')
    text_parse_u64 (code + 1, 1, 9999, &number);
  error_set (err, (int) number, 0, "%s", detail ? detail : "it is not whole");
  if (remedy)
    error_hint (err, "%s", remedy);
  return -1;
}

int
registry_check_error (const json_t *checks, struct error **err)
{
  json_t *check;
  size_t i;

  json_array_foreach (checks, i, check) {
    if (!json_is_true (json_object_get (check, "ok")))
      return fail_check (check, err);
  }
  return 0;
}

static void
add_passed (json_t *checks, const char *check, const char *detail)
{
  json_array_append_new (checks, registry_check_new (check, 1, detail, NULL));
}

json_t *
registry_check_failed (const char *check, const struct error *error)
{
  json_t *item = registry_check_new (check, 0, error_message (error),
                                     error_next_step (error));
  auto_free char *code = text_printf ("E%d", error->number);

  if (item && code)
    json_object_set_new (item, "code", json_string (code));
  return item;
}

static void
add_failed (json_t *checks, const char *check, const struct error *error)
{
  json_array_append_new (checks, registry_check_failed (check, error));
}

/* -- integrity ------------------------------------------------------------- */

static int
check_file (const struct registry_entry *entry, const char *name,
            const char *sha256, struct error **err)
{
  char found[SHA256_HEX_SIZE];

  if (sha256[0] == '\0')
    return error_set (err, E_INTEGRITY, 0, "%s is not sealed", name);
  if (integrity_hash (entry->dir_fd, name, found, err) < 0)
    return -1;
  if (strcmp (found, sha256) != 0)
    return error_set (err, E_INTEGRITY, 0,
                      "%s is not what the manifest was sealed for", name);
  return 0;
}

/* The module's copy is kept for the gate: what is judged is what was hashed.
 */
static int
check_integrity (const struct registry_entry *entry, json_t *checks)
{
  const struct manifest *m = entry->manifest;
  const struct manifest_module *module;
  auto_error struct error *error = NULL;
  coffer_autoclose int fd = -1;
  auto_free char *detail = NULL;
  size_t i;
  int r = manifest_module (m, &module, &error);

  if (r == 0) {
    fd = integrity_open (entry->dir_fd, module->file, module->sha256, 0,
                         &error);
    r = fd < 0 ? -1 : 0;
  }
  for (i = 0; r == 0 && i < m->n_files; i++)
    r = check_file (entry, m->files[i].name, m->files[i].sha256, &error);
  if (r < 0) {
    add_failed (checks, "integrity", error);
    return -1;
  }
  detail = text_printf ("%s (sha256 %.12s…) and %zu file%s are as sealed%s",
                        module->file, module->sha256, m->n_files,
                        m->n_files == 1 ? "" : "s",
                        built_in_for (entry)
                          ? "; run has the same build in itself" : "");
  add_passed (checks, "integrity", detail ? detail : "as sealed");
  return coffer_fd_steal (&fd);
}

static void
check_contract (const struct registry_entry *entry, int fd, json_t *checks)
{
  const struct manifest *m = entry->manifest;
  const struct manifest_module *module;
  auto_error struct error *error = NULL;
  auto_elf_facts struct elf_facts *facts = NULL;
  auto_free char *detail = NULL;
  struct module_claim claim = {
    .contract_major = m->contract_major, .contract_minor = m->contract_minor,
    .threads = m->threads, .capabilities = m->capabilities
  };

  if (manifest_module (m, &module, &error) == 0) {
    claim.file = module->file;
    if (elf_gate (fd, module->file, &facts, &error) == 0
        && module_check (contract_builtin (), &facts->note, &claim, &error)
             == 0) {
      detail = text_printf ("built for contract %u.%u, one entry, no more",
                            m->contract_major, m->contract_minor);
      add_passed (checks, "contract", detail ? detail : "fits");
      return;
    }
  }
  add_failed (checks, "contract", error);
}

/* -- trust ----------------------------------------------------------------- */

static int
fail_signature (const struct registry_entry *entry, const char *what,
                struct error **err)
{
  return error_set (err, E_UNSIGNED, 0, "%s.yaml: %s", entry->id, what);
}

/* There is none that counts: whose it is that does not is named. */
static int
fail_unknown (const struct registry_entry *entry, const char *what,
              const struct signature *signature, struct error **err)
{
  return error_set (err, E_UNSIGNED, 0, "%s.yaml: %s%s%s", entry->id, what,
                    signature->unknown ? ": it is signed by the key " : "",
                    signature->unknown ? signature->unknown : "");
}

/* Verified now, against what the receipt recorded.  1: signed, 0: not. */
static int
check_signature (const struct registry_entry *entry,
                 const struct place *place, struct signature *signature,
                 struct error **err)
{
  auto_free char *name = text_printf ("%s.yaml", entry->id);
  const char *recorded
    = entry->receipt ? entry->receipt->signature.key_id : NULL;
  int r;

  if (name == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", entry->id);
  r = signature_check (place, entry->dir_fd, name, signature, err);
  if (r < 0)
    return -1;
  if (r == 0 && recorded)
    return fail_unknown (entry, "the signature that was recorded is not"
                         " there, or its key is not trusted any more",
                         signature, err);
  if (r == 0)
    return 0;
  if (strcmp (signature->sha256, entry->manifest->sha256) != 0)
    return fail_signature (entry, "it changed meanwhile", err);
  if (recorded && strcmp (recorded, signature->key_id) != 0)
    return fail_signature (entry, "another key signed it than the one that was"
                           " recorded", err);
  if (recorded == NULL && entry->require_signature)
    return fail_signature (entry, "its signature is not recorded yet: coffer"
                           " provider enable does it", err);
  return 1;
}

static char *
source_text (const struct registry_entry *entry,
             const struct signature *signature)
{
  const char *trust = registry_trust_name (entry->trust);
  const struct receipt_source *source
    = entry->receipt ? &entry->receipt->source : NULL;

  if (source == NULL || source->location == NULL)
    return strdup (trust);
  return text_printf ("%s: %s %s%s%s%s%s", trust, source->kind,
                      source->location, source->commit ? " at " : "",
                      source->commit ? source->commit : "",
                      signature->unknown ? ", signed by an unknown key, " : "",
                      signature->unknown ? signature->unknown : "");
}

static void
check_trust (const struct registry_entry *entry, const struct place *place,
             json_t *checks)
{
  auto_signature struct signature signature = { .key_id = NULL };
  auto_error struct error *error = NULL;
  auto_free char *detail = NULL;
  int r;

  if (entry->trust == TRUST_PACKAGED) {
    add_passed (checks, "trust", "shipped with coffer");
    return;
  }
  r = check_signature (entry, place, &signature, &error);
  if (r == 0 && entry->require_signature)
    r = fail_unknown (entry, "it has no signature by a key of trusted.d",
                      &signature, &error);
  if (r < 0) {
    add_failed (checks, "trust", error);
    return;
  }
  detail = r ? text_printf ("%s: signed by %s, %s",
                            registry_trust_name (entry->trust),
                            signature.key_id, signature.comment)
             : source_text (entry, &signature);
  add_passed (checks, "trust", detail ? detail : "-");
}

/* -- configuration, permissions -------------------------------------------- */

static void
check_config (const struct registry_entry *entry, json_t *checks)
{
  auto_error struct error *error = NULL;
  auto_free char *detail = NULL;
  char **values = NULL, **secrets = NULL;

  if (registry_resolve_config (entry, &values, &secrets, &error) < 0) {
    add_failed (checks, "config", error);
    return;
  }
  yaml_free_texts (values);
  yaml_free_texts (secrets);
  detail = text_printf ("%zu of %zu keys have a value", entry->n_config,
                        entry->manifest->n_config);
  add_passed (checks, "config", detail ? detail : "complete");
}

/* Nothing is broken by it, so that it is said and no more. */
static void
check_proxy (const struct registry_entry *entry, json_t *checks)
{
  const struct manifest *m = entry->manifest;
  const char *mixture = proxy_mixture ();
  auto_free char *detail = NULL;
  size_t i = 0;

  while (i < m->n_config && m->config[i].type != CONFIG_PROXY)
    i++;
  if (i == m->n_config || !mixture)
    return;
  detail = text_printf ("warning: %s", mixture);
  json_array_append_new (
    checks, registry_check_new ("proxy", 1, detail ? detail : mixture,
                                "set one kind, or the key in providers.d"));
}

json_t *
registry_check_conformance (const struct registry_entry *entry)
{
  auto_error struct error *error = NULL;
  auto_free char *detail = NULL;

  if (entry->trust == TRUST_PACKAGED)
    return registry_check_new ("conformance", 1,
                               "shipped with coffer and tested with it", NULL);
  if (conformance_check (entry, &error) < 0) {
    if (entry->require_conformance)
      return registry_check_failed ("conformance", error);
    detail = text_printf ("not demanded (require_conformance: false); %s",
                          error_message (error));
  } else
    detail = text_printf ("conformant, by the report of %s",
                          entry->receipt->conformance.time
                            ? entry->receipt->conformance.time : "the kit");
  return registry_check_new ("conformance", 1, detail ? detail : "-", NULL);
}

static void
check_installed (const struct registry_entry *entry, json_t *checks)
{
  auto_error struct error *error = NULL;
  auto_free char *detail = NULL;

  if (entry->state == PROVIDER_QUARANTINED) {
    error_set (&error, E_PROVIDER_DISABLED, 0,
               "%s was put there by hand and is not checked yet", entry->dir);
    error_hint (&error, "coffer provider enable %s checks it and says that it"
                " is meant", entry->id);
    add_failed (checks, "installed", error);
    return;
  }
  if (entry->state == PROVIDER_BROKEN && entry->error) {
    add_failed (checks, "installed", entry->error);
    return;
  }
  detail = text_printf ("%s, %s, %s", entry->manifest->path,
                        registry_trust_name (entry->trust),
                        registry_state_name (entry->state));
  add_passed (checks, "installed", detail ? detail : "found");
}

/* Nothing is wrong with it, and nothing of it is started. */
static void
check_disabled (const struct registry_entry *entry, json_t *checks)
{
  auto_free char *detail = text_printf ("%s says `enabled: false`",
                                        entry->override_path
                                          ? entry->override_path
                                          : "the operator");

  auto_free char *remedy = text_printf ("coffer provider enable %s",
                                        entry->id);

  json_array_append_new (
    checks, registry_check_new ("enabled", 0, detail ? detail : "-", remedy));
}

json_t *
registry_check (const struct registry_entry *entry, const struct place *place,
                int verify)
{
  auto_json json_t *checks = json_array ();
  coffer_autoclose int fd = -1;

  if (checks == NULL)
    return NULL;
  check_installed (entry, checks);
  if (entry->manifest == NULL || entry->dir_fd < 0
      || entry->state == PROVIDER_QUARANTINED)
    return steal (checks);
  fd = check_integrity (entry, checks);
  if (entry->state != PROVIDER_BROKEN)
    check_trust (entry, place, checks);
  if (fd >= 0)
    check_contract (entry, fd, checks);
  if (!verify && entry->state != PROVIDER_BROKEN) {
    check_config (entry, checks);
    check_proxy (entry, checks);
  }
  if (!verify && entry->state == PROVIDER_DISABLED)
    check_disabled (entry, checks);
  return steal (checks);
}
