/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: one table of commands, one parser, one way to fail.
 *
 * A command is a row: its words, its positional arguments, its options and a
 * function.  The parser, `--help`, the manual's check and the completions
 * read the same rows.  A command's function gets a `struct cli`; it returns
 * an exit status, or -1 with an error, which main prints.  Places, registry,
 * records and the locale are touched only by the command that needs them:
 * the start of `coffer run` is a hot path. */

#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "base/place.h"
#include "policy/profile.h"

/* ---- the table ---------------------------------------------------------- */

enum cli_option_flag {
  OPTION_REPEATED = 1           /* may be given more than once */
};

/* The same name or letter has the same meaning of "takes an argument" in all
 * commands, so that options may stand before the command's name. */
struct cli_option {
  const char *name;             /* long, without the dashes; NULL ends */
  char letter;                  /* 0: none */
  const char *argument;         /* "DIR[:rw]"; NULL: a flag */
  unsigned flags;
  const char *help;             /* one line, lower case, no period */
};

struct cli;
struct client;
struct host;

enum cli_command_flag {
  /* The exit status is another program's; coffer's own failure is 125. */
  COMMAND_RUNS = 1,
  /* A daemon does it when there is one (work.h). */
  COMMAND_DAEMON = 2
};

struct cli_command {
  const char *words;            /* "sandbox create"; NULL ends */
  const char *arguments;        /* "ID -- ARGV…", for help; "" : none */
  const char *summary;          /* one line */
  const struct cli_option *options;     /* NULL: none of its own */
  int least, most;              /* positional arguments; most -1: any */
  /* After this many positional arguments the rest is taken as it is, options
   * of other programs included.  -1: options may follow everywhere. */
  int rest_after;
  unsigned flags;
  int (*run) (struct cli *cli, struct error **err);
};

extern const struct cli_option cli_global_options[];

/* All rows of one file; cli_tables lists the files. */
struct cli_table {
  const struct cli_command *commands;
};
extern const struct cli_table cli_tables[];

const struct cli_command *cli_find_command (const char *words);
/* Is it the first of two words of some command ("sandbox")? */
int cli_is_group (const char *word);
/* For `index` 0, 1, …: the commands in the order of help; NULL at the end. */
const struct cli_command *cli_command_at (size_t index);
/* By its letter, or by its long name when `letter` is 0.  command NULL: any
 * command's, then the global ones. */
const struct cli_option *cli_find_option (const struct cli_command *command,
                                          char letter, const char *name,
                                          size_t length);

/* ---- one invocation ----------------------------------------------------- */

struct cli_given {
  const struct cli_option *option;
  const char *value;            /* NULL: a flag */
};

enum cli_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct cli {
  const struct cli_command *command;
  const char *group;            /* "sandbox", when only that was given */
  const char **args;            /* positional, NULL-terminated */
  int n_args;
  struct cli_given *given;
  size_t n_given;
  int json, yes, verbose, help, version;
  enum cli_color color;
  const char *provider, *host;

  /* Made on first use. */
  struct place *place;
  struct host *opened;          /* cli_host */
  struct client *daemon;        /* work_daemon, which looks once */
  int daemon_sought;
};

/* Fills a zeroed cli.  What was understood before a failure stays filled in,
 * so that the error can be printed as asked (--json). */
int cli_parse (struct cli *cli, int argc, const char *const *argv,
               struct error **err);
void cli_fini (struct cli *cli);

/* The last value given, or NULL; is the flag there; the values in order
 * (NULL-terminated, to be freed, not its strings). */
const char *cli_value (const struct cli *cli, const char *name);
int cli_flag (const struct cli *cli, const char *name);
int cli_values (const struct cli *cli, const char *name, const char ***out,
                struct error **err);

/* Numbers of options: left alone when the option is not given, and within the
 * range of a field. */
int cli_size (const struct cli *cli, const char *name,
              enum profile_field field, uint64_t *bytes, struct error **err);
int cli_duration (const struct cli *cli, const char *name,
                  enum profile_field field, uint64_t *ms, struct error **err);
int cli_cpus (const struct cli *cli, const char *name, uint32_t *millis,
              struct error **err);
int cli_number (const struct cli *cli, const char *name, uint64_t min,
                uint64_t max, uint64_t *out, struct error **err);

int cli_place (struct cli *cli, const struct place **out, struct error **err);

/* The exit status of a failure: as the table says, 125 for a command that
 * runs another, 128 and more when a signal ended it. */
int cli_failure_status (const struct cli *cli, const struct error *err);

/* ---- help --------------------------------------------------------------- */

/* The text of --help: for a command, for a group, or for all (both NULL). */
char *cli_help_text (const struct cli_command *command, const char *group);
/* The table as JSON, for completions and for the check of the manual. */
json_t *cli_table_json (void);

#endif /* CLI_CLI_H */
