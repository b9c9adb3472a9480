/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider module is made of.
 *
 * A provider is a shared object with one exported function, an ELF note and a
 * manifest beside it.  Write the operations as plain C functions, collect them
 * in a `struct coffer_operations`, and name both with COFFER_PROVIDER:
 *
 *   static int32_t
 *   demo_probe (struct coffer_call *call, void *self,
 *               const struct coffer_probe_opts *opts)
 *   { ... return COFFER_OK; }
 *
 *   static const struct coffer_operations operations = {
 *     .size = sizeof operations, .open = demo_open, .probe = demo_probe, ...
 *   };
 *   COFFER_PROVIDER (demo, COFFER_THREADS_SERIAL, 0, operations)
 *
 * Rules, in short (coffer-provider(3) has them whole):
 *  - what an operation is given is borrowed until it returns; copy to keep;
 *  - results are emitted, the host copies them at the call;
 *  - a failed operation returns coffer_fail (...); a non-zero code without
 *    coffer_fail is reported without a message;
 *  - every wait ends at call->deadline_ns or when call->cancel_fd is readable;
 *  - file descriptors given to an operation are the host's: dup to keep.
 *
 * Stands alone: C99 and C++. */

#ifndef COFFER_PROVIDER_H
#define COFFER_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#include <coffer/contract.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Codes: COFFER_OK, COFFER_NOT_FOUND, ... */
enum coffer_code {
#define COFFER_X(number, name, retryable, doc) COFFER_##name = number,
  COFFER_CODES (COFFER_X)
#undef COFFER_X
  COFFER_CODE_MAX_ = 0x7fffffff
};

enum coffer_retryable {
  COFFER_RETRY_NO = 0,
  COFFER_RETRY_YES = 1,
  COFFER_RETRY_UNKNOWN = 2,
  COFFER_RETRY_DEFAULT = 3      /* what the table says for the code */
};

enum coffer_level {
  COFFER_LOG_ERROR = 0,
  COFFER_LOG_WARNING = 1,
  COFFER_LOG_INFO = 2,
  COFFER_LOG_DEBUG = 3
};

/* How many calls a module can take at once.  `exec_wait`, `exec_attach` and
 * `file_watch` never hold the lock that makes SERIAL serial. */
enum coffer_threads {
  COFFER_THREADS_SERIAL = 0,
  COFFER_THREADS_PARALLEL = 1
};

/* C types of the contract's types. */
#define COFFER_TYPE_str const char *
#define COFFER_TYPE_text const char *
#define COFFER_TYPE_ostr const char *
#define COFFER_TYPE_otext const char *
#define COFFER_TYPE_strv const char *const *
#define COFFER_TYPE_i32 int32_t
#define COFFER_TYPE_i64 int64_t
#define COFFER_TYPE_u32 uint32_t
#define COFFER_TYPE_u64 uint64_t
#define COFFER_TYPE_f64 double
#define COFFER_TYPE_flag uint32_t
#define COFFER_TYPE_fd int32_t
#define COFFER_RTYPE_rec(record) const struct coffer_##record *
#define COFFER_RTYPE_recv(record) const struct coffer_##record *const *

/* Records.  `size` is sizeof of the struct as its writer was compiled; a
 * reader takes the smaller of the two sizes, and the rest is the default
 * (0, NULL, and -1 for a descriptor).  A module that can live with a host of
 * an older minor asks COFFER_HAS before it reads a later field. */
#define COFFER_HAS(record, field)                                             \
  ((record) != NULL                                                           \
   && (size_t) ((const char *) (&(record)->field + 1)                         \
                - (const char *) (record)) <= (record)->size)
#define COFFER_X_FIELD(type, name, since, doc) COFFER_TYPE_##type name;
#define COFFER_X_RFIELD(type, record, name, since, doc)                       \
  COFFER_RTYPE_##type (record) name;
#define COFFER_X_REC(id, name, since, FIELDS, doc)                            \
  struct coffer_##name {                                                      \
    uint32_t size;                                                            \
    uint32_t reserved;          /* 0 */                                       \
    FIELDS (COFFER_X_FIELD, COFFER_X_RFIELD)                                  \
  };
COFFER_RECORDS (COFFER_X_REC)
#undef COFFER_X_REC

/* Options records: struct coffer_open_opts, struct coffer_close_opts, ... */
#define COFFER_X_ARG(type, name, doc)
#define COFFER_X_RARG(type, record, name, doc)
#define COFFER_X_OP(id, name, since, capability, args, OPTS, doc)             \
  struct coffer_##name##_opts {                                               \
    uint32_t size;                                                            \
    uint32_t reserved;          /* 0 */                                       \
    OPTS (COFFER_X_FIELD, COFFER_X_RFIELD)                                    \
  };
COFFER_OPERATIONS (COFFER_X_OP, COFFER_X_ARG, COFFER_X_RARG)
#undef COFFER_X_OP
#undef COFFER_X_ARG
#undef COFFER_X_RARG
#undef COFFER_X_FIELD
#undef COFFER_X_RFIELD

/* Ids of records and operations: COFFER_REC_fact, COFFER_OP_exec_start. */
enum coffer_record_id {
#define COFFER_X(id, name, since, FIELDS, doc) COFFER_REC_##name = id,
  COFFER_RECORDS (COFFER_X)
#undef COFFER_X
  COFFER_REC_MAX_ = 0x7fffffff
};

enum coffer_operation_id {
#define COFFER_X_ARG(type, name, doc)
#define COFFER_X_RARG(type, record, name, doc)
#define COFFER_X(id, name, since, capability, args, OPTS, doc)                \
  COFFER_OP_##name = id,
  COFFER_OPERATIONS (COFFER_X, COFFER_X_ARG, COFFER_X_RARG)
#undef COFFER_X
#undef COFFER_X_ARG
#undef COFFER_X_RARG
  COFFER_OP_MAX_ = 0x7fffffff
};

struct coffer_call;

/* What the host does for a module.  Call these through the wrappers below. */
struct coffer_host {
  uint32_t size;
  uint32_t reserved;
  int32_t (*emit) (struct coffer_call *call, uint32_t record,
                   const void *data);
  int32_t (*fail) (struct coffer_call *call, int32_t code, int32_t retryable,
                   const char *message, const char *details);
  void (*log) (struct coffer_call *call, int32_t level, const char *text);
  void (*progress) (struct coffer_call *call, uint64_t done, uint64_t total,
                    const char *what);
  int32_t (*connect) (struct coffer_call *call, const char *target);
  int32_t (*opened) (struct coffer_call *call, void *self);
  int32_t (*file) (struct coffer_call *call, const char *name);
};

/* One call.  Borrowed until the operation returns. */
struct coffer_call {
  uint32_t size;
  uint32_t reserved;
  const struct coffer_host *host;
  uint64_t request;             /* id, for logs and remote trace headers */
  int64_t deadline_ns;          /* CLOCK_MONOTONIC; always set */
  int32_t cancel_fd;            /* becomes readable when the caller gives up */
  int32_t reserved2;
};

/* Typed emits: coffer_emit_fact (call, &fact).  The record's size member is
 * filled in by the caller: struct coffer_fact fact = {sizeof fact}.
 * COFFER_OK, or the code with which to return. */
#define COFFER_X(id, name, since, FIELDS, doc)                                \
  static inline int32_t coffer_emit_##name (                                  \
    struct coffer_call *call, const struct coffer_##name *record)             \
  {                                                                           \
    return call->host->emit (call, id, record);                                \
  }
COFFER_RECORDS (COFFER_X)
#undef COFFER_X

/* Report a failure: the message is for people, one line, without secrets.
 * Returns the code, so that `return coffer_fail (...)` ends an operation.
 * (In parentheses, because test libraries have a macro of the name `fail`.) */
static inline int32_t
coffer_fail (struct coffer_call *call, int32_t code, const char *message)
{
  return (call->host->fail) (call, code, COFFER_RETRY_DEFAULT, message, NULL);
}

/* The same, with what is known about trying again (enum coffer_retryable)
 * and `details`, a JSON object as text or NULL: of sandbox_create
 * {"begun":false} says that there is nothing to be removed. */
static inline int32_t
coffer_fail_with (struct coffer_call *call, int32_t code, int32_t retryable,
                  const char *message, const char *details)
{
  return (call->host->fail) (call, code, retryable, message, details);
}

/* A finished line for the host's log; level is enum coffer_level. */
static inline void
coffer_log (struct coffer_call *call, int32_t level, const char *text)
{
  call->host->log (call, level, text);
}

/* How far along: total 0 is "not known"; `what` is a few words for people. */
static inline void
coffer_progress (struct coffer_call *call, uint64_t done, uint64_t total,
                 const char *what)
{
  call->host->progress (call, done, total, what);
}

/* A connected stream socket to `target`, made by the host after it has
 * checked the manifest's `connect` permission: "tcp:HOST:PORT", "unix:PATH",
 * or "config:KEY" for the place that a url in the configuration names.
 * "credential:KEY:SERVER" reads what a credential helper keeps for a registry,
 * where the value of KEY is `from` the docker command's files: coffer-provider(3).
 * The descriptor (>= 0) is the module's; a negative value is minus a code. */
static inline int32_t
coffer_connect (struct coffer_call *call, const char *target)
{
  return call->host->connect (call, target);
}

/* A file that the manifest lists as `late`, which `open` did not get: a sealed
 * copy of the bytes that were hashed, made now.  The descriptor (>= 0) is the
 * module's; a negative value is minus a code. */
static inline int32_t
coffer_file (struct coffer_call *call, const char *name)
{
  return call->host->file (call, name);
}

/* `open` hands its instance to the host with this; every later operation gets
 * it as `self`. */
static inline int32_t
coffer_opened (struct coffer_call *call, void *self)
{
  return call->host->opened (call, self);
}

/* The vtable.  A slot that is NULL answers UNSUPPORTED; a module must fill
 * the slots of every capability that its manifest claims. */
struct coffer_operations {
  uint32_t size;
  uint32_t reserved;
#define COFFER_X_ARG(type, name, doc) , COFFER_TYPE_##type name
#define COFFER_X_RARG(type, record, name, doc)                                \
  , COFFER_RTYPE_##type (record) name
#define COFFER_X(id, name, since, capability, args, OPTS, doc)                \
  int32_t (*name) (struct coffer_call *call,                                  \
                   void *self args, const struct coffer_##name##_opts *opts);
  COFFER_OPERATIONS (COFFER_X, COFFER_X_ARG, COFFER_X_RARG)
#undef COFFER_X
#undef COFFER_X_ARG
#undef COFFER_X_RARG
};

/* The descriptor.  Its first sixteen bytes never change; they say the same as
 * the ELF note, and the host compares the two and the manifest. */
struct coffer_provider {
  uint32_t size;                /* of this struct, as the module was built */
  uint16_t contract_major;
  uint16_t contract_minor;      /* built for */
  uint16_t least_minor;         /* can live with */
  uint16_t threads;             /* enum coffer_threads */
  uint32_t needs;               /* bits a host must know, or refuse */
  const char *name;
  const struct coffer_operations *operations;
};

/* The note `.note.coffer`, owner "coffer", type 1: read without running
 * anything.  Integers in the byte order of the file. */
#define COFFER_NOTE_OWNER "coffer"
#define COFFER_NOTE_TYPE 1
#define COFFER_NAME_MAX 32      /* bytes of a provider's name, with the NUL */

struct coffer_note {
  uint16_t contract_major;
  uint16_t contract_minor;
  uint16_t least_minor;
  uint16_t threads;
  uint32_t needs;
  char name[COFFER_NAME_MAX];
};

#define COFFER_PASTE_(a, b) a##b
#define COFFER_PASTE(a, b) COFFER_PASTE_ (a, b)
#define COFFER_STRING_(a) #a
#define COFFER_STRING(a) COFFER_STRING_ (a)

/* The exported symbol, with the major in its name: coffer_provider_0. */
#define COFFER_ENTRY COFFER_PASTE (coffer_provider_, COFFER_CONTRACT_MAJOR)
#define COFFER_ENTRY_NAME                                                     \
  "coffer_provider_" COFFER_STRING (COFFER_CONTRACT_MAJOR)

/* The least minor of a host that the module can live with: its own, unless
 * it says less before including this header. */
#ifndef COFFER_LEAST_MINOR
#define COFFER_LEAST_MINOR COFFER_CONTRACT_MINOR
#endif

#ifdef __cplusplus
#define COFFER_EXTERN_C extern "C"
#else
#define COFFER_EXTERN_C
#endif

/* clang's address sanitizer puts bytes behind each object, and a section of
 * notes is read from one to the next. */
#ifdef __clang__
#define COFFER_UNPADDED_ , no_sanitize ("address")
#else
#define COFFER_UNPADDED_
#endif

/* Emits the note, the descriptor and the entry point.
 *   module        the module's name: [a-z][a-z0-9_]*
 *   thread_model  COFFER_THREADS_SERIAL or COFFER_THREADS_PARALLEL
 *   need_bits     0 in this contract
 *   vtable        a static const struct coffer_operations */
#define COFFER_PROVIDER(module, thread_model, need_bits, vtable)              \
  static const struct {                                                       \
    uint32_t namesz, descsz, type;                                            \
    char owner[8];                                                            \
    struct coffer_note note;                                                  \
  } coffer_note_                                                              \
    __attribute__ ((section (".note.coffer"), used, aligned (4)               \
                    COFFER_UNPADDED_)) = {                                    \
      sizeof COFFER_NOTE_OWNER, sizeof (struct coffer_note),                  \
      COFFER_NOTE_TYPE, COFFER_NOTE_OWNER,                                    \
      { COFFER_CONTRACT_MAJOR, COFFER_CONTRACT_MINOR, COFFER_LEAST_MINOR,     \
        thread_model, need_bits, #module }                                    \
    };                                                                        \
  static const struct coffer_provider coffer_provider_ = {                    \
    sizeof (struct coffer_provider), COFFER_CONTRACT_MAJOR,                   \
    COFFER_CONTRACT_MINOR, COFFER_LEAST_MINOR, thread_model, need_bits,       \
    #module, &vtable                                                          \
  };                                                                          \
  COFFER_EXTERN_C __attribute__ ((visibility ("default"))) const struct       \
    coffer_provider *COFFER_ENTRY (void);                                     \
  const struct coffer_provider *COFFER_ENTRY (void)                           \
  {                                                                           \
    return &coffer_provider_;                                                 \
  }

#ifdef __cplusplus
}
#endif

#endif /* COFFER_PROVIDER_H */
