/* SPDX-License-Identifier: Apache-2.0 */
/* Which trace a request belongs to (W3C Trace Context, level 1). */

#ifndef SERVER_TRACE_CONTEXT_H
#define SERVER_TRACE_CONTEXT_H

#define TRACE_ID_SIZE 33        /* hex, with the NUL */
#define SPAN_ID_SIZE 17

struct trace_context {
  char trace[TRACE_ID_SIZE];
  char parent[SPAN_ID_SIZE];    /* "": the request is the root */
  char span[SPAN_ID_SIZE];      /* the request's own */
  int sampled;                  /* the caller's word; 1 without one */
};

/* A header `traceparent`: -1 when it is malformed, as if it were not there. */
int trace_context_parse (const char *header, struct trace_context *out);

/* The context of a request: its id, which nobody can foretell, gives the ids,
 * so that who knows one finds the other.  header NULL: none came. */
void trace_context_of (const char *request, const char *header,
                       struct trace_context *out);

#endif /* SERVER_TRACE_CONTEXT_H */
