/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the daemon by themselves: which path leads where, what is decoded, who
 * is next in the queue, and the keys of its configuration against the manual. */

#include <config.h>

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "server/route.h"
#include "server/runs.h"
#include "server/serve-config.h"

static const struct route routes[] = {
  { "GET", "/a/{x}", RIGHT_VIEW, 0, "one", NULL },
  { "DELETE", "/a/{x}", RIGHT_RUN, 0, "two", NULL },
  { "POST", "/a/{x}/b/{y…}", RIGHT_RUN, 0, "three", NULL },
  { "GET", "/c", RIGHT_VIEW, 0, "four", NULL },
  { NULL }
};

const struct route *const server_surfaces[] = { routes, NULL };

/* The operation and its parameters, or the error's number; until it is asked
 * again. */
static const char *
leads (const char *method, const char *path)
{
  static char text[256];
  auto_error struct error *err = NULL;
  auto_free char *allowed = NULL;
  struct route_match match;
  size_t i, n;

  if (route_find (method, path, &match, &allowed, &err) < 0) {
    snprintf (text, sizeof text, "%d%s%s", err->number, allowed ? " " : "",
              allowed ? allowed : "");
    return text;
  }
  n = (size_t) snprintf (text, sizeof text, "%s", match.route->operation);
  for (i = 0; i < match.n_params; i++)
    n += (size_t) snprintf (text + n, sizeof text - n, " [%.*s]",
                            (int) match.params[i].size, match.params[i].start);
  return text;
}

static void
a_path_leads_to_its_row (void **state)
{
  (void) state;
  assert_string_equal (leads ("GET", "/a/1"), "one [1]");
  assert_string_equal (leads ("HEAD", "/a/1"), "one [1]");
  assert_string_equal (leads ("DELETE", "/a/%2F"), "two [%2F]");
  assert_string_equal (leads ("POST", "/a/x/b/"), "three [x] []");
  assert_string_equal (leads ("POST", "/a/x/b/c//d/"), "three [x] [c//d/]");
  assert_string_equal (leads ("GET", "/c"), "four");
}

static void
another_path_leads_nowhere (void **state)
{
  static const char *const none[] = { "", "/", "a/1", "/a", "/a/", "/a//",
                                      "/a/1/", "/a/1/b", "/c/", "//c", "/cc",
                                      "/C", "*" };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof none / sizeof none[0]; i++)
    assert_string_equal (leads ("GET", none[i]), "7003");
  assert_string_equal (leads ("PUT", "/a/1"), "7004 GET, HEAD, DELETE");
  assert_string_equal (leads ("get", "/c"), "7004 GET, HEAD");
}

static void
escapes_are_decoded_once_and_strictly (void **state)
{
  static const struct {
    const char *text;
    int slashes, plus;
    const char *want;           /* NULL: refused */
  } cases[] = {
    { "a%20b", 0, 0, "a b" }, { "%2f", 0, 0, NULL }, { "%2f", 1, 0, "/" },
    { "a/b", 0, 0, NULL }, { "a/b", 1, 0, "a/b" }, { "%00", 1, 0, NULL },
    { "%", 1, 0, NULL }, { "%4", 1, 0, NULL }, { "%4g", 1, 0, NULL },
    { "%41", 0, 0, "A" }, { "x%4", 1, 0, NULL }, { "%2541", 0, 0, "%41" },
    { "a+b", 0, 0, "a+b" }, { "a+b", 0, 1, "a b" }, { "%ff", 0, 0, "\xff" },
    { "", 0, 0, "" }, { "%E2%98%83", 0, 0, "☃" },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    auto_free char *got = route_decode (cases[i].text, strlen (cases[i].text),
                                        cases[i].slashes, cases[i].plus);

    if (!cases[i].want)
      assert_null (got);
    else
      assert_string_equal (got, cases[i].want);
  }
}

/* ---- the queue -------------------------------------------------------------- */

/* "tenant/caller"; one word is both. */
static struct caller
caller_of (const char *who)
{
  const char *slash = strchr (who, '/');

  return (struct caller){
    .name = (char *) (uintptr_t) who,
    .tenant = slash ? text_printf ("%.*s", (int) (slash - who), who)
                    : strdup (who)
  };
}

static int
enter (struct runs_queue *queue, const char *who, int64_t deadline_ns,
       int cancel_fd, struct error **err)
{
  struct caller caller = caller_of (who);
  int r = runs_enter (queue, &caller, deadline_ns, cancel_fd, err);

  free (caller.tenant);
  return r;
}

static void
leave (struct runs_queue *queue, const char *who)
{
  struct caller caller = caller_of (who);

  runs_leave (queue, &caller);
  free (caller.tenant);
}

struct asks {
  struct runs_queue *queue;
  const char *who;
  int cancel_fd;
  int64_t deadline_ns;
  int result, number;
  pthread_t thread;
};

static void *
ask (void *data)
{
  struct asks *asks = data;
  auto_error struct error *err = NULL;

  asks->result = enter (asks->queue, asks->who, asks->deadline_ns,
                        asks->cancel_fd, &err);
  asks->number = err ? err->number : 0;
  return NULL;
}

/* Asks on a thread, and returns when it waits. */
static void
wait_in (struct runs_queue *queue, struct asks *asks, const char *who,
         int cancel_fd, int64_t deadline_ns)
{
  unsigned running, before, now;

  *asks = (struct asks){ queue, who, cancel_fd, deadline_ns, 1, 0, 0 };
  runs_count (queue, &running, &before);
  assert_int_equal (pthread_create (&asks->thread, NULL, ask, asks), 0);
  do
    runs_count (queue, &running, &now);
  while (now == before);
}

static void
places_go_to_whoever_has_fewest (void **state)
{
  struct runs_queue *queue;
  struct asks greedy, modest;
  unsigned running, waiting;

  (void) state;
  assert_int_equal (runs_new (2, 2, NULL, &queue, NULL), 0);
  assert_int_equal (enter (queue, "a", INT64_MAX, -1, NULL), 0);
  assert_int_equal (enter (queue, "a", INT64_MAX, -1, NULL), 0);
  wait_in (queue, &greedy, "a", -1, INT64_MAX);
  wait_in (queue, &modest, "b", -1, INT64_MAX);
  assert_int_equal (enter (queue, "c", INT64_MAX, -1, NULL), -1);
  leave (queue, "a");
  pthread_join (modest.thread, NULL);
  assert_int_equal (modest.result, 0);
  runs_count (queue, &running, &waiting);
  assert_int_equal (running, 2);
  assert_int_equal (waiting, 1);
  leave (queue, "b");
  pthread_join (greedy.thread, NULL);
  assert_int_equal (greedy.result, 0);
  leave (queue, "a");
  leave (queue, "a");
  runs_count (queue, &running, &waiting);
  assert_int_equal (running + waiting, 0);
  runs_free (queue);
}

/* One place, and many of one tenant before the other's: they take turns. */
static void
tenants_take_turns (void **state)
{
  static const char *const who[] = { "red/1", "red/2", "red/3", "blue/1",
                                     "blue/2" };
  static const char *const order[] = { "blue/1", "red/1", "blue/2", "red/2",
                                       "red/3" };
  struct asks asks[5];
  struct runs_queue *queue;
  size_t i, j;

  (void) state;
  assert_int_equal (runs_new (1, 8, NULL, &queue, NULL), 0);
  assert_int_equal (enter (queue, "red/0", INT64_MAX, -1, NULL), 0);
  for (i = 0; i < 5; i++)
    wait_in (queue, &asks[i], who[i], -1, INT64_MAX);
  leave (queue, "red/0");
  for (i = 0; i < 5; i++) {
    for (j = 0; strcmp (who[j], order[i]) != 0; j++)
      ;
    /* Only who has the place comes back. */
    pthread_join (asks[j].thread, NULL);
    assert_int_equal (asks[j].result, 0);
    leave (queue, who[j]);
  }
  runs_free (queue);
}

/* ---- shares ----------------------------------------------------------------- */

static int
others_there_are (void *data, const char *tenant)
{
  (void) tenant;
  return *(int *) data;
}

static void
a_tenant_has_a_part_of_what_others_leave (void **state)
{
  auto_error struct error *err = NULL;
  struct shares *shares;
  int others = 1;

  (void) state;
  assert_int_equal (shares_new (others_there_are, &others, &shares, NULL), 0);
  shares_set (shares, SHARE_TRANSFERS, 32);
  assert_true (shares_left (shares, SHARE_TRANSFERS, "red") == 16);
  assert_int_equal (shares_take (shares, SHARE_TRANSFERS, "red", 16, NULL), 0);
  assert_int_equal (shares_take (shares, SHARE_TRANSFERS, "red", 1, &err), -1);
  assert_int_equal (err->number, E_LIMIT);
  assert_non_null (strstr (error_message (err), "16 of 32 transfers"));
  assert_int_equal (shares_take (shares, SHARE_TRANSFERS, "blue", 8, NULL), 0);
  assert_int_equal (shares_take (shares, SHARE_TRANSFERS, "blue", 1, NULL), -1);
  assert_int_equal (shares_take (shares, SHARE_TRANSFERS, "green", 4, NULL), 0);
  /* What one gives back the others may have, and nobody more than there is. */
  shares_give (shares, SHARE_TRANSFERS, "red", 16);
  assert_true (shares_left (shares, SHARE_TRANSFERS, "blue") == 6);
  others = 0;
  assert_true (shares_left (shares, SHARE_TRANSFERS, "blue") == 20);
  shares_set_part (shares, 100);
  others = 1;
  assert_int_equal (shares_take (shares, SHARE_TRANSFERS, "red", 20, NULL), 0);
  assert_int_equal (shares_take (shares, SHARE_TRANSFERS, "red", 1, NULL), -1);
  shares_give (shares, SHARE_TRANSFERS, "nobody", 1);
  assert_true (shares_left (shares, SHARE_TRANSFERS, "red") == 0);
  assert_int_equal (shares_take (NULL, SHARE_TRANSFERS, "red", 99, NULL), 0);
  shares_free (shares);
}

static void
who_waits_may_give_up (void **state)
{
  const int cancel = eventfd (0, EFD_CLOEXEC);
  const uint64_t one = 1;
  struct runs_queue *queue;
  struct asks cancelled, late, grown;
  unsigned running, waiting;

  (void) state;
  assert_int_equal (runs_new (1, 8, NULL, &queue, NULL), 0);
  assert_int_equal (enter (queue, "a", INT64_MAX, -1, NULL), 0);
  wait_in (queue, &cancelled, "a", cancel, INT64_MAX);
  wait_in (queue, &late, "b", -1, coffer_now_ns () + 300000000);
  wait_in (queue, &grown, "c", -1, INT64_MAX);
  assert_int_equal (write (cancel, &one, sizeof one), sizeof one);
  pthread_join (cancelled.thread, NULL);
  assert_int_equal (cancelled.number, E_EXEC_CANCELLED);
  pthread_join (late.thread, NULL);
  assert_int_equal (late.number, E_LIMIT);
  runs_resize (queue, 2, 8);
  pthread_join (grown.thread, NULL);
  assert_int_equal (grown.result, 0);
  leave (queue, "a");
  leave (queue, "c");
  leave (queue, "nobody");
  runs_count (queue, &running, &waiting);
  assert_int_equal (running + waiting, 0);
  runs_free (queue);
  close (cancel);
}

/* ---- the manual --------------------------------------------------------------- */

static char *
page_of (void)
{
  const char *source = getenv ("COFFER_SOURCE");
  coffer_autoclose int fd
    = open (harness_path (source ? source : "..", "core/man/coffer.yaml.5"),
            O_RDONLY | O_CLOEXEC);
  char *bytes = NULL;
  size_t size = 0;

  assert_true (fd >= 0);
  assert_int_equal (coffer_read_whole (fd, 1 << 20, &bytes, &size), 0);
  return bytes;
}

/* The keys below ".Ss TITLE" are these. */
static void
manual_has (const char *page, const char *title, const char *const *keys)
{
  auto_free char *head = text_printf ("\n.Ss %s\n", title);
  const char *p = strstr (page, head), *end;
  size_t n = 0, i;

  assert_non_null (p);
  end = strstr (p + 1, "\n.S");
  while ((p = strstr (p, "\n.It Cm ")) && p < end) {
    p += strlen ("\n.It Cm ");
    for (i = 0; keys[i] && (strncmp (keys[i], p, strlen (keys[i])) != 0
                            || p[strlen (keys[i])] != '\n'); i++)
      ;
    if (!keys[i])
      fail_msg ("%s: the code does not know %.20s", title, p);
    n++;
  }
  for (i = 0; keys[i]; i++)
    ;
  assert_int_equal (n, i);
}

static void
every_key_is_in_the_manual (void **state)
{
  auto_free char *page = page_of ();

  (void) state;
  manual_has (page, "serve", serve_config_keys (""));
  manual_has (page, "serve.socket", serve_config_keys ("socket"));
  manual_has (page, "serve.socket.users and groups",
              serve_config_keys ("socket.users"));
  manual_has (page, "serve.execute", serve_config_keys ("execute"));
  manual_has (page, "serve.execute.isolation",
              serve_config_keys ("execute.isolation"));
  manual_has (page, "serve.limits", serve_config_keys ("limits"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_path_leads_to_its_row),
    cmocka_unit_test (another_path_leads_nowhere),
    cmocka_unit_test (escapes_are_decoded_once_and_strictly),
    cmocka_unit_test (places_go_to_whoever_has_fewest),
    cmocka_unit_test (tenants_take_turns),
    cmocka_unit_test (a_tenant_has_a_part_of_what_others_leave),
    cmocka_unit_test (who_waits_may_give_up),
    cmocka_unit_test (every_key_is_in_the_manual),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
