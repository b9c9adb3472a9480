/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that the init sets itself: those of each process, of the memory that
 * processes share, and of the file system that everything is written to.  Which
 * of the last were reached is looked up when a command ends. */

#include "init.h"

#define AT_FDCWD_ -100
#define O_WRONLY_ 1
#define O_CLOEXEC_ 02000000
#define DATA "/dev/shm"         /* of the one file system that is capped */
#define ALL UINT64_MAX          /* RLIM_INFINITY */
#define CORE_BYTES 1
#define FILES_USUAL 1024
#define FILES_MOST 65536
#define SPARE_BYTES (1u << 20)   /* of an image that is as good as full */

int commands_group = -1;

/* ---- of each process ---------------------------------------------------- */

/* Soft and hard, never above what the hard one is already. */
static void
limit_set (const char *step, int which, uint64_t soft, uint64_t hard)
{
  struct {
    uint64_t soft, hard;
  } now, limit = { soft, hard };

  must (step, SYS (prlimit64, 0, which, 0, &now));
  if (limit.hard > now.hard)
    limit.hard = now.hard;
  if (limit.soft > limit.hard)
    limit.soft = limit.hard;
  must (step, SYS (prlimit64, 0, which, &limit, 0));
}

static struct {
  uint64_t soft, hard;
} command_files;                /* hard 0: those of this process */

/* Descriptors on their way to somebody are counted for all processes of a
 * user, and nobody sends any while there are more than its own soft limit.
 * What commands can reach stays far below what this process and those outside
 * may raise theirs to, so that no sandbox keeps them from their work. */
static void
files_set (void)
{
  limit_set ("rlimit nofile", 7, ALL, ALL);
  must ("rlimit nofile", SYS (prlimit64, 0, 7, 0, &command_files));
  command_files.hard = command_files.hard / 2 < FILES_MOST
                         ? command_files.hard / 2 : FILES_MOST;
  command_files.soft = command_files.hard < FILES_USUAL ? command_files.hard
                                                        : FILES_USUAL;
}

long
files_enter (void)
{
  return command_files.hard == 0 ? 0
                                 : SYS (prlimit64, 0, 7, &command_files, 0);
}

void
limits_of_command (uint32_t id, struct init_join *join)
{
  int i;

  for (i = 0; i < JOIN_LIMITS; i++)
    must ("limits: read back",
          SYS (prlimit64, 0, i, 0, &join->limits[i]));
  if (command_files.hard != 0) {
    join->limits[7].soft = command_files.soft;
    join->limits[7].hard = command_files.hard;
  }
  if (!single_mode)
    tag_note (id, join);
}

void
limits_set (const struct plan *plan)
{
  const struct init_plan *body = &plan->body;
  uint64_t data = body->data_bytes ? body->data_bytes : ALL;
  uint64_t address = body->address_bytes ? body->address_bytes : ALL;
  uint64_t file = body->file_bytes ? body->file_bytes : ALL;

  /* Soft limits of the process that made this sandbox are its own affair. */
  limit_set ("rlimit cpu", 0, ALL, ALL);
  limit_set ("rlimit fsize", 1, file, file);
  limit_set ("rlimit data", 2, data, data);
  limit_set ("rlimit stack", 3, 8 << 20, ALL);
  limit_set ("rlimit rss", 5, ALL, ALL);
  limit_set ("rlimit as", 9, address, address);
  if (body->open_files != 0)
    limit_set ("rlimit nofile", 7, body->open_files, body->open_files);
  else
    files_set ();
  /* One byte, not none: with none a piped handler of the host still runs. */
  limit_set ("rlimit core", 4, CORE_BYTES, CORE_BYTES);
  limit_set ("rlimit memlock", 8, 0, 0);
  limit_set ("rlimit sigpending", 11, 4096, 4096);
  limit_set ("rlimit msgqueue", 12, 0, 0);
  limit_set ("rlimit nice", 13, 0, 0);
  limit_set ("rlimit rtprio", 14, 0, 0);
  if (plan->body.pids != 0 && !(plan->body.flags & PLAN_CGROUP))
    limit_set ("rlimit nproc", 6, plan->body.pids, plan->body.pids);
}

/* ---- of the whole sandbox ----------------------------------------------- */

void
group_join (int fd)
{
  must ("control group", SYS (write, fd, "0", 1));
  fd_close (fd);
}

long
groups_enter (void)
{
  return commands_group < 0 ? 0 : SYS (write, commands_group, "0", 1);
}

static int shm_capped;

static int
number_put (int dir, const char *path, uint64_t value)
{
  char text[21];
  int fd = (int) SYS (openat, dir, path, O_WRONLY_ | O_CLOEXEC_);
  long r;

  if (fd < 0)
    return 0;
  text_number (text, value);
  r = SYS (write, fd, text, strlen (text));
  fd_close (fd);
  return r > 0;
}

/* Segments of System V lie in no file system that is capped.  The kernel lets
 * only root say how much they may take, also in a namespace of its own; a
 * control group counts them all the same.  By the sandbox's own proc: in the
 * machine's, the kernel would look for the file of this namespace among those
 * of all others, one by one. */
void
limits_prepare (const struct plan *plan)
{
  int proc;

  if (!(plan->shape.flags & PLAN_PRIVILEGED))
    return;
  proc = proc_ahead ();
  shm_capped = number_put (proc, "sys/kernel/shmall",
                           (plan->shape.disk_bytes + 4095) / 4096)
               && number_put (proc, "sys/kernel/msgmni", 128);
}

static int watched[4], n_watched;

void
limits_watch (int mount)
{
  if (n_watched < (int) (sizeof watched / sizeof watched[0]))
    watched[n_watched++] = (int) must ("mount: watch",
                                       SYS (fcntl, mount, 1030, 3));
}

/* The words of a statfs: f_bsize, f_blocks, f_bfree, f_bavail, f_files,
 * f_ffree after f_type. */
struct fs {
  uint64_t type, block, blocks, free, available, files, files_free, rest[9];
};

/* On a disk a large write finds no room while there still is some for small
 * ones: `spare` blocks. */
static uint32_t
full (const struct fs *fs, uint64_t spare)
{
  return (fs->available <= spare ? EXIT_DISK : 0u)
         | (fs->files_free == 0 ? EXIT_INODES : 0u);
}

uint32_t
limits_reached (void)
{
  uint32_t flags = 0;
  struct fs fs;
  int i;

  if (SYS (statfs, DATA, &fs) >= 0)
    flags = full (&fs, 0);
  for (i = 0; i < n_watched; i++)
    if (SYS (fstatfs, watched[i], &fs) >= 0)
      flags |= full (&fs, fs.blocks / 32 < SPARE_BYTES / fs.block
                            ? fs.blocks / 32 : SPARE_BYTES / fs.block);
  return flags;
}

void
limits_facts (const struct plan *plan, struct facts *facts)
{
  char value[128], one[21], two[21];
  struct {
    uint64_t soft, hard;
  } core;
  struct fs fs;

  must ("rlimit core: read back", SYS (prlimit64, 0, 4, 0, &core));
  if (core.hard > CORE_BYTES)
    setup_fail ("rlimit core: read back", -EPERM_);
  fact_add (facts, "limit.core", "ok", "one byte, so that no handler runs",
            "RLIMIT_CORE", "");
  must ("data: read back", SYS (statfs, DATA, &fs));
  if (fs.blocks == 0 || fs.files == 0
      || fs.blocks > (plan->shape.disk_bytes + fs.block - 1) / fs.block
      || fs.files > plan->shape.inodes)
    setup_fail ("data: read back", -EPERM_);
  text_join (value, sizeof value, text_number (one, fs.blocks * fs.block), " bytes, ",
             text_number (two, fs.files), " inodes", NULL);
  fact_add (facts, "limit.disk", "ok", value,
            "statfs of /workspace, /tmp and /dev/shm in memory", "");
  if (shm_capped)
    fact_add (facts, "limit.shm", "ok", "segments of System V as the disk",
              "kernel.shmall", "");
}
