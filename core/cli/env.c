/* SPDX-License-Identifier: Apache-2.0 */
/* Reading variables.  Messages name variables and never show a value. */

#include <config.h>

#include "cli/env.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/text.h"

/* No name of a program's own has these bytes; a shell's `export A=b` and a
 * stray space before the sign are caught here. */
static int
name_ok (const char *name, size_t length)
{
  size_t i;

  if (length == 0)
    return 0;
  for (i = 0; i < length; i++)
    if ((unsigned char) name[i] <= ' ' || name[i] == 0x7f)
      return 0;
  return 1;
}

static void
set (struct coffer_strings *env, const char *name, size_t length,
     const char *value)
{
  size_t i;
  char *line = text_printf ("%.*s=%s", (int) length, name, value);

  if (!line) {
    env->failed = 1;
    return;
  }
  for (i = 0; i < env->count; i++)
    if (!strncmp (env->items[i], line, length + 1)) {
      free (env->items[i]);
      env->items[i] = line;
      return;
    }
  coffer_strings_add (env, line);
  free (line);
}

int
env_add (struct coffer_strings *env, const char *what, const char *word,
         struct error **err)
{
  const char *equals = strchr (word, '=');
  size_t length = equals ? (size_t) (equals - word) : strlen (word);
  const char *value = equals ? equals + 1 : NULL;

  if (!name_ok (word, length)) {
    error_set (err, E_INVALID, 0, "%s: %.*s%s is not the name of a variable",
               what, (int) (length < 64 ? length : 64), word,
               length ? "" : "(empty)");
    error_hint (err, "write NAME=VALUE, or NAME to take the value from here");
    return -1;
  }
  if (!value)
    value = getenv (word);
  if (!value) {
    error_set (err, E_INVALID, 0, "%s: %s is not set here", what, word);
    error_hint (err, "set %s, or write %s=VALUE", word, word);
    return -1;
  }
  set (env, word, length, value);
  if (env->failed)
    return error_set (err, E_NO_MEMORY, 0, "reading variables");
  return 0;
}

static int
add_line (struct coffer_strings *env, const char *path, size_t number,
          char *line, size_t length, struct error **err)
{
  auto_free char *what = text_printf ("%s:%zu", path, number);

  if (!what)
    return error_set (err, E_NO_MEMORY, 0, "reading %s", path);
  if (memchr (line, 0, length))
    return error_set (err, E_INVALID, 0, "%s: a NUL byte in a variable", what);
  /* Files from other systems end their lines with CR LF. */
  if (length && line[length - 1] == '\r')
    line[--length] = 0;
  while (*line == ' ' || *line == '\t')
    line++;
  if (!*line || *line == '#')
    return 0;
  return env_add (env, what, line, err);
}

int
env_add_file (struct coffer_strings *env, const char *path,
              struct error **err)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  auto_free char *bytes = NULL;
  size_t size, number = 1;
  char *line, *end;

  if (fd < 0)
    return error_set (err, E_INVALID, errno, "--env-file %s", path);
  if (coffer_read_whole (fd, ENV_FILE_MAX, &bytes, &size) < 0)
    return error_set (err, E_INVALID, errno, "--env-file %s", path);
  line = bytes;
  if (size >= 3 && !memcmp (bytes, "\xef\xbb\xbf", 3))
    line += 3;
  for (; line < bytes + size; line = end + 1, number++) {
    end = memchr (line, '\n', (size_t) (bytes + size - line));
    if (!end)
      end = bytes + size;
    *end = 0;
    if (add_line (env, path, number, line, (size_t) (end - line), err) < 0)
      return -1;
  }
  return 0;
}
