/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's sandboxes as folders of the worker, each with a set of
 * commands: what coffer/commands.h is for commands.  They live as long as the
 * instance that made them; a provider with these does not claim `durable`.
 *
 * Functions that return a code do so after coffer_fail.  Any thread.  Part of
 * libcoffer-provider.a. */

#ifndef COFFER_SANDBOXES_H
#define COFFER_SANDBOXES_H

#include <coffer/buffer.h>
#include <coffer/commands.h>
#include <coffer/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

struct coffer_sandboxes;

/* One of them, to read.  Valid until it is put back. */
struct coffer_sandbox {
  const char *id;
  const char *path;             /* of its folder, absolute */
  int folder;                   /* the same, open */
  const char *workdir;          /* as given to create, else `path` */
  struct coffer_strings env, metadata;  /* as given */
  struct coffer_commands *commands;
  int64_t created_ns;           /* since the epoch */
};

/* Makes a folder for this instance in `runtime`, which the caller keeps, and
 * removes those of instances that were killed.  `mark` is a variable's name by
 * which processes of sandboxes are found (coffer/process.h).  NULL with
 * errno. */
struct coffer_sandboxes *coffer_sandboxes_new (int runtime, const char *mark);

/* Ends all of them.  When no call uses it; NULL is none. */
void coffer_sandboxes_free (struct coffer_sandboxes *set);

/* The sandbox of this id, in *out and to be put back: made, unless there is one,
 * with the specification's env, metadata, workdir, lifeline and single_exec.
 * coffer_spec_check comes before it. */
int32_t coffer_sandboxes_create (struct coffer_call *call,
                                 struct coffer_sandboxes *set, const char *id,
                                 const struct coffer_sandbox_spec *spec,
                                 struct coffer_sandbox **out);

/* Found, or NOT_FOUND, also for one whose lifeline has ended. */
int32_t coffer_sandboxes_find (struct coffer_call *call,
                               struct coffer_sandboxes *set, const char *id,
                               struct coffer_sandbox **out);
void coffer_sandbox_put (struct coffer_sandbox *sandbox);

/* Calls `visit` for each until one returns another code than COFFER_OK. */
typedef int32_t coffer_sandbox_visit (struct coffer_call *call,
                                      const struct coffer_sandbox *sandbox);
int32_t coffer_sandboxes_each (struct coffer_call *call,
                               struct coffer_sandboxes *set,
                               coffer_sandbox_visit *visit);

/* Its commands have ended, and its folder is removed, when this is OK. */
int32_t coffer_sandboxes_kill (struct coffer_call *call,
                               struct coffer_sandboxes *set, const char *id);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_SANDBOXES_H */
