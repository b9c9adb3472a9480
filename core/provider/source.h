/* SPDX-License-Identifier: Apache-2.0 */
/* What `install` is given, taken apart: which kind of source it is, what of it
 * is stored, and whether it is pinned. */

#ifndef PROVIDER_SOURCE_H
#define PROVIDER_SOURCE_H

#include <coffer/buffer.h>

#include "base/helper.h"
#include "provider/receipt.h"
#include "provider/stage.h"

struct source_words {
  const char *source;           /* as typed */
  const char *sha256, *ref, *subdir;    /* NULL: not given */
};

struct source {
  struct receipt_source told;   /* what a receipt says of it */
  char *address;                /* what is asked for it: no "git+" */
  int pinned;                   /* the same bytes whenever it is asked for */
};

/* E_USAGE for options that do not fit the kind, E_INVALID for an address with
 * credentials or of a scheme that is not taken, E_NOT_FOUND. */
int source_parse (const struct source_words *words, struct source *out,
                  struct error **err);
void source_fini (struct source *source);
#define auto_source __attribute__ ((cleanup (source_fini)))

/* Gets it into the stage, where it is not a folder already: the folder with
 * the provider in it, and what to call it.  Notes commit and SHA-256. */
int source_acquire (struct source *source, struct stage *stage,
                    const struct helper_watch *watch, int *folder,
                    char **shown, struct error **err);

/* ---- between its files --------------------------------------------------- */

#define SOURCE_MAX_BYTES (INT64_C (512) << 20)  /* of an archive, of a clone */
#define SOURCE_SECONDS 600

/* Unpacks the archive at `fd` into the stage's folder "tree". */
int source_unpack (const struct stage *stage, int fd,
                   const struct helper_watch *watch, int *folder,
                   struct error **err);
/* Fetches an https address into the stage: the file, at its start. */
int source_fetch (const struct stage *stage, const char *url,
                  const struct helper_watch *watch, struct error **err);
/* Fetches one commit by git(1), and writes the files of one folder of it. */
int source_git (struct source *source, const struct stage *stage,
                const struct helper_watch *watch, int *folder,
                struct error **err);

/* NAME=VALUE of what those programs may know: proxies as they are called, and
 * the operator's certificates under the two names. */
void source_env (struct coffer_strings *env, const char *ca_file,
                 const char *ca_folder);

#endif /* PROVIDER_SOURCE_H */
