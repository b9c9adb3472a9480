/* SPDX-License-Identifier: Apache-2.0 */
/* What a running module says, on its way to the caller: checked, redacted,
 * bounded.  Both ways of running a module end here. */

#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider/broker.h"
#include "provider/credentials.h"
#include "provider/dispatch.h"
#include "provider/integrity.h"
#include "provider/opening.h"

#define MAX_TEXT (64 * 1024)
#define MAX_LOG_TEXT 4096
#define MAX_PROGRESS_TEXT 256

void
invoke_fault (struct invoke *invoke, int number, const char *fmt, ...)
{
  const struct contract_op *op = invoke->op;
  struct redact_tail tail = { NULL, 0 }, *tails[] = { &tail };
  struct error *error = NULL;
  char text[1024];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  /* It may quote what the module sent, and be cut. */
  redact_next (invoke->provider->redactor, tails, 1, text);
  redact_tail_fini (&tail);
  error_set (&error, number, 0, "%s: %s: %s", invoke->provider->manifest->id,
             op->name, text);
  outcome_fault (&invoke->outcome, error);
}

/* Replaces each descriptor of a record by a copy of its own (own), or closes
 * what the sink has left (!own). */
static void
walk_fds (const struct contract_record *record, void *data, int own)
{
  const struct contract_field *field;
  void *at, **records;
  uint16_t i;

  for (i = 0; i < record->n_fields; i++) {
    field = &record->fields[i];
    at = (char *) data + field->offset;
    if (field->type == CONTRACT_FD && own && *(int32_t *) at >= 0)
      *(int32_t *) at = fcntl (*(int32_t *) at, F_DUPFD_CLOEXEC, 3);
    else if (field->type == CONTRACT_FD && !own)
      coffer_fd_close (at);
    else if (field->type == CONTRACT_REC && *(void **) at)
      walk_fds (field->record, *(void **) at, own);
    else if (field->type == CONTRACT_RECV)
      for (records = *(void ***) at; records && *records; records++)
        walk_fds (field->record, *records, own);
  }
}

/* What a caller gets it reads from: a module has nothing to give but streams. */
static int
fds_are_streams (const struct contract_record *record, const void *data)
{
  const struct contract_field *field;
  const void *at;
  void *const *records;
  int good = 1;
  uint16_t i;

  for (i = 0; i < record->n_fields; i++) {
    field = &record->fields[i];
    at = (const char *) data + field->offset;
    if (field->type == CONTRACT_FD)
      good &= fd_is_stream (*(const int32_t *) at);
    else if (field->type == CONTRACT_REC && *(void *const *) at)
      good &= fds_are_streams (field->record, *(void *const *) at);
    else if (field->type == CONTRACT_RECV)
      for (records = *(void **const *) at; records && *records; records++)
        good &= fds_are_streams (field->record, *records);
  }
  return good;
}

int32_t
invoke_deliver (struct invoke *invoke, const struct contract_record *record,
                void *data)
{
  if (invoke->outcome.error)
    return COFFER_INTERNAL;
  if (invoke->ended)
    return COFFER_CANCELLED;
  if (!fds_are_streams (record, data)) {
    invoke_fault (invoke, E_PROVIDER_PROTOCOL,
                  "the record %s has a descriptor that is no pipe, socket or "
                  "terminal", record->name);
    return COFFER_INTERNAL;
  }
  if (!invoke->sink.record)
    return COFFER_OK;
  walk_fds (record, data, 1);
  redact_record (invoke->provider->redactor, record, data);
  invoke->ended = invoke->sink.record (invoke->sink.data, record, data) != 0;
  walk_fds (record, data, 0);
  return invoke->ended ? COFFER_CANCELLED : COFFER_OK;
}

/* A module of a later minor may know records that this host does not. */
static int
record_is_later (const struct provider *provider)
{
  return provider->manifest->contract_minor > provider->contract->minor;
}

int32_t
invoke_emit (struct invoke *invoke, uint32_t id, const void *data)
{
  const struct contract_record *record;
  auto_arena struct contract_arena *arena = NULL;
  auto_error struct error *error = NULL;
  void *copy = NULL;

  record = contract_record_by_id (invoke->provider->contract, id);
  if (!record && record_is_later (invoke->provider))
    return COFFER_UNSUPPORTED;
  if (id == 0 || !record || !data) {
    invoke_fault (invoke, E_PROVIDER_PROTOCOL,
                  "it emitted a record that the contract does not have (%u)",
                  id);
    return COFFER_INTERNAL;
  }
  arena = contract_arena_new ();
  if (!arena
      || contract_copy_record (record, data, arena, &copy, &error) < 0) {
    invoke_fault (invoke, arena ? E_PROVIDER_PROTOCOL : E_NO_MEMORY,
                  "the record %s is malformed: %s", record->name,
                  error ? error_message (error) : "out of memory");
    return COFFER_INTERNAL;
  }
  return invoke_deliver (invoke, record, copy);
}

/* What a module says, without secrets, at most `bound` bytes of it: hidden
 * first and cut then, so that no part of one is left. */
static char *
clean_text (const struct invoke *invoke, const char *text, size_t bound)
{
  char *copy = text ? strndup (text, MAX_TEXT) : NULL;

  redact_text (invoke->provider->redactor, copy);
  if (copy && strlen (copy) > bound)
    copy[bound] = '\0';
  return copy;
}

int32_t
invoke_fail (struct invoke *invoke, int32_t code, int32_t retryable,
             const char *message, const char *details)
{
  auto_free char *clean = clean_text (invoke, message, MAX_TEXT);
  json_t *hidden;

  outcome_fail (&invoke->outcome, code, retryable, clean, details);
  if (invoke->outcome.details) {
    hidden = redact_json (invoke->provider->redactor,
                          invoke->outcome.details);
    json_decref (invoke->outcome.details);
    invoke->outcome.details = hidden;
  }
  return code;
}

/* A secret in pieces would be found by whoever joins the lines again: those
 * that the journal keeps, those of them that are shown, and those of each way,
 * since what is printed and what is logged may mix.  A line that was printed
 * belongs to no call. */
static void
say_line_locked (struct invoke *invoke, enum log_level level, char *text,
                 const char *end)
{
  struct provider *provider = invoke->provider;
  int shown = log_enabled (level, "provider");
  struct redact_tail *tails[] = { invoke->op ? &provider->logged
                                             : &provider->printed,
                                  &provider->kept, &provider->shown };
  auto_free char *line = NULL;

  redact_next (provider->redactor, tails, shown ? 3 : 2, text);
  line = text_printf ("%s%s", text, end);
  if (!line)
    return;
  journal_add (&provider->journal, line);
  log_event (level, "provider", "%s: %s", provider->manifest->id, line);
}

void
invoke_log (struct invoke *invoke, int32_t level, const char *text)
{
  struct provider *provider = invoke->provider;
  auto_free char *copy = text ? strndup (text, MAX_LOG_TEXT) : NULL;
  uint64_t dropped;

  if (!copy || !journal_admit (&provider->journal, &dropped))
    return;
  if (dropped > 0)
    log_event (LOG_LEVEL_WARNING, "provider",
               "%s: %llu log lines were dropped: too many in a second",
               provider->manifest->id, (unsigned long long) dropped);
  if (level < COFFER_LOG_ERROR || level > COFFER_LOG_DEBUG)
    level = COFFER_LOG_INFO;
  pthread_mutex_lock (&provider->said_lock);
  say_line_locked (invoke, (enum log_level) level, copy,
                   strlen (copy) == MAX_LOG_TEXT ? "…" : "");
  pthread_mutex_unlock (&provider->said_lock);
}

void
invoke_progress (struct invoke *invoke, uint64_t done, uint64_t total,
                 const char *what)
{
  auto_free char *clean = NULL, *hidden = NULL;

  if (!invoke->sink.progress || invoke->ended)
    return;
  hidden = clean_text (invoke, what, MAX_PROGRESS_TEXT);
  clean = hidden ? text_escape (hidden, strlen (hidden)) : NULL;
  invoke->sink.progress (invoke->sink.data, done, total, clean ? clean : "");
}

/* What went wrong is the call's error: a module could not say it. */
static int32_t
connect_credentials (struct invoke *invoke, const char *target)
{
  struct error *error = NULL;
  int fd = credentials_connect (invoke->provider, target, invoke->deadline_ns,
                                invoke->cancel_fd, &error);
  int32_t code;

  if (fd >= 0)
    return fd;
  code = error && error->number == E_NOT_FOUND ? COFFER_NOT_FOUND
         : error && error->number == E_CREDENTIALS_HELPER
           ? COFFER_UNAUTHENTICATED : broker_code (error);
  if (code == COFFER_NOT_FOUND || code == COFFER_DENIED) {
    error_free (error);
    return -code;
  }
  log_event (LOG_LEVEL_INFO, "broker", "%s: %s", invoke->provider->manifest->id,
             error ? error_message (error) : "no credentials");
  outcome_fault (&invoke->outcome, error);
  return -code;
}

int32_t
invoke_connect (struct invoke *invoke, const char *target)
{
  auto_error struct error *error = NULL;
  struct provider *provider = invoke->provider;
  int fd;

  if (target && strncmp (target, CREDENTIALS_TARGET,
                         strlen (CREDENTIALS_TARGET)) == 0)
    return connect_credentials (invoke, target);
  fd = broker_connect (provider->manifest, provider->opening->config, target,
                       invoke->deadline_ns, invoke->cancel_fd, &error);
  if (fd >= 0)
    return fd;
  log_event (LOG_LEVEL_INFO, "broker", "%s: %s", provider->manifest->id,
             error ? error_message (error) : "the connection failed");
  return -broker_code (error);
}

int32_t
invoke_file (struct invoke *invoke, const char *name)
{
  auto_error struct error *error = NULL;
  struct provider *provider = invoke->provider;
  const struct manifest *manifest = provider->manifest;
  size_t i;
  int fd;

  for (i = 0; name && i < manifest->n_files; i++)
    if (manifest->files[i].late && strcmp (manifest->files[i].name, name) == 0)
      break;
  if (!name || i == manifest->n_files)
    return -COFFER_NOT_FOUND;
  fd = integrity_open (provider->entry->dir_fd, name,
                       manifest->files[i].sha256, 1, &error);
  if (fd >= 0)
    return fd;
  log_event (LOG_LEVEL_ERROR, "provider", "%s: %s", manifest->id,
             error_message (error));
  return error && error->number == E_INTEGRITY ? -COFFER_DENIED
                                               : -COFFER_UNAVAILABLE;
}

/* A worker is told to stop when the time of a call is over: to whoever made it
 * that is no giving up of its own. */
static int
ran_out (const struct invoke *invoke)
{
  struct pollfd cancel = { .fd = invoke->cancel_fd, .events = POLLIN };

  return !invoke->ended && coffer_now_ns () >= invoke->deadline_ns
         && poll (&cancel, 1, 0) == 0;
}

void
invoke_return (struct invoke *invoke, int32_t code)
{
  struct outcome *outcome = &invoke->outcome;

  outcome->returned = code;
  if (code == COFFER_CANCELLED && ran_out (invoke)) {
    code = COFFER_TIMEOUT;
    outcome_fail (outcome, code, COFFER_RETRY_DEFAULT, "not done in time",
                  NULL);
  }
  if (!contract_code_name (code)) {
    log_event (LOG_LEVEL_ERROR, "dispatch",
               "%s: %s returned %d, which is no code of the contract",
               invoke->provider->manifest->id, invoke->op->name, code);
    code = COFFER_INTERNAL;
  }
  if (code != outcome->code) {
    outcome->retryable = COFFER_RETRY_DEFAULT;
    if (code == COFFER_OK) {
      free (steal (outcome->message));
      json_decref (outcome->details);
      outcome->details = NULL;
    }
  }
  outcome->code = invoke->ended && code == COFFER_OK ? COFFER_CANCELLED
                                                      : code;
}
