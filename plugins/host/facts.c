/* SPDX-License-Identifier: Apache-2.0 */
/* What the host provider says about itself and about this machine. */

#define _GNU_SOURCE

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "host.h"

int32_t
emit_isolation (struct coffer_call *call)
{
  const struct coffer_fact fact = {
    .size = sizeof fact,
    .name = "isolation",
    .state = "off",
    .value = "none",
    .how = "this provider has none: commands run as the caller and reach "
           "all that the caller can",
    .remedy = "use the linux provider for code that is not trusted",
  };

  return coffer_emit_fact (call, &fact);
}

int32_t
emit_user (struct coffer_call *call)
{
  char value[64];
  struct coffer_fact fact = {
    .size = sizeof fact, .name = "user", .state = "ok", .value = value,
    .how = "geteuid",
  };

  snprintf (value, sizeof value, "uid %u", (unsigned) geteuid ());
  if (geteuid () == 0) {
    fact.state = "degraded";
    fact.remedy = "run as an ordinary user: commands run as root here";
    snprintf (value, sizeof value, "root");
  }
  return coffer_emit_fact (call, &fact);
}

/* A fact about something that is there or takes capabilities away. */
static int32_t
emit_needed (struct coffer_call *call, const char *name, int sys_errno,
             const char *how, const char *remedy)
{
  static const char *const all[] = {"exec", "exec.stdin", "exec.tty",
                                    "exec.signal", "files", "durable", "ttl",
                                    NULL};
  const struct coffer_fact fact = {
    .size = sizeof fact,
    .name = name,
    .state = sys_errno ? "failed" : "ok",
    .value = sys_errno ? strerrordesc_np (sys_errno) : "there",
    .how = how,
    .remedy = sys_errno ? remedy : NULL,
    .narrows = sys_errno ? all : NULL,
  };

  return coffer_emit_fact (call, &fact);
}

static int
try_subreaper (void)
{
  int value;

  return prctl (PR_GET_CHILD_SUBREAPER, &value) < 0 ? errno : 0;
}

static int
try_pidfd (void)
{
  coffer_autoclose int fd = (int) syscall (SYS_pidfd_open, getpid (), 0);

  return fd < 0 ? errno : 0;
}

int32_t
host_probe (struct coffer_call *call, void *self,
            const struct coffer_probe_opts *opts)
{
  const struct host *host = self;
  int32_t code = emit_isolation (call);

  (void) opts;
  if (code == COFFER_OK)
    code = emit_user (call);
  if (code == COFFER_OK)
    code = emit_needed (call, "keeper", host->keeper < 0 ? ENOENT : 0,
                        "the manifest's file coffer-keeper",
                        "reinstall the provider");
  if (code == COFFER_OK)
    code = emit_needed (call, "runtime-folder", host->runtime < 0 ? ENOENT : 0,
                        "given by the host at open",
                        "make the runtime folder writable");
  if (code == COFFER_OK)
    code = emit_needed (call, "subreaper", try_subreaper (),
                        "prctl PR_GET_CHILD_SUBREAPER",
                        "use Linux 5.6 or newer");
  if (code == COFFER_OK)
    code = emit_needed (call, "pidfd", try_pidfd (), "pidfd_open",
                        "use Linux 5.6 or newer");
  return code;
}
