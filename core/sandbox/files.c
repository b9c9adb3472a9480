/* SPDX-License-Identifier: Apache-2.0 */
/* One file or folder of a sandbox: looked at, made, renamed, removed. */

#include "config.h"

#include <string.h>

#include "base/json.h"
#include "sandbox/info.h"
#include "sandbox/transfer.h"

/* files_reach of what may be a folder. */
static int
reach (struct host *host, const char *id, const char *path,
       struct sandbox_record **record, struct provider **provider,
       struct error **err)
{
  return files_check_path (path, err) < 0
             || files_reach (host, id, "-", record, provider, err) < 0
           ? -1 : 0;
}

static int
sink_stat (void *data, const struct contract_record *type, void *record)
{
  json_t **stat = data;

  if (type->id != COFFER_REC_file_stat)
    return 0;
  json_decref (*stat);
  *stat = stat_to_json (record);
  return *stat ? 0 : -1;
}

int
sandbox_stat (struct host *host, const char *id, const char *path,
              const struct provider_call *call, json_t **out,
              struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider_call inner = call ? *call : call_in (60000, -1);
  auto_json json_t *stat = NULL;
  struct provider *provider;

  if (reach (host, id, path, &record, &provider, err) < 0)
    return -1;
  inner.sink = (struct provider_sink){ .record = sink_stat, .data = &stat };
  if (INVOKE (provider, &inner, err, file_stat, .sandbox = id, .path = path)
      < 0)
    return -1;
  if (!stat)
    return error_set (err, E_PROVIDER_FAILED, 0,
                      "file_stat said nothing of %s", path);
  *out = steal (stat);
  return 0;
}

int
sandbox_mkdir (struct host *host, const char *id, const char *path,
               int parents, const struct provider_call *call,
               struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct coffer_file_mkdir_opts opts = { .size = sizeof opts,
                                         .parents = parents != 0 };
  struct provider *provider;

  if (reach (host, id, path, &record, &provider, err) < 0)
    return -1;
  return INVOKE (provider, call, err, file_mkdir, .sandbox = id,
                 .path = path, .opts = &opts);
}

int
sandbox_rename (struct host *host, const char *id, const char *from,
                const char *to, const struct provider_call *call,
                struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct provider *provider;

  if (files_check_path (to, err) < 0
      || reach (host, id, from, &record, &provider, err) < 0)
    return -1;
  return INVOKE (provider, call, err, file_rename, .sandbox = id,
                 .from = from, .to = to);
}

int
sandbox_remove (struct host *host, const char *id, const char *path,
                int recursive, const struct provider_call *call,
                struct error **err)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct coffer_file_remove_opts opts = { .size = sizeof opts,
                                          .recursive = recursive != 0 };
  struct provider *provider;

  if (reach (host, id, path, &record, &provider, err) < 0)
    return -1;
  return INVOKE (provider, call, err, file_remove, .sandbox = id,
                 .path = path, .opts = &opts);
}
