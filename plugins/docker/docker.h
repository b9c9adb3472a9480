/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the docker provider: a client of the REST API that Docker's
 * engine and Podman's service both speak.
 *
 * It keeps nothing about sandboxes: a sandbox is a container whose name is made
 * of this host's id and the sandbox's (docker_container_name), so that every
 * process of this host asks the engine for it by name, without a table or a
 * look-up.  The engine makes one name once, which is what makes creating twice
 * one sandbox.  Other hosts' containers have other names and labels.
 *
 * In each container lies the provider's own program (inside.h), shown read-only
 * at INSIDE_PATH: it is the first process, which reaps and keeps the time, and
 * it runs commands and works on files, so that an image needs nothing.
 *
 * Threads: `struct docker` does not change after open, but for what stands
 * below `lock`, which is never held across a request. */

#ifndef DOCKER_DOCKER_H
#define DOCKER_DOCKER_H

#include <pthread.h>

#include <jansson.h>

#include <coffer/buffer.h>
#include <coffer/http.h>
#include <coffer/provider.h>

#include "inside.h"

enum docker_kind { ENGINE_UNKNOWN, ENGINE_DOCKER, ENGINE_PODMAN };

/* UNKNOWN: not asked for; OTHER: nobody here knows that runtime. */
enum docker_kernel { KERNEL_UNKNOWN, KERNEL_SHARED, KERNEL_GVISOR, KERNEL_OTHER };

/* What the engine says of itself, asked once. */
struct docker_engine {
  enum docker_kind kind;
  int api;                      /* of 1.API, as negotiated: 41 or more */
  char version[64];             /* of the engine, for people */
};

struct docker_config {
  char *engine;                 /* unix:///PATH, tcp://HOST:PORT, https://… */
  char *image;                  /* of sandboxes that name none; NULL: none */
  char *images;                 /* TEMPLATE=IMAGE, by blanks */
  char *entrypoint;             /* words by blanks, or `image`; NULL: none */
  char *runtime;                /* NULL: the engine's default */
  char *registry_auth;          /* NULL: none */
  char *user;                   /* of commands: UID:GID, never 0 */
  char *ca, *certificate, *key; /* PEM; NULL: what `tls` has */
  char *tls;                    /* folder of ca.pem, cert.pem, key.pem */
  int pull;                     /* what is missing is pulled */
  int64_t pull_timeout_ns;
};

struct keep;
struct port;
struct watching;
struct docker_execs;            /* execs.c: commands that this worker relays */

struct docker {
  struct docker_config config;
  char host[17];                /* this host, as 16 hexadecimal digits */
  int runtime;                  /* private folder; -1: none */
  char *program_path;           /* where the engine finds the program inside;
                                 * NULL: it could not be put there */
  struct docker_execs *execs;
  struct coffer_http *http;
  int stop;                     /* readable once the instance is closed */

  pthread_mutex_t lock;
  struct docker_engine engine;  /* kind is UNKNOWN until the engine was asked */
  enum docker_kernel kernel;    /* kernel.c: of the last that was asked for */
  struct keep *keeps;           /* hold.c: lifelines */
  struct port *ports;           /* ports.c: connections */
  struct watching *watching;    /* archive.c */
};

/* ---- config.c ----------------------------------------------------------- */

/* From KEY=VALUE: COFFER_OK, or INVALID with what is wrong. */
int32_t docker_configure (struct coffer_call *call, struct docker *docker,
                          const char *const *config);
void docker_config_fini (struct docker_config *config);

/* ---- engine.c: requests ------------------------------------------------- */

/* The engine, asked at the first call: COFFER_OK, or UNAVAILABLE with what to
 * do, UNSUPPORTED for one that is too old.  `out` may be NULL. */
int32_t docker_engine (struct coffer_call *call, struct docker *docker,
                       struct docker_engine *out);
/* "/v1.NN" and the formatted path, for a request to docker->http: text without
 * a failure, as long as the engine was asked. */
void docker_path (struct docker *docker, struct coffer_buffer *path,
                  const char *format, ...)
  __attribute__ ((format (printf, 3, 4)));
/* Asks with a JSON body (NULL: none; borrowed) for a path as of docker_path.
 * COFFER_OK: the engine has answered, with whatever status, in *reply; else
 * what coffer_fail has returned.  The call's deadline and cancel fd are kept. */
int32_t docker_ask (struct coffer_call *call, struct docker *docker,
                    const char *method, const json_t *body,
                    struct coffer_http_reply *reply, const char *format, ...)
  __attribute__ ((format (printf, 6, 7)));
/* coffer_fail for a status of 400 and more, with the engine's own words: 404
 * NOT_FOUND, 409 CONFLICT, 400 INVALID, 401 UNAUTHENTICATED, 403 DENIED, 429
 * BUSY, others IO; `what` was tried. */
int32_t docker_fail (struct coffer_call *call,
                     const struct coffer_http_reply *reply, const char *what);
/* Between these two nothing that fails is told to the host: for work whose
 * failure is not the call's. */
struct docker_hush {
  struct coffer_host host;
  const struct coffer_host *kept;
  int32_t cancel_fd;            /* the call's, which come back at the end */
  int64_t deadline_ns;
};
void docker_hush (struct coffer_call *call, struct docker_hush *hush);
/* And it is given up by nobody, and has a time of its own, also when the call's is
 * over: for taking back what was begun, as long as the host lets a call live of which
 * it waits for no more.  What is not taken back by then, the next who looks finds.
 * deadline_ns is the call's. */
void docker_hush_undo (struct coffer_call *call, struct docker_hush *hush,
                       int64_t deadline_ns);
void docker_unhush (struct coffer_call *call, const struct docker_hush *hush);
/* The engine's words of a failure, for people; never NULL. */
const char *docker_words (const struct coffer_http_reply *reply);
/* At open; connects to nothing. */
int32_t docker_engine_init (struct coffer_call *call, struct docker *docker);
void docker_engine_fini (struct docker *docker);

/* ---- program.c: the program inside, where the engine can see it --------- */

/* At open, from the sealed one; program_path stays NULL where it cannot be. */
void docker_program_place (struct docker *docker, int program);

/* ---- sandbox.c: containers by name -------------------------------------- */

#define LABEL_HOST "coffer.host"
#define LABEL_SANDBOX "coffer.sandbox"
#define LABEL_EXPIRES "coffer.expires"          /* nanoseconds, at its making */
#define LABEL_IMAGE "coffer.image"              /* as it was asked for */
#define LABEL_METADATA "coffer.metadata"        /* a JSON list of strings */

#define DOCKER_NAME_MAX 96      /* bytes of a container's name with its NUL */

/* "coffer-HOST-SANDBOX".  INVALID for what is no id. */
int32_t docker_container_name (struct coffer_call *call,
                               const struct docker *docker,
                               const char *sandbox,
                               char name[DOCKER_NAME_MAX]);

/* One container, by name.  What is not ours, has ended, was never started or is
 * past its time (then it is removed) is NOT_FOUND. */
struct docker_sandbox {
  int running, paused;          /* paused is running as well */
  int64_t created_ns, expires_ns;       /* since the epoch; 0: none */
  const char *id;               /* the engine's */
  const char *image_id;         /* "sha256:…" */
  const json_t *labels;
  json_t *answer;               /* the engine's whole one, which has these */
};
int32_t docker_sandbox_find (struct coffer_call *call, struct docker *docker,
                             const char *sandbox, struct docker_sandbox *out);
/* The same, whatever its state, and nothing is removed. */
int32_t docker_sandbox_look (struct coffer_call *call, struct docker *docker,
                             const char *sandbox, struct docker_sandbox *out);
void docker_sandbox_fini (struct docker_sandbox *sandbox);
#define auto_sandbox __attribute__ ((cleanup (docker_sandbox_fini)))
/* As docker_fail, for a request that names a container: engines say with several
 * statuses that it is gone or paused; those become NOT_FOUND and CONFLICT, with
 * the sandbox's id. */
int32_t docker_fail_sandbox (struct coffer_call *call, struct docker *docker,
                             const struct coffer_http_reply *reply,
                             const char *sandbox, const char *what);
int32_t docker_fail_gone (struct coffer_call *call, const char *sandbox);
/* Removes the container and all that was made for it: COFFER_OK, NOT_FOUND
 * without a failure when there was none, or what coffer_fail has returned. */
int32_t docker_remove (struct coffer_call *call, struct docker *docker,
                       const char *name);
/* The same for one that does not run, or not for long: unless somebody is just
 * making it, or it runs after all.  Nobody waits for that to succeed: the next
 * who looks tries it again. */
void docker_clear (struct coffer_call *call, struct docker *docker,
                   const char *name, const char *sandbox);
/* Those of its volumes that nobody uses. */
void docker_remove_volumes (struct coffer_call *call, struct docker *docker,
                            const char *name);
/* Emits sandbox_info. */
int32_t docker_emit (struct coffer_call *call, const char *sandbox,
                     const struct docker_sandbox *found);
/* One of the engine's list of containers, which is borrowed. */
void docker_sandbox_listed (const struct docker *docker, const json_t *entry,
                            struct docker_sandbox *out);

/* Nanoseconds since the epoch of an engine's time; 0: it is none. */
int64_t docker_time_ns (const char *text);

/* Ends that were set later, one file a sandbox: 0 is none. */
int64_t docker_end_read (const struct docker *docker, const char *name);
int docker_end_write (const struct docker *docker, const char *name,
                      int64_t expires_ns);
void docker_end_forget (const struct docker *docker, const char *name);

/* ---- maker.c: one at a time makes or clears away a sandbox -------------------- */

/* Could it be one of a container or volume?  What an engine says is one may be
 * anything, and becomes a file's name here. */
int docker_is_name (const char *text);
/* Its lock, or -1 with EWOULDBLOCK: somebody is at work with it; EINVAL: it is no
 * name. */
int docker_maker_try (const struct docker *docker, const char *name);
/* The same, waiting for as long as the call may. */
int32_t docker_maker_take (struct coffer_call *call,
                           const struct docker *docker, const char *name,
                           int *lock);
void docker_maker_end (const struct docker *docker, const char *name,
                       int *lock);

/* ---- kernel.c: the machine's, or a runtime's own ----------------------------- */

/* That of a runtime by its name, and by what the engine's /info (NULL: not asked)
 * says of it. */
enum docker_kernel docker_kernel_named (const char *name, const json_t *info);
/* That of a container which was made. */
int32_t docker_kernel_of (struct coffer_call *call, struct docker *docker,
                          const struct docker_engine *engine,
                          const char *container, enum docker_kernel *kernel);
/* Before a container is removed: lets one go on that could not be ended
 * otherwise. */
void docker_kernel_wake (struct coffer_call *call, struct docker *docker,
                         const char *container);
/* What one that is made now most likely has; UNKNOWN: it may be any. */
enum docker_kernel docker_kernel_guess (struct docker *docker);

/* ---- spec.c: what a container is made of -------------------------------- */

/* COFFER_OK, or UNSUPPORTED or INVALID with the field. */
int32_t docker_spec_check (struct coffer_call *call,
                           const struct docker *docker, const char *sandbox,
                           const struct coffer_sandbox_spec *spec);
/* OK for the configured user, UNSUPPORTED with its number for any other. */
int32_t docker_check_user (struct coffer_call *call,
                           const struct docker *docker, const char *user);
/* The body of a create, for a container of that kernel; `entrypoint` is a list of
 * words or NULL, and borrowed.  NULL: out of memory, or what is no UTF-8. */
json_t *docker_spec_body (const struct docker *docker,
                          const struct docker_engine *engine,
                          enum docker_kernel kernel, const char *name,
                          const char *sandbox, const char *image,
                          const json_t *entrypoint,
                          const struct coffer_sandbox_spec *spec);
/* Is the caller's own folder shown in this place? */
int docker_spec_shows (const struct coffer_sandbox_spec *spec,
                       const char *target);
/* "60998:GROUP", the user of the first process: the caller's to release. */
json_t *docker_spec_holder (const struct docker *docker);
/* The n-th volume that goes with a container: its body; NULL: no more. */
json_t *docker_spec_volume (const struct docker *docker,
                            const struct docker_engine *engine,
                            const char *name, size_t n,
                            const struct coffer_sandbox_spec *spec);

/* ---- credentials.c ------------------------------------------------------ */

/* Adds the header "X-Registry-Auth: …" of the image's registry, or nothing where no
 * credentials are kept for it. */
int32_t docker_credentials (struct coffer_call *call,
                            const struct docker *docker, const char *image,
                            struct coffer_buffer *header);
/* Every byte or string that it has is overwritten first. */
void docker_buffer_wipe (struct coffer_buffer *buffer);
void docker_json_wipe (json_t **json);
#define docker_autowiped __attribute__ ((cleanup (docker_buffer_wipe)))
#define docker_autowiped_json __attribute__ ((cleanup (docker_json_wipe)))

/* ---- images.c ----------------------------------------------------------- */

/* Which image a specification means: the caller frees.  INVALID: none. */
int32_t docker_image_name (struct coffer_call *call,
                           const struct docker *docker,
                           const struct coffer_sandbox_spec *spec,
                           char **image);
/* The entrypoint that is configured: *words is NULL (none) or the caller's. */
int32_t docker_image_entrypoint (struct coffer_call *call,
                                 struct docker *docker, const char *image,
                                 json_t **words);
/* With progress and a deadline of its own. */
int32_t docker_image_pull (struct coffer_call *call, struct docker *docker,
                           const char *image);

/* ---- hold.c: attached to the first process ------------------------------ */

/* Before the start: *fd is the stream. */
int32_t docker_attach (struct coffer_call *call, struct docker *docker,
                       const char *name, int *fd);
/* After it: tells the first process what the sandbox has, and waits for what it
 * found and for its word that all is there. */
struct answer {
  unsigned head;                /* these two for docker_tell only */
  uint32_t left;
  size_t size;
  char text[INSIDE_ANSWER_MOST];
};
int32_t docker_tell (struct coffer_call *call, int is_kernel_shared, int fd,
                     const struct coffer_sandbox_spec *spec, int restores,
                     struct answer *answer);
/* With `restores` it waits before it begins, for this to say that the files are
 * there, and ends without it. */
int32_t docker_tell_restored (struct coffer_call *call, int fd,
                              struct answer *answer);
/* Keeps the stream until `lifeline` (borrowed) ends, in a thread; takes *fd.
 * -1 with errno: the stream has ended, and with it the sandbox. */
int docker_keep (struct docker *docker, int *fd, int lifeline);
/* At close: ends them all. */
void docker_keeps_end (struct docker *docker);

/* ---- execs.c, stream.c: commands that this worker relays ---------------- */

struct docker_execs *docker_execs_new (void);
/* When no call uses them; commands in the foreground end. */
void docker_execs_free (struct docker_execs *execs);
/* A sandbox was killed or has gone: its commands are forgotten. */
void docker_execs_forget (struct docker *docker, const char *sandbox);

/* ---- ports.c -------------------------------------------------------------- */

/* At close: ends all connections. */
void docker_ports_end (struct docker *docker);

/* ---- the operations ----------------------------------------------------- */

#define OPERATION(name, ...)                                                  \
  int32_t docker_##name (struct coffer_call *call, void *self, __VA_ARGS__)

/* probe.c, sandbox.c, life.c, metrics.c, ports.c */
int32_t docker_probe (struct coffer_call *call, void *self,
                      const struct coffer_probe_opts *opts);
OPERATION (sandbox_create, const char *sandbox,
           const struct coffer_sandbox_spec *spec,
           const struct coffer_sandbox_create_opts *opts);
OPERATION (sandbox_info, const char *sandbox,
           const struct coffer_sandbox_info_opts *opts);
OPERATION (sandbox_list, const struct coffer_sandbox_list_opts *opts);
OPERATION (sandbox_kill, const char *sandbox,
           const struct coffer_sandbox_kill_opts *opts);
OPERATION (sandbox_extend, const char *sandbox, uint64_t ttl_ms,
           const struct coffer_sandbox_extend_opts *opts);
OPERATION (sandbox_pause, const char *sandbox,
           const struct coffer_sandbox_pause_opts *opts);
OPERATION (sandbox_resume, const char *sandbox,
           const struct coffer_sandbox_resume_opts *opts);
OPERATION (metrics, const char *sandbox,
           const struct coffer_metrics_opts *opts);
OPERATION (port_resolve, const char *sandbox, uint32_t port,
           const struct coffer_port_resolve_opts *opts);
OPERATION (port_dial, const char *sandbox, uint32_t port,
           const struct coffer_port_dial_opts *opts);

/* exec.c */
OPERATION (exec_start, const char *sandbox, const char *const *argv,
           const char *const *env, const char *cwd, int32_t in, int32_t out,
           int32_t err, const struct coffer_exec_start_opts *opts);
OPERATION (exec_wait, const char *sandbox, const char *exec,
           const struct coffer_exec_wait_opts *opts);
OPERATION (exec_list, const char *sandbox,
           const struct coffer_exec_list_opts *opts);
OPERATION (exec_attach, const char *sandbox, const char *exec, int32_t out,
           int32_t err, const struct coffer_exec_attach_opts *opts);
OPERATION (exec_signal, const char *sandbox, const char *exec, int32_t number,
           const struct coffer_exec_signal_opts *opts);
OPERATION (exec_resize, const char *sandbox, const char *exec, uint32_t rows,
           uint32_t columns, const struct coffer_exec_resize_opts *opts);
OPERATION (exec_stdin_close, const char *sandbox, const char *exec,
           const struct coffer_exec_stdin_close_opts *opts);

/* files.c */
OPERATION (file_read, const char *sandbox, const char *path, int32_t out,
           const struct coffer_file_read_opts *opts);
OPERATION (file_write, const char *sandbox, const char *path, int32_t in,
           const struct coffer_file_write_opts *opts);
OPERATION (file_stat, const char *sandbox, const char *path,
           const struct coffer_file_stat_opts *opts);
OPERATION (file_list, const char *sandbox, const char *path,
           const struct coffer_file_list_opts *opts);
OPERATION (file_mkdir, const char *sandbox, const char *path,
           const struct coffer_file_mkdir_opts *opts);
OPERATION (file_remove, const char *sandbox, const char *path,
           const struct coffer_file_remove_opts *opts);
OPERATION (file_rename, const char *sandbox, const char *from, const char *to,
           const struct coffer_file_rename_opts *opts);

/* archive.c */
OPERATION (archive_export, const char *sandbox, const char *path, int32_t out,
           const struct coffer_archive_export_opts *opts);
OPERATION (archive_import, const char *sandbox, const char *path, int32_t in,
           const struct coffer_archive_import_opts *opts);
OPERATION (file_watch, const char *sandbox, const char *path,
           const struct coffer_file_watch_opts *opts);

/* snapshot.c, save.c */
OPERATION (snapshot_create, const char *sandbox, const char *name,
           const struct coffer_snapshot_create_opts *opts);
OPERATION (snapshot_list, const struct coffer_snapshot_list_opts *opts);
OPERATION (snapshot_delete, const char *snapshot,
           const struct coffer_snapshot_delete_opts *opts);

#endif /* DOCKER_DOCKER_H */
