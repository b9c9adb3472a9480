/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer provider info`: the manifest as it counts here, with the operator's
 * narrowing applied, and each configuration value with where it comes from.
 * A key that nobody gave is not shown as if it had a value. */

#include <config.h>

#include <stdio.h>
#include <string.h>

#include <coffer/buffer.h>
#include <coffer/provider.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/provider.h"
#include "provider/built-in.h"
#include "provider/manifest.h"

/* -- text ------------------------------------------------------------------ */

static void
print_line (const char *name, const char *text)
{
  auto_free char *shown = text ? text_escape (text, strlen (text)) : NULL;

  if (shown && shown[0])
    printf ("%-14s %s\n", name, shown);
}

/* Words one after the other, in lines that fit a terminal of 80 columns. */
static void
print_texts (const char *name, char *const *texts)
{
  size_t i, used = 14, width;

  if (texts == NULL || texts[0] == NULL)
    return;
  printf ("%-14s", name);
  for (i = 0; texts[i]; i++) {
    auto_free char *shown = text_escape (texts[i], strlen (texts[i]));

    width = shown ? output_width (shown) : 1;
    if (used > 14 && used + 1 + width > 80) {
      printf ("\n%-14s", "");
      used = 14;
    }
    printf (" %s", shown ? shown : "?");
    used += 1 + width;
  }
  printf ("\n");
}

/* Where it came from, and who vouches for it. */
static void
print_receipt (const struct receipt *receipt)
{
  const struct receipt_source *source = &receipt->source;
  const struct receipt_conformance *c = &receipt->conformance;
  auto_free char *from = NULL, *by = NULL, *judged = NULL;

  if (source->location)
    from = text_printf ("%s %s%s%s", source->kind, source->location,
                        source->commit ? " at " : "",
                        source->commit ? source->commit : "");
  if (receipt->signature.key_id)
    by = text_printf ("%s, %s", receipt->signature.key_id,
                      receipt->signature.comment
                        ? receipt->signature.comment : "no comment");
  if (c->verdict)
    judged = text_printf ("%s, %s", c->verdict, c->time ? c->time : "-");
  print_line ("source", from);
  print_line ("installed", receipt->installed);
  print_line ("signed by", by);
  print_line ("conformance", judged ? judged : "no report is kept");
}

static void
print_identity (const struct registry_entry *entry)
{
  const struct manifest *m = entry->manifest;
  auto_free char *state
    = text_printf ("%s (trust: %s)", registry_state_name (entry->state),
                   registry_trust_name (entry->trust));

  print_line ("provider", entry->id);
  print_line ("state", state);
  if (entry->error)
    print_line ("error", entry->error->message);
  if (entry->receipt)
    print_receipt (entry->receipt);
  if (m == NULL)
    return;
  print_line ("summary", m->summary);
  print_line ("version", m->version);
  print_line ("license", m->license);
  print_line ("homepage", m->homepage);
  print_line ("manifest", m->path);
  print_line ("operator file", entry->override_path);
}

static void
print_bytes (const struct manifest *m, int built_in)
{
  size_t i;

  for (i = 0; i < m->n_modules; i++)
    printf ("%-14s %s (%s) sha256 %s\n", i ? "" : "module",
            m->modules[i].file, m->modules[i].arch,
            m->modules[i].sha256[0] ? m->modules[i].sha256 : "not sealed");
  if (built_in)
    print_line ("built in", "run has the same build in itself, and reads none"
                            " of the module");
  for (i = 0; i < m->n_files; i++)
    printf ("%-14s %s sha256 %s\n", i ? "" : "files", m->files[i].name,
            m->files[i].sha256[0] ? m->files[i].sha256 : "not sealed");
}

static void
print_promises (const struct registry_entry *entry)
{
  const struct manifest *m = entry->manifest;

  printf ("%-14s %u.%u\n", "contract", m->contract_major, m->contract_minor);
  print_line ("threads", m->threads == COFFER_THREADS_PARALLEL ? "parallel"
                                                               : "serial");
  print_texts ("capabilities", m->capabilities);
  print_texts ("without", entry->without);
  print_texts ("never ends in", m->never);
  printf ("%-14s %s, %s\n", "isolation", m->isolation_kind,
          m->host_kernel_shared ? "on the host's kernel"
                                : "on a kernel of its own");
}

static void
print_rights (const struct manifest *m)
{
  const struct manifest_permissions *p = &m->permissions;

  print_texts ("may connect", p->connect);
  print_texts ("may read", p->read);
  print_texts ("may write", p->write);
  print_texts ("may exec", p->exec);
  if (p->exec_any)
    print_line ("may exec", "any program");
  if (p->namespaces)
    print_line ("may", "make namespaces and mounts");
  if (p->cgroup)
    print_line ("may", "write below the caller's own cgroup");
}

char *
provider_known (const struct manifest_config *key)
{
  if (!manifest_config_is_secret (key->type)
      || (key->from == FROM_NOWHERE && !key->env))
    return NULL;
  return key->from != FROM_NOWHERE
           ? text_printf ("%s, from %s", key->key,
                          manifest_config_froms[key->from - 1])
           : text_printf ("%s, from the variable %s", key->key, key->env);
}

static void
print_secrets (const struct manifest *m)
{
  size_t i;

  for (i = 0; i < m->n_config; i++) {
    auto_free char *known = provider_known (&m->config[i]);

    print_line ("may know", known);
  }
}

static void
print_limits (const struct manifest_limits *limits)
{
  auto_free char *memory = limits->memory_bytes
                             ? text_format_size (limits->memory_bytes) : NULL;
  const struct {
    uint64_t value;
    const char *what;
  } counts[] = { { limits->files, "files" },
                 { limits->processes, "processes" },
                 { limits->calls, "calls at once" } };
  coffer_autobuffer struct coffer_buffer line = { 0 };
  size_t i;

  if (memory)
    coffer_buffer_printf (&line, "%s of memory", memory);
  for (i = 0; i < sizeof counts / sizeof *counts; i++)
    if (counts[i].value)
      coffer_buffer_printf (&line, "%s%llu %s", line.size ? ", " : "",
                            (unsigned long long) counts[i].value,
                            counts[i].what);
  print_line ("limits", line.data);
}

static int
print_config (const struct cli *cli, const struct registry_entry *entry,
              struct error **err)
{
  static const char *const heads[] = { "CONFIG", "TYPE", "VALUE", "FROM",
                                       "WHAT" };
  auto_output_table struct output_table *table = output_table_new (5, heads);
  const struct manifest *m = entry->manifest;
  size_t i;

  if (m->n_config == 0)
    return 0;
  for (i = 0; i < m->n_config; i++) {
    const struct manifest_config *key = &m->config[i];
    const struct registry_config *value = registry_given (entry, key->key);
    const char *cells[] = {
      key->key, manifest_config_type_name (key->type),
      value == NULL
        ? (key->required && entry->state != PROVIDER_QUARANTINED ? "missing"
                                                                 : "-")
      : value->secret ? "(secret)" : value->value,
      value ? value->origin : key->env ? key->env : "-",
      key->help ? key->help : "-"
    };

    output_table_row (table, cells);
  }
  printf ("\n");
  return output_table_print (table, cli, err);
}

int
provider_info_run (struct cli *cli, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  json_t *info;
  int built_in;

  if (provider_named (cli, &registry, &entry, err) < 0)
    return -1;
  built_in = entry->manifest && built_in_for (entry);
  if (cli->json) {
    info = registry_entry_json (entry);
    json_object_set_new (info, "built_in", json_boolean (built_in));
    return output_json (info, err);
  }
  print_identity (entry);
  if (entry->manifest) {
    print_bytes (entry->manifest, built_in);
    print_promises (entry);
    print_rights (entry->manifest);
    print_secrets (entry->manifest);
    print_limits (&entry->manifest->limits);
    if (print_config (cli, entry, err) < 0)
      return -1;
  }
  return output_finish (err);
}
