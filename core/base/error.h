/* SPDX-License-Identifier: Apache-2.0 */
/* The error object, and the one table of public codes.
 *
 * A function that can fail takes `struct error **err` last and returns 0 or
 * more on success and -1 on failure; *err is set exactly when it fails.
 * error_set returns -1, so that failing is one line:
 *
 *   if (fd < 0)
 *     return error_set (err, E_IO, errno, "open %s", path);
 *
 * Outputs are written only on success.  One report per failure: the caller
 * that gives up prints it. */

#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdint.h>

#include <jansson.h>

#include "base/cleanup.h"

/* E (number, NAME, meaning, exit status, HTTP status, retryable, what to do)
 * Families: 1 credentials, 2 sandbox, 3 exec, 4 files and archives, 5 tenancy
 * and admission, 6 configuration and manifests, 7 network, 8 providers,
 * 9 the host itself.  Numbers are never reused.  retryable: no, yes, unknown.
 * The list lives in errors.def so that this header stays small. */
enum error_number {
#define E(number, name, meaning, exit_status, http, retryable, todo)          \
  E_##name = number,
#include "base/errors.def"
#undef E
};

enum error_retryable { RETRY_NO, RETRY_YES, RETRY_UNKNOWN };

struct error_info {
  int number;
  const char *name;             /* UNKNOWN_SANDBOX */
  const char *meaning;          /* "unknown sandbox" */
  int exit_status;              /* of a command other than run and exec */
  int http_status;
  enum error_retryable retryable;
  const char *todo;             /* the next step, for `coffer explain` */
};

struct error {
  int number;                   /* enum error_number */
  int sys_errno;                /* 0: none */
  enum error_retryable retryable;
  char *message;                /* one line, no secrets, no trailing period;
                                 * read it with error_message */
  char *hint;                   /* what to do next, or NULL */
  json_t *details;              /* an object, or NULL */
};

/* Makes an error.  errno text is appended when sys_errno is not 0.
 * err may be NULL: the failure is then reported by the -1 alone. */
int error_set (struct error **err, int number, int sys_errno,
               const char *fmt, ...) __attribute__ ((format (printf, 4, 5)));

/* Puts "CONTEXT: " before the message of an error that is set.  Returns -1. */
int error_wrap (struct error **err, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

/* Sets the hint (the table's `todo` is shown when there is none). */
void error_hint (struct error **err, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

/* Sets the hint to the table's, with `id` where it says ID. */
void error_hint_id (struct error **err, const char *id);

/* Adds KEY to the details; takes the value. */
void error_detail (struct error **err, const char *key, json_t *take_value);

void error_free (struct error *err);

/* Moves an error to the caller; frees what was there. Returns -1. */
int error_move (struct error **err, struct error *take_from);

/* The message of any error, also of one made when memory was out. */
const char *error_message (const struct error *err);
/* The hint, else the table's next step, else NULL. */
const char *error_next_step (const struct error *err);

/* The table row, or NULL for a number that is not in it. */
const struct error_info *error_lookup (int number);
const struct error_info *error_table (size_t *count);

/* {"error":{"code":"E8006","name":…,"message","hint","retryable","details"}};
 * the caller owns it. */
json_t *error_to_json (const struct error *err);

/* How a program of libexec ends with an error: one line and the next step on
 * stderr, or the JSON form on stdout.  Returns the exit status. */
int error_print (const struct error *err, int json);

DEFINE_CLEANUP (struct error *, error_free, auto_error)

#endif /* BASE_ERROR_H */
