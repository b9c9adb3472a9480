/* SPDX-License-Identifier: Apache-2.0 */
/* See signals.h.  The descriptors live as long as the process. */

#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sandbox/sandbox.h"
#include "sandbox/signals.h"

/* From the third on the signal does what it does by default: somebody wants
 * this process to end now. */
#define PATIENCE 2

static volatile sig_atomic_t caught, times;
static int end_fd = -1, winch_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
wake (int fd)
{
  const uint64_t one = 1;
  int keep = errno;
  ssize_t n = write (fd, &one, sizeof one);

  (void) n;                     /* full: it is readable already */
  errno = keep;
}

static void
on_end (int number)
{
  if (!caught)
    caught = number;
  if (times < PATIENCE) {
    times = times + 1;
  } else {
    signal (number, SIG_DFL);
    raise (number);
  }
  wake (end_fd);
}

static void
on_winch (int number)
{
  (void) number;
  wake (winch_fd);
}

static void
on_pipe (int number)
{
  (void) number;
}

/* No SA_RESTART: a write that waits for a slow reader must end. */
static void
catch (int number, void (*handler) (int), int flags)
{
  struct sigaction action, old;

  /* What the parent ignores stays ignored, as under nohup. */
  if (sigaction (number, NULL, &old) == 0 && old.sa_handler == SIG_IGN
      && number != SIGPIPE)
    return;
  memset (&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction (number, &action, NULL);
}

static int
event_new (int *fd, struct error **err)
{
  if (*fd < 0)
    *fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  return *fd < 0 ? error_set (err, E_IO, errno, "a descriptor for signals")
                 : 0;
}

int
sandbox_signals_catch (struct error **err)
{
  int bad;

  pthread_mutex_lock (&lock);
  bad = end_fd < 0 ? event_new (&end_fd, err) : 0;
  pthread_mutex_unlock (&lock);
  if (bad)
    return -1;
  catch (SIGINT, on_end, 0);
  catch (SIGTERM, on_end, 0);
  catch (SIGHUP, on_end, 0);
  catch (SIGQUIT, on_end, 0);
  signals_no_sigpipe ();
  return end_fd;
}

int
sandbox_signal_caught (void)
{
  return caught;
}

void
signals_no_sigpipe (void)
{
  catch (SIGPIPE, on_pipe, SA_RESTART);
}

int
signals_winch (struct error **err)
{
  int bad;

  pthread_mutex_lock (&lock);
  bad = event_new (&winch_fd, err);
  pthread_mutex_unlock (&lock);
  if (bad)
    return -1;
  catch (SIGWINCH, on_winch, SA_RESTART);
  return winch_fd;
}

void
signals_winch_clear (void)
{
  uint64_t count;
  ssize_t n = read (winch_fd, &count, sizeof count);

  (void) n;                     /* nothing there: cleared already */
}
