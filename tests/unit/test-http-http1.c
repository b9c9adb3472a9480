/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/http/http1.c: what is understood of a reply, and what is not. */

#define _GNU_SOURCE

#include "harness.h"

#include <string.h>

#include <coffer/http1.h>

#define OK "HTTP/1.1 200 OK\r\n"

static int
parse (const char *text, int no_body, struct coffer_http1_head *head)
{
  const ssize_t n = coffer_http1_head_length (text, strlen (text));

  return n > 0
         && !coffer_http1_head_parse (text, (size_t) n, no_body, head);
}

static void
framing_is (const char *text, int no_body, enum coffer_http1_framing framing)
{
  struct coffer_http1_head head;

  assert_true (parse (text, no_body, &head));
  assert_int_equal (head.framing, framing);
  coffer_http1_head_fini (&head);
}

static void
where_a_body_ends_is_known (void **state)
{
  (void) state;
  framing_is (OK "Content-Length: 3\r\n\r\n", 0, COFFER_HTTP1_SIZED);
  framing_is (OK "transfer-encoding: Chunked\r\n\r\n", 0, COFFER_HTTP1_CHUNKED);
  framing_is (OK "\r\n", 0, COFFER_HTTP1_TO_END);
  framing_is ("HTTP/1.0 200\n\n", 0, COFFER_HTTP1_TO_END);
  framing_is (OK "Content-Length: 3\r\n\r\n", 1, COFFER_HTTP1_NONE);
  framing_is ("HTTP/1.1 304 N\r\nContent-Length: 3\r\n\r\n", 0,
              COFFER_HTTP1_NONE);
  framing_is ("HTTP/1.1 204 N\r\nTransfer-Encoding: chunked\r\n\r\n", 0,
              COFFER_HTTP1_NONE);
}

static void
what_leaves_a_doubt_is_refused (void **state)
{
  static const char *const texts[] = {
    OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
    OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    OK "Content-Length: 0x1\r\n\r\n", OK "Content-Length: \r\n\r\n",
    OK "Content-Length: 99999999999999999999\r\n\r\n",
    OK "Transfer-Encoding: chunked, chunked\r\n\r\n",
    OK "Transfer-Encoding: identity\r\n\r\n", OK "A : b\r\n\r\n",
    OK " A: b\r\n\r\n", OK "A: b\r\n c\r\n\r\n", OK ": b\r\n\r\n",
    OK "A: b\rc\r\n\r\n", OK "A: \x01\r\n\r\n", OK "A\r\n\r\n",
    "HTTP/1.2 200 OK\r\n\r\n", "HTTP/1.1 99 OK\r\n\r\n",
    "HTTP/1.1 600 OK\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "ICY 200 OK\r\n\r\n",
    "\r\n\r\n"
  };
  struct coffer_http1_head head;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (parse (texts[i], 0, &head))
      fail_msg ("taken: %s", texts[i]);
}

static void
a_head_without_end_is_not_waited_for (void **state)
{
  char *text = malloc (COFFER_HTTP1_HEAD_MAX + 1);

  (void) state;
  assert_non_null (text);
  memset (text, 'x', COFFER_HTTP1_HEAD_MAX + 1);
  assert_int_equal (coffer_http1_head_length (text, COFFER_HTTP1_HEAD_MAX - 1),
                    0);
  assert_int_equal (coffer_http1_head_length (text, COFFER_HTTP1_HEAD_MAX), -1);
  assert_int_equal (coffer_http1_head_length (text, COFFER_HTTP1_HEAD_MAX + 1),
                    -1);
  free (text);
}

static void
a_header_that_is_there_twice_is_nobodys (void **state)
{
  struct coffer_http1_head head;

  (void) state;
  assert_true (parse (OK "A: 1\r\nB:  2 \r\na: 3\r\n\r\n", 0, &head));
  assert_null (coffer_http1_header (&head, "A"));
  assert_string_equal (coffer_http1_header (&head, "b"), "2");
  assert_null (coffer_http1_header (&head, "C"));
  coffer_http1_head_fini (&head);
  assert_true (coffer_http1_list_has ("keep-alive,  Upgrade ,x", "upgrade"));
  assert_false (coffer_http1_list_has ("upgraded, up", "upgrade"));
  assert_false (coffer_http1_list_has (NULL, "upgrade"));
}

/* The body that is read of `text` byte by byte: 1 when that was all. */
static int
read_bytes (const char *head_text, const char *text, char *out, int *over)
{
  struct coffer_http1_head head;
  struct coffer_http1_body body;
  const char *data;
  size_t used, n;

  assert_true (parse (head_text, 0, &head));
  coffer_http1_body_init (&body, &head);
  coffer_http1_head_fini (&head);
  for (; *text && !coffer_http1_body_over (&body); text++) {
    if (coffer_http1_body_read (&body, text, 1, &used, &data, &n) < 0)
      return 0;
    assert_int_equal (used, 1);
    memcpy (out, data, n);
    out += n;
  }
  *out = '\0';
  *over = coffer_http1_body_over (&body);
  return 1;
}

static void
chunks_are_put_together (void **state)
{
  static const char head[] = OK "Transfer-Encoding: chunked\r\n\r\n";
  char out[64];
  int over;

  (void) state;
  assert_true (read_bytes (head, "5;a=b\r\nhello\r\n01 \r\n!\r\n0\r\nX: y\r\n\r\n"
                           "more", out, &over));
  assert_string_equal (out, "hello!");
  assert_true (over);
  assert_true (read_bytes (head, "5\r\nhello\r\n0\r\n", out, &over));
  assert_false (over);
  assert_false (read_bytes (head, "5\r\nhello!", out, &over));
  assert_false (read_bytes (head, "\r\n", out, &over));
  assert_false (read_bytes (head, "5\nhello", out, &over));
  assert_false (read_bytes (head, "-5\r\n", out, &over));
  assert_false (read_bytes (head, "1000000000000000\r\n", out, &over));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (where_a_body_ends_is_known),
    cmocka_unit_test (what_leaves_a_doubt_is_refused),
    cmocka_unit_test (a_head_without_end_is_not_waited_for),
    cmocka_unit_test (a_header_that_is_there_twice_is_nobodys),
    cmocka_unit_test (chunks_are_put_together),
  };

  return cmocka_run_group_tests_name ("http1", tests, NULL, NULL);
}
