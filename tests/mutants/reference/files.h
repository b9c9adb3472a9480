/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of a call lie. */

#ifndef REFERENCE_FILES_H
#define REFERENCE_FILES_H

#include "reference.h"

struct place {
  int folder;                   /* the sandbox's */
  int root;                     /* its workspace */
  const char *path, *other;     /* below the workspace; other: NULL or too */
};

#define PLACE(first, second)                                                  \
  {.folder = -1, .root = -1, .path = first, .other = second}
#define auto_place __attribute__ ((cleanup (place_fini)))

/* Opens both and cuts the workspace's own path off the others. */
int32_t place_find (struct coffer_call *call, const struct reference *self,
                    const char *sandbox, struct place *place);
void place_fini (struct place *place);

#endif /* REFERENCE_FILES_H */
