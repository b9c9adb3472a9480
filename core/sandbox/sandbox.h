/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes as a user knows them: records, life cycle, commands, files.
 *
 * Every function works on a `struct host`: the records, the registry and the
 * providers opened so far.  The intent row is written before a provider is
 * asked, so that whatever happens the next start finds, adopts or removes
 * what was begun (host_sweep).  What is ephemeral is noted in the runtime folder
 * instead (runs.h): `run` needs no state folder. */

#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "base/place.h"
#include "provider/provider.h"
#include "provider/registry.h"

#define SANDBOX_ID_SIZE 30      /* "sb-" + 26 characters + NUL */

enum sandbox_state { SANDBOX_CREATING, SANDBOX_RUNNING, SANDBOX_PAUSED,
                     SANDBOX_STOPPING, SANDBOX_GONE, SANDBOX_LOST };

/* One mount that the caller asked for. */
struct sandbox_mount {
  char *source;
  char *target;
  int writable;
  int is_open;                  /* source_fd is it (O_PATH), by who may see it;
                                 * the name is for people */
  int source_fd;
};

/* What the caller asks for.  Zeroed: all defaults.  `asked_*` say that a value
 * is the caller's own, so that an unclaimed capability is refused rather than
 * listed as not applied. */
struct sandbox_request {
  const char *provider;         /* NULL: the default */
  const char *tenant;           /* whose it is to be; NULL: "default" */
  const char *id;               /* what it is to be called, as sandbox_id_new
                                 * makes them; NULL: a new one */
  const char *template_name, *image, *profile, *workdir, *user, *network;
  const char *const *env;       /* NAME=VALUE */
  const char *const *allow, *const *ports, *const *metadata;
  size_t n_mounts;
  struct sandbox_mount *mounts;
  uint64_t memory_bytes, disk_bytes, inodes, ttl_ms;
  uint32_t cpu_millis, pids;
  int asked_ttl;
  int ephemeral;                /* dies with this process */
  int single_exec;
  int isolated;                 /* refused where the provider isolates nothing */
  int no_facts;                 /* applied is to have none: a run shows none */
  const char *warm;             /* a copy of what stands ready by that handle
                                 * waits inside; NULL: none */
  /* Protecting defaults that the caller does without, by their capability
   * word ("limit.memory"); the operator's list is the registry's `accept`. */
  const char *const *accept;
  /* What only a profile says; see coffer-profile(5). */
  const char *filter;
  const char *const *require;
  uint64_t address_bytes, file_bytes;
  uint32_t open_files;
  int root_writable;
  int host_network;             /* may be asked for */
  /* Of each command: unless it says, at most, and only that. */
  uint64_t timeout_ms, timeout_max_ms;
  int timeout_locked;
  uint64_t ttl_max_ms;          /* of what lives on, however often extended */
  int ttl_locked;
  uint64_t asked_timeout_ms;    /* for the one command of a run */
  const char *template_digest;  /* set by sandbox_create */
};

struct sandbox_record {
  char id[SANDBOX_ID_SIZE];
  char *provider, *native_id, *tenant, *spec /* JSON, names only for env */;
  enum sandbox_state state;
  int64_t created_ns, expires_ns;       /* since the epoch; 0: not known */
  uint64_t generation;
  /* The process that makes it (creating) or whose lifeline it hangs on
   * (ephemeral); 0: none.  In state.db with the two that follow, against reused
   * pids; in a file of runs.h, whose lock does that, with the last. */
  int64_t owner_pid;
  int64_t owner_start;          /* its start time, in ticks since boot */
  char *owner_where;            /* boot and pid namespace of both */
  int64_t owner_namespace;      /* inode of its pid namespace */
  int64_t deadline_ns;          /* creating: when to stop believing in it */
};
void sandbox_record_free (struct sandbox_record *record);
DEFINE_CLEANUP (struct sandbox_record *, sandbox_record_free,
                auto_sandbox_record)
#define auto_sandbox_record CLEANUP (auto_sandbox_record)

const char *sandbox_state_name (enum sandbox_state state);
/* Time-ordered: 48 bits of milliseconds and 82 random bits, in lower-case
 * Crockford-like base32.  Ids made later sort later. */
int sandbox_id_new (char out[SANDBOX_ID_SIZE], struct error **err);
int sandbox_id_valid (const char *id);

/* ---- the host ----------------------------------------------------------- */

struct host;
enum host_flag {
  HOST_EPHEMERAL = 1,           /* `run`: no state.db, nothing that lives on */
  HOST_IN_PROCESS = 2,          /* shipped providers in this process */
  HOST_NO_HOST = 4              /* never the provider `host`, which is none */
};
int host_open (const struct place *place, unsigned flags, struct host **out,
               struct error **err);
void host_close (struct host *host);
DEFINE_CLEANUP (struct host *, host_close, auto_host)
#define auto_host CLEANUP (auto_host)
/* The provider's registry entry and its opened instance (opened once). */
int host_provider (struct host *host, const char *id, struct provider **out,
                   struct error **err);
/* What the operator changes counts for a host that lasts, too: it looks once a
 * second, and at once after this. */
void host_look_again (struct host *host);
/* Finds what earlier processes left: rows of dead owners and creations that
 * never finished.  Cheap when there is nothing.  sandbox_list begins with it
 * and host_close ends with it, so that each command clears up what the one
 * before could not; what has failed once is left to sandbox_prune. */
int host_sweep (struct host *host, struct error **err);
/* For a host that ends with one command, which is at work now: looks whether
 * there is anything to sweep.  Where there is not, nothing is looked for when
 * that command is over, which its user waits for. */
void host_sweep_soon (struct host *host);

/* ---- life cycle --------------------------------------------------------- */

/* For who waits for one and may leave: time enough to pull an image.  A call
 * without a deadline has a minute. */
#define SANDBOX_CREATE_MS (15 * 60000)

int sandbox_create (struct host *host, const struct sandbox_request *request,
                    const struct provider_call *call,
                    struct sandbox_record **out, json_t **applied,
                    struct error **err);
/* Fresh from the provider and the record: the JSON that info prints. */
int sandbox_info (struct host *host, const char *id,
                  const struct provider_call *call, json_t **out,
                  struct error **err);
int sandbox_list (struct host *host, json_t **out, struct error **err);
/* Some of them, in order of id, which is that of their making. */
struct sandbox_filter {
  const char *tenant, *provider, *state;        /* NULL: any */
  const char *const *metadata;  /* NAME=VALUE, each of which it has */
  const char *after;            /* begins behind this id; NULL: at the first */
  size_t limit;                 /* 0: all */
};
/* *more: there are others behind the last. */
int sandbox_select (struct host *host, const struct sandbox_filter *filter,
                    json_t **out, int *more, struct error **err);
/* 0 when there is such a sandbox and it is that tenant's, else
 * E_UNKNOWN_SANDBOX: to others it is not there.  Neither here nor where a filter
 * names a tenant is what this process runs code in, or holds ready for it, and
 * ends itself: who could enter it would meet what the next one runs. */
int sandbox_check_tenant (struct host *host, const char *id,
                          const char *tenant, struct error **err);
/* The ids of those of one provider that are not gone. */
int sandbox_of_provider (struct host *host, const char *provider, json_t **out,
                         struct error **err);
/* already_gone: nobody knew it; that is success. provider NULL: from the
 * record; without one every enabled provider is asked. */
int sandbox_kill (struct host *host, const char *provider, const char *id,
                  const struct provider_call *call, int *already_gone,
                  struct error **err);
int sandbox_extend (struct host *host, const char *id, uint64_t ttl_ms,
                    const struct provider_call *call, json_t **out,
                    struct error **err);
/* Stops all that runs in it, while its time to live goes on; and lets it go on.
 * *out: as sandbox_info gives. */
int sandbox_pause (struct host *host, const char *id,
                   const struct provider_call *call, json_t **out,
                   struct error **err);
int sandbox_resume (struct host *host, const char *id,
                    const struct provider_call *call, json_t **out,
                    struct error **err);
/* {name: number}: what the provider has measured, and nothing else. */
int sandbox_metrics (struct host *host, const char *id,
                     const struct provider_call *call, json_t **out,
                     struct error **err);
/* Kills what has expired, drops rows of what is gone, tries again what could
 * not be cleaned before: {"killed": [id], "dropped": [id], "kept": [{"id",
 * "reason"}]}. */
int sandbox_prune (struct host *host, json_t **out, struct error **err);

/* ---- signals ------------------------------------------------------------ */

/* Catches SIGINT, SIGTERM, SIGHUP and SIGQUIT, and keeps SIGPIPE from ending
 * the process, with handlers (which a program that is executed does not
 * inherit).  Returns a descriptor that becomes readable once one of the first
 * four has come and stays so: give it as cancel_fd to calls and to
 * sandbox_exec.  It belongs to this module; calling again returns the same.
 * A caller that was ended by it exits with 128 + sandbox_signal_caught. */
int sandbox_signals_catch (struct error **err);
int sandbox_signal_caught (void);       /* 0: none so far */

/* ---- commands ----------------------------------------------------------- */

/* Where a stream of a command goes: given on as it comes, and counted. */
struct exec_streams {
  int in;                       /* read from here; -1: /dev/null */
  int out, err;                 /* written here; -1: dropped */
  int tty;                      /* a terminal of ours is relayed, raw */
  /* NULL, or one end of a socketpair: given to the command as its standard
   * input, instead of `in`, and closed here once it has it. */
  int *channel;
  /* Called with bytes instead of writing them, when set (--json). */
  void (*output) (void *data, int stream, const char *bytes, size_t size);
  void *data;
};

struct exec_request {
  const char *const *argv, *const *env;
  const char *cwd, *user;
  const char *warm;             /* handle of warm_open; NULL: a fresh program */
  uint64_t timeout_ms;
  int background;
  uint32_t rows, columns;
};

struct exec_result {
  char *exec;
  int code;                     /* exit code; -1 with a signal */
  int signal;
  int timed_out, oom;
  char **limits_hit;
  uint64_t duration_us, cpu_us, out_bytes, err_bytes;
  uint64_t timeout_ms;          /* in force; 0: none */
  char *failure;                /* never ran: why */
  int failure_errno;
  json_t *facts;                /* what the provider has to say of it, or NULL */
};
void exec_result_fini (struct exec_result *result);
/* 0 to 255 as a shell would: code, 128+signal, 124, 125, 126, 127. */
int exec_exit_status (const struct exec_result *result);
/* The facts of its end, as `exec --json` has them in "exit". */
json_t *exec_result_json (const struct exec_result *result);

/* The bounds of every field, which sandbox_exec checks as well: for who must
 * know before the sandbox is made. */
int sandbox_exec_check (const struct exec_request *request,
                        struct error **err);

/* Starts a command and relays its streams until it ends.  in: what is read
 * from streams->in goes through a pipe that the host made.  A reader of
 * streams->out that is gone ends the command as in a shell: its next write
 * gets SIGPIPE.  tty: streams->in is put into raw mode and always restored;
 * the new size after SIGWINCH is given on.  background: returns once the
 * command runs, with result->exec, and result->failure when it could not.  cancel_fd readable: an ephemeral sandbox
 * is killed, in another one the command is signalled; E_EXEC_CANCELLED. */
int sandbox_exec (struct host *host, const char *id,
                  const struct exec_request *request,
                  const struct exec_streams *streams, int cancel_fd,
                  struct exec_result *result, struct error **err);

/* A command on streams that the caller keeps, for longer than a call: pipes
 * whose other ends are its own, or (tty) the slave of a terminal as the first.
 * unwatched: of the timeouts of a profile only the most applies, and what is
 * locked.  over: it has ended already, or could not be started. */
struct exec_begun {
  char *exec;
  struct provider *provider;
  int over;
  uint64_t timeout_ms;          /* in force; 0: none */
  int64_t started_ns;
};
void exec_begun_fini (struct exec_begun *begun);
int sandbox_exec_begin (struct host *host, const char *id,
                        const struct exec_request *request, const int fds[3],
                        int tty, int unwatched, int cancel_fd,
                        struct exec_begun *out, struct error **err);
/* How it ended.  Until then each waiting call is one of those that a provider
 * takes at once: better asked late and again than waited in for long. */
int sandbox_exec_end (struct provider *provider, const char *id,
                      const char *exec, int64_t deadline_ns, int cancel_fd,
                      struct exec_result *result, struct error **err);

/* [{"exec", "state", "started_ns", "background"}] of what is known still. */
int sandbox_exec_list (struct host *host, const char *id,
                       const struct provider_call *call, json_t **out,
                       struct error **err);
/* Gives on what is kept of a command in the background, then what comes, and
 * waits for its end.  cancel_fd readable: E_EXEC_CANCELLED, and the command
 * runs on. */
int sandbox_attach (struct host *host, const char *id, const char *exec,
                    const struct exec_streams *streams, int cancel_fd,
                    struct exec_result *result, struct error **err);
/* "9", "KILL" or "SIGKILL"; 0: none of those. */
int exec_signal_number (const char *word);
/* To the command's process group. */
int sandbox_exec_signal (struct host *host, const char *id, const char *exec,
                         int number, const struct provider_call *call,
                         struct error **err);

/* ---- ports -------------------------------------------------------------- */

/* *address: where a port of it is reached from here, or NULL: only by
 * dialling. */
int sandbox_port (struct host *host, const char *id, uint32_t port,
                  const struct provider_call *call, char **address,
                  struct error **err);
/* A connected descriptor, the caller's. */
int sandbox_dial (struct host *host, const char *id, uint32_t port,
                  const struct provider_call *call, int *out,
                  struct error **err);

struct port_forward {
  const char *sandbox;
  uint32_t port;
  int listener;                 /* accepts here; -1: `in` and `out` are one
                                 * connection */
  int in, out;
  int cancel_fd;                /* readable: over, which is success */
  /* A connection that could not be made; NULL: nobody is told. */
  void (*failed) (void *data, const struct error *error);
  void *data;
};
/* Every connection to the listener is one to the port, until cancelled or the
 * sandbox is gone. */
int sandbox_forward (struct host *host, const struct port_forward *forward,
                     struct error **err);

/* Two connections that are one: what each sends goes to the other, the end of
 * what it sends too. */
struct port_join {
  int here, there;              /* sockets; the caller's to close */
  /* What was read of each already, and goes first. */
  const char *from_here, *from_there;
  size_t from_here_size, from_there_size;       /* 64 KiB at most */
  int cancel_fd;                /* readable: over, which is success */
  int idle_ms;                  /* over when nothing moves for so long */
  int half_ms;                  /* the same once one side sends no more */
};
int sandbox_join (const struct port_join *join, struct error **err);

/* ---- files -------------------------------------------------------------- */

/* Copies a local descriptor into the sandbox or back.  Both sides are
 * compared before success, the sandbox's by reading it back through the
 * provider: with the local file, or by length and SHA-256.  E_FILE_MISMATCH,
 * and what was written is removed. */
struct upload {
  int local;                    /* read from its place to its end */
  const char *path;
  uint32_t mode;                /* 0: that of the file there, else 0644 */
  int parents, exclusive;       /* exclusive: E_FILE_EXISTS */
  /* Lower-case hex of what shall have come, else E_BODY; NULL: anything. */
  const char *sha256;
  /* Asked at the end of `local`: was that all of it?  E_BODY; NULL: it was. */
  int (*whole) (void *data);
  void *data;
};
int sandbox_upload_as (struct host *host, const char *id,
                       const struct upload *upload,
                       const struct provider_call *call, json_t **out,
                       struct error **err);
/* The same with nothing but what every upload has. */
int sandbox_upload (struct host *host, const char *id, int local,
                    const char *path, uint32_t mode, int parents,
                    const struct provider_call *call, json_t **out,
                    struct error **err);
int sandbox_download (struct host *host, const char *id, const char *path,
                      int local, const struct provider_call *call,
                      json_t **out, struct error **err);
/* most: E_LIMIT where there are more entries; 0: as many as there are. */
int sandbox_ls (struct host *host, const char *id, const char *path,
                uint32_t depth, size_t most, const struct provider_call *call,
                json_t **out, struct error **err);
/* {"path", "kind", "size_bytes", "mode", "modified_ns", "target"}; links are
 * not followed. */
int sandbox_stat (struct host *host, const char *id, const char *path,
                  const struct provider_call *call, json_t **out,
                  struct error **err);
int sandbox_mkdir (struct host *host, const char *id, const char *path,
                   int parents, const struct provider_call *call,
                   struct error **err);
int sandbox_rename (struct host *host, const char *id, const char *from,
                    const char *to, const struct provider_call *call,
                    struct error **err);
int sandbox_remove (struct host *host, const char *id, const char *path,
                    int recursive, const struct provider_call *call,
                    struct error **err);
/* Unpacks the tar that comes from `local` into a folder, all of it or nothing.
 * whole: as for an upload. */
int sandbox_import (struct host *host, const char *id, const char *path,
                    int local, int (*whole) (void *data), void *data,
                    const struct provider_call *call, struct error **err);

/* ---- what is given on while it comes ------------------------------------ */

/* Bytes that a provider writes, read piece by piece.  The end of the call's
 * life, its cancel_fd and its deadline end it. */
struct sandbox_stream;
/* From `offset` on, at most `length` bytes; 0: to the end. */
int sandbox_read (struct host *host, const char *id, const char *path,
                  uint64_t offset, uint64_t length,
                  const struct provider_call *call,
                  struct sandbox_stream **out, struct error **err);
/* A folder as tar. */
int sandbox_export (struct host *host, const char *id, const char *path,
                    const struct provider_call *call,
                    struct sandbox_stream **out, struct error **err);
/* sandbox_ls, a line of JSON for each entry. */
int sandbox_list_lines (struct host *host, const char *id, const char *path,
                        uint32_t depth, const struct provider_call *call,
                        struct sandbox_stream **out, struct error **err);
/* {"path", "kind"} a line for each change below a folder, until cancelled. */
int sandbox_watch (struct host *host, const char *id, const char *path,
                   const struct provider_call *call,
                   struct sandbox_stream **out, struct error **err);
/* Waits.  1: something is there to be read; 0: the call went well, and there
 * is nothing more; -1: it failed. */
int sandbox_stream_ready (struct sandbox_stream *stream, struct error **err);
/* At least one byte, or as sandbox_stream_ready.  *n: how many, on 1. */
int sandbox_stream_take (struct sandbox_stream *stream, char *out, size_t max,
                         size_t *n, struct error **err);
void sandbox_stream_free (struct sandbox_stream *stream);
DEFINE_CLEANUP (struct sandbox_stream *, sandbox_stream_free,
                auto_sandbox_stream)
#define auto_sandbox_stream CLEANUP (auto_sandbox_stream)

#endif /* SANDBOX_SANDBOX_H */
