/* SPDX-License-Identifier: Apache-2.0 */
/* The linux provider: sandboxes of namespaces, Landlock and seccomp.
 *
 * linux.c    the instance and its operations
 * spawn.c    making a sandbox, with the files that spawn.h names
 * ids.c      who a sandbox is outside, from the table of id-pool.c
 * link.c     speaking with an init
 * sandbox.c  sandboxes: folders of the runtime directory, finding, killing
 * info.c     what is said of them, lists, their time
 * network.c  what a sandbox may reach; proxy/ is the program for that, and
 *            target.c what both know of names
 * cgroup.c   a control group for each, where one may be made; see cgroup.h
 * exec.c     commands
 * attach.c   their kept output
 * reach.c    pause, ports, numbers
 * inside.c   files
 * archive.c  folders as archives; tar/ is the program for that
 * watch.c    watched folders
 * warm.c     interpreters that stand ready, and commands that come of them;
 *            zygote.c their processes, warm/ what these run
 * probe.c    what this machine lets a sandbox have
 *
 * A sandbox is a folder of the runtime directory, named by its id, and an init
 * that listens in it; nothing else is remembered, so that any later process
 * finds the same.  The folder is locked (flock) while the sandbox is made or
 * removed.
 *
 * A sandbox for one command on a lifeline has no folder unless a control group
 * or metadata must be found again: nobody but its maker may reach it, it dies
 * with the maker's connection, and so there is nothing to leave on a disk. */

#ifndef LINUX_LINUX_H
#define LINUX_LINUX_H

#include <pthread.h>
#include <sys/types.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/provider.h>

#include "protocol.h"

#define SANDBOX_UID 1000        /* inside, also the group */
#define SANDBOX_ID_MAX 64
#define SETTLE_NS 5000000000    /* that a killed sandbox may take to be gone */

/* Outside; see ids.c. */
struct ids {
  uint32_t uid, gid;
  int privileged;               /* this process may map any id */
  uint32_t place;               /* of that id in the table, see id-pool.c */
  pid_t owner;                  /* who has that place */
};

struct aide;
struct id_pool;
struct warm;
struct watching;

/* A sandbox that this instance made.  Counted; `busy` is held by whoever uses
 * the connection. */
struct sandbox {
  struct sandbox *next;
  unsigned refs;
  char id[SANDBOX_ID_MAX + 1];
  int control;                  /* connection to its init */
  int pidfd;
  int mount_ns;                 /* see aftermath.c, -1 */
  pid_t pid;                    /* for people */
  int single;                   /* made for one command */
  int joinable;                 /* a copy of what stands ready may come in */
  unsigned ahead;               /* whose copy waits inside; 0: none */
  pid_t ahead_of;               /* who was to make it */
  int folderless;
  struct ids ids;
  int proxy;                    /* pidfd of its coffer-proxy, -1 */
  int denials;                  /* what that refused, -1 */
  int ended;                    /* its init has told of that one's end */
  uint32_t serial;              /* of the last request on it */
  /* The EXEC whose EXIT comes without being asked for; 0: none.  With `busy`
   * held, as `told` is, which may come while something else is asked. */
  uint32_t told_serial;
  int has_told;
  struct init_exit told;
  pthread_mutex_t busy;
};

struct init_process {
  pid_t pid;                    /* 0: none */
  int pidfd;
  int control;                  /* our end of its connection */
  int proc;                     /* its folder in /proc */
  int late_network;             /* it makes its network namespace itself */
  int named;                    /* it was told what of /etc to show */
  struct ids ids;
};

/* When the names in /, in /etc and beside what is shown below that last
 * changed. */
#define STAMPED_FOLDERS 5
struct root_stamp {
  int64_t seconds[STAMPED_FOLDERS], ns[STAMPED_FOLDERS];
};

/* The init of the next sandbox (spare.c). */
struct spare {
  int wanted;
  unsigned creations;           /* of this instance, as far as they count */
  int fresh;                    /* made for the sandbox that comes now */
  int threaded;                 /* there is a thread, in `maker` */
  int beside;                   /* which has a processor beside this one's */
  int busy;                     /* the thread's alone, which makes it */
  int ending;                   /* the thread is to end */
  pthread_t thread;
  int awaited;
  pthread_cond_t wake, made;
  pid_t maker;                  /* the process that makes them; 0: none yet */
  struct init_process init;
  struct init_prepare shape;    /* what it prepares */
  struct init_prepare asked;    /* what the last sandbox had */
  uid_t uid;                    /* who made it */
  gid_t gid;
  struct root_stamp root;
  int mounts;                   /* tells that this process's have changed */
  ssize_t cgroups_size;
  char cgroups[1024];
};

/* Inits that are begun at once with a low number for their connection. */
#define INIT_SLOTS 4

struct linux_provider {
  pthread_mutex_t lock;         /* of sandboxes, their refs, the spare, what is
                                 * watched, and what is kept of / and /etc */
  struct sandbox *sandboxes;
  struct sandbox *dying;        /* killed, not yet reaped */
  int runtime;                  /* folder, -1: none */
  int init;                     /* the program, sealed */
  struct id_pool *pool;         /* of root's sandboxes, when there was one */
  uint64_t ns_inodes[7];        /* of this process */
  int slots[INIT_SLOTS];        /* copies of `init`, -1: none */
  int slot_used[INIT_SLOTS];
  struct spare spare;
  int skeleton;                 /* of roots (skeleton.c), -1 */
  int skeleton_refused;
  struct root_stamp skeleton_stamp;
  int etc_read;                 /* the names are those of /etc as in `etc` */
  struct stat etc;
  struct coffer_buffer etc_names;
  struct watching *watching;
  struct warm *warms;           /* the last that was asked for first */
  unsigned last_warm;           /* number */
};

/* Of the process whose folder in /proc that is: user mnt pid net ipc uts
 * cgroup. */
int namespaces_read (int proc, uint64_t inodes[7]);
/* Of this process, once, into ns_inodes. */
void namespaces_note (struct linux_provider *self);

/* ---- begin.c ------------------------------------------------------------ */

/* An instance that is being opened has what was begun before, if it was. */
void begun_take (struct linux_provider *self);

/* ---- link.c ------------------------------------------------------------- */

/* One conversation with an init. */
struct link {
  int fd;
  struct linux_provider *self;
  struct sandbox *sb;           /* of this instance, counted, or NULL */
  int shared;                   /* fd is the sandbox's own, to be given back */
  uint32_t serial;
};

/* What the receiver fills: declared coffer_unfilled. */
struct reply {
  struct init_header header;
  const char *body;             /* within `bytes` */
  size_t size;
  int fd;                       /* -1: none; close it */
  char bytes[INIT_REPLY_MAX];
};

struct request {
  uint16_t type;
  const void *body;
  size_t size;
  const void *more;
  size_t more_size;
  const int *fds;
  size_t n_fds;
  int takes_fd;                 /* the reply is to carry a descriptor */
};

/* -1 with errno. */
int link_send (struct link *link, const struct request *request,
               const struct coffer_call *call);
/* The next packet with the serial of the last request (any when `any`).  0, or
 * -1 with errno: ECANCELED, ETIMEDOUT, ECONNRESET when the init has ended. */
int link_receive (struct link *link, struct reply *reply, int any,
                  int64_t deadline_ns, int cancel_fd);
/* Copies a body of at most `size` bytes, zero beyond what was sent. */
int reply_body (const struct reply *reply, void *out, size_t size);
/* What follows the body. */
const char *reply_rest (const struct reply *reply, size_t *size);
/* Send and receive; a reply with an errno is -1 with that errno.  A descriptor
 * that was not asked for is closed. */
int link_ask (struct link *link, const struct request *request,
              struct reply *reply, const struct coffer_call *call);
/* The second half of it. */
int link_answer (struct link *link, const struct request *request,
                 struct reply *reply, const struct coffer_call *call);
/* The EXIT that comes by itself: waits for it, as often as it is wanted. */
int link_told (struct link *link, struct init_exit *exit,
               const struct coffer_call *call);
void link_close (struct link *link);
#define auto_link __attribute__ ((cleanup (link_close)))

/* ---- sandbox.c ---------------------------------------------------------- */

int sandbox_id_valid (const char *id);
void sandbox_unref (struct linux_provider *self, struct sandbox *sb);
struct sandbox *sandbox_find (struct linux_provider *self, const char *id);
void sandbox_add (struct linux_provider *self, struct sandbox *sb);
void sandbox_forget (struct linux_provider *self, const char *id);
/* The init of a sandbox for one command has told how that ended, when nothing
 * else lived in it any more, and is at its own end. */
void sandbox_note_end (struct linux_provider *self, struct sandbox *sb);
/* Reaps the inits that a kill did not wait for; until_ns (monotonic) says how
 * long to wait for those that the kernel still takes down, 0 not at all. */
void sandbox_reap (struct linux_provider *self, int64_t until_ns);

/* A conversation with the sandbox of that id: -1 with errno ENOENT when there
 * is none. */
int sandbox_link (struct linux_provider *self, const char *id,
                  const struct coffer_call *call, struct link *link);
/* A descriptor of its init, which is readable once that has ended: -1 when
 * there is none. */
int sandbox_pidfd (struct linux_provider *self, const char *id);
/* The connection on which such an EXIT comes, whether or not its init is still
 * there.  0: there is none, or somebody else listens on it. */
int sandbox_told_link (struct linux_provider *self, const char *id,
                       struct link *link);
/* sandbox_link, with the failure already reported: a contract code. */
int32_t sandbox_reach (struct linux_provider *self, struct coffer_call *call,
                       const char *id, struct link *link);
/* The same for what its init did not answer, with errno: one that has ended
 * meanwhile is NOT_FOUND. */
int32_t sandbox_ask_failed (struct coffer_call *call, const char *what);
/* Its folder, locked: made when it is not there (made set).  EBUSY: another
 * process is at it until the deadline. */
int sandbox_folder (struct linux_provider *self, const char *id, int make,
                    int wait, int64_t deadline_ns, int *made);
/* When a process began, in the kernel's ticks since it was booted; 0: it is
 * gone. */
uint64_t process_began (pid_t pid);
/* Writes down which process the init of a new sandbox is, and whose it is. */
int sandbox_note_init (int folder, int pidfd, pid_t pid,
                       const struct ids *ids);
/* The ids that were chosen for it, here or elsewhere: 0, or -1. */
int sandbox_ids (struct linux_provider *self, const char *id, struct ids *ids);
/* With the folder locked: what is left of a sandbox whose init is gone. */
void sandbox_clear (int folder);
void sandbox_remove (struct linux_provider *self, const char *id, int folder);
/* The listening socket of a new sandbox. */
int sandbox_listener (int folder);
/* Ends its init, and with it all that is in it; the folder is locked.  0 when
 * there is none any more, -1 with errno when it could not be reached. */
int sandbox_end (struct linux_provider *self, const char *id, int folder,
                 struct coffer_call *call);
int32_t linux_sandbox_kill (struct coffer_call *call, void *self,
                            const char *sandbox,
                            const struct coffer_sandbox_kill_opts *opts);

/* ---- info.c ------------------------------------------------------------- */

int32_t sandbox_emit_info (struct coffer_call *call, struct link *link,
                           const char *id, int folder);
/* Every folder: sandboxes are emitted (or not), leftovers removed. */
int32_t sandbox_visit_all (struct linux_provider *self,
                           struct coffer_call *call, int emit);

int32_t linux_sandbox_info (struct coffer_call *call, void *self,
                            const char *sandbox,
                            const struct coffer_sandbox_info_opts *opts);
int32_t linux_sandbox_list (struct coffer_call *call, void *self,
                            const struct coffer_sandbox_list_opts *opts);
int32_t linux_sandbox_extend (struct coffer_call *call, void *self,
                              const char *sandbox, uint64_t ttl_ms,
                              const struct coffer_sandbox_extend_opts *opts);

/* ---- spawn.c ------------------------------------------------------------ */

int32_t linux_sandbox_create (struct coffer_call *call, void *self,
                              const char *sandbox,
                              const struct coffer_sandbox_spec *spec,
                              const struct coffer_sandbox_create_opts *opts);

/* aftermath.c: what the kernel has still to take down of a sandbox whose
 * processes are gone. */
void aftermath_leave (int *mount_ns);

/* network.c: facts of what the sandbox's proxy has refused since then. */
int32_t network_denied (struct linux_provider *self, struct coffer_call *call,
                        const char *id, int64_t since_ns);
/* Ends a proxy whose sandbox has ended, and waits for that. */
void proxy_end (int *pidfd);

/* ids.c: which outside ids a sandbox gets.  Root's are its own until its init
 * has been seen to be gone. */
int ids_take (struct linux_provider *self, struct ids *ids, const char **why);
void ids_note (struct linux_provider *self, struct ids *ids, pid_t init);
/* Those of an init that another process of this one's has begun are in a table
 * which is not open here yet. */
void ids_found (struct linux_provider *self, const struct ids *ids);
void ids_give (struct linux_provider *self, const struct ids *ids);
/* What they would be, in words; -1 with a reason for people in *why. */
int ids_look (struct linux_provider *self, char *text, size_t size,
              const char **why);
/* Writes the three files below /proc/PID. */
int ids_write (int proc, const struct ids *ids);
/* A user namespace that maps the owner of a folder to the sandbox's ids. */
int ids_namespace (uint32_t uid, uint32_t gid, const struct ids *ids);

/* ---- cgroup.c ----------------------------------------------------------- */

struct cgroup_limits {
  uint64_t memory_bytes;
  uint32_t pids;
  uint32_t cpu_millis;
};

/* What a group does: bits. */
enum {
  CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4, CGROUP_FREEZE = 8
};

#define CGROUP_OWN 3            /* the most that an init enters by itself */

/* The groups of a sandbox that is being made. */
struct cgroup {
  unsigned bits;                /* that hold */
  int version;
  int single;                   /* for one command */
  int swap_off;                 /* nothing of its memory goes to swap */
  int into;                     /* version 2: where its init begins, -1 */
  int entered;                  /* it was begun there */
  int commands;                 /* what commands write themselves into, -1 */
  int own[CGROUP_OWN];          /* what the init does, -1 */
  int whole;                    /* version 2, one command: what is entered by
                                 * who was not begun there, -1 */
  const char *why;              /* something is missing; NULL: nothing is */
  struct place *place;
};
#define CGROUP_NONE \
  { .into = -1, .commands = -1, .own = { -1, -1, -1 }, .whole = -1 }

/* Limits that this process could set; and why not all. */
unsigned cgroup_usable (const char **why);
/* Makes groups below the caller's own, with the limits, and names them in the
 * sandbox's folder.  What cannot be had is not in the bits. */
void cgroup_make (int folder, const char *id, int single,
                  const struct cgroup_limits *limits, struct cgroup *group);
/* Moves the init in, where it does not do that itself, and reads all of it
 * back. */
void cgroup_enter (int folder, pid_t pid, const struct cgroup_limits *limits,
                   struct cgroup *group);
/* Whether it is where it was to go: 0, or -1. */
int cgroup_check (pid_t pid, const struct cgroup *group);
void cgroup_fini (struct cgroup *group);
/* Ends and removes the groups that the folder names. */
int cgroup_remove (int folder);
/* Stops every command of the sandbox, or lets them go on; the init is not
 * among them.  -1 with errno ENOENT: it has no group for that. */
int cgroup_freeze (int folder, int frozen, int64_t deadline_ns);
struct cgroup_use {
  uint64_t memory_bytes, memory_peak_bytes;
};
struct cgroup_denials {
  uint64_t oom_kills, pids_denied;
};
/* -1 with errno ENOENT: there is none. */
int cgroup_use (int folder, struct cgroup_use *use);
int cgroup_denials (int folder, struct cgroup_denials *denials);
/* The same, of a sandbox: limits.c. */
int cgroup_use_of (const struct linux_provider *self, const char *id,
                   struct cgroup_use *use);
int cgroup_denials_of (const struct linux_provider *self, const char *id,
                       struct cgroup_denials *denials);

/* ---- exec.c ------------------------------------------------------------- */

/* "e7" is 7; NOT_FOUND is reported. */
int32_t exec_number (struct coffer_call *call, const char *name,
                     uint32_t *out);
/* What errno means after asking about a command, reported. */
int32_t exec_ask_failed (struct coffer_call *call, const char *exec);
int32_t linux_exec_start (struct coffer_call *call, void *self,
                          const char *sandbox, const char *const *argv,
                          const char *const *env, const char *cwd, int32_t in,
                          int32_t out, int32_t err,
                          const struct coffer_exec_start_opts *opts);
int32_t linux_exec_wait (struct coffer_call *call, void *self,
                         const char *sandbox, const char *exec,
                         const struct coffer_exec_wait_opts *opts);
int32_t linux_exec_list (struct coffer_call *call, void *self,
                         const char *sandbox,
                         const struct coffer_exec_list_opts *opts);
/* attach.c */
int32_t linux_exec_attach (struct coffer_call *call, void *self,
                           const char *sandbox, const char *exec, int32_t out,
                           int32_t err,
                           const struct coffer_exec_attach_opts *opts);
int32_t linux_exec_signal (struct coffer_call *call, void *self,
                           const char *sandbox, const char *exec,
                           int32_t signal,
                           const struct coffer_exec_signal_opts *opts);
int32_t linux_exec_resize (struct coffer_call *call, void *self,
                           const char *sandbox, const char *exec,
                           uint32_t rows, uint32_t columns,
                           const struct coffer_exec_resize_opts *opts);
int32_t
linux_exec_stdin_close (struct coffer_call *call, void *self,
                        const char *sandbox, const char *exec,
                        const struct coffer_exec_stdin_close_opts *opts);

/* ---- inside.c ----------------------------------------------------------- */

int32_t linux_file_read (struct coffer_call *call, void *self,
                         const char *sandbox, const char *path, int32_t out,
                         const struct coffer_file_read_opts *opts);
int32_t linux_file_write (struct coffer_call *call, void *self,
                          const char *sandbox, const char *path, int32_t in,
                          const struct coffer_file_write_opts *opts);
int32_t linux_file_stat (struct coffer_call *call, void *self,
                         const char *sandbox, const char *path,
                         const struct coffer_file_stat_opts *opts);
int32_t linux_file_list (struct coffer_call *call, void *self,
                         const char *sandbox, const char *path,
                         const struct coffer_file_list_opts *opts);
int32_t linux_file_mkdir (struct coffer_call *call, void *self,
                          const char *sandbox, const char *path,
                          const struct coffer_file_mkdir_opts *opts);
int32_t linux_file_remove (struct coffer_call *call, void *self,
                           const char *sandbox, const char *path,
                           const struct coffer_file_remove_opts *opts);
int32_t linux_file_rename (struct coffer_call *call, void *self,
                           const char *sandbox, const char *from,
                           const char *to,
                           const struct coffer_file_rename_opts *opts);

/* A folder inside, open, and whose process may have it. */
int32_t inside_folder (struct linux_provider *self, struct coffer_call *call,
                       const char *sandbox, const char *path, int *folder,
                       struct aide *as);
/* What coffer_watch_open gives for a folder inside. */
int32_t inside_watch (struct linux_provider *self, struct coffer_call *call,
                      const char *sandbox, const char *path, int *watch);
/* archive.c */
int32_t linux_archive_export (struct coffer_call *call, void *self,
                              const char *sandbox, const char *path,
                              int32_t out,
                              const struct coffer_archive_export_opts *opts);
int32_t linux_archive_import (struct coffer_call *call, void *self,
                              const char *sandbox, const char *path,
                              int32_t in,
                              const struct coffer_archive_import_opts *opts);
/* watch.c */
int32_t linux_file_watch (struct coffer_call *call, void *self,
                          const char *sandbox, const char *path,
                          const struct coffer_file_watch_opts *opts);

/* ---- reach.c ------------------------------------------------------------ */

int32_t linux_sandbox_pause (struct coffer_call *call, void *self,
                             const char *sandbox,
                             const struct coffer_sandbox_pause_opts *opts);
int32_t linux_sandbox_resume (struct coffer_call *call, void *self,
                              const char *sandbox,
                              const struct coffer_sandbox_resume_opts *opts);
int32_t linux_port_resolve (struct coffer_call *call, void *self,
                            const char *sandbox, uint32_t port,
                            const struct coffer_port_resolve_opts *opts);
int32_t linux_port_dial (struct coffer_call *call, void *self,
                         const char *sandbox, uint32_t port,
                         const struct coffer_port_dial_opts *opts);
struct metric {
  const char *name;
  double value;
  int known;
};
int32_t metrics_emit (struct coffer_call *call, const struct metric *metrics,
                      size_t n);
int32_t linux_metrics (struct coffer_call *call, void *self,
                       const char *sandbox,
                       const struct coffer_metrics_opts *opts);

/* ---- zygote.c ----------------------------------------------------------- */

/* The folders in which a command without a path is looked for, inside. */
#define PROGRAM_PATH \
  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* A Python interpreter that has a program loaded and modules imported, and
 * waits to be forked into a sandbox.  No code that is not trusted ever runs in
 * it, and nobody in a sandbox sees it. */
struct zygote {
  pid_t pid;                    /* 0: none */
  pid_t maker;                  /* whose child it is */
  int pidfd, control;
  int ready;                    /* has said so */
  unsigned runs;
  int64_t born_ns;
};
#define ZYGOTE_NONE { .pidfd = -1, .control = -1 }

#define WARM_LETTER 'w'

struct warm {
  struct warm *next;
  unsigned number;              /* the handle is WARM_LETTER and this */
  unsigned users;               /* calls that are at it now */
  char *profile;
  struct coffer_buffer program;
  int program_fd;               /* the same, in memory that is sealed */
  struct coffer_strings modules;
  pthread_mutex_t busy;         /* of what follows */
  struct zygote now, coming;    /* the one that serves; what is to replace it */
  struct zygote going;          /* and the one before, with what it was asked */
  uint64_t copies, begun;       /* of all that have served, and how many */
};

/* Whether there is an extension for it at all. */
#ifdef LINUX_WARM
#define WARM_BUILT 1
#else
#define WARM_BUILT 0
#endif

/* The interpreter's path; NULL: none could be made ready here. */
const char *zygote_python (void);
/* Begins one: it is not ready yet. */
int32_t zygote_start (struct linux_provider *self, struct coffer_call *call,
                      const struct warm *warm, struct zygote *zygote);
/* Until it is ready, or with wait 0 at once whether it is: COFFER_OK says
 * nothing of that then, `ready` does. */
int32_t zygote_await (struct coffer_call *call, struct zygote *zygote,
                      int wait);
int zygote_lives (const struct zygote *zygote);
void zygote_end (struct zygote *zygote);
/* It ends by itself, once it has done what it was asked for before. */
void zygote_dismiss (struct zygote *zygote);
/* Asks it for a copy that enters the sandbox of that init, whose gate is told
 * all else.  -1 with errno. */
int zygote_fork (struct coffer_call *call, struct zygote *zygote, int init,
                 int gate);

/* ---- warm.c ------------------------------------------------------------- */

#define WARM_INTO \
  "warm: into a sandbox with the filter strict, the machine's programs and a " \
  "network of its own"

void warm_fini (struct linux_provider *self);
int32_t linux_warm_open (struct coffer_call *call, void *self,
                         const char *profile, int32_t in,
                         const struct coffer_warm_open_opts *opts);
/* NOT_FOUND, reported: no such handle.  Until warm_leave (NULL: nothing) it is
 * not given back. */
int32_t warm_find (struct linux_provider *self, struct coffer_call *call,
                   const char *handle, struct warm **out);
void warm_leave (struct linux_provider *self, struct warm *warm);
/* CONFLICT, reported: no copy may go into that sandbox. */
int32_t warm_fits (struct coffer_call *call, const struct sandbox *sb);
/* Sends a request of the type WARM, and for a copy that is to be it: *asked is
 * who makes that. */
int32_t warm_send (struct linux_provider *self, struct coffer_call *call,
                   struct warm *warm, struct link *link,
                   struct request *request, int *fds, pid_t *asked);
/* The letter and a number: a handle, where no sandbox of that name is meant. */
int warm_is_handle (const char *name);
/* `metrics` of a handle. */
int32_t warm_metrics (struct linux_provider *self, struct coffer_call *call,
                      const char *handle);
/* It did not, for as long as an init waits: another one is to be made. */
void warm_stuck (struct warm *warm, pid_t asked);

/* etc.c: the names in /etc that sandboxes show, copied. */
int etc_names_copy (struct linux_provider *self, struct coffer_buffer *out);

/* ---- probe.c ------------------------------------------------------------ */

int32_t linux_probe (struct coffer_call *call, void *self,
                     const struct coffer_probe_opts *opts);

/* coffer_fail with a format. */
int32_t fail_with (struct coffer_call *call, int32_t code, const char *fmt,
                   ...) __attribute__ ((format (printf, 3, 4)));

#endif /* LINUX_LINUX_H */
