/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's configuration, and what holds where nothing is said. */

#include <config.h>

#include "server/serve-config.h"

#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

#include "base/text.h"
#include "base/yaml.h"

#define SOCKET_NAME "serve.sock"
#define DEFAULT_LISTEN "127.0.0.1:8000"

struct serve_config *
serve_config_ref (struct serve_config *config)
{
  atomic_fetch_add (&config->refs, 1);
  return config;
}

void
serve_config_unref (struct serve_config *config)
{
  if (!config || atomic_fetch_sub (&config->refs, 1) != 1)
    return;
  free (config->socket);
  yaml_free_texts (config->listen);
  yaml_free_texts (config->allow_hosts);
  observe_config_fini (&config->observe);
  free (config);
}

static char **
one_text (const char *text)
{
  char **list = calloc (2, sizeof *list);

  if (list && text && !(list[0] = strdup (text))) {
    free (list);
    return NULL;
  }
  return list;
}

int
serve_config_default (const struct place *place, struct serve_config **out,
                      struct error **err)
{
  auto_serve_config struct serve_config *config = calloc (1, sizeof *config);

  if (!config)
    return error_set (err, E_NO_MEMORY, 0, "the configuration");
  atomic_init (&config->refs, 1);
  config->limits = (struct serve_limits){
    .header = 16384, .body = 1 << 20, .header_ms = 10000, .body_ms = 30000,
    .idle_ms = 60000, .request_ms = 60000, .drain_ms = 30000,
    .connections = 1024, .exec_log = UINT64_C (64) << 20,
    .exec_logs = UINT64_C (1) << 30
  };
  config->socket = text_printf ("%s/%s", place->runtime, SOCKET_NAME);
  config->listen = one_text (DEFAULT_LISTEN);
  config->allow_hosts = one_text (NULL);
  if (!config->socket || !config->listen || !config->allow_hosts)
    return error_set (err, E_NO_MEMORY, 0, "the configuration");
  *out = steal (config);
  return 0;
}

int
serve_config_set_listen (struct serve_config *config,
                         const struct coffer_strings *addresses)
{
  char **list = calloc (addresses->count + 1, sizeof *list);
  size_t i;

  for (i = 0; list && i < addresses->count; i++)
    if (!(list[i] = strdup (addresses->items[i]))) {
      yaml_free_texts (list);
      list = NULL;
    }
  if (!list || addresses->failed) {
    yaml_free_texts (list);
    return -1;
  }
  yaml_free_texts (config->listen);
  config->listen = list;
  return 0;
}
