/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-worker: one provider module in a process of its own.
 *
 * The host starts it with an empty environment and the channel as descriptor
 * 3, and sends what to load and what it may do.  The worker gives up all else
 * (rights.c), and only then loads the module, so that constructors run with
 * no more rights than any call.  It serves until the channel ends. */

#include "config.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "provider/worker/rights.h"
#include "provider/worker/serve.h"

#define MAX_HELPERS 64

#ifdef __SANITIZE_THREAD__
/* A module starts programs, with threads there or not.  No options come by the
 * environment, which is empty. */
const char *__tsan_default_options (void)
  __attribute__ ((visibility ("default")));

const char *
__tsan_default_options (void)
{
  return "die_after_fork=0";
}

/* It does not know of each call that makes or closes a descriptor, as openat()
 * and those of children that share the memory: a number that one thread had and
 * another has now is the first one's still to it. */
const char *__tsan_default_suppressions (void)
  __attribute__ ((visibility ("default")));

const char *
__tsan_default_suppressions (void)
{
  return "race_top:fstat\nrace_top:close\n";
}
#endif

struct start {
  struct rights rights;
  struct coffer_note note;
  struct module_claim claim;
  struct serve_open open;
  int module_fd;
  size_t n_files;
  struct coffer_file files[MAX_HELPERS];
  const struct coffer_file *file_vector[MAX_HELPERS + 1];
};

static void __attribute__ ((noreturn))
refuse (const struct error *error)
{
  const char *text = error ? error_message (error) : "out of memory";
  json_t *frame = json_pack ("{s:s, s:i, s:o}", "kind", "refused", "code",
                             error ? error->number : E_NO_MEMORY, "message",
                             json_bytes (text, strlen (text)));

  if (error && error->hint)
    json_object_set_new (frame, "hint",
                         json_bytes (error->hint, strlen (error->hint)));
  channel_send (CHANNEL_FD, frame, NULL, 0, NULL);
  _exit (1);
}

/* The host may have ignored or blocked some; what it caught is default now. */
static void
reset_signals (void)
{
  struct sigaction action = { .sa_handler = SIG_DFL };
  sigset_t none;
  int i;

  for (i = 1; i < NSIG; i++)
    if (i != SIGKILL && i != SIGSTOP)
      sigaction (i, &action, NULL);
  action.sa_handler = SIG_IGN;
  sigaction (SIGPIPE, &action, NULL);
  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
}

static int
fail (struct error **err, const char *what)
{
  return error_set (err, E_INTERNAL, 0, "start frame: %s", what);
}

static void
read_rights (const json_t *json, struct rights *rights)
{
  rights->strict = (int) channel_integer (json, "strict", 1);
  rights->hold = (int) channel_integer (json, "hold", 0);
  rights->allow_degraded = (int) channel_integer (json, "degraded", 0);
  rights->cgroup = (int) channel_integer (json, "cgroup", 0);
  rights->read = channel_byte_list (json, "read");
  rights->write = channel_byte_list (json, "write");
  rights->exec = channel_byte_list (json, "exec");
  rights->memory_bytes = channel_integer (json, "memory", 0);
  rights->files = channel_integer (json, "open_files", 0);
  rights->processes = channel_integer (json, "processes", 0);
  rights->calls = channel_integer (json, "calls", 1);
}

static int
read_note (const json_t *json, struct coffer_note *note)
{
  const char *name = json_string_value (json_object_get (json, "name"));

  note->contract_major = (uint16_t) channel_integer (json, "major", 0);
  note->contract_minor = (uint16_t) channel_integer (json, "minor", 0);
  note->least_minor = (uint16_t) channel_integer (json, "least", 0);
  note->threads = (uint16_t) channel_integer (json, "threads", 0);
  note->needs = (uint32_t) channel_integer (json, "needs", 0);
  if (!name || strlen (name) >= sizeof note->name)
    return -1;
  memcpy (note->name, name, strlen (name) + 1);
  return 0;
}

/* Module, runtime folder, state folder if any, then helpers. */
static int
take_descriptors (struct start *start, struct channel_message *message,
                  int has_state)
{
  int need = has_state ? 3 : 2, i;

  if (message->fds.count < need)
    return -1;
  start->module_fd = message->fds.fd[0];
  start->rights.runtime_dir = message->fds.fd[1];
  start->rights.state_dir = has_state ? message->fds.fd[2] : -1;
  for (i = need; i < message->fds.count; i++)
    start->files[start->n_files++].fd = message->fds.fd[i];
  message->fds.count = 0;
  return 0;
}

static int
take_more_files (struct start *start, size_t want, struct error **err)
{
  struct channel_message message;
  int i;

  while (start->n_files < want) {
    if (channel_receive (CHANNEL_FD, 1, &message, err) <= 0)
      _exit (0);
    if (message.fds.count == 0
        || start->n_files + message.fds.count > want)
      return fail (err, "other helpers than were announced");
    for (i = 0; i < message.fds.count; i++)
      start->files[start->n_files++].fd = message.fds.fd[i];
    message.fds.count = 0;
    channel_message_fini (&message);
  }
  return 0;
}

static int
name_files (struct start *start, const json_t *json, struct error **err)
{
  char **names = channel_byte_list (json, "files");
  size_t want = 0, i;

  while (names && names[want])
    want++;
  if (!names || want > MAX_HELPERS || start->n_files > want)
    return fail (err, "helpers without names");
  if (take_more_files (start, want, err) < 0)
    return -1;
  for (i = 0; i < want; i++) {
    start->files[i].size = sizeof start->files[i];
    start->files[i].name = names[i];
    start->file_vector[i] = &start->files[i];
  }
  free (names);
  return 0;
}

static int
read_start (struct start *start, struct channel_message *message,
            struct error **err)
{
  const json_t *json = message->json;

  if (strcmp (channel_kind (message), "start") != 0)
    return fail (err, "it is another frame");
  read_rights (json_object_get (json, "rights"), &start->rights);
  if (!start->rights.read || !start->rights.write || !start->rights.exec
      || read_note (json_object_get (json, "note"), &start->note) < 0)
    return fail (err, "no rights or no note");
  start->claim = (struct module_claim){
    .file = channel_bytes (json, "file"),
    .contract_major = start->note.contract_major,
    .contract_minor = start->note.contract_minor,
    .threads = start->note.threads,
    .capabilities = channel_byte_list (json, "capabilities")
  };
  start->open.config = channel_byte_list (json, "config");
  if (!start->claim.file || !start->claim.capabilities || !start->open.config)
    return fail (err, "no module or no configuration");
  if (take_descriptors (start, message,
                        channel_integer (json, "has_state", 0) == 1) < 0)
    return fail (err, "no descriptors");
  if (name_files (start, json, err) < 0)
    return -1;
  start->open.opts = (struct coffer_open_opts){
    .size = sizeof start->open.opts, .files = start->file_vector,
    .runtime_dir = start->rights.runtime_dir,
    .state_dir = start->rights.state_dir,
    .host = channel_bytes (json, "host")
  };
  return 0;
}

/* Rights first, then a thread that watches the channel, then the module. */
static int
begin (struct start *start, struct server **server, struct error **err)
{
  json_t *applied = json_object ();
  coffer_autoclose int maps = open ("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  coffer_autoclose int status = hold_open (&start->rights);
  struct module *module;

  if (rights_apply (&start->rights, applied, err) < 0
      || server_new (CHANNEL_FD, (unsigned) start->rights.calls,
                     start->rights.strict && start->rights.exec[0], server,
                     err) < 0)
    return -1;
  hold_wait (status);
  coffer_fd_close (&status);
  if (module_load_confined (contract_builtin (), start->module_fd, maps,
                            &start->note, &start->claim, &module, err) < 0)
    return -1;
  coffer_fd_close (&maps);
  server_ready (*server, module, &start->open);
  json_object_set_new (applied, "kind", json_string ("ready"));
  if (channel_send (CHANNEL_FD, applied, NULL, 0, err) < 0)
    return -1;
  json_decref (applied);
  return 0;
}

int
main (void)
{
  static struct start start;
  struct channel_message message;
  struct error *error = NULL;
  struct server *server;
  int type = 0;
  socklen_t size = sizeof type;

  if (getsockopt (CHANNEL_FD, SOL_SOCKET, SO_TYPE, &type, &size) < 0
      || type != SOCK_SEQPACKET) {
    fputs ("coffer-worker is started by coffer, with a channel\n", stderr);
    return 2;
  }
  close_range (CHANNEL_FD + 1, ~0U, 0);
  fcntl (CHANNEL_FD, F_SETFD, FD_CLOEXEC);
  reset_signals ();
  setsid ();
  prctl (PR_SET_NAME, "coffer-worker", 0, 0, 0);
  title_hide ();
  mallopt (M_ARENA_MAX, 1);
  if (chdir ("/") < 0)
    return 2;
  if (channel_receive (CHANNEL_FD, 1, &message, &error) <= 0)
    return error ? 1 : 0;
  if (read_start (&start, &message, &error) < 0
      || begin (&start, &server, &error) < 0)
    refuse (error);
  json_wipe (message.json);     /* the configuration has secrets */
  message.json = NULL;
  channel_message_fini (&message);
  server_run (server);
}
