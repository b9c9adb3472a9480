/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: files of a sandbox, as an image of the engine.
 *
 * What a sandbox holds is in memory, where no commit finds it.  So its working
 * folder is packed inside and sent to the engine as an image of its own, in pieces
 * (pieces.h), with labels that say whose it is and which image the sandbox was
 * made of.  The image has no name until all of it is there: one without is of a
 * maker that failed, and is removed by whoever next looks.  To be read it lies in
 * a container that never runs, the carrier.
 *
 * Nothing is kept here: names and labels are the record. */

#ifndef DOCKER_SNAPSHOT_H
#define DOCKER_SNAPSHOT_H

#include "docker.h"

#define LABEL_SNAPSHOT "coffer.snapshot"        /* its id */
#define LABEL_NAME "coffer.snapshot.name"       /* as given, hexadecimal */
#define LABEL_CREATED "coffer.snapshot.created" /* nanoseconds */
#define LABEL_BASE "coffer.snapshot.base"       /* "sha256:…" of the sandbox's */
#define LABEL_BASE_NAME "coffer.snapshot.image" /* as that was asked for */
#define LABEL_CARRIER "coffer.carrier"          /* of containers: a snapshot */

#define SNAPSHOT_ID_MAX 40      /* "snap-" and 32 hexadecimal digits, NUL */
#define SNAPSHOT_NAME_MAX 256   /* bytes that people may give one */
#define IMAGE_ID_MAX 80         /* "sha256:…" */

/* Is it an id of one, of whatever host? */
int docker_is_snapshot (const char *text);
/* "sha256:" and what that is of. */
int docker_is_image_id (const char *text);

struct docker_snapshot {
  char id[SNAPSHOT_ID_MAX];
  char image[IMAGE_ID_MAX];     /* its own */
  char base[IMAGE_ID_MAX];
  char *base_name;              /* these two the caller's, by _fini */
  char *name;                   /* NULL: none was given */
  int64_t created_ns;
  uint64_t size_bytes;
};
#define auto_snapshot __attribute__ ((cleanup (docker_snapshot_fini)))
void docker_snapshot_fini (struct docker_snapshot *snapshot);

/* From the labels of an image: 0; -1: it is none of ours. */
int docker_snapshot_read (const struct docker *docker, const json_t *labels,
                          struct docker_snapshot *out);
/* By id.  NOT_FOUND: there is none of this host. */
int32_t docker_snapshot_find (struct coffer_call *call, struct docker *docker,
                              const char *id, struct docker_snapshot *out);
/* The image that it was made with, which the engine must have; it is pulled where
 * it lacks it, and must be the same. */
int32_t docker_snapshot_base (struct coffer_call *call, struct docker *docker,
                              const struct docker_snapshot *snapshot);
/* Into the working folder of a sandbox that was just started. */
int32_t docker_snapshot_restore (struct coffer_call *call,
                                 struct docker *docker, const char *sandbox,
                                 const struct docker_snapshot *snapshot);
int docker_is_carrier (const struct docker *docker, const char *name);
/* A carrier of this host that nobody reads any more; what is none is left. */
void docker_carrier_clear (struct coffer_call *call, struct docker *docker,
                           const char *name);

/* Images of this host's snapshots: an array, the caller's. */
int32_t docker_snapshot_images (struct coffer_call *call,
                                struct docker *docker, json_t **images);
/* The name of its image, "coffer-snapshot-HOST:ID". */
#define SNAPSHOT_IMAGE_MAX (48 + SNAPSHOT_ID_MAX)
void docker_snapshot_image (const struct docker *docker, const char *id,
                            char image[SNAPSHOT_IMAGE_MAX]);

#endif /* DOCKER_SNAPSHOT_H */
