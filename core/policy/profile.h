/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: named sets of what a sandbox is given, what a caller may raise and
 * what a caller may not touch.  coffer-profile(5) is the manual.
 *
 * The shipped ones are the files of manifests/profiles, which the build puts
 * into the program as they are; an operator's are files of the folder
 * `profiles` beside coffer.yaml, read under the rule for trusted files.  Of one
 * name the user's is taken, then the system's, then the shipped one.  Nothing
 * is read or parsed for a request that names none. */

#ifndef POLICY_PROFILE_H
#define POLICY_PROFILE_H

#include <stdint.h>

#include "base/error.h"
#include "base/place.h"

enum profile_field {
  PROFILE_NETWORK, PROFILE_NETWORKS, PROFILE_ALLOW, PROFILE_MOUNTS,
  PROFILE_ROOT, PROFILE_FILTER, PROFILE_REQUIRE, PROFILE_CPUS, PROFILE_MEMORY,
  PROFILE_PIDS, PROFILE_DISK, PROFILE_INODES, PROFILE_ADDRESS_SPACE,
  PROFILE_FILE_SIZE, PROFILE_OPEN_FILES, PROFILE_TIMEOUT, PROFILE_TTL,
  PROFILE_IMPORTS, PROFILE_PRELOAD,
  PROFILE_FIELDS
};

enum profile_kind { KIND_WORD, KIND_WORDS, KIND_SIZE, KIND_COUNT, KIND_CPUS,
                    KIND_TIME };

struct profile_field_info {
  const char *key;
  enum profile_kind kind;
  uint64_t min, max;            /* numbers; cpus in thousandths, times in ms */
  const char *const *choices;   /* words; NULL: targets or modules */
};
extern const struct profile_field_info profile_fields[PROFILE_FIELDS];

struct profile {
  char *name, *summary;
  char *source;                 /* "shipped", or the file */
  uint64_t number[PROFILE_FIELDS];      /* 0: not said */
  uint64_t most[PROFILE_FIELDS];        /* 0: not said */
  char *word[PROFILE_FIELDS];           /* NULL: not said */
  char **words[PROFILE_FIELDS];         /* NULL: not said */
  unsigned locked;                      /* bit 1 << field */
};

void profile_free (struct profile *profile);
DEFINE_CLEANUP (struct profile *, profile_free, auto_profile)
#define auto_profile CLEANUP (auto_profile)

int profile_is_locked (const struct profile *profile,
                       enum profile_field field);
/* Does a list of the profile have this word? */
int profile_lists (const struct profile *profile, enum profile_field field,
                   const char *word);

/* From the text of a file; `shown` names it in errors, which are E_CONFIG. */
int profile_read (const char *bytes, size_t size, const char *shown,
                  struct profile **out, struct error **err);

/* By name: E_NOT_FOUND, naming the nearest. */
int profile_find (const struct place *place, const char *name,
                  struct profile **out, struct error **err);

/* [{"name", "source", "summary"}], sorted by name; one that cannot be read has
 * an `error` in place of the summary. */
int profile_list (const struct place *place, json_t **out,
                  struct error **err);

/* {"name", "summary", "source", "values", "max", "locked"}: numbers as numbers,
 * with the unit in the key. */
json_t *profile_to_json (const struct profile *profile);
/* The key of a field in JSON: memory_bytes, timeout_ms. */
const char *profile_json_key (enum profile_field field);
/* A number of the field as people write it; the caller frees. */
char *profile_format (enum profile_field field, uint64_t number);

#endif /* POLICY_PROFILE_H */
