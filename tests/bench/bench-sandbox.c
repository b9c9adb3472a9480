/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox inside one host process, against the least that the kernel takes
 * for one of the same shape (floor.h) and against bubblewrap as a whole
 * process; a further command, against vfork and exec of the same program.
 *
 *   bench-sandbox FLOOR-INIT [BWRAP [ARGUMENT…]]
 *
 * BENCH_RUNS is how many turns there are; what is compared takes turns, and
 * the median of the ratios of the turns decides.  A turn is some of the same in
 * a row with all that they have begun: a host makes the first process of its
 * next sandbox ahead, by a thread, and what that takes is to be paid in our
 * turn and not to slow the other's (quiet.h).  Prints "NAME VALUE" lines; exits
 * 1 when a promise is not kept, 2 when nothing was measured. */

#include <config.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/sandbox.h"

#include "floor.h"
#include "quiet.h"

#define NO_PROMISE 1000         /* what is shown for comparison */
#define WARM_UP 2
#define TURN_CYCLES 10
#define PAUSE_MS 10             /* for what the kernel does later */
#define THREADS 2
#define RATE_ROUNDS 7
#define RATE_CYCLES 40          /* of each thread in each round */

extern char **environ;

static struct host *host;
static struct floor least;
static char **bwrap;
static int runs = 51, missed;

static void
give_up (const char *what, struct error *error)
{
  printf ("# %s: %s\n", what, error ? error_message (error) : "failed");
  exit (2);
}

static double
ms_since (int64_t from)
{
  return (double) (coffer_now_ns () - from) / 1e6;
}

/* ---- what is timed ------------------------------------------------------ */

static void
output_take (void *data, int stream, const char *bytes, size_t size)
{
  FILE *file = data;

  if (stream == 1)
    fwrite (bytes, 1, size, file);
}

static void
command_run (const char *id, const char *const *argv, FILE *out)
{
  const struct exec_request request = { .argv = argv };
  struct exec_streams streams = { .in = -1, .out = -1, .err = -1 };
  struct exec_result result;
  struct error *error = NULL;

  if (out) {
    streams.output = output_take;
    streams.data = out;
  }
  if (sandbox_exec (host, id, &request, &streams, -1, &result, &error) < 0
      || exec_exit_status (&result) != 0)
    give_up ("a command", error);
  exec_result_fini (&result);
}

static struct sandbox_record *
sandbox_make (int single)
{
  const struct sandbox_request request
    = { .provider = "linux", .ephemeral = 1, .single_exec = single,
        .no_facts = 1 };
  struct sandbox_record *record = NULL;
  struct error *error = NULL;

  if (sandbox_create (host, &request, NULL, &record, NULL, &error) < 0)
    give_up ("a sandbox", error);
  return record;
}

static void
sandbox_end (struct sandbox_record *record)
{
  struct error *error = NULL;
  int gone;

  if (sandbox_kill (host, NULL, record->id, NULL, &gone, &error) < 0)
    give_up ("the end of a sandbox", error);
  sandbox_record_free (record);
}

static const char *const true_argv[] = { "/bin/true", NULL };

/* create, exec, kill. */
static double
cycle_ours (void)
{
  const int64_t begin = coffer_now_ns ();
  struct sandbox_record *record = sandbox_make (1);

  command_run (record->id, true_argv, NULL);
  sandbox_end (record);
  return ms_since (begin);
}

static double
cycle_floor (void)
{
  const int64_t begin = coffer_now_ns ();

  if (floor_run (&least, 1) < 0)
    give_up ("the floor", NULL);
  return ms_since (begin);
}

static double
spawn_once (char *const *argv)
{
  const int64_t begin = coffer_now_ns ();
  int status;
  pid_t pid;

  if (posix_spawnp (&pid, argv[0], NULL, NULL, argv, environ) != 0
      || waitpid (pid, &status, 0) != pid || status != 0)
    give_up (argv[0], NULL);
  return ms_since (begin);
}

static double
cycle_bwrap (void)
{
  return spawn_once (bwrap);
}

static double
program_plain (void)
{
  return spawn_once ((char *const *) true_argv);
}

static struct sandbox_record *living;

static double
program_inside (void)
{
  const int64_t begin = coffer_now_ns ();

  command_run (living->id, true_argv, NULL);
  return ms_since (begin);
}

/* ---- comparing ---------------------------------------------------------- */

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
median (double *values, int n)
{
  qsort (values, (size_t) n, sizeof *values, compare);
  return values[n / 2];
}

static void
verdict (const char *name, double ratio, double limit, int least_is_kept)
{
  const int kept = least_is_kept ? ratio >= limit : ratio <= limit;

  printf ("%s_ratio %.3f\n", name, ratio);
  if (limit == NO_PROMISE) {
    printf ("# %s: %.3f, no promise\n", name, ratio);
    return;
  }
  printf ("# %s: %.3f, limit at %s %.2f: %s\n", name, ratio,
          least_is_kept ? "least" : "most", limit,
          kept ? "kept" : "NOT KEPT");
  missed |= !kept;
}

static void
quiet_or_give_up (void)
{
  if (quiet_await () < 0)
    give_up ("waiting for what was begun", NULL);
}

/* What one takes, of some in a row. */
static double
turn (double (*cycle) (void))
{
  const int64_t begin = coffer_now_ns ();
  double ms;

  for (int i = 0; i < TURN_CYCLES; i++)
    cycle ();
  quiet_or_give_up ();
  ms = ms_since (begin) / TURN_CYCLES;
  poll (NULL, 0, PAUSE_MS);
  return ms;
}

static void
turns (const char *name, double (*ours) (void), double (*other) (void),
       double limit)
{
  double *mine = calloc ((size_t) runs, sizeof *mine);
  double *theirs = calloc ((size_t) runs, sizeof *theirs);
  double *ratio = calloc ((size_t) runs, sizeof *ratio);

  if (!mine || !theirs || !ratio)
    give_up (name, NULL);
  for (int i = -WARM_UP; i < runs; i++) {
    const double first = turn ((i & 1) ? other : ours);
    const double second = turn ((i & 1) ? ours : other);

    if (i < 0)
      continue;
    mine[i] = (i & 1) ? second : first;
    theirs[i] = (i & 1) ? first : second;
    ratio[i] = mine[i] / theirs[i];
  }
  printf ("%s_ms %.3f\n", name, median (mine, runs));
  printf ("%s_other_ms %.3f\n", name, median (theirs, runs));
  verdict (name, median (ratio, runs), limit, 0);
  free (mine);
  free (theirs);
  free (ratio);
}

static void *
rate_thread (void *data)
{
  double (*const *cycle) (void) = data;

  for (int i = 0; i < RATE_CYCLES; i++)
    (*cycle) ();
  return NULL;
}

/* Sandboxes in a second, of as many threads as there are processors. */
static double
rate_once (double (*cycle) (void))
{
  pthread_t threads[THREADS];
  const int64_t begin = coffer_now_ns ();

  for (int i = 0; i < THREADS; i++)
    if (pthread_create (&threads[i], NULL, rate_thread, &cycle) != 0)
      give_up ("a thread", NULL);
  for (int i = 0; i < THREADS; i++)
    pthread_join (threads[i], NULL);
  quiet_or_give_up ();
  return THREADS * RATE_CYCLES / (ms_since (begin) / 1e3);
}

static void
rate (const char *name, double limit)
{
  double mine[RATE_ROUNDS], theirs[RATE_ROUNDS], ratio[RATE_ROUNDS];

  for (int i = 0; i < RATE_ROUNDS; i++) {
    mine[i] = rate_once (cycle_ours);
    theirs[i] = rate_once (cycle_floor);
    ratio[i] = mine[i] / theirs[i];
  }
  printf ("%s_per_s %.1f\n", name, median (mine, RATE_ROUNDS));
  printf ("%s_other_per_s %.1f\n", name, median (theirs, RATE_ROUNDS));
  verdict (name, median (ratio, RATE_ROUNDS), limit, 1);
}

/* ---- set-up ------------------------------------------------------------- */

/* The mounts of the floor are those that a sandbox has, and it is looked at
 * that they came out alike. */
static char *
mounts_of (int floor_too)
{
  static const char *const cat[] = { "/bin/cat", "/proc/self/mountinfo",
                                     NULL };
  char *text = NULL;
  size_t size = 0;
  FILE *file = open_memstream (&text, &size);
  struct sandbox_record *record;
  int ends[2];
  char buffer[65536];
  ssize_t n;

  if (!file)
    give_up ("memory", NULL);
  if (!floor_too) {
    record = sandbox_make (1);
    command_run (record->id, cat, file);
    sandbox_end (record);
  } else {
    if (pipe2 (ends, O_CLOEXEC) < 0 || floor_run (&least, ends[1]) < 0)
      give_up ("the floor", NULL);
    close (ends[1]);
    while ((n = read (ends[0], buffer, sizeof buffer)) > 0)
      fwrite (buffer, 1, (size_t) n, file);
    close (ends[0]);
  }
  fclose (file);
  return text;
}

static int
compare_lines (const void *a, const void *b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

/* Where each is mounted and how, without numbers and sizes, in an order that
 * is not that of their making. */
static char *
mounts_shape (char *text)
{
  char *lines[256] = { NULL }, *out = NULL, *save = NULL, *line;
  char where[256], options[256];
  size_t size = 0, n = 0, i;
  FILE *file = open_memstream (&out, &size);

  for (line = strtok_r (text, "\n", &save); line && n < 256;
       line = strtok_r (NULL, "\n", &save))
    if (sscanf (line, "%*d %*d %*s %*s %255s %255s", where, options) != 2
        || asprintf (&lines[n++], "%s %s", where, options) < 0)
      give_up ("a line of mountinfo", NULL);
  qsort (lines, n, sizeof *lines, compare_lines);
  for (i = 0; file && i < n; i++) {
    fprintf (file, "%s\n", lines[i]);
    free (lines[i]);
  }
  if (file)
    fclose (file);
  return out;
}

static void
floor_make (const char *program)
{
  static const char *const cat[] = { "/bin/cat", "/proc/self/mountinfo",
                                     NULL };
  char *inside = mounts_of (0), *below, *a, *b;

  if (floor_prepare (&least, program, inside, cat) < 0)
    give_up ("the floor", NULL);
  below = mounts_of (1);
  a = mounts_shape (inside);
  b = mounts_shape (below);
  if (!a || !b || strcmp (a, b) != 0) {
    printf ("# the floor's mounts are not the sandbox's:\n%s# and\n%s",
            a ? a : "", b ? b : "");
    exit (2);
  }
  floor_free (&least);
  /* The lines of `inside` were cut up. */
  free (inside);
  inside = mounts_of (0);
  if (floor_prepare (&least, program, inside, true_argv) < 0)
    give_up ("the floor", NULL);
  free (inside);
  free (below);
  free (a);
  free (b);
}

int
main (int argc, char **argv)
{
  struct error *error = NULL;
  struct place *place;
  const char *asked = getenv ("BENCH_RUNS");

  if (argc < 2)
    return 2;
  if (asked && atoi (asked) > 0)
    runs = atoi (asked);
  bwrap = argc > 2 ? argv + 2 : NULL;
  if (place_find (&place, &error) < 0
      || host_open (place, HOST_IN_PROCESS | HOST_EPHEMERAL, &host, &error)
           < 0)
    give_up ("the host", error);
  floor_make (argv[1]);
  turns ("sandbox_vs_floor", cycle_ours, cycle_floor, 1.25);
  if (bwrap) {
    turns ("sandbox_vs_bwrap", cycle_ours, cycle_bwrap, 0.5);
    turns ("floor_vs_bwrap", cycle_floor, cycle_bwrap, NO_PROMISE);
  } else
    printf ("# sandbox_vs_bwrap: SKIP missing: bwrap\n");
  rate ("sandbox_rate_vs_floor", 0.6);
  living = sandbox_make (0);
  turns ("exec_vs_vfork", program_inside, program_plain, 1.5);
  sandbox_end (living);
  floor_free (&least);
  host_close (host);
  place_free (place);
  return missed;
}
