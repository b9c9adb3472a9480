/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's configuration as a whole: what holds where nothing is said, the
 * file, the options, and what goes together.  serve-read.c has the sections. */

#include <config.h>

#include "server/serve-config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "base/yaml.h"
#include "policy/profile.h"
#include "server/listen.h"
#include "server/serve-read.h"

#define SOCKET_NAME "serve.sock"
#define FILE_NAME "coffer.yaml"

struct serve_config *
serve_config_ref (struct serve_config *config)
{
  atomic_fetch_add (&config->refs, 1);
  return config;
}

void
serve_config_unref (struct serve_config *config)
{
  size_t i;

  if (!config || atomic_fetch_sub (&config->refs, 1) != 1)
    return;
  for (i = 0; i < config->n_logins; i++) {
    free (config->logins[i].name);
    free (config->logins[i].tenant);
  }
  free (config->logins);
  free (config->socket);
  free (config->execute_profile);
  yaml_free_texts (config->listen);
  yaml_free_texts (config->allow_hosts);
  observe_config_fini (&config->observe);
  yaml_free_texts (config->allowed_roots);
  free (config);
}

/* ---- lists of texts ---------------------------------------------------------- */

/* `first` (may be NULL), then copies of `more` (may be NULL); takes the first's
 * texts.  NULL: no memory, and the first is as it was. */
static char **
texts_join (char **first, const char *const *more)
{
  size_t n = 0, m = 0, i;
  char **list;

  while (first && first[n])
    n++;
  while (more && more[m])
    m++;
  list = calloc (n + m + 1, sizeof *list);
  for (i = 0; list && i < m; i++)
    if (!(list[n + i] = strdup (more[i])))
      break;
  if (!list || i < m) {
    while (list && i-- > 0)
      free (list[n + i]);
    free (list);
    return NULL;
  }
  for (i = 0; i < n; i++)
    list[i] = first[i];
  free (first);
  return list;
}

/* ---- what holds where nothing is said ----------------------------------------- */

static struct serve_config *
config_new (const struct place *place)
{
  static const char *const listen[] = { "127.0.0.1:8000", NULL };
  auto_serve_config struct serve_config *config = calloc (1, sizeof *config);

  if (!config)
    return NULL;
  atomic_init (&config->refs, 1);
  serve_limits_default (&config->limits);
  config->box = box_config_default;
  observe_config_default (&config->observe);
  config->socket = text_printf ("%s/" SOCKET_NAME, place->runtime);
  config->listen = texts_join (NULL, listen);
  config->allow_hosts = texts_join (NULL, NULL);
  config->allowed_roots = texts_join (NULL, NULL);
  if (!config->socket || !config->listen || !config->allow_hosts
      || !config->allowed_roots)
    return NULL;
  return steal (config);
}

/* An ordinary user's daemon is that user's: what the system's file says is for
 * the system's. */
static int
read_file (const struct place *place, struct serve_config *config,
           struct error **err)
{
  auto_free char *shown = text_printf ("%s/" FILE_NAME, place->config);
  const struct yaml_source source = { shown, E_CONFIG };
  auto_yaml struct yaml_node *root = NULL;
  auto_free char *bytes = NULL;
  struct error *error = NULL;
  coffer_autoclose int dir = -1;
  const struct yaml_node *node;
  size_t size = 0;

  if (!shown)
    return error_set (err, E_NO_MEMORY, 0, "the configuration");
  dir = place_open_trusted_dir (place->config, &error);
  if (dir < 0 && error->number != E_NOT_FOUND)
    return error_move (err, error);
  error_free (steal (error));
  if (dir < 0)
    return 0;
  if (place_read_trusted (dir, FILE_NAME, shown, YAML_MAX_BYTES, E_CONFIG,
                          &bytes, &size, &error) < 0) {
    if (error->sys_errno != ENOENT)
      return error_move (err, error);
    error_free (error);
    return 0;
  }
  if (yaml_is_blank (bytes, size))
    return 0;
  if (yaml_read (bytes, size, shown, E_CONFIG, &root, err) < 0)
    return -1;
  node = yaml_get (root, "serve");
  return node ? serve_read (&source, node, config, err) : 0;
}

/* ---- options ------------------------------------------------------------------- */

static int
apply_words (const struct serve_options *options, struct serve_config *config,
             struct error **err)
{
  if (options->anonymous) {
    if (strcmp (options->anonymous, "execute") != 0)
      return error_set (err, E_USAGE, 0, "--anonymous wants execute");
    config->anonymous = 1;
  }
  if (options->log && observe_log_word (options->log, &config->observe) < 0)
    return error_set (err, E_USAGE, 0, "--log wants text or json");
  return 0;
}

static int
apply_options (const struct serve_options *options,
               struct serve_config *config, struct error **err)
{
  char **list;

  if (apply_words (options, config, err) < 0)
    return -1;
  if (options->socket) {
    if (options->socket[0] != '/')
      return error_set (err, E_USAGE, 0, "--socket wants an absolute path");
    free (config->socket);
    config->socket = strdup (options->socket);
  }
  if (options->listen) {
    list = texts_join (NULL, options->listen);
    if (!list)
      return error_set (err, E_NO_MEMORY, 0, "the configuration");
    yaml_free_texts (config->listen);
    config->listen = list;
  }
  list = config->socket ? texts_join (config->allow_hosts,
                                      options->allow_hosts) : NULL;
  if (!list)
    return error_set (err, E_NO_MEMORY, 0, "the configuration");
  config->allow_hosts = list;
  return 0;
}

/* ---- what goes together ---------------------------------------------------------- */

static int
check_hosts (struct serve_config *config, struct error **err)
{
  char **host, *p;

  for (host = config->allow_hosts; *host; host++) {
    for (p = *host; *p; p++)
      *p = (char) tolower ((unsigned char) *p);
    if (strspn (*host, "abcdefghijklmnopqrstuvwxyz0123456789.-_")
          != strlen (*host)
        || !**host)
      return error_set (err, E_CONFIG, 0, "allow_hosts: %s is no name of a"
                        " host: letters, digits, dots, dashes", *host);
  }
  return 0;
}

static int
check_listen (const struct serve_config *config, struct error **err)
{
  struct sockaddr_storage address;
  size_t i;

  for (i = 0; config->listen[i]; i++) {
    if (listen_parse (config->listen[i], &address, err) < 0)
      return -1;
    if (!config->anonymous || listen_is_loopback (&address)
        || config->allow_hosts[0])
      continue;
    error_set (err, E_CONFIG, 0, "anonymous on %s, which is not of this"
               " machine alone, wants the names that it is asked by",
               config->listen[i]);
    error_hint (err, "list them in serve.allow_hosts, or as --allow-host NAME");
    return -1;
  }
  return 0;
}

/* A profile that is not there, or none for Python, would be found by the first
 * who asks. */
static int
check_execute (const struct place *place, const struct serve_config *config,
               struct error **err)
{
  auto_profile struct profile *profile = NULL;
  auto_error struct error *error = NULL;

  if (!config->execute_profile)
    return 0;
  if (profile_find (place, config->execute_profile, &profile, &error) < 0)
    return error_set (err, E_CONFIG, 0, "serve.execute.profile: %s",
                      error_message (error));
  return profile->words[PROFILE_IMPORTS]
           ? 0 : error_set (err, E_CONFIG, 0, "serve.execute.profile: profile %s"
                            " is none for Python: it has no imports",
                            profile->name);
}

int
serve_config_read (const struct place *place,
                   const struct serve_options *options,
                   struct serve_config **out, struct error **err)
{
  auto_serve_config struct serve_config *config = config_new (place);

  if (!config)
    return error_set (err, E_NO_MEMORY, 0, "the configuration");
  if (read_file (place, config, err) < 0
      || apply_options (options, config, err) < 0
      || check_hosts (config, err) < 0 || check_listen (config, err) < 0
      || check_execute (place, config, err) < 0)
    return -1;
  if (config->host_provider && geteuid () == 0)
    return error_set (err, E_CONFIG, 0, "serve.host_provider: the provider"
                      " host is no sandbox, and never root's");
  if (config->limits.runs == 0)
    config->limits.runs = (uint64_t) get_nprocs ();
  *out = steal (config);
  return 0;
}
