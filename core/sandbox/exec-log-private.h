/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of exec-log.h share. */

#ifndef SANDBOX_EXEC_LOG_PRIVATE_H
#define SANDBOX_EXEC_LOG_PRIVATE_H

#include <stddef.h>

#include "sandbox/exec-keeper.h"
#include "sandbox/exec-log.h"

#define LOG_PAGE 4096
#define LOG_HEAD_SIZE 64
#define LOG_EVENT_SIZE 24
#define LOG_MAGIC UINT64_C (0x316c78652d666f63)
/* What a log may still have to say when there is no more room: the rest of both
 * streams, what was dropped of both, its end. */
#define LOG_LAST_EVENTS 6

/* The beginning of `events`, in the byte order of this machine. */
struct log_head {
  uint64_t magic;
  uint64_t dropped[2];
  uint64_t reserved[5];
};
_Static_assert (sizeof (struct log_head) == LOG_HEAD_SIZE, "head");
_Static_assert (offsetof (struct log_head, dropped) == KEEPER_DROPPED_AT,
                "what coffer-keeper counts");
_Static_assert (sizeof (struct exec_event) == LOG_EVENT_SIZE, "event");

/* Somebody who waits for what comes. */
struct exec_watch {
  struct exec_watch *next;
  int fd;
};

/* ---- exec-log-owners.c ---------------------------------------------------- */

/* The tenant of a sandbox, or NULL; there until its logs are dropped. */
const char *exec_log_owner_locked (struct exec_logs *logs,
                                   const char *sandbox);
void exec_log_owner_forget (struct exec_logs *logs, const char *sandbox);
void exec_log_owners_free (struct exec_logs *logs);
/* So many bytes more, and fewer, of a tenant's (NULL: nobody's); and how many
 * more there may be. */
void exec_logs_used (struct exec_logs *logs, const char *tenant,
                     uint64_t bytes);
void exec_logs_freed (struct exec_logs *logs, const char *tenant,
                      uint64_t bytes);
uint64_t exec_logs_left (struct exec_logs *logs, const char *tenant);

/* ---- exec-log.c ----------------------------------------------------------- */

/* writing is held: one event more, and who waits is told. */
void exec_log_append (struct exec_log *log, enum exec_event_kind kind,
                      int stream, uint64_t offset, uint32_t size);
/* lock is held. */
int exec_log_meta_write (struct exec_log *log);
/* meta.json as a new file in the place of the old one, which whoever looks for it
 * finds whole until then; on failure it is as it was. */
int exec_log_meta_replace (struct exec_log *log, const char *bytes,
                           size_t size);
/* Its files are removed: who waits sees its end. */
void exec_log_cut (struct exec_log *log);
/* As exec_log_take, into nothing. */
int exec_log_discard (int pipe, uint64_t *bytes);

#endif /* SANDBOX_EXEC_LOG_PRIVATE_H */
