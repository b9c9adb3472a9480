/* SPDX-License-Identifier: Apache-2.0 */
/* Lines into a file that may be renamed meanwhile.  See audit.h. */

#include <config.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/log.h"
#include "base/place.h"
#include "server/audit.h"

#define COMPLAIN_NS INT64_C (60000000000)

struct audit {
  char *path;
  int fd;
  atomic_int torn;              /* the last line is not whole */
  _Atomic int64_t complained_ns;
};

/* A daemon that was killed, or a disk that was full, left a part of a line. */
static int
is_torn (int fd, off_t size)
{
  char last;

  return size > 0 && pread (fd, &last, 1, size - 1) == 1 && last != '\n';
}

static int
file_open (const char *path, int *torn, struct error **err)
{
  coffer_autoclose int fd = open (path, O_RDWR | O_APPEND | O_CREAT
                                  | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  struct stat st;

  if (fd < 0 || fstat (fd, &st) < 0)
    return error_set (err, E_IO, errno, "open the audit log %s", path);
  if (!S_ISREG (st.st_mode))
    return error_set (err, E_CONFIG, 0, "the audit log %s is not a file", path);
  if (place_check_trusted (fd, path, err) < 0)
    return -1;
  if ((st.st_mode & 077) && fchmod (fd, 0600) < 0)
    return error_set (err, E_UNSAFE_FILE, errno,
                      "others may read the audit log %s", path);
  *torn = is_torn (fd, st.st_size);
  return coffer_fd_steal (&fd);
}

int
audit_open (const char *path, struct audit **out, struct error **err)
{
  int torn = 0, fd = file_open (path, &torn, err);
  struct audit *audit = fd < 0 ? NULL : calloc (1, sizeof *audit);

  if (fd < 0)
    return -1;
  if (audit == NULL || (audit->path = strdup (path)) == NULL) {
    coffer_fd_close (&fd);
    free (audit);
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  }
  audit->fd = fd;
  atomic_init (&audit->torn, torn);
  *out = audit;
  return 0;
}

void
audit_free (struct audit *audit)
{
  if (audit == NULL)
    return;
  coffer_fd_close (&audit->fd);
  free (audit->path);
  free (audit);
}

void
audit_time (int64_t realtime_ns, char out[AUDIT_TIME_SIZE])
{
  const time_t seconds = (time_t) (realtime_ns / 1000000000);
  struct tm tm;
  size_t n;

  gmtime_r (&seconds, &tm);
  n = strftime (out, AUDIT_TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf (out + n, AUDIT_TIME_SIZE - n, ".%06lldZ",
            (long long) (realtime_ns % 1000000000) / 1000);
}

static int
complain (struct audit *audit, int sys_errno)
{
  int64_t last = atomic_load (&audit->complained_ns), now = coffer_now_ns ();

  if ((last == 0 || now - last >= COMPLAIN_NS)
      && atomic_compare_exchange_strong (&audit->complained_ns, &last, now))
    log_event (LOG_LEVEL_ERROR, "audit", "%s: lines are lost: %s",
               audit->path, strerror (sys_errno));
  return -1;
}

int
audit_write (struct audit *audit, json_t *line)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  auto_free char *text = json_text (line);
  char time[AUDIT_TIME_SIZE];
  ssize_t n;

  if (text == NULL || text[0] != '{')
    return complain (audit, ENOMEM);
  audit_time (coffer_realtime_ns (), time);
  /* The one before may have ended in the middle: no two on one line. */
  coffer_buffer_printf (&out, "%s{\"time\":\"%s\"%s%s\n",
                        atomic_exchange (&audit->torn, 0) ? "\n" : "", time,
                        text[1] == '}' ? "" : ",", text + 1);
  if (out.failed)
    return complain (audit, ENOMEM);
  do
    n = write (audit->fd, out.data, out.size);
  while (n < 0 && errno == EINTR);
  if (n == (ssize_t) out.size)
    return 0;
  if (n > 0)
    atomic_store (&audit->torn, 1);
  return complain (audit, n < 0 ? errno : ENOSPC);
}
