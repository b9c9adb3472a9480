/* SPDX-License-Identifier: Apache-2.0 */
/* See async.h. */

#include "config.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/async.h"

/* A module shipped with coffer may run on it. */
#define STACK_SIZE (1 << 20)

static void
raise_event (int fd)
{
  const uint64_t one = 1;

  coffer_write_all (fd, &one, sizeof one);
}

static void *
async_run (void *data)
{
  struct async_call *async = data;

  async->result = provider_invoke_args (async->provider, async->op,
                                        async->args, &async->call,
                                        &async->error);
  raise_event (async->done_fd);
  return NULL;
}

static int
thread_start (struct async_call *async, struct error **err)
{
  pthread_attr_t attr;
  int code;

  code = pthread_attr_init (&attr);
  if (code == 0) {
    pthread_attr_setstacksize (&attr, STACK_SIZE);
    code = pthread_create (&async->thread, &attr, async_run, async);
    pthread_attr_destroy (&attr);
  }
  if (code != 0)
    return error_set (err, E_INTERNAL, code, "a thread");
  async->started = 1;
  return 0;
}

int
async_begin (struct async_call *async, struct provider *provider, uint32_t op,
             const void *args, const struct provider_sink *sink,
             int64_t deadline_ns, struct error **err)
{
  memset (async, 0, sizeof *async);
  async->provider = provider;
  async->op = op;
  async->args = args;
  async->done_fd = eventfd (0, EFD_CLOEXEC);
  async->cancel_fd = eventfd (0, EFD_CLOEXEC);
  async->call.deadline_ns = deadline_ns;
  async->call.cancel_fd = async->cancel_fd;
  if (sink)
    async->call.sink = *sink;
  if (async->done_fd < 0 || async->cancel_fd < 0)
    error_set (err, E_IO, errno, "a descriptor for a call");
  else if (thread_start (async, err) == 0)
    return 0;
  coffer_fd_close (&async->done_fd);
  coffer_fd_close (&async->cancel_fd);
  return -1;
}

void
async_cancel (struct async_call *async)
{
  if (async->started)
    raise_event (async->cancel_fd);
}

int
async_end (struct async_call *async, struct error **err)
{
  if (!async->started)
    return 0;
  pthread_join (async->thread, NULL);
  async->started = 0;
  coffer_fd_close (&async->done_fd);
  coffer_fd_close (&async->cancel_fd);
  if (async->result < 0)
    return error_move (err, steal (async->error));
  error_free (steal (async->error));
  return 0;
}
