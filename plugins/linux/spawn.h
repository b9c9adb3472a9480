/* SPDX-License-Identifier: Apache-2.0 */
/* One creation of a sandbox, shared by the files that make it:
 *
 * spawn.c     the order of things, the first process, taking it all back
 * spare.c     the first process of the next one, made ahead
 * clone.c     a process in this one's memory
 * plan.c      what was asked for, checked, and told to the init
 * require.c   what must hold, or no sandbox is made
 * template.c  a root that is a template's
 * etc.c       what of /etc it shows, told a little later
 * image.c     a workspace in a file, mounted
 * project.c   a folder of the host, capped by a project quota
 * limits.c    limits: their ranges, by what means, which of them hold
 * network.c   what it may reach, and the proxy for that
 * facts.c     what came of it
 * skeleton.c  the names in its root, made once for many
 * aftermath.c not waiting for what the kernel takes down */

#ifndef LINUX_SPAWN_H
#define LINUX_SPAWN_H

#include "layer.h"
#include "linux.h"

#define MOUNTS_MAX 48
#define PIDS_DEFAULT 1024
#define DISK_DEFAULT (UINT64_C (1) << 30)
#define QUOTA_REMEDY \
  "show it read-only, or as root a file as the workspace (-w FILE:rw) or a " \
  "folder of a file system that is mounted with prjquota"

enum network { NETWORK_NONE, NETWORK_HOST, NETWORK_ALLOW };

/* How an init is begun. */
struct init_wanted {
  struct ids ids;               /* of its own: no group goes along */
  int host_network;
  int late_network;             /* it makes its own, by and by */
  int sibling;                  /* a child of this process's parent */
  int ids_meanwhile;            /* they are taken while it is begun: of `ids`
                                 * only `privileged` is known */
  struct cgroup *group;         /* to be begun in, if it can be; or NULL */
};

/* All that one creation holds. */
struct making {
  struct linux_provider *self;
  struct coffer_call *call;
  const char *id;
  const struct coffer_sandbox_spec *spec;
  struct ids ids;
  int folder, listener, control, pidfd;
  int mount_ns;                 /* see aftermath.c, -1 */
  int proc;                     /* the init's folder in /proc */
  pid_t pid;
  int prepared;                 /* it was told what, being made ahead */
  int late_network;             /* its init may have none yet */
  int named;                    /* its init knows what of /etc to show */
  struct cgroup cgroup;
  const char *lacking[4];       /* limits that do not hold */
  const char *uncapped;         /* where more than the disk may be written */
  unsigned images;              /* mounts with a cap of their own */
  size_t n_mounts;
  struct init_mount mounts[MOUNTS_MAX];
  char *sources[MOUNTS_MAX];
  int mount_fds[MOUNTS_MAX];    /* detached ones are ours */
  int64_t expires_ns;
  enum network network;
  int proxy_listener, proxy, denials;   /* of network allow: proxy a pidfd */
  struct warm *warm;            /* whose copy is to wait inside, or NULL */
  pid_t asked;                  /* who makes it */
};

/* ---- plan.c, require.c -------------------------------------------------- */

/* Refuses what this provider does not do, or cannot understand. */
int32_t spec_refuse (struct coffer_call *call,
                     const struct coffer_sandbox_spec *spec);
/* Facts that the caller requires: the words, and what can be known before
 * anything is made; then what this sandbox got. */
int required (const struct coffer_sandbox_spec *spec, const char *word);
int32_t require_refuse (struct coffer_call *call,
                        const struct coffer_sandbox_spec *spec);
int32_t require_hold (struct making *making);
int32_t require_quota (struct making *making);
/* The first of the mounts, where a template was asked for. */
int32_t template_prepare (struct making *making);
int32_t mounts_prepare (struct making *making);
/* Gives a mount of its own the sandbox's ids. */
int32_t mount_idmap (struct making *making, const struct coffer_mount *mount,
                     int tree);
/* Caps what may be written to a folder: 0, or -1, nothing does. */
int project_cap (struct making *making, int source);
/* The file system in a file, as a mount of its own. */
int32_t image_mount (struct making *making, const struct coffer_mount *mount,
                     int *out);
/* What is prepared for a sandbox before its plan; ids are added when that is
 * sent, the groups that it is to enter by itself (NULL: none), and its root. */
void shape_fill (const struct making *making, struct init_prepare *shape);
/* -1 with errno. */
int shape_send (struct linux_provider *self, const struct init_process *init,
                const struct init_prepare *shape, const struct cgroup *group,
                const struct coffer_call *call);
int plan_send (struct making *making);

/* ---- limits.c ----------------------------------------------------------- */

/* Each within its range. */
int32_t limits_refuse (struct coffer_call *call,
                       const struct coffer_sandbox_spec *spec);
/* Control groups: before there is a process, and with it. */
void limits_take (struct making *making);
void limits_enter (struct making *making);
/* Whether a group holds every limit that was asked for, and counts. */
int cgroup_whole (const struct making *making);
int32_t limits_facts (struct making *making);
/* Words of limits that were asked for and do not hold for the whole sandbox. */
const char *const *limits_lacking (struct making *making);

/* ---- facts.c ------------------------------------------------------------ */

int32_t fact_emit (struct coffer_call *call, const char *name,
                   const char *state, const char *value, const char *how,
                   const char *remedy);
/* A file of the init's folder in /proc: its size, or -1. */
ssize_t init_file (const struct making *making, const char *name, char *out,
                   size_t size);
/* The hard one of the init's own limits, UINT64_MAX: none.  -1 with errno. */
int init_limit (const struct making *making, int which, uint64_t *out);

/* Waits for READY, and emits what the init and this process have read back. */
int32_t ready_take (struct making *making);
int32_t facts_namespaces (const struct making *making,
                          const uint64_t inodes[7]);
/* The facts that follow READY. */
int32_t facts_init (struct coffer_call *call, const struct init_ready *ready,
                    const char *at, size_t size);

/* ---- network.c ---------------------------------------------------------- */

/* Refuses what it may not reach; sets making->network. */
int32_t network_refuse (struct making *making);
/* The same, once its ids are known. */
int32_t network_permit (const struct making *making);
/* What tells programs of the proxy, and then the caller's own. */
void network_env (struct coffer_strings *env, const char *const *given);
/* The descriptor of READY, if there must be one. */
int32_t network_listener_take (struct making *making, struct reply *reply);
/* Once the init is ready: starts the proxy; says what can be reached. */
int32_t network_begin (struct making *making);

/* ---- etc.c -------------------------------------------------------------- */

/* With the lock held: as they are now, in self->etc_names.  0, or -1. */
int etc_names_renew (struct linux_provider *self);
/* After what to prepare: what of the host's /etc is shown.  -1 with errno. */
int etc_send (struct linux_provider *self, int control,
              const struct coffer_call *call);

/* ---- aftermath.c -------------------------------------------------------- */

/* With its init there: what is needed not to wait for it at its end. */
void aftermath_expect (struct making *making);

/* ---- skeleton.c --------------------------------------------------------- */

/* Whether it can have a root whose names were made before. */
int skeleton_fits (const struct making *making);
/* A mount of it, in no tree yet; -1: there is none. */
int skeleton_take (struct linux_provider *self);
void root_stamp_take (struct root_stamp *out);
int root_stamp_same (const struct root_stamp *a, const struct root_stamp *b);

/* ---- spare.c ------------------------------------------------------------ */

/* Whether the configuration wants them; nothing else is configured. */
int spare_wanted (const char *const *config);
void spare_init (struct linux_provider *self, const char *const *config);
void spare_fini (struct linux_provider *self);
/* One of the usual shape that was made for the sandbox which comes now. */
void spare_adopt (struct linux_provider *self,
                  const struct init_process *take_init);
/* 1: the process that was made ahead, with ids, and is what is wanted. */
int spare_take (struct linux_provider *self, const struct making *making,
                struct init_process *out);
/* Begins to make the next, when there will be one: after a creation, and, where
 * that took one, as soon as its init knows all that it needs. */
void spare_follow (struct linux_provider *self, const struct making *making);
void spare_refill (struct linux_provider *self, const struct making *making);

/* ---- spawn.c ------------------------------------------------------------ */

/* An init in its namespaces, with those ids mapped, waiting for what it is to
 * prepare.  0, or -1 with errno and the step that failed; what *init holds then
 * is the caller's all the same. */
int init_start (struct linux_provider *self, const struct init_wanted *wanted,
                struct init_process *init, const char **step);

/* ---- warm.c ------------------------------------------------------------- */

/* Whether a copy of what stands ready may come in at all; of whom one is to wait
 * inside; and that it begins to come, once the init is READY. */
int copy_may (const struct making *making);
int32_t copy_permit (struct making *making);
int32_t copy_begin (struct making *making);

/* Reports the step that failed. */
int32_t spawn_refused (struct making *making, const char *step, int error);

#endif /* LINUX_SPAWN_H */
