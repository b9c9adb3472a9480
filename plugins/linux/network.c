/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may reach: nothing, the machine's network where the operator
 * allows that, or a list of names through coffer-proxy.
 *
 * The proxy is started here, by the sandbox's maker, when the init has made
 * its listener: from the bytes that were hashed, as nobody else's user where
 * this process may choose, with descriptors for what it is about and nothing
 * besides.  It watches the init by a pidfd, and so needs nobody to end it. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clone.h"
#include "denials.h"
#include "kernel.h"
#include "spawn.h"
#include "target.h"

#define START_NS 5000000000     /* that a proxy may take to be ready */

/* ---- what is asked for ----------------------------------------------------- */

static int32_t
list_check (struct coffer_call *call, const char *const *allow)
{
  struct policy *policy = calloc (1, sizeof *policy);
  int32_t code = COFFER_OK;
  int r;

  if (policy == NULL)
    return coffer_fail_errno (call, ENOMEM, "allow");
  for (; code == COFFER_OK && allow != NULL && *allow != NULL; allow++) {
    r = policy_add (policy, *allow);
    if (r == -2)
      code = fail_with (call, COFFER_LIMIT, "allow: at most %d entries",
                        POLICY_MAX);
    else if (r < 0)
      code = fail_with (call, COFFER_INVALID,
                        "allow: %.200s is not NAME:PORT, *.NAME:PORT or "
                        "ADDRESS:PORT; names beyond ASCII are written xn--…",
                        *allow);
  }
  free (policy);
  return code;
}

int32_t
network_refuse (struct making *making)
{
  const char *network = making->spec->network;
  const char *const *allow = making->spec->allow;

  if (network != NULL && strcmp (network, "allow") == 0) {
    making->network = NETWORK_ALLOW;
    return list_check (making->call, allow);
  }
  if (allow != NULL && allow[0] != NULL)
    return coffer_fail (making->call, COFFER_INVALID,
                        "allow: goes only with network allow");
  if (network == NULL || strcmp (network, "none") == 0)
    return COFFER_OK;
  if (strcmp (network, "host") != 0)
    return fail_with (making->call, COFFER_INVALID,
                      "network: none, host or allow, not %.32s", network);
  making->network = NETWORK_HOST;
  return COFFER_OK;
}

/* Abstract sockets belong to a network, not to a folder, and a session's bus
 * or display takes whoever has its user's id for that user.  Only a Landlock
 * scope keeps them away; root's sandboxes have an id that is nobody's. */
int32_t
network_permit (const struct making *making)
{
  if (making->network != NETWORK_HOST || making->ids.privileged
      || landlock_abi () >= 6)
    return COFFER_OK;
  return coffer_fail (making->call, COFFER_UNAVAILABLE,
                      "network host: this kernel cannot keep the abstract "
                      "sockets of your own programs out of the sandbox's "
                      "reach: Linux 6.12 or newer with Landlock, or --net "
                      "allow");
}

/* ---- the environment ------------------------------------------------------- */

/* All speak HTTP to it: many a library cannot go on at all where `all_proxy`
 * names a protocol that it lacks. */
void
network_env (struct coffer_strings *env, const char *const *given)
{
  static const char *const names[] = { "http_proxy", "https_proxy",
                                       "all_proxy", "HTTP_PROXY",
                                       "HTTPS_PROXY", "ALL_PROXY" };
  static const char own[] = "localhost,127.0.0.1,::1";
  size_t i;

  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    coffer_strings_printf (env, "%s=http://127.0.0.1:%d", names[i],
                           INIT_PROXY_PORT);
  coffer_strings_printf (env, "no_proxy=%s", own);
  coffer_strings_printf (env, "NO_PROXY=%s", own);
  for (; given != NULL && *given != NULL; given++)
    coffer_strings_add (env, *given);
}

/* ---- what it is given ------------------------------------------------------ */

static int
list_make (const char *const *allow)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };

  for (; allow != NULL && *allow != NULL; allow++)
    coffer_buffer_add (&text, *allow, strlen (*allow) + 1);
  if (text.failed) {
    errno = ENOMEM;
    return -1;
  }
  return coffer_memfd_sealed ("coffer-proxy list", text.data ? text.data : "",
                              text.size);
}

/* Where it notes what it refused: found again by other processes where the
 * sandbox is. */
static int
denials_make (struct making *making)
{
  int fd = making->folder >= 0
    ? openat (making->folder, "denied",
              O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
    : memfd_create ("coffer-proxy denied", MFD_CLOEXEC);

  if (fd >= 0 && ftruncate (fd, sizeof (struct denials)) == -1)
    coffer_fd_close (&fd);
  return fd;
}

/* The listener that came with READY: a listening socket, and of 127.0.0.1. */
int32_t
network_listener_take (struct making *making, struct reply *reply)
{
  struct sockaddr_in here = { 0 };
  socklen_t size = sizeof here, word = sizeof (int);
  int *fd = &reply->fd, listens = 0;

  if (making->network != NETWORK_ALLOW || reply->header.type != INIT_READY)
    return COFFER_OK;
  if (*fd < 0
      || getsockopt (*fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &word) == -1
      || !listens
      || getsockname (*fd, (struct sockaddr *) (void *) &here, &size) == -1
      || here.sin_family != AF_INET || ntohs (here.sin_port) != INIT_PROXY_PORT
      || here.sin_addr.s_addr != htonl (INADDR_LOOPBACK))
    return coffer_fail (making->call, COFFER_INTERNAL,
                        "the sandbox could not be set up: it has no place "
                        "for its proxy");
  making->proxy_listener = coffer_fd_steal (fd);
  return COFFER_OK;
}

/* ---- the start ------------------------------------------------------------- */

/* "+ …" or "- …", or nothing when it died. */
static int32_t
report_take (struct making *making, int fd, char *line, size_t size)
{
  const int64_t start = coffer_now_ns () + START_NS;
  const int64_t until = start < making->call->deadline_ns
    ? start : making->call->deadline_ns;
  ssize_t n = -1;
  int r = coffer_wait_fd (fd, POLLIN, until, making->call->cancel_fd);

  if (r <= 0)
    return coffer_fail_errno (making->call, errno, "waiting for coffer-proxy");
  do
    n = read (fd, line, size - 1);
  while (n < 0 && errno == EINTR);
  line[n > 0 ? n : 0] = '\0';
  line[strcspn (line, "\n")] = '\0';
  if (line[0] == '+')
    return COFFER_OK;
  return fail_with (making->call, COFFER_UNAVAILABLE,
                    "the sandbox could not be set up: coffer-proxy: %s",
                    line[0] == '-' ? line + 2 : "it ended without a word");
}

/* As a user of its own where this process may choose, and not the sandbox's,
 * which what is inside has as well. */
static int32_t
proxy_start_as (struct making *making, struct aide *proxy)
{
  const char *why = "";
  struct ids ids;
  pid_t pid;

  if (ids_take (making->self, &ids, &why) == -1)
    return coffer_fail (making->call, COFFER_UNAVAILABLE, why);
  proxy->privileged = ids.privileged;
  proxy->uid = ids.uid;
  proxy->gid = ids.gid;
  pid = aide_start (proxy, &making->proxy);
  if (pid < 0) {
    ids_give (making->self, &ids);
    return spawn_refused (making, proxy->step, errno);
  }
  ids_note (making->self, &ids, pid);
  return COFFER_OK;
}

static int32_t
proxy_run (struct making *making, int program, int list, char *line,
           size_t size)
{
  static const char *const argv[] = { "coffer-proxy", NULL };
  coffer_autoclose int report = -1, theirs = -1;
  int32_t code;
  int ends[2];

  if (pipe2 (ends, O_CLOEXEC) == -1)
    return coffer_fail_errno (making->call, errno, "pipe");
  report = ends[0];
  theirs = ends[1];
  {
    const int fds[] = { list, theirs, theirs, making->proxy_listener,
                        making->pidfd, making->denials };
    struct aide proxy = { .argv = argv, .program = program, .fds = fds,
                           .n_fds = sizeof fds / sizeof fds[0] };

    code = proxy_start_as (making, &proxy);
  }
  if (code != COFFER_OK)
    return code;
  coffer_fd_close (&theirs);
  return report_take (making, report, line, size);
}

static int32_t
proxy_facts (struct making *making, const char *line)
{
  const char *const *allow = making->spec->allow;
  char value[96];
  int32_t code;
  size_t n = 0;

  while (allow != NULL && allow[n] != NULL)
    n++;
  snprintf (value, sizeof value, "a list of %zu, through 127.0.0.1:%d", n,
            INIT_PROXY_PORT);
  code = fact_emit (making->call, "network", "ok", value,
                    "the socket that coffer-proxy has of it", NULL);
  if (code != COFFER_OK)
    return code;
  return fact_emit (making->call, "proxy",
                    strstr (line, "no Landlock") ? "degraded" : "ok", line,
                    "read back by itself from /proc/self/status, and by what "
                    "it can no longer open", NULL);
}

static int32_t
proxy_start (struct making *making)
{
  coffer_autoclose int program = -1, list = -1;
  char line[512];
  int32_t code;

  program = coffer_file (making->call, "coffer-proxy");
  if (program < 0)
    return coffer_fail (making->call, COFFER_UNAVAILABLE,
                        "network allow: coffer-proxy is not there, or not "
                        "what the manifest was sealed for: `coffer provider "
                        "verify linux`");
  list = list_make (making->spec->allow);
  making->denials = denials_make (making);
  if (list < 0 || making->denials < 0)
    return coffer_fail_errno (making->call, errno, "coffer-proxy's files");
  code = proxy_run (making, program, list, line, sizeof line);
  return code == COFFER_OK ? proxy_facts (making, line + 2) : code;
}

int32_t
network_begin (struct making *making)
{
  int32_t code = COFFER_OK;

  if (making->network == NETWORK_ALLOW)
    code = proxy_start (making);
  else if (making->network == NETWORK_HOST)
    code = fact_emit (making->call, "network", "off",
                      "the machine's, unfiltered: what listens on its "
                      "loopback is within reach",
                      "inode of /proc/self/ns/net", NULL);
  if (code == COFFER_OK && making->network == NETWORK_HOST)
    coffer_log (making->call, COFFER_LOG_WARNING,
                "the sandbox is in this machine's network: it reaches all "
                "that listens here, on the loopback too");
  return code;
}

void
proxy_end (int *pidfd)
{
  siginfo_t info;

  if (*pidfd < 0)
    return;
  syscall (SYS_pidfd_send_signal, *pidfd, SIGKILL, NULL, 0);
  waitid ((idtype_t) P_PIDFD, (id_t) *pidfd, &info, WEXITED | __WALL);
  coffer_fd_close (pidfd);
}

/* ---- what it refused ------------------------------------------------------- */

static int32_t
denial_emit (struct coffer_call *call, const char *host, uint16_t port,
             const char *why, uint32_t count)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };
  const size_t size = strnlen (host, DENIAL_HOST_MAX);
  const int v6 = memchr (host, ':', size) != NULL;

  /* As --allow takes it: ::1:80 would be another address. */
  coffer_buffer_add_string (&text, v6 ? "[" : "");
  coffer_buffer_add_escaped (&text, host, size);
  coffer_buffer_add_string (&text, v6 ? "]" : "");
  if (port != 0)
    coffer_buffer_printf (&text, ":%u", port);
  coffer_buffer_printf (&text, " (%s", why);
  if (count > 1)
    coffer_buffer_printf (&text, ", %u times", count);
  coffer_buffer_add_string (&text, ")");
  if (text.failed)
    return COFFER_OK;
  return fact_emit (call, "network.denied", "off", text.data,
                    "refused by coffer-proxy", NULL);
}

static int32_t
denials_emit (struct coffer_call *call, const struct denials *denials,
              int64_t since_ns)
{
  const struct denial *place;
  int32_t code = COFFER_OK;
  uint32_t i;

  for (i = 0; code == COFFER_OK && i < denials->count && i < DENIALS_MAX;
       i++) {
    place = &denials->places[i];
    if (place->last_ns >= since_ns)
      code = denial_emit (call, place->host, place->port,
                          place->reason == DENIAL_ADDRESS
                            ? "leads to no public address"
                            : "not in the list", place->count);
  }
  if (code == COFFER_OK && denials->others != 0
      && denials->others_ns >= since_ns)
    code = denial_emit (call, "others", 0, "not in the list",
                        denials->others);
  return code;
}

int32_t
network_denied (struct linux_provider *self, struct coffer_call *call,
                const char *id, int64_t since_ns)
{
  struct sandbox *sb = sandbox_find (self, id);
  coffer_autoclose int folder = -1, fd = -1;
  struct denials *denials = malloc (sizeof *denials);
  int32_t code = COFFER_OK;

  if (sb != NULL && sb->denials >= 0)
    fd = fcntl (sb->denials, F_DUPFD_CLOEXEC, 3);
  sandbox_unref (self, sb);
  if (fd < 0 && self->runtime >= 0)
    folder = openat (self->runtime, id,
                     O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder >= 0)
    fd = openat (folder, "denied", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (denials != NULL && fd >= 0
      && pread (fd, denials, sizeof *denials, 0) == (ssize_t) sizeof *denials)
    code = denials_emit (call, denials, since_ns);
  free (denials);
  return code;
}
