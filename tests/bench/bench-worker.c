/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker costs: a call's round trip with a frame of about 200 bytes,
 * and the start of one, from a registry entry to an opened provider.
 *   bench-worker [LIMIT]      round trip in us that is too much; 60
 * Prints "NAME VALUE" lines; exits 1 when the limit is passed. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "provider/integrity.h"
#include "provider/provider.h"

#include "place.h"

#define BATCHES 501
#define CALLS 20                /* in a batch */
#define STARTS 51

static const char *build;

static int
compare_doubles (const void *a, const void *b)
{
  const double left = *(const double *) a, right = *(const double *) b;

  return left < right ? -1 : left > right;
}

static int
write_manifest (const char *folder, struct error **err)
{
  auto_free char *path = text_printf ("%s/hostile.yaml", folder);
  coffer_autoclose int dir = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  char sha256[SHA256_HEX_SIZE];
  FILE *file;

  if (integrity_hash (dir, "hostile.so", sha256, err) < 0)
    return -1;
  file = fopen (path, "we");
  if (!file)
    return error_set (err, E_IO, errno, "write %s", path);
  fprintf (file, "manifest: 1\nid: hostile\nsummary: for measuring\n"
                 "version: 0.1.0\nlicense: Apache-2.0\n"
                 "module:\n  - {arch: %s, file: hostile.so, sha256: \"%s\"}\n"
                 "contract: {major: 0, minor: 1}\nthreads: parallel\n"
                 "capabilities: [exec]\n"
                 "isolation: {kind: none, host_kernel_shared: true}\n",
           manifest_machine (), sha256);
  fclose (file);
  return 0;
}

static int
place_make (const char *folder, struct place *place, struct error **err)
{
  auto_free char *module = text_printf ("%s/tests/modules/hostile.so", build);
  auto_free char *libexec = text_printf ("%s/core/provider/worker", build);

  if (bench_place_make (place, folder, "hostile", module, libexec, err) < 0)
    return -1;
  return write_manifest (folder, err);
}

static double
round_trips (struct provider *provider, const char *word)
{
  double batch[BATCHES];

  for (int i = 0; i < BATCHES; i++) {
    int64_t began = coffer_now_ns ();

    for (int n = 0; n < CALLS; n++)
      if (INVOKE (provider, NULL, NULL, sandbox_info, .sandbox = word) < 0)
        return -1;
    batch[i] = (double) (coffer_now_ns () - began) / CALLS / 1000;
  }
  qsort (batch, BATCHES, sizeof batch[0], compare_doubles);
  return batch[BATCHES / 2];
}

static int
measure (const struct registry_entry *entry, const struct place *place,
         double limit, struct error **err)
{
  double open_ms[STARTS], close_ms[STARTS], trip;
  char word[128] = "code:0";
  struct provider *provider;
  int64_t began;

  for (int i = 0; i < STARTS; i++) {
    began = coffer_now_ns ();
    if (provider_open (entry, place, PROVIDER_WORKER, &provider, err) < 0)
      return -1;
    open_ms[i] = (double) (coffer_now_ns () - began) / 1e6;
    began = coffer_now_ns ();
    provider_close (provider);
    close_ms[i] = (double) (coffer_now_ns () - began) / 1e6;
  }
  qsort (open_ms, STARTS, sizeof open_ms[0], compare_doubles);
  qsort (close_ms, STARTS, sizeof close_ms[0], compare_doubles);
  if (provider_open (entry, place, PROVIDER_WORKER, &provider, err) < 0)
    return -1;
  /* atoi stops at the first letter. */
  memset (word + 6, 'x', 100);
  trip = round_trips (provider, word);
  provider_close (provider);
  printf ("worker_open_ms %.2f\nworker_close_ms %.2f\nworker_trip_us %.1f\n",
          open_ms[STARTS / 2], close_ms[STARTS / 2], trip);
  if (trip < 0 || trip > limit)
    printf ("# worker: a round trip of more than %.0f us\n", limit);
  return trip < 0 || trip > limit;
}

int
main (int argc, char **argv)
{
  double limit = argc > 1 ? strtod (argv[1], NULL) : 60;
  char folder[] = "/tmp/coffer-bench-XXXXXX";
  auto_error struct error *err = NULL;
  auto_place struct place *place = calloc (1, sizeof *place);
  auto_registry struct registry *registry = NULL;
  const struct registry_entry *entry;
  int r = -1;

  build = getenv ("COFFER_BUILD") ? getenv ("COFFER_BUILD") : ".";
  if (!place || !mkdtemp (folder))
    return 2;
  if (place_make (folder, place, &err) == 0
      && registry_load_one (place, "hostile", &registry, &err) == 0
      && registry_find (registry, "hostile", &entry, &err) == 0)
    r = measure (entry, place, limit, &err);
  if (r < 0)
    printf ("# worker: %s\n", err ? error_message (err) : "failed");
  bench_place_unmake (folder, "hostile");
  return r != 0;
}
