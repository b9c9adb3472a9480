/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked for: checked, its mounts made ready, and written down as the
 * plan that the init follows. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "layer.h"
#include "spawn.h"

#define INODES_DEFAULT 65536
#define PLAN_MAX 60000
#define PLAN_FDS_MAX (MOUNTS_MAX + 3 + CGROUP_OWN + 1)

/* ---- the specification -------------------------------------------------- */

/* Nothing is to be done for them: a connection is made in the sandbox when it is
 * asked for. */
static int
ports_fine (const char *const *ports)
{
  size_t n;

  for (; ports != NULL && *ports != NULL; ports++) {
    n = strspn (*ports, "0123456789");
    if (n == 0 || n > 5 || (*ports)[n] != '\0' || atoi (*ports) < 1
        || atoi (*ports) > 65535)
      return 0;
  }
  return 1;
}

int32_t
spec_refuse (struct coffer_call *call, const struct coffer_sandbox_spec *spec)
{
  if (spec->image != NULL)
    return coffer_fail (call, COFFER_UNSUPPORTED,
                        "image: the root is the host's /usr, or a template; "
                        "docker and podman have images");
  if (!ports_fine (spec->ports))
    return coffer_fail (call, COFFER_INVALID, "ports: each is 1 to 65535");
  if (spec->filter != NULL && strcmp (spec->filter, "general") != 0
      && strcmp (spec->filter, "strict") != 0)
    return fail_with (call, COFFER_INVALID,
                      "filter: general or strict, not %.32s", spec->filter);
  if (spec->user != NULL && strcmp (spec->user, "user") != 0
      && strcmp (spec->user, "1000") != 0)
    return coffer_fail (call, COFFER_UNSUPPORTED,
                        "user: only user (1000) is inside");
  if (spec->workdir != NULL && spec->workdir[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "workdir: not absolute");
  if (limits_refuse (call, spec) != COFFER_OK)
    return COFFER_INVALID;
  return require_refuse (call, spec);
}

/* Nothing covers what the sandbox is made of. */
static int
target_allowed (const char *target)
{
  static const char *const reserved[]
    = { "/proc", "/sys", "/dev", "/etc", "/usr", "/bin", "/sbin", "/lib",
        "/lib64" };
  size_t i, n;

  if (target == NULL || target[0] != '/' || strlen (target) > 4000
      || strspn (target, "/") == strlen (target)
      || strstr (target, "/../") != NULL || strstr (target, "/./") != NULL
      || strstr (target, "//") != NULL)
    return 0;
  n = strlen (target);
  if ((n >= 3 && strcmp (target + n - 3, "/..") == 0)
      || (n >= 2 && strcmp (target + n - 2, "/.") == 0))
    return 0;
  for (i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
    n = strlen (reserved[i]);
    if (strncmp (target, reserved[i], n) == 0
        && (target[n] == '\0'
            || (target[n] == '/' && strcmp (reserved[i], "/usr") != 0
                && strcmp (reserved[i], "/etc") != 0)))
      return 0;
  }
  return 1;
}

/* ---- mounts ------------------------------------------------------------- */

/* As root: the owner of the source is the sandbox's user there, and everybody
 * else nobody. */
int32_t
mount_idmap (struct making *making, const struct coffer_mount *mount, int tree)
{
  struct {
    uint64_t set, clear, propagation, userns;
  } attributes = { .set = ATTR_IDMAP_ };
  coffer_autoclose int ns = -1;
  struct stat st;

  if (fstat (tree, &st) == -1)
    return coffer_fail_errno (making->call, errno, "mounts: the source");
  ns = ids_namespace (st.st_uid, st.st_gid, &making->ids);
  if (ns < 0)
    return spawn_refused (making, "a user namespace for mounts", errno);
  attributes.userns = (uint64_t) ns;
  if (syscall (SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE_,
               &attributes, sizeof attributes) == -1)
    return fail_with (making->call, COFFER_UNAVAILABLE,
                      "mounts: %.200s cannot be id-mapped (%s), and without "
                      "that root does not show a folder to a sandbox",
                      mount->source ? mount->source : "the source",
                      strerror (errno));
  return COFFER_OK;
}

static int32_t
mount_detach (struct making *making, const struct coffer_mount *mount,
              int *out)
{
  coffer_autoclose int tree
    = (int) syscall (SYS_open_tree, mount->source_fd, "",
                     OPEN_TREE_CLONE_ | AT_EMPTY_PATH | AT_RECURSIVE_
                       | O_CLOEXEC);
  int32_t code;

  if (tree < 0)
    return coffer_fail_errno (making->call, errno, "mounts: open_tree");
  code = mount_idmap (making, mount, tree);
  if (code == COFFER_OK)
    *out = coffer_fd_steal (&tree);
  return code;
}

/* Root sets one where the disk is spoken of. */
static int
quota_wanted (const struct making *making, const struct coffer_mount *mount)
{
  return mount->writable && making->ids.privileged
         && (making->spec->disk_bytes != 0 || making->spec->inodes != 0
             || required (making->spec, "quota.hard"));
}

static int32_t
mount_add (struct making *making, const struct coffer_mount *mount)
{
  struct init_mount *out = &making->mounts[making->n_mounts];
  int fd = mount->source_fd;
  struct stat st;
  int32_t code;

  if (!target_allowed (mount->target))
    return fail_with (making->call, COFFER_INVALID,
                      "mounts: %.200s is no place for a mount",
                      mount->target ? mount->target : "(none)");
  if (fd >= 0 && fstat (fd, &st) == -1)
    return coffer_fail_errno (making->call, errno, "mounts: the source");
  if (fd < 0
      || !(S_ISDIR (st.st_mode) || S_ISREG (st.st_mode)))
    return coffer_fail (making->call, COFFER_INVALID,
                        "mounts: the source is no folder or regular file");
  out->size = sizeof *out;
  out->flags = (mount->writable ? MOUNT_WRITABLE : 0u)
               | (S_ISREG (st.st_mode) ? MOUNT_FILE : 0u);
  if (S_ISREG (st.st_mode) && strcmp (mount->target, "/workspace") == 0) {
    /* No command works in a file: it is an image of a folder. */
    code = image_mount (making, mount, &fd);
    if (code != COFFER_OK)
      return code;
    out->flags = (out->flags & ~(uint32_t) MOUNT_FILE) | MOUNT_DETACHED
                 | MOUNT_QUOTA;
  } else if (making->ids.privileged) {
    code = mount_detach (making, mount, &fd);
    if (code != COFFER_OK)
      return code;
    out->flags |= MOUNT_DETACHED;
  } else {
    making->sources[making->n_mounts] = coffer_fd_path (fd);
    if (making->sources[making->n_mounts] == NULL)
      return coffer_fail_errno (making->call, errno,
                                "mounts: the path of the source");
  }
  if (quota_wanted (making, mount) && S_ISDIR (st.st_mode)
      && project_cap (making, mount->source_fd) == 0)
    out->flags |= MOUNT_QUOTA;
  if (mount->writable && !(out->flags & MOUNT_QUOTA))
    making->uncapped = mount->target;
  making->images += (out->flags & MOUNT_QUOTA) != 0;
  making->mount_fds[making->n_mounts++] = fd;
  return COFFER_OK;
}

int32_t
mounts_prepare (struct making *making)
{
  const struct coffer_mount *const *mounts = making->spec->mounts;
  int32_t code = template_prepare (making);
  size_t i;

  for (i = 0; code == COFFER_OK && mounts != NULL && mounts[i] != NULL; i++) {
    if (making->n_mounts == MOUNTS_MAX)
      return fail_with (making->call, COFFER_LIMIT, "mounts: at most %d",
                        MOUNTS_MAX);
    code = mount_add (making, mounts[i]);
  }
  return code == COFFER_OK ? require_quota (making) : code;
}

/* ---- the plan ----------------------------------------------------------- */

static uint32_t
plan_string (struct coffer_buffer *strings, uint32_t base, const char *s)
{
  uint32_t at = base + (uint32_t) strings->size;

  coffer_buffer_add (strings, s, strlen (s) + 1);
  return at;
}

/* Each name once: a later NAME=VALUE takes the place of an earlier one. */
static uint32_t
plan_env (struct coffer_buffer *strings, const char *const *env)
{
  uint32_t count = 0;
  size_t i, k, n;

  for (i = 0; env != NULL && env[i] != NULL; i++) {
    n = strcspn (env[i], "=");
    for (k = i + 1; env[k] != NULL; k++)
      if (strncmp (env[i], env[k], n) == 0 && env[k][n] == '=')
        break;
    if (env[k] != NULL || env[i][n] != '=')
      continue;
    coffer_buffer_add (strings, env[i], strlen (env[i]) + 1);
    count++;
  }
  return count;
}

void
shape_fill (const struct making *making, struct init_prepare *shape)
{
  const struct coffer_sandbox_spec *spec = making->spec;

  memset (shape, 0, sizeof *shape);
  shape->size = sizeof *shape;
  shape->disk_bytes = spec->disk_bytes ? spec->disk_bytes : DISK_DEFAULT;
  shape->inodes = spec->inodes ? spec->inodes : INODES_DEFAULT;
  if (spec->root_writable)
    shape->flags |= PLAN_ROOT_WRITABLE;
  if (spec->filter != NULL && strcmp (spec->filter, "strict") == 0)
    shape->flags |= PLAN_STRICT;
  if (making->network == NETWORK_HOST)
    shape->flags |= PLAN_HOST_NETWORK;
  if (spec->template_name != NULL)
    shape->flags |= PLAN_TEMPLATE;
  if (skeleton_fits (making))
    shape->flags |= PLAN_SKELETON;
  LAYERS_GIVE (shape->layers);
}

int
shape_send (struct linux_provider *self, const struct init_process *init,
            const struct init_prepare *shape, const struct cgroup *group,
            const struct coffer_call *call)
{
  coffer_autoclose int tree = -1;
  struct init_prepare body = *shape;
  struct link link = { .fd = init->control };
  int fds[CGROUP_OWN + 1];
  struct request request = { .type = INIT_PREPARE, .body = &body,
                             .size = sizeof body, .fds = fds };
  size_t i;

  body.uid = LAYER_ON (USER) ? SANDBOX_UID : init->ids.uid;
  body.gid = LAYER_ON (USER) ? SANDBOX_UID : init->ids.gid;
  if (init->ids.privileged)
    body.flags |= PLAN_PRIVILEGED;
  for (i = 0; group != NULL && i < CGROUP_OWN; i++)
    if (group->own[i] >= 0)
      fds[request.n_fds++] = group->own[i];
  body.own_groups = (uint32_t) request.n_fds;
  if (body.flags & PLAN_SKELETON)
    tree = skeleton_take (self);
  if (tree >= 0)
    fds[request.n_fds++] = tree;
  else
    body.flags &= ~(uint32_t) PLAN_SKELETON;
  return link_send (&link, &request, call);
}

static void
plan_fill (struct making *making, struct init_plan *plan)
{
  const struct coffer_sandbox_spec *spec = making->spec;

  namespaces_note (making->self);
  plan->size = sizeof *plan;
  plan->userns = (uint32_t) making->self->ns_inodes[0];
  plan->pids = spec->pids ? spec->pids : PIDS_DEFAULT;
  plan->mounts = (uint32_t) making->n_mounts;
  plan->expires_ns = making->expires_ns;
  plan->address_bytes = spec->address_bytes;
  plan->file_bytes = spec->file_bytes;
  plan->open_files = spec->open_files;
  if (spec->memory_bytes != 0 && !(making->cgroup.bits & CGROUP_MEMORY))
    plan->data_bytes = spec->memory_bytes;
  if (making->cgroup.bits & CGROUP_PIDS)
    plan->flags |= PLAN_CGROUP;
  if (spec->single_exec)
    plan->flags |= PLAN_SINGLE;
  if (making->folder >= 0 && (!spec->single_exec || spec->lifeline >= 0))
    plan->flags |= PLAN_DURABLE;
  if (required (spec, "landlock"))
    plan->flags |= PLAN_LANDLOCK;
  if (making->network == NETWORK_ALLOW)
    plan->flags |= PLAN_PROXY;
}

/* A template's has none, and comes before those that were asked for. */
static const char *
mount_target (const struct making *making, size_t i)
{
  const size_t before = making->mounts[0].flags & MOUNT_ROOT ? 1 : 0;

  return i < before ? "" : making->spec->mounts[i - before]->target;
}

/* Only where an interpreter that stands ready may come in. */
static size_t
joins_add (const struct making *making, int *fds)
{
  const struct cgroup *group = &making->cgroup;
  size_t n = 0, i;

  if (making->spec->filter == NULL
      || strcmp (making->spec->filter, "strict") != 0)
    return 0;
  for (i = 0; i < CGROUP_OWN; i++)
    if (group->own[i] >= 0)
      fds[n++] = group->own[i];
  if (group->whole >= 0)
    fds[n++] = group->whole;
  return n;
}

/* In the order that the init takes them. */
static size_t
plan_fds (const struct making *making, struct init_plan *plan,
          int fds[PLAN_FDS_MAX])
{
  const struct cgroup *group = &making->cgroup;
  size_t n = 0, i;

  if (making->spec->lifeline >= 0) {
    plan->flags |= PLAN_LIFELINE;
    fds[n++] = making->spec->lifeline;
  }
  if (making->listener >= 0) {
    plan->flags |= PLAN_LISTENER;
    fds[n++] = making->listener;
  }
  if (group->commands >= 0) {
    plan->flags |= PLAN_GROUP;
    fds[n++] = group->commands;
  }
  plan->joins = (uint32_t) joins_add (making, fds + n);
  n += plan->joins;
  for (i = 0; i < making->n_mounts; i++)
    fds[n++] = making->mount_fds[i];
  return n;
}

int
plan_send (struct making *making)
{
  struct init_plan plan = { 0 };
  coffer_autobuffer struct coffer_buffer strings = { 0 };
  coffer_autostrings struct coffer_strings proxied = { 0 };
  const struct coffer_sandbox_spec *spec = making->spec;
  const char *const *env = spec->env;
  struct link link = { .fd = making->control };
  int fds[PLAN_FDS_MAX];
  struct request request = { .type = INIT_PLAN, .body = &plan,
                             .size = sizeof plan, .fds = fds };
  const uint32_t mounts_size
    = (uint32_t) (making->n_mounts * sizeof making->mounts[0]);
  const uint32_t base = (uint32_t) (sizeof (struct init_header) + sizeof plan);
  size_t i;

  plan_fill (making, &plan);
  coffer_buffer_add (&strings, making->mounts, mounts_size);
  plan.hostname = plan_string (&strings, base, "coffer");
  plan.workdir = plan_string (&strings, base,
                              spec->workdir ? spec->workdir : "/workspace");
  for (i = 0; i < making->n_mounts; i++) {
    making->mounts[i].target
      = plan_string (&strings, base, mount_target (making, i));
    making->mounts[i].source = plan_string (
      &strings, base, making->sources[i] ? making->sources[i] : "");
  }
  plan.env = base + (uint32_t) strings.size;
  if (making->network == NETWORK_ALLOW) {
    network_env (&proxied, env);
    env = coffer_strings_view (&proxied);
    strings.failed |= proxied.failed;
  }
  plan.n_env = plan_env (&strings, env);
  if (strings.failed || strings.size > PLAN_MAX) {
    errno = strings.failed ? ENOMEM : E2BIG;
    return -1;
  }
  /* The offsets are known now. */
  if (mounts_size > 0)
    memcpy (strings.data, making->mounts, mounts_size);
  request.n_fds = plan_fds (making, &plan, fds);
  request.more = strings.data;
  request.more_size = strings.size;
  return link_send (&link, &request, making->call);
}
