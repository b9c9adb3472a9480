/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses a template: the records know. */

#include "config.h"

#include <string.h>

#include "base/json.h"
#include "sandbox/host.h"
#include "sandbox/template.h"
#include "store/template.h"

static int
uses (const struct sandbox_record *record, const char *digest)
{
  auto_json json_t *spec = NULL;
  const char *of;

  if (!record->spec || !strstr (record->spec, digest)
      || record->state == SANDBOX_GONE)
    return 0;
  if (json_parse (record->spec, strlen (record->spec), &spec, NULL) < 0)
    return 1;
  of = json_string_value (json_object_get (spec, "template_digest"));
  return of && strcmp (of, digest) == 0;
}

static int
in_use (void *data, const char *digest, char **who, struct error **err)
{
  auto_record_list struct record_list list = { 0 };
  struct host *host = data;
  size_t i;

  if (records_list (host_records (host), RECORDS_ALL, &list, err) < 0)
    return -1;
  for (i = 0; i < list.count; i++)
    if (uses (list.items[i], digest)) {
      *who = strdup (list.items[i]->id);
      return *who ? 0 : error_set (err, E_NO_MEMORY, 0, "a template");
    }
  return 0;
}

int
sandbox_template_remove (struct host *host, const char *name,
                         struct error **err)
{
  auto_json json_t *list = NULL;

  if (!host_records (host))
    return error_set (err, E_RECORDS, 0,
                      "who uses a template is not known without records");
  /* A list drops the rows of what is gone. */
  if (sandbox_list (host, &list, err) < 0)
    return -1;
  return template_remove (host->place, name, in_use, host, err);
}
