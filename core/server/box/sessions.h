/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the box: its sessions. */

#ifndef SERVER_BOX_SESSIONS_H
#define SERVER_BOX_SESSIONS_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/box/box.h"
#include "server/http.h"
#include "server/box/spec.h"
#include "server/observe.h"

enum session_state { SESSION_CREATING, SESSION_LIVE, SESSION_CLOSING };

struct box_process;

struct box_session {
  struct box_session *next;     /* the box's lock, as all but what never
                                 * changes once it is live */
  char *tenant, *id, *backend;
  char sandbox[SANDBOX_ID_SIZE];
  json_t *spec;
  json_t *asked;                /* what of it a caller has given */
  enum session_state state;
  int lost;                     /* the sandbox went by itself */
  unsigned users;               /* requests that are at work in it */
  int64_t created_ns, used_ns;  /* since the epoch */
  int64_t used_at_ns;           /* CLOCK_MONOTONIC, as the next */
  int64_t alive_until_ns;       /* the sandbox, unless that is put off */
  struct box_process *processes;
};

struct box {
  struct server *server;
  struct box_config config;
  int folder;                   /* STATE/box */
  pthread_mutex_t lock;
  pthread_cond_t changed;       /* of CLOCK_MONOTONIC: a session's state */
  struct box_session *sessions;
  char *said;                   /* what was last said of the backend */
  int stop_fd;                  /* readable: the reaper ends */
  int reaping;
  pthread_t reaper;
};

void box_session_free (struct box_session *session);

/* What a request does in a session.  Until box_session_leave it is not removed
 * for being idle, nor closed by others. */
int box_session_enter (struct box *box, struct request *request,
                       const char *id, const json_t *given,
                       struct box_session **out, struct error **err);
/* Looks whether the sandbox of one that is there is there, too: when it is not,
 * the session is forgotten. */
int box_session_check (struct box *box, struct request *request,
                       const char *id, struct error **err);
/* Only one that is there: E_UNKNOWN_SESSION. */
int box_session_find (struct box *box, const struct request *request,
                      const char *id, struct box_session **out,
                      struct error **err);
void box_session_leave (struct box *box, struct box_session *session);
/* Leaves it too, after a call that failed.  1: its sandbox has gone by itself, the
 * session is forgotten, and the next to enter makes a new one. */
int box_session_lost (struct box *box, struct box_session *session,
                      const struct error *error);
/* Ends it, with all that runs in it. */
int box_session_close (struct box *box, struct request *request,
                       const char *id, struct error **err);

/* As clients see it: E_UNKNOWN_SESSION. */
int box_session_json (struct box *box, const char *tenant, const char *id,
                      json_t **out, struct error **err);
/* Those of a tenant that are there. */
json_t *box_sessions_json (struct box *box, const char *tenant);
size_t box_sessions_count (struct box *box, const char *tenant);
size_t box_processes_count (struct box *box, const char *tenant);

/* Ends those that nobody uses, and puts off the end of the others' sandboxes. */
void box_sessions_reap (struct box *box);

/* ---- store.c ------------------------------------------------------------- */

int box_store_open (struct box *box, struct error **err);
int box_store_write (struct box *box, const struct box_session *session,
                     struct error **err);
void box_store_remove (struct box *box, const char *sandbox);
/* What an earlier daemon has left and still lives. */
void box_store_adopt (struct box *box);

/* ---- status.c ------------------------------------------------------------ */

/* Which provider sessions are made with now, and whether that works: looked at
 * anew at each call.  *readiness, when it is wanted: {NAME: STATE} of what it has
 * found on this machine.  Both are the caller's. */
int box_backend (struct box *box, char **id, json_t **readiness,
                 struct error **err);
/* A line in the log, when that is no longer what was last said. */
void box_backend_say (struct box *box);

#endif /* SERVER_BOX_SESSIONS_H */
