/* SPDX-License-Identifier: Apache-2.0 */
/* Giving everything up, for this process and all that it starts: limits,
 * capabilities, Landlock, the system call filter.  Afterwards each layer is
 * read back from the kernel, not from what was meant. */

#include "init.h"

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

#define PR_SET_NO_NEW_PRIVS_ 38
#define PR_CAPBSET_DROP_ 24
#define PR_GET_SECUREBITS_ 27
#define PR_SET_SECUREBITS_ 28
#define PR_CAP_AMBIENT_ 47
#define PR_GET_DUMPABLE_ 3
#define SECUREBITS_ 0xef        /* all of them, locked; KEEP_CAPS off, locked */

/* ---- limits ------------------------------------------------------------- */

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

#define ALL UINT64_MAX          /* RLIM_INFINITY */

static void
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
    limit_set ("rlimit nofile", 7, 1024, 65536);
  /* One byte, not none: with none a piped handler of the host still runs. */
  limit_set ("rlimit core", 4, 1, 1);
  limit_set ("rlimit memlock", 8, 0, 0);
  limit_set ("rlimit sigpending", 11, 4096, 4096);
  limit_set ("rlimit msgqueue", 12, 0, 0);
  limit_set ("rlimit nice", 13, 0, 0);
  limit_set ("rlimit rtprio", 14, 0, 0);
  if (plan->body.pids != 0 && !(plan->body.flags & PLAN_CGROUP))
    limit_set ("rlimit nproc", 6, plan->body.pids, plan->body.pids);
}

/* ---- capabilities ------------------------------------------------------- */

static void
capabilities_drop (void)
{
  struct {
    uint32_t version;
    int pid;
  } header = { 0x20080522, 0 };
  uint32_t data[6];
  long r;
  int i;

  must ("securebits", SYS (prctl, PR_SET_SECUREBITS_, SECUREBITS_, 0, 0, 0));
  for (i = 0; i < 64; i++) {
    r = SYS (prctl, PR_CAPBSET_DROP_, i, 0, 0, 0);
    if (r == -EINVAL_)          /* beyond the last one of this kernel */
      break;
    must ("capability bounding set", r);
  }
  must ("ambient capabilities", SYS (prctl, PR_CAP_AMBIENT_, 4, 0, 0, 0));
  memset (data, 0, sizeof data);
  must ("capset", SYS (capset, &header, data));
}

/* ---- Landlock ----------------------------------------------------------- */

struct landlock_ruleset {
  uint64_t files, net, scoped;
};

#define LL_EXECUTE 0x1
#define LL_WRITE_FILE 0x2
#define LL_READ_FILE 0x4
#define LL_READ_DIR 0x8
#define LL_TRUNCATE 0x4000
#define LL_IOCTL_DEV 0x8000

static int landlock_probe = -1; /* a file that no rule names */
static int landlock_control;    /* it could be opened before */

struct landlock_shape
{
  uint64_t files;
  uint64_t scoped;
  size_t size;
};

/* What this code knows, cut to what the kernel says it knows. */
static struct landlock_shape
landlock_negotiate (int abi)
{
  struct landlock_shape shape = { 0x1fff, 0, 8 };

  if (abi >= 2)
    shape.files |= 0x2000;      /* refer */
  if (abi >= 3)
    shape.files |= LL_TRUNCATE;
  if (abi >= 4)
    shape.size = 16;
  if (abi >= 5)
    shape.files |= LL_IOCTL_DEV;
  if (abi >= 6) {
    shape.scoped = 0x3;         /* abstract sockets, signals */
    shape.size = 24;
  }
  return shape;
}

static void
landlock_allow (int ruleset, const char *path, unsigned flags,
                uint64_t access)
{
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__ ((packed)) rule = { access, 0 };
  int fd = (int) SYS (openat, AT_FDCWD_, path,
                       O_PATH_ | O_CLOEXEC_ | flags);

  /* Not there, or a link into what has a rule already. */
  if (fd == -ENOENT_ || (fd == -ENOTDIR_ && flags != 0))
    return;
  must ("landlock path", fd);
  rule.fd = fd;
  must ("landlock rule", SYS (landlock_add_rule, ruleset, 1, &rule, 0));
  fd_close (fd);
}

/* Whether a mount of the caller's is at that very place. */
static int
mount_covers (const struct plan *plan, const char *path)
{
  const char *at = (const char *) plan->packet->header
                   + sizeof *plan->packet->header + plan->body.size;
  struct init_mount mount;
  const char *target;
  uint32_t i;

  for (i = 0; i < plan->body.mounts; i++) {
    memcpy (&mount, at + i * sizeof mount, sizeof mount);
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

/* A terminal that a command is given has no name here; it may be opened again
 * by /proc/self/fd, and so as /dev/stdout. */
static void
landlock_terminals (int ruleset, uint64_t all)
{
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__ ((packed)) rule
    = { (LL_READ_FILE | LL_WRITE_FILE | LL_IOCTL_DEV) & all, host_pts };

  if (host_pts < 0)
    return;
  must ("landlock rule", SYS (landlock_add_rule, ruleset, 1, &rule, 0));
}

static void
landlock_rules (const struct plan *plan, int ruleset, uint64_t all)
{
  static const char *const programs[]
    = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32",
        "/etc" };
  static const char *const data[] = { "/tmp", "/workspace", "/dev/shm" };
  const uint64_t read = LL_EXECUTE | LL_READ_FILE | LL_READ_DIR;
  const char *at = (const char *) plan->packet->header
                   + sizeof *plan->packet->header + plan->body.size;
  struct init_mount mount;
  const char *target;
  uint64_t access;
  uint32_t i;

  landlock_allow (ruleset, "/", 0,
                  plan->body.flags & PLAN_ROOT_WRITABLE ? all : LL_READ_DIR);
  for (i = 0; i < sizeof programs / sizeof programs[0]; i++)
    landlock_allow (ruleset, programs[i], O_DIRECTORY_ | O_NOFOLLOW_, read);
  for (i = 0; i < sizeof data / sizeof data[0]; i++)
    if (!mount_covers (plan, data[i]))
      landlock_allow (ruleset, data[i], 0, all);
  landlock_terminals (ruleset, all);
  landlock_allow (ruleset, "/proc", 0,
                  LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE);
  landlock_allow (ruleset, "/dev", 0,
                  (LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE | LL_TRUNCATE
                   | LL_IOCTL_DEV) & all);
  for (i = 0; i < plan->body.mounts; i++) {
    memcpy (&mount, at + i * sizeof mount, sizeof mount);
    target = packet_string (plan->packet, mount.target);
    access = mount.flags & MOUNT_WRITABLE ? all : read;
    if (mount.flags & MOUNT_FILE)
      access &= LL_EXECUTE | LL_READ_FILE | LL_WRITE_FILE | LL_TRUNCATE;
    landlock_allow (ruleset, target, 0, access & all);
  }
}

static int
landlock_probe_opens (void)
{
  char path[40], number[21];
  int fd;

  text_join (path, sizeof path, "/proc/self/fd/",
             text_number (number, (uint64_t) landlock_probe), NULL);
  fd = (int) SYS (openat, AT_FDCWD_, path, O_CLOEXEC_);
  if (fd < 0)
    return 0;
  fd_close (fd);
  return 1;
}

/* The ABI that is in force; 0: this kernel has none. */
static int
landlock_enter (const struct plan *plan)
{
  struct landlock_ruleset ruleset = { 0, 0, 0 };
  struct landlock_shape shape;
  long abi = SYS (landlock_create_ruleset, 0, 0, 1);
  int fd;

  if (abi == -ENOSYS_ || abi == -EOPNOTSUPP_)
    return 0;
  must ("landlock version", abi);
  shape = landlock_negotiate ((int) abi);
  ruleset.files = shape.files;
  ruleset.scoped = shape.scoped;
  fd = (int) must ("landlock ruleset",
                   SYS (landlock_create_ruleset, &ruleset, shape.size, 0));
  landlock_rules (plan, fd, shape.files);
  landlock_control = landlock_probe_opens ();
  must ("landlock restrict", SYS (landlock_restrict_self, fd, 0));
  fd_close (fd);
  return (int) abi;
}

void
confine_prepare (const struct plan *plan)
{
  if (plan->body.flags & PLAN_ROOT_WRITABLE)
    return;                     /* the rules then name the whole root */
  must ("landlock probe", SYS (mknodat, AT_FDCWD_, "/.probe", 0100444, 0));
  landlock_probe = (int) must ("landlock probe",
                               SYS (openat, AT_FDCWD_, "/.probe",
                                    O_PATH_ | O_CLOEXEC_));
  must ("landlock probe", SYS (unlinkat, AT_FDCWD_, "/.probe", 0));
}

/* ---- reading back ------------------------------------------------------- */

void
fact_add (struct facts *facts, const char *name, const char *state,
          const char *value, const char *how, const char *remedy)
{
  const char *parts[5] = { name, state, value, how, remedy };
  size_t i, size, total = 0;

  for (i = 0; i < 5; i++)
    total += strlen (parts[i]) + 1;
  if (total > facts->capacity - facts->size)
    setup_fail ("facts", -ENOSPC_);
  for (i = 0; i < 5; i++) {
    size = strlen (parts[i]) + 1;
    memcpy (facts->text + facts->size, parts[i], size);
    facts->size += size;
  }
  facts->count++;
}

/* The value of "NAME:\tVALUE" in /proc/self/status, copied. */
static void
status_value (const char *status, const char *name, char *out, size_t size)
{
  const char *line = status;
  size_t n = strlen (name), i = 0;

  out[0] = '\0';
  while (*line != '\0') {
    if (text_starts (line, name) && line[n] == ':') {
      for (line += n + 1; *line == '\t' || *line == ' '; line++)
        ;
      while (line[i] != '\n' && line[i] != '\0' && i + 1 < size) {
        out[i] = line[i];
        i++;
      }
      out[i] = '\0';
      return;
    }
    while (*line != '\n' && *line != '\0')
      line++;
    if (*line == '\n')
      line++;
  }
}

static void
fact_status (struct facts *facts, const char *status, const char *fact,
             const char *key, const char *expected)
{
  char value[64], how[64];

  status_value (status, key, value, sizeof value);
  text_join (how, sizeof how, key, " in /proc/self/status", NULL);
  if (!text_equal (value, expected))
    setup_fail (fact, -EPERM_);
  fact_add (facts, fact, "ok", value, how, "");
}

static void
facts_privileges (struct facts *facts)
{
  static const char *const caps[]
    = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
  static char status[4096];
  char value[64];
  int fd = (int) must ("read back", SYS (openat, AT_FDCWD_,
                                         "/proc/self/status", O_CLOEXEC_));
  long n = must ("read back", SYS (read, fd, status, sizeof status - 1));
  size_t i;

  fd_close (fd);
  status[n] = '\0';
  for (i = 0; i < sizeof caps / sizeof caps[0]; i++) {
    status_value (status, caps[i], value, sizeof value);
    if (!text_equal (value, "0000000000000000"))
      setup_fail ("capabilities: read back", -EPERM_);
  }
  fact_add (facts, "capabilities", "ok", "none, in all five sets",
            "Cap* in /proc/self/status", "");
  if (must ("securebits", SYS (prctl, PR_GET_SECUREBITS_, 0, 0, 0, 0))
      != SECUREBITS_)
    setup_fail ("securebits: read back", -EPERM_);
  fact_add (facts, "securebits", "ok", "locked", "PR_GET_SECUREBITS", "");
  fact_status (facts, status, "no_new_privs", "NoNewPrivs", "1");
  status_value (status, "Seccomp_filters", value, sizeof value);
  if (value[0] == '0')
    setup_fail ("seccomp: read back", -EPERM_);
  fact_status (facts, status, "seccomp", "Seccomp", "2");
  if (strict_mode)
    fact_add (facts, "seccomp.profile", "ok", "strict",
              "put on each command before its program, or that does not start",
              "");
  else
    fact_add (facts, "seccomp.profile", "ok", "general",
              "the program that was installed", "");
  if (SYS (prctl, PR_GET_DUMPABLE_, 0, 0, 0, 0) != 0)
    setup_fail ("dumpable: read back", -EPERM_);
  fact_add (facts, "init", "ok", "not dumpable", "PR_GET_DUMPABLE", "");
}

static void
facts_landlock (struct facts *facts, int abi)
{
  char value[64], number[21];

  if (abi == 0) {
    fact_add (facts, "landlock", "absent", "this kernel has none",
              "landlock_create_ruleset",
              "boot with landlock in the lsm= list, Linux 5.13 or newer");
    return;
  }
  text_join (value, sizeof value, "ABI ",
             text_number (number, (uint64_t) abi),
             abi >= 6 ? ", files and scopes" : ", files", NULL);
  if (landlock_probe < 0) {
    fact_add (facts, "landlock", "ok", value, "landlock_restrict_self", "");
    return;
  }
  if (!landlock_control || landlock_probe_opens ())
    setup_fail ("landlock: read back", -EPERM_);
  fact_add (facts, "landlock", "ok", value,
            "a file outside its rules opened before, and not after", "");
}

/* What must fail here does, and with the answer of the right layer. */
static void
facts_root (const struct plan *plan, struct facts *facts)
{
  uint64_t fs[16];
  char limit[8] = "";
  int fd;

  memset (fs, 0, sizeof fs);
  must ("statfs", SYS (statfs, "/", fs));
  /* f_flags is the word after f_frsize; bit 0 is read-only. */
  if (plan->body.flags & PLAN_ROOT_WRITABLE)
    fact_add (facts, "root", "off", "writable, as asked", "statfs", "");
  else if ((fs[10] & 1) == 0)
    setup_fail ("root: read back", -EPERM_);
  else
    fact_add (facts, "root", "ok", "in memory, read-only", "statfs", "");
  memset (fs, 0, sizeof fs);
  must ("statfs", SYS (statfs, "/usr", fs));
  if ((fs[10] & 7) != 7)        /* ro, nosuid, nodev */
    setup_fail ("/usr: read back", -EPERM_);
  fact_add (facts, "usr", "ok", "read-only, nosuid, nodev", "statfs", "");
  fd = (int) must ("userns limit", SYS (openat, AT_FDCWD_,
                                        "/proc/sys/user/max_user_namespaces",
                                        O_CLOEXEC_));
  must ("userns limit", SYS (read, fd, limit, sizeof limit - 1));
  fd_close (fd);
  if (limit[0] != '0')
    setup_fail ("userns limit: read back", -EPERM_);
  fact_add (facts, "userns.nested", "ok", "none can be made",
            "user.max_user_namespaces", "");
}

void
confine_all (const struct plan *plan, struct facts *facts)
{
  int abi = 0;

  if (LAYER_ON (RLIMITS))
    limits_set (plan);
  if (LAYER_ON (CAPS) && LAYER_ON (NNP))
    capabilities_drop ();
  if (LAYER_ON (NNP))
    must ("no_new_privs", SYS (prctl, PR_SET_NO_NEW_PRIVS_, 1, 0, 0, 0));
  if (LAYER_ON (LANDLOCK))
    abi = landlock_enter (plan);
  if (LAYER_ON (SECCOMP))
    filter_enter ();
  /* A test's: without no_new_privs the two above take a capability. */
  if (LAYER_ON (CAPS) && !LAYER_ON (NNP))
    capabilities_drop ();
  if (LAYERS_WHOLE) {
    facts_privileges (facts);
    facts_landlock (facts, abi);
    facts_root (plan, facts);
  }
  fd_close (landlock_probe);
  fd_close (host_pts);
}
