/* SPDX-License-Identifier: Apache-2.0 */
/* Canaries around a hostile module. */

#include "config.h"

#include "harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "hostile-world.h"

static void
make_key (struct world *world)
{
  unsigned char bytes[12];
  const char *path = harness_path (world->dir, "ssh/id_ed25519");
  int fd;
  size_t i;

  assert_int_equal (getrandom (bytes, sizeof bytes, 0), sizeof bytes);
  strcpy (world->key, "PRIVATE-KEY-");
  for (i = 0; i < sizeof bytes; i++)
    sprintf (world->key + 12 + 2 * i, "%02x", bytes[i]);
  memcpy (world->memory, world->key, sizeof world->memory);
  assert_int_equal (mkdir (harness_path (world->dir, "ssh"), 0700), 0);
  fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, world->key, strlen (world->key)),
                    (int) strlen (world->key));
  close (fd);
}

/* -1 where this machine has no such thing. */
static int
listen_at (int type, const void *address, socklen_t size, int *port)
{
  struct sockaddr_storage got;
  socklen_t got_size = sizeof got;
  int fd = socket (((const struct sockaddr *) address)->sa_family,
                   type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

  if (fd < 0)
    return -1;
  if (bind (fd, address, size) < 0
      || (type == SOCK_STREAM && listen (fd, 8) < 0)) {
    close (fd);
    return -1;
  }
  getsockname (fd, (struct sockaddr *) &got, &got_size);
  if (port)                     /* at the same place in both families */
    *port = ntohs (((struct sockaddr_in *) &got)->sin_port);
  return fd;
}

static void
make_listeners (struct world *world)
{
  struct sockaddr_in four = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT };
  struct sockaddr_un named = { .sun_family = AF_UNIX },
                     hidden = { .sun_family = AF_UNIX };
  size_t n = strlen (world->key);

  snprintf (named.sun_path, sizeof named.sun_path, "%s/socket", world->dir);
  memcpy (hidden.sun_path + 1, world->key, n);
  snprintf (world->abstract, sizeof world->abstract, "@%s", world->key);
  world->listeners[0] = listen_at (SOCK_STREAM, &four, sizeof four,
                                   &world->inet_port);
  world->listeners[1] = listen_at (SOCK_STREAM, &six, sizeof six,
                                   &world->inet6_port);
  world->listeners[2] = listen_at (SOCK_DGRAM, &four, sizeof four,
                                   &world->udp_port);
  world->listeners[3] = listen_at (SOCK_STREAM, &named, sizeof named, NULL);
  world->listeners[4]
    = listen_at (SOCK_STREAM, &hidden,
                 (socklen_t) (offsetof (struct sockaddr_un, sun_path) + 1 + n),
                 NULL);
  assert_true (world->listeners[3] >= 0);
}

void
world_init (struct world *world)
{
  void *dir;
  sigset_t set;
  int fd;

  memset (world, 0, sizeof *world);
  assert_int_equal (harness_folder_new (&dir), 0);
  world->dir = dir;
  make_key (world);
  make_listeners (world);
  assert_int_equal (mkdir (harness_path (world->dir, "empty"), 0777), 0);
  assert_int_equal (chmod (harness_path (world->dir, "empty"), 0777), 0);
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  sigemptyset (&set);
  sigaddset (&set, SIGURG);
  sigprocmask (SIG_BLOCK, &set, NULL);
  world->victim = fork ();
  if (world->victim == 0)
    for (;;)
      pause ();
  world->real_stderr = fcntl (2, F_DUPFD_CLOEXEC, 3);
  fd = memfd_create ("stderr", MFD_CLOEXEC);
  assert_true (fd >= 0 && fcntl (fd, F_SETFL, O_APPEND) == 0);
  world->log = fd;
  assert_int_equal (dup2 (fd, 2), 2);
  world->descriptors = world_open_descriptors ();
}

void
world_fini (struct world *world)
{
  void *dir = world->dir;
  int i;

  dup2 (world->real_stderr, 2);
  close (world->real_stderr);
  close (world->log);
  for (i = 0; i < WORLD_LISTENERS; i++)
    coffer_fd_close (&world->listeners[i]);
  kill (world->victim, SIGKILL);
  waitpid (world->victim, NULL, 0);
  harness_folder_free (&dir);
}

const char *
world_expand (const struct world *world, const char *word)
{
  static char out[512];
  char ports[3][8], victim[16], memory[32];
  const struct {
    const char *name, *value;
  } table[] = {
    { "{ssh}", harness_path (world->dir, "ssh/id_ed25519") },
    { "{new}", harness_path (world->dir, "empty/new") },
    { "{link}", harness_path (world->dir, "empty/link") },
    { "{unix}", harness_path (world->dir, "socket") },
    { "{abstract}", world->abstract }, { "{inet}", ports[0] },
    { "{inet6}", ports[1] }, { "{udp}", ports[2] }, { "{victim}", victim },
    { "{memory}", memory }
  };
  const char *at = strchr (word, '{');
  size_t i;

  snprintf (ports[0], sizeof ports[0], "%d", world->inet_port);
  snprintf (ports[1], sizeof ports[1], "%d", world->inet6_port);
  snprintf (ports[2], sizeof ports[2], "%d", world->udp_port);
  snprintf (victim, sizeof victim, "%d", (int) world->victim);
  snprintf (memory, sizeof memory, "%p", (const void *) world->memory);
  for (i = 0; at && i < sizeof table / sizeof table[0]; i++)
    if (strncmp (at, table[i].name, strlen (table[i].name)) == 0) {
      snprintf (out, sizeof out, "%.*s%s%s", (int) (at - word), word,
                table[i].value, at + strlen (table[i].name));
      return out;
    }
  return word;
}

static int
is_pending (int number)
{
  sigset_t set;

  return sigpending (&set) == 0 && sigismember (&set, number) == 1;
}

/* Its state, "S", and its signals that wait. */
static int
victim_is_well (const struct world *world)
{
  auto_free char *path = text_printf ("/proc/%d/stat", (int) world->victim);
  FILE *file = fopen (path, "re");
  char state = '?';

  if (!file || fscanf (file, "%*d %*s %c", &state) != 1)
    state = '?';
  if (file)
    fclose (file);
  return state == 'S';
}

static int
folder_is_empty (const char *path)
{
  DIR *dir = opendir (path);
  int n = 0;

  while (dir && readdir (dir))
    n++;
  if (dir)
    closedir (dir);
  return n == 2;
}

const char *
world_touched (struct world *world)
{
  static const char *const kinds[WORLD_LISTENERS] = {
    "a connection (inet)", "a connection (inet6)", "a datagram",
    "a connection (unix)", "a connection (abstract)"
  };
  struct pollfd p[WORLD_LISTENERS];
  int i;

  for (i = 0; i < WORLD_LISTENERS; i++)
    p[i] = (struct pollfd){ .fd = world->listeners[i], .events = POLLIN };
  if (poll (p, WORLD_LISTENERS, 0) > 0)
    for (i = 0; i < WORLD_LISTENERS; i++)
      if (p[i].revents)
        return kinds[i];
  if (strcmp (world->memory, world->key) != 0)
    return "this process's memory";
  if (is_pending (SIGURG))
    return "this process got a signal";
  if (!victim_is_well (world))
    return "another process";
  if (!folder_is_empty (harness_path (world->dir, "empty")))
    return "a file was made";
  return NULL;
}

void
world_begin (struct world *world)
{
  assert_int_equal (ftruncate (world->log, 0), 0);
}

char *
world_log (struct world *world, size_t *size)
{
  struct stat st;
  char *bytes;

  assert_int_equal (fstat (world->log, &st), 0);
  bytes = malloc ((size_t) st.st_size + 1);
  assert_non_null (bytes);
  assert_int_equal (pread (world->log, bytes, (size_t) st.st_size, 0),
                    st.st_size);
  bytes[st.st_size] = '\0';
  *size = (size_t) st.st_size;
  return bytes;
}

char *
world_joined_log (struct world *world)
{
  size_t size;
  auto_free char *log = world_log (world, &size);
  char *joined = calloc (1, size + 1), *line, *at, *rest = log;

  while ((line = strsep (&rest, "\n"))) {
    at = strstr (line, ": provider: ");
    at = at ? strstr (at + 12, ": ") : NULL;
    if (at)
      strcat (joined, at + 2);
  }
  return joined;
}

static int
parent_of (const char *pid)
{
  auto_free char *path = text_printf ("/proc/%s/stat", pid);
  FILE *file = *pid >= '0' && *pid <= '9' ? fopen (path, "re") : NULL;
  int parent = 0;

  if (file && fscanf (file, "%*d %*[^)]) %*c %d", &parent) != 1)
    parent = 0;
  if (file)
    fclose (file);
  return parent;
}

int
world_children (void)
{
  DIR *proc = opendir ("/proc");
  struct dirent *entry;
  int n = 0;

  while ((entry = readdir (proc)))
    n += parent_of (entry->d_name) == getpid ();
  closedir (proc);
  return n;
}

int
world_other_child (const struct world *world, pid_t other)
{
  DIR *proc = opendir ("/proc");
  struct dirent *entry;
  int found = 0, pid;

  while (!found && (entry = readdir (proc))) {
    pid = atoi (entry->d_name);
    if (parent_of (entry->d_name) == getpid () && pid != world->victim
        && pid != other)
      found = pid;
  }
  closedir (proc);
  return found;
}

int
world_reap (const struct world *world, pid_t other)
{
  siginfo_t info = { .si_pid = 0 };

  if (waitid (P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0
      || info.si_pid == 0 || info.si_pid == world->victim
      || info.si_pid == other)
    return 0;
  return waitpid (info.si_pid, NULL, WNOHANG) > 0;
}

int
world_open_descriptors (void)
{
  int i, n = 0;

  for (i = 0; i < 4096; i++)
    n += fcntl (i, F_GETFD) >= 0;
  return n;
}
