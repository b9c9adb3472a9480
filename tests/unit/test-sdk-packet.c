/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib/packet.c: packets with descriptors, from a peer that may send what it
 * likes. */

#define _GNU_SOURCE

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <coffer/fd.h>
#include <coffer/packet.h>

static unsigned
count_fds (void)
{
  DIR *dir = opendir ("/proc/self/fd");
  unsigned n = 0;

  assert_non_null (dir);
  while (readdir (dir))
    n++;
  closedir (dir);
  return n;
}

struct pair {
  int ends[2];
  unsigned fds;                 /* before */
};

static int
pair_new (void **state)
{
  struct pair *pair = calloc (1, sizeof *pair);

  if (!pair)
    return -1;
  pair->fds = count_fds ();
  *state = pair;
  return socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair->ends);
}

/* No test leaves a descriptor open. */
static int
pair_free (void **state)
{
  struct pair *pair = *state;
  int left;

  for (int i = 0; i < 2; i++)
    coffer_fd_close (&pair->ends[i]);
  left = count_fds () != pair->fds;
  free (pair);
  return -left;
}

static int
same_file (int a, int b)
{
  struct stat p, q;

  return fstat (a, &p) == 0 && fstat (b, &q) == 0 && p.st_ino == q.st_ino
         && p.st_dev == q.st_dev;
}

static void
bytes_and_descriptors_arrive_as_they_were (void **state)
{
  struct pair *pair = *state;
  int pipes[2], fds[4];
  size_t n_fds = 4;
  char bytes[64];

  assert_int_equal (pipe2 (pipes, O_CLOEXEC), 0);
  assert_int_equal (coffer_packet_send (pair->ends[0], VECTOR_BODY,
                                        sizeof VECTOR_BODY,
                                        (const int[]) {pipes[1], pipes[0],
                                                       pipes[1]}, 3), 0);
  assert_int_equal (coffer_packet_receive (pair->ends[1], bytes, sizeof bytes,
                                           fds, &n_fds), sizeof VECTOR_BODY);
  assert_string_equal (bytes, VECTOR_BODY);
  assert_int_equal (n_fds, 3);
  assert_int_equal (fds[3], -1);
  assert_true (same_file (fds[0], pipes[1]) && same_file (fds[1], pipes[0]));
  for (int i = 0; i < 3; i++) {
    assert_int_equal (fcntl (fds[i], F_GETFD), FD_CLOEXEC);
    coffer_fd_close (&fds[i]);
  }
  for (int i = 0; i < 2; i++)   /* which stay the sender's */
    coffer_fd_close (&pipes[i]);
}

static void
none_there_is_told_from_the_end (void **state)
{
  struct pair *pair = *state;
  int fds[2] = {7, 7};
  size_t n_fds = 2;
  char byte;

  assert_int_equal (coffer_packet_receive (pair->ends[1], &byte, 1, fds,
                                           &n_fds), -1);
  assert_int_equal (errno, EAGAIN);
  assert_int_equal (n_fds, 0);
  assert_true (fds[0] == -1 && fds[1] == -1);
  coffer_fd_close (&pair->ends[0]);
  assert_int_equal (coffer_packet_receive (pair->ends[1], &byte, 1, NULL,
                                           NULL), 0);
  assert_int_equal (coffer_packet_receive (987, &byte, 1, NULL, NULL), -1);
  assert_int_equal (errno, EBADF);
}

static void
what_there_is_no_room_for_is_refused_and_closed (void **state)
{
  struct pair *pair = *state;
  int null = open ("/dev/null", O_RDONLY | O_CLOEXEC), many[16], fds[4];
  const unsigned before = count_fds ();
  char byte;

  for (int i = 0; i < 16; i++)
    many[i] = null;
  for (size_t room = 0; room < 4; room++) {
    size_t n_fds = room;

    assert_int_equal (coffer_packet_send (pair->ends[0], "x", 1, many,
                                          room + 1), 0);
    assert_int_equal (coffer_packet_receive (pair->ends[1], &byte, 1, fds,
                                             &n_fds), -1);
    assert_int_equal (errno, EMSGSIZE);
    assert_int_equal (n_fds, 0);
    for (size_t i = 0; i < room; i++)
      assert_int_equal (fds[i], -1);
    assert_int_equal (count_fds (), before);
  }
  assert_int_equal (coffer_packet_send (pair->ends[0], "x", 1, many, 16), 0);
  assert_int_equal (coffer_packet_receive (pair->ends[1], &byte, 1, NULL,
                                           NULL), -1);
  assert_int_equal (count_fds (), before);
  assert_int_equal (coffer_packet_send (pair->ends[0], "x", 1, many, 17), -1);
  assert_int_equal (errno, EINVAL);
  coffer_fd_close (&null);
}

/* A peer of another make: more descriptors than the control buffer holds. */
static void
more_descriptors_than_a_packet_has_are_closed (void **state)
{
  struct pair *pair = *state;
  int null = open ("/dev/null", O_RDONLY | O_CLOEXEC), fds[16];
  const unsigned before = count_fds ();
  char control[CMSG_SPACE (100 * sizeof (int))] = {0}, byte;
  struct iovec io = {(char *) "x", 1};
  struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof control};
  struct cmsghdr *c = CMSG_FIRSTHDR (&message);
  size_t n_fds = 16;

  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN (100 * sizeof (int));
  for (size_t i = 0; i < 100; i++)
    memcpy (CMSG_DATA (c) + i * sizeof (int), &null, sizeof null);
  assert_int_equal (sendmsg (pair->ends[0], &message, 0), 1);
  assert_int_equal (coffer_packet_receive (pair->ends[1], &byte, 1, fds,
                                           &n_fds), -1);
  assert_int_equal (errno, EMSGSIZE);
  assert_int_equal (count_fds (), before);
  coffer_fd_close (&null);
}

/* So that a reader of an older make takes what it knows. */
static void
bytes_beyond_the_room_are_lost (void **state)
{
  struct pair *pair = *state;
  char bytes[4] = "abc";

  assert_int_equal (coffer_packet_send (pair->ends[0], "0123456789", 10, NULL,
                                        0), 0);
  assert_int_equal (coffer_packet_send (pair->ends[0], "n", 1, NULL, 0), 0);
  assert_int_equal (coffer_packet_receive (pair->ends[1], bytes, 2, NULL,
                                           NULL), 2);
  assert_memory_equal (bytes, "01c", 4);
  assert_int_equal (coffer_packet_receive (pair->ends[1], bytes, 2, NULL,
                                           NULL), 1);
  assert_int_equal (bytes[0], 'n');
}

static void
a_peer_that_has_gone_is_an_error_and_no_signal (void **state)
{
  struct pair *pair = *state;

  coffer_fd_close (&pair->ends[1]);
  assert_int_equal (coffer_packet_send (pair->ends[0], "x", 1, NULL, 0), -1);
  assert_int_equal (errno, EPIPE);
}

static void
closed_descriptors_are_not_sent (void **state)
{
  struct pair *pair = *state;
  char byte;

  assert_int_equal (coffer_packet_send (pair->ends[0], "x", 1,
                                        (const int[]) {987}, 1), -1);
  assert_int_equal (errno, EBADF);
  assert_int_equal (coffer_packet_receive (pair->ends[1], &byte, 1, NULL,
                                           NULL), -1);
  assert_int_equal (errno, EAGAIN);
}

/* -- sockets in folders ---- */

static void
who_connects_is_accepted (void **state)
{
  coffer_autoclose int folder = open (*state, O_PATH | O_CLOEXEC);
  coffer_autoclose int listener = coffer_socket_listen (folder, "s");
  coffer_autoclose int client = -1, served = -1;
  char byte = 0;

  assert_true (listener >= 0);
  assert_int_equal (coffer_socket_listen (folder, "s"), -1);
  assert_int_equal (errno, EADDRINUSE);
  client = coffer_socket_connect (folder, "s", 0);      /* before the accept */
  assert_true (client >= 0);
  assert_int_equal (coffer_packet_send (client, "x", 1, NULL, 0), 0);
  served = coffer_socket_accept (listener);
  assert_true (served >= 0);
  assert_int_equal (fcntl (served, F_GETFD), FD_CLOEXEC);
  assert_int_equal (coffer_packet_receive (served, &byte, 1, NULL, NULL), 1);
  assert_int_equal (byte, 'x');
  coffer_fd_close (&listener);
  assert_int_equal (coffer_socket_connect (folder, "s", 0), -1);
  assert_int_equal (errno, ECONNREFUSED);
  assert_int_equal (coffer_socket_listen (folder, VECTOR_NAME), -1);
  assert_int_equal (coffer_socket_accept (-1), -1);
}

static void
another_user_is_not_let_in (void **state)
{
  coffer_autoclose int folder = open (*state, O_RDONLY | O_CLOEXEC);
  coffer_autoclose int listener = coffer_socket_listen (folder, "s");
  const unsigned before = count_fds ();
  int status;
  pid_t pid;

  if (geteuid () != 0)
    skip_missing ("root");
  assert_true (listener >= 0 && fchmod (folder, 0755) == 0
               && fchmodat (folder, "s", 0777, 0) == 0);
  pid = fork ();
  if (pid == 0) {
    if (setresgid (61234, 61234, 61234) || setresuid (61234, 61234, 61234))
      _exit (2);
    _exit (coffer_socket_connect (folder, "s", 0) < 0);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_int_equal (coffer_socket_accept (listener), -1);
  assert_int_equal (errno, EACCES);
  assert_int_equal (count_fds (), before);
}

/* ---- descriptors on their way are counted for a user ---- */

#define CROWD 30                /* in each of so many packets */
#define PACKETS 3

/* Whoever has the crowd's sockets receives nothing, and goes after a while. */
static void
hold_for (int ms)
{
  pid_t pid = fork ();

  if (pid == 0) {
    usleep ((useconds_t) ms * 1000);
    _exit (0);
  }
}

static int
send_crowd (int fd, int flags)
{
  int many[CROWD];
  struct iovec io = {many, 1};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (sizeof many)];
  } control = {.bytes = {0}};
  struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};

  for (int i = 0; i < CROWD; i++)
    many[i] = fd;
  control.header.cmsg_level = SOL_SOCKET;
  control.header.cmsg_type = SCM_RIGHTS;
  control.header.cmsg_len = CMSG_LEN (sizeof many);
  memcpy (CMSG_DATA (&control.header), many, sizeof many);
  return (int) coffer_send_message (fd, &message, flags);
}

/* A user of our own, and a limit that may not be raised.  0: as it should be; else
 * the line. */
static int
crowded (void)
{
  const struct rlimit few = {16, 16};
  int crowd[2], own[2];

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, crowd) < 0
      || socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, own) < 0
      || (geteuid () == 0 && setresuid (61297, 61297, 61297) < 0))
    return __LINE__;
  for (int i = 0; i < PACKETS; i++)
    if (send_crowd (crowd[0], 0) < 0)
      return __LINE__;
  if (setrlimit (RLIMIT_NOFILE, &few) < 0)
    return __LINE__;
  if (send_crowd (own[0], MSG_DONTWAIT) >= 0 || errno != ETOOMANYREFS)
    return __LINE__;
  hold_for (300);
  close (crowd[0]);
  close (crowd[1]);
  return coffer_packet_send (own[0], "", 1, &own[1], 1) < 0 ? __LINE__ : 0;
}

static void
others_descriptors_are_waited_for (void **state)
{
  pid_t pid = fork ();
  int status;

  (void) state;
  if (pid == 0)
    _exit (crowded () % 256);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  assert_int_equal (WEXITSTATUS (status), 0);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, pair_new, pair_free)
#define FOLDER_TEST(name)                                                     \
  cmocka_unit_test_setup_teardown (name, harness_folder_new,                  \
                                   harness_folder_free)
  const struct CMUnitTest tests[] = {
    TEST (bytes_and_descriptors_arrive_as_they_were),
    TEST (none_there_is_told_from_the_end),
    TEST (what_there_is_no_room_for_is_refused_and_closed),
    TEST (more_descriptors_than_a_packet_has_are_closed),
    TEST (bytes_beyond_the_room_are_lost),
    TEST (a_peer_that_has_gone_is_an_error_and_no_signal),
    TEST (closed_descriptors_are_not_sent),
    cmocka_unit_test (others_descriptors_are_waited_for),
    FOLDER_TEST (who_connects_is_accepted),
    FOLDER_TEST (another_user_is_not_let_in),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
