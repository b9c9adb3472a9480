/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's parts put together, and what the HTTP library calls. */

#include <config.h>

#include "sandbox/execs.h"
#include "server/api/common.h"
#include "server/api/idempotency.h"
#include "server/server.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "server/box/box.h"
#include "server/exchange.h"
#include "policy/shares.h"
#include "policy/token.h"
#include "server/listen.h"
#include "server/runs.h"

/* Of each connection: its headers, and the block that is sent or received. */
#define CONNECTION_MEMORY 65536
#define HEADER_SHARE 4
/* What a handler and the libraries below it need; sanitizers need more. */
#ifdef COFFER_SANITIZERS
#define STACK_SIZE (4U << 20)
#else
#define STACK_SIZE (512U << 10)
#endif
#define DRAIN_STEP_MS 20
/* What was cancelled has this long to come to its end. */
#define CANCEL_NS (INT64_C (5) * 1000000000)

struct serve_config *
server_config_ref (struct server *server)
{
  struct serve_config *config;

  pthread_mutex_lock (&server->config_lock);
  config = serve_config_ref (server->config);
  pthread_mutex_unlock (&server->config_lock);
  return config;
}

/* ---- what the library calls ------------------------------------------------ */

static struct connection *
connection_of (struct MHD_Connection *http)
{
  const union MHD_ConnectionInfo *info
    = MHD_get_connection_info (http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

  return info ? info->socket_context : NULL;
}

static void
on_connection (void *data, struct MHD_Connection *http, void **context,
               enum MHD_ConnectionNotificationCode code)
{
  struct server *server = data;
  struct connection *connection = *context;

  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    const union MHD_ConnectionInfo *info
      = MHD_get_connection_info (http, MHD_CONNECTION_INFO_CONNECTION_FD);
    auto_serve_config struct serve_config *config = server_config_ref (server);

    *context = connection_new (server->connections, info->connect_fd,
                               coffer_now_ns ()
                               + (int64_t) config->limits.header_time * 1000000);
    return;
  }
  if (connection && connection->exchange)
    exchange_end (connection->exchange);
  if (connection)
    connection_free (connection);
  connections_leave (server->connections);
  *context = NULL;
}

/* The first line is there. */
static void *
on_line (void *data, const char *uri, struct MHD_Connection *http)
{
  struct connection *connection = connection_of (http);

  if (!connection)
    return NULL;
  if (connection->exchange)
    exchange_end (connection->exchange);
  return exchange_new (data, connection, http, uri);
}

static enum MHD_Result
on_request (void *data, struct MHD_Connection *http, const char *url,
            const char *method, const char *version, const char *bytes,
            size_t *size, void **context)
{
  struct exchange *exchange = *context;

  (void) data;
  (void) http;
  if (!exchange)
    return MHD_NO;              /* there was no memory for it */
  if (!exchange->began)
    return exchange_begin (exchange, method, url, version);
  if (*size == 0)
    return exchange_finish (exchange);
  if (exchange_take (exchange, bytes, *size) == MHD_NO)
    return MHD_NO;
  *size = 0;
  return MHD_YES;
}

static void
on_completed (void *data, struct MHD_Connection *http, void **context,
              enum MHD_RequestTerminationCode code)
{
  (void) data;
  (void) http;
  (void) code;
  if (*context)
    exchange_end (*context);
  *context = NULL;
}

/* Paths and queries are decoded by route.c, which is stricter. */
static size_t
on_escape (void *data, struct MHD_Connection *http, char *text)
{
  (void) data;
  (void) http;
  return strlen (text);
}

static void on_message (void *data, const char *format, va_list args)
  __attribute__ ((format (printf, 2, 0)));

static void
on_message (void *data, const char *format, va_list args)
{
  auto_free char *text = NULL;

  (void) data;
  if (!log_enabled (LOG_LEVEL_DEBUG, "http"))
    return;
  if (vasprintf (&text, format, args) < 0)
    text = NULL;
  if (text)
    log_event (LOG_LEVEL_DEBUG, "http", "%.*s", (int) strcspn (text, "\n"),
               text);
}

/* ---- start ------------------------------------------------------------------ */

/* A connection takes two or three. */
static void
raise_descriptors (void)
{
  struct rlimit limit;

  if (getrlimit (RLIMIT_NOFILE, &limit) < 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit (RLIMIT_NOFILE, &limit);
}

static size_t
memory_of (const struct serve_config *config)
{
  const size_t headers = (size_t) config->limits.header * HEADER_SHARE;

  return headers > CONNECTION_MEMORY ? headers : CONNECTION_MEMORY;
}

static int
http_start (struct server *server, struct error **err)
{
  server->http = MHD_start_daemon (
    MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION
      | MHD_USE_POLL | MHD_USE_ITC | MHD_ALLOW_UPGRADE
      | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG,
    0, NULL, NULL, on_request, server,
    MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
    MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
    MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
    MHD_OPTION_URI_LOG_CALLBACK, on_line, server,
    MHD_OPTION_UNESCAPE_CALLBACK, on_escape, NULL,
    MHD_OPTION_THREAD_STACK_SIZE, (size_t) STACK_SIZE,
    MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory_of (server->config),
    MHD_OPTION_CONNECTION_LIMIT, (unsigned) server->config->limits.connections,
    MHD_OPTION_STRICT_FOR_CLIENT, 1,
    MHD_OPTION_END);
  if (!server->http)
    return error_set (err, E_IO, errno, "start the HTTP server");
  return 0;
}

static int
execs_open (struct server *server, struct error **err)
{
  const struct execs_options options = {
    .host = server->host, .place = server->place, .shares = server->shares,
    .cap = server->config->limits.exec_log,
    .cap_all = server->config->limits.exec_logs
  };

  return execs_start (&options, &server->execs, err);
}

int
server_check_open (const json_t *addresses, const struct serve_config *config,
                   struct tokens *tokens, struct error **err)
{
  const json_t *one;
  size_t i;

  json_array_foreach (addresses, i, one) {
    const char *text = json_string_value (one);
    struct sockaddr_storage address;

    if (listen_parse (text, &address, err) < 0)
      return -1;
    if (listen_is_loopback (&address) || config->anonymous
        || tokens_count (tokens) > 0)
      continue;
    error_set (err, E_CONFIG, 0, "%s can be reached from elsewhere, and there"
               " is no token that would open anything there", text);
    error_hint (err, "coffer token create NAME makes one; --anonymous execute"
                     " opens /execute, /healthz and /profile without");
    return -1;
  }
  return 0;
}

static void
warn_open (const json_t *addresses, const struct serve_config *config)
{
  const json_t *one;
  size_t i;

  json_array_foreach (addresses, i, one) {
    const char *text = json_string_value (one);
    struct sockaddr_storage address;

    if (listen_parse (text, &address, NULL) < 0
        || listen_is_loopback (&address))
      continue;
    log_event (LOG_LEVEL_WARNING, "serve", "%s can be reached from elsewhere,"
               " in clear text: tokens too", text);
    if (config->anonymous)
      log_event (LOG_LEVEL_WARNING, "serve", "%s: /execute, /healthz and"
                 " /profile are open to anybody", text);
  }
}

static int
open_sockets (struct server *server, size_t given, struct error **err)
{
  auto_json json_t *addresses = NULL;

  if (listener_open (server->place, server->config, given, &server->listener,
                     err) < 0
      || tokens_open (server->place, &server->tokens, err) < 0)
    return -1;
  addresses = listener_addresses (server->listener);
  if (server_check_open (addresses, server->config, server->tokens, err) < 0)
    return -1;
  warn_open (addresses, server->config);
  return 0;
}

/* The default tenant is always there: it is the daemon's own user's. */
static int
has_others (void *data, const char *tenant)
{
  struct server *server = data;
  auto_serve_config struct serve_config *config = server_config_ref (server);
  size_t i;

  for (i = 0; i < config->n_logins; i++)
    if (strcmp (config->logins[i].tenant, tenant) != 0)
      return 1;
  return strcmp (tenant, TENANT_DEFAULT) != 0
         || tokens_others (server->tokens, tenant);
}

/* How large the logs are to be, and how many connections there are, is settled
 * at the start. */
static void
shares_configure (struct server *server, const struct serve_limits *limits)
{
  shares_set (server->shares, SHARE_COMMANDS, limits->commands);
  shares_set (server->shares, SHARE_QUEUE, limits->queue);
  shares_set (server->shares, SHARE_OUTPUT, limits->output);
  shares_set_part (server->shares, (unsigned) limits->tenant_share);
}

static int
shares_open (struct server *server, struct error **err)
{
  const struct serve_limits *limits = &server->config->limits;

  if (shares_new (has_others, server, &server->shares, err) < 0)
    return -1;
  shares_set (server->shares, SHARE_REQUESTS, limits->connections);
  shares_set (server->shares, SHARE_TRANSFERS, API_TRANSFERS);
  shares_set (server->shares, SHARE_WATCHES, API_WATCHES);
  shares_configure (server, limits);
  return 0;
}

void
server_configure (struct server *server, struct serve_config *take_config)
{
  struct serve_config *old;

  runs_resize (server->runs, (unsigned) take_config->limits.runs,
               (unsigned) take_config->limits.queue);
  shares_configure (server, &take_config->limits);
  pthread_mutex_lock (&server->config_lock);
  old = server->config;
  server->config = take_config;
  pthread_mutex_unlock (&server->config_lock);
  serve_config_unref (old);
}

static int
start (struct server *server, size_t given, struct error **err)
{
  const struct serve_limits *limits = &server->config->limits;

  raise_descriptors ();
  if (open_sockets (server, given, err) < 0 || shares_open (server, err) < 0
      || host_open (server->place, server->config->host_provider
                                     ? 0 : HOST_NO_HOST, &server->host, err)
           < 0
      || idempotency_open (server->place, limits->keys,
                           &server->idempotency, err) < 0
      || execs_open (server, err) < 0
      || observe_open (server, &server->config->observe, err) < 0
      || runs_new ((unsigned) limits->runs, (unsigned) limits->queue,
                   server->shares, &server->runs, err) < 0
      || box_open (server, &server->config->box, err) < 0
      || connections_new (server->tokens, &server->connections, err) < 0
      || http_start (server, err) < 0)
    return -1;
  return listener_start (server->listener, server, err);
}

int
server_start (const struct place *place, struct serve_config *take_config,
              size_t given, struct server **out, struct error **err)
{
  struct server *server = calloc (1, sizeof *server);

  if (!server) {
    serve_config_unref (take_config);
    return error_set (err, E_NO_MEMORY, 0, "the server");
  }
  server->place = place;
  server->config = take_config;
  pthread_mutex_init (&server->config_lock, NULL);
  if (start (server, given, err) < 0) {
    server_stop (server);
    return -1;
  }
  *out = server;
  return 0;
}

/* ---- end -------------------------------------------------------------------- */

/* Another signal that ends this process has come. */
static int
hurried (int signals)
{
  struct pollfd ready = { signals, POLLIN, 0 };
  struct signalfd_siginfo info;

  return poll (&ready, 1, DRAIN_STEP_MS) > 0
         && read (signals, &info, sizeof info) == (ssize_t) sizeof info
         && info.ssi_signo != SIGHUP;
}

/* Until none is at work, the deadline is over or somebody is in a hurry. */
static void
wait_idle (struct server *server, int64_t deadline_ns, int signals)
{
  do
    connections_shut_waiting (server->connections);
  while (connections_working (server->connections) > 0
         && coffer_now_ns () < deadline_ns && !hurried (signals));
}

void
server_drain (struct server *server, int64_t deadline_ns, int signals)
{
  atomic_store (&server->draining, 1);
  listener_stop (server->listener);
  wait_idle (server, deadline_ns, signals);
  connections_cancel_all (server->connections);
  wait_idle (server, coffer_now_ns () + CANCEL_NS, signals);
}

void
server_stop (struct server *server)
{
  if (server->listener)
    listener_stop (server->listener);
  if (server->connections)
    connections_shut_all (server->connections);
  if (server->http)
    MHD_stop_daemon (server->http);
  box_close (server);
  observe_close (server);
  connections_free (server->connections);
  execs_stop (server->execs);
  idempotency_close (server->idempotency);
  runs_free (server->runs);
  shares_free (server->shares);
  tokens_free (server->tokens);
  host_close (server->host);
  listener_free (server->listener);
  serve_config_unref (server->config);
  pthread_mutex_destroy (&server->config_lock);
  free (server);
}
