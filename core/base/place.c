/* SPDX-License-Identifier: Apache-2.0 */
/* Where things live, decided from the caller's uid and environment, and how
 * our folders are opened: component by component, by descriptor, each checked
 * before the next is looked up in it. */

#include <config.h>

#include "base/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"

#define LINKS_MAX 20

/* ---- the table ---------------------------------------------------------- */

/* A variable that counts: not empty, and not in a program with raised
 * rights. */
static const char *
variable (const char *name)
{
  const char *value = getauxval (AT_SECURE) ? NULL : getenv (name);

  return value && *value ? value : NULL;
}

/* VARIABLE/coffer, else HOME/FALLBACK/coffer.  A relative path in a variable
 * is ignored, as the XDG rules want. */
static char *
user_path (const char *name, const char *home, const char *fallback)
{
  const char *base = variable (name);

  if (base && base[0] == '/')
    return text_printf ("%s/coffer", base);
  return text_printf ("%s/%s/coffer", home, fallback);
}

static char *
home_folder (void)
{
  const char *home = variable ("HOME");
  const struct passwd *entry;

  if (home && home[0] == '/')
    return strdup (home);
  entry = getpwuid (geteuid ());
  return strdup (entry && entry->pw_dir[0] == '/' ? entry->pw_dir
                 : "/nonexistent");
}

/* $XDG_RUNTIME_DIR only when it is really the caller's: `su` hands on the
 * other user's. */
static char *
user_runtime (void)
{
  const char *base = variable ("XDG_RUNTIME_DIR");
  struct stat st;

  if (base && base[0] == '/' && stat (base, &st) == 0
      && st.st_uid == geteuid () && !(st.st_mode & (S_IWGRP | S_IWOTH)))
    return text_printf ("%s/coffer", base);
  return text_printf ("/tmp/coffer-%u", (unsigned) geteuid ());
}

static int
find_under (struct place *place, const char *home, struct error **err)
{
  if (home[0] != '/') {
    error_set (err, E_CONFIG, 0, "COFFER_HOME is not an absolute path: %s",
               home);
    error_hint (err, "write COFFER_HOME=\"$PWD/%s\"", home);
    return -1;
  }
  place->home_override = 1;
  place->installed = text_printf ("%s/providers", home);
  place->config = text_printf ("%s/config", home);
  place->state = text_printf ("%s/state", home);
  place->runtime = text_printf ("%s/run", home);
  return 0;
}

static void
find_system (struct place *place)
{
  place->installed = text_printf ("%s/providers", place_builtin_localstate);
  place->config = strdup (place_builtin_sysconf);
  place->state = strdup (place_builtin_localstate);
  place->runtime = strdup (place_builtin_run);
}

static void
find_user (struct place *place)
{
  auto_free char *home = home_folder ();
  auto_free char *data = NULL;

  if (!home)
    return;
  data = user_path ("XDG_DATA_HOME", home, ".local/share");
  place->installed = data ? text_printf ("%s/providers", data) : NULL;
  place->config = user_path ("XDG_CONFIG_HOME", home, ".config");
  place->state = user_path ("XDG_STATE_HOME", home, ".local/state");
  place->runtime = user_runtime ();
}

int
place_find (struct place **out, struct error **err)
{
  auto_place struct place *place = calloc (1, sizeof *place);
  const char *home = variable ("COFFER_HOME");

  if (!place)
    return error_set (err, E_NO_MEMORY, 0, "finding the folders of coffer");
  place->shipped = strdup (place_builtin_shipped);
  place->libexec = strdup (place_builtin_libexec);
  if (home) {
    if (find_under (place, home, err) < 0)
      return -1;
  } else if (geteuid () == 0)
    find_system (place);
  else
    find_user (place);
  if (!place->shipped || !place->libexec || !place->installed
      || !place->config || !place->state || !place->runtime)
    return error_set (err, E_NO_MEMORY, 0, "finding the folders of coffer");
  *out = steal (place);
  return 0;
}

void
place_free (struct place *place)
{
  if (!place)
    return;
  free (place->shipped);
  free (place->libexec);
  free (place->installed);
  free (place->config);
  free (place->state);
  free (place->runtime);
  free (place);
}

/* ---- the owner-and-mode rule -------------------------------------------- */

static int
owner_is_trusted (const struct stat *st)
{
  return st->st_uid == 0 || st->st_uid == geteuid ();
}

/* A group of one, named after its user: what Ubuntu gives each user along with
 * a umask of 002, so that every folder of theirs is writable by it.  Other threads
 * may be asking too; one that needs more room has more members. */
static int
group_is_private (const struct stat *st)
{
  coffer_unfilled char user_bytes[4096], group_bytes[4096];
  struct passwd user, *found = NULL;
  struct group group, *its = NULL;

  if (st->st_uid == 0 || st->st_gid != getegid ()
      || getpwuid_r (st->st_uid, &user, user_bytes, sizeof user_bytes, &found)
           != 0
      || !found || user.pw_gid != st->st_gid
      || getgrgid_r (st->st_gid, &group, group_bytes, sizeof group_bytes, &its)
           != 0
      || !its || strcmp (user.pw_name, group.gr_name) != 0)
    return 0;
  return !group.gr_mem[0]
         || (strcmp (group.gr_mem[0], user.pw_name) == 0 && !group.gr_mem[1]);
}

static int
mode_is_trusted (const struct stat *st)
{
  if (S_ISDIR (st->st_mode) && (st->st_mode & S_ISVTX))
    return 1;
  if (st->st_mode & S_IWOTH)
    return 0;
  return !(st->st_mode & S_IWGRP) || group_is_private (st);
}

/* What stat shows of an owner whom this user namespace does not map, unless
 * the administrator chose another number. */
#define UNMAPPED_UID 65534

static int
check_stat (const struct stat *st, const char *what, struct error **err)
{
  if (!owner_is_trusted (st)) {
    error_set (err, E_UNSAFE_FILE, 0,
               "%s belongs to uid %u, neither root nor the caller", what,
               (unsigned) st->st_uid);
    if (st->st_uid == UNMAPPED_UID)
      error_hint (err, "in a user namespace that does not map root nobody can"
                  " be told from root: run coffer outside of it, or as a user"
                  " of one that maps root");
    return -1;
  }
  if (!S_ISLNK (st->st_mode) && !mode_is_trusted (st))
    return error_set (err, E_UNSAFE_FILE, 0,
                      "%s is writable by others (mode %04o)", what,
                      (unsigned) st->st_mode & 07777);
  return 0;
}

int
place_check_trusted (int fd, const char *what, struct error **err)
{
  struct stat st;

  if (fstat (fd, &st) < 0)
    return error_set (err, E_IO, errno, "stat %s", what);
  if (S_ISLNK (st.st_mode))
    return error_set (err, E_UNSAFE_FILE, 0, "%s is a symbolic link", what);
  return check_stat (&st, what, err);
}

int
place_read_trusted (int dir, const char *name, const char *shown,
                    size_t limit, int number, char **bytes, size_t *size,
                    struct error **err)
{
  coffer_autoclose int fd = -1;
  struct stat st;

  fd = openat (dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0)
    return error_set (err, errno == ELOOP ? E_UNSAFE_FILE : number, errno,
                      "open %s", shown);
  if (fstat (fd, &st) < 0)
    return error_set (err, E_IO, errno, "stat %s", shown);
  if (!S_ISREG (st.st_mode))
    return error_set (err, E_UNSAFE_FILE, 0, "%s is not a regular file",
                      shown);
  if (place_check_trusted (fd, shown, err) < 0)
    return -1;
  if (coffer_read_whole (fd, limit, bytes, size) == 0)
    return 0;
  if (errno == EFBIG)
    return error_set (err, number, 0, "%s: larger than %zu KiB", shown,
                      limit / 1024);
  return error_set (err, E_IO, errno, "read %s", shown);
}

/* ".coffer-" and 16 digits, as coffer_new_file_begin names them. */
static int
is_left_over (const char *name)
{
  static const char start[] = ".coffer-";
  const size_t n = sizeof start - 1;

  return strncmp (name, start, n) == 0
         && strspn (name + n, "0123456789abcdef") == 16 && !name[n + 16];
}

void
place_sweep (int dir)
{
  int fd = openat (dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *item;

  if (stream == NULL) {
    coffer_fd_close (&fd);
    return;
  }
  while ((item = readdir (stream)))
    if (is_left_over (item->d_name))
      unlinkat (dir, item->d_name, 0);
  closedir (stream);
}

/* ---- opening ------------------------------------------------------------ */

/* A walk from "/": the folder reached, and what is left of the path. */
struct walk {
  const char *shown;            /* the whole path, for messages */
  int dir;
  char *rest;
  unsigned links;
  int make;                     /* make missing folders */
  int last_link;                /* may the last component be a link? */
  size_t begun;                 /* bytes of the path that were proven before */
};

/* `name` is the component that was opened, NULL for the last: the message names
 * the folder that is at fault. */
static int
walk_enter (struct walk *walk, int *take_fd, const struct stat *st,
            const char *name, struct error **err)
{
  if (check_stat (st, name ? name : walk->shown, err) < 0)
    return name ? error_wrap (err, "%s", walk->shown) : -1;
  coffer_fd_close (&walk->dir);
  walk->dir = coffer_fd_steal (take_fd);
  return 0;
}

/* ---- what was just proven ------------------------------------------------ */

/* A command opens a handful of folders that lie beside each other.  All of a
 * path up to a folder passed the rule, so nobody but root and the caller can
 * make it lead elsewhere; for a moment it is enough that it leads to the same
 * folder, which is looked at again itself. */
#define PROVEN_NS 1000000000
#define PROVEN_MAX 8

struct proven {
  char path[240];
  dev_t dev;
  ino_t ino;
  int64_t until_ns;
};

static struct proven proven[PROVEN_MAX];
static unsigned next_proven;
static pthread_mutex_t proven_lock = PTHREAD_MUTEX_INITIALIZER;

/* The longest proven folder that `path` lies in; its length, or 0. */
static size_t
proven_find (const char *path, struct proven *out)
{
  const int64_t now = coffer_now_ns ();
  size_t best = 0, i, n;

  pthread_mutex_lock (&proven_lock);
  for (i = 0; i < PROVEN_MAX; i++) {
    n = strlen (proven[i].path);
    if (n > best && proven[i].until_ns > now
        && strncmp (path, proven[i].path, n) == 0 && path[n] == '/'
        && path[n + strspn (path + n, "/")]) {
      best = n;
      *out = proven[i];
    }
  }
  pthread_mutex_unlock (&proven_lock);
  return best;
}

static void
proven_note (const char *path, size_t size, const struct stat *st)
{
  struct proven *one;

  if (size == 0 || size >= sizeof one->path)
    return;
  pthread_mutex_lock (&proven_lock);
  one = &proven[next_proven++ % PROVEN_MAX];
  memcpy (one->path, path, size);
  one->path[size] = '\0';
  one->dev = st->st_dev;
  one->ino = st->st_ino;
  one->until_ns = coffer_now_ns () + PROVEN_NS;
  pthread_mutex_unlock (&proven_lock);
}

/* Begins below a proven folder: 1, or 0 to begin at the root. */
static int
walk_proven (struct walk *walk)
{
  struct proven known;
  const size_t size = proven_find (walk->shown, &known);
  coffer_autoclose int fd = -1;
  struct stat st;

  if (size == 0)
    return 0;
  fd = open (known.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || fstat (fd, &st) < 0 || st.st_dev != known.dev
      || st.st_ino != known.ino || check_stat (&st, known.path, NULL) < 0)
    return 0;
  memmove (walk->rest, walk->rest + size, strlen (walk->rest + size) + 1);
  walk->dir = coffer_fd_steal (&fd);
  walk->begun = size;
  return 1;
}

/* Before the last component: the folder that it is in, by the path that was
 * asked for, unless a link was on the way. */
static void
walk_note (const struct walk *walk, const char *name)
{
  size_t size = strlen (walk->shown) - strlen (name);
  struct stat st;

  while (size > 0 && walk->shown[size - 1] == '/')
    size--;
  if (walk->links == 0 && size > walk->begun && !strchr (name, '/')
      && fstat (walk->dir, &st) == 0)
    proven_note (walk->shown, size, &st);
}

static int
walk_root (struct walk *walk, struct error **err)
{
  coffer_autoclose int fd = open ("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct stat st;

  if (fd < 0 || fstat (fd, &st) < 0)
    return error_set (err, E_IO, errno, "open /");
  return walk_enter (walk, &fd, &st, "/", err);
}

/* A link stands in a folder that passed the rule; when root or the caller made
 * it, it says what they wanted.  Its target goes before the rest. */
static int
walk_link (struct walk *walk, int fd, const char *rest, struct error **err)
{
  char target[PATH_MAX];
  struct stat st;
  ssize_t n;
  char *joined;

  if (fstat (fd, &st) < 0)
    return error_set (err, E_IO, errno, "stat %s", walk->shown);
  if (check_stat (&st, "a link in the path", err) < 0)
    return error_wrap (err, "%s", walk->shown);
  n = readlinkat (fd, "", target, sizeof target - 1);
  if (n < 0)
    return error_set (err, E_IO, errno, "readlink %s", walk->shown);
  target[n] = '\0';
  if (++walk->links > LINKS_MAX)
    return error_set (err, E_UNSAFE_FILE, ELOOP, "%s", walk->shown);
  joined = text_printf ("%s/%s", target, rest);
  if (!joined)
    return error_set (err, E_NO_MEMORY, 0, "open %s", walk->shown);
  free (walk->rest);
  walk->rest = joined;
  return target[0] == '/' ? walk_root (walk, err) : 0;
}

static int
walk_open (struct walk *walk, const char *name, struct error **err)
{
  const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  int fd = openat (walk->dir, name, flags);

  if (fd < 0 && errno == ENOENT && walk->make) {
    if (mkdirat (walk->dir, name, 0700) < 0 && errno != EEXIST)
      return error_set (err, E_IO, errno, "make the folder %s", walk->shown);
    fd = openat (walk->dir, name, flags);
  }
  if (fd < 0)
    return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno,
                      "open %s", walk->shown);
  return fd;
}

/* Takes one component off the rest and goes into it. */
static int
walk_step (struct walk *walk, struct error **err)
{
  char *name = walk->rest + strspn (walk->rest, "/");
  size_t length = strcspn (name, "/");
  char *rest = name + length;
  coffer_autoclose int fd = -1;
  struct stat st;

  walk_note (walk, name);
  rest += strspn (rest, "/");
  name[length] = '\0';
  fd = walk_open (walk, name, err);
  if (fd < 0)
    return -1;
  if (fstat (fd, &st) < 0)
    return error_set (err, E_IO, errno, "stat %s", walk->shown);
  if (S_ISLNK (st.st_mode)) {
    if (!*rest && !walk->last_link)
      return error_set (err, E_UNSAFE_FILE, 0, "%s is a symbolic link",
                        walk->shown);
    return walk_link (walk, fd, rest, err);
  }
  if (!S_ISDIR (st.st_mode))
    return error_set (err, E_UNSAFE_FILE, ENOTDIR, "%s", walk->shown);
  if (walk_enter (walk, &fd, &st, *rest ? name : NULL, err) < 0)
    return -1;
  memmove (walk->rest, rest, strlen (rest) + 1);
  return 0;
}

static int
walk_run (struct walk *walk, struct error **err)
{
  if (walk->shown[0] != '/')
    return error_set (err, E_INVALID, 0, "not an absolute path: %s",
                      walk->shown);
  walk->rest = strdup (walk->shown);
  if (!walk->rest)
    return error_set (err, E_NO_MEMORY, 0, "open %s", walk->shown);
  if (!walk_proven (walk) && walk_root (walk, err) < 0)
    return -1;
  while (walk->rest[strspn (walk->rest, "/")]) {
    if (walk_step (walk, err) < 0)
      return -1;
  }
  return 0;
}

static void
walk_fini (struct walk *walk)
{
  coffer_fd_close (&walk->dir);
  free (walk->rest);
}

int
place_open_trusted_dir (const char *path, struct error **err)
{
  __attribute__ ((cleanup (walk_fini))) struct walk walk
    = { .shown = path, .dir = -1, .last_link = 1 };

  if (walk_run (&walk, err) < 0)
    return -1;
  return coffer_fd_steal (&walk.dir);
}

int
place_open_dir (const char *path, struct error **err)
{
  __attribute__ ((cleanup (walk_fini))) struct walk walk
    = { .shown = path, .dir = -1, .make = 1 };
  int fd;

  if (walk_run (&walk, err) < 0)
    return -1;
  fd = openat (walk.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return error_set (err, E_IO, errno, "open %s", path);
  return fd;
}

/* ---- a provider's own ---------------------------------------------------- */

char *
place_provider_runtime (const struct place *place, const char *id)
{
  return text_printf ("%s/%s", place->runtime, id);
}

/* It is not called `providers`: below the system's /var/lib/coffer those are the
 * installed modules, which no provider may write. */
char *
place_provider_state (const struct place *place, const char *id)
{
  return text_printf ("%s/provider-state/%s", place->state, id);
}

static int
is_missing (const char *path)
{
  return path && faccessat (AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0
         && errno == ENOENT;
}

int
place_provider_used (const struct place *place, const char *id)
{
  auto_free char *runtime = place_provider_runtime (place, id);
  auto_free char *state = place_provider_state (place, id);

  return !(is_missing (runtime) && is_missing (state));
}
