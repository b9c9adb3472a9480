/* SPDX-License-Identifier: Apache-2.0 */
/* What people and programs read: tables, JSON documents, errors, progress.
 *
 * People get tables that fit the terminal, colour on a terminal (and none
 * with NO_COLOR), and every byte that came from inside a sandbox escaped.
 * Programs (--json) get one document on stdout, or one a line when streaming,
 * and bytes that are not UTF-8 as {"encoding":"base64","data":…}. */

#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

#include "cli/cli.h"

/* ---- JSON --------------------------------------------------------------- */

/* One document and a newline on stdout; takes the value (NULL: no memory). */
int output_json (json_t *take_value, struct error **err);

/* ---- text --------------------------------------------------------------- */

enum output_style { STYLE_PLAIN, STYLE_BOLD, STYLE_RED, STYLE_GREEN,
                    STYLE_YELLOW, STYLE_DIM };

/* Does this stream (stdout, stderr) get colour? */
int output_colored (const struct cli *cli, FILE *stream);
/* Prints text in a style, escaped. */
void output_styled (const struct cli *cli, FILE *stream,
                    enum output_style style, const char *text);
/* A string of JSON, from inside or not, as text for people: the caller frees.
 * Numbers, words and byte objects are shown too; null is "-". */
char *output_shown (const json_t *value);

/* A table: heads and cells are copied and escaped.  It is printed with its
 * last column cut where the terminal ends. */
struct output_table;
struct output_table *output_table_new (size_t columns,
                                       const char *const *heads);
void output_table_row (struct output_table *table, const char *const *cells);
int output_table_print (const struct output_table *table,
                        const struct cli *cli, struct error **err);
void output_table_free (struct output_table *table);
DEFINE_CLEANUP (struct output_table *, output_table_free, auto_output_table)
#define auto_output_table CLEANUP (auto_output_table)

/* Columns that a string takes on a terminal. */
size_t output_width (const char *utf8);

/* ---- errors, end -------------------------------------------------------- */

/* "coffer: E8006: message" and a line with the next step on stderr, or the
 * JSON form on stdout with --json. */
void output_error (const struct cli *cli, const struct error *err);
/* One line on stderr: "coffer: TEXT". */
void output_note (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
/* Flushes stdout: a full disk is an error, not silence. */
int output_finish (struct error **err);
/* Is this error that whoever read stdout has enough, as head does?  That is no
 * fault, and nothing to talk about. */
int output_unwanted (const struct error *err);

/* ---- progress ----------------------------------------------------------- */

/* A bar on stderr, shown once something has taken more than a second and
 * stderr is a terminal.  `update` fits struct provider_sink's `progress`. */
struct output_progress {
  int enabled;
  int64_t started_ns, drawn_ns;
  const char *label;
};
void output_progress_begin (struct output_progress *progress,
                            const struct cli *cli, const char *label);
void output_progress_update (void *progress, uint64_t done, uint64_t total,
                             const char *what);
void output_progress_end (struct output_progress *progress);

/* Asks on the terminal; --yes answers.  Without a terminal it is refused. */
int output_confirm (const struct cli *cli, const char *question,
                    struct error **err);

#endif /* CLI_OUTPUT_H */
