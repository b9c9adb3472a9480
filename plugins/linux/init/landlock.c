/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock around the sandbox: the rules for each place in it, entered once by
 * the init and inherited by all that it starts, and read back by a file that
 * could be opened before and cannot be afterwards. */

#include "init.h"
#include "landlock.h"

#define AT_FDCWD_ -100
#define O_PATH_ 010000000
#define O_CLOEXEC_ 02000000
#if defined __aarch64__
#define O_DIRECTORY_ 040000
#define O_NOFOLLOW_ 0100000
#else
#define O_DIRECTORY_ 0200000
#define O_NOFOLLOW_ 0400000
#endif

static int probe = -1;          /* a file that no rule names */
static int rules = -1;
static int control;             /* it could be opened before */
static long abi, errata;
static struct landlock_shape shape;
int landlock_whole = -1, landlock_command = -1;

static void
rule_add (int ruleset, int fd, enum landlock_place place)
{
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__ ((packed)) rule = { landlock_grant (place, &shape), fd };

  must ("landlock rule", SYS (landlock_add_rule, ruleset, 1, &rule, 0));
}

static void
path_allow (int ruleset, const char *path, unsigned flags,
            enum landlock_place place)
{
  int fd = (int) SYS (openat, AT_FDCWD_, path, O_PATH_ | O_CLOEXEC_ | flags);

  /* Not there, or a link into what has a rule already. */
  if (fd == -ENOENT_ || (fd == -ENOTDIR_ && flags != 0))
    return;
  must ("landlock path", fd);
  rule_add (ruleset, fd, place);
  fd_close (fd);
}

/* ---- the caller's mounts ------------------------------------------------ */

static void
mount_read (const struct plan *plan, uint32_t i, struct init_mount *mount)
{
  const char *at = (const char *) plan->packet->header
                   + sizeof *plan->packet->header + plan->body.size;

  memcpy (mount, at + i * sizeof *mount, sizeof *mount);
}

/* Whether a mount of the caller's is at that very place. */
static int
mount_covers (const struct plan *plan, const char *path)
{
  struct init_mount mount;
  const char *target;
  uint32_t i;

  for (i = 0; i < plan->body.mounts; i++) {
    mount_read (plan, i, &mount);
    target = packet_string (plan->packet, mount.target);
    if (target == NULL || !text_starts (target, path))
      continue;
    for (target += strlen (path); *target == '/'; target++)
      ;
    if (*target == '\0')
      return 1;
  }
  return 0;
}

static void
mounts_allow (const struct plan *plan, int ruleset)
{
  struct init_mount mount;
  uint32_t i;

  for (i = 0; i < plan->body.mounts; i++) {
    mount_read (plan, i, &mount);
    if (mount.flags & MOUNT_ROOT)
      continue;
    path_allow (ruleset, packet_string (plan->packet, mount.target), 0,
                mount.flags & MOUNT_FILE
                  ? (mount.flags & MOUNT_WRITABLE ? LANDLOCK_SHARED_FILE
                                                  : LANDLOCK_SHOWN_FILE)
                  : (mount.flags & MOUNT_WRITABLE ? LANDLOCK_SHARED
                                                  : LANDLOCK_SHOWN));
  }
}

/* ---- all rules ---------------------------------------------------------- */

static void
rules_add (const struct plan *plan, int ruleset)
{
  static const char *const programs[]
    = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32",
        "/etc" };
  static const char *const data[] = { "/tmp", "/workspace", "/dev/shm" };
  size_t i;

  path_allow (ruleset, "/", 0,
              plan->shape.flags & PLAN_ROOT_WRITABLE ? LANDLOCK_DATA
                                                    : LANDLOCK_ROOT);
  for (i = 0; i < sizeof programs / sizeof programs[0]; i++)
    path_allow (ruleset, programs[i], O_DIRECTORY_ | O_NOFOLLOW_,
                LANDLOCK_PROGRAMS);
  for (i = 0; template_folder ((unsigned) i) != NULL; i++)
    path_allow (ruleset, template_folder ((unsigned) i), 0,
                LANDLOCK_PROGRAMS);
  for (i = 0; i < sizeof data / sizeof data[0]; i++)
    if (!mount_covers (plan, data[i]))
      path_allow (ruleset, data[i], 0, LANDLOCK_DATA);
  /* A terminal that a command is given has no name here; it may be opened
   * again by /proc/self/fd, and so as /dev/stdout. */
  if (host_pts >= 0)
    rule_add (ruleset, host_pts, LANDLOCK_TERMINALS);
  path_allow (ruleset, "/proc", 0, LANDLOCK_PROC);
  path_allow (ruleset, "/dev", 0, LANDLOCK_DEVICES);
  mounts_allow (plan, ruleset);
}

/* ---- reading back ------------------------------------------------------- */

/* In the file system for data, but in none of its folders that are shown. */
void
landlock_prepare (const struct plan *plan, int data)
{
  if (plan->shape.flags & PLAN_ROOT_WRITABLE)
    return;                     /* the rules then name the whole root */
  must ("landlock probe", SYS (mknodat, data, "probe", 0100444, 0));
  probe = (int) must ("landlock probe", SYS (openat, data, "probe",
                                             O_PATH_ | O_CLOEXEC_));
  must ("landlock probe", SYS (unlinkat, data, "probe", 0));
}

static int
probe_opens (void)
{
  char path[40], number[21];
  int fd;

  text_join (path, sizeof path, "/proc/self/fd/",
             text_number (number, (uint64_t) probe), NULL);
  fd = (int) SYS (openat, AT_FDCWD_, path, O_CLOEXEC_);
  if (fd < 0)
    return 0;
  fd_close (fd);
  return 1;
}

/* Flag 1 asks for the ABI, flag 2 for what was mended of it since. */
static int
abi_ask (void)
{
  abi = SYS (landlock_create_ruleset, 0, 0, 1);
  if (abi == -ENOSYS_ || abi == -EOPNOTSUPP_)
    abi = 0;                    /* not built in, or not switched on */
  must ("landlock version", abi);
  errata = SYS (landlock_create_ruleset, 0, 0, 2);
  return abi > 0;
}

static int
ruleset_new (const struct landlock_shape *of)
{
  return (int) must ("landlock ruleset",
                     SYS (landlock_create_ruleset, &of->handled, of->size,
                          0));
}

/* While nobody is held to anything yet. */
static void
command_prepare (void)
{
  const struct landlock_shape command = landlock_command_shape (&shape);

  if (command.handled.scoped != 0)
    landlock_command = ruleset_new (&command);
}

long
landlock_enter_command (void)
{
  return landlock_command < 0
           ? 0 : SYS (landlock_restrict_self, landlock_command, 0);
}

void
landlock_rules (const struct plan *plan)
{
  if (!abi_ask ()) {
    /* Refused here as well, where the rules would be: whoever found one
     * before may have been wrong. */
    if (plan->body.flags & PLAN_LANDLOCK)
      setup_fail ("landlock: required, and this kernel has none",
                  -EOPNOTSUPP_);
    return;
  }
  /* The interpreter has no sockets; then TCP may be denied here too. */
  shape = landlock_negotiate (abi, strict_mode);
  if (strict_mode)
    command_prepare ();
  rules = ruleset_new (&shape);
  rules_add (plan, rules);
}

void
landlock_enter (void)
{
  if (rules < 0)
    return;
  control = probe >= 0 && probe_opens ();
  must ("landlock restrict", SYS (landlock_restrict_self, rules, 0));
  if (strict_mode)
    landlock_whole = rules;
  else
    fd_close (rules);
}

static void
fact_value (char *out, size_t size)
{
  char number[21], mended[21];

  text_join (out, size, "ABI ", text_number (number, (uint64_t) abi),
             errata > 0 ? ", errata " : "",
             errata > 0 ? text_number (mended, (uint64_t) errata) : "",
             ": files",
             shape.handled.files & LL_IOCTL_DEV ? ", devices" : "",
             shape.handled.files & LL_RESOLVE_UNIX ? ", sockets by path" : "",
             shape.handled.scoped != 0 || landlock_command >= 0
               ? ", scopes" : "",
             shape.handled.net != 0 ? ", TCP" : "", NULL);
}

void
landlock_facts (struct facts *facts)
{
  char value[128];

  if (abi == 0) {
    fact_add (facts, "landlock", "absent", "this kernel has none",
              "landlock_create_ruleset",
              "boot with landlock in the lsm= list, Linux 5.13 or newer");
    return;
  }
  fact_value (value, sizeof value);
  if (probe < 0) {
    fact_add (facts, "landlock", "ok", value, "landlock_restrict_self", "");
    return;
  }
  if (!control || probe_opens ())
    setup_fail ("landlock: read back", -EPERM_);
  fact_add (facts, "landlock", "ok", value,
            "a file outside its rules opened before, and not after", "");
}

void
landlock_done (void)
{
  fd_close (probe);
}
