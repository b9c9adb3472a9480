/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on a terminal, and commands in the background. */

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "case.h"

/* ---- terminals ----------------------------------------------------------- */

/* A command on a terminal that the kit made; both of run->in and run->out are
 * the kit's side of it. */
static void
tty_start (struct kit *kit, const char *script, uint32_t rows,
           uint32_t columns, struct case_run *run)
{
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .tty = 1, .rows = rows, .columns = columns };
  const char *const argv[] = { "sh", "-c", script, NULL };
  const int side = posix_openpt (O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[128];
  int terminal;

  KIT_CHECK (kit, side >= 0 && grantpt (side) == 0 && unlockpt (side) == 0
                    && ptsname_r (side, name, sizeof name) == 0,
             "making a terminal: %s", strerror (errno));
  terminal = open (name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  KIT_CHECK (kit, terminal >= 0, "%s: %s", name, strerror (errno));
  *run = (struct case_run){ kit, kit_sandbox (kit), NULL, side, side };
  run->exec = kit_start (kit, run->sandbox, argv, terminal, terminal, -1,
                         &opts);
  case_close (&terminal);
}

static void
tty_size (struct kit *kit)
{
  const uint32_t rows = 10 + (uint32_t) kit_random_below (kit, 90);
  const uint32_t columns = 30 + (uint32_t) kit_random_below (kit, 200);
  struct case_run run;

  tty_start (kit, "test -t 0 && test -t 1 && test -t 2 && echo tty; stty size",
             rows, columns, &run);
  case_until (&run, kit_text (kit, "tty\r\n%" PRIu32 " %" PRIu32, rows,
                              columns));
  case_expect_code (kit, case_wait (&run), 0, "a command on a terminal");
}

static void
tty_stream (struct kit *kit)
{
  const char *const first = kit_random_word (kit, 12);
  const char *const second = kit_random_word (kit, 12);
  struct case_run run;

  tty_start (kit,
             kit_text (kit, "echo %s; echo %s >&2; read word; echo got-$word",
                       first, second),
             24, 80, &run);
  case_until (&run, kit_text (kit, "%s\r\n%s\r\n", first, second));
  case_send (&run, "typed\n");
  case_until (&run, "got-typed");
  case_expect_code (kit, case_wait (&run), 0, "a command on a terminal");
}

static void
tty_resize (struct kit *kit)
{
  const uint32_t rows = 10 + (uint32_t) kit_random_below (kit, 90);
  const uint32_t columns = 30 + (uint32_t) kit_random_below (kit, 200);
  struct kit_reply reply = KIT_REPLY_INIT;
  struct case_run run;

  tty_start (kit,
             "trap 'echo told; stty size; exit 3' WINCH; echo began; "
             "while :; do sleep 0.05; done",
             24, 80, &run);
  case_until (&run, "began");
  KIT_OK (kit,
          kit_exec_resize (kit_first (kit), &reply, run.sandbox, run.exec,
                           rows, columns, NULL),
          &reply, "exec_resize");
  case_until (&run, kit_text (kit, "%" PRIu32 " %" PRIu32, rows, columns));
  case_expect_code (kit, case_wait (&run), 3,
                    "a command that ends when its terminal changes");
  kit_reply_reset (&reply);
}

static void
tty_refused (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  struct kit_instance *const first = kit_first (kit);
  struct case_run run;

  tty_start (kit, "echo began; read word; stty size", 24, 80, &run);
  case_until (&run, "began");
  KIT_CODE (kit,
            kit_exec_resize (first, &reply, run.sandbox, run.exec, 0, 80,
                             NULL),
            &reply, COFFER_INVALID, "exec_resize to no rows");
  KIT_CODE (kit,
            kit_exec_resize (first, &reply, run.sandbox, run.exec, 24, 4097,
                             NULL),
            &reply, COFFER_INVALID, "exec_resize to 4097 columns");
  KIT_CODE (kit,
            kit_exec_resize (first, &reply, run.sandbox, "zz", 24, 80, NULL),
            &reply, COFFER_NOT_FOUND, "exec_resize of no command");
  case_send (&run, "\n");
  case_until (&run, "24 80");
  kit_reply_reset (&reply);
}

static void
tty_interrupt (struct kit *kit)
{
  const struct coffer_exec_exit *exit;
  struct case_run run;

  tty_start (kit, "echo began; exec sleep 60", 24, 80, &run);
  case_until (&run, "began");
  case_send (&run, "\x03");
  exit = case_wait (&run);
  KIT_CHECK (kit, exit->signal == SIGINT,
             "a command on a terminal was to end by SIGINT when ^C is typed: "
             "%s",
             case_exit_text (kit, exit));
}

/* ---- the background ------------------------------------------------------ */

static const char *
background_start (struct kit *kit, const char *sandbox, const char *script,
                  uint64_t cap)
{
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .background = 1, .output_cap_bytes = cap };
  const char *const argv[] = { "sh", "-c", script, NULL };

  return kit_start (kit, sandbox, argv, -1, -1, -1, &opts);
}

struct attached {
  struct kit_reply reply;
  const char *sandbox, *exec;
  int out[2], err[2];
  int32_t code;
  uint8_t *bytes[2];
  size_t size[2];
};

static void
attach_work (struct kit *kit, void *data, size_t index)
{
  struct attached *attached = data;

  if (index == 0) {
    attached->code = kit_exec_attach (kit_first (kit), &attached->reply,
                                      attached->sandbox, attached->exec,
                                      attached->out[1], attached->err[1],
                                      NULL);
    case_close (&attached->out[1]);
    case_close (&attached->err[1]);
  } else
    attached->bytes[index - 1]
      = kit_read_all (kit, (index == 1 ? attached->out : attached->err)[0],
                      16 * CASE_MIB, &attached->size[index - 1]);
}

static void
attach (struct kit *kit, const char *sandbox, const char *exec,
        struct attached *attached)
{
  *attached = (struct attached){ .reply = KIT_REPLY_INIT, .sandbox = sandbox,
                                 .exec = exec };
  kit_pipe (kit, attached->out);
  kit_pipe (kit, attached->err);
  kit_threads (kit, 3, attach_work, attached);
  KIT_CHECK (kit, attached->code == COFFER_OK, "exec_attach: %s",
             kit_shown (kit, &attached->reply));
  kit_reply_reset (&attached->reply);
}

static const struct coffer_exec_exit *
background_wait (struct kit *kit, const char *sandbox, const char *exec)
{
  struct case_run run = { kit, sandbox, exec, -1, -1 };

  return case_wait (&run);
}

static void
background_kept (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const out = kit_random_word (kit, 30);
  const char *const err = kit_random_word (kit, 30);
  struct attached attached;
  const char *exec;

  exec = background_start (
    kit, sandbox,
    kit_text (kit, "printf %s; printf %s >&2; exit 12", out, err), 0);
  case_expect_code (kit, background_wait (kit, sandbox, exec), 12,
                    "a command in the background");
  attach (kit, sandbox, exec, &attached);
  case_same_bytes (kit, attached.bytes[0], attached.size[0], out, 30,
                   "the output that was kept");
  case_same_bytes (kit, attached.bytes[1], attached.size[1], err, 30,
                   "the error stream that was kept");
  case_expect_code (kit, background_wait (kit, sandbox, exec), 12,
                    "a command in the background, asked for again");
}

/* Attached while it runs: what was, and what comes. */
static void
background_live (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const first = kit_random_word (kit, 30);
  const char *const second = kit_random_word (kit, 30);
  struct attached attached;
  const char *exec, *wanted;

  exec = background_start (
    kit, sandbox,
    kit_text (kit, "echo %s; : > began; sleep 0.1; echo %s", first, second),
    0);
  case_sh (kit, sandbox, "until [ -e began ]; do sleep 0.02; done");
  attach (kit, sandbox, exec, &attached);
  wanted = kit_text (kit, "%s\n%s\n", first, second);
  case_same_bytes (kit, attached.bytes[0], attached.size[0], wanted, 62,
                   "the output before and after exec_attach");
}

static void
background_listed (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_exec_info *info;
  const char *exec = background_start (kit, sandbox, "sleep 60", 0);
  size_t i;

  KIT_OK (kit, kit_exec_list (kit_first (kit), &reply, sandbox, NULL), &reply,
          "exec_list");
  for (i = 0; (info = kit_reply_exec_info (&reply, i)) != NULL; i++)
    if (info->exec != NULL && strcmp (info->exec, exec) == 0)
      break;
  KIT_CHECK (kit, info != NULL && info->background == 1,
             "exec_list was to show %s as a command in the background: %s",
             exec, info ? "it is there as another" : "it is not there");
  kit_reply_reset (&reply);
}

/* Nobody reads: the command goes on, and no more than the cap is kept. */
static void
background_cap (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const size_t cap = 64 << 10;
  struct attached attached;
  const char *exec;

  exec = background_start (kit, sandbox,
                           "echo first; yes | head -c 3000000; exit 13", cap);
  case_expect_code (kit, background_wait (kit, sandbox, exec), 13,
                    "a command that writes 3 MB which nobody reads");
  attach (kit, sandbox, exec, &attached);
  KIT_CHECK (kit, attached.size[0] <= cap && attached.size[0] >= cap / 4,
             "of 3 MB of output with a cap of %zu bytes %zu were kept", cap,
             attached.size[0]);
  KIT_CHECK (kit, memcmp (attached.bytes[0], "first\n", 6) == 0,
             "what was kept of an output was to have its beginning: \"%s\"",
             case_shown (kit, attached.bytes[0], 20));
}

static void
attach_refused (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  struct kit_instance *const first = kit_first (kit);
  int out[2], err[2];

  kit_pipe (kit, out);
  kit_pipe (kit, err);
  KIT_CODE (kit,
            kit_exec_attach (first, &reply, sandbox, "zz", out[1], err[1],
                             NULL),
            &reply, COFFER_NOT_FOUND, "exec_attach to no command");
  KIT_CODE (kit,
            kit_exec_attach (first, &reply, kit_new_id (kit), "1", out[1],
                             err[1], NULL),
            &reply, COFFER_NOT_FOUND, "exec_attach in no sandbox");
  kit_reply_reset (&reply);
}

/* Whoever started it has been killed. */
static void
background_outlives (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const word = kit_random_word (kit, 30);
  struct attached attached;
  const char *exec;

  exec = background_start (
    kit, sandbox,
    kit_text (kit, "until [ -e go ]; do sleep 0.02; done; printf %s; exit 14",
              word),
    0);
  kit_kill_worker (kit_first (kit));
  case_sh (kit, sandbox, ": > go");
  case_expect_code (kit, background_wait (kit, sandbox, exec), 14,
                    "a command in the background whose worker was killed");
  attach (kit, sandbox, exec, &attached);
  case_same_bytes (kit, attached.bytes[0], attached.size[0], word, 30,
                   "its output");
}

const struct kit_case kit_exec_more_cases[] = {
  { "exec.tty", "exec exec.tty",
    "A command on a terminal has one, of the size that was asked for.",
    tty_size },
  { "exec.tty-stream", "exec exec.tty",
    "Both of its outputs come by the terminal, and what is typed arrives.",
    tty_stream },
  { "exec.tty-resize", "exec exec.tty",
    "Another size is told to the command and can be asked for.", tty_resize },
  { "exec.tty-refused", "exec exec.tty",
    "Sizes that there are not are INVALID and change nothing.", tty_refused },
  { "exec.tty-interrupt", "exec exec.tty",
    "^C on the terminal interrupts the command.", tty_interrupt },
  { "exec.background", "exec exec.background",
    "Output and end of a command in the background are kept until asked for.",
    background_kept },
  { "exec.background-live", "exec exec.background",
    "exec_attach gives what was kept, then what comes, until the end.",
    background_live },
  { "exec.background-listed", "exec exec.background",
    "exec_list says which commands are in the background.", background_listed },
  { "exec.background-cap", "exec exec.background",
    "A command in the background waits for no reader, and no more than the cap "
    "is kept.",
    background_cap },
  { "exec.attach-refused", "exec exec.background",
    "Commands and sandboxes that nobody knows are NOT_FOUND.", attach_refused },
  { "exec.background-outlives", "exec exec.background durable",
    "A command in the background goes on when its provider's process is "
    "killed, and its output and end are still to be had.",
    background_outlives, 0, KIT_NEEDS_WORKER },
  { NULL }
};
