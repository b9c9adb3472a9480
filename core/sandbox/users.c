/* SPDX-License-Identifier: Apache-2.0 */
/* Who still needs a provider: the records know. */

#include "config.h"

#include <string.h>

#include "base/json.h"
#include "sandbox/sandbox.h"

int
sandbox_of_provider (struct host *host, const char *provider, json_t **out,
                     struct error **err)
{
  auto_json json_t *rows = NULL, *ids = json_array ();
  json_t *row;
  size_t i;

  /* Those for one command are in it too; what is gone is dropped by it. */
  if (sandbox_list (host, &rows, err) < 0)
    return -1;
  json_array_foreach (rows, i, row) {
    const char *of = json_string_value (json_object_get (row, "provider"));

    if (of && strcmp (of, provider) == 0)
      json_array_append (ids, json_object_get (row, "id"));
  }
  *out = steal (ids);
  return 0;
}
