/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of a sandbox: what its files share.
 *
 * main.c    the start, the event loop, requests
 * setup.c   mounts, /etc, /dev, /proc, pivot
 * confine.c capabilities, and reading all of it back
 * landlock.c, filter.c, limits.c   what their names say
 * exec.c    commands
 * request.c what a command is started with: argv, environment, streams
 * monitor.c the process above each command where there are several
 * lib.c     memory, strings, messages
 *
 * One thread, no allocator: tables of fixed size and mmap for what is large.
 * Nothing here trusts a process of the sandbox; requests come only over
 * connections that the provider made. */

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
/* The body, of at least `need` bytes (zero beyond what was sent, in `copy`);
 * NULL: malformed. */
const void *packet_body (const struct packet *packet, void *copy,
                         size_t need);
/* A string at an offset that lies wholly in the packet, or NULL. */
const char *packet_string (const struct packet *packet, uint32_t offset);
int packet_send (int fd, uint16_t type, uint32_t serial, int error,
                 const void *body, size_t size, const void *more,
                 size_t more_size, int attach);

/* ---- setup.c ------------------------------------------------------------ */

struct plan {
  struct init_plan body;
  const struct packet *packet;
  const char *hostname;
  int lifeline, listener;
  size_t first_mount_fd;
};

/* Where a failed step is told to; ends the process. */
NORETURN void setup_fail (const char *step, long error);
/* ret, or the end of everything when it is an error. */
long must (const char *step, long ret);
void setup_all (const struct plan *plan);
extern int host_pts;            /* folder, -1: none */

/* ---- confine.c ---------------------------------------------------------- */

/* Facts as five strings each, one after another. */
struct facts {
  char *text;
  size_t size, capacity;
  uint32_t count;
};
void fact_add (struct facts *facts, const char *name, const char *state,
               const char *value, const char *how, const char *remedy);
void confine_all (const struct plan *plan, struct facts *facts);

/* ---- landlock.c --------------------------------------------------------- */

/* While there are capabilities: what must be prepared for reading back. */
void landlock_prepare (const struct plan *plan);
void landlock_enter (const struct plan *plan);
void landlock_facts (struct facts *facts);
void landlock_done (void);

/* ---- filter.c ----------------------------------------------------------- */

extern int strict_mode;         /* commands get the strict one as well */
void filter_enter (void);
/* In the process that becomes a command: 0, and what execve's sixth argument
 * must be from now on.  A negative errno. */
long filter_enter_strict (uint64_t *secret);

/* ---- limits.c ----------------------------------------------------------- */

/* Files of control groups that a command writes itself into, -1. */
extern int group_fds[2];
/* In the process that is to be a command: 0 or a negative errno. */
long groups_enter (void);
/* While there are rights to: what shared memory of System V may take. */
void limits_prepare (const struct plan *plan);
void limits_set (const struct plan *plan);
void limits_facts (const struct plan *plan, struct facts *facts);
/* EXIT_DISK, EXIT_INODES: what is full now. */
uint32_t limits_reached (void);

/* ---- exec.c ------------------------------------------------------------- */

struct command {
  uint32_t id;                  /* 0: free */
  int pid;                      /* of the command, 0: not running */
  int monitor;                  /* pid of its monitor, 0: none */
  int notify;                   /* from the monitor, -1 */
  int tty;                      /* its terminal, -1 */
  int input;                    /* its standard input, if that is a socket */
  int spool[2];                 /* kept output, -1 */
  uint64_t kept[2], dropped[2];
  int64_t deadline_ns;          /* CLOCK_MONOTONIC, 0: none */
  int64_t begun_ns;
  int ended;
  int starter;                  /* connection that waits for STARTED, -1 */
  uint32_t starter_serial;
  struct init_exit exit;
};

extern struct command commands[INIT_EXECS_MAX];

/* Starts what the packet asks for.  0, and *out; STARTED follows by
 * tell_started, maybe before the return.  A negative errno otherwise. */
int exec_start (struct packet *packet, int starter, struct command **out);
struct command *command_find (uint32_t id);
/* Children of this process that have ended. */
void exec_reap (void);
/* The monitors to listen to, and what they say. */
size_t exec_watch (struct sys_pollfd *polls);
void exec_ready (const struct sys_pollfd *polls, size_t n);
/* ns until the next timeout; -1: none. */
int64_t exec_next_ns (void);
void exec_timeouts (void);
uint64_t exec_cpu_us (void);

/* The process that is made of a request; shared with the child until it has
 * become the program. */
struct start {
  const char **argv, **envp;
  const char *cwd;
  int in, out, err;             /* -1: /dev/null */
  int tty;
  uint32_t rows, columns;
  volatile int error;           /* errno, 0: it runs */
  volatile uint32_t step;
};
int process_start (struct start *start);
/* Fills in how a process ended, from wait4's status. */
void exit_from_status (struct init_exit *exit, int status);
uint64_t rusage_us (const struct sys_rusage *usage);

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

/* ---- monitor.c ---------------------------------------------------------- */

/* What a monitor writes to init: whole, as it is shorter than a pipe's atomic
 * write. */
struct notice {
  uint64_t kept[2], dropped[2];
  int32_t pid;                  /* of the command */
  uint32_t flags;               /* 1: started, 2: ended */
  struct init_exit exit;
};

/* In a process of its own: runs the command, and ends when nothing of it is
 * left.  pipes: output to keep in spool, or -1. */
NORETURN void monitor_run (struct start *start, int notify,
                           int64_t deadline_ns, const int pipes[2],
                           const int spool[2], uint64_t cap);

/* ---- main.c ------------------------------------------------------------- */

extern int null_fd;             /* /dev/null */
extern int signal_fd;           /* SIGCHLD */
extern int single_mode;

/* To be told about a command: STARTED and EXIT. */
void tell_started (struct command *command);
void tell_exit (struct command *command);
void tell_spool (struct command *command);

#endif /* INIT_INIT_H */
