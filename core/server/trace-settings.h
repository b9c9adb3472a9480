/* SPDX-License-Identifier: Apache-2.0 */
/* Whether spans are sent, and where to: `otlp` of the section `serve`, and the
 * environment by OpenTelemetry's names, which goes over it. */

#ifndef SERVER_TRACE_SETTINGS_H
#define SERVER_TRACE_SETTINGS_H

#include "base/json.h"

/* What the configuration says; NULL: nothing. */
struct trace_config {
  char *endpoint;               /* the collector's, without /v1/traces */
  char *protocol;               /* "http/protobuf", "http/json" */
  char *headers_file;           /* lines "name: value", for secrets */
  char *certificate;            /* whom to trust besides the system's */
};
void trace_config_fini (struct trace_config *config);

/* Like secure_getenv. */
typedef char *trace_environment (const char *name);

/* *out is what coffer-otlp takes, or NULL: no spans are sent.  E_CONFIG_VALUE
 * names what is wrong. */
int trace_settings (const struct trace_config *config,
                    trace_environment *environment, json_t **out,
                    struct error **err);

#endif /* SERVER_TRACE_SETTINGS_H */
