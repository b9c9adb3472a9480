/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch and its parts, with modules in this process: redaction, public
 * errors, targets of connections, the loader. */

#include "config.h"

#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/un.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider-fixture.h"
#include "provider/broker.h"
#include "provider/gate.h"
#include "provider/journal.h"
#include "provider/loader.h"
#include "provider/outcome.h"
#include "provider/redact.h"

/* ---- redaction ------------------------------------------------------------ */

static void
assert_hidden (const char *secret, const char *text, const char *want)
{
  char *secrets[2] = { (char *) secret, NULL };
  struct redactor *redactor;
  char *copy = strdup (text);
  size_t skipped;

  assert_int_equal (redactor_new (secrets, &redactor, &skipped, NULL), 0);
  redact_text (redactor, copy);
  assert_string_equal (copy, want);
  redactor_free (redactor);
  free (copy);
}

static void
secrets_are_hidden_in_each_form (void **state)
{
  (void) state;
  assert_hidden ("hunter2hunter2", "a hunter2hunter2, hunter2hunter2b",
                 "a [hidden], [hidden]b");
  assert_hidden ("a b/c+d?e", "x=a%20b%2Fc%2Bd%3Fe&y", "x=[hidden]&y");
  assert_hidden ("a b/c+d?e", "x=a%20b%2fc%2bd%3fe&y", "x=[hidden]&y");
  assert_hidden ("a b/c+d?e", "x=a+b%2Fc%2Bd%3Fe&y", "x=[hidden]&y");
  assert_hidden ("hunter2hunter2", "hunter2 hunter 2", "hunter2 hunter 2");
  assert_hidden ("12345678", "12345678", "[hidden]");
  assert_hidden ("say \"no\"\\/caf\303\251",
                 "{\"k\":\"say \\\"no\\\"\\\\/caf\303\251\"}",
                 "{\"k\":\"[hidden]\"}");
  assert_hidden ("say \"no\"\\/caf\303\251",
                 "{\"k\":\"say \\\"no\\\"\\\\\\/caf\\u00E9\"}",
                 "{\"k\":\"[hidden]\"}");
  assert_hidden ("caf\303\251-\303\240-la", "\"caf\\u00e9-\\u00e0-la\"",
                 "\"[hidden]\"");
  assert_hidden ("first-line\nsecond-line\r\n", "{\"k\":\"first-line\\nsecond-"
                 "line\\r\\n\"}", "{\"k\":\"[hidden]\"}");
  assert_hidden ("first-line\nsecond-line\r\n", "read: second-line",
                 "read: [hidden]");
}

/* Of a secret that begins with another nothing is left behind it. */
static void
longer_secrets_are_hidden_first (void **state)
{
  char *secrets[] = { (char *) "password", (char *) "password-of-root", NULL };
  struct redactor *redactor;
  char text[] = "password-of-root password";
  size_t skipped;

  (void) state;
  assert_int_equal (redactor_new (secrets, &redactor, &skipped, NULL), 0);
  redact_text (redactor, text);
  assert_string_equal (text, "[hidden] [hidden]");
  redactor_free (redactor);
}

/* Whatever stands before and behind it, no eight characters of its base64
 * that are its own are left. */
static void
secrets_are_hidden_in_base64_wherever_they_lie (void **state)
{
  static const char secret[] = "sk-\xc3\xa9\xff?>0123456789";
  size_t before, behind;

  (void) state;
  for (before = 0; before < 7; before++)
    for (behind = 0; behind < 4; behind++) {
      char *secrets[2] = { (char *) secret, NULL };
      auto_free char *plain = text_printf ("%.*s%s%.*s", (int) before,
                                           "abcdefg", secret, (int) behind,
                                           "xyz");
      auto_free char *text = text_base64_encode (plain, strlen (plain));
      struct redactor *redactor;
      size_t skipped, left;

      redactor_new (secrets, &redactor, &skipped, NULL);
      redact_text (redactor, text);
      assert_non_null (strstr (text, "[hidden]"));
      /* What is left around it: at most the neighbours and an edge. */
      left = strlen (text) - strlen ("[hidden]");
      assert_true (left <= (before + behind + 2) * 4 / 3 + 6);
      redactor_free (redactor);
    }
}

static void
short_secrets_are_counted_and_left (void **state)
{
  char *secrets[] = { (char *) "short", (char *) "longenough", NULL };
  struct redactor *redactor;
  char text[] = "short longenough";
  size_t skipped;

  (void) state;
  assert_int_equal (redactor_new (secrets, &redactor, &skipped, NULL), 0);
  assert_int_equal (skipped, 1);
  redact_text (redactor, text);
  assert_string_equal (text, "short [hidden]");
  redactor_free (redactor);
}

static void
json_is_redacted_with_its_keys (void **state)
{
  char *secrets[] = { (char *) "hunter2hunter2", NULL };
  struct redactor *redactor;
  size_t skipped;
  json_t *json = json_pack ("{s:[s, {s:i}], s:b}", "a", "x hunter2hunter2",
                            "hunter2hunter2", 1, "c", 1);
  json_t *clean;
  char *text;

  (void) state;
  redactor_new (secrets, &redactor, &skipped, NULL);
  clean = redact_json (redactor, json);
  text = json_dumps (clean, JSON_COMPACT);
  assert_string_equal (text,
                       "{\"a\":[\"x [hidden]\",{\"[hidden]\":1}],\"c\":true}");
  free (text);
  json_decref (json);
  json_decref (clean);
  redactor_free (redactor);
}

/* ---- public errors -------------------------------------------------------- */

static int
error_of (const char *operation, int32_t code)
{
  struct manifest manifest = { .id = (char *) "p",
                               .isolation_kind = (char *) "namespaces" };
  struct outcome outcome = { .code = code,
                             .retryable = COFFER_RETRY_DEFAULT };
  struct error *error = NULL;
  int number = 0;

  if (outcome_error (&outcome, &manifest,
                     contract_op_by_name (contract_builtin (), operation),
                     &error) < 0)
    number = error->number;
  error_free (error);
  return number;
}

static void
codes_map_by_family (void **state)
{
  static const struct {
    const char *operation;
    int32_t code;
    int number;
  } table[] = {
    { "sandbox_info", COFFER_OK, 0 },
    { "sandbox_info", COFFER_NOT_FOUND, E_UNKNOWN_SANDBOX },
    { "sandbox_create", COFFER_INVALID, E_SANDBOX_SPEC },
    { "sandbox_create", COFFER_UNAVAILABLE, E_ISOLATION_UNAVAILABLE },
    { "sandbox_create", COFFER_EXISTS, E_SANDBOX_EXISTS },
    { "sandbox_pause", COFFER_CONFLICT, E_SANDBOX_STATE },
    { "exec_start", COFFER_NOT_FOUND, E_UNKNOWN_SANDBOX },
    { "exec_wait", COFFER_NOT_FOUND, E_EXEC_UNKNOWN },
    { "exec_signal", COFFER_NOT_FOUND, E_EXEC_UNKNOWN },
    { "exec_start", COFFER_UNAVAILABLE, E_PROVIDER_FAILED },
    { "file_read", COFFER_NOT_FOUND, E_FILE_NOT_FOUND },
    { "file_read", COFFER_DENIED, E_FILE_DENIED },
    { "file_write", COFFER_EXISTS, E_FILE_EXISTS },
    { "file_write", COFFER_LIMIT, E_FILE_SPACE },
    { "file_remove", COFFER_CONFLICT, E_FILE_KIND },
    { "archive_export", COFFER_NOT_FOUND, E_FILE_NOT_FOUND },
    { "port_dial", COFFER_NOT_FOUND, E_UNKNOWN_SANDBOX },
    { "snapshot_delete", COFFER_NOT_FOUND, E_NOT_FOUND },
    { "metrics", COFFER_UNSUPPORTED, E_CAPABILITY },
    { "metrics", COFFER_UNAUTHENTICATED, E_CREDENTIALS_INVALID },
    { "metrics", COFFER_DENIED, E_DENIED },
    { "metrics", COFFER_BUSY, E_BUSY },
    { "metrics", COFFER_LIMIT, E_LIMIT },
    { "metrics", COFFER_TIMEOUT, E_PROVIDER_TIMEOUT },
    { "metrics", COFFER_CANCELLED, E_EXEC_CANCELLED },
    { "metrics", COFFER_IO, E_PROVIDER_FAILED },
    { "metrics", COFFER_INTERNAL, E_PROVIDER_FAILED },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++)
    if (error_of (table[i].operation, table[i].code) != table[i].number)
      fail_msg ("%s %d: E%d", table[i].operation, (int) table[i].code,
                error_of (table[i].operation, table[i].code));
}

static void
messages_are_one_bounded_line (void **state)
{
  struct outcome outcome = { .code = 0 };
  char large[10000];

  (void) state;
  outcome_fail (&outcome, COFFER_IO, COFFER_RETRY_NO,
                "two\nlines \x1b[31m\xff", "[1]");
  assert_null (strchr (outcome.message, '\n'));
  assert_null (strchr (outcome.message, '\x1b'));
  assert_true (text_is_utf8 (outcome.message, strlen (outcome.message)));
  assert_null (outcome.details);
  memset (large, 'x', sizeof large - 1);
  large[sizeof large - 1] = '\0';
  outcome_fail (&outcome, COFFER_IO, COFFER_RETRY_NO, large, large);
  assert_true (strlen (outcome.message) <= OUTCOME_MAX_MESSAGE);
  assert_null (outcome.details);
  outcome_fini (&outcome);
}

/* ---- targets -------------------------------------------------------------- */

static void
targets_have_one_form (void **state)
{
  static const char *const good[][2] = {
    { "tcp:example.org:443", "example.org" },
    { "tcp:Example.ORG.:443", "example.org" },
    { "tcp:[::1]:443", "::1" },
    { "tcp:127.0.0.1:443", "127.0.0.1" },
  };
  static const char *const bad[] = {
    "", "tcp:", "tcp:a", "tcp:a:", "tcp:a:0", "tcp:a:65536", "tcp:a:+80",
    "tcp::80", "tcp:a b:80", "tcp:a%2e:80", "tcp:user@a:80", "tcp:a..b:80",
    "tcp:[::1:80", "tcp:[::1]80", "tcp:a\n:80", "udp:a:80", "a:80",
    "unix:relative", "unix:/a/../b", "unix:", "config:", "config:missing",
    "tcp:b\xc3\xa9:80", "tcp:a/b:80",
  };
  static char *const config[] = { (char *) "other=1", NULL };
  struct broker_target target;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_int_equal (broker_parse (good[i][0], config, &target, NULL), 0);
    assert_string_equal (target.host, good[i][1]);
    assert_int_equal (target.port, 443);
  }
  for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
    if (broker_parse (bad[i], config, &target, NULL) == 0)
      fail_msg ("accepted: %s", bad[i]);
  assert_int_equal (broker_parse (NULL, config, &target, NULL), -1);
}

static int
allows (char *const *connect, const char *target)
{
  static struct manifest_config keys[] = { { .key = (char *) "url",
                                             .type = CONFIG_URL },
                                           { .key = (char *) "name",
                                             .type = CONFIG_TEXT },
                                           { .key = (char *) "proxy",
                                             .type = CONFIG_PROXY } };
  static char *const config[] = { (char *) "url=https://API.example.org/v1?x",
                                  (char *) "name=http://text.example.org",
                                  (char *) "proxy=socks5h://a:b@P.example.org",
                                  NULL };
  struct manifest manifest = { .n_config = 3, .config = keys,
                               .permissions.connect = (char **) connect };
  struct broker_target parsed;

  return broker_parse (target, config, &parsed, NULL) == 0
         && broker_allows (&manifest, config, &parsed);
}

static void
permissions_grant_what_they_name (void **state)
{
  static char *const names[] = { (char *) "api.example.org:443",
                                 (char *) "*.example.net:80",
                                 (char *) "unix:/run/x.sock", NULL };
  static char *const config[] = { (char *) "config", NULL };
  static char *const numbers[] = { (char *) "*.0.0.1:80", NULL };

  (void) state;
  assert_true (allows (names, "tcp:API.example.org:443"));
  assert_false (allows (names, "tcp:api.example.org:80"));
  assert_false (allows (names, "tcp:xapi.example.org:443"));
  assert_false (allows (names, "tcp:api.example.org.evil:443"));
  assert_true (allows (names, "tcp:a.example.net:80"));
  assert_true (allows (names, "tcp:a.b.example.net:80"));
  assert_false (allows (names, "tcp:example.net:80"));
  assert_false (allows (names, "tcp:aexample.net:80"));
  assert_true (allows (numbers, "tcp:x.0.0.1:80"));
  assert_false (allows (numbers, "tcp:127.0.0.1:80"));
  assert_true (allows (names, "unix:/run/x.sock"));
  assert_false (allows (names, "unix:/run/y.sock"));
  assert_true (allows (config, "config:url"));
  assert_true (allows (config, "tcp:api.example.org:443"));
  assert_false (allows (config, "tcp:api.example.org:80"));
  assert_false (allows (config, "tcp:text.example.org:80"));
  assert_true (allows (config, "tcp:p.example.org:1080"));
  assert_false (allows (config, "tcp:p.example.org:80"));
  assert_false (allows (NULL, "config:url"));
  assert_false (allows (NULL, "tcp:api.example.org:443"));
}

static int
may_lead (const char *address, int loopback)
{
  struct sockaddr_in v4 = { .sin_family = AF_INET };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
  void *whole = strchr (address, ':') ? (void *) &v6 : (void *) &v4;

  assert_int_equal (inet_pton (whole == &v6 ? AF_INET6 : AF_INET, address,
                               whole == &v6 ? (void *) &v6.sin6_addr
                                            : (void *) &v4.sin_addr), 1);
  return broker_name_may_lead (whole, loopback);
}

static void
a_name_leads_to_no_place_of_this_machine (void **state)
{
  static const char *const never[] = {
    "169.254.169.254", "169.254.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1",
    "255.255.255.255", "240.0.0.1", "::", "fe80::1", "febf::1", "ff02::1",
    "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254",
    "::169.254.169.254",
  };
  static const char *const local[] = { "127.0.0.1", "127.8.9.1", "::1",
                                       "::ffff:127.0.0.1" };
  static const char *const good[] = { "10.0.0.1", "192.168.1.1", "8.8.8.8",
                                      "169.253.1.1", "2001:db8::1",
                                      "fd00:1::254", "::ffff:8.8.8.8" };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof never / sizeof never[0]; i++)
    if (may_lead (never[i], 0) || may_lead (never[i], 1))
      fail_msg ("%s", never[i]);
  for (i = 0; i < sizeof local / sizeof local[0]; i++)
    if (may_lead (local[i], 0) || !may_lead (local[i], 1))
      fail_msg ("%s", local[i]);
  for (i = 0; i < sizeof good / sizeof good[0]; i++)
    if (!may_lead (good[i], 0))
      fail_msg ("%s", good[i]);
}

/* A listening socket at `path`. */
static int
listen_at (const char *path)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  assert_true (strlen (path) < sizeof address.sun_path);
  strcpy (address.sun_path, path);
  assert_int_equal (bind (fd, (struct sockaddr *) (void *) &address,
                          sizeof address), 0);
  assert_int_equal (listen (fd, 4), 0);
  return fd;
}

/* 0 or the error's number. */
static int
connects_to (char **write, const char *dir, const char *name)
{
  auto_free char *grant = text_printf ("unix:%s/%s", dir, name);
  char *connect[] = { grant, NULL };
  struct manifest manifest = { .permissions = { .connect = connect,
                                                .write = write } };
  auto_error struct error *error = NULL;
  int fd = broker_connect (&manifest, NULL, grant,
                           coffer_now_ns () + HARNESS_PATIENCE_NS, -1, &error);

  if (fd >= 0)
    close (fd);
  return fd >= 0 ? 0 : error->number;
}

static void
a_provider_leads_the_host_to_no_other_socket (void **state)
{
  char dir[] = "/tmp/coffer-unit-XXXXXX";
  auto_free char *theirs = NULL, *file = NULL, *path = NULL, *made = NULL;
  char *write[2] = { NULL, NULL };
  void *gone = dir;
  int fd;

  (void) state;
  assert_non_null (mkdtemp (dir));
  theirs = text_printf ("%s/theirs", dir);
  file = text_printf ("%s/plain", theirs);
  path = text_printf ("%s/sock", dir);
  made = text_printf ("%s/link", theirs);
  write[0] = theirs;
  assert_int_equal (mkdir (theirs, 0700), 0);
  fd = listen_at (path);
  assert_int_equal (symlink ("../sock", made), 0);
  assert_int_equal (connects_to (write, dir, "sock"), 0);
  assert_int_equal (connects_to (write, dir, "theirs/link"),
                    E_CONNECT_DENIED);
  assert_int_equal (connects_to (NULL, dir, "theirs/link"), 0);
  assert_int_equal (unlink (made), 0);
  assert_int_equal (symlink (dir, made), 0);
  assert_int_equal (connects_to (write, dir, "theirs/link/sock"),
                    E_CONNECT_DENIED);
  close (open (file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  assert_int_equal (connects_to (write, dir, "theirs/plain"),
                    E_CONNECT_FAILED);
  assert_int_equal (connects_to (write, dir, "none"), E_CONNECT_FAILED);
  assert_int_equal (connects_to (write, dir, "theirs"), E_CONNECT_FAILED);
  close (fd);
  unlink (file);
  unlink (made);
  unlink (path);
  rmdir (theirs);
  assert_int_equal (rmdir (gone), 0);
}

/* ---- the gate, the journal ------------------------------------------------ */

static void
the_gate_counts_and_waits (void **state)
{
  struct gate gate;
  int cancel = eventfd (1, EFD_CLOEXEC);
  int64_t soon = coffer_now_ns () + 30000000;

  (void) state;
  assert_int_equal (gate_init (&gate, 1, 2), 0);
  assert_int_equal (gate_enter (&gate, 0, soon, -1), COFFER_OK);
  assert_int_equal (gate_enter (&gate, 0, soon, -1), COFFER_TIMEOUT);
  assert_int_equal (gate_enter (&gate, 0, INT64_MAX, cancel),
                    COFFER_CANCELLED);
  assert_int_equal (gate_enter (&gate, 1, soon, -1), COFFER_OK);
  assert_int_equal (gate_enter (&gate, 1, coffer_now_ns () + 10000000, -1),
                    COFFER_TIMEOUT);
  gate_leave (&gate, 1);
  gate_leave (&gate, 0);
  assert_int_equal (gate_enter (&gate, 0, coffer_now_ns () + 1000000000, -1),
                    COFFER_OK);
  gate_leave (&gate, 0);
  gate_fini (&gate);
  close (cancel);
}

/* What a reader has who joins the lines. */
static void
join_lines (const char *secret, const char *const *lines, char *out,
            size_t size)
{
  char *const secrets[] = { (char *) secret, NULL };
  struct redact_tail tail = { NULL, 0 }, *tails[] = { &tail };
  struct redactor *redactor;
  size_t skipped;

  assert_int_equal (redactor_new (secrets, &redactor, &skipped, NULL), 0);
  *out = '\0';
  for (; *lines; lines++) {
    char *line = strdup (*lines);
    redact_next (redactor, tails, 1, line);
    assert_true (strlen (line) <= strlen (*lines));
    assert_true (strlen (out) + strlen (line) < size);
    strcat (out, line);
    free (line);
  }
  redact_tail_fini (&tail);
  redactor_free (redactor);
}

static void
a_secret_in_pieces_is_hidden (void **state)
{
  static const char secret[] = "sk-live/0123456789+abc def";
  const char *lines[64] = { NULL };
  char pieces[64][32], out[256], *tail;
  size_t at, size, n;

  (void) state;
  /* Two pieces, wherever the cut is, and all pieces of one size. */
  for (at = 1; at < sizeof secret - 1; at++) {
    snprintf (pieces[0], sizeof pieces[0], "a %.*s", (int) at, secret);
    snprintf (pieces[1], sizeof pieces[1], "%s z", secret + at);
    lines[0] = pieces[0], lines[1] = pieces[1], lines[2] = NULL;
    join_lines (secret, lines, out, sizeof out);
    assert_null (strstr (out, secret));
    assert_null (strstr (out, "0123456789"));
    tail = out + strlen (out) - 2;
    assert_string_equal (tail, " z");
    assert_memory_equal (out, "a ", 2);
  }
  for (size = 1; size < 12; size++) {
    for (n = 0, at = 0; at < sizeof secret - 1; at += size)
      snprintf (pieces[n], sizeof pieces[n], "%.*s", (int) size, secret + at),
        lines[n] = pieces[n], n++;
    lines[n] = NULL;
    join_lines (secret, lines, out, sizeof out);
    assert_null (strstr (out, "live"));
    assert_null (strstr (out, "0123"));
    assert_null (strstr (out, "def"));
  }
}

static void
what_is_no_secret_stays_in_pieces (void **state)
{
  static const char *const lines[] = { "ask", "sk-", "sk-live", "sk-livX",
                                       "", "one sk-live/0123456789+abc def.",
                                       NULL };
  char out[256];

  (void) state;
  join_lines ("sk-live/0123456789+abc def", lines, out, sizeof out);
  assert_string_equal (out, "asksk-*******sk-livXone [hidden].");
}

static void
the_journal_keeps_the_last_lines (void **state)
{
  struct journal journal;
  uint64_t mark, dropped;
  char line[32];
  json_t *lines;
  int i, kept = 0;

  (void) state;
  journal_init (&journal);
  journal_add (&journal, "before");
  mark = journal_mark (&journal);
  for (i = 0; i < 3; i++) {
    snprintf (line, sizeof line, "line %d", i);
    journal_add (&journal, line);
  }
  lines = journal_since (&journal, mark);
  assert_int_equal (json_array_size (lines), 3);
  assert_string_equal (json_string_value (json_array_get (lines, 0)),
                       "line 0");
  json_decref (lines);
  for (i = 0; i < 5000; i++)
    if (journal_admit (&journal, &dropped)) {
      journal_add (&journal, "flood");
      kept++;
    }
  assert_in_range (kept, JOURNAL_BURST - 10, 2 * JOURNAL_BURST + 10);
  lines = journal_since (&journal, mark);
  assert_int_equal (json_array_size (lines), JOURNAL_LINES);
  json_decref (lines);
  journal_fini (&journal);
}

/* ---- in this process ------------------------------------------------------ */

static struct fixture *
start (const struct fixture_spec *spec)
{
  struct fixture *fixture = fixture_new (spec);
  struct error *error = NULL;

  if (fixture_open (fixture, PROVIDER_IN_PROCESS, &error) != 0)
    fail_msg ("open: E%d %s", error->number, error_message (error));
  return fixture;
}

static void
both_ways_of_running_look_the_same (void **state)
{
  static const struct {
    const char *word;
    int number;
    const char *value;
  } table[] = {
    { "ok:x", 0, "x" },
    { "progress:y", 0, "1 of 2 y" },
    { "unknown_record", E_PROVIDER_PROTOCOL, NULL },
    { "bad_text", E_PROVIDER_PROTOCOL, NULL },
    { "short_record", E_PROVIDER_PROTOCOL, NULL },
    { "code:999", E_PROVIDER_FAILED, NULL },
    { "code:5", E_UNKNOWN_SANDBOX, NULL },
    { "fail:13", E_PROVIDER_FAILED, NULL },
    { "connect:tcp:127.0.0.1:1", 0, "code 4" },
    { "nonsense", E_UNKNOWN_SANDBOX, NULL },
  };
  enum provider_mode mode;
  size_t i;

  (void) state;
  for (mode = PROVIDER_WORKER; mode <= PROVIDER_IN_PROCESS; mode++) {
    struct fixture *fixture = fixture_new (&(struct fixture_spec){
      .module = "hostile" });
    assert_int_equal (fixture_open (fixture, mode, NULL), 0);
    assert_int_equal (provider_worker_pid (fixture->provider) > 0,
                      mode == PROVIDER_WORKER);
    for (i = 0; i < sizeof table / sizeof table[0]; i++) {
      struct heard heard = { .facts = 0 };
      int number = fixture_say (fixture, table[i].word, 5000, -1, &heard,
                                NULL);
      if (number != table[i].number
          || (table[i].value && strcmp (heard.value, table[i].value) != 0))
        fail_msg ("%s in mode %d: E%d, %s", table[i].word, (int) mode, number,
                  heard.value);
    }
    fixture_free (fixture);
  }
}

static void
a_sink_ends_a_call_here_too (void **state)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile" });
  struct heard heard = { .stop_after = 2 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "emits:1000000", 5000, -1, &heard,
                                 NULL), E_EXEC_CANCELLED);
  assert_int_equal (heard.facts, 2);
  fixture_free (fixture);
}

static void
arguments_are_checked_before_the_module_sees_them (void **state)
{
  static const char *const argv[] = { "x", NULL }, *const none[] = { NULL };
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile" });
  int file = open ("/dev/null", O_RDWR | O_CLOEXEC);
  struct error *error = NULL;

  (void) state;
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, sandbox_info,
                            .sandbox = NULL), -1);
  assert_int_equal (error->number, E_INVALID);
  error_free (error);
  error = NULL;
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, exec_start,
                            .sandbox = "x", .argv = none, .in = -1,
                            .out = -1, .err = -1), -1);
  assert_int_equal (error->number, E_INVALID);
  error_free (error);
  error = NULL;
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, exec_start,
                            .sandbox = "x", .argv = argv, .in = file,
                            .out = -1, .err = -1), -1);
  assert_non_null (strstr (error_message (error), "in is not a pipe"));
  error_free (error);
  error = NULL;
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, file_stat,
                            .sandbox = "x", .path = "y"), -1);
  assert_int_equal (error->number, E_CAPABILITY);
  error_free (error);
  assert_int_equal (provider_invoke (fixture->provider, COFFER_OP_close,
                                     NULL, NULL, NULL), -1);
  assert_int_equal (provider_invoke (fixture->provider, 4711, NULL, NULL,
                                     NULL), -1);
  close (file);
  fixture_free (fixture);
}

static void
a_deadline_that_has_passed_calls_nothing (void **state)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile" });
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "ok", -1000, -1, &heard, NULL),
                    E_PROVIDER_TIMEOUT);
  assert_int_equal (heard.facts, 0);
  fixture_free (fixture);
}

/* More helpers than a frame takes descriptors. */
static void
helpers_and_folders_reach_open (void **state)
{
  enum provider_mode mode;

  (void) state;
  for (mode = PROVIDER_WORKER; mode <= PROVIDER_IN_PROCESS; mode++) {
    struct fixture *fixture = fixture_new (&(struct fixture_spec){
      .module = "hostile", .helpers = 40 });
    struct heard heard = { .facts = 0 };

    assert_int_equal (fixture_open (fixture, mode, NULL), 0);
    assert_int_equal (fixture_say (fixture, "files", 5000, -1, &heard, NULL),
                      0);
    assert_string_equal (heard.value, "40 helper-0.txt " VECTOR_BODY);
    assert_int_equal (fixture_say (fixture, "runtime:mine", 5000, -1, &heard,
                                   NULL), 0);
    assert_int_equal (access (harness_path (fixture->place.runtime,
                                            "hostile/mine"), F_OK), 0);
    assert_int_equal (access (harness_path (fixture->place.state,
                                            "provider-state/hostile"), F_OK),
                      0);
    /* What it may write is never where modules are looked for. */
    assert_int_equal (access (harness_path (fixture->place.installed,
                                            "hostile"), F_OK), -1);
    fixture_free (fixture);
  }
}

static void
late_files_are_read_when_the_module_asks (void **state)
{
  enum provider_mode mode;
  int fd;

  (void) state;
  for (mode = PROVIDER_WORKER; mode <= PROVIDER_IN_PROCESS; mode++) {
    struct fixture *fixture = fixture_new (&(struct fixture_spec){
      .module = "hostile", .helpers = 1, .late = 1 });
    struct heard heard = { .facts = 0 };

    assert_int_equal (fixture_open (fixture, mode, NULL), 0);
    assert_int_equal (fixture_say (fixture, "files", 5000, -1, &heard, NULL),
                      0);
    assert_string_equal (heard.value, "1 helper-0.txt " VECTOR_BODY);
    fixture_assert_done (fixture, "file:late.txt", VECTOR_BODY);
    fixture_assert_refused (fixture, "file:helper-0.txt", "code 5");
    fixture_assert_refused (fixture, "file:../late.txt", "code 5");
    fd = openat (fixture->entry->dir_fd, "late.txt", O_WRONLY | O_CLOEXEC);
    assert_int_equal (write (fd, "x", 1), 1);
    close (fd);
    fixture_assert_refused (fixture, "file:late.txt", "code 4");
    fixture_free (fixture);
  }
}

/* ---- the loader ----------------------------------------------------------- */

static int
sealed_module (const char *module)
{
  const char *build = getenv ("COFFER_BUILD");
  auto_free char *folder = text_printf ("%s/tests/modules",
                                        build ? build : ".");
  char sha256[SHA256_HEX_SIZE];
  int dir = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

  assert_true (dir >= 0);
  assert_int_equal (integrity_hash (dir, module, sha256, NULL), 0);
  fd = integrity_open (dir, module, sha256, 1, NULL);
  assert_true (fd >= 0);
  close (dir);
  return fd;
}

static int
load (const char *module, int threads, struct module **out,
      struct error **err)
{
  static char *const claims[] = { (char *) "exec", NULL };
  struct module_claim claim = { .file = module, .contract_minor = 1,
                                .threads = threads, .capabilities = claims };
  auto_elf_facts struct elf_facts *facts = NULL;
  int fd = sealed_module (module);

  assert_int_equal (elf_gate (fd, module, &facts, NULL), 0);
  if (module_check (contract_builtin (), &facts->note, &claim, err) < 0) {
    close (fd);
    return -1;
  }
  return module_load (contract_builtin (), fd, &facts->note, &claim, out,
                      err);
}

/* glibc takes a second file under a known name for the first one: the
 * descriptor of a loaded module is never given back. */
static void
a_second_module_is_not_taken_for_the_first (void **state)
{
  struct module *module;

  (void) state;
  assert_int_equal (load ("hostile.so", COFFER_THREADS_PARALLEL, &module,
                          NULL), 0);
  assert_string_equal (module->descriptor->name, "hostile");
  module_free (module);
  assert_int_equal (load ("serial.so", COFFER_THREADS_SERIAL, &module, NULL),
                    0);
  assert_string_equal (module->descriptor->name, "serial");
  module_free (module);
}

static void
note_and_manifest_must_agree (void **state)
{
  static char *const files[] = { (char *) "exec", (char *) "files", NULL };
  struct module_claim claim = { .file = "hostile.so", .contract_minor = 1,
                                .threads = COFFER_THREADS_PARALLEL,
                                .capabilities = files };
  auto_elf_facts struct elf_facts *facts = NULL;
  struct coffer_note note;
  struct error *error = NULL;
  struct module *module;
  int fd = sealed_module ("hostile.so");

  (void) state;
  assert_int_equal (elf_gate (fd, "hostile.so", &facts, NULL), 0);
  note = facts->note;
  assert_int_equal (module_check (contract_builtin (), &note, &claim, NULL),
                    0);
  claim.file = "other.so";
  assert_int_equal (module_check (contract_builtin (), &note, &claim, NULL),
                    -1);
  claim.file = "hostile.so";
  claim.threads = COFFER_THREADS_SERIAL;
  assert_int_equal (module_check (contract_builtin (), &note, &claim, NULL),
                    -1);
  claim.threads = COFFER_THREADS_PARALLEL;
  note.needs = 1;
  assert_int_equal (module_check (contract_builtin (), &note, &claim,
                                  &error), -1);
  assert_int_equal (error->number, E_CONTRACT_VERSION);
  error_free (error);
  error = NULL;
  /* What it claims it has no slots for. */
  assert_int_equal (module_load (contract_builtin (), fd, &facts->note,
                                 &claim, &module, &error), -1);
  assert_int_equal (error->number, E_MODULE);
  assert_non_null (strstr (error_message (error), "file_read"));
  error_free (error);
}

/* ---- threads -------------------------------------------------------------- */

static void *
call_often (void *data)
{
  struct fixture *fixture = data;
  struct heard heard = { .facts = 0 };
  intptr_t failed = 0;
  int i;

  for (i = 0; i < 2000; i++)
    failed += fixture_say (fixture, i % 3 ? "ok:x" : "log:y", 10000, -1,
                           &heard, NULL) != 0;
  return (void *) failed;
}

static void
threads_call_at_once (void **state)
{
  const struct fixture_spec specs[] = {
    { .module = "hostile" }, { .module = "serial", .threads = "serial" }
  };
  pthread_t threads[4];
  void *failed;
  size_t i, k;

  (void) state;
  for (k = 0; k < 2; k++) {
    struct fixture *fixture = start (&specs[k]);
    for (i = 0; i < 4; i++)
      pthread_create (&threads[i], NULL, call_often, fixture);
    for (i = 0; i < 4; i++) {
      pthread_join (threads[i], &failed);
      assert_null (failed);
    }
    fixture_free (fixture);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (secrets_are_hidden_in_each_form),
    cmocka_unit_test (secrets_are_hidden_in_base64_wherever_they_lie),
    cmocka_unit_test (longer_secrets_are_hidden_first),
    cmocka_unit_test (short_secrets_are_counted_and_left),
    cmocka_unit_test (json_is_redacted_with_its_keys),
    cmocka_unit_test (codes_map_by_family),
    cmocka_unit_test (messages_are_one_bounded_line),
    cmocka_unit_test (targets_have_one_form),
    cmocka_unit_test (permissions_grant_what_they_name),
    cmocka_unit_test (a_name_leads_to_no_place_of_this_machine),
    cmocka_unit_test (a_provider_leads_the_host_to_no_other_socket),
    cmocka_unit_test (the_gate_counts_and_waits),
    cmocka_unit_test (a_secret_in_pieces_is_hidden),
    cmocka_unit_test (what_is_no_secret_stays_in_pieces),
    cmocka_unit_test (the_journal_keeps_the_last_lines),
    cmocka_unit_test (both_ways_of_running_look_the_same),
    cmocka_unit_test (a_sink_ends_a_call_here_too),
    cmocka_unit_test (arguments_are_checked_before_the_module_sees_them),
    cmocka_unit_test (a_deadline_that_has_passed_calls_nothing),
    cmocka_unit_test (helpers_and_folders_reach_open),
    cmocka_unit_test (late_files_are_read_when_the_module_asks),
    cmocka_unit_test (a_second_module_is_not_taken_for_the_first),
    cmocka_unit_test (note_and_manifest_must_agree),
    cmocka_unit_test (threads_call_at_once),
  };

  log_set_level (LOG_LEVEL_ERROR);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
