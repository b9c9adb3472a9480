/* SPDX-License-Identifier: Apache-2.0 */
/* The root folder of a template, as the first of the mounts. */

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <fcntl.h>

#include "kernel.h"
#include "spawn.h"

int32_t
template_prepare (struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;
  struct init_mount *out = &making->mounts[0];
  struct coffer_call *call = making->call;
  int fd = spec->template_fd;
  struct stat st;

  if (spec->template_name == NULL)
    return COFFER_OK;
  if (fd < 0 || fstat (fd, &st) == -1 || !S_ISDIR (st.st_mode))
    return coffer_fail (call, COFFER_INVALID,
                        "template: its root is no folder");
  out->size = sizeof *out;
  out->flags = MOUNT_ROOT;
  if (making->ids.privileged) {
    /* Not id-mapped: its files are nobody's inside, and shared by all. */
    fd = (int) syscall (SYS_open_tree, fd, "",
                        OPEN_TREE_CLONE_ | AT_EMPTY_PATH | AT_RECURSIVE_
                          | O_CLOEXEC);
    if (fd < 0)
      return coffer_fail_errno (call, errno, "template: open_tree");
    out->flags |= MOUNT_DETACHED;
  } else {
    making->sources[0] = coffer_fd_path (fd);
    if (making->sources[0] == NULL)
      return coffer_fail (call, COFFER_INVALID,
                          "template: its root has no path any more");
  }
  making->mount_fds[0] = fd;
  making->n_mounts = 1;
  return COFFER_OK;
}
