/* SPDX-License-Identifier: Apache-2.0 */
/* See registry-fixture.h. */

#include <config.h>

#include "harness.h"

#include <fcntl.h>

#include <coffer/fd.h>

#include "base/sha256.h"
#include "registry-fixture.h"

const char *
at (void **state, const char *name)
{
  return harness_path (*state, name);
}

void
put (void **state, const char *name, const char *text)
{
  auto_free char *path = strdup (at (state, name));
  coffer_autoclose int fd = -1;
  char *slash;

  for (slash = strchr (path + strlen (*state) + 1, '/'); slash;
       slash = strchr (slash + 1, '/')) {
    *slash = '\0';
    mkdir (path, 0700);
    *slash = '/';
  }
  fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, text, strlen (text)),
                    strlen (text));
}

struct place *
places (void **state)
{
  struct place *place = NULL;

  setenv ("COFFER_HOME", *state, 1);
  assert_int_equal (place_find (&place, NULL), 0);
  unsetenv ("COFFER_HOME");
  free (place->shipped);
  place->shipped = strdup (at (state, "shipped"));
  return place;
}

void
install (void **state, const char *id, const char *text, const char *trust)
{
  char name[128], receipt[256], hash[SHA256_HEX_SIZE];

  snprintf (name, sizeof name, "providers/%s/%s.yaml", id, id);
  put (state, name, text);
  if (trust == NULL)
    return;
  sha256_hex (text, strlen (text), hash);
  snprintf (name, sizeof name, "providers/%s/receipt.json", id);
  snprintf (receipt, sizeof receipt,
            "{\"trust\":\"%s\",\"manifest_sha256\":\"%s\"}", trust, hash);
  put (state, name, receipt);
}

struct registry *
load (const struct place *place)
{
  struct registry *registry = NULL;
  auto_error struct error *err = NULL;

  if (registry_load (place, &registry, &err) < 0)
    print_error ("%s\n", err->message);
  assert_non_null (registry);
  return registry;
}
