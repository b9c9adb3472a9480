/* SPDX-License-Identifier: Apache-2.0 */
/* The namespaces of this process, and whether somebody is outside of them. */

#include "init.h"

#define AT_EMPTY_PATH_ 0x1000
#define NSFS_MAGIC_ 0x6e736673

/* The number of a file, or 0. */
static uint64_t
inode_of (int dir, const char *path, int flags)
{
  struct {
    uint32_t head[8];
    uint64_t ino;
    uint64_t rest[40];
  } st;

  return SYS (statx, dir, path, flags, 0x100, &st) >= 0 ? st.ino : 0;
}

void
namespaces_note (uint64_t inodes[7])
{
  static const char *const names[7]
    = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };
  char path[32];
  int i;

  for (i = 0; i < 7; i++) {
    text_join (path, sizeof path, "/proc/self/ns/", names[i], NULL);
    inodes[i] = inode_of (-100, path, 0);
  }
}

/* Whoever is shown the folder that our socket lies in can connect to it, and
 * may be the same user as its owner.  But the user namespace outside is out of
 * reach from within a sandbox: there is only its own. */
int
outside_is (const struct packet *packet, uint64_t userns)
{
  uint64_t fs[16];

  return packet->header->type == INIT_OUTSIDE && packet->n_fds == 1
         && SYS (fstatfs, packet->fds[0], fs) >= 0 && fs[0] == NSFS_MAGIC_
         && userns != 0
         && inode_of (packet->fds[0], "", AT_EMPTY_PATH_) == userns;
}
