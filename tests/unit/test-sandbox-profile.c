/* SPDX-License-Identifier: Apache-2.0 */
/* A request and a profile: what reaches the provider, with which origin, and
 * what is refused before anything is made. */

#include "config.h"

#include "sandbox-host.h"

#include "base/json.h"
#include "sandbox/profile.h"

static const char *
origin (json_t *applied, const char *key)
{
  json_t *values = json_object_get (json_object_get (applied, "profile"),
                                    "values");

  return json_string_value (json_object_get (json_object_get (values, key),
                                             "origin"));
}

static void
create (struct fixture *f, const struct sandbox_request *request,
        json_t **applied)
{
  auto_error struct error *error = NULL;
  auto_sandbox_record struct sandbox_record *record = NULL;

  assert_ok (sandbox_create (f->host, request, NULL, &record, applied,
                             &error), error);
}

static void
refuse (struct fixture *f, const struct sandbox_request *request, int number,
        const char *field, const char *part)
{
  auto_error struct error *error = NULL;
  struct sandbox_record *record;
  const int creates = fake.creates;

  assert_fails (sandbox_create (f->host, request, NULL, &record, NULL,
                                &error), error, number);
  if (!strstr (error_message (error), part))
    fail_msg ("no \"%s\" in: %s", part, error_message (error));
  if (field)
    assert_string_equal (json_string_value (json_object_get (error->details,
                                                             "field")), field);
  assert_int_equal (fake.creates, creates);
  assert_int_equal (rows (f), 0);
}

static void
test_without_a_profile_nothing_is_added (void **state)
{
  struct sandbox_request request = { .memory_bytes = 64 << 20 };
  auto_json json_t *applied = NULL;

  create (*state, &request, &applied);
  assert_int_equal (fake.spec.memory_bytes, 64 << 20);
  assert_int_equal (fake.spec.pids, 0);
  assert_int_equal (fake.spec.cpu_millis, 0);
  assert_null (json_object_get (applied, "profile"));
}

static void
test_values_reach_the_provider_with_their_origin (void **state)
{
  struct sandbox_request request = { .profile = "default",
                                     .memory_bytes = 64 << 20 };
  auto_json json_t *applied = NULL;

  create (*state, &request, &applied);
  assert_int_equal (fake.spec.memory_bytes, 64 << 20);
  assert_int_equal (fake.spec.pids, 128);
  assert_int_equal (fake.spec.cpu_millis, 1000);
  assert_int_equal (fake.spec.root_writable, 0);
  assert_string_equal (origin (applied, "memory_bytes"), "caller");
  assert_string_equal (origin (applied, "pids"), "profile");
  assert_string_equal (origin (applied, "network"), "profile");
  assert_string_equal (json_string_value (json_object_get (json_object_get (
    applied, "profile"), "origin")), "caller");
}

static void
test_the_operators_default_applies_to_who_names_none (void **state)
{
  struct sandbox_request none = { 0 }, named = { .profile = "default" };
  auto_json json_t *applied = NULL, *second = NULL;

  fake.default_profile = "offline-readonly";
  create (*state, &none, &applied);
  assert_int_equal (fake.spec.pids, 64);
  assert_string_equal (json_string_value (json_object_get (json_object_get (
    applied, "profile"), "origin")), "config");
  create (*state, &named, &second);
  assert_int_equal (fake.spec.pids, 128);
  fake.default_profile = "no-such";
  fixture_restart (*state);
  {
    auto_error struct error *error = NULL;
    struct sandbox_record *record;

    assert_fails (sandbox_create (((struct fixture *) *state)->host, &none,
                                  NULL, &record, NULL, &error), error,
                  E_CONFIG);
  }
}

static void
test_what_is_locked_or_not_listed_is_refused (void **state)
{
  static const char *const allow[] = { "example.org:443", NULL };
  struct sandbox_mount written = { (char *) "/tmp", (char *) "/w", 1 };
  const struct {
    struct sandbox_request request;
    const char *field, *part;
  } table[] = {
    { { .profile = "offline-readonly", .network = "allow", .allow = allow },
      "network", "network: profile offline-readonly locks it" },
    { { .profile = "offline-readonly", .network = "host" }, "network",
      "locks it" },
    { { .profile = "offline-readonly", .mounts = &written, .n_mounts = 1 },
      "mounts", "mounts: profile offline-readonly locks it" },
    { { .profile = "offline-readonly", .root_writable = 1 }, "root",
      "root: profile offline-readonly locks it" },
    { { .profile = "minimal", .filter = "general" }, "filter", "locks it" },
    { { .profile = "default", .network = "host" }, "network",
      "network: profile default does not allow host" },
    { { .profile = "network-basic", .network = "host" }, "network",
      "does not allow host" },
    { { .network = "host" }, "network",
      "host is only had with a profile that lists it" },
  };
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++)
    refuse (*state, &table[i].request, E_PROFILE, table[i].field,
            table[i].part);
}

static void
test_the_same_value_is_no_override (void **state)
{
  struct sandbox_mount read = { (char *) "/usr", (char *) "/w", 0 };
  struct sandbox_request request = { .profile = "offline-readonly",
                                     .network = "none", .mounts = &read,
                                     .n_mounts = 1 };
  auto_json json_t *applied = NULL;

  create (*state, &request, &applied);
  assert_string_equal (origin (applied, "network"), "caller");
}

static void
test_what_is_above_the_maximum_is_taken_down_and_said (void **state)
{
  struct sandbox_request request = { .profile = "minimal",
                                     .memory_bytes = 8ULL << 30,
                                     .asked_timeout_ms = 3600000 };
  auto_json json_t *applied = NULL;
  json_t *clamped, *item;

  create (*state, &request, &applied);
  assert_int_equal (fake.spec.memory_bytes, 512 << 20);
  assert_string_equal (origin (applied, "memory_bytes"), "profile");
  clamped = json_object_get (json_object_get (applied, "profile"), "clamped");
  assert_int_equal (json_array_size (clamped), 2);
  item = json_array_get (clamped, 0);
  assert_string_equal (json_string_value (json_object_get (item, "field")),
                       "memory");
  assert_int_equal (json_integer_value (json_object_get (item, "asked")),
                    8LL << 30);
  assert_int_equal (json_integer_value (json_object_get (item, "applied")),
                    512 << 20);
  item = json_array_get (clamped, 1);
  assert_string_equal (json_string_value (json_object_get (item, "field")),
                       "timeout");
}

static void
test_what_a_profile_asks_and_nobody_claims_is_refused (void **state)
{
  static const char *const unclaimed[] = { "limit.pids", NULL };
  static const char *const network[] = { "network.allow", NULL };
  static const char *const hard[] = { "quota.hard", NULL };
  static const char *const require[] = { "quota.hard", NULL };
  struct sandbox_request limits = { .profile = "default" };
  struct sandbox_request basic = { .profile = "network-basic" };
  struct sandbox_request quota = { .require = require };

  fake.unclaimed = unclaimed;
  refuse (*state, &limits, E_CAPABILITY, NULL, "limit.pids");
  fake.unclaimed = network;
  refuse (*state, &basic, E_CAPABILITY, NULL, "network.allow");
  fake.unclaimed = hard;
  refuse (*state, &quota, E_CAPABILITY, NULL, "quota.hard");
}

static void
test_a_root_that_may_be_changed_is_no_default_that_fell_away (void **state)
{
  static const char *const unclaimed[] = { "root.readonly", NULL };
  struct sandbox_request closed = { .profile = "network-basic" };
  struct sandbox_request open = { .profile = "network-extended" };
  auto_json json_t *applied = NULL;

  fake.unclaimed = unclaimed;
  refuse (*state, &closed, E_CAPABILITY, NULL, "root.readonly");
  create (*state, &open, &applied);
  assert_int_equal (fake.spec.root_writable, 1);
}

static void
test_the_timeout_of_a_command_is_the_profiles_unless_it_says (void **state)
{
  static const char spec[] = "{\"profile\":\"p\",\"timeout_ms\":30000,"
                             "\"timeout_max_ms\":60000}";
  static const char locked[] = "{\"profile\":\"p\",\"timeout_ms\":30000,"
                               "\"timeout_locked\":true}";
  const struct {
    const char *spec;
    uint64_t asked;
    int unwatched;
    uint64_t in_force;          /* UINT64_MAX: refused */
  } table[] = {
    { NULL, 0, 0, 0 }, { "{}", 5, 0, 5 }, { "{\"pids\":1}", 0, 1, 0 },
    { spec, 0, 0, 30000 }, { spec, 0, 1, 60000 }, { spec, 45000, 0, 45000 },
    { spec, 61000, 0, 60000 }, { spec, 61000, 1, 60000 },
    { locked, 0, 0, 30000 }, { locked, 30000, 0, 30000 },
    { locked, 1, 0, UINT64_MAX }, { locked, 0, 1, 30000 },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    auto_error struct error *error = NULL;
    uint64_t got = UINT64_MAX;

    if (profile_timeout (table[i].spec, table[i].asked, table[i].unwatched,
                         &got, &error) < 0) {
      assert_int_equal (error->number, E_PROFILE);
      got = UINT64_MAX;
    }
    assert_int_equal (got, table[i].in_force);
  }
}

static void
test_a_life_is_not_drawn_out_beyond_the_profile (void **state)
{
  static const char most[] = "{\"profile\":\"p\",\"ttl_ms\":60000,"
                             "\"ttl_max_ms\":120000}";
  static const char locked[] = "{\"profile\":\"p\",\"ttl_ms\":60000,"
                               "\"ttl_locked\":true}";
  const struct {
    const char *spec;
    uint64_t asked, in_force;   /* 0: refused */
  } table[] = {
    { NULL, 5000, 5000 }, { "{\"ttl_ms\":1000}", 9000, 9000 },
    { most, 90000, 90000 }, { most, 120001, 120000 }, { locked, 60000, 0 },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    auto_error struct error *error = NULL;
    uint64_t got = 0;

    if (profile_ttl (table[i].spec, table[i].asked, &got, &error) < 0) {
      assert_int_equal (error->number, E_PROFILE);
      got = 0;
    }
    assert_int_equal (got, table[i].in_force);
  }
}

int
main (void)
{  const struct CMUnitTest tests[] = {
    TEST (test_without_a_profile_nothing_is_added),
    TEST (test_values_reach_the_provider_with_their_origin),
    TEST (test_the_operators_default_applies_to_who_names_none),
    TEST (test_what_is_locked_or_not_listed_is_refused),
    TEST (test_the_same_value_is_no_override),
    TEST (test_what_is_above_the_maximum_is_taken_down_and_said),
    TEST (test_what_a_profile_asks_and_nobody_claims_is_refused),
    TEST (test_a_root_that_may_be_changed_is_no_default_that_fell_away),
    TEST (test_a_life_is_not_drawn_out_beyond_the_profile),
    TEST (test_the_timeout_of_a_command_is_the_profiles_unless_it_says),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
