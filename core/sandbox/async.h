/* SPDX-License-Identifier: Apache-2.0 */
/* One provider call on a thread of its own, while the caller moves bytes. */

#ifndef SANDBOX_ASYNC_H
#define SANDBOX_ASYNC_H

#include <pthread.h>

#include "provider/provider.h"

struct async_call {
  struct provider *provider;
  uint32_t op;
  const void *args;             /* struct contract_args_NAME; borrowed */
  struct provider_call call;    /* its sink runs on the thread */
  int started;
  pthread_t thread;
  int done_fd;                  /* readable once the call has returned */
  int cancel_fd;                /* made readable to end it */
  int result;
  struct error *error;
};

/* `async` must stay where it is until async_end. */
int async_begin (struct async_call *async, struct provider *provider,
                 uint32_t op, const void *args,
                 const struct provider_sink *sink, int64_t deadline_ns,
                 struct error **err);
void async_cancel (struct async_call *async);
/* Waits for the call to return, and gives its result.  Safe when it never
 * began. */
int async_end (struct async_call *async, struct error **err);

#endif /* SANDBOX_ASYNC_H */
