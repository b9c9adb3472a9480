/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the reference provider's module.  It keeps nothing about
 * sandboxes in memory: what there is to know lies in their folders, and who
 * holds their processes is the keeper of each. */

#ifndef REFERENCE_REFERENCE_H
#define REFERENCE_REFERENCE_H

#include <stddef.h>

#include <coffer/provider.h>

#include "protocol.h"

struct reference {
  int runtime;                  /* folder of the sandboxes */
  int state;                    /* of the snapshots; -1: not writable */
  int keeper;                   /* the helper's program, sealed */
  struct reference_warm *warms; /* what stands ready */
  unsigned n_warms;
};

/* A field of an options record, or 0 when its writer did not know it. */
#define OPTION(opts, field) (COFFER_HAS (opts, field) ? (opts)->field : 0)

/* ---- client.c ------------------------------------------------------------ */

/* The folder of a living sandbox; -1 with errno, ENOENT when there is none. */
int sandbox_open (const struct reference *self, const char *sandbox);
int request_send (int connection, struct request *request, const int *fds,
                  size_t n_fds);
/* The next reply, which is whole or not there: -1 with errno, ECONNRESET when
 * the other end has gone. */
int reply_receive (struct coffer_call *call, int connection,
                   struct reply *reply);
/* Connects to the socket of a keeper or minder, asks and receives. */
int ask (struct coffer_call *call, int folder, const char *socket,
         struct request *request, const int *fds, size_t n_fds,
         struct reply *reply);
/* The same, from a sandbox's name, as an operation ends. */
int32_t ask_keeper (struct coffer_call *call, const struct reference *self,
                    const char *sandbox, struct request *request,
                    struct reply *reply);
/* coffer_fail for errno of the above: ENOENT is the sandbox. */
int32_t fail_sandbox (struct coffer_call *call, int sys_errno);
/* Reads a small file whole. */
int file_load (int folder, const char *name, void *bytes, size_t size);

/* ---- spawn.c ---- */

/* Starts the keeper of a new folder.  0, or errno. */
int keeper_spawn (const struct reference *self, const char *sandbox,
                  int folder, const struct coffer_sandbox_spec *spec);

/* ---- copy.c ---- */

/* Copies what lies below `from` into `to`, an empty folder, and adds up sizes.
 * Sockets and devices stay behind.  -1 with errno. */
int tree_copy (struct coffer_call *call, int from, int to, uint64_t *bytes);

/* ---- snapshot.c ---- */

/* The tree of a snapshot, or -1 with errno. */
int snapshot_open (const struct reference *self, const char *snapshot);

/* ---- warm.c ---- */

/* What is to run for a handle, with a line before its end; -1: there is no such
 * handle. */
struct coffer_strings;
int warm_command (struct reference *self, const char *handle,
                  const char *before, struct coffer_strings *argv);
int warm_is_known (const struct reference *self, const char *handle);
void warm_forget (struct reference *self);

/* ---- the operations: sandbox.c, exec.c, files.c, watch.c, archive.c … ---- */

#define X_ARG(type, name, doc) , COFFER_TYPE_##type name
#define X_RARG(type, record, name, doc) , COFFER_RTYPE_##type (record) name
#define X_OP(id, name, since, capability, args, OPTS, doc)                    \
  int32_t reference_##name (struct coffer_call *call, void *self args,        \
                            const struct coffer_##name##_opts *opts);
COFFER_OPERATIONS (X_OP, X_ARG, X_RARG)
#undef X_OP
#undef X_ARG
#undef X_RARG

#endif /* REFERENCE_REFERENCE_H */
