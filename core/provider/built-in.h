/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that the program has in itself: the same objects that its module
 * is linked of, and the file that those execute.
 *
 * Nothing of it is copied, hashed or linked at a run: its trust is the
 * executable's own, which came to where it lies as the module did.  It stands
 * for a shipped module alone, and only where the file that lies there is of
 * the same build (the linker's note says which, and strip leaves it): another
 * one that was put in its place is loaded and checked like any other. */

#ifndef PROVIDER_BUILT_IN_H
#define PROVIDER_BUILT_IN_H

#include <stddef.h>

#include <coffer/provider.h>

#include "provider/registry.h"

struct built_in {
  const char *id;
  const struct coffer_provider *(*entry) (void);
  const void *build, *build_end;        /* the note of its module's build */
  const char *file;                     /* what it is given from memory */
  const void *bytes, *bytes_end;
  void (*end) (void);           /* gives up what nobody has taken, or NULL */
};

/* Before there are threads. */
void built_in_register (const struct built_in *built_in);

/* What stands for the module of that entry; NULL: nothing does. */
const struct built_in *built_in_for (const struct registry_entry *entry);

/* Its file, executable and sealed. */
int built_in_file (const struct built_in *built_in, struct error **err);

/* What was begun for it before the program was there (cli/front.c), and was not
 * wanted then. */
void built_in_end (void);

#endif /* PROVIDER_BUILT_IN_H */
