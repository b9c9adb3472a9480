/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: who did what to which sandbox, and how it went.  One JSON
 * object a line, each appended by one write, in a file that only its owner
 * reads (0600).  Code is in it as its SHA-256; values of environments, tokens
 * and what commands print never are: callers give none of them.  Any thread. */

#ifndef SERVER_AUDIT_H
#define SERVER_AUDIT_H

#include "base/json.h"

struct audit;

/* A file that would become larger than `size` is renamed to PATH.1, the one of
 * that name to PATH.2 and so on, and a new one is begun; there are at most `keep`
 * besides it.  size 0: never. */
struct audit_options {
  const char *path;
  uint64_t size;
  unsigned keep;
};

/* Opens or makes the file; a link, or a file that others may write to or that
 * belongs to somebody else, is refused. */
int audit_open (const struct audit_options *options, struct audit **out,
                struct error **err);
void audit_free (struct audit *audit);

/* Adds "time" in front.  -1: the line is lost, as the disk is full; that is in
 * the log, not more often than once a minute. */
int audit_write (struct audit *audit, json_t *line);

/* "2026-01-31T12:00:00.123456Z" */
#define AUDIT_TIME_SIZE 40
void audit_time (int64_t realtime_ns, char out[AUDIT_TIME_SIZE]);

#endif /* SERVER_AUDIT_H */
