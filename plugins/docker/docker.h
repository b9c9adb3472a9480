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
  char *entrypoint;             /* NULL: the provider's own program */
  char *runtime;                /* NULL: the engine's default */
  char *registry_auth;          /* NULL: none */
  char *user;                   /* of commands: UID:GID, never 0 */
  char *tls;                    /* folder of ca.pem, cert.pem, key.pem */
  int pull;                     /* what is missing is pulled */
  int64_t pull_timeout_ns;
};

struct docker_execs;            /* execs.c: commands that this worker relays */

struct docker {
  struct docker_config config;
  char host[17];                /* this host, as 16 hexadecimal digits */
  int runtime;                  /* private folder; -1: none */
  int program;                  /* the inside program, sealed; -1: none */
  struct docker_execs *execs;
  struct coffer_http *http;

  pthread_mutex_t lock;
  struct docker_engine engine;  /* kind is UNKNOWN until the engine was asked */
  char *program_path;           /* where the engine finds it; NULL: not yet */
};

/* ---- config.c -------------------------------------------------------------- */

/* From KEY=VALUE: COFFER_OK, or INVALID with what is wrong. */
int32_t docker_configure (struct coffer_call *call, struct docker *docker,
                          const char *const *config);
void docker_config_fini (struct docker_config *config);

/* ---- engine.c: requests --------------------------------------------------- */

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
/* The engine's words of a failure, for people; never NULL. */
const char *docker_words (const struct coffer_http_reply *reply);
void docker_engine_fini (struct docker *docker);

/* ---- program.c: the program inside, where the engine can see it ------------- */

/* The path to show it from; valid as long as the instance. */
int32_t docker_program (struct coffer_call *call, struct docker *docker,
                        const char **path);

/* ---- sandbox.c ------------------------------------------------------------ */

#define DOCKER_NAME_MAX 96      /* bytes of a container's name with its NUL */

/* "coffer-HOST-SANDBOX".  INVALID for what is no id. */
int32_t docker_container_name (struct coffer_call *call,
                               const struct docker *docker,
                               const char *sandbox,
                               char name[DOCKER_NAME_MAX]);

/* One container, by name; what is not running, paused or ours is NOT_FOUND. */
struct docker_sandbox {
  char id[65];                  /* the engine's */
  int paused;
  int64_t created_ns, expires_ns;       /* since the epoch; 0: none */
  json_t *inspect;              /* the engine's whole answer */
};
int32_t docker_sandbox_find (struct coffer_call *call, struct docker *docker,
                             const char *sandbox, struct docker_sandbox *out);
void docker_sandbox_fini (struct docker_sandbox *sandbox);
#define auto_sandbox __attribute__ ((cleanup (docker_sandbox_fini)))
/* As docker_fail, for a request that names a container: an engine says with 404
 * and several 409s and 500s that it is gone or paused; those become NOT_FOUND
 * and CONFLICT, with the sandbox's id. */
int32_t docker_fail_sandbox (struct coffer_call *call, struct docker *docker,
                             const struct coffer_http_reply *reply,
                             const char *sandbox, const char *what);

/* ---- execs.c, stream.c: commands that this worker relays -------------------- */

struct docker_execs *docker_execs_new (void);
/* When no call uses them; commands in the foreground end. */
void docker_execs_free (struct docker_execs *execs);
/* A sandbox was killed or has gone: its commands are forgotten. */
void docker_execs_forget (struct docker *docker, const char *sandbox);

/* ---- the operations -------------------------------------------------------- */

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

#endif /* DOCKER_DOCKER_H */
