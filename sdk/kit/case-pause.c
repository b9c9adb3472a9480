/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that rest. */

#include <unistd.h>

#include "case.h"

static void
change (struct kit *kit, const char *sandbox, int pause)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  if (pause)
    KIT_OK (kit, kit_sandbox_pause (kit_first (kit), &reply, sandbox, NULL),
            &reply, "sandbox_pause");
  else
    KIT_OK (kit, kit_sandbox_resume (kit_first (kit), &reply, sandbox, NULL),
            &reply, "sandbox_resume");
  kit_reply_reset (&reply);
}

/* ---- pause --------------------------------------------------------------- */

#define QUIET_MS 300
/* More than lies in pipes and with whoever passes it on. */
#define UNDERWAY (4 * CASE_MIB)

/* 1: it has become quiet; 0: it goes on and on. */
static int
drain (struct case_run *run)
{
  char bytes[65536];
  size_t size = 0;
  ssize_t n;

  while (case_quiet (run, QUIET_MS) != 0) {
    n = read (run->out, bytes, sizeof bytes);
    if (n <= 0)
      kit_fail (run->kit, "a command that counts for ever has ended");
    size += (size_t) n;
    if (size > UNDERWAY || kit_left_us (run->kit) < CASE_SECOND_US)
      return 0;
  }
  return 1;
}

/* A command that writes for ever: what was under way comes, then nothing
 * more. */
static void
pause_stops (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct case_run run;

  case_start (kit, sandbox, "while :; do echo on; done", 0, NULL, &run);
  case_until (&run, "on");
  change (kit, sandbox, 1);
  KIT_CHECK (kit, drain (&run),
             "a command in a sandbox that is paused goes on writing");
  change (kit, sandbox, 0);
  KIT_CHECK (kit, case_speaks (&run) == 1,
             "a command in a sandbox that was resumed does not go on");
}

/* The same processes, with what they had in memory. */
static void
pause_keeps (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const word = kit_random_word (kit, 20);
  struct case_run run;

  case_start (kit, sandbox,
              kit_text (kit, "word=%s; echo began; read line; echo $word-$line",
                        word),
              1, NULL, &run);
  case_until (&run, "began");
  change (kit, sandbox, 1);
  change (kit, sandbox, 0);
  case_send (&run, "line\n");
  case_until (&run, kit_text (kit, "%s-line", word));
  case_expect_code (kit, case_wait (&run), 0,
                    "a command whose sandbox was paused and resumed");
}

static void
pause_state (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *state;

  for (int pause = 1; pause >= 0; pause--) {
    change (kit, sandbox, pause);
    state = case_state (kit, sandbox, NULL);
    KIT_CHECK (kit, strcmp (state, pause ? "paused" : "running") == 0,
               "after sandbox_%s sandbox_info was to say %s: %s",
               pause ? "pause" : "resume", pause ? "paused" : "running",
               state);
  }
}

static void
pause_twice (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *state;

  change (kit, sandbox, 0);
  change (kit, sandbox, 1);
  change (kit, sandbox, 1);
  change (kit, sandbox, 0);
  change (kit, sandbox, 0);
  state = case_state (kit, sandbox, NULL);
  KIT_CHECK (kit, strcmp (state, "running") == 0,
             "paused twice and resumed twice, a sandbox was to be running: %s",
             state);
  case_sh (kit, sandbox, "true");
}

static void
pause_exec (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const argv[] = { "sh", "-c", ": > ran", NULL };
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *text;

  change (kit, sandbox, 1);
  KIT_CODE (kit,
            kit_exec_start (kit_first (kit), &reply, sandbox, argv, NULL, NULL,
                            -1, -1, -1, NULL),
            &reply, COFFER_CONFLICT, "exec_start in a sandbox that is paused");
  change (kit, sandbox, 0);
  text = case_sh (kit, sandbox, "ls");
  KIT_CHECK (kit, text[0] == '\0',
             "a command that was refused with CONFLICT did run");
  kit_reply_reset (&reply);
}

static void
pause_kill (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  char *const mark = kit_random_word (kit, 16);
  struct kit_reply reply = KIT_REPLY_INIT;
  struct case_run run;
  int count;

  case_start (kit, sandbox,
              kit_text (kit, "echo began; while :; do sleep 1; done # %s",
                        mark),
              0, NULL, &run);
  case_until (&run, "began");
  change (kit, sandbox, 1);
  KIT_OK (kit, kit_sandbox_kill (kit_first (kit), &reply, sandbox, NULL),
          &reply, "sandbox_kill of a sandbox that is paused");
  count = kit_sees_processes (kit) ? case_marked_left (kit, mark) : 0;
  KIT_CHECK (kit, count == 0, "%d processes of a sandbox that was killed while "
             "it was paused are left", count);
  KIT_CHECK (kit, strcmp (case_state (kit, sandbox, NULL), "running") != 0,
             "a sandbox that was killed while it was paused runs");
  kit_reply_reset (&reply);
}

static void
pause_unknown (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *const gone = kit_new_id (kit);

  KIT_CODE (kit, kit_sandbox_pause (kit_first (kit), &reply, gone, NULL),
            &reply, COFFER_NOT_FOUND, "sandbox_pause of no sandbox");
  KIT_CODE (kit, kit_sandbox_resume (kit_first (kit), &reply, gone, NULL),
            &reply, COFFER_NOT_FOUND, "sandbox_resume of no sandbox");
  kit_reply_reset (&reply);
}

const struct kit_case kit_pause_cases[] = {
  { "pause.stops", "exec pause",
    "Nothing runs in a sandbox that is paused, and it goes on when resumed.",
    pause_stops },
  { "pause.keeps", "exec exec.stdin pause",
    "What was in memory before a pause is there after it.", pause_keeps },
  { "pause.state", "pause",
    "sandbox_info says whether a sandbox is paused.", pause_state },
  { "pause.twice", "exec pause",
    "To pause what is paused and to resume what runs is success.", pause_twice },
  { "pause.exec", "exec pause",
    "A command in a sandbox that is paused is a CONFLICT, and does not run.",
    pause_exec },
  { "pause.kill", "exec pause", "A sandbox that is paused can be killed.",
    pause_kill },
  { "pause.unknown", "pause", "Of no sandbox it is NOT_FOUND.", pause_unknown },
  { NULL }
};
