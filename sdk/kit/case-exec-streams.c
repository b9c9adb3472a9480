/* SPDX-License-Identifier: Apache-2.0 */
/* The three streams of a command: what goes in, what comes out, and when. */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "case.h"

/* ---- standard input ------------------------------------------------------ */

static void
stdin_none (struct kit *kit)
{
  const char *text = case_sh (kit, kit_sandbox (kit), "cat; echo \"end $?\"");

  KIT_CHECK (kit, strcmp (text, "end 0\n") == 0,
             "a command without an input was to be at its end at once: \"%s\" "
             "came",
             case_shown (kit, text, strlen (text)));
}

/* A command with bytes for its input, and what it wrote: both at once. */
struct feed {
  struct case_run run;
  const uint8_t *bytes;
  size_t size;
  uint8_t *came;
  size_t came_size;
};

static void
feed_work (struct kit *kit, void *data, size_t index)
{
  struct feed *feed = data;

  if (index == 0) {
    feed->came = kit_read_all (kit, feed->run.out, 64 * CASE_MIB,
                               &feed->came_size);
    return;
  }
  (void) !coffer_write_all (feed->run.in, feed->bytes, feed->size);
  case_close (&feed->run.in);
}

static void
feed_run (struct kit *kit, struct feed *feed, const char *script, size_t size)
{
  feed->bytes = kit_random_bytes (kit, size);
  feed->size = size;
  case_start (kit, kit_sandbox (kit), script, 1, NULL, &feed->run);
  kit_threads (kit, 2, feed_work, feed);
  case_expect_code (kit, case_wait (&feed->run), 0, "a command with an input");
}

static void
stdin_sum (struct kit *kit, size_t size, const char *what)
{
  struct feed feed = { .bytes = NULL };
  const char *wanted;

  feed_run (kit, &feed, "cksum", size);
  wanted = kit_text (kit, "%s\n", case_cksum (kit, feed.bytes, size));
  case_same_bytes (kit, feed.came, feed.came_size, wanted, strlen (wanted),
                   what);
}

static void
stdin_bytes (struct kit *kit)
{
  stdin_sum (kit, 1000 + kit_random_below (kit, 30000),
             "the checksum inside of random bytes that were a command's input");
}

static void
stdin_large (struct kit *kit)
{
  stdin_sum (kit, 10 * CASE_MIB + kit_random_below (kit, 1000),
             "the checksum inside of 10 MiB that were a command's input");
}

static void
stdin_close (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  struct case_run run;

  case_start (kit, kit_sandbox (kit), "wc -c; echo after", 1, NULL, &run);
  case_send (&run, "12345");
  KIT_OK (kit,
          kit_exec_stdin_close (kit_first (kit), &reply, run.sandbox, run.exec,
                                NULL),
          &reply, "exec_stdin_close");
  case_close (&run.in);
  case_until (&run, "5\nafter");
  case_expect_code (kit, case_wait (&run), 0,
                    "a command that reads its input to the end");
  KIT_CODE (kit,
            kit_exec_stdin_close (kit_first (kit), &reply, run.sandbox, "zz",
                                  NULL),
            &reply, COFFER_NOT_FOUND, "exec_stdin_close of no command");
  kit_reply_reset (&reply);
}

static void
echo_large (struct kit *kit)
{
  struct feed feed = { .bytes = NULL };

  feed_run (kit, &feed, "cat", 10 * CASE_MIB + kit_random_below (kit, 1000));
  case_same_bytes (kit, feed.came, feed.came_size, feed.bytes, feed.size,
                   "10 MiB of random bytes through cat");
}

/* ---- output -------------------------------------------------------------- */

static void
apart (struct kit *kit)
{
  const char *const out = kit_random_word (kit, 40);
  const char *const err = kit_random_word (kit, 40);
  struct kit_exec exec = { .cwd = NULL };

  kit_shell (kit, kit_sandbox (kit), &exec,
             "printf %s \"$1\"; printf %s \"$2\" >&2", out, err, NULL);
  case_expect_code (kit, exec.exit, 0, "a command that writes to both streams");
  case_same_bytes (kit, exec.out, exec.out_size, out, 40, "its output");
  case_same_bytes (kit, exec.err, exec.err_size, err, 40, "its error stream");
}

/* Each in its own order, however the two come. */
static void
order (struct kit *kit)
{
  struct kit_exec exec = { .cwd = NULL };
  char *wanted = kit_memory (kit, 32000);
  size_t size = 0;

  kit_shell (kit, kit_sandbox (kit), &exec,
             "i=0; while [ $i -lt 2000 ]; do echo l$i; echo l$i >&2; "
             "i=$((i+1)); done",
             NULL);
  case_expect_code (kit, exec.exit, 0, "a command that counts on both streams");
  for (int i = 0; i < 2000; i++)
    size += (size_t) sprintf (wanted + size, "l%d\n", i);
  case_same_bytes (kit, exec.out, exec.out_size, wanted, size,
                   "2000 lines of output");
  case_same_bytes (kit, exec.err, exec.err_size, wanted, size,
                   "2000 lines of the error stream");
}

static void
binary (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  uint8_t wanted[512];
  struct case_run run;
  size_t size;
  char *came;

  for (size_t i = 0; i < sizeof wanted; i++)
    wanted[i] = (uint8_t) i;
  case_start (kit, sandbox,
              "for n in 0 1; do for a in 0 1 2 3; do for b in 0 1 2 3 4 5 6 7;"
              " do for c in 0 1 2 3 4 5 6 7; do printf \"\\\\$a$b$c\"; done; "
              "done; done; done",
              0, NULL, &run);
  came = case_rest (&run, &size);
  case_expect_code (kit, case_wait (&run), 0, "a command that writes all bytes");
  case_same_bytes (kit, came, size, wanted, sizeof wanted,
                   "all bytes from 0 to 255, twice");
}

/* More than any pipe holds, for a reader that first does other things. */
static void
large (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const word = kit_random_word (kit, 15);
  const size_t whole = 10 * CASE_MIB;
  struct case_run run;
  size_t size;
  char *came, *wanted = kit_memory (kit, whole);

  for (size_t i = 0; i < whole; i++)
    wanted[i] = i % 16 == 15 ? '\n' : word[i % 16];
  case_start (kit, sandbox,
              kit_text (kit, "yes %s | head -c %zu", word, whole), 0, NULL,
              &run);
  KIT_CHECK (kit, case_speaks (&run) == 1,
             "a command that writes 10 MiB wrote nothing");
  for (int i = 0; i < 10; i++)
    case_sh (kit, sandbox, "true");
  came = case_rest (&run, &size);
  case_expect_code (kit, case_wait (&run), 0, "a command that writes 10 MiB");
  case_same_bytes (kit, came, size, wanted, whole,
                   "10 MiB of output for a slow reader");
}

/* Before its end, not with it. */
static void
live (struct kit *kit)
{
  const char *const word = kit_random_word (kit, 16);
  struct case_run run;

  case_start (kit, kit_sandbox (kit),
              kit_text (kit, "echo %s; sleep 1000", word), 0, NULL, &run);
  case_until (&run, word);
}

/* A reader that has enough is the command's matter, not the provider's. */
static void
reader_gone (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct case_run run;

  case_start (kit, sandbox, "trap '' PIPE; yes | head -c 1000000; exit 0", 0,
              NULL, &run);
  KIT_CHECK (kit, case_speaks (&run) == 1,
             "a command that writes wrote nothing");
  case_close (&run.out);
  case_wait (&run);
  case_sh (kit, sandbox, "true");
}

/* No stream at all. */
static void
dropped (struct kit *kit)
{
  struct case_run run = { .kit = kit, .in = -1, .out = -1 };
  const char *const argv[]
    = { "sh", "-c", "yes | head -c 300000; yes | head -c 300000 >&2; exit 11",
        NULL };

  run.sandbox = kit_sandbox (kit);
  run.exec = kit_start (kit, run.sandbox, argv, -1, -1, -1, NULL);
  case_expect_code (kit, case_wait (&run), 11,
                    "a command whose output nobody wants");
}

const struct kit_case kit_exec_stream_cases[] = {
  { "exec.stdin-none", "exec",
    "Without an input a command finds the end of file at once.", stdin_none },
  { "exec.stdin-bytes", "exec exec.stdin",
    "Any bytes arrive at a command's input.", stdin_bytes },
  { "exec.stdin-large", "exec exec.stdin",
    "10 MiB of input arrive whole.", stdin_large, 60000 },
  { "exec.stdin-close", "exec exec.stdin",
    "An input that is closed ends, and the output goes on.", stdin_close },
  { "exec.echo-large", "exec exec.stdin",
    "10 MiB of random bytes go in and come out at the same time.", echo_large,
    60000 },
  { "exec.streams-apart", "exec",
    "Output and error stream are told apart.", apart },
  { "exec.streams-order", "exec",
    "Each of the two streams keeps its order.", order },
  { "exec.output-binary", "exec",
    "Bytes of every value come out as they are.", binary },
  { "exec.output-large", "exec",
    "10 MiB of output come whole, also to a slow reader.", large, 60000 },
  { "exec.output-live", "exec",
    "Output comes while the command still runs.", live },
  { "exec.output-reader-gone", "exec",
    "A reader that goes away harms neither the provider nor the sandbox.",
    reader_gone },
  { "exec.output-dropped", "exec",
    "Output that nobody wants is dropped, and the command ends.", dropped },
  { NULL }
};
