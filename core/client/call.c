/* SPDX-License-Identifier: Apache-2.0 */
/* Requests. */

#include <config.h>

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "client/private.h"

/* ---- targets ------------------------------------------------------------ */

static void
add_escaped (struct coffer_buffer *out, const char *text, int is_path)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

  for (; *text; text++)
    if (strchr (plain, *text) || (is_path && *text == '/'))
      coffer_buffer_add (out, text, 1);
    else
      coffer_buffer_printf (out, "%%%02X", (unsigned char) *text);
}

char *
client_target (const char *fmt, ...)
{
  struct coffer_buffer out = { 0 };
  const char *percent;
  va_list words;

  va_start (words, fmt);
  for (; (percent = strchr (fmt, '%')); fmt = percent + 2) {
    coffer_buffer_add (&out, fmt, (size_t) (percent - fmt));
    add_escaped (&out, va_arg (words, const char *), percent[1] == 'p');
  }
  va_end (words);
  coffer_buffer_add_string (&out, fmt);
  return coffer_buffer_steal (&out);
}

/* ---- sending ------------------------------------------------------------ */

/* The daemon may answer, and close, before it has read all. */
int
client_push (struct client_reply *reply, int wait, struct error **err)
{
  struct coffer_buffer *queue = &reply->queue;
  ssize_t n;

  if (queue->failed)
    return error_set (err, E_NO_MEMORY, 0, "asking the daemon");
  while (reply->sent < queue->size) {
    n = send (reply->fd, queue->data + reply->sent, queue->size - reply->sent,
              MSG_NOSIGNAL);
    if (n >= 0) {
      reply->sent += (size_t) n;
    } else if (errno == EAGAIN && !wait) {
      return 1;
    } else if (errno == EAGAIN) {
      if (answer_wait (reply, POLLOUT, err) < 0)
        return -1;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      break;
    } else if (errno != EINTR) {
      return error_set (err, E_CONNECT_FAILED, errno, "asking the daemon");
    }
  }
  coffer_buffer_clear (queue);
  reply->sent = 0;
  return 0;
}

int
client_send (struct client_reply *reply, const void *bytes, size_t size,
             struct error **err)
{
  coffer_buffer_printf (&reply->queue, "%zx\r\n", size);
  coffer_buffer_add (&reply->queue, bytes, size);
  coffer_buffer_add_string (&reply->queue, "\r\n");
  return client_push (reply, 0, err);
}

static int
send_request (struct client_reply *reply,
              const struct client_request *request, struct error **err)
{
  struct coffer_buffer *text = &reply->queue;
  auto_free char *body = request->body ? json_text (request->body) : NULL;

  coffer_buffer_printf (text, "%s %s HTTP/1.1\r\nHost: localhost\r\n"
                        "Connection: close\r\nAccept: %s\r\n",
                        request->method, request->target,
                        request->accept ? request->accept
                                        : "application/json");
  if (body)
    coffer_buffer_printf (text, "Content-Type: application/json\r\n"
                          "Content-Length: %zu\r\n\r\n%s", strlen (body),
                          body);
  else if (request->streamed)
    coffer_buffer_add_string (text, "Content-Type: application/octet-stream"
                              "\r\nTransfer-Encoding: chunked\r\n\r\n");
  else if (strcmp (request->method, "GET") != 0)
    coffer_buffer_add_string (text, "Content-Length: 0\r\n\r\n");
  else
    coffer_buffer_add_string (text, "\r\n");
  if (request->body && !body)
    return error_set (err, E_NO_MEMORY, 0, "asking the daemon");
  return client_push (reply, 1, err);
}

/* ---- a whole exchange --------------------------------------------------- */

int
client_answered (struct client_reply *reply, struct error **err)
{
  if (answer_head (reply, err) < 0)
    return -1;
  return reply->status >= 300 ? answer_error (reply, err) : 0;
}

int
client_begin (struct client *client, const struct client_request *request,
              struct client_reply *reply, struct error **err)
{
  memset (reply, 0, sizeof *reply);
  reply->fd = -1;
  reply->deadline_ns = request->deadline_ns;
  reply->cancel_fd = request->cancel_fd;
  reply->buffer = malloc (CLIENT_BUFFER);
  if (!reply->buffer || !request->target)
    return error_set (err, E_NO_MEMORY, 0, "asking the daemon");
  if (client_connect (client, &reply->fd, err) < 0
      || send_request (reply, request, err) < 0)
    return -1;
  return request->streamed ? 0 : client_answered (reply, err);
}

int
client_call (struct client *client, const struct client_request *request,
             json_t **out, struct error **err)
{
  auto_client_reply struct client_reply reply = { .fd = -1 };

  if (client_begin (client, request, &reply, err) < 0)
    return -1;
  return client_json (&reply, out, err);
}
