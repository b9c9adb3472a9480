/* SPDX-License-Identifier: Apache-2.0 */
/* What commands write, kept in files: STATE/execs/SANDBOX/EXEC/ with
 *
 *   stdout, stderr   the bytes, and nothing else
 *   events           a head of 64 bytes, then a record of 24 bytes for each
 *                    event, in order; zeros behind the last
 *   meta.json        what command it is and, once it is over, how it ended
 *
 * Bytes go from the command's pipe into a file by splice, so that none is ever
 * in this process alone: whatever ends it, each byte is in the pipe or in the
 * file.  The event that tells of bytes is written after them; bytes behind the
 * last event become one more when the log is opened again.  An event's number is
 * its place, from 1 on, and what it says never changes.
 *
 * Room is taken before it is needed.  Where there is none, on the disk or under
 * one of the two caps, bytes are dropped and counted, which is said by an event,
 * and a log always has room for its end.
 *
 * One thread writes to a log at a time (the log sees to that); any may read. */

#ifndef SANDBOX_EXEC_LOG_H
#define SANDBOX_EXEC_LOG_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "base/place.h"
#include "policy/shares.h"
#include "sandbox/sandbox.h"

#define EXEC_ID_SIZE 65
#define EXEC_LOG_CHUNK 65536    /* bytes of one event at most */

enum exec_event_kind {
  EXEC_EVENT_OUTPUT = 1,
  EXEC_EVENT_DROPPED = 2,
  EXEC_EVENT_EXITED = 3         /* the last */
};

/* As in the file. */
struct exec_event {
  uint64_t offset;              /* OUTPUT: in the stream's file; DROPPED: how
                                 * many bytes */
  int64_t time_ns;              /* since the epoch */
  uint32_t size;                /* OUTPUT */
  uint8_t kind;
  uint8_t stream;               /* 1: stdout, 2: stderr, 0: neither */
  uint16_t reserved;
};

/* Whose sandboxes are: of a tenant's share (SHARE_LOGS) its logs are part. */
struct exec_log_owners {
  struct shares *shares;        /* NULL: none have any */
  char *(*tenant_of) (void *data, const char *sandbox); /* the caller frees */
  void *data;
};

struct log_owner;

struct exec_logs {
  const struct place *place;
  struct exec_log_owners owners;
  uint64_t cap, cap_all;        /* bytes of one log, and of all */
  atomic_uint_fast64_t used;    /* of all */
  atomic_uint made;
  pthread_mutex_t lock;
  struct exec_log *open;        /* lock, as the next */
  struct log_owner *known;
};

struct exec_watch;

struct exec_log {
  struct exec_log *next;        /* logs->lock, as the next */
  unsigned refs;
  struct exec_logs *logs;
  char *tenant;                 /* NULL: not known */
  char sandbox[SANDBOX_ID_SIZE];
  char exec[EXEC_ID_SIZE];
  int data[2], index, meta_fd;
  pthread_mutex_t writing;      /* comes before `lock` */
  uint64_t room;                /* writing: bytes of the index there are */
  size_t meta_room;             /* lock: and of meta.json */
  uint64_t indexed[2];          /* writing: bytes that events tell of */
  uint64_t told[2];             /* writing: dropped ones that they tell of */
  int copies;                   /* writing: splice is not for this disk */
  pthread_mutex_t lock;
  uint64_t count;               /* lock, as all that follows: events */
  uint64_t size[2];
  uint64_t dropped[2];
  int ended, removed;
  json_t *meta;
  struct exec_watch *watches;
};

/* Finds what is used already.  The place is borrowed; owners NULL: none. */
int exec_logs_open (const struct place *place, uint64_t cap, uint64_t cap_all,
                    const struct exec_log_owners *owners,
                    struct exec_logs **out, struct error **err);
void exec_logs_close (struct exec_logs *logs);
DEFINE_CLEANUP (struct exec_logs *, exec_logs_close, auto_exec_logs)
#define auto_exec_logs CLEANUP (auto_exec_logs)

/* A new one.  meta: an object, to which the end is added later.  E_LIMIT when
 * even that would be too much. */
int exec_log_new (struct exec_logs *logs, const char *sandbox,
                  const char *exec, json_t *take_meta, struct exec_log **out,
                  struct error **err);
/* E_EXEC_UNKNOWN when there is none.  One that has not ended is only written to
 * after exec_log_recover. */
int exec_log_find (struct exec_logs *logs, const char *sandbox,
                   const char *exec, struct exec_log **out,
                   struct error **err);
struct exec_log *exec_log_ref (struct exec_log *log);
void exec_log_unref (struct exec_log *log);
DEFINE_CLEANUP (struct exec_log *, exec_log_unref, auto_exec_log)
#define auto_exec_log CLEANUP (auto_exec_log)

/* Bytes of an earlier process that no event tells of. */
void exec_log_recover (struct exec_log *log);
/* A data file to give away: its place is where the next byte goes. */
int exec_log_data_fd (const struct exec_log *log, int stream);
int exec_log_index_fd (const struct exec_log *log);

/* ---- writing ------------------------------------------------------------ */

/* Takes what a pipe that does not block has now, at most a chunk; stream 0 or
 * 1.  1: something; 0: nothing at the moment; -1: it has ended. */
int exec_log_take (struct exec_log *log, int stream, int pipe);
/* Tells of a character that is not whole yet, as it may never be. */
void exec_log_flush (struct exec_log *log);
/* Whether there is such a one. */
int exec_log_pending (struct exec_log *log);
/* It is over: facts are added to meta.json, and the last event is written. */
void exec_log_end (struct exec_log *log, json_t *take_facts);
/* Whether it is, or its files were removed. */
int exec_log_over (struct exec_log *log);
/* Adds to meta.json before that. */
void exec_log_note (struct exec_log *log, json_t *take_facts);

/* ---- reading ------------------------------------------------------------ */

/* A copy of meta.json with what is counted: "bytes" and "dropped" of
 * "stdout" and "stderr", and "events". */
json_t *exec_log_info (struct exec_log *log);
/* 1: *out is that event; 0: it is not there yet; -1: the log has ended before
 * it, or was removed. */
int exec_log_event (struct exec_log *log, uint64_t seq,
                    struct exec_event *out);
/* Until exec_log_event says something else than 0: 1; or cancel_fd is
 * readable: 0. */
int exec_log_wait (struct exec_log *log, uint64_t seq, int cancel_fd);
/* A file of its own to read a stream from, or -1 with errno. */
int exec_log_data_dup (const struct exec_log *log, int stream);
/* Bytes that an event tells of; -1 with errno when they are not there. */
ssize_t exec_log_read (const struct exec_log *log, int stream, void *bytes,
                       size_t size, uint64_t offset);

/* Whose a sandbox is; the caller frees.  NULL: not known. */
char *exec_logs_tenant (struct exec_logs *logs, const char *sandbox);

/* ---- all of them -------------------------------------------------------- */

/* Each log of a sandbox as exec_log_info has it, by number of exec. */
int exec_logs_list (struct exec_logs *logs, const char *sandbox,
                    json_t **out, struct error **err);
/* Removes those of a sandbox; who reads one sees its end. */
void exec_logs_drop (struct exec_logs *logs, const char *sandbox);
/* Calls back with each sandbox that has logs, and drops those for which it
 * says 1. */
void exec_logs_sweep (struct exec_logs *logs,
                      int (*is_gone) (void *data, const char *sandbox),
                      void *data);

#endif /* SANDBOX_EXEC_LOG_H */
