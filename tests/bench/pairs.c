/* SPDX-License-Identifier: Apache-2.0 */
/* How long commands take as whole processes, side by side in one run.
 *
 *   pairs [-n RUNS] [-r RATIO] [-m MS] NAME ::: COMMAND… [::: OTHER…]
 *
 * Both are run RUNS times in turns, the first of each turn changing, so that
 * what else the machine does meets both alike.  What a command has left behind
 * (a sandbox whose namespaces the kernel takes down when its maker is over) is
 * waited for before the next begins, and is not in its time; and then a moment
 * for what the kernel takes down without any process.  Prints "NAME_ms"
 * and, with another, "NAME_other_ms" (medians), "NAME_ratio" (of the medians),
 * "NAME_turns" (the median of the ratio of each turn), "NAME_gone" (the same
 * until nothing of either was left) and the quartiles.
 * Exits 1 when the ratio of the turns (which a drift of the machine does not
 * touch) is above what -r allows, or a median above what -m does, 2 when a
 * command fails: then nothing was measured. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define WARM_UP 5               /* turns at least, which are not counted */
#define GONE_S 20               /* until what was left behind is a failure */
#define PAUSE_MS 5

struct subject {
  char **argv;
  double *ms, *gone;
};

static double
now_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* What has lost its parent is a child of ours. */
static void
rest_await (void)
{
  alarm (GONE_S);
  while (waitpid (-1, NULL, __WALL) > 0 || errno == EINTR)
    ;
  alarm (0);
}

/* With nothing on its standard descriptors but an empty input and, for what
 * goes wrong, our own standard error. */
static double
run_once (char **argv, int quiet, double *gone)
{
  posix_spawn_file_actions_t actions;
  double begin, ms;
  int status;
  pid_t pid;

  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_addopen (&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen (&actions, 1, "/dev/null", O_WRONLY, 0);
  if (quiet)
    posix_spawn_file_actions_addopen (&actions, 2, "/dev/null", O_WRONLY, 0);
  begin = now_ms ();
  errno = posix_spawnp (&pid, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy (&actions);
  if (errno) {
    perror (argv[0]);
    exit (2);
  }
  while (waitpid (pid, &status, 0) < 0)
    if (errno != EINTR)
      exit (2);
  if (status != 0) {
    fprintf (stderr, "%s: ended with status 0x%x\n", argv[0],
             (unsigned) status);
    exit (2);
  }
  ms = now_ms () - begin;
  rest_await ();
  *gone = now_ms () - begin;
  poll (NULL, 0, PAUSE_MS);
  return ms;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return x < y ? -1 : x > y;
}

/* `part` of the way through the sorted values. */
static double
quantile (const double *values, int n, double part)
{
  double *sorted = malloc ((size_t) n * sizeof *sorted), result;
  double at = part * (n - 1);
  int low = (int) at;

  if (!sorted)
    exit (2);
  memcpy (sorted, values, (size_t) n * sizeof *sorted);
  qsort (sorted, (size_t) n, sizeof *sorted, compare);
  result = low + 1 < n ? sorted[low] + (at - low) *
                                         (sorted[low + 1] - sorted[low]) :
                         sorted[low];
  free (sorted);
  return result;
}

static void
measure (struct subject *subjects, int n_subjects, int runs)
{
  const int warm_up = runs / 8 > WARM_UP ? runs / 8 : WARM_UP;

  for (int i = -warm_up; i < runs; i++)
    for (int j = 0; j < n_subjects; j++) {
      int k = (i & 1) && n_subjects > 1 ? 1 - j : j;
      double gone, ms = run_once (subjects[k].argv, i != -warm_up, &gone);

      if (i >= 0) {
        subjects[k].ms[i] = ms;
        subjects[k].gone[i] = gone;
      }
    }
}

static void
print_one (const char *name, const char *suffix, const double *ms, int runs)
{
  printf ("%s%s_ms %.3f\n", name, suffix, quantile (ms, runs, 0.5));
  printf ("%s%s_quartiles_ms %.3f %.3f\n", name, suffix,
          quantile (ms, runs, 0.25), quantile (ms, runs, 0.75));
}

static double
turns_ratio (const double *ours, const double *other, int runs)
{
  double *turns = malloc ((size_t) runs * sizeof *turns), ratio;

  if (!turns)
    exit (2);
  for (int i = 0; i < runs; i++)
    turns[i] = ours[i] / other[i];
  ratio = quantile (turns, runs, 0.5);
  free (turns);
  return ratio;
}

static double
print_ratio (const char *name, const struct subject *subjects, int runs)
{
  double ratio = turns_ratio (subjects[0].ms, subjects[1].ms, runs);

  printf ("%s_ratio %.3f\n", name, quantile (subjects[0].ms, runs, 0.5) /
                                     quantile (subjects[1].ms, runs, 0.5));
  printf ("%s_turns %.3f\n", name, ratio);
  printf ("%s_gone %.3f\n", name,
          turns_ratio (subjects[0].gone, subjects[1].gone, runs));
  return ratio;
}

static void
usage (void)
{
  fprintf (stderr, "usage: pairs [-n RUNS] [-r RATIO] [-m MS] NAME ::: COMMAND…"
           " [::: OTHER…]\n");
  exit (2);
}

/* Cuts the rest of the arguments into commands at each ":::". */
static int
split (char **argv, struct subject *subjects, int runs)
{
  int n = 0;

  while (*argv) {
    if (strcmp (*argv, ":::") != 0 || n == 2)
      usage ();
    *argv++ = NULL;
    if (!*argv)
      usage ();
    subjects[n].argv = argv;
    subjects[n].ms = calloc ((size_t) runs, sizeof (double));
    subjects[n].gone = calloc ((size_t) runs, sizeof (double));
    if (!subjects[n].ms || !subjects[n].gone)
      exit (2);
    n++;
    while (*argv && strcmp (*argv, ":::") != 0)
      argv++;
  }
  return n;
}

int
main (int argc, char **argv)
{
  struct subject subjects[2];
  double most_ratio = 0, most_ms = 0, ratio = 0;
  int runs = 51, n, option, bad;

  while ((option = getopt (argc, argv, "+n:r:m:")) != -1)
    switch (option) {
    case 'n': runs = atoi (optarg); break;
    case 'r': most_ratio = atof (optarg); break;
    case 'm': most_ms = atof (optarg); break;
    default: usage ();
    }
  if (optind >= argc || runs < 1)
    usage ();
  n = split (argv + optind + 1, subjects, runs);
  if (n == 0)
    usage ();
  if (prctl (PR_SET_CHILD_SUBREAPER, 1) < 0) {
    perror ("prctl");
    return 2;
  }
  measure (subjects, n, runs);
  print_one (argv[optind], "", subjects[0].ms, runs);
  if (n == 2) {
    print_one (argv[optind], "_other", subjects[1].ms, runs);
    ratio = print_ratio (argv[optind], subjects, runs);
  }
  bad = (most_ratio > 0 && ratio > most_ratio) ||
        (most_ms > 0 && quantile (subjects[0].ms, runs, 0.5) > most_ms);
  for (int i = 0; i < n; i++) {
    free (subjects[i].ms);
    free (subjects[i].gone);
  }
  return bad;
}
