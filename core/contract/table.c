/* SPDX-License-Identifier: Apache-2.0 */
/* The X-macro table of <coffer/contract.h> as data.
 *
 * The FIELD macros do not know which record they stand in, and offsetof must.
 * So each record's fields are a static array inside a function of its own,
 * where the typedef `current` names the struct; the tables that point at
 * those arrays are filled once, at the first contract_builtin. */

#include <config.h>

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "contract/args.h"
#include "contract/contract.h"

/* Types of the table: what they are as data, and whether NULL is allowed in
 * an argument. */
#define TYPE_str CONTRACT_STR, 0
#define TYPE_text CONTRACT_TEXT, 0
#define TYPE_ostr CONTRACT_STR, 1
#define TYPE_otext CONTRACT_TEXT, 1
#define TYPE_strv CONTRACT_STRV, 1
#define TYPE_i32 CONTRACT_I32, 0
#define TYPE_i64 CONTRACT_I64, 0
#define TYPE_u32 CONTRACT_U32, 0
#define TYPE_u64 CONTRACT_U64, 0
#define TYPE_f64 CONTRACT_F64, 0
#define TYPE_flag CONTRACT_FLAG, 0
#define TYPE_fd CONTRACT_FD, 0
#define TYPE_rec CONTRACT_REC, 0
#define TYPE_recv CONTRACT_RECV, 1

enum record_index {
#define X(id, name, since, FIELDS, doc) RECORD_##name,
  COFFER_RECORDS (X)
#undef X
  N_RECORDS
};

#define NO_ARG(type, name, doc)
#define NO_RARG(type, record, name, doc)

enum op_index {
#define X(id, name, since, capability, args, OPTS, doc) OP_##name,
  COFFER_OPERATIONS (X, NO_ARG, NO_RARG)
#undef X
  N_OPS
};

static struct contract_record records[N_RECORDS];
static struct contract_record opts_records[N_OPS];
static struct contract_op ops[N_OPS];

/* -- fields of records ---------------------------------------------------- */

#define MAKE_FIELD(name, since, doc, record, type, optional)                  \
  { #name, doc, type, record, offsetof (current, name), since, optional },
#define EXPAND_FIELD(...) MAKE_FIELD (__VA_ARGS__)
#define FIELD(type, name, since, doc)                                         \
  EXPAND_FIELD (name, since, doc, NULL, TYPE_##type)
#define RFIELD(type, record, name, since, doc)                                \
  EXPAND_FIELD (name, since, doc, &records[RECORD_##record], TYPE_##type)

/* The last entry only keeps an empty record's array from being empty. */
#define X(id, name, since, FIELDS, doc)                                       \
  static void fill_record_##name (void)                                       \
  {                                                                           \
    typedef struct coffer_##name current;                                     \
    static const struct contract_field fields[]                               \
      = { FIELDS (FIELD, RFIELD) { NULL } };                                  \
                                                                              \
    records[RECORD_##name] = (struct contract_record){                        \
      #name, doc, id, sizeof (current), since,                                \
      sizeof fields / sizeof fields[0] - 1, fields                            \
    };                                                                        \
  }
COFFER_RECORDS (X)
#undef X

#define X(id, name, since, capability, args, OPTS, doc)                       \
  static void fill_opts_##name (void)                                         \
  {                                                                           \
    typedef struct coffer_##name##_opts current;                              \
    static const struct contract_field fields[]                               \
      = { OPTS (FIELD, RFIELD) { NULL } };                                    \
                                                                              \
    _Static_assert (sizeof (current) >= 2 * sizeof (uint32_t),                \
                    "a record starts with its size");                         \
    opts_records[OP_##name] = (struct contract_record){                       \
      #name "_opts", "options of " #name, 0, sizeof (current), since,         \
      sizeof fields / sizeof fields[0] - 1, fields                            \
    };                                                                        \
  }
COFFER_OPERATIONS (X, NO_ARG, NO_RARG)
#undef X

/* -- arguments of operations ---------------------------------------------- */

/* An argument is as old as its operation; fill_op does not read `since`. */
#define ARG(type, name, doc)                                                  \
  EXPAND_FIELD (name, 0, doc, NULL, TYPE_##type)
#define RARG(type, record, name, doc)                                         \
  EXPAND_FIELD (name, 0, doc, &records[RECORD_##record], TYPE_##type)

#define X(id, name, since, capability, arguments, OPTS, doc)                  \
  static void fill_op_##name (void)                                           \
  {                                                                           \
    typedef struct contract_args_##name current;                              \
    static const struct contract_field fields[] = { arguments { NULL } };     \
    enum { n_args = sizeof fields / sizeof fields[0] - 1 };                   \
                                                                              \
    _Static_assert ((int) n_args <= CONTRACT_MAX_ARGS,                        \
                    "too many arguments");                                    \
    ops[OP_##name] = (struct contract_op){                                    \
      #name, doc, capability, id, offsetof (struct coffer_operations, name),  \
      since, n_args, fields, &opts_records[OP_##name],                        \
      offsetof (current, opts)                                                \
    };                                                                        \
  }
COFFER_OPERATIONS (X, ARG, RARG)
#undef X

/* -- the contract --------------------------------------------------------- */

static void
fill_tables (void)
{
#define X(id, name, since, FIELDS, doc) fill_record_##name ();
  COFFER_RECORDS (X)
#undef X
#define X(id, name, since, capability, args, OPTS, doc)                       \
  fill_opts_##name ();                                                        \
  fill_op_##name ();
  COFFER_OPERATIONS (X, NO_ARG, NO_RARG)
#undef X
}

const struct contract *
contract_builtin (void)
{
  static const struct contract builtin = {
    COFFER_CONTRACT_MAJOR, COFFER_CONTRACT_MINOR,
    N_OPS, N_RECORDS, ops, records
  };
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once (&once, fill_tables);
  return &builtin;
}

const struct contract_op *
contract_op_by_id (const struct contract *contract, uint32_t id)
{
  size_t i;

  for (i = 0; i < contract->n_ops; i++)
    if (contract->ops[i].id == id)
      return &contract->ops[i];
  return NULL;
}

const struct contract_op *
contract_op_by_name (const struct contract *contract, const char *name)
{
  size_t i;

  for (i = 0; i < contract->n_ops; i++)
    if (strcmp (contract->ops[i].name, name) == 0)
      return &contract->ops[i];
  return NULL;
}

const struct contract_record *
contract_record_by_id (const struct contract *contract, uint32_t id)
{
  size_t i;

  for (i = 0; i < contract->n_records; i++)
    if (contract->records[i].id == id)
      return &contract->records[i];
  return NULL;
}

int
contract_check_version (const struct contract *contract, uint16_t major,
                        uint16_t minor, uint16_t least, struct error **err)
{
  if (major != contract->major)
    return error_set (err, E_CONTRACT_VERSION, 0,
                      "built for contract %u.%u, and this host has %u.%u",
                      major, minor, contract->major, contract->minor);
  if (least > minor)
    return error_set (err, E_CONTRACT_VERSION, 0,
                      "built for contract %u.%u, yet asks for at least %u.%u",
                      major, minor, major, least);
  if (least > contract->minor)
    return error_set (err, E_CONTRACT_VERSION, 0,
                      "needs at least contract %u.%u, and this host has %u.%u",
                      major, least, contract->major, contract->minor);
  if (major == 0 && minor != contract->minor)
    return error_set (err, E_CONTRACT_VERSION, 0,
                      "built for contract 0.%u, and this host has 0.%u; "
                      "before 1.0 they must be the same",
                      minor, contract->minor);
  return 0;
}

/* -- codes, capabilities, types ------------------------------------------- */

static const struct {
  int32_t number;
  const char *name;
  enum error_retryable retryable;
} codes[] = {
#define RETRY_no RETRY_NO
#define RETRY_yes RETRY_YES
#define RETRY_unknown RETRY_UNKNOWN
#define X(number, name, retryable, doc) { number, #name, RETRY_##retryable },
  COFFER_CODES (X)
#undef X
};

#define N_CODES (sizeof codes / sizeof codes[0])

const char *
contract_code_name (int32_t code)
{
  size_t i;

  for (i = 0; i < N_CODES; i++)
    if (codes[i].number == code)
      return codes[i].name;
  return NULL;
}

enum error_retryable
contract_code_retryable (int32_t code)
{
  size_t i;

  for (i = 0; i < N_CODES; i++)
    if (codes[i].number == code)
      return codes[i].retryable;
  return RETRY_UNKNOWN;
}

const char *const *
contract_failures (void)
{
  static const char *const names[] = {
#define X(number, name, retryable, doc) #name,
    COFFER_CODES (X)
#undef X
    NULL
  };

  return names + 1;             /* OK is the first */
}

const char *const *
contract_capabilities (void)
{
  static const char *const words[] = {
#define X(name, word, doc) word,
    COFFER_CAPABILITIES (X)
#undef X
    NULL
  };

  return words;
}

const char *
contract_type_name (enum contract_type type)
{
  static const char *const names[] = {
    [CONTRACT_STR] = "str",   [CONTRACT_TEXT] = "text",
    [CONTRACT_STRV] = "strv", [CONTRACT_I32] = "i32",
    [CONTRACT_I64] = "i64",   [CONTRACT_U32] = "u32",
    [CONTRACT_U64] = "u64",   [CONTRACT_F64] = "f64",
    [CONTRACT_FLAG] = "flag", [CONTRACT_FD] = "fd",
    [CONTRACT_REC] = "rec",   [CONTRACT_RECV] = "recv",
  };

  return names[type];
}
