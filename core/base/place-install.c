/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled-in paths of the `coffer` that is installed. */

#include <config.h>

#include "base/place.h"

const char place_builtin_shipped[] = PLACE_SHIPPED;
const char place_builtin_libexec[] = PLACE_LIBEXEC;
const char place_builtin_sysconf[] = PLACE_SYSCONF;
const char place_builtin_localstate[] = PLACE_LOCALSTATE;
const char place_builtin_run[] = PLACE_RUN;
