/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that read a manifest. */

#ifndef PROVIDER_MANIFEST_READ_H
#define PROVIDER_MANIFEST_READ_H

#include "provider/manifest.h"

struct manifest_reader {
  struct yaml_source source;
  struct manifest *manifest;
};

/* One key of a map: `read` gets its value and where the result goes. */
struct manifest_key {
  const char *name;
  int required;
  int (*read) (struct manifest_reader *reader, const struct yaml_node *node,
               const char *key, void *out, struct error **err);
  size_t offset;                /* in the struct that is read into */
};

/* Reads the map by its table (ending with a NULL name): unknown and missing
 * keys are refused, the others read in the table's order. */
int manifest_read_map (struct manifest_reader *reader,
                       const struct yaml_node *node, const char *what,
                       const struct manifest_key *keys, void *out,
                       struct error **err);

int manifest_read_modules (struct manifest_reader *reader,
                           const struct yaml_node *node, const char *key,
                           void *out, struct error **err);
int manifest_read_files (struct manifest_reader *reader,
                         const struct yaml_node *node, const char *key,
                         void *out, struct error **err);
int manifest_read_config (struct manifest_reader *reader,
                          const struct yaml_node *node, const char *key,
                          void *out, struct error **err);

/* The tables, for manifest_keys. */
extern const struct manifest_key manifest_module_keys[];
extern const struct manifest_key manifest_file_keys[];
extern const struct manifest_key manifest_config_keys[];
extern const struct manifest_key manifest_permission_keys[];
extern const struct manifest_key manifest_limit_keys[];

/* Fails unless the word is in the NULL-terminated list; *index is where. */
int manifest_read_word (const struct yaml_source *source,
                        const struct yaml_node *node, const char *key,
                        const char *const *words, size_t *index,
                        struct error **err);

#endif /* PROVIDER_MANIFEST_READ_H */
