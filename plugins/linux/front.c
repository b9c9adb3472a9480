/* SPDX-License-Identifier: Apache-2.0 */
/* An init that is begun while the program that will want it is being started.
 *
 * Of the time until a command runs most is the kernel's, which makes namespaces
 * and mounts; another part is the start of a program with a C library, and the
 * reading of configuration and manifest.  On two processors one can be done
 * during the other.  What begins is this build's own init in namespaces of its
 * own: it has seen nothing of any sandbox, runs nothing, and ends when its
 * connection does.
 *
 * Part of the small program that begins a run, and of nothing else. */

#include <sys/stat.h>
#include <unistd.h>

#include <coffer/packet.h>

#include "begun.h"
#include "spawn.h"

#define SEND_NS INT64_C (1000000000)

static int
init_begin (struct linux_provider *self, struct init_process *init)
{
  static const struct coffer_sandbox_spec usual
    = { sizeof usual, .lifeline = -1, .template_fd = -1 };
  const struct making making = { .self = self, .spec = &usual };
  const struct coffer_call call
    = { .size = sizeof call, .cancel_fd = -1,
        .deadline_ns = coffer_now_ns () + SEND_NS };
  const struct init_wanted wanted
    = { .ids = { .privileged = geteuid () == 0 }, .ids_meanwhile = 1,
        .late_network = 1, .sibling = 1 };
  struct init_prepare shape;
  const char *step;

  if (init_start (self, &wanted, init, &step) == -1)
    return -1;
  shape_fill (&making, &shape);
  return shape_send (self, init, &shape, NULL, &call);
}

int
coffer_linux_front (int init, int runtime_dir, int channel)
{
  static struct linux_provider self
    = { .lock = PTHREAD_MUTEX_INITIALIZER, .skeleton = -1,
        .slots = { -1, -1, -1, -1 } };
  struct init_process process = { .control = -1, .pidfd = -1, .proc = -1 };
  struct begun begun = { .pid = 0 };
  struct stat st;

  self.init = init;
  self.runtime = runtime_dir;
  if (fstat (runtime_dir, &st) == -1 || init_begin (&self, &process) == -1)
    return -1;
  begun_build (coffer_linux_build,
               (size_t) (coffer_linux_build_end - coffer_linux_build),
               begun.build);
  begun.pid = process.pid;
  begun.late_network = process.late_network;
  begun.ids = process.ids;
  begun.dev = st.st_dev;
  begun.ino = st.st_ino;
  return coffer_packet_send (channel, &begun, sizeof begun, &process.control,
                             1);
}
