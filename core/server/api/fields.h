/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests: from JSON to what core/sandbox takes.  A field that is not
 * known is refused by its name, and so is one of a wrong kind. */

#ifndef SERVER_API_FIELDS_H
#define SERVER_API_FIELDS_H

#include <coffer/buffer.h>

#include "base/json.h"
#include "sandbox/sandbox.h"

/* One field of a body. */
struct field {
  const char *name;
  /* What it says goes to `out`. */
  int (*read) (const char *name, const json_t *value, void *out,
               struct error **err);
  size_t offset;                /* of `out` in what is filled */
};

/* Each member of the body by the table, which ends with a NULL name.
 * E_SANDBOX_SPEC with details.field. */
int fields_read (const json_t *body, const struct field *table, void *out,
                 struct error **err);
/* The body of what takes no fields. */
int fields_none (const json_t *body, struct error **err);
/* E_SANDBOX_SPEC: "NAME: …". */
int field_fail (const char *name, struct error **err, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4)));

/* Bytes as JSON has them: a string, {"b64": …} or {"encoding", "data"}; no NUL
 * in a text.  The caller frees. */
int field_bytes (const char *name, const json_t *value, char **out,
                 size_t *size, struct error **err);

/* Readers; what they give is in the member of that kind. */
int field_text (const char *name, const json_t *value, void *out,
                struct error **err);    /* const char *, borrowed */
int field_path (const char *name, const json_t *value, void *out,
                struct error **err);    /* char *, to be freed */
int field_flag (const char *name, const json_t *value, void *out,
                struct error **err);    /* int */
int field_u64 (const char *name, const json_t *value, void *out,
               struct error **err);
int field_u32 (const char *name, const json_t *value, void *out,
               struct error **err);
int field_size (const char *name, const json_t *value, void *out,
                struct error **err);    /* uint64_t: a number, "512M" */
int field_duration (const char *name, const json_t *value, void *out,
                    struct error **err);        /* uint64_t, ms: seconds, "30s" */
int field_millis (const char *name, const json_t *value, void *out,
                  struct error **err);  /* uint32_t, thousandths: 1.5, "1.5" */
int field_words (const char *name, const json_t *value, void *out,
                 struct error **err);   /* struct coffer_strings */
int field_numbers (const char *name, const json_t *value, void *out,
                   struct error **err); /* the same, numbers too */
int field_pairs (const char *name, const json_t *value, void *out,
                 struct error **err);   /* the same: {NAME: VALUE}, or a list
                                         * of NAME=VALUE */

#endif /* SERVER_API_FIELDS_H */
