/* SPDX-License-Identifier: Apache-2.0 */
/* The operation table of <coffer/contract.h>, read as data.
 *
 * A `struct contract` describes one contract: its version, operations and
 * records.  contract_builtin is the one this host was compiled with; tests
 * compile the same source against a table of their own.  Nothing here is ever
 * taken from a manifest or a module. */

#ifndef CONTRACT_CONTRACT_H
#define CONTRACT_CONTRACT_H

#include <ffi.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <coffer/provider.h>

#include "base/error.h"

enum contract_type {
  CONTRACT_STR, CONTRACT_TEXT, CONTRACT_STRV, CONTRACT_I32, CONTRACT_I64,
  CONTRACT_U32, CONTRACT_U64, CONTRACT_F64, CONTRACT_FLAG, CONTRACT_FD,
  CONTRACT_REC, CONTRACT_RECV
};

/* One value, as a function takes it. */
union contract_value {
  const char *str;
  const char *const *strv;
  int32_t i32;
  int64_t i64;
  uint32_t u32;
  uint64_t u64;
  double f64;
  const void *rec;
  const void *const *recv;
};

struct contract_record;

/* A field of a record, or an argument of an operation (offset: within struct
 * contract_args_NAME of args.h). */
struct contract_field {
  const char *name;
  const char *doc;
  enum contract_type type;
  const struct contract_record *record; /* REC and RECV */
  uint32_t offset;
  uint16_t since;
  uint16_t optional;            /* an argument that may be NULL */
};

struct contract_record {
  const char *name;             /* "fact"; of options "exec_start_opts" */
  const char *doc;
  uint32_t id;                  /* 0 for options records */
  uint32_t size;                /* sizeof the host's struct */
  uint16_t since;
  uint16_t n_fields;
  const struct contract_field *fields;
};

#define CONTRACT_MAX_ARGS 12

struct contract_op {
  const char *name;
  const char *doc;
  const char *capability;       /* "" : always there */
  uint32_t id;
  uint32_t slot;                /* offset in struct coffer_operations */
  uint16_t since;
  uint16_t n_args;              /* without call, self and opts */
  const struct contract_field *args;
  const struct contract_record *opts;
  uint32_t opts_offset;         /* in struct contract_args_NAME */
};

struct contract {
  uint16_t major, minor;
  size_t n_ops, n_records;
  const struct contract_op *ops;
  const struct contract_record *records;
};

const struct contract *contract_builtin (void);

const struct contract_op *contract_op_by_id (const struct contract *contract,
                                             uint32_t id);
const struct contract_op *contract_op_by_name (const struct contract *contract,
                                               const char *name);
const struct contract_record *contract_record_by_id (
  const struct contract *contract, uint32_t id);
/* NULL for a number that is not in the closed list. */
const char *contract_code_name (int32_t code);
enum error_retryable contract_code_retryable (int32_t code);
/* NULL-terminated words of COFFER_CAPABILITIES. */
const char *const *contract_capabilities (void);
/* Names of all codes but OK, likewise. */
const char *const *contract_failures (void);
const char *contract_type_name (enum contract_type type);

/* Does a module of this version fit a host of this contract?  The major must
 * be the same; the host's minor at least `least`; within major 0 the minor
 * must be the same.  E_CONTRACT_VERSION. */
int contract_check_version (const struct contract *contract, uint16_t major,
                            uint16_t minor, uint16_t least,
                            struct error **err);

/* Call interfaces for one module: libffi's, for the operations that exist at
 * the minor it was built for. */
struct contract_calls;
int contract_calls_new (const struct contract *contract, uint16_t minor,
                        struct contract_calls **out, struct error **err);
void contract_calls_free (struct contract_calls *calls);
/* Calls through the vtable: values are n_args arguments and then opts
 * (values[n_args].rec, NULL: defaults).  UNSUPPORTED when the slot is NULL,
 * beyond the vtable's size, or of a later minor, or when a field of a later
 * minor than the module's has another value than the default.  INVALID when an
 * argument that must be given is NULL.  Allocates nothing; code as returned. */
int32_t contract_invoke (const struct contract_calls *calls,
                         const struct contract_op *op,
                         const struct coffer_operations *vtable,
                         struct coffer_call *call, void *self,
                         const union contract_value *values);

/* ---- the JSON codec of the channel, `coffer call` and the kit ---------- */

#define CONTRACT_MAX_FDS 16

/* Descriptors that go beside a frame; a value of type fd is an index here or
 * null.  The owner of the array owns the descriptors. */
struct contract_fds {
  int fd[CONTRACT_MAX_FDS];
  int count;
};

/* Values to JSON: {"sandbox":"…","argv":[…],"in":0,"opts":{…}}.  Descriptors
 * are borrowed into `fds`.  Fields whose value is the default (0, NULL, -1)
 * are left out.  The caller owns *out. */
int contract_encode_args (const struct contract_op *op,
                          const union contract_value *values, json_t **out,
                          struct contract_fds *fds, struct error **err);
int contract_encode_record (const struct contract_record *record,
                            const void *data, json_t **out,
                            struct contract_fds *fds, struct error **err);

/* JSON to values.  Strict: unknown names, wrong types, numbers out of range,
 * NUL in strings, depth beyond 8, and fd indexes that are not there or used
 * twice are E_INVALID with the field's path ("spec.mounts[0].target").  null is
 * the same as left out.  A str, text or fd that is left out is NULL or -1, a
 * rec argument is a record of defaults; an argument that must be given is
 * E_INVALID.  All memory belongs to the arena (E_LIMIT beyond its 16 MiB);
 * descriptors stay owned by `fds`. */
struct contract_arena;
struct contract_arena *contract_arena_new (void);
void contract_arena_free (struct contract_arena *arena);
DEFINE_CLEANUP (struct contract_arena *, contract_arena_free, auto_arena)
#define auto_arena CLEANUP (auto_arena)
int contract_decode_args (const struct contract_op *op, const json_t *json,
                          const struct contract_fds *fds,
                          struct contract_arena *arena,
                          union contract_value *values /* n_args + 1 */,
                          struct error **err);
int contract_decode_record (const struct contract_record *record,
                            const json_t *json,
                            const struct contract_fds *fds,
                            struct contract_arena *arena, void **out,
                            struct error **err);

/* A record that a module emitted, which may be shorter or longer than ours:
 * copied field by field into arena memory of our own size; what it does not
 * reach is the default (0, NULL, -1).  Invalid UTF-8 in a `text`, a flag that
 * is neither 0 nor 1, an fd below -1 and a size below 8 are E_INVALID. */
int contract_copy_record (const struct contract_record *record,
                          const void *data, struct contract_arena *arena,
                          void **out, struct error **err);

/* The reference manual's part, as Markdown; and the table as JSON. */
char *contract_markdown (const struct contract *contract);
json_t *contract_json (const struct contract *contract);

#endif /* CONTRACT_CONTRACT_H */
