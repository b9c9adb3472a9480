/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines and cancelling, of every operation that can wait. */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kit.h"

/* A call that waits for what does not come. */
struct waits {
  struct kit *kit;
  const char *sandbox, *exec;
  int in, out;                  /* what the operation is given */
  int32_t (*call) (struct waits *waits, struct kit_reply *reply);
  int cancel_fd;
};

/* An answer that comes later than the host allows is a fault of the worker. */
#define DEADLINE_MS 250
#define NEAR_MS 10              /* clocks are rounded */

/* ---- operations ---------------------------------------------------------- */

static const char *
sleeper (struct kit *kit, const char *sandbox, int background)
{
  static const char *const argv[]
    = { "/bin/sh", "-c", "exec sleep 1000", NULL };
  const struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .background = (uint32_t) background };

  return kit_start (kit, sandbox, argv, -1, -1, -1, &opts);
}

static int32_t
call_wait (struct waits *waits, struct kit_reply *reply)
{
  return kit_exec_wait (kit_first (waits->kit), reply, waits->sandbox,
                        waits->exec, NULL);
}

static int32_t
call_attach (struct waits *waits, struct kit_reply *reply)
{
  return kit_exec_attach (kit_first (waits->kit), reply, waits->sandbox,
                          waits->exec, waits->out, waits->out, NULL);
}

static int32_t
call_watch (struct waits *waits, struct kit_reply *reply)
{
  return kit_file_watch (kit_first (waits->kit), reply, waits->sandbox,
                         kit_workspace (waits->kit, waits->sandbox), NULL);
}

static int32_t
call_write (struct waits *waits, struct kit_reply *reply)
{
  return kit_file_write (kit_first (waits->kit), reply, waits->sandbox,
                         "kit-silent", waits->in, NULL);
}

static int32_t
call_read (struct waits *waits, struct kit_reply *reply)
{
  return kit_file_read (kit_first (waits->kit), reply, waits->sandbox,
                        "kit-large", waits->out, NULL);
}

static int32_t
call_import (struct waits *waits, struct kit_reply *reply)
{
  return kit_archive_import (kit_first (waits->kit), reply, waits->sandbox,
                             kit_workspace (waits->kit, waits->sandbox),
                             waits->in, NULL);
}

/* ---- getting ready ------------------------------------------------------- */

/* Pipes that nobody writes to and nobody reads from, kept open here. */
static void
waits_begin (struct kit *kit, struct waits *waits)
{
  int in[2], out[2];

  waits->kit = kit;
  waits->cancel_fd = -1;
  waits->sandbox = kit_sandbox (kit);
  kit_pipe (kit, in);
  kit_pipe (kit, out);
  waits->in = in[0];
  waits->out = out[1];
  if (waits->call == call_wait || waits->call == call_attach)
    waits->exec = sleeper (kit, waits->sandbox, waits->call == call_attach);
  if (waits->call == call_read)
    kit_write_file (kit, waits->sandbox, "kit-large",
                    kit_random_bytes (kit, 2 << 20), 2 << 20);
}

static void
expect_usable (const struct waits *waits, const char *what)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_OK (waits->kit, kit_sandbox_info (kit_first (waits->kit), &reply,
                                        waits->sandbox, NULL),
          &reply, "info %s", what);
  kit_reply_reset (&reply);
}

/* ---- the two questions --------------------------------------------------- */

static void
deadline (struct kit *kit,
          int32_t (*call) (struct waits *, struct kit_reply *))
{
  struct kit_reply reply = KIT_REPLY_INIT;
  struct waits waits = { .call = call };
  int64_t began, took;

  waits_begin (kit, &waits);
  reply.deadline_ms = DEADLINE_MS;
  began = kit_now_us ();
  call (&waits, &reply);
  took = kit_now_us () - began;
  KIT_CHECK (kit, reply.code == COFFER_TIMEOUT && !reply.fault,
             "a call that waits, with a deadline of %d ms: expected TIMEOUT, "
             "came %s after %lld ms", DEADLINE_MS, kit_shown (kit, &reply),
             (long long) took / 1000);
  KIT_CHECK (kit, took >= (DEADLINE_MS - NEAR_MS) * 1000,
             "a call that waits, with a deadline of %d ms: expected its end "
             "then, it came after %lld ms", DEADLINE_MS,
             (long long) took / 1000);
  expect_usable (&waits, "after a call whose time was over");
}

static void
cancel_thread (struct kit *kit, void *data, size_t index)
{
  struct waits *waits = data;
  struct kit_reply reply = KIT_REPLY_INIT;

  if (index == 1) {
    usleep (30000);             /* that the other waits shows nowhere */
    kit_cancel (waits->cancel_fd);
    return;
  }
  reply.cancel_fd = waits->cancel_fd;
  waits->call (waits, &reply);
  KIT_CHECK (kit, reply.code == COFFER_CANCELLED && !reply.fault,
             "a call that waits and is cancelled: expected CANCELLED, came %s "
             "after %lld ms", kit_shown (kit, &reply),
             (long long) reply.duration_us / 1000);
}

static void
cancel (struct kit *kit, int32_t (*call) (struct waits *, struct kit_reply *))
{
  struct waits waits = { .call = call };

  waits_begin (kit, &waits);
  waits.cancel_fd = kit_cancel_new (kit);
  kit_threads (kit, 2, cancel_thread, &waits);
  expect_usable (&waits, "after a call that was cancelled");
}

#define CASE(name)                                                            \
  static void deadline_##name (struct kit *kit)                               \
  {                                                                           \
    deadline (kit, call_##name);                                              \
  }                                                                           \
  static void cancel_##name (struct kit *kit)                                 \
  {                                                                           \
    cancel (kit, call_##name);                                                \
  }
CASE (wait)
CASE (attach)
CASE (watch)
CASE (write)
CASE (read)
CASE (import)

/* A call that is late before it begins does nothing. */
static void
deadline_create (struct kit *kit)
{
  const struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_new_id (kit);
  const int cancel_fd = kit_cancel_new (kit);

  kit_first (kit);
  kit_cancel (cancel_fd);
  reply.cancel_fd = cancel_fd;
  kit_sandbox_create (kit_first (kit), &reply, id, &spec, NULL);
  KIT_CHECK (kit, !reply.fault && (reply.code == COFFER_CANCELLED
                                   || reply.code == COFFER_OK),
             "create that was cancelled before it began: expected CANCELLED "
             "or OK, came %s", kit_shown (kit, &reply));
  reply.cancel_fd = -1;
  /* Whatever it did, the same id can be had now. */
  KIT_OK (kit, kit_sandbox_create (kit_first (kit), &reply, id, &spec, NULL),
          &reply, "create %s after one that was cancelled", id);
  KIT_OK (kit, kit_sandbox_kill (kit_first (kit), &reply, id, NULL), &reply,
          "kill %s", id);
}

const struct kit_case kit_time_cases[] = {
  { "time.deadline-exec-wait", "exec",
    "exec_wait of a command that does not end is over at its deadline.",
    deadline_wait },
  { "time.cancel-exec-wait", "exec",
    "exec_wait ends as CANCELLED when the caller gives up.", cancel_wait },
  { "time.deadline-exec-attach", "exec.background",
    "exec_attach to a command that does not end is over at its deadline.",
    deadline_attach },
  { "time.cancel-exec-attach", "exec.background",
    "exec_attach ends as CANCELLED when the caller gives up.",
    cancel_attach },
  { "time.deadline-file-watch", "files.watch",
    "file_watch of a folder in which nothing changes is over at its deadline.",
    deadline_watch },
  { "time.cancel-file-watch", "files.watch",
    "file_watch ends as CANCELLED when the caller gives up.", cancel_watch },
  { "time.deadline-file-write", "files",
    "file_write from a pipe that stays silent is over at its deadline.",
    deadline_write },
  { "time.cancel-file-write", "files",
    "file_write ends as CANCELLED when the caller gives up.", cancel_write },
  { "time.deadline-file-read", "files",
    "file_read into a pipe that nobody reads is over at its deadline.",
    deadline_read },
  { "time.cancel-file-read", "files",
    "file_read ends as CANCELLED when the caller gives up.", cancel_read },
  { "time.deadline-archive-import", "archives",
    "archive_import from a pipe that stays silent is over at its deadline.",
    deadline_import },
  { "time.cancel-archive-import", "archives",
    "archive_import ends as CANCELLED when the caller gives up.",
    cancel_import },
  { "time.cancel-create", "",
    "A create that was cancelled leaves an id that can be had.",
    deadline_create },
  { NULL }
};
