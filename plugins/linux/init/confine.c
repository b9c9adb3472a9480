/* SPDX-License-Identifier: Apache-2.0 */
/* Giving everything up, for this process and all that it starts: limits,
 * capabilities, and in files of their own Landlock and the system call filter.
 * Afterwards each layer is read back from the kernel, not from what was
 * meant. */

#include "init.h"

#define AT_FDCWD_ -100
#define O_CLOEXEC_ 02000000

#define PR_SET_NO_NEW_PRIVS_ 38
#define PR_CAPBSET_DROP_ 24
#define PR_GET_SECUREBITS_ 27
#define PR_SET_SECUREBITS_ 28
#define PR_CAP_AMBIENT_ 47
#define PR_GET_DUMPABLE_ 3
#define SECUREBITS_ 0xef        /* all of them, locked; KEEP_CAPS off, locked */

/* ---- capabilities ------------------------------------------------------- */

static int bounded;

/* What no program that is started could get; what this process has, it has until
 * there is a sandbox. */
void
capabilities_bound (void)
{
  long r;
  int i;

  bounded = 1;
  must ("securebits", SYS (prctl, PR_SET_SECUREBITS_, SECUREBITS_, 0, 0, 0));
  for (i = 0; i < 64; i++) {
    r = SYS (prctl, PR_CAPBSET_DROP_, i, 0, 0, 0);
    if (r == -EINVAL_)          /* beyond the last one of this kernel */
      break;
    must ("capability bounding set", r);
  }
}

static void
capabilities_drop (void)
{
  struct {
    uint32_t version;
    int pid;
  } header = { 0x20080522, 0 };
  uint32_t data[6];

  if (!bounded)
    capabilities_bound ();
  must ("ambient capabilities", SYS (prctl, PR_CAP_AMBIENT_, 4, 0, 0, 0));
  memset (data, 0, sizeof data);
  must ("capset", SYS (capset, &header, data));
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

/* Groups beside the sandbox's own: root gave them up, an ordinary user could
 * not, and they count for files that are shown. */
static void
facts_groups (const struct plan *plan, struct facts *facts)
{
  uint32_t groups[256];
  const long n = must ("groups: read back", SYS (getgroups, 0, 0));
  const uint32_t own = (uint32_t) SYS (getgid);
  char value[64], number[21];
  uint64_t others = 0;
  long i;

  if (n <= 256)
    must ("groups: read back", SYS (getgroups, 256, groups));
  for (i = 0; i < n; i++)
    others += n > 256 || groups[i] != own;
  if (others == 0) {
    fact_add (facts, "user.groups", "ok", "none", "getgroups", "");
    return;
  }
  if (plan->shape.flags & PLAN_PRIVILEGED)
    setup_fail ("groups: read back", -EPERM_);
  text_join (value, sizeof value, "inherited: ",
             text_number (number, others),
             ", which count for files that are shown", NULL);
  fact_add (facts, "user.groups", "degraded", value, "getgroups", "");
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
              "put on each command and tried there, or it does not start",
              "");
  else
    fact_add (facts, "seccomp.profile", "ok", "general",
              "the program that was installed", "");
  if (SYS (prctl, PR_GET_DUMPABLE_, 0, 0, 0, 0) != 0)
    setup_fail ("dumpable: read back", -EPERM_);
  fact_add (facts, "init", "ok", "not dumpable", "PR_GET_DUMPABLE", "");
}

/* What must fail here does, and with the answer of the right layer. */
static void
facts_root (const struct plan *plan, struct facts *facts)
{
  uint64_t fs[16];

  memset (fs, 0, sizeof fs);
  must ("statfs", SYS (statfs, "/", fs));
  /* f_flags is the word after f_frsize; bit 0 is read-only. */
  if (plan->shape.flags & PLAN_ROOT_WRITABLE)
    fact_add (facts, "root", "off", "writable, as asked", "statfs", "");
  else if ((fs[10] & 1) == 0)
    setup_fail ("root: read back", -EPERM_);
  else
    fact_add (facts, "root", "ok", "in memory, read-only", "statfs", "");
  if (template_folder (0) != NULL)
    template_facts (facts);
  else {
    memset (fs, 0, sizeof fs);
    must ("statfs", SYS (statfs, "/usr", fs));
    if ((fs[10] & 7) != 7)      /* ro, nosuid, nodev */
      setup_fail ("/usr: read back", -EPERM_);
    fact_add (facts, "usr", "ok", "read-only, nosuid, nodev", "statfs", "");
  }
}

/* In strict there is no /proc/sys: what was written was read back there. */
static void
facts_nested (struct facts *facts)
{
  char limit[8] = "0";
  int fd = (int) SYS (openat, AT_FDCWD_, "/proc/sys/user/max_user_namespaces",
                      O_CLOEXEC_);

  if (fd != -ENOENT_ || !strict_mode) {
    must ("userns limit", fd);
    must ("userns limit", SYS (read, fd, limit, sizeof limit - 1));
    fd_close (fd);
  }
  if (limit[0] != '0' || limit[1] > '\n')
    setup_fail ("userns limit: read back", -EPERM_);
  fact_add (facts, "userns.nested", "ok", "none can be made",
            "user.max_user_namespaces", "");
}

void
confine_prepare (const struct plan *plan)
{
  if (LAYER_ON (LANDLOCK))
    landlock_rules (plan);
}

void
confine_all (const struct plan *plan, struct facts *facts)
{
  if (LAYER_ON (RLIMITS))
    limits_set (plan);
  if (LAYER_ON (CAPS) && LAYER_ON (NNP))
    capabilities_drop ();
  if (LAYER_ON (NNP))
    must ("no_new_privs", SYS (prctl, PR_SET_NO_NEW_PRIVS_, 1, 0, 0, 0));
  if (LAYER_ON (LANDLOCK))
    landlock_enter ();
  if (LAYER_ON (SECCOMP))
    filter_enter ();
  /* A test's: without no_new_privs the two above take a capability. */
  if (LAYER_ON (CAPS) && !LAYER_ON (NNP))
    capabilities_drop ();
  if (LAYERS_WHOLE) {
    facts_privileges (facts);
    facts_groups (plan, facts);
    landlock_facts (facts);
    facts_root (plan, facts);
    facts_nested (facts);
    limits_facts (plan, facts);
  }
  landlock_done ();
  fd_close (host_pts);
}
