/* SPDX-License-Identifier: Apache-2.0 */
/* Making a sandbox.  The order is what matters: the request is checked, the
 * mounts are opened, the row says `creating`, and only then is the provider
 * asked.  Whatever fails after that is undone through the provider, and a row
 * goes only when the provider has said that there is nothing behind it. */

#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "sandbox/host.h"
#include "sandbox/info.h"
#include "sandbox/own-folder.h"
#include "sandbox/profile.h"
#include "sandbox/request.h"
#include "sandbox/runs.h"
#include "store/template.h"

#define CREATE_DEFAULT_MS 60000
#define UNDO_MS 10000
/* After a creation's deadline, until another process may judge its row. */
#define CREATE_SLACK_MS 10000

/* All that one creation holds. */
struct creation {
  struct host *host;
  const struct sandbox_request *request;
  struct profiled profiled;     /* what `request` is, once it was resolved */
  struct provider *provider;
  struct sandbox_record *record;
  struct coffer_strings not_applied, demands;
  struct coffer_mount *mounts;
  const struct coffer_mount **mount_list;
  struct template_use template;
  int lifeline[2];
  int noted;                    /* ephemeral: the lock of its file */
  int recorded;                 /* has a row */
};

static void
creation_fini (struct creation *creation)
{
  size_t i;

  for (i = 0; creation->mounts && i < creation->request->n_mounts; i++)
    coffer_fd_close (&creation->mounts[i].source_fd);
  free (creation->mounts);
  free (creation->mount_list);
  coffer_fd_close (&creation->lifeline[0]);
  coffer_fd_close (&creation->lifeline[1]);
  coffer_fd_close (&creation->noted);
  coffer_strings_free (&creation->not_applied);
  coffer_strings_free (&creation->demands);
  sandbox_record_free (creation->record);
  template_use_fini (&creation->template);
  profiled_fini (&creation->profiled);
}
#define auto_creation __attribute__ ((cleanup (creation_fini)))

/* The source as it is now: later changes of the path change nothing, and a
 * link put there while it was looked up is noticed. */
static int
mount_open (const struct sandbox_mount *mount, int *out, struct error **err)
{
  char real[PATH_MAX];
  struct stat opened, named;
  coffer_autoclose int fd = -1;

  if (mount->is_open) {
    *out = fcntl (mount->source_fd, F_DUPFD_CLOEXEC, 3);
    return *out < 0 ? error_set (err, E_SANDBOX_SPEC, errno, "mounts: %s",
                                 mount->source) : 0;
  }
  if (!realpath (mount->source, real))
    return error_set (err, E_SANDBOX_SPEC, errno, "mounts: %s",
                      mount->source);
  fd = open (real, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat (fd, &opened) < 0 || stat (mount->source, &named) < 0)
    return error_set (err, E_SANDBOX_SPEC, errno, "mounts: %s",
                      mount->source);
  if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino)
    return error_set (err, E_BUSY, 0, "mounts: %s changed while it was opened",
                      mount->source);
  if (!S_ISDIR (opened.st_mode) && !S_ISREG (opened.st_mode))
    return error_set (err, E_SANDBOX_SPEC, 0,
                      "mounts: %s is neither a folder nor a regular file",
                      mount->source);
  *out = coffer_fd_steal (&fd);
  return 0;
}

static int
mounts_open (struct creation *creation, struct error **err)
{
  const struct sandbox_request *request = creation->request;
  size_t i;

  creation->mounts = calloc (request->n_mounts + 1, sizeof *creation->mounts);
  creation->mount_list = calloc (request->n_mounts + 1,
                                 sizeof *creation->mount_list);
  if (!creation->mounts || !creation->mount_list)
    return error_set (err, E_NO_MEMORY, 0, "the mounts");
  for (i = 0; i < request->n_mounts; i++) {
    creation->mounts[i].size = sizeof creation->mounts[i];
    creation->mounts[i].source_fd = -1;
  }
  for (i = 0; i < request->n_mounts; i++) {
    struct coffer_mount *mount = &creation->mounts[i];

    if (mount_open (&request->mounts[i], &mount->source_fd, err) < 0
        || kernel_spared (mount->source_fd, request->mounts[i].source, err) < 0
        || own_folder_spared (creation->host->place, mount->source_fd,
                              request->mounts[i].source, err)
             < 0)
      return -1;
    mount->source = request->mounts[i].source;
    mount->target = request->mounts[i].target;
    mount->writable = request->mounts[i].writable != 0;
    creation->mount_list[i] = mount;
  }
  return 0;
}

/* Until it runs it belongs to this process, whatever becomes of it then.  The
 * lock of its file says more than a start time could. */
static int
own (struct creation *creation, struct error **err)
{
  struct sandbox_record *record = creation->record;
  const struct owner *owner;

  if (creation->request->ephemeral) {
    record->owner_pid = getpid ();
    return 0;
  }
  owner = host_owner (creation->host, err);
  if (!owner)
    return -1;
  record->owner_pid = owner->pid;
  record->owner_start = owner->start;
  record->owner_where = strdup (owner->where);
  if (!record->owner_where)
    return error_set (err, E_NO_MEMORY, 0, "a record");
  return 0;
}

static int
record_new (struct creation *creation, const struct provider_call *call,
            struct error **err)
{
  struct sandbox_record *record = calloc (1, sizeof *record);
  int64_t left = (int64_t) CREATE_DEFAULT_MS * 1000000;

  creation->record = record;
  if (!record)
    return error_set (err, E_NO_MEMORY, 0, "a record");
  if (creation->request->id && sandbox_id_valid (creation->request->id))
    memcpy (record->id, creation->request->id, sizeof record->id);
  else if (sandbox_id_new (record->id, err) < 0)
    return -1;
  record->spec = request_to_json (creation->request, err);
  if (!record->spec)
    return -1;
  record->provider = strdup (provider_id (creation->provider));
  record->tenant = strdup (creation->request->tenant
                             ? creation->request->tenant : SANDBOX_TENANT);
  if (!record->provider || !record->tenant)
    return error_set (err, E_NO_MEMORY, 0, "a record");
  if (own (creation, err) < 0)
    return -1;
  record->state = SANDBOX_CREATING;
  record->created_ns = coffer_realtime_ns ();
  if (call && call->deadline_ns)
    left = call->deadline_ns - coffer_now_ns ();
  record->deadline_ns = record->created_ns + left
                        + CREATE_SLACK_MS * 1000000LL;
  return 0;
}

/* The intent: on the disk before a remote provider is asked, since what it
 * makes outlives a loss of power here. */
static int
record_intent (struct creation *creation, struct error **err)
{
  struct host *host = creation->host;
  const struct manifest *manifest = provider_manifest (creation->provider);
  enum records_sync sync = RECORDS_NORMAL;
  struct error *error = NULL;

  if (creation->request->ephemeral) {
    if (run_note (host->place, creation->record, &creation->noted, &error) < 0)
      return host_records_failed (host, error, err);
    return 0;
  }
  if (manifest && manifest->isolation_kind
      && strncmp (manifest->isolation_kind, "remote", 6) == 0)
    sync = RECORDS_FULL;
  if (records_insert (host_records (host), creation->record, sync, err) < 0)
    return -1;
  creation->recorded = 1;
  return 0;
}

/* The provider says that it was to begin, and did not. */
static int
is_unbegun (const struct error *error)
{
  const json_t *reported
    = error ? json_object_get (error->details, "reported") : NULL;

  return json_is_false (json_object_get (reported, "begun"));
}

static int
record_forget (struct creation *creation, struct error **err)
{
  if (creation->noted >= 0)
    run_drop (creation->host->place, creation->record->id);
  return creation->recorded
           ? records_delete (host_records (creation->host),
                             creation->record->id, err) : 0;
}

/* The provider's answer is not known, or not good: nothing of it may stay. */
static void
creation_undo (struct creation *creation, const struct error *why)
{
  struct sandbox_record *record = creation->record;
  struct provider_call call = call_in (UNDO_MS, -1);
  struct host *host = creation->host;
  auto_error struct error *error = NULL;
  int gone;

  coffer_fd_close (&creation->lifeline[1]);
  if (is_unbegun (why)
      || provider_kill (creation->provider, record->id, &call, &gone, &error)
           == 0) {
    if (record_forget (creation, &error) == 0)
      return;
  } else if (creation->recorded) {
    record->state = SANDBOX_LOST;
    records_update (host_records (host), record, NULL);
  }
  log_event (LOG_LEVEL_WARNING, "sandbox",
             "%s: what was begun is left to the next start: %s", record->id,
             error_message (error));
}

static void
spec_fill (const struct creation *creation, struct coffer_sandbox_spec *spec)
{
  const struct sandbox_request *request = creation->request;

  *spec = (struct coffer_sandbox_spec){
    .size = sizeof *spec,
    .template_name = request->template_name,
    .image = request->image,
    .profile = request->profile,
    .env = request->env,
    .workdir = request->workdir,
    .user = request->user,
    .memory_bytes = request->memory_bytes,
    .cpu_millis = request->cpu_millis,
    .pids = request->pids,
    .disk_bytes = request->disk_bytes,
    .inodes = request->inodes,
    .network = request->network,
    .allow = request->allow,
    .mounts = creation->mount_list,
    .ports = request->ports,
    .ttl_ms = request_ttl (request, creation->provider),
    .metadata = request->metadata,
    .lifeline = creation->lifeline[0],
    .single_exec = request->single_exec != 0,
    .filter = request->filter,
    .require = request->require,
    .address_bytes = request->address_bytes,
    .file_bytes = request->file_bytes,
    .open_files = request->open_files,
    .root_writable = request->root_writable != 0,
    .template_fd = creation->template.root,
    .warm = request->warm,
  };
}

static int
ask_provider (struct creation *creation, const struct provider_call *call,
              struct info_sink *sink, struct error **err)
{
  struct provider_call inner = info_call (sink, call);
  struct coffer_sandbox_spec spec;

  spec_fill (creation, &spec);
  if (!inner.deadline_ns)
    inner.deadline_ns = deadline_in (CREATE_DEFAULT_MS);
  if (INVOKE (creation->provider, &inner, err, sandbox_create,
              .sandbox = creation->record->id, .spec = &spec) < 0)
    return -1;
  if (sink->failed)
    return error_set (err, E_NO_MEMORY, 0, "what the provider reported");
  if (json_array_size (sink->infos) != 1)
    return error_set (err, E_PROVIDER_FAILED, 0,
                      "%s: sandbox_create reported %zu sandboxes, not one",
                      provider_id (creation->provider),
                      json_array_size (sink->infos));
  return 0;
}

static int
record_running (struct creation *creation, struct info_sink *sink,
                struct error **err)
{
  struct sandbox_record *record = creation->record;
  struct host *host = creation->host;

  record->native_id = steal (sink->native_id);
  if (sink->created_ns)
    record->created_ns = sink->created_ns;
  record->expires_ns = sink->expires_ns;
  record->state = SANDBOX_RUNNING;
  record->deadline_ns = 0;
  record->generation = 1;
  if (creation->request->ephemeral) {
    if (creation->noted >= 0)
      run_note_running (creation->noted);
    return 0;
  }
  record->owner_pid = 0;
  record->owner_start = 0;
  /* A durable sandbox without a row would be out of everybody's reach. */
  return records_update (host_records (host), record, err);
}

/* What the provider reported, and what neither it nor we could keep. */
static json_t *
applied_json (const struct creation *creation, const char *id,
              const struct info_sink *sink)
{
  json_t *info = json_array_get (sink->infos, 0);
  json_t *applied = json_copy (info), *words, *word;
  size_t i, j;

  words = json_texts (coffer_strings_view (&creation->not_applied));
  json_array_foreach (json_object_get (info, "not_applied"), i, word) {
    for (j = 0; j < json_array_size (words); j++)
      if (json_equal (json_array_get (words, j), word))
        break;
    if (j == json_array_size (words))
      json_array_append (words, word);
  }
  json_object_set_new (applied, "id", json_string (id));
  json_object_set_new (applied, "not_applied", words);
  json_object_set (applied, "facts", sink->facts);
  if (creation->profiled.report)
    json_object_set (applied, "profile", creation->profiled.report);
  return applied;
}

/* A provider that takes roots of the host's is given one; for any other the
 * name is its own affair. */
static int
template_take (struct creation *creation, struct error **err)
{
  struct sandbox_request *request = &creation->profiled.request;
  auto_error struct error *error = NULL;

  if (!request->template_name
      || !provider_claims (creation->provider, "templates"))
    return 0;
  if (template_open (creation->host->place, request->template_name,
                     &creation->template, &error) == 0) {
    request->template_digest = creation->template.digest;
    return 0;
  }
  if (error->number != E_NOT_FOUND)
    return error_move (err, steal (error));
  error_set (err, E_SANDBOX_SPEC, 0, "template: %s", error_message (error));
  error_detail (err, "field", json_string ("template"));
  error_hint (err, "%s", error_next_step (error));
  return -1;
}

/* A limit of the disk that the caller asks for is one of all that can be
 * written.  With a folder of the host among that it is required to hold there,
 * unless that is done without by name. */
static int
demand_quota (struct creation *creation, const struct sandbox_request *asked,
              struct error **err)
{
  struct sandbox_request *request = &creation->profiled.request;
  const char *const *word;
  size_t i;

  for (i = 0; i < asked->n_mounts && !asked->mounts[i].writable; i++)
    ;
  if (i == asked->n_mounts || (!asked->disk_bytes && !asked->inodes)
      || text_list_has (asked->accept, "quota.hard")
      || text_list_has (request->require, "quota.hard"))
    return 0;
  for (word = request->require; word && *word; word++)
    coffer_strings_add (&creation->demands, *word);
  coffer_strings_add (&creation->demands, "quota.hard");
  if (creation->demands.failed)
    return error_set (err, E_NO_MEMORY, 0, "the request");
  request->require = coffer_strings_view (&creation->demands);
  return 0;
}

/* What helps who asked for it, besides what the provider says. */
static void
hint_quota (const struct creation *creation, struct error **err)
{
  const json_t *reported
    = err && *err ? json_object_get ((*err)->details, "reported") : NULL;
  const char *word
    = json_string_value (json_object_get (reported, "requirement"));

  if (creation->demands.count > 0 && word
      && strcmp (word, "quota.hard") == 0)
    error_hint (err, "leave --disk out, or accept that it does not hold there:"
                " --accept quota.hard");
}

static int
check_isolated (const struct creation *creation, const struct opened *opened,
                struct error **err)
{
  const struct manifest *manifest = opened->entry->manifest;

  if (!creation->request->isolated || !manifest || !manifest->isolation_kind
      || strcmp (manifest->isolation_kind, "none") != 0)
    return 0;
  error_set (err, E_DENIED, 0, "provider %s isolates nothing, and is not for "
             "others", opened->entry->id);
  error_hint (err, "name another provider");
  return -1;
}

/* It is what was asked for, and hardly what was meant. */
static void
warn_unreachable (const struct sandbox_request *request)
{
  if (request->network && strcmp (request->network, "allow") == 0
      && (!request->allow || !request->allow[0]))
    log_event (LOG_LEVEL_WARNING, "network", "allow without a list reaches "
               "nothing: --allow NAME:PORT names what may be reached");
}

static int
creation_prepare (struct creation *creation, const struct provider_call *call,
                  struct error **err)
{
  const struct sandbox_request *request = creation->request;
  struct host *host = creation->host;
  const struct opened *opened;

  if (request_check (request, err) < 0
      || host_entry (host, request->provider, &opened, err) < 0
      || check_isolated (creation, opened, err) < 0
      || profile_apply (host->place, opened->registry, request,
                        &creation->profiled, err) < 0)
    return -1;
  if (demand_quota (creation, request, err) < 0)
    return -1;
  warn_unreachable (&creation->profiled.request);
  request = creation->request = &creation->profiled.request;
  if (!request->ephemeral && !host_records (host))
    return error_set (err, E_RECORDS, 0,
                      "a sandbox that lives on needs records of it");
  if (host_open_entry (host, opened, &creation->provider, err) < 0
      || request_check_claims (request, creation->provider,
                               opened->registry->accept,
                               &creation->not_applied, err) < 0
      || template_take (creation, err) < 0
      || mounts_open (creation, err) < 0
      || record_new (creation, call, err) < 0)
    return -1;
  if (request->ephemeral && pipe2 (creation->lifeline, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "a lifeline");
  return record_intent (creation, err);
}

int
sandbox_create (struct host *host, const struct sandbox_request *request,
                const struct provider_call *call, struct sandbox_record **out,
                json_t **applied, struct error **err)
{
  auto_creation struct creation creation = {
    .host = host, .request = request, .lifeline = { -1, -1 },
    .template = { .root = -1, .lock = -1 },
    .noted = -1
  };
  auto_info_sink struct info_sink sink;
  auto_sandbox_record struct sandbox_record *copy = NULL;

  int64_t began = coffer_now_ns ();

  info_sink_init (&sink);
  sink.no_facts = request->no_facts;
  if (creation_prepare (&creation, call, err) < 0)
    return -1;
  log_event (LOG_LEVEL_INFO, "sandbox", "%s: what is asked passed the checks "
             "of profile %s and of what %s claims; %zu defaults left out",
             creation.record->id,
             creation.request->profile ? creation.request->profile : "none",
             creation.record->provider, creation.not_applied.count);
  if (ask_provider (&creation, call, &sink, err) < 0
      || record_running (&creation, &sink, err) < 0) {
    creation_undo (&creation, err ? *err : NULL);
    hint_quota (&creation, err);
    return -1;
  }
  log_event (LOG_LEVEL_INFO, "sandbox", "%s: made by %s in %.1f ms",
             creation.record->id, creation.record->provider,
             (double) (coffer_now_ns () - began) / 1e6);
  copy = sandbox_record_copy (creation.record);
  if (!copy) {
    creation_undo (&creation, NULL);
    return error_set (err, E_NO_MEMORY, 0, "a record");
  }
  /* From here on the host ends it, whatever fails. */
  if (host_add_live (host, creation.provider, steal (creation.record),
                     coffer_fd_steal (&creation.lifeline[1]),
                     coffer_fd_steal (&creation.noted),
                     coffer_fd_steal (&creation.template.lock), err) < 0)
    return -1;
  if (applied)
    *applied = applied_json (&creation, copy->id, &sink);
  *out = steal (copy);
  return 0;
}
