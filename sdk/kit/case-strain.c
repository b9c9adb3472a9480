/* SPDX-License-Identifier: Apache-2.0 */
/* Under strain: many calls at once, a worker that is killed, the same thing
 * again and again, and arguments that nobody sane gives. */

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "kit.h"

/* ---- one round of a life ------------------------------------------------- */

static void
round_files (struct kit *kit, const char *id, size_t round)
{
  const char *path = kit_text (kit, "kit-%zu", round);
  const uint8_t *body = kit_random_bytes (kit, 5000);
  uint8_t *back;
  size_t size;

  kit_write_file (kit, id, path, body, 5000);
  back = kit_read_file (kit, id, path, &size);
  KIT_CHECK (kit, size == 5000 && memcmp (back, body, size) == 0,
             "file_read of %s in %s: expected the 5000 bytes that were "
             "written, came %zu%s", path, id, size,
             size == 5000 ? " others" : "");
}

static void
round_exec (struct kit *kit, const char *id)
{
  const char *word = kit_random_word (kit, 30);
  struct kit_exec exec = { 0 };

  kit_shell (kit, id, &exec, "printf %s \"$1\"; exit 7", word, NULL);
  KIT_CHECK (kit, exec.out_size == 30 && memcmp (exec.out, word, 30) == 0,
             "a command in %s that prints %s: expected that, came %zu bytes "
             "(%.40s)", id, word, exec.out_size, exec.out);
  KIT_CHECK (kit, exec.exit->code == 7,
             "a command in %s that exits with 7: expected 7, came %d", id,
             exec.exit->code);
}

static void
one_life (struct kit *kit, size_t round)
{
  struct kit_instance *in = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  const char *id = kit_sandbox (kit);

  KIT_OK (kit, kit_sandbox_info (in, &reply, id, NULL), &reply, "info of %s",
          id);
  info = kit_reply_sandbox_info (&reply, 0);
  KIT_CHECK (kit, info && info->sandbox && strcmp (info->sandbox, id) == 0,
             "info of %s: expected that one, came %s", id,
             info && info->sandbox ? info->sandbox : "none");
  if (kit_claims (kit, "files"))
    round_files (kit, id, round);
  if (kit_claims (kit, "exec"))
    round_exec (kit, id);
  KIT_CODE (kit, kit_sandbox_info (in, &reply, kit_new_id (kit), NULL), &reply,
            COFFER_NOT_FOUND, "info of what was never made");
  KIT_OK (kit, kit_sandbox_list (in, &reply, NULL), &reply, "list");
  KIT_OK (kit, kit_sandbox_kill (in, &reply, id, NULL), &reply, "kill %s", id);
  kit_reply_reset (&reply);
}

/* ---- many at once -------------------------------------------------------- */

#define STORM_ROUNDS 4

static void
storm_thread (struct kit *kit, void *data, size_t index)
{
  size_t i;

  (void) data;
  for (i = 0; i < STORM_ROUNDS; i++)
    one_life (kit, index * 100 + i);
}

/* Of a serial module the host makes a queue; it must stand that, too. */
static void
storm (struct kit *kit)
{
  const size_t most = kit_is_parallel (kit) ? 8 : 4;
  const size_t threads = kit_max_calls (kit) < most ? kit_max_calls (kit)
                                                    : most;

  kit_threads (kit, threads, storm_thread, NULL);
}

/* ---- a worker that is killed --------------------------------------------- */

struct waiting {
  const char *sandbox, *exec;
  struct kit_reply reply;
  int ended[2];                 /* a pipe whose end says that the call is over */
};

/* That the other waits shows nowhere: who is killed too early is not the one
 * that it will wait by, and then the next is killed. */
static void
wait_thread (struct kit *kit, void *data, size_t index)
{
  struct waiting *waiting = data;
  struct pollfd ended = { waiting->ended[0], POLLIN, 0 };
  pid_t pid, last = 0;
  int ms = 50;

  if (index == 0) {
    kit_exec_wait (kit_first (kit), &waiting->reply, waiting->sandbox,
                   waiting->exec, NULL);
    close (waiting->ended[1]);
    return;
  }
  while (poll (&ended, 1, ms) == 0) {
    pid = kit_worker_pid (kit_first (kit));
    if (pid > 0 && pid != last)
      kit_kill_worker (kit_first (kit));
    last = pid;
    ms *= 4;
  }
}

static void
expect_found (struct kit *kit, const char *id)
{
  struct kit_instance *in = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  size_t i, found = 0;

  KIT_OK (kit, kit_sandbox_info (in, &reply, id, NULL), &reply,
          "info of %s after its worker was killed", id);
  KIT_OK (kit, kit_sandbox_list (in, &reply, NULL), &reply,
          "list after a worker was killed");
  for (i = 0; (info = kit_reply_sandbox_info (&reply, i)); i++)
    found += info->sandbox && strcmp (info->sandbox, id) == 0;
  KIT_CHECK (kit, found == 1, "list after a worker was killed: expected %s "
             "once, came %zu times", id, found);
  KIT_OK (kit, kit_sandbox_kill (in, &reply, id, NULL), &reply,
          "kill of %s after its worker was killed", id);
  KIT_CODE (kit, kit_sandbox_info (in, &reply, id, NULL), &reply,
            COFFER_NOT_FOUND, "info of %s after its kill", id);
}

static void
worker_killed (struct kit *kit)
{
  const char *const argv[] = { "/bin/sh", "-c", "exec sleep 1000", NULL };
  struct waiting waiting = { .sandbox = kit_sandbox (kit),
                             .reply = KIT_REPLY_INIT };

  waiting.exec = kit_start (kit, waiting.sandbox, argv, -1, -1, -1, NULL);
  kit_pipe (kit, waiting.ended);
  kit_threads (kit, 2, wait_thread, &waiting);
  KIT_CHECK (kit, waiting.reply.fault && waiting.reply.error_number == 8021,
             "exec_wait whose worker is killed: expected E8021, came %s",
             kit_shown (kit, &waiting.reply));
  expect_found (kit, waiting.sandbox);
}

static void
create_thread (struct kit *kit, void *data, size_t index)
{
  struct waiting *waiting = data;
  const struct coffer_sandbox_spec spec = kit_spec (kit);

  if (index == 0)
    kit_sandbox_create (kit_first (kit), &waiting->reply, waiting->sandbox,
                        &spec, NULL);
  else {
    usleep ((useconds_t) kit_random_below (kit, 12000));
    kit_kill_worker (kit_first (kit));
  }
}

/* Whatever was reached, the id can be asked for, made again and killed. */
static void
killed_in_create (struct kit *kit)
{
  const struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_instance *in = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  struct waiting waiting = { .reply = KIT_REPLY_INIT };

  waiting.sandbox = kit_new_id (kit);
  kit_threads (kit, 2, create_thread, &waiting);
  KIT_CHECK (kit, waiting.reply.code == COFFER_OK
             || (waiting.reply.fault && waiting.reply.error_number == 8021),
             "create whose worker is killed: expected OK or E8021, came %s",
             kit_shown (kit, &waiting.reply));
  KIT_OK (kit, kit_sandbox_create (in, &reply, waiting.sandbox, &spec, NULL),
          &reply, "create %s again after its worker was killed",
          waiting.sandbox);
  if (kit_claims (kit, "exec"))
    round_exec (kit, waiting.sandbox);
  expect_found (kit, waiting.sandbox);
}

/* ---- leaks --------------------------------------------------------------- */

#define WARM_ROUNDS 6
#define LEAK_ROUNDS 16
#define BLIND_ROUNDS 72         /* where the table of descriptors must fill up */
#define LEAK_KIB 24             /* a round */

static void
rounds (struct kit *kit, size_t n, struct kit_usage *usage)
{
  size_t i;

  for (i = 0; i < n; i++)
    one_life (kit, i);
  KIT_CHECK (kit, kit_usage (kit_first (kit), usage) == 0,
             "the worker cannot be looked at: expected one that runs");
}

/* One thing left in each round is as many as there are rounds; a pool that
 * fills up is not. */
static void
expect_count (struct kit *kit, const char *what, size_t n, uint32_t before,
              uint32_t after)
{
  char most[96] = "";

  if (strcmp (what, "descriptors") == 0)
    kit_most_descriptors (kit_first (kit), most, sizeof most);
  KIT_CHECK (kit, after < before + n / 2,
             "%zu lives of a sandbox: expected the worker's %u %s, came %u%s%s",
             n, before, what, after, *most ? ", " : "", most);
}

static void
leaks (struct kit *kit)
{
  struct kit_usage before, after;
  size_t n = LEAK_ROUNDS;

  rounds (kit, WARM_ROUNDS, &before);
  if (before.fds == before.fd_table)
    n = BLIND_ROUNDS;
  rounds (kit, n, &after);
  expect_count (kit, "descriptors", n, before.fds, after.fds);
  expect_count (kit, "threads", n, before.threads, after.threads);
  expect_count (kit, "children", n, before.children, after.children);
  KIT_CHECK (kit, after.private_kib < before.private_kib + n * LEAK_KIB + 512,
             "%zu lives of a sandbox: expected about the worker's %llu KiB, "
             "came %llu", n, (unsigned long long) before.private_kib,
             (unsigned long long) after.private_kib);
}

/* ---- odd arguments ------------------------------------------------------- */

#define ODD_ROUNDS 12

/* Any code will do: what waits by its nature is asked for it soon. */
static uint32_t
odd_deadline (uint32_t op)
{
  return op == COFFER_OP_exec_wait || op == COFFER_OP_exec_attach
             || op == COFFER_OP_file_watch || op == COFFER_OP_file_write
             || op == COFFER_OP_archive_import
           ? 100 : 5000;
}

static void
expect_sane (struct kit *kit, const struct kit_reply *reply,
             const char *shown)
{
  KIT_CHECK (kit, !reply->fault, "%s: expected any code, came %s", shown,
             kit_shown (kit, reply));
  KIT_CHECK (kit, reply->code >= COFFER_OK && reply->code <= COFFER_INTERNAL,
             "%s: expected a code of the contract, came %s", shown,
             kit_shown (kit, reply));
}

static void
odd_operation (struct kit *kit, uint32_t op, const char **sandbox)
{
  struct kit_instance *in = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const pid_t worker = kit_worker_pid (in);
  const char *shown;
  size_t i;

  for (i = 0; i < ODD_ROUNDS; i++) {
    reply.deadline_ms = odd_deadline (op);
    kit_call_odd (in, &reply, op, *sandbox, &shown);
    expect_sane (kit, &reply, shown);
    KIT_CHECK (kit, kit_worker_pid (in) == worker,
               "%s: expected the worker to live, it is another one", shown);
    reply.deadline_ms = 0;
    /* Two of them may well end it, at once or soon, whatever they answer: one
     * that lives on for a millisecond may not be there to be told of. */
    if (op == COFFER_OP_sandbox_kill || op == COFFER_OP_sandbox_extend)
      *sandbox = kit_sandbox (kit);
    KIT_OK (kit, kit_sandbox_info (in, &reply, *sandbox, NULL), &reply,
            "info after %s", shown);
  }
  kit_reply_reset (&reply);
}

static void
odd_arguments (struct kit *kit)
{
  const char *sandbox = kit_sandbox (kit), *word;
  uint32_t op;
  size_t i;

  for (i = 0; (op = kit_operation (i)); i++) {
    word = kit_operation_capability (op);
    if (op != COFFER_OP_open && op != COFFER_OP_close
        && (!*word || kit_claims (kit, word)))
      odd_operation (kit, op, &sandbox);
  }
}

const struct kit_case kit_strain_cases[] = {
  { "strain.storm", "",
    "As many threads as the declared model takes make, use and kill sandboxes "
    "at once, and every reply is the right one.", storm, 60000 },
  { "strain.worker-killed", "durable exec",
    "A worker that is killed while it waits fails that call with E8021; the "
    "sandbox is found again, listed and killed.", worker_killed, 60000,
    KIT_NEEDS_WORKER },
  { "strain.killed-in-create", "durable",
    "A worker that is killed while it makes a sandbox leaves what the next one "
    "finds or makes, and can kill.", killed_in_create, 60000,
    KIT_NEEDS_WORKER },
  { "strain.leaks", "",
    "The worker holds no more descriptors, threads, children and memory after "
    "many lives of a sandbox than after a few.", leaks, 240000,
    KIT_NEEDS_WORKER },
  { "strain.odd-arguments", "",
    "Every operation with arguments that nobody sane gives answers with a code "
    "of the contract, the worker lives, and the next call works.",
    odd_arguments, 300000 },
  { NULL }
};
