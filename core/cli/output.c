/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, styled text, errors and questions. */

#include <config.h>

#include "cli/output.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "sandbox/sandbox.h"

/* ---- JSON --------------------------------------------------------------- */

/* Somebody else may have made the pipe or terminal that is our output one that
 * does not block; a document that is cut short is worth nothing. */
static int
write_patiently (const char *bytes, size_t size)
{
  struct pollfd room = { .fd = STDOUT_FILENO, .events = POLLOUT };
  ssize_t n;

  while (size > 0) {
    n = write (STDOUT_FILENO, bytes, size);
    if (n < 0 && errno == EAGAIN)
      n = poll (&room, 1, -1) < 0 ? -1 : 0;
    if (n < 0 && (errno != EINTR || sandbox_signal_caught ()))
      return -1;
    if (n > 0) {
      bytes += n;
      size -= (size_t) n;
    }
  }
  return 0;
}

/* Does nobody read what we print, and will nobody ever? */
static int
reader_gone (void)
{
  struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

  return poll (&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP);
}

int
output_json (json_t *take_value, struct error **err)
{
  auto_json json_t *value = take_value;
  auto_free char *text = NULL;

  json_name_encodings (value);
  if (value)
    text = json_text (value);
  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "writing JSON");
  if (output_finish (err) < 0)
    return -1;
  if (write_patiently (text, strlen (text)) < 0
      || write_patiently ("\n", 1) < 0)
    return error_set (err, E_IO, errno, "writing to standard output");
  return 0;
}

int
output_finish (struct error **err)
{
  int failed = fflush (stdout) == 0 ? 0 : errno;

  if (!failed && !ferror (stdout))
    return 0;
  /* What failed may have been an earlier write, whose errno is gone. */
  if (!failed)
    failed = EIO;
  return error_set (err, E_IO, reader_gone () ? EPIPE : failed,
                    "writing to standard output");
}

int
output_unwanted (const struct error *err)
{
  return err && err->number == E_IO && err->sys_errno == EPIPE
         && reader_gone ();
}

/* ---- text --------------------------------------------------------------- */

int
output_colored (const struct cli *cli, FILE *stream)
{
  const char *no = getenv ("NO_COLOR"), *term = getenv ("TERM");

  if (cli->color != COLOR_AUTO)
    return cli->color == COLOR_ALWAYS;
  return (!no || !*no) && (!term || strcmp (term, "dumb"))
         && isatty (fileno (stream));
}

void
output_styled (const struct cli *cli, FILE *stream, enum output_style style,
               const char *text)
{
  static const char *const codes[] = { "0", "1", "31", "32", "33", "2" };
  auto_free char *escaped = text_escape (text, strlen (text));

  if (style != STYLE_PLAIN && output_colored (cli, stream))
    fprintf (stream, "\033[%sm%s\033[0m", codes[style],
             escaped ? escaped : "");
  else
    fputs (escaped ? escaped : "", stream);
}

/* {"b64": …} as text with escapes; anything else as JSON, escaped too, since
 * JSON lets marks through that turn a line around. */
static char *
shown_value (const json_t *value)
{
  const char *b64 = json_string_value (json_object_get (value, "b64"));
  auto_free char *bytes = NULL;
  size_t size;

  if (b64 && text_base64_decode (b64, &bytes, &size) == 0)
    return text_escape (bytes, size);
  bytes = json_text (value);
  return bytes ? text_escape (bytes, strlen (bytes)) : NULL;
}

char *
output_shown (const json_t *value)
{
  if (!value || json_is_null (value))
    return strdup ("-");
  if (json_is_string (value))
    return text_escape (json_string_value (value),
                        json_string_length (value));
  if (json_is_boolean (value))
    return strdup (json_is_true (value) ? "yes" : "no");
  return shown_value (value);
}

/* ---- errors ------------------------------------------------------------- */

static void
print_error_line (const struct cli *cli, const struct error *err)
{
  const char *hint = error_next_step (err);
  char code[16];

  snprintf (code, sizeof code, "E%d", err->number);
  fputs ("coffer: ", stderr);
  output_styled (cli, stderr, STYLE_RED, code);
  fputs (": ", stderr);
  output_styled (cli, stderr, STYLE_PLAIN, error_message (err));
  fputc ('\n', stderr);
  if (hint) {
    fputs ("  hint: ", stderr);
    output_styled (cli, stderr, STYLE_PLAIN, hint);
    fputc ('\n', stderr);
  }
}

void
output_error (const struct cli *cli, const struct error *err)
{
  fflush (stdout);
  /* A JSON error that cannot be written must not be silent. */
  if (!cli->json || output_json (error_to_json (err), NULL) < 0)
    print_error_line (cli, err);
}

void
output_note (const char *fmt, ...)
{
  auto_free char *text = NULL, *escaped = NULL;
  va_list ap;

  va_start (ap, fmt);
  if (vasprintf (&text, fmt, ap) < 0)
    text = NULL;
  va_end (ap);
  if (!text)
    return;
  fflush (stdout);
  escaped = text_escape (text, strlen (text));
  fprintf (stderr, "coffer: %s\n", escaped ? escaped : "");
}

/* ---- questions ---------------------------------------------------------- */

int
output_confirm (const struct cli *cli, const char *question,
                struct error **err)
{
  char answer[16];

  if (cli->yes)
    return 0;
  if (cli->json || !isatty (STDIN_FILENO) || !isatty (STDERR_FILENO)) {
    error_set (err, E_USAGE, 0, "%s: nobody is there to answer", question);
    error_hint (err, "add --yes to go on without being asked");
    return -1;
  }
  fprintf (stderr, "%s? [y/N] ", question);
  fflush (stderr);
  if (fgets (answer, sizeof answer, stdin)
      && (answer[0] == 'y' || answer[0] == 'Y'))
    return 0;
  error_set (err, E_DENIED, 0, "%s: answered with no", question);
  error_hint (err, "nothing was done");
  return -1;
}
