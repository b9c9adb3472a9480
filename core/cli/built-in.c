/* SPDX-License-Identifier: Apache-2.0 */
/* Names the provider that is linked into this program: linux, which most runs
 * are made with.  Of it there is nothing here but these names. */

#include <config.h>

#include "cli/built-in.h"
#include "provider/built-in.h"

#ifdef COFFER_BUILT_IN

const struct coffer_provider *coffer_linux_entry (void);
void coffer_linux_begin (int init, int runtime_dir);
void coffer_linux_end (void);
extern const char coffer_linux_init[], coffer_linux_init_end[];
extern const char coffer_linux_build[], coffer_linux_build_end[];

void
cli_built_in (void)
{
  static const struct built_in built_in = {
    .id = "linux", .entry = coffer_linux_entry,
    .build = coffer_linux_build, .build_end = coffer_linux_build_end,
    .file = "coffer-init",
    .bytes = coffer_linux_init, .bytes_end = coffer_linux_init_end,
    .begin = coffer_linux_begin, .end = coffer_linux_end
  };

  built_in_register (&built_in);
}

#else

void
cli_built_in (void)
{
}

#endif
