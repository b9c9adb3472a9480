/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in the log.  Secrets that the host handed in are hidden as they are
 * in all that a provider says; a configuration and an environment may hold
 * more of them, which nobody has named, so of these only the names are shown.
 * Parts of a long text are cut anywhere, a secret too, and are not shown. */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "provider/redact.h"
#include "provider/trace.h"

#define TOPIC "channel"
#define SHOWN_BYTES 2048

/* NAME=VALUE without the value; what is no such text is hidden whole. */
static json_t *
name_only (const json_t *entry)
{
  const char *text = json_string_value (entry);
  const char *end = text ? strchr (text, '=') : NULL;
  auto_free char *shown
    = end ? text_printf ("%.*s=[hidden]", (int) (end - text), text) : NULL;

  return json_string (shown ? shown : "[hidden]");
}

static void
hide_values (json_t *frame)
{
  const char *key;
  json_t *value, *entry;
  size_t i;

  json_object_foreach (frame, key, value) {
    if (json_is_object (value)) {
      hide_values (value);
      continue;
    }
    if (strcmp (key, "env") != 0 && strcmp (key, "config") != 0)
      continue;
    json_array_foreach (value, i, entry)
      json_array_set_new (value, i, name_only (entry));
  }
}

void
trace_frame (const struct provider *provider, const char *way,
             const json_t *frame, int n_fds)
{
  int keep = errno;
  auto_json json_t *shown = NULL;
  auto_free char *text = NULL;

  if (!log_enabled (LOG_LEVEL_DEBUG, TOPIC))
    return;
  shown = redact_json (provider->redactor, frame);
  if (shown && strcmp (json_string_value (json_object_get (shown, "kind"))
                         ? json_string_value (json_object_get (shown, "kind"))
                         : "", "part") == 0)
    json_object_del (shown, "text");
  if (shown)
    hide_values (shown);
  text = shown ? json_text (shown) : NULL;
  if (text)
    log_event (LOG_LEVEL_DEBUG, TOPIC, "%s %s %.*s%s, descriptors: %d",
               provider->manifest->id, way, SHOWN_BYTES, text,
               strlen (text) > SHOWN_BYTES ? " …" : "", n_fds);
  errno = keep;
}

/* By the name of the provider, so that no other waits for nobody. */
int
trace_holds (const struct provider *provider)
{
  const char *wanted = secure_getenv ("COFFER_WORKER_HOLD");

  return wanted && strcmp (wanted, provider->manifest->id) == 0;
}
