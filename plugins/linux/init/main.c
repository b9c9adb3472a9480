/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of a sandbox: it makes the sandbox as the plan says, gives
 * up every right, and then serves requests until its time has come. */

#include "init.h"

#define CONNECTIONS_MAX 256
#define O_RDWR_ 2
#define O_CLOEXEC_ 02000000
#define O_NONBLOCK_ 04000
#define O_PATH_ 010000000
#define SIGCHLD_ 17
#define POLLIN_ 1
#define FACTS_SIZE INIT_FACTS_MAX

int null_fd = -1;
int signal_fd = -1;
int single_mode;

struct connection {
  int fd;                       /* -1: free */
  int outside;                  /* whose it is has been shown */
  uint32_t waits;               /* for the end of this command */
  uint32_t wait_serial;
  uint32_t spools;              /* for output of this one */
  uint32_t spool_serial;
  struct init_command spool;
};

/* Only so many of them were ever in use: memory that nothing was written to is
 * none. */
static struct connection connections[CONNECTIONS_MAX];
static size_t n_connections;
static int control_fd = -1;     /* of the maker */
static int lifeline_fd = -1, listener_fd = -1, timer_fd = -1;
static int durable;
static uint64_t outer_userns;   /* of whoever made it */
static struct init_state state;
static char facts_text[FACTS_SIZE];
static struct facts facts = { facts_text, 0, FACTS_SIZE, 0 };
static struct init_ready ready;

/* ---- set-up ------------------------------------------------------------- */

static uint32_t plan_serial;

void
setup_fail (const char *step, long error)
{
  struct init_failed body = { sizeof body, 0 };

  packet_send (control_fd, INIT_FAILED, plan_serial, (int) -error, &body,
               sizeof body, step, strlen (step) + 1, -1);
  init_exit_now (1);
}

long
must (const char *step, long ret)
{
  if (ret < 0)
    setup_fail (step, ret);
  return ret;
}

static void
signals_prepare (void)
{
  uint64_t action[4] = { 0, 0, 0, 0 }, mask = (uint64_t) 1 << (SIGCHLD_ - 1);
  int i;

  /* A caller's ignored signals are not the payload's. */
  for (i = 1; i <= 64; i++)
    SYS (rt_sigaction, i, action, 0, 8);
  must ("signals", SYS (rt_sigprocmask, 2, &mask, 0, 8));
  signal_fd = (int) must ("signalfd", SYS (signalfd4, -1, &mask, 8,
                                           O_CLOEXEC_ | O_NONBLOCK_));
}

static long
timer_set (int64_t expires_ns)
{
  struct sys_timespec times[2]
    = { { 0, 0 }, { expires_ns / 1000000000, expires_ns % 1000000000 } };
  long r = SYS (timerfd_settime, timer_fd, 1 /* absolute */, times, 0);

  if (r >= 0)
    state.expires_ns = expires_ns;
  return r;
}

static void
ready_send (int fd, uint32_t serial, int attach)
{
  packet_send (fd, INIT_READY, serial, 0, &ready, sizeof ready, facts.text,
               facts.size, attach);
}

static void
descriptors_settle (void)
{
  int i;

  null_fd = (int) must ("/dev/null", SYS (openat, -100, "/dev/null",
                                          O_RDWR_ | O_CLOEXEC_));
  for (i = 0; i < 3; i++)
    must ("/dev/null", SYS (dup3, null_fd, i, O_CLOEXEC_));
}

static void
sandbox_prepare (struct packet *packet, struct plan *plan)
{
  shape_read (packet, plan);
  plan->control = control_fd;
  strict_mode = (plan->shape.flags & PLAN_STRICT) != 0;
  setup_begin (plan);
}

static void
sandbox_make (struct packet *packet, struct plan *plan)
{
  plan_read (packet, plan);
  durable = (plan->body.flags & PLAN_DURABLE) != 0;
  outer_userns = plan->body.userns;
  single_mode = (plan->body.flags & PLAN_SINGLE) != 0;
  lifeline_fd = LAYER_ON (LIFELINE) ? plan->lifeline : -1;
  listener_fd = plan->listener;
  setup_end (plan);
  descriptors_settle ();
  if (listener_fd >= 0)
    must ("listen", SYS (listen, listener_fd, 16));
  timer_fd = (int) must ("timer", SYS (timerfd_create, 7 /* boottime */,
                                       O_CLOEXEC_ | O_NONBLOCK_));
  request_prepare (plan);
  warm_prepare (plan);
  if (!single_mode)
    tags_prepare ();
  confine_prepare (plan);
  setup_last (plan);
  confine_all (plan, &facts);
  state.size = sizeof state;
  state.created_ns = clock_ns (0);
  if (plan->body.expires_ns != 0)
    must ("timer", timer_set (plan->body.expires_ns));
  ready.size = sizeof ready;
  ready.count = facts.count;
  ready_send (control_fd, plan_serial, proxy_listener);
  fd_close (proxy_listener);
}

/* ---- connections -------------------------------------------------------- */

static void
connection_close (struct connection *connection)
{
  int was_control = connection->fd == control_fd;

  fd_close (connection->fd);
  memset (connection, 0, sizeof *connection);
  connection->fd = -1;
  if (was_control) {
    control_fd = -1;
    if (!durable && LAYER_ON (LIFELINE))
      init_exit_now (0);
  }
}

static void
hello_send (int fd, int error)
{
  struct init_hello hello = { sizeof hello, INIT_PROTOCOL, 0 };

  packet_send (fd, INIT_HELLO, 0, error, &hello, sizeof hello, 0, 0, -1);
}

/* A free one; else that of somebody who has not shown who it is: those do not
 * keep anybody else out. */
static size_t
connection_place (void)
{
  size_t i, stranger = CONNECTIONS_MAX;

  for (i = 0; i < n_connections && connections[i].fd >= 0; i++)
    if (!connections[i].outside && stranger == CONNECTIONS_MAX)
      stranger = i;
  if (i < CONNECTIONS_MAX || stranger == CONNECTIONS_MAX)
    return i;
  connection_close (&connections[stranger]);
  return stranger;
}

static void
connection_add (int fd, int outside)
{
  size_t i = connection_place ();

  if (i == CONNECTIONS_MAX) {
    hello_send (fd, EAGAIN_);
    fd_close (fd);
    return;
  }
  if (i == n_connections)
    n_connections++;
  connections[i].fd = fd;
  connections[i].outside = outside;
  if (fd != control_fd)
    hello_send (fd, 0);
}

static void
listener_accept (void)
{
  long fd = SYS (accept4, listener_fd, 0, 0, O_CLOEXEC_ | O_NONBLOCK_);

  if (fd >= 0)
    connection_add ((int) fd, 0);
  else if (fd == -EBADF_ || fd == -EINVAL_)
    init_exit_now (1);          /* it is no listener: never silently deaf */
  else if (fd != -EAGAIN_ && fd != -EINTR_)
    nap ();                     /* out of something; whoever waits is still
                                 * there afterwards */
}

static void
reply_done (int fd, uint32_t serial, int error, int attach)
{
  packet_send (fd, INIT_DONE, serial, error, 0, 0, 0, 0, attach);
}

/* ---- about commands ----------------------------------------------------- */

/* A sandbox for a single command ends as soon as somebody has been told how
 * that ended: the kernel takes its namespaces down while the host is still
 * reading the news, and not after. */
void
tell_exit (struct command *command)
{
  int told = 0;
  size_t i;

  command->exit.flags |= exit_proxy;
  for (i = 0; i < n_connections; i++)
    if (connections[i].fd >= 0 && connections[i].waits == command->id) {
      told |= packet_send (connections[i].fd, INIT_EXIT,
                           connections[i].wait_serial, 0, &command->exit,
                           sizeof command->exit, 0, 0, -1) >= 0;
      connections[i].waits = 0;
    }
  if (told && single_mode)
    init_exit_now (0);
}

static int
spool_grown (const struct command *command, const struct init_command *asked)
{
  return command->ended || command->spool[0].total > asked->offsets[0]
         || command->spool[1].total > asked->offsets[1];
}

static void
spool_answer (struct connection *connection, struct command *command)
{
  struct init_spooled body = { .size = sizeof body,
                               .ended = (uint32_t) command->ended,
                               .head = command->cap - command->cap / 2,
                               .tail = command->cap / 2 };
  uint32_t stream = connection->spool.stream;
  int i;

  for (i = 0; i < 2; i++) {
    body.total[i] = command->spool[i].total;
    body.bytes[i] = body.total[i] < command->cap ? body.total[i]
                                                 : command->cap;
    body.dropped[i] = body.total[i] - body.bytes[i];
  }
  packet_send (connection->fd, INIT_SPOOLED, connection->spool_serial, 0,
               &body, sizeof body, 0, 0,
               stream == 0 ? -1 : command->spool[stream == 2].file);
  connection->spools = 0;
}

void
tell_spool (struct command *command)
{
  struct connection *c;

  for (c = connections; c < connections + n_connections; c++)
    if (c->fd >= 0 && c->spools == command->id
        && spool_grown (command, &c->spool))
      spool_answer (c, command);
}

/* ---- requests ----------------------------------------------------------- */

static void
request_wait (struct connection *connection, struct command *command,
              uint32_t serial)
{
  connection->waits = command->id;
  connection->wait_serial = serial;
  if (command->ended)
    tell_exit (command);
}

static void
request_exec (struct connection *connection, struct packet *packet)
{
  struct command *command;
  int r = exec_start (packet, &command);

  if (r < 0)
    packet_send (connection->fd, INIT_STARTED, packet->header->serial, -r, 0,
                 0, 0, 0, -1);
  else {
    packet_send (connection->fd, INIT_STARTED, packet->header->serial, 0,
                 &command->exit, sizeof command->exit, 0, 0, -1);
    if (command->tell)
      request_wait (connection, command, packet->header->serial);
  }
}

static void
request_spool (struct connection *connection, struct command *command,
               const struct init_command *body, uint32_t serial)
{
  if (command->spool[0].file < 0) {
    packet_send (connection->fd, INIT_SPOOLED, serial, EINVAL_, 0, 0, 0, 0,
                 -1);
    return;
  }
  connection->spools = command->id;
  connection->spool_serial = serial;
  connection->spool = *body;
  if (body->stream != 0 || spool_grown (command, body))
    spool_answer (connection, command);
}

static long
command_act (struct command *command, const struct init_command *body,
             uint16_t type)
{
  uint16_t size[4] = { (uint16_t) body->rows, (uint16_t) body->columns, 0,
                       0 };

  switch (type) {
  case INIT_SIGNAL:
    if (command->pid <= 0)
      return -ESRCH_;
    if (body->signal == 18 /* SIGCONT */ && pause_is ())
      return -ESTALE_;
    /* It leads a session and a group of its own. */
    return SYS (kill, -command->pid, body->signal);
  case INIT_RESIZE:
    if (command->tty < 0)
      return -EINVAL_;
    return SYS (ioctl, command->tty, 0x5414 /* TIOCSWINSZ */, size);
  default:                      /* INIT_STDIN */
    if (command->ended)
      return -ESRCH_;
    /* The end of a pipe is its writer's to close. */
    if (command->input >= 0)
      SYS (shutdown, command->input, 0);
    return 0;
  }
}

static void
request_command (struct connection *connection, struct packet *packet)
{
  struct init_command body;
  uint16_t type = packet->header->type;
  uint32_t serial = packet->header->serial;
  struct command *command;
  long r;

  if (packet_body (packet, &body, sizeof body) == NULL
      || (command = command_find (body.exec)) == NULL) {
    packet_send (connection->fd,
                 type == INIT_WAIT ? INIT_EXIT
                 : type == INIT_SPOOL ? INIT_SPOOLED : INIT_DONE,
                 serial, ENOENT_, 0, 0, 0, 0, -1);
    return;
  }
  if (type == INIT_WAIT)
    request_wait (connection, command, serial);
  else if (type == INIT_SPOOL)
    request_spool (connection, command, &body, serial);
  else {
    r = command_act (command, &body, type);
    reply_done (connection->fd, serial, r < 0 ? (int) -r : 0, -1);
  }
}

static void
request_list (struct connection *connection, uint32_t serial)
{
  size_t i;

  for (i = 0; i < INIT_EXECS_MAX; i++)
    if (commands[i].id != 0)
      packet_send (connection->fd, INIT_COMMAND, serial, 0, &commands[i].exit,
                   sizeof commands[i].exit, 0, 0, -1);
  reply_done (connection->fd, serial, 0, -1);
}

static void
request_root (struct connection *connection, uint32_t serial)
{
  long fd = SYS (openat, -100, "/", O_PATH_ | O_CLOEXEC_);

  reply_done (connection->fd, serial, fd < 0 ? (int) -fd : 0, (int) fd);
  fd_close ((int) fd);
}

static void
state_send (struct connection *connection, uint32_t serial)
{
  usage_read (&state);
  packet_send (connection->fd, INIT_STATE, serial, 0, &state, sizeof state, 0,
               0, -1);
}

static void
request_pause (struct connection *connection, const struct packet *packet)
{
  struct init_pause body;
  long r = packet_body (packet, &body, sizeof body) == NULL
    ? -EPROTO_ : pause_begin ((body.flags & PAUSE_FROZEN) != 0);

  reply_done (connection->fd, packet->header->serial, r < 0 ? (int) -r : 0,
              -1);
}

static void
request_dial (struct connection *connection, const struct packet *packet)
{
  struct init_dial body;
  long fd = packet_body (packet, &body, sizeof body) == NULL
    ? -EPROTO_ : dial (&body);

  reply_done (connection->fd, packet->header->serial,
              fd < 0 ? (int) -fd : 0, (int) fd);
  fd_close ((int) fd);
}

static void
request_extend (struct connection *connection, const struct packet *packet)
{
  struct init_extend body;

  if (packet_body (packet, &body, sizeof body) == NULL
      || body.expires_ns < 0 || timer_set (body.expires_ns) < 0) {
    packet_send (connection->fd, INIT_STATE, packet->header->serial, EINVAL_,
                 0, 0, 0, 0, -1);
    return;
  }
  state_send (connection, packet->header->serial);
}

static void
request_serve (struct connection *connection, struct packet *packet)
{
  uint32_t serial = packet->header->serial;

  switch (packet->header->type) {
  case INIT_EXEC:
  case INIT_WARM:
    request_exec (connection, packet);
    return;
  case INIT_WAIT:
  case INIT_SIGNAL:
  case INIT_RESIZE:
  case INIT_SPOOL:
  case INIT_STDIN:
    request_command (connection, packet);
    return;
  case INIT_LIST:
    request_list (connection, serial);
    return;
  case INIT_INFO:
    state_send (connection, serial);
    return;
  case INIT_EXTEND:
    request_extend (connection, packet);
    return;
  case INIT_ROOT:
    request_root (connection, serial);
    return;
  case INIT_PAUSE:
    request_pause (connection, packet);
    return;
  case INIT_RESUME:
    pause_end ();
    reply_done (connection->fd, serial, 0, -1);
    return;
  case INIT_DIAL:
    request_dial (connection, packet);
    return;
  case INIT_FACTS:
    namespaces_note (ready.ns_inodes);
    ready_send (connection->fd, serial, -1);
    return;
  case INIT_OUTSIDE:            /* it is known to be */
    return;
  case INIT_END:
    init_exit_now (0);
  case INIT_AHEAD:
    warm_ahead (packet);
    return;
  case INIT_CHANNEL:
    if (packet->n_fds == 1) {
      connection_add (packet->fds[0], 1);
      packet->n_fds = 0;
    }
    return;
  default:
    reply_done (connection->fd, serial, EOPNOTSUPP_, -1);
  }
}

static void
connection_ready (struct connection *connection)
{
  struct packet packet;
  int r = packet_receive (connection->fd, 0, &packet);

  if (r == -EAGAIN_)
    return;
  if (r <= 0) {
    connection_close (connection);
    return;
  }
  if (connection->outside)
    request_serve (connection, &packet);
  else
    connection->outside = outside_is (&packet, outer_userns);
  packet_close_fds (&packet);
  if (!connection->outside)
    connection_close (connection);
}

/* ---- the loop ----------------------------------------------------------- */

static struct sys_pollfd polls[4 + CONNECTIONS_MAX + 2 * INIT_EXECS_MAX];
static uint16_t polled[CONNECTIONS_MAX];        /* which connections */

/* The fixed ones, the connections there are, output to keep. */
static size_t
polls_fill (size_t *polled_now)
{
  const int fixed[4] = { signal_fd, timer_fd, lifeline_fd, listener_fd };
  size_t n = 0, i, found = 0;

  for (i = 0; i < 4; i++, n++) {
    polls[n].fd = fixed[i];
    polls[n].events = POLLIN_;
  }
  for (i = 0; i < n_connections; i++) {
    if (connections[i].fd < 0)
      continue;
    polled[found++] = (uint16_t) i;
    polls[n].fd = connections[i].fd;
    polls[n++].events = POLLIN_;
  }
  *polled_now = found;
  return n + exec_watch (polls + n);
}

static void
lifeline_check (void)
{
  char byte[64];
  long r = SYS (read, lifeline_fd, byte, sizeof byte);

  /* Bytes mean nothing; the end is the end. */
  if (r == 0 || (r < 0 && r != -EAGAIN_ && r != -EINTR_))
    init_exit_now (0);
}

int
wait_while_alive (int fd, int64_t ns)
{
  struct sys_pollfd three[3] = { { fd, POLLIN_, 0 }, { timer_fd, POLLIN_, 0 },
                                 { lifeline_fd, POLLIN_, 0 } };
  struct sys_timespec timeout = { ns / 1000000000, ns % 1000000000 };

  poll_or_end (three, 3, &timeout);
  if (three[1].revents != 0)
    init_exit_now (0);
  if (three[2].revents != 0)
    lifeline_check ();
  return three[0].revents != 0;
}

static void
connections_serve (size_t n)
{
  struct connection *connection;
  size_t i;

  for (i = 0; i < n; i++) {
    connection = &connections[polled[i]];
    /* An earlier one may have closed it, or put another in its place. */
    if (polls[4 + i].revents != 0 && connection->fd == polls[4 + i].fd)
      connection_ready (connection);
  }
}

static void
loop_once (void)
{
  struct sys_timespec timeout, *limit = 0;
  size_t n, connected;
  char drain[512];
  int64_t ns = exec_next_ns ();

  n = polls_fill (&connected);
  if (ns >= 0) {
    timeout.s = ns / 1000000000;
    timeout.ns = ns % 1000000000;
    limit = &timeout;
  }
  poll_or_end (polls, n, limit);
  if (polls[1].revents != 0)
    init_exit_now (0);          /* the time to live is over */
  if (polls[2].revents != 0)
    lifeline_check ();
  exec_ready (polls + 4 + connected, n - 4 - connected);
  if (polls[0].revents & ~POLLIN_)
    init_exit_now (1);
  if (polls[0].revents != 0) {
    while (SYS (read, signal_fd, drain, sizeof drain) > 0)
      ;
    exec_reap ();
  }
  exec_timeouts ();
  connections_serve (connected);
  if (polls[3].revents != 0)
    listener_accept ();
}

/* From its maker; without one there is nothing to do. */
static void
maker_await (struct packet *packet)
{
  if (must ("the maker's message", packet_receive (control_fd, 1, packet))
      == 0)
    init_exit_now (2);
  plan_serial = packet->header->serial;
}

NORETURN void init_main (const char **argv);

void
init_main (const char **argv)
{
  static struct plan plan;
  struct packet packet;
  int i;

  /* It ends by killing all that it sees: only where that is its own. */
  if (LAYERS_WHOLE && SYS (getpid) != 1)
    init_exit_now (2);
  /* The provider leaves the connection at 0 and nothing else. */
  control_fd = (int) SYS (fcntl, 0, 1030 /* F_DUPFD_CLOEXEC */, 3);
  if (control_fd < 0)
    init_exit_now (2);
  for (i = 0; i < 3; i++)
    SYS (dup3, control_fd, i, O_CLOEXEC_);
  hello_send (control_fd, 0);
  SYS (prctl, 15 /* PR_SET_NAME */, "coffer-init", 0, 0, 0);
  signals_prepare ();
  network_late = argv[0] != NULL && argv[1] != NULL;
  if (!network_late)
    network_begin ();
  maker_await (&packet);
  sandbox_prepare (&packet, &plan);
  maker_await (&packet);
  sandbox_make (&packet, &plan);        /* takes all descriptors of it */
  connection_add (control_fd, 1);
  for (;;)
    loop_once ();
}

#if defined __x86_64__
__asm__ (".globl _start\n_start:\n\txor %ebp, %ebp\n\tlea 8(%rsp), %rdi\n\t"
         "and $-16, %rsp\n\tcall init_main\n\thlt\n");
#else
__asm__ (".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\t"
         "add x0, sp, #8\n\tb init_main\n");
#endif
