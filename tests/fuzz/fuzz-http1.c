/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of a hostile server, as the proxy of ports reads them.  The first
 * byte says whether the request was a HEAD, the second in which steps the body
 * comes: how it is cut must change nothing of what is understood. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <coffer/buffer.h>

#include <coffer/http1.h>

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

/* What is understood of a body that comes `step` bytes at a time: its bytes,
 * behind them how it ended. */
static void
read_body (const struct coffer_http1_head *head, const char *bytes, size_t size,
           size_t step, struct coffer_buffer *out)
{
  struct coffer_http1_body body;
  const char *data;
  size_t at = 0, used, n, part;

  coffer_http1_body_init (&body, head);
  while (at < size && !coffer_http1_body_over (&body)) {
    part = size - at < step ? size - at : step;
    if (coffer_http1_body_read (&body, bytes + at, part, &used, &data, &n)
        < 0) {
      coffer_buffer_add_string (out, "broken");
      return;
    }
    must (used > 0 && used <= part && n <= used);
    must (data >= bytes + at && data + n <= bytes + at + part);
    coffer_buffer_add (out, data, n);
    at += used;
  }
  must (head->framing != COFFER_HTTP1_SIZED || out->size <= head->size);
  coffer_buffer_add_string (out, coffer_http1_body_over (&body) ? "over"
                                                                : "more");
  coffer_buffer_add_string (out, coffer_http1_body_may_end (&body) ? "!" : "?");
}

static void
look (const struct coffer_http1_head *head)
{
  size_t i, lengths = 0;

  must (head->status >= 100 && head->status <= 599);
  must (head->count <= COFFER_HTTP1_HEADERS_MAX);
  for (i = 0; i < head->count; i++) {
    must (coffer_http1_is_token (head->headers[i].name));
    must (!strpbrk (head->headers[i].value, "\r\n"));
    lengths += strcasecmp (head->headers[i].name, "Content-Length") == 0
               || strcasecmp (head->headers[i].name, "Transfer-Encoding") == 0;
    coffer_http1_list_has (head->headers[i].value, "close");
  }
  must (lengths <= 1);
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  coffer_autobuffer struct coffer_buffer whole = { 0 }, parts = { 0 };
  struct coffer_http1_head head;
  const char *text;
  ssize_t n;

  if (size < 2)
    return 0;
  text = (const char *) bytes + 2;
  size -= 2;
  n = coffer_http1_head_length (text, size);
  must (n <= (ssize_t) size);
  if (n <= 0
      || coffer_http1_head_parse (text, (size_t) n, bytes[0] & 1, &head))
    return 0;
  look (&head);
  read_body (&head, text + n, size - (size_t) n, SIZE_MAX, &whole);
  read_body (&head, text + n, size - (size_t) n, 1 + bytes[1] % 16, &parts);
  must (whole.size == parts.size
        && memcmp (whole.data, parts.data, whole.size) == 0);
  coffer_http1_head_fini (&head);
  return 0;
}
