/* SPDX-License-Identifier: Apache-2.0 */
/* What `work` does inside for the provider, as the sandbox's user: commands and
 * files.  One request for each process. */

#ifndef DOCKER_INSIDE_WORK_H
#define DOCKER_INSIDE_WORK_H

#include <stddef.h>
#include <stdint.h>

#include <coffer/buffer.h>
#include <coffer/provider.h>

#include "inside.h"
#include "../wire.h"

/* ---- say.c ---- */
void say (uint32_t kind, const void *bytes, size_t size);
void say_failed (int32_t code, int32_t retryable, const char *text);
/* The request and its block, which the caller frees. */
int hear (struct wire_request *request, char **block);

/* ---- work.c ---- */
#define WORK_SECONDS_MAX 86400  /* of work that has an end */
/* When the call's time is over, and a little more, so that who waits for it says so
 * first; INT64_MAX: never. */
int64_t work_end_ns (const struct wire_request *request);

/* ---- run.c ---- */
int run_command (const struct wire_request *request, char *block);

/* ---- kept.c: the folder of what commands leave ---- */
int kept_open (void);
/* "ID.SUFFIX"; SUFFIX NULL: "ID" */
void kept_name (char name[WIRE_ID_MAX + 8], const char *id, const char *suffix);
int kept_end_write (int folder, const struct wire_end *end);
int kept_end_read (int folder, const char *id, struct wire_end *end);
/* WAIT, LIST, ATTACH, TELL. */
int kept_work (const struct wire_request *request);

/* ---- dial.c ---- */
int dial_port (const struct wire_request *request);

/* ---- files.c ---- */
int files_work (const struct wire_request *request, const char *block);

/* ---- feed.c ---- */
/* Gives `take` a pipe of what comes by standard input, whose end is where that
 * says that all has come; when it breaks off, call->cancel_fd says so. */
int32_t fed (struct coffer_call *call, const char *what,
             int32_t (*take) (struct coffer_call *call, int in, void *data),
             void *data);

/* ---- trees.c: below the folder `root` ---- */
int32_t tree_export (struct coffer_call *call, int root, const char *path);
int32_t tree_import (struct coffer_call *call, int root, const char *path,
                     int links_out);
int32_t tree_watch (struct coffer_call *call, int root, const char *path);

/* ---- still.c: tree_export, while what runs stands still ---- */
int32_t stand_still (struct coffer_call *call, int root, const char *path,
                     uint64_t timeout_ms);

/* What a running command is asked through its socket; the answer is a wire_end
 * to WAIT (when it has ended), a wire_info to LIST, an int32_t errno to TELL. */
struct order {
  uint32_t op;
  int32_t signal;
  uint32_t rows, columns;
};

#endif /* DOCKER_INSIDE_WORK_H */
