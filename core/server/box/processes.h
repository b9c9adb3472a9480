/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a session that run while nobody waits for them: commands in the
 * background (sandbox/execs.h) under names that callers choose. */

#ifndef SERVER_BOX_PROCESSES_H
#define SERVER_BOX_PROCESSES_H

#include "base/json.h"
#include "sandbox/execs.h"
#include "server/http.h"

struct box;
struct box_session;

/* A place in what a process has written: an event of its log, and how many of
 * that one's bytes. */
struct box_mark {
  uint64_t seq;
  size_t skip;
};

struct box_process {
  struct box_process *next;     /* the box's lock, as the next two */
  int attached;
  struct box_mark seen;         /* where the last who was attached has left */
  char *id, *exec;
  json_t *spec;                 /* command, args, cwd, env_keys */
  int64_t started_ns;           /* since the epoch */
};

void box_processes_free (struct box_process *list);
/* As they are kept, and the other way. */
json_t *box_processes_save (const struct box_process *list);
struct box_process *box_processes_load (const json_t *json);

/* NULL: there is none of that name, which box_process_unknown says. */
struct box_process *box_process_find_locked (const struct box_session *session,
                                             const char *id);
int box_process_unknown (const char *id, struct error **err);

/* {ID: info} of a session.  The box's lock is held. */
json_t *box_processes_json (struct box *box,
                            const struct box_session *session);
int box_processes_running (struct box *box,
                           const struct box_session *session);

/* Handlers do the rest, in a session that was entered. */
int box_process_start (struct box *box, struct request *request,
                       struct box_session *session, json_t **info,
                       struct error **err);
int box_process_info (struct box *box, const struct box_session *session,
                      const char *id, json_t **info, struct error **err);
int box_process_stop (struct box *box, struct request *request,
                      struct box_session *session, const char *id,
                      struct error **err);
/* The reply is a stream of lines, which leaves the session at its end. */
int box_process_attach (struct box *box, struct request *request,
                        struct box_session *session, const char *id,
                        struct error **err);
int box_process_input (struct box *box, struct request *request,
                       struct box_session *session, const char *id,
                       struct error **err);
int box_process_log (struct box *box, struct request *request,
                     struct box_session *session, const char *id,
                     struct error **err);

#endif /* SERVER_BOX_PROCESSES_H */
