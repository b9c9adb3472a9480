/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/http's raw streams, WebSocket and proxies. */

#define _GNU_SOURCE

#include "harness.h"

#include <poll.h>
#include <sys/socket.h>

#include <jansson.h>

#include <coffer/fd.h>
#include <coffer/http.h>
#include <coffer/websocket.h>

#include "http-peer.h"

static struct peer peer;
static struct fakehost host;
static struct coffer_http *http;

static void
begin (peer_answer *answer, const void *data, const char *proxy)
{
  const char *const secrets[] = { "proxy-password", NULL };
  const struct coffer_http_config config = {
    .base = "http://service.invalid", .proxy = proxy, .secrets = secrets,
  };

  peer_begin (&peer, answer, data);
  fakehost_init (&host, HARNESS_PATIENCE_MS);
  host.connect = peer_connect;
  assert_int_equal (coffer_http_new (&host.call, &config, &http), COFFER_OK);
}

static void
end (void)
{
  coffer_http_free (http);
  peer_end (&peer);
  coffer_strings_free (&peer_targets);
  fakehost_fini (&host);
}

/* What the stream says until it ends. */
static char *
hear (int fd)
{
  struct coffer_buffer text = { 0 };
  char bytes[4096];
  ssize_t n;

  while (coffer_wait_fd (fd, POLLIN, host.call.deadline_ns, -1) == 1
         && (n = recv (fd, bytes, sizeof bytes, 0)) > 0)
    coffer_buffer_add (&text, bytes, (size_t) n);
  return coffer_buffer_steal (&text);
}

/* Leaves HTTP with the test's head, in one piece with its first bytes; says what
 * it hears, and "bye" when it hears no more. */
static int
become_a_stream (struct peer *p, int fd, const char *request, unsigned n)
{
  char *heard;

  (void) request;
  (void) n;
  peer_say (fd, p->data);
  heard = peer_hear (fd, NULL);
  peer_say (fd, heard);
  peer_say (fd, "bye");
  free (heard);
  return -1;
}

#define SWITCHED                                                              \
  "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream"  \
  "\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"

static void
streams_begin_behind_the_head_and_end_in_halves (void **state)
{
  static const char *const heads[] = {
    (SWITCHED "early"),
    ("HTTP/1.1 100 Wait\r\n\r\n" SWITCHED "early"),
    ("HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
     "\r\nearly"),
  };
  json_t *body = json_pack ("{s:b}", "Tty", 0);
  struct coffer_http_request request = { .path = "/exec/1/start",
                                         .json = body };

  (void) state;
  for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };
    coffer_autoclose int fd = -1;
    char *heard;

    begin (become_a_stream, heads[i], NULL);
    assert_int_equal (coffer_http_upgrade (http, &host.call, "tcp", &request,
                                           &reply, &fd), COFFER_OK);
    assert_non_null (strstr (peer_request (&peer, 0),
                             "POST /exec/1/start HTTP/1.1\r\n"));
    assert_non_null (strstr (peer_request (&peer, 0),
                             "\r\nConnection: Upgrade\r\n"));
    assert_non_null (strstr (peer_request (&peer, 0), "\r\nUpgrade: tcp\r\n"));
    assert_non_null (strstr (peer_request (&peer, 0),
                             "\r\n\r\n{\"Tty\":false}"));
    assert_int_equal (coffer_write_all (fd, VECTOR_BODY, 10), 10);
    assert_int_equal (shutdown (fd, SHUT_WR), 0);
    heard = hear (fd);
    assert_string_equal (heard, "early" VECTOR_BODY "bye");
    free (heard);
    end ();
  }
  json_decref (body);
}

static int
say_data (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) request;
  (void) n;
  peer_say (fd, p->data);
  return -1;
}

static void
a_refusal_is_a_reply (void **state)
{
  static const struct {
    const char *text;
    int32_t code;
    const char *said;
  } cases[] = {
    { "HTTP/1.1 404 No\r\nContent-Type: application/json\r\n"
      "Content-Length: 21\r\n\r\n{\"message\":\"no such\"}",
      COFFER_NOT_FOUND, "no such" },
    { "HTTP/1.1 409 No\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n9\r\n{\"message\r\nc\r\n\":\"paused\"}"
      " \r\n0\r\n\r\n", COFFER_CONFLICT, "paused" },
    { "HTTP/1.1 500 No\r\nContent-Type: text/plain\r\n\r\nall of it",
      COFFER_IO, "all of it" },
    { "HTTP/1.1 500 No\r\nContent-Length: 20\r\n\r\ncut", COFFER_IO, "cut" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", COFFER_UNSUPPORTED,
      NULL },
    { "HTTP/1.1 101 Go\r\nUpgrade: other\r\n\r\n", COFFER_UNSUPPORTED, NULL },
    { "HTTP/1.1 302 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
      COFFER_IO, NULL },
    { "HTTP/1.1 101 Go\r\nA: b", COFFER_IO, NULL },
    { "HTTP/1.1 101 Go\r\nA\r\n\r\n", COFFER_IO, NULL },
    { "", COFFER_IO, NULL },
  };
  struct coffer_http_request request = { .path = "/x", .method = "POST" };

  (void) state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };
    int fd = 0;

    begin (say_data, cases[i].text, NULL);
    assert_int_equal (coffer_http_upgrade (http, &host.call, "tcp", &request,
                                           &reply, &fd), cases[i].code);
    assert_int_equal (fd, -1);
    assert_non_null (reply.message);
    if (cases[i].said)
      assert_string_equal (reply.said, cases[i].said);
    end ();
  }
}

static int
say_nothing (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) p;
  (void) request;
  (void) n;
  free (peer_hear (fd, NULL));
  return -1;
}

static void
waiting_for_a_stream_ends (void **state)
{
  struct coffer_http_request request = { .path = "/x" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  int fd;

  (void) state;
  begin (say_nothing, NULL, NULL);
  host.call.deadline_ns = coffer_now_ns () + 50000000;
  assert_int_equal (coffer_http_upgrade (http, &host.call, "tcp", &request,
                                         &reply, &fd), COFFER_TIMEOUT);
  host.call.deadline_ns = INT64_MAX;
  fakehost_cancel (&host);
  assert_int_equal (coffer_http_upgrade (http, &host.call, "tcp", &request,
                                         &reply, &fd), COFFER_CANCELLED);
  end ();
}

/* ---- WebSocket ---- */

/* Answers the key, or what the test says, and one message with another. */
static int
speak_websocket (struct peer *p, int fd, const char *request, unsigned n)
{
  const char *at = strstr (request, "Sec-WebSocket-Key: ");
  char key[25] = "", accept[COFFER_WEBSOCKET_ACCEPT_SIZE] = "", text[512];
  struct coffer_websocket server = { .is_server = 1 };
  struct coffer_websocket_event event;

  (void) n;
  if (at)
    memcpy (key, at + 19, 24);
  if (coffer_websocket_accept (key, accept) < 0)
    return -1;
  snprintf (text, sizeof text, "HTTP/1.1 101 Go\r\nUpgrade: WebSocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
            "Sec-WebSocket-Protocol: v2\r\n\r\n\x81\x05hello",
            p->data ? (const char *) p->data : accept);
  peer_say (fd, text);
  if (coffer_websocket_receive (&server, fd, &event, INT64_MAX, -1) == 1)
    coffer_websocket_send (&server, fd, event.kind, event.bytes, event.size,
                           INT64_MAX, -1);
  coffer_websocket_close (&server, fd, 1000, "", INT64_MAX, -1);
  coffer_websocket_fini (&server);
  return -1;
}

static void
websockets_are_opened_and_spoken (void **state)
{
  struct coffer_http_request request = { .path = "/ws" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  struct coffer_websocket client = { 0 };
  struct coffer_websocket_event event;
  coffer_autoclose int fd = -1;

  (void) state;
  begin (speak_websocket, NULL, NULL);
  assert_int_equal (coffer_http_websocket (http, &host.call, "v1, v2",
                                           &request, &reply, &fd), COFFER_OK);
  assert_string_equal (coffer_http_header (&reply, "Sec-WebSocket-Protocol"),
                       "v2");
  assert_non_null (strstr (peer_request (&peer, 0),
                           "\r\nSec-WebSocket-Version: 13\r\n"));
  assert_int_equal (coffer_websocket_receive (&client, fd, &event,
                                              host.call.deadline_ns, -1), 1);
  assert_string_equal (event.bytes, "hello");
  assert_int_equal (coffer_websocket_send (&client, fd, COFFER_WEBSOCKET_TEXT,
                                           VECTOR_NAME, strlen (VECTOR_NAME),
                                           host.call.deadline_ns, -1), 0);
  assert_int_equal (coffer_websocket_receive (&client, fd, &event,
                                              host.call.deadline_ns, -1), 1);
  assert_string_equal (event.bytes, VECTOR_NAME);
  assert_int_equal (coffer_websocket_receive (&client, fd, &event,
                                              host.call.deadline_ns, -1), 1);
  assert_int_equal (event.code, 1000);
  coffer_websocket_fini (&client);
  end ();
}

static void
an_answer_to_another_key_is_none (void **state)
{
  struct coffer_http_request request = { .path = "/ws" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  int fd;

  (void) state;
  begin (speak_websocket, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", NULL);
  assert_int_equal (coffer_http_websocket (http, &host.call, NULL, &request,
                                           &reply, &fd), COFFER_IO);
  assert_int_equal (fd, -1);
  end ();
}

/* ---- proxies ---- */

#define OK_TEXT "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static int
answer_ok (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) p;
  (void) request;
  (void) n;
  peer_say (fd, OK_TEXT);
  return 0;
}

static void
an_http_proxy_is_asked_for_the_whole_url (void **state)
{
  struct coffer_http_request request = { .path = "/x" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  begin (answer_ok, NULL, "http://me:proxy%2Dpassword@proxy.invalid:3128/");
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_OK);
  assert_string_equal (peer_targets.items[0], "tcp:proxy.invalid:3128");
  assert_non_null (strstr (peer_request (&peer, 0),
                           "GET http://service.invalid/x HTTP/1.1\r\n"));
  assert_non_null (strstr (peer_request (&peer, 0),
                           "\r\nProxy-Authorization: Basic "
                           "bWU6cHJveHktcGFzc3dvcmQ=\r\n"));
  end ();
}

/* What is on this machine is not asked for through a proxy. */
static void
this_machine_needs_no_proxy (void **state)
{
  static const char *const bases[] = { "http://localhost", "http://127.0.0.9",
                                       "http://[::1]" };

  (void) state;
  for (size_t i = 0; i < 3; i++) {
    const struct coffer_http_config config = {
      .base = bases[i], .proxy = "http://proxy.invalid:3128",
    };
    struct coffer_http_request request = { .path = "/x" };
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    begin (answer_ok, NULL, NULL);
    coffer_http_free (http);
    assert_int_equal (coffer_http_new (&host.call, &config, &http),
                      COFFER_OK);
    assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                      COFFER_OK);
    assert_null (strstr (peer_targets.items[0], "proxy"));
    end ();
  }
}

static void
bytes_are (int fd, const char *want, size_t size)
{
  char bytes[64];

  if (coffer_read_all (fd, bytes, size) != (ssize_t) size
      || memcmp (bytes, want, size) != 0)
    abort ();
}

/* SOCKS 5, which gets the name and not an address. */
static int
speak_socks (struct peer *p, int fd, const char *request, unsigned n)
{
  char methods[16];

  (void) p;
  (void) request;
  (void) n;
  bytes_are (fd, "\5", 1);
  if (read (fd, methods, 1) != 1
      || coffer_read_all (fd, methods + 1, (size_t) methods[0]) < 0
      || write (fd, "\5\0", 2) != 2)
    return -1;
  bytes_are (fd, "\5\1\0\3\17service.invalid\0\120", 22);
  return write (fd, "\5\0\0\1\0\0\0\0\0\0", 10) == 10 ? 0 : -1;
}

static int
answer_socks (struct peer *p, int fd, const char *request, unsigned n)
{
  return n == 0 ? speak_socks (p, fd, request, n)
                : answer_ok (p, fd, request, n);
}

static void
a_socks_proxy_is_given_the_name (void **state)
{
  static const char *const proxies[] = { "socks5h://proxy.invalid",
                                         "socks5://proxy.invalid:1080" };

  (void) state;
  for (size_t i = 0; i < 2; i++) {
    struct coffer_http_request request = { .path = "/x" };
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    begin (answer_socks, NULL, proxies[i]);
    peer.is_tunnel = 1;
    assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                      COFFER_OK);
    assert_string_equal (peer_targets.items[0], "tcp:proxy.invalid:1080");
    assert_non_null (strstr (peer_request (&peer, 0), "GET /x HTTP/1.1\r\n"));
    end ();
  }
}

static void
a_proxy_that_refuses_is_named (void **state)
{
  struct coffer_http_request request = { .path = "/x" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  begin (say_data, "HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n",
         "http://proxy.invalid:3128");
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_UNAUTHENTICATED);
  end ();
}

/* A tunnel, and a thread between it and the caller's descriptor. */
static int
answer_connect (struct peer *p, int fd, const char *request, unsigned n)
{
  if (strncmp (request, "CONNECT ", 8) == 0) {
    peer_say (fd, "HTTP/1.1 200 Go on\r\n\r\n");
    return 0;
  }
  return become_a_stream (p, fd, request, n);
}

static void
a_stream_goes_through_a_proxy (void **state)
{
  struct coffer_http_request request = { .path = "/exec/1/start",
                                         .method = "POST" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  coffer_autoclose int fd = -1;
  char *heard;

  (void) state;
  begin (answer_connect, SWITCHED "early", "http://proxy.invalid:3128");
  assert_int_equal (coffer_http_upgrade (http, &host.call, "tcp", &request,
                                         &reply, &fd), COFFER_OK);
  assert_non_null (strstr (peer_request (&peer, 0),
                           "CONNECT service.invalid:80 HTTP/1.1\r\n"));
  assert_non_null (strstr (peer_request (&peer, 1),
                           "POST /exec/1/start HTTP/1.1\r\n"));
  assert_int_equal (coffer_write_all (fd, VECTOR_BODY, 10), 10);
  assert_int_equal (shutdown (fd, SHUT_WR), 0);
  heard = hear (fd);
  assert_string_equal (heard, "early" VECTOR_BODY "bye");
  free (heard);
  end ();
}

/* The client may be freed while a stream of it is open. */
static void
streams_end_with_their_client (void **state)
{
  struct coffer_http_request request = { .path = "/x", .method = "POST" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  coffer_autoclose int fd = -1;
  char *heard;

  (void) state;
  begin (answer_connect, SWITCHED, "http://proxy.invalid:3128");
  assert_int_equal (coffer_http_upgrade (http, &host.call, "tcp", &request,
                                         &reply, &fd), COFFER_OK);
  end ();
  host.call.deadline_ns = INT64_MAX;
  heard = hear (fd);
  assert_string_equal (heard, "");
  free (heard);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (streams_begin_behind_the_head_and_end_in_halves),
    cmocka_unit_test (a_refusal_is_a_reply),
    cmocka_unit_test (waiting_for_a_stream_ends),
    cmocka_unit_test (websockets_are_opened_and_spoken),
    cmocka_unit_test (an_answer_to_another_key_is_none),
    cmocka_unit_test (an_http_proxy_is_asked_for_the_whole_url),
    cmocka_unit_test (this_machine_needs_no_proxy),
    cmocka_unit_test (a_socks_proxy_is_given_the_name),
    cmocka_unit_test (a_proxy_that_refuses_is_named),
    cmocka_unit_test (a_stream_goes_through_a_proxy),
    cmocka_unit_test (streams_end_with_their_client),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
