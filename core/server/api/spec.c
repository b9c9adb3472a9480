/* SPDX-License-Identifier: Apache-2.0 */
/* See spec.h.  Numbers have two names: the one of coffer-profile(5), in units
 * that people write, and the one that `info` prints, with the unit in it. */

#include <config.h>

#include <stddef.h>
#include <string.h>

#include <coffer/fd.h>

#include "server/api/spec.h"
#include "server/server.h"

#define MOUNTS_MAX 64

static int
read_network (const char *name, const json_t *value, void *out,
              struct error **err)
{
  static const char *const modes[] = { "none", "host", "allow" };
  const char *word = json_string_value (value);
  size_t i;

  for (i = 0; word && i < sizeof modes / sizeof modes[0]; i++)
    if (strcmp (word, modes[i]) == 0) {
      *(const char **) out = word;
      return 0;
    }
  return field_fail (name, err, "must be none, host or allow");
}

/* Needs the request: read once the rest is. */
static int
read_later (const char *name, const json_t *value, void *out,
            struct error **err)
{
  (void) out;
  return json_is_array (value) ? 0 : field_fail (name, err, "must be a list");
}

#define AT(member) offsetof (struct api_spec, member)
#define OF(member) offsetof (struct api_spec, request.member)
static const struct field table[] = {
  { "provider", field_text, OF (provider) },
  { "template", field_text, OF (template_name) },
  { "image", field_text, OF (image) },
  { "profile", field_text, OF (profile) },
  { "workdir", field_path, AT (workdir) },
  { "user", field_text, OF (user) },
  { "network", read_network, OF (network) },
  { "allow", field_words, AT (allow) },
  { "env", field_pairs, AT (env) },
  { "metadata", field_pairs, AT (metadata) },
  { "ports", field_numbers, AT (ports) },
  { "mounts", read_later, 0 },
  { "accept", field_words, AT (accept) },
  { "cpus", field_millis, OF (cpu_millis) },
  { "cpu_millis", field_u32, OF (cpu_millis) },
  { "memory", field_size, OF (memory_bytes) },
  { "memory_bytes", field_size, OF (memory_bytes) },
  { "disk", field_size, OF (disk_bytes) },
  { "disk_bytes", field_size, OF (disk_bytes) },
  { "inodes", field_u64, OF (inodes) },
  { "pids", field_u32, OF (pids) },
  { "ttl", field_duration, OF (ttl_ms) },
  { "ttl_ms", field_u64, OF (ttl_ms) },
  { NULL, NULL, 0 }
};

static const struct {
  const char *one, *other;
} same[] = { { "cpus", "cpu_millis" },
             { "memory", "memory_bytes" },
             { "disk", "disk_bytes" },
             { "ttl", "ttl_ms" } };

static int
check_twice (const json_t *body, struct error **err)
{
  size_t i;

  for (i = 0; i < sizeof same / sizeof same[0]; i++)
    if (json_object_get (body, same[i].one)
        && json_object_get (body, same[i].other))
      return field_fail (same[i].one, err, "is said twice, as %s too",
                         same[i].other);
  return 0;
}

/* ---- mounts --------------------------------------------------------------- */

struct mount_body {
  char *source, *target;
  int writable;
};

static const struct field mount_table[] = {
  { "source", field_path, offsetof (struct mount_body, source) },
  { "target", field_path, offsetof (struct mount_body, target) },
  { "writable", field_flag, offsetof (struct mount_body, writable) },
  { NULL, NULL, 0 }
};

static int
read_mount (const struct request *request, const json_t *value,
            struct sandbox_mount *out, struct error **err)
{
  struct mount_body body = { 0 };
  int r;

  if (!json_is_object (value))
    return field_fail ("mounts", err, "each is an object");
  r = fields_read (value, mount_table, &body, err);
  if (r == 0 && (!body.source || !body.target))
    r = field_fail ("mounts", err, "source and target are needed");
  if (r == 0)
    r = api_mount_open (request, body.source, body.writable, out, err);
  if (r == 0) {
    out->target = steal (body.target);
    out->writable = body.writable;
  }
  free (body.source);
  free (body.target);
  return r;
}

static int
read_mounts (const struct request *request, struct api_spec *spec,
             struct error **err)
{
  const json_t *list = json_object_get (request->body, "mounts"), *item;
  size_t i, count = json_array_size (list);

  if (count == 0)
    return 0;
  if (count > MOUNTS_MAX)
    return field_fail ("mounts", err, "more than %d", MOUNTS_MAX);
  spec->mounts = calloc (count, sizeof *spec->mounts);
  if (!spec->mounts)
    return error_set (err, E_NO_MEMORY, 0, "the mounts");
  json_array_foreach (list, i, item) {
    if (read_mount (request, item, &spec->mounts[i], err) < 0)
      return -1;
    spec->n_mounts++;
  }
  return 0;
}

/* ---- all of it ------------------------------------------------------------ */

static const char *const *
view (const struct coffer_strings *strings)
{
  return strings->count ? coffer_strings_view (strings) : NULL;
}

int
api_spec_read (const struct request *request, struct api_spec *out,
               struct error **err)
{
  auto_serve_config struct serve_config *config
    = server_config_ref (request->server);
  struct sandbox_request *asked = &out->request;

  if (check_twice (request->body, err) < 0
      || fields_read (request->body, table, out, err) < 0
      || read_mounts (request, out, err) < 0
      || api_allow_check (request, view (&out->allow), err) < 0)
    return -1;
  asked->isolated = !config->host_provider;
  asked->tenant = request->caller.tenant;
  asked->workdir = out->workdir;
  asked->env = view (&out->env);
  asked->metadata = view (&out->metadata);
  asked->ports = view (&out->ports);
  asked->allow = view (&out->allow);
  asked->accept = view (&out->accept);
  asked->mounts = out->mounts;
  asked->n_mounts = out->n_mounts;
  asked->asked_ttl = json_object_get (request->body, "ttl")
                     || json_object_get (request->body, "ttl_ms");
  return 0;
}

void
api_spec_fini (struct api_spec *spec)
{
  size_t i;

  for (i = 0; i < spec->n_mounts; i++) {
    free (spec->mounts[i].source);
    free (spec->mounts[i].target);
    if (spec->mounts[i].is_open)
      coffer_fd_close (&spec->mounts[i].source_fd);
  }
  free (spec->mounts);
  free (spec->workdir);
  coffer_strings_free (&spec->env);
  coffer_strings_free (&spec->metadata);
  coffer_strings_free (&spec->ports);
  coffer_strings_free (&spec->allow);
  coffer_strings_free (&spec->accept);
}
