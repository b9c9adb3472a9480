/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of a daemon from outside: numbers (metrics.h), the log of
 * requests, the audit log (audit.h), the errors of late (errors-ring.h) and
 * spans (trace.h).  HTTP calls observe_request and observe_error, so that
 * handlers need not; who makes a sandbox or runs a command calls observe_run.
 * None of them fails, and none waits for anybody outside. */

#ifndef SERVER_OBSERVE_H
#define SERVER_OBSERVE_H

#include "base/json.h"
#include "base/yaml.h"
#include "server/errors-ring.h"
#include "server/metrics.h"
#include "server/trace-settings.h"

struct server;
struct request;
struct observer;

/* How it is set up: of the section `serve`, and the command line. */
struct observe_config {
  int log_json;
  char *audit_file;             /* NULL: STATE/audit.log */
  int audit_off;
  uint64_t audit_size;          /* a new one is begun; 0: never */
  unsigned audit_keep;          /* so many old ones are kept */
  struct trace_config otlp;
};
/* What holds where nothing is said. */
void observe_config_default (struct observe_config *out);
/* "text" or "json"; -1: neither. */
int observe_log_word (const char *word, struct observe_config *out);
/* The keys log, audit and otlp of the map `serve`, over what is in *out. */
int observe_config_read (const struct yaml_source *source,
                         const struct yaml_node *serve,
                         struct observe_config *out, struct error **err);
void observe_config_fini (struct observe_config *config);

/* After the server's host is open.  The server's `observer` is set. */
int observe_open (struct server *server, const struct observe_config *config,
                  struct error **err);
/* The configuration was read again: the audit log goes on in a file of its
 * name, also when that is the same.  Where spans go is for the next start. */
int observe_reload (struct server *server,
                    const struct observe_config *config, struct error **err);
void observe_close (struct server *server);

/* For who adds a source or counts something of its own. */
struct metrics *observe_metrics (struct server *server);
struct errors_ring *observe_errors (struct server *server);

/* A reply was sent or cut off; `bytes` of its body went out. */
void observe_request (const struct request *request, int status,
                      uint64_t bytes);
/* The request, whose caller may not be known yet, failed with this. */
void observe_error (const struct request *request,
                    const struct error *error);

enum observe_kind { OBSERVE_CREATE, OBSERVE_EXEC, OBSERVE_EXECUTE };

/* What was done for a request; NULL and 0: there is none, or it is not known.
 * Never code, values of an environment, or output. */
struct observe_run {
  enum observe_kind kind;
  const char *provider, *profile, *sandbox, *exec;
  /* "ok", "failed", "timed_out", "rejected", "cancelled", "refused" … */
  const char *verdict;
  int64_t began_ns, ended_ns;   /* CLOCK_MONOTONIC; 0: now */
  const char *code_sha256;
  const char *session;          /* a name that the caller chose */
};
void observe_run (const struct request *request,
                  const struct observe_run *run);
/* The verdict of a call that failed. */
const char *observe_verdict (const struct error *error);

#endif /* SERVER_OBSERVE_H */
