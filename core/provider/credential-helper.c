/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers' protocol: `docker-credential-NAME get`, one at a time. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/place.h"
#include "base/text.h"
#include "provider/credential-helper.h"
#include "provider/tool.h"

#define PREFIX "docker-credential-"
#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin"
#define NAME_MOST 64
#define USER_MOST 1024
/* Word for word what those who write helpers have agreed on. */
#define NONE_KEPT "credentials not found in native keychain"

static void
text_wipe (char **text)
{
  if (*text)
    explicit_bzero (*text, strlen (*text));
  free (*text);
  *text = NULL;
}

void
credential_fini (struct credential *credential)
{
  text_wipe (&credential->user);
  text_wipe (&credential->secret);
}

int
credential_is_server (const char *server)
{
  size_t n = strspn (server, "abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:/[]_-");

  return n > 0 && n < 256 && server[n] == '\0' && server[0] != '-';
}

static int
is_name (const char *name)
{
  size_t n = strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-");

  return n > 0 && n <= NAME_MOST && name[n] == '\0';
}

/* ---- which program -------------------------------------------------------- */

/* It is run by its path: nobody else may have a say in where that leads. */
static int
check_safe (const char *folder, int file, const char *program,
            struct error **err)
{
  coffer_autoclose int dir = place_open_trusted_dir (folder, err);
  struct stat st;

  if (dir < 0 || place_check_trusted (file, program, err) < 0)
    return -1;
  /* The rule lets everybody have links in a sticky folder. */
  if (fstat (dir, &st) < 0 || (st.st_mode & S_ISVTX
                               && st.st_mode & (S_IWGRP | S_IWOTH)))
    return error_set (err, E_UNSAFE_FILE, 0, "%s is writable by others",
                      folder);
  return 0;
}

/* 1: it is there and safe; 0: it is not there; -1: it is not safe. */
static int
look_in (const char *folder, const char *program, struct error **err)
{
  coffer_autoclose int dir
    = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  coffer_autoclose int file
    = dir < 0 ? -1 : openat (dir, program, O_PATH | O_CLOEXEC);
  struct stat st;

  if (file < 0 || fstat (file, &st) < 0 || !S_ISREG (st.st_mode)
      || faccessat (dir, program, X_OK, AT_EACCESS) < 0)
    return 0;
  return check_safe (folder, file, program, err) < 0 ? -1 : 1;
}

/* NULL: there is none that is safe to run. */
static char *
find_program (const char *program, struct error **err)
{
  const char *at = secure_getenv ("PATH"), *end;
  auto_error struct error *unsafe = NULL;

  for (at = at && *at ? at : USUAL_PATH; *at; at = end + (*end == ':')) {
    auto_free char *folder = NULL;
    int found;

    end = strchrnul (at, ':');
    folder = *at == '/' ? strndup (at, (size_t) (end - at)) : NULL;
    if (!folder)
      continue;
    found = look_in (folder, program, unsafe ? NULL : &unsafe);
    if (found > 0)
      return text_printf ("%s/%s", folder, program);
  }
  error_set (err, E_CREDENTIALS_HELPER, 0, unsafe ? "%s is not run: %s"
                                                  : "%s is not in PATH%s",
             program, unsafe ? error_message (unsafe) : "");
  return NULL;
}

/* ---- how it is run -------------------------------------------------------- */

/* Where stores of secrets look for what is theirs. */
static int
make_environment (const char *home, struct coffer_strings *env,
                  struct error **err)
{
  static const char *const kept[] = {
    "USER", "LOGNAME", "LANG", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DOCKER_CONFIG", "GNUPGHOME",
    "PASSWORD_STORE_DIR", "GPG_TTY", "AWS_PROFILE", "AWS_REGION",
    "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE", "CLOUDSDK_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CONFIG_DIR", "HTTPS_PROXY",
    "https_proxy", "NO_PROXY", "no_proxy", NULL
  };
  size_t i;

  if (home)
    coffer_strings_printf (env, "HOME=%s", home);
  for (i = 0; kept[i]; i++) {
    const char *value = secure_getenv (kept[i]);

    if (value && *value)
      coffer_strings_printf (env, "%s=%s", kept[i], value);
  }
  return env->failed ? error_set (err, E_NO_MEMORY, 0, "a credential helper")
                     : 0;
}

static void
hint_by_hand (const char *program, const char *server, struct error **err)
{
  error_hint (err, "printf %s | %s get shows what it says; the provider's "
              "`registry_auth` does without it", server, program);
}

/* Of the tool's errors nothing is passed on but what it was. */
static int
fail_run (const char *program, const char *server, struct error *take_error,
          struct error **err)
{
  auto_error struct error *error = take_error;
  const char *what
    = error->number == E_LIMIT               ? "says too much"
      : error->number == E_CONNECT_FAILED    ? "did not answer in time"
      : error->number == E_CREDENTIALS_HELPER ? "was ended by a signal"
                                             : "could not be started";

  if (error->number == E_EXEC_CANCELLED)
    return error_move (err, steal (error));
  error_set (err, E_CREDENTIALS_HELPER, 0, "%s %s for %s", program, what,
             server);
  hint_by_hand (program, server, err);
  return -1;
}

/* ---- its answer ----------------------------------------------------------- */

/* What goes into a header of HTTP and in a line of JSON. */
static int
is_text (const char *text, size_t most)
{
  size_t n = text ? strlen (text) : most + 1;

  for (size_t i = 0; i < n && n <= most; i++)
    if ((unsigned char) text[i] < ' ' || text[i] == 0x7f)
      return 0;
  return n <= most;
}

/* 1; 0: both are empty; -1. */
static int
take_answer (const struct coffer_buffer *said, struct credential *out)
{
  auto_json_wiped json_t *answer = NULL;
  const char *user, *secret;

  if (said->size == 0 || json_parse (said->data, said->size, &answer, NULL) < 0)
    return -1;
  user = json_string_value (json_object_get (answer, "Username"));
  secret = json_string_value (json_object_get (answer, "Secret"));
  if (!is_text (user, USER_MOST) || !is_text (secret, CREDENTIAL_MOST)
      || strchr (user, ':'))
    return -1;
  if (!*user && !*secret)
    return 0;
  if (!*user || !*secret)
    return -1;
  out->user = strdup (user);
  out->secret = strdup (secret);
  return out->user && out->secret ? 1 : -1;
}

/* It says on standard output that it has none, and fails. */
static int
is_none (const struct coffer_buffer *said)
{
  const char *at = said->data ? said->data : "";
  const size_t size = sizeof NONE_KEPT - 1;

  at += strspn (at, " \t\r\n");
  return strncmp (at, NONE_KEPT, size) == 0
         && at[size + strspn (at + size, " \t\r\n")] == '\0';
}

static void
said_wipe (struct coffer_buffer *said)
{
  if (said->data)
    explicit_bzero (said->data, said->capacity);
  coffer_buffer_free (said);
}

static int
ask (const char *path, const char *program, const char *server,
     const struct tool *tool, struct credential *out, struct error **err)
{
  __attribute__ ((cleanup (said_wipe))) struct coffer_buffer said = { 0 };
  struct error *error = NULL;
  int r;

  if (tool_run (tool, path, E_CREDENTIALS_HELPER, &said, &error) < 0)
    return fail_run (program, server, error, err);
  if (*tool->exit_status != 0 && is_none (&said))
    return 0;
  if (*tool->exit_status != 0) {
    error_set (err, E_CREDENTIALS_HELPER, 0, "%s failed for %s, with %d",
               program, server, *tool->exit_status);
    hint_by_hand (program, server, err);
    return -1;
  }
  r = take_answer (&said, out);
  if (r < 0) {
    error_set (err, E_CREDENTIALS_HELPER, 0, "%s gave no JSON with a Username "
               "and a Secret for %s", program, server);
    hint_by_hand (program, server, err);
  }
  return r;
}

int
credential_helper_get (const char *name, const char *server, const char *home,
                       int64_t deadline_ns, int cancel_fd,
                       struct credential *out, struct error **err)
{
  const int64_t most = coffer_now_ns () + CREDENTIAL_NS;
  auto_free char *program = NULL, *path = NULL;
  coffer_autostrings struct coffer_strings env = { 0 };
  coffer_autoclose int root = open ("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  int status = 0;

  if (!is_name (name) || !credential_is_server (server))
    return error_set (err, E_CREDENTIALS_HELPER, 0, "no helper has the name "
                      "that is configured: a to z, 0 to 9 and -");
  program = text_printf (PREFIX "%s", name);
  path = program ? find_program (program, err) : NULL;
  if (!program)
    return error_set (err, E_NO_MEMORY, 0, "a credential helper");
  if (!path || make_environment (home, &env, err) < 0)
    return -1;
  return ask (path, program, server, &(struct tool) {
    .argv = (const char *const[]) { program, "get", NULL }, .path = path,
    .env = coffer_strings_view (&env), .dir = root, .out = -1,
    .input = server, .said_most = CREDENTIAL_MOST, .exit_status = &status,
    .deadline_ns = deadline_ns < most ? deadline_ns : most,
    .cancel_fd = cancel_fd
  }, out, err);
}
