/* SPDX-License-Identifier: Apache-2.0 */
/* Process identity out of /proc: see owner.h. */

#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/owner.h"

static ssize_t
read_small (const char *path, char *out, size_t size)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC);
  ssize_t n;

  if (fd < 0)
    return -1;
  n = coffer_read_all (fd, out, size - 1);
  if (n >= 0)
    out[n] = '\0';
  return n;
}

/* State letter and start time.  The command's name may hold anything, so
 * fields are counted from the last ')'. */
static int
process_stat (int64_t pid, char *state, int64_t *start)
{
  char path[64], text[1024], *p;
  long long value = 0;

  snprintf (path, sizeof path, "/proc/%lld/stat", (long long) pid);
  if (read_small (path, text, sizeof text) < 0)
    return -1;
  p = strrchr (text, ')');
  if (!p || sscanf (p + 1,
                    " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                    " %*s %*s %*s %*s %*s %*s %lld",
                    state, &value) != 2) {
    errno = EBADMSG;
    return -1;
  }
  *start = value;
  return 0;
}

int
owner_self (struct owner *out, struct error **err)
{
  char boot[64], state;
  struct stat st;
  struct owner self = { .pid = getpid () };

  if (process_stat (self.pid, &state, &self.start) < 0)
    return error_set (err, E_RECORDS, errno, "read /proc/self/stat");
  if (read_small ("/proc/sys/kernel/random/boot_id", boot, sizeof boot) < 0)
    return error_set (err, E_RECORDS, errno, "read the boot id");
  if (stat ("/proc/self/ns/pid", &st) < 0)
    return error_set (err, E_RECORDS, errno, "stat /proc/self/ns/pid");
  boot[strcspn (boot, "\n")] = '\0';
  snprintf (self.where, sizeof self.where, "%.40s/%llu", boot,
            (unsigned long long) st.st_ino);
  *out = self;
  return 0;
}

enum owner_state
owner_check (const struct owner *self, int64_t pid, int64_t start,
             const char *where)
{
  size_t boot = strcspn (self->where, "/");
  int64_t seen;
  char state;

  if (!where || strncmp (where, self->where, boot + 1) != 0)
    return OWNER_DEAD;          /* of an earlier boot */
  if (strcmp (where, self->where) != 0)
    return OWNER_UNKNOWN;
  if (pid <= 0)
    return OWNER_DEAD;
  if (process_stat (pid, &state, &seen) < 0)
    return errno == ENOENT || errno == ESRCH ? OWNER_DEAD : OWNER_UNKNOWN;
  /* A zombie has let go of its descriptors, the lifeline among them. */
  if (seen != start || state == 'Z' || state == 'X')
    return OWNER_DEAD;
  return OWNER_ALIVE;
}
