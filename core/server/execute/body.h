/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /execute. */

#ifndef SERVER_EXECUTE_BODY_H
#define SERVER_EXECUTE_BODY_H

#include <jansson.h>

#include "python/execute.h"

/* What is asked for, as an execute_request that borrows from here and from the
 * JSON. */
struct execute_body {
  struct execute_request request;
  struct execute_file *files;
  char **bytes;                 /* decoded, of `n` files */
  size_t n;
  int blank;                    /* there is no code to speak of */
};

/* Reads a body.  0: it is one; 1: it is not, and *detail is what 422 says:
 * [{"loc", "msg", "type"}]; -1: no memory. */
int execute_body_read (const json_t *json, struct execute_body *body,
                       json_t **detail, struct error **err);
void execute_body_fini (struct execute_body *body);

/* An entry of such a list. */
json_t *execute_fault (const char *field, const char *text, const char *type);

#endif /* SERVER_EXECUTE_BODY_H */
