/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer run --python FILE`: the engine of the service, for one piece of code
 * and without a daemon. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "cli/host.h"
#include "cli/run-python.h"
#include "cli/spec.h"
#include "python/execute.h"

#define REJECTED_STATUS 2

/* ---- before ------------------------------------------------------------- */

/* The profile has all the rest, and what a run is given is what it says. */
static int
check_options (const struct cli *cli, struct error **err)
{
  static const char *const known[]
    = { "python", "artifacts", "timeout", "profile", NULL };
  size_t i, k;

  if (cli->n_args > 0) {
    error_set (err, E_USAGE, 0, "--python takes the place of a command, and %s "
               "is one more", cli->args[0]);
    error_hint (err, "leave it out; code is given what it works on as text, or "
                "by the service as files");
    return -1;
  }
  for (i = 0; i < cli->n_given; i++) {
    const struct cli_option *given = cli->given[i].option;

    for (k = 0; cli_global_options[k].name
                && strcmp (cli_global_options[k].name, given->name) != 0; k++)
      ;
    if (cli_global_options[k].name || text_list_has (known, given->name))
      continue;
    error_set (err, E_USAGE, 0, "--%s and --python do not go together",
               given->name);
    error_hint (err, "a profile says what such code is given: coffer profile "
                "show minimal");
    return -1;
  }
  return 0;
}

static int
read_code (const char *path, char **code, size_t *size, struct error **err)
{
  const int here = strcmp (path, "-") == 0;
  coffer_autoclose int fd
    = here ? fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
           : open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  const char *shown = here ? "standard input" : path;

  if (fd < 0)
    return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno, "%s",
                      shown);
  if (coffer_read_whole (fd, EXECUTE_CODE_MAX, code, size) == 0)
    return 0;
  if (errno == EFBIG)
    return error_set (err, E_INVALID, 0, "%s: more than %d bytes", shown,
                      EXECUTE_CODE_MAX);
  return error_set (err, E_IO, errno, "%s", shown);
}

/* ---- artifacts ---------------------------------------------------------- */

/* The folder in which the last component of `name` belongs, made where it is
 * missing.  Names come from inside; the engine has looked at their form. */
static int
folder_for (int dir, char *name, char **last, struct error **err)
{
  coffer_autoclose int at = fcntl (dir, F_DUPFD_CLOEXEC, 0);
  char *slash;
  int next;

  while (at >= 0 && (slash = strchr (name, '/'))) {
    *slash = '\0';
    if (mkdirat (at, name, 0755) < 0 && errno != EEXIST)
      return error_set (err, E_IO, errno, "--artifacts: %s", name);
    next = openat (at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    coffer_fd_close (&at);
    at = next;
    name = slash + 1;
  }
  *last = name;
  return at < 0 ? error_set (err, E_IO, errno, "--artifacts: a folder")
                : coffer_fd_steal (&at);
}

static int
save_one (int dir, const json_t *artifact, struct error **err)
{
  const char *shown = json_string_value (json_object_get (artifact, "name"));
  const char *data = json_string_value (json_object_get (artifact, "data"));
  auto_free char *name = strdup (shown), *bytes = NULL, *escaped = NULL;
  coffer_autoclose int folder = -1, fd = -1;
  size_t size;
  char *last;

  escaped = text_escape (shown, strlen (shown));
  if (!name || !escaped || text_base64_decode (data, &bytes, &size) < 0)
    return error_set (err, E_NO_MEMORY, 0, "--artifacts");
  folder = folder_for (dir, name, &last, err);
  if (folder < 0)
    return -1;
  fd = openat (folder, last,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0 || coffer_write_all (fd, bytes, size) < 0)
    return error_set (err, errno == EEXIST ? E_FILE_EXISTS : E_IO,
                      errno == EEXIST ? 0 : errno, "--artifacts: %s", escaped);
  return 0;
}

static int
save_artifacts (const char *path, const json_t *document, struct error **err)
{
  const json_t *list = json_object_get (document, "artifacts"), *artifact;
  coffer_autoclose int dir = -1;
  size_t i;

  if (!path || json_array_size (list) == 0)
    return 0;
  if (mkdir (path, 0755) < 0 && errno != EEXIST)
    return error_set (err, E_IO, errno, "--artifacts %s", path);
  dir = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0)
    return error_set (err, E_IO, errno, "--artifacts %s", path);
  json_array_foreach (list, i, artifact)
    if (save_one (dir, artifact, err) < 0)
      return -1;
  return 0;
}

/* ---- after -------------------------------------------------------------- */

static void
print_text (FILE *stream, const json_t *text)
{
  fwrite (json_string_value (text), 1, json_string_length (text), stream);
}

static int
report_rejected (const struct cli *cli, json_t *document, struct error **err)
{
  const json_t *list = json_object_get (document, "violations"), *violation;
  size_t i;

  if (cli->json)
    return output_json (json_incref (document), err) < 0 ? -1
                                                         : REJECTED_STATUS;
  output_note ("the code is refused, and nothing of it has run");
  json_array_foreach (list, i, violation) {
    auto_free char *shown = output_shown (violation);

    fprintf (stderr, "  %s\n", shown ? shown : "-");
  }
  return REJECTED_STATUS;
}

static int
report (const struct cli *cli, const struct execute_result *result,
        struct error **err)
{
  json_t *document = result->document;
  const json_t *value = json_object_get (document, "result");

  if (result->rejected)
    return report_rejected (cli, document, err);
  if (save_artifacts (cli_value (cli, "artifacts"), document, err) < 0)
    return -1;
  if (cli->json)
    return output_json (json_incref (document), err) < 0 ? -1
                                                         : result->status;
  print_text (stdout, json_object_get (document, "stdout"));
  if (json_is_string (value)) {
    print_text (stdout, value);
    putchar ('\n');
  }
  if (output_finish (err) < 0)
    return -1;
  print_text (stderr, json_object_get (document, "stderr"));
  return result->status;
}

int
run_python (struct cli *cli, struct error **err)
{
  struct execute_request request = { .profile = cli_value (cli, "profile") };
  struct execute_result result = { 0 };
  auto_free char *code = NULL;
  struct host *host;
  int cancel, status;

  if (check_options (cli, err) < 0
      || provider_choose (cli, &request.provider, err) < 0
      || cli_duration (cli, "timeout", PROFILE_TIMEOUT, &request.timeout_ms,
                       err) < 0
      || read_code (cli_value (cli, "python"), &code, &request.code_size, err)
           < 0)
    return -1;
  request.code = code;
  cancel = sandbox_signals_catch (err);
  if (cancel < 0
      || cli_host (cli, HOST_IN_PROCESS | HOST_EPHEMERAL, &host, err) < 0
      || execute_run (host, &request, cancel, &result, err) < 0)
    return -1;
  status = report (cli, &result, err);
  execute_result_fini (&result);
  return status;
}
