/* SPDX-License-Identifier: Apache-2.0 */
/* What the linux provider and the init of a sandbox say to each other.
 *
 * One message is one SOCK_SEQPACKET packet: a header, a fixed body, strings.
 * Descriptors travel beside it (SCM_RIGHTS) in the order that the body's
 * flags name them.  A durable sandbox outlives the coffer that made it, so a
 * newer provider meets older inits and the rules are:
 *
 *  - the first packet of an init on every connection is HELLO with its version;
 *  - numbers of types, flags and fields are never reused;
 *  - a body begins with its size and grows only at its end: the reader takes
 *    the smaller of two sizes, and what is missing is zero;
 *  - an init answers a type that it does not know with EOPNOTSUPP;
 *  - replies carry the serial number of their request.
 *
 * PREPARE and PLAN are only ever read by the init of the same build.  Stands
 * alone, for a program without a libc. */

#ifndef LINUX_PROTOCOL_H
#define LINUX_PROTOCOL_H

#include <stdint.h>

#define INIT_PROTOCOL 1
#define INIT_MAGIC 0x436f
#define INIT_MESSAGE_MAX 65536
/* What an init says is short: its facts are the longest of it.  A receiver has
 * this much on its stack, every page of which is touched. */
#define INIT_FACTS_MAX 7168
#define INIT_REPLY_MAX 8192
#define INIT_FDS_MAX 64
#define INIT_EXECS_MAX 128
#define INIT_BLOCK_MAX (8u << 20)       /* bytes of one exec's arguments */
#define INIT_SPOOL_MAX (64u << 20)      /* kept output, of each stream */

/* Where a proxy listens inside, on 127.0.0.1. */
#define INIT_PROXY_PORT 3128

enum init_type {
  INIT_HELLO = 1,               /* init: here I am */
  INIT_PLAN = 2,                /* make the sandbox; READY or FAILED */
  INIT_EXEC = 3,                /* start a command; STARTED */
  INIT_WAIT = 4,                /* EXIT, when it has ended */
  INIT_SIGNAL = 5,              /* DONE */
  INIT_RESIZE = 6,              /* DONE */
  INIT_LIST = 7,                /* one COMMAND each, then DONE */
  INIT_INFO = 8,                /* STATE */
  INIT_EXTEND = 9,              /* STATE */
  INIT_ROOT = 10,               /* DONE with the root folder's descriptor */
  INIT_END = 11,                /* everything ends; no reply */
  INIT_CHANNEL = 12,            /* a descriptor: one more connection; none */
  INIT_SPOOL = 13,              /* SPOOLED with the kept output */
  INIT_FACTS = 14,              /* READY again */
  INIT_STDIN = 15,              /* end a command's standard input; DONE */
  INIT_PAUSE = 16,              /* everything rests, but the init; DONE */
  INIT_RESUME = 17,             /* DONE */
  INIT_DIAL = 18,               /* DONE with a socket that is connecting */
  INIT_NAMES = 19,              /* after PREPARE, unless it has a template: what
                                 * of /etc to show; none */
  INIT_OUTSIDE = 20,            /* first on a connection to its socket, with a
                                 * descriptor of the user namespace that the
                                 * sandbox was made in: only who is outside of
                                 * every sandbox has one; none */
  INIT_PREPARE = 21,            /* before PLAN: its ids are mapped, and it makes
                                 * what every sandbox of that shape has; none,
                                 * or FAILED */
  INIT_WARM = 22,               /* as EXEC, of a process that comes in by itself;
                                 * its gate is the last descriptor, or it is
                                 * the one that waits (EXEC_AHEAD); STARTED */
  INIT_JOIN = 23,               /* init, at the gate: what it is to become */
  INIT_GO = 24,                 /* init, there: be it */
  INIT_AHEAD = 26,              /* a descriptor: the gate of a process that comes
                                 * in and waits to be a command; none */

  INIT_READY = 0x8001,
  INIT_FAILED = 0x8002,
  INIT_STARTED = 0x8003,
  INIT_EXIT = 0x8004,
  INIT_DONE = 0x8005,
  INIT_COMMAND = 0x8006,
  INIT_STATE = 0x8007,
  INIT_SPOOLED = 0x8008,
  INIT_JOINED = 0x8009          /* at the gate: it is, or could not */
};

struct init_header {
  uint32_t size;                /* of the whole packet */
  uint16_t magic;
  uint16_t type;
  uint32_t serial;
  int32_t error;                /* of a reply: errno, 0 is success */
};

struct init_hello {
  uint32_t size;
  uint32_t version;
  uint32_t flags;
};

/* Flags of the plan: PRIVILEGED, ROOT_WRITABLE, STRICT, HOST_NETWORK, TEMPLATE,
 * and SKELETON, whose descriptor comes after those of groups.
 * An init that is made ahead knows no more of its sandbox than this. */
struct init_prepare {
  uint32_t size;
  uint32_t flags;
  uint32_t uid, gid;            /* inside */
  uint64_t disk_bytes;
  uint64_t inodes;
  uint32_t layers;              /* 0; layer.h */
  uint32_t own_groups;          /* descriptors: of groups that the init writes
                                 * itself into */
};

enum init_plan_flag {
  PLAN_DURABLE = 1,             /* lives on when the connection ends */
  PLAN_SINGLE = 2,              /* one exec: its end is the end of all others */
  PLAN_ROOT_WRITABLE = 4,
  PLAN_LIFELINE = 8,            /* descriptor: ends when it does */
  PLAN_LISTENER = 16,           /* descriptor: a bound socket, to listen on */
  PLAN_PRIVILEGED = 32,         /* the maker is root: take the mapped ids */
  PLAN_CGROUP = 64,             /* limits are a cgroup's, not rlimits */
  PLAN_STRICT = 128,            /* commands get the strict filter as well */
  PLAN_LANDLOCK = 256,          /* refused without */
  PLAN_GROUP = 512,             /* descriptor: of a file of a control group
                                 * that a command writes itself into */
  PLAN_HOST_NETWORK = 2048,     /* the network namespace is the maker's */
  PLAN_PROXY = 4096,            /* READY has a listener, for coffer-proxy */
  PLAN_TEMPLATE = 8192,         /* the first mount stands for the host's /usr */
  PLAN_SKELETON = 16384         /* descriptor: a root, read-only, with what
                                 * names every root has */
};

/* Followed by `mounts` times init_mount and then by the strings: at offsets,
 * each NUL-terminated; `env` is a run of `n_env` strings. */
struct init_plan {
  uint32_t size;
  uint32_t flags;
  uint64_t data_bytes;          /* RLIMIT_DATA; 0: none */
  uint64_t pids;                /* RLIMIT_NPROC; 0: none */
  int64_t expires_ns;           /* CLOCK_BOOTTIME; 0: never */
  uint32_t mounts;
  uint32_t n_env;
  uint32_t env;                 /* offsets from the start of the packet */
  uint32_t workdir;
  uint32_t hostname;
  uint32_t open_files;          /* RLIMIT_NOFILE; 0: as usual */
  uint64_t address_bytes;       /* RLIMIT_AS; 0: none */
  uint64_t file_bytes;          /* RLIMIT_FSIZE; 0: none */
  uint32_t userns;              /* the maker's: its inode number */
  uint32_t joins;               /* descriptors: of groups that a process writes
                                 * itself into which was not started here */
};

enum init_mount_flag {
  MOUNT_WRITABLE = 1,
  MOUNT_DETACHED = 2,           /* the descriptor is a mount of its own */
  MOUNT_FILE = 4,               /* not a folder */
  MOUNT_QUOTA = 8,              /* its size is a cap: it may be full */
  MOUNT_ROOT = 16               /* the first: what stands for the host's /usr */
};

struct init_mount {
  uint32_t size;
  uint32_t flags;
  uint32_t target;              /* offset */
  uint32_t source;              /* offset; where the pinned one was found */
};

/* NAMES: strings follow, each NUL-terminated.  As PLAN, of the same build. */
struct init_names {
  uint32_t size;
  uint32_t reserved;
};

/* READY: `count` facts follow, each of five strings: name, state, value, how,
 * remedy ("" is none). */
struct init_ready {
  uint32_t size;
  uint32_t count;
  uint64_t ns_inodes[7];        /* user mnt pid net ipc uts cgroup; only in
                                 * answer to FACTS */
};

/* FAILED: the name of the step follows; the header has the errno. */
struct init_failed {
  uint32_t size;
  uint32_t reserved;
};

enum init_exec_flag {
  EXEC_IN = 1, EXEC_OUT = 2, EXEC_ERR = 4,      /* descriptors, in this order */
  EXEC_TTY = 8,
  EXEC_BACKGROUND = 16,
  EXEC_BLOCK = 32,              /* the strings are in a descriptor, the first */
  EXEC_TELL = 64,               /* EXIT follows by itself, with EXEC's serial */
  EXEC_AHEAD = 128              /* WARM: of the process that waits */
};

/* Strings: argc arguments, envc variables, the working folder ("" is the
 * sandbox's). */
struct init_exec {
  uint32_t size;
  uint32_t flags;
  uint64_t timeout_ns;          /* 0: never */
  uint64_t output_cap;          /* per kept stream */
  uint32_t argc, envc;
  uint32_t rows, columns;
  uint32_t strings_size;
  uint32_t reserved;
  uint64_t marks[2];            /* given back with EXIT, for the provider */
};

/* ---- the gate ----------------------------------------------------------- */

/* A socket between an init and a process that was forked outside, from an
 * interpreter that stands ready (warm/enter.c).  That one enters the sandbox,
 * takes on what JOIN says, and answers JOINED; the init makes sure that it is a
 * child of its own and says GO, at once or when there is a command for it; the
 * process takes what GO says, puts the last filter on and closes its end: it is
 * a command like any other.  Of the same build, on both sides. */

#define JOIN_LIMITS 16          /* RLIMIT_CPU to RLIMIT_RTTIME */
#define JOIN_DESCRIPTORS 6
#define GO_DESCRIPTORS 3
#define JOIN_STRINGS 32768      /* of the environment, for one */

enum init_join_flag {
  JOIN_LANDLOCK = 1,            /* descriptor: the ruleset of the sandbox */
  JOIN_SCOPE = 2,               /* descriptor: that of each command */
  JOIN_AHEAD = 4                /* there is no command for it yet */
};

/* Descriptors: those of the flags, the rest files of control groups.  Followed by
 * the instructions of both filters. */
struct init_join {
  uint32_t size;
  uint32_t flags;
  struct {
    uint64_t soft, hard;
  } limits[JOIN_LIMITS];
  uint32_t uid, gid;            /* inside */
  uint32_t general, strict;     /* instructions */
};

/* Descriptors: three streams.  Followed by the working folder and the
 * environment. */
struct init_go {
  uint32_t size;
  uint32_t envc;
  uint32_t strings_size;
  uint32_t reserved;
};

struct init_joined {
  uint32_t size;
  int32_t pid;                  /* inside */
  uint32_t step;                /* enum init_exec_step, with an error */
  int32_t error;                /* errno */
};

/* Requests about one command: WAIT, SIGNAL, RESIZE, SPOOL, STDIN. */
struct init_command {
  uint32_t size;
  uint32_t exec;
  int32_t signal;
  uint32_t rows, columns;
  uint32_t stream;              /* SPOOL: 1 out, 2 err: its descriptor, now;
                                 * 0: when there is more than the offsets */
  uint64_t offsets[2];
};

struct init_extend {
  uint32_t size;
  uint32_t reserved;
  int64_t expires_ns;           /* CLOCK_BOOTTIME */
};

/* STARTED, EXIT and COMMAND. */
enum init_exit_flag {
  EXIT_RUNNING = 1,
  EXIT_TIMED_OUT = 2,
  EXIT_BACKGROUND = 4,
  EXIT_LEFT = 8,                /* what it left behind could not be ended */
  EXIT_DISK = 16,               /* no room was left at its end */
  EXIT_INODES = 32,
  EXIT_PROXY = 64,              /* its sandbox has a proxy, which may have
                                 * refused something */
  EXIT_ALONE = 128              /* no other command was ever there */
};

struct init_exit {
  uint32_t size;
  uint32_t exec;
  uint32_t flags;
  int32_t code;                 /* -1: by a signal */
  int32_t signal;
  int32_t failure_errno;        /* it never ran */
  uint32_t failure_step;        /* enum init_exec_step */
  uint32_t killed;
  int64_t started_ns;           /* CLOCK_REALTIME */
  uint64_t duration_us;
  uint64_t cpu_us;
  uint64_t marks[2];
};

enum init_exec_step {
  STEP_NONE, STEP_FORK, STEP_STREAMS, STEP_TERMINAL, STEP_CWD, STEP_PROGRAM,
  STEP_FILTER, STEP_GROUP, STEP_ENTER, STEP_CONFINE
};

enum init_state_flag {
  STATE_PAUSED = 1,
  STATE_DATA = 2                /* data_* were read */
};

struct init_state {
  uint32_t size;
  uint32_t running;             /* commands */
  int64_t created_ns;           /* CLOCK_REALTIME */
  int64_t expires_ns;           /* CLOCK_BOOTTIME; 0: never */
  uint32_t processes;
  uint32_t flags;
  uint64_t cpu_us;
  uint64_t resident_pages;
  uint64_t data_bytes, data_most;       /* /tmp and what is of its kind */
  uint64_t data_inodes, data_inodes_most;
};

enum init_pause_flag {
  PAUSE_FROZEN = 1              /* its control group has stopped them already */
};

struct init_pause {
  uint32_t size;
  uint32_t flags;
};

/* Within the sandbox's own network: its loopback. */
struct init_dial {
  uint32_t size;
  uint32_t port;
  uint32_t family;              /* 4 or 6 */
  uint32_t reserved;
};

/* SPOOLED, of both streams; with a descriptor when one was asked for.  Of
 * `total` bytes that came, the first `head` lie at their own places; the last
 * `tail` lie behind them, byte N at head + (N - head) % tail.  An init that
 * knows no total keeps the first `bytes` only. */
struct init_spooled {
  uint32_t size;
  uint32_t ended;               /* 1: nothing more will come */
  uint64_t bytes[2];            /* kept */
  uint64_t dropped[2];          /* not kept */
  uint64_t total[2];
  uint64_t head, tail;
};

#endif /* LINUX_PROTOCOL_H */
