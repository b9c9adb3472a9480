/* SPDX-License-Identifier: Apache-2.0 */
/* The progress bar: on stderr, on a terminal, and only for what takes more
 * than a second. */

#include <config.h>

#include "cli/output.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"

#define PATIENCE_NS 1000000000LL
#define REDRAW_NS 100000000LL
#define BAR_WIDTH 24

void
output_progress_begin (struct output_progress *progress,
                       const struct cli *cli, const char *label)
{
  memset (progress, 0, sizeof *progress);
  progress->enabled = !cli->json && isatty (STDERR_FILENO);
  progress->label = label;
  progress->started_ns = coffer_now_ns ();
}

/* "12MiB of 40MiB, 3MiB/s" */
static char *
amount (const struct output_progress *progress, uint64_t done, uint64_t total)
{
  const double seconds
    = (double) (coffer_now_ns () - progress->started_ns) / 1e9;
  auto_free char *size = text_format_size (done);
  auto_free char *all = text_format_size (total);
  auto_free char *rate
    = text_format_size ((uint64_t) ((double) done / seconds));

  if (!size || !all || !rate)
    return NULL;
  return text_printf ("%s%s%s, %s/s", size, total ? " of " : "",
                      total ? all : "", rate);
}

/* The columns of the terminal; 80 where it does not say. */
static size_t
width (void)
{
  struct winsize size;

  return ioctl (STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
           ? size.ws_col : 80;
}

/* A line that wraps is not drawn over by the next: what it says is cut. */
static void
fit (char *what, size_t used)
{
  const size_t columns = width (), room = columns > used + 8
                                            ? columns - used : 8;
  size_t n = room - 2;

  if (strlen (what) < room)
    return;
  while (n > 0 && ((unsigned char) what[n] & 0xc0) == 0x80)
    n--;
  memcpy (what + n, "~", 2);
}

static void
draw (const struct output_progress *progress, uint64_t done, uint64_t total,
      const char *what)
{
  auto_free char *size = amount (progress, done, total), *escaped = NULL;
  char bar[BAR_WIDTH + 1];
  size_t filled;

  if (!what || !*what)
    what = progress->label;
  escaped = text_escape (what, strlen (what));
  if (!size || !escaped)
    return;
  fit (escaped, strlen (size) + (total ? BAR_WIDTH + 12 : 3));
  if (!total) {
    fprintf (stderr, "\r\033[K%s  %s", escaped, size);
    return;
  }
  if (done > total)
    done = total;
  filled = (size_t) ((double) done / (double) total * BAR_WIDTH);
  memset (bar, '.', BAR_WIDTH);
  memset (bar, '#', filled);
  bar[BAR_WIDTH] = 0;
  fprintf (stderr, "\r\033[K%s  [%s] %3d%%  %s", escaped, bar,
           (int) ((double) done / (double) total * 100), size);
}

void
output_progress_update (void *data, uint64_t done, uint64_t total,
                        const char *what)
{
  struct output_progress *progress = data;
  int64_t now;

  if (!progress || !progress->enabled)
    return;
  now = coffer_now_ns ();
  if (now - progress->started_ns < PATIENCE_NS
      || now - progress->drawn_ns < REDRAW_NS)
    return;
  progress->drawn_ns = now;
  draw (progress, done, total, what);
}

void
output_progress_end (struct output_progress *progress)
{
  if (progress->drawn_ns)
    fputs ("\r\033[K", stderr);
  progress->drawn_ns = 0;
}
