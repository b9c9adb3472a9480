/* SPDX-License-Identifier: Apache-2.0 */
/* From a source to an installed provider: got into a stage, copied by its
 * manifest, checked as the registry checks before it loads, and renamed into
 * its place with a receipt. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "provider/install.h"
#include "provider/package.h"
#include "provider/registry.h"
#include "provider/trust.h"

void
install_report_fini (struct install_report *report)
{
  receipt_free (report->receipt);
  free (report->version);
  free (report->old_version);
  free (report->folder);
  *report = (struct install_report){ 0 };
}

/* -- may it be installed --------------------------------------------------- */

/* A folder and an archive are what lies here; an address is what somebody else
 * makes of it each time. */
static int
needs_pin (const struct source *source)
{
  return strcmp (source->told.kind, "url") == 0
         || strcmp (source->told.kind, "git") == 0;
}

static int
check_pin (const struct install_request *request, const struct source *source,
           struct error **err)
{
  const int is_git = strcmp (source->told.kind, "git") == 0;
  auto_free char *question = NULL;

  if (source->pinned || !needs_pin (source))
    return 0;
  if (!request->interactive) {
    error_set (err, E_UNPINNED, 0, is_git
                 ? "%s: a branch or a tag may be another commit tomorrow"
                 : "%s: without --sha256 it may be anything",
               source->told.location);
    error_hint (err, is_git ? "give the full commit id with --ref"
                            : "give the archive's hash with --sha256");
    return -1;
  }
  question = text_printf ("%s is not pinned%s%s: install what is there now",
                          source->told.location, is_git ? ", ref " : "",
                          is_git ? source->told.ref : "");
  if (question == NULL)
    return error_set (err, E_NO_MEMORY, 0, "the source");
  return request->confirm (request->data, question, err);
}

/* -- what is there already ------------------------------------------------- */

/* The folder, where something is installed; its receipt, where that is
 * readable. */
static int
old_read (const struct stage *stage, const char *id, struct receipt **receipt,
          char **version)
{
  coffer_autoclose int dir = openat (stage->providers, id, O_PATH | O_DIRECTORY
                                     | O_NOFOLLOW | O_CLOEXEC);
  auto_manifest struct manifest *manifest = NULL;
  auto_free char *name = text_printf ("%s.yaml", id);

  if (dir < 0)
    return 0;
  receipt_read (dir, receipt, NULL);
  if (name && manifest_load (dir, name, name, &manifest, NULL) == 0)
    *version = strdup (manifest->version);
  return 1;
}

static int
check_free (const struct install_request *request, const struct stage *stage,
            const struct package *package, struct install_report *out,
            struct error **err)
{
  const char *id = package->manifest->id;
  auto_receipt struct receipt *old = NULL;
  auto_free char *question = NULL;

  if (!stage_has (stage, id))
    return 0;
  if (!request->force) {
    error_set (err, E_ALREADY_INSTALLED, 0, "%s is installed already", id);
    error_hint (err, "coffer provider upgrade %s, or --force to replace it",
                id);
    return -1;
  }
  old_read (stage, id, &old, &out->old_version);
  question = text_printf ("replace %s %s by %s", id,
                          out->old_version ? out->old_version : "(unreadable)",
                          package->manifest->version);
  if (question == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", id);
  return request->confirm (request->data, question, err);
}

/* -- the copy -------------------------------------------------------------- */

/* Who vouches for these bytes: a key that the operator trusts, a hash that the
 * operator gave, or nobody but this folder. */
static const char *
trust_of (const struct source *source, const struct receipt *receipt)
{
  if (receipt->signature.key_id)
    return "signed";
  return source->pinned ? "pinned" : "local";
}

static char *
copied (const char *text)
{
  return text ? strdup (text) : NULL;
}

static int
receipt_fill (struct receipt *receipt, const struct source *source,
              struct error **err)
{
  struct receipt_source *told = &receipt->source;

  *told = (struct receipt_source){
    .kind = copied (source->told.kind),
    .location = copied (source->told.location),
    .ref = copied (source->told.ref), .commit = copied (source->told.commit),
    .subdir = copied (source->told.subdir)
  };
  memcpy (told->sha256, source->told.sha256, SHA256_HEX_SIZE);
  receipt->trust = strdup (trust_of (source, receipt));
  receipt->installed = receipt_time ();
  if (!told->kind || !told->location || !receipt->trust
      || !receipt->installed)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", receipt->id);
  return 0;
}

/* A whole provider in the stage, under its id. */
static int
stage_package (const struct stage *stage, const struct source *source,
               const struct package *package, struct receipt **out,
               struct error **err)
{
  auto_receipt struct receipt *receipt = calloc (1, sizeof *receipt);
  const char *id = package->manifest->id;
  coffer_autoclose int dir = -1;

  if (receipt == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s", id);
  dir = stage_folder (stage, id, err);
  if (dir < 0 || package_copy (package, dir, receipt, err) < 0
      || trust_record (stage->place, dir, package->manifest, receipt, err) < 0
      || receipt_fill (receipt, source, err) < 0
      || receipt_write (dir, receipt, err) < 0
      || package_check (stage->place, stage->path, id, err) < 0)
    return -1;
  *out = steal (receipt);
  return 0;
}

static int
fill_report (const struct place *place, const struct package *package,
             struct receipt *take_receipt, struct install_report *out,
             struct error **err)
{
  out->receipt = take_receipt;
  out->version = strdup (package->manifest->version);
  out->folder = text_printf ("%s/%s", place->installed,
                             package->manifest->id);
  if (out->version == NULL || out->folder == NULL)
    return error_set (err, E_NO_MEMORY, 0, "provider %s",
                      package->manifest->id);
  return 0;
}

/* -- install --------------------------------------------------------------- */

static int
find_package (struct source *source, struct stage *stage,
              const struct install_request *request, struct package *package,
              struct error **err)
{
  const int is_local = strcmp (source->told.kind, "folder") == 0;
  coffer_autoclose int folder = -1;
  auto_free char *shown = NULL;

  if (source_acquire (source, stage, request->watch, &folder, &shown, err) < 0)
    return -1;
  return package_open (folder, shown, is_local, package, err);
}

int
install_provider (const struct place *place,
                  const struct install_request *request,
                  struct install_report *out, struct error **err)
{
  auto_source struct source source = { 0 };
  auto_package struct package package = { .folder = -1 };
  auto_install_report struct install_report report = { .changed = 1 };
  auto_stage struct stage stage = { .providers = -1, .dir = -1 };
  auto_receipt struct receipt *receipt = NULL;

  if (source_parse (&request->words, &source, err) < 0
      || check_pin (request, &source, err) < 0
      || stage_begin (place, &stage, err) < 0
      || find_package (&source, &stage, request, &package, err) < 0
      || check_free (request, &stage, &package, &report, err) < 0
      || stage_package (&stage, &source, &package, &receipt, err) < 0)
    return -1;
  if (fill_report (place, &package, steal (receipt), &report, err) < 0
      || stage_commit (&stage, package.manifest->id, request->force, err) < 0)
    return -1;
  *out = report;
  report = (struct install_report){ 0 };
  return 0;
}

/* -- upgrade --------------------------------------------------------------- */

/* Where it came from, with what was given now instead of what was then. */
static int
words_again (const char *id, const struct receipt *old,
             const struct source_words *given, struct source_words *out,
             struct error **err)
{
  *out = *given;
  if (given->source)
    return 0;
  if (old == NULL || old->source.location == NULL) {
    error_set (err, E_INVALID, 0, "where %s came from was not noted", id);
    error_hint (err, "coffer provider upgrade %s SOURCE", id);
    return -1;
  }
  out->source = old->source.location;
  if (out->ref == NULL)
    out->ref = old->source.ref;
  if (out->subdir == NULL)
    out->subdir = old->source.subdir;
  if (out->sha256 == NULL && strcmp (old->source.kind, "url") == 0
      && strcmp (old->trust, "local") != 0)
    out->sha256 = old->source.sha256;
  return 0;
}

static int
check_known (const char *id, struct error **err)
{
  auto_free char *shown = text_escape (id, strlen (id));

  if (text_is_id (id))
    return 0;
  return error_set (err, E_UNKNOWN_PROVIDER, 0, "no provider is called \"%s\"",
                    shown ? shown : "?");
}

static int
check_id (const struct package *package, const char *id, struct error **err)
{
  if (strcmp (package->manifest->id, id) == 0)
    return 0;
  return error_set (err, E_MANIFEST, 0, "%s has the provider %s, not %s",
                    package->shown, package->manifest->id, id);
}

/* Nothing has changed yet, and what is said is of the new one. */
static int
fail_new (const char *id, const char *old_version, struct error **err)
{
  error_wrap (err, "%s %s is kept", id,
              old_version ? old_version : "as it is");
  if (err && (*err)->number == E_PROVIDER_FAILED)
    error_hint (err, "the message is the new one's own; coffer kit FOLDER"
                " tries it where it was built");
  return -1;
}

/* In its place, as every other command will find it. */
static int
check_enabled (const struct place *place, const char *id, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;

  if (package_check (place, place->installed, id, err) < 0
      || registry_load_one (place, id, &registry, err) < 0)
    return -1;
  if (registry->count == 1
      && registry->entries[0].state == PROVIDER_DISABLED)
    return 0;                   /* by the operator, and it stays so */
  return registry_find (registry, id, &entry, err);
}

/* It has passed every check, and was opened.  Should it not be usable in its
 * place nevertheless, the old one, which lies in the stage now, goes back. */
static int
exchange (struct stage *stage, const char *id, struct error **err)
{
  struct error *error = NULL;

  if (stage_commit (stage, id, 1, err) < 0)
    return -1;
  if (check_enabled (stage->place, id, &error) == 0)
    return 0;
  if (stage_commit (stage, id, 1, err) < 0) {
    error_free (error);
    return error_wrap (err, "the old %s could not be put back", id);
  }
  error_move (err, error);
  error_wrap (err, "the old %s is kept", id);
  return -1;
}

int
install_upgrade (const struct place *place, const char *id,
                 const struct install_request *request,
                 struct install_report *out, struct error **err)
{
  auto_source struct source source = { 0 };
  auto_package struct package package = { .folder = -1 };
  auto_install_report struct install_report report = { 0 };
  auto_stage struct stage stage = { .providers = -1, .dir = -1 };
  auto_receipt struct receipt *receipt = NULL, *old = NULL;
  struct source_words words;

  if (check_known (id, err) < 0 || stage_begin (place, &stage, err) < 0)
    return -1;
  if (!old_read (&stage, id, &old, &report.old_version))
    return error_set (err, E_UNKNOWN_PROVIDER, 0, "%s is not installed in %s",
                      id, place->installed);
  if (words_again (id, old, &request->words, &words, err) < 0
      || source_parse (&words, &source, err) < 0
      || check_pin (request, &source, err) < 0
      || find_package (&source, &stage, request, &package, err) < 0
      || check_id (&package, id, err) < 0)
    return -1;
  if (stage_package (&stage, &source, &package, &receipt, err) < 0
      || package_try (place, stage.path, id, err) < 0)
    return fail_new (id, report.old_version, err);
  report.changed = old == NULL || strcmp (old->manifest_sha256,
                                          receipt->manifest_sha256) != 0;
  if (fill_report (place, &package, steal (receipt), &report, err) < 0
      || exchange (&stage, id, err) < 0)
    return -1;
  *out = report;
  report = (struct install_report){ 0 };
  return 0;
}

/* -- remove ---------------------------------------------------------------- */

int
install_remove (const struct place *place, const char *id,
                int (*before) (void *data, struct error **err), void *data,
                struct error **err)
{
  auto_registry struct registry *registry = NULL;
  auto_stage struct stage stage = { .providers = -1, .dir = -1 };

  if (check_known (id, err) < 0
      || registry_load_one (place, id, &registry, err) < 0)
    return -1;
  if (registry->count == 1
      && registry->entries[0].trust == TRUST_PACKAGED) {
    error_set (err, E_DENIED, 0, "%s comes with coffer and is not removed"
               " alone", id);
    error_hint (err, "coffer provider disable %s", id);
    return -1;
  }
  if (stage_begin (place, &stage, err) < 0)
    return -1;
  if (!stage_has (&stage, id) && registry->count == 1) {
    error_set (err, E_DENIED, 0, "%s is installed for the whole system: %s",
               id, registry->entries[0].dir);
    error_hint (err, "root removes it");
    return -1;
  }
  if (stage_has (&stage, id) && before (data, err) < 0)
    return -1;
  return stage_take (&stage, id, err);
}
