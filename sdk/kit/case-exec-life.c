/* SPDX-License-Identifier: Apache-2.0 */
/* Commands side by side and over time: timeouts, cancelled waits, signals,
 * lists, what is left behind. */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "case.h"

/* ---- timeouts ------------------------------------------------------------ */

static void
timeout_tells (struct kit *kit)
{
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .timeout_ms = 200 };
  const char *const sandbox = kit_sandbox (kit);
  const struct coffer_exec_exit *exit;
  struct case_run run;
  int64_t began, took;

  began = kit_now_us ();
  case_start (kit, sandbox, "echo began; sleep 1000", 0, &opts, &run);
  exit = case_wait (&run);
  took = kit_now_us () - began;
  KIT_CHECK (kit, exit->timed_out == 1 && exit->code != 0,
             "a command with a timeout of 200 ms was to end with timed_out and "
             "no code 0: %s",
             case_exit_text (kit, exit));
  KIT_CHECK (kit, took >= 190000,
             "a command with a timeout of 200 ms ended after %" PRId64 " ms",
             took / 1000);
  case_sh_exit (kit, sandbox, "exit 3", &exit);
  KIT_CHECK (kit, exit->timed_out == 0,
             "a command that ended by itself was told to have timed out");
}

#define DESCENDANTS                                                           \
  "nap='while :; do sleep 1; done' s=\n"                                      \
  "setsid true 2> /dev/null && s=setsid\n"                                    \
  "sh -c \"$nap\" %s &\n"                                                     \
  "$s sh -c \"$nap\" %s &\n"                                                  \
  "sh -c \"trap '' TERM HUP INT; $nap\" %s &\n"                               \
  "sh -c 'kill -STOP $$' %s &\n"                                              \
  "( $s sh -c \"sh -c '$nap' %s & exit\" & )\n"                               \
  "echo all; eval \"$nap\""

/* Whoever descends from a command, by whatever way: all hold its output open,
 * and all have the mark in their arguments.  Its end; *all: each of them was
 * there before its time was over. */
static const struct coffer_exec_exit *
descendants (struct kit *kit, const char *sandbox, uint32_t ms,
             const char *mark, struct case_run *run, int *all)
{
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .timeout_ms = ms };
  const int64_t over = kit_now_us () + ms * INT64_C (1000);
  const int sees = kit_sees_processes (kit);
  char *text;

  case_start (kit, sandbox,
              kit_text (kit, DESCENDANTS, mark, mark, mark, mark, mark), 0,
              &opts, run);
  *all = case_came (run, "all", &text);
  while (*all && sees && kit_marked_processes (kit, mark) < 5) {
    *all = kit_now_us () < over;
    poll (NULL, 0, 5);
  }
  return case_wait (run);
}

/* On a machine that is busy some of them may come too late: then once more with
 * more time. */
static void
timeout_descendants (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const struct coffer_exec_exit *exit;
  struct case_run run;
  const char *mark;
  uint32_t ms = 100;
  int all, count;
  char bytes[512];

  do {
    ms *= 4;
    mark = kit_random_word (kit, 16);
    exit = descendants (kit, sandbox, ms, mark, &run, &all);
    KIT_CHECK (kit, exit->timed_out == 1, "a command with a timeout of %" PRIu32
               " ms was to end by it: %s",
               ms, case_exit_text (kit, exit));
  } while (!all && ms < 20000);
  KIT_CHECK (kit, all, "within %" PRIu32 " ms a command had not started five "
             "others that are in /proc of this machine", ms);
  count = kit_sees_processes (kit) ? case_marked_left (kit, mark) : 0;
  KIT_CHECK (kit, count == 0,
             "after its timeout %d descendants of a command (of five: plain, "
             "with a session of its own, deaf to SIGTERM, stopped, forked "
             "twice) are still in /proc of this machine",
             count);
  while ((count = case_speaks (&run)) == 1
         && read (run.out, bytes, sizeof bytes) > 0)
    ;
  KIT_CHECK (kit, count != 0, "after its timeout somebody still holds the "
             "output of a command open");
}

static void
timeout_alone (struct kit *kit)
{
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .timeout_ms = 200 };
  const char *const sandbox = kit_sandbox (kit);
  char *const word = kit_random_word (kit, 12);
  struct case_run other, late;

  case_start (kit, sandbox,
              kit_text (kit, "echo began; until [ -e %s ]; do sleep 0.05; done; "
                        "exit 5", word),
              0, NULL, &other);
  case_until (&other, "began");
  case_start (kit, sandbox, "sleep 1000", 0, &opts, &late);
  case_wait (&late);
  case_sh (kit, sandbox, ": > %s", word);
  case_expect_code (kit, case_wait (&other), 5,
                    "a command beside one that timed out");
}

/* ---- waits --------------------------------------------------------------- */

struct waiting {
  const char *sandbox, *exec;
  struct kit_reply reply;
  int32_t code;
};

static void
cancel_work (struct kit *kit, void *data, size_t index)
{
  struct waiting *waiting = data;

  if (index == 0)
    waiting->code = kit_exec_wait (kit_first (kit), &waiting->reply,
                                   waiting->sandbox, waiting->exec, NULL);
  else {
    poll (NULL, 0, 30);         /* so that it is most likely under way */
    kit_cancel (waiting->reply.cancel_fd);
  }
}

static void
wait_cancel (struct kit *kit)
{
  struct waiting waiting = { .reply = KIT_REPLY_INIT };
  struct case_run run;

  waiting.sandbox = kit_sandbox (kit);
  case_start (kit, waiting.sandbox, "echo began; read word; exit 9", 1, NULL,
              &run);
  case_until (&run, "began");
  waiting.exec = run.exec;
  waiting.reply.cancel_fd = kit_cancel_new (kit);
  kit_threads (kit, 2, cancel_work, &waiting);
  KIT_CHECK (kit, waiting.code == COFFER_CANCELLED,
             "exec_wait was cancelled, and was to say CANCELLED: %s",
             kit_shown (kit, &waiting.reply));
  kit_reply_reset (&waiting.reply);
  case_send (&run, "on\n");
  case_expect_code (kit, case_wait (&run), 9, "a command of which a wait was "
                    "cancelled");
}

static void
wait_deadline (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  struct case_run run;

  case_start (kit, kit_sandbox (kit), "echo began; read word; exit 8", 1, NULL,
              &run);
  case_until (&run, "began");
  reply.deadline_ms = 250;
  KIT_CODE (kit,
            kit_exec_wait (kit_first (kit), &reply, run.sandbox, run.exec,
                           NULL),
            &reply, COFFER_TIMEOUT, "exec_wait with a deadline of 250 ms");
  kit_reply_reset (&reply);
  case_send (&run, "on\n");
  case_expect_code (kit, case_wait (&run), 8, "a command of which a wait had "
                    "a deadline");
}

/* A child in the background has the output still open. */
static void
child_left (struct kit *kit)
{
  struct case_run run;

  case_start (kit, kit_sandbox (kit), "sleep 1000 & echo began; exit 4", 0,
              NULL, &run);
  case_until (&run, "began");
  case_expect_code (kit, case_wait (&run), 4, "a command whose child goes on");
}

/* ---- side by side -------------------------------------------------------- */

#define MANY 20

static void
many (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct case_run runs[MANY];
  char *words[MANY];
  size_t i, k;

  for (i = 0; i < MANY; i++) {
    words[i] = kit_random_word (kit, 16);
    case_start (kit, sandbox,
                kit_text (kit, "echo %s; until [ -e go ]; do sleep 0.05; done; "
                          "echo %s%s; exit %zu",
                          words[i], words[i], words[i], i + 1),
                0, NULL, &runs[i]);
  }
  for (i = 0; i < MANY; i++)
    case_until (&runs[i], words[i]);
  for (i = 0; i < MANY; i++)
    for (k = 0; k < i; k++)
      KIT_CHECK (kit, strcmp (runs[i].exec, runs[k].exec) != 0,
                 "two commands at the same time have the id %s", runs[i].exec);
  case_sh (kit, sandbox, ": > go");
  for (i = 0; i < MANY; i++) {
    const char *wanted = kit_text (kit, "%s%s\n", words[i], words[i]);
    char *text = case_rest (&runs[i], NULL);

    text += strspn (text, "\n");
    KIT_CHECK (kit, strcmp (text, wanted) == 0,
               "command %zu of twenty at once was to write \"%s\" at its end: "
               "\"%s\" came",
               i + 1, wanted, case_shown (kit, text, strlen (text)));
    case_expect_code (kit, case_wait (&runs[i]), (int32_t) i + 1,
                      "one of twenty commands at once");
  }
}

static const char *
listed_state (struct kit *kit, const char *sandbox, const char *exec)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_exec_info *info;
  const char *state = "absent";

  KIT_OK (kit, kit_exec_list (kit_first (kit), &reply, sandbox, NULL), &reply,
          "exec_list");
  for (size_t i = 0; (info = kit_reply_exec_info (&reply, i)) != NULL; i++)
    if (info->exec != NULL && strcmp (info->exec, exec) == 0)
      state = kit_text (kit, "%s", info->state ? info->state : "?");
  kit_reply_reset (&reply);
  return state;
}

static void
list (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit), *const other
    = kit_sandbox (kit);
  struct case_run run;
  const char *state;

  case_start (kit, sandbox, "echo began; until [ -e go ]; do sleep 0.05; done", 0,
              NULL, &run);
  case_until (&run, "began");
  state = listed_state (kit, sandbox, run.exec);
  KIT_CHECK (kit, strcmp (state, "running") == 0,
             "exec_list was to show a command that runs as running: %s", state);
  KIT_CHECK (kit, strcmp (other, sandbox) != 0, "two sandboxes have one id");
  case_sh (kit, sandbox, ": > go");
  case_wait (&run);
  state = listed_state (kit, sandbox, run.exec);
  KIT_CHECK (kit, strcmp (state, "running") != 0,
             "exec_list shows a command that has ended as running");
}

static void
times (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const struct coffer_exec_exit *exit;
  struct case_run run;
  int64_t began = kit_now_us (), whole, ready;

  case_start (kit, sandbox,
              "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo ready; "
              "sleep 0.2",
              0, NULL, &run);
  case_until (&run, "ready");
  ready = kit_now_us () - began;
  exit = case_wait (&run);
  whole = kit_now_us () - began;
  KIT_CHECK (kit, exit->duration_us >= 180000
                    && exit->duration_us <= (uint64_t) whole + 100000,
             "a command that sleeps for 200 ms, and was waited for %" PRId64
             " us, was told to have taken %" PRIu64 " us",
             whole, exit->duration_us);
  KIT_CHECK (kit, exit->cpu_us <= (uint64_t) ready * 2 + 200000,
             "a command that computed for %" PRId64 " us at most was told to "
             "have used %" PRIu64 " us of processors",
             ready, exit->cpu_us);
}

/* ---- signals ------------------------------------------------------------- */

static void
signals (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  struct case_run run;
  char *text;

  case_start (kit, kit_sandbox (kit),
              "trap 'echo heard; exit 7' TERM; echo began; "
              "while :; do sleep 0.05; done",
              0, NULL, &run);
  case_until (&run, "began");
  KIT_OK (kit,
          kit_exec_signal (kit_first (kit), &reply, run.sandbox, run.exec,
                           SIGTERM, NULL),
          &reply, "exec_signal SIGTERM");
  case_expect_code (kit, case_wait (&run), 7,
                    "a command that ends with 7 on SIGTERM");
  text = case_rest (&run, NULL);
  KIT_CHECK (kit, strstr (text, "heard") != NULL,
             "a command that says so on SIGTERM did not: \"%s\"",
             case_shown (kit, text, strlen (text)));
  kit_reply_reset (&reply);
}

static void
signal_group (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_exec_exit *exit;
  struct case_run run;
  char bytes[64];

  /* Both wait for what does not come, and neither starts anything more. */
  case_start (kit, kit_sandbox (kit),
              "mkfifo p; sh -c 'echo began; read word < p' & wait; true", 0,
              NULL, &run);
  case_until (&run, "began");
  KIT_OK (kit,
          kit_exec_signal (kit_first (kit), &reply, run.sandbox, run.exec,
                           SIGKILL, NULL),
          &reply, "exec_signal SIGKILL");
  exit = case_wait (&run);
  KIT_CHECK (kit, exit->signal == SIGKILL && exit->code == -1,
             "a command that was sent SIGKILL was to end by it: %s",
             case_exit_text (kit, exit));
  KIT_CHECK (kit, exit->timed_out == 0,
             "a command that was sent SIGKILL was told to have timed out");
  while (case_speaks (&run) == 1 && read (run.out, bytes, sizeof bytes) > 0)
    ;
  KIT_CHECK (kit, case_quiet (&run, 0) != 0,
             "SIGKILL was to reach the command's whole process group: its "
             "child still holds its output");
  kit_reply_reset (&reply);
}

static void
signal_refused (struct kit *kit)
{
  static const int32_t odd[] = { -1, 65, 9999 };
  struct kit_reply reply = KIT_REPLY_INIT;
  struct kit_instance *const first = kit_first (kit);
  struct case_run run;

  case_start (kit, kit_sandbox (kit), "echo began; read word; exit 6", 1, NULL,
              &run);
  case_until (&run, "began");
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
    KIT_CODE (kit,
              kit_exec_signal (first, &reply, run.sandbox, run.exec, odd[i],
                               NULL),
              &reply, COFFER_INVALID, "exec_signal with number %d", odd[i]);
  KIT_CODE (kit,
            kit_exec_signal (first, &reply, run.sandbox, "zz", SIGTERM, NULL),
            &reply, COFFER_NOT_FOUND, "exec_signal to no command");
  case_send (&run, "on\n");
  case_expect_code (kit, case_wait (&run), 6,
                    "a command that was sent no signal");
  KIT_CODE (kit,
            kit_exec_signal (first, &reply, run.sandbox, run.exec, SIGTERM,
                             NULL),
            &reply, COFFER_CONFLICT, "exec_signal to a command that has ended");
  kit_reply_reset (&reply);
}

const struct kit_case kit_exec_life_cases[] = {
  { "exec.timeout", "exec",
    "A command ends at its timeout, and its end says so.", timeout_tells },
  { "exec.timeout-descendants", "exec",
    "A timeout ends every descendant: those in sessions of their own, deaf to "
    "SIGTERM, stopped, forked twice.",
    timeout_descendants, 60000 },
  { "exec.timeout-alone", "exec",
    "The timeout of one command leaves the others alone.", timeout_alone },
  { "exec.wait-cancel", "exec exec.stdin",
    "A wait that is cancelled says CANCELLED at once, and the command goes on.",
    wait_cancel },
  { "exec.wait-deadline", "exec exec.stdin",
    "A wait ends at its deadline with TIMEOUT, and the command goes on.",
    wait_deadline },
  { "exec.child-left", "exec",
    "A child that holds the output open does not hold up exec_wait.",
    child_left },
  { "exec.many", "exec",
    "Twenty commands at once each have their own id, output and end.", many,
    60000 },
  { "exec.list", "exec",
    "exec_list shows a command as running as long as it runs.", list },
  { "exec.times", "exec",
    "The time that a command took is plausible, and so is its processor time.",
    times },
  { "exec.signal", "exec exec.signal",
    "A signal reaches a command, which can act on it.", signals },
  { "exec.signal-group", "exec exec.signal",
    "SIGKILL ends a command's whole process group.", signal_group },
  { "exec.signal-refused", "exec exec.stdin exec.signal",
    "Signals that there are not are INVALID, commands that there are not "
    "NOT_FOUND, and one that has ended is a CONFLICT.",
    signal_refused },
  { NULL }
};
