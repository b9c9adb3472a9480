/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a sandbox: within which range, by which means, and what holds.
 *
 * Where a control group cannot be had a limit is taken down to what a process
 * alone can be held to, or is not there; the result says so, and what requires
 * one is refused. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "spawn.h"

/* ---- ranges ------------------------------------------------------------- */

#define SIZE_MOST (UINT64_C (1) << 60)

int32_t
limits_refuse (struct coffer_call *call,
               const struct coffer_sandbox_spec *spec)
{
  const struct {
    const char *field;
    uint64_t value, least, most;
  } rows[] = {
    { "memory_bytes", spec->memory_bytes, 4 << 20, SIZE_MOST },
    { "disk_bytes", spec->disk_bytes, 65536, SIZE_MOST },
    { "inodes", spec->inodes, 64, UINT64_C (1) << 40 },
    { "pids", spec->pids, 1, 4194304 },
    { "cpu_millis", spec->cpu_millis, 1, 1024000 },
    { "address_bytes", spec->address_bytes, 1 << 20, SIZE_MOST },
    { "file_bytes", spec->file_bytes, 1, SIZE_MOST },
    { "open_files", spec->open_files, 16, 1 << 20 },
    { "ttl_ms", spec->ttl_ms, 1, UINT64_C (1000) * 86400 * 365 * 10 },
  };
  size_t i;

  for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].value != 0
        && (rows[i].value < rows[i].least || rows[i].value > rows[i].most))
      return fail_with (call, COFFER_INVALID,
                        "%s: %" PRIu64 " is not from %" PRIu64 " to %" PRIu64,
                        rows[i].field, rows[i].value, rows[i].least,
                        rows[i].most);
  return COFFER_OK;
}

/* ---- control groups ----------------------------------------------------- */

/* A group that is required has something to limit. */
static struct cgroup_limits
limits_of (const struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;
  struct cgroup_limits limits = { spec->memory_bytes, spec->pids,
                                  spec->cpu_millis };

  if (limits.pids == 0 && required (spec, "cgroup"))
    limits.pids = PIDS_DEFAULT;
  return limits;
}

int
cgroup_whole (const struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;
  const unsigned wanted = CGROUP_PIDS
                          | (spec->memory_bytes ? CGROUP_MEMORY : 0u)
                          | (spec->cpu_millis ? CGROUP_CPU : 0u);

  return (making->cgroup.bits & wanted) == wanted;
}

void
limits_take (struct making *making)
{
  struct cgroup_limits limits = limits_of (making);

  if (!LAYER_ON (CGROUP)
      || (making->spec->single_exec && limits.memory_bytes == 0
          && limits.pids == 0 && limits.cpu_millis == 0))
    return;                     /* nothing to limit, nobody to stop */
  if (making->folder < 0)
    making->cgroup.why = "there is no runtime folder to note a group in";
  else
    cgroup_make (making->folder, making->id, making->spec->single_exec != 0,
                 &limits, &making->cgroup);
}

void
limits_enter (struct making *making)
{
  struct cgroup_limits limits = limits_of (making);

  if (making->folder >= 0)
    cgroup_enter (making->folder, making->pid, &limits, &making->cgroup);
}

static int
folder_of (const struct linux_provider *self, const char *id)
{
  if (self->runtime < 0 || !sandbox_id_valid (id)) {
    errno = ENOENT;
    return -1;
  }
  return openat (self->runtime, id,
                 O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int
cgroup_use_of (const struct linux_provider *self, const char *id,
               struct cgroup_use *use)
{
  coffer_autoclose int folder = folder_of (self, id);

  memset (use, 0, sizeof *use);
  return folder < 0 ? -1 : cgroup_use (folder, use);
}

int
cgroup_denials_of (const struct linux_provider *self, const char *id,
                   struct cgroup_denials *denials)
{
  coffer_autoclose int folder = folder_of (self, id);

  memset (denials, 0, sizeof *denials);
  return folder < 0 ? -1 : cgroup_denials (folder, denials);
}

/* ---- what holds --------------------------------------------------------- */

static int32_t
memory_fact (struct making *making)
{
  const uint64_t bytes = making->spec->memory_bytes;
  char value[128];
  uint64_t hard;

  if (bytes == 0)
    return COFFER_OK;
  if (!(making->cgroup.bits & CGROUP_MEMORY)) {
    if (init_limit (making, RLIMIT_DATA, &hard) == -1)
      return spawn_refused (making, "limit.memory", errno);
    if (LAYERS_WHOLE && hard > bytes)
      return coffer_fail (making->call, COFFER_INTERNAL,
                          "the sandbox could not be set up: the memory of its "
                          "processes is not limited");
    snprintf (value, sizeof value, "%" PRIu64 " private bytes of each process,"
              " not of the sandbox", bytes);
    return fact_emit (making->call, "limit.memory", "degraded", value,
                      "RLIMIT_DATA", making->cgroup.why);
  }
  snprintf (value, sizeof value, "%" PRIu64 " bytes of the whole sandbox%s",
            bytes, making->cgroup.swap_off ? ", no swap" : " besides swap");
  return fact_emit (making->call, "limit.memory",
                    making->cgroup.swap_off ? "ok" : "degraded", value,
                    making->cgroup.version == 2
                      ? "memory.max and memory.swap.max"
                      : "memory.limit_in_bytes and memory.memsw",
                    making->cgroup.swap_off
                      ? NULL : "boot with swapaccount=1, or without swap");
}

/* The most processes that the init's own limit allows. */
static int32_t
pids_fact (struct making *making)
{
  const uint64_t most = limits_of (making).pids ? limits_of (making).pids
                                                : PIDS_DEFAULT;
  uint64_t hard;
  char value[64];

  snprintf (value, sizeof value, "%" PRIu64 " of the whole sandbox", most);
  if (!LAYERS_WHOLE || (making->cgroup.bits & CGROUP_PIDS))
    return fact_emit (making->call, "limit.pids", "ok", value, "pids.max",
                      NULL);
  if (init_limit (making, RLIMIT_NPROC, &hard) == -1)
    return spawn_refused (making, "limit.pids", errno);
  if (hard > most)
    return coffer_fail (making->call, COFFER_INTERNAL,
                        "the sandbox could not be set up: its processes are "
                        "not limited");
  snprintf (value, sizeof value, "%" PRIu64 " of the sandbox's user", hard);
  return fact_emit (making->call, "limit.pids", "ok", value,
                    "RLIMIT_NPROC in its user namespace", NULL);
}

static int32_t
cpu_fact (struct making *making)
{
  const uint32_t millis = making->spec->cpu_millis;
  char value[64];

  if (millis == 0)
    return COFFER_OK;
  if (!(making->cgroup.bits & CGROUP_CPU))
    return fact_emit (making->call, "limit.cpu", "off", "not limited",
                      "control group", making->cgroup.why);
  snprintf (value, sizeof value, "%" PRIu32 ".%03" PRIu32 " processors of the"
            " whole sandbox", millis / 1000, millis % 1000);
  return fact_emit (making->call, "limit.cpu", "ok", value,
                    making->cgroup.version == 2 ? "cpu.max"
                                                : "cpu.cfs_quota_us",
                    NULL);
}

static int32_t
cgroup_fact (struct making *making)
{
  const unsigned bits = making->cgroup.bits;
  char value[64];

  if (bits == 0 && making->cgroup.why == NULL)
    return COFFER_OK;           /* there was nothing to limit */
  if (bits == 0)
    return fact_emit (making->call, "cgroup", "absent", "limits are those of "
                      "processes", "tried to make one", making->cgroup.why);
  snprintf (value, sizeof value, "version %d:%s%s%s%s",
            making->cgroup.version, bits & CGROUP_MEMORY ? " memory" : "",
            bits & CGROUP_PIDS ? " pids" : "", bits & CGROUP_CPU ? " cpu" : "",
            bits & CGROUP_FREEZE ? " freeze" : "");
  return fact_emit (making->call, "cgroup",
                    making->cgroup.why == NULL ? "ok" : "degraded", value,
                    making->cgroup.entered ? "CLONE_INTO_CGROUP, cgroup.procs"
                                           : "cgroup.procs",
                    making->cgroup.why);
}

static int32_t
quota_fact (struct making *making)
{
  char value[160];

  if (making->uncapped == NULL)
    return fact_emit (making->call, "quota.hard", "ok",
                      making->images
                        ? "memory of that size, and mounts with a cap of their own"
                        : "all that is written lies in memory of that size",
                      making->images ? "LOOP_CONFIGURE or Q_GETQUOTA" : "statfs",
                      NULL);
  snprintf (value, sizeof value, "nothing caps what is written to %.100s",
            making->uncapped);
  return fact_emit (making->call, "quota.hard", "off", value,
                    "a folder of the host", QUOTA_REMEDY);
}

int32_t
limits_facts (struct making *making)
{
  int32_t code;

  if (LAYERS_WHOLE && cgroup_check (making->pid, &making->cgroup) == -1)
    return coffer_fail (making->call, COFFER_INTERNAL,
                        "the sandbox could not be set up: its init is not in "
                        "its control group");
  code = cgroup_fact (making);
  if (code == COFFER_OK)
    code = memory_fact (making);
  if (code == COFFER_OK)
    code = pids_fact (making);
  if (code == COFFER_OK)
    code = cpu_fact (making);
  if (code == COFFER_OK)
    code = quota_fact (making);
  return code;
}

/* Limits that were asked for and do not hold for the sandbox as a whole. */
const char *const *
limits_lacking (struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;
  size_t n = 0;

  if (spec->memory_bytes != 0 && !(making->cgroup.bits & CGROUP_MEMORY))
    making->lacking[n++] = "limit.memory";
  if (spec->cpu_millis != 0 && !(making->cgroup.bits & CGROUP_CPU))
    making->lacking[n++] = "limit.cpu";
  if ((spec->disk_bytes != 0 || spec->inodes != 0) && making->uncapped != NULL)
    making->lacking[n++] = "quota.hard";
  making->lacking[n] = NULL;
  return making->lacking;
}
