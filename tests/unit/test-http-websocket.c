/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/http's WebSocket: the frames of RFC 6455 and of peers that break it. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#include <coffer/fd.h>
#include <coffer/websocket.h>

#define COUNT(array) (sizeof (array) / sizeof (array)[0])

/* What is made of bytes that come `step` at a time, as text. */
static void
read_all (struct coffer_websocket *websocket, const char *in, size_t size,
          size_t step, struct coffer_buffer *out)
{
  struct coffer_websocket_event event;
  size_t at = 0, used, part;
  int r = 0;

  while (at < size && r >= 0) {
    part = size - at < step ? size - at : step;
    r = coffer_websocket_read (websocket, in + at, part, &used, &event);
    at += used;
    if (r == 1) {
      assert_int_equal (event.bytes[event.size], '\0');
      coffer_buffer_printf (out, "%d", (int) event.kind);
      if (event.kind == COFFER_WEBSOCKET_CLOSE)
        coffer_buffer_printf (out, "/%u", event.code);
      coffer_buffer_printf (out, ":%s;", event.bytes);
    } else if (r == 0) {
      assert_int_equal (used, part);
    }
  }
  if (r < 0)
    coffer_buffer_printf (out, "!%u", event.code);
}

static void
becomes (int is_server, size_t most, const char *in, size_t size,
         const char *want)
{
  for (size_t step = 1; step <= size; step++) {
    struct coffer_websocket websocket = { .is_server = is_server,
                                          .most = most };
    coffer_autobuffer struct coffer_buffer out = { 0 };

    read_all (&websocket, in, size, step, &out);
    assert_string_equal (out.data ? out.data : "", want);
    coffer_websocket_fini (&websocket);
  }
}

#define CLIENT_GETS(in, want) becomes (0, 64, in, sizeof (in) - 1, want)
#define SERVER_GETS(in, want) becomes (1, 64, in, sizeof (in) - 1, want)

/* The examples of RFC 6455, section 5.7. */
static void
frames_of_the_standard_are_read (void **state)
{
  (void) state;
  CLIENT_GETS ("\x81\x05Hello", "1:Hello;");
  SERVER_GETS ("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "1:Hello;");
  CLIENT_GETS ("\x01\x03Hel\x80\x02lo", "1:Hello;");
  CLIENT_GETS ("\x89\x05Hello\x8a\0", "9:Hello;10:;");
  CLIENT_GETS ("\x82\x00\x81\x00", "2:;1:;");
}

static void
control_frames_come_between_fragments (void **state)
{
  (void) state;
  CLIENT_GETS ("\x02\x01" "a\x89\x01p\x00\x01" "b\x8a\x00\x80\x01" "c\x81\x01x",
               "9:p;10:;2:abc;1:x;");
}

static void
a_close_is_the_last_that_comes (void **state)
{
  (void) state;
  CLIENT_GETS ("\x88\x02\x03\xe8\x81\x01x", "8/1000:;");
  CLIENT_GETS ("\x88\x06\x0f\xa0" "bye!\x81", "8/4000:bye!;");
  CLIENT_GETS ("\x88\x00", "8/1005:;");
}

static void
what_breaks_the_rules_is_refused (void **state)
{
  static const char *const broken[] = {
    "\xc1\x00", "\x91\x00", "\xa1\x00",         /* reserved bits */
    "\x83\x00", "\x87\x00", "\x8b\x00", "\x8f\x00",     /* kinds */
    "\x80\x01", "\x00\x01",     /* goes on with nothing */
    "\x09\x01", "\x08\x01",     /* a control frame in fragments */
    "\x89\x7e", "\x89\x7f",     /* a large one */
    "\x81\x85", "\x88\x82",     /* a server that masks */
  };

  (void) state;
  for (size_t i = 0; i < COUNT (broken); i++)
    becomes (0, 0, broken[i], 2, "!1002");
  becomes (1, 0, "\x81\x05", 2, "!1002");       /* a client that does not */
  CLIENT_GETS ("\x01\x01" "a\x81\x01", "!1002");        /* two messages */
  CLIENT_GETS ("\x81\x7e\x00\x7d", "!1002");    /* lengths too wide */
  CLIENT_GETS ("\x81\x7f\0\0\0\0\0\0\xff\xff", "!1002");
  CLIENT_GETS ("\x88\x01\x03", "!1002");
  CLIENT_GETS ("\x88\x02\x03\xe7", "!1002");    /* 999 */
  CLIENT_GETS ("\x88\x02\x03\xed", "!1002");    /* 1005 */
  CLIENT_GETS ("\x88\x02\x0b\xb7", "!1002");    /* 2999 */
  CLIENT_GETS ("\x88\x02\x13\x88", "!1002");    /* 5000 */
}

static void
text_is_utf8 (void **state)
{
  (void) state;
  CLIENT_GETS ("\x81\x02\xc3\xa9", "1:é;");
  CLIENT_GETS ("\x01\x01\xc3\x80\x01\xa9", "1:é;");     /* across fragments */
  CLIENT_GETS ("\x81\x02\xc0\x80", "!1007");
  CLIENT_GETS ("\x81\x03\xed\xa0\x80", "!1007");
  CLIENT_GETS ("\x81\x01\xc3", "!1007");
  CLIENT_GETS ("\x82\x01\xc3", "2:\xc3;");
  CLIENT_GETS ("\x88\x03\x03\xe8\xff", "!1007");
}

/* A length is judged before what it promises has come. */
static void
a_message_is_no_larger_than_the_limit (void **state)
{
  (void) state;
  becomes (0, 4, "\x82\x04" "1234\x82\x05", 8, "2:1234;!1009");
  becomes (0, 4, "\x02\x03" "123\x00\x01" "4\x80\x01", 10, "!1009");
  becomes (0, 4, "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, "!1009");
  becomes (0, 4, "\x02\x04" "1234\x89\x05" "hello\x80\x00", 15,
           "9:hello;2:1234;");
}

static void
a_reader_that_failed_stays_failed (void **state)
{
  struct coffer_websocket websocket = { 0 };
  struct coffer_websocket_event event;
  size_t used;

  (void) state;
  for (int i = 0; i < 2; i++) {
    errno = 0;
    assert_int_equal (coffer_websocket_read (&websocket, "\xff\xff", 2, &used,
                                             &event), -1);
    assert_int_equal (errno, EPROTO);
    assert_int_equal (event.code, COFFER_WEBSOCKET_BAD_PROTOCOL);
  }
  coffer_websocket_fini (&websocket);
}

static void
what_one_end_writes_the_other_reads (void **state)
{
  static const size_t sizes[] = { 0, 1, 7, 8, 9, 125, 126, 65535, 65536,
                                  100003 };

  (void) state;
  for (int is_server = 0; is_server < 2; is_server++) {
    struct coffer_websocket from = { .is_server = is_server };
    struct coffer_websocket to = { .is_server = !is_server };

    for (size_t i = 0; i < COUNT (sizes); i++) {
      coffer_autobuffer struct coffer_buffer wire = { 0 }, body = { 0 };
      struct coffer_websocket_event event;
      size_t used;

      for (size_t j = 0; j < sizes[i]; j++)
        coffer_buffer_add (&body, &(char) { (char) (j * 7) }, 1);
      assert_int_equal (coffer_websocket_write (&from, COFFER_WEBSOCKET_BINARY,
                                                body.data, body.size, &wire),
                        0);
      assert_int_equal (coffer_websocket_read (&to, wire.data, wire.size,
                                               &used, &event), 1);
      assert_int_equal (used, wire.size);
      assert_int_equal (event.size, sizes[i]);
      if (sizes[i] > 0)
        assert_memory_equal (event.bytes, body.data, sizes[i]);
    }
    coffer_websocket_fini (&from);
    coffer_websocket_fini (&to);
  }
}

/* Masks are fresh: two frames of the same bytes are not the same. */
static void
a_client_masks_and_a_server_does_not (void **state)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  struct coffer_websocket client = { 0 }, server = { .is_server = 1 };

  (void) state;
  for (int i = 0; i < 2; i++)
    assert_int_equal (coffer_websocket_write (&client, COFFER_WEBSOCKET_TEXT,
                                              "Hello", 5, &out), 0);
  assert_int_equal (out.size, 22);
  assert_int_equal ((unsigned char) out.data[1], 0x85);
  assert_memory_not_equal (out.data, out.data + 11, 11);
  coffer_buffer_clear (&out);
  assert_int_equal (coffer_websocket_write (&server, COFFER_WEBSOCKET_TEXT,
                                            "Hello", 5, &out), 0);
  assert_memory_equal (out.data, "\x81\x05Hello", 7);
}

static void
only_what_may_be_said_is_written (void **state)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  struct coffer_websocket w = { .is_server = 1 };
  char large[126] = "";

  (void) state;
#define REFUSED(call, code)                                                   \
  do {                                                                        \
    errno = 0;                                                                \
    assert_int_equal (call, -1);                                              \
    assert_int_equal (errno, code);                                           \
  } while (0)
  REFUSED (coffer_websocket_write (&w, 3, "x", 1, &out), EINVAL);
  REFUSED (coffer_websocket_write (&w, 0, "x", 1, &out), EINVAL);
  REFUSED (coffer_websocket_write (&w, COFFER_WEBSOCKET_TEXT, "\xff", 1,
                                   &out), EINVAL);
  REFUSED (coffer_websocket_write (&w, COFFER_WEBSOCKET_PING, large, 126,
                                   &out), EMSGSIZE);
  REFUSED (coffer_websocket_write_close (&w, 1006, "", &out), EINVAL);
  REFUSED (coffer_websocket_write_part (&w, COFFER_WEBSOCKET_BINARY, 0, 1,
                                        "x", 1, &out), EINVAL);
  assert_int_equal (out.size, 0);
  assert_int_equal (coffer_websocket_write_part (&w, COFFER_WEBSOCKET_BINARY,
                                                 1, 0, "a", 1, &out), 0);
  REFUSED (coffer_websocket_write (&w, COFFER_WEBSOCKET_BINARY, "x", 1, &out),
           EINVAL);
  assert_int_equal (coffer_websocket_write (&w, COFFER_WEBSOCKET_PONG, "", 0,
                                            &out), 0);
  assert_int_equal (coffer_websocket_write_part (&w, COFFER_WEBSOCKET_BINARY,
                                                 0, 1, "b", 1, &out), 0);
  assert_int_equal (coffer_websocket_write_close (&w, 1000, NULL, &out), 0);
  REFUSED (coffer_websocket_write (&w, COFFER_WEBSOCKET_PING, "", 0, &out),
           EPIPE);
  assert_memory_equal (out.data, "\x02\x01" "a\x8a\0\x80\x01" "b\x88\x02\x03\xe8",
                       12);
}

/* 123 bytes, of which the last would be half of a character. */
static void
a_reason_is_cut_between_characters (void **state)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  struct coffer_websocket w = { .is_server = 1 };
  char reason[256];

  (void) state;
  memset (reason, 'x', sizeof reason);
  memcpy (reason + 122, "\xc3\xa9 and more", 12);
  reason[134] = '\0';
  assert_int_equal (coffer_websocket_write_close (&w, 1011, reason, &out), 0);
  assert_int_equal ((unsigned char) out.data[1], 124);
  assert_int_equal (out.data[2 + 123], 'x');
}

/* The example of RFC 6455, section 1.3. */
static void
keys_are_answered_as_the_standard_says (void **state)
{
  static const char *const none[] = {
    "", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ===",
    "dGhlIHNhbXBsZSBub25jZR==", "dGhlIHNhbXBsZSBub25j", "x\r\nHost: y",
    "dGhlIHNhbXBsZSBub25-ZQ==",
  };
  char accept[COFFER_WEBSOCKET_ACCEPT_SIZE];
  char a[COFFER_WEBSOCKET_KEY_SIZE], b[COFFER_WEBSOCKET_KEY_SIZE];

  (void) state;
  assert_int_equal (coffer_websocket_accept ("dGhlIHNhbXBsZSBub25jZQ==",
                                             accept), 0);
  assert_string_equal (accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  for (size_t i = 0; i < COUNT (none); i++)
    assert_int_equal (coffer_websocket_accept (none[i], accept), -1);
  assert_int_equal (coffer_websocket_key (a), 0);
  assert_int_equal (coffer_websocket_key (b), 0);
  assert_string_not_equal (a, b);
  assert_int_equal (coffer_websocket_accept (a, accept), 0);
}

/* ---- with a descriptor ---- */

static int64_t
soon (void)
{
  return coffer_now_ns () + HARNESS_PATIENCE_NS;
}

static void *
send_large (void *data)
{
  struct coffer_websocket client = { 0 };
  const size_t size = 3 << 20;
  char *body = calloc (1, size);
  int r = body ? coffer_websocket_send (&client, *(int *) data,
                                        COFFER_WEBSOCKET_BINARY, body, size,
                                        soon (), -1) : -1;

  free (body);
  return r == 0 ? data : NULL;
}

static void
messages_larger_than_the_socket_arrive (void **state)
{
  struct coffer_websocket server = { .is_server = 1, .most = 4 << 20 };
  struct coffer_websocket_event event;
  pthread_t thread;
  void *sent = NULL;
  int ends[2];

  (void) state;
  assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                    0);
  assert_int_equal (pthread_create (&thread, NULL, send_large, &ends[0]), 0);
  assert_int_equal (coffer_websocket_receive (&server, ends[1], &event,
                                              soon (), -1), 1);
  assert_int_equal (event.size, 3 << 20);
  pthread_join (thread, &sent);
  assert_non_null (sent);
  close (ends[0]);
  assert_int_equal (coffer_websocket_receive (&server, ends[1], &event,
                                              soon (), -1), 0);
  coffer_websocket_fini (&server);
  close (ends[1]);
}

static void
early_bytes_come_first_and_a_close_ends_it (void **state)
{
  struct coffer_websocket client = { 0 }, server = { .is_server = 1 };
  struct coffer_websocket_event event;
  int ends[2];

  (void) state;
  assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                    0);
  assert_int_equal (coffer_websocket_early (&client, "\x81\x01" "a\x81\x02", 5),
                    0);
  assert_int_equal (coffer_websocket_receive (&client, ends[0], &event,
                                              soon (), -1), 1);
  assert_string_equal (event.bytes, "a");
  assert_int_equal (coffer_write_all (ends[1], "bc", 2), 2);
  assert_int_equal (coffer_websocket_receive (&client, ends[0], &event,
                                              soon (), -1), 1);
  assert_string_equal (event.bytes, "bc");
  assert_int_equal (coffer_websocket_close (&server, ends[1],
                                            COFFER_WEBSOCKET_GOING_AWAY,
                                            "enough", soon (), -1), 0);
  assert_int_equal (coffer_websocket_receive (&client, ends[0], &event,
                                              soon (), -1), 1);
  assert_int_equal (event.code, COFFER_WEBSOCKET_GOING_AWAY);
  assert_string_equal (event.bytes, "enough");
  assert_int_equal (coffer_websocket_receive (&client, ends[0], &event,
                                              soon (), -1), 0);
  coffer_websocket_fini (&client);
  close (ends[0]);
  close (ends[1]);
}

static void
every_wait_ends (void **state)
{
  struct coffer_websocket client = { 0 };
  struct coffer_websocket_event event;
  char *large = calloc (1, 4 << 20);
  int ends[2], cancel[2];

  (void) state;
  assert_non_null (large);
  assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                    0);
  assert_int_equal (pipe (cancel), 0);
  assert_int_equal (coffer_websocket_receive (&client, ends[0], &event,
                                              coffer_now_ns () + 1000000, -1),
                    -1);
  assert_int_equal (errno, ETIMEDOUT);
  assert_int_equal (coffer_websocket_send (&client, ends[0],
                                           COFFER_WEBSOCKET_BINARY, large,
                                           4 << 20,
                                           coffer_now_ns () + 50000000, -1),
                    -1);
  assert_int_equal (errno, ETIMEDOUT);
  assert_int_equal (write (cancel[1], "x", 1), 1);
  assert_int_equal (coffer_websocket_receive (&client, ends[0], &event,
                                              INT64_MAX, cancel[0]), -1);
  assert_int_equal (errno, ECANCELED);
  assert_int_equal (coffer_websocket_send (&client, ends[0],
                                           COFFER_WEBSOCKET_BINARY, large,
                                           4 << 20, INT64_MAX, cancel[0]),
                    -1);
  assert_int_equal (errno, ECANCELED);
  close (ends[1]);
  assert_int_equal (coffer_websocket_send (&client, ends[0],
                                           COFFER_WEBSOCKET_BINARY, "x", 1,
                                           soon (), -1), -1);
  assert_int_equal (errno, EPIPE);
  coffer_websocket_fini (&client);
  free (large);
  close (ends[0]);
  close (cancel[0]);
  close (cancel[1]);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (frames_of_the_standard_are_read),
    cmocka_unit_test (control_frames_come_between_fragments),
    cmocka_unit_test (a_close_is_the_last_that_comes),
    cmocka_unit_test (what_breaks_the_rules_is_refused),
    cmocka_unit_test (text_is_utf8),
    cmocka_unit_test (a_message_is_no_larger_than_the_limit),
    cmocka_unit_test (a_reader_that_failed_stays_failed),
    cmocka_unit_test (what_one_end_writes_the_other_reads),
    cmocka_unit_test (a_client_masks_and_a_server_does_not),
    cmocka_unit_test (only_what_may_be_said_is_written),
    cmocka_unit_test (a_reason_is_cut_between_characters),
    cmocka_unit_test (keys_are_answered_as_the_standard_says),
    cmocka_unit_test (messages_larger_than_the_socket_arrive),
    cmocka_unit_test (early_bytes_come_first_and_a_close_ends_it),
    cmocka_unit_test (every_wait_ends),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
