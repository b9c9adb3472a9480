/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-kit, which `coffer kit` executes: its options are those of the command,
 * and the manual of both is coffer-kit(1). */

#include <config.h>

#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "runner.h"

enum { OPTION_SEED = 256, OPTION_ONLY, OPTION_IN_PROCESS, OPTION_LIST,
       OPTION_JUNIT, OPTION_JSON, OPTION_COLOR, OPTION_VERBOSE, OPTION_RECORD,
       OPTION_YES, OPTION_COMPARE };

static const struct option long_options[] = {
  { "seed", required_argument, NULL, OPTION_SEED },
  { "only", required_argument, NULL, OPTION_ONLY },
  { "in-process", no_argument, NULL, OPTION_IN_PROCESS },
  { "list", no_argument, NULL, OPTION_LIST },
  { "junit", required_argument, NULL, OPTION_JUNIT },
  { "json", no_argument, NULL, OPTION_JSON },
  { "color", no_argument, NULL, OPTION_COLOR },
  { "record", no_argument, NULL, OPTION_RECORD },
  { "yes", no_argument, NULL, OPTION_YES },
  { "compare", no_argument, NULL, OPTION_COMPARE },
  { "verbose", no_argument, NULL, OPTION_VERBOSE },
  { NULL, 0, NULL, 0 }
};

static int
take_option (struct options *options, int option, size_t *n_only,
             struct error **err)
{
  switch (option) {
  case OPTION_SEED:
    options->seed_given = 1;
    if (text_parse_u64 (optarg, 0, UINT64_MAX, &options->seed) < 0)
      return error_set (err, E_USAGE, 0, "--seed wants a number");
    return 0;
  case OPTION_ONLY:
    options->only[(*n_only)++] = optarg;
    return 0;
  case OPTION_IN_PROCESS:
    options->in_process = 1;
    return 0;
  case OPTION_RECORD:
    options->record = 1;
    return 0;
  case OPTION_YES:
    options->yes = 1;
    return 0;
  case OPTION_COMPARE:
    options->compare = 1;
    return 0;
  case OPTION_LIST:
    options->list = 1;
    return 0;
  case OPTION_JUNIT:
    options->junit = optarg;
    return 0;
  case OPTION_JSON:
    options->json = 1;
    return 0;
  case OPTION_COLOR:
    options->color = 1;
    return 0;
  case OPTION_VERBOSE:
    options->verbose = 1;
    log_set_level (LOG_LEVEL_INFO);
    return 0;
  default:
    return error_set (err, E_USAGE, 0, "coffer-kit: an option that it does "
                      "not have");
  }
}

static int
read_arguments (struct options *options, int count, char **words,
                struct error **err)
{
  const int wanted = options->list ? 0 : options->compare ? 2 : 1;

  options->provider = words[0];
  options->second = count > 1 ? words[1] : NULL;
  if (count == wanted)
    return 0;
  return error_set (err, E_USAGE, 0, options->list      ? "--list takes nothing"
                                     : options->compare
                                     ? "--compare wants two reports"
                                     : "kit wants one provider, manifest or "
                                       "folder");
}

static int
read_options (struct options *options, int argc, char **argv,
              struct error **err)
{
  size_t n_only = 0;
  int option;

  options->only = calloc ((size_t) argc + 1, sizeof *options->only);
  if (!options->only)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  opterr = 0;
  while ((option = getopt_long (argc, argv, "", long_options, NULL)) != -1)
    if (take_option (options, option, &n_only, err) < 0)
      return -1;
  return read_arguments (options, argc - optind, argv + optind, err);
}

static int
draw_seed (struct options *options, struct error **err)
{
  if (!options->seed_given
      && getrandom (&options->seed, sizeof options->seed, 0) < 0)
    return error_set (err, E_IO, errno, "draw a seed");
  if (!options->seed_given)
    options->seed %= 1000000000;        /* one that is easily typed again */
  return 0;
}

static int
exit_status (const struct run *run)
{
  char why[512];

  if (run->failed)
    return 1;
  return strcmp (run_verdict (run, why), "conformant") == 0 ? 0 : 3;
}

static int
print_report (const struct run *run, struct error **err)
{
  auto_json json_t *report = report_json (run);
  auto_free char *text = json_text (report);

  if (text && run->options->record && record_end (run, report, err) < 0)
    return -1;
  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  if (run->options->json)
    printf ("%s\n", text);
  return run->options->junit
           ? report_junit (run, run->options->junit, err) : 0;
}

static int
kit_run (const struct options *options, struct error **err)
{
  auto_place struct place *place = NULL;
  auto_subject struct subject *subject = NULL;
  struct run run = { .options = options };
  int status = -1;

  if (place_find (&place, err) < 0
      || subject_find (options->provider, place, options->in_process, &subject,
                       err) < 0
      || process_set_up (err) < 0)
    return -1;
  run.subject = subject;
  if (options->record && record_begin (&run, err) < 0)
    return -1;
  if (run_all (&run, err) == 0 && run.interrupted) {
    if (!options->json)
      printf ("Bail out! interrupted\n");
    status = 128 + run.interrupted;
  } else if (!*err) {
    tap_end (&run);
    if (print_report (&run, err) == 0)
      status = exit_status (&run);
  }
  run_fini (&run);
  return status;
}

static int
kit_compare (const struct options *options, struct error **err)
{
  int worse = 0;

  if (compare_print (options->provider, options->second, options->json,
                     &worse, err) < 0)
    return -1;
  return worse;
}

int
main (int argc, char **argv)
{
  struct options options = { 0 };
  auto_error struct error *error = NULL;
  int status = -1;

  /* It was executed from a descriptor, whose number is its name so far. */
  prctl (PR_SET_NAME, "coffer-kit");
  log_configure (getenv ("COFFER_LOG"));
  if (read_options (&options, argc, argv, &error) == 0
      && draw_seed (&options, &error) == 0)
    status = options.list      ? list_print (&options, &error)
             : options.compare ? kit_compare (&options, &error)
                               : kit_run (&options, &error);
  if (status < 0)
    status = error_print (error, options.json);
  free (options.only);
  if (fflush (stdout) == EOF || ferror (stdout))
    status = status ? status : 1;
  return status;
}
