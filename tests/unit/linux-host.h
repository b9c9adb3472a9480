/* SPDX-License-Identifier: Apache-2.0 */
/* A host as small as the tests of the linux provider need: it loads the
 * module, answers its calls, and keeps what is emitted. */

#ifndef TESTS_LINUX_HOST_H
#define TESTS_LINUX_HOST_H

#include <coffer/provider.h>

#define HOST_TEXT 65536

struct linux_host {
  const struct coffer_operations *ops;
  void *self;
  void *module;
  int runtime;                  /* the runtime folder */
  const char *late;             /* in place of every late file; NULL: those */
  const char *warm;             /* of every command that is run; NULL: none */
  char runtime_path[64];
  char file_name[32];
  /* What the last call gave. */
  char error[1024];
  char facts[HOST_TEXT];        /* "NAME STATE VALUE\n" each */
  char remedies[HOST_TEXT];     /* "NAME REMEDY\n" each */
  char infos[HOST_TEXT];        /* "ID STATE\n" each */
  char files[HOST_TEXT];        /* "KIND PATH SIZE\n" each */
  char metrics[HOST_TEXT];      /* "NAME VALUE\n" each */
  char exec[32];
  struct coffer_exec_exit exit; /* texts are copies below */
  char failure[256];
  char limits[256];             /* words, each with a space after it */
  int64_t expires_ns;
  int pid;                      /* of the init */
  char metadata[256];
  int stream;                   /* of the last port_dial: a copy, -1 */
  char not_applied[256];        /* words, each with a space after it */
};

/* A call object for one operation; forgets what the last one gave. */
struct coffer_call *host_call (struct linux_host *host, int64_t timeout_ms);
void linux_host_open (struct linux_host *host);
/* The same with another program as the init of sandboxes. */
void linux_host_open_with (struct linux_host *host, int init);
/* The same with a configuration, KEY=VALUE. */
void linux_host_open_config (struct linux_host *host,
                             const char *const *config);
/* The two halves of it: another module than the provider's own, a file of the
 * build; then its instance. */
void linux_host_load (struct linux_host *host, const char *module);
void linux_host_start (struct linux_host *host, int init,
                       const char *const *config);
void linux_host_close (struct linux_host *host);

/* Everything that a command wrote, and how it ended. */
struct outcome {
  char out[HOST_TEXT];
  size_t out_size;
  char err[HOST_TEXT];
  size_t err_size;
};

int32_t host_create (struct linux_host *host, const char *id,
                     const struct coffer_sandbox_spec *spec);
int32_t host_kill (struct linux_host *host, const char *id);
/* Starts, collects, waits. */
int32_t host_run (struct linux_host *host, const char *id,
                  const char *const *argv, const char *const *env,
                  const char *input, uint64_t timeout_ms,
                  struct outcome *outcome);
/* The same in a sandbox of its own, made for one command. */
int32_t host_run_once (struct linux_host *host,
                       const struct coffer_sandbox_spec *spec,
                       const char *const *argv, uint64_t timeout_ms,
                       struct outcome *outcome);
/* Starts a script for /bin/sh that holds the other end of what is returned. */
int host_start (struct linux_host *host, const char *id, const char *script,
                uint64_t timeout_ms);
/* Whether everything that holds the other end is gone within that time. */
int host_gone (int held, int64_t ns);
/* Of "NAME VALUE" in metrics; -1: not there. */
double host_metric (struct linux_host *host, const char *id,
                    const char *name);
/* Puts the program linux-payload into the workspace, as ./payload. */
void host_payload (struct linux_host *host, const char *id);
/* A connection to the socket of an init, on which nothing was said yet. */
int host_connect (struct linux_host *host, const char *id);
/* Sends OUTSIDE on it with that descriptor; -1: with none. */
void host_show (int connection, int userns);
/* The same with this process's own user namespace. */
void host_show_own (int connection);
/* Whether this machine lets us make sandboxes at all. */
int host_can (void);

/* The end of a program of tests: what main returns.  One host, opened for all
 * of them together. */
#define LINUX_TESTS_RUN(host, name, tests)                                    \
  (linux_tests_host (host),                                                   \
   LINUX_TESTS_RUN_WITH (name, tests, linux_tests_open, linux_tests_close))
/* The same, with a folder as their state. */
#define LINUX_TESTS_RUN_FOLDER(host, name, tests)                             \
  (linux_tests_host (host),                                                   \
   LINUX_TESTS_RUN_WITH (name, tests, linux_tests_open_folder,                \
                         linux_tests_close_folder))
/* With a set-up and teardown of its own. */
#define LINUX_TESTS_RUN_WITH(name, tests, open, close)                        \
  (host_can () ? cmocka_run_group_tests_name (name, tests, open, close)       \
               : (puts ("1..0 # SKIP missing: user namespaces"), 0))
void linux_tests_host (struct linux_host *host);
int linux_tests_open (void **state);
int linux_tests_close (void **state);
int linux_tests_open_folder (void **state);
int linux_tests_close_folder (void **state);

#endif /* TESTS_LINUX_HOST_H */
