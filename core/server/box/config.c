/* SPDX-License-Identifier: Apache-2.0 */
/* See config.h. */

#include <config.h>

#include "base/text.h"
#include "server/box/config.h"

#define IDLE_MAX_MS (UINT64_C (366) * 86400000)

const struct box_config box_config_default = { .idle_ms = 300000,
                                               .sessions = 64,
                                               .processes = 64 };

static int
read_number (const struct yaml_source *source, const struct yaml_node *map,
             const char *key, uint64_t max, uint64_t *out, struct error **err)
{
  const struct yaml_node *node = yaml_get (map, key);

  return node ? yaml_u64 (source, node, key, 1, max, out, err) : 0;
}

int
box_config_read (const struct yaml_source *source,
                 const struct yaml_node *serve, struct box_config *out,
                 struct error **err)
{
  static const char *const keys[] = { "idle_ttl", "max_sessions",
                                      "max_processes", NULL };
  const struct yaml_node *map = yaml_get (serve, "box");
  const struct yaml_node *idle = yaml_get (map, "idle_ttl");

  if (map == NULL)
    return 0;
  if (yaml_check_keys (source, map, keys, err) < 0)
    return -1;
  if (idle && (idle->kind != YAML_SCALAR
               || text_parse_duration (idle->text, &out->idle_ms) < 0
               || out->idle_ms > IDLE_MAX_MS))
    return yaml_fail (source, idle, err, "idle_ttl: a time such as 300s, at "
                      "most 366 days; 0 is for ever");
  if (read_number (source, map, "max_sessions", 5000, &out->sessions, err) < 0)
    return -1;
  return read_number (source, map, "max_processes", 1024, &out->processes,
                      err);
}
