/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a worker: threads that take turns at reading the channel, and
 * the host table that a module sees there. */

#ifndef WORKER_SERVE_H
#define WORKER_SERVE_H

#include "provider/channel.h"
#include "provider/loader.h"

/* What `open` is called with; from the start frame. */
struct serve_open {
  char **config;
  struct coffer_open_opts opts;
};

struct server;

/* One thread begins to read at once, so that the end of the channel ends the
 * process even while a constructor or a call hangs. */
int server_new (int channel, unsigned max_calls, int kill_group,
                struct server **out, struct error **err);
/* Calls that came before wait for this. */
void server_ready (struct server *server, struct module *module,
                   const struct serve_open *open);
/* Never returns. */
void server_run (struct server *server) __attribute__ ((noreturn));

#endif /* WORKER_SERVE_H */
