/* SPDX-License-Identifier: Apache-2.0 */
/* What a case of the conformance kit sees.
 *
 * A case is a row of a table: an id, the capabilities it needs, what it proves,
 * and a function.  It includes <coffer/…>, libc and this header, and nothing
 * else of coffer: it judges a provider as any stranger could.
 *
 *   static void
 *   kill_twice (struct kit *kit)
 *   {
 *     struct kit_reply reply = KIT_REPLY_INIT;
 *     const char *id = kit_sandbox (kit);
 *
 *     KIT_OK (kit, kit_sandbox_kill (kit_first (kit), &reply, id, NULL), &reply,
 *             "kill %s", id);
 *     KIT_CODE (kit, kit_sandbox_kill (kit_first (kit), &reply, id, NULL),
 *               &reply, COFFER_NOT_FOUND, "kill %s again", id);
 *   }
 *
 *   const struct kit_case kit_example_cases[] = {
 *     { "example.kill-twice", "", "Killing what is gone says so.", kill_twice },
 *     { NULL }
 *   };
 *
 * Each case runs in a process of its own, forked by the runner, with a
 * deadline.  It ends by returning (passed) or in kit_fail or kit_skip_narrowed.
 * Then every sandbox that it made is killed, its instances are closed, its
 * whole tree of processes is ended, and what is left behind fails it.
 *
 * A provider may be broken, its claims may be lies, and it may run as root: what
 * a case tries must do no harm to the machine then.  So it never changes or
 * truncates what is there already; it makes names of its own, with a random word
 * in them, and takes them away again.
 *
 * Values come from kit_random, so that no provider can know them beforehand and
 * a seed brings them back.  Wait for events, with kit_wait_until or a read,
 * never for a time: a machine that has much else to do is slow, and no provider
 * has broken its contract by that.  So a wait ends with the case's deadline, no
 * end is judged for being late, and where something must happen within a time
 * that the case gives, one that was too short is tried again with more. */

#ifndef KIT_H
#define KIT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <coffer/provider.h>

/* The kit's own version: raised when cases are added or judge otherwise. */
#define KIT_VERSION "1"

struct kit;                     /* the case under way */
struct kit_instance;            /* the provider, opened in a worker of its own */

/* ---- cases --------------------------------------------------------------- */

enum kit_case_flag {
  /* Not with --in-process: it ends workers or counts what they hold. */
  KIT_NEEDS_WORKER = 1,
  /* After all others: it judges what they recorded. */
  KIT_LAST = 2
};

struct kit_case {
  const char *id;               /* "exec.argv-exact"; NULL ends a table */
  /* Capability words that it needs, by spaces; "": every provider.  One that
   * the manifest does not claim waives the case; one that is claimed and that
   * probe takes away on this machine skips it, with probe's reason.  Beside
   * them "config": the manifest has keys of configuration, "config.secret": a
   * secret among them. */
  const char *claims;
  const char *proves;           /* a sentence or two, for people */
  void (*run) (struct kit *kit);
  uint32_t timeout_ms;          /* 0: 20 s */
  uint32_t flags;               /* enum kit_case_flag */
};

/* All tables, NULL-terminated: a new file's table goes into cases.c. */
extern const struct kit_case *const kit_tables[];

/* ---- how a case ends ----------------------------------------------------- */

/* Say what was done, what was expected and what came: one line. */
_Noreturn void kit_fail (struct kit *kit, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));
#define KIT_CHECK(kit, condition, ...)                                        \
  do {                                                                        \
    if (!(condition))                                                         \
      kit_fail (kit, __VA_ARGS__);                                            \
  } while (0)
/* A new folder of this machine, outside of every sandbox, of mode 0700, which
 * every user reaches once its mode allows that.  The runner removes it with all
 * in it, however the case ends. */
const char *kit_folder (struct kit *kit);
/* A diagnostic line: in the report, and shown when the case does not pass. */
void kit_note (struct kit *kit, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));
/* The one reason to skip that a case may find itself: probe has narrowed this
 * word.  Where it did not, the case fails. */
_Noreturn void kit_skip_narrowed (struct kit *kit, const char *capability);

/* ---- chance -------------------------------------------------------------- */

/* All from the printed seed and the case's id.  What is returned by pointer
 * is freed at the end of the case, here and below. */
uint64_t kit_random (struct kit *kit);
uint64_t kit_random_below (struct kit *kit, uint64_t n);        /* n > 0 */
char *kit_random_word (struct kit *kit, size_t length);         /* a-z0-9 */
uint8_t *kit_random_bytes (struct kit *kit, size_t size);
/* Memory until the end of the case, and a text in it; never NULL. */
void *kit_memory (struct kit *kit, size_t size);
char *kit_text (struct kit *kit, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

/* ---- the provider -------------------------------------------------------- */

int kit_claims (struct kit *kit, const char *capability);       /* effective */
int kit_claims_in_manifest (struct kit *kit, const char *capability);
int kit_says_never (struct kit *kit, int32_t code);     /* of the manifest */
const char *kit_isolation (struct kit *kit);    /* its kind, of the manifest */
int kit_is_parallel (struct kit *kit);          /* of the manifest */
uint32_t kit_max_calls (struct kit *kit);       /* limits.calls */
/* What probe said on this machine, the nth fact; NULL at the end. */
const struct coffer_fact *kit_fact (struct kit *kit, size_t n);
/* Values of the configuration that are secret, NULL-terminated. */
const char *const *kit_secrets (struct kit *kit);
/* The keys of the configuration by the manifest. */
struct kit_config_key {
  const char *key;
  const char *type;             /* text, secret, url, size, … */
  int required;
  const char *value;            /* what it is now; NULL: not set */
};
const struct kit_config_key *kit_config_key (struct kit *kit, size_t n);

/* ---- instances ----------------------------------------------------------- */

/* Opened on first use, with the configuration that was found. */
struct kit_instance *kit_first (struct kit *kit);
/* One more, in another worker, at the same time, of the same host. */
struct kit_instance *kit_another (struct kit *kit);
struct kit_reply;
/* One whose configuration has these KEY=VALUE words (NULL: none) in place of
 * its own, and, with another_host, another host id and folders of its own.
 * COFFER_OK and the instance, or the code that it failed with. */
int32_t kit_open_with (struct kit *kit, const char *const *config,
                       int another_host, struct kit_instance **out,
                       struct kit_reply *reply);
/* Ends it in good order; the case's end does so too. */
void kit_close_instance (struct kit_instance *instance);
pid_t kit_worker_pid (struct kit_instance *instance);   /* 0: this process */
/* SIGKILL, and waits until it is gone; a later call starts it again. */
void kit_kill_worker (struct kit_instance *instance);

/* ---- calls --------------------------------------------------------------- */

struct kit_record {
  uint32_t id;                  /* enum coffer_record_id */
  const void *data;             /* struct coffer_NAME */
};

/* What was asked beside the arguments, and what came.  A reply is one thread's;
 * calls may be made from several.  A call resets it first. */
struct kit_reply {
  uint32_t deadline_ms;         /* in; 0: the case's own */
  int32_t cancel_fd;            /* in; -1: none */
  int32_t code;                 /* enum coffer_code, as the module returned it */
  int32_t retryable;            /* enum coffer_retryable, after the defaults */
  int32_t error_number;         /* of the public error: E1001 is 1001; 0: none */
  /* 1: the host found a fault (a worker that died, a malformed record); the
   * code is INTERNAL then. */
  int32_t fault;
  const char *message;          /* "" when there is none */
  const char *details;          /* a JSON object, or "" */
  const char *log;              /* lines of the provider meanwhile, or "" */
  int64_t duration_us;
  uint64_t n_progress;          /* reports of progress */
  size_t n_records;
  const struct kit_record *records;     /* in the order of emits */
  void *own;
};
#define KIT_REPLY_INIT { .cancel_fd = -1 }
void kit_reply_reset (struct kit_reply *reply);

/* kit_NAME (instance, reply, ARGUMENTS, opts) for each operation: they go past
 * the host's check of capabilities, so that what a module answers to an
 * operation that it does not claim is seen.  open and close are not for calls:
 * kit_open and kit_close fail the case. */
#define KIT_X_ARG(type, name, doc) , COFFER_TYPE_##type name
#define KIT_X_RARG(type, record, name, doc) , COFFER_RTYPE_##type (record) name
#define KIT_X(id, name, since, capability, args, OPTS, doc)                   \
  int32_t kit_##name (struct kit_instance *instance,                          \
                      struct kit_reply *reply args,                           \
                      const struct coffer_##name##_opts *opts);
COFFER_OPERATIONS (KIT_X, KIT_X_ARG, KIT_X_RARG)
#undef KIT_X
#undef KIT_X_ARG
#undef KIT_X_RARG

/* The nth record of a kind, or NULL: kit_reply_sandbox_info (&reply, 0).  A
 * descriptor in one is the reply's, until it is reset. */
#define KIT_X(id, name, since, FIELDS, doc)                                   \
  const struct coffer_##name *kit_reply_##name (                              \
    const struct kit_reply *reply, size_t n);
COFFER_RECORDS (KIT_X)
#undef KIT_X

/* The operations as data: the nth id, 0 at the end; and of one its name and the
 * capability that it needs ("": none). */
uint32_t kit_operation (size_t n);
const char *kit_operation_name (uint32_t op);
const char *kit_operation_capability (uint32_t op);
/* Calls one by its id with arguments that are plain (of this sandbox; streams
 * are pipes at their end), or odd: drawn by chance from what no sane caller
 * gives and the contract allows.  What was given is said in *shown (NULL: not
 * wanted). */
int32_t kit_call_plain (struct kit_instance *instance, struct kit_reply *reply,
                        uint32_t op, const char *sandbox);
int32_t kit_call_odd (struct kit_instance *instance, struct kit_reply *reply,
                      uint32_t op, const char *sandbox, const char **shown);

/* "NOT_FOUND (no sandbox sb-x)": a reply for a message. */
const char *kit_shown (struct kit *kit, const struct kit_reply *reply);
const char *kit_code_name (int32_t code);

/* The call must have gone well, or have failed with that code; the rest is
 * what was done, for the message. */
#define KIT_OK(kit, call, reply, ...)                                         \
  KIT_CODE (kit, call, reply, COFFER_OK, __VA_ARGS__)
#define KIT_CODE(kit, call, reply, wanted, ...)                               \
  do {                                                                        \
    if ((call) != (wanted))                                                   \
      kit_fail_code (kit, reply, wanted, __VA_ARGS__);                        \
  } while (0)
_Noreturn void kit_fail_code (struct kit *kit, const struct kit_reply *reply,
                              int32_t wanted, const char *fmt, ...)
  __attribute__ ((format (printf, 4, 5)));

/* ---- sandboxes ----------------------------------------------------------- */

/* A spec that this provider can make: no network where it has that. */
struct coffer_sandbox_spec kit_spec (struct kit *kit);
/* A fresh id, created on kit_first with kit_spec; killed at the end. */
const char *kit_sandbox (struct kit *kit);
const char *kit_sandbox_with (struct kit *kit, struct kit_instance *instance,
                              const struct coffer_sandbox_spec *spec);
/* An id that nobody has; what is made under it is killed at the end. */
const char *kit_new_id (struct kit *kit);

/* ---- commands and files inside ------------------------------------------- */

/* What to run, and what came of it. */
struct kit_exec {
  const char *const *argv, *const *env;
  const char *cwd;
  const void *in;               /* standard input, when in_size or has_in */
  size_t in_size;
  int has_in;
  const struct coffer_exec_start_opts *opts;
  size_t cap;                   /* kept of each stream; 0: 16 MiB */
  struct kit_instance *instance;        /* NULL: kit_first */
  /* out: */
  const char *exec;
  uint8_t *out, *err;           /* NUL-terminated beyond their sizes */
  size_t out_size, err_size;
  const struct coffer_exec_exit *exit;
};
/* Starts, pumps, waits; returns at the end of both streams and the command.
 * Fails the case when a step fails; how the command ended is not judged. */
void kit_exec (struct kit *kit, const char *sandbox, struct kit_exec *exec);
/* sh -c SCRIPT NAME ARGS…: what a POSIX sh and busybox have may be used
 * inside.  The arguments end with NULL. */
void kit_shell (struct kit *kit, const char *sandbox, struct kit_exec *exec,
                const char *script, ... /* const char *, NULL */)
  __attribute__ ((sentinel));
/* Only start: streams of the caller's (-1: none), which it may close after.
 * The exec's id. */
const char *kit_start (struct kit *kit, const char *sandbox,
                       const char *const *argv, int in, int out, int err,
                       const struct coffer_exec_start_opts *opts);
/* A pipe whose ends are close-on-exec; they are closed with the process. */
void kit_pipe (struct kit *kit, int ends[2]);
/* Reads to the end, at most `cap` bytes; NUL-terminated beyond. */
uint8_t *kit_read_all (struct kit *kit, int fd, size_t cap, size_t *size);

void kit_write_file (struct kit *kit, const char *sandbox, const char *path,
                     const void *bytes, size_t size);
uint8_t *kit_read_file (struct kit *kit, const char *sandbox, const char *path,
                        size_t *size);
/* The working folder of a sandbox, as it says itself. */
const char *kit_workspace (struct kit *kit, const char *sandbox);

/* ---- threads ------------------------------------------------------------- */

/* Runs `work (kit, data, 0…n-1)` in n threads and waits for all. */
void kit_threads (struct kit *kit, size_t n,
                  void (*work) (struct kit *kit, void *data, size_t index),
                  void *data);
/* A descriptor that becomes readable when kit_cancel is called on it. */
int kit_cancel_new (struct kit *kit);
void kit_cancel (int fd);

/* ---- the second path: what the machine says ------------------------------ */

/* 1 where processes inside show in /proc here: kinds none, namespaces and
 * container on this machine. */
int kit_sees_processes (struct kit *kit);
/* How many processes here have this word in their arguments or environment,
 * but for the kit's own. */
int kit_marked_processes (struct kit *kit, const char *mark);
/* Until the test is true; fails the case with WHAT at its deadline. */
void kit_wait_until (struct kit *kit, int (*test) (void *data), void *data,
                     const char *what);
/* Of a worker: descriptors, threads, children, and KiB that are its own.  Where
 * its descriptors may not be counted, the size of its table of them stands for
 * their number: it doubles when it is full. */
struct kit_usage {
  uint32_t fds, fd_table, threads, children;
  uint64_t private_kib;
};
int kit_usage (struct kit_instance *instance, struct kit_usage *out);
/* What most of its descriptors are, for whoever looks for a leak of them. */
void kit_most_descriptors (struct kit_instance *instance, char *out,
                           size_t size);
int64_t kit_now_us (void);
/* Until the case's deadline; 0: it has passed. */
int64_t kit_left_us (struct kit *kit);

/* ---- what the whole run saw, for KIT_LAST -------------------------------- */

/* Has this code been returned by the provider, by any case so far?  op 0: any
 * operation. */
int kit_code_seen (struct kit *kit, uint32_t op, int32_t code);
/* What no answer may have; where the first one was that had it, NULL: none. */
enum kit_finding {
  KIT_FOUND_SECRET,             /* of the configuration */
  KIT_FOUND_EMIT,               /* a record that the operation does not emit */
  KIT_FOUND_CODE,               /* a number that is no code */
  KIT_FOUND_RETRYABLE,          /* what its code excludes, or no such flag */
  KIT_FINDINGS
};
const char *kit_found (struct kit *kit, enum kit_finding finding);
/* 1: cases were left out, so that what is missing proves nothing. */
int kit_is_partial (struct kit *kit);

#endif /* KIT_H */
