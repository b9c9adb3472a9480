/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a profile, and a profile as people and programs see it. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "policy/bounds.h"
#include "policy/profile.h"

static const char *const networks[] = { "none", "allow", "host", NULL };
static const char *const mounts[] = { "ro", "rw", NULL };
static const char *const roots[] = { "read-only", "writable", NULL };
static const char *const filters[] = { "general", "strict", NULL };
static const char *const facts[] = { "landlock", "cgroup", "quota.hard",
                                     NULL };

const struct profile_field_info profile_fields[PROFILE_FIELDS] = {
  [PROFILE_NETWORK] = { "network", KIND_WORD, 0, 0, networks },
  [PROFILE_NETWORKS] = { "networks", KIND_WORDS, 0, 0, networks },
  [PROFILE_ALLOW] = { "allow", KIND_WORDS, 0, 0, NULL },
  [PROFILE_MOUNTS] = { "mounts", KIND_WORD, 0, 0, mounts },
  [PROFILE_ROOT] = { "root", KIND_WORD, 0, 0, roots },
  [PROFILE_FILTER] = { "filter", KIND_WORD, 0, 0, filters },
  [PROFILE_REQUIRE] = { "require", KIND_WORDS, 0, 0, facts },
  [PROFILE_CPUS] = { "cpus", KIND_CPUS, 1, REQUEST_CPU_MAX, NULL },
  [PROFILE_MEMORY] = { "memory", KIND_SIZE, REQUEST_MEMORY_MIN,
                       REQUEST_BYTES_MAX, NULL },
  [PROFILE_PIDS] = { "pids", KIND_COUNT, 1, REQUEST_PIDS_MAX, NULL },
  [PROFILE_DISK] = { "disk", KIND_SIZE, REQUEST_DISK_MIN, REQUEST_BYTES_MAX,
                     NULL },
  [PROFILE_INODES] = { "inodes", KIND_COUNT, REQUEST_INODES_MIN,
                       REQUEST_INODES_MAX, NULL },
  [PROFILE_ADDRESS_SPACE] = { "address_space", KIND_SIZE, REQUEST_ADDRESS_MIN,
                              REQUEST_BYTES_MAX, NULL },
  [PROFILE_FILE_SIZE] = { "file_size", KIND_SIZE, REQUEST_FILE_MIN,
                          REQUEST_BYTES_MAX, NULL },
  [PROFILE_OPEN_FILES] = { "open_files", KIND_COUNT, REQUEST_FILES_MIN,
                           REQUEST_FILES_MAX, NULL },
  [PROFILE_TIMEOUT] = { "timeout", KIND_TIME, REQUEST_TIMEOUT_MIN_MS,
                        REQUEST_TTL_MAX_MS, NULL },
  [PROFILE_TTL] = { "ttl", KIND_TIME, REQUEST_TTL_MIN_MS, REQUEST_TTL_MAX_MS,
                    NULL },
  [PROFILE_IMPORTS] = { "imports", KIND_WORDS, 0, 0, NULL },
  [PROFILE_PRELOAD] = { "preload", KIND_WORDS, 0, 0, NULL },
};

static const char *const json_keys[PROFILE_FIELDS] = {
  [PROFILE_CPUS] = "cpu_millis",
  [PROFILE_MEMORY] = "memory_bytes",
  [PROFILE_DISK] = "disk_bytes",
  [PROFILE_ADDRESS_SPACE] = "address_bytes",
  [PROFILE_FILE_SIZE] = "file_bytes",
  [PROFILE_TIMEOUT] = "timeout_ms",
  [PROFILE_TTL] = "ttl_ms",
};

const char *
profile_json_key (enum profile_field field)
{
  return json_keys[field] ? json_keys[field] : profile_fields[field].key;
}

void
profile_free (struct profile *profile)
{
  int i;

  if (!profile)
    return;
  for (i = 0; i < PROFILE_FIELDS; i++) {
    free (profile->word[i]);
    yaml_free_texts (profile->words[i]);
  }
  free (profile->name);
  free (profile->summary);
  free (profile->source);
  free (profile);
}

int
profile_is_locked (const struct profile *profile, enum profile_field field)
{
  return (profile->locked >> field) & 1;
}

int
profile_lists (const struct profile *profile, enum profile_field field,
               const char *word)
{
  return text_list_has ((const char *const *) profile->words[field], word);
}

/* Exact where a size or time is a whole number of some unit. */
static char *
format_exact (uint64_t number, const char *const *units,
              const uint64_t *factors)
{
  size_t i;

  for (i = 0; factors[i] > 1 && number % factors[i] != 0; i++)
    ;
  return text_printf ("%llu%s", (unsigned long long) (number / factors[i]),
                      units[i]);
}

char *
profile_format (enum profile_field field, uint64_t number)
{
  static const char *const sizes[]
    = { "EiB", "PiB", "TiB", "GiB", "MiB", "KiB", "" };
  static const uint64_t size_factors[]
    = { 1ULL << 60, 1ULL << 50, 1ULL << 40, 1ULL << 30, 1ULL << 20,
        1ULL << 10, 1 };
  static const char *const times[] = { "d", "h", "m", "s", "ms" };
  static const uint64_t time_factors[] = { 86400000, 3600000, 60000, 1000, 1 };

  switch (profile_fields[field].kind) {
  case KIND_SIZE:
    return format_exact (number, sizes, size_factors);
  case KIND_TIME:
    return format_exact (number, times, time_factors);
  case KIND_CPUS:
    return text_printf ("%g", (double) number / 1000);
  default:
    return text_printf ("%llu", (unsigned long long) number);
  }
}

static void
put_value (json_t *values, const struct profile *profile,
           enum profile_field field)
{
  const char *key = profile_json_key (field);

  json_put_u64 (values, key, profile->number[field]);
  json_put_text (values, key, profile->word[field]);
  json_put_texts (values, key, (const char *const *) profile->words[field]);
}

json_t *
profile_to_json (const struct profile *profile)
{
  json_t *values = json_object (), *most = json_object ();
  json_t *locked = json_array ();
  int i;

  for (i = 0; i < PROFILE_FIELDS; i++) {
    put_value (values, profile, i);
    json_put_u64 (most, profile_json_key (i), profile->most[i]);
    if (profile_is_locked (profile, i))
      json_array_append_new (locked, json_string (profile_fields[i].key));
  }
  return json_pack ("{s:s, s:s, s:s, s:o, s:o, s:o}", "name", profile->name,
                    "summary", profile->summary, "source", profile->source,
                    "values", values, "max", most, "locked", locked);
}
