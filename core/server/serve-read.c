/* SPDX-License-Identifier: Apache-2.0 */
/* The section `serve` of coffer.yaml, read as strictly as the rest of it.  A key
 * is a row of a table, with the function that reads it. */

#include <config.h>

#include "server/serve-read.h"

#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define MAX_LOGINS 256

typedef int read_key (const struct yaml_source *source,
                      const struct yaml_node *node, struct serve_config *config,
                      struct error **err);

/* ---- limits -------------------------------------------------------------------- */

enum kind { SIZE, TIME, NUMBER };

#define KIB UINT64_C (1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)
#define SECOND UINT64_C (1000)

static const struct limit {
  const char *key;
  size_t offset;
  enum kind kind;
  uint64_t least, most, normal;
} limits[] = {
#define LIMIT(name, kind, least, most, normal)                                \
  { #name, offsetof (struct serve_limits, name), kind, least, most, normal }
  LIMIT (header, SIZE, 1024, 64 * KIB, 16 * KIB),
  LIMIT (body, SIZE, 1024, 64 * MIB, MIB),
  LIMIT (upload, SIZE, MIB, 1024 * GIB, 4 * GIB),
  LIMIT (header_time, TIME, 100, 600 * SECOND, 10 * SECOND),
  LIMIT (body_time, TIME, 100, 3600 * SECOND, 30 * SECOND),
  LIMIT (idle_time, TIME, 100, 24 * 3600 * SECOND, 60 * SECOND),
  LIMIT (request_time, TIME, SECOND, 24 * 3600 * SECOND, 120 * SECOND),
  LIMIT (queue_time, TIME, 100, 3600 * SECOND, 20 * SECOND),
  LIMIT (drain_time, TIME, 100, 3600 * SECOND, 30 * SECOND),
  LIMIT (exec_log, SIZE, 64 * KIB, 1024 * GIB, 64 * MIB),
  LIMIT (exec_logs, SIZE, MIB, 1024 * GIB, GIB),
  LIMIT (commands, NUMBER, 1, 65536, 4096),
  LIMIT (keys, NUMBER, 16, 65536, 4096),
  LIMIT (output, SIZE, 4 * MIB, 1024 * GIB, 256 * MIB),
  LIMIT (tenant_share, NUMBER, 1, 100, 50),
  LIMIT (connections, NUMBER, 4, 65536, 1024),
  LIMIT (runs, NUMBER, 0, 4096, 0),
  LIMIT (queue, NUMBER, 0, 65536, 1024),
#undef LIMIT
};
#define N_LIMITS (sizeof limits / sizeof limits[0])

static uint64_t *
limit_of (struct serve_limits *all, const struct limit *limit)
{
  return (uint64_t *) (void *) ((char *) all + limit->offset);
}

void
serve_limits_default (struct serve_limits *all)
{
  size_t i;

  for (i = 0; i < N_LIMITS; i++)
    *limit_of (all, &limits[i]) = limits[i].normal;
}

static char *
limit_shown (const struct limit *limit, uint64_t value)
{
  switch (limit->kind) {
  case SIZE:
    return text_format_size (value);
  case TIME:
    return value < SECOND ? text_printf ("%jums", (uintmax_t) value)
                          : text_format_duration (value);
  default:
    return text_printf ("%ju", (uintmax_t) value);
  }
}

static int
read_limit (const struct yaml_source *source, const struct yaml_node *node,
            const struct limit *limit, uint64_t *out, struct error **err)
{
  auto_free char *text = NULL, *least = NULL, *most = NULL;
  uint64_t value = 0;
  int bad;

  if (yaml_text (source, node, limit->key, &text, err) < 0)
    return -1;
  bad = node->quoted ? -1
        : limit->kind == SIZE ? text_parse_size (text, &value)
        : limit->kind == TIME ? text_parse_duration (text, &value)
                              : text_parse_u64 (text, 0, UINT64_MAX, &value);
  if (bad == 0 && value >= limit->least && value <= limit->most) {
    *out = value;
    return 0;
  }
  least = limit_shown (limit, limit->least);
  most = limit_shown (limit, limit->most);
  return yaml_fail (source, node, err, "%s must be from %s to %s", limit->key,
                    least ? least : "?", most ? most : "?");
}

static const char *const *
limit_keys (void)
{
  static const char *keys[N_LIMITS + 1];
  size_t i;

  for (i = 0; i < N_LIMITS; i++)
    keys[i] = limits[i].key;
  return keys;
}

static int
read_limits (const struct yaml_source *source, const struct yaml_node *node,
             struct serve_config *config, struct error **err)
{
  const struct yaml_node *value;
  size_t i;

  if (yaml_check_keys (source, node, limit_keys (), err) < 0)
    return -1;
  for (i = 0; i < N_LIMITS; i++) {
    value = yaml_get (node, limits[i].key);
    if (value
        && read_limit (source, value, &limits[i],
                       limit_of (&config->limits, &limits[i]), err) < 0)
      return -1;
  }
  return 0;
}

/* ---- who may use the socket ------------------------------------------------------ */

static const char *const login_keys[] = { "name", "tenant", "rights", NULL };

/* A name of the system's, or a number. */
static int
find_id (const struct yaml_source *source, const struct yaml_node *node,
         struct serve_login *login, struct error **err)
{
  const struct passwd *user;
  const struct group *group;
  uint64_t number;

  if (text_parse_u64 (login->name, 0, UINT32_MAX - 1, &number) == 0) {
    login->id = (uid_t) number;
    return 0;
  }
  user = login->is_group ? NULL : getpwnam (login->name);
  group = login->is_group ? getgrnam (login->name) : NULL;
  if (!user && !group)
    return yaml_fail (source, node, err, "there is no %s %s",
                      login->is_group ? "group" : "user", login->name);
  login->id = user ? user->pw_uid : group->gr_gid;
  return 0;
}

static int
read_tenant (const struct yaml_source *source, const struct yaml_node *node,
             char **out, struct error **err)
{
  if (!node) {
    *out = strdup (TENANT_DEFAULT);
    return *out ? 0 : error_set (err, E_NO_MEMORY, 0, "%s", source->name);
  }
  if (yaml_text (source, node, "tenant", out, err) < 0)
    return -1;
  return text_is_id (*out)
           ? 0 : yaml_fail (source, node, err, "tenant must be a letter and"
                            " then letters, digits and dashes, in lower case");
}

static int
read_rights (const struct yaml_source *source, const struct yaml_node *node,
             unsigned *out, struct error **err)
{
  auto_free char *word = NULL;
  enum caller_right right = RIGHT_RUN;

  if (node && yaml_text (source, node, "rights", &word, err) < 0)
    return -1;
  if (word)
    right = right_find (word);
  if (right == RIGHT_NONE)
    return yaml_fail (source, node, err,
                      "rights must be view, run, manage or operate");
  *out = right_all (right);
  return 0;
}

static int
read_login (const struct yaml_source *source, const struct yaml_node *node,
            struct serve_login *login, struct error **err)
{
  const struct yaml_node *name;

  if (yaml_check_keys (source, node, login_keys, err) < 0)
    return -1;
  name = yaml_get (node, "name");
  if (!name)
    return yaml_fail (source, node, err, "name is missing");
  return yaml_text (source, name, "name", &login->name, err) < 0
             || find_id (source, name, login, err) < 0
             || read_tenant (source, yaml_get (node, "tenant"), &login->tenant,
                             err) < 0
             || read_rights (source, yaml_get (node, "rights"), &login->rights,
                             err) < 0
           ? -1 : 0;
}

static int
read_logins (const struct yaml_source *source, const struct yaml_node *node,
             int is_group, struct serve_config *config, struct error **err)
{
  struct serve_login *logins;
  size_t i;

  if (node->kind != YAML_LIST)
    return yaml_fail (source, node, err, "%s must be a list",
                      is_group ? "groups" : "users");
  if (node->count > MAX_LOGINS)
    return yaml_fail (source, node, err, "more than %d entries", MAX_LOGINS);
  logins = realloc (config->logins,
                    (config->n_logins + node->count + 1) * sizeof *logins);
  if (!logins)
    return error_set (err, E_NO_MEMORY, 0, "%s", source->name);
  config->logins = logins;
  for (i = 0; i < node->count; i++) {
    struct serve_login *login = &logins[config->n_logins++];

    *login = (struct serve_login){ .is_group = is_group };
    if (read_login (source, &node->items[i], login, err) < 0)
      return -1;
  }
  return 0;
}

static const char *const socket_keys[] = { "path", "users", "groups", NULL };

static int
read_socket (const struct yaml_source *source, const struct yaml_node *node,
             struct serve_config *config, struct error **err)
{
  const struct yaml_node *value;
  char *path = NULL;

  if (yaml_check_keys (source, node, socket_keys, err) < 0)
    return -1;
  value = yaml_get (node, "path");
  if (value) {
    if (yaml_text (source, value, "path", &path, err) < 0)
      return -1;
    free (config->socket);
    config->socket = path;
    if (path[0] != '/')
      return yaml_fail (source, value, err, "path must be absolute");
  }
  value = yaml_get (node, "users");
  if (value && read_logins (source, value, 0, config, err) < 0)
    return -1;
  value = yaml_get (node, "groups");
  return value ? read_logins (source, value, 1, config, err) : 0;
}

/* ---- the rest --------------------------------------------------------------------- */

static int
read_list (const struct yaml_source *source, const struct yaml_node *node,
           const char *key, char ***list, struct error **err)
{
  char **texts = NULL;

  if (yaml_texts (source, node, key, &texts, err) < 0)
    return -1;
  yaml_free_texts (*list);
  *list = texts;
  return 0;
}

static int
read_listen (const struct yaml_source *source, const struct yaml_node *node,
             struct serve_config *config, struct error **err)
{
  return read_list (source, node, "listen", &config->listen, err);
}

static int
read_hosts (const struct yaml_source *source, const struct yaml_node *node,
            struct serve_config *config, struct error **err)
{
  return read_list (source, node, "allow_hosts", &config->allow_hosts, err);
}

static int
read_roots (const struct yaml_source *source, const struct yaml_node *node,
            struct serve_config *config, struct error **err)
{
  size_t i;

  if (read_list (source, node, "allowed_roots", &config->allowed_roots, err)
      < 0)
    return -1;
  for (i = 0; config->allowed_roots[i]; i++)
    if (config->allowed_roots[i][0] != '/')
      return yaml_fail (source, &node->items[i], err,
                        "allowed_roots: %s is no absolute path",
                        config->allowed_roots[i]);
  return 0;
}

/* One of two words; *out: the second. */
static int
read_word (const struct yaml_source *source, const struct yaml_node *node,
           const char *key, const char *first, const char *second, int *out,
           struct error **err)
{
  auto_free char *word = NULL;

  if (yaml_text (source, node, key, &word, err) < 0)
    return -1;
  *out = strcmp (word, second) == 0;
  return *out || strcmp (word, first) == 0
           ? 0 : yaml_fail (source, node, err, "%s must be %s or %s", key,
                            first, second);
}

static int
read_anonymous (const struct yaml_source *source, const struct yaml_node *node,
                struct serve_config *config, struct error **err)
{
  return read_word (source, node, "anonymous", "none", "execute",
                    &config->anonymous, err);
}

static int
read_host_provider (const struct yaml_source *source,
                    const struct yaml_node *node, struct serve_config *config,
                    struct error **err)
{
  return yaml_flag (source, node, "host_provider", &config->host_provider,
                    err);
}

static const char *const execute_keys[] = { "profile", "isolation", NULL };
static const char *const isolation_keys[] = { "layer5", NULL };

static int
read_isolation (const struct yaml_source *source,
                const struct yaml_node *node, struct serve_config *config,
                struct error **err)
{
  const struct yaml_node *value;

  if (yaml_check_keys (source, node, isolation_keys, err) < 0)
    return -1;
  value = yaml_get (node, "layer5");
  if (!value)
    return 0;
  if (read_word (source, value, "layer5", "namespaces", "container",
                 &config->execute_contained, err) < 0)
    return -1;
  if (config->execute_contained && geteuid () != 0)
    return yaml_fail (source, value, err, "layer5: container wants a daemon of"
                      " root: without namespaces code must have a user of its"
                      " own");
  return 0;
}

static int
read_execute (const struct yaml_source *source, const struct yaml_node *node,
              struct serve_config *config, struct error **err)
{
  const struct yaml_node *value;
  char *profile = NULL;

  if (yaml_check_keys (source, node, execute_keys, err) < 0)
    return -1;
  value = yaml_get (node, "profile");
  if (value) {
    if (yaml_text (source, value, "profile", &profile, err) < 0)
      return -1;
    free (config->execute_profile);
    config->execute_profile = profile;
    if (!text_is_id (profile))
      return yaml_fail (source, value, err, "profile must be a profile's name");
  }
  value = yaml_get (node, "isolation");
  return value ? read_isolation (source, value, config, err) : 0;
}

static const struct {
  const char *key;
  read_key *read;
} keys[] = {
  { "listen", read_listen },
  { "socket", read_socket },
  { "allow_hosts", read_hosts },
  { "anonymous", read_anonymous },
  { "allowed_roots", read_roots },
  { "host_provider", read_host_provider },
  { "execute", read_execute },
  { "limits", read_limits },
  { "log", NULL },              /* these are observe.h's */
  { "audit", NULL },
  { "otlp", NULL },
  { "box", NULL },              /* box/config.h's */
};
#define N_KEYS (sizeof keys / sizeof keys[0])

static const char *const *
main_keys (void)
{
  static const char *words[N_KEYS + 1];
  size_t i;

  for (i = 0; i < N_KEYS; i++)
    words[i] = keys[i].key;
  return words;
}

int
serve_read (const struct yaml_source *source, const struct yaml_node *node,
            struct serve_config *config, struct error **err)
{
  const struct yaml_node *value;
  size_t i;

  if (yaml_check_keys (source, node, main_keys (), err) < 0)
    return -1;
  for (i = 0; i < N_KEYS; i++) {
    value = yaml_get (node, keys[i].key);
    if (value && keys[i].read && keys[i].read (source, value, config, err) < 0)
      return -1;
  }
  if (observe_config_read (source, node, &config->observe, err) < 0)
    return -1;
  return box_config_read (source, node, &config->box, err);
}

const char *const *
serve_config_keys (const char *section)
{
  return strcmp (section, "") == 0               ? main_keys ()
         : strcmp (section, "socket") == 0       ? socket_keys
         : strcmp (section, "socket.users") == 0 ? login_keys
         : strcmp (section, "execute") == 0      ? execute_keys
         : strcmp (section, "execute.isolation") == 0 ? isolation_keys
         : strcmp (section, "limits") == 0       ? limit_keys ()
                                                 : NULL;
}
