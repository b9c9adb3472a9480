/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of installed providers while it changes.  What is new is made
 * whole in a folder beside the others and takes its place by one rename, so
 * that whoever looks finds the old one or the new one, and a process that is
 * killed leaves at most a hidden folder, which the next one removes. */

#ifndef PROVIDER_STAGE_H
#define PROVIDER_STAGE_H

#include "base/place.h"

struct stage {
  const struct place *place;
  int providers;                /* the folder of them all */
  int dir;                      /* the hidden one, held while it is in use */
  char name[40];                /* .staging-RANDOM; "": there is none */
  char *path;                   /* it, absolute */
};

/* Removes what others left, and makes a folder to work in. */
int stage_begin (const struct place *place, struct stage *out,
                 struct error **err);
/* Removes it with all that is in it. */
void stage_fini (struct stage *stage);
#define auto_stage __attribute__ ((cleanup (stage_fini)))

/* Is something installed under this id? */
int stage_has (const struct stage *stage, const char *id);

/* A folder NAME in the stage, made; the caller's descriptor. */
int stage_folder (const struct stage *stage, const char *name,
                  struct error **err);

/* Puts the stage's folder ID into its place.  What is there is refused
 * (E_ALREADY_INSTALLED), or with `replace` exchanged: the stage has the old one
 * then, and a second call with `replace` takes it back. */
int stage_commit (struct stage *stage, const char *id, int replace,
                  struct error **err);

/* Takes an installed one away into the stage. */
int stage_take (struct stage *stage, const char *id, struct error **err);

#endif /* PROVIDER_STAGE_H */
