/* SPDX-License-Identifier: Apache-2.0 */
/* See arena.h. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "arena.h"

void
secret_new (char secret[33])
{
  unsigned char bytes[16];
  int i;

  if (syscall (SYS_getrandom, bytes, sizeof bytes, 0) != sizeof bytes)
    abort ();
  for (i = 0; i < 16; i++)
    snprintf (secret + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- files -------------------------------------------------------------- */

int
file_put (const char *path, const char *text, mode_t mode)
{
  int fd, ok;

  unlink (path);
  fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0)
    return -1;
  ok = write (fd, text, strlen (text)) == (ssize_t) strlen (text)
       && fchmod (fd, mode) == 0;
  close (fd);
  return ok ? 0 : -1;
}

size_t
file_get (const char *path, char *out, size_t size)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read (fd, out, size - 1);

  if (fd >= 0)
    close (fd);
  out[n > 0 ? n : 0] = '\0';
  return n > 0 ? (size_t) n : 0;
}

int
file_copy (int from, const char *path, mode_t mode)
{
  static char bytes[1 << 20];
  int to = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode), ok;
  ssize_t n = pread (from, bytes, sizeof bytes, 0);

  if (to < 0)
    return -1;
  ok = n > 0 && n < (ssize_t) sizeof bytes && write (to, bytes, (size_t) n) == n
       && fchmod (to, mode) == 0;
  close (to);
  return ok ? 0 : -1;
}

static void
file_fill (const char *path, const char *text)
{
  int fd = open (path, O_WRONLY | O_CLOEXEC);

  if (fd >= 0) {
    (void) !write (fd, text, strlen (text));
    close (fd);
  }
}

static void
folder_empty (const char *path)
{
  char name[512];
  struct dirent *entry;
  DIR *dir = opendir (path);

  while (dir != NULL && (entry = readdir (dir)) != NULL) {
    snprintf (name, sizeof name, "%s/%s", path, entry->d_name);
    if (entry->d_name[0] != '.')
      unlink (name);
  }
  if (dir != NULL)
    closedir (dir);
}

/* /srv is what no sandbox is shown, but for two folders. */
static int
files_reset (struct arena *arena)
{
  char text[64];

  snprintf (text, sizeof text, "%s\n", arena->secret);
  folder_empty ("/srv/rw");
  folder_empty ("/tmp");
  if (file_put ("/srv/secret", text, 0644) == -1
      || file_put ("/srv/secret-of-root", text, 0600) == -1
      || file_put ("/srv/secret-of-group", text, 0640) == -1
      || file_put ("/srv/write", "whole\n", 0666) == -1
      || file_put ("/srv/ro/file", "whole\n", 0666) == -1
      || file_put ("/srv/rw/beat", "", 0666) == -1)
    return -1;
  if (arena->cage->root
      && chown ("/srv/secret-of-group", 0, CAGE_GROUP) == -1)
    return -1;
  return chmod ("/srv/secret-of-group", 0640);
}

/* ---- processes ---------------------------------------------------------- */

static int
stat_parent (const char *name)
{
  char path[300], text[512], *at;
  int parent = -1;

  snprintf (path, sizeof path, "/proc/%s/stat", name);
  if (file_get (path, text, sizeof text) == 0
      || (at = strrchr (text, ')')) == NULL
      || sscanf (at, ") %*c %d", &parent) != 1)
    return -1;
  return parent;
}

static size_t
processes_look (pid_t parent, pid_t but, pid_t *child)
{
  DIR *dir = opendir ("/proc");
  struct dirent *entry;
  size_t count = 0;
  int of;

  *child = 0;
  while (dir != NULL && (entry = readdir (dir)) != NULL) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
      continue;
    of = stat_parent (entry->d_name);
    if (of < 0)
      continue;
    count++;
    if (of == parent && atoi (entry->d_name) != but)
      *child = atoi (entry->d_name);
  }
  if (dir != NULL)
    closedir (dir);
  return count;
}

pid_t
child_but (pid_t parent, pid_t but)
{
  pid_t child;

  processes_look (parent, but, &child);
  return child;
}

pid_t
child_of (pid_t parent)
{
  return child_but (parent, 0);
}

size_t
processes_count (const struct arena *arena)
{
  pid_t none;
  size_t n = processes_look (-1, 0, &none);

  return n - 1 - (arena->victim > 0 && kill (arena->victim, 0) == 0);
}

void
inside_path (pid_t pid, const char *path, char out[512])
{
  snprintf (out, 512, "/proc/%d/root%s", (int) pid, path);
}

/* Its parent goes on when it has its id: who is attacked before has not, and an
 * attack that wins by equal ids would be said to have been held. */
static _Noreturn void
victim_run (const struct arena *arena, unsigned uid, int ready)
{
  if (arena->cage->root
      && (syscall (SYS_setresgid, uid, uid, uid) == -1
          || syscall (SYS_setresuid, uid, uid, uid) == -1))
    _exit (1);
  prctl (PR_SET_DUMPABLE, 1);
  if (arena->environment != NULL)
    memcpy (arena->environment, arena->secret, 32);
  if (write (ready, "", 1) != 1)
    _exit (1);
  close (ready);
  for (;;)
    pause ();
}

int
victim_start (struct arena *arena, unsigned uid)
{
  int ends[2], ready;
  char byte;

  if (pipe2 (ends, O_CLOEXEC) == -1)
    return -1;
  memcpy (arena->victim_memory, arena->secret, 32);
  arena->victim = fork ();
  if (arena->victim == 0)
    victim_run (arena, uid, ends[1]);
  close (ends[1]);
  ready = arena->victim > 0
          && coffer_wait_fd (ends[0], POLLIN,
                             coffer_now_ns () + INT64_C (30000000000), -1) == 1
          && read (ends[0], &byte, 1) == 1;
  close (ends[0]);
  return ready ? 0 : -1;
}

/* ---- sockets, keys, a terminal ------------------------------------------ */

static int
bound (int type, char port[8])
{
  struct sockaddr_in in = { .sin_family = AF_INET };
  socklen_t size = sizeof in;
  int fd = socket (AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

  in.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  if (fd < 0 || bind (fd, (struct sockaddr *) &in, sizeof in) == -1
      || (type == SOCK_STREAM && listen (fd, 16) == -1)
      || getsockname (fd, (struct sockaddr *) &in, &size) == -1)
    return -1;
  snprintf (port, 8, "%d", ntohs (in.sin_port));
  return fd;
}

static int
bound_local (const char *path, int abstract)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  socklen_t size = sizeof un;
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

  snprintf (un.sun_path + abstract, sizeof un.sun_path - 1, "%s", path);
  if (abstract)
    size = (socklen_t) (sizeof (sa_family_t) + 1 + strlen (path));
  if (fd < 0 || bind (fd, (struct sockaddr *) &un, size) == -1
      || listen (fd, 16) == -1)
    return -1;
  return fd;
}

int
accepted (int listener)
{
  int fd, any = 0;
  char bytes[64];

  while ((fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
    close (fd);
    any = 1;
  }
  if (errno == EINVAL || errno == EOPNOTSUPP)   /* UDP */
    while (recv (listener, bytes, sizeof bytes, MSG_DONTWAIT) >= 0)
      any = 1;
  return any;
}

/* The loopback interface has a secret for another name, and a size. */
static int
interface_reset (const struct arena *arena)
{
  struct {
    struct nlmsghdr header;
    struct ifinfomsg info;
    struct rtattr attribute;
    char alias[36];
  } request = { { sizeof request, RTM_SETLINK, NLM_F_REQUEST, 1, 0 },
                { .ifi_family = AF_UNSPEC, .ifi_index = 1 },
                { sizeof (struct rtattr) + 36, IFLA_IFALIAS }, "" };
  struct ifreq mtu = { .ifr_name = "lo" };
  int fd = socket (AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0), r = 0;

  snprintf (request.alias, sizeof request.alias, "%s", arena->secret);
  r |= send (fd, &request, sizeof request, 0) < 0;
  close (fd);
  fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  mtu.ifr_mtu = 65536;
  r |= ioctl (fd, SIOCSIFMTU, &mtu) == -1;
  close (fd);
  return r ? -1 : 0;
}

/* One key whose name is the cage's secret, one that holds this attempt's. */
static int
keys_open (const struct arena *arena)
{
  return syscall (SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0
         || syscall (SYS_add_key, "user", arena->cage->secret, "x", 1,
                     KEY_SPEC_SESSION_KEYRING)
              < 0
    ? -1 : 0;
}

static int
key_reset (const struct arena *arena)
{
  return syscall (SYS_add_key, "user", "canary", arena->secret, 32,
                  KEY_SPEC_SESSION_KEYRING)
           < 0
    ? -1 : 0;
}

static int
terminal_open (struct arena *arena)
{
  struct termios raw;
  char name[64];
  int on = 0, n = 0;

  setsid ();
  arena->master = open ("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (arena->master < 0 || ioctl (arena->master, TIOCSPTLCK, &on) == -1
      || ioctl (arena->master, TIOCGPTN, &n) == -1)
    return -1;
  snprintf (name, sizeof name, "/dev/pts/%d", n);
  arena->terminal = open (name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (arena->terminal < 0 || tcgetattr (arena->terminal, &raw) == -1)
    return -1;
  cfmakeraw (&raw);
  return tcsetattr (arena->terminal, TCSANOW, &raw);
}

static int
shm_reset (struct arena *arena)
{
  char *at;

  if (arena->shm >= 0)
    shmctl (arena->shm, IPC_RMID, NULL);
  arena->shm = shmget (SHM_KEY, 4096, IPC_CREAT | 0666);
  at = arena->shm < 0 ? (char *) -1 : shmat (arena->shm, NULL, 0);
  if (at == (char *) -1)
    return -1;
  memcpy (at, arena->secret, 32);
  return shmdt (at);
}

/* ---- all of it ---------------------------------------------------------- */

int
arena_open (struct arena *arena)
{
  int ends[2];

  arena->shm = -1;
  if (pipe2 (ends, O_CLOEXEC) == -1)
    return -1;
  arena->open_end = ends[0];
  arena->victim_memory = mmap (NULL, 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  arena->tcp = bound (SOCK_STREAM, arena->port);
  arena->udp = bound (SOCK_DGRAM, arena->udp_port);
  arena->local = bound_local ("/srv/socket", 0);
  arena->abstract = bound_local ("coffer-canary", 1);
  if (arena->victim_memory == MAP_FAILED || arena->tcp < 0 || arena->udp < 0
      || arena->local < 0 || arena->abstract < 0
      || chmod ("/srv/socket", 0777) == -1
      || (mkdir ("/srv/ro", 0755) == -1 && errno != EEXIST)
      || (mkdir ("/srv/rw", 0777) == -1 && errno != EEXIST))
    return -1;
  return keys_open (arena) == -1 ? -1 : terminal_open (arena);
}

/* What belongs to a whole namespace only its root can put back. */
static int
namespaces_reset (const struct arena *arena)
{
  if (!arena->cage->root)
    return 0;
  while (umount2 ("/srv/rw", MNT_DETACH) == 0)
    ;
  file_fill ("/proc/sys/net/ipv4/ip_default_ttl", "64");
  return sethostname (arena->cage->secret, 32) == -1
         || interface_reset (arena) == -1
    ? -1 : 0;
}

static int
left_open_reset (struct arena *arena)
{
  if (pipe2 (arena->left_open, O_CLOEXEC | O_NONBLOCK) == -1)
    return -1;
  return dup2 (arena->left_open[1], LEFT_OPEN) < 0 ? -1 : 0;
}

int
arena_reset (struct arena *arena)
{
  char byte[64];

  secret_new (arena->secret);
  arena->output_size = 0;
  arena->init = arena->payload = arena->victim = 0;
  while (read (arena->terminal, byte, sizeof byte) > 0)
    ;
  accepted (arena->tcp);
  accepted (arena->udp);
  accepted (arena->local);
  accepted (arena->abstract);
  return namespaces_reset (arena) == -1 || files_reset (arena) == -1
         || key_reset (arena) == -1 || shm_reset (arena) == -1
         || left_open_reset (arena) == -1
    ? -1 : 0;
}

/* All but what waits to be the next sandbox: a child of this process. */
static void
others_end (void)
{
  DIR *dir = opendir ("/proc");
  struct dirent *entry;
  char path[300], comm[32];
  pid_t pid;

  while (dir != NULL && (entry = readdir (dir)) != NULL) {
    pid = atoi (entry->d_name);
    snprintf (path, sizeof path, "/proc/%s/comm", entry->d_name);
    if (pid > 1
        && (stat_parent (entry->d_name) != getpid ()
            || file_get (path, comm, sizeof comm) == 0
            || strcmp (comm, "coffer-init\n") != 0))
      kill (pid, SIGKILL);
  }
  if (dir != NULL)
    closedir (dir);
  while (waitpid (-1, NULL, __WALL | WNOHANG) > 0)
    ;
}

void
arena_clear (struct arena *arena)
{
  close (arena->left_open[0]);
  close (arena->left_open[1]);
  close (LEFT_OPEN);
  if (arena->spares) {
    others_end ();
    return;
  }
  /* The first process of a cage is not meant by this. */
  kill (-1, SIGKILL);
  while (waitpid (-1, NULL, __WALL) > 0)
    ;
}
