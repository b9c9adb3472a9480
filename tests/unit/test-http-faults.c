/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/http's client against a peer that does not keep the rules: every wait
 * ends, every failure is one line, and nothing is done twice. */

#define _GNU_SOURCE

#include "harness.h"

#include <pthread.h>
#include <sys/socket.h>

#include <coffer/fd.h>
#include <coffer/http.h>

#include "http-peer.h"

static struct peer peer;
static struct fakehost host;
static struct coffer_http *http;

static void
begin_with (peer_answer *answer, const void *data, int64_t timeout_ms,
            const struct coffer_http_config *more)
{
  struct coffer_http_config config = { 0 };

  if (more)
    config = *more;
  config.base = "http://service.invalid";
  peer_begin (&peer, answer, data);
  fakehost_init (&host, timeout_ms);
  host.connect = peer_connect;
  assert_int_equal (coffer_http_new (&host.call, &config, &http), COFFER_OK);
}

static void
begin (peer_answer *answer, const void *data)
{
  begin_with (answer, data, HARNESS_PATIENCE_MS, NULL);
}

static void
end (void)
{
  coffer_http_free (http);
  peer_end (&peer);
  coffer_strings_free (&peer_targets);
  fakehost_fini (&host);
}

/* One request for one answer, with its reply looked at by the caller. */
static int32_t
ask (const char *method, unsigned flags, struct coffer_http_reply *reply)
{
  struct coffer_http_request request = { .path = "/things?token=hidden-one",
                                         .method = method, .flags = flags };
  int32_t code = coffer_http_do (http, &host.call, &request, reply);

  assert_int_equal (code, reply->code);
  assert_int_equal (code != COFFER_OK, reply->message != NULL);
  if (reply->message) {
    assert_null (strchr (reply->message, '\n'));
    assert_null (strstr (reply->message, "hidden-one"));
    assert_true (strlen (reply->message) < 700);
  }
  return code;
}

static int
say_data (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) request;
  (void) n;
  peer_say (fd, p->data);
  return -1;
}

#define OK_TEXT "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* ---- statuses ---- */

static void
statuses_are_codes (void **state)
{
  static const struct {
    int status;
    int32_t code;
  } cases[] = {
    { 200, COFFER_OK }, { 204, COFFER_OK }, { 304, COFFER_OK },
    { 300, COFFER_IO }, { 400, COFFER_INVALID }, { 422, COFFER_INVALID },
    { 418, COFFER_INVALID }, { 401, COFFER_UNAUTHENTICATED },
    { 403, COFFER_DENIED }, { 404, COFFER_NOT_FOUND },
    { 410, COFFER_NOT_FOUND }, { 405, COFFER_UNSUPPORTED },
    { 501, COFFER_UNSUPPORTED }, { 409, COFFER_CONFLICT },
    { 413, COFFER_LIMIT }, { 408, COFFER_TIMEOUT }, { 429, COFFER_BUSY },
    { 500, COFFER_IO }, { 502, COFFER_UNAVAILABLE },
    { 503, COFFER_UNAVAILABLE }, { 504, COFFER_TIMEOUT },
    { 599, COFFER_UNAVAILABLE },
  };
  char text[128];

  (void) state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    snprintf (text, sizeof text, "HTTP/1.1 %d X\r\nContent-Length: 0\r\n"
              "Connection: close\r\n\r\n", cases[i].status);
    begin (say_data, text);
    assert_int_equal (ask ("POST", 0, &reply), cases[i].code);
    assert_int_equal (reply.status, cases[i].status);
    assert_int_equal (ask ("POST", COFFER_HTTP_ANY_STATUS, &reply),
                      COFFER_OK);
    end ();
  }
}

static void
what_a_server_says_is_told_without_secrets (void **state)
{
  const char *const secrets[] = { "sesame/opens?all", "short", NULL };
  const char *const headers[] = { "Authorization: Bearer abcdefghijkl", NULL };
  const struct coffer_http_config config = { .secrets = secrets,
                                             .headers = headers };
  static const struct {
    const char *type, *body, *said;
  } cases[] = {
    { "application/json", "{\"message\":\"No such container: x\\n\"}",
      "No such container: x" },
    { "application/problem+json; charset=utf-8",
      "{\"error\":{\"code\":7,\"message\":\"no\"}}", "no" },
    { "application/json", "{\"error\":\"abcdefghijkl is wrong\"}",
      "[hidden] is wrong" },
    { "application/json", "{\"detail\":\"sesame%2Fopens%3Fall c2VzYW1lL29wZW5z"
      "P2FsbA== short\"}", "[hidden] [hidden]A== short" },
    { "text/plain", "two\nlines \x1b[31m", "two lines \\x1b[31m" },
    { "application/json", "{\"message\":", NULL },
    { "application/json", "[[[[", NULL },
    { "text/html", "<html><h1>Bad Gateway</h1>", NULL },
  };
  char text[512];

  (void) state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    snprintf (text, sizeof text, "HTTP/1.1 404 X\r\nContent-Type: %s\r\n"
              "Content-Length: %zu\r\n\r\n%s", cases[i].type,
              strlen (cases[i].body), cases[i].body);
    begin_with (say_data, text, HARNESS_PATIENCE_MS, &config);
    assert_int_equal (ask ("GET", 0, &reply), COFFER_NOT_FOUND);
    assert_string_equal (reply.body, cases[i].body);
    if (cases[i].said) {
      assert_string_equal (reply.said, cases[i].said);
      assert_non_null (strstr (reply.message, cases[i].said));
    } else {
      assert_null (reply.said);
    }
    assert_non_null (strstr (reply.message, "GET http://service.invalid"
                             "/things: the answer is 404"));
    assert_int_equal (coffer_http_fail (&host.call, &reply),
                      COFFER_NOT_FOUND);
    assert_string_equal (host.message, reply.message);
    end ();
  }
}

/* ---- again ---- */

static int
busy_twice (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) request;
  peer_say (fd, n <= 2 ? p->data : OK_TEXT);
  return n <= 2 ? -1 : 0;
}

static void
what_may_be_repeated_is_tried_again (void **state)
{
  static const char *const answers[] = {
    "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 503 Not now\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ("HTTP/1.1 502 Bad\r\nContent-Type: text/html\r\nConnection: close\r\n"
     "\r\n<html>"),
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ncut",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ncu",
    "",
  };

  (void) state;
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    begin (busy_twice, answers[i]);
    assert_int_equal (ask ("GET", 0, &reply), COFFER_OK);
    assert_string_equal (reply.body, "ok");
    assert_int_equal (peer_requests (&peer), 3);
    end ();
    begin (busy_twice, answers[i]);
    assert_int_not_equal (ask ("POST", 0, &reply), COFFER_OK);
    assert_int_equal (peer_requests (&peer), 1);
    end ();
    begin (busy_twice, answers[i]);
    assert_int_not_equal (ask ("DELETE", COFFER_HTTP_ONCE, &reply),
                          COFFER_OK);
    assert_int_equal (peer_requests (&peer), 1);
    end ();
    begin (busy_twice, answers[i]);
    assert_int_equal (ask ("POST", COFFER_HTTP_REPEATABLE, &reply),
                      COFFER_OK);
    end ();
  }
}

static int
busy_once (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) request;
  peer_say (fd, n == 1 ? p->data : OK_TEXT);
  return 0;
}

/* No sooner than it says; and not at all when that is beyond the deadline. */
static void
retry_after_is_kept (void **state)
{
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  int64_t before;

  (void) state;
  begin (busy_once, "HTTP/1.1 429 Slow\r\nRetry-After: 1\r\n"
                    "Content-Length: 0\r\n\r\n");
  before = coffer_now_ns ();
  assert_int_equal (ask ("GET", 0, &reply), COFFER_OK);
  assert_true (coffer_now_ns () - before >= INT64_C (1000000000));
  end ();
  begin (busy_once, "HTTP/1.1 503 No\r\nRetry-After: 3600\r\n"
                    "Content-Length: 0\r\n\r\n");
  assert_int_equal (ask ("GET", 0, &reply), COFFER_UNAVAILABLE);
  assert_int_equal (peer_requests (&peer), 1);
  end ();
}

static int
answer_and_close (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) p;
  (void) request;
  if (n != 2)
    peer_say (fd, OK_TEXT);
  return n == 2 ? -1 : 0;
}

/* A kept connection on which the answer never comes: who knows what was done. */
static void
nothing_is_done_twice_behind_the_callers_back (void **state)
{
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  begin (answer_and_close, NULL);
  assert_int_equal (ask ("POST", 0, &reply), COFFER_OK);
  assert_int_equal (ask ("POST", 0, &reply), COFFER_IO);
  assert_int_equal (peer_requests (&peer), 2);
  assert_int_equal (ask ("POST", 0, &reply), COFFER_OK);
  end ();
  begin (answer_and_close, NULL);
  assert_int_equal (ask ("PUT", 0, &reply), COFFER_OK);
  assert_int_equal (ask ("PUT", 0, &reply), COFFER_OK);
  assert_int_equal (peer_requests (&peer), 3);
  end ();
}

/* One that was closed while nobody used it is no failure of the next call. */
static void
a_kept_connection_may_have_died (void **state)
{
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  begin (say_data, OK_TEXT);
  for (unsigned i = 1; i <= 3; i++) {
    assert_int_equal (ask ("POST", 0, &reply), COFFER_OK);
    while (peer_closed (&peer) < i)
      usleep (1000);
  }
  assert_int_equal (peer_requests (&peer), 3);
  end ();
}

static int32_t
refuse_connection (struct fakehost *h, const char *target)
{
  (void) h;
  coffer_strings_add (&peer_targets, target);
  return -COFFER_DENIED;
}

static void
the_hosts_no_is_final (void **state)
{
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  begin (say_data, OK_TEXT);
  host.connect = refuse_connection;
  assert_int_equal (ask ("GET", 0, &reply), COFFER_DENIED);
  assert_non_null (strstr (reply.message, "tcp:service.invalid:80"));
  assert_int_equal (peer_targets.count, 1);
  end ();
}

/* ---- time ---- */

static int
drip (struct peer *p, int fd, const char *request, unsigned n)
{
  const char *text = p->data;
  char one[2] = "";

  (void) request;
  (void) n;
  for (int i = 0; i < 3000 && *text; i++) {
    one[0] = text[0];
    text += text[1] != '\0';
    if (send (fd, one, 1, MSG_NOSIGNAL) != 1)
      return -1;
    usleep (10000);
  }
  return -1;
}

static void
a_drip_ends_at_the_deadline (void **state)
{
  static const char *const texts[] = {
    "HTTP/1.1 200 OK\r\nX: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx",
    "HTTP/1.1 200 OK\r\n\r\nx",
  };

  (void) state;
  for (size_t i = 0; i < 3; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    begin_with (drip, texts[i], 300, NULL);
    assert_int_equal (ask ("GET", 0, &reply), COFFER_TIMEOUT);
    end ();
  }
}

static int
say_nothing (struct peer *p, int fd, const char *request, unsigned n)
{
  char one;

  (void) p;
  (void) request;
  (void) n;
  while (recv (fd, &one, 1, 0) == 1)
    ;
  return -1;
}

static void
silence_ends_a_request_before_its_deadline (void **state)
{
  struct coffer_http_request request = { .path = "/", .method = "POST",
                                         .silence_ns = 50000000 };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  begin_with (say_nothing, NULL, 3600000, NULL);
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_TIMEOUT);
  assert_non_null (strstr (reply.message, "nothing came"));
  end ();
}

static void *
give_up_soon (void *data)
{
  while (peer_requests (data) == 0)
    usleep (1000);
  fakehost_cancel (&host);
  return NULL;
}

static void
a_caller_may_give_up (void **state)
{
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  pthread_t thread;

  (void) state;
  begin_with (say_nothing, NULL, 3600000, NULL);
  assert_int_equal (pthread_create (&thread, NULL, give_up_soon, &peer), 0);
  assert_int_equal (ask ("GET", 0, &reply), COFFER_CANCELLED);
  pthread_join (thread, NULL);
  end ();
  /* Also while it waits to try again. */
  begin_with (busy_once, "HTTP/1.1 429 Slow\r\nRetry-After: 60\r\n"
              "Content-Length: 0\r\n\r\n", 3600000, NULL);
  assert_int_equal (pthread_create (&thread, NULL, give_up_soon, &peer), 0);
  assert_int_equal (ask ("GET", 0, &reply), COFFER_CANCELLED);
  pthread_join (thread, NULL);
  end ();
}

/* ---- sizes and shapes ---- */

static int
say_for_ever (struct peer *p, int fd, const char *request, unsigned n)
{
  char piece[4096];
  ssize_t sent = 1;

  (void) request;
  (void) n;
  memset (piece, 'x', sizeof piece);
  peer_say (fd, p->data);
  while (sent > 0)
    sent = send (fd, piece, sizeof piece, MSG_NOSIGNAL);
  return -1;
}

static void
what_has_no_end_is_cut (void **state)
{
  const struct coffer_http_config config = { .body_most = 10000 };
  static const struct {
    const char *begins;
    int32_t code;
  } cases[] = {
    { "HTTP/1.1 200 OK\r\n\r\n", COFFER_LIMIT },
    { "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000\r\n\r\n",
      COFFER_LIMIT },
    { "HTTP/1.1 404 No\r\nContent-Type: text/plain\r\n\r\n",
      COFFER_NOT_FOUND },
  };

  (void) state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    begin_with (say_for_ever, cases[i].begins, 3600000, &config);
    assert_int_equal (ask ("POST", 0, &reply), cases[i].code);
    assert_true (reply.size <= 65536);
    end ();
  }
}

static void
heads_are_no_larger_than_the_limit (void **state)
{
  static const char *const begins[] = {
    "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 ", "",
  };

  (void) state;
  for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    begin_with (say_for_ever, begins[i], 3600000, NULL);
    assert_int_not_equal (ask ("POST", 0, &reply), COFFER_OK);
    assert_int_not_equal (reply.code, COFFER_TIMEOUT);
    end ();
  }
}

static int
say_headers_for_ever (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) p;
  (void) request;
  (void) n;
  peer_say (fd, "HTTP/1.1 200 OK\r\n");
  while (send (fd, "A: b\r\n", 6, MSG_NOSIGNAL) > 0)
    ;
  return -1;
}

static void
headers_have_an_end (void **state)
{
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  begin_with (say_headers_for_ever, NULL, 3600000, NULL);
  assert_int_equal (ask ("POST", 0, &reply), COFFER_LIMIT);
  end ();
}

/* None of it is a reply; whatever may be made of it is no success. */
static void
what_is_no_http_is_no_reply (void **state)
{
  static const char *const texts[] = {
    "", "hello\r\n\r\n", "HTTP/0.9 200 OK\r\n\r\n", "SSH-2.0-x\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
     "fffffffffffffffff\r\nx"),
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx",
    "HTTP/1.1 200 OK\r\nX: y",
  };

  (void) state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    begin (say_data, texts[i]);
    if (ask ("POST", 0, &reply) != COFFER_IO)
      fail_msg ("\"%s\" is code %d", texts[i], (int) reply.code);
    end ();
  }
}

static int
say_in_pieces (struct peer *p, int fd, const char *request, unsigned n)
{
  const char *text = p->data;
  char one[2] = "";

  (void) request;
  (void) n;
  for (; *text; text++) {
    one[0] = *text;
    peer_say (fd, one);
    usleep (200);
  }
  return -1;
}

static void
how_a_reply_is_cut_changes_nothing (void **state)
{
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  begin (say_in_pieces, "HTTP/1.1 100 Wait\r\n\r\nHTTP/1.1 200 OK\r\nA: 1\r\n"
         "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n"
         "Trailer: no\r\n\r\n");
  assert_int_equal (ask ("POST", 0, &reply), COFFER_OK);
  assert_string_equal (reply.body, "abcde");
  assert_string_equal (coffer_http_header (&reply, "A"), "1");
  assert_null (coffer_http_header (&reply, "Trailer"));
  end ();
}

/* ---- many at once ---- */

static int
say_ok (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) p;
  (void) request;
  (void) n;
  peer_say (fd, OK_TEXT);
  return 0;
}

static void *
ask_many (void *data)
{
  struct coffer_http_request request = { .path = "/" };

  for (int i = 0; i < 20; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    if (coffer_http_do (http, &host.call, &request, &reply) != COFFER_OK
        || strcmp (reply.body, "ok") != 0)
      return NULL;
  }
  return data;
}

static int32_t
connect_quietly (struct fakehost *h, const char *target)
{
  (void) h;
  (void) target;
  return peer_dial (&peer, 0);
}

static void
calls_do_not_wait_for_each_other (void **state)
{
  pthread_t threads[8];
  void *done;

  (void) state;
  begin (say_ok, NULL);
  host.connect = connect_quietly;
  for (int i = 0; i < 8; i++)
    assert_int_equal (pthread_create (&threads[i], NULL, ask_many, &peer), 0);
  for (int i = 0; i < 8; i++) {
    pthread_join (threads[i], &done);
    assert_ptr_equal (done, &peer);
  }
  assert_true (peer_connections (&peer) <= 8);
  end ();
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (statuses_are_codes),
    cmocka_unit_test (what_a_server_says_is_told_without_secrets),
    cmocka_unit_test (what_may_be_repeated_is_tried_again),
    cmocka_unit_test (retry_after_is_kept),
    cmocka_unit_test (nothing_is_done_twice_behind_the_callers_back),
    cmocka_unit_test (a_kept_connection_may_have_died),
    cmocka_unit_test (the_hosts_no_is_final),
    cmocka_unit_test (a_drip_ends_at_the_deadline),
    cmocka_unit_test (silence_ends_a_request_before_its_deadline),
    cmocka_unit_test (a_caller_may_give_up),
    cmocka_unit_test (what_has_no_end_is_cut),
    cmocka_unit_test (heads_are_no_larger_than_the_limit),
    cmocka_unit_test (headers_have_an_end),
    cmocka_unit_test (what_is_no_http_is_no_reply),
    cmocka_unit_test (how_a_reply_is_cut_changes_nothing),
    cmocka_unit_test (calls_do_not_wait_for_each_other),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
