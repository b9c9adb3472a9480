/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that end at a set time. */

#include <poll.h>
#include <time.h>

#include "case.h"

static int64_t
now_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_REALTIME, &now);
  return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A short time to live, which may be over before the case has come to what it
 * is about: each try has more of it. */
#define SHORT_MS 250
#define LONGEST_MS 20000

/* Made, with a command that goes on and has the mark in its arguments.  NULL:
 * its time was over before that ran. */
static const char *
ttl_try (struct kit *kit, uint64_t ttl_ms, const char *mark)
{
  const char *const argv[]
    = { "sh", "-c", "echo began; while :; do sleep 1; done", mark, NULL };
  struct coffer_sandbox_spec spec = kit_spec (kit);
  struct case_run run = { .kit = kit, .in = -1 };
  struct kit_reply reply = KIT_REPLY_INIT;
  int32_t code;
  char *text;
  int out[2];

  spec.ttl_ms = ttl_ms;
  run.sandbox = kit_sandbox_with (kit, kit_first (kit), &spec);
  if (!kit_claims (kit, "exec"))
    return run.sandbox;
  kit_pipe (kit, out);
  run.out = out[0];
  code = kit_exec_start (kit_first (kit), &reply, run.sandbox, argv, NULL,
                         NULL, -1, out[1], -1, NULL);
  case_close (&out[1]);
  KIT_CHECK (kit, code == COFFER_OK || code == COFFER_NOT_FOUND,
             "exec_start in a sandbox with %" PRIu64 " ms to live: %s", ttl_ms,
             kit_shown (kit, &reply));
  kit_reply_reset (&reply);
  return code == COFFER_OK && case_came (&run, "began", &text) ? run.sandbox
                                                               : NULL;
}

static const char *
ttl_sandbox (struct kit *kit, uint64_t *ttl_ms, const char *mark)
{
  const char *sandbox;

  while ((sandbox = ttl_try (kit, *ttl_ms, mark)) == NULL) {
    KIT_CHECK (kit, *ttl_ms < LONGEST_MS,
               "in a sandbox with %" PRIu64 " ms to live no command ran",
               *ttl_ms);
    *ttl_ms *= 4;
  }
  return sandbox;
}

/* The same with a call that must find it there; again while that does not. */
static const char *
ttl_with (struct kit *kit, uint64_t *ttl_ms, const char *mark,
          struct kit_reply *reply, const char *what,
          int32_t (*call) (struct kit *kit, struct kit_reply *reply,
                           const char *sandbox))
{
  const char *sandbox;
  int32_t code;

  do {
    sandbox = ttl_sandbox (kit, ttl_ms, mark);
    code = call (kit, reply, sandbox);
    *ttl_ms *= code == COFFER_NOT_FOUND ? 4 : 1;
  } while (code == COFFER_NOT_FOUND && *ttl_ms < LONGEST_MS);
  KIT_OK (kit, code, reply, "%s", what);
  return sandbox;
}

/* Until it is no more. */
static void
ttl_gone (struct kit *kit, const char *sandbox)
{
  const char *state;

  for (;;) {
    state = case_state (kit, sandbox, NULL);
    if (strcmp (state, "none") == 0 || strcmp (state, "gone") == 0)
      return;
    if (kit_left_us (kit) < CASE_SECOND_US)
      kit_fail (kit, "long after its time was to be over a sandbox is %s",
                state);
    poll (NULL, 0, 10);
  }
}

static void
ttl_nobody_left (struct kit *kit, const char *sandbox, const char *mark)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  int count = kit_sees_processes (kit) ? case_marked_left (kit, mark) : 0;

  KIT_CHECK (kit, count == 0, "%d processes of a sandbox whose time is over "
             "are left", count);
  KIT_OK (kit, kit_sandbox_list (kit_first (kit), &reply, NULL), &reply,
          "sandbox_list");
  for (size_t i = 0; (info = kit_reply_sandbox_info (&reply, i)) != NULL; i++)
    KIT_CHECK (kit, strcmp (info->sandbox, sandbox) != 0
                      || (info->state && strcmp (info->state, "gone") == 0),
               "sandbox_list shows a sandbox whose time is over");
  kit_reply_reset (&reply);
}

/* Its time begins with its making, of which the kit knows what it was not
 * before. */
static void
ttl_ends (struct kit *kit)
{
  char *const mark = kit_random_word (kit, 16);
  uint64_t ttl_ms = SHORT_MS, tried;
  const char *sandbox;
  int64_t began, took;

  do {
    tried = ttl_ms;
    began = kit_now_us ();
    sandbox = ttl_sandbox (kit, &ttl_ms, mark);
  } while (tried != ttl_ms);
  ttl_gone (kit, sandbox);
  took = kit_now_us () - began;
  KIT_CHECK (kit, took >= (int64_t) ttl_ms * 900,
             "a sandbox with %" PRIu64 " ms to live was gone after %" PRId64
             " ms",
             ttl_ms, took / 1000);
  ttl_nobody_left (kit, sandbox, mark);
}

static void
ttl_told (struct kit *kit)
{
  const uint64_t ttl_ms = 60000 + kit_random_below (kit, 3600000);
  struct coffer_sandbox_spec spec = kit_spec (kit);
  const int64_t before = now_ns ();
  const char *sandbox;
  int64_t after, expires = 0;

  spec.ttl_ms = ttl_ms;
  sandbox = kit_sandbox_with (kit, kit_first (kit), &spec);
  after = now_ns ();
  case_state (kit, sandbox, &expires);
  KIT_CHECK (kit, expires >= before + (int64_t) ttl_ms * 1000000 - 1000000000
                    && expires <= after + (int64_t) ttl_ms * 1000000
                                    + 1000000000,
             "a sandbox with %" PRIu64 " ms to live was said to end %" PRId64
             " ms after it was asked for",
             ttl_ms, (expires - before) / 1000000);
  sandbox = kit_sandbox (kit);
  case_state (kit, sandbox, &expires);
  KIT_CHECK (kit, expires == 0,
             "a sandbox with no end was said to end at %" PRId64, expires);
}

static int32_t
extend (struct kit *kit, struct kit_reply *reply, const char *sandbox)
{
  return kit_sandbox_extend (kit_first (kit), reply, sandbox, 60000, NULL);
}

static void
ttl_later (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  uint64_t ttl_ms = SHORT_MS;
  const int64_t before = now_ns ();
  const char *const sandbox = ttl_with (kit, &ttl_ms, "later", &reply,
                                        "sandbox_extend", extend);
  const int64_t after = now_ns (), began = kit_now_us ();
  const struct coffer_sandbox_info *info = kit_reply_sandbox_info (&reply, 0);
  const char *state;

  KIT_CHECK (kit, info != NULL && info->expires_ns > before + INT64_C (58000000000)
                    && info->expires_ns < after + INT64_C (62000000000),
             "sandbox_extend to 60 s from now said %" PRId64 " ms",
             info ? (info->expires_ns - after) / 1000000 : 0);
  while (kit_now_us () < began + (int64_t) ttl_ms * 1000 + 100000)
    poll (NULL, 0, 10);
  state = case_state (kit, sandbox, NULL);
  KIT_CHECK (kit, strcmp (state, "running") == 0,
             "a sandbox whose end was set to later ended at its first one: %s",
             state);
  kit_reply_reset (&reply);
}

static void
ttl_sooner (struct kit *kit)
{
  char *const mark = kit_random_word (kit, 16);
  struct kit_reply reply = KIT_REPLY_INIT;
  uint64_t ttl_ms = 3600000;
  const char *const sandbox = ttl_sandbox (kit, &ttl_ms, mark);

  KIT_OK (kit,
          kit_sandbox_extend (kit_first (kit), &reply, sandbox, 100, NULL),
          &reply, "sandbox_extend");
  ttl_gone (kit, sandbox);
  ttl_nobody_left (kit, sandbox, mark);
  kit_reply_reset (&reply);
}

static int32_t
pause_it (struct kit *kit, struct kit_reply *reply, const char *sandbox)
{
  return kit_sandbox_pause (kit_first (kit), reply, sandbox, NULL);
}

static void
ttl_paused (struct kit *kit)
{
  char *const mark = kit_random_word (kit, 16);
  struct kit_reply reply = KIT_REPLY_INIT;
  uint64_t ttl_ms = SHORT_MS;
  const char *const sandbox = ttl_with (kit, &ttl_ms, mark, &reply,
                                        "sandbox_pause", pause_it);

  ttl_gone (kit, sandbox);
  ttl_nobody_left (kit, sandbox, mark);
}

static void
ttl_refused (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_CODE (kit,
            kit_sandbox_extend (kit_first (kit), &reply, kit_new_id (kit), 1000,
                                NULL),
            &reply, COFFER_NOT_FOUND, "sandbox_extend of no sandbox");
  KIT_CODE (kit,
            kit_sandbox_extend (kit_first (kit), &reply, kit_sandbox (kit), 0,
                                NULL),
            &reply, COFFER_INVALID, "sandbox_extend to no time");
  kit_reply_reset (&reply);
}

const struct kit_case kit_ttl_cases[] = {
  { "ttl.ends", "ttl",
    "A sandbox ends by itself when its time is over, not before, with all that "
    "runs in it.",
    ttl_ends, 60000 },
  { "ttl.told", "ttl",
    "sandbox_info says when a sandbox ends, and 0 where it does not.",
    ttl_told },
  { "ttl.later", "ttl", "sandbox_extend sets a later end.", ttl_later,
    60000 },
  { "ttl.sooner", "ttl", "sandbox_extend sets a nearer end.", ttl_sooner },
  { "ttl.paused", "pause ttl", "Time runs on in a sandbox that is paused.",
    ttl_paused, 60000 },
  { "ttl.refused", "ttl",
    "Of no sandbox it is NOT_FOUND, and no time is INVALID.", ttl_refused },
  { NULL }
};
