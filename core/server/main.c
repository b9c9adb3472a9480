/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-serve, which `coffer serve` executes: options, signals, start and end.
 * Its manual is coffer-serve(8). */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "server/listen.h"
#include "server/routes.h"
#include "server/server.h"

/* A thread for each connection must not mean a heap for each. */
#define ARENAS 4

struct options {
  struct coffer_strings listen;
  int listen_given;
  const char *socket;
  const char *log;
  int json, verbose, routes;
};

enum { OPTION_LISTEN = 256, OPTION_SOCKET, OPTION_LOG, OPTION_JSON,
       OPTION_VERBOSE, OPTION_ROUTES };

static const struct option long_options[] = {
  { "listen", required_argument, NULL, OPTION_LISTEN },
  { "socket", required_argument, NULL, OPTION_SOCKET },
  { "log", required_argument, NULL, OPTION_LOG },
  { "json", no_argument, NULL, OPTION_JSON },
  { "verbose", no_argument, NULL, OPTION_VERBOSE },
  { "routes", no_argument, NULL, OPTION_ROUTES },
  { NULL, 0, NULL, 0 }
};

static int
take_option (struct options *options, int option, struct error **err)
{
  switch (option) {
  case OPTION_LISTEN:
    options->listen_given = 1;
    if (strcmp (optarg, "none") != 0)
      coffer_strings_add (&options->listen, optarg);
    return 0;
  case OPTION_SOCKET:
    options->socket = optarg;
    return 0;
  case OPTION_LOG:
    options->log = optarg;
    return 0;
  case OPTION_JSON:
    options->json = 1;
    return 0;
  case OPTION_VERBOSE:
    options->verbose = 1;
    return 0;
  case OPTION_ROUTES:
    options->routes = 1;
    return 0;
  default:
    return error_set (err, E_USAGE, 0,
                      "coffer-serve: an option that it does not have");
  }
}

static int
read_options (struct options *options, int argc, char **argv,
              struct error **err)
{
  int option;

  opterr = 0;
  while ((option = getopt_long (argc, argv, "", long_options, NULL)) != -1)
    if (take_option (options, option, err) < 0)
      return -1;
  if (optind != argc)
    return error_set (err, E_USAGE, 0, "serve takes no arguments");
  return 0;
}

/* The command line goes over the file. */
static int
apply_options (struct options *options, struct serve_config *config,
               struct error **err)
{
  struct sockaddr_storage address;
  size_t i;

  if (options->socket && options->socket[0] != '/')
    return error_set (err, E_USAGE, 0, "--socket wants an absolute path");
  if (options->socket) {
    free (config->socket);
    config->socket = strdup (options->socket);
  }
  if (options->log && observe_log_word (options->log, &config->observe) < 0)
    return error_set (err, E_USAGE, 0, "--log is text or json");
  if (options->listen_given) {
    for (i = 0; i < options->listen.count; i++)
      if (listen_parse (options->listen.items[i], &address, err) < 0)
        return -1;
    if (serve_config_set_listen (config, &options->listen) < 0)
      return error_set (err, E_NO_MEMORY, 0, "the configuration");
  }
  return config->socket ? 0
                        : error_set (err, E_NO_MEMORY, 0, "the configuration");
}

/* ---- signals ---------------------------------------------------------------- */

static void
note_nothing (int number)
{
  (void) number;
}

/* Before any thread starts, which all inherit the mask.  Not ignored, as what
 * is executed inherits that. */
static int
catch_signals (struct error **err)
{
  struct sigaction action = { .sa_handler = note_nothing };
  sigset_t set;
  int fd;

  sigaction (SIGPIPE, &action, NULL);
  sigaction (SIGXFSZ, &action, NULL);
  sigemptyset (&set);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGHUP);
  sigprocmask (SIG_BLOCK, &set, NULL);
  fd = signalfd (-1, &set, SFD_CLOEXEC);
  return fd < 0 ? error_set (err, E_IO, errno, "signalfd") : fd;
}

static int
wait_end (struct server *server, int signals)
{
  struct error *error = NULL;
  struct signalfd_siginfo info;

  while (coffer_read_all (signals, &info, sizeof info)
         == (ssize_t) sizeof info) {
    if (info.ssi_signo != SIGHUP)
      return 0;
    if (observe_reload (server, &server->config->observe, &error) < 0)
      log_event (LOG_LEVEL_ERROR, "serve", "%s", error_message (error));
    error_free (error);
    error = NULL;
  }
  return -1;
}

/* ---- start and end ------------------------------------------------------------ */

static int
tell_ready (const struct server *server, int json, struct error **err)
{
  auto_json json_t *addresses = listener_addresses (server->listener);
  auto_json json_t *object = json_pack ("{s:s, s:O}", "socket",
                                        server->config->socket, "listen",
                                        addresses);
  auto_free char *text = json_text (object);
  const json_t *one;
  size_t i;

  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "a message");
  if (json)
    printf ("%s\n", text);
  else
    printf ("serving on unix:%s\n", server->config->socket);
  json_array_foreach (addresses, i, one)
    if (!json)
      printf ("serving on http://%s\n", json_string_value (one));
  fflush (stdout);
  return 0;
}

static int
serve (struct options *options, struct error **err)
{
  auto_place struct place *place = NULL;
  auto_serve_config struct serve_config *config = NULL;
  coffer_autoclose int signals = -1;
  struct server *server = NULL;
  int result;

  signals = catch_signals (err);
  if (signals < 0 || place_find (&place, err) < 0
      || serve_config_default (place, &config, err) < 0
      || apply_options (options, config, err) < 0)
    return -1;
  if (server_start (place, steal (config), &server, err) < 0)
    return -1;
  result = tell_ready (server, options->json, err);
  if (result == 0 && wait_end (server, signals) == 0)
    server_drain (server,
                  coffer_now_ns ()
                  + (int64_t) server->config->limits.drain_ms * 1000000,
                  signals);
  server_stop (server);
  return result;
}

static int
fail (const struct options *options, const struct error *error)
{
  const struct error_info *info = error_lookup (error->number);
  const char *next = error_next_step (error);

  if (options->json) {
    auto_json json_t *json = error_to_json (error);
    auto_free char *text = json_text (json);

    printf ("%s\n", text ? text : "{}");
  } else {
    auto_free char *shown = text_escape (error_message (error),
                                         strlen (error_message (error)));

    fprintf (stderr, "coffer: E%d: %s\n", error->number, shown ? shown : "");
    if (next)
      fprintf (stderr, "  hint: %s\n", next);
  }
  return info ? info->exit_status : 1;
}

int
main (int argc, char **argv)
{
  struct options options = { 0 };
  auto_error struct error *error = NULL;
  int status = 0;

  /* It was executed from a descriptor, whose number is its name so far. */
  prctl (PR_SET_NAME, "coffer-serve");
  mallopt (M_ARENA_MAX, ARENAS);
  /* Who runs a daemon wants to know what it does, unless told otherwise. */
  log_set_level (LOG_LEVEL_INFO);
  log_configure (secure_getenv ("COFFER_LOG"));
  if (read_options (&options, argc, argv, &error) < 0)
    status = -1;
  if (options.verbose)
    log_set_level (LOG_LEVEL_DEBUG);
  if (status == 0)
    status = options.routes ? routes_print (options.json, &error)
                            : serve (&options, &error);
  if (status < 0)
    status = fail (&options, error);
  coffer_strings_free (&options.listen);
  if (fflush (stdout) == EOF || ferror (stdout))
    status = status ? status : 1;
  return status;
}
