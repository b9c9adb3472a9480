/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people.  Only the last column is ever cut, and only on a
 * terminal: ids and states stay whole, and a pipe gets everything. */

#include <config.h>

#include "cli/output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

#define GAP 2
#define LEAST_LAST_COLUMN 8

struct output_table {
  size_t columns, rows;
  char **cells;                 /* the heads are row 0 */
  int failed;
};

/* ---- how wide a character is -------------------------------------------- */

/* Decodes one character of valid or invalid UTF-8; returns its length. */
static size_t
decode (const char *s, uint32_t *character)
{
  const unsigned char *u = (const unsigned char *) s;
  size_t length = u[0] < 0x80 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4, i;

  *character = length == 1 ? u[0] : u[0] & (0xffu >> (length + 1));
  for (i = 1; i < length; i++) {
    if ((u[i] & 0xc0) != 0x80) {
      *character = u[0];
      return 1;
    }
    *character = *character << 6 | (u[i] & 0x3f);
  }
  return length;
}

/* The program's locale is not looked at (setting one costs start-up time), so
 * the wide and the combining ranges that matter are written down. */
static size_t
character_width (uint32_t c)
{
  static const struct { uint32_t first, last; size_t width; } ranges[] = {
    { 0x0300, 0x036f, 0 }, { 0x200b, 0x200f, 0 }, { 0x20d0, 0x20ff, 0 },
    { 0xfe00, 0xfe0f, 0 }, { 0x1100, 0x115f, 2 }, { 0x2e80, 0xa4cf, 2 },
    { 0xac00, 0xd7a3, 2 }, { 0xf900, 0xfaff, 2 }, { 0xfe30, 0xfe6f, 2 },
    { 0xff00, 0xff60, 2 }, { 0xffe0, 0xffe6, 2 }, { 0x1f300, 0x1f64f, 2 },
    { 0x1f900, 0x1f9ff, 2 }, { 0x20000, 0x3fffd, 2 },
  };
  size_t i;

  for (i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (c >= ranges[i].first && c <= ranges[i].last)
      return ranges[i].width;
  return 1;
}

size_t
output_width (const char *utf8)
{
  size_t width = 0;
  uint32_t character;

  while (*utf8) {
    utf8 += decode (utf8, &character);
    width += character_width (character);
  }
  return width;
}

/* Bytes of the longest start of `s` that is at most `width` wide. */
static size_t
prefix_of_width (const char *s, size_t width)
{
  size_t length, used = 0;
  const char *at = s;
  uint32_t character;

  while (*at) {
    length = decode (at, &character);
    used += character_width (character);
    if (used > width)
      break;
    at += length;
  }
  return (size_t) (at - s);
}

/* ---- building ----------------------------------------------------------- */

struct output_table *
output_table_new (size_t columns, const char *const *heads)
{
  struct output_table *table = calloc (1, sizeof *table);

  if (!table)
    return NULL;
  table->columns = columns;
  output_table_row (table, heads);
  return table;
}

void
output_table_row (struct output_table *table, const char *const *cells)
{
  size_t i, used;
  char **grown;

  if (!table || table->failed)
    return;
  used = table->rows * table->columns;
  grown = realloc (table->cells, (used + table->columns) * sizeof *grown);
  if (!grown) {
    table->failed = 1;
    return;
  }
  table->cells = grown;
  for (i = 0; i < table->columns; i++) {
    const char *cell = cells[i] ? cells[i] : "-";

    grown[used + i] = text_escape (cell, strlen (cell));
    if (!grown[used + i])
      table->failed = 1;
  }
  table->rows++;
}

void
output_table_free (struct output_table *table)
{
  size_t i;

  if (!table)
    return;
  for (i = 0; i < table->rows * table->columns; i++)
    free (table->cells[i]);
  free (table->cells);
  free (table);
}

/* ---- printing ----------------------------------------------------------- */

/* Columns of the terminal, or 0 when stdout is none. */
static size_t
terminal_columns (void)
{
  struct winsize size;

  if (!isatty (STDOUT_FILENO) || ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
    return 0;
  return size.ws_col;
}

static size_t
column_width (const struct output_table *table, size_t column)
{
  size_t row, width = 0, cell;

  for (row = 0; row < table->rows; row++) {
    cell = output_width (table->cells[row * table->columns + column]);
    if (cell > width)
      width = cell;
  }
  return width;
}

static void
print_last (const struct cli *cli, enum output_style style, const char *cell,
            size_t room)
{
  auto_free char *cut = NULL;

  if (room && output_width (cell) > room)
    cut = text_printf ("%.*s…", (int) prefix_of_width (cell, room - 1), cell);
  output_styled (cli, stdout, style, cut ? cut : cell);
  fputc ('\n', stdout);
}

static void
print_row (const struct output_table *table, const struct cli *cli,
           size_t row, const size_t *widths, size_t room)
{
  enum output_style style = row == 0 ? STYLE_BOLD : STYLE_PLAIN;
  char *const *cells = table->cells + row * table->columns;
  size_t i;

  for (i = 0; i + 1 < table->columns; i++) {
    output_styled (cli, stdout, style, cells[i]);
    printf ("%*s", (int) (widths[i] - output_width (cells[i]) + GAP), "");
  }
  print_last (cli, style, cells[i], room);
}

int
output_table_print (const struct output_table *table, const struct cli *cli,
                    struct error **err)
{
  auto_free size_t *widths = NULL;
  size_t i, row, before = 0, terminal, room = 0;

  if (!table || table->failed
      || !(widths = calloc (table->columns, sizeof *widths)))
    return error_set (err, E_NO_MEMORY, 0, "printing a table");
  for (i = 0; i < table->columns; i++) {
    widths[i] = column_width (table, i);
    if (i + 1 < table->columns)
      before += widths[i] + GAP;
  }
  terminal = terminal_columns ();
  if (terminal >= before + LEAST_LAST_COLUMN)
    room = terminal - before;
  for (row = 0; row < table->rows; row++)
    print_row (table, cli, row, widths, room);
  return output_finish (err);
}
