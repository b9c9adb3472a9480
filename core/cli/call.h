/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of `coffer call`: words to values, and descriptors. */

#ifndef CLI_CALL_H
#define CLI_CALL_H

#include <pthread.h>

#include "contract/contract.h"

/* A file of the caller's behind a pipe of ours: an operation is never given
 * the file itself. */
struct call_stream {
  int file;                     /* the caller's file */
  int ours;                     /* our end of the pipe */
  int reads;                    /* the operation reads from it */
  int running;
  int sys_errno;                /* of the copying; 0: none */
  const char *name;             /* of the argument */
  pthread_t thread;
  struct call_streams *streams;
};

struct call_streams {
  struct contract_fds fds;      /* the operation's ends */
  struct call_stream stream[CONTRACT_MAX_FDS];
  int cancel_fd;                /* an eventfd of ours; -1: no streams yet */
  int any_fd;                   /* an epoll: cancel_fd, or the caller's */
  int writes_stdout;            /* a stream leads to standard output */
};

void call_streams_init (struct call_streams *streams);
/* Value: a path, or "-" for our own input, output or errors.  *index: of the
 * descriptor in `fds`. */
int call_streams_add (struct call_streams *streams, const char *name,
                      const char *value, int *index, struct error **err);
/* cancel_fd: readable when the caller gives up; -1: none. */
int call_streams_start (struct call_streams *streams, int cancel_fd,
                        struct error **err);
/* Closes the operation's ends, then waits for what it wrote and, when it wrote
 * nothing anywhere, for what it reads.  failed: nobody waits. */
int call_streams_finish (struct call_streams *streams, int failed,
                         struct error **err);
void call_streams_fini (struct call_streams *streams);

/* KEY=VALUE words as the JSON that contract_decode_args reads.  A key is an
 * argument, ARGUMENT.FIELD of a record, or opts.FIELD; a vector's key is
 * repeated; a record may be given as JSON. */
int call_values (const struct contract_op *op, const char *const *words,
                 struct call_streams *streams, json_t **out,
                 struct error **err);

#endif /* CLI_CALL_H */
