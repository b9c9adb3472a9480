/* SPDX-License-Identifier: Apache-2.0 */
/* The Landlock domain of a strict worker: what the manifest's `read`, `write`
 * and `exec` name, what any dynamic program needs, and the provider's own two
 * folders.  The constants are ours: a kernel may know more than the headers of
 * the machine that built this, and the other way round.  Asked for are the
 * bits we know, less those the kernel's ABI lacks; never "all bits". */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "provider/worker/rights.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define FS_EXECUTE (UINT64_C (1) << 0)
#define FS_WRITE_FILE (UINT64_C (1) << 1)
#define FS_READ_FILE (UINT64_C (1) << 2)
#define FS_READ_DIR (UINT64_C (1) << 3)
#define FS_REMOVE_DIR (UINT64_C (1) << 4)
#define FS_REMOVE_FILE (UINT64_C (1) << 5)
#define FS_MAKE_CHAR (UINT64_C (1) << 6)
#define FS_MAKE_DIR (UINT64_C (1) << 7)
#define FS_MAKE_REG (UINT64_C (1) << 8)
#define FS_MAKE_SOCK (UINT64_C (1) << 9)
#define FS_MAKE_FIFO (UINT64_C (1) << 10)
#define FS_MAKE_BLOCK (UINT64_C (1) << 11)
#define FS_MAKE_SYM (UINT64_C (1) << 12)
#define FS_REFER (UINT64_C (1) << 13)           /* ABI 2 */
#define FS_TRUNCATE (UINT64_C (1) << 14)        /* ABI 3 */
#define FS_IOCTL_DEV (UINT64_C (1) << 15)       /* ABI 5 */
#define FS_ABI_1 (FS_REFER - 1)
#define NET_TCP (UINT64_C (3))                  /* bind, connect: ABI 4 */
#define SCOPES (UINT64_C (3))   /* abstract sockets, signals: ABI 6 */

#define RIGHTS_READ (FS_READ_FILE | FS_READ_DIR)
#define RIGHTS_WRITE                                                          \
  (RIGHTS_READ | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE               \
   | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM    \
   | FS_REFER | FS_TRUNCATE)
#define RIGHTS_EXEC (FS_EXECUTE | FS_READ_FILE)
#define RIGHTS_OF_FILES                                                       \
  (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

#define CREATE_RULESET_VERSION 1U
#define RULE_PATH_BENEATH 1

struct ruleset_attributes {
  uint64_t fs, net, scoped;
};

struct path_rule {
  uint64_t allowed;
  int32_t parent_fd;
} __attribute__ ((packed));

struct domain {
  int fd;
  uint64_t handled;
};

static int
landlock_abi (void)
{
  long abi = syscall (SYS_landlock_create_ruleset, NULL, 0,
                      CREATE_RULESET_VERSION);

  return abi < 0 ? -1 : (int) abi;
}

static int
allow_fd (struct domain *domain, int fd, uint64_t allowed)
{
  struct path_rule rule = { .allowed = allowed & domain->handled,
                            .parent_fd = fd };
  struct stat st;

  if (fstat (fd, &st) < 0)
    return -1;
  if (!S_ISDIR (st.st_mode))
    rule.allowed &= RIGHTS_OF_FILES;
  return (int) syscall (SYS_landlock_add_rule, domain->fd, RULE_PATH_BENEATH,
                        &rule, 0);
}

/* A path that is not there grants nothing. */
static int
allow_opened (struct domain *domain, int take_fd, const char *path,
              uint64_t allowed, struct error **err)
{
  coffer_autoclose int fd = take_fd;

  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
    return 0;
  if (fd < 0 || allow_fd (domain, fd, allowed) < 0)
    return error_set (err, E_PERMISSION, errno, "landlock rule for %s", path);
  return 0;
}

static int
allow_path (struct domain *domain, const char *path, uint64_t allowed,
            struct error **err)
{
  return allow_opened (domain, open (path, O_PATH | O_CLOEXEC), path, allowed,
                       err);
}

/* The host named it without a link on the way: one that is there now was put
 * there since. */
static int
allow_writable (struct domain *domain, const char *path, struct error **err)
{
  const struct open_how how
    = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
  int fd = (int) syscall (SYS_openat2, AT_FDCWD, path, &how, sizeof how);

  if (fd < 0 && errno == ENOSYS)
    fd = open (path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  return allow_opened (domain, fd, path, RIGHTS_WRITE, err);
}

static int
allow_list (struct domain *domain, char *const *paths, uint64_t allowed,
            struct error **err)
{
  int r = 0;

  for (; r == 0 && paths && *paths; paths++)
    r = allowed == RIGHTS_WRITE ? allow_writable (domain, *paths, err)
                                : allow_path (domain, *paths, allowed, err);
  return r;
}

/* What the dynamic loader and the C library open in any program. */
static int
allow_base (struct domain *domain, int execs, struct error **err)
{
  static const char *const readable[] = {
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib",
    "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo",
    "/dev/urandom", "/dev/random", "/dev/zero"
  };
  static const char *const loaders[] = {
    "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-linux-riscv64-lp64d.so.1", "/lib64/ld64.so.2"
  };
  size_t i;

  for (i = 0; i < sizeof readable / sizeof readable[0]; i++)
    if (allow_path (domain, readable[i], RIGHTS_READ, err) < 0)
      return -1;
  for (i = 0; execs && i < sizeof loaders / sizeof loaders[0]; i++)
    if (allow_path (domain, loaders[i], RIGHTS_EXEC, err) < 0)
      return -1;
  return allow_path (domain, "/dev/null", FS_READ_FILE | FS_WRITE_FILE, err);
}

/* The caller's own cgroups, in each hierarchy that is mounted. */
static int
allow_cgroups (struct domain *domain, struct error **err)
{
  FILE *list = fopen ("/proc/self/cgroup", "re");
  char line[4096], path[4352], *controllers, *name;
  int result = 0;

  while (list && result == 0 && fgets (line, sizeof line, list)) {
    line[strcspn (line, "\n")] = '\0';
    controllers = strchr (line, ':');
    name = controllers ? strchr (controllers + 1, ':') : NULL;
    if (!name || strcmp (name, ":/") == 0)
      continue;                 /* the root of all is nobody's own */
    *controllers++ = *name++ = '\0';
    if (strncmp (controllers, "name=", 5) == 0)
      controllers += 5;
    snprintf (path, sizeof path, "/sys/fs/cgroup/%s%s", controllers, name);
    result = allow_path (domain, path, RIGHTS_WRITE, err);
    if (result == 0 && !*controllers) {
      snprintf (path, sizeof path, "/sys/fs/cgroup/unified%s", name);
      result = allow_path (domain, path, RIGHTS_WRITE, err);
    }
  }
  if (list)
    fclose (list);
  return result;
}

static int
allow_folders (struct domain *domain, const struct rights *rights,
               struct error **err)
{
  if (allow_fd (domain, rights->runtime_dir, RIGHTS_WRITE) < 0
      || (rights->state_dir >= 0
          && allow_fd (domain, rights->state_dir, RIGHTS_WRITE) < 0))
    return error_set (err, E_PERMISSION, errno,
                      "landlock rule for the provider's folders");
  return 0;
}

static int
domain_open (struct domain *domain, int abi, struct error **err)
{
  struct ruleset_attributes attributes = { .fs = FS_ABI_1 };
  size_t size = sizeof attributes.fs;

  if (abi >= 2)
    attributes.fs |= FS_REFER;
  if (abi >= 3)
    attributes.fs |= FS_TRUNCATE;
  if (abi >= 5)
    attributes.fs |= FS_IOCTL_DEV;
  if (abi >= 4) {
    attributes.net = NET_TCP;
    size += sizeof attributes.net;
  }
  if (abi >= 6) {
    attributes.scoped = SCOPES;
    size += sizeof attributes.scoped;
  }
  domain->handled = attributes.fs;
  domain->fd = (int) syscall (SYS_landlock_create_ruleset, &attributes, size,
                              0);
  if (domain->fd < 0)
    return error_set (err, E_PERMISSION, errno, "landlock ruleset");
  return 0;
}

int
landlock_apply (const struct rights *rights, struct error **err)
{
  struct domain domain = { .fd = -1 };
  int abi = landlock_abi (), result = -1;
  int execs = rights->exec && rights->exec[0];

  if (abi < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
    return 0;
  if (abi < 0)
    return error_set (err, E_PERMISSION, errno, "landlock");
  if (domain_open (&domain, abi, err) < 0)
    return -1;
  if (allow_base (&domain, execs, err) == 0
      && allow_list (&domain, rights->read, RIGHTS_READ, err) == 0
      && allow_list (&domain, rights->write, RIGHTS_WRITE, err) == 0
      && allow_list (&domain, rights->exec, RIGHTS_EXEC, err) == 0
      && allow_folders (&domain, rights, err) == 0
      && (!rights->cgroup || allow_cgroups (&domain, err) == 0)) {
    result = (int) syscall (SYS_landlock_restrict_self, domain.fd, 0);
    if (result < 0)
      error_set (err, E_PERMISSION, errno, "enter the landlock domain");
  }
  close (domain.fd);
  return result < 0 ? -1 : abi;
}
