/* SPDX-License-Identifier: Apache-2.0 */
/* Making a sandbox, and starting a command in it, with one call that fails:
 * each in turn, of the init's and of the module's.
 *
 * Whatever fails, nothing of the payload runs, the error says what it was, and
 * nothing is left: no process, descriptor, mount, control group, file.  Where
 * a failure is put up with, the sandbox is the one that it is without: all its
 * facts are the same.  What is interrupted while it waits is done again.
 *
 * One error a call and run in `make check`, in turns; each with CHECK_SCALE. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "arena.h"
#include "faults.h"
#include "inventory.h"

static struct arena arena;
static struct linux_host host;
static struct fault fault;
static int init_fd = -1, payload_fd = -1;
static char facts_whole[HOST_TEXT];
static int every, number;

static int run_state;           /* how far the last run came */
enum { REFUSED_MAKING, REFUSED_STARTING, RAN };

/* ---- one run ------------------------------------------------------------ */

/* A sandbox with all there is to set up: mounts, a group, a lifeline, a time to
 * live, metadata. */
static int32_t
sandbox_make (int lifeline)
{
  static const char *const metadata[] = { "a=b", NULL }, *env[] = { "X=y", NULL };
  struct coffer_mount code = { .size = sizeof code, .source = "/opt/attack",
                               .target = "/opt/attack" };
  struct coffer_mount rw = { .size = sizeof rw, .source = "/srv/rw",
                             .target = "/srv/rw", .writable = 1 };
  const struct coffer_mount *mounts[] = { &code, &rw, NULL };
  struct coffer_sandbox_spec spec
    = { .size = sizeof spec, .single_exec = 1, .lifeline = lifeline,
        .mounts = mounts, .pids = 40, .memory_bytes = 48 << 20,
        .disk_bytes = 4 << 20, .template_fd = -1, .ttl_ms = 60000,
        .metadata = metadata, .env = env };
  int32_t made;

  code.source_fd = open ("/opt/attack", O_PATH | O_CLOEXEC);
  rw.source_fd = open ("/srv/rw", O_PATH | O_CLOEXEC);
  made = host.ops->sandbox_create (host_call (&host, 3000), host.self,
                                   "faulty", &spec, NULL);
  close (code.source_fd);
  close (rw.source_fd);
  return made;
}

/* Facts by name and state: inodes and ids differ. */
static void
facts_keep (char out[HOST_TEXT])
{
  const char *at = host.facts;
  size_t n = 0, k;

  for (; *at != '\0'; at = strchr (at, '\n') + 1) {
    k = strcspn (at, " ");
    k += 1 + strcspn (at + k + 1, " \n");
    memcpy (out + n, at, k);
    n += k;
    out[n++] = '\n';
  }
  out[n] = '\0';
}

static int
payload_ran (void)
{
  char text[64];

  file_get ("/srv/rw/beat", text, sizeof text);
  return strcmp (text, "whole\n") != 0;
}

/* 0: it ran, or why it did not is in host.error. */
static int32_t
payload_run (void)
{
  static const char *const argv[] = { "/opt/attack/payload", "write",
                                      "/srv/rw/beat", NULL };
  struct coffer_exec_start_opts opts = { .size = sizeof opts };
  int out[2], in;
  char bytes[64];
  int32_t started;

  if (pipe2 (out, O_CLOEXEC) == -1)
    return -1;
  in = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  started = host.ops->exec_start (host_call (&host, 3000), host.self,
                                  "faulty", argv, NULL, "/", -1, out[1], -1,
                                  &opts);
  close (in);
  close (out[1]);
  if (started == COFFER_OK
      && coffer_wait_fd (out[0], POLLIN,
                         coffer_now_ns () + INT64_C (30000000000), -1)
           == 1)
    while (read (out[0], bytes, sizeof bytes) > 0)
      ;
  close (out[0]);
  return started;
}

/* Whether the init has put up with a call that failed: it says so by its name. */
static int
init_put_up (char name[32])
{
  char path[64], text[64];

  snprintf (path, sizeof path, "/proc/%d/comm", host.pid);
  file_get (path, text, sizeof text);
  text[strcspn (text, "\n")] = '\0';
  snprintf (name, 32, "%.31s", text);
  return strncmp (text, "fault-", 6) == 0;
}

/* What could not be read back says what it should have been, and the table of
 * ids only that it is no use. */
static int
read_back (const char *error)
{
  static const char *const reading[]
    = { "open", "openat", "read", "fstatat", "readlinkat" };
  size_t i;

  if (strstr (error, ": read back: ") != NULL
      || strstr (error, "table of user ids") != NULL)
    return 1;
  for (i = 0; fault.name != NULL && i < sizeof reading / sizeof reading[0];
       i++)
    if (strcmp (fault.name, reading[i]) == 0)
      return strncmp (error, "the sandbox could not be set up: ", 33) == 0
             && error[33] != '\0';
  return 0;
}

static void
error_said (int error)
{
  if (fault.name != NULL)
    error = fault.error;
  if (host.error[0] == '\0')
    complain ("no word of it");
  else if (run_state == REFUSED_MAKING && !read_back (host.error)
           && strstr (host.error, strerror (error)) == NULL)
    complain ("says nothing of %s: %s", strerror (error), host.error);
}

/* The same layers, each as it was, or with a word that it is less: those that
 * a sandbox can be without. */
static void
facts_compare (const char *now)
{
  static const char *const may[] = { "landlock", "cgroup", "limit.memory" };
  const char *was = facts_whole;
  size_t n, k, i;

  for (; *was != '\0' && *now != '\0'; was += n + 1, now += k + 1) {
    n = strcspn (was, "\n");
    k = strcspn (now, "\n");
    if (n == k && strncmp (was, now, n) == 0)
      continue;
    for (i = 0; i < 3; i++)
      if (strncmp (now, may[i], strlen (may[i])) == 0
          && now[strlen (may[i])] == ' '
          && strncmp (was, now, strlen (may[i]) + 1) == 0
          && strncmp (now + strlen (may[i]) + 1, "ok", 2) != 0)
        break;
    if (i == 3)
      complain ("%.*s, and now %.*s", (int) n, was, (int) k, now);
  }
  if (*was != '\0' || *now != '\0')
    complain ("other facts: %.60s", *was ? was : now);
}


static void
run (int error, char put_up[32])
{
  struct inventory before;
  static char facts[HOST_TEXT];
  int life[2], fired;

  put_up[0] = '\0';
  file_put ("/srv/rw/beat", "whole\n", 0666);
  before = inventory_take (&arena);
  if (pipe2 (life, O_CLOEXEC) == -1)
    return;
  if (sandbox_make (life[0]) != COFFER_OK) {
    run_state = REFUSED_MAKING;
    error_said (error);
  } else {
    facts_keep (facts);
    if (facts_whole[0] == '\0')
      strcpy (facts_whole, facts);
    facts_compare (facts);
    fired = init_put_up (put_up);
    run_state = payload_run () == COFFER_OK ? RAN : REFUSED_STARTING;
    if (run_state == REFUSED_STARTING) {
      error_said (error);
      if (payload_ran () && fault.name == NULL)
        complain ("it ran: %s", host.error);
    } else if (!fired)
      init_put_up (put_up);
    fault.at = 0;               /* ending it is another matter */
    if (host_kill (&host, "faulty") != COFFER_OK)
      complain ("kill: %s", host.error);
  }
  fault.at = 0;
  close (life[0]);
  close (life[1]);
  inventory_same (&arena, &before);
}

/* ---- the rows ----------------------------------------------------------- */

static const int errors[] = { EPERM, ENOSYS, EINTR, ENOMEM };
static const char *const error_names[] = { "EPERM", "ENOSYS", "EINTR",
                                           "ENOMEM" };

static void
result (const char *side, unsigned long at, const char *what, size_t error)
{
  if (complaint[0] == '\0')
    return;
  printf ("# %s %lu, %s, %s: %s\n", side, at, what, error_names[error],
          complaint);
  fflush (stdout);
}

static void
tap (int failed, const char *what, unsigned long calls)
{
  printf ("%sok %d - %s, %lu calls\n", failed ? "not " : "", ++number, what,
          calls);
  fflush (stdout);
}

/* Calls of the init: until one is asked for that it does not come to. */
static void
init_faults (const char *side, const char *what)
{
  char text[64], put_up[32];
  int failed = 0, over = 0;
  unsigned long at;
  size_t e;

  for (at = 1; at < 2000 && !over; at++)
    for (e = 0; e < 4; e++) {
      if (!every && e != at % 4)
        continue;
      complaint[0] = '\0';
      fault.name = NULL;
      snprintf (text, sizeof text, "%s:%lu:%d", side, at, errors[e]);
      setenv ("COFFER_TEST_FAULT", text, 1);
      run (errors[e], put_up);
      over |= run_state == RAN && strncmp (put_up, "fault-", 6) != 0;
      failed |= complaint[0] != '\0';
      result (side, at, put_up[0] ? put_up : "refused", e);
    }
  unsetenv ("COFFER_TEST_FAULT");
  tap (failed || at < 100, what, at);
}

/* Waiting that is interrupted goes on. */
static int
waits (const char *name)
{
  static const char *const names[] = { "poll", "ppoll", "recvmsg", "sendmsg",
                                       "flock", "waitid" };
  size_t i;

  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp (name, names[i]) == 0)
      return 1;
  return 0;
}

static void
host_faults (void)
{
  char put_up[32];
  int failed = 0, over = 0;
  unsigned long at;
  size_t e;

  for (at = 1; at < 2000 && !over; at++)
    for (e = 0; e < 4; e++) {
      if (!every && e != at % 4)
        continue;
      complaint[0] = '\0';
      fault = (struct fault) { at, 0, errors[e], NULL };
      run (errors[e], put_up);
      over |= fault.name == NULL;
      if (fault.name != NULL && errors[e] == EINTR && waits (fault.name)
          && run_state != RAN)
        complain ("interrupted: %s", host.error);
      failed |= complaint[0] != '\0';
      result ("host", at, fault.name ? fault.name : "-", e);
    }
  tap (failed || at < 50, "a call of the module fails", at);
}

static int
cage_inside (struct cage *cage)
{
  char text[32], none[32];

  arena.cage = cage;
  arena.host = &host;
  mkdir ("/opt/attack", 0755);
  if (file_copy (payload_fd, "/opt/attack/payload", 0755) == -1
      || arena_open (&arena) == -1) {
    printf ("Bail out! the arena: %s\n", strerror (errno));
    fflush (stdout);
    return 2;
  }
  snprintf (text, sizeof text, "%#lx", (unsigned long) &fault);
  setenv ("COFFER_TEST_FAULT_AT", text, 1);
  linux_host_start (&host, init_fd, NULL);
  /* Twice without: what is made once is there by then. */
  run (0, none);
  complaint[0] = '\0';
  run (0, none);
  if (complaint[0] != '\0' || run_state != RAN || !payload_ran ())
    printf ("# without a fault: %s %s\n", complaint, host.error);
  tap (complaint[0] != '\0' || run_state != RAN || !payload_ran (),
       "no call fails", 0);
  init_faults ("init", "a call of the init fails");
  init_faults ("beside", "a call fails of one that makes its network beside");
  host_faults ();
  printf ("1..%d\n", number);
  fflush (stdout);
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
  const char *scale = getenv ("CHECK_SCALE");
  static struct cage cage;
  int r;

  if (syscall (SYS_close_range, 3, ~0u, 0) == -1)
    return 1;
  every = scale != NULL && atoi (scale) > 1;
  init_fd = build_file ("tests/attack/init-switches");
  payload_fd = build_file ("tests/attack/payload");
  linux_host_load (&host, "tests/attack/linux-switches.so");
  r = cage_run (&cage, cage_inside, every ? 900 : 240);
  if (r == -1)
    printf ("1..0 # SKIP missing: user namespaces\n");
  else if (r != 0)
    printf ("Bail out! the cage: %d\n", r);
  return r == 0 || r == -1 ? 0 : 1;
}
