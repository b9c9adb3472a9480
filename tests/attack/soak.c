/* SPDX-License-Identifier: Apache-2.0 */
/* Many sandboxes of one process, of every kind and one in five hostile: when
 * they are gone all is as it was, and the process no larger.
 *
 * Twice 150 in `make check`; CHECK_SCALE=100 makes them 5,000. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "inventory.h"

#define WARM 60                 /* by then what is kept for good is there */
#define GROWTH_KIB 1536

static struct arena arena;
static struct linux_host host;
static int init_fd = -1, payload_fd = -1;
static int single_limits, lasting, hostile;

/* ---- one sandbox -------------------------------------------------------- */

static int
sandbox_make (const char *id, int single, int limited, int lifeline)
{
  struct coffer_mount code = { .size = sizeof code, .source = "/opt/attack",
                               .target = "/opt/attack" };
  struct coffer_mount rw = { .size = sizeof rw, .source = "/srv/rw",
                             .target = "/srv/rw", .writable = 1 };
  const struct coffer_mount *mounts[] = { &code, &rw, NULL };
  struct coffer_sandbox_spec spec
    = { .size = sizeof spec, .single_exec = (uint32_t) single,
        .lifeline = lifeline, .mounts = mounts, .disk_bytes = 4 << 20,
        .template_fd = -1, .ttl_ms = single ? 0 : 60000 };
  int32_t made;

  if (limited) {
    spec.pids = 40;
    spec.memory_bytes = 48 << 20;
  }
  code.source_fd = open ("/opt/attack", O_PATH | O_CLOEXEC);
  rw.source_fd = open ("/srv/rw", O_PATH | O_CLOEXEC);
  made = host_create (&host, id, &spec);
  close (code.source_fd);
  close (rw.source_fd);
  if (made != COFFER_OK)
    complain ("no sandbox: %s", host.error);
  return made == COFFER_OK ? 0 : -1;
}

/* Starts an attempt, and takes what it says until it is ready or over. */
static void
attempt (const char *id, const char *name, const char *first,
         const char *second, int kill_init)
{
  const char *const argv[] = { "/opt/attack/payload", name, first, second,
                               NULL };
  struct coffer_exec_start_opts opts = { .size = sizeof opts,
                                         .timeout_ms = 2000 };
  const int64_t stop = coffer_now_ns () + INT64_C (30000000000);
  char bytes[4096];
  int out[2], in;
  ssize_t n;

  if (pipe2 (out, O_CLOEXEC) == -1)
    return;
  in = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  if (host.ops->exec_start (host_call (&host, 10000), host.self, id, argv,
                            NULL, "/", -1, out[1], -1, &opts)
        != COFFER_OK)
    complain ("no command: %s", host.error);
  close (in);
  close (out[1]);
  if (kill_init)
    kill (host.pid, SIGKILL);
  while (coffer_wait_fd (out[0], POLLIN, stop, -1) == 1
         && (n = read (out[0], bytes, sizeof bytes)) > 0)
    if (memmem (bytes, (size_t) n, "=ready", 6) != NULL && !kill_init)
      break;
  close (out[0]);
}

static const char *const bad[][3] = {
  { "fork", "100", NULL }, { "survive", "/srv/rw/beat", NULL },
  { "memory", "96", NULL }, { "disk", "/tmp/fill", "12" },
  { "descriptors", NULL, NULL }, { "new-user", NULL, NULL },
  { "read", "/srv/secret", NULL }, { "core", "/workspace", NULL },
};

static void
sandbox_run (unsigned long i)
{
  const char *const *what = bad[i / 5 % (sizeof bad / sizeof bad[0])];
  const int is_hostile = i % 5 == 4, is_lasting = i % 3 == 2;
  const int limited = i % 4 == 1 || is_hostile, is_killed = i % 25 == 7;
  int life[2] = { -1, -1 }, k;
  char id[32];

  snprintf (id, sizeof id, "soak-%lu", i);
  if (pipe2 (life, O_CLOEXEC) == -1)
    return;
  if (sandbox_make (id, !is_lasting, limited, is_lasting ? -1 : life[0])
        == 0) {
    for (k = 0; k < (is_lasting && !is_hostile && !is_killed ? 3 : 1);
         k++)
      attempt (id, is_hostile ? what[0] : "nodename",
               is_hostile ? what[1] : NULL, is_hostile ? what[2] : NULL,
               is_killed);
    if (host_kill (&host, id) != COFFER_OK)
      complain ("kill: %s", host.error);
  }
  close (life[0]);
  close (life[1]);
  single_limits += limited;
  lasting += is_lasting;
  hostile += is_hostile;
}

/* ---- all of them -------------------------------------------------------- */

static long
resident_kib (void)
{
  char text[4096], *at;

  file_get ("/proc/self/status", text, sizeof text);
  at = strstr (text, "RssAnon:");
  return at != NULL ? strtol (at + 8, NULL, 10) : 0;
}

static size_t
threads (void)
{
  char text[4096], *at;

  file_get ("/proc/self/status", text, sizeof text);
  at = strstr (text, "Threads:");
  return at != NULL ? strtoul (at + 8, NULL, 10) : 0;
}

/* Places of the table of ids that somebody has: behind a head of ten words,
 * each is a process and the namespace of its number. */
static size_t
ids_taken (void)
{
  static uint32_t words[65536];
  char path[128];
  size_t n, i, taken = 0;

  snprintf (path, sizeof path, "%s/.ids", host.runtime_path);
  n = file_get (path, (char *) words, sizeof words) / sizeof words[0];
  for (i = 10; i < n; i += 2)
    taken += words[i] != 0;
  return taken;
}

static void
sandboxes_run (unsigned long from, unsigned long count)
{
  unsigned long i;

  for (i = from; i < from + count; i++)
    sandbox_run (i);
}

static void
memory_same (long before)
{
  const long grown = resident_kib () - before;

  printf ("# %d lasting, %d limited, %d hostile; %ld KiB more\n", lasting,
          single_limits, hostile, grown);
#ifndef COFFER_SANITIZERS       /* what they keep is not the module's */
  if (grown > GROWTH_KIB)
    complain ("memory: %ld KiB more", grown);
#endif
}

/* Of one instance, while it lives. */
static void
soak_one (unsigned long count)
{
  struct inventory before;
  size_t ids, strands;
  long memory;

  linux_host_start (&host, init_fd, NULL);
  sandboxes_run (0, WARM);
  before = inventory_take (&arena);
  memory = resident_kib ();
  ids = ids_taken ();
  strands = threads ();
  if (geteuid () == 0 && sandbox_make ("one", 1, 0, -1) == 0) {
    if (ids_taken () != ids + 1)
      complain ("ids in use: %zu, and with a sandbox %zu", ids, ids_taken ());
    host_kill (&host, "one");
  }
  sandboxes_run (WARM, count);
  memory_same (memory);
  if (ids_taken () != ids)
    complain ("ids in use: %zu, then %zu", ids, ids_taken ());
  if (threads () != strands)
    complain ("threads: %zu, then %zu", strands, threads ());
  inventory_same (&arena, &before);
  linux_host_close (&host);
}

/* Of an instance that makes the next init ahead: when it is closed. */
static void
soak_spare (unsigned long count)
{
  static const char *const config[] = { "spare=true", NULL };
  struct inventory before;
  size_t strands = threads ();
  long memory;

  linux_host_start (&host, init_fd, config);
  sandboxes_run (0, WARM);
  linux_host_close (&host);
  before = inventory_take (&arena);
  memory = resident_kib ();
  linux_host_start (&host, init_fd, config);
  sandboxes_run (WARM, count);
  linux_host_close (&host);
  memory_same (memory);
  if (threads () != strands)
    complain ("threads: %zu, then %zu", strands, threads ());
  inventory_same (&arena, &before);
}

static void
tap (int number, const char *what)
{
  if (complaint[0] != '\0')
    printf ("# %s\n", complaint);
  printf ("%sok %d - nothing is left of %s\n", complaint[0] ? "not " : "",
          number, what);
  complaint[0] = '\0';
  lasting = single_limits = hostile = 0;
  fflush (stdout);
}

static int
cage_inside (struct cage *cage)
{
  const char *scale = getenv ("CHECK_SCALE");
  unsigned long factor = scale ? strtoul (scale, NULL, 10) : 1;
  unsigned long count = factor < 3 ? 150 : factor * 50;

  arena.cage = cage;
  arena.host = &host;
  mkdir ("/opt/attack", 0755);
  if (file_copy (payload_fd, "/opt/attack/payload", 0755) == -1
      || arena_open (&arena) == -1
      || file_put ("/srv/rw/beat", "", 0666) == -1) {
    printf ("Bail out! the arena: %s\n", strerror (errno));
    fflush (stdout);
    return 2;
  }
  printf ("1..2\n");
  soak_one (count);
  tap (1, "many sandboxes");
  soak_spare (count);
  tap (2, "many whose first process was made ahead");
  return 0;
}

static int
build_file (const char *name)
{
  const char *build = getenv ("COFFER_BUILD");
  char path[4096];

  snprintf (path, sizeof path, "%s/%s", build ? build : ".", name);
  return open (path, O_RDONLY | O_CLOEXEC);
}

int
main (void)
{
  static struct cage cage;
  int r;

  if (syscall (SYS_close_range, 3, ~0u, 0) == -1)
    return 1;
  init_fd = build_file ("plugins/linux/coffer-init");
  payload_fd = build_file ("tests/attack/payload");
  linux_host_load (&host, "plugins/linux/linux.so");
  r = cage_run (&cage, cage_inside, 1800);
  if (r == -1)
    printf ("1..0 # SKIP missing: user namespaces\n");
  else if (r != 0)
    printf ("Bail out! the cage: %d\n", r);
  return r == 0 || r == -1 ? 0 : 1;
}
