/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-proxy: the one way out of a sandbox with a list of names.
 *
 * main.c      the start, the loop
 * confine.c   giving up what it does not need, and reading that back
 * connection.c one client: its request, its server, bytes both ways
 * resolve.c   a name to addresses, in a process of its own with a deadline
 * denied.c    what was refused
 * http.c socks.c ../target.c   requests, names; pure
 *
 * It runs outside, started by the sandbox's maker, and ends when the sandbox's
 * init does.  One thread; every client has a deadline. */

#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include <poll.h>

#include "../denials.h"
#include "http.h"
#include "socks.h"

/* What it is given at its start. */
enum {
  PROXY_LIST = 0,               /* sealed memory: the list, a NUL behind each */
  PROXY_REPORT = 1,             /* pipe: one line, "+ …" or "- …" */
  PROXY_LISTENER = 3,           /* in the sandbox's network namespace */
  PROXY_INIT = 4,               /* pidfd */
  PROXY_DENIALS = 5             /* file: struct denials */
};

#define CONNECTIONS_MAX 128
#define LOOKUPS_MAX 16
#define ADDRESSES_MAX 8

/* Until a request is whole; until a name is resolved; until one of the
 * addresses answers; between bytes, and when one end is through; until a
 * refusal was taken note of. */
#define REQUEST_NS INT64_C (10000000000)
#define RESOLVE_NS INT64_C (10000000000)
#define CONNECT_NS INT64_C (15000000000)
#define IDLE_NS INT64_C (900000000000)
#define HALF_NS INT64_C (120000000000)
#define LINGER_NS INT64_C (2000000000)

extern struct policy policy;

int64_t now_ns (void);

/* ---- confine.c ------------------------------------------------------------- */

/* 0 and a line for people, or -1 and the step that failed, with errno. */
int confine (const struct policy *list, char *line, size_t size);

/* ---- resolve.c ------------------------------------------------------------- */

struct resolved {
  uint32_t count;               /* 0: none */
  struct {
    uint16_t family;
    uint8_t bytes[16];
  } addresses[ADDRESSES_MAX];
};

/* A pipe that gets a struct resolved, or ends without; -1 with errno. */
int resolve_begin (const char *name);
/* 1: read; 0: not yet; -1: there is no answer. */
int resolve_take (int fd, struct resolved *out);

/* ---- denied.c -------------------------------------------------------------- */

void denied_note (const struct target *target, enum denial_reason reason);

/* ---- connection.c ---------------------------------------------------------- */

struct connection;

/* Of an accepted client, which it takes; NULL: no memory. */
struct connection *connection_new (int client);
void connection_free (struct connection *connection);
/* What to wait for: at most two. */
size_t connection_polls (const struct connection *connection,
                         struct pollfd polls[2]);
int64_t connection_deadline (const struct connection *connection);
/* Goes on with what is ready.  1: it is over. */
int connection_step (struct connection *connection, int64_t now);

#endif /* PROXY_PROXY_H */
