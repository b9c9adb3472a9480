/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/http's readers of lines, events and frames: what comes out does not
 * depend on how the bytes came in, and no peer costs more than the limits. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>

#include <coffer/frames.h>

/* What a reader made of `size` bytes that came `step` at a time, as text. */
typedef void reads (const char *in, size_t size, size_t step, size_t most,
                    struct coffer_buffer *out);

static void
read_lines (const char *in, size_t size, size_t step, size_t most,
            struct coffer_buffer *out)
{
  struct coffer_lines lines = { .most = most };
  size_t at = 0, used, part, n;
  const char *line;
  int r = 0;

  while (at < size && r >= 0) {
    part = size - at < step ? size - at : step;
    r = coffer_lines_read (&lines, in + at, part, &used, &line, &n);
    at += used;
    if (r == 1)
      coffer_buffer_printf (out, "<%.*s>", (int) n, line);
    else if (r == 0)
      assert_int_equal (used, part);
  }
  if (r < 0)
    coffer_buffer_printf (out, "%s", errno == EMSGSIZE ? "long" : "?");
  if (coffer_lines_end (&lines, &line, &n))
    coffer_buffer_printf (out, "(%.*s)", (int) n, line);
  coffer_lines_fini (&lines);
}

static void
read_events (const char *in, size_t size, size_t step, size_t most,
             struct coffer_buffer *out)
{
  struct coffer_sse sse = { .most = most };
  struct coffer_sse_event event;
  size_t at = 0, used, part;
  int r = 0;

  while (at < size && r >= 0) {
    part = size - at < step ? size - at : step;
    r = coffer_sse_read (&sse, in + at, part, &used, &event);
    at += used;
    if (r == 1) {
      assert_int_equal (strlen (event.data), event.size);
      coffer_buffer_printf (out, "%s#%s=%s;", event.name, event.id,
                            event.data);
    }
  }
  if (r < 0)
    coffer_buffer_printf (out, "%s", errno == EMSGSIZE ? "long" : "?");
  if (sse.retry_ms > 0)
    coffer_buffer_printf (out, "retry %lld", (long long) sse.retry_ms);
  coffer_sse_fini (&sse);
}

static struct coffer_frame_format frames_format;

static void
read_frames (const char *in, size_t size, size_t step, size_t most,
             struct coffer_buffer *out)
{
  struct coffer_frames frames = { .format = frames_format };
  struct coffer_frame_part got;
  size_t at = 0, used, part;
  int r = 0;

  frames.format.most = most;
  while (at < size && r >= 0) {
    part = size - at < step ? size - at : step;
    r = coffer_frames_read (&frames, in + at, part, &used, &got);
    at += used;
    if (r != 1)
      continue;
    if (got.begins)
      coffer_buffer_printf (out, "%d/%d:", got.head[0], (int) got.size);
    coffer_buffer_add (out, got.bytes, got.n);
    if (got.ends)
      coffer_buffer_add_string (out, ";");
  }
  if (r < 0)
    coffer_buffer_printf (out, "%s", errno == EMSGSIZE ? "long" : "bad");
  else if (coffer_frames_cut (&frames))
    coffer_buffer_add_string (out, "cut");
}

static void
becomes (reads *read, const char *in, size_t size, size_t most,
         const char *want)
{
  for (size_t step = 1; step <= size; step++) {
    coffer_autobuffer struct coffer_buffer out = { 0 };

    read (in, size, step, most, &out);
    assert_string_equal (out.data ? out.data : "", want);
  }
}

#define BECOMES(read, in, most, want)                                         \
  becomes (read, in, sizeof (in) - 1, most, want)

static void
lines_end_with_lf_or_cr_lf (void **state)
{
  (void) state;
  BECOMES (read_lines, "{\"a\":1}\n\r\n" VECTOR_BODY "x\ry\r\n\nlast", 0,
           "<{\"a\":1}><><café><☃><x\ry><>(last)");
}

static void
lines_are_no_longer_than_the_limit (void **state)
{
  (void) state;
  BECOMES (read_lines, "12345678\n1234567\r\n", 8, "<12345678><1234567>");
  BECOMES (read_lines, "ok\n123456789\nnever\n", 8, "<ok>long");
  BECOMES (read_lines, "ok\n123456789", 8, "<ok>long");
}

static void
a_reader_that_failed_stays_failed (void **state)
{
  struct coffer_lines lines = { .most = 2 };
  const char *line;
  size_t used, n;

  (void) state;
  assert_int_equal (coffer_lines_read (&lines, "long", 4, &used, &line, &n),
                    -1);
  errno = 0;
  assert_int_equal (coffer_lines_read (&lines, "x\n", 2, &used, &line, &n),
                    -1);
  assert_int_equal (errno, EMSGSIZE);
  assert_int_equal (coffer_lines_end (&lines, &line, &n), 0);
  coffer_lines_fini (&lines);
}

static void
events_are_read_as_the_standard_says (void **state)
{
  (void) state;
  BECOMES (read_events, "\xef\xbb\xbf" "data: one\ndata:two\ndata\n\n"
           ": a comment\nevent: add\nid: 7\ndata: x\r\n\r\n"
           "event: none\n\ndata: y\r\rdata: not whole\n",
           0, "message#=one\ntwo\n;add#7=x;message#7=y;");
  BECOMES (read_events, "data:  " VECTOR_NAME "\nid\n\nunknown: z\ndata:\n\n",
           0, "message#= " VECTOR_NAME ";message#=;");
  BECOMES (read_events, "retry: 1500\nretry: 2s\nretry\n\n", 0, "retry 1500");
  BECOMES (read_events, "retry: 99999999999999999999\n", 0,
           "retry 86400000");
}

/* Who waits for the byte behind a CR would hold an event back. */
static void
an_event_is_over_at_the_cr (void **state)
{
  struct coffer_sse sse = { 0 };
  struct coffer_sse_event event;
  size_t used;

  (void) state;
  assert_int_equal (coffer_sse_read (&sse, "data: x\r\n\r", 10, &used, &event),
                    1);
  assert_string_equal (event.data, "x");
  assert_int_equal (coffer_sse_read (&sse, "\ndata: y\n\n", 10, &used,
                                     &event), 1);
  assert_string_equal (event.data, "y");
  coffer_sse_fini (&sse);
}

static void
events_are_no_larger_than_the_limit (void **state)
{
  (void) state;
  BECOMES (read_events, "data: a\n\ndata: 12345\ndata: 12345\n\n", 16,
           "message#=a;long");
  BECOMES (read_events, "data: a\n\n:2345678901234567", 16,
           "message#=a;long");
}

static void
frames_carry_their_length (void **state)
{
  (void) state;
  frames_format = coffer_frames_engine;
  BECOMES (read_frames, "\1\0\0\0\0\0\0\3abc\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\1z",
           0, "1/3:abc;2/0:;1/1:z;");
  BECOMES (read_frames, "\1\0\0\0\0\0\0\3ab", 0, "1/3:abcut");
  BECOMES (read_frames, "\1\0\0\0\0\0\0", 0, "cut");
  BECOMES (read_frames, "\1\0\0\0\0\0\0\3abc\1\0\0\0\xff\xff\xff\xff", 16,
           "1/3:abc;long");
  frames_format = coffer_frames_connect;
  BECOMES (read_frames, "\0\0\0\0\2{}\2\0\0\0\2[]", 0, "0/2:{};2/2:[];");
  frames_format = (struct coffer_frame_format) { 4, 0, 2, 1, 0 };
  BECOMES (read_frames, "\2\0\0\0xy\1\0\0\0z", 0, "2/2:xy;1/1:z;");
}

/* 64 bits of length: nothing wraps and nothing is kept. */
static void
a_frame_may_be_larger_than_memory (void **state)
{
  struct coffer_frames frames = { .format = { 8, 0, 8, 0, 0 } };
  struct coffer_frame_part part;
  char bytes[] = "\xff\xff\xff\xff\xff\xff\xff\xff rest";
  size_t used;

  (void) state;
  assert_int_equal (coffer_frames_read (&frames, bytes, 13, &used, &part), 1);
  assert_int_equal (used, 13);
  assert_true (part.size == UINT64_MAX && part.n == 5 && !part.ends);
  assert_true (coffer_frames_cut (&frames));
}

static void
a_format_that_is_none_is_refused (void **state)
{
  static const struct coffer_frame_format wrong[] = {
    { 0, 0, 1, 0, 0 }, { 33, 0, 1, 0, 0 }, { 4, 1, 4, 0, 0 },
    { 8, 255, 2, 0, 0 }, { 8, 0, 3, 0, 0 }, { 8, 0, 0, 0, 0 },
  };
  struct coffer_frame_part part;
  uint8_t head[32];
  size_t used;

  (void) state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    struct coffer_frames frames = { .format = wrong[i] };

    assert_int_equal (coffer_frames_read (&frames, "x", 1, &used, &part), -1);
    assert_int_equal (errno, EINVAL);
    assert_int_equal (coffer_frame_head (&wrong[i], 0, head), -1);
    assert_int_equal (errno, EINVAL);
  }
}

static void
heads_are_written_as_they_are_read (void **state)
{
  const struct coffer_frame_format small = { 3, 1, 2, 1, 0 };
  uint8_t head[8];

  (void) state;
  assert_int_equal (coffer_frame_head (&coffer_frames_engine, 0x01020304,
                                       head), 0);
  assert_memory_equal (head, "\0\0\0\0\1\2\3\4", 8);
  assert_int_equal (coffer_frame_head (&small, 0x0102, head), 0);
  assert_memory_equal (head, "\0\2\1", 3);
  assert_int_equal (coffer_frame_head (&small, 65536, head), -1);
  assert_int_equal (errno, EMSGSIZE);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (lines_end_with_lf_or_cr_lf),
    cmocka_unit_test (lines_are_no_longer_than_the_limit),
    cmocka_unit_test (a_reader_that_failed_stays_failed),
    cmocka_unit_test (events_are_read_as_the_standard_says),
    cmocka_unit_test (an_event_is_over_at_the_cr),
    cmocka_unit_test (events_are_no_larger_than_the_limit),
    cmocka_unit_test (frames_carry_their_length),
    cmocka_unit_test (a_frame_may_be_larger_than_memory),
    cmocka_unit_test (a_format_that_is_none_is_refused),
    cmocka_unit_test (heads_are_written_as_they_are_read),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
