/* SPDX-License-Identifier: Apache-2.0 */
/* See floor.h. */

#define _GNU_SOURCE

#include "floor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSIDE 1000             /* the id of the user inside */
#define OUTSIDE 1879048193      /* and, of root, outside */
#define MOUNTS_MAX 128
#define STACK 65536

struct child {
  const struct floor *floor;
  int in, out, command_out;
};

/* As the provider does it: what the init needs must survive its start. */
static int
child_main (void *data)
{
  static const int needed[] = { CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN };
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct caps[2];
  static char *envp[] = { NULL };
  const struct child *child = data;

  syscall (SYS_capget, &header, caps);
  for (size_t i = 0; i < 3; i++)
    caps[0].inheritable |= 1u << needed[i];
  syscall (SYS_capset, &header, caps);
  for (size_t i = 0; i < 3; i++)
    syscall (SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, needed[i], 0, 0);
  syscall (SYS_dup3, child->in, 0, 0);
  syscall (SYS_dup3, child->command_out, 1, 0);
  syscall (SYS_dup3, child->out, 3, 0);
  syscall (SYS_close_range, 4, ~0u, 0);
  syscall (SYS_execve, child->floor->program, child->floor->argv, envp);
  return 127;
}

static pid_t
child_start (struct child *child)
{
  sigset_t all, old;
  char *stack = malloc (STACK);
  pid_t pid;

  if (!stack)
    return -1;
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  pid = clone (child_main, stack + STACK,
               CLONE_VM | CLONE_VFORK | CLONE_NEWUSER | CLONE_NEWNS
                 | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
                 | CLONE_NEWCGROUP | SIGCHLD,
               child);
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  free (stack);
  return pid;
}

static int
map_write (pid_t pid, const char *name, const char *text)
{
  char path[64];
  int fd, ok;

  snprintf (path, sizeof path, "/proc/%d/%s", (int) pid, name);
  fd = open (path, O_WRONLY | O_CLOEXEC);
  ok = fd >= 0 && write (fd, text, strlen (text)) == (ssize_t) strlen (text);
  if (fd >= 0)
    close (fd);
  return ok ? 0 : -1;
}

static int
ids_map (pid_t pid)
{
  const int root = geteuid () == 0;
  char uid[64], gid[64];

  snprintf (uid, sizeof uid, "%d %u 1\n", INSIDE,
            root ? OUTSIDE : (unsigned) geteuid ());
  snprintf (gid, sizeof gid, "%d %u 1\n", INSIDE,
            root ? OUTSIDE : (unsigned) getegid ());
  return map_write (pid, "setgroups", "deny") < 0
                 || map_write (pid, "uid_map", uid) < 0
                 || map_write (pid, "gid_map", gid) < 0
             ? -1 : 0;
}

int
floor_run (const struct floor *floor, int out)
{
  int go[2] = { -1, -1 }, done[2] = { -1, -1 }, bad = -1;
  struct child child = { .floor = floor, .command_out = out };
  char byte = 1;
  pid_t pid;

  if (pipe2 (go, O_CLOEXEC) < 0 || pipe2 (done, O_CLOEXEC) < 0)
    return -1;
  /* Out of the way of the numbers that the child gives them. */
  child.in = fcntl (go[0], F_DUPFD_CLOEXEC, 10);
  child.out = fcntl (done[1], F_DUPFD_CLOEXEC, 10);
  pid = child_start (&child);
  close (child.in);
  close (child.out);
  close (done[1]);
  if (pid > 0) {
    if (ids_map (pid) == 0 && write (go[1], "", 1) == 1
        && read (done[0], &byte, 1) == 1)
      bad = byte ? -1 : 0;
    kill (pid, SIGKILL);
    waitpid (pid, NULL, __WALL);
  }
  close (go[0]);
  close (go[1]);
  close (done[0]);
  return bad;
}

/* ---- the mounts --------------------------------------------------------- */

static unsigned
attributes_of (const char *options)
{
  char text[256], *save = NULL, *word;
  unsigned flags = 0;

  snprintf (text, sizeof text, "%s", options);
  for (word = strtok_r (text, ",", &save); word;
       word = strtok_r (NULL, ",", &save))
    flags |= !strcmp (word, "ro") ? 1u : !strcmp (word, "nosuid") ? 2u
             : !strcmp (word, "nodev") ? 4u : !strcmp (word, "noexec") ? 8u
                                                                       : 0u;
  return flags;
}

/* One line of mountinfo as an argument of floor-init; NULL: the root. */
static char *
mount_argument (const char *line)
{
  char root[256], where[256], options[256], type[64], letter[2] = "";
  char *out = NULL;
  char kind = 'b';

  if (sscanf (line, "%*d %*d %*s %255s %255s %255s%*[^-]- %63s", root, where,
              options, type) != 4
      || !strcmp (where, "/"))
    return NULL;
  if (!strcmp (type, "proc"))
    kind = !strcmp (root, "/") ? 'p' : 's';
  else if (!strcmp (type, "devpts"))
    kind = 't';
  else if (!strncmp (where, "/proc/", 6))
    kind = strstr (root, "null") ? 'n' : 'e';
  else if (!strcmp (type, "tmpfs") && strlen (root) <= 2) {
    kind = root[1] ? 'd' : 'D';
    letter[0] = root[1];
  }
  return asprintf (&out, "%c%c%s%s", kind, '0' + (int) attributes_of (options),
                   letter, where) < 0 ? NULL : out;
}

int
floor_prepare (struct floor *floor, const char *program,
               const char *mountinfo, const char *const *command)
{
  char *text = strdup (mountinfo), *save = NULL, *line;
  size_t n = 0, i;

  floor->program = program;
  floor->argv = calloc (MOUNTS_MAX, sizeof *floor->argv);
  if (!text || !floor->argv)
    return -1;
  floor->argv[n++] = strdup ("floor-init");
  floor->argv[n++] = strdup ("1000");
  for (line = strtok_r (text, "\n", &save); line && n < MOUNTS_MAX - 16;
       line = strtok_r (NULL, "\n", &save)) {
    char *argument = mount_argument (line);

    if (argument)
      floor->argv[n++] = argument;
  }
  free (text);
  floor->argv[n++] = strdup ("--");
  for (i = 0; command[i] && n < MOUNTS_MAX - 1; i++)
    floor->argv[n++] = strdup (command[i]);
  return 0;
}

void
floor_free (struct floor *floor)
{
  for (size_t i = 0; floor->argv && floor->argv[i]; i++)
    free (floor->argv[i]);
  free (floor->argv);
  floor->argv = NULL;
}
