/* SPDX-License-Identifier: Apache-2.0 */
/* What is around the hostile module, and that nothing of it is left. */

#include "config.h"

#include "harness.h"

#include <coffer/fd.h>

#include "base/log.h"
#include "hostile-run.h"
#include "hostile-world.h"
#include "provider-fixture.h"

struct world world;
struct fixture *bystander;

/* The victim and the other provider's worker are there, and nobody else. */
int
others_are_gone (void)
{
  int64_t until = coffer_now_ns () + HARNESS_PATIENCE_NS;

  while (world_children () > 2 && coffer_now_ns () < until)
    usleep (5000);
  return world_children () == 2;
}

/* Standard error is looked at, and not shown. */
void
complain (const char *name, const char *what)
{
  print_message ("# %s: %s\n", name, what);
  fail ();
}

int
set_up (void **state)
{
  (void) state;
  setenv ("COFFER_TEST_KEY", SECRET, 1);
  log_set_level (LOG_LEVEL_INFO);
  bystander = fixture_start (&(struct fixture_spec){
    .module = "serial", .threads = "serial" });
  world_init (&world);
  return 0;
}

int
tear_down (void **state)
{
  (void) state;
  world_fini (&world);
  fixture_free (bystander);
  return 0;
}
