/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a creation: each layer as the init or this process has read it
 * back from the kernel, emitted as facts. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layer.h"
#include "spawn.h"

int32_t
fact_emit (struct coffer_call *call, const char *name, const char *state,
           const char *value, const char *how, const char *remedy)
{
  struct coffer_fact fact = { sizeof fact };

  fact.name = name;
  fact.state = state;
  fact.value = value;
  fact.how = how;
  fact.remedy = remedy != NULL && remedy[0] != '\0' ? remedy : NULL;
  return coffer_emit_fact (call, &fact);
}

int32_t
facts_namespaces (const struct making *making, const uint64_t inodes[7])
{
  static const char *const names[7]
    = { "namespace.user", "namespace.mount", "namespace.pid",
        "namespace.net", "namespace.ipc", "namespace.uts",
        "namespace.cgroup" };
  struct linux_provider *self = making->self;
  struct coffer_call *call = making->call;
  char value[32];
  int32_t code = COFFER_OK;
  int i, shared;

  namespaces_note (self);
  for (i = 0; code == COFFER_OK && i < 7; i++) {
    shared = i == 3 && making->network == NETWORK_HOST;
    if (LAYERS_WHOLE
        && (inodes[i] == 0 || self->ns_inodes[i] == 0
            || (inodes[i] == self->ns_inodes[i]) != shared))
      return fail_with (call, COFFER_INTERNAL,
                        "the sandbox could not be set up: %s is the host's",
                        names[i]);
    snprintf (value, sizeof value, "%llu",
              (unsigned long long) inodes[i]);
    code = fact_emit (call, names[i], shared ? "off" : "ok", value,
                      shared ? "inode of /proc/self/ns, the host's, as asked"
                             : "inode of /proc/self/ns, not the host's",
                      NULL);
  }
  return code;
}

/* READY's facts: five strings each. */
int32_t
facts_init (struct coffer_call *call, const struct init_ready *ready,
            const char *at, size_t size)
{
  const char *part[5], *end = at + size;
  int32_t code = COFFER_OK;
  uint32_t i;
  int k;

  for (i = 0; code == COFFER_OK && i < ready->count; i++) {
    for (k = 0; k < 5; k++) {
      part[k] = at;
      at = at < end ? memchr (at, '\0', (size_t) (end - at)) : NULL;
      if (at == NULL)
        return coffer_fail (call, COFFER_INTERNAL,
                            "the init's facts are malformed");
      at++;
    }
    code = fact_emit (call, part[0], part[1], part[2], part[3], part[4]);
  }
  return code;
}

ssize_t
init_file (const struct making *making, const char *name, char *out,
           size_t size)
{
  coffer_autoclose int fd
    = openat (making->proc, name, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : coffer_read_all (fd, out, size - 1);

  out[n > 0 ? n : 0] = '\0';
  return n;
}

int
init_limit (const struct making *making, int which, uint64_t *out)
{
  struct rlimit limit;

  if (syscall (SYS_prlimit64, making->pid, which, NULL, &limit) == -1)
    return -1;
  *out = limit.rlim_max == RLIM_INFINITY ? UINT64_MAX : limit.rlim_max;
  return 0;
}

/* One id, and the one that was meant. */
static int
map_holds (const struct making *making, const char *name, uint32_t outside)
{
  unsigned inside, id, count;
  char text[256], more;

  return init_file (making, name, text, sizeof text) > 0
         && sscanf (text, "%u %u %u %c", &inside, &id, &count, &more) == 3
         && inside == SANDBOX_UID && id == outside && count == 1;
}

static int
user_holds (const struct making *making)
{
  char text[16];

  return map_holds (making, "uid_map", making->ids.uid)
         && map_holds (making, "gid_map", making->ids.gid)
         && init_file (making, "setgroups", text, sizeof text) > 0
         && strcmp (text, "deny\n") == 0;
}

static int32_t
facts_user (struct making *making, int holds)
{
  char value[96];

  if (!LAYERS_WHOLE)
    return COFFER_OK;
  if (!holds)
    return coffer_fail (making->call, COFFER_INTERNAL,
                        "the sandbox could not be set up: its ids are not "
                        "what was asked for");
  snprintf (value, sizeof value, "%u is %u outside", SANDBOX_UID,
            making->ids.uid);
  return fact_emit (making->call, "user", "ok", value,
                    "uid_map, gid_map and setgroups", NULL);
}

/* Limits of each process, as the init's own say. */
static int32_t
facts_each (struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;
  const struct {
    const char *fact;
    int which;
    uint64_t value;
  } rows[] = {
    { "limit.address", RLIMIT_AS, spec->address_bytes },
    { "limit.file", RLIMIT_FSIZE, spec->file_bytes },
    { "limit.open_files", RLIMIT_NOFILE, spec->open_files },
  };
  int32_t code = COFFER_OK;
  char value[24];
  uint64_t now;
  size_t i;

  for (i = 0; code == COFFER_OK && i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].value == 0)
      continue;
    /* Never more; less where the maker's own limit is. */
    if (init_limit (making, rows[i].which, &now) == -1)
      return spawn_refused (making, rows[i].fact, errno);
    if (now == 0 || now > rows[i].value)
      return fail_with (making->call, COFFER_INTERNAL,
                        "the sandbox could not be set up: %s does not hold",
                        rows[i].fact);
    snprintf (value, sizeof value, "%llu",
              (unsigned long long) rows[i].value);
    code = fact_emit (making->call, rows[i].fact, "ok", value,
                      "prlimit of its init", NULL);
  }
  return code;
}

static int32_t
facts_limits (struct making *making, int ids_hold)
{
  int32_t code = facts_user (making, ids_hold);

  if (code == COFFER_OK)
    code = facts_each (making);
  if (code == COFFER_OK)
    code = limits_facts (making);
  return code;
}

int32_t
ready_take (struct making *making)
{
  struct link link = { .fd = making->control, .serial = 1 };
  struct coffer_call *call = making->call;
  uint64_t inodes[7] = { 0 };
  struct init_ready ready;
  coffer_unfilled struct reply reply;
  const char *rest;
  int32_t code;
  size_t size;
  int ids_hold;

  /* While the init is at work, what cannot change any more.  Zeros are refused
   * below. */
  namespaces_note (making->self);
  if (!making->late_network)
    namespaces_read (making->proc, inodes);
  ids_hold = user_holds (making);
  aftermath_expect (making);
  spare_follow (making->self, making);
  if (link_receive (&link, &reply, 0, call->deadline_ns, call->cancel_fd)
        == -1) {
    if (errno == ECONNRESET)
      return coffer_fail (call, COFFER_INTERNAL,
                          "the sandbox's init ended without a word");
    return coffer_fail_errno (call, errno, "waiting for the sandbox's init");
  }
  code = network_listener_take (making, &reply);
  coffer_fd_close (&reply.fd);
  if (code != COFFER_OK)
    return code;
  if (reply_body (&reply, &ready, sizeof ready) == -1)
    return coffer_fail_errno (call, errno, "the init's answer");
  rest = reply_rest (&reply, &size);
  if (reply.header.type == INIT_FAILED)
    return spawn_refused (making, size > 0 ? rest : "?", reply.header.error);
  if (reply.header.type != INIT_READY)
    return coffer_fail (call, COFFER_INTERNAL, "the init's answer is unknown");
  /* Until then it may not have made its own. */
  if (making->late_network)
    namespaces_read (making->proc, inodes);
  code = facts_namespaces (making, inodes);
  if (code == COFFER_OK)
    code = facts_init (call, &ready, rest, size);
  if (code == COFFER_OK)
    code = facts_limits (making, ids_hold);
  return code;
}
