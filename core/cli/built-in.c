/* SPDX-License-Identifier: Apache-2.0 */
/* Names the provider that is linked into this program: linux, which most runs
 * are made with.  Of it there is nothing here but these names. */

#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/begun.h"
#include "cli/built-in.h"
#include "provider/built-in.h"

#ifdef COFFER_BUILT_IN

const struct coffer_provider *coffer_linux_entry (void);
void coffer_linux_begun (int take_channel, pid_t helper, const void *build,
                         size_t build_size);
void coffer_linux_end (void);
extern const char coffer_linux_init[], coffer_linux_init_end[];
extern const char coffer_linux_build[], coffer_linux_build_end[];

/* One of a pair that this very process has made: it tells of nothing that
 * somebody else has opened for it. */
static int
channel_is_own (int fd)
{
  struct ucred peer;
  socklen_t size = sizeof peer, type_size = sizeof (int);
  int type;

  return fd > STDERR_FILENO
         && getsockopt (fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0
         && type == SOCK_SEQPACKET
         && getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
         && peer.pid == getpid ();
}

/* Whatever the variable says, no other program is to have it. */
static void
take_begun (void)
{
  const char *text = getenv (BEGUN_VARIABLE);
  int pid, fd, helper, n;

  if (!text)
    return;
  n = sscanf (text, BEGUN_FORMAT, &pid, &fd, &helper);
  unsetenv (BEGUN_VARIABLE);
  if (n == 3 && pid == getpid () && !getauxval (AT_SECURE)
      && channel_is_own (fd) && fcntl (fd, F_SETFD, FD_CLOEXEC) == 0)
    coffer_linux_begun (fd, helper, coffer_linux_build,
                        (size_t) (coffer_linux_build_end
                                  - coffer_linux_build));
}

void
cli_built_in (void)
{
  static const struct built_in built_in = {
    .id = "linux", .entry = coffer_linux_entry,
    .build = coffer_linux_build, .build_end = coffer_linux_build_end,
    .file = "coffer-init",
    .bytes = coffer_linux_init, .bytes_end = coffer_linux_init_end,
    .end = coffer_linux_end
  };

  built_in_register (&built_in);
  take_begun ();
}

#else

void
cli_built_in (void)
{
}

#endif
