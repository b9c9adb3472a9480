/* SPDX-License-Identifier: Apache-2.0 */
/* Who still needs a provider: the records know. */

#include "config.h"

#include <string.h>

#include "base/json.h"
#include "sandbox/host.h"

int
sandbox_of_provider (struct host *host, const char *provider, json_t **out,
                     struct error **err)
{
  auto_record_list struct record_list list = { 0 };
  auto_json json_t *fresh = NULL, *ids = json_array ();
  size_t i;

  if (!host_records (host))
    return error_set (err, E_RECORDS, 0, "which sandboxes %s has is not known"
                      " without records", provider);
  /* A list drops the rows of what is gone. */
  if (sandbox_list (host, &fresh, err) < 0
      || records_list (host_records (host), RECORDS_ALL, &list, err) < 0)
    return -1;
  for (i = 0; i < list.count; i++)
    if (list.items[i]->state != SANDBOX_GONE && list.items[i]->provider
        && strcmp (list.items[i]->provider, provider) == 0)
      json_array_append_new (ids, json_string (list.items[i]->id));
  *out = steal (ids);
  return 0;
}
