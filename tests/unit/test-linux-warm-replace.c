/* SPDX-License-Identifier: Apache-2.0 */
/* When an interpreter that stands ready is replaced: warm.c, with interpreters
 * that are only counted. */

#include "harness.h"

#include <pthread.h>

#include <coffer/fd.h>

#include "spawn.h"

#define SECOND INT64_C (1000000000)

/* ---- interpreters that are counted --------------------------------------- */

static struct {
  pid_t last;                   /* a number for each that was begun */
  unsigned ended, dismissed;
  int slow;                     /* they are ready only when they are waited for */
  int fails;                    /* none can be begun */
  pid_t asked;                  /* whose copy the last one is */
  double ready, copies, replaced;       /* as was said last */
} seen;

const char *
zygote_python (void)
{
  return "/usr/bin/python3";
}

int32_t
zygote_start (struct linux_provider *self, struct coffer_call *call,
              const struct warm *warm, struct zygote *zygote)
{
  (void) self;
  (void) warm;
  if (seen.fails)
    return coffer_fail (call, COFFER_UNAVAILABLE, "none can be begun");
  *zygote = (struct zygote){ .pid = ++seen.last, .pidfd = -1, .control = -1,
                             .born_ns = coffer_now_ns () };
  return COFFER_OK;
}

int32_t
zygote_await (struct coffer_call *call, struct zygote *zygote, int wait)
{
  (void) call;
  if (wait || !seen.slow)
    zygote->ready = 1;
  return COFFER_OK;
}

int
zygote_lives (const struct zygote *zygote)
{
  return zygote->pid > 0;
}

void
zygote_end (struct zygote *zygote)
{
  seen.ended += zygote->pid > 0;
  *zygote = (struct zygote) ZYGOTE_NONE;
}

void
zygote_dismiss (struct zygote *zygote)
{
  (void) zygote;
  seen.dismissed++;
}

int
zygote_fork (struct coffer_call *call, struct zygote *zygote, int init, int gate)
{
  (void) call;
  (void) init;
  (void) gate;
  zygote->runs++;
  seen.asked = zygote->pid;
  return 0;
}

int
link_send (struct link *link, const struct request *request,
           const struct coffer_call *call)
{
  (void) link;
  (void) request;
  (void) call;
  return 0;
}

int32_t
sandbox_ask_failed (struct coffer_call *call, const char *what)
{
  return coffer_fail (call, COFFER_IO, what);
}

int32_t
fail_with (struct coffer_call *call, int32_t code, const char *fmt, ...)
{
  return coffer_fail (call, code, fmt);
}

int32_t
metrics_emit (struct coffer_call *call, const struct metric *metrics, size_t n)
{
  size_t i;

  (void) call;
  for (i = 0; i < n; i++)
    if (strcmp (metrics[i].name, "ready") == 0)
      seen.ready = metrics[i].value;
    else if (strcmp (metrics[i].name, "copies_total") == 0)
      seen.copies = metrics[i].value;
    else if (strcmp (metrics[i].name, "replaced_total") == 0)
      seen.replaced = metrics[i].value;
  return COFFER_OK;
}

/* ---- a host -------------------------------------------------------------- */

static int32_t
host_emit (struct coffer_call *call, uint32_t record, const void *data)
{
  (void) call;
  (void) record;
  (void) data;
  return COFFER_OK;
}

static int32_t
host_fail (struct coffer_call *call, int32_t code, int32_t retryable,
           const char *message, const char *details)
{
  (void) call;
  (void) retryable;
  (void) message;
  (void) details;
  return code;
}

static const struct coffer_host functions
  = { .size = sizeof functions, .emit = host_emit, .fail = host_fail };
static struct coffer_call call
  = { .size = sizeof call, .host = &functions, .cancel_fd = -1,
      .deadline_ns = INT64_MAX };
static struct linux_provider self;

static int
begin (void **state)
{
  static const char program[] = "def run(): pass\n";
  coffer_autoclose int in
    = coffer_memfd_sealed ("program", program, sizeof program - 1);

  (void) state;
  memset (&seen, 0, sizeof seen);
  memset (&self, 0, sizeof self);
  pthread_mutex_init (&self.lock, NULL);
  assert_int_equal (linux_warm_open (&call, &self, "minimal", in, NULL),
                    COFFER_OK);
  assert_int_equal (seen.last, 1);
  return 0;
}

static int
end (void **state)
{
  (void) state;
  warm_fini (&self);
  pthread_mutex_destroy (&self.lock);
  return 0;
}

/* Whose copies the next ones are. */
static int32_t
copies (unsigned n)
{
  static const struct coffer_sandbox_spec spec
    = { .size = sizeof spec, .filter = "strict", .warm = "w1" };
  struct making making = { .self = &self, .call = &call, .spec = &spec,
                           .control = -1, .pidfd = -1, .network = NETWORK_NONE };
  int32_t code = COFFER_OK;

  for (; n > 0 && code == COFFER_OK; n--) {
    code = copy_permit (&making);
    if (code == COFFER_OK)
      code = copy_begin (&making);
    warm_leave (&self, making.warm);
    making.warm = NULL;
  }
  return code;
}

/* ---- what is promised ---------------------------------------------------- */

static void
no_interpreter_makes_more_than_a_thousand_copies (void **state)
{
  (void) state;
  seen.slow = 1;
  assert_int_equal (copies (900), COFFER_OK);
  assert_int_equal (seen.last, 1);
  assert_int_equal (copies (1), COFFER_OK);
  /* The next one is begun, and the first serves until it is ready. */
  assert_int_equal (seen.last, 2);
  assert_int_equal (seen.asked, 1);
  assert_int_equal (copies (99), COFFER_OK);
  assert_int_equal (seen.asked, 1);
  assert_int_equal (self.warms->now.runs, 1000);
  assert_int_equal (copies (1), COFFER_OK);
  assert_int_equal (seen.asked, 2);
  assert_int_equal (seen.dismissed, 1);
  assert_int_equal (self.warms->now.runs, 1);
  assert_int_equal (seen.last, 2);
}

static void
what_they_did_is_counted_beyond_the_end_of_one (void **state)
{
  (void) state;
  assert_int_equal (copies (901), COFFER_OK);
  assert_int_equal (warm_metrics (&self, &call, "w1"), COFFER_OK);
  assert_true (seen.ready == 1 && seen.copies == 901 && seen.replaced == 1);
  zygote_end (&self.warms->now);
  assert_int_equal (warm_metrics (&self, &call, "w1"), COFFER_OK);
  assert_true (seen.ready == 0 && seen.copies == 901 && seen.replaced == 1);
  assert_int_equal (copies (1), COFFER_OK);
  assert_int_equal (warm_metrics (&self, &call, "w1"), COFFER_OK);
  assert_true (seen.ready == 1 && seen.copies == 902 && seen.replaced == 2);
  assert_int_equal (warm_metrics (&self, &call, "w2"), COFFER_NOT_FOUND);
  assert_true (warm_is_handle ("w1") && warm_is_handle ("w20"));
  assert_false (warm_is_handle ("w") || warm_is_handle ("w1-web")
                || warm_is_handle ("web") || warm_is_handle ("1"));
}

static void
one_that_is_being_made_is_not_waited_for_by_who_looks (void **state)
{
  (void) state;
  pthread_mutex_lock (&self.warms->busy);
  assert_int_equal (warm_metrics (&self, &call, "w1"), COFFER_BUSY);
  pthread_mutex_unlock (&self.warms->busy);
  assert_int_equal (self.warms->users, 0);
}

static void
the_next_one_serves_as_soon_as_it_is_ready (void **state)
{
  (void) state;
  assert_int_equal (copies (900), COFFER_OK);
  assert_int_equal (seen.asked, 1);
  assert_int_equal (copies (1), COFFER_OK);
  assert_int_equal (seen.asked, 2);
}

static void
no_interpreter_serves_for_longer_than_ten_minutes (void **state)
{
  (void) state;
  seen.slow = 1;
  self.warms->now.born_ns -= 539 * SECOND;
  assert_int_equal (copies (1), COFFER_OK);
  assert_int_equal (seen.last, 1);
  self.warms->now.born_ns -= 30 * SECOND;
  assert_int_equal (copies (1), COFFER_OK);
  assert_int_equal (seen.last, 2);
  assert_int_equal (seen.asked, 1);
  self.warms->now.born_ns -= 31 * SECOND;
  assert_int_equal (copies (1), COFFER_OK);
  assert_int_equal (seen.asked, 2);
}

static void
an_old_one_is_not_used_on_where_no_other_can_be_begun (void **state)
{
  (void) state;
  self.warms->now.born_ns -= 600 * SECOND;
  seen.fails = 1;
  seen.asked = 0;
  assert_int_equal (copies (1), COFFER_UNAVAILABLE);
  assert_int_equal (seen.asked, 0);
  seen.fails = 0;
  assert_int_equal (copies (1), COFFER_OK);
  assert_int_equal (seen.asked, 2);
}

static void
one_that_ended_by_itself_is_begun_anew_by_the_same_handle (void **state)
{
  (void) state;
  assert_int_equal (copies (1), COFFER_OK);
  zygote_end (&self.warms->now);
  assert_int_equal (copies (1), COFFER_OK);
  assert_int_equal (seen.asked, 2);
  assert_int_equal (self.warms->number, 1);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup_teardown (f, begin, end)
  const struct CMUnitTest tests[] = {
    TEST (no_interpreter_makes_more_than_a_thousand_copies),
    TEST (what_they_did_is_counted_beyond_the_end_of_one),
    TEST (one_that_is_being_made_is_not_waited_for_by_who_looks),
    TEST (the_next_one_serves_as_soon_as_it_is_ready),
    TEST (no_interpreter_serves_for_longer_than_ten_minutes),
    TEST (an_old_one_is_not_used_on_where_no_other_can_be_begun),
    TEST (one_that_ended_by_itself_is_begun_anew_by_the_same_handle),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
