/* SPDX-License-Identifier: Apache-2.0 */
/* See common.h. */

#include <config.h>

#include <poll.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "server/api/common.h"

/* For a turn, and between two looks. */
#define TURN_NS (INT64_C (20) * 1000000000)
#define TURN_MS 20
#define DAY_NS (INT64_C (86400) * 1000000000)

char *
api_path (const struct request *request, int folder, struct error **err)
{
  const char *rest = request->params[1];
  char *path = strdup (rest && *rest ? rest : ".");
  size_t n = path ? strlen (path) : 0;

  if (!path)
    error_set (err, E_NO_MEMORY, 0, "a path");
  for (; folder && n > 1 && path[n - 1] == '/'; n--)
    path[n - 1] = '\0';
  return path;
}

int
api_flag (const struct request *request, const char *name, int *out,
          struct error **err)
{
  const char *value = request_query (request, name);

  *out = value && strcmp (value, "0") != 0 && strcmp (value, "false") != 0;
  if (!*out || !*value || strcmp (value, "1") == 0
      || strcmp (value, "true") == 0)
    return 0;
  return error_set (err, E_REQUEST, 0, "%s is either 1 or 0", name);
}

struct provider_call
api_call (const struct request *request)
{
  struct provider_call call = request_call (request);

  if (!call.deadline_ns || call.deadline_ns > request->began_ns + DAY_NS)
    call.deadline_ns = request->began_ns + DAY_NS;
  return call;
}

/* ---- slots --------------------------------------------------------------- */

int
api_slot_take (const struct request *request, enum share slot,
               struct error **err)
{
  struct shares *shares = request->server->shares;
  const int64_t until = coffer_now_ns () + TURN_NS;
  struct pollfd left = { .fd = request->cancel_fd, .events = POLLIN };

  for (;;) {
    auto_error struct error *error = NULL;

    if (shares_take (shares, slot, request->caller.tenant, 1, &error) == 0)
      return 0;
    if (slot == SHARE_WATCHES || error->number != E_LIMIT
        || coffer_now_ns () > until)
      return error_move (err, steal (error));
    if (poll (&left, 1, TURN_MS) > 0)
      return error_set (err, E_EXEC_CANCELLED, 0, "the request was left");
  }
}

void
api_slot_give (const struct request *request, enum share slot)
{
  shares_give (request->server->shares, slot, request->caller.tenant, 1);
}

/* ---- streams ------------------------------------------------------------- */

struct giving {
  struct sandbox_stream *stream;
  uint64_t left;                /* UINT64_MAX: not known */
  int events;
  const struct request *request;        /* there until this is freed */
  enum share slot;
  char *last;                   /* the line of an error, once there is one */
  size_t given;                 /* of it */
};

static void
giving_free (void *data)
{
  struct giving *giving = data;

  sandbox_stream_free (giving->stream);
  api_slot_give (giving->request, giving->slot);
  free (giving->last);
  free (giving);
}

/* A line that says why there are no more. */
static char *
error_line (const struct error *error)
{
  auto_json json_t *json = error_to_json (error);
  char *text = json ? json_text (json) : NULL;
  size_t n = text ? strlen (text) : 0;
  char *line = text ? realloc (text, n + 2) : NULL;

  if (!line) {
    free (text);
    return NULL;
  }
  memcpy (line + n, "\n", 2);
  return line;
}

static ssize_t
give_last (struct giving *giving, char *out, size_t max)
{
  size_t n = strlen (giving->last + giving->given);

  if (n > max)
    n = max;
  memcpy (out, giving->last + giving->given, n);
  giving->given += n;
  return (ssize_t) n;
}

static ssize_t
giving_fill (void *data, char *out, size_t max)
{
  struct giving *giving = data;
  auto_error struct error *error = NULL;
  size_t n = 0;
  int r;

  if (giving->last)
    return give_last (giving, out, max);
  r = sandbox_stream_take (giving->stream, out,
                           max < giving->left ? max : (size_t) giving->left,
                           &n, &error);
  if (r > 0) {
    if (giving->left != UINT64_MAX)
      giving->left -= n;
    return (ssize_t) n;
  }
  if (r == 0)
    return giving->left == UINT64_MAX || giving->left == 0 ? 0 : -1;
  log_event (LOG_LEVEL_INFO, "http", "%s: cut: %s", giving->request->id,
             error_message (error));
  if (!giving->events || !(giving->last = error_line (error)))
    return -1;
  return give_last (giving, out, max);
}

int
api_reply_stream (struct request *request,
                  const struct api_stream *take_stream, struct error **err)
{
  auto_sandbox_stream struct sandbox_stream *stream = take_stream->stream;
  struct giving *giving;

  giving = !take_stream->events && sandbox_stream_ready (stream, err) < 0
             ? NULL : calloc (1, sizeof *giving);
  if (!giving) {
    if (err && !*err)
      error_set (err, E_NO_MEMORY, 0, "a reply");
    sandbox_stream_free (steal (stream));
    api_slot_give (request, take_stream->slot);
    return -1;
  }
  giving->request = request;
  giving->slot = take_stream->slot;
  giving->stream = steal (stream);
  giving->left = take_stream->size;
  giving->events = take_stream->events;
  return reply_stream (request, take_stream->status, take_stream->type,
                       &(struct reply_stream){ .fill = giving_fill,
                                               .free = giving_free,
                                               .data = giving,
                                               .size = take_stream->size },
                       err);
}
