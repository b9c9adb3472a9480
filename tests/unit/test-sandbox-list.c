/* SPDX-License-Identifier: Apache-2.0 */
/* Whose sandboxes there are, and lists of some of them. */

#include "config.h"

#include "sandbox-host.h"

#include "base/json.h"

static void
make_for (struct host *host, const char *tenant, const char *const *metadata,
          struct sandbox_record **out)
{
  struct sandbox_request request = { .tenant = tenant, .metadata = metadata };
  struct error *error = NULL;

  assert_ok (sandbox_create (host, &request, NULL, out, NULL, &error), error);
}

/* How many are found, and the first of them. */
static size_t
found (struct host *host, const struct sandbox_filter *filter, char *first,
       int *more)
{
  auto_json json_t *list = NULL;
  const char *id;

  assert_int_equal (sandbox_select (host, filter, &list, more, NULL), 0);
  id = json_string_value (json_object_get (json_array_get (list, 0), "id"));
  snprintf (first, SANDBOX_ID_SIZE, "%s", id ? id : "");
  return json_array_size (list);
}

static void
test_a_tenant_has_its_own_and_no_others (void **state)
{
  struct fixture *f = *state;
  auto_sandbox_record struct sandbox_record *one = NULL, *two = NULL;
  auto_error struct error *error = NULL;
  char first[SANDBOX_ID_SIZE];
  int more;

  make_for (f->host, "red", NULL, &one);
  make_for (f->host, NULL, NULL, &two);
  assert_string_equal (two->tenant, "default");
  assert_int_equal (sandbox_check_tenant (f->host, one->id, "red", NULL), 0);
  assert_fails (sandbox_check_tenant (f->host, one->id, "default", &error),
                error, E_UNKNOWN_SANDBOX);
  fixture_restart (f);
  assert_int_equal (sandbox_check_tenant (f->host, one->id, "red", NULL), 0);
  assert_int_equal (sandbox_check_tenant (f->host, one->id, "blue", NULL), -1);
  assert_int_equal (found (f->host, &(struct sandbox_filter){
                             .tenant = "red" }, first, &more), 1);
  assert_string_equal (first, one->id);
  assert_int_equal (found (f->host, &(struct sandbox_filter){
                             .tenant = "blue" }, first, &more), 0);
  assert_int_equal (found (f->host, &(struct sandbox_filter){ 0 }, first,
                           &more), 2);
}

static void
test_a_list_comes_in_pages_and_by_what_they_are (void **state)
{
  static const char *const blue[] = { "color=blue", "size=1", NULL };
  static const char *const wanted[] = { "color=blue", NULL };
  static const char *const other[] = { "color=bl", NULL };
  struct fixture *f = *state;
  char first[SANDBOX_ID_SIZE], after[SANDBOX_ID_SIZE] = "";
  struct sandbox_filter filter = { .limit = 2 };
  size_t n = 0, pages = 0;
  int i, more = 1;

  for (i = 0; i < 5; i++) {
    auto_sandbox_record struct sandbox_record *record = NULL;

    make_for (f->host, NULL, i == 3 ? blue : NULL, &record);
  }
  for (; more; pages++) {
    auto_json json_t *list = NULL;

    filter.after = *after ? after : NULL;
    assert_int_equal (sandbox_select (f->host, &filter, &list, &more, NULL),
                      0);
    n += json_array_size (list);
    snprintf (after, sizeof after, "%s", json_string_value (json_object_get (
      json_array_get (list, json_array_size (list) - 1), "id")));
  }
  assert_int_equal (n, 5);
  assert_int_equal (pages, 3);
  assert_int_equal (found (f->host, &(struct sandbox_filter){
                             .metadata = wanted }, first, &more), 1);
  assert_int_equal (found (f->host, &(struct sandbox_filter){
                             .metadata = other }, first, &more), 0);
  assert_int_equal (found (f->host, &(struct sandbox_filter){
                             .state = "running" }, first, &more), 5);
  assert_int_equal (found (f->host, &(struct sandbox_filter){
                             .state = "paused" }, first, &more), 0);
  assert_int_equal (found (f->host, &(struct sandbox_filter){
                             .provider = "nothing" }, first, &more), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (test_a_tenant_has_its_own_and_no_others),
    TEST (test_a_list_comes_in_pages_and_by_what_they_are)
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
