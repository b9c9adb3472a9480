/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the registry. */

#ifndef PROVIDER_REGISTRY_READ_H
#define PROVIDER_REGISTRY_READ_H

#include "provider/registry.h"

/* A place for operator files and installed providers.  An ordinary user has
 * two: the system's, and their own, which comes second and wins. */
struct registry_layer {
  const char *source;           /* system, user */
  char *config_path, *installed_path;
  int config, installed;        /* descriptors; -1: there is none */
};

#define REGISTRY_MAX_LAYERS 2

struct registry_reader {
  const struct place *place;
  struct registry *registry;
  int shipped;
  size_t n_layers;
  struct registry_layer layers[REGISTRY_MAX_LAYERS];
};

/* A YAML file of the operator's below a folder, read under the rule for
 * trusted files.  1: read; 0: there is none, or nothing but comments. */
int operator_read (int dir, const char *name, const char *shown,
                   struct yaml_node **out, struct error **err);

/* The keys of providers.d/ID.yaml and of coffer.yaml, NULL-terminated. */
extern const char *const operator_keys[];
extern const char *const operator_main_keys[];

/* coffer.yaml of each layer. */
int operator_read_main (struct registry_reader *reader, struct error **err);

/* providers.d/ID.yaml of each layer, applied to the entry. */
int operator_apply (const struct registry_reader *reader,
                    struct registry_entry *entry, struct error **err);

/* Names each file of providers.d that speaks of no provider there is: a name
 * mistyped would otherwise narrow nothing. */
void operator_warn_of_strays (const struct registry_reader *reader);

/* Values for the keys that the operator does not set: environment, systemd
 * credentials, defaults. */
int config_complete (struct registry_entry *entry, struct error **err);
/* Sets one value, replacing what was there. */
int config_set (struct registry_entry *entry,
                const struct manifest_config *key, const char *value,
                const char *origin, struct error **err);
/* Is it a reference that a secret may be given by: env:NAME, file:PATH or
 * credential:NAME? */
int config_is_reference (const char *value);

/* Replaces permissions by the operator's, which must lie within. */
int permissions_narrow (const struct yaml_source *source,
                        const struct yaml_node *node,
                        struct manifest_permissions *permissions,
                        struct error **err);

/* Takes away the claims that the operator does without, which must be among the
 * manifest's, with those below them: exec takes exec.tty along. */
int claims_narrow (const struct yaml_source *source,
                   const struct yaml_node *node, struct registry_entry *entry,
                   struct error **err);

#endif /* PROVIDER_REGISTRY_READ_H */
