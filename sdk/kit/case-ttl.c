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

static const char *
ttl_sandbox (struct kit *kit, uint64_t ttl_ms, const char *mark)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);
  const char *sandbox;
  struct case_run run;

  spec.ttl_ms = ttl_ms;
  sandbox = kit_sandbox_with (kit, kit_first (kit), &spec);
  if (kit_claims (kit, "exec")) {
    case_start (kit, sandbox,
                kit_text (kit, "echo began; while :; do sleep 1; done # %s",
                          mark),
                0, NULL, &run);
    case_until (&run, "began");
  }
  return sandbox;
}

/* Until it is no more; the time when that was seen. */
static int64_t
gone_at (struct kit *kit, const char *sandbox, uint32_t ms)
{
  const int64_t stop = kit_now_us () + (int64_t) ms * 1000;
  const char *state;

  for (;;) {
    state = case_state (kit, sandbox, NULL);
    if (strcmp (state, "none") == 0 || strcmp (state, "gone") == 0)
      return kit_now_us ();
    if (kit_now_us () >= stop)
      kit_fail (kit, "%u ms after its time was to be over a sandbox is %s",
                ms, state);
    poll (NULL, 0, 20);
  }
}

static void
ttl_nobody_left (struct kit *kit, const char *sandbox, const char *mark)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  int count = kit_sees_processes (kit) ? case_marked (kit, mark, 0, 2000) : 0;

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

static void
ttl_ends (struct kit *kit)
{
  char *const mark = kit_random_word (kit, 16);
  const int64_t began = kit_now_us ();
  const char *const sandbox = ttl_sandbox (kit, 500, mark);
  int64_t over = gone_at (kit, sandbox, 5000);

  KIT_CHECK (kit, over - began >= 450000,
             "a sandbox with 500 ms to live was gone after %" PRId64 " ms",
             (over - began) / 1000);
  ttl_nobody_left (kit, sandbox, mark);
}

static void
ttl_told (struct kit *kit)
{
  const uint64_t ttl_ms = 60000 + kit_random_below (kit, 3600000);
  const int64_t before = now_ns ();
  const char *sandbox = ttl_sandbox (kit, ttl_ms, "told");
  const int64_t after = now_ns ();
  int64_t expires = 0;

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

static void
ttl_later (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const int64_t began = kit_now_us ();
  const char *const sandbox = ttl_sandbox (kit, 500, "later");
  const struct coffer_sandbox_info *info;
  const int64_t now = now_ns ();
  const char *state;

  KIT_OK (kit,
          kit_sandbox_extend (kit_first (kit), &reply, sandbox, 60000, NULL),
          &reply, "sandbox_extend");
  info = kit_reply_sandbox_info (&reply, 0);
  KIT_CHECK (kit, info != NULL && info->expires_ns > now + INT64_C (58000000000)
                    && info->expires_ns < now + INT64_C (63000000000),
             "sandbox_extend to 60 s from now said %" PRId64 " ms",
             info ? (info->expires_ns - now) / 1000000 : 0);
  while (kit_now_us () < began + 800000)
    poll (NULL, 0, 50);
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
  const char *const sandbox = ttl_sandbox (kit, 3600000, mark);

  KIT_OK (kit,
          kit_sandbox_extend (kit_first (kit), &reply, sandbox, 300, NULL),
          &reply, "sandbox_extend");
  gone_at (kit, sandbox, 5000);
  ttl_nobody_left (kit, sandbox, mark);
  kit_reply_reset (&reply);
}

static void
ttl_paused (struct kit *kit)
{
  char *const mark = kit_random_word (kit, 16);
  const char *const sandbox = ttl_sandbox (kit, 500, mark);
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_OK (kit, kit_sandbox_pause (kit_first (kit), &reply, sandbox, NULL),
          &reply, "sandbox_pause");
  gone_at (kit, sandbox, 5000);
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
    ttl_ends },
  { "ttl.told", "ttl",
    "sandbox_info says when a sandbox ends, and 0 where it does not.",
    ttl_told },
  { "ttl.later", "ttl", "sandbox_extend sets a later end.", ttl_later },
  { "ttl.sooner", "ttl", "sandbox_extend sets a nearer end.", ttl_sooner },
  { "ttl.paused", "pause ttl", "Time runs on in a sandbox that is paused.",
    ttl_paused },
  { "ttl.refused", "ttl",
    "Of no sandbox it is NOT_FOUND, and no time is INVALID.", ttl_refused },
  { NULL }
};
