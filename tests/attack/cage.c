/* SPDX-License-Identifier: Apache-2.0 */
/* See cage.h. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage.h"

/* Root of a cage is nobody outside; beyond what anything else uses. */
#define FIRST_ID 0x6f000000u
#define IDS 60000u

static const char *const controllers[] = { "memory", "pids", "cpu" };

static int
fill (const char *path, const char *text)
{
  int fd = open (path, O_WRONLY | O_CLOEXEC), ok;

  if (fd < 0)
    return -1;
  ok = write (fd, text, strlen (text)) == (ssize_t) strlen (text);
  close (fd);
  return ok ? 0 : -1;
}

/* ---- a control group ---------------------------------------------------- */

/* Where this process is in the tree of a controller of version 1. */
static int
group_own (const char *controller, char out[256])
{
  char line[512], *first, *second;
  FILE *file = fopen ("/proc/self/cgroup", "re");
  int found = 0;

  while (file != NULL && !found && fgets (line, sizeof line, file) != NULL) {
    first = strchr (line, ':');
    second = first ? strchr (first + 1, ':') : NULL;
    if (second == NULL)
      continue;
    *second++ = '\0';
    second[strcspn (second, "\n")] = '\0';
    found = strcmp (first + 1, controller) == 0
            && snprintf (out, 256, "/sys/fs/cgroup/%s%s", controller,
                         strcmp (second, "/") == 0 ? "" : second) < 256;
  }
  if (file != NULL)
    fclose (file);
  return found ? 0 : -1;
}

static void
group_path (const struct cage *cage, const char *controller, char out[400])
{
  char own[256];

  out[0] = '\0';
  if (group_own (controller, own) == 0)
    snprintf (out, 400, "%s/%s", own, cage->cgroup);
}

static void
group_remove (const struct cage *cage)
{
  char path[400], below[420];
  size_t i;

  for (i = 0; cage->cgroup[0] != '\0' && i < 3; i++) {
    group_path (cage, controllers[i], path);
    snprintf (below, sizeof below, "%s/outside", path);
    rmdir (below);
    rmdir (path);
  }
}

/* One of its own where root may make one, given to the root of the cage, with
 * another that its sandboxes have no business in. */
static void
group_make (struct cage *cage)
{
  static const char *const files[] = { "", "/cgroup.procs", "/tasks" };
  char path[400], name[440];
  size_t i, k;

  snprintf (cage->cgroup, sizeof cage->cgroup, "coffer-cage-%s",
            cage->secret);
  for (i = 0; i < 3; i++) {
    group_path (cage, controllers[i], path);
    if (path[0] == '\0' || mkdir (path, 0755) == -1)
      break;
    for (k = 0; k < 3; k++) {
      snprintf (name, sizeof name, "%s%s", path, files[k]);
      if (chown (name, FIRST_ID, FIRST_ID) == -1)
        break;
    }
    snprintf (name, sizeof name, "%s/outside", path);
    if (mkdir (name, 0777) == -1)
      break;
    for (k = 0; k < 3; k++) {
      snprintf (name, sizeof name, "%s/outside%s", path, files[k]);
      if (chmod (name, 0777) == -1)
        break;
    }
    if (k < 3)
      break;
  }
  if (i == 3)
    return;
  group_remove (cage);
  cage->cgroup[0] = '\0';
}

static int
group_enter (const struct cage *cage, pid_t pid)
{
  char path[400], name[440], number[24];
  size_t i;

  snprintf (number, sizeof number, "%d", (int) pid);
  for (i = 0; cage->cgroup[0] != '\0' && i < 3; i++) {
    group_path (cage, controllers[i], path);
    snprintf (name, sizeof name, "%s/cgroup.procs", path);
    if (fill (name, number) == -1)
      return -1;
    if (strcmp (controllers[i], "pids") == 0) {
      snprintf (name, sizeof name, "%s/pids.max", path);
      fill (name, "700");
    }
    if (strcmp (controllers[i], "memory") == 0) {
      snprintf (name, sizeof name, "%s/memory.limit_in_bytes", path);
      fill (name, "1073741824");
    }
  }
  return 0;
}

/* ---- its root ----------------------------------------------------------- */

static int
show (const char *path, int flags)
{
  char target[256];
  struct stat st;
  int fd;

  if (stat (path, &st) == -1)
    return errno == ENOENT ? 0 : -1;
  snprintf (target, sizeof target, "/tmp%s", path);
  if (S_ISDIR (st.st_mode)) {
    if (mkdir (target, 0755) == -1 && errno != EEXIST)
      return -1;
  } else {
    fd = open (target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
      return -1;
    close (fd);
  }
  return mount (path, target, NULL, MS_BIND | flags, NULL);
}

/* What /bin and its like are here: links, or folders. */
static int
show_or_link (const char *path)
{
  char target[256], name[256];
  ssize_t n = readlink (path, target, sizeof target - 1);

  if (n < 0)
    return show (path, MS_REC);
  target[n] = '\0';
  snprintf (name, sizeof name, "/tmp%s", path);
  return symlink (target, name);
}

static int
root_make (void)
{
  static const char *const folders[]
    = { "/tmp/dev", "/tmp/dev/pts", "/tmp/dev/shm", "/tmp/proc", "/tmp/sys",
        "/tmp/sys/fs", "/tmp/sys/fs/cgroup", "/tmp/tmp", "/tmp/srv",
        "/tmp/opt", "/tmp/workspace", "/tmp/var", "/tmp/var/tmp",
        "/tmp/run" };
  static const char *const links[]
    = { "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32" };
  static const char *const devices[]
    = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
        "/dev/tty" };
  size_t i;

  if (mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1
      || mount ("cage", "/tmp", "tmpfs", 0, "mode=0755,size=256m") == -1)
    return -1;
  for (i = 0; i < sizeof folders / sizeof folders[0]; i++)
    if (mkdir (folders[i], 0755) == -1)
      return -1;
  chmod ("/tmp/tmp", 01777);
  chmod ("/tmp/dev/shm", 01777);
  chmod ("/tmp/workspace", 0777);
  for (i = 0; i < sizeof links / sizeof links[0]; i++)
    if (access (links[i], F_OK) == 0 && show_or_link (links[i]) == -1)
      return -1;
  for (i = 0; i < sizeof devices / sizeof devices[0]; i++)
    if (show (devices[i], 0) == -1)
      return -1;
  if (show ("/usr", MS_REC) == -1 || show ("/etc", MS_REC) == -1)
    return -1;
  /* The control groups as they are; only its own can be written. */
  mount ("/sys/fs/cgroup", "/tmp/sys/fs/cgroup", NULL, MS_BIND | MS_REC,
         NULL);
  if (mount ("proc", "/tmp/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
             NULL) == -1
      || mount ("devpts", "/tmp/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                "newinstance,ptmxmode=0666,mode=0620") == -1
      || symlink ("pts/ptmx", "/tmp/dev/ptmx") == -1
      || chdir ("/tmp") == -1 || syscall (SYS_pivot_root, ".", ".") == -1
      || umount2 (".", MNT_DETACH) == -1 || chdir ("/") == -1)
    return -1;
  return 0;
}

static int
loopback_up (void)
{
  struct ifreq request = { 0 };
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

  strcpy (request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  r = ioctl (fd, SIOCSIFFLAGS, &request);
  close (fd);
  return r;
}

/* ---- its first process -------------------------------------------------- */

/* An ordinary user's has no right but that user's. */
static int
rights_drop (void)
{
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

  return (int) syscall (SYS_capset, &header, none);
}

static int
become (const struct cage *cage)
{
  const gid_t group = CAGE_GROUP;

  if (!cage->root)
    return 0;
  return setgroups (1, &group) == -1 || setresgid (0, 0, 0) == -1
         || setresuid (0, 0, 0) == -1 ? -1 : 0;
}

static int
first (struct cage *cage, int (*inside) (struct cage *), int told)
{
  char byte;

  if (read (told, &byte, 1) != 1) /* the ids are there */
    return 99;
  close (told);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  umask (0);
  if (become (cage) == -1 || sethostname (cage->secret, 32) == -1
      || loopback_up () == -1 || root_make () == -1
      || (!cage->root && rights_drop () == -1)) {
    printf ("# cage: %s\n", strerror (errno));
    fflush (stdout);
    return 99;
  }
  /* Its folder in /proc is its own again. */
  prctl (PR_SET_DUMPABLE, 1);
  return inside (cage);
}

static int
ids_write (const struct cage *cage, pid_t pid)
{
  char path[64], map[64];

  snprintf (path, sizeof path, "/proc/%d/setgroups", (int) pid);
  if (!cage->root && fill (path, "deny") == -1)
    return -1;
  snprintf (path, sizeof path, "/proc/%d/uid_map", (int) pid);
  if (cage->root)
    snprintf (map, sizeof map, "0 %u %u\n", FIRST_ID, IDS);
  else
    snprintf (map, sizeof map, "%u %u 1\n", geteuid (), geteuid ());
  if (fill (path, map) == -1)
    return -1;
  snprintf (path, sizeof path, "/proc/%d/gid_map", (int) pid);
  if (!cage->root)
    snprintf (map, sizeof map, "%u %u 1\n", getegid (), getegid ());
  return fill (path, map);
}

static void
secret_make (char secret[33])
{
  unsigned char bytes[16];
  int i;

  if (syscall (SYS_getrandom, bytes, sizeof bytes, 0) != sizeof bytes)
    abort ();
  for (i = 0; i < 16; i++)
    snprintf (secret + 2 * i, 3, "%02x", bytes[i]);
}

static int
outcome (pid_t pid, int pidfd, int seconds)
{
  struct pollfd poll_fd = { pidfd, POLLIN, 0 };
  int status = 0, late;

  late = poll (&poll_fd, 1, seconds * 1000) != 1;
  if (late)
    kill (pid, SIGKILL);        /* and with it everything */
  if (waitpid (pid, &status, 0) != pid || !WIFEXITED (status))
    return late ? -2 : -3;
  return WEXITSTATUS (status) == 99 ? -1 : WEXITSTATUS (status);
}

int
cage_run (struct cage *cage, int (*inside) (struct cage *), int seconds)
{
  int told[2], pidfd = -1, result = -1;
  pid_t pid;

  cage->root = geteuid () == 0;
  cage->cgroup[0] = '\0';
  secret_make (cage->secret);
  if (pipe2 (told, O_CLOEXEC) == -1)
    return -1;
  if (cage->root)
    group_make (cage);
  fflush (stdout);
  pid = (pid_t) syscall (SYS_clone,
                         SIGCHLD | CLONE_PIDFD | CLONE_NEWUSER | CLONE_NEWNS
                           | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC
                           | CLONE_NEWUTS,
                         NULL, &pidfd, NULL, NULL);
  if (pid == 0) {
    close (told[1]);
    _exit (first (cage, inside, told[0]));
  }
  close (told[0]);
  if (pid > 0) {
    if (ids_write (cage, pid) == -1 || group_enter (cage, pid) == -1
        || write (told[1], "", 1) != 1)
      kill (pid, SIGKILL);
    result = outcome (pid, pidfd, seconds);
    close (pidfd);
  }
  close (told[1]);
  group_remove (cage);
  return result;
}
