/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox that takes its time: lines that say how far it is, and a last one
 * that has it, or why there is none.
 *
 * A thread of its own makes it, which the connection's waits for in either case:
 * who leaves cancels it, and what was made and told to nobody is ended. */

#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "server/api/create.h"
#include "server/api/own.h"
#include "server/observe.h"

#define MS INT64_C (1000000)
#define EVERY_NS (250 * MS)     /* between two lines, at least */
#define BEAT_NS (5000 * MS)     /* and at most */

struct making {
  struct request *request;      /* there until this is freed */
  struct api_spec spec;
  pthread_t thread;
  int runs;                     /* it was begun and is not joined */
  int event;                    /* an eventfd: news, or the end */
  /* The thread's until it has ended. */
  struct sandbox_record *record;
  json_t *applied;
  struct error *error;
  int result;
  pthread_mutex_t lock;
  int ended, news;              /* lock, and what follows */
  uint64_t done, total;
  char *what;
  /* The connection's. */
  int64_t told_ns;
  char *line;                   /* being sent */
  size_t given;
  int is_last, is_told;
};

/* ---- the thread ----------------------------------------------------------- */

static void
poke (const struct making *making)
{
  const uint64_t one = 1;

  while (write (making->event, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

static void
take_progress (void *data, uint64_t done, uint64_t total, const char *what)
{
  struct making *making = data;
  char *copy = strdup (what ? what : "");
  int was_news;

  pthread_mutex_lock (&making->lock);
  was_news = making->news;
  making->done = done;
  making->total = total;
  free (making->what);
  making->what = copy;
  making->news = 1;
  pthread_mutex_unlock (&making->lock);
  if (!was_news)
    poke (making);
}

static void *
make_it (void *data)
{
  struct making *making = data;
  const struct provider_sink sink = { .progress = take_progress,
                                      .data = making };

  making->result = create_make (making->request, &making->spec.request, &sink,
                                &making->record, &making->applied,
                                &making->error);
  pthread_mutex_lock (&making->lock);
  making->ended = 1;
  pthread_mutex_unlock (&making->lock);
  poke (making);
  return NULL;
}

static void
making_join (struct making *making)
{
  if (making->runs)
    pthread_join (making->thread, NULL);
  making->runs = 0;
}

static void
making_free (void *data)
{
  struct making *making = data;
  int gone;

  making_join (making);
  if (making->record && !making->is_told)
    sandbox_kill (making->request->server->host, NULL, making->record->id,
                  NULL, &gone, NULL);
  sandbox_record_free (making->record);
  json_decref (making->applied);
  error_free (making->error);
  api_spec_fini (&making->spec);
  coffer_fd_close (&making->event);
  pthread_mutex_destroy (&making->lock);
  free (making->what);
  free (making->line);
  free (making);
}

/* ---- lines ---------------------------------------------------------------- */

static int
set_line (struct making *making, json_t *take_json)
{
  auto_json json_t *json = take_json;
  auto_free char *text = NULL;

  json_name_encodings (json);
  text = json ? json_text (json) : NULL;
  free (making->line);
  making->line = text ? text_printf ("%s\n", text) : NULL;
  making->given = 0;
  return making->line ? 0 : -1;
}

static json_t *
progress_line_locked (const struct making *making)
{
  const char *what = making->what ? making->what : "";

  return json_pack ("{s:s, s:o, s:o, s:o}", "event", "progress", "what",
                    json_bytes (what, strlen (what)), "done",
                    json_u64 (making->done), "total",
                    json_u64 (making->total));
}

static int
last_line (struct making *making)
{
  auto_json json_t *json = NULL;

  making_join (making);
  making->is_last = 1;
  if (making->result == 0)
    return set_line (making, json_pack ("{s:s, s:o}", "event", "created",
                                        "sandbox",
                                        create_json (making->record,
                                                     steal (making->applied))));
  observe_error (making->request, making->error);
  json = error_to_json (making->error);
  return set_line (making, json_pack ("{s:s, s:O}", "event", "failed", "error",
                                      json_object_get (json, "error")));
}

/* Waits for what there is to be told. */
static int
next_line (struct making *making)
{
  for (;;) {
    const int64_t now = coffer_now_ns ();
    json_t *line = NULL;
    int64_t until;
    uint64_t count;
    int ended;

    pthread_mutex_lock (&making->lock);
    ended = making->ended;
    until = making->told_ns + (making->news ? EVERY_NS : BEAT_NS);
    if (!ended && now >= until) {
      line = progress_line_locked (making);
      making->news = 0;
    }
    pthread_mutex_unlock (&making->lock);
    if (ended)
      return last_line (making);
    if (now >= until) {
      making->told_ns = now;
      return set_line (making, line);
    }
    if (coffer_wait_fd (making->event, POLLIN, until, -1) == 1
        && read (making->event, &count, sizeof count) < 0 && errno != EAGAIN)
      return -1;
  }
}

static ssize_t
making_fill (void *data, char *out, size_t max)
{
  struct making *making = data;
  size_t n;

  if (making->line && !making->line[making->given]) {
    free (steal (making->line));
    making->is_told = making->is_last;
    if (making->is_last)
      return 0;
  }
  if (!making->line && next_line (making) < 0)
    return -1;
  n = strlen (making->line + making->given);
  if (n > max)
    n = max;
  memcpy (out, making->line + making->given, n);
  making->given += n;
  return (ssize_t) n;
}

/* ---- its beginning -------------------------------------------------------- */

static struct making *
making_new (struct request *request, struct api_spec *spec, struct error **err)
{
  struct making *making = calloc (1, sizeof *making);
  int r;

  if (!making) {
    error_set (err, E_NO_MEMORY, 0, "a sandbox");
    return NULL;
  }
  making->request = request;
  making->spec = *spec;
  memset (spec, 0, sizeof *spec);
  pthread_mutex_init (&making->lock, NULL);
  making->event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  r = making->event < 0 ? errno
      : pthread_create (&making->thread, NULL, make_it, making);
  making->runs = r == 0;
  if (r == 0)
    return making;
  error_set (err, E_IO, r, "a thread for a sandbox");
  making_free (making);
  return NULL;
}

/* 1: it ended before there was anything to tell. */
static int
wait_first (struct making *making)
{
  for (;;) {
    int ended, news;

    pthread_mutex_lock (&making->lock);
    ended = making->ended;
    news = making->news;
    pthread_mutex_unlock (&making->lock);
    if (ended || news)
      return ended && !news;
    coffer_wait_fd (making->event, POLLIN, coffer_now_ns () + BEAT_NS, -1);
  }
}

static int
reply_whole (struct request *request, struct making *making,
             struct error **err)
{
  int r;

  making_join (making);
  r = making->result < 0 ? error_move (err, steal (making->error))
      : create_reply (request, making->record, steal (making->applied), err);
  making->is_told = r == 0;
  making_free (making);
  return r;
}

int
create_follow (struct request *request, struct api_spec *spec,
               struct error **err)
{
  struct making *making;

  request_prolong (request, coffer_now_ns () + SANDBOX_CREATE_MS * MS);
  making = making_new (request, spec, err);
  if (!making)
    return -1;
  if (wait_first (making))
    return reply_whole (request, making, err);
  return reply_stream (request, 200, "application/x-ndjson",
                       &(struct reply_stream){ .fill = making_fill,
                                               .free = making_free,
                                               .data = making,
                                               .size = UINT64_MAX }, err);
}
