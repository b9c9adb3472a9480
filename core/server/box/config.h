/* SPDX-License-Identifier: Apache-2.0 */
/* `box` of the section `serve`. */

#ifndef SERVER_BOX_CONFIG_H
#define SERVER_BOX_CONFIG_H

#include "base/yaml.h"

struct box_config {
  uint64_t idle_ms;             /* unused for so long, a session goes; 0: it
                                 * stays until its end is asked for */
  uint64_t sessions, processes; /* at most, of one tenant */
};
extern const struct box_config box_config_default;

/* The key box of the map `serve`, over what is in *out. */
int box_config_read (const struct yaml_source *source,
                     const struct yaml_node *serve, struct box_config *out,
                     struct error **err);

#endif /* SERVER_BOX_CONFIG_H */
