/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds of every field of a request, and how a request is recorded.
 * Claims are claims.c. */

#include "config.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "contract/contract.h"
#include "sandbox/request.h"

static int bad (struct error **err, const char *field, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4)));

static int
bad (struct error **err, const char *field, const char *fmt, ...)
{
  char what[256];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (what, sizeof what, fmt, ap);
  va_end (ap);
  error_set (err, E_SANDBOX_SPEC, 0, "%s: %s", field, what);
  error_detail (err, "field", json_string (field));
  return -1;
}

static char *
format_count (uint64_t count)
{
  return text_printf ("%llu", (unsigned long long) count);
}

static char *
format_cpus (uint64_t millis)
{
  return text_printf ("%g", (double) millis / 1000);
}

/* 0 is "not asked for".  A value is shown as people write it. */
static int
check_range (uint64_t value, uint64_t min, uint64_t max,
             char *(*format) (uint64_t), const char *field,
             struct error **err)
{
  auto_free char *shown = NULL, *from = NULL, *to = NULL;

  if (value == 0 || (value >= min && value <= max))
    return 0;
  shown = format (value);
  from = format (min);
  to = format (max);
  if (!shown || !from || !to)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  return bad (err, field, "%s is not between %s and %s", shown, from, to);
}

int
request_check_path (const char *path, const char *field, struct error **err)
{
  const char *p = path, *end;

  if (!path)
    return 0;
  if (*path != '/')
    return bad (err, field, "the path must be absolute");
  if (strlen (path) > 4095)
    return bad (err, field, "the path is longer than 4095 bytes");
  while (*p) {
    end = strchrnul (++p, '/');
    if (end == p && !(path[1] == '\0'))
      return bad (err, field, "the path has an empty component");
    if ((end - p == 1 && p[0] == '.')
        || (end - p == 2 && p[0] == '.' && p[1] == '.'))
      return bad (err, field, "the path has a component \".\" or \"..\"");
    if (end - p > 255)
      return bad (err, field, "a component is longer than 255 bytes");
    p = end;
  }
  return 0;
}

/* A word shown to people and given to engines. */
static int
check_word (const char *word, const char *field, struct error **err)
{
  size_t i, size;

  if (!word)
    return 0;
  size = strlen (word);
  if (size == 0 || size > 255)
    return bad (err, field, "must have 1 to 255 bytes");
  for (i = 0; i < size; i++)
    if ((unsigned char) word[i] <= ' ' || word[i] == 127)
      return bad (err, field, "must have no spaces or control characters");
  if (word[0] == '-')
    return bad (err, field, "must not begin with a dash");
  if (!text_is_utf8 (word, size))
    return bad (err, field, "must be UTF-8");
  return 0;
}

int
request_check_user (const char *user, const char *field, struct error **err)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  uint64_t id;

  if (!user)
    return 0;
  if (*user >= '0' && *user <= '9') {
    if (text_parse_u64 (user, 0, 4294967294U, &id) < 0)
      return bad (err, field, "the number is not between 0 and 4294967294");
    return 0;
  }
  if (*user == '\0' || strlen (user) > 32 || !strchr (letters, *user)
      || user[1 + strspn (user + 1, "abcdefghijklmnopqrstuvwxyz"
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")])
    return bad (err, field, "must be a user's name or number");
  return 0;
}

static int
check_list_size (const char *const *list, const char *field,
                 struct error **err)
{
  size_t count = 0, bytes = 0;

  for (; list && list[count]; count++) {
    bytes += strlen (list[count]) + 1;
    if (count >= REQUEST_MAX_ITEMS)
      return bad (err, field, "more than %d entries", REQUEST_MAX_ITEMS);
    if (bytes > REQUEST_MAX_BYTES)
      return bad (err, field, "more than %d bytes in all", REQUEST_MAX_BYTES);
  }
  return 0;
}

/* The value may be a secret and is never shown; the name is. */
int
request_check_env (const char *const *env, const char *field,
                   struct error **err)
{
  static const char name_characters[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  size_t i, size;

  if (check_list_size (env, field, err) < 0)
    return -1;
  for (i = 0; env && env[i]; i++) {
    size = strspn (env[i], name_characters);
    if (size == 0 || env[i][size] != '=' || (*env[i] >= '0' && *env[i] <= '9'))
      return bad (err, field, "entry %zu: a name must be letters, digits and _,"
                  " not begin with a digit, and be followed by =", i + 1);
    if (strlen (env[i]) > 131071)
      return bad (err, field, "%.*s is longer than a program can be given",
                  (int) (size > 64 ? 64 : size), env[i]);
  }
  return 0;
}

static int
check_metadata (const char *const *list, struct error **err)
{
  size_t i;

  if (check_list_size (list, "metadata", err) < 0)
    return -1;
  for (i = 0; list && list[i]; i++) {
    const char *equals = strchr (list[i], '=');

    if (!equals || equals == list[i])
      return bad (err, "metadata", "entry %zu is not NAME=VALUE", i + 1);
    if (!text_is_utf8 (list[i], strlen (list[i])))
      return bad (err, "metadata", "entry %zu is not UTF-8", i + 1);
  }
  return 0;
}

static int
check_allow (const char *const *list, struct error **err)
{
  size_t i;

  if (check_list_size (list, "allow", err) < 0)
    return -1;
  for (i = 0; list && list[i]; i++) {
    if (bounds_is_target (list[i]))
      continue;
    bad (err, "allow", "%.200s is not NAME:PORT", list[i]);
    error_hint (err, "write a name and the number of a port, such as "
                "example.com:443; IPv6 addresses stand in brackets");
    return -1;
  }
  return 0;
}

static int
check_ports (const char *const *list, struct error **err)
{
  uint64_t port;
  size_t i;

  if (check_list_size (list, "ports", err) < 0)
    return -1;
  for (i = 0; list && list[i]; i++)
    if (text_parse_u64 (list[i], 1, 65535, &port) < 0)
      return bad (err, "ports", "entry %zu is not between 1 and 65535", i + 1);
  return 0;
}

static int
check_network (const struct sandbox_request *request, struct error **err)
{
  const char *network = request->network;
  int allow = network && strcmp (network, "allow") == 0;

  if (network && !allow && strcmp (network, "none") != 0
      && strcmp (network, "host") != 0)
    return bad (err, "network", "must be none, host or allow");
  if (network && !allow && request->allow && request->allow[0]) {
    bad (err, "allow", "goes only with network allow");
    error_hint (err, "add --net allow, or leave --allow out");
    return -1;
  }
  return check_allow (request->allow, err);
}

static int
check_mounts (const struct sandbox_request *request, struct error **err)
{
  size_t i;

  if (request->n_mounts > REQUEST_MAX_ITEMS)
    return bad (err, "mounts", "more than %d", REQUEST_MAX_ITEMS);
  for (i = 0; i < request->n_mounts; i++) {
    const struct sandbox_mount *mount = &request->mounts[i];

    if (!mount->source || !*mount->source || strlen (mount->source) > 4095)
      return bad (err, "mounts", "a source must have 1 to 4095 bytes");
    if (!mount->target)
      return bad (err, "mounts", "a target is missing");
    if (request_check_path (mount->target, "mounts", err) < 0)
      return -1;
    if (strcmp (mount->target, "/") == 0)
      return bad (err, "mounts", "the target / would hide the sandbox itself");
  }
  return 0;
}

static int
check_sizes (const struct sandbox_request *request, struct error **err)
{
  if (check_range (request->memory_bytes, REQUEST_MEMORY_MIN,
                   REQUEST_BYTES_MAX, text_format_size, "memory", err) < 0
      || check_range (request->disk_bytes, REQUEST_DISK_MIN,
                      REQUEST_BYTES_MAX, text_format_size, "disk", err) < 0
      || check_range (request->inodes, REQUEST_INODES_MIN, REQUEST_INODES_MAX,
                      format_count, "inodes", err) < 0
      || check_range (request->pids, 1, REQUEST_PIDS_MAX, format_count,
                      "pids", err) < 0
      || check_range (request->cpu_millis, 1, REQUEST_CPU_MAX, format_cpus,
                      "cpus", err) < 0
      || check_range (request->ttl_ms, REQUEST_TTL_MIN_MS, REQUEST_TTL_MAX_MS,
                      text_format_duration, "ttl", err) < 0
      || check_range (request->asked_timeout_ms, REQUEST_TIMEOUT_MIN_MS,
                      REQUEST_TTL_MAX_MS, text_format_duration, "timeout",
                      err) < 0)
    return -1;
  return 0;
}

/* A word that nobody knows would accept nothing, in silence. */
static int
check_accept (const char *const *list, struct error **err)
{
  const char *const *known = contract_capabilities ();
  const char *nearest;
  size_t i;

  for (; list && *list; list++) {
    for (i = 0; known[i] && strcmp (known[i], *list) != 0; i++)
      ;
    if (known[i])
      continue;
    nearest = text_nearest (*list, known);
    bad (err, "accept", "there is no capability \"%.64s\"", *list);
    if (nearest)
      error_hint (err, "did you mean %s?", nearest);
    else
      error_hint (err, "coffer provider info ID lists the capabilities of a "
                  "provider, such as network.none or limit.memory");
    return -1;
  }
  return 0;
}

/* What only profiles say. */
static int
check_each (const struct sandbox_request *request, struct error **err)
{
  if (request->filter && strcmp (request->filter, "general") != 0
      && strcmp (request->filter, "strict") != 0)
    return bad (err, "filter", "must be general or strict");
  if (check_range (request->address_bytes, REQUEST_ADDRESS_MIN,
                   REQUEST_BYTES_MAX, text_format_size, "address_space", err)
        < 0
      || check_range (request->file_bytes, REQUEST_FILE_MIN,
                      REQUEST_BYTES_MAX, text_format_size, "file_size", err)
           < 0
      || check_range (request->open_files, REQUEST_FILES_MIN,
                      REQUEST_FILES_MAX, format_count, "open_files", err) < 0)
    return -1;
  return check_list_size (request->require, "require", err);
}

int
request_check (const struct sandbox_request *request, struct error **err)
{
  if (request->provider && !text_is_id (request->provider))
    return error_set (err, E_UNKNOWN_PROVIDER, 0,
                      "a provider's name is a letter and then letters, digits"
                      " and dashes");
  if (check_word (request->template_name, "template", err) < 0
      || check_word (request->image, "image", err) < 0
      || check_word (request->profile, "profile", err) < 0
      || request_check_path (request->workdir, "workdir", err) < 0
      || request_check_user (request->user, "user", err) < 0
      || request_check_env (request->env, "env", err) < 0
      || check_network (request, err) < 0
      || check_ports (request->ports, err) < 0
      || check_metadata (request->metadata, err) < 0
      || check_mounts (request, err) < 0
      || check_accept (request->accept, err) < 0
      || check_sizes (request, err) < 0 || check_each (request, err) < 0)
    return -1;
  return 0;
}

/* ---- as JSON ------------------------------------------------------------- */

/* Only what stands before the first =: values may be secret. */
static void
put_names (json_t *object, const char *key, const char *const *list)
{
  json_t *array;

  if (!list || !list[0])
    return;
  array = json_array ();
  for (; *list; list++)
    json_array_append_new (array, json_bytes (*list, strcspn (*list, "=")));
  json_object_set_new (object, key, array);
}

static void
put_mounts (json_t *object, const struct sandbox_request *request)
{
  json_t *array;
  size_t i;

  if (request->n_mounts == 0)
    return;
  array = json_array ();
  for (i = 0; i < request->n_mounts; i++) {
    json_t *mount = json_object ();

    json_put_text (mount, "source", request->mounts[i].source);
    json_put_text (mount, "target", request->mounts[i].target);
    json_object_set_new (mount, "writable",
                         json_boolean (request->mounts[i].writable));
    json_array_append_new (array, mount);
  }
  json_object_set_new (object, "mounts", array);
}

char *
request_to_json (const struct sandbox_request *request, struct error **err)
{
  auto_json json_t *object = json_object ();
  char *text;

  json_put_text (object, "template", request->template_name);
  json_put_text (object, "template_digest", request->template_digest);
  json_put_text (object, "image", request->image);
  json_put_text (object, "profile", request->profile);
  json_put_text (object, "workdir", request->workdir);
  json_put_text (object, "user", request->user);
  json_put_text (object, "network", request->network);
  json_put_u64 (object, "memory_bytes", request->memory_bytes);
  json_put_u64 (object, "disk_bytes", request->disk_bytes);
  json_put_u64 (object, "inodes", request->inodes);
  json_put_u64 (object, "pids", request->pids);
  json_put_u64 (object, "cpu_millis", request->cpu_millis);
  json_put_u64 (object, "ttl_ms", request->ttl_ms);
  json_put_text (object, "filter", request->filter);
  json_put_texts (object, "require", request->require);
  json_put_u64 (object, "address_bytes", request->address_bytes);
  json_put_u64 (object, "file_bytes", request->file_bytes);
  json_put_u64 (object, "open_files", request->open_files);
  if (request->root_writable)
    json_object_set_new (object, "root", json_string ("writable"));
  json_put_u64 (object, "ttl_max_ms", request->ttl_max_ms);
  if (request->ttl_locked)
    json_object_set_new (object, "ttl_locked", json_true ());
  json_put_u64 (object, "timeout_ms", request->timeout_ms);
  json_put_u64 (object, "timeout_max_ms", request->timeout_max_ms);
  if (request->timeout_locked)
    json_object_set_new (object, "timeout_locked", json_true ());
  put_names (object, "env", request->env);
  json_put_texts (object, "allow", request->allow);
  json_put_texts (object, "ports", request->ports);
  json_put_texts (object, "metadata", request->metadata);
  put_mounts (object, request);
  text = json_text (object);
  if (!text)
    error_set (err, E_NO_MEMORY, 0, "the request");
  return text;
}
