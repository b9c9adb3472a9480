/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of a sandbox: what its files share.
 *
 * main.c    the start, the event loop, requests
 * plan.c    what it is told first
 * setup.c   mounts, /etc, /dev, pivot
 * proc.c    /proc
 * network.c the loopback, and where a proxy is reached
 * confine.c capabilities, and reading all of it back
 * landlock.c, filter.c, limits.c   what their names say
 * exec.c    commands: the table, starting, timeouts, their end
 * process.c one process becoming a program
 * tags.c    which processes are whose
 * sweep.c   ending all of them
 * spool.c   kept output of commands in the background
 * pause.c   stopping everything, and letting it go on
 * request.c what a command is started with: argv, environment, streams
 * warm.c    a command that was forked outside, from what stands ready
 * usage.c   what the sandbox uses
 * dial.c    its ports
 * namespaces.c   its own, and who is outside of them
 * lib.c     memory, strings, messages
 *
 * One thread, no allocator: tables of fixed size and mmap for what is large.
 * Nothing here trusts a process of a sandbox; requests come only over
 * connections of those who have shown that they are in none. */

#ifndef INIT_INIT_H
#define INIT_INIT_H

#include "../protocol.h"
#include "sys.h"

#define NORETURN __attribute__ ((noreturn))

/* ---- lib.c -------------------------------------------------------------- */

void *memcpy (void *to, const void *from, size_t size);
void *memset (void *to, int c, size_t size);
void *memmove (void *to, const void *from, size_t size);
int memcmp (const void *a, const void *b, size_t size);
size_t strlen (const char *s);

int text_equal (const char *a, const char *b);
int text_starts (const char *s, const char *prefix);
/* Joins up to the first NULL; what does not fit is cut. */
char *text_join (char *out, size_t size, ...);
/* Decimal in a static buffer of the caller: 21 bytes. */
char *text_number (char out[21], uint64_t value);

void fd_close (int fd);
/* Waits, and ends this process rather than return at once for ever: when it
 * cannot wait (its limits were tampered with) or a descriptor is not one.
 * Short of memory it returns after a moment, with nothing ready. */
void poll_or_end (struct sys_pollfd *polls, size_t n,
                  const struct sys_timespec *timeout);
void nap (void);                        /* 10 ms */
int64_t clock_ns (int clock);           /* 0 real, 1 monotonic, 7 boot */
NORETURN void init_exit_now (int code);

/* A received packet with its descriptors. */
struct packet {
  struct init_header *header;
  size_t size;
  size_t n_fds;
  int fds[INIT_FDS_MAX];
};

/* 1: one packet, 0: the end, or a negative errno (-EAGAIN: none now). */
int packet_receive (int fd, int wait, struct packet *packet);
void packet_close_fds (struct packet *packet);
/* What NAMES holds, which follows the shape: how many bytes, at most `size`, or
 * a negative errno. */
long names_receive (int fd, char *out, size_t size);
/* The body, of at least `need` bytes (zero beyond what was sent, in `copy`);
 * NULL: malformed. */
const void *packet_body (const struct packet *packet, void *copy,
                         size_t need);
/* A string at an offset that lies wholly in the packet, or NULL. */
const char *packet_string (const struct packet *packet, uint32_t offset);
int packet_send (int fd, uint16_t type, uint32_t serial, int error,
                 const void *body, size_t size, const void *more,
                 size_t more_size, int attach);

/* ---- plan.c ------------------------------------------------------------- */

struct plan {
  struct init_prepare shape;    /* what there is before the rest */
  struct init_plan body;
  const struct packet *packet;
  const char *hostname;
  int control;                  /* the connection that it came on */
  int skeleton;                 /* its root, with its names; -1 */
  int lifeline, listener;
  size_t first_mount_fd;
};

/* PREPARE, whose groups are entered; and PLAN, but for its maker's connection.
 * Both take the packet's descriptors. */
void shape_read (struct packet *packet, struct plan *plan);
void plan_read (struct packet *packet, struct plan *plan);

/* ---- setup.c ------------------------------------------------------------ */

/* Where a failed step is told to; ends the process. */
NORETURN void setup_fail (const char *step, long error);
/* ret, or the end of everything when it is an error. */
long must (const char *step, long ret);
/* What every sandbox of that shape has; the rest, as this one's plan says; and
 * what takes as long as others need for it. */
void setup_begin (const struct plan *plan);
void setup_end (const struct plan *plan);
void setup_last (const struct plan *plan);
extern int host_pts;            /* folder, -1: none */

/* Its parts, for proc.c and template.c: the root that is being made, and mounts. */
int setup_root (void);
/* An empty folder in it that nobody can fill; NULL: one is to be made. */
const char *setup_empty (void);
void attributes_set (const char *step, int mount, uint64_t flags,
                     int recursive);
void mount_attach (const char *step, int mount, int dir, const char *name);
int tree_clone (int dir, const char *path, unsigned flags);
/* Options are pairs of key and value (NULL: a flag), ended by NULL. */
int filesystem_new (const char *step, const char *type,
                    const char *const *options, uint64_t flags);
int source_find (const char *source, int pinned);

/* ---- proc.c ------------------------------------------------------------- */

void proc_make (void);
/* The sandbox's proc as a mount that is in no place yet. */
int proc_ahead (void);

/* ---- template.c --------------------------------------------------------- */

/* Shows the folders of the template, which is the first of the mounts. */
void template_show (const struct plan *plan);
/* Lays a file of ours over one of its /etc; 0: there is none. */
int template_cover (const char *path, const char *text);
/* What is left to do once all else is in place. */
void template_finish (void);
/* Its folders: "/usr"; NULL: no more. */
const char *template_folder (unsigned i);

/* ---- network.c ---------------------------------------------------------- */

/* Before there is a plan: of a process that waits for one it is done. */
void network_begin (void);
/* This process was begun without a network namespace: it has one made beside
 * the rest, and joins it. */
extern int network_late;
void network_begin_beside (void);
void network_join (void);
void network_make (const struct plan *plan);
/* For the proxy outside: a listener in here, -1; to be closed once given. */
extern int proxy_listener;
extern uint32_t exit_proxy;     /* EXIT_PROXY where there is a proxy, or 0 */

/* ---- confine.c ---------------------------------------------------------- */

/* Facts as five strings each, one after another. */
struct facts {
  char *text;
  size_t size, capacity;
  uint32_t count;
};
void template_facts (struct facts *facts);
void fact_add (struct facts *facts, const char *name, const char *state,
               const char *value, const char *how, const char *remedy);
void capabilities_bound (void);
/* What needs no more than the new root. */
void confine_prepare (const struct plan *plan);
void confine_all (const struct plan *plan, struct facts *facts);

/* ---- landlock.c --------------------------------------------------------- */

/* While there are capabilities: what must be prepared for reading back. */
void landlock_prepare (const struct plan *plan, int data);
/* Its rules, in the new root; and being held to them. */
void landlock_rules (const struct plan *plan);
void landlock_enter (void);
void landlock_facts (struct facts *facts);
void landlock_done (void);
/* Rulesets: the sandbox's, where a process may come in that takes it on by
 * itself; and the one that each command puts on top of that.  -1: none. */
extern int landlock_whole, landlock_command;
/* In the process that is to be a command: 0 or a negative errno. */
long landlock_enter_command (void);

/* ---- filter.c ----------------------------------------------------------- */

extern int strict_mode;         /* commands get the strict one as well */
void filter_enter (void);
struct sock_filter;
/* Their instructions, and how many. */
const struct sock_filter *filter_bytes (int strict, uint32_t *count);
/* In the process that becomes a command: 0, and what execve's sixth argument
 * must be from now on.  A negative errno. */
long filter_enter_strict (uint64_t *secret);

/* ---- limits.c ----------------------------------------------------------- */

/* The file of a control group that a command writes itself into, -1. */
extern int commands_group;
/* This process's own: written to, and closed. */
void group_join (int fd);
/* In the process that is to be a command: 0 or a negative errno. */
long groups_enter (void);
/* While there are rights to: what shared memory of System V may take. */
void limits_prepare (const struct plan *plan);
void limits_set (const struct plan *plan);
/* In the process that is to be a command: 0 or a negative errno. */
long files_enter (void);
/* The limits that a command of that number has. */
void limits_of_command (uint32_t id, struct init_join *join);
/* A mount that may be full; copied. */
void limits_watch (int mount);
void limits_facts (const struct plan *plan, struct facts *facts);
/* EXIT_DISK, EXIT_INODES: what is full now. */
uint32_t limits_reached (void);

/* ---- tags.c ------------------------------------------------------------- */

/* Once, before the limits of this process are fixed. */
void tags_prepare (void);
/* The calling process and all that it starts are that command's from now on.
 * A negative errno, or not. */
long tag_take (uint32_t id);
/* The same, written down. */
void tag_note (uint32_t id, struct init_join *join);
/* Whether a process is that command's, or may be. */
int tag_covers (int pid, uint32_t id);
/* The one command whose it is; 0: not known.  Zombies have theirs still. */
uint32_t tag_of (int pid);
/* Every process but this one; a negative errno when they cannot be listed. */
long processes_visit (void (*visit) (int pid, void *data), void *data);
/* What follows the name in its stat: "S 1 …"; NULL: it is gone. */
const char *process_stat (int pid, char text[1024]);

/* ---- sweep.c ------------------------------------------------------------ */

struct sweep {
  uint32_t id;                  /* whose; 0: everybody's */
  uint32_t count;               /* of the last look */
  uint64_t sum;
  int killing, empty;
  int64_t due_ns, stop_ns, give_up_ns;
};

enum sweep_result { SWEEP_GOES_ON, SWEEP_DONE, SWEEP_FAILED };

void sweep_begin (struct sweep *sweep, uint32_t id);
/* From the start, with what time is left. */
void sweep_again (struct sweep *sweep);
/* What there is to do now; due_ns says when to come again. */
enum sweep_result sweep_step (struct sweep *sweep);

/* ---- exec.c ------------------------------------------------------------- */

/* Output that is kept while nobody reads it: the first half of the cap, and
 * the last, which goes round. */
struct spool {
  int pipe;                     /* what the command writes into, -1 */
  int file;                     /* in memory, -1 */
  uint64_t total;               /* bytes that ever came */
};

struct command {
  uint32_t id;                  /* 0: free */
  int pid;                      /* of the command, 0: not running */
  int tty;                      /* its terminal, -1 */
  int input;                    /* its standard input, if that is a socket */
  struct spool spool[2];
  uint64_t cap;                 /* of each spool */
  int64_t deadline_ns;          /* CLOCK_MONOTONIC, 0: none */
  int64_t begun_ns;
  uint64_t used_us;             /* by its process, before it was a command */
  int ended;
  int tell;                     /* its starter waits for its end already */
  int sweeping;                 /* its time is over, and it is being ended */
  struct sweep sweep;
  struct init_exit exit;
};

extern struct command commands[INIT_EXECS_MAX];

/* Starts what the packet asks for: *out runs, or has failed to and ended.  A
 * negative errno when there is no such command at all. */
int exec_start (struct packet *packet, struct command **out);
/* Whether no command was ever started. */
int exec_fresh (void);
struct command *command_find (uint32_t id);
/* Children of this process that have ended. */
void exec_reap (void);
/* The output to listen to, and reading it. */
size_t exec_watch (struct sys_pollfd *polls);
void exec_ready (const struct sys_pollfd *polls, size_t n);
/* ns until something is to be done; -1: nothing. */
int64_t exec_next_ns (void);
void exec_timeouts (void);
uint64_t exec_cpu_us (void);

/* ---- process.c ---------------------------------------------------------- */

/* The process that is made of a request; shared with the child until it has
 * become the program. */
struct start {
  const char **argv, **envp;
  const char *cwd;
  int in, out, err;             /* -1: /dev/null */
  int tty;
  uint32_t rows, columns;
  uint32_t tag;                 /* 0: none */
  int report;                   /* closed once it is the program, -1 */
  int come;                     /* it is a process that comes in */
  int gate;                     /* of that, -1: it waits here */
  uint64_t used_us;             /* by it, before it was a command */
  volatile int error;           /* errno, 0: it runs */
  volatile uint32_t step;
};
/* Its number; 0: there is none.  alone: nobody here could stop the child on
 * its way. */
int process_start (struct start *start, int alone);

/* ---- warm.c ------------------------------------------------------------- */

/* Whether a process may come into this sandbox at all; from the plan. */
void warm_prepare (const struct plan *plan);
/* Takes the files of groups that such a process is to enter: count. */
size_t warm_groups (const int *fds, size_t n);
int warm_refused (void);        /* 0 or a negative errno */
/* Lets one in: its number; 0: there is none, and start says why. */
int warm_start (struct start *start, uint32_t id);
/* Lets one in that waits to be the first command; and ends it. */
void warm_ahead (struct packet *packet);
void warm_drop (void);

/* ---- spool.c ------------------------------------------------------------ */

void spool_init (struct spool *spool);
/* 0 and the end to write into, or a negative errno. */
int spool_open (struct spool *spool, int *writer);
void spool_close (struct spool *spool);
/* Takes what the pipe has, at most about `most` bytes. */
void spool_take (struct spool *spool, uint64_t cap, uint64_t most);

/* ---- pause.c ------------------------------------------------------------ */

/* frozen: the kernel has stopped them, and it is only noted.  0, or a negative
 * errno and everything goes on. */
long pause_begin (int frozen);
void pause_end (void);
int pause_is (void);

/* ---- dial.c ------------------------------------------------------------- */

/* A socket that is connecting, or a negative errno. */
long dial (const struct init_dial *body);

/* ---- usage.c ------------------------------------------------------------ */

/* Processes, processor time, memory and data, as they are now. */
void usage_read (struct init_state *state);

/* ---- request.c ---------------------------------------------------------- */

/* Where a command without a PATH is looked for. */
#define DEFAULT_PATH \
  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The strings of one request, and the environment made of them. */
struct request {
  const char *bytes;
  size_t size;
  void *mapped;
  size_t mapped_size;
  const char **vector;
  size_t vector_size;
  uint32_t argc, envc;
  const char *cwd;
};

/* Once, before the first command: what every command's environment holds. */
void request_prepare (const struct plan *plan);
/* What to start, of strings that live until request_free, which is due on
 * failure too.  0 or a negative errno. */
int request_read (struct request *request, struct start *start,
                  const struct packet *packet, const struct init_exec *body,
                  const char *rest);
void request_free (struct request *request);

/* ---- namespaces.c ------------------------------------------------------- */

/* user mnt pid net ipc uts cgroup: inode numbers, 0: not known. */
void namespaces_note (uint64_t inodes[7]);
/* Whether OUTSIDE shows that user namespace. */
int outside_is (const struct packet *packet, uint64_t userns);

/* ---- main.c ------------------------------------------------------------- */

extern int null_fd;             /* /dev/null */
extern int signal_fd;           /* SIGCHLD */
extern int single_mode;
/* Waits for a descriptor, up to ns; meanwhile the sandbox's own end comes as
 * always.  1: it is ready. */
int wait_while_alive (int fd, int64_t ns);

/* To be told about a command. */
void tell_exit (struct command *command);
void tell_spool (struct command *command);

#endif /* INIT_INIT_H */
