/* SPDX-License-Identifier: Apache-2.0 */
/* A run of Python code by an interpreter that stands ready, with the sandbox
 * and the guard, against one that is started bare: what `/execute` does, in one
 * host process.  What is made ahead is made while it is timed.
 *
 * BENCH_RUNS is how many runs of each there are, which take turns.  Prints
 * "NAME VALUE" lines; exits 1 when a promise is not kept, 2 when nothing was
 * measured. */

#include <config.h>

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "python/execute.h"
#include "sandbox/ready.h"

#define PYTHON "/usr/bin/python3"
#define WARM_UP 5
#define CLIENTS 8
#define CLIENT_RUNS 40
#define AHEAD 8

extern char **environ;

static struct host *host;
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

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
part (double *values, int n, double of)
{
  qsort (values, (size_t) n, sizeof *values, compare);
  return values[(int) (of * (n - 1) + 0.5)];
}

static void
verdict (const char *name, double ratio, double limit)
{
  printf ("%s_ratio %.3f\n", name, ratio);
  printf ("# %s: %.3f, limit at most %.2f: %s\n", name, ratio, limit,
          ratio <= limit ? "kept" : "NOT KEPT");
  missed |= ratio > limit;
}

static double
run_ours (const char *profile, const char *code)
{
  const struct execute_request request
    = { .profile = profile, .provider = "linux", .code = code,
        .code_size = strlen (code) };
  const int64_t begin = coffer_now_ns ();
  struct execute_result result;
  struct error *error = NULL;
  double ms;

  if (execute_run (host, &request, -1, &result, &error) < 0)
    give_up (profile, error);
  ms = ms_since (begin);
  if (result.status != 0)
    give_up (json_dumps (result.document, 0), NULL);
  execute_result_fini (&result);
  return ms;
}

/* -1: it did not end well. */
static double
run_bare (const char *const *argv)
{
  posix_spawn_file_actions_t actions;
  const int64_t begin = coffer_now_ns ();
  int status = -1;
  pid_t pid;

  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_addopen (&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen (&actions, 2, "/dev/null", O_WRONLY, 0);
  if (posix_spawn (&pid, PYTHON, &actions, NULL, (char *const *) argv,
                   environ) == 0)
    waitpid (pid, &status, 0);
  posix_spawn_file_actions_destroy (&actions);
  return status == 0 ? ms_since (begin) : -1;
}

static void
pair (const char *name, const char *profile, const char *code,
      const char *const *argv, double limit)
{
  double *ours = calloc ((size_t) runs, sizeof *ours);
  double *bare = calloc ((size_t) runs, sizeof *bare);

  if (!ours || !bare)
    give_up (name, NULL);
  if (run_bare (argv) < 0) {
    printf ("# %s: SKIP missing: what it imports\n", name);
    return;
  }
  for (int i = -WARM_UP; i < runs; i++) {
    const double mine = run_ours (profile, code);
    const double other = run_bare (argv);

    if (i < 0)
      continue;
    ours[i] = mine;
    bare[i] = other;
  }
  printf ("%s_ms %.3f\n%s_p99_ms %.3f\n%s_bare_ms %.3f\n", name,
          part (ours, runs, 0.5), name, part (ours, runs, 0.99), name,
          part (bare, runs, 0.5));
  verdict (name, part (ours, runs, 0.5) / part (bare, runs, 0.5), limit);
  free (ours);
  free (bare);
}

static const char print_one[] = "print(1)";

static void *
client (void *data)
{
  double *ms = data;

  for (int i = 0; i < CLIENT_RUNS; i++)
    ms[i] = run_ours ("minimal", print_one);
  return NULL;
}

static void
clients (void)
{
  static double ms[CLIENTS * CLIENT_RUNS];
  pthread_t threads[CLIENTS];
  const int64_t begin = coffer_now_ns ();
  double half, most;

  for (int i = 0; i < CLIENTS; i++)
    if (pthread_create (&threads[i], NULL, client, &ms[i * CLIENT_RUNS]) != 0)
      give_up ("a thread", NULL);
  for (int i = 0; i < CLIENTS; i++)
    pthread_join (threads[i], NULL);
  printf ("warm_clients_per_s %.1f\n",
          CLIENTS * CLIENT_RUNS / (ms_since (begin) / 1e3));
  half = part (ms, CLIENTS * CLIENT_RUNS, 0.5);
  most = part (ms, CLIENTS * CLIENT_RUNS, 0.99);
  printf ("warm_clients_ms %.3f\nwarm_clients_p99_ms %.3f\n", half, most);
  verdict ("warm_clients_p99", most / half, 3);
}

int
main (void)
{
  static const char *const bare[] = { "python3", "-I", "-c", print_one, NULL };
  static const char arrays[] = "import numpy, pandas; print(1)";
  static const char *const bare_arrays[] = { "python3", "-c", arrays, NULL };
  const char *asked = getenv ("BENCH_RUNS");
  struct error *error = NULL;
  struct place *place;

  if (asked && atoi (asked) > 0)
    runs = atoi (asked);
  if (place_find (&place, &error) < 0
      || host_open (place, HOST_IN_PROCESS | HOST_EPHEMERAL, &host, &error)
           < 0
      || host_ready_begin (host, AHEAD, &error) < 0)
    give_up ("the host", error);
  pair ("warm_minimal", "minimal", print_one, bare, 0.45);
  clients ();
  pair ("warm_arrays", "data-science", arrays, bare_arrays, 0.05);
  host_close (host);
  place_free (place);
  return missed;
}
