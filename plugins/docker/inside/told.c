/* SPDX-License-Identifier: Apache-2.0 */
/* What the first process is told, what it looks at before anything of the image
 * runs, and what it answers. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"

/* An entrypoint that ends within this time has not kept anything alive. */
#define SETTLE_MS 300

static int
read_whole (int fd, char *bytes, size_t size)
{
  while (size > 0) {
    ssize_t n = read (fd, bytes, size);

    if (n <= 0 && !(n < 0 && errno == EINTR))
      return -1;
    bytes += n > 0 ? n : 0;
    size -= n > 0 ? (size_t) n : 0;
  }
  return 0;
}

static int
write_whole (int fd, const char *bytes, size_t size)
{
  while (size > 0) {
    ssize_t n = write (fd, bytes, size);

    if (n < 0 && errno != EINTR)
      return -1;
    bytes += n > 0 ? n : 0;
    size -= n > 0 ? (size_t) n : 0;
  }
  return 0;
}

static int
answer (const char *word, const char *what)
{
  char line[INSIDE_ANSWER_MOST / 2];
  int n = snprintf (line, sizeof line, "%s%s%s\n", word, *what ? " " : "",
                    what);

  return n > 0 && (size_t) n < sizeof line
         ? write_whole (1, line, (size_t) n) : -1;
}

/* ---- what it is confined by --------------------------------------------- */

/* The lines of its own status that say so, as the kernel has them. */
static void
tell_status (void)
{
  static const char *const wanted[] = {
    "CapBnd:", "NoNewPrivs:", "Seccomp:", "Uid:",
  };
  FILE *status = fopen ("/proc/self/status", "re");
  char line[256];

  while (status && fgets (line, sizeof line, status))
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
      if (strncmp (line, wanted[i], strlen (wanted[i])) == 0)
        write_whole (1, line, strlen (line));
  if (status)
    fclose (status);
}

/* ---- what it is shown --------------------------------------------------- */

/* The target of the first that is not what the host opened; NULL: all are. */
static const char *
moved (const char *mounts, size_t size)
{
  for (const char *at = mounts; at < mounts + size; at += strlen (at) + 1) {
    struct stat st;
    char *end;
    unsigned long long device = strtoull (at, &end, 10);
    unsigned long long inode = strtoull (end, &end, 10);

    if (*end != ' ' || stat (end + 1, &st) < 0 || st.st_dev != device
        || st.st_ino != inode)
      return *end ? end + 1 : end;
  }
  return NULL;
}

static int
keep_given (const char *bytes, size_t size)
{
  int fd = open (INSIDE_GIVEN, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  int result = fd < 0 ? -1 : write_whole (fd, bytes, size);

  if (fd >= 0)
    close (fd);
  return result;
}

/* ---- an entrypoint ------------------------------------------------------ */

/* With what the sandbox was given, and none of our descriptors. */
static void __attribute__ ((noreturn))
run_entrypoint (char **argv, char *given, size_t size)
{
  int null = open ("/dev/null", O_RDWR);
  sigset_t none;

  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
  setsid ();
  for (int fd = 0; fd < 3; fd++)
    dup2 (null, fd);
  if (null > 2)
    close (null);
  if (chdir (*given ? given : SANDBOX_WORKSPACE) < 0)
    _exit (126);
  for (char *at = given + strlen (given) + 1; at < given + size;
       at += strlen (at) + 1)
    putenv (at);
  execvp (argv[0], argv);
  _exit (errno == ENOENT ? 127 : 126);
}

/* -1: it has ended, which is answered. */
static int
settle (pid_t pid)
{
  char text[16];
  int status;

  for (int ms = 0; ms < SETTLE_MS; ms += 10) {
    if (waitpid (pid, &status, WNOHANG) == pid) {
      snprintf (text, sizeof text, "%d", status);
      answer ("ended", text);
      return -1;
    }
    poll (NULL, 0, 10);
  }
  return 0;
}

/* ---- a snapshot's files ------------------------------------------------- */

static int
await_files (void)
{
  char byte;

  return answer ("waits", "") < 0 ? -1 : read_whole (0, &byte, 1);
}

/* ---- all of it ---------------------------------------------------------- */

int
inside_told (char **argv, pid_t *entrypoint)
{
  static char mounts[INSIDE_TOLD_MOST], given[INSIDE_TOLD_MOST];
  struct inside_told told;
  const char *target;

  *entrypoint = -1;
  if (read_whole (0, (char *) &told, sizeof told) < 0
      || told.mounts_size > sizeof mounts || told.given_size > sizeof given
      || read_whole (0, mounts, told.mounts_size) < 0
      || read_whole (0, given, told.given_size) < 0)
    return -1;
  tell_status ();
  target = moved (mounts, told.mounts_size);
  if (target) {
    answer ("moved", target);
    return -1;
  }
  if (keep_given (given, told.given_size) < 0) {
    answer ("failed", "the sandbox's state cannot be kept");
    return -1;
  }
  if (told.restores && await_files () < 0)
    return -1;
  if (*argv) {
    *entrypoint = fork ();
    if (*entrypoint == 0)
      run_entrypoint (argv, given, told.given_size);
    if (*entrypoint < 0 || settle (*entrypoint) < 0)
      return -1;
  }
  explicit_bzero (given, told.given_size);
  return answer ("ok", "");
}
