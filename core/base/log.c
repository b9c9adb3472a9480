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
#include <unistd.h>

#include <coffer/fd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define TOPICS_MAX 256

static const char *const level_names[] = {
  [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning",
  [LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug",
};

static atomic_int threshold = LOG_LEVEL_WARNING;
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
log_event (enum log_level level, const char *topic, const char *fmt, ...)
{
  int keep = errno;
  auto_free char *raw = NULL;
  auto_free char *text = NULL;
  auto_free char *line = NULL;
  va_list args;
  int n;

  if (!log_enabled (level, topic))
    return;
  va_start (args, fmt);
  n = vasprintf (&raw, fmt, args);
  va_end (args);
  if (n < 0)
    raw = NULL;
  else
    text = text_escape (raw, (size_t) n);
  line = text_printf ("coffer: %s: %s: %s\n", level_names[level], topic,
                      text ? text : "(out of memory)");
  /* A log that cannot be written has nowhere to say so. */
  if (line)
    coffer_write_all (STDERR_FILENO, line, strlen (line));
  errno = keep;
}
