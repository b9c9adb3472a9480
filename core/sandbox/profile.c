/* SPDX-License-Identifier: Apache-2.0 */
/* Where a profile meets a request.  The provider is given values and never
 * looks a name up; what it is given is what is recorded. */

#include "config.h"

#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/profile.h"
#include "sandbox/request.h"

/* One application. */
struct applying {
  struct sandbox_request *request;
  const struct profile *profile;
  json_t *values;               /* NULL: nobody wants to know */
  json_t *clamped;
};

/* ---- saying it ----------------------------------------------------------- */

static void
note (struct applying *applying, enum profile_field field, json_t *take_value,
      const char *origin)
{
  if (applying->values)
    json_object_set_new (applying->values, profile_json_key (field),
                         json_pack ("{s:o, s:s}", "value", take_value,
                                    "origin", origin));
  else
    json_decref (take_value);
}

static int
fail_locked (const struct profile *profile, enum profile_field field,
             struct error **err)
{
  const char *key = profile_fields[field].key;

  error_set (err, E_PROFILE, 0, "%s: profile %s locks it", key,
             profile->name);
  error_detail (err, "field", json_string (key));
  error_detail (err, "profile", json_string (profile->name));
  error_hint (err, "leave it out, or name another profile; coffer profile"
              " show %s has its values", profile->name);
  return -1;
}

static void
add_clamped (struct applying *applying, enum profile_field field,
             uint64_t asked, uint64_t most)
{
  json_array_append_new (applying->clamped,
                         json_pack ("{s:s, s:o, s:o}", "field",
                                    profile_fields[field].key, "asked",
                                    json_u64 (asked), "applied",
                                    json_u64 (most)));
}

/* Once, here; and in the report. */
static void
say_clamped (struct applying *applying, enum profile_field field,
             uint64_t asked, uint64_t most)
{
  auto_free char *from = profile_format (field, asked);
  auto_free char *to = profile_format (field, most);

  log_event (LOG_LEVEL_WARNING, "profile", "%s: %s is more than profile %s"
             " allows: it is %s", profile_fields[field].key,
             from ? from : "that", applying->profile->name, to ? to : "less");
  add_clamped (applying, field, asked, most);
}

/* ---- numbers ------------------------------------------------------------- */

struct number_at {
  enum profile_field field;
  uint64_t *wide;
  uint32_t *narrow;             /* the other is NULL */
};

/* The value in force: the caller's, within bounds, or the profile's. */
static int
apply_number (struct applying *applying, const struct number_at *at,
              struct error **err)
{
  const struct profile *profile = applying->profile;
  uint64_t asked = at->wide ? *at->wide : *at->narrow, value = asked;
  const uint64_t said = profile->number[at->field];
  const uint64_t most = profile->most[at->field];

  if (asked && profile_is_locked (profile, at->field) && asked != said)
    return fail_locked (profile, at->field, err);
  if (!asked)
    value = said ? said : most;
  else if (most && asked > most) {
    value = most;
    say_clamped (applying, at->field, asked, most);
  }
  if (value)
    note (applying, at->field, json_u64 (value),
          asked && value == asked ? "caller" : "profile");
  if (at->wide)
    *at->wide = value;
  else
    *at->narrow = (uint32_t) value;
  return 0;
}

static int
apply_numbers (struct applying *applying, struct error **err)
{
  struct sandbox_request *request = applying->request;
  const struct number_at table[] = {
    { PROFILE_CPUS, NULL, &request->cpu_millis },
    { PROFILE_MEMORY, &request->memory_bytes, NULL },
    { PROFILE_PIDS, NULL, &request->pids },
    { PROFILE_DISK, &request->disk_bytes, NULL },
    { PROFILE_INODES, &request->inodes, NULL },
    { PROFILE_ADDRESS_SPACE, &request->address_bytes, NULL },
    { PROFILE_FILE_SIZE, &request->file_bytes, NULL },
    { PROFILE_OPEN_FILES, NULL, &request->open_files },
  };
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++)
    if (apply_number (applying, &table[i], err) < 0)
      return -1;
  return 0;
}

/* Life: of what lives on.  A caller's 0 is for ever. */
static int
apply_ttl (struct applying *applying, struct error **err)
{
  struct sandbox_request *request = applying->request;
  const uint64_t said = applying->profile->number[PROFILE_TTL];
  const uint64_t most = applying->profile->most[PROFILE_TTL];
  const struct number_at at = { PROFILE_TTL, &request->ttl_ms, NULL };
  const int for_ever = request->asked_ttl && request->ttl_ms == 0;

  if (request->ephemeral && !request->asked_ttl)
    return 0;
  if (!request->asked_ttl && !said && most > REQUEST_TTL_DEFAULT_MS)
    request->ttl_ms = REQUEST_TTL_DEFAULT_MS;
  else if (for_ever && !said && !most)
    return 0;
  else if (for_ever)
    request->ttl_ms = REQUEST_TTL_MAX_MS;
  if (apply_number (applying, &at, err) < 0)
    return -1;
  request->asked_ttl = request->asked_ttl || request->ttl_ms != 0;
  request->ttl_max_ms = most;
  request->ttl_locked = profile_is_locked (applying->profile, PROFILE_TTL);
  return 0;
}

/* ---- words --------------------------------------------------------------- */

static int
apply_word (struct applying *applying, enum profile_field field,
            const char **word, struct error **err)
{
  const struct profile *profile = applying->profile;
  const char *asked = *word, *said = profile->word[field];

  if (asked && said && profile_is_locked (profile, field)
      && strcmp (asked, said) != 0)
    return fail_locked (profile, field, err);
  if (!asked)
    *word = said;
  if (*word)
    note (applying, field, json_string (*word), asked ? "caller" : "profile");
  return 0;
}

static int
check_listed (const struct applying *applying, struct error **err)
{
  const struct profile *profile = applying->profile;
  const char *network = applying->request->network;

  if (!network || !profile->words[PROFILE_NETWORKS]
      || profile_lists (profile, PROFILE_NETWORKS, network))
    return 0;
  error_set (err, E_PROFILE, 0, "network: profile %s does not allow %s",
             profile->name, network);
  error_detail (err, "field", json_string ("network"));
  error_detail (err, "profile", json_string (profile->name));
  return -1;
}

static int
apply_network (struct applying *applying, struct error **err)
{
  const struct profile *profile = applying->profile;
  struct sandbox_request *request = applying->request;
  const int listed = request->allow && request->allow[0];

  if (apply_word (applying, PROFILE_NETWORK, &request->network, err) < 0
      || check_listed (applying, err) < 0)
    return -1;
  if (listed && profile_is_locked (profile, PROFILE_ALLOW))
    return fail_locked (profile, PROFILE_ALLOW, err);
  if (!listed && request->network && strcmp (request->network, "allow") == 0)
    request->allow
      = (const char *const *) profile->words[PROFILE_ALLOW];
  if (request->allow && request->allow[0])
    note (applying, PROFILE_ALLOW, json_texts (request->allow),
          listed ? "caller" : "profile");
  request->host_network = profile_lists (profile, PROFILE_NETWORKS, "host");
  return 0;
}

/* A folder is shown writable only when the caller says so, which is what a
 * profile may take away. */
static int
apply_mounts (struct applying *applying, struct error **err)
{
  const struct profile *profile = applying->profile;
  const char *said = profile->word[PROFILE_MOUNTS];
  size_t i;

  if (!said)
    return 0;
  note (applying, PROFILE_MOUNTS, json_string (said), "profile");
  if (strcmp (said, "ro") != 0)
    return 0;
  for (i = 0; i < applying->request->n_mounts; i++) {
    if (!applying->request->mounts[i].writable)
      continue;
    if (profile_is_locked (profile, PROFILE_MOUNTS))
      return fail_locked (profile, PROFILE_MOUNTS, err);
    note (applying, PROFILE_MOUNTS, json_string ("rw"), "caller");
  }
  return 0;
}

static int
apply_words (struct applying *applying, struct error **err)
{
  const struct profile *profile = applying->profile;
  struct sandbox_request *request = applying->request;
  const char *root = request->root_writable ? "writable" : NULL;

  if (apply_network (applying, err) < 0 || apply_mounts (applying, err) < 0
      || apply_word (applying, PROFILE_ROOT, &root, err) < 0
      || apply_word (applying, PROFILE_FILTER, &request->filter, err) < 0)
    return -1;
  request->root_writable = root && strcmp (root, "writable") == 0;
  if (!request->require)
    request->require = (const char *const *) profile->words[PROFILE_REQUIRE];
  if (request->require && request->require[0])
    note (applying, PROFILE_REQUIRE, json_texts (request->require),
          "profile");
  return 0;
}

/* ---- all of it ----------------------------------------------------------- */

/* What the one command of a run asks for is judged before anything is made;
 * profile_timeout applies it, and says so. */
static int
apply_timeout (struct applying *applying, struct error **err)
{
  const struct profile *profile = applying->profile;
  struct sandbox_request *request = applying->request;
  const uint64_t asked = request->asked_timeout_ms;
  const uint64_t most = profile->most[PROFILE_TIMEOUT];

  if (asked && profile_is_locked (profile, PROFILE_TIMEOUT)
      && asked != profile->number[PROFILE_TIMEOUT])
    return fail_locked (profile, PROFILE_TIMEOUT, err);
  if (most && asked > most)
    add_clamped (applying, PROFILE_TIMEOUT, asked, most);

  request->timeout_ms = profile->number[PROFILE_TIMEOUT];
  request->timeout_max_ms = profile->most[PROFILE_TIMEOUT];
  request->timeout_locked = profile_is_locked (profile, PROFILE_TIMEOUT);
  if (request->timeout_ms)
    note (applying, PROFILE_TIMEOUT,
          json_u64 (!asked ? request->timeout_ms
                    : most && asked > most ? most : asked),
          asked && !(most && asked > most) ? "caller" : "profile");
  return 0;
}

static void
report (struct profiled *out, struct applying *applying, const char *origin)
{
  const struct profile *profile = out->profile;

  if (!applying->values && json_array_size (applying->clamped) == 0)
    return;
  out->report = json_pack ("{s:s, s:s, s:s, s:O?, s:O}", "name",
                           profile->name, "source", profile->source,
                           "origin", origin, "values", applying->values,
                           "clamped", applying->clamped);
}

/* A name that nobody knows is a fault of the description. */
static int
find (const struct place *place, const char *name, const char *origin,
      struct profile **out, struct error **err)
{
  auto_error struct error *error = NULL;

  if (profile_find (place, name, out, &error) == 0)
    return 0;
  if (error->number != E_NOT_FOUND)
    return error_move (err, steal (error));
  error_set (err, strcmp (origin, "config") == 0 ? E_CONFIG : E_SANDBOX_SPEC,
             0, "%s: %s", strcmp (origin, "config") == 0
                            ? "default_profile" : "profile",
             error_message (error));
  error_detail (err, "field", json_string ("profile"));
  error_hint (err, "%s", error_next_step (error));
  return -1;
}

int
profile_apply (const struct place *place, const struct registry *registry,
               const struct sandbox_request *asked, struct profiled *out,
               struct error **err)
{
  const char *name = asked->profile ? asked->profile
                                    : registry->default_profile;
  const char *origin = asked->profile ? "caller" : "config";
  auto_json json_t *values = NULL, *clamped = NULL;
  struct applying applying = { .request = &out->request };

  out->request = *asked;
  if (!name)
    return 0;
  if (find (place, name, origin, &out->profile, err) < 0)
    return -1;
  out->request.profile = out->profile->name;
  values = applying.values = asked->no_facts ? NULL : json_object ();
  clamped = applying.clamped = json_array ();
  applying.profile = out->profile;
  if (apply_words (&applying, err) < 0 || apply_numbers (&applying, err) < 0
      || apply_ttl (&applying, err) < 0)
    return -1;
  if (apply_timeout (&applying, err) < 0)
    return -1;
  report (out, &applying, origin);
  return request_check (&out->request, err);
}

void
profiled_fini (struct profiled *profiled)
{
  profile_free (profiled->profile);
  json_decref (profiled->report);
}

/* ---- what comes later ---------------------------------------------------- */

static int
fail_later (const char *field, const json_t *spec, struct error **err)
{
  const char *name = json_string_value (json_object_get (spec, "profile"));

  error_set (err, E_PROFILE, 0, "%s: profile %s locks it", field,
             name ? name : "?");
  error_detail (err, "field", json_string (field));
  return -1;
}

static uint64_t
clamp_later (enum profile_field field, const json_t *spec, uint64_t asked_ms,
             uint64_t most)
{
  const char *name = json_string_value (json_object_get (spec, "profile"));
  auto_free char *from = NULL, *to = NULL;

  if (!most || asked_ms <= most)
    return asked_ms;
  from = profile_format (field, asked_ms);
  to = profile_format (field, most);
  log_event (LOG_LEVEL_WARNING, "profile", "%s: %s is more than profile %s"
             " allows: it is %s", profile_fields[field].key,
             from ? from : "that", name ? name : "?", to ? to : "less");
  return most;
}

int
profile_timeout (const char *spec, uint64_t asked_ms, int unwatched,
                 uint64_t *out, struct error **err)
{
  auto_json json_t *object = NULL;
  uint64_t said = 0, most = 0;
  int locked;

  *out = asked_ms;
  /* Most have none, and this is on the way of every command. */
  if (!spec || !strstr (spec, "\"timeout_"))
    return 0;
  if (json_parse (spec, strlen (spec), &object, err) < 0)
    return -1;
  json_get_u64 (json_object_get (object, "timeout_ms"), &said);
  json_get_u64 (json_object_get (object, "timeout_max_ms"), &most);
  locked = json_object_get (object, "timeout_locked") != NULL;
  if (asked_ms && asked_ms != said && locked)
    return fail_later ("timeout", object, err);
  if (asked_ms)
    *out = clamp_later (PROFILE_TIMEOUT, object, asked_ms, most);
  else
    *out = (unwatched && !locked) || !said ? most : said;
  return 0;
}

int
profile_ttl (const char *spec, uint64_t asked_ms, uint64_t *out,
             struct error **err)
{
  auto_json json_t *object = NULL;
  uint64_t most = 0;

  *out = asked_ms;
  if (!spec || !strstr (spec, "\"ttl_"))
    return 0;
  if (json_parse (spec, strlen (spec), &object, err) < 0)
    return -1;
  json_get_u64 (json_object_get (object, "ttl_max_ms"), &most);
  if (json_object_get (object, "ttl_locked"))
    return fail_later ("ttl", object, err);
  *out = clamp_later (PROFILE_TTL, object, asked_ms, most);
  return 0;
}
