/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator has configured: KEY=VALUE, checked for their types by the
 * host, and here for what they mean. */

#define _GNU_SOURCE

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/files.h>

#include "docker.h"

#define SECOND_NS INT64_C (1000000000)

static const struct {
  const char *key;
  size_t offset;
} strings[] = {
  {"engine", offsetof (struct docker_config, engine)},
  {"image", offsetof (struct docker_config, image)},
  {"images", offsetof (struct docker_config, images)},
  {"entrypoint", offsetof (struct docker_config, entrypoint)},
  {"runtime", offsetof (struct docker_config, runtime)},
  {"registry_auth", offsetof (struct docker_config, registry_auth)},
  {"user", offsetof (struct docker_config, user)},
  {"tls", offsetof (struct docker_config, tls)},
  {"ca", offsetof (struct docker_config, ca)},
  {"certificate", offsetof (struct docker_config, certificate)},
  {"key", offsetof (struct docker_config, key)},
};

static char **
place (struct docker_config *config, size_t offset)
{
  return (char **) (void *) ((char *) config + offset);
}

void
docker_config_fini (struct docker_config *config)
{
  for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
    char **value = place (config, strings[i].offset);

    if (*value)
      explicit_bzero (*value, strlen (*value));
    free (*value);
    *value = NULL;
  }
}

/* "500ms", "30s", "5m", "2h", which the host has checked to be one; -1. */
static int64_t
duration_ns (const char *text)
{
  static const struct {
    const char *unit;
    int64_t ns;
  } units[] = {
    {"ms", 1000000}, {"s", SECOND_NS}, {"m", 60 * SECOND_NS},
    {"h", 3600 * SECOND_NS}, {"d", 86400 * SECOND_NS},
  };
  char *end;
  double value = strtod (text, &end);

  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (end > text && strcmp (end, units[i].unit) == 0 && value >= 0
        && value * (double) units[i].ns < 9e18)
      return (int64_t) (value * (double) units[i].ns);
  return -1;
}

static int
take (struct docker_config *config, const char *entry)
{
  const char *value = strchr (entry, '=');
  size_t size = value ? (size_t) (value - entry) : 0;

  if (!value++)
    return 0;
  for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
    if (strlen (strings[i].key) == size
        && strncmp (entry, strings[i].key, size) == 0) {
      char **at = place (config, strings[i].offset);

      free (*at);
      *at = *value ? strdup (value) : NULL;
      return *value && !*at ? -1 : 0;
    }
  if (strncmp (entry, "pull=", 5) == 0)
    config->pull = strcmp (value, "true") == 0;
  else if (strncmp (entry, "pull_timeout=", 13) == 0)
    config->pull_timeout_ns = duration_ns (value);
  return 0;
}

/* UID:GID, decimal, no 0: root inside is the machine's root where the engine
 * has no user namespace of its own. */
static int
user_is_good (const char *user)
{
  for (int i = 0; i < 2; i++) {
    char *end;
    unsigned long id = strtoul (user, &end, 10);

    if (*user < '1' || *user > '9' || id > 2147483647 || *end != (i ? 0 : ':'))
      return 0;
    user = end + 1;
  }
  return 1;
}

/* A socket of the same machine is in a path of this one: `unix:///…`. */
static int
engine_is_good (const char *engine)
{
  return strncmp (engine, "unix:///", 8) == 0
         || strncmp (engine, "tcp://", 6) == 0
         || strncmp (engine, "http://", 7) == 0
         || strncmp (engine, "https://", 8) == 0;
}

/* As ~/.docker/config.json has it. */
static int
is_store (const char *text)
{
  docker_autowiped_json json_t *store = json_loads (text, 0, NULL);

  return json_is_object (json_object_get (store, "auths"));
}

static int32_t
check (struct coffer_call *call, struct docker_config *config)
{
  if (!config->engine || !engine_is_good (config->engine))
    return coffer_fail (call, COFFER_INVALID, "engine must be unix:///PATH, "
                        "tcp://HOST:PORT or https://HOST:PORT");
  if (!config->user)
    config->user = strdup (SANDBOX_USER);
  if (!config->user)
    return coffer_fail_errno (call, ENOMEM, "the configuration");
  if (!user_is_good (config->user))
    return coffer_fail (call, COFFER_INVALID, "user must be UID:GID, two "
                        "numbers of which none is 0");
  if (config->registry_auth && !is_store (config->registry_auth))
    return coffer_fail (call, COFFER_UNAUTHENTICATED, "registry_auth holds no "
                        "credentials: it is one line of JSON with `auths`, as "
                        "~/.docker/config.json has it");
  if (config->pull_timeout_ns < 0)
    return coffer_fail (call, COFFER_INVALID, "pull_timeout must be a "
                        "duration such as 30s or 5m");
  return COFFER_OK;
}

int32_t
docker_configure (struct coffer_call *call, struct docker *docker,
                  const char *const *config)
{
  for (; config && *config; config++)
    if (take (&docker->config, *config) < 0)
      return coffer_fail_errno (call, ENOMEM, "the configuration");
  return check (call, &docker->config);
}
