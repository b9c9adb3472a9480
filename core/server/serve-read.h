/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the daemon's configuration. */

#ifndef SERVER_SERVE_READ_H
#define SERVER_SERVE_READ_H

#include "base/yaml.h"
#include "server/serve-config.h"

void serve_limits_default (struct serve_limits *limits);

/* The section `serve`, over what the configuration says so far. */
int serve_read (const struct yaml_source *source, const struct yaml_node *node,
                struct serve_config *config, struct error **err);

#endif /* SERVER_SERVE_READ_H */
