/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the daemon, against something behind a socket that answers
 * what the test says. */

#include <config.h>

#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "client/client.h"

/* Answers each connection with the same bytes once its request is there, and
 * keeps the last request. */
struct speaker {
  int listener;
  const char *reply;
  size_t size;
  char request[4096];
  size_t request_size;
  pthread_t thread;
  char *path;
};

static void
speak (struct speaker *speaker, int fd)
{
  size_t size = 0;
  ssize_t n;

  speaker->request[0] = '\0';
  while (!strstr (speaker->request, "\r\n\r\n")
         && (n = read (fd, speaker->request + size,
                       sizeof speaker->request - 1 - size)) > 0) {
    size += (size_t) n;
    speaker->request[size] = '\0';
  }
  speaker->request_size = size;
  coffer_write_all (fd, speaker->reply, speaker->size);
}

static void *
speaker_run (void *data)
{
  struct speaker *speaker = data;
  int fd;

  while ((fd = accept4 (speaker->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
    speak (speaker, fd);
    close (fd);
  }
  return NULL;
}

static int
speaker_begin (struct speaker *speaker, const char *folder)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };

  speaker->path = strdup (harness_path (folder, "serve.sock"));
  snprintf (address.sun_path, sizeof address.sun_path, "%s", speaker->path);
  unlink (speaker->path);
  speaker->listener = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind (speaker->listener, (struct sockaddr *) &address, sizeof address)
        < 0
      || listen (speaker->listener, 64) < 0)
    return -1;
  return pthread_create (&speaker->thread, NULL, speaker_run, speaker);
}

static void
speaker_end (struct speaker *speaker)
{
  shutdown (speaker->listener, SHUT_RDWR);
  pthread_join (speaker->thread, NULL);
  close (speaker->listener);
  unlink (speaker->path);
  free (speaker->path);
}

static int
ask (struct speaker *speaker, const char *reply, size_t size, json_t **out,
     struct error **err)
{
  const struct client_request request = {
    .method = "GET", .target = "/api/v1/sandboxes", .cancel_fd = -1,
    .deadline_ns = coffer_now_ns () + HARNESS_PATIENCE_NS
  };
  auto_client struct client *client = NULL;

  speaker->reply = reply;
  speaker->size = size;
  *out = NULL;
  if (client_open (speaker->path, &client, err) < 0)
    return -1;
  return client_call (client, &request, out, err);
}

#define OK "HTTP/1.1 200 OK\r\n"
#define PLAIN OK "Content-Type: application/json\r\nContent-Length: 7\r\n\r\n"\
  "{\"a\":1}"
#define CHUNKS OK "transfer-encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n"\
  "0\r\n\r\n"

static void
a_reply_is_read_in_either_form (void **state)
{
  static const char *const replies[] = { PLAIN, CHUNKS };
  struct speaker speaker = { 0 };
  size_t i;

  assert_int_equal (speaker_begin (&speaker, *state), 0);
  for (i = 0; i < 2; i++) {
    auto_error struct error *err = NULL;
    auto_json json_t *out = NULL;

    assert_int_equal (ask (&speaker, replies[i], strlen (replies[i]), &out,
                           &err), 0);
    assert_int_equal (json_integer_value (json_object_get (out, "a")), 1);
  }
  speaker_end (&speaker);
}

/* Whatever byte it is cut at: never a success, never a wait without end. */
static void
a_reply_cut_short_is_an_error (void **state)
{
  static const char *const replies[] = { PLAIN, CHUNKS };
  struct speaker speaker = { 0 };
  size_t i, size;

  assert_int_equal (speaker_begin (&speaker, *state), 0);
  for (i = 0; i < 2; i++)
    for (size = 0; size < strlen (replies[i]); size++) {
      auto_error struct error *err = NULL;
      auto_json json_t *out = NULL;

      assert_int_equal (ask (&speaker, replies[i], size, &out, &err), -1);
      assert_int_equal (err->number, E_CONNECT_FAILED);
      assert_null (out);
    }
  speaker_end (&speaker);
}

static void
what_is_not_http_is_refused (void **state)
{
  static const char *const replies[] = {
    "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\n{}",
    "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}",
    "HTTP/1.1 20x OK\r\nContent-Length: 2\r\n\r\n{}",
    OK "\r\n{}",
    OK "Content-Length: 2\nX: y\r\n\r\n{}",
    OK "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    OK "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    OK "Content-Length: -2\r\n\r\n{}",
    OK "Content-Length: +2\r\n\r\n{}",
    OK "Content-Length: 0x2\r\n\r\n{}",
    OK "Content-Length: 99999999999999999999\r\n\r\n{}",
    OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    OK "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\n\r\n",
    OK "Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n",
    OK "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}",
    OK "Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
    OK "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n",
    OK " X: folded\r\nContent-Length: 2\r\n\r\n{}",
    OK "no colon\r\nContent-Length: 2\r\n\r\n{}",
    OK "X: \x01\r\nContent-Length: 2\r\n\r\n{}",
  };
  struct speaker speaker = { 0 };
  size_t i;

  assert_int_equal (speaker_begin (&speaker, *state), 0);
  for (i = 0; i < sizeof replies / sizeof *replies; i++) {
    auto_error struct error *err = NULL;
    auto_json json_t *out = NULL;

    if (ask (&speaker, replies[i], strlen (replies[i]), &out, &err) != -1)
      print_message ("# taken: %s\n", replies[i]);
    assert_non_null (err);
    assert_int_equal (err->number, E_CONNECT_FAILED);
  }
  speaker_end (&speaker);
}

static void
a_head_without_end_is_refused (void **state)
{
  struct speaker speaker = { 0 };
  auto_free char *reply = malloc (1 << 20);
  auto_error struct error *err = NULL, *many = NULL;
  auto_json json_t *out = NULL;
  size_t i;

  assert_int_equal (speaker_begin (&speaker, *state), 0);
  memset (reply, 'x', 1 << 20);
  memcpy (reply, OK "X: ", strlen (OK "X: "));
  assert_int_equal (ask (&speaker, reply, 1 << 20, &out, &err), -1);
  assert_int_equal (err->number, E_CONNECT_FAILED);
  for (i = strlen (OK); i + 6 <= 1 << 20; i += 6)
    memcpy (reply + i, "X: y\r\n", 6);
  assert_int_equal (ask (&speaker, reply, i, &out, &many), -1);
  assert_int_equal (many->number, E_CONNECT_FAILED);
  speaker_end (&speaker);
}

#define ERROR_BODY "{\"error\":{\"code\":\"E2009\",\"name\":\"UNKNOWN_SANDBOX\","\
  "\"message\":\"no sandbox sb-1\",\"hint\":\"look\",\"retryable\":\"yes\","     \
  "\"details\":{\"id\":\"sb-1\"}}}"

static void
an_error_keeps_its_code (void **state)
{
  struct speaker speaker = { 0 };
  auto_error struct error *err = NULL, *unknown = NULL, *other = NULL;
  auto_json json_t *out = NULL;
  auto_free char *reply = NULL;
  static const char odd[] = "HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\n"
    "<p>no";
  static const char strange[] = "HTTP/1.1 500 x\r\nContent-Length: 46\r\n\r\n"
    "{\"error\":{\"code\":\"E7777\",\"message\":\"what is\"}}";

  assert_int_equal (speaker_begin (&speaker, *state), 0);
  assert_true (asprintf (&reply, "HTTP/1.1 404 Not Found\r\nContent-Length: "
                         "%zu\r\n\r\n%s", strlen (ERROR_BODY), ERROR_BODY)
               > 0);
  assert_int_equal (ask (&speaker, reply, strlen (reply), &out, &err), -1);
  assert_int_equal (err->number, E_UNKNOWN_SANDBOX);
  assert_string_equal (error_message (err), "no sandbox sb-1");
  assert_string_equal (error_next_step (err), "look");
  assert_int_equal (err->retryable, RETRY_YES);
  assert_string_equal (json_string_value (json_object_get (err->details,
                                                           "id")), "sb-1");
  assert_int_equal (ask (&speaker, odd, strlen (odd), &out, &other), -1);
  assert_int_equal (other->number, E_CONNECT_FAILED);
  assert_non_null (strstr (error_message (other), "413"));
  assert_int_equal (ask (&speaker, strange, strlen (strange), &out, &unknown),
                    -1);
  assert_int_equal (unknown->number, E_INTERNAL);
  speaker_end (&speaker);
}

static void
a_target_has_nothing_that_splits_it (void **state)
{
  auto_free char *target = client_target ("/api/v1/sandboxes/%s/files/%p?op=x",
                                          "../a b?c#d", "w/é%2F\n");

  (void) state;
  assert_string_equal (target, "/api/v1/sandboxes/..%2Fa%20b%3Fc%23d/files/"
                       "w/%C3%A9%252F%0A?op=x");
}

static void
a_streamed_body_goes_in_chunks (void **state)
{
  struct speaker speaker = { .reply = PLAIN, .size = strlen (PLAIN) };
  const struct client_request request = {
    .method = "PUT", .target = "/x", .streamed = 1, .cancel_fd = -1,
    .deadline_ns = coffer_now_ns () + HARNESS_PATIENCE_NS
  };
  auto_client_reply struct client_reply reply = { .fd = -1 };
  auto_client struct client *client = NULL;
  auto_error struct error *err = NULL;

  assert_int_equal (speaker_begin (&speaker, *state), 0);
  assert_int_equal (client_open (speaker.path, &client, &err), 0);
  assert_int_equal (client_begin (client, &request, &reply, &err), 0);
  /* Who answers early is not written to until the pipe breaks. */
  assert_true (client_send (&reply, VECTOR_BODY, strlen (VECTOR_BODY), &err)
               >= 0);
  assert_true (client_send (&reply, NULL, 0, &err) >= 0);
  assert_int_equal (client_push (&reply, 1, &err), 0);
  assert_int_equal (client_answered (&reply, &err), 0);
  assert_int_equal (reply.status, 200);
  speaker_end (&speaker);
  assert_non_null (strstr (speaker.request, "Transfer-Encoding: chunked"));
}

static void
without_a_daemon_there_is_none (void **state)
{
  struct place place = { .runtime = (char *) harness_path (*state, "run") };
  auto_client struct client *client = NULL;
  auto_error struct error *err = NULL, *named = NULL;
  struct speaker speaker = { .reply = PLAIN, .size = strlen (PLAIN) };
  auto_free char *stale = NULL;

  assert_int_equal (client_find (&place, &client, &err), 0);
  assert_null (client);
  assert_int_equal (mkdir (place.runtime, 0700), 0);
  assert_int_equal (client_find (&place, &client, &err), 0);
  assert_null (client);
  /* A socket that nobody listens at. */
  assert_int_equal (speaker_begin (&speaker, place.runtime), 0);
  stale = strdup (harness_path (place.runtime, "stale"));
  assert_int_equal (link (speaker.path, stale), 0);
  speaker_end (&speaker);
  assert_int_equal (rename (stale, harness_path (place.runtime,
                                                 "serve.sock")), 0);
  assert_int_equal (client_find (&place, &client, &err), 0);
  assert_null (client);
  assert_int_equal (client_open (harness_path (place.runtime, "serve.sock"),
                                 &client, &named), -1);
  assert_int_equal (named->number, E_CONNECT_FAILED);
  assert_int_equal (unlink (harness_path (place.runtime, "serve.sock")), 0);
  assert_int_equal (rmdir (place.runtime), 0);
}

static void
waiting_ends_with_the_deadline (void **state)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  coffer_autoclose int listener
    = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct client_request request = {
    .method = "GET", .target = "/x", .cancel_fd = -1,
    .deadline_ns = coffer_now_ns () + 50000000
  };
  auto_client_reply struct client_reply reply = { .fd = -1 };
  auto_client struct client *client = NULL;
  auto_error struct error *err = NULL;

  snprintf (address.sun_path, sizeof address.sun_path, "%s/silent",
            (char *) *state);
  assert_int_equal (bind (listener, (struct sockaddr *) &address,
                          sizeof address), 0);
  assert_int_equal (listen (listener, 8), 0);
  assert_int_equal (client_open (address.sun_path, &client, &err), 0);
  assert_int_equal (client_begin (client, &request, &reply, &err), -1);
  assert_int_equal (err->number, E_PROVIDER_TIMEOUT);
  unlink (address.sun_path);
}

/* A daemon that was stopped keeps its end open. */
static void
what_stops_in_the_middle_is_not_waited_for_for_ever (void **state)
{
  auto_error struct error *err = NULL;
  struct client_reply reply = { .left = 1000, .stall_ns = 200000000,
                                .cancel_fd = -1 };
  int ends[2];
  char bytes[24];

  (void) state;
  assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                    0);
  assert_int_equal (fcntl (ends[0], F_SETFL, O_NONBLOCK), 0);
  reply.fd = ends[0];
  reply.buffer = malloc (CLIENT_BUFFER);
  assert_int_equal (coffer_write_all (ends[1], "0123456789", 10), 10);
  assert_int_equal (client_read_all (&reply, bytes, 10, &err), 0);
  assert_int_equal (coffer_write_all (ends[1], "0123456789", 10), 10);
  assert_int_equal (client_read_all (&reply, bytes, sizeof bytes, &err), -1);
  assert_int_equal (err->number, E_PROVIDER_TIMEOUT);
  assert_int_equal (reply.deadline_ns, 0);
  client_reply_fini (&reply);
  close (ends[1]);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_reply_is_read_in_either_form),
    cmocka_unit_test (a_reply_cut_short_is_an_error),
    cmocka_unit_test (what_is_not_http_is_refused),
    cmocka_unit_test (a_head_without_end_is_refused),
    cmocka_unit_test (an_error_keeps_its_code),
    cmocka_unit_test (a_target_has_nothing_that_splits_it),
    cmocka_unit_test (a_streamed_body_goes_in_chunks),
    cmocka_unit_test (without_a_daemon_there_is_none),
    cmocka_unit_test (waiting_ends_with_the_deadline),
    cmocka_unit_test (what_stops_in_the_middle_is_not_waited_for_for_ever),
  };

  return cmocka_run_group_tests_name ("client", tests, harness_folder_new,
                                      harness_folder_free);
}
