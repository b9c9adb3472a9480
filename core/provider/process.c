/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and ending coffer-worker.
 *
 * It is executed from a descriptor that was checked, with an empty
 * environment and nothing open but /dev/null, a pipe for what it prints, and
 * the channel.  It leaves by itself when the channel ends, and where its module
 * sees to it that it does not, the kernel ends it with its host: see the
 * lifeline.  A parent-death signal would follow the thread that started it. */

#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/opening.h"
#include "provider/trace.h"
#include "provider/worker.h"
#include "provider/writable.h"

#define WORKER_NAME "coffer-worker"
#define START_NS (10 * 1000000000LL)
#define REAP_MS 5000
#define GROUP_MS 1000

struct birth {
  int program, null, output, channel;
};

/* ---- the process ---------------------------------------------------------- */

static int
open_program (const struct place *place, struct error **err)
{
  coffer_autoclose int dir = place_open_trusted_dir (place->libexec, err);
  coffer_autoclose int fd = -1;
  auto_free char *shown = text_printf ("%s/" WORKER_NAME, place->libexec);

  if (dir < 0)
    return -1;
  fd = openat (dir, WORKER_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return error_set (err, E_IO, errno, "open %s",
                      shown ? shown : WORKER_NAME);
  if (place_check_trusted (fd, shown ? shown : WORKER_NAME, err) < 0)
    return -1;
  return coffer_fd_steal (&fd);
}

/* In the child, which shares the parent's memory until it executes: system
 * calls only. */
static void
child_exec (const struct birth *birth)
{
#ifdef COFFER_SANITIZERS
  static char options[] = "ASAN_OPTIONS=detect_leaks=0:exitcode=99";
  /* A race found there ends it, or nobody would hear of it. */
  static char races[] = "TSAN_OPTIONS=halt_on_error=1:exitcode=99:"
                        "atexit_sleep_ms=0";
  static char *const environment[] = { options, races, NULL };
#else
  static char *const environment[] = { NULL };
#endif
  static char name[] = WORKER_NAME;
  static char *const arguments[] = { name, NULL };
  int channel, output, null, program;

  /* Out of the way of 0 to 3, so that no dup2 hits what is still needed. */
  channel = fcntl (birth->channel, F_DUPFD_CLOEXEC, CHANNEL_FD + 1);
  output = fcntl (birth->output, F_DUPFD_CLOEXEC, CHANNEL_FD + 1);
  null = fcntl (birth->null, F_DUPFD_CLOEXEC, CHANNEL_FD + 1);
  program = fcntl (birth->program, F_DUPFD_CLOEXEC, CHANNEL_FD + 1);
  if (channel < 0 || output < 0 || null < 0 || program < 0 || dup2 (null, 0) < 0
      || dup2 (output, 1) < 0 || dup2 (output, 2) < 0
      || dup2 (channel, CHANNEL_FD) < 0)
    return;
  syscall (SYS_execveat, program, "", arguments, environment,
           AT_EMPTY_PATH);
}

/* The parent sleeps until the child has executed.  All signals are blocked:
 * no handler of the host's may run in the child; the worker unblocks them. */
static pid_t
spawn (const struct birth *birth, int *exec_errno)
{
  volatile int failed = 0;
  sigset_t all, old;
  pid_t pid;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  pid = vfork ();
  if (pid == 0) {
    child_exec (birth);
    failed = errno ? errno : ENOEXEC;
    _exit (127);
  }
  *exec_errno = pid < 0 ? errno : failed;
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  return pid;
}

static int
start_program (const struct provider *provider, struct process *out,
               struct error **err)
{
  coffer_autoclose int program = open_program (provider->place, err);
  coffer_autoclose int null = open ("/dev/null", O_RDWR | O_CLOEXEC);
  coffer_autoclose int ours = -1, theirs = -1, reads = -1, writes = -1;
  int pair[2], output[2], failed = 0;
  struct birth birth;
  pid_t pid;

  if (program < 0)
    return -1;
  if (null < 0)
    return error_set (err, E_IO, errno, "open /dev/null");
  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
    return error_set (err, E_IO, errno, "make a channel");
  ours = pair[0];
  theirs = pair[1];
  if (pipe2 (output, O_CLOEXEC | O_NONBLOCK) < 0)
    return error_set (err, E_IO, errno, "make a pipe");
  reads = output[0];
  writes = output[1];
  birth = (struct birth){ program, null, writes, theirs };
  pid = spawn (&birth, &failed);
  if (pid < 0)
    return error_set (err, E_IO, failed, "start " WORKER_NAME);
  out->pid = pid;
  out->pidfd = (int) syscall (SYS_pidfd_open, pid, 0);
  out->channel = coffer_fd_steal (&ours);
  out->output = coffer_fd_steal (&reads);
  if (failed || out->pidfd < 0)
    return error_set (err, E_IO, failed ? failed : errno,
                      "execute " WORKER_NAME);
  return 0;
}

/* A pair of sockets that nobody but this process holds, and both ends of which
 * owe the worker a SIGKILL when the other one is closed.  When the host ends,
 * however it does, the kernel closes one of them first, and the other is still
 * there to send it.  A worker has nothing of this pair, so that no module can
 * undo it.  What a strict one has started is in its group and goes with it. */
static int
lifeline_new (struct process *process, struct error **err)
{
  pid_t owner = process->strict ? -process->pid : process->pid;
  int i, flags;

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, process->lifeline)
      < 0)
    return error_set (err, E_IO, errno, "make a lifeline");
  for (i = 0; i < 2; i++) {
    flags = fcntl (process->lifeline[i], F_GETFL);
    if (flags < 0 || fcntl (process->lifeline[i], F_SETOWN, owner) < 0
        || fcntl (process->lifeline[i], F_SETSIG, SIGKILL) < 0
        || fcntl (process->lifeline[i], F_SETFL, flags | O_ASYNC) < 0)
      return error_set (err, E_IO, errno, "arm a lifeline");
  }
  return 0;
}

/* ---- the start frame ------------------------------------------------------ */

static json_t *
rights_json (const struct provider *provider, int strict, int held,
             const struct coffer_strings *writable)
{
  const struct manifest *manifest = provider->manifest;
  const struct manifest_permissions *may = &manifest->permissions;
  const struct manifest_limits *limits = &manifest->limits;

  return json_pack ("{s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:I, s:I, s:I, s:I}",
                    "strict", strict, "hold", held, "degraded",
                    provider->entry->allow_degraded, "cgroup", may->cgroup,
                    "read", channel_from_list (may->read), "write",
                    channel_from_list ((char *const *) coffer_strings_view (writable)),
                    "exec",
                    channel_from_list (may->exec), "memory",
                    (json_int_t) limits->memory_bytes, "open_files",
                    (json_int_t) limits->files, "processes",
                    (json_int_t) limits->processes, "calls",
                    (json_int_t) provider->gate.limit);
}

static json_t *
start_json (const struct provider *provider, int strict, int held,
            const struct coffer_strings *writable)
{
  const struct opening *opening = provider->opening;
  const struct coffer_note *note = &opening->note;
  json_t *files = json_array ();
  size_t i;

  for (i = 0; i < opening->n_files; i++)
    json_array_append_new (files, json_string (opening->files[i].name));
  return json_pack (
    "{s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:{s:s, s:i, s:i, s:i, s:i, "
    "s:I}}",
    "kind", "start", "file", opening->claim.file, "has_state",
    opening->state_dir >= 0, "host", opening->host, "capabilities",
    channel_from_list (provider->manifest->capabilities), "config",
    channel_from_list (opening->config), "files", files, "rights",
    rights_json (provider, strict, held, writable), "note", "name", note->name, "major",
    note->contract_major, "minor", note->contract_minor, "least",
    note->least_minor, "threads", note->threads, "needs",
    (json_int_t) note->needs);
}

/* All descriptors, sixteen a frame. */
static int
send_start (const struct provider *provider, const struct process *process,
            struct error **err)
{
  const struct opening *opening = provider->opening;
  int64_t deadline = coffer_now_ns () + START_NS;
  coffer_autostrings struct coffer_strings writable = { 0 };
  auto_json_wiped json_t *frame = NULL;         /* it has secrets */
  struct contract_fds fds = { .count = 0 };
  size_t i = 0;

  if (writable_resolve (provider->entry, provider->place, &writable, err) < 0)
    return -1;
  frame = start_json (provider, process->strict, process->held, &writable);
  if (!frame)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  fds.fd[fds.count++] = opening->module_fd;
  fds.fd[fds.count++] = opening->runtime_dir;
  if (opening->state_dir >= 0)
    fds.fd[fds.count++] = opening->state_dir;
  do {
    while (i < opening->n_files && fds.count < CONTRACT_MAX_FDS)
      fds.fd[fds.count++] = opening->files[i++].fd;
    trace_frame (provider, "->", frame, fds.count);
    if (channel_send (process->channel, frame, &fds, deadline, err) < 0)
      return -1;
    json_wipe (frame);
    frame = json_pack ("{s:s}", "kind", "files");
    fds.count = 0;
  } while (i < opening->n_files);
  return 0;
}

/* Without a Landlock domain and hard limits a worker is trusted with all that
 * its user may do: only for what came with coffer, and whose files belong to
 * root, or to the user whose rights these are. */
static int
check_lenient (const struct provider *provider, struct error **err)
{
  const struct manifest_permissions *may = &provider->manifest->permissions;
  struct stat st;

  if (!may->namespaces && !may->exec_any)
    return 1;
  if (provider->entry->trust != TRUST_PACKAGED
      || fstat (provider->entry->dir_fd, &st) < 0
      || (st.st_uid != 0 && st.st_uid != geteuid ()))
    return error_set (err, E_DENIED, 0,
                      "%s asks for %s, which only providers that come with "
                      "coffer get", provider->manifest->id,
                      may->namespaces ? "namespaces" : "exec: any");
  return 0;
}

int
process_start (const struct provider *provider, struct process **out,
               struct error **err)
{
  struct process *process = calloc (1, sizeof *process);
  int strict = check_lenient (provider, err);
  struct process_end end;

  if (strict < 0 || !process) {
    free (process);
    return strict < 0 ? -1 : error_set (err, E_NO_MEMORY, 0, "out of memory");
  }
  process->pidfd = process->channel = process->output = -1;
  process->lifeline[0] = process->lifeline[1] = -1;
  process->strict = strict;
  process->held = trace_holds (provider);
  process->refs = 1;
  if (start_program (provider, process, err) < 0
      || lifeline_new (process, err) < 0
      || send_start (provider, process, err) < 0) {
    process_end (process, 0, &end);
    process_free (process);
    return -1;
  }
  *out = process;
  return 0;
}

/* ---- the end -------------------------------------------------------------- */

static int
wait_end (const struct process *process, int64_t ms)
{
  struct pollfd p = { .fd = process->pidfd, .events = POLLIN };
  int64_t until = coffer_now_ns () + ms * NS_PER_MS;
  int n;

  do {
    n = poll (&p, 1, (int) ms);
    ms = (until - coffer_now_ns ()) / NS_PER_MS;
  } while (n < 0 && errno == EINTR && ms > 0);
  return n > 0;
}

/* While the leader is not reaped, its group is still its own. */
static void
kill_group (const struct process *process)
{
  if (process->strict)
    kill (-process->pid, SIGKILL);
}

static void
reap (const struct process *process, struct process_end *end)
{
  siginfo_t info;

  memset (&info, 0, sizeof info);
  while (waitid (P_PIDFD, process->pidfd, &info, WEXITED | WNOHANG) < 0
         && errno == EINTR)
    ;
  if (info.si_pid == 0)
    return;
  end->code = info.si_code;
  end->status = info.si_status;
}

/* Where this process is who orphans go to, as the first one of a container is,
 * it is also the one to reap what the worker had started. */
static void
reap_group (const struct process *process)
{
  int64_t until = coffer_now_ns () + GROUP_MS * NS_PER_MS;
  siginfo_t info = { .si_pid = 0 };

  while (process->strict
         && waitid (P_PGID, (id_t) process->pid, &info, WEXITED | WNOHANG)
              == 0
         && coffer_now_ns () < until) {
    if (info.si_pid == 0)
      nanosleep (&(struct timespec){ 0, NS_PER_MS }, NULL);
    info.si_pid = 0;
  }
}

void
process_end (struct process *process, int grace_ms, struct process_end *end)
{
  memset (end, 0, sizeof *end);
  if (process->channel >= 0)
    shutdown (process->channel, SHUT_RDWR);
  if (process->pidfd < 0) {
    /* It has not executed, or the table of descriptors is full. */
    if (process->pid > 0) {
      kill (process->pid, SIGKILL);
      waitpid (process->pid, NULL, 0);
    }
    return;
  }
  if (!wait_end (process, grace_ms)) {
    end->stopped = 1;
    syscall (SYS_pidfd_send_signal, process->pidfd, SIGKILL, NULL, 0);
    wait_end (process, REAP_MS);
  }
  kill_group (process);
  reap (process, end);
  reap_group (process);
}

void
process_free (struct process *process)
{
  coffer_fd_close (&process->pidfd);
  coffer_fd_close (&process->channel);
  coffer_fd_close (&process->output);
  coffer_fd_close (&process->lifeline[0]);
  coffer_fd_close (&process->lifeline[1]);
  error_free (process->epitaph);
  free (process);
}
