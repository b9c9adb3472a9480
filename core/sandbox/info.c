/* SPDX-License-Identifier: Apache-2.0 */
/* Emitted records to JSON.  Nothing is made up: see info.h. */

#include "config.h"

#include <string.h>

#include "sandbox/info.h"

static void
put_time (json_t *object, const char *key, int64_t value)
{
  if (value)
    json_object_set_new (object, key, json_integer (value));
}

json_t *
info_to_json (const struct coffer_sandbox_info *info)
{
  json_t *object = json_object ();

  json_put_text (object, "id", info->sandbox);
  json_put_text (object, "native_id", info->native_id);
  json_put_text (object, "state", info->state);
  put_time (object, "created_ns", info->created_ns);
  put_time (object, "expires_ns", info->expires_ns);
  json_put_text (object, "template", info->template_name);
  json_put_text (object, "isolation", info->isolation);
  json_put_text (object, "workspace", info->workspace);
  json_put_texts (object, "not_applied", info->not_applied);
  json_put_texts (object, "metadata", info->metadata);
  return object;
}

json_t *
fact_to_json (const struct coffer_fact *fact)
{
  json_t *object = json_object ();

  json_put_text (object, "name", fact->name);
  json_put_text (object, "state", fact->state);
  json_put_text (object, "value", fact->value);
  json_put_text (object, "how", fact->how);
  json_put_text (object, "remedy", fact->remedy);
  json_put_texts (object, "narrows", fact->narrows);
  return object;
}

json_t *
stat_to_json (const struct coffer_file_stat *stat)
{
  json_t *object = json_object ();

  json_put_text (object, "path", stat->path);
  json_put_text (object, "kind", stat->kind);
  json_object_set_new (object, "size_bytes", json_u64 (stat->size_bytes));
  json_object_set_new (object, "mode", json_integer (stat->mode));
  put_time (object, "modified_ns", stat->modified_ns);
  json_put_text (object, "target", stat->target);
  return object;
}

static int
take_info (struct info_sink *sink, const struct coffer_sandbox_info *info)
{
  char *native = info->native_id ? strdup (info->native_id) : NULL;

  if (json_array_append_new (sink->infos, info_to_json (info)) < 0
      || (info->native_id && !native)) {
    free (native);
    sink->failed = 1;
    return -1;
  }
  free (sink->native_id);
  sink->native_id = native;
  sink->created_ns = info->created_ns;
  sink->expires_ns = info->expires_ns;
  return 0;
}

static int
sink_record (void *data, const struct contract_record *type, void *record)
{
  struct info_sink *sink = data;

  if (type->id == COFFER_REC_sandbox_info)
    return take_info (sink, record);
  if (type->id == COFFER_REC_fact && !sink->no_facts
      && json_array_append_new (sink->facts, fact_to_json (record)) < 0) {
    sink->failed = 1;
    return -1;
  }
  return 0;
}

void
info_sink_init (struct info_sink *sink)
{
  memset (sink, 0, sizeof *sink);
  sink->infos = json_array ();
  sink->facts = json_array ();
}

void
info_sink_fini (struct info_sink *sink)
{
  json_decref (sink->infos);
  json_decref (sink->facts);
  free (sink->native_id);
}

static void
sink_progress (void *data, uint64_t done, uint64_t total, const char *what)
{
  struct info_sink *sink = data;

  if (sink->outer.progress)
    sink->outer.progress (sink->outer.data, done, total, what);
}

struct provider_call
info_call (struct info_sink *sink, const struct provider_call *call)
{
  struct provider_call inner = { .cancel_fd = -1 };

  if (call)
    inner = *call;
  sink->outer = inner.sink;
  inner.sink.record = sink_record;
  inner.sink.progress = sink_progress;
  inner.sink.data = sink;
  return inner;
}
