/* SPDX-License-Identifier: Apache-2.0 */
/* Every path that is served is a row of a table, each surface has a table, and
 * server_surfaces lists them: dispatch, the OpenAPI document and the tests read
 * nothing else. */

#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "base/error.h"
#include "server/auth.h"

#define ROUTE_MAX_PARAMS 4

struct request;

enum route_flag {
  ROUTE_JSON = 1,               /* takes a JSON object */
  ROUTE_TEXT = 2,               /* takes bytes, as many as a JSON body */
  ROUTE_STREAM = 4,             /* takes bytes of any number, by a pipe */
  ROUTE_ANONYMOUS = 8,          /* without a token on TCP */
  ROUTE_MUTATES = 16,           /* takes Idempotency-Key */
  ROUTE_LONG = 32,              /* has no deadline: streams */
  ROUTE_UPGRADE = 64,           /* the connection may become another protocol's */
  ROUTE_COSTS_RUN = 128         /* the handler waits for a place in the queue of
                                 * runs and has it until it returns; one that
                                 * must wait otherwise calls runs.h itself */
};

struct route {
  const char *method;           /* "*": any; NULL ends a table */
  /* "/api/v1/sandboxes/{id}/files/{path…}": {x} is one segment, which is not
   * empty; {x…}, at the end only, the rest, which may be. */
  const char *path;
  enum caller_right right;
  unsigned flags;
  const char *operation;        /* operationId of the OpenAPI document */
  int (*handle) (struct request *request, struct error **err);
};

extern const struct route *const server_surfaces[];     /* NULL ends */

/* What a path leads to: the row, and its parameters as raw parts of `path`. */
struct route_match {
  const struct route *route;
  struct { const char *start; size_t size; } params[ROUTE_MAX_PARAMS];
  size_t n_params;
};

/* Looks up a raw path, without its query: %2F never splits a segment.
 * E_NO_ROUTE; E_METHOD, and then *allowed, which the caller frees, lists what
 * there is ("GET, POST").  HEAD is found as GET. */
int route_find (const char *method, const char *path, struct route_match *match,
                char **allowed, struct error **err);

/* Percent-decodes; NULL with errno EINVAL for a bad escape and for a NUL, with
 * a slash too unless `slashes`.  plus: of a query, where + is a space. */
char *route_decode (const char *text, size_t size, int slashes, int plus);

#endif /* SERVER_ROUTE_H */
