/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SANDBOX_OWN_FOLDER_H
#define SANDBOX_OWN_FOLDER_H

#include "base/place.h"

/* Refuses a source that is the runtime folder, holds it or lies in it. */
int own_folder_spared (const struct place *place, int source,
                       const char *shown, struct error **err);

/* Refuses one that is a part of /proc, /sys and what is of their kind. */
int kernel_spared (int source, const char *shown, struct error **err);

#endif /* SANDBOX_OWN_FOLDER_H */
