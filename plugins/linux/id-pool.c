/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandbox of root has which id: a table in the runtime folder, mapped by
 * every process that makes sandboxes there, and locked (flock) while one of
 * its places is taken.
 *
 *   .ids   a head, and for each id the process that it belongs to: whoever is
 *          about to make a sandbox, and then the sandbox's init
 *
 * An id is free again when its init has been seen to be gone: the kernel ends
 * everything in a sandbox before that, so nothing is left that has the id.
 * Besides, places are taken round and round, so that the one that was given
 * back last comes last.  A process that was killed gives nothing back: whoever
 * comes by looks for the owner.
 *
 * The window of ids is chosen once for each folder: of what the user namespace
 * maps, beside all that /etc/subuid and /etc/subgid hand out and systemd takes
 * for itself. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "id-pool.h"

#define TABLE_NAME ".ids"
#define TABLE_MAGIC 0x31646963u         /* "cid1" */
#define LOCK_NS 2000000000
#define LOOK_NS 1000000000      /* for a changed /etc/subuid, at most so often */

/* Beyond what systemd, useradd and the distributions hand out, below what a
 * signed number can hold. */
#define POOL_FIRST 0x70000000u
#define POOL_END 0x7f000000u

/* ---- what is taken already ---------------------------------------------- */

struct span {
  uint64_t first, count;
};

static int
spans_meet (const struct span *a, const struct span *b)
{
  return a->first < b->first + b->count && b->first < a->first + a->count;
}

/* Accounts, containers, homes and passing users of systemd; nobody, and the
 * two that are "none" to the kernel.  Where only few ids are mapped no more is
 * asked for than that it is neither root nor nobody. */
static int
span_reserved (const struct span *span, int few)
{
  static const struct span reserved[] = {
    { 0, 1 }, { 65534, 2 }, { 0xfffffffe, 2 },
    { 0, 10000 }, { 60001, 5535 }, { 0x80000, 0x6ff80000 },
    { 0x7ffe0000, 0x10000 }
  };
  const size_t n = few ? 3 : sizeof reserved / sizeof reserved[0];
  size_t i;

  for (i = 0; i < n; i++)
    if (spans_meet (span, &reserved[i]))
      return 1;
  return 0;
}

/* Lines "NAME:FIRST:COUNT". */
static int
span_delegated (const char *text, const struct span *span)
{
  const char *line = text, *field;
  struct span one;

  for (; line != NULL && *line != '\0';
       line = strchr (line, '\n') ? strchr (line, '\n') + 1 : NULL) {
    field = strchr (line, ':');
    if (field != NULL
        && sscanf (field, ":%" SCNu64 ":%" SCNu64, &one.first, &one.count)
             == 2
        && spans_meet (span, &one))
      return 1;
  }
  return 0;
}

/* Lines "INSIDE OUTSIDE COUNT"; of one of them, whole. */
static int
span_mapped (const char *text, const struct span *span)
{
  const char *line = text;
  struct span one;
  uint64_t outside;

  for (; line != NULL && *line != '\0';
       line = strchr (line, '\n') ? strchr (line, '\n') + 1 : NULL)
    if (sscanf (line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &one.first,
                &outside, &one.count)
          == 3
        && span->first >= one.first
        && span->first + span->count <= one.first + one.count)
      return 1;
  return 0;
}

int
pool_window_good (const struct pool_files *files, uint32_t first,
                  uint32_t count, int few)
{
  const struct span span = { first, count };

  return count > 0 && !span_reserved (&span, few)
         && span_mapped (files->uid_map, &span)
         && span_mapped (files->gid_map, &span)
         && !span_delegated (files->subuid, &span)
         && !span_delegated (files->subgid, &span);
}

/* ---- the window --------------------------------------------------------- */

/* Of those above everything else, one that another folder's table has most
 * likely not got. */
static int
window_in_pool (const struct pool_files *files, uint32_t random,
                struct pool_window *out)
{
  const uint32_t windows = (POOL_END - POOL_FIRST) / POOL_SLOTS;
  uint32_t i;

  for (i = 0; i < windows; i++) {
    out->first = POOL_FIRST + (random + i) % windows * POOL_SLOTS;
    out->count = POOL_SLOTS;
    if (pool_window_good (files, out->first, out->count, 0))
      return 0;
  }
  return -1;
}

/* The last ids of a mapped range are the least likely to own anything. */
static int
window_at_end (const struct pool_files *files, uint64_t first, uint64_t count,
               uint32_t size, int few, struct pool_window *out)
{
  uint64_t end = first + count;
  int tries;

  if (end > POOL_END)
    end = POOL_END;
  for (tries = 0; tries < 256 && end >= first + size; tries++, end -= size) {
    out->first = (uint32_t) (end - size);
    out->count = size;
    if (pool_window_good (files, out->first, size, few))
      return 0;
  }
  return -1;
}

/* Where less is mapped; fewer ids where there are only few. */
static int
window_in_map (const struct pool_files *files, int few,
               struct pool_window *out)
{
  uint64_t inside, outside, count;
  const char *line;
  uint32_t size;

  for (size = POOL_SLOTS; size >= 1; size /= 2)
    for (line = files->uid_map; line != NULL && *line != '\0';
         line = strchr (line, '\n') ? strchr (line, '\n') + 1 : NULL)
      if (sscanf (line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside,
                  &count)
            == 3
          && window_at_end (files, inside, count, size, few, out) == 0)
        return 0;
  return -1;
}

int
pool_window_choose (const struct pool_files *files, uint32_t random,
                    struct pool_window *out)
{
  if (window_in_pool (files, random, out) == 0
      || window_in_map (files, 0, out) == 0)
    return 0;
  return window_in_map (files, 1, out);
}

static char *
file_text (const char *path)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC);
  char *text = NULL;
  size_t size;

  if (fd < 0)
    return errno == ENOENT ? strdup ("") : NULL;
  return coffer_read_whole (fd, 1 << 20, &text, &size) == 0 ? text : NULL;
}

/* -1: one of them cannot be read, and so nothing is known to be free. */
static int
window_find (struct pool_window *out)
{
  char *text[4]
    = { file_text ("/proc/self/uid_map"), file_text ("/proc/self/gid_map"),
        file_text ("/etc/subuid"), file_text ("/etc/subgid") };
  const struct pool_files files = { text[0], text[1], text[2], text[3] };
  uint32_t random = 0;
  int i, r = -1;

  if (text[0] != NULL && text[1] != NULL && text[2] != NULL
      && text[3] != NULL
      && getrandom (&random, sizeof random, GRND_NONBLOCK)
           == (ssize_t) sizeof random)
    r = pool_window_choose (&files, random, out);
  for (i = 0; i < 4; i++)
    free (text[i]);
  return r;
}

/* ---- the table ---------------------------------------------------------- */

struct slot {
  uint32_t pid;                 /* 0: free */
  uint32_t pidns;               /* whose numbers that is of */
};

struct table {
  uint32_t magic;
  uint32_t cursor;              /* the place that was taken last */
  struct pool_window window;
  uint64_t userns;              /* what the window was chosen in */
  int64_t subuid_ns, subgid_ns; /* and when those were written */
  struct slot slots[POOL_SLOTS];
};

struct id_pool {
  int fd;                       /* -1: of this process alone */
  uint32_t pidns;
  uint64_t userns;
  int64_t looked_ns;            /* at what the window depends on */
  struct table *table;
};

static int64_t
written_ns (const char *path)
{
  struct stat st;

  if (stat (path, &st) == -1)
    return 0;
  return (int64_t) st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static uint64_t
namespace_of (const char *path)
{
  struct stat st;

  return stat (path, &st) == 0 ? st.st_ino : 0;
}

static int
table_file (int runtime)
{
  coffer_autoclose int fd
    = openat (runtime, TABLE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
              0600);
  struct stat st;

  if (fd < 0 || fstat (fd, &st) == -1)
    return -1;
  if (!S_ISREG (st.st_mode) || st.st_uid != geteuid () || st.st_mode & 077) {
    errno = EPERM;
    return -1;
  }
  /* It only ever grows, to this size, and what is mapped is there: to write
   * where a full file system has no room would be a signal. */
  if (st.st_size < (off_t) sizeof (struct table)) {
    errno = posix_fallocate (fd, 0, sizeof (struct table));
    if (errno != 0)
      return -1;
  }
  return coffer_fd_steal (&fd);
}

static int
pool_map (struct id_pool *pool, int runtime)
{
  const size_t size = sizeof (struct table);
  void *at;

  if (runtime >= 0) {
    pool->fd = table_file (runtime);
    if (pool->fd < 0)
      return -1;
  }
  at = mmap (NULL, size, PROT_READ | PROT_WRITE,
             pool->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, pool->fd,
             0);
  if (at == MAP_FAILED)
    return -1;
  pool->table = at;
  pool->pidns = (uint32_t) namespace_of ("/proc/self/ns/pid");
  pool->userns = namespace_of ("/proc/self/ns/user");
  return pool->pidns != 0 && pool->userns != 0 ? 0 : -1;
}

struct id_pool *
pool_new (int runtime)
{
  struct id_pool *pool = calloc (1, sizeof *pool);

  if (pool == NULL)
    return NULL;
  pool->fd = -1;
  if (pool_map (pool, runtime) == 0)
    return pool;
  pool_free (pool);
  return NULL;
}

void
pool_free (struct id_pool *pool)
{
  int saved = errno;

  if (pool == NULL)
    return;
  if (pool->table != NULL)
    munmap (pool->table, sizeof *pool->table);
  coffer_fd_close (&pool->fd);
  free (pool);
  errno = saved;
}

/* Held for the moment of a search only; but its holder may have been stopped. */
static int
pool_lock (const struct id_pool *pool)
{
  int64_t stop = coffer_now_ns () + LOCK_NS;

  while (pool->fd >= 0 && flock (pool->fd, LOCK_EX | LOCK_NB) == -1) {
    if ((errno != EWOULDBLOCK && errno != EINTR)
        || coffer_now_ns () >= stop)
      return -1;
    poll (NULL, 0, 1);
  }
  return 0;
}

static void
pool_unlock (const struct id_pool *pool)
{
  if (pool->fd >= 0)
    flock (pool->fd, LOCK_UN);
}

/* As far as it can be seen of the numbers: never 0, and no wrap. */
static int
window_sane (const struct pool_window *window)
{
  return window->first > 0 && window->count > 0
         && window->count <= POOL_SLOTS
         && window->first <= POOL_END - window->count;
}

/* The window, chosen anew when what it was chosen by has changed.  Sandboxes
 * that live keep their places, so that nobody gets them twice. */
static int
window_ready (struct id_pool *pool)
{
  struct table *table = pool->table;
  const int64_t subuid = written_ns ("/etc/subuid");
  const int64_t subgid = written_ns ("/etc/subgid");

  if (table->magic == TABLE_MAGIC && table->userns == pool->userns
      && table->subuid_ns == subuid && table->subgid_ns == subgid
      && window_sane (&table->window))
    return 0;
  table->magic = 0;
  if (window_find (&table->window) == -1)
    return -1;
  table->userns = pool->userns;
  table->subuid_ns = subuid;
  table->subgid_ns = subgid;
  table->magic = TABLE_MAGIC;
  return 0;
}

static int
table_ready (struct id_pool *pool)
{
  const int64_t now = coffer_now_ns ();

  if (pool->looked_ns != 0 && now - pool->looked_ns < LOOK_NS
      && pool->table->magic == TABLE_MAGIC
      && pool->table->userns == pool->userns
      && window_sane (&pool->table->window))
    return 0;
  if (window_ready (pool) == -1)
    return -1;
  pool->looked_ns = now;
  return 0;
}

/* Numbers of another namespace of processes say nothing here: those places
 * are left alone. */
static int
slot_free (const struct id_pool *pool, const struct slot *slot)
{
  const pid_t pid
    = (pid_t) __atomic_load_n (&slot->pid, __ATOMIC_ACQUIRE);

  if (pid == 0)
    return 1;
  return slot->pidns == pool->pidns && pid > 0 && kill (pid, 0) == -1
         && errno == ESRCH;
}

static int
slot_find (struct id_pool *pool, uint32_t *out)
{
  struct table *table = pool->table;
  uint32_t i, at;

  for (i = 1; i <= table->window.count; i++) {
    at = (uint32_t) (((uint64_t) table->cursor + i) % table->window.count);
    if (!slot_free (pool, &table->slots[at]))
      continue;
    table->cursor = at;
    table->slots[at].pidns = pool->pidns;
    pool_note (pool, at, getpid ());
    *out = at;
    return 0;
  }
  errno = EUSERS;
  return -1;
}

int
pool_take (struct id_pool *pool, uint32_t *place, uint32_t *id)
{
  int r = -1;

  if (pool_lock (pool) == -1)
    return -1;
  if (table_ready (pool) == 0)
    r = slot_find (pool, place);
  else
    errno = ENOENT;
  if (r == 0)
    *id = pool->table->window.first + *place;
  pool_unlock (pool);
  return r;
}

int
pool_window (struct id_pool *pool, struct pool_window *out)
{
  int r;

  if (pool_lock (pool) == -1)
    return -1;
  r = table_ready (pool);
  *out = pool->table->window;
  pool_unlock (pool);
  return r;
}

/* One aligned word: whoever reads it meanwhile sees one of both processes,
 * and both are alive. */
void
pool_note (struct id_pool *pool, uint32_t place, pid_t pid)
{
  __atomic_store_n (&pool->table->slots[place].pid, (uint32_t) pid,
                    __ATOMIC_RELEASE);
}

void
pool_give (struct id_pool *pool, uint32_t place, pid_t pid)
{
  uint32_t expected = (uint32_t) pid;

  __atomic_compare_exchange_n (&pool->table->slots[place].pid, &expected, 0, 0,
                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
