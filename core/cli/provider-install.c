/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer provider install`, `upgrade`, `uninstall` and `pack`. */

#include <config.h>

#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/host.h"
#include "cli/output.h"
#include "cli/provider.h"
#include "provider/conformance.h"
#include "provider/install.h"
#include "provider/pack.h"
#include "provider/registry.h"
#include "sandbox/sandbox.h"

/* -- install, upgrade ------------------------------------------------------ */

struct installing {
  struct cli *cli;
  struct install_request request;
  struct helper_watch watch;
  struct output_progress progress;
};

/* The bar makes room for the question. */
static int
confirm (void *data, const char *question, struct error **err)
{
  struct installing *installing = data;

  output_progress_end (&installing->progress);
  return output_confirm (installing->cli, question, err);
}

static int
installing_init (struct installing *installing, struct cli *cli,
                 const char *source, struct error **err)
{
  struct helper_watch *watch = &installing->watch;

  installing->cli = cli;
  installing->request = (struct install_request){
    .words = { .source = source, .sha256 = cli_value (cli, "sha256"),
               .ref = cli_value (cli, "ref"),
               .subdir = cli_value (cli, "subdir") },
    .force = cli_flag (cli, "force"),
    .interactive = !cli->yes && !cli->json && isatty (STDIN_FILENO)
                   && isatty (STDERR_FILENO),
    .confirm = confirm, .data = installing, .watch = watch
  };
  output_progress_begin (&installing->progress, cli, "fetching");
  watch->progress = output_progress_update;
  watch->data = &installing->progress;
  watch->cancel_fd = sandbox_signals_catch (err);
  return watch->cancel_fd < 0 ? -1 : 0;
}

/* What has just been installed, of a registry that is the caller's; NULL: it
 * cannot be looked at. */
static const struct registry_entry *
installed (const struct place *place, const char *id,
           struct registry **registry)
{
  return registry_load_one (place, id, registry, NULL) == 0
         && (*registry)->count > 0 ? &(*registry)->entries[0] : NULL;
}

/* Is a report of the kit demanded of it that is not there yet? */
static int
needs_kit (const struct registry_entry *entry)
{
  return entry && conformance_demand (entry, NULL) < 0;
}

static int
report_json (const struct place *place, const struct install_report *report,
             struct error **err)
{
  const struct receipt *receipt = report->receipt;
  auto_registry struct registry *registry = NULL;
  auto_json json_t *stored = receipt_to_json (receipt);
  json_t *object = json_object ();

  json_put_text (object, "id", receipt->id);
  json_put_text (object, "version", report->version);
  json_put_text (object, "replaced", report->old_version);
  json_object_set_new (object, "changed", json_boolean (report->changed));
  json_put_text (object, "trust", receipt->trust);
  json_put_text (object, "folder", report->folder);
  json_object_set_new (object, "needs_kit",
                       json_boolean (needs_kit (installed (
                         place, receipt->id, &registry))));
  json_object_set (object, "receipt", stored);
  return output_json (object, err);
}

/* What "local" means is said once, where it is decided. */
static void
note_trust (const struct receipt *receipt)
{
  if (strcmp (receipt->trust, "local") == 0
      && strcmp (receipt->source.kind, "folder") == 0)
    output_note ("trust is local: these are the bytes of the folder as it is"
                 " now, and no commit is noted");
}

/* Whoever installs what is a stranger's is told before it is used. */
static void
note_secrets (const struct registry_entry *entry)
{
  const struct manifest *m = entry ? entry->manifest : NULL;

  for (size_t i = 0; m && i < m->n_config; i++) {
    auto_free char *known = provider_known (&m->config[i]);

    if (known)
      output_note ("it is given a secret, where there is one: %s", known);
  }
}

static int
report_print (const struct place *place, const char *done,
              const struct install_report *report, struct error **err)
{
  const struct receipt *receipt = report->receipt;
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry = installed (place, receipt->id,
                                                  &registry);

  printf ("%s %s %s, trust %s, manifest %.12s\n", receipt->id,
          report->version, done, receipt->trust, receipt->manifest_sha256);
  note_trust (receipt);
  note_secrets (entry);
  if (needs_kit (entry))
    output_note ("it is not used%s before the conformance kit has tried it:"
                 " coffer kit %s --record", report->old_version
                   ? ", nor are its sandboxes reached," : "", receipt->id);
  return output_finish (err);
}

static int
install_run (struct cli *cli, struct error **err)
{
  auto_install_report struct install_report report = { 0 };
  struct installing installing;
  const struct place *place;
  int r;

  if (installing_init (&installing, cli, cli->args[0], err) < 0
      || cli_place (cli, &place, err) < 0)
    return -1;
  r = install_provider (place, &installing.request, &report, err);
  output_progress_end (&installing.progress);
  if (r < 0)
    return -1;
  return cli->json ? report_json (place, &report, err)
                   : report_print (place, report.old_version ? "replaced"
                                                             : "installed",
                                   &report, err);
}

static int
upgrade_run (struct cli *cli, struct error **err)
{
  auto_install_report struct install_report report = { 0 };
  struct installing installing;
  const struct place *place;
  int r;

  if (installing_init (&installing, cli, cli->n_args > 1 ? cli->args[1] : NULL,
                       err) < 0
      || cli_place (cli, &place, err) < 0)
    return -1;
  r = install_upgrade (place, cli->args[0], &installing.request, &report, err);
  output_progress_end (&installing.progress);
  if (r < 0)
    return -1;
  return cli->json ? report_json (place, &report, err)
                   : report_print (place,
                                   report.changed ? "upgraded"
                                                  : "installed again, the same",
                                   &report, err);
}

/* -- uninstall ------------------------------------------------------------- */

static int
check_living (struct cli *cli, const char *id, json_t **ids,
              struct error **err)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };
  struct host *host;
  json_t *one;
  size_t i;

  if (cli_host (cli, 0, &host, err) < 0
      || sandbox_of_provider (host, id, ids, err) < 0)
    return -1;
  if (json_array_size (*ids) == 0 || cli_flag (cli, "force"))
    return 0;
  json_array_foreach (*ids, i, one)
    coffer_buffer_printf (&text, "%s%s", i ? ", " : "",
                          json_string_value (one));
  error_set (err, E_BUSY, 0, "%s still has sandboxes: %.400s", id,
             text.data ? text.data : "");
  error_hint (err, "coffer sandbox kill ID ends one; --force leaves them to"
              " themselves");
  error_detail (err, "sandboxes", json_incref (*ids));
  return -1;
}

struct leaving {
  const struct place *place;
  const char *id;
  char *now;                    /* the default from now on; NULL: as it was */
};

/* What is not there any more cannot be what is taken unless another is named:
 * where that cannot be written, it is not removed either. */
static int
default_reset (void *data, struct error **err)
{
  struct leaving *leaving = data;
  auto_registry struct registry *registry = NULL;

  if (registry_load_one (leaving->place, NULL, &registry, err) < 0)
    return -1;
  if (strcmp (registry->default_provider, leaving->id) != 0)
    return 0;
  if (registry_reset_default (leaving->place, leaving->id, &leaving->now, err)
      < 0)
    return -1;
  output_note ("Default provider reset to '%s'", leaving->now);
  return 0;
}

static int
uninstall_run (struct cli *cli, struct error **err)
{
  const char *id = cli->args[0];
  auto_json json_t *left = NULL;
  auto_free char *now = NULL;
  struct leaving leaving = { .id = id };
  int r;

  if (cli_place (cli, &leaving.place, err) < 0
      || check_living (cli, id, &left, err) < 0)
    return -1;
  r = install_remove (leaving.place, id, default_reset, &leaving, err);
  now = leaving.now;
  if (r < 0)
    return -1;
  if (cli->json)
    return output_json (json_pack ("{s:s, s:b, s:s*, s:O}", "uninstalled", id,
                                   "default_reset", now != NULL, "default",
                                   now, "left_sandboxes", left), err);
  printf ("%s uninstalled\n", id);
  return output_finish (err);
}

/* -- pack ------------------------------------------------------------------ */

static int
pack_json (const struct pack_report *report, struct error **err)
{
  json_t *object = json_object ();

  json_put_text (object, "id", report->id);
  json_put_text (object, "version", report->version);
  json_put_text (object, "arch", manifest_machine ());
  json_put_text (object, "archive", report->archive);
  json_put_text (object, "sha256", report->sha256);
  json_put_u64 (object, "bytes", report->bytes);
  json_put_text (object, "sha256_file", report->sha256_file);
  json_put_text (object, "signature", report->signature);
  return output_json (object, err);
}

static int
pack_run (struct cli *cli, struct error **err)
{
  auto_pack_report struct pack_report report = { 0 };
  struct helper_watch watch = { .cancel_fd = sandbox_signals_catch (err) };
  const struct pack_request request = {
    .dir = cli->args[0], .output = cli_value (cli, "output"),
    .key = cli_value (cli, "sign"), .watch = &watch
  };
  const struct place *place;
  auto_free char *shown = NULL;

  if (watch.cancel_fd < 0 || cli_place (cli, &place, err) < 0
      || pack_provider (place, &request, &report, err) < 0)
    return -1;
  if (cli->json)
    return pack_json (&report, err);
  shown = text_escape (report.archive, strlen (report.archive));
  printf ("%s  %s\n", report.sha256, shown ? shown : "?");
  return output_finish (err);
}

/* -- rows ------------------------------------------------------------------ */

#define SOURCE_OPTIONS                                                        \
  { "sha256", 0, "HEX", 0, "the hash that the archive must have" },           \
  { "ref", 0, "REF", 0,                                                       \
    "full commit id of a git source, or branch, tag" },                \
  { "subdir", 0, "DIR", 0, "the provider's folder inside of the source" }

static const struct cli_option install_options[] = {
  { "force", 0, NULL, 0, "replace what is installed under its id" },
  SOURCE_OPTIONS,
  { NULL }
};

static const struct cli_option upgrade_options[] = { SOURCE_OPTIONS, { NULL } };

static const struct cli_option uninstall_options[] = {
  { "force", 0, NULL, 0, "also when it still has sandboxes" },
  { NULL }
};

static const struct cli_option pack_options[] = {
  { "output", 0, "DIR", 0, "where the archive goes" },
  { "sign", 0, "KEY", 0, "sign it with this secret key of minisign(1)" },
  { NULL }
};

const struct cli_command provider_install_commands[] = {
  { "provider install", "SOURCE",
    "install a provider: a folder, archive, https: or git",
    install_options, 1, 1, -1, 0, install_run },
  { "provider upgrade", "ID [SOURCE]",
    "replace a provider, or keep it when the new one fails",
    upgrade_options, 1, 2, -1, 0, upgrade_run },
  { "provider uninstall", "ID", "remove an installed provider",
    uninstall_options, 1, 1, -1, 0, uninstall_run },
  { "provider pack", "DIR",
    "make the archive of a provider that others install",
    pack_options, 1, 1, -1, 0, pack_run },
  { NULL }
};
