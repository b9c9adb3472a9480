/* SPDX-License-Identifier: Apache-2.0 */
/* See cases.h.  A verdict looks at canaries only. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

/* A setting of the network that its root may change. */
#define TTL "/proc/sys/net/ipv4/ip_default_ttl"

/* ---- verdicts ----------------------------------------------------------- */

/* What nobody in the sandbox could have made up. */
static int
secret_out (struct arena *arena)
{
  return memmem (arena->output, arena->output_size, arena->secret, 32) != NULL;
}

static int
cage_secret_out (struct arena *arena)
{
  return memmem (arena->output, arena->output_size, arena->cage->secret, 32)
         != NULL;
}

static int
changed (const char *path)
{
  char text[64];

  file_get (path, text, sizeof text);
  return strcmp (text, "whole\n") != 0;
}

static int
file_changed (struct arena *arena)
{
  (void) arena;
  return changed ("/srv/write");
}

static int
shown_changed (struct arena *arena)
{
  (void) arena;
  return changed ("/srv/ro/file");
}

static int
shown_mode_changed (struct arena *arena)
{
  struct stat st;

  (void) arena;
  return stat ("/srv/ro/file", &st) == -1 || (st.st_mode & 07777) != 0666;
}

static int
shown_linked (struct arena *arena)
{
  struct stat st;

  (void) arena;
  return stat ("/srv/ro/file", &st) == -1 || st.st_nlink > 1;
}

/* By somebody who is not the one that looks. */
static int
shown_locked (struct arena *arena)
{
  int fd = open ("/srv/ro/file", O_RDONLY | O_CLOEXEC), taken;

  (void) arena;
  taken = flock (fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK;
  close (fd);
  return taken;
}

/* Whether something in the shared folder is of a kind that nobody may leave
 * there. */
static int
left_in_shared (mode_t bits, mode_t kind)
{
  DIR *dir = opendir ("/srv/rw");
  struct dirent *entry;
  struct stat st;
  int found = 0;

  while (dir != NULL && (entry = readdir (dir)) != NULL)
    if (fstatat (dirfd (dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
        && entry->d_name[0] != '.')
      found |= (st.st_mode & bits) != 0 || (st.st_mode & S_IFMT) == kind;
  if (dir != NULL)
    closedir (dir);
  return found;
}

static int
setuid_left (struct arena *arena)
{
  (void) arena;
  return left_in_shared (S_ISUID | S_ISGID, 0);
}

static int
device_left (struct arena *arena)
{
  (void) arena;
  return left_in_shared (0, S_IFCHR);
}

static int
link_left (struct arena *arena)
{
  (void) arena;
  return left_in_shared (0, S_IFLNK);
}

static int
fifo_left (struct arena *arena)
{
  (void) arena;
  return left_in_shared (0, S_IFIFO);
}

static int
core_left (struct arena *arena)
{
  DIR *dir = opendir ("/srv/rw");
  struct dirent *entry;
  int found = 0;

  (void) arena;
  while (dir != NULL && (entry = readdir (dir)) != NULL)
    found |= strncmp (entry->d_name, "core", 4) == 0;
  if (dir != NULL)
    closedir (dir);
  return found;
}

static int
disk_filled (struct arena *arena)
{
  char path[512];
  struct stat st;

  inside_path (arena->payload, "/tmp/fill", path);
  return stat (path, &st) == 0 && st.st_blocks > 16384;
}

static int
many_processes (struct arena *arena)
{
  return processes_count (arena) > 60;
}

static int
has_child (struct arena *arena)
{
  return arena->payload > 0 && child_of (arena->payload) > 0;
}

/* The payload is another program than the one that was begun. */
static int
is_other_program (struct arena *arena)
{
  char path[64], target[256];
  ssize_t n;

  snprintf (path, sizeof path, "/proc/%d/exe", (int) arena->payload);
  n = arena->payload > 0 ? readlink (path, target, sizeof target - 1) : -1;
  target[n > 0 ? n : 0] = '\0';
  return strstr (target, "/attack/setuid") != NULL;
}

/* What was ended may take a moment to be gone; what lives on after it is. */
static int
beats (struct arena *arena)
{
  struct stat before, after;
  int i;

  for (i = 0; i < 60; i++) {
    /* What has ended has nobody else to be waited for. */
    while (waitpid (-1, NULL, WNOHANG) > 0)
      ;
    if (processes_count (arena) == 0)
      return 0;
    usleep (10000);
  }
  if (stat ("/srv/rw/beat", &before) == -1)
    return 0;
  for (i = 0; i < 100; i++) {
    usleep (10000);
    if (stat ("/srv/rw/beat", &after) == 0
        && after.st_size > before.st_size)
      return 1;
  }
  return 0;
}

/* Dead, or with a signal on its way. */
static int
victim_dead (struct arena *arena)
{
  char path[64], text[4096], *at;

  snprintf (path, sizeof path, "/proc/%d/status", (int) arena->victim);
  return file_get (path, text, sizeof text) == 0
         || strstr (text, "State:\tZ") != NULL
         || (at = strstr (text, "ShdPnd:")) == NULL
         || strtoull (at + 7, NULL, 16) != 0;
}

static int
victim_limited (struct arena *arena)
{
  struct rlimit limit = { 0, 0 };

  if (prlimit (arena->victim, RLIMIT_NOFILE, NULL, &limit) == 0)
    return limit.rlim_cur == 7;
  return 0;
}

static int
left_open_used (struct arena *arena)
{
  char bytes[64];

  return read (arena->left_open[0], bytes, sizeof bytes) > 0;
}

static int
typed (struct arena *arena)
{
  char bytes[64];

  return read (arena->terminal, bytes, sizeof bytes) > 0;
}

/* A line of /proc/PID/status. */
static long
status_number (pid_t pid, const char *key)
{
  char path[64], text[4096], *at;

  snprintf (path, sizeof path, "/proc/%d/status", (int) pid);
  if (pid <= 0 || file_get (path, text, sizeof text) == 0
      || (at = strstr (text, key)) == NULL)
    return -1;
  return strtol (at + strlen (key), NULL, 10);
}

static int
init_traced (struct arena *arena)
{
  return status_number (arena->init, "TracerPid:") > 0;
}

/* Field 19 of its stat: it is behind all others. */
static int
init_made_nice (struct arena *arena)
{
  char path[64], text[512], *at;
  long nice = 0;

  snprintf (path, sizeof path, "/proc/%d/stat", (int) arena->init);
  return arena->init > 0 && file_get (path, text, sizeof text) > 0
         && (at = strrchr (text, ')')) != NULL
         && sscanf (at, ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %*s %*s %*s %ld", &nice)
              == 1
         && nice == 19;
}

static int
is_root (struct arena *arena)
{
  return status_number (arena->payload, "\nUid:") == 0;
}

static int
locked (struct arena *arena)
{
  return status_number (arena->payload, "VmLck:") > 0;
}

static int
memory_taken (struct arena *arena)
{
  return status_number (arena->payload, "VmRSS:") > 80 * 1024;
}

/* How many descriptors of such a thing the payload has. */
static int
holds (struct arena *arena, const char *what)
{
  char path[64], target[256];
  struct dirent *entry;
  int found = 0;
  ssize_t n;
  DIR *dir;

  snprintf (path, sizeof path, "/proc/%d/fd", (int) arena->payload);
  dir = arena->payload > 0 ? opendir (path) : NULL;
  while (dir != NULL && (entry = readdir (dir)) != NULL) {
    n = readlinkat (dirfd (dir), entry->d_name, target, sizeof target - 1);
    if (n <= 0)
      continue;
    target[n] = '\0';
    found += strstr (target, what) != NULL;
  }
  if (dir != NULL)
    closedir (dir);
  return found;
}

static int
holds_ring (struct arena *arena)
{
  return holds (arena, "[io_uring]") > 0;
}

static int
holds_perf (struct arena *arena)
{
  return holds (arena, "[perf_event]") > 0;
}

static int
holds_userfault (struct arena *arena)
{
  return holds (arena, "[userfaultfd]") > 0;
}

static int
holds_secretmem (struct arena *arena)
{
  return holds (arena, "secretmem") > 0;
}

static int
holds_listener (struct arena *arena)
{
  return holds (arena, "seccomp notify") > 0;
}

static int
holds_file_of_none (struct arena *arena)
{
  return holds (arena, "/memfd:fallen") > 0;
}

static int
holds_watch (struct arena *arena)
{
  return holds (arena, "inotify") > 0;
}

static int
holds_process (struct arena *arena)
{
  return holds (arena, "pidfd") > 0;
}

/* More than the few that a command begins with. */
static int
holds_pipes (struct arena *arena)
{
  return holds (arena, "pipe:[") > 40;
}

/* Sockets of which a copy says so: each is asked. */
static int
holds_socket (struct arena *arena, int (*is) (int domain, int type))
{
  int pidfd = arena->payload > 0
    ? (int) syscall (SYS_pidfd_open, arena->payload, 0) : -1;
  int found = 0, fd, copy, domain, type;
  socklen_t size = sizeof domain;

  for (fd = 3; pidfd >= 0 && fd < 64; fd++) {
    copy = (int) syscall (SYS_pidfd_getfd, pidfd, fd, 0);
    if (copy >= 0
        && getsockopt (copy, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0
        && getsockopt (copy, SOL_SOCKET, SO_TYPE, &type, &size) == 0)
      found |= is (domain, type);
    if (copy >= 0)
      close (copy);
  }
  if (pidfd >= 0)
    close (pidfd);
  return found;
}

/* Of a family that no sandbox has. */
static int
socket_strange (int domain, int type)
{
  (void) type;
  return domain != AF_UNIX && domain != AF_INET && domain != AF_INET6
         && domain != AF_NETLINK;
}

static int
socket_raw (int domain, int type)
{
  return domain != AF_NETLINK && type == SOCK_RAW;
}

/* The connection to its maker, of which a copy may be left, is none of these. */
static int
socket_inet (int domain, int type)
{
  (void) type;
  return domain == AF_INET;
}

static int
holds_family (struct arena *arena)
{
  return holds_socket (arena, socket_strange);
}

static int
holds_raw (struct arena *arena)
{
  return holds_socket (arena, socket_raw);
}

static int
holds_inet (struct arena *arena)
{
  return holds_socket (arena, socket_inet);
}

static int
unrandom (struct arena *arena)
{
  char path[64], text[64];

  snprintf (path, sizeof path, "/proc/%d/personality", (int) arena->payload);
  return arena->payload > 0 && file_get (path, text, sizeof text) > 0
         && (strtoul (text, NULL, 16) & 0x40000) != 0;
}

static int
in_another_user_namespace (const struct arena *arena, pid_t pid)
{
  const char *fact = strstr (arena->facts, "namespace.user ok ");
  struct stat st;
  char path[64];

  snprintf (path, sizeof path, "/proc/%d/ns/user", (int) pid);
  return fact != NULL && pid > 0 && stat (path, &st) == 0
         && st.st_ino != strtoull (fact + 18, NULL, 10);
}

static int
other_user_namespace (struct arena *arena)
{
  return in_another_user_namespace (arena, arena->payload);
}

static int
child_in_user_namespace (struct arena *arena)
{
  return arena->payload > 0
         && in_another_user_namespace (arena, child_of (arena->payload));
}

static int
mounted (struct arena *arena)
{
  char path[64], text[65536];

  snprintf (path, sizeof path, "/proc/%d/mounts", (int) arena->payload);
  return file_get (path, text, sizeof text) > 0
         && strstr (text, "fallen ") != NULL;
}

static int
reached_tcp (struct arena *arena)
{
  return accepted (arena->tcp);
}

static int
reached_udp (struct arena *arena)
{
  return accepted (arena->udp);
}

static int
reached_abstract (struct arena *arena)
{
  return accepted (arena->abstract);
}

static int
reached_local (struct arena *arena)
{
  return accepted (arena->local);
}

static int
mtu_changed (struct arena *arena)
{
  struct ifreq request = { .ifr_name = "lo" };
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int r = ioctl (fd, SIOCGIFMTU, &request);

  (void) arena;
  close (fd);
  return r == 0 && request.ifr_mtu == 1400;
}

static int
name_changed (struct arena *arena)
{
  struct utsname names;

  return uname (&names) == 0
         && strcmp (names.nodename, arena->cage->secret) != 0;
}

static int
sysctl_changed (struct arena *arena)
{
  char text[16];

  (void) arena;
  return file_get (TTL, text, sizeof text) > 0 && atoi (text) == 33;
}

static int
out_of_group (struct arena *arena)
{
  char path[64], text[4096];

  snprintf (path, sizeof path, "/proc/%d/cgroup", (int) arena->payload);
  return arena->payload > 0 && file_get (path, text, sizeof text) > 0
         && strstr (text, "/outside\n") != NULL;
}

/* ---- arguments ---------------------------------------------------------- */

#define ARGUMENTS(name, ...)                                                  \
  static void arguments_##name (const struct arena *arena,                    \
                                char args[4][128])                            \
  {                                                                           \
    const char *const given[] = { __VA_ARGS__ };                              \
    size_t i;                                                                 \
    (void) arena;                                                             \
    for (i = 0; i < sizeof given / sizeof given[0]; i++)                      \
      snprintf (args[i], 128, "%s", given[i]);                                \
  }

ARGUMENTS (none, "")
ARGUMENTS (read, "/srv/secret")
ARGUMENTS (read_root, "/srv/secret-of-root")
ARGUMENTS (read_group, "/srv/secret-of-group")
ARGUMENTS (read_above, "/../srv/secret")
ARGUMENTS (symlink, "/srv/rw/link", "/srv/secret")
ARGUMENTS (hostname, "/proc/sys/kernel/hostname")
ARGUMENTS (write, "/srv/write")
ARGUMENTS (shown, "/srv/ro/file")
ARGUMENTS (remount, "/srv/ro", "/srv/ro/file")
ARGUMENTS (link, "/srv/ro/file", "/srv/rw/linked")
ARGUMENTS (watch, "/srv/ro")
ARGUMENTS (shared, "/srv/rw/left")
ARGUMENTS (setuid_program, "/opt/attack/setuid", "/srv/secret-of-root")
ARGUMENTS (disk, "/tmp/fill", "12")
ARGUMENTS (other_program, "/opt/attack/setuid", "/srv/rw/beat")
ARGUMENTS (fork, "100")
ARGUMENTS (one, "1")
ARGUMENTS (beat, "/srv/rw/beat")
ARGUMENTS (memory, "96")
ARGUMENTS (key, "canary")
ARGUMENTS (keys, "/proc/keys")
ARGUMENTS (cgroup, "/proc/self/cgroup")
ARGUMENTS (mount, "/srv/rw")
ARGUMENTS (sysctl, TTL)
ARGUMENTS (tcp, arena->port)
ARGUMENTS (udp, arena->udp_port)
ARGUMENTS (abstract, "coffer-canary")
ARGUMENTS (local, "/srv/socket")

static void
arguments_victim (const struct arena *arena, char args[4][128])
{
  snprintf (args[0], 128, "%d", (int) arena->victim);
  snprintf (args[1], 128, "%lu", (unsigned long) arena->victim_memory);
  snprintf (args[2], 128, "32");
}

static void
arguments_environment (const struct arena *arena, char args[4][128])
{
  snprintf (args[0], 128, "/proc/%d/environ", (int) arena->victim);
}

static void
arguments_shm (const struct arena *arena, char args[4][128])
{
  (void) arena;
  snprintf (args[0], 128, "%d", SHM_KEY);
  snprintf (args[1], 128, "32");
}

static void
arguments_escape (const struct arena *arena, char args[4][128])
{
  snprintf (args[0], 128, "/sys/fs/cgroup/pids/%.80s/outside/tasks",
            arena->cage->cgroup);
}

/* ---- what a machine may lack -------------------------------------------- */

static long
number_of (const char *path, long otherwise)
{
  char text[64];

  return file_get (path, text, sizeof text) > 0 ? strtol (text, NULL, 10)
                                                : otherwise;
}

static int
can_type (void)
{
  return number_of ("/proc/sys/dev/tty/legacy_tiocsti", 1) == 1;
}

static int
can_dump (void)
{
  struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
  char pattern[128];

  return file_get ("/proc/sys/kernel/core_pattern", pattern, sizeof pattern)
           > 0
         && strncmp (pattern, "core", 4) == 0
         && setrlimit (RLIMIT_CORE, &limit) == 0;
}

static int
can_measure (void)
{
  return number_of ("/proc/sys/kernel/perf_event_paranoid", 9) <= 2;
}

static int
can_ring (void)
{
  return number_of ("/proc/sys/kernel/io_uring_disabled", 0) == 0;
}

static int
can_keep_secret (void)
{
  int fd = (int) syscall (447 /* memfd_secret */, 0);

  if (fd >= 0)
    close (fd);
  return fd >= 0;
}

static int
can_family (void)
{
  int fd = socket (40 /* AF_VSOCK */, SOCK_STREAM, 0);

  if (fd >= 0)
    close (fd);
  return fd >= 0;
}

/* ---- the table ---------------------------------------------------------- */

/* What is tried has the name of its case, or another (AS). */
#define CASE(name, corpus, flags, args, verdict)                              \
  { name, name, corpus, flags, NULL, NULL, arguments_##args, verdict }
#define CASE_AS(name, attempt, corpus, flags, args, verdict)                  \
  { name, attempt, corpus, flags, NULL, NULL, arguments_##args, verdict }
#define CASE_IF(name, corpus, flags, possible, missing, args, verdict)        \
  { name, name, corpus, flags, possible, missing, arguments_##args, verdict }

const struct attack attacks[] = {
  CASE ("read", "FS01", 0, read, secret_out),
  CASE_AS ("read-root", "read", "FS28", OF_ROOT, read_root, secret_out),
  CASE_AS ("read-group", "read", "ID", OF_ROOT, read_group, secret_out),
  CASE_AS ("read-above", "read", "FS12", 0, read_above, secret_out),
  CASE ("symlink", "FS01", 0, symlink, secret_out),
  CASE ("write", "FS18", 0, write, file_changed),
  CASE_AS ("shown-write", "write", "FS18", 0, shown, shown_changed),
  CASE_AS ("shown-chmod", "chmod", "FS32", 0, shown, shown_mode_changed),
  CASE_AS ("shown-remount", "remount", "FS17", 0, remount, shown_changed),
  CASE_AS ("shown-reopen", "reopen", "FS08", 0, shown, shown_changed),
  CASE_AS ("shown-link", "link", "FS10", 0, link, shown_linked),
  CASE ("setuid-bit", "FS26", 0, shared, setuid_left),
  CASE ("setuid-high", "SB03", 0, shared, setuid_left),
  CASE ("setuid-openat2", "FS26", 0, shared, setuid_left),
  CASE ("whiteout", "FS14", 0, shared, device_left),
  CASE ("whiteout-rename", "FS14", 0, shared, device_left),
  CASE ("setuid-program", "FS26", OF_ROOT, setuid_program, secret_out),
  CASE ("disk", "FS20", 0, disk, disk_filled),
  CASE_AS ("cgroup-leave", "escape", "CG02",
           OF_ROOT | NEEDS_GROUP | LIMITED, escape, out_of_group),
  CASE ("fork", "PR01", LIMITED, fork, many_processes),
  CASE ("survive", "PR04", AFTERWARDS | LIMITED, beat, beats),
  CASE_AS ("outlive", "survive", "PR04", AFTERWARDS | OWNER_DIES | LIMITED,
           beat, beats),
  CASE ("kill", "LL06", 0, victim, victim_dead),
  CASE ("vm-read", "CG09", 0, victim, secret_out),
  CASE ("proc-mem", "CG09", 0, victim, secret_out),
  CASE_AS ("environ", "read", "CR01", 0, environment, secret_out),
  CASE ("prlimit", "PR17", 0, victim, victim_limited),
  CASE ("descriptors", "PR18", 0, none, left_open_used),
  CASE_IF ("tiocsti", "PR21", ON_TERMINAL, can_type,
           "TIOCSTI without a right", none, typed),
  CASE_IF ("tiocsti-high", "PR22", ON_TERMINAL, can_type,
           "TIOCSTI without a right", none, typed),
  CASE ("ptrace-init", "PR12", 0, none, init_traced),
  CASE ("renice", "PR16", 0, none, init_made_nice),
  CASE ("identity", "CG05", OF_ROOT, none, is_root),
  CASE_IF ("core", "CG06", AFTERWARDS | IN_SHARED, can_dump,
           "core dumps into files", none, core_left),
  CASE ("mlock", "ME06", 0, none, locked),
  CASE ("memory", "ME02", LIMITED, memory, memory_taken),
  CASE_IF ("io-uring", "NE12", 0, can_ring, "io_uring", none, holds_ring),
  CASE_IF ("perf", "KS06", 0, can_measure, "perf events of a user", none,
           holds_perf),
  CASE ("userfault", "KS05", 0, none, holds_userfault),
  CASE_IF ("secretmem", "KS08", 0, can_keep_secret, "memfd_secret", none,
           holds_secretmem),
  CASE ("listener", "SB06", 0, none, holds_listener),
  CASE_IF ("family", "NE09", 0, can_family, "sockets of vsock", none,
           holds_family),
  CASE ("keyring", "KS04", 0, key, secret_out),
  CASE ("keyring-32", "SB01", NATIVE_ONLY, key, secret_out),
  CASE_AS ("proc-keys", "read", "KS12", 0, keys, cage_secret_out),
  CASE ("personality", "KS09", 0, none, unrandom),
  CASE ("new-user", "KS10", 0, none, other_user_namespace),
  CASE ("clone3", "SB04", 0, none, child_in_user_namespace),
  CASE ("mount", "FS13", 0, mount, mounted),
  CASE ("tcp", "NE01", 0, tcp, reached_tcp),
  CASE ("udp", "LL04", 0, udp, reached_udp),
  CASE ("abstract", "NE04", 0, abstract, reached_abstract),
  CASE ("pathname", "NE05", 0, local, reached_local),
  CASE ("raw", "NE08", OF_ROOT, none, holds_raw),
  CASE ("mtu", "NE13", OF_ROOT, none, mtu_changed),
  CASE ("links", "NE13", OF_ROOT, none, secret_out),
  CASE ("hostname", "CG10", OF_ROOT, none, name_changed),
  CASE ("sysctl", "CG05", OF_ROOT, sysctl, sysctl_changed),
  CASE ("nodename", "CG10", 0, none, cage_secret_out),
  CASE_AS ("cgroup-name", "read", "CG02", OF_ROOT | NEEDS_GROUP, cgroup,
        cage_secret_out),
  CASE ("shm", "ME05", 0, shm, secret_out),
  CASE_AS ("proc-sys", "read", "CG05", 0, hostname, cage_secret_out),
  /* What an interpreter that is given data has no use for. */
  CASE_AS ("other-program", "setuid-program", "PY09", OF_STRICT,
           other_program, is_other_program),
  CASE_AS ("one-process", "fork", "PR05", OF_STRICT, one, has_child),
  CASE_AS ("socket", "inet", "NE12", OF_STRICT, none, holds_inet),
  CASE ("memfd", "KS08", OF_STRICT, none, holds_file_of_none),
  CASE ("pidfd", "PR12", OF_STRICT, none, holds_process),
  CASE ("pipes", "ME05", OF_STRICT, none, holds_pipes),
  CASE ("watch", "FS34", OF_STRICT, watch, holds_watch),
  CASE ("lock", "KS01", OF_STRICT, shown, shown_locked),
  CASE_AS ("link-left", "symlink", "FS04", OF_STRICT, symlink, link_left),
  CASE ("fifo", "FS16", OF_STRICT, shared, fifo_left),
};

const size_t attacks_count = sizeof attacks / sizeof attacks[0];
