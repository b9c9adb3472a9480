/* SPDX-License-Identifier: Apache-2.0 */
/* From a specification to the body of a create.
 *
 * The engine itself removes only what is to end with this host's process: Docker
 * also removes what it would when it is started anew.
 *
 * The root is read-only.  What may be written is in memory, of a size and with a
 * number of names that are set: the working folder and /tmp.  Docker mounts them
 * by itself; Podman knows neither owners nor numbers of names there, so with it
 * they are volumes of the same kind, sized by blocks, as it takes "size" for a
 * quota of a disk. */

#define _GNU_SOURCE

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>
#include <coffer/spec.h>

#include "docker.h"

#define MEMORY_DEFAULT (UINT64_C (512) << 20)
#define PIDS_DEFAULT 256
#define PIDS_GVISOR 4096            /* threads of its kernel, which ends without */
#define DISK_DEFAULT (UINT64_C (320) << 20)
#define INODES_DEFAULT UINT64_C (65536)
#define BLOCK 4096
#define SHM_BYTES (16 << 20)

/* ---- what is refused ---------------------------------------------------- */

static int32_t
refuse (struct coffer_call *call, int32_t code, const char *field,
        const char *why)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  coffer_buffer_printf (&text, "%s: %s", field, why);
  return coffer_fail (call, code, text.failed ? field : text.data);
}

static int32_t
check_ranges (struct coffer_call *call, const struct coffer_sandbox_spec *spec)
{
  const struct {
    const char *field;
    uint64_t value, least, most;
  } rows[] = {
    {"memory_bytes", spec->memory_bytes, 6 << 20, UINT64_C (1) << 60},
    {"disk_bytes", spec->disk_bytes, 65536, UINT64_C (1) << 60},
    {"inodes", spec->inodes, 64, UINT64_C (1) << 40},
    {"pids", spec->pids, 4, 4194304},
    {"cpu_millis", spec->cpu_millis, 10, 1024000},
    {"file_bytes", spec->file_bytes, 1, UINT64_C (1) << 60},
    {"open_files", spec->open_files, 16, 1 << 20},
    {"ttl_ms", spec->ttl_ms, 1, UINT64_C (1000) * 86400 * 365 * 10},
  };
  coffer_autobuffer struct coffer_buffer text = {0};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].value && (rows[i].value < rows[i].least
                          || rows[i].value > rows[i].most)) {
      coffer_buffer_printf (&text, "%" PRIu64 " is not from %" PRIu64 " to %"
                            PRIu64, rows[i].value, rows[i].least,
                            rows[i].most);
      return refuse (call, COFFER_INVALID, rows[i].field,
                     text.failed ? "out of range" : text.data);
    }
  return COFFER_OK;
}

static int32_t
check_require (struct coffer_call *call, const char *const *require)
{
  for (; require && *require; require++)
    if (strcmp (*require, "cgroup") != 0
        && strcmp (*require, "quota.hard") != 0)
      return refuse (call, COFFER_UNSUPPORTED, *require,
                     "required, and not to be had of an engine");
  return COFFER_OK;
}

static int32_t
check_ports (struct coffer_call *call, const char *const *ports)
{
  for (; ports && *ports; ports++) {
    char *end;
    long port = strtol (*ports, &end, 10);

    if (**ports < '1' || **ports > '9' || *end || port > 65535)
      return refuse (call, COFFER_INVALID, "ports", "each is a number from 1 "
                     "to 65535");
  }
  return COFFER_OK;
}

/* One place has one name here, but for a slash at its end: of another an engine
 * would make that place. */
static int
is_plain (const char *target)
{
  const char *last = strrchr (target, '/');

  return target[0] == '/' && !strstr (target, "//") && !strstr (target, "/./")
         && !strstr (target, "/../") && strcmp (last, "/.") != 0
         && strcmp (last, "/..") != 0;
}

static int32_t
check_mounts (struct coffer_call *call,
              const struct coffer_mount *const *mounts)
{
  for (; mounts && *mounts; mounts++)
    if (!(*mounts)->target || !is_plain ((*mounts)->target)
        || strcmp ((*mounts)->target, "/") == 0
        || strncmp ((*mounts)->target, "/.coffer-", 9) == 0)
      return refuse (call, COFFER_INVALID, "mounts", "a target must be "
                     "absolute, without . and .., and not the provider's own");
  return COFFER_OK;
}

/* Who is named is the one whom there is: by number, with the group or without. */
int32_t
docker_check_user (struct coffer_call *call, const struct docker *docker,
                   const char *user)
{
  const char *own = docker->config.user;
  const size_t size = strcspn (own, ":");
  coffer_autobuffer struct coffer_buffer text = {0};

  if (strcmp (user, own) == 0
      || (strlen (user) == size && strncmp (user, own, size) == 0))
    return COFFER_OK;
  coffer_buffer_printf (&text, "all that runs is the user %s of the provider's "
                        "configuration", own);
  return refuse (call, COFFER_UNSUPPORTED, "user",
                 text.failed ? "not to be chosen" : text.data);
}

int32_t
docker_spec_check (struct coffer_call *call, const struct docker *docker,
                   const char *sandbox, const struct coffer_sandbox_spec *spec)
{
  static const char *const kept[] = {
    "template_name", "image", "profile", "env", "workdir", "memory_bytes",
    "cpu_millis", "pids", "disk_bytes", "inodes", "network", "mounts",
    "ttl_ms", "root_writable", "metadata", "lifeline", "single_exec", "filter",
    "require", "file_bytes", "open_files", "ports", "user", NULL,
  };
  int32_t code = coffer_spec_check (call, sandbox, spec, kept);

  if (code == COFFER_OK && spec->network && strcmp (spec->network, "none") != 0)
    code = refuse (call, COFFER_UNSUPPORTED, "network",
                   "only none is to be had of this provider");
  if (code == COFFER_OK && spec->filter
      && strcmp (spec->filter, "general") != 0)
    code = refuse (call, COFFER_UNSUPPORTED, "filter",
                   "only general, which is the engine's own");
  if (code == COFFER_OK && spec->user)
    code = docker_check_user (call, docker, spec->user);
  if (code == COFFER_OK)
    code = check_require (call, spec->require);
  if (code == COFFER_OK)
    code = check_mounts (call, spec->mounts);
  if (code == COFFER_OK)
    code = check_ports (call, spec->ports);
  return code == COFFER_OK ? check_ranges (call, spec) : code;
}

/* ---- what may be written ------------------------------------------------ */

struct space {
  const char *target, *suffix;
  uint64_t bytes, inodes;
};

/* The cap is one for both: the working folder has three quarters of it. */
static void
share (const struct coffer_sandbox_spec *spec, struct space spaces[2])
{
  uint64_t bytes = spec->disk_bytes ? spec->disk_bytes : DISK_DEFAULT;
  uint64_t inodes = spec->inodes ? spec->inodes : INODES_DEFAULT;

  spaces[0] = (struct space) {SANDBOX_WORKSPACE, "w", bytes - bytes / 4,
                              inodes - inodes / 4};
  spaces[1] = (struct space) {"/tmp", "t", bytes / 4, inodes / 4};
}

/* The caller's own folder is shown there: an engine mounts one thing in a place, or
 * the wrong one of two. */
int
docker_spec_shows (const struct coffer_sandbox_spec *spec, const char *target)
{
  const size_t size = strlen (target);

  for (size_t i = 0; spec->mounts && spec->mounts[i]; i++) {
    const char *own = spec->mounts[i]->target;

    if (strncmp (own, target, size) == 0
        && own[size + strspn (own + size, "/")] == '\0')
      return 1;
  }
  return 0;
}

/* Whole blocks, never more than was asked for. */
static void
add_space (struct coffer_buffer *out, const struct docker *docker,
           const struct space *space, int blocks)
{
  const char *user = docker->config.user;
  const char *group = strchr (user, ':') + 1;

  if (blocks)
    coffer_buffer_printf (out, "nr_blocks=%" PRIu64, space->bytes / BLOCK);
  else
    coffer_buffer_printf (out, "size=%" PRIu64,
                          space->bytes / BLOCK * BLOCK);
  coffer_buffer_printf (out, ",nr_inodes=%" PRIu64 ",mode=0770,uid=%.*s,gid=%s"
                        ",nosuid,nodev", space->inodes,
                        (int) (group - user - 1), user, group);
  if (!blocks)
    coffer_buffer_add_string (out, ",rw,exec");
}

static json_t *
tmpfs_of (const struct docker *docker, const struct docker_engine *engine,
          const struct space spaces[2], const struct coffer_sandbox_spec *spec)
{
  json_t *object = json_object ();

  if (engine->kind == ENGINE_PODMAN) {
    /* It adds folders of any size to a read-only root, but where there is one
     * already: that of the first process and these, which nobody writes. */
    json_object_set_new (object, INSIDE_STATE, json_string (
      "size=1048576,mode=1777,nosuid,nodev,noexec,notmpcopyup"));
    json_object_set_new (object, INSIDE_KEPT, json_string (
      "size=67108864,mode=1777,nosuid,nodev,noexec,notmpcopyup"));
    json_object_set_new (object, "/run", json_string (
      "size=4096,mode=0755,nosuid,nodev,noexec,notmpcopyup"));
    json_object_set_new (object, "/var/tmp", json_string (
      "size=4096,mode=0755,nosuid,nodev,noexec,notmpcopyup"));
    return object;
  }
  json_object_set_new (object, INSIDE_STATE, json_sprintf (
    "size=1048576,nr_inodes=16,mode=0755,uid=" INSIDE_UID
    ",nosuid,nodev,noexec"));
  json_object_set_new (object, INSIDE_KEPT, json_sprintf (
    "size=67108864,nr_inodes=4096,mode=0700,uid=%.*s,gid=%s,nosuid,nodev,noexec",
    (int) strcspn (docker->config.user, ":"), docker->config.user,
    strchr (docker->config.user, ':') + 1));
  for (size_t i = 0; i < 2; i++) {
    coffer_autobuffer struct coffer_buffer text = {0};

    if (docker_spec_shows (spec, spaces[i].target))
      continue;
    add_space (&text, docker, &spaces[i], 0);
    json_object_set_new (object, spaces[i].target, json_string (text.data));
  }
  return object;
}

json_t *
docker_spec_volume (const struct docker *docker,
                    const struct docker_engine *engine, const char *name,
                    size_t n, const struct coffer_sandbox_spec *spec)
{
  coffer_autobuffer struct coffer_buffer options = {0};
  struct space spaces[2];

  if (engine->kind != ENGINE_PODMAN || n >= 2)
    return NULL;
  share (spec, spaces);
  add_space (&options, docker, &spaces[n], 1);
  return json_pack ("{s:o, s:s, s:{s:s, s:s, s:s}, s:{s:s}}",
                    "Name", json_sprintf ("%s-%s", name, spaces[n].suffix),
                    "Driver", "local", "DriverOpts", "type", "tmpfs",
                    "device", "tmpfs", "o", options.data,
                    "Labels", LABEL_HOST, docker->host);
}

/* ---- mounts ------------------------------------------------------------- */

static json_t *
bind_of (const char *source, const char *target, int writable)
{
  return json_pack ("{s:s, s:s, s:s, s:b, s:{s:s}}", "Type", "bind",
                    "Source", source, "Target", target, "ReadOnly", !writable,
                    "BindOptions", "Propagation", "rprivate");
}

/* By where the host has opened it, not by what the caller called it. */
static int
add_mount (json_t *list, const struct coffer_mount *mount)
{
  char *path = mount->source_fd >= 0 ? coffer_fd_path (mount->source_fd)
                                     : NULL;
  int result = path ? json_array_append_new (list, bind_of (path,
                                                            mount->target,
                                                            mount->writable))
                    : -1;

  free (path);
  return result;
}

static json_t *
mounts_of (const struct docker *docker, const struct docker_engine *engine,
           const char *name, const struct space spaces[2],
           const struct coffer_sandbox_spec *spec)
{
  json_t *list = json_array ();
  int failed;

  failed = json_array_append_new (list, bind_of (docker->program_path,
                                                 INSIDE_PATH, 0));
  for (size_t i = 0; engine->kind == ENGINE_PODMAN && i < 2; i++)
    if (!docker_spec_shows (spec, spaces[i].target))
      failed |= json_array_append_new (list, json_pack (
        "{s:s, s:o, s:s}", "Type", "volume", "Source",
        json_sprintf ("%s-%s", name, spaces[i].suffix), "Target",
        spaces[i].target));
  for (size_t i = 0; spec->mounts && spec->mounts[i]; i++)
    failed |= add_mount (list, spec->mounts[i]);
  if (failed) {
    json_decref (list);
    return NULL;
  }
  return list;
}

/* ---- the body ----------------------------------------------------------- */

static json_t *
ulimits_of (const struct coffer_sandbox_spec *spec)
{
  const struct {
    const char *name;
    uint64_t value;
  } rows[] = {{"nofile", spec->open_files}, {"fsize", spec->file_bytes}};
  json_t *list = json_array ();

  for (size_t i = 0; i < 2; i++)
    if (rows[i].value)
      json_array_append_new (list, json_pack (
        "{s:s, s:I, s:I}", "Name", rows[i].name, "Soft",
        (json_int_t) rows[i].value, "Hard", (json_int_t) rows[i].value));
  return list;
}

static json_t *
labels_of (const struct docker *docker, const char *sandbox,
           const char *image, const struct coffer_sandbox_spec *spec)
{
  json_t *metadata = json_array ();
  /* Those without a value too: else an image's own would be taken. */
  json_t *labels = json_pack ("{s:s, s:s, s:s, s:s, s:s}", LABEL_HOST,
                              docker->host, LABEL_SANDBOX, sandbox,
                              LABEL_IMAGE, image, LABEL_METADATA, "",
                              LABEL_EXPIRES, "");
  int failed = labels == NULL;
  char *text;

  for (size_t i = 0; spec->metadata && spec->metadata[i]; i++)
    failed |= json_array_append_new (metadata,
                                     json_string (spec->metadata[i]));
  text = json_dumps (metadata, JSON_COMPACT);
  json_decref (metadata);
  if (text && spec->metadata && spec->metadata[0])
    failed |= json_object_set_new (labels, LABEL_METADATA,
                                   json_string (text));
  free (text);
  if (spec->ttl_ms)
    failed |= json_object_set_new (labels, LABEL_EXPIRES, json_sprintf (
      "%" PRId64,
      coffer_realtime_ns () + (int64_t) spec->ttl_ms * 1000000));
  if (failed) {
    json_decref (labels);
    return NULL;
  }
  return labels;
}

static json_int_t
pids_of (enum docker_kernel kernel, const struct coffer_sandbox_spec *spec)
{
  if (spec->pids)
    return spec->pids;
  return kernel == KERNEL_GVISOR ? PIDS_GVISOR : PIDS_DEFAULT;
}

static json_t *
host_config_of (const struct docker *docker,
                const struct docker_engine *engine, enum docker_kernel kernel,
                const char *name, const struct coffer_sandbox_spec *spec)
{
  uint64_t memory = spec->memory_bytes ? spec->memory_bytes : MEMORY_DEFAULT;
  struct space spaces[2];
  json_t *mounts, *body;

  share (spec, spaces);
  mounts = mounts_of (docker, engine, name, spaces, spec);
  if (!mounts)
    return NULL;
  body = json_pack (
    "{s:[s], s:[s], s:b, s:I, s:I, s:I, s:s, s:s, s:s, s:b, s:{s:s}, s:I, "
    "s:o, s:o, s:o}",
    "CapDrop", "ALL", "SecurityOpt", "no-new-privileges:true",
    "ReadonlyRootfs", !spec->root_writable,
    "Memory", (json_int_t) memory, "MemorySwap", (json_int_t) memory,
    "PidsLimit", pids_of (kernel, spec),
    "NetworkMode", "none", "IpcMode", "private", "CgroupnsMode", "private",
    "AutoRemove", spec->lifeline >= 0, "LogConfig", "Type", "none",
    "ShmSize", (json_int_t) SHM_BYTES, "Mounts", mounts,
    "Tmpfs", tmpfs_of (docker, engine, spaces, spec), "Ulimits", ulimits_of (spec));
  if (body && spec->cpu_millis)
    json_object_set_new (body, "NanoCpus", json_integer (
      (json_int_t) spec->cpu_millis * 1000000));
  if (body && docker->config.runtime)
    json_object_set_new (body, "Runtime",
                         json_string (docker->config.runtime));
  return body;
}

json_t *
docker_spec_holder (const struct docker *docker)
{
  return json_sprintf (INSIDE_UID ":%s",
                       strchr (docker->config.user, ':') + 1);
}

static json_t *
hold_of (const json_t *entrypoint, const struct coffer_sandbox_spec *spec)
{
  json_t *words = json_pack ("[s, s, o, s]", INSIDE_PATH, "hold",
                             json_sprintf ("%" PRIu64, spec->ttl_ms),
                             spec->lifeline >= 0 ? "lifeline" : "told");

  for (size_t i = 0; i < json_array_size (entrypoint); i++)
    json_array_append (words, json_array_get (entrypoint, i));
  return words;
}

json_t *
docker_spec_body (const struct docker *docker,
                  const struct docker_engine *engine,
                  enum docker_kernel kernel, const char *name,
                  const char *sandbox, const char *image,
                  const json_t *entrypoint,
                  const struct coffer_sandbox_spec *spec)
{
  json_t *host = host_config_of (docker, engine, kernel, name, spec);
  json_t *labels = labels_of (docker, sandbox, image, spec);
  json_t *body = NULL;

  if (host && labels)
    body = json_pack (
      "{s:s, s:o, s:s, s:o, s:[], s:s, s:b, s:b, s:b, s:b, s:O, s:O}",
      "Image", image, "User", docker_spec_holder (docker), "Hostname",
      "sandbox", "Entrypoint", hold_of (entrypoint, spec), "Cmd",
      "WorkingDir", "/", "OpenStdin", 1, "StdinOnce", 1, "AttachStdin", 1,
      "AttachStdout", 1, "Labels", labels, "HostConfig", host);
  json_decref (host);
  json_decref (labels);
  return body;
}
