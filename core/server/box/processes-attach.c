/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a process: its output in lines, its input, its logs; and those
 * lines as NDJSON.  Output is read from the log that it is written to, so that a
 * process never waits for anybody to attach, and what nobody has seen yet is
 * still there. */

#include <config.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "server/box/attach.h"
#include "server/box/sessions.h"
#include "server/server.h"

/* ---- lines of JSON ------------------------------------------------------- */

static void
frame_add (struct attach *attach, json_t *take_frame)
{
  auto_json json_t *frame = take_frame;
  auto_free char *text = frame ? json_text (frame) : NULL;

  if (text == NULL)
    attach->out.failed = 1;
  else
    coffer_buffer_printf (&attach->out, "%s\n", text);
}

static void
json_line (struct attach *attach, const char *bytes, size_t size,
           enum attach_part part)
{
  json_t *frame = json_object ();

  json_object_set_new (frame, "line", json_bytes (bytes, size));
  if (part != ATTACH_LINE)
    json_object_set_new (frame, "partial", json_true ());
  frame_add (attach, frame);
}

static void
json_dropped (struct attach *attach, uint64_t bytes)
{
  frame_add (attach, json_pack ("{s:s, s:I}", "event", "dropped", "bytes",
                                (json_int_t) bytes));
}

static void
json_exited (struct attach *attach, const json_t *code)
{
  frame_add (attach, json_pack ("{s:s, s:O}", "event", "exited", "exit_code",
                                code));
}

static const struct attach_framing json_framing = {
  json_line, json_dropped, json_exited
};

/* ---- what there is of it -------------------------------------------------- */

static void
line_add (struct attach *attach, enum attach_part part)
{
  attach->framing->line (attach, attach->line.data ? attach->line.data : "",
                         attach->line.size, part);
  attach->failed |= attach->line.failed;
  coffer_buffer_clear (&attach->line);
}

static void
bytes_add (struct attach *attach, const char *start, size_t size)
{
  const char *bytes = start, *newline;
  size_t n = attach->skip < size ? attach->skip : size;

  attach->skip = 0;
  bytes += n;
  size -= n;

  while (size > 0) {
    newline = memchr (bytes, '\n', size);
    n = newline ? (size_t) (newline - bytes) : size;
    coffer_buffer_add (&attach->line, bytes, n);
    n += newline != NULL;
    bytes += n;
    size -= n;
    if (newline || attach->line.size >= ATTACH_PART) {
      line_add (attach, newline ? ATTACH_LINE : ATTACH_PIECE);
      attach->made = (struct box_mark){ attach->seq, (size_t) (bytes - start) };
    }
  }
}

static void
end_add (struct attach *attach)
{
  auto_json json_t *facts = exec_log_info (attach->log);
  json_t *code = json_object_get (facts, "status");

  if (attach->line.size > 0)
    line_add (attach, ATTACH_REST);
  attach->framing->exited (attach, code ? code : json_null ());
  attach->ended = 1;
}

static int
event_add (struct attach *attach, const struct exec_event *event)
{
  coffer_unfilled char bytes[EXEC_LOG_CHUNK];
  ssize_t n;

  switch (event->kind) {
  case EXEC_EVENT_OUTPUT:
    if (event->stream != 1)
      return 0;
    if (event->size > sizeof bytes)
      return -1;
    n = exec_log_read (attach->log, 0, bytes, event->size, event->offset);
    if (n != (ssize_t) event->size)
      return -1;
    bytes_add (attach, bytes, (size_t) n);
    return 0;
  case EXEC_EVENT_DROPPED:
    if (event->stream == 1)
      attach->framing->dropped (attach, event->offset);
    return 0;
  default:
    end_add (attach);
    return 0;
  }
}

/* ---- the stream ---------------------------------------------------------- */

int
attach_next (struct attach *attach)
{
  struct exec_event event;
  int r;

  coffer_buffer_clear (&attach->out);
  attach->seen = attach->made;
  while (attach->out.size == 0 && !attach->ended) {
    r = exec_log_event (attach->log, attach->seq, &event);
    if (r < 0)
      end_add (attach);
    else if (r == 0) {
      if (exec_log_wait (attach->log, attach->seq, attach->cancel_fd) == 0)
        return -1;
    } else {
      if (event_add (attach, &event) < 0)
        return -1;
      attach->seq++;
    }
    if (attach->out.failed || attach->failed)
      return -1;
  }
  return attach->out.size > 0;
}

static ssize_t
attach_fill (void *data, char *out, size_t max)
{
  struct attach *attach = data;
  size_t left = attach->out.size - attach->sent;
  int r;

  if (left == 0) {
    r = attach_next (attach);
    if (r <= 0)
      return r;
    attach->sent = 0;
    left = attach->out.size;
  }
  if (left > max)
    left = max;
  memcpy (out, attach->out.data + attach->sent, left);
  attach->sent += left;
  return (ssize_t) left;
}

/* The next who attaches goes on behind the last line that was made. */
void
attach_free (void *data)
{
  struct attach *attach = data;
  struct box_process *process;

  pthread_mutex_lock (&attach->box->lock);
  process = box_process_find_locked (attach->session, attach->process);
  if (process && strcmp (process->exec, attach->exec) == 0) {
    process->attached = 0;
    process->seen = attach->seen;
  }
  pthread_mutex_unlock (&attach->box->lock);
  exec_log_unref (attach->log);
  box_session_leave (attach->box, attach->session);
  coffer_buffer_free (&attach->line);
  coffer_buffer_free (&attach->out);
  free (attach->process);
  free (attach->exec);
  free (attach);
}

static int
attach_take_locked (struct box_session *session, const char *id,
                    struct attach *attach, struct error **err)
{
  struct box_process *process = box_process_find_locked (session, id);

  if (process == NULL)
    return box_process_unknown (id, err);
  if (process->attached)
    return error_set (err, E_BUSY, 0,
                      "somebody else is attached to process %s", id);
  attach->process = strdup (id);
  attach->exec = strdup (process->exec);
  if (!attach->process || !attach->exec)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  attach->made = attach->seen = process->seen;
  attach->seq = process->seen.seq;
  attach->skip = process->seen.skip;
  process->attached = 1;
  return 0;
}

struct attach *
attach_new (struct box *box, struct request *request,
            struct box_session *session, const char *id,
            const struct attach_framing *framing, struct error **err)
{
  struct attach *attach = calloc (1, sizeof *attach);
  int r;

  if (attach == NULL) {
    box_session_leave (box, session);
    error_set (err, E_NO_MEMORY, 0, "out of memory");
    return NULL;
  }
  attach->box = box;
  attach->session = session;
  attach->framing = framing;
  attach->cancel_fd = request->cancel_fd;
  pthread_mutex_lock (&box->lock);
  r = attach_take_locked (session, id, attach, err);
  pthread_mutex_unlock (&box->lock);
  if (r < 0) {
    free (attach->process);
    free (attach->exec);
    free (attach);
    box_session_leave (box, session);
    return NULL;
  }
  if (exec_log_find (execs_logs (box->server->execs), session->sandbox,
                     attach->exec, &attach->log, err) == 0)
    return attach;
  attach_free (attach);
  return NULL;
}

int
box_process_attach (struct box *box, struct request *request,
                    struct box_session *session, const char *id,
                    struct error **err)
{
  struct attach *attach;
  struct reply_stream stream = { attach_fill, attach_free, NULL, 0 };

  if (socket_is_wanted (request))
    return box_process_socket (box, request, session, id, err);
  attach = attach_new (box, request, session, id, &json_framing, err);
  if (attach == NULL)
    return -1;
  stream.data = attach;
  return reply_stream (request, 200, "application/x-ndjson", &stream, err);
}

/* ---- input and logs ------------------------------------------------------ */

static char *
exec_of (struct box *box, const struct box_session *session, const char *id,
         struct error **err)
{
  struct box_process *process;
  char *exec = NULL;

  pthread_mutex_lock (&box->lock);
  process = box_process_find_locked (session, id);
  if (process)
    exec = strdup (process->exec);
  pthread_mutex_unlock (&box->lock);
  if (exec == NULL)
    box_process_unknown (id, err);
  return exec;
}

int
box_line_write (struct box *box, const struct box_session *session,
                const char *exec, const char *bytes, size_t size,
                int cancel_fd, struct error **err)
{
  coffer_autobuffer struct coffer_buffer line = { 0 };
  coffer_autoclose int from = -1;
  uint64_t written = 0;

  coffer_buffer_add (&line, bytes, size);
  if (line.size == 0 || line.data[line.size - 1] != '\n')
    coffer_buffer_add_string (&line, "\n");
  from = line.failed ? -1 : coffer_memfd_sealed ("line", line.data, line.size);
  if (from < 0)
    return error_set (err, E_IO, errno, "a message");
  return execs_write (box->server->execs, session->sandbox, exec, from,
                      cancel_fd, &written, err);
}

/* One message, which becomes a line. */
int
box_process_input (struct box *box, struct request *request,
                   struct box_session *session, const char *id,
                   struct error **err)
{
  auto_free char *exec = exec_of (box, session, id, err);

  return exec == NULL
           ? -1 : box_line_write (box, session, exec, request->body_text,
                                  request->body_size, request->cancel_fd,
                                  err);
}

/* Only descriptors keep what a log has while it is cleared away. */
int
box_process_log (struct box *box, struct request *request,
                 struct box_session *session, const char *id,
                 struct error **err)
{
  auto_free char *exec = exec_of (box, session, id, err);
  const char *name = request_query (request, "stream");
  auto_exec_log struct exec_log *log = NULL;
  const int stream = name && strcmp (name, "stderr") == 0;
  struct stat st;
  int fd;

  if (exec == NULL)
    return -1;
  if (name && !stream && strcmp (name, "stdout") != 0) {
    error_set (err, E_INVALID, 0, "stream: stdout or stderr is needed");
    error_detail (err, "field", json_string ("stream"));
    return -1;
  }
  if (exec_log_find (execs_logs (box->server->execs), session->sandbox, exec,
                     &log, err) < 0)
    return -1;
  fd = fcntl (exec_log_data_fd (log, stream), F_DUPFD_CLOEXEC, 3);
  if (fd < 0 || fstat (fd, &st) < 0) {
    coffer_fd_close (&fd);
    return error_set (err, E_IO, errno, "a log");
  }
  return reply_fd (request, 200, "application/octet-stream", fd, 0,
                   (uint64_t) st.st_size, err);
}
