/* SPDX-License-Identifier: Apache-2.0 */
/* The surface of probe-serve: handlers that do what a test asks for, with the
 * daemon around them as it is.  What became of each is GET /t/log. */

#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "server/http.h"
#include "server/runs.h"
#include "server/server.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct coffer_buffer noted;

static void
note (const char *what)
{
  pthread_mutex_lock (&lock);
  coffer_buffer_printf (&noted, "%s\n", what);
  pthread_mutex_unlock (&lock);
}

static int
log_show (struct request *request, struct error **err)
{
  int result;

  pthread_mutex_lock (&lock);
  result = reply_bytes (request, 200, "text/plain",
                        noted.data ? noted.data : "", noted.size, err);
  pthread_mutex_unlock (&lock);
  return result;
}

static int
who (struct request *request, struct error **err)
{
  return reply_json (request, 200,
                     json_pack ("{s:s, s:s, s:i, s:b}", "name",
                                request->caller.name, "tenant",
                                request->caller.tenant, "rights",
                                (int) request->caller.rights, "local",
                                request->caller.local), err);
}

static int
echo (struct request *request, struct error **err)
{
  const char *query = request_query (request, "q");
  uint64_t number = 7;

  if (request_query_u64 (request, "n", 1, 100, &number, err) < 0)
    return -1;
  return reply_json (request, 200,
                     json_pack ("{s:s?, s:s?, s:I, s:O?, s:I}", "param",
                                request->params[0], "query", query, "number",
                                (json_int_t) number, "body", request->body,
                                "size", (json_int_t) request->body_size), err);
}

static int
text (struct request *request, struct error **err)
{
  return reply_bytes (request, 200, "application/octet-stream",
                      request->body_text, request->body_size, err);
}

/* Until it is cancelled or ?ms= are over. */
static int
sleep_for (struct request *request, struct error **err)
{
  uint64_t ms = 60000;
  int r;

  if (request_query_u64 (request, "ms", 0, 600000, &ms, err) < 0)
    return -1;
  note ("sleep begins");
  r = coffer_wait_fd (-1, 0, coffer_now_ns () + (int64_t) ms * 1000000,
                      request->cancel_fd);
  if (r == 0 && errno == ECANCELED) {
    note ("sleep was cancelled");
    return error_set (err, E_EXEC_CANCELLED, 0, "cancelled");
  }
  note ("sleep ends");
  return reply_empty (request, 204, err);
}

static int
queue_show (struct request *request, struct error **err)
{
  unsigned running, waiting;

  runs_count (request->server->runs, &running, &waiting);
  return reply_json (request, 200,
                     json_pack ("{s:i, s:i}", "running", (int) running,
                                "waiting", (int) waiting), err);
}

/* Counts a body; ?fail=1 gives up at once, ?slow=1 waits before it reads. */
static int
count (struct request *request, struct error **err)
{
  char bytes[65536];
  uint64_t total = 0;
  ssize_t n;

  if (request_query (request, "fail"))
    return error_set (err, E_FILE_SPACE, 0, "no room");
  if (request_query (request, "slow"))
    coffer_wait_fd (-1, 0, coffer_now_ns () + 500000000, request->cancel_fd);
  while ((n = read (request->body_fd, bytes, sizeof bytes)) > 0)
    total += (uint64_t) n;
  if (!request_body_complete (request)) {
    note ("a body was cut");
    return error_set (err, E_REQUEST, 0, "the body was cut");
  }
  return reply_json (request, 200,
                     json_pack ("{s:I}", "bytes", (json_int_t) total), err);
}

/* ---- streams ------------------------------------------------------------- */

struct flow {
  uint64_t left;                /* UINT64_MAX: waits when it has sent a line */
  int cut, sent;
  const struct request *request;
};

static ssize_t
flow_fill (void *data, char *out, size_t max)
{
  struct flow *flow = data;

  if (flow->left == UINT64_MAX) {
    if (!flow->sent) {
      flow->sent = 1;
      return snprintf (out, max, "begun\n");
    }
    coffer_wait_fd (-1, 0, INT64_MAX, flow->request->cancel_fd);
    note ("a stream was cancelled");
    return -1;
  }
  if (flow->left == 0)
    return flow->cut ? -1 : 0;
  if (max > flow->left)
    max = (size_t) flow->left;
  memset (out, 'x', max);
  flow->left -= max;
  return (ssize_t) max;
}

static void
flow_free (void *data)
{
  note ("a stream was freed");
  free (data);
}

static int
flow (struct request *request, struct error **err)
{
  struct flow *flow = calloc (1, sizeof *flow);
  struct reply_stream stream = { flow_fill, flow_free, flow };

  if (!flow)
    return error_set (err, E_NO_MEMORY, 0, "a flow");
  flow->left = UINT64_MAX;
  flow->cut = request_query (request, "cut") != NULL;
  flow->request = request;
  if (request_query_u64 (request, "bytes", 0, UINT64_MAX, &flow->left, err)
      < 0) {
    flow_free (flow);
    return -1;
  }
  return reply_stream (request, 200, "text/plain", &stream, err);
}

static int
file (struct request *request, struct error **err)
{
  uint64_t offset = 0, size = 4;
  const int fd = coffer_memfd_sealed ("probe", "0123456789", 10);

  if (fd < 0)
    return error_set (err, E_IO, errno, "a file");
  if (request_query_u64 (request, "offset", 0, 100, &offset, err) < 0
      || request_query_u64 (request, "size", 0, 100, &size, err) < 0)
    return close (fd), -1;
  return reply_fd (request, 200, "text/plain", fd, offset, size, err);
}

/* ---- another protocol ------------------------------------------------------ */

/* Sends back what comes, in capitals, until the end. */
static void
shout (void *data, int fd, const char *early, size_t size)
{
  char bytes[4096];
  ssize_t n = (ssize_t) size, i;

  (void) data;
  memcpy (bytes, early, size < sizeof bytes ? size : sizeof bytes);
  do {
    for (i = 0; i < n; i++)
      bytes[i] = (char) (bytes[i] >= 'a' && bytes[i] <= 'z' ? bytes[i] - 32
                                                             : bytes[i]);
    if (n > 0 && coffer_write_all (fd, bytes, (size_t) n) < 0)
      break;
    if (coffer_wait_fd (fd, 1 /* POLLIN */, coffer_now_ns () + 60000000000,
                        ((struct request *) data)->cancel_fd) != 1)
      break;
    n = read (fd, bytes, sizeof bytes);
  } while (n > 0);
  note ("the other protocol ended");
}

static int
upgrade (struct request *request, struct error **err)
{
  const struct reply_upgrade other = { shout, NULL, request };

  return reply_upgrade (request, "shout", &other, err);
}

static int
header (struct request *request, struct error **err)
{
  return reply_header (request, "X-Bad", "a\r\nSet-Cookie: b", err);
}

static const struct route routes[] = {
  { "GET", "/t/log", RIGHT_VIEW, ROUTE_ANONYMOUS, "log", log_show },
  { "GET", "/t/view", RIGHT_VIEW, 0, "view", who },
  { "GET", "/t/run", RIGHT_RUN, 0, "run", who },
  { "GET", "/t/manage", RIGHT_MANAGE, 0, "manage", who },
  { "GET", "/t/open", RIGHT_RUN, ROUTE_ANONYMOUS, "open", who },
  { "GET", "/t/echo/{x}", RIGHT_VIEW, ROUTE_ANONYMOUS, "echo", echo },
  { "POST", "/t/echo", RIGHT_VIEW, ROUTE_ANONYMOUS | ROUTE_JSON, "post", echo },
  { "GET", "/t/rest/{x…}", RIGHT_VIEW, ROUTE_ANONYMOUS, "rest", echo },
  { "POST", "/t/text", RIGHT_VIEW, ROUTE_ANONYMOUS | ROUTE_TEXT, "text", text },
  { "GET", "/t/sleep", RIGHT_VIEW, ROUTE_ANONYMOUS, "sleep", sleep_for },
  { "GET", "/t/turn", RIGHT_VIEW, ROUTE_ANONYMOUS | ROUTE_COSTS_RUN, "turn",
    sleep_for },
  { "GET", "/t/queue", RIGHT_VIEW, ROUTE_ANONYMOUS, "queue", queue_show },
  { "PUT", "/t/count", RIGHT_VIEW, ROUTE_ANONYMOUS | ROUTE_STREAM, "count",
    count },
  { "GET", "/t/flow", RIGHT_VIEW, ROUTE_ANONYMOUS | ROUTE_LONG, "flow", flow },
  { "GET", "/t/file", RIGHT_VIEW, ROUTE_ANONYMOUS, "file", file },
  { "GET", "/t/upgrade", RIGHT_VIEW,
    ROUTE_ANONYMOUS | ROUTE_LONG | ROUTE_UPGRADE, "upgrade", upgrade },
  { "GET", "/t/header", RIGHT_VIEW, ROUTE_ANONYMOUS, "header", header },
  { NULL }
};

const struct route *const server_surfaces[] = { routes, NULL };
