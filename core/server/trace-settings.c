/* SPDX-License-Identifier: Apache-2.0 */
/* OTEL_… and the configuration become one object.  See trace-settings.h. */

#include <config.h>

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

#include "base/place.h"
#include "base/text.h"
#include "server/trace-settings.h"

#define HEADERS_FILE_MAX 65536
#define HEADERS_MAX 64
#define TOKEN "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
  "abcdefghijklmnopqrstuvwxyz"

void
trace_config_fini (struct trace_config *config)
{
  free (config->endpoint);
  free (config->protocol);
  free (config->headers_file);
  free (config->certificate);
  memset (config, 0, sizeof *config);
}

/* A variable for all signals, or the one for traces, which goes over it. */
static const char *
variable (trace_environment *environment, const char *name)
{
  auto_free char *one = text_printf ("OTEL_EXPORTER_OTLP_TRACES_%s", name);
  auto_free char *all = text_printf ("OTEL_EXPORTER_OTLP_%s", name);
  const char *value = one ? environment (one) : NULL;

  if (value == NULL || *value == '\0')
    value = all ? environment (all) : NULL;
  return value && *value ? value : NULL;
}

/* ---- headers ------------------------------------------------------------- */

static int
header_put (json_t *headers, const char *name, size_t name_size,
            const char *value, size_t value_size, struct error **err)
{
  auto_free char *key = strndup (name, name_size);
  size_t i;

  if (key == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  if (name_size == 0 || strspn (key, TOKEN) != name_size)
    return error_set (err, E_CONFIG_VALUE, 0,
                      "a header for spans has no name that HTTP knows");
  for (i = 0; i < value_size; i++)
    if ((unsigned char) value[i] < ' ' || value[i] == 0x7f)
      return error_set (err, E_CONFIG_VALUE, 0, "the header %s for spans: a "
                        "control character", key);
  if (json_object_size (headers) >= HEADERS_MAX
      || json_object_set_new (headers, key,
                              json_stringn (value, value_size)) < 0)
    return error_set (err, E_CONFIG_VALUE, 0, "the header %s for spans cannot "
                      "be taken: not UTF-8, or one of more than %d", key,
                      HEADERS_MAX);
  return 0;
}

static void
trim (const char **start, size_t *size)
{
  while (*size && isspace ((unsigned char) **start))
    (*start)++, (*size)--;
  while (*size && isspace ((unsigned char) (*start)[*size - 1]))
    (*size)--;
}

/* "name=value", with `separator` for the =. */
static int
pair_put (json_t *headers, const char *text, size_t size,
          const char *separators, int is_encoded, struct error **err)
{
  const char *p, *value;
  auto_free char *decoded = NULL;
  size_t name_size, value_size, n = 0, i;

  for (p = text; p < text + size && !strchr (separators, *p); p++)
    ;
  if (p == text + size)
    return error_set (err, E_CONFIG_VALUE, 0,
                      "a header for spans has no value");
  name_size = (size_t) (p - text);
  value = p + 1;
  value_size = size - name_size - 1;
  trim (&text, &name_size);
  trim (&value, &value_size);
  decoded = malloc (value_size + 1);
  if (decoded == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  for (i = 0; i < value_size; i++) {
    char hex[3] = { 0 };

    if (is_encoded && value[i] == '%' && i + 2 < value_size
        && isxdigit ((unsigned char) value[i + 1])
        && isxdigit ((unsigned char) value[i + 2])) {
      memcpy (hex, value + i + 1, 2);
      decoded[n++] = (char) strtoul (hex, NULL, 16);
      i += 2;
    } else
      decoded[n++] = value[i];
  }
  return header_put (headers, text, name_size, decoded, n, err);
}

/* OTEL_…_HEADERS: "a=1,b=2", values percent-encoded. */
static int
headers_variable (json_t *headers, const char *list, struct error **err)
{
  while (*list) {
    size_t size = strcspn (list, ",");
    const char *start = list;
    size_t n = size;

    trim (&start, &n);
    if (n && pair_put (headers, start, n, "=", 1, err) < 0)
      return error_wrap (err, "OTEL_EXPORTER_OTLP_HEADERS");
    list += size + (list[size] == ',');
  }
  return 0;
}

static int
headers_file (json_t *headers, const char *path, struct error **err)
{
  auto_free char *text = NULL;
  const char *line, *end;
  size_t size;

  if (place_read_trusted (AT_FDCWD, path, path, HEADERS_FILE_MAX,
                          E_CONFIG_VALUE, &text, &size, err) < 0)
    return -1;
  for (line = text; *line; line = *end ? end + 1 : end) {
    const char *start = line;
    size_t n;

    end = strchrnul (line, '\n');
    n = (size_t) (end - line);
    trim (&start, &n);
    if (n && *start != '#' && pair_put (headers, start, n, ":=", 0, err) < 0)
      return error_wrap (err, "%s", path);
  }
  return 0;
}

/* ---- where to ------------------------------------------------------------ */

static int
check_endpoint (const char *url, struct error **err)
{
  const char *p;

  if (strncmp (url, "http://", 7) != 0 && strncmp (url, "https://", 8) != 0)
    return error_set (err, E_CONFIG_VALUE, 0, "the collector for spans is no "
                      "address that begins with http:// or https://");
  for (p = url; *p; p++)
    if ((unsigned char) *p <= ' ' || (unsigned char) *p >= 0x7f)
      return error_set (err, E_CONFIG_VALUE, 0, "the collector's address has a "
                        "space or another character that addresses have not");
  if (p - url > 2048)
    return error_set (err, E_CONFIG_VALUE, 0,
                      "the collector's address is too long");
  return 0;
}

/* The address of the traces: given whole, or the collector's and their path. */
static char *
endpoint_find (const struct trace_config *config,
               trace_environment *environment)
{
  const char *whole = environment ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  const char *base = environment ("OTEL_EXPORTER_OTLP_ENDPOINT");
  size_t size;

  if (whole && *whole)
    return strdup (whole);
  if (base == NULL || *base == '\0')
    base = config->endpoint;
  if (base == NULL)
    return NULL;
  size = strlen (base);
  while (size > 0 && base[size - 1] == '/')
    size--;
  return text_printf ("%.*s/v1/traces", (int) size, base);
}

static int
protocol_find (const struct trace_config *config,
               trace_environment *environment, const char **out,
               struct error **err)
{
  const char *name = variable (environment, "PROTOCOL");

  if (name == NULL)
    name = config->protocol ? config->protocol : "http/protobuf";
  if (strcmp (name, "http/protobuf") == 0)
    *out = "protobuf";
  else if (strcmp (name, "http/json") == 0)
    *out = "json";
  else
    return error_set (err, E_CONFIG_VALUE, 0, "spans are sent by http/protobuf "
                      "or http/json, not by %s", name);
  return 0;
}

static int
milliseconds (const char *name, const char *text, json_t *settings,
              const char *key, struct error **err)
{
  uint64_t ms;

  if (text == NULL || *text == '\0')
    return 0;
  if (text_parse_u64 (text, 1, 3600000, &ms) < 0)
    return error_set (err, E_CONFIG_VALUE, 0, "%s is no number of "
                      "milliseconds from 1 to 3600000", name);
  json_object_set_new (settings, key, json_integer ((json_int_t) ms));
  return 0;
}

static void
attribute_add (json_t *list, const char *key, size_t key_size,
               const char *value, size_t value_size)
{
  json_t *pair = json_pack ("{s:s%, s:{s:s%}}", "key", key, key_size, "value",
                            "stringValue", value, value_size);

  if (pair)                     /* no UTF-8: left out */
    json_array_append_new (list, pair);
}

/* Who sends: OTEL_SERVICE_NAME, and the pairs of OTEL_RESOURCE_ATTRIBUTES. */
static json_t *
resource_new (trace_environment *environment)
{
  const char *name = environment ("OTEL_SERVICE_NAME");
  const char *list = environment ("OTEL_RESOURCE_ATTRIBUTES");
  json_t *out = json_array ();
  int i;

  if (name == NULL || *name == '\0')
    name = "coffer";
  attribute_add (out, "service.name", strlen ("service.name"), name,
                 strlen (name));
  attribute_add (out, "service.version", strlen ("service.version"),
                 PACKAGE_VERSION, strlen (PACKAGE_VERSION));
  for (i = 0; list && *list && i < HEADERS_MAX; i++) {
    size_t size = strcspn (list, ","), key = strcspn (list, "=,");

    if (key > 0 && key < size && strncmp (list, "service.name=", 13) != 0)
      attribute_add (out, list, key, list + key + 1, size - key - 1);
    list += size + (list[size] == ',');
  }
  return out;
}

static int
is_off (trace_environment *environment)
{
  const char *off = environment ("OTEL_SDK_DISABLED");
  const char *exporter = environment ("OTEL_TRACES_EXPORTER");

  return (off && strcasecmp (off, "true") == 0)
         || (exporter && strcmp (exporter, "none") == 0);
}

int
trace_settings (const struct trace_config *config,
                trace_environment *environment, json_t **out,
                struct error **err)
{
  auto_free char *endpoint = endpoint_find (config, environment);
  const char *headers = variable (environment, "HEADERS");
  const char *certificate = variable (environment, "CERTIFICATE");
  const char *protocol;
  auto_json json_t *settings = NULL;
  json_t *names;

  *out = NULL;
  if (is_off (environment) || endpoint == NULL)
    return 0;
  if (check_endpoint (endpoint, err) < 0
      || protocol_find (config, environment, &protocol, err) < 0)
    return -1;
  settings = json_pack ("{s:s, s:s, s:{}, s:o}", "endpoint", endpoint,
                        "protocol", protocol, "headers", "resource",
                        resource_new (environment));
  names = json_object_get (settings, "headers");
  if (names == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  if (config->headers_file
      && headers_file (names, config->headers_file, err) < 0)
    return -1;
  if (headers && headers_variable (names, headers, err) < 0)
    return -1;
  if (certificate == NULL)
    certificate = config->certificate;
  if (certificate)
    json_object_set_new (settings, "certificate", json_string (certificate));
  if (milliseconds ("OTEL_EXPORTER_OTLP_TIMEOUT",
                    variable (environment, "TIMEOUT"), settings, "timeout_ms",
                    err) < 0
      || milliseconds ("OTEL_BSP_SCHEDULE_DELAY",
                       environment ("OTEL_BSP_SCHEDULE_DELAY"), settings,
                       "delay_ms", err) < 0)
    return -1;
  *out = steal (settings);
  return 0;
}
