/* SPDX-License-Identifier: Apache-2.0 */
/* The keys log, audit and otlp of the section `serve`. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "server/observe.h"

#define AUDIT_SIZE (UINT64_C (64) << 20)
#define AUDIT_SIZE_MIN (UINT64_C (64) << 10)
#define AUDIT_KEEP 4
#define AUDIT_KEEP_MAX 100

void
observe_config_default (struct observe_config *out)
{
  out->audit_size = AUDIT_SIZE;
  out->audit_keep = AUDIT_KEEP;
}

void
observe_config_fini (struct observe_config *config)
{
  free (config->audit_file);
  trace_config_fini (&config->otlp);
  memset (config, 0, sizeof *config);
}

int
observe_log_word (const char *word, struct observe_config *out)
{
  out->log_json = strcmp (word, "json") == 0;
  return out->log_json || strcmp (word, "text") == 0 ? 0 : -1;
}

static int
read_log (const struct yaml_source *source, const struct yaml_node *node,
          struct observe_config *out, struct error **err)
{
  if (node->kind != YAML_SCALAR || observe_log_word (node->text, out) < 0)
    return yaml_fail (source, node, err, "log: text or json");
  return 0;
}

static int
read_path (const struct yaml_source *source, const struct yaml_node *map,
           const char *key, char **out, struct error **err)
{
  const struct yaml_node *node = yaml_get (map, key);

  if (node == NULL)
    return 0;
  free (*out);
  *out = NULL;
  if (yaml_text (source, node, key, out, err) < 0)
    return -1;
  return **out == '/' ? 0 : yaml_fail (source, node, err,
                                       "%s: an absolute path", key);
}

static int
parse_keep (const char *text, uint64_t *out)
{
  return text_parse_u64 (text, 1, AUDIT_KEEP_MAX, out);
}

/* 0 is for "never", where that is allowed. */
static int
read_number (const struct yaml_source *source, const struct yaml_node *map,
             const char *key, int (*parse) (const char *text, uint64_t *out),
             uint64_t least, uint64_t *out, struct error **err)
{
  const struct yaml_node *node = yaml_get (map, key);
  auto_free char *text = NULL;
  uint64_t value = 0;

  if (node == NULL)
    return 0;
  if (yaml_text (source, node, key, &text, err) < 0)
    return -1;
  if (node->quoted || parse (text, &value) < 0 || (value && value < least))
    return yaml_fail (source, node, err, "audit.%s: %s", key,
                      parse == parse_keep
                        ? "from 1 to 100"
                        : "a size of 64KiB at least, or 0");
  *out = value;
  return 0;
}

static int
read_audit (const struct yaml_source *source, const struct yaml_node *node,
            struct observe_config *out, struct error **err)
{
  static const char *const keys[] = { "file", "size", "keep", NULL };
  uint64_t keep = out->audit_keep;

  if (node->kind == YAML_SCALAR && strcmp (node->text, "off") == 0) {
    out->audit_off = 1;
    return 0;
  }
  if (node->kind != YAML_MAP)
    return yaml_fail (source, node, err, "audit: off, or a map with file, size"
                      " and keep");
  if (yaml_check_keys (source, node, keys, err) < 0)
    return -1;
  if (read_number (source, node, "size", text_parse_size, AUDIT_SIZE_MIN,
                   &out->audit_size, err) < 0
      || read_number (source, node, "keep", parse_keep, 1, &keep, err) < 0)
    return -1;
  out->audit_keep = (unsigned) keep;
  return read_path (source, node, "file", &out->audit_file, err);
}

static int
read_otlp (const struct yaml_source *source, const struct yaml_node *node,
           struct trace_config *out, struct error **err)
{
  static const char *const keys[] = { "endpoint", "protocol", "headers_file",
                                      "certificate", NULL };
  const struct yaml_node *endpoint = yaml_get (node, "endpoint");
  const struct yaml_node *protocol = yaml_get (node, "protocol");

  if (yaml_check_keys (source, node, keys, err) < 0)
    return -1;
  if (endpoint
      && yaml_text (source, endpoint, "endpoint", &out->endpoint, err) < 0)
    return -1;
  if (protocol
      && yaml_text (source, protocol, "protocol", &out->protocol, err) < 0)
    return -1;
  if (read_path (source, node, "headers_file", &out->headers_file, err) < 0)
    return -1;
  return read_path (source, node, "certificate", &out->certificate, err);
}

int
observe_config_read (const struct yaml_source *source,
                     const struct yaml_node *serve,
                     struct observe_config *out, struct error **err)
{
  const struct yaml_node *log = yaml_get (serve, "log");
  const struct yaml_node *audit = yaml_get (serve, "audit");
  const struct yaml_node *otlp = yaml_get (serve, "otlp");

  if ((log && read_log (source, log, out, err) < 0)
      || (audit && read_audit (source, audit, out, err) < 0))
    return -1;
  return otlp ? read_otlp (source, otlp, &out->otlp, err) : 0;
}
