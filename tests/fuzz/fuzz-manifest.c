/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests from outside: refused with one line, or read into values that
 * keep what the manual promises; and each value's place in the text is right,
 * since sealing edits there. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/yaml.h"
#include "provider/manifest.h"

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

/* A plain value stands in the text as it was read, unless it was folded. */
static void
check_places (const struct yaml_node *node, const char *bytes, size_t size)
{
  size_t i;

  must (node->start <= node->end && node->end <= size);
  if (node->kind == YAML_SCALAR && !node->quoted
      && strpbrk (node->text, "\n ") == NULL
      && strlen (node->text) == node->end - node->start)
    must (memcmp (bytes + node->start, node->text, strlen (node->text)) == 0);
  for (i = 0; i < node->count; i++) {
    must (node->items[i].start >= node->start);
    check_places (&node->items[i], bytes, size);
  }
}

static void
check_tree (const char *bytes, size_t size)
{
  auto_yaml struct yaml_node *root = NULL;
  auto_error struct error *err = NULL;

  if (yaml_read (bytes, size, "f", E_CONFIG, &root, &err) < 0) {
    must (err && root == NULL && !strchr (error_message (err), '\n'));
    return;
  }
  must (err == NULL);
  check_places (root, bytes, size);
}

static void
check_paths (char *const *paths)
{
  for (; paths && *paths; paths++)
    must (manifest_is_path (*paths));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  const char *bytes = (const char *) data;
  auto_manifest struct manifest *m = NULL;
  auto_error struct error *err = NULL;
  size_t i;

  check_tree (bytes, size);
  if (manifest_parse (bytes, size, "f", &m, &err) < 0) {
    must (err && m == NULL && !strchr (error_message (err), '\n'));
    return 0;
  }
  must (err == NULL && text_is_id (m->id) && m->n_modules > 0
        && m->capabilities && strlen (m->sha256) == 64);
  for (i = 0; i < m->n_modules; i++)
    must (manifest_is_file_name (m->modules[i].file));
  for (i = 0; i < m->n_files; i++)
    must (manifest_is_file_name (m->files[i].name));
  for (i = 0; i < m->n_config; i++)
    must (m->config[i].default_value == NULL
          || manifest_check_value (m->config[i].type,
                                   m->config[i].default_value) == NULL);
  check_paths (m->permissions.read);
  check_paths (m->permissions.write);
  check_paths (m->permissions.exec);
  return 0;
}
