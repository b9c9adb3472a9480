/* SPDX-License-Identifier: Apache-2.0 */
/* A place whose shipped providers are one module of the tests. */

#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include "base/error.h"
#include "base/place.h"

/* FOLDER/NAME.so is a copy of `module`; the manifest, FOLDER/NAME.yaml, is the
 * caller's to write.  `libexec` has the worker. */
int bench_place_make (struct place *place, const char *folder,
                      const char *name, const char *module,
                      const char *libexec, struct error **err);
/* Removes the folder and what is below it by then. */
void bench_place_unmake (const char *folder, const char *name);

#endif /* BENCH_PLACE_H */
