/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of sessions: a table of fields.  See spec.h. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "server/api/spec.h"
#include "server/box/spec.h"

#define MIB (UINT64_C (1) << 20)
#define WORKSPACE "/workspace"

enum type { TEXT, LIST, FLAG, WHOLE, DECIMAL };

/* Fields that a sandbox here cannot have otherwise are in it with the one value
 * that they may have, since clients send them. */
static const struct spec_field {
  const char *name;
  enum type type;
  const char *normal;           /* JSON; profile: null where one is named */
  int of_profile;
  double min, max;
  const char *const *choices;   /* of a text */
  const char *why;              /* of a text that is no choice */
} fields[] = {
  { "network", TEXT, "\"off\"", 1, 0, 0,
    (const char *const[]){ "off", "on", NULL }, NULL },
  { "allow", LIST, "[]", 0, 0, 0, NULL, NULL },
  { "profile", TEXT, "null", 0, 0, 0, NULL, NULL },
  { "image", TEXT, "null", 0, 0, 0, NULL, NULL },
  { "host_path", TEXT, "null", 0, 0, 0, NULL, NULL },
  { "host_path_mode", TEXT, "\"rw\"", 0, 0, 0,
    (const char *const[]){ "none", "ro", "rw", NULL }, NULL },
  { "mount_path", TEXT, "\"" WORKSPACE "\"", 0, 0, 0,
    (const char *const[]){ WORKSPACE, NULL },
    "the workspace of a session is always " WORKSPACE },
  { "persistent", FLAG, "false", 0, 0, 0, NULL, NULL },
  { "cpus", DECIMAL, "1.0", 1, 0.001, 1024, NULL, NULL },
  { "memory_mb", WHOLE, "512", 1, 32, 1 << 24, NULL, NULL },
  { "pids_limit", WHOLE, "128", 1, 1, 1 << 22, NULL, NULL },
  { "read_only_rootfs", FLAG, "true", 1, 0, 0, NULL, NULL },
  { "workspace_quota_mb", WHOLE, "0", 1, 0, 1 << 24, NULL, NULL },
};
#define N_FIELDS (sizeof fields / sizeof fields[0])

static int
bad (struct error **err, const char *field, const char *what)
{
  error_set (err, E_INVALID, 0, "%s: %s", field, what);
  error_detail (err, "field", json_string (field));
  return -1;
}

int
box_id_check (const char *field, const char *id, struct error **err)
{
  const size_t size = id ? strlen (id) : 0;
  size_t i;

  if (size == 0 || size > BOX_ID_MAX)
    return bad (err, field, "a name of 1 to 200 bytes is needed");
  if (!text_is_utf8 (id, size))
    return bad (err, field, "it is not UTF-8");
  for (i = 0; i < size; i++)
    if ((unsigned char) id[i] < ' ' || id[i] == 0x7f || id[i] == '/')
      return bad (err, field, "control characters and slashes are not for "
                  "names");
  return 0;
}

/* ---- reading ------------------------------------------------------------- */

static int
read_text (const struct spec_field *field, json_t *value, struct error **err)
{
  const char *text = json_string_value (value);

  if (text == NULL)
    return bad (err, field->name, "a text is needed");
  if (field->choices && !text_list_has (field->choices, text))
    return bad (err, field->name,
                field->why ? field->why : "not one of the words it may be");
  return 0;
}

static int
read_list (const struct spec_field *field, json_t *value, struct error **err)
{
  json_t *item;
  size_t i;

  if (!json_is_array (value))
    return bad (err, field->name, "a list of texts is needed");
  json_array_foreach (value, i, item)
    if (!json_is_string (item))
      return bad (err, field->name, "a list of texts is needed");
  return 0;
}

static int
read_number (const struct spec_field *field, json_t *value, struct error **err)
{
  const double number = json_number_value (value);
  auto_free char *what = NULL;

  if ((field->type == WHOLE ? json_is_integer (value)
                            : json_is_number (value))
      && number >= field->min && number <= field->max)
    return 0;
  what = text_printf ("a %snumber from %g to %.0f is needed",
                      field->type == WHOLE ? "whole " : "", field->min,
                      field->max);
  return bad (err, field->name, what ? what : "not a number");
}

static int
read_field (const struct spec_field *field, json_t *value, struct error **err)
{
  switch (field->type) {
  case TEXT:
    return read_text (field, value, err);
  case LIST:
    return read_list (field, value, err);
  case FLAG:
    return json_is_boolean (value) ? 0
                                   : bad (err, field->name,
                                          "true or false is needed");
  default:
    return read_number (field, value, err);
  }
}

static const struct spec_field *
field_find (const char *name)
{
  size_t i;

  for (i = 0; i < N_FIELDS; i++)
    if (strcmp (fields[i].name, name) == 0)
      return &fields[i];
  return NULL;
}

/* null is as if it were not there. */
int
box_spec_read (const json_t *body, const char *const *besides, json_t **given,
               struct error **err)
{
  auto_json json_t *out = json_object ();
  const char *key;
  json_t *value;

  json_object_foreach ((json_t *) body, key, value) {
    const struct spec_field *field = field_find (key);

    if (text_list_has (besides, key))
      continue;
    if (field == NULL)
      return bad (err, key, "nothing here has this field");
    if (json_is_null (value))
      continue;
    if (read_field (field, value, err) < 0)
      return -1;
    if (field->type == DECIMAL)
      json_object_set_new (out, key, json_real (json_number_value (value)));
    else
      json_object_set (out, key, value);
  }
  *given = steal (out);
  return 0;
}

json_t *
box_spec_fill (const json_t *given)
{
  const int has_profile = json_object_get (given, "profile") != NULL;
  json_t *spec = json_object ();
  size_t i;

  for (i = 0; i < N_FIELDS; i++) {
    json_t *value = json_object_get (given, fields[i].name);

    if (value)
      json_object_set (spec, fields[i].name, value);
    else if (has_profile && fields[i].of_profile)
      json_object_set_new (spec, fields[i].name, json_null ());
    else
      json_object_set_new (spec, fields[i].name,
                           json_loads (fields[i].normal, JSON_DECODE_ANY,
                                       NULL));
  }
  return spec;
}

int
box_spec_match (const char *id, const json_t *spec, const json_t *given,
                struct error **err)
{
  const char *key;
  json_t *value;

  json_object_foreach ((json_t *) given, key, value) {
    json_t *other = json_object_get (spec, key);
    auto_free char *text = NULL;

    if (json_equal (other, value))
      continue;
    text = json_dumps (other, JSON_ENCODE_ANY | JSON_COMPACT);
    error_set (err, E_SESSION_CONFLICT, 0, "session %s exists with %s=%s", id,
               key, text ? text : "another value");
    error_detail (err, "session_id", json_string (id));
    error_detail (err, "field", json_string (key));
    error_detail (err, "existing", json_incref (other));
    error_detail (err, "requested", json_incref (value));
    return -1;
  }
  return 0;
}

/* ---- asking -------------------------------------------------------------- */

static uint64_t
number_of (const json_t *spec, const char *name)
{
  const json_t *value = json_object_get (spec, name);

  return json_is_integer (value) ? (uint64_t) json_integer_value (value) : 0;
}

/* Whole networks are nobody's: what may be reached has a name. */
static int
network_make (const struct request *asking, const json_t *spec,
              struct box_request *out, struct error **err)
{
  const char *word = json_string_value (json_object_get (spec, "network"));
  const json_t *list = json_object_get (spec, "allow"), *item;
  const size_t n = json_array_size (list);
  size_t i;

  if (word)
    out->request.network = strcmp (word, "on") == 0 ? "allow" : "none";
  if (n && !(word && strcmp (word, "on") == 0))
    return bad (err, "allow", "it goes with network on");
  if (!n && word && strcmp (word, "on") == 0)
    return bad (err, "network", "on needs `allow`, a list of NAME:PORT that "
                "may be reached");
  out->allow = calloc (n + 1, sizeof *out->allow);
  if (out->allow == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  json_array_foreach (list, i, item)
    out->allow[i] = json_string_value (item);
  if (n)
    out->request.allow = out->allow;
  return api_allow_check (asking, out->request.allow, err);
}

static int
mount_make (const struct request *request, const json_t *spec,
            struct box_request *out, struct error **err)
{
  const char *path = json_string_value (json_object_get (spec, "host_path"));
  const char *mode = json_string_value (json_object_get (spec,
                                                         "host_path_mode"));

  if (path == NULL || (mode && strcmp (mode, "none") == 0))
    return 0;
  if (api_mount_open (request, path, mode == NULL || strcmp (mode, "rw") == 0,
                      &out->mount, err) < 0)
    return -1;
  out->mount.writable = mode == NULL || strcmp (mode, "rw") == 0;
  out->request.mounts = &out->mount;
  out->request.n_mounts = 1;
  out->mount.target = strdup (WORKSPACE);
  return out->mount.target ? 0 : error_set (err, E_NO_MEMORY, 0, "a mount");
}

int
box_request_make (const struct request *asking, const char *id,
                  const json_t *spec, struct box_request *out,
                  struct error **err)
{
  const json_t *cpus = json_object_get (spec, "cpus");
  struct sandbox_request *request = &out->request;

  memset (out, 0, sizeof *out);
  out->mount.source_fd = -1;
  request->profile = json_string_value (json_object_get (spec, "profile"));
  request->image = json_string_value (json_object_get (spec, "image"));
  request->memory_bytes = number_of (spec, "memory_mb") * MIB;
  request->disk_bytes = number_of (spec, "workspace_quota_mb") * MIB;
  request->pids = (uint32_t) number_of (spec, "pids_limit");
  if (json_is_number (cpus))
    request->cpu_millis = (uint32_t) (json_number_value (cpus) * 1000 + 0.5);
  request->root_writable
    = json_is_false (json_object_get (spec, "read_only_rootfs"));
  request->ttl_ms = BOX_LIFE_MS;
  out->label = text_printf ("box.session=%s", id);
  if (out->label == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  out->metadata[0] = out->label;
  request->metadata = out->metadata;
  if (network_make (asking, spec, out, err) < 0)
    return -1;
  return mount_make (asking, spec, out, err);
}

void
box_request_fit (struct box_request *request, const json_t *asked,
                 const struct provider *provider)
{
  if (!json_object_get (asked, "cpus")
      && !provider_claims (provider, "limit.cpu"))
    request->request.cpu_millis = 0;
  if (!json_object_get (asked, "memory_mb")
      && !provider_claims (provider, "limit.memory"))
    request->request.memory_bytes = 0;
  if (!json_object_get (asked, "pids_limit")
      && !provider_claims (provider, "limit.pids"))
    request->request.pids = 0;
}

void
box_request_fini (struct box_request *request)
{
  free (request->allow);
  free (request->label);
  free (request->mount.source);
  free (request->mount.target);
  coffer_fd_close (&request->mount.source_fd);
  memset (request, 0, sizeof *request);
}
