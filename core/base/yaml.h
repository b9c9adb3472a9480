/* SPDX-License-Identifier: Apache-2.0 */
/* A strict YAML reader (libyaml) into a small tree, for manifests, operator
 * files and profiles.  Refused, with line and column: more than one document,
 * aliases and anchors, tags, duplicate keys, keys that are not plain scalars,
 * more than YAML_MAX_BYTES, _NODES or _DEPTH, bytes that are not UTF-8. */

#ifndef BASE_YAML_H
#define BASE_YAML_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define YAML_MAX_BYTES (256 * 1024)
#define YAML_MAX_NODES 4096
#define YAML_MAX_DEPTH 16

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node {
  enum yaml_kind kind;
  size_t line, column;          /* from 1 */
  size_t start, end;            /* bytes: where it is written, quotes too */
  char *text;                   /* scalar */
  int quoted;                   /* scalar: was it in quotes or a block? */
  int flow;                     /* list, map: written as [...] or {...} */
  size_t count;                 /* list, map */
  struct yaml_node *items;      /* list: values; map: values, with keys[] */
  char **keys;
  struct yaml_node *key_marks;  /* line and column of each key */
};

/* `name` is the file's name, for messages: "NAME:LINE:COLUMN: what". All
 * errors are E_MANIFEST or the given number. */
int yaml_read (const char *bytes, size_t size, const char *name, int number,
               struct yaml_node **out, struct error **err);
/* Not yaml_free: libyaml exports a function of that name. */
void yaml_node_free (struct yaml_node *node);
DEFINE_CLEANUP (struct yaml_node *, yaml_node_free, auto_yaml)
#define auto_yaml CLEANUP (auto_yaml)

/* Where a tree came from, for the typed getters below. */
struct yaml_source {
  const char *name;
  int number;                   /* of the errors it raises */
};

/* Fails unless `node` is a map whose keys are all in `allowed`
 * (NULL-terminated); the message names the nearest one. */
int yaml_check_keys (const struct yaml_source *source,
                     const struct yaml_node *node, const char *const *allowed,
                     struct error **err);
/* The value of KEY, or NULL. */
const struct yaml_node *yaml_get (const struct yaml_node *map,
                                  const char *key);
/* Fails at the node's line and column. */
int yaml_fail (const struct yaml_source *source, const struct yaml_node *node,
               struct error **err, const char *fmt, ...)
  __attribute__ ((format (printf, 4, 5)));
/* Typed scalars; the key names the field in messages.  Text is one line
 * without control characters, and empty only as "". */
int yaml_text (const struct yaml_source *source, const struct yaml_node *node,
               const char *key, char **out, struct error **err);
int yaml_u64 (const struct yaml_source *source, const struct yaml_node *node,
              const char *key, uint64_t min, uint64_t max, uint64_t *out,
              struct error **err);
int yaml_size (const struct yaml_source *source, const struct yaml_node *node,
               const char *key, uint64_t *bytes, struct error **err);
int yaml_flag (const struct yaml_source *source, const struct yaml_node *node,
               const char *key, int *out, struct error **err);
/* A list of scalars as a NULL-terminated vector that the caller frees with
 * yaml_free_texts. */
int yaml_texts (const struct yaml_source *source,
                const struct yaml_node *node, const char *key, char ***out,
                struct error **err);
void yaml_free_texts (char **texts);

/* Nothing but comments, spaces and empty lines. */
int yaml_is_blank (const char *bytes, size_t size);

/* Sets a key of the topmost map to a plain word, or takes the key out (value
 * NULL): spliced into the text, so that comments and all else stay as they
 * are, and read again.  What cannot be done so is refused, as is a text that
 * yaml_read refuses.  The caller frees. */
int yaml_edit (const char *bytes, size_t size,
               const struct yaml_source *source, const char *key,
               const char *value, char **out, size_t *out_size,
               struct error **err);

/* The same for a trusted file in `dir`, which need not be there: one edit after
 * the other, a new file that replaces the old one once it is on the disk.
 * *changed: there was something to do. */
int yaml_edit_file (int dir, const char *name,
                    const struct yaml_source *source, const char *key,
                    const char *value, int *changed, struct error **err);

#endif /* BASE_YAML_H */
