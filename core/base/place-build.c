/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled-in paths of the `coffer` that runs from the build tree: its own
 * modules and helpers, the system's places for the rest. */

#include <config.h>

#include "base/place.h"

const char place_builtin_shipped[] = PLACE_STAGE "/providers-" CONTRACT_MAJOR;
const char place_builtin_libexec[] = PLACE_STAGE "/libexec";
const char place_builtin_sysconf[] = PLACE_SYSCONF;
const char place_builtin_localstate[] = PLACE_LOCALSTATE;
const char place_builtin_run[] = PLACE_RUN;
