/* SPDX-License-Identifier: Apache-2.0 */
/* The log.  Its settings are atomics, since any thread logs; a line is built
 * whole and leaves in one write(2), so that lines of several threads and
 * processes never mix. */

#include <config.h>

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"

#define TOPICS_MAX 256

static const char *const level_names[] = {
  [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning",
  [LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug",
};

static atomic_int threshold = LOG_LEVEL_WARNING;
static atomic_int is_json;
/* ",worker,channel,": the topics that the threshold is for; "" means all.
 * Written by log_configure only, which is called before threads start. */
static char topics[TOPICS_MAX];

void
log_set_level (enum log_level level)
{
  atomic_store (&threshold, level);
}

void
log_configure (const char *spec)
{
  size_t length;

  if (!spec)
    return;
  length = strcspn (spec, ":");
  for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++) {
    if (strlen (level_names[i]) == length
        && strncmp (spec, level_names[i], length) == 0)
      log_set_level (i);
  }
  topics[0] = '\0';
  if (spec[length] == ':' && spec[length + 1]
      && strlen (spec + length) + 2 < sizeof topics)
    snprintf (topics, sizeof topics, ",%s,", spec + length + 1);
}

static int
topic_selected (const char *topic)
{
  char wanted[64];

  if (!topics[0])
    return 1;
  if (snprintf (wanted, sizeof wanted, ",%s,", topic) >= (int) sizeof wanted)
    return 0;
  return strstr (topics, wanted) != NULL;
}

/* Warnings and errors always show; topics select among the chatter. */
int
log_enabled (enum log_level level, const char *topic)
{
  if ((int) level > atomic_load (&threshold))
    return 0;
  return level <= LOG_LEVEL_WARNING || topic_selected (topic);
}

void
log_set_json (int on)
{
  atomic_store (&is_json, on);
}

int
log_is_json (void)
{
  return atomic_load (&is_json);
}

static char *
line_json (enum log_level level, const char *topic, const char *text,
           const json_t *fields)
{
  const int64_t now = coffer_realtime_ns ();
  const time_t seconds = (time_t) (now / 1000000000);
  auto_json json_t *json = NULL;
  auto_free char *body = NULL;
  char time[64];
  struct tm tm;
  size_t n;

  gmtime_r (&seconds, &tm);
  n = strftime (time, sizeof time, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf (time + n, sizeof time - n, ".%03dZ",
            (int) (now % 1000000000 / 1000000));
  json = json_pack ("{s:s, s:s, s:s, s:s}", "time", time, "level",
                    level_names[level], "topic", topic, "message", text);
  if (json && fields)
    json_object_update_missing (json, (json_t *) fields);
  body = json ? json_text (json) : NULL;
  return body ? text_printf ("%s\n", body) : NULL;
}

void
log_fields (enum log_level level, const char *topic, const char *text,
            const json_t *fields)
{
  int keep = errno;
  auto_free char *shown = NULL;
  auto_free char *line = NULL;

  if (!log_enabled (level, topic))
    return;
  shown = text ? text_escape (text, strlen (text)) : NULL;
  text = shown ? shown : "(out of memory)";
  line = log_is_json ()
           ? line_json (level, topic, text, fields)
           : text_printf ("coffer: %s: %s: %s\n", level_names[level], topic,
                          text);
  /* A log that cannot be written has nowhere to say so. */
  if (line)
    coffer_write_all (STDERR_FILENO, line, strlen (line));
  errno = keep;
}

void
log_event (enum log_level level, const char *topic, const char *fmt, ...)
{
  int keep = errno;
  auto_free char *text = NULL;
  va_list args;

  if (!log_enabled (level, topic))
    return;
  va_start (args, fmt);
  if (vasprintf (&text, fmt, args) < 0)
    text = NULL;
  va_end (args);
  log_fields (level, topic, text, NULL);
  errno = keep;
}
