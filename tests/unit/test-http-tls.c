/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/http's client and TLS: whoever is not who was asked for gets nothing. */

#define _GNU_SOURCE

#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <coffer/fd.h>
#include <coffer/http.h>

#include "fakehost.h"

extern char **environ;

enum { GOOD, OTHER, OLD, UNKNOWN, CLIENT, N_PORTS };

static char *folder;
static unsigned ports[N_PORTS];
static int port;                /* which of them the host connects to */
static pid_t peer;
static int peer_input = -1;
static struct fakehost host;

/* ---- the peer ---- */

static int
peer_spawn (int in[2], int out[2])
{
  const char *source = getenv ("COFFER_SOURCE");
  posix_spawn_file_actions_t actions;
  char script[4096];
  char python[] = "python3";
  char *const argv[] = { python, script, folder, NULL };
  int r;

  snprintf (script, sizeof script, "%s/tests/unit/http-tls-peer.py",
            source ? source : ".");
  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_adddup2 (&actions, in[0], 0);
  posix_spawn_file_actions_adddup2 (&actions, out[1], 1);
  r = posix_spawnp (&peer, "python3", &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy (&actions);
  return r;
}

static int
peer_start (void **state)
{
  int in[2], out[2], n;
  char line[128] = "";

  if (harness_folder_new (state) != 0)
    return -1;
  folder = *state;
  if (pipe2 (in, O_CLOEXEC) < 0 || pipe2 (out, O_CLOEXEC) < 0
      || peer_spawn (in, out) != 0)
    return -1;
  close (in[0]);
  close (out[1]);
  peer_input = in[1];
  for (size_t i = 0; i + 1 < sizeof line && !strchr (line, '\n'); i++)
    if (read (out[0], line + i, 1) != 1)
      return -1;
  close (out[0]);
  n = sscanf (line, "%u %u %u %u %u", &ports[0], &ports[1], &ports[2],
              &ports[3], &ports[4]);
  return n == N_PORTS ? 0 : -1;
}

static int
peer_stop (void **state)
{
  close (peer_input);
  waitpid (peer, NULL, 0);
  return harness_folder_free (state);
}

static int32_t
dial (struct fakehost *h, const char *target)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET,
                            .sin_port = htons ((uint16_t) ports[port]),
                            .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  (void) h;
  (void) target;
  if (connect (fd, (struct sockaddr *) &v4, sizeof v4) < 0)
    abort ();
  return fd;
}

static char *
text_of (const char *name)
{
  coffer_autoclose int fd = open (harness_path (folder, name),
                                  O_RDONLY | O_CLOEXEC);
  char *text = NULL;

  assert_int_equal (coffer_read_whole (fd, 65536, &text, NULL), 0);
  return text;
}

static struct coffer_http *
client_new (int to, const struct coffer_http_config *config)
{
  struct coffer_http *http;

  port = to;
  fakehost_init (&host, HARNESS_PATIENCE_MS);
  host.connect = dial;
  assert_int_equal (coffer_http_new (&host.call, config, &http), COFFER_OK);
  return http;
}

static int32_t
ask (int to, const struct coffer_http_config *config, const char *path,
     struct coffer_http_reply *reply)
{
  struct coffer_http_request request = { .path = path };
  struct coffer_http *http = client_new (to, config);
  int32_t code = coffer_http_do (http, &host.call, &request, reply);

  coffer_http_free (http);
  fakehost_fini (&host);
  return code;
}

/* ---- who is believed ---- */

static void
only_who_was_asked_for_is_believed (void **state)
{
  const char *ca = harness_path (folder, "ca.pem");
  const struct coffer_http_config config = {
    .base = "https://service.invalid", .ca = ca,
  };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  assert_int_equal (ask (GOOD, &config, "/", &reply), COFFER_OK);
  assert_string_equal (reply.body, "client 0");
  for (int to = OTHER; to <= UNKNOWN; to++) {
    assert_int_equal (ask (to, &config, "/", &reply), COFFER_UNAVAILABLE);
    assert_int_equal (reply.retryable, COFFER_RETRY_NO);
    assert_non_null (strstr (reply.message, "SSL"));
  }
}

static void
a_ca_may_be_given_as_text (void **state)
{
  char *ca = text_of ("ca.pem");
  const struct coffer_http_config config = {
    .base = "https://service.invalid", .ca = ca,
  };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  assert_int_equal (ask (GOOD, &config, "/", &reply), COFFER_OK);
  assert_int_equal (ask (UNKNOWN, &config, "/", &reply), COFFER_UNAVAILABLE);
  free (ca);
}

static void
without_a_ca_the_systems_are_asked (void **state)
{
  const struct coffer_http_config config
    = { .base = "https://service.invalid" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  assert_int_equal (ask (GOOD, &config, "/", &reply), COFFER_UNAVAILABLE);
}

/* Only of this machine, where nothing else could answer. */
static void
anybody_is_believed_when_that_was_said (void **state)
{
  const struct coffer_http_config config
    = { .base = "https://localhost", .insecure = 1 };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  assert_int_equal (ask (UNKNOWN, &config, "/", &reply), COFFER_OK);
}

static void
clients_have_certificates_too (void **state)
{
  char *key = text_of ("client.key"), *certificate = text_of ("client.pem");
  const char *ca = harness_path (folder, "ca.pem");
  const struct coffer_http_config none = {
    .base = "https://service.invalid", .ca = ca,
  };
  const struct coffer_http_config paths = {
    .base = "https://service.invalid", .ca = ca,
    .certificate = harness_path (folder, "client.pem"),
    .key = harness_path (folder, "client.key"),
  };
  const struct coffer_http_config texts = {
    .base = "https://service.invalid", .ca = ca,
    .certificate = certificate, .key = key,
  };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  assert_int_not_equal (ask (CLIENT, &none, "/", &reply), COFFER_OK);
  assert_int_equal (ask (CLIENT, &paths, "/", &reply), COFFER_OK);
  assert_string_equal (reply.body, "client 1");
  assert_int_equal (ask (CLIENT, &texts, "/", &reply), COFFER_OK);
  free (key);
  free (certificate);
}

/* As openssl x509 -text and pkcs12 write them. */
static void
words_may_stand_before_a_certificate (void **state)
{
  char *texts[3] = { text_of ("ca.pem"), text_of ("client.pem"),
                     text_of ("client.key") };
  char *worded[3] = { NULL };
  struct coffer_http_config config = { .base = "https://service.invalid" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  for (size_t i = 0; i < 3; i++)
    assert_true (asprintf (&worded[i], "Bag Attributes\n    friendlyName: x\n%s",
                           texts[i]) > 0);
  config.ca = worded[0];
  config.certificate = worded[1];
  config.key = worded[2];
  assert_int_equal (ask (CLIENT, &config, "/", &reply), COFFER_OK);
  assert_string_equal (reply.body, "client 1");
  for (size_t i = 0; i < 3; i++) {
    free (worded[i]);
    free (texts[i]);
  }
}

static void
no_redirect_leads_out_of_tls (void **state)
{
  const char *ca = harness_path (folder, "ca.pem");
  const struct coffer_http_config config = {
    .base = "https://service.invalid", .ca = ca,
  };
  coffer_autoreply struct coffer_http_reply reply = { 0 };

  (void) state;
  assert_int_equal (ask (GOOD, &config, "/plain", &reply), COFFER_DENIED);
}

/* ---- streams ---- */

/* More than the buffers on the way hold, both ways at once, and then its end. */
static void
a_stream_ends_in_halves (void **state)
{
  const char *ca = harness_path (folder, "ca.pem");
  const struct coffer_http_config config = {
    .base = "https://service.invalid", .ca = ca,
  };
  struct coffer_http_request request = { .path = "/x", .method = "POST" };
  coffer_autoreply struct coffer_http_reply reply = { 0 };
  const size_t size = 4 << 20;
  struct coffer_http *http = client_new (GOOD, &config);
  coffer_autobuffer struct coffer_buffer heard = { 0 };
  coffer_autoclose int fd = -1;
  char *body = malloc (size), bytes[65536];
  size_t sent = 0;
  ssize_t n = 1;

  (void) state;
  memset (body, 'x', size);
  assert_int_equal (coffer_http_upgrade (http, &host.call, "tcp", &request,
                                         &reply, &fd), COFFER_OK);
  while (n != 0) {
    struct pollfd p = { fd, (short) (POLLIN | (sent < size ? POLLOUT : 0)),
                        0 };

    assert_int_equal (poll (&p, 1, HARNESS_PATIENCE_MS), 1);
    if (p.revents & POLLOUT && sent < size) {
      n = send (fd, body + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      sent += n > 0 ? (size_t) n : 0;
      if (sent == size)
        assert_int_equal (shutdown (fd, SHUT_WR), 0);
    }
    n = 1;
    if (p.revents & POLLIN) {
      n = recv (fd, bytes, sizeof bytes, MSG_DONTWAIT);
      assert_true (n >= 0);
      coffer_buffer_add (&heard, bytes, (size_t) n);
    }
  }
  assert_int_equal (heard.size, 5 + size + strlen ("bye 4194304"));
  assert_memory_equal (heard.data, "early", 5);
  assert_memory_equal (heard.data + 5, body, size);
  assert_string_equal (heard.data + 5 + size, "bye 4194304");
  free (body);
  coffer_http_free (http);
  fakehost_fini (&host);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (only_who_was_asked_for_is_believed),
    cmocka_unit_test (a_ca_may_be_given_as_text),
    cmocka_unit_test (without_a_ca_the_systems_are_asked),
    cmocka_unit_test (anybody_is_believed_when_that_was_said),
    cmocka_unit_test (clients_have_certificates_too),
    cmocka_unit_test (words_may_stand_before_a_certificate),
    cmocka_unit_test (no_redirect_leads_out_of_tls),
    cmocka_unit_test (a_stream_ends_in_halves),
  };

  return cmocka_run_group_tests (tests, peer_start, peer_stop);
}
