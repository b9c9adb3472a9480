/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of operations, what comes of them, and what the whole run learns. */

#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/text.h"
#include "contract/args.h"
#include "provider/dispatch.h"
#include "runner.h"

#define LOG_FD 2
#define MAX_LOG (256 * 1024)

struct own {
  struct contract_arena *arena;
  struct kit_record *records;
  char *message, *details, *log;
};

/* ---- replies ------------------------------------------------------------- */

static void
close_fds (const struct contract_record *record, const void *data)
{
  uint16_t i;

  for (i = 0; i < record->n_fields; i++)
    if (record->fields[i].type == CONTRACT_FD)
      coffer_fd_close ((int *) ((uintptr_t) data
                                + record->fields[i].offset));
}

void
kit_reply_reset (struct kit_reply *reply)
{
  struct own *own = reply->own;
  size_t i;

  if (own) {
    for (i = 0; i < reply->n_records; i++)
      close_fds (contract_record_by_id (contract_builtin (),
                                        own->records[i].id),
                 own->records[i].data);
    contract_arena_free (own->arena);
    free (own->records);
    free (own->message);
    free (own->details);
    free (own->log);
    free (own);
  }
  *reply = (struct kit_reply){ .deadline_ms = reply->deadline_ms,
                               .cancel_fd = reply->cancel_fd,
                               .message = "", .details = "", .log = "" };
}

static struct own *
reply_begin (struct kit *kit, struct kit_reply *reply)
{
  struct own *own;

  kit_reply_reset (reply);
  own = calloc (1, sizeof *own);
  if (own)
    own->arena = contract_arena_new ();
  if (!own || !own->arena)
    kit_fail (kit, "out of memory");
  reply->own = own;
  return own;
}

/* ---- what operations emit ------------------------------------------------ */

#define BIT(record) (1u << COFFER_REC_##record)

/* Records of a kind beyond this many, or of another kind, are strange. */
static const struct emits {
  uint32_t op;
  unsigned once, often;         /* bits of record ids */
} emits[] = {
  { COFFER_OP_probe, 0, BIT (fact) },
  { COFFER_OP_sandbox_create, BIT (sandbox_info), BIT (fact) },
  { COFFER_OP_sandbox_info, BIT (sandbox_info), 0 },
  { COFFER_OP_sandbox_list, 0, BIT (sandbox_info) },
  { COFFER_OP_sandbox_extend, BIT (sandbox_info), 0 },
  { COFFER_OP_exec_start, BIT (exec_info), 0 },
  { COFFER_OP_exec_wait, BIT (exec_exit), 0 },
  { COFFER_OP_exec_list, 0, BIT (exec_info) },
  { COFFER_OP_warm_open, BIT (exec_info), 0 },
  { COFFER_OP_file_read, BIT (file_stat), 0 },
  { COFFER_OP_file_write, BIT (file_stat), 0 },
  { COFFER_OP_file_stat, BIT (file_stat), 0 },
  { COFFER_OP_file_list, 0, BIT (file_stat) },
  { COFFER_OP_file_watch, 0, BIT (file_event) },
  { COFFER_OP_port_resolve, BIT (port), 0 },
  { COFFER_OP_port_dial, BIT (stream), 0 },
  { COFFER_OP_metrics, 0, BIT (metric) },
  { COFFER_OP_snapshot_create, BIT (snapshot), 0 },
  { COFFER_OP_snapshot_list, 0, BIT (snapshot) },
};

static void note_once (struct kit *kit, enum kit_finding finding,
                       const struct contract_op *op, const char *fmt, ...)
  __attribute__ ((format (printf, 4, 5)));

static void
note_once (struct kit *kit, enum kit_finding finding,
           const struct contract_op *op, const char *fmt, ...)
{
  char *const text = kit->shared->findings[finding].text;
  const size_t size = sizeof kit->shared->findings[finding].text;
  va_list ap;
  int used;

  if (atomic_exchange (&kit->shared->findings[finding].found, 1))
    return;
  used = snprintf (text, size, "%s: %s ", kit->row ? kit->row->id : "opening",
                   op->name);
  va_start (ap, fmt);
  vsnprintf (text + used, size - (size_t) used, fmt, ap);
  va_end (ap);
}

static int
count_of (const struct kit_reply *reply, uint32_t id)
{
  size_t i;
  int n = 0;

  for (i = 0; i < reply->n_records; i++)
    n += reply->records[i].id == id;
  return n;
}

/* An operation that went well emits its record once; one that failed may have
 * emitted before. */
static void
check_emits (struct kit *kit, const struct contract_op *op,
             const struct kit_reply *reply)
{
  struct emits none = { op->id, 0, 0 };
  const struct emits *row = &none;
  size_t i;

  for (i = 0; i < sizeof emits / sizeof emits[0]; i++)
    if (emits[i].op == op->id)
      row = &emits[i];
  for (i = 0; i < reply->n_records; i++) {
    const uint32_t id = reply->records[i].id;
    const int known = ((row->once | row->often) >> id & 1);

    if (known && ((row->often >> id & 1) || count_of (reply, id) == 1))
      continue;
    note_once (kit, KIT_FOUND_EMIT, op, "emitted %s %d times",
               contract_record_by_id (contract_builtin (), id)->name,
               count_of (reply, id));
  }
}

/* ---- secrets of the configuration ---------------------------------------- */

static void
look_for_secret (struct kit *kit, const struct contract_op *op,
                 const char *text, const char *where)
{
  const char *const *secret = kit_secrets (kit);

  for (; text && *secret; secret++)
    if (**secret && strstr (text, *secret))
      note_once (kit, KIT_FOUND_SECRET, op,
                 "shows a secret of the configuration in its %s", where);
}

static void
look_in_records (struct kit *kit, const struct contract_op *op,
                 const struct kit_reply *reply)
{
  struct contract_fds fds;
  size_t i;

  if (!kit_secrets (kit)[0])
    return;
  for (i = 0; i < reply->n_records; i++) {
    auto_json json_t *json = NULL;
    auto_free char *text = NULL;

    fds.count = 0;
    if (contract_encode_record (
          contract_record_by_id (contract_builtin (), reply->records[i].id),
          reply->records[i].data, &json, &fds, NULL) == 0)
      text = json_text (json);
    look_for_secret (kit, op, text, "records");
  }
}

/* ---- one call ------------------------------------------------------------ */

struct catcher {
  struct kit_reply *reply;
  int failed;
};

static int
catch_record (void *data, const struct contract_record *type, void *record)
{
  struct catcher *catcher = data;
  struct kit_reply *reply = catcher->reply;
  struct own *own = reply->own;
  struct kit_record *grown;
  void *copy;
  uint16_t i;

  grown = reallocarray (own->records, reply->n_records + 1, sizeof *grown);
  if (!grown
      || contract_copy_record (type, record, own->arena, &copy, NULL) < 0) {
    own->records = grown ? grown : own->records;
    catcher->failed = 1;
    return 1;
  }
  for (i = 0; i < type->n_fields; i++)
    if (type->fields[i].type == CONTRACT_FD)
      *(int32_t *) (void *) ((char *) record + type->fields[i].offset) = -1;
  own->records = grown;
  grown[reply->n_records++] = (struct kit_record){ type->id, copy };
  reply->records = grown;
  return 0;
}

static void
catch_progress (void *data, uint64_t done, uint64_t total, const char *what)
{
  struct catcher *catcher = data;

  (void) done, (void) total, (void) what;
  catcher->reply->n_progress++;
}

static off_t
log_size (void)
{
  struct stat st;

  return fstat (LOG_FD, &st) == 0 ? st.st_size : 0;
}

/* What was logged since: other threads' lines are among them. */
static char *
log_since (off_t from)
{
  off_t size = log_size () - from;
  char *text;
  ssize_t n;

  if (size > MAX_LOG)
    size = MAX_LOG;
  text = calloc (1, (size_t) (size > 0 ? size : 0) + 1);
  if (text && size > 0) {
    n = pread (LOG_FD, text, (size_t) size, from);
    text[n > 0 ? n : 0] = '\0';
  }
  return text;
}

static int
public_number (struct outcome *outcome, const struct provider *provider,
               const struct contract_op *op, char **message)
{
  struct error *error = NULL;
  int number = 0;

  if (outcome_error (outcome, provider->manifest, op, &error) < 0 && error)
    number = error->number;
  if (error && !*message)
    *message = strdup (error_message (error));
  error_free (error);
  return number;
}

static void
fill (struct kit_reply *reply, struct outcome *outcome,
      const struct provider *provider, const struct contract_op *op)
{
  struct own *own = reply->own;
  enum error_retryable retryable;

  reply->fault = outcome->error != NULL;
  reply->code = reply->fault ? COFFER_INTERNAL
                : contract_code_name (outcome->returned) ? outcome->code
                                                         : outcome->returned;
  retryable = contract_code_retryable (outcome->code);
  reply->retryable = outcome->retryable != COFFER_RETRY_DEFAULT
                       ? outcome->retryable
                       : retryable == RETRY_NO    ? COFFER_RETRY_NO
                         : retryable == RETRY_YES ? COFFER_RETRY_YES
                                                  : COFFER_RETRY_UNKNOWN;
  own->message = reply->fault ? NULL : steal (outcome->message);
  own->details = outcome->details ? json_text (outcome->details) : NULL;
  if (reply->fault)
    reply->error_number = public_number (outcome, provider, op, &own->message);
  else if (reply->code != COFFER_OK) {
    auto_free char *message = NULL;

    reply->error_number = public_number (outcome, provider, op, &message);
  }
}

/* A caller tries again what it is told to: for ever, where nothing can come of
 * it. */
static void
check_code (struct kit *kit, const struct contract_op *op,
            const struct kit_reply *reply)
{
  const char *const code = contract_code_name (reply->code);
  const int32_t again = reply->retryable;

  if (!code)
    note_once (kit, KIT_FOUND_CODE, op, "ended in %d, which is no code",
               reply->code);
  else if (again != COFFER_RETRY_NO && again != COFFER_RETRY_YES
           && again != COFFER_RETRY_UNKNOWN)
    note_once (kit, KIT_FOUND_RETRYABLE, op,
               "ended in %s with %d about trying again, which means nothing",
               code, again);
  else if (again == COFFER_RETRY_YES
           && contract_code_retryable (reply->code) == RETRY_NO)
    note_once (kit, KIT_FOUND_RETRYABLE, op,
               "ended in %s and said that the same may work later", code);
}

static void
learn (struct kit *kit, const struct contract_op *op, struct kit_reply *reply)
{
  struct own *own = reply->own;

  reply->message = own->message ? own->message : "";
  reply->details = own->details ? own->details : "";
  reply->log = own->log ? own->log : "";
  if (!reply->fault && reply->code >= 0 && reply->code < 32
      && op->id < SHARED_OPS) {
    atomic_fetch_or (&kit->shared->seen[op->id], 1u << reply->code);
    atomic_fetch_or (&kit->shared->seen[0], 1u << reply->code);
  }
  look_for_secret (kit, op, reply->message, "message");
  look_for_secret (kit, op, reply->details, "details");
  look_for_secret (kit, op, reply->log, "log");
  look_in_records (kit, op, reply);
  if (reply->fault)
    return;
  if (reply->code == COFFER_OK)
    check_emits (kit, op, reply);
  else
    check_code (kit, op, reply);
}

static void
prepare (struct kit *kit, const struct kit_reply *reply,
         const struct contract_op *op, struct provider_call *call)
{
  int64_t deadline = kit->deadline_ns;

  if (reply->deadline_ms) {
    call->deadline_ns = coffer_now_ns () + reply->deadline_ms * 1000000LL;
    if (call->deadline_ns < deadline)
      deadline = call->deadline_ns;
  }
  call->deadline_ns = deadline;
  call->cancel_fd = reply->cancel_fd;
  pthread_mutex_lock (&kit->lock);
  snprintf (kit->shared->step, sizeof kit->shared->step, "%s", op->name);
  pthread_mutex_unlock (&kit->lock);
}

static void
call_run (struct kit_instance *instance, struct kit_reply *reply,
          const struct contract_op *op, const union contract_value *values)
{
  struct kit *kit = instance->kit;
  struct own *own = reply_begin (kit, reply);
  struct catcher catcher = { .reply = reply };
  struct provider_call call = {
    .sink = { catch_record, catch_progress, &catcher }
  };
  struct outcome outcome = { .code = COFFER_OK };
  struct error *error = NULL;
  const off_t from = log_size ();
  int64_t began;

  prepare (kit, reply, op, &call);
  began = coffer_now_ns ();
  if (provider_try (instance->provider, op->id, values, &call, &outcome,
                    &error) < 0) {
    own->message = strdup (error_message (error));
    error_free (error);
    kit_fail (kit, "%s: the kit gave what no module is given: %s", op->name,
              own->message);
  }
  reply->duration_us = (coffer_now_ns () - began) / 1000;
  if (catcher.failed)
    kit_fail (kit, "%s: more than 16 MiB of records, or out of memory",
              op->name);
  fill (reply, &outcome, instance->provider, op);
  outcome_fini (&outcome);
  own->log = log_since (from);
  learn (kit, op, reply);
}

int32_t
call_values (struct kit_instance *instance, struct kit_reply *reply,
             uint32_t id, const union contract_value *values)
{
  const struct contract_op *op = contract_op_by_id (contract_builtin (), id);
  struct kit *kit = instance->kit;

  if (!instance->provider)
    kit_fail (kit, "%s: the instance is closed", op->name);
  if (id == COFFER_OP_open || id == COFFER_OP_close)
    kit_fail (kit, "%s is not for calls", op->name);
  if (id == COFFER_OP_sandbox_create)
    shared_add_id (kit, values[0].str);
  call_run (instance, reply, op, values);
  return reply->code;
}

static int32_t
call_args (struct kit_instance *instance, struct kit_reply *reply, uint32_t id,
           const void *args)
{
  union contract_value values[CONTRACT_MAX_ARGS + 1];

  contract_args_values (contract_op_by_id (contract_builtin (), id), args,
                        values);
  return call_values (instance, reply, id, values);
}

/* A row's arguments become pairs of type and name, which are read twice: as
 * parameters and as members of a struct. */
#define CALL_ARG(type, name, doc) , COFFER_TYPE_##type, name
#define CALL_RARG(type, record, name, doc) , COFFER_RTYPE_##type (record), name
#define PARAM_0(op)
#define PARAM_1(op, t, n) , t n
#define PARAM_2(op, t, n, ...) , t n PARAM_1 (op, __VA_ARGS__)
#define PARAM_3(op, t, n, ...) , t n PARAM_2 (op, __VA_ARGS__)
#define PARAM_4(op, t, n, ...) , t n PARAM_3 (op, __VA_ARGS__)
#define PARAM_5(op, t, n, ...) , t n PARAM_4 (op, __VA_ARGS__)
#define PARAM_6(op, t, n, ...) , t n PARAM_5 (op, __VA_ARGS__)
#define PARAM_7(op, t, n, ...) , t n PARAM_6 (op, __VA_ARGS__)
#define PARAM_8(op, t, n, ...) , t n PARAM_7 (op, __VA_ARGS__)
#define SET_0(op)
#define SET_1(op, t, n) .n = n,
#define SET_2(op, t, n, ...) .n = n, SET_1 (op, __VA_ARGS__)
#define SET_3(op, t, n, ...) .n = n, SET_2 (op, __VA_ARGS__)
#define SET_4(op, t, n, ...) .n = n, SET_3 (op, __VA_ARGS__)
#define SET_5(op, t, n, ...) .n = n, SET_4 (op, __VA_ARGS__)
#define SET_6(op, t, n, ...) .n = n, SET_5 (op, __VA_ARGS__)
#define SET_7(op, t, n, ...) .n = n, SET_6 (op, __VA_ARGS__)
#define SET_8(op, t, n, ...) .n = n, SET_7 (op, __VA_ARGS__)
/* The macro for a name and up to eight pairs. */
#define PICK(op, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, macro, ...)  \
  macro
#define PARAMS(...)                                                           \
  PICK (__VA_ARGS__, PARAM_8, , PARAM_7, , PARAM_6, , PARAM_5, , PARAM_4, ,   \
        PARAM_3, , PARAM_2, , PARAM_1, , PARAM_0, ) (__VA_ARGS__)
#define SETS(...)                                                             \
  PICK (__VA_ARGS__, SET_8, , SET_7, , SET_6, , SET_5, , SET_4, , SET_3, ,    \
        SET_2, , SET_1, , SET_0, ) (__VA_ARGS__)

#define CALL_OP(id, name, since, capability, args, OPTS, doc)                 \
  CALL_ROW (name, name args)
#define CALL_ROW(name, ...)                                                   \
  int32_t kit_##name (struct kit_instance *instance,                          \
                      struct kit_reply *reply PARAMS (__VA_ARGS__),           \
                      const struct coffer_##name##_opts *opts)                \
  {                                                                           \
    const struct contract_args_##name args                                    \
      = { SETS (__VA_ARGS__).opts = opts };                                   \
    return call_args (instance, reply, COFFER_OP_##name, &args);              \
  }
COFFER_OPERATIONS (CALL_OP, CALL_ARG, CALL_RARG)

/* ---- reading replies ----------------------------------------------------- */

static const void *
nth_record (const struct kit_reply *reply, uint32_t id, size_t n)
{
  size_t i;

  for (i = 0; i < reply->n_records; i++)
    if (reply->records[i].id == id && n-- == 0)
      return reply->records[i].data;
  return NULL;
}

#define REPLY_RECORD(id, name, since, FIELDS, doc)                            \
  const struct coffer_##name *kit_reply_##name (                              \
    const struct kit_reply *reply, size_t n)                                  \
  {                                                                           \
    return nth_record (reply, id, n);                                         \
  }
COFFER_RECORDS (REPLY_RECORD)

const char *
kit_code_name (int32_t code)
{
  const char *name = contract_code_name (code);

  return name ? name : "a code that the contract does not have";
}

const char *
kit_shown (struct kit *kit, const struct kit_reply *reply)
{
  const char *message = reply->message ? reply->message : "";

  if (reply->fault)
    return kit_text (kit, "the fault E%d (%s)", reply->error_number, message);
  if (!contract_code_name (reply->code))
    return kit_text (kit, "the code %d, which the contract does not have (%s)",
                     reply->code, message);
  return *message ? kit_text (kit, "%s (%s)", kit_code_name (reply->code),
                              message)
                  : kit_code_name (reply->code);
}

uint32_t
kit_operation (size_t n)
{
  const struct contract *contract = contract_builtin ();

  return n < contract->n_ops ? contract->ops[n].id : 0;
}

const char *
kit_operation_name (uint32_t op)
{
  return contract_op_by_id (contract_builtin (), op)->name;
}

const char *
kit_operation_capability (uint32_t op)
{
  return contract_op_by_id (contract_builtin (), op)->capability;
}

/* ---- what the whole run saw ---------------------------------------------- */

int
kit_code_seen (struct kit *kit, uint32_t op, int32_t code)
{
  return op < SHARED_OPS && code >= 0 && code < 32
         && (atomic_load (&kit->shared->seen[op]) >> code & 1);
}

const char *
kit_found (struct kit *kit, enum kit_finding finding)
{
  return atomic_load (&kit->shared->findings[finding].found)
           ? kit->shared->findings[finding].text : NULL;
}

int
kit_is_partial (struct kit *kit)
{
  return kit->shared->partial;
}

/* ---- opening ------------------------------------------------------------- */

/* provider_open tells the contract's code of a refused `open` as a detail. */
static int32_t
code_by_name (const char *name)
{
  int32_t code;

  for (code = 0; name && contract_code_name (code); code++)
    if (strcmp (contract_code_name (code), name) == 0)
      return code;
  return COFFER_INTERNAL;
}

int32_t
kit_open_with (struct kit *kit, const char *const *config, int another_host,
               struct kit_instance **out, struct kit_reply *reply)
{
  const struct contract_op *op
    = contract_op_by_id (contract_builtin (), COFFER_OP_open);
  struct own *own = reply_begin (kit, reply);
  auto_error struct error *error = NULL;
  const off_t from = log_size ();
  const int64_t began = coffer_now_ns ();
  const char *name;

  *out = instance_open (kit, config, another_host, &error);
  reply->duration_us = (coffer_now_ns () - began) / 1000;
  if (!*out && error) {
    name = json_string_value (json_object_get (error->details, "code"));
    reply->code = code_by_name (name);
    reply->fault = name == NULL;
    reply->error_number = error->number;
    own->message = strdup (error_message (error));
    own->details = error->details ? json_text (error->details) : NULL;
  }
  own->log = log_since (from);
  learn (kit, op, reply);
  return reply->code;
}
