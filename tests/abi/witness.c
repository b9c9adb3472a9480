/* SPDX-License-Identifier: Apache-2.0 */
/* A module of the real contract that does nothing, built for this minor and
 * for others: before 1.0 a host takes only its own. */

#include <stdlib.h>

#include <coffer/provider.h>

__attribute__ ((constructor)) static void
witness_ran (void)
{
  setenv ("COFFER_TEST_WITNESS_RAN", "1", 1);
}

static const struct coffer_operations operations
  = { .size = sizeof operations };

COFFER_PROVIDER (witness, COFFER_THREADS_PARALLEL, 0, operations)
