/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of registries: what credential helpers give, in whose place, and what
 * of all that can be seen.  A helper is a script in a folder of the test's. */

#include "config.h"

#include "harness.h"

#include <errno.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "provider-fixture.h"
#include "provider/docker-client.h"

#define SERVER "r.example:5000"
#define HUB "https://index.docker.io/v1/"

static char *folder;            /* of the test; `bin` in it is all of PATH */

static void
write_text (const char *name, const char *text, mode_t mode)
{
  auto_free char *path = text_printf ("%s/%s", folder, name);
  FILE *file = fopen (path, "w");

  assert_non_null (file);
  assert_true (fputs (text, file) >= 0);
  assert_int_equal (fclose (file), 0);
  assert_int_equal (chmod (path, mode), 0);
}

static void
helper (const char *name, const char *body)
{
  auto_free char *path = text_printf ("bin/docker-credential-%s", name);
  auto_free char *text = text_printf ("#!/bin/sh\n%s\n", body);

  write_text (path, text, 0755);
}

static int
set_up (void **state)
{
  auto_free char *bin = NULL, *path = NULL;

  if (harness_folder_new (state) < 0)
    return -1;
  folder = *state;
  bin = text_printf ("%s/bin", folder);
  path = text_printf (".:bin:%s/none:%s", folder, bin);
  if (mkdir (bin, 0755) < 0 || chmod (bin, 0755) < 0)
    return -1;
  setenv ("PATH", path, 1);
  setenv ("DOCKER_CONFIG", folder, 1);
  helper ("right", "read -r server; test \"$1\" = get || exit 9\n"
                   "printf '{\"ServerURL\":\"%s\",\"Username\":\"user\","
                   "\"Secret\":\"kept-for-%s\"}' \"$server\" \"$server\"");
  helper ("token", "echo '{\"Username\":\"<token>\",\"Secret\":\"a-token\"}'");
  helper ("empty", "echo '{\"Username\":\"\",\"Secret\":\"\"}'");
  helper ("none", "echo 'credentials not found in native keychain'; exit 1");
  helper ("broken", "echo my-password; echo my-password >&2; exit 3");
  helper ("hangs", "echo '{'; exec sleep 1000");
  helper ("floods", "exec yes my-password");
  helper ("killed", "echo my-password >&2; kill -9 $$");
  helper ("looks", "printf '{\"Username\":\"%s\",\"Secret\":\"%s %s\"}'"
                   " \"${MY_PASSWORD:-unset}\" \"$PATH\" \"$(pwd)\"");
  return 0;
}

/* ---- one helper ----------------------------------------------------------- */

static int
get (const char *config, const char *server, struct credential *out,
     struct error **err)
{
  auto_free char *path = text_printf ("%s/config.json", folder);

  write_text ("config.json", config, 0600);
  return docker_client_credential (
    path, server, coffer_now_ns () + HARNESS_PATIENCE_NS, -1, out, err);
}

static void
a_helper_is_given_the_server_and_answers (void **state)
{
  auto_credential struct credential credential = { NULL, NULL };

  (void) state;
  assert_int_equal (get ("{\"credsStore\": \"right\"}", SERVER, &credential,
                         NULL), 1);
  assert_string_equal (credential.user, "user");
  assert_string_equal (credential.secret, "kept-for-" SERVER);
}

static void
the_servers_own_helper_goes_before_the_one_for_all (void **state)
{
  static const struct {
    const char *config, *server;
    const char *secret;         /* NULL: none */
  } table[] = {
    { "{\"credHelpers\":{\"" SERVER "\":\"token\"},\"credsStore\":\"right\"}",
      SERVER, "a-token" },
    { "{\"credHelpers\":{\"" SERVER "\":\"token\"},\"credsStore\":\"right\"}",
      "other.example", "kept-for-other.example" },
    { "{\"credHelpers\":{\"" SERVER "\":\"\"},\"credsStore\":\"right\"}",
      SERVER, NULL },
    { "{\"credHelpers\":{\"" SERVER "\":\"token\"}}", "other.example", NULL },
    { "{\"credHelpers\":{\"docker.io\":\"right\"}}", HUB,
      "kept-for-docker.io" },
    { "{\"credsStore\":\"right\"}", HUB, "kept-for-" HUB },
    { "{\"credsStore\":\"none\"}", SERVER, NULL },
    { "{\"credsStore\":\"empty\"}", SERVER, NULL },
    { "{\"auths\":{\"" SERVER "\":{\"auth\":\"dTpw\"}}}", SERVER, NULL },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    auto_credential struct credential credential = { NULL, NULL };
    int r = get (table[i].config, table[i].server, &credential, NULL);

    if (r != (table[i].secret != NULL)
        || (r > 0 && strcmp (credential.secret, table[i].secret) != 0))
      fail_msg ("%s of %s: %d", table[i].server, table[i].config, r);
  }
}

/* One line, of which nothing is the helper's own words. */
static void
assert_refused (const char *config, const char *server, const char *said)
{
  auto_credential struct credential credential = { NULL, NULL };
  auto_error struct error *error = NULL;

  assert_int_equal (get (config, server, &credential, &error), -1);
  if (error->number != E_CREDENTIALS_HELPER
      || !strstr (error_message (error), said)
      || strstr (error_message (error), "my-password")
      || strchr (error_message (error), '\n'))
    fail_msg ("%s: E%d %s", config, error->number, error_message (error));
  assert_null (credential.secret);
}

static void
what_a_helper_does_wrong_is_told_without_its_words (void **state)
{
  static const char *const answers[] = {
    "my-password", "{\"Username\":\"my-password\"}", "[]", "",
    "{\"Username\":\"u\",\"Secret\":\"my-password\"} trailing",
    "{\"Username\":\"u\",\"Secret\":[\"my-password\"]}",
    "{\"Username\":\"u\",\"Secret\":\"\"}",
    "{\"Username\":\"u:x\",\"Secret\":\"my-password\"}",
    "{\"Username\":\"u\",\"Secret\":\"my-password\\r\\nHost: x\"}",
  };
  size_t i;

  (void) state;
  assert_refused ("{\"credsStore\":\"broken\"}", SERVER, "failed for " SERVER
                  ", with 3");
  assert_refused ("{\"credsStore\":\"floods\"}", SERVER, "says too much");
  assert_refused ("{\"credsStore\":\"killed\"}", SERVER, "ended by a signal");
  assert_refused ("{\"credsStore\":\"absent\"}", SERVER, "is not in PATH");
  for (i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    auto_free char *body = text_printf ("printf '%%s' '%s'", answers[i]);

    helper ("wrong", body);
    assert_refused ("{\"credsStore\":\"wrong\"}", SERVER, "gave no JSON");
  }
}

static void
names_and_servers_are_words (void **state)
{
  auto_credential struct credential credential = { NULL, NULL };
  auto_free char *ran = text_printf ("%s/ran", folder);
  auto_free char *body = text_printf ("touch %s", ran);

  (void) state;
  helper ("up", body);
  assert_refused ("{\"credsStore\":\"../bin/docker-credential-up\"}", SERVER,
                  "no helper has the name");
  assert_refused ("{\"credsStore\":\"right;x\"}", SERVER,
                  "no helper has the name");
  assert_refused ("{\"credsStore\":\"Right\"}", SERVER,
                  "no helper has the name");
  assert_refused ("{\"credsStore\":\"right\"}", "r.example\nx", "is no server");
  assert_refused ("{\"credsStore\":\"right\"}", "-x", "is no server");
  assert_refused ("{\"credsStore\":\"right\"}", "", "is no server");
  assert_int_equal (access (ran, F_OK), -1);
  get ("{\"credsStore\":\"up\"}", SERVER, &credential, NULL);
  assert_int_equal (unlink (ran), 0);
}

/* An agent that it has begun has its streams, and lives on. */
static void
a_helper_that_has_ended_is_waited_for_no_more (void **state)
{
  auto_credential struct credential credential = { NULL, NULL };
  const int64_t began = coffer_now_ns ();

  (void) state;
  helper ("leaves", "sleep 25 & echo '{\"Username\":\"u\",\"Secret\":\"p\"}'");
  assert_int_equal (get ("{\"credsStore\":\"leaves\"}", SERVER, &credential,
                         NULL), 1);
  assert_true (coffer_now_ns () - began < INT64_C (15000000000));
}

static void
a_helper_that_hangs_is_ended (void **state)
{
  auto_free char *path = text_printf ("%s/config.json", folder);
  auto_credential struct credential credential = { NULL, NULL };
  auto_error struct error *error = NULL;

  (void) state;
  write_text ("config.json", "{\"credsStore\":\"hangs\"}", 0600);
  assert_int_equal (docker_client_credential (
                      path, SERVER, coffer_now_ns () + INT64_C (300000000), -1,
                      &credential, &error), -1);
  assert_int_equal (error->number, E_CREDENTIALS_HELPER);
  assert_non_null (strstr (error_message (error), "did not answer in time"));
  assert_int_equal (waitpid (-1, NULL, WNOHANG), -1);
  assert_int_equal (errno, ECHILD);
}

static void
what_others_may_write_is_not_run (void **state)
{
  auto_free char *bin = text_printf ("%s/bin", folder);
  auto_free char *ran = text_printf ("%s/ran", folder);
  auto_free char *body = text_printf ("touch %s", ran);

  (void) state;
  helper ("trap", body);
  assert_int_equal (chmod (bin, 0777), 0);
  assert_refused ("{\"credsStore\":\"trap\"}", SERVER, "is not run");
  assert_int_equal (chmod (bin, 01777), 0);     /* links there are anybody's */
  assert_refused ("{\"credsStore\":\"trap\"}", SERVER, "is not run");
  assert_int_equal (chmod (bin, 0755), 0);
  write_text ("bin/docker-credential-trap", "#!/bin/sh\n", 0777);
  assert_refused ("{\"credsStore\":\"trap\"}", SERVER, "writable by others");
  assert_int_equal (access (ran, F_OK), -1);
}

static void
what_lies_where_others_may_write_is_not_run (void **state)
{
  auto_free char *above = text_printf ("%s/above", folder);
  auto_free char *below = text_printf ("%s/below", above);
  auto_free char *path = strdup (getenv ("PATH"));

  (void) state;
  assert_int_equal (mkdir (above, 0755), 0);
  assert_int_equal (mkdir (below, 0755), 0);
  write_text ("above/below/docker-credential-high", "#!/bin/sh\n", 0755);
  setenv ("PATH", below, 1);
  assert_refused ("{\"credsStore\":\"high\"}", SERVER, "gave no JSON");
  assert_int_equal (chmod (above, 0777), 0);
  assert_refused ("{\"credsStore\":\"high\"}", SERVER, "is not run");
  setenv ("PATH", path, 1);
}

static void
a_helper_sees_little_of_the_caller (void **state)
{
  auto_credential struct credential credential = { NULL, NULL };
  auto_free char *want
    = text_printf ("%s/bin:/usr/local/bin:/usr/bin:/bin /", folder);

  (void) state;
  setenv ("MY_PASSWORD", "my-password", 1);
  assert_int_equal (get ("{\"credsStore\":\"looks\"}", SERVER, &credential,
                         NULL), 1);
  assert_string_equal (credential.user, "unset");
  assert_string_equal (credential.secret, want);
}

/* ---- the file ------------------------------------------------------------- */

static void
a_worker_is_told_which_servers_have_a_helper (void **state)
{
  auto_free char *path = text_printf ("%s/config.json", folder);
  auto_free char *line = NULL, *nothing = NULL;

  (void) state;
  write_text ("config.json",
              "{\"auths\": {\"docker.io\": {\"auth\": \"dTpw\"}}, \"x\": 1,"
              " \"credHelpers\": {\"a.example\": \"right\", \"b\": \"\","
              " \"*\": \"\"},"
              " \"credsStore\": \"token\"}", 0600);
  assert_int_equal (docker_client_auths (path, &line, NULL), 0);
  assert_string_equal (line,
                       "{\"auths\":{\"docker.io\":{\"auth\":\"dTpw\"},"
                       "\"" HUB "\":{\"auth\":\"dTpw\"}},\"helped\":{\"*\":true,"
                       "\"a.example\":true,\"b\":false}}");
  write_text ("config.json", "{\"currentContext\": \"x\"}", 0600);
  assert_int_equal (docker_client_auths (path, &nothing, NULL), 0);
  assert_null (nothing);
}

static void
each_part_of_an_entry_is_a_secret_but_the_name (void **state)
{
  struct coffer_strings parts = { 0 };

  (void) state;
  docker_client_secrets ("{\"auths\":{\"a\":{\"auth\":\"bXktbmFtZTpteTpwYXNz\","
                         "\"username\":\"my-name\",\"identitytoken\":\"my-token\"},"
                         "\"b\":{\"auth\":\"!\"},\"c\":7}}", &parts);
  assert_int_equal (parts.count, 4);
  assert_string_equal (parts.items[0], "my:pass");
  assert_string_equal (parts.items[1], "my-name:my:pass");
  assert_string_equal (parts.items[2], "bXktbmFtZTpteTpwYXNz");
  assert_string_equal (parts.items[3], "my-token");
  coffer_strings_free (&parts);
  docker_client_secrets ("no JSON", &parts);
  assert_int_equal (parts.count, 0);
}

static void
json_is_wiped_before_it_is_given_up (void **state)
{
  json_t *secret = json_string ("my-password");

  (void) state;
  json_wipe (json_pack ("{s:[{s:O}]}", "a", "b", secret));
  assert_int_equal (json_string_length (secret), 11);
  for (size_t i = 0; i < 11; i++)
    assert_int_equal (json_string_value (secret)[i], 0);
  json_decref (secret);
  json_wipe (NULL);
}

/* ---- a worker ------------------------------------------------------------- */

#define MANIFEST \
  "config:\n  auth: {type: secret, from: docker.auths}\n" \
  "  other: {type: secret}\n"

static int
say (struct fixture *fixture, const char *word, char said[4096],
     struct error **err)
{
  struct heard heard = { .facts = 0 };
  int number = fixture_say (fixture, word, HARNESS_PATIENCE_MS, -1, &heard,
                            err);

  snprintf (said, 4096, "%s", heard.value);
  return number;
}

static void
a_worker_gets_them_and_cannot_say_them (void **state)
{
  auto_error struct error *error = NULL;
  struct fixture *fixture;
  char said[4096];

  (void) state;
  write_text ("config.json",
              "{\"auths\": {\"a.example\": {\"auth\":"
              " \"bXktbmFtZTpteS1sb25nLXBhc3M=\"}},"
              " \"credHelpers\": {\"r.example\": \"right\", \"n.example\":"
              " \"none\", \"b.example\": \"broken\"}}", 0600);
  fixture = fixture_start (&(struct fixture_spec){ .module = "hostile",
                                                   .yaml = MANIFEST });
  assert_int_equal (say (fixture, "ok:my-long-pass", said, NULL), 0);
  assert_string_equal (said, "[hidden]");
  assert_int_equal (say (fixture, "ok:kept-for-r.example", said, NULL), 0);
  assert_string_equal (said, "kept-for-r.example");
  assert_int_equal (say (fixture, "connect:credential:auth:r.example", said,
                         NULL), 0);
  assert_int_equal (say (fixture, "ok:kept-for-r.example", said, NULL), 0);
  assert_string_equal (said, "[hidden]");
  assert_int_equal (say (fixture, "connect:credential:auth:n.example", said,
                         NULL), 0);
  assert_string_equal (said, "code 5");
  assert_int_equal (say (fixture, "connect:credential:other:r.example", said,
                         NULL), 0);
  assert_string_equal (said, "code 4");
  assert_int_equal (say (fixture, "connect:credential:", said, NULL), 0);
  assert_string_equal (said, "code 4");
  assert_int_equal (say (fixture, "connect:credential:auth:b.example", said,
                         &error), E_CREDENTIALS_HELPER);
  assert_null (strstr (error_message (error), "my-password"));
  fixture_free (fixture);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_helper_is_given_the_server_and_answers),
    cmocka_unit_test (the_servers_own_helper_goes_before_the_one_for_all),
    cmocka_unit_test (what_a_helper_does_wrong_is_told_without_its_words),
    cmocka_unit_test (names_and_servers_are_words),
    cmocka_unit_test (a_helper_that_hangs_is_ended),
    cmocka_unit_test (a_helper_that_has_ended_is_waited_for_no_more),
    cmocka_unit_test (what_others_may_write_is_not_run),
    cmocka_unit_test (what_lies_where_others_may_write_is_not_run),
    cmocka_unit_test (a_helper_sees_little_of_the_caller),
    cmocka_unit_test (a_worker_is_told_which_servers_have_a_helper),
    cmocka_unit_test (each_part_of_an_entry_is_a_secret_but_the_name),
    cmocka_unit_test (json_is_wiped_before_it_is_given_up),
    cmocka_unit_test (a_worker_gets_them_and_cannot_say_them),
  };

  return cmocka_run_group_tests (tests, set_up, harness_folder_free);
}
