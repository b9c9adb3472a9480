/* SPDX-License-Identifier: Apache-2.0 */
/* See linux-host.h. */

#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "linux-host.h"
#include "protocol.h"

struct test_call {
  struct coffer_call call;
  struct linux_host *host;
};

static struct linux_host *
host_of (struct coffer_call *call)
{
  return ((struct test_call *) call)->host;
}

static void __attribute__ ((format (printf, 2, 3)))
append (char text[HOST_TEXT], const char *fmt, ...)
{
  size_t n = strlen (text);
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text + n, HOST_TEXT - n, fmt, ap);
  va_end (ap);
}

static void
exit_keep (struct linux_host *host, const struct coffer_exec_exit *exit)
{
  size_t i;

  host->exit = *exit;
  host->failure[0] = host->limits[0] = '\0';
  if (exit->failure != NULL)
    snprintf (host->failure, sizeof host->failure, "%s", exit->failure);
  for (i = 0; exit->limits_hit != NULL && exit->limits_hit[i] != NULL; i++)
    snprintf (host->limits + strlen (host->limits),
              sizeof host->limits - strlen (host->limits), "%s ",
              exit->limits_hit[i]);
}

static int32_t
test_emit (struct coffer_call *call, uint32_t record, const void *data)
{
  struct linux_host *host = host_of (call);
  size_t i;

  switch (record) {
  case COFFER_REC_fact: {
    const struct coffer_fact *fact = data;
    append (host->facts, "%s %s %s\n", fact->name, fact->state, fact->value);
    if (fact->remedy != NULL)
      append (host->remedies, "%s %s\n", fact->name, fact->remedy);
    break;
  }
  case COFFER_REC_sandbox_info: {
    const struct coffer_sandbox_info *info = data;
    append (host->infos, "%s %s\n", info->sandbox, info->state);
    host->expires_ns = info->expires_ns;
    host->pid = 0;
    if (info->native_id != NULL)
      sscanf (info->native_id, "pid:%d", &host->pid);
    host->metadata[0] = host->not_applied[0] = '\0';
    for (i = 0; info->not_applied != NULL && info->not_applied[i] != NULL; i++)
      snprintf (host->not_applied + strlen (host->not_applied),
                sizeof host->not_applied - strlen (host->not_applied), "%s ",
                info->not_applied[i]);
    if (info->metadata != NULL && info->metadata[0] != NULL)
      snprintf (host->metadata, sizeof host->metadata, "%s",
                info->metadata[0]);
    break;
  }
  case COFFER_REC_exec_info: {
    const struct coffer_exec_info *info = data;
    snprintf (host->exec, sizeof host->exec, "%s", info->exec);
    append (host->infos, "%s %s\n", info->exec, info->state);
    break;
  }
  case COFFER_REC_exec_exit:
    exit_keep (host, data);
    break;
  case COFFER_REC_file_stat: {
    const struct coffer_file_stat *st = data;
    append (host->files, "%s %s %llu\n", st->kind, st->path,
            (unsigned long long) st->size_bytes);
    break;
  }
  case COFFER_REC_stream: {
    const struct coffer_stream *stream = data;
    coffer_fd_close (&host->stream);
    host->stream = fcntl (stream->fd, F_DUPFD_CLOEXEC, 3);
    break;
  }
  case COFFER_REC_port: {
    const struct coffer_port *port = data;
    append (host->infos, "%u %s\n", port->port,
            port->address ? port->address : "-");
    break;
  }
  case COFFER_REC_metric: {
    const struct coffer_metric *metric = data;
    append (host->metrics, "%s %.17g\n", metric->name, metric->value);
    break;
  }
  default:
    break;
  }
  return COFFER_OK;
}

static int32_t
test_fail (struct coffer_call *call, int32_t code, int32_t retryable,
           const char *message, const char *details)
{
  struct linux_host *host = host_of (call);

  (void) retryable;
  (void) details;
  snprintf (host->error, sizeof host->error, "%s", message);
  return code;
}

static void
test_log (struct coffer_call *call, int32_t level, const char *text)
{
  (void) call;
  (void) level;
  (void) text;
}

static void
test_progress (struct coffer_call *call, uint64_t done, uint64_t total,
               const char *what)
{
  (void) call;
  (void) done;
  (void) total;
  (void) what;
}

static int32_t
test_connect (struct coffer_call *call, const char *target)
{
  (void) call;
  (void) target;
  return -COFFER_DENIED;
}

static int32_t
test_opened (struct coffer_call *call, void *self)
{
  host_of (call)->self = self;
  return COFFER_OK;
}

static int
build_open (const char *name)
{
  const char *build = getenv ("COFFER_BUILD");
  char path[4096];
  int fd;

  snprintf (path, sizeof path, "%s/%s", build ? build : ".", name);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    fail_msg ("%s: %s", path, strerror (errno));
  return fd;
}

static int32_t
test_file (struct coffer_call *call, const char *name)
{
  const char *late = host_of (call)->late;
  char path[256];
  int fd;

  snprintf (path, sizeof path, "plugins/linux/%s", name);
  if (late == NULL)
    return build_open (path);
  fd = open (late, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -COFFER_NOT_FOUND : fd;
}

static const struct coffer_host host_table = {
  sizeof host_table, 0, test_emit, test_fail, test_log, test_progress,
  test_connect, test_opened, test_file
};

/* A ring, so that calls of several threads do not share one.  Seconds are a
 * deadline that no test waits for: on a busy machine they are half a minute. */
struct coffer_call *
host_call (struct linux_host *host, int64_t timeout_ms)
{
  static struct test_call calls[64];
  static unsigned next;
  struct test_call *call
    = &calls[__atomic_fetch_add (&next, 1, __ATOMIC_RELAXED) % 64];

  if (timeout_ms >= 5000 && timeout_ms < 30000)
    timeout_ms = 30000;
  memset (call, 0, sizeof *call);
  call->call.size = sizeof call->call;
  call->call.host = &host_table;
  call->call.deadline_ns = coffer_now_ns () + timeout_ms * 1000000;
  call->call.cancel_fd = -1;
  call->host = host;
  host->error[0] = host->facts[0] = host->infos[0] = '\0';
  host->files[0] = host->metrics[0] = host->remedies[0] = '\0';
  return &call->call;
}

void
linux_host_load (struct linux_host *host, const char *name)
{
  const struct coffer_provider *(*entry) (void);
  int module = build_open (name);
  char path[64];

  memset (host, 0, sizeof *host);
  host->stream = -1;
  snprintf (path, sizeof path, "/proc/self/fd/%d", module);
  host->module = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (host->module == NULL)
    fail_msg ("%s", dlerror ());
  close (module);
  *(void **) &entry = dlsym (host->module, COFFER_ENTRY_NAME);
  assert_non_null (entry);
  host->ops = entry ()->operations;
}

void
linux_host_start (struct linux_host *host, int init,
                  const char *const *config)
{
  struct coffer_file file = { .size = sizeof file, .name = "coffer-init",
                              .fd = init };
  const struct coffer_file *files[] = { &file, NULL };
  struct coffer_open_opts opts = { .size = sizeof opts, .files = files,
                                   .state_dir = -1, .host = "test" };

  strcpy (host->runtime_path, "/tmp/coffer-test-XXXXXX");
  assert_non_null (mkdtemp (host->runtime_path));
  host->runtime = open (host->runtime_path,
                        O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true (host->runtime >= 0);
  opts.runtime_dir = host->runtime;
  assert_int_equal (host->ops->open (host_call (host, 5000), NULL, config,
                                     &opts),
                    COFFER_OK);
}

static void
open_with (struct linux_host *host, int init, const char *const *config)
{
  linux_host_load (host, "plugins/linux/linux.so");
  linux_host_start (host, init, config);
}

void
linux_host_open_with (struct linux_host *host, int init)
{
  open_with (host, init, NULL);
}

void
linux_host_open_config (struct linux_host *host, const char *const *config)
{
  int init = build_open ("plugins/linux/coffer-init");

  open_with (host, init, config);
  close (init);
}

void
linux_host_open (struct linux_host *host)
{
  linux_host_open_config (host, NULL);
}

void
linux_host_close (struct linux_host *host)
{
  /* Everything that a test leaves is a fault of the test. */
  host->ops->close (host_call (host, 5000), host->self, NULL);
  coffer_fd_close (&host->stream);
  unlinkat (host->runtime, ".ids", 0);  /* root's table of ids stays */
  close (host->runtime);
  if (rmdir (host->runtime_path) == -1)
    fail_msg ("%s: %s", host->runtime_path, strerror (errno));
}

int32_t
host_create (struct linux_host *host, const char *id,
             const struct coffer_sandbox_spec *spec)
{
  return host->ops->sandbox_create (host_call (host, 20000), host->self, id,
                                    spec, NULL);
}

int32_t
host_kill (struct linux_host *host, const char *id)
{
  return host->ops->sandbox_kill (host_call (host, 20000), host->self, id,
                                  NULL);
}

/* Reads both pipes until their end, or until the command has been over for a
 * quarter of a second. */
static void
streams_collect (int out, int err, int over, struct outcome *outcome)
{
  struct pollfd polls[3] = { { out, POLLIN, 0 }, { err, POLLIN, 0 },
                             { over, POLLIN, 0 } };
  char *const text[2] = { outcome->out, outcome->err };
  size_t *const size[2] = { &outcome->out_size, &outcome->err_size };
  int timeout = -1, i;
  ssize_t n;

  while (polls[0].fd >= 0 || polls[1].fd >= 0) {
    if (poll (polls, 3, timeout) <= 0)
      return;
    if (polls[2].revents != 0) {
      polls[2].fd = -1;
      timeout = 250;
    }
    for (i = 0; i < 2; i++) {
      if (polls[i].fd < 0 || polls[i].revents == 0)
        continue;
      n = read (polls[i].fd, text[i] + *size[i], HOST_TEXT - 1 - *size[i]);
      if (n <= 0)
        polls[i].fd = -1;
      else
        *size[i] += (size_t) n;
    }
  }
}

struct waiter {
  struct linux_host *host;
  const char *id;
  int32_t code;
  int done;
};

static void *
waiter_run (void *data)
{
  struct waiter *waiter = data;
  struct linux_host *host = waiter->host;
  char exec[32];

  strcpy (exec, host->exec);
  waiter->code = host->ops->exec_wait (host_call (host, 60000), host->self,
                                       waiter->id, exec, NULL);
  close (waiter->done);
  return NULL;
}

int32_t
host_run (struct linux_host *host, const char *id, const char *const *argv,
          const char *const *env, const char *input, uint64_t timeout_ms,
          struct outcome *outcome)
{
  struct coffer_exec_start_opts opts = { .size = sizeof opts,
                                         .timeout_ms = timeout_ms,
                                         .warm = host->warm };
  int in[2] = { -1, -1 }, out[2], err[2], over[2];
  struct waiter waiter = { host, id, 0, -1 };
  pthread_t thread;
  int32_t code;

  memset (outcome, 0, sizeof *outcome);
  assert_int_equal (pipe2 (out, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (err, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (over, O_CLOEXEC), 0);
  if (input != NULL) {
    assert_int_equal (pipe2 (in, O_CLOEXEC), 0);
    assert_int_equal (coffer_write_all (in[1], input, strlen (input)),
                      strlen (input));
    close (in[1]);
  }
  code = host->ops->exec_start (host_call (host, 20000), host->self, id, argv,
                                env, NULL, in[0], out[1], err[1], &opts);
  coffer_fd_close (&in[0]);
  close (out[1]);
  close (err[1]);
  waiter.done = over[1];
  if (code == COFFER_OK) {
    assert_int_equal (pthread_create (&thread, NULL, waiter_run, &waiter), 0);
    streams_collect (out[0], err[0], over[0], outcome);
    pthread_join (thread, NULL);
    code = waiter.code;
  } else
    close (over[1]);
  close (over[0]);
  close (out[0]);
  close (err[0]);
  return code;
}

int32_t
host_run_once (struct linux_host *host,
               const struct coffer_sandbox_spec *given,
               const char *const *argv, uint64_t timeout_ms,
               struct outcome *outcome)
{
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1 };
  char id[32];
  static int count;
  int32_t code, killed;

  if (given != NULL)
    spec = *given;
  spec.single_exec = 1;
  snprintf (id, sizeof id, "once-%d", ++count);
  code = host_create (host, id, &spec);
  if (code != COFFER_OK)
    return code;
  code = host_run (host, id, argv, NULL, NULL, timeout_ms, outcome);
  killed = host_kill (host, id);
  assert_int_equal (killed, COFFER_OK);
  return code;
}

int
host_start (struct linux_host *host, const char *id, const char *script,
            uint64_t timeout_ms)
{
  const char *argv[] = { "sh", "-c", script, NULL };
  struct coffer_exec_start_opts opts = { .size = sizeof opts,
                                         .timeout_ms = timeout_ms };
  int held[2];

  assert_int_equal (pipe2 (held, O_CLOEXEC), 0);
  if (host->ops->exec_start (host_call (host, 20000), host->self, id, argv,
                             NULL, NULL, -1, held[1], -1, &opts)
        != COFFER_OK)
    fail_msg ("%s", host->error);
  close (held[1]);
  return held[0];
}

int
host_gone (int held, int64_t ns)
{
  const int64_t stop = coffer_now_ns () + ns;
  char bytes[4096];

  while (coffer_wait_fd (held, POLLIN, stop, -1) == 1)
    if (read (held, bytes, sizeof bytes) == 0)
      return 1;
  return 0;
}

double
host_metric (struct linux_host *host, const char *id, const char *name)
{
  const size_t n = strlen (name);
  const char *line;

  if (host->ops->metrics (host_call (host, 5000), host->self, id, NULL)
        != COFFER_OK)
    fail_msg ("%s", host->error);
  for (line = host->metrics; line[0] != '\0';
       line = line[strcspn (line, "\n")] ? strchr (line, '\n') + 1 : "")
    if (strncmp (line, name, n) == 0 && line[n] == ' ')
      return strtod (line + n + 1, NULL);
  return -1;
}

void
host_payload (struct linux_host *host, const char *id)
{
  struct coffer_file_write_opts opts = { .size = sizeof opts, .mode = 0755 };
  const char *build = getenv ("COFFER_BUILD");
  char path[4096];
  int fd;

  snprintf (path, sizeof path, "%s/tests/unit/linux-payload",
            build ? build : ".");
  fd = open (path, O_RDONLY | O_CLOEXEC);
  assert_true (fd >= 0);
  if (host->ops->file_write (host_call (host, 10000), host->self, id,
                             "payload", fd, &opts)
        != COFFER_OK)
    fail_msg ("%s", host->error);
  close (fd);
}

int
host_can (void)
{
  pid_t pid = fork ();
  int status = 1;

  if (pid == 0)
    _exit (unshare (CLONE_NEWUSER | CLONE_NEWNS) == 0 ? 0 : 1);
  if (pid > 0)
    waitpid (pid, &status, 0);
  return status == 0;
}

/* ---- the host of a program of tests ------------------------------------- */

static struct linux_host *tests_host;

void
linux_tests_host (struct linux_host *host)
{
  tests_host = host;
}

int
linux_tests_open (void **state)
{
  (void) state;
  linux_host_open (tests_host);
  return 0;
}

int
linux_tests_close (void **state)
{
  (void) state;
  linux_host_close (tests_host);
  return 0;
}

int
linux_tests_open_folder (void **state)
{
  linux_host_open (tests_host);
  return harness_folder_new (state);
}

int
linux_tests_close_folder (void **state)
{
  linux_host_close (tests_host);
  return harness_folder_free (state);
}

/* ---- the socket of an init ---------------------------------------------- */

int
host_connect (struct linux_host *host, const char *id)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  const int fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

  assert_true (fd >= 0);
  snprintf (address.sun_path, sizeof address.sun_path, "%s/%s/init.sock",
            host->runtime_path, id);
  assert_int_equal (connect (fd, (struct sockaddr *) &address,
                             sizeof address),
                    0);
  return fd;
}

/* Nobody may listen any more: then it is lost. */
void
host_show (int connection, int userns)
{
  struct init_header header = { sizeof header, INIT_MAGIC, INIT_OUTSIDE, 1,
                                0 };
  struct iovec iov = { &header, sizeof header };
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (sizeof (int))];
  } rights;
  struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

  if (userns >= 0) {
    memset (&rights, 0, sizeof rights);
    rights.header.cmsg_level = SOL_SOCKET;
    rights.header.cmsg_type = SCM_RIGHTS;
    rights.header.cmsg_len = CMSG_LEN (sizeof (int));
    memcpy (CMSG_DATA (&rights.header), &userns, sizeof userns);
    message.msg_control = &rights;
    message.msg_controllen = sizeof rights;
  }
  (void) !sendmsg (connection, &message, MSG_NOSIGNAL);
}

void
host_show_own (int connection)
{
  coffer_autoclose int userns = open ("/proc/self/ns/user",
                                      O_RDONLY | O_CLOEXEC);

  assert_true (userns >= 0);
  host_show (connection, userns);
}
