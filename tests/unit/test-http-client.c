/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/http's client against a peer that keeps the rules: what is sent, what
 * comes back, and where it may go. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <jansson.h>
#include <seccomp.h>

#include <coffer/fd.h>
#include <coffer/http.h>

#include "http-peer.h"

#define OK_JSON                                                               \
  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"                     \
  "Content-Length: 13\r\n\r\n{\"answer\":42}"

static struct peer peer;
static struct fakehost host;

static struct coffer_http *
client_new (const struct coffer_http_config *config)
{
  struct coffer_http *http = NULL;

  fakehost_init (&host, HARNESS_PATIENCE_MS);
  host.connect = peer_connect;
  assert_int_equal (coffer_http_new (&host.call, config, &http), COFFER_OK);
  return http;
}

static void
client_free (struct coffer_http *http)
{
  coffer_http_free (http);
  peer_end (&peer);
  coffer_strings_free (&peer_targets);
  fakehost_fini (&host);
}

static const struct coffer_http_config by_name
  = { .base = "http://service.invalid/v1/" };

static int
say_data (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) request;
  (void) n;
  peer_say (fd, p->data);
  return 0;
}

/* The name is nobody's: only the host is asked for it. */
static void
json_goes_out_and_comes_back (void **state)
{
  const char *const own[] = { "Authorization: Bearer abcdefghijkl", NULL };
  const char *const headers[] = { "X-Trace: 7", "X-Empty:", NULL };
  struct coffer_http_config config = by_name;
  struct coffer_http_request request = { 0 };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  struct coffer_http *http;
  json_t *body = json_pack ("{s:s}", "name", VECTOR_NAME);
  const char *sent;

  (void) state;
  config.headers = own;
  peer_begin (&peer, say_data, OK_JSON);
  http = client_new (&config);
  request.path = "/boxes?x=%20";
  request.json = body;
  request.headers = headers;
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_OK);
  assert_int_equal (reply.status, 200);
  assert_int_equal (json_integer_value (json_object_get (reply.json,
                                                         "answer")), 42);
  assert_string_equal (reply.body, "{\"answer\":42}");
  assert_int_equal (reply.received, 13);
  assert_string_equal (coffer_http_header (&reply, "content-TYPE"),
                       "application/json");
  assert_null (coffer_http_header (&reply, "content"));
  assert_string_equal (peer_targets.items[0], "tcp:service.invalid:80");
  sent = peer_request (&peer, 0);
  assert_non_null (strstr (sent, "POST /v1/boxes?x=%20 HTTP/1.1\r\n"));
  assert_non_null (strstr (sent, "\r\nHost: service.invalid"));
  assert_non_null (strstr (sent, "\r\nUser-Agent: coffer\r\n"));
  assert_non_null (strstr (sent, "\r\nAuthorization: Bearer abcdefghijkl\r\n"));
  assert_non_null (strstr (sent, "\r\nX-Trace: 7\r\n"));
  assert_non_null (strstr (sent, "\r\nX-Empty:\r\n"));
  assert_non_null (strstr (sent, "\r\nContent-Type: application/json\r\n"));
  assert_non_null (strstr (sent, "\r\n\r\n{\"name\":\"你好 世界/'q\\\".txt\"}"));
  assert_null (strstr (sent, "Expect"));
  json_decref (body);
  client_free (http);
}

static void
one_connection_serves_many_requests (void **state)
{
  struct coffer_http_config config = { 0 };
  struct coffer_http_request request = { .path = "/_ping" };
  struct coffer_http *http;
  char base[160], want[160];

  (void) state;
  peer_begin (&peer, say_data, OK_JSON);
  snprintf (base, sizeof base, "unix://%s", peer.path);
  config.base = base;
  http = client_new (&config);
  for (int i = 0; i < 5; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    request.method = i % 2 ? "POST" : NULL;
    assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                      COFFER_OK);
  }
  assert_int_equal (peer_requests (&peer), 5);
  assert_int_equal (peer_connections (&peer), 1);
  snprintf (want, sizeof want, "unix:%s", peer.path);
  assert_string_equal (peer_targets.items[0], want);
  assert_int_equal (peer_targets.count, 1);
  assert_non_null (strstr (peer_request (&peer, 1), "POST /_ping HTTP/1.1"));
  assert_non_null (strstr (peer_request (&peer, 1), "Host: localhost\r\n"));
  assert_non_null (strstr (peer_request (&peer, 1), "Content-Length: 0\r\n"));
  client_free (http);
}

/* ---- bodies by descriptor ---- */

static int
file_with (const char *text)
{
  return coffer_memfd_sealed ("body", text, strlen (text));
}

static void
bodies_are_sent_from_descriptors (void **state)
{
  struct coffer_http_request request = { .path = "/up", .method = "PUT",
                                         .body_from_fd = 1 };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  struct coffer_http *http;
  int ends[2];

  (void) state;
  peer_begin (&peer, say_data, "HTTP/1.1 204 None\r\n\r\n");
  http = client_new (&by_name);
  request.body_fd = file_with ("0123456789");
  assert_int_equal (lseek (request.body_fd, 2, SEEK_SET), 2);
  request.body_size = 5;
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_OK);
  assert_non_null (strstr (peer_request (&peer, 0), "Content-Length: 5\r\n"));
  assert_non_null (strstr (peer_request (&peer, 0), "\r\n\r\n23456"));
  assert_int_equal (reply.sent, 5);
  close (request.body_fd);

  assert_int_equal (pipe (ends), 0);
  assert_int_equal (write (ends[1], VECTOR_BODY, 10), 10);
  close (ends[1]);
  request.body_fd = ends[0];
  request.body_size = -1;
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_OK);
  assert_non_null (strstr (peer_request (&peer, 1), "chunked\r\n"));
  assert_non_null (strstr (peer_request (&peer, 1), "\r\na\r\ncafé\n☃\n\r\n"));
  close (ends[0]);
  client_free (http);
}

static void *
write_slowly (void *data)
{
  const int fd = *(int *) data;

  for (int i = 0; i < 3; i++) {
    usleep (20000);
    if (write (fd, "abc", 3) != 3)
      abort ();
  }
  close (fd);
  return NULL;
}

/* A pipe without bytes is waited for, with the caller able to give up. */
static void
a_body_may_come_later_than_its_request (void **state)
{
  struct coffer_http_request request = { .path = "/up", .body_from_fd = 1,
                                         .body_size = -1 };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  struct coffer_http *http;
  pthread_t thread;
  int ends[2];

  (void) state;
  peer_begin (&peer, say_data, OK_JSON);
  http = client_new (&by_name);
  assert_int_equal (pipe (ends), 0);
  request.body_fd = ends[0];
  assert_int_equal (pthread_create (&thread, NULL, write_slowly, &ends[1]),
                    0);
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_OK);
  assert_int_equal (reply.sent, 9);
  pthread_join (thread, NULL);
  close (ends[0]);
  assert_int_equal (pipe (ends), 0);
  request.body_fd = ends[0];
  fakehost_cancel (&host);
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_CANCELLED);
  close (ends[0]);
  close (ends[1]);
  client_free (http);
}

static void
a_body_that_ends_too_early_is_no_request (void **state)
{
  struct coffer_http_request request = { .path = "/up", .body_from_fd = 1,
                                         .body_size = 9 };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  struct coffer_http *http;

  (void) state;
  peer_begin (&peer, say_data, OK_JSON);
  http = client_new (&by_name);
  request.body_fd = file_with ("short");
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_IO);
  assert_non_null (strstr (reply.message, "ended too early"));
  close (request.body_fd);
  client_free (http);
}

/* More than is kept in memory, and byte by byte as it came. */
static int
say_large (struct peer *p, int fd, const char *request, unsigned n)
{
  char piece[1001];

  (void) p;
  (void) request;
  (void) n;
  memset (piece, 'x', 1000);
  piece[1000] = '\0';
  peer_say (fd, "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n");
  for (int i = 0; i < 3000; i++)
    peer_say (fd, piece);
  return 0;
}

static void
bodies_go_to_descriptors_without_a_limit (void **state)
{
  struct coffer_http_config config = by_name;
  struct coffer_http_request request = { .path = "/down", .body_to_fd = 1 };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  struct coffer_http *http;

  (void) state;
  config.body_most = 1000;
  peer_begin (&peer, say_large, NULL);
  http = client_new (&config);
  request.out_fd = memfd_create ("out", MFD_CLOEXEC);
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_OK);
  assert_int_equal (lseek (request.out_fd, 0, SEEK_END), 3000000);
  assert_int_equal (reply.received, 3000000);
  assert_null (reply.body);
  close (request.out_fd);
  request.body_to_fd = 0;
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_LIMIT);
  assert_non_null (strstr (reply.message, "too large"));
  client_free (http);
}

static void
a_reader_that_has_gone_ends_the_request (void **state)
{
  struct coffer_http_request request = { .path = "/down", .body_to_fd = 1 };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  struct coffer_http *http;
  int ends[2];

  (void) state;
  peer_begin (&peer, say_large, NULL);
  http = client_new (&by_name);
  assert_int_equal (pipe (ends), 0);
  close (ends[0]);
  request.out_fd = ends[1];
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_IO);
  assert_non_null (strstr (reply.message, "reader"));
  close (ends[1]);
  client_free (http);
}

/* ---- lines ---- */

static int32_t
add_up (void *data, const struct json_t *value)
{
  *(json_int_t *) data += json_integer_value (json_object_get (value, "n"));
  return COFFER_OK;
}

static int32_t
add_text (void *data, const void *bytes, size_t size)
{
  coffer_buffer_add (data, bytes, size);
  return COFFER_OK;
}

static int
say_lines (struct peer *p, int fd, const char *request, unsigned n)
{
  const char *text = p->data;

  (void) request;
  (void) n;
  peer_say (fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (; *text; text++) {
    char chunk[8] = { '1', '\r', '\n', *text, '\r', '\n' };

    peer_say (fd, chunk);
  }
  peer_say (fd, "0\r\n\r\n");
  return 0;
}

static void
json_comes_line_by_line (void **state)
{
  json_int_t sum = 0;
  struct coffer_http_json_lines lines = { .take = add_up, .data = &sum };
  struct coffer_http_request request = { .path = "/events" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  coffer_autobuffer struct coffer_buffer text = { 0 };
  struct coffer_http *http;

  (void) state;
  peer_begin (&peer, say_lines, "{\"n\":1}\n\r\n{\"n\":20}\r\n{\"n\":300}");
  http = client_new (&by_name);
  request.sink = coffer_http_json_lines;
  request.sink_data = &lines;
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_OK);
  assert_int_equal (sum, 21);
  assert_int_equal (coffer_http_json_lines_end (&lines), COFFER_OK);
  assert_int_equal (sum, 321);
  request.sink = add_text;
  request.sink_data = &text;
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_OK);
  assert_string_equal (text.data, "{\"n\":1}\n\r\n{\"n\":20}\r\n{\"n\":300}");
  peer.data = "{\"n\":1}\nno json\n";
  request.sink = coffer_http_json_lines;
  request.sink_data = &lines;
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_IO);
  coffer_http_json_lines_end (&lines);
  client_free (http);
}

/* ---- redirects ---- */

static int
redirect (struct peer *p, int fd, const char *request, unsigned n)
{
  char text[256];

  (void) request;
  snprintf (text, sizeof text, "HTTP/1.1 307 Go\r\nLocation: %s\r\n"
            "Content-Length: 3\r\n\r\nbye", (const char *) p->data);
  peer_say (fd, n == 1 ? text : OK_JSON);
  return 0;
}

static void
credentials_stay_with_their_origin (void **state)
{
  const char *const own[] = { "X-Api-Key: sesame-sesame", NULL };
  const char *const headers[] = { "Cookie: crumbs-crumbs", NULL };
  struct coffer_http_config config = by_name;
  struct coffer_http_request request = { .path = "/a", .headers = headers };
  static const struct {
    const char *location, *target;
    int same;
  } cases[] = {
    { "/b", NULL, 1 },
    { "b?x", NULL, 1 },
    { "http://SERVICE.invalid/b", NULL, 1 },
    { "http://service.invalid:81/b", "tcp:service.invalid:81", 0 },
    { "//other.invalid/b", "tcp:other.invalid:80", 0 },
    { "http://service.invalid.other.invalid/b",
      "tcp:service.invalid.other.invalid:80", 0 },
  };

  (void) state;
  config.headers = own;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };
    struct coffer_http *http;

    peer_begin (&peer, redirect, cases[i].location);
    http = client_new (&config);
    assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                      COFFER_OK);
    assert_int_equal (peer_requests (&peer), 2);
    assert_int_equal (strstr (peer_request (&peer, 1), "sesame") != NULL,
                      cases[i].same);
    assert_int_equal (strstr (peer_request (&peer, 1), "crumbs") != NULL,
                      cases[i].same);
    if (cases[i].target)
      assert_string_equal (peer_targets.items[1], cases[i].target);
    client_free (http);
  }
}

static void
redirects_are_followed_only_where_that_is_safe (void **state)
{
  struct coffer_http_request request = { .path = "/a" };
  struct coffer_http *http;
  static const struct {
    const char *method, *location;
    unsigned flags;
    int32_t code;
    unsigned requests;
  } cases[] = {
    { "POST", "/b", 0, COFFER_IO, 1 },
    { "GET", "/b", COFFER_HTTP_NO_REDIRECT, COFFER_IO, 1 },
    { "GET", "/b", COFFER_HTTP_NO_REDIRECT | COFFER_HTTP_ANY_STATUS,
      COFFER_OK, 1 },
    { "GET", "file:///etc/passwd", 0, COFFER_IO, 1 },
    { "GET", "unix:///run/x.sock", 0, COFFER_IO, 1 },
    { "GET", "http://u:p@other.invalid/", 0, COFFER_IO, 1 },
    { "HEAD", "/b", 0, COFFER_OK, 2 },
  };

  (void) state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    peer_begin (&peer, redirect, cases[i].location);
    if (strcmp (cases[i].method, "HEAD") == 0)
      peer.data = "/b\r\nConnection: close";
    http = client_new (&by_name);
    request.method = cases[i].method;
    request.flags = cases[i].flags;
    assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                      cases[i].code);
    assert_int_equal (peer_requests (&peer), cases[i].requests);
    client_free (http);
  }
}

static int
redirect_for_ever (struct peer *p, int fd, const char *request, unsigned n)
{
  (void) p;
  (void) request;
  (void) n;
  peer_say (fd, "HTTP/1.1 302 Go\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n");
  return 0;
}

static void
redirects_end (void **state)
{
  struct coffer_http_request request = { .path = "/a" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  struct coffer_http *http;

  (void) state;
  peer_begin (&peer, redirect_for_ever, NULL);
  http = client_new (&by_name);
  assert_int_equal (coffer_http_do (http, &host.call, &request, &reply),
                    COFFER_IO);
  assert_int_equal (peer_requests (&peer), 6);
  client_free (http);
}

/* ---- what is refused before anything is sent ---- */

static void
configurations_are_checked (void **state)
{
  const char *const header[] = { "X-A: b\r\nX-C: d", NULL };
  const char *const length[] = { "Content-Length: 1", NULL };
  const struct coffer_http_config wrong[] = {
    { .base = NULL }, { .base = "service.invalid" }, { .base = "ftp://x" },
    { .base = "http://" }, { .base = "http://x:0" }, { .base = "http://x:1x" },
    { .base = "http://x:65536" }, { .base = "http://a b" },
    { .base = "http://x\r\ny" }, { .base = "http://u:p@x" },
    { .base = "http://[::1" }, { .base = "http://[::g]" },
    { .base = "http://x/?q" }, { .base = "unix://relative" },
    { .base = "https://x.invalid", .insecure = 1 },
    { .base = "http://x", .proxy = "socks4://p" },
    { .base = "http://x", .proxy = "http://p:80/path" },
    { .base = "http://x", .headers = header },
    { .base = "http://x", .headers = length },
  };
  struct coffer_http *http;

  (void) state;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    fakehost_init (&host, HARNESS_PATIENCE_MS);
    http = (struct coffer_http *) &http;
    assert_int_equal (coffer_http_new (&host.call, &wrong[i], &http),
                      COFFER_INVALID);
    assert_null (http);
    assert_int_equal (host.failures, 1);
    fakehost_fini (&host);
  }
}

static void
requests_are_checked (void **state)
{
  const char *const header[] = { "X-A: b\nX-C: d", NULL };
  const char *const name[] = { "X A: b", NULL };
  const char *const coding[] = { "transfer-encoding: chunked", NULL };
  const struct coffer_http_request wrong[] = {
    { .path = NULL }, { .path = "x" }, { .path = "/a b" }, { .path = "/a#b" },
    { .path = "/a HTTP/1.1\r\nX: y" }, { .path = "/\xc3\xa9" },
    { .path = "/", .method = "GET /" }, { .path = "/", .method = "" },
    { .path = "/", .headers = header }, { .path = "/", .headers = name },
    { .path = "/", .headers = coding },
    { .path = "/", .bytes = "x", .body_from_fd = 1 },
    { .path = "/", .bytes = "x", .method = "HEAD" },
  };
  struct coffer_http *http;

  (void) state;
  peer_begin (&peer, say_data, OK_JSON);
  http = client_new (&by_name);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    coffer_autoreply struct coffer_http_reply reply = { 0 };

    assert_int_equal (coffer_http_do (http, &host.call, &wrong[i], &reply),
                      COFFER_INVALID);
    assert_non_null (reply.message);
    assert_int_equal (host.failures, 0);
    host.failures = 0;
  }
  assert_int_equal (peer_connections (&peer), 0);
  client_free (http);
}

static void
texts_are_encoded (void **state)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };

  (void) state;
  coffer_http_add_encoded (&text, "a-B_9.~/?&=+ %é");
  assert_string_equal (text.data,
                       "a-B_9.~%2F%3F%26%3D%2B%20%25%C3%A9");
}

/* ---- in a worker ---- */

/* Who connects there is another thread, as the host is another process. */
static int asks[2], answers[2];

static void *
connect_for_others (void *data)
{
  char one;
  int fd;

  while (read (asks[0], &one, 1) == 1) {
    fd = peer_dial (&peer, 0);
    if (write (answers[1], &fd, sizeof fd) != sizeof fd)
      abort ();
  }
  return data;
}

static int32_t
ask_for_connection (struct fakehost *h, const char *target)
{
  int fd = -COFFER_INTERNAL;

  (void) h;
  (void) target;
  if (write (asks[1], "x", 1) != 1
      || read (answers[0], &fd, sizeof fd) != sizeof fd)
    return -COFFER_INTERNAL;
  return fd;
}

static void *
ask_without_sockets (void *data)
{
  struct coffer_http_request request = { .path = "/a" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ALLOW);
  static const int never[] = {
    SCMP_SYS (socket), SCMP_SYS (connect), SCMP_SYS (bind), SCMP_SYS (listen)
  };
  int r = filter ? 0 : -1;

  for (size_t i = 0; r == 0 && i < sizeof never / sizeof never[0]; i++)
    r = seccomp_rule_add (filter, SCMP_ACT_ERRNO (EPERM), never[i], 0);
  if (r != 0 || seccomp_load (filter) != 0)
    return NULL;
  seccomp_release (filter);
  return coffer_http_do (data, &host.call, &request, &reply) == COFFER_OK
           ? data : NULL;
}

static void
a_worker_needs_no_sockets_of_its_own (void **state)
{
  struct coffer_http *http;
  pthread_t broker, worker;
  void *done = NULL;

  (void) state;
  peer_begin (&peer, say_data, OK_JSON);
  http = client_new (&by_name);
  assert_int_equal (pipe (asks) | pipe (answers), 0);
  host.connect = ask_for_connection;
  assert_int_equal (pthread_create (&broker, NULL, connect_for_others, NULL),
                    0);
  assert_int_equal (pthread_create (&worker, NULL, ask_without_sockets, http),
                    0);
  pthread_join (worker, &done);
  assert_ptr_equal (done, http);
  close (asks[1]);
  pthread_join (broker, NULL);
  close (asks[0]);
  close (answers[0]);
  close (answers[1]);
  client_free (http);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (json_goes_out_and_comes_back),
    cmocka_unit_test (one_connection_serves_many_requests),
    cmocka_unit_test (bodies_are_sent_from_descriptors),
    cmocka_unit_test (a_body_may_come_later_than_its_request),
    cmocka_unit_test (a_body_that_ends_too_early_is_no_request),
    cmocka_unit_test (bodies_go_to_descriptors_without_a_limit),
    cmocka_unit_test (a_reader_that_has_gone_ends_the_request),
    cmocka_unit_test (json_comes_line_by_line),
    cmocka_unit_test (credentials_stay_with_their_origin),
    cmocka_unit_test (redirects_are_followed_only_where_that_is_safe),
    cmocka_unit_test (redirects_end),
    cmocka_unit_test (configurations_are_checked),
    cmocka_unit_test (requests_are_checked),
    cmocka_unit_test (texts_are_encoded),
    cmocka_unit_test (a_worker_needs_no_sockets_of_its_own),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
