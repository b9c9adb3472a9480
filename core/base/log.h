/* SPDX-License-Identifier: Apache-2.0 */
/* The log: lines on stderr, "coffer: LEVEL: topic: text".  Never stdout.  Keeps
 * errno.  Secrets are never given to it; text that comes from a provider or a
 * sandbox is escaped here.  Thread-safe: one write(2) a line. */

#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <jansson.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO,
                 LOG_LEVEL_DEBUG };

/* From COFFER_LOG ("warning", "debug", "debug:worker,channel") or --verbose;
 * warnings and errors unless said. */
void log_configure (const char *spec);
void log_set_level (enum log_level level);
int log_enabled (enum log_level level, const char *topic);

void log_event (enum log_level level, const char *topic, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4)));

/* The same with what a program may want to read of it: {"time", "level",
 * "topic", "message"} and the fields, when lines are JSON; else the text alone.
 * fields NULL: none. */
void log_fields (enum log_level level, const char *topic, const char *text,
                 const json_t *fields);

/* Lines are JSON objects from now on, or text again.  Of all threads. */
void log_set_json (int on);
int log_is_json (void);

#endif /* BASE_LOG_H */
