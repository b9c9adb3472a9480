/* SPDX-License-Identifier: Apache-2.0 */
/* What providers report, as JSON and as fields. */

#ifndef SANDBOX_INFO_H
#define SANDBOX_INFO_H

#include "base/json.h"
#include "provider/provider.h"

/* Gathers the sandbox_info and the facts that a call emits. */
struct info_sink {
  json_t *infos;                /* array, each as info_to_json */
  json_t *facts;                /* array */
  int no_facts;                 /* nobody looks at them */
  char *native_id;              /* of the last sandbox_info */
  int64_t created_ns, expires_ns;
  int failed;                   /* memory was out */
  struct provider_sink outer;   /* whose progress is given on */
};
void info_sink_init (struct info_sink *sink);
void info_sink_fini (struct info_sink *sink);
#define auto_info_sink __attribute__ ((cleanup (info_sink_fini)))

/* `call` (NULL: the defaults) with this sink. */
struct provider_call info_call (struct info_sink *sink,
                                const struct provider_call *call);

/* Only what was reported: fields that are NULL or 0 are left out. */
json_t *info_to_json (const struct coffer_sandbox_info *info);
json_t *fact_to_json (const struct coffer_fact *fact);
json_t *stat_to_json (const struct coffer_file_stat *stat);

#endif /* SANDBOX_INFO_H */
