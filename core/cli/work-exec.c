/* SPDX-License-Identifier: Apache-2.0 */
/* One command in a sandbox, by a daemon or here.
 *
 * A daemon keeps what the command writes and tells of it in events, which are
 * read here as frames; what is given on by our standard input goes there in a
 * request of its own.  Neither waits for the other: a command that does not read
 * still shows what it writes. */

#include <config.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/work.h"
#include "client/frame.h"

#define SANDBOX "/api/v1/sandboxes/%s"
#define EXEC SANDBOX "/execs/%s"
#define INPUT_BYTES 65536
/* As long as a command here is given to end by what it was sent. */
#define STAGE_NS INT64_C (2000000000)
#define SIGNAL_NS INT64_C (5000000000)

struct follow {
  struct client *daemon;
  const char *id, *exec;
  const struct exec_streams *streams;
  struct client_reply events, input;
  int in;                       /* read from; -1: nothing more */
  int waiting;                  /* a part of it waits to be sent */
  int ended;                    /* the input: 1, all is sent; 2, closed */
  int attached;                 /* the command goes on without us */
  int over;                     /* the last event was there */
  int gone[3];                  /* nobody reads that stream any more: errno */
  int cancelled, stage;
  int64_t next_stage_ns;
  struct exec_result *result;
};

static int
ask (struct follow *follow, const char *method, char *take_target,
     const json_t *body, json_t **out, struct error **err)
{
  auto_free char *target = take_target;
  const struct client_request request = {
    .method = method, .target = target, .body = body, .cancel_fd = -1,
    .deadline_ns = coffer_now_ns () + SIGNAL_NS
  };

  return client_call (follow->daemon, &request, out, err);
}

/* ---- ending it ---------------------------------------------------------- */

static void
send_signal (struct follow *follow, int number)
{
  auto_json json_t *body = json_pack ("{s:i}", "signal", number);
  auto_json json_t *reply = NULL;
  auto_error struct error *error = NULL;

  if (ask (follow, "POST", client_target (EXEC "/signal", follow->id,
                                          follow->exec), body, &reply, &error)
      < 0)
    log_event (LOG_LEVEL_INFO, "exec", "signal %d: %s", number,
               error_message (error));
}

/* What was caught, then SIGKILL, then letting go. */
static void
end_harder (struct follow *follow)
{
  int number = sandbox_signal_caught ();

  follow->next_stage_ns = coffer_now_ns () + STAGE_NS;
  if (follow->stage == 0)
    send_signal (follow, number ? number : SIGTERM);
  else if (follow->stage == 1)
    send_signal (follow, SIGKILL);
  follow->stage++;
}

static int
interrupted (const struct follow *follow, struct error **err)
{
  if (follow->attached) {
    error_set (err, E_EXEC_CANCELLED, 0,
               "no longer listening to %s; it runs on", follow->exec);
    error_hint (err, "coffer sandbox attach %s %s goes on from its beginning",
                follow->id, follow->exec);
    return -1;
  }
  error_set (err, E_EXEC_CANCELLED, 0, "interrupted; %s was ended",
             follow->exec);
  error_hint (err, "coffer sandbox ps %s lists what runs on", follow->id);
  return -1;
}

/* ---- its output --------------------------------------------------------- */

/* Whether our reader takes more, while nobody gives up. */
static int
wait_sink (const struct follow *follow, int fd, int cancel_fd)
{
  return coffer_wait_fd (fd, POLLOUT, INT64_MAX,
                         follow->cancelled ? -1 : cancel_fd) == 1;
}

/* At most what a pipe takes whole once it says that it takes something. */
static void
write_out (struct follow *follow, int stream, const char *bytes, size_t size,
           int cancel_fd)
{
  const int fd = stream == STDERR_FILENO ? follow->streams->err
                                         : follow->streams->out;
  ssize_t n;

  while (fd >= 0 && size > 0 && !follow->gone[stream]
         && wait_sink (follow, fd, cancel_fd)) {
    n = write (fd, bytes, size < 4096 ? size : 4096);
    if (n >= 0) {
      bytes += n;
      size -= (size_t) n;
    } else if (errno != EINTR && errno != EAGAIN) {
      follow->gone[stream] = errno;
      if (!follow->attached)
        send_signal (follow, SIGPIPE);
    }
  }
}

static int
take_output (struct follow *follow, const struct client_frame *frame,
             int cancel_fd, struct error **err)
{
  auto_free char *bytes = malloc (frame->size ? frame->size : 1);

  if (!bytes)
    return error_set (err, E_NO_MEMORY, 0, "the command's output");
  if (client_read_all (&follow->events, bytes, frame->size, err) < 0)
    return -1;
  if (follow->streams->output)
    follow->streams->output (follow->streams->data, frame->stream, bytes,
                             frame->size);
  else
    write_out (follow, frame->stream, bytes, frame->size, cancel_fd);
  if (frame->stream == STDERR_FILENO)
    follow->result->err_bytes += frame->size;
  else
    follow->result->out_bytes += frame->size;
  return 0;
}

/* ---- its end ------------------------------------------------------------ */

static int
integer_of (const json_t *exit, const char *key)
{
  return (int) json_integer_value (json_object_get (exit, key));
}

static uint64_t
u64_of (const json_t *exit, const char *key)
{
  uint64_t value = 0;

  json_get_u64 (json_object_get (exit, key), &value);
  return value;
}

static int
read_limits (const json_t *exit, struct exec_result *result)
{
  const json_t *list = json_object_get (exit, "limits_hit"), *word;
  size_t i;

  result->limits_hit = calloc (json_array_size (list) + 1,
                               sizeof *result->limits_hit);
  json_array_foreach (list, i, word)
    if (result->limits_hit
        && !(result->limits_hit[i] = strdup (json_is_string (word)
                                               ? json_string_value (word)
                                               : "?")))
      return -1;
  return result->limits_hit ? 0 : -1;
}

/* What exec_result_json has written. */
static int
read_exit (const json_t *exit, struct exec_result *result, struct error **err)
{
  const json_t *facts = json_object_get (exit, "facts");
  const char *failure
    = json_string_value (json_object_get (exit, "failure"));

  if (!json_is_object (exit))
    return error_set (err, E_CONNECT_FAILED, 0,
                      "the daemon does not say how the command ended");
  result->code = integer_of (exit, "code");
  result->signal = integer_of (exit, "signal");
  result->timed_out = json_is_true (json_object_get (exit, "timed_out"));
  result->oom = json_is_true (json_object_get (exit, "oom"));
  result->duration_us = u64_of (exit, "duration_us");
  result->cpu_us = u64_of (exit, "cpu_us");
  result->timeout_ms = u64_of (exit, "timeout_ms");
  result->failure_errno = integer_of (exit, "failure_errno");
  if (json_array_size (facts))
    result->facts = json_incref ((json_t *) (uintptr_t) facts);
  if (read_limits (exit, result) < 0
      || (failure && !(result->failure = strdup (failure))))
    return error_set (err, E_NO_MEMORY, 0, "the command's end");
  return 0;
}

static int
take_end (struct follow *follow, const struct client_frame *frame,
          struct error **err)
{
  auto_free char *text = malloc (frame->size ? frame->size : 1);
  auto_json json_t *end = NULL;
  const json_t *exit;

  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "the command's end");
  if (client_read_all (&follow->events, text, frame->size, err) < 0
      || json_parse (text, frame->size, &end, err) < 0)
    return -1;
  exit = json_object_get (end, "exit");
  follow->over = 1;
  return read_exit (exit ? exit : end, follow->result, err);
}

static int
take_frame (struct follow *follow, int cancel_fd, struct error **err)
{
  struct client_frame frame;

  if (client_frame_next (&follow->events, &frame, err) < 0)
    return -1;
  if (frame.kind == CLIENT_FRAME_OUTPUT)
    return take_output (follow, &frame, cancel_fd, err);
  if (frame.kind == CLIENT_FRAME_EXITED)
    return take_end (follow, &frame, err);
  return client_skip (&follow->events, frame.size, err);
}

/* ---- its input ---------------------------------------------------------- */

static int
begin_input (struct follow *follow, struct error **err)
{
  auto_free char *target = client_target (EXEC "/stdin", follow->id,
                                          follow->exec);
  const struct client_request request = { .method = "POST", .target = target,
                                          .streamed = 1, .cancel_fd = -1 };

  follow->in = follow->streams->in;
  return client_begin (follow->daemon, &request, &follow->input, err);
}

/* The command takes no more, or it is over: that is no fault. */
static void
close_input (struct follow *follow)
{
  auto_json json_t *reply = NULL;
  auto_error struct error *error = NULL;

  if (client_answered (&follow->input, &error) == 0 && follow->ended == 1)
    ask (follow, "POST", client_target (EXEC "/stdin/close", follow->id,
                                        follow->exec), NULL, &reply, &error);
  follow->ended = 2;
  follow->in = -1;
}

static int
take_input (struct follow *follow, struct error **err)
{
  coffer_unfilled char bytes[INPUT_BYTES];
  ssize_t n = read (follow->in, bytes, sizeof bytes);

  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return 0;
  if (n <= 0) {
    n = 0;
    follow->in = -1;
    follow->ended = 1;
  }
  follow->waiting = client_send (&follow->input, bytes, (size_t) n, err);
  return follow->waiting < 0 ? -1 : 0;
}

/* ---- all of it ---------------------------------------------------------- */

enum { WATCH_EVENTS, WATCH_IN, WATCH_INPUT, WATCH_CANCEL, WATCH_COUNT };

static void
poll_prepare (const struct follow *follow, int cancel_fd, struct pollfd *fds)
{
  const int feeds = follow->input.fd >= 0 && follow->ended < 2;

  fds[WATCH_EVENTS] = (struct pollfd){ .fd = follow->events.fd,
                                       .events = POLLIN };
  fds[WATCH_IN] = (struct pollfd){ .fd = follow->waiting ? -1 : follow->in,
                                   .events = POLLIN };
  fds[WATCH_INPUT] = (struct pollfd){
    .fd = feeds ? follow->input.fd : -1,
    .events = (short) (POLLIN | (follow->waiting ? POLLOUT : 0))
  };
  fds[WATCH_CANCEL] = (struct pollfd){ .fd = follow->cancelled ? -1
                                                               : cancel_fd,
                                       .events = POLLIN };
}

static int
poll_timeout (const struct follow *follow)
{
  if (client_ready (&follow->events))
    return 0;
  return follow->cancelled ? coffer_poll_ms (follow->next_stage_ns) : -1;
}

static int
handle (struct follow *follow, const struct pollfd *fds, int cancel_fd,
        struct error **err)
{
  if (fds[WATCH_EVENTS].revents && client_fetch (&follow->events, err) < 0)
    return -1;
  if (client_ready (&follow->events)
      && take_frame (follow, cancel_fd, err) < 0)
    return -1;
  if (fds[WATCH_INPUT].revents & (POLLIN | POLLHUP | POLLERR))
    close_input (follow);
  else if (fds[WATCH_INPUT].revents)
    follow->waiting = client_push (&follow->input, 0, err);
  if (follow->waiting < 0
      || (follow->in >= 0 && fds[WATCH_IN].revents
          && take_input (follow, err) < 0))
    return -1;
  if (fds[WATCH_CANCEL].revents) {
    follow->cancelled = 1;
    if (!follow->attached)
      end_harder (follow);
  }
  return 0;
}

static int
check_output (const struct follow *follow, struct error **err)
{
  static const char *const names[] = { "", "output", "error output" };
  int i;

  for (i = STDOUT_FILENO; i <= STDERR_FILENO; i++)
    if (follow->gone[i] && follow->gone[i] != EPIPE)
      return error_set (err, E_IO, follow->gone[i],
                        "the command's %s could not be written", names[i]);
  return 0;
}

static int
follow_events (struct follow *follow, int cancel_fd, struct error **err)
{
  auto_free char *target = client_target (EXEC "/events?from=1", follow->id,
                                          follow->exec);
  const struct client_request request = { .method = "GET", .target = target,
                                          .accept = CLIENT_FRAME_TYPE,
                                          .cancel_fd = -1 };
  struct pollfd fds[WATCH_COUNT];

  if (client_begin (follow->daemon, &request, &follow->events, err) < 0)
    return -1;
  while (!follow->over) {
    poll_prepare (follow, cancel_fd, fds);
    if (poll (fds, WATCH_COUNT, poll_timeout (follow)) < 0) {
      if (errno != EINTR)
        return error_set (err, E_IO, errno, "poll");
      continue;
    }
    if (handle (follow, fds, cancel_fd, err) < 0)
      return -1;
    if (follow->cancelled && (follow->attached || follow->stage > 2))
      break;
    if (follow->cancelled && coffer_now_ns () >= follow->next_stage_ns)
      end_harder (follow);
  }
  return follow->cancelled ? interrupted (follow, err)
                           : check_output (follow, err);
}

static void
follow_fini (struct follow *follow)
{
  client_reply_fini (&follow->events);
  client_reply_fini (&follow->input);
}
#define auto_follow __attribute__ ((cleanup (follow_fini)))

/* ---- starting it -------------------------------------------------------- */

static json_t *
exec_body (const struct exec_request *request,
           const struct exec_streams *streams)
{
  json_t *body = json_object ();

  json_put_texts (body, "argv", request->argv);
  json_put_texts (body, "env", request->env);
  json_put_text (body, "workdir", request->cwd);
  json_put_text (body, "user", request->user);
  json_put_u64 (body, "timeout_ms", request->timeout_ms);
  if (request->background)
    json_object_set_new (body, "background", json_true ());
  else
    json_object_set_new (body, "attended", json_true ());
  if (!request->background && streams->in >= 0)
    json_object_set_new (body, "stdin", json_true ());
  return body;
}

static int
exec_asked (struct cli *cli, struct client *daemon, const char *id,
            const struct exec_request *request,
            const struct exec_streams *streams, int cancel_fd,
            struct exec_result *result, struct error **err)
{
  auto_json json_t *body = exec_body (request, streams), *reply = NULL;
  auto_follow struct follow follow = {
    .daemon = daemon, .id = id, .streams = streams, .result = result,
    .events = { .fd = -1 }, .input = { .fd = -1 }, .in = -1
  };
  const json_t *exit;

  if (sandbox_exec_check (request, err) < 0
      || work_ask (cli, "POST", client_target (SANDBOX "/execs", id), body,
                   &reply, err) < 0)
    return -1;
  if (!json_is_string (json_object_get (reply, "exec")))
    return error_set (err, E_CONNECT_FAILED, 0,
                      "the daemon's reply names no command");
  result->exec = strdup (json_string_value (json_object_get (reply, "exec")));
  if (!(follow.exec = result->exec))
    return error_set (err, E_NO_MEMORY, 0, "a command");
  exit = json_object_get (reply, "exit");
  if (request->background)
    return json_is_object (exit) ? read_exit (exit, result, err) : 0;
  if (streams->in >= 0 && begin_input (&follow, err) < 0)
    return -1;
  return follow_events (&follow, cancel_fd, err);
}

int
work_exec (struct cli *cli, const char *id,
           const struct exec_request *request,
           const struct exec_streams *streams, int cancel_fd,
           struct exec_result *result, struct error **err)
{
  struct client *daemon = NULL;
  struct host *host;

  memset (result, 0, sizeof *result);
  result->code = -1;
  if ((cli->host || !streams->tty) && work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (daemon && streams->tty)
    return error_set (err, E_INVALID, 0, "a daemon gives no terminal to a "
                      "command; -i gives its standard input");
  if (daemon)
    return exec_asked (cli, daemon, id, request, streams, cancel_fd, result,
                       err);
  return cli_host (cli, 0, &host, err) < 0
           ? -1 : sandbox_exec (host, id, request, streams, cancel_fd, result,
                                err);
}

int
work_attach (struct cli *cli, const char *id, const char *exec,
             const struct exec_streams *streams, int cancel_fd,
             struct exec_result *result, struct error **err)
{
  auto_follow struct follow follow = {
    .id = id, .exec = exec, .streams = streams, .result = result,
    .events = { .fd = -1 }, .input = { .fd = -1 }, .in = -1, .attached = 1
  };
  struct error *error = NULL;
  struct host *host;

  memset (result, 0, sizeof *result);
  result->code = -1;
  if (work_daemon (cli, &follow.daemon, err) < 0)
    return -1;
  if (follow.daemon) {
    result->exec = strdup (exec);
    if (follow_events (&follow, cancel_fd, &error) == 0)
      return 0;
    /* One that was started without a daemon is nothing that it kept. */
    if (cli->host || error->number != E_EXEC_UNKNOWN)
      return error_move (err, error);
    error_free (error);
    exec_result_fini (result);
  }
  return cli_host (cli, 0, &host, err) < 0
           ? -1 : sandbox_attach (host, id, exec, streams, cancel_fd, result,
                                  err);
}
