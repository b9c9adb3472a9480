/* SPDX-License-Identifier: Apache-2.0 */
/* Which providers there are, where they come from, and what the operator says
 * about them.  Reading the registry runs nothing of any provider. */

#ifndef PROVIDER_REGISTRY_H
#define PROVIDER_REGISTRY_H

#include <jansson.h>

#include "base/error.h"
#include "base/place.h"
#include "provider/manifest.h"
#include "provider/receipt.h"

enum registry_trust { TRUST_PACKAGED, TRUST_LOCAL, TRUST_PINNED, TRUST_SIGNED,
                      TRUST_DROPPED };
enum registry_state {
  PROVIDER_ENABLED,
  PROVIDER_DISABLED,            /* by the operator */
  PROVIDER_QUARANTINED,         /* dropped in by hand and not yet enabled */
  PROVIDER_BROKEN               /* see .error */
};

/* The default where no file says one. */
#define REGISTRY_BUILTIN_DEFAULT "linux"

/* One configuration value with its origin. */
struct registry_config {
  char *key;
  char *value;                  /* resolved lazily for secrets: may be NULL */
  char *origin;                 /* default, config, env:NAME, file:PATH, … */
  int secret;
};

struct registry_entry {
  char *id;
  enum registry_trust trust;
  enum registry_state state;
  char *dir;                    /* the manifest's folder */
  int dir_fd;                   /* it, opened and checked; -1 when broken */
  struct manifest *manifest;    /* with the operator's narrowing applied */
  struct receipt *receipt;      /* of an installed one; NULL: there is none */
  struct error *error;          /* why it is broken */
  size_t n_config;
  struct registry_config *config;
  int allow_degraded;           /* worker.allow_degraded */
  /* What opening it demands; never of what is shipped with coffer. */
  int require_conformance, require_signature;
  int held_in_worker;           /* the operator set permissions or limits */
  char *override_path;          /* providers.d/ID.yaml when there is one */
  char **without;               /* claims that it gives up; NULL: none */
};

struct registry {
  size_t count;
  struct registry_entry *entries;       /* sorted by id */
  char *default_provider;
  const char *default_source;   /* builtin, system, user */
  int require_conformance;      /* coffer.yaml, else 1 */
  int require_signature;        /* coffer.yaml, else 0 */
  char *default_profile;        /* for requests that name none; NULL: none */
  /* coffer.yaml `accept`: protecting defaults the operator does without, by
   * their capability word; NULL-terminated, NULL: none. */
  char **accept;
  const struct place *place;
};

/* All providers.  A broken one has state BROKEN and never stops others. */
int registry_load (const struct place *place, struct registry **out,
                   struct error **err);
/* Only the one named (NULL: the default one): what `run` uses, without
 * touching the others. */
int registry_load_one (const struct place *place, const char *id,
                       struct registry **out, struct error **err);
/* One that is not registered: PATH is its folder, with one manifest ID.yaml, or
 * that manifest.  The same checks, without a receipt: for the conformance kit.
 * What is wrong with it is the entry's own error. */
int registry_load_folder (const struct place *place, const char *path,
                          struct registry **out, struct error **err);
void registry_free (struct registry *registry);
DEFINE_CLEANUP (struct registry *, registry_free, auto_registry)
#define auto_registry CLEANUP (auto_registry)

/* E_UNKNOWN_PROVIDER (naming the nearest), E_PROVIDER_DISABLED, or the
 * entry's own error when it is broken. */
int registry_find (const struct registry *registry, const char *id,
                   const struct registry_entry **out, struct error **err);

/* A number that is another one once anything changed that the registry is read
 * from; no file is read.  A change of the same moment as the last that it saw,
 * which *newest_ns (since the epoch) tells, may be missed: what is kept for long
 * is kept for a stamp that is older than that. */
uint64_t registry_stamp (const struct place *place, int64_t *newest_ns);

/* What the operator's own files say, changed in their text: the caller's, for
 * root the system's.  enabled in providers.d/ID.yaml; default_provider in
 * coffer.yaml, for an id that the caller has looked up. */
int registry_set_enabled (const struct place *place, const char *id,
                          int enabled, int *changed, struct error **err);
int registry_set_default (const struct place *place, const char *id,
                          struct error **err);
/* Sees to it that `id` is not the default any more; *now, which the caller
 * frees, is what is. */
int registry_reset_default (const struct place *place, const char *id,
                            char **now, struct error **err);

/* "KEY=VALUE" for open, with secrets read from where they live now.  The
 * caller frees with yaml_free_texts, which also wipes. */
int registry_resolve_config (const struct registry_entry *entry, char ***out,
                             char ***secrets, struct error **err);
/* The file of the docker command's that the value of this key is read from, the
 * entry's; NULL: it is from elsewhere. */
const char *registry_auths_path (const struct registry_entry *entry,
                                 const char *key);

/* The checks that run nothing of the provider, for doctor and verify:
 * [{"check","ok","detail","remedy"}].  verify: files alone, not what the
 * configuration is. */
json_t *registry_check (const struct registry_entry *entry,
                        const struct place *place, int verify);
/* One such check, remedy NULL: none; and whether all of a list are ok. */
json_t *registry_check_new (const char *check, int ok, const char *detail,
                            const char *remedy);
json_t *registry_check_failed (const char *check, const struct error *error);
/* Whether it has shown that it keeps the contract: ok where nobody asks. */
json_t *registry_check_conformance (const struct registry_entry *entry);
/* The first of them that failed as an error. */
int registry_check_error (const json_t *checks, struct error **err);
int registry_check_passed (const json_t *checks);

/* The value of a configuration key, or NULL: nobody gave one. */
const struct registry_config *registry_given (
  const struct registry_entry *entry, const char *key);

/* Enabled, and refused nevertheless until the kit has judged it. */
int registry_needs_kit (const struct registry_entry *entry);
/* {"providers": […], "default_provider", "default_source"} */
json_t *registry_list_json (const struct registry *registry);
/* {"id", "source"} of the default. */
json_t *registry_default_json (const struct registry *registry);
/* All that is known of one; of a secret only where it comes from. */
json_t *registry_entry_json (const struct registry_entry *entry);
/* {"id", "state", "trust", "changed", "operator_file"}, read anew. */
int registry_state_json (const struct place *place, const char *id,
                         int changed, json_t **out, struct error **err);

const char *registry_trust_name (enum registry_trust trust);
const char *registry_state_name (enum registry_state state);

#endif /* PROVIDER_REGISTRY_H */
