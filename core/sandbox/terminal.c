/* SPDX-License-Identifier: Apache-2.0 */
/* Raw mode with a saved state, and pseudo-terminals.  See terminal.h. */

#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/terminal.h"

static struct termios saved;
static atomic_int saved_fd = -1;

/* Signals that end the process where nobody has caught them. */
static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS,
                             SIGTERM, SIGHUP, SIGINT, SIGQUIT };

void
terminal_restore (void)
{
  const int fd = atomic_exchange (&saved_fd, -1), keep = errno;

  if (fd >= 0)
    tcsetattr (fd, TCSADRAIN, &saved);
  errno = keep;
}

static void
on_fatal (int number)
{
  terminal_restore ();
  /* SA_RESETHAND: the default again. */
  raise (number);
}

static void
guard (void)
{
  static int guarded;
  struct sigaction action, old;
  size_t i;

  if (!guarded)
    atexit (terminal_restore);
  guarded = 1;
  for (i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
    if (sigaction (fatal[i], NULL, &old) < 0 || old.sa_handler != SIG_DFL)
      continue;
    memset (&action, 0, sizeof action);
    action.sa_handler = on_fatal;
    action.sa_flags = (int) SA_RESETHAND;
    sigaction (fatal[i], &action, NULL);
  }
}

int
terminal_raw (int fd, struct error **err)
{
  struct termios raw;

  if (!isatty (fd))
    return 0;
  if (tcgetattr (fd, &saved) < 0)
    return error_set (err, E_IO, errno, "the terminal's mode");
  raw = saved;
  cfmakeraw (&raw);
  guard ();
  saved_fd = fd;
  if (tcsetattr (fd, TCSADRAIN, &raw) < 0) {
    saved_fd = -1;
    return error_set (err, E_IO, errno, "the terminal's raw mode");
  }
  return 0;
}

void
terminal_size (int fd, uint32_t *rows, uint32_t *columns)
{
  struct winsize size;

  *rows = *columns = 0;
  if (ioctl (fd, TIOCGWINSZ, &size) == 0) {
    *rows = size.ws_row;
    *columns = size.ws_col;
  }
}

void
terminal_resize (int master, uint32_t rows, uint32_t columns)
{
  struct winsize size = { .ws_row = (unsigned short) rows,
                          .ws_col = (unsigned short) columns };

  if (rows > 0 && rows <= 4096 && columns > 0 && columns <= 4096)
    ioctl (master, TIOCSWINSZ, &size);
}

int
terminal_new (uint32_t rows, uint32_t columns, int *master, int *slave,
              struct error **err)
{
  coffer_autoclose int ours = -1;
  int theirs;

  ours = posix_openpt (O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (ours < 0 || grantpt (ours) < 0 || unlockpt (ours) < 0)
    return error_set (err, E_IO, errno, "a terminal");
  /* By the master, not by name: /dev/pts may be another one here. */
  theirs = ioctl (ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (theirs < 0)
    return error_set (err, E_IO, errno, "a terminal");
  terminal_resize (ours, rows, columns);
  *master = coffer_fd_steal (&ours);
  *slave = theirs;
  return 0;
}
