/* SPDX-License-Identifier: Apache-2.0 */
/* One run: the request is checked, written down for the runner, a sandbox is
 * made, the runner started in it with the channel as its standard input. */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "policy/profile.h"
#include "python/channel.h"
#include "python/contained.h"
#include "python/reply.h"
#include "python/warm.h"
#include "sandbox/host.h"
#include "sandbox/ready.h"

#define RUNNER "runner.py"
#define RUNNER_MAX (256 << 10)
#define PATH_MAX_BYTES 255
/* Making the sandbox and running the code together: clients of the service
 * wait 35 s, and what is left of it is for the end. */
#define TOGETHER_MS 34000
#define KILL_MS 10000

/* Reads the runner from standard input, which is the channel, and becomes it:
 * so no file of ours has to be visible inside. */
static const char boot[]
  = "import posix as p\n"
    "def r(n):\n"
    " b=b''\n"
    " while len(b)<n:\n"
    "  c=p.read(0,n-len(b))\n"
    "  if not c:p._exit(125)\n"
    "  b+=c\n"
    " return b\n"
    "exec(compile(r(int.from_bytes(r(4),'big')),'<runner>','exec'),"
    "{'__name__':'__cold__'})\n";

/* All that one run holds. */
struct run {
  struct host *host;
  const struct execute_request *request;
  struct profile *profile;
  struct channel channel;
  size_t program_size;          /* of the request: the runner itself */
  struct kept out, err;
  struct sandbox_request sandbox;       /* what was asked for */
  struct sandbox_record *record;
  json_t *applied;
  struct exec_result exec;
  char *warm;                   /* what stands ready; NULL: a cold run */
};

static void
run_fini (struct run *run)
{
  channel_fini (&run->channel);
  kept_fini (&run->out);
  kept_fini (&run->err);
  exec_result_fini (&run->exec);
  free (run->warm);
  sandbox_record_free (run->record);
  profile_free (run->profile);
  json_decref (run->applied);
}
#define auto_run __attribute__ ((cleanup (run_fini)))

/* ---- what is asked for -------------------------------------------------- */

static int fail_field (struct error **err, const char *field, const char *fmt,
                       ...) __attribute__ ((format (printf, 3, 4)));

static int
fail_field (struct error **err, const char *field, const char *fmt, ...)
{
  char what[256];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (what, sizeof what, fmt, ap);
  va_end (ap);
  error_set (err, E_INVALID, 0, "%s: %s", field, what);
  error_detail (err, "field", json_string (field));
  return -1;
}

static int
path_holds (const char *path)
{
  const char *end;
  size_t n;

  if (!*path || strlen (path) > PATH_MAX_BYTES
      || !text_is_utf8 (path, strlen (path)))
    return 0;
  for (;; path = end + 1) {
    end = strchrnul (path, '/');
    n = (size_t) (end - path);
    if (n == 0 || (n == 1 && *path == '.')
        || (n == 2 && memcmp (path, "..", 2) == 0))
      return 0;
    if (!*end)
      return 1;
  }
}

static int
check_files (const struct execute_request *request, struct error **err)
{
  size_t bytes = 0, i, k;

  if (request->n_files > EXECUTE_FILES_COUNT)
    return fail_field (err, "files", "more than %d", EXECUTE_FILES_COUNT);
  for (i = 0; i < request->n_files; i++) {
    const struct execute_file *file = &request->files[i];

    if (!path_holds (file->path))
      return fail_field (err, "files", "entry %zu: a path must be relative, "
                         "without . and .., and have at most %d bytes", i + 1,
                         PATH_MAX_BYTES);
    for (k = 0; k < i; k++)
      if (strcmp (request->files[k].path, file->path) == 0)
        return fail_field (err, "files", "entry %zu: the path is there twice",
                           i + 1);
    bytes += file->size;
    if (file->size > EXECUTE_FILES_MAX || bytes > EXECUTE_FILES_MAX)
      return fail_field (err, "files", "more than %d bytes in all",
                         EXECUTE_FILES_MAX);
  }
  return 0;
}

static int
check_request (const struct execute_request *request, struct error **err)
{
  if (!request->code || request->code_size == 0)
    return fail_field (err, "code", "there is none");
  if (request->code_size > EXECUTE_CODE_MAX)
    return fail_field (err, "code", "more than %d bytes", EXECUTE_CODE_MAX);
  if (request->timeout_ms > EXECUTE_TIMEOUT_MAX_MS)
    return fail_field (err, "timeout", "more than %d seconds",
                       EXECUTE_TIMEOUT_MAX_MS / 1000);
  return check_files (request, err);
}

static int
find_profile (const struct place *place, const char *name,
              struct profile **out, struct error **err)
{
  auto_profile struct profile *profile = NULL;

  if (profile_find (place, name ? name : EXECUTE_PROFILE, &profile, err) < 0)
    return -1;
  if (!profile->words[PROFILE_IMPORTS]) {
    error_set (err, E_PROFILE, 0, "profile %s is none for Python: it has no "
               "imports", profile->name);
    error_detail (err, "field", json_string ("profile"));
    error_hint (err, "minimal and data-science are");
    return -1;
  }
  *out = steal (profile);
  return 0;
}

int
execute_check (struct host *host, const struct execute_request *request,
               struct error **err)
{
  auto_profile struct profile *profile = NULL;

  return check_request (request, err) < 0
             || find_profile (host->place, request->profile, &profile, err) < 0
           ? -1 : 0;
}

/* ---- the request, as the runner reads it -------------------------------- */

static void
add_size (struct coffer_buffer *out, size_t size)
{
  const unsigned char bytes[4] = { (unsigned char) (size >> 24),
                                   (unsigned char) (size >> 16),
                                   (unsigned char) (size >> 8),
                                   (unsigned char) size };

  coffer_buffer_add (out, bytes, sizeof bytes);
}

static int
add_runner (struct run *run, struct coffer_buffer *out, struct error **err)
{
  const char *folder = run->host->place->libexec;
  coffer_autoclose int dir = place_open_trusted_dir (folder, err);
  auto_free char *shown = text_printf ("%s/" RUNNER, folder), *bytes = NULL;
  size_t size;

  if (dir < 0
      || place_read_trusted (dir, RUNNER, shown ? shown : RUNNER, RUNNER_MAX,
                             E_IO, &bytes, &size, err) < 0)
    return -1;
  add_size (out, size);
  coffer_buffer_add (out, bytes, size);
  run->program_size = out->size;
  return 0;
}

static json_t *
head_json (const struct run *run)
{
  const struct execute_request *request = run->request;
  json_t *files = json_array ();
  size_t i;

  for (i = 0; i < request->n_files; i++)
    json_array_append_new (files,
                           json_pack ("{s:s, s:I}", "path",
                                      request->files[i].path, "size",
                                      (json_int_t) request->files[i].size));
  return json_pack (
    "{s:i, s:s, s:o, s:I, s:o, s:{s:i, s:i, s:i, s:i}}", "v", 1, "profile",
    run->profile->name, "imports",
    json_texts ((const char *const *) run->profile->words[PROFILE_IMPORTS]),
    "code", (json_int_t) request->code_size, "files", files, "caps", "result",
    RESULT_MAX, "artifact", ARTIFACT_MAX, "artifacts", ARTIFACTS_MAX, "count",
    ARTIFACTS_COUNT);
}

static int
request_write (struct run *run, struct error **err)
{
  const struct execute_request *request = run->request;
  struct coffer_buffer *out = &run->channel.request;
  auto_json json_t *head = head_json (run);
  auto_free char *text = head ? json_text (head) : NULL;
  size_t i;

  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "the request to the runner");
  if (add_runner (run, out, err) < 0)
    return -1;
  add_size (out, strlen (text));
  coffer_buffer_add_string (out, text);
  coffer_buffer_add (out, request->code, request->code_size);
  for (i = 0; i < request->n_files; i++)
    coffer_buffer_add (out, request->files[i].bytes, request->files[i].size);
  return 0;
}

/* ---- the run ------------------------------------------------------------ */

static void
keep_output (void *data, int stream, const char *bytes, size_t size)
{
  struct run *run = data;

  kept_add (stream == STDERR_FILENO ? &run->err : &run->out, bytes, size);
}

static uint64_t
timeout_of (const struct execute_request *request)
{
  return request->timeout_ms ? request->timeout_ms : EXECUTE_TIMEOUT_MS;
}

/* In a process that runs one piece of code after another; one that has the
 * runner already is not sent it. */
static void
warm_find (struct run *run)
{
  const struct coffer_buffer *request = &run->channel.request;

  if (!run->host->ready || request->failed)
    return;
  run->warm = warm_handle (run->host, run->record->provider, run->profile,
                           request->data + 4, run->program_size - 4);
  ready_warm (run->host, &run->sandbox, run->warm);
  if (run->warm)
    run->channel.sent = run->program_size;
}

/* again: not one that was made ahead, which may be as gone as the first was. */
static int
sandbox_make (struct run *run, int again, int cancel_fd, struct error **err)
{
  const struct sandbox_request request = {
    .provider = run->request->provider,
    .tenant = run->request->tenant,
    .isolated = run->request->isolated,
    .profile = run->profile->name,
    .ephemeral = 1,
    .single_exec = 1,
  };
  const struct provider_call call
    = call_in (TOGETHER_MS - (int64_t) timeout_of (run->request), cancel_fd);

  run->sandbox = request;
  return (again ? sandbox_create : ready_take) (run->host, &run->sandbox,
                                                &call, &run->record,
                                                &run->applied, err);
}

/* It ends with its one command; what is left of it are our own notes. */
static void
sandbox_drop (struct run *run)
{
  const struct provider_call call = call_in (KILL_MS, -1);
  auto_error struct error *error = NULL;
  int gone;

  if (sandbox_kill (run->host, run->record->provider, run->record->id, &call,
                    &gone, &error) < 0)
    log_event (LOG_LEVEL_WARNING, "execute", "%s: %s", run->record->id,
               error_message (error));
}

static const char *const runner_argv[]
  = { "python3", "-I", "-S", "-c", boot, NULL };

static int
runner_run (struct run *run, int cancel_fd, struct error **err)
{
  const struct exec_request request = {
    .argv = runner_argv, .timeout_ms = timeout_of (run->request),
    .warm = run->warm
  };
  const struct exec_streams streams = {
    .in = -1, .out = -1, .err = -1, .channel = &run->channel.theirs,
    .output = keep_output, .data = run
  };
  int r;

  if (channel_begin (&run->channel, err) < 0)
    return -1;
  r = sandbox_exec (run->host, run->record->id, &request, &streams, cancel_fd,
                    &run->exec, err);
  channel_end (&run->channel);
  return r;
}

static int
run_once (struct run *run, int again, int cancel_fd, struct error **err)
{
  int r;

  if (sandbox_make (run, again, cancel_fd, err) < 0)
    return -1;
  if (!again)
    warm_find (run);
  r = runner_run (run, cancel_fd, err);
  sandbox_drop (run);
  return r;
}

/* Nothing of it has run: what was to be a copy did not come to be one, or the
 * sandbox that was made ahead has ended since, as when its provider's worker
 * did. */
static int
ahead_failed (const struct run *run, int r, const struct error *error)
{
  if (!run->record || !run->host->ready || run->channel.frames.verdict)
    return 0;
  if (r < 0)
    return !run->exec.exec
           && !(error && error->number == E_EXEC_CANCELLED);
  return run->warm && run->exec.failure;
}

static void
run_reset (struct run *run)
{
  if (run->warm)
    warm_forget (run->host, run->record->provider, run->warm);
  free (steal (run->warm));
  channel_reset (&run->channel);
  exec_result_fini (&run->exec);
  sandbox_record_free (steal (run->record));
  json_decref (steal (run->applied));
}

static int
run_in_sandbox (struct run *run, int cancel_fd, struct execute_result *out,
                struct error **err)
{
  struct error *error = NULL;
  int r = run_once (run, 0, cancel_fd, &error);

  if (ahead_failed (run, r, error)) {
    log_event (LOG_LEVEL_WARNING, "execute", "from the beginning, as what stood"
               " ready could not be had: %s",
               error ? error_message (error) : run->exec.failure);
    error_free (error);
    error = NULL;
    run_reset (run);
    r = run_once (run, 1, cancel_fd, &error);
  }
  if (run->record) {
    out->provider = strdup (run->record->provider);
    out->sandbox = strdup (run->record->id);
  }
  return r < 0 ? error_move (err, error) : 0;
}

static int
run_contained (struct run *run, int cancel_fd, struct error **err)
{
  const struct contained_request request = {
    .profile = run->profile, .argv = runner_argv,
    .channel = &run->channel.theirs, .timeout_ms = timeout_of (run->request),
    .cancel_fd = cancel_fd, .out = &run->out, .err = &run->err
  };
  json_t *facts = NULL;
  int r;

  if (channel_begin (&run->channel, err) < 0)
    return -1;
  r = contained_run (run->host->place, &request, &run->exec, &facts, err);
  channel_end (&run->channel);
  if (facts)
    run->applied = json_pack ("{s:o}", "facts", facts);
  return r;
}

int
execute_run (struct host *host, const struct execute_request *request,
             int cancel_fd, struct execute_result *out, struct error **err)
{
  auto_run struct run run = {
    .host = host, .request = request, .channel = { .ours = -1, .theirs = -1 }
  };
  struct outcome outcome = { .exec = &run.exec, .frames = &run.channel.frames,
                             .out = &run.out, .err = &run.err };

  memset (out, 0, sizeof *out);
  if (check_request (request, err) < 0
      || find_profile (host->place, request->profile, &run.profile, err) < 0
      || request_write (&run, err) < 0
      || (request->contained ? run_contained (&run, cancel_fd, err)
                             : run_in_sandbox (&run, cancel_fd, out, err)) < 0)
    return -1;
  outcome.profile = run.profile->name;
  outcome.applied = run.applied;
  return reply_fill (&outcome, out, err);
}

void
execute_result_fini (struct execute_result *result)
{
  json_decref (result->document);
  free (result->provider);
  free (result->sandbox);
  memset (result, 0, sizeof *result);
}

/* ---- what a profile is -------------------------------------------------- */

static int
compare_texts (const void *a, const void *b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

static json_t *
sorted_json (char *const *words)
{
  auto_free const char **sorted = NULL;
  json_t *list = json_array ();
  size_t n, i;

  for (n = 0; words[n]; n++)
    ;
  sorted = calloc (n + 1, sizeof *sorted);
  if (!sorted)
    return list;
  for (i = 0; i < n; i++)
    sorted[i] = words[i];
  qsort (sorted, n, sizeof *sorted, compare_texts);
  for (i = 0; i < n; i++)
    json_array_append_new (list, json_string (sorted[i]));
  return list;
}

int
execute_describe (const struct place *place, const char *name, json_t **out,
                  struct error **err)
{
  auto_profile struct profile *profile = NULL;

  if (find_profile (place, name, &profile, err) < 0)
    return -1;
  *out = json_pack (
    "{s:s, s:s, s:o, s:{s:[s,s], s:[s,s,s]}, s:{s:f, s:f}}", "name",
    profile->name, "description", profile->summary, "allowed_imports",
    sorted_json (profile->words[PROFILE_IMPORTS]), "scan_stages", "pre", "ast",
    "import", "post", "landlock", "seccomp", "namespaces", "timeout",
    "default", (double) EXECUTE_TIMEOUT_MS / 1000, "max",
    (double) EXECUTE_TIMEOUT_MAX_MS / 1000);
  return *out ? 0 : error_set (err, E_NO_MEMORY, 0, "the profile");
}
