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
#include "policy/token.h"
#include "server/listen.h"
#include "server/routes.h"
#include "server/server.h"
#include "server/systemd.h"

/* A thread for each connection must not mean a heap for each. */
#define ARENAS 4

struct options {
  struct coffer_strings listen, allow_hosts;
  int listen_given, json, verbose, check, routes;
  struct serve_options serve;
};

enum { OPTION_LISTEN = 256, OPTION_SOCKET, OPTION_ANONYMOUS, OPTION_ALLOW_HOST,
       OPTION_LOG, OPTION_CHECK, OPTION_JSON, OPTION_VERBOSE, OPTION_IGNORED,
       OPTION_ROUTES };

static const struct option long_options[] = {
  { "listen", required_argument, NULL, OPTION_LISTEN },
  { "socket", required_argument, NULL, OPTION_SOCKET },
  { "anonymous", required_argument, NULL, OPTION_ANONYMOUS },
  { "allow-host", required_argument, NULL, OPTION_ALLOW_HOST },
  { "log", required_argument, NULL, OPTION_LOG },
  { "check", no_argument, NULL, OPTION_CHECK },
  { "routes", no_argument, NULL, OPTION_ROUTES },
  { "json", no_argument, NULL, OPTION_JSON },
  { "verbose", no_argument, NULL, OPTION_VERBOSE },
  { "yes", no_argument, NULL, OPTION_IGNORED },
  { "color", no_argument, NULL, OPTION_IGNORED },
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
    options->serve.socket = optarg;
    return 0;
  case OPTION_ANONYMOUS:
    options->serve.anonymous = optarg;
    return 0;
  case OPTION_ALLOW_HOST:
    coffer_strings_add (&options->allow_hosts, optarg);
    return 0;
  case OPTION_LOG:
    options->serve.log = optarg;
    return 0;
  case OPTION_CHECK:
    options->check = 1;
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
  case OPTION_IGNORED:
    return 0;                   /* one of every command's that means nothing */
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
  if (options->listen.failed || options->allow_hosts.failed)
    return error_set (err, E_NO_MEMORY, 0, "the options");
  options->serve.allow_hosts = coffer_strings_view (&options->allow_hosts);
  if (options->listen_given)
    options->serve.listen = coffer_strings_view (&options->listen);
  return 0;
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

/* What cannot be read again, or is wrong, leaves all as it was. */
static void
reload (struct server *server, const struct options *options)
{
  auto_serve_config struct serve_config *config = NULL;
  auto_error struct error *error = NULL;
  auto_json json_t *addresses = listener_addresses (server->listener);

  systemd_notify_reload ();
  if (serve_config_read (server->place, &options->serve, &config, &error) < 0
      || server_check_open (addresses, config, server->tokens, &error) < 0
      || observe_reload (server, &config->observe, &error) < 0)
    log_event (LOG_LEVEL_ERROR, "serve", "the configuration of before still"
               " holds: %s", error_message (error));
  else {
    server_configure (server, steal (config));
    log_event (LOG_LEVEL_INFO, "serve", "the configuration was read again");
  }
  systemd_notify ("READY=1");
}

static int
wait_end (int signals, struct server *server, const struct options *options)
{
  struct signalfd_siginfo info;

  while (coffer_read_all (signals, &info, sizeof info)
         == (ssize_t) sizeof info) {
    if (info.ssi_signo != SIGHUP)
      return 0;
    reload (server, options);
  }
  return -1;
}

/* ---- start and end ------------------------------------------------------------ */

static int
tell_ready (const struct server *server, int json, struct error **err)
{
  const char *path = listener_path (server->listener);
  auto_json json_t *addresses = listener_addresses (server->listener);
  auto_json json_t *object = json_pack ("{s:s?, s:O}", "socket", path,
                                        "listen", addresses);
  auto_free char *text = json_text (object);
  const json_t *one;
  size_t i;

  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "a message");
  if (json)
    printf ("%s\n", text);
  else if (path)
    printf ("serving on unix:%s\n", path);
  json_array_foreach (addresses, i, one)
    if (!json)
      printf ("serving on http://%s\n", json_string_value (one));
  fflush (stdout);
  systemd_notify ("READY=1");
  return 0;
}

static int
run (struct server *server, const struct options *options, int signals,
     struct error **err)
{
  auto_serve_config struct serve_config *config = NULL;
  int64_t until;

  if (tell_ready (server, options->json, err) < 0)
    return -1;
  if (wait_end (signals, server, options) < 0)
    return error_set (err, E_IO, errno, "wait for a signal");
  systemd_notify ("STOPPING=1");
  /* As it is now: it may have been read again. */
  config = server_config_ref (server);
  until = coffer_now_ns () + (int64_t) config->limits.drain_time * 1000000;
  server_drain (server, until, signals);
  return 0;
}

/* Nothing is opened. */
static int
check (const struct options *options, const struct place *place,
       const struct serve_config *config, struct error **err)
{
  auto_json json_t *listen = json_texts ((const char *const *) config->listen);
  struct tokens *tokens = NULL;
  int result;

  if (tokens_open (place, &tokens, err) < 0)
    return -1;
  result = server_check_open (listen, config, tokens, err);
  tokens_free (tokens);
  if (result == 0)
    printf ("%s\n", options->json ? "{\"ok\":true}"
                                  : "the configuration is valid");
  return result;
}

static int
serve (struct options *options, struct error **err)
{
  auto_place struct place *place = NULL;
  auto_serve_config struct serve_config *config = NULL;
  coffer_autoclose int signals = -1;
  struct server *server = NULL;
  size_t given = 0;
  int result;

  if (systemd_sockets (&given, err) < 0)
    return -1;
  signals = catch_signals (err);
  if (signals < 0 || place_find (&place, err) < 0
      || serve_config_read (place, &options->serve, &config, err) < 0)
    return -1;
  log_set_json (config->observe.log_json);
  if (options->check)
    return check (options, place, config, err);
  if (server_start (place, steal (config), given, &server, err) < 0)
    return -1;
  result = run (server, options, signals, err);
  server_stop (server);
  return result;
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
    status = error_print (error, options.json);
  coffer_strings_free (&options.listen);
  coffer_strings_free (&options.allow_hosts);
  if (fflush (stdout) == EOF || ferror (stdout))
    status = status ? status : 1;
  return status;
}
