/* SPDX-License-Identifier: Apache-2.0 */
/* Writing logs of commands: see exec-log.h.  Making and finding them is
 * exec-log-files.c, reading exec-log-read.c. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "sandbox/exec-log-private.h"

#define DROP_CHUNK (1 << 20)
/* With what is left of a character before it, it is one event. */
#define TAKE_CHUNK (EXEC_LOG_CHUNK - 4)
/* An event tells of dropped bytes at the first of them and after so many. */
#define DROP_TOLD (UINT64_C (16) << 20)

/* ---- the index ----------------------------------------------------------- */

static void
used_add (struct exec_log *log, uint64_t bytes)
{
  exec_logs_used (log->logs, log->tenant, bytes);
}

/* Room for so many more events, as zeros. */
static int
index_reserve (struct exec_log *log, uint64_t events)
{
  static const char zeros[LOG_PAGE];
  uint64_t wanted = LOG_HEAD_SIZE + (log->count + events) * LOG_EVENT_SIZE;

  while (log->room < wanted) {
    if (pwrite (log->index, zeros, LOG_PAGE, (off_t) log->room) != LOG_PAGE)
      return -1;
    log->room += LOG_PAGE;
    used_add (log, LOG_PAGE);
  }
  return 0;
}

static void
watches_wake_locked (struct exec_log *log)
{
  const uint64_t one = 1;
  struct exec_watch *watch;

  for (watch = log->watches; watch; watch = watch->next)
    coffer_write_all (watch->fd, &one, sizeof one);
}

void
exec_log_append (struct exec_log *log, enum exec_event_kind kind, int stream,
                 uint64_t offset, uint32_t size)
{
  struct exec_event event = { offset, coffer_realtime_ns (), size,
                              (uint8_t) kind, (uint8_t) stream, 0 };
  uint64_t end = LOG_HEAD_SIZE + (log->count + 1) * LOG_EVENT_SIZE;

  if (log->room < end && index_reserve (log, 1) < 0)
    return;
  if (pwrite (log->index, &event, sizeof event,
              (off_t) (end - LOG_EVENT_SIZE)) != (ssize_t) sizeof event)
    return;
  pthread_mutex_lock (&log->lock);
  log->count++;
  log->ended |= kind == EXEC_EVENT_EXITED;
  watches_wake_locked (log);
  pthread_mutex_unlock (&log->lock);
}

/* Bytes at the end of a stream that begin a character and do not end it: they
 * wait for the rest, so that text stays text. */
static uint64_t
unfinished (const struct exec_log *log, int stream)
{
  uint64_t size = log->size[stream], have = size - log->indexed[stream];
  unsigned char last[3], c;
  size_t n = have < 3 ? (size_t) have : 3, back;

  if (n == 0
      || pread (log->data[stream], last, n, (off_t) (size - n)) != (ssize_t) n)
    return 0;
  for (back = 1; back <= n; back++) {
    c = last[n - back];
    if (c < 0x80)
      return 0;
    if (c >= 0xc0)
      return back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? back : 0;
  }
  return 0;
}

/* Events of what has come, but for `behind` bytes at its end. */
static void
index_output (struct exec_log *log, int stream, uint64_t behind)
{
  uint64_t until = log->size[stream] - behind, n;

  while (log->indexed[stream] < until) {
    n = until - log->indexed[stream];
    if (n > EXEC_LOG_CHUNK)
      n = EXEC_LOG_CHUNK;
    exec_log_append (log, EXEC_EVENT_OUTPUT, stream + 1, log->indexed[stream],
                     (uint32_t) n);
    log->indexed[stream] += n;
  }
}

/* ---- what there is no room for ------------------------------------------- */

static void
drop_tell (struct exec_log *log, int stream)
{
  uint64_t bytes = log->dropped[stream] - log->told[stream];

  if (bytes == 0)
    return;
  log->told[stream] = log->dropped[stream];
  exec_log_append (log, EXEC_EVENT_DROPPED, stream + 1, bytes, 0);
}

static void
drop_note (struct exec_log *log, int stream, uint64_t bytes)
{
  uint64_t dropped;

  pthread_mutex_lock (&log->lock);
  dropped = log->dropped[stream] += bytes;
  pthread_mutex_unlock (&log->lock);
  /* In its place, where room was taken: a full disk has it too. */
  if (pwrite (log->index, &dropped, sizeof dropped,
              (off_t) (offsetof (struct log_head, dropped)
                       + (size_t) stream * sizeof dropped)) < 0)
    return;
  if ((log->told[stream] == 0 || dropped - log->told[stream] >= DROP_TOLD)
      && index_reserve (log, LOG_LAST_EVENTS) == 0) {
    index_output (log, stream, 0);
    drop_tell (log, stream);
  }
}

static int
null_open (void)
{
  static atomic_int null_fd = -1;
  int fd = atomic_load (&null_fd), none = -1;

  if (fd >= 0)
    return fd;
  fd = open ("/dev/null", O_WRONLY | O_CLOEXEC);
  if (fd >= 0 && !atomic_compare_exchange_strong (&null_fd, &none, fd)) {
    close (fd);
    fd = none;
  }
  return fd;
}

int
exec_log_discard (int pipe, uint64_t *bytes)
{
  char buffer[4096];
  ssize_t n = splice (pipe, NULL, null_open (), NULL, DROP_CHUNK,
                      SPLICE_F_NONBLOCK);

  if (n < 0 && errno != EAGAIN && errno != EINTR)
    n = read (pipe, buffer, sizeof buffer);
  *bytes = n > 0 ? (uint64_t) n : 0;
  if (n > 0)
    return 1;
  return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static int
take_dropping (struct exec_log *log, int stream, int pipe)
{
  uint64_t bytes;
  int r = exec_log_discard (pipe, &bytes);

  if (r > 0)
    drop_note (log, stream, bytes);
  return r;
}

/* ---- what there is ------------------------------------------------------- */

/* How many bytes may be kept now. */
static uint64_t
room_left (struct exec_log *log)
{
  struct exec_logs *logs = log->logs;
  uint64_t used = log->size[0] + log->size[1] + log->room;
  uint64_t all = exec_logs_left (logs, log->tenant), left;

  if (used >= logs->cap || all == 0
      || index_reserve (log, LOG_LAST_EVENTS + 1) < 0)
    return 0;
  left = logs->cap - used;
  if (left > all)
    left = all;
  return left < TAKE_CHUNK ? left : TAKE_CHUNK;
}

/* Where the disk does not know splice.  Of what it does not take whole a part
 * may be there: that goes, as the next byte comes where the last event ends. */
#define GONE -2                 /* and all of it was counted as dropped */

static ssize_t
copy (struct exec_log *log, int stream, int pipe, size_t size)
{
  const int file = log->data[stream];
  const off_t end = (off_t) log->size[stream];
  char buffer[8192];
  ssize_t n = read (pipe, buffer, size < sizeof buffer ? size : sizeof buffer);

  if (n <= 0 || coffer_write_all (file, buffer, (size_t) n) == n)
    return n;
  if (ftruncate (file, end) == 0)
    lseek (file, end, SEEK_SET);
  drop_note (log, stream, (uint64_t) n);
  return GONE;
}

static ssize_t
move (struct exec_log *log, int stream, int pipe, size_t size)
{
  ssize_t n = -1;

  errno = EINVAL;
  if (!log->copies)
    n = splice (pipe, NULL, log->data[stream], NULL, size,
                SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n >= 0 || errno != EINVAL)
    return n;
  log->copies = 1;
  return copy (log, stream, pipe, size);
}

int
exec_log_over (struct exec_log *log)
{
  int over;

  pthread_mutex_lock (&log->lock);
  over = log->ended;
  pthread_mutex_unlock (&log->lock);
  return over;
}

static int
take (struct exec_log *log, int stream, int pipe)
{
  uint64_t room, bytes;
  ssize_t n;

  if (exec_log_over (log))
    return exec_log_discard (pipe, &bytes);
  room = room_left (log);
  if (room == 0)
    return take_dropping (log, stream, pipe);
  n = move (log, stream, pipe, (size_t) room);
  if (n == GONE)
    return 1;
  if (n < 0)
    return errno == EAGAIN || errno == EINTR
             ? 0 : take_dropping (log, stream, pipe);
  if (n == 0)
    return -1;
  used_add (log, (uint64_t) n);
  pthread_mutex_lock (&log->lock);
  log->size[stream] += (uint64_t) n;
  pthread_mutex_unlock (&log->lock);
  drop_tell (log, stream);
  index_output (log, stream, unfinished (log, stream));
  return 1;
}

int
exec_log_take (struct exec_log *log, int stream, int pipe)
{
  int r;

  pthread_mutex_lock (&log->writing);
  r = take (log, stream, pipe);
  pthread_mutex_unlock (&log->writing);
  return r;
}

void
exec_log_flush (struct exec_log *log)
{
  int i;

  pthread_mutex_lock (&log->writing);
  for (i = 0; i < 2; i++)
    index_output (log, i, 0);
  pthread_mutex_unlock (&log->writing);
}

int
exec_log_pending (struct exec_log *log)
{
  int pending;

  pthread_mutex_lock (&log->writing);
  pending = log->indexed[0] < log->size[0] || log->indexed[1] < log->size[1];
  pthread_mutex_unlock (&log->writing);
  return pending;
}

/* ---- its end ------------------------------------------------------------- */

/* One page is written as a whole, in its place, in room that was taken at the
 * start; what is more becomes a new file.  Where there is no room for one, what
 * fits is better than what was true before. */
static int
meta_put (struct exec_log *log)
{
  auto_free char *text = json_text (log->meta), *padded = NULL;
  size_t size = text ? strlen (text) : 0, room = log->meta_room;

  while (room < size + 1)
    room += LOG_PAGE;
  padded = malloc (room);
  if (!text || !padded)
    return -1;
  memset (padded, ' ', room);
  memcpy (padded, text, size);
  padded[room - 1] = '\n';
  if ((room <= LOG_PAGE || exec_log_meta_replace (log, padded, room) < 0)
      && ((room > LOG_PAGE && room > log->meta_room)
          || pwrite (log->meta_fd, padded, room, 0) != (ssize_t) room))
    return -1;
  used_add (log, room - log->meta_room);
  log->meta_room = room;
  return 0;
}

/* Facts without which the rest fits are left out where there is no more. */
int
exec_log_meta_write (struct exec_log *log)
{
  json_t *exit = json_object_get (log->meta, "exit");

  if (meta_put (log) == 0)
    return 0;
  if (exit)
    json_object_set_new (exit, "facts", json_array ());
  return meta_put (log);
}

void
exec_log_note (struct exec_log *log, json_t *take_facts)
{
  pthread_mutex_lock (&log->writing);
  pthread_mutex_lock (&log->lock);
  json_object_update (log->meta, take_facts);
  exec_log_meta_write (log);
  pthread_mutex_unlock (&log->lock);
  pthread_mutex_unlock (&log->writing);
  json_decref (take_facts);
}

void
exec_log_end (struct exec_log *log, json_t *take_facts)
{
  int i;

  pthread_mutex_lock (&log->writing);
  if (!exec_log_over (log)) {
    pthread_mutex_lock (&log->lock);
    json_object_update (log->meta, take_facts);
    exec_log_meta_write (log);
    pthread_mutex_unlock (&log->lock);
    for (i = 0; i < 2; i++) {
      index_output (log, i, 0);
      drop_tell (log, i);
    }
    exec_log_append (log, EXEC_EVENT_EXITED, 0, 0, 0);
  }
  pthread_mutex_unlock (&log->writing);
  json_decref (take_facts);
}
