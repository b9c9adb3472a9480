/* SPDX-License-Identifier: Apache-2.0 */
/* Lines into a file that may be renamed meanwhile.  See audit.h. */

#include <config.h>

#include <fcntl.h>
#include <pthread.h>
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
#include "base/text.h"
#include "server/audit.h"

#define COMPLAIN_NS INT64_C (60000000000)

struct audit {
  char *path;
  uint64_t most;                /* 0: any size */
  unsigned keep;
  pthread_mutex_t lock;         /* the next four */
  int fd;
  uint64_t size;
  int torn;                     /* the last line is not whole */
  int64_t again_ns;             /* a new one could not be begun: not before */
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
file_open (const char *path, int *torn, uint64_t *size, struct error **err)
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
  *size = (uint64_t) st.st_size;
  return coffer_fd_steal (&fd);
}

int
audit_open (const struct audit_options *options, struct audit **out,
            struct error **err)
{
  uint64_t size = 0;
  int torn = 0, fd = file_open (options->path, &torn, &size, err);
  struct audit *audit = fd < 0 ? NULL : calloc (1, sizeof *audit);

  if (fd < 0)
    return -1;
  if (audit == NULL || (audit->path = strdup (options->path)) == NULL) {
    coffer_fd_close (&fd);
    free (audit);
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  }
  audit->fd = fd;
  audit->torn = torn;
  audit->size = size;
  audit->most = options->size;
  audit->keep = options->keep ? options->keep : 1;
  pthread_mutex_init (&audit->lock, NULL);
  *out = audit;
  return 0;
}

void
audit_free (struct audit *audit)
{
  if (audit == NULL)
    return;
  coffer_fd_close (&audit->fd);
  pthread_mutex_destroy (&audit->lock);
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

/* ---- a new file ----------------------------------------------------------- */

/* The name is still this file's: nobody has moved it away. */
static int
is_named (const struct audit *audit)
{
  struct stat named, open;

  return lstat (audit->path, &named) == 0 && fstat (audit->fd, &open) == 0
         && named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

/* Each rename is whole: whatever ends this process in between, no line is lost
 * but those of the oldest. */
static int
names_shift (const struct audit *audit)
{
  unsigned i;

  for (i = audit->keep; i >= 1; i--) {
    auto_free char *to = text_printf ("%s.%u", audit->path, i);
    auto_free char *from = i > 1 ? text_printf ("%s.%u", audit->path, i - 1)
                                 : strdup (audit->path);

    if (!to || !from)
      return -1;
    if (rename (from, to) < 0 && (i == 1 || errno != ENOENT))
      return -1;
  }
  return 0;
}

/* What cannot be done goes on in the file there is: no line is lost for it. */
static void
rotate_locked (struct audit *audit)
{
  auto_error struct error *error = NULL;
  uint64_t size = 0;
  int torn = 0, fd = -1;

  if (coffer_now_ns () < audit->again_ns)
    return;
  if (is_named (audit) && names_shift (audit) < 0)
    error_set (&error, E_IO, errno, "rename %s", audit->path);
  else
    fd = file_open (audit->path, &torn, &size, &error);
  if (fd < 0) {
    audit->again_ns = coffer_now_ns () + COMPLAIN_NS;
    log_event (LOG_LEVEL_ERROR, "audit", "it grows beyond its size: %s",
               error_message (error));
    return;
  }
  coffer_fd_close (&audit->fd);
  audit->fd = fd;
  audit->torn = torn;
  audit->size = size;
}

/* ---- writing -------------------------------------------------------------- */

static int
line_write_locked (struct audit *audit, const char *text, size_t size)
{
  ssize_t n;

  if (audit->most && audit->size && audit->size + size > audit->most)
    rotate_locked (audit);
  /* The one before may have ended in the middle: no two on one line. */
  if (audit->torn && coffer_write_all (audit->fd, "\n", 1) != 1)
    return errno;
  audit->torn = 0;
  do
    n = write (audit->fd, text, size);
  while (n < 0 && errno == EINTR);
  if (n > 0)
    audit->size += (uint64_t) n;
  if (n == (ssize_t) size)
    return 0;
  audit->torn = n > 0;
  return n < 0 ? errno : ENOSPC;
}

int
audit_write (struct audit *audit, json_t *line)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  auto_free char *text = json_text (line);
  char time[AUDIT_TIME_SIZE];
  int failed;

  if (text == NULL || text[0] != '{')
    return complain (audit, ENOMEM);
  audit_time (coffer_realtime_ns (), time);
  coffer_buffer_printf (&out, "{\"time\":\"%s\"%s%s\n", time,
                        text[1] == '}' ? "" : ",", text + 1);
  if (out.failed)
    return complain (audit, ENOMEM);
  pthread_mutex_lock (&audit->lock);
  failed = line_write_locked (audit, out.data, out.size);
  pthread_mutex_unlock (&audit->lock);
  return failed ? complain (audit, failed) : 0;
}
