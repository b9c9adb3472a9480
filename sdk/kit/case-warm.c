/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters that stand ready, and what is started from them. */

#include <stdio.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "case.h"

/* Says a word of chance, what it is told, what it has counted, and which of its
 * modules are there. */
static const char program[]
  = "import os, sys\n"
    "count = 0\n"
    "def prepare(modules):\n"
    "    missing = []\n"
    "    for name in modules:\n"
    "        try: __import__(name)\n"
    "        except ImportError: missing.append(name)\n"
    "    return missing\n"
    "def run():\n"
    "    global count\n"
    "    count += 1\n"
    "    told = os.read(0, 100).decode()\n"
    "    try:\n"
    "        with open('left', 'x') as file: left = 'new'\n"
    "    except FileExistsError: left = 'old'\n"
    "    there = 'there' if 'colorsys' in sys.modules else 'missing'\n"
    "    os.write(1, ('%s %s %d %s %s' % (WORD, told, count, left, there))\n"
    "                .encode())\n"
    "    os._exit(count + 2)\n";

#define MANY 20

struct warm {
  const char *word, *handle;
};

static int32_t
warm_open (struct kit *kit, struct kit_reply *reply, const char *word)
{
  static const char *const modules[]
    = { "colorsys", "no_such_module_anywhere", NULL };
  const struct coffer_warm_open_opts opts
    = { .size = sizeof opts, .modules = modules };
  const char *const text = kit_text (kit, "WORD = '%s'\n%s", word, program);
  int in = coffer_memfd_sealed ("program", text, strlen (text));
  int32_t code;

  KIT_CHECK (kit, in >= 0, "a file in memory: %s", strerror (errno));
  code = kit_warm_open (kit_first (kit), reply, "minimal", in, &opts);
  case_close (&in);
  return code;
}

static struct warm
warm_new (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  struct warm warm = { kit_random_word (kit, 12), NULL };

  KIT_OK (kit, warm_open (kit, &reply, warm.word), &reply, "warm_open");
  warm.handle = kit_text (kit, "%s", kit_reply_exec_info (&reply, 0)->exec);
  kit_reply_reset (&reply);
  return warm;
}

/* Nothing can be started there from within; where a provider has no filter, any
 * sandbox will do. */
static const char *
sandbox_for (struct kit *kit, const char *handle)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *const id = kit_new_id (kit);

  spec.filter = "strict";
  spec.warm = handle;
  if (kit_sandbox_create (kit_first (kit), &reply, id, &spec, NULL)
      == COFFER_UNSUPPORTED) {
    kit_reply_reset (&reply);
    spec.filter = NULL;
    kit_sandbox_create (kit_first (kit), &reply, id, &spec, NULL);
  }
  KIT_OK (kit, reply.code, &reply, "create a sandbox with the filter strict");
  kit_reply_reset (&reply);
  return id;
}

static const char *
strict_sandbox (struct kit *kit)
{
  return sandbox_for (kit, NULL);
}

/* The command itself must not run: what it would write is of its own. */
static const char *const command[] = { "sh", "-c", "echo cold; read word; exit 9",
                                        NULL };

/* What it wrote, and in *exit how it ended. */
static char *
run_in (struct kit *kit, const char *id, const char *handle, const char *told,
        const struct coffer_exec_exit **exit)
{
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .warm = handle };
  struct case_run run;
  char *text;

  case_start_argv (kit, id, command, 1, &opts, &run);
  case_send (&run, told);
  case_close (&run.in);
  text = case_rest (&run, NULL);
  *exit = case_wait (&run);
  return text;
}

static char *
warm_run (struct kit *kit, const struct warm *warm, const char *told,
          const struct coffer_exec_exit **exit)
{
  return run_in (kit, strict_sandbox (kit), warm->handle, told, exit);
}

static void
runs_in (struct kit *kit, const char *id, const struct warm *warm)
{
  const char *const told = kit_random_word (kit, 12);
  const char *const wanted
    = kit_text (kit, "%s %s 1 new there", warm->word, told);
  const struct coffer_exec_exit *exit;
  const char *const text = run_in (kit, id, warm->handle, told, &exit);

  KIT_CHECK (kit, strcmp (text, wanted) == 0,
             "a copy of the program was to write \"%s\": \"%s\" came", wanted,
             case_shown (kit, text, strlen (text)));
  case_expect_code (kit, exit, 3, "a copy of the program");
}

static void
runs (struct kit *kit)
{
  const struct warm warm = warm_new (kit);

  runs_in (kit, strict_sandbox (kit), &warm);
}

/* What waits in a sandbox is no command yet, and holds nobody to anything. */
static void
ahead (struct kit *kit)
{
  const struct warm warm = warm_new (kit), other = warm_new (kit);
  const char *const id = sandbox_for (kit, warm.handle);
  struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_exec_exit *exit;
  const char *text;

  KIT_OK (kit, kit_exec_list (kit_first (kit), &reply, id, NULL), &reply,
          "exec_list of a sandbox that nothing was started in");
  KIT_CHECK (kit, kit_reply_exec_info (&reply, 0) == NULL,
             "exec_list of a sandbox that nothing was started in: a command "
             "is there");
  kit_reply_reset (&reply);
  runs_in (kit, id, &warm);
  runs_in (kit, sandbox_for (kit, warm.handle), &other);
  text = run_in (kit, sandbox_for (kit, warm.handle), NULL, "on\n", &exit);
  KIT_CHECK (kit, strcmp (text, "cold\n") == 0,
             "a command of the sandbox's own was to write \"cold\": \"%s\" "
             "came", case_shown (kit, text, strlen (text)));
  case_expect_code (kit, exit, 9, "a command of the sandbox's own");
  spec.warm = kit_random_word (kit, 10);
  KIT_CODE (kit,
            kit_sandbox_create (kit_first (kit), &reply, kit_new_id (kit),
                                &spec, NULL),
            &reply, COFFER_NOT_FOUND,
            "sandbox_create with a handle that nobody gave");
  kit_reply_reset (&reply);
}

/* More than anybody keeps: the one that was just given holds. */
static void
many (struct kit *kit)
{
  struct warm warm = warm_new (kit);
  int i;

  for (i = 0; i < MANY; i++)
    warm = warm_new (kit);
  runs_in (kit, strict_sandbox (kit), &warm);
}

/* Of what a copy wrote, what an earlier one may have left; that a copy wrote it
 * is for warm.runs to say. */
static void
fresh_run (struct kit *kit, const struct warm *warm)
{
  const struct coffer_exec_exit *exit;
  char *const text = warm_run (kit, warm, kit_random_word (kit, 12), &exit);
  char left[8] = "";
  int count = 0;

  if (sscanf (text, "%*s %*s %d %7s", &count, left) == 2)
    KIT_CHECK (kit, count == 1 && strcmp (left, "new") == 0,
               "a copy of the program was to find nothing of another: \"%s\" "
               "came",
               case_shown (kit, text, strlen (text)));
}

static void
fresh (struct kit *kit)
{
  const struct warm warm = warm_new (kit), other = warm_new (kit);
  int i;

  for (i = 0; i < 3; i++)
    fresh_run (kit, &warm);
  fresh_run (kit, &other);
  fresh_run (kit, &warm);
}

static int32_t
start_from (struct kit *kit, struct kit_reply *reply, const char *handle)
{
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .warm = handle };

  return kit_exec_start (kit_first (kit), reply, strict_sandbox (kit), command,
                         NULL, NULL, -1, -1, -1, &opts);
}

static void
unknown (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_CODE (kit, start_from (kit, &reply, kit_random_word (kit, 10)), &reply,
            COFFER_NOT_FOUND, "exec_start with a handle that nobody gave");
  kit_reply_reset (&reply);
}

static void
timeout (struct kit *kit)
{
  const struct warm warm = warm_new (kit);
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .warm = warm.handle, .timeout_ms = 700 };
  const struct coffer_exec_exit *exit;
  struct case_run run;

  /* It waits to be told something. */
  case_start_argv (kit, strict_sandbox (kit), command, 1, &opts, &run);
  exit = case_wait (&run);
  KIT_CHECK (kit, exit->timed_out == 1,
             "a copy of a program that waits was to be ended at its timeout: "
             "%s, timed_out %" PRIu32,
             case_exit_text (kit, exit), exit->timed_out);
  case_close (&run.in);
}

static void
unclaimed (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .warm = kit_random_word (kit, 10) };
  struct coffer_sandbox_spec spec = kit_spec (kit);

  if (kit_claims (kit, "exec.warm"))
    return;
  KIT_CODE (kit,
            kit_exec_start (kit_first (kit), &reply, kit_sandbox (kit),
                            command, NULL, NULL, -1, -1, -1, &opts),
            &reply, COFFER_UNSUPPORTED,
            "exec_start with warm, where exec.warm is not claimed");
  kit_reply_reset (&reply);
  spec.warm = opts.warm;
  KIT_CODE (kit,
            kit_sandbox_create (kit_first (kit), &reply, kit_new_id (kit),
                                &spec, NULL),
            &reply, COFFER_UNSUPPORTED,
            "sandbox_create with warm, where exec.warm is not claimed");
  kit_reply_reset (&reply);
}

const struct kit_case kit_warm_cases[] = {
  { "warm.runs", "exec.warm exec.stdin",
    "A program that stands ready runs in the place of the command, with its "
    "modules there and what it is told on its input.",
    runs },
  { "warm.fresh", "exec.warm exec.stdin",
    "Nothing that a copy changes is seen by the next, nor by one of another "
    "handle.",
    fresh, 60000 },
  { "warm.ahead", "exec.warm exec.stdin",
    "A sandbox that is made for a handle has no command; the first is a copy of "
    "what it was made for, of another, or neither, as exec_start says.",
    ahead, 60000 },
  { "warm.many", "exec.warm exec.stdin",
    "However many handles were given before, the last one holds.",
    many, 60000 },
  { "warm.unknown", "exec.warm", "A handle that nobody gave is NOT_FOUND.",
    unknown },
  { "warm.timeout", "exec.warm exec.stdin",
    "A copy is ended at its timeout as any command, and that is said.",
    timeout },
  { "warm.unclaimed", "exec",
    "Where exec.warm is not claimed a start from a handle is UNSUPPORTED.",
    unclaimed },
  { NULL }
};
