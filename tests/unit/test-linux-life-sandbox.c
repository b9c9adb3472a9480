/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes of `linux`, from the first to the last moment: made, found again,
 * ended, and that nothing stays behind. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "linux-life.h"
#include "protocol.h"

/* Whether the folder of a sandbox is there. */
static int
folder_there (const char *id)
{
  return faccessat (host.runtime, id, F_OK, 0) == 0;
}

/* ---- sandboxes ---------------------------------------------------------- */

static void
test_create_is_idempotent (void **state)
{
  const char *metadata[] = { "owner=me", NULL };
  struct coffer_sandbox_spec spec = lasting;

  (void) state;
  spec.metadata = metadata;
  create ("same", &spec);
  assert_string_equal (host.metadata, "owner=me");
  sh_in ("same", "echo here > /workspace/mark", 5000);
  create ("same", &spec);
  assert_non_null (strstr (host.facts, "seccomp ok 2"));
  assert_string_equal (host.infos, "same running\n");
  sh_in ("same", "cat /workspace/mark", 5000);
  assert_string_equal (outcome.out, "here\n");
  assert_int_equal (host.ops->sandbox_info (host_call (&host, 5000),
                                            host.self, "same", NULL),
                    COFFER_OK);
  assert_string_equal (host.metadata, "owner=me");
  assert_int_equal (host_kill (&host, "same"), COFFER_OK);
}

static void
test_kill (void **state)
{
  (void) state;
  assert_int_equal (host_kill (&host, "nobody"), COFFER_NOT_FOUND);
  assert_int_equal (host_kill (&host, "../etc"), COFFER_NOT_FOUND);
  create ("victim", &lasting);
  assert_true (folder_there ("victim"));
  assert_int_equal (host_kill (&host, "victim"), COFFER_OK);
  assert_false (folder_there ("victim"));
  assert_int_equal (host_kill (&host, "victim"), COFFER_NOT_FOUND);
  assert_int_equal (host.ops->sandbox_info (host_call (&host, 5000),
                                            host.self, "victim", NULL),
                    COFFER_NOT_FOUND);
  /* No child of ours is left, not even a dead one. */
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
  assert_int_equal (errno, ECHILD);
}

/* Made by a process that is gone; found, used and ended by another. */
static void
test_outlives_its_maker (void **state)
{
  static struct linux_host maker;
  int status = 0;
  pid_t pid;

  (void) state;
  pid = fork ();
  if (pid == 0) {
    maker = host;
    if (host_create (&maker, "orphan", &lasting) != COFFER_OK)
      _exit (1);
    _exit (0);                  /* without a word to anybody */
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_int_equal (host.ops->sandbox_list (host_call (&host, 5000),
                                            host.self, NULL),
                    COFFER_OK);
  assert_string_equal (host.infos, "orphan running\n");
  sh_in ("orphan", "echo still here", 5000);
  assert_string_equal (outcome.out, "still here\n");
  assert_int_equal (host_kill (&host, "orphan"), COFFER_OK);
  assert_false (folder_there ("orphan"));
}

/* More conversations at once than there is room for are refused, and the
 * others go on. */
static void
test_many_connections (void **state)
{
  struct init_header header;
  int fds[300], i, refused = 0;

  (void) state;
  create ("crowd", &lasting);
  for (i = 0; i < 300; i++) {
    fds[i] = host_connect (&host, "crowd");
    /* First: who is refused with something unread sees nothing else. */
    assert_true (recv (fds[i], &header, sizeof header, 0)
                 == sizeof header);
    host_show_own (fds[i]);
    assert_int_equal (header.type, INIT_HELLO);
    refused += header.error == EAGAIN;
  }
  assert_in_range (refused, 40, 60);
  sh_in ("crowd", "true", 5000);
  assert_int_equal (host.exit.code, 0);
  for (i = 0; i < 300; i++)
    close (fds[i]);
  assert_int_equal (host_kill (&host, "crowd"), COFFER_OK);
}

/* An init that is stopped from outside answers nobody; it is ended all the
 * same, also by a process that did not make it. */
static void
test_kill_of_a_stopped_init (void **state)
{
  static struct linux_host maker;
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct ucred peer;
  socklen_t size = sizeof peer;
  int status = 0, fd, pidfd = -1;
  pid_t pid;

  (void) state;
  pid = fork ();
  if (pid == 0) {
    maker = host;
    _exit (host_create (&maker, "stopped", &lasting) == COFFER_OK ? 0 : 1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  snprintf (address.sun_path, sizeof address.sun_path,
            "%s/stopped/init.sock", host.runtime_path);
  assert_int_equal (connect (fd, (struct sockaddr *) &address,
                             sizeof address),
                    0);
  assert_int_equal (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size),
                    0);
  size = sizeof pidfd;
  if (getsockopt (fd, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &pidfd, &size) == -1) {
    close (fd);
    assert_int_equal (host_kill (&host, "stopped"), COFFER_OK);
    skip_missing ("SO_PEERPIDFD, Linux 6.5");
  }
  close (pidfd);
  assert_int_equal (kill (peer.pid, SIGSTOP), 0);
  assert_int_equal (host_kill (&host, "stopped"), COFFER_OK);
  assert_false (folder_there ("stopped"));
  /* The socket of a dead one has no other end. */
  assert_int_equal (coffer_wait_fd (fd, POLLHUP, coffer_now_ns (), -1), 1);
  close (fd);
}

static void
test_lifeline (void **state)
{
  const char *argv[] = { "sleep", "60", NULL };
  struct coffer_sandbox_spec spec = lasting;
  int line[2], held[2];
  char byte;

  (void) state;
  assert_int_equal (pipe2 (line, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (held, O_CLOEXEC), 0);
  spec.lifeline = line[0];
  create ("bound", &spec);
  close (line[0]);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "bound", argv, NULL, NULL, -1,
                                          held[1], -1, NULL),
                    COFFER_OK);
  close (held[1]);
  assert_int_equal (coffer_wait_fd (held[0], POLLIN, coffer_now_ns (), -1),
                    0);
  close (line[1]);
  assert_int_equal (coffer_wait_fd (held[0], POLLIN,
                                    coffer_now_ns () + HARNESS_PATIENCE_NS, -1),
                    1);
  assert_int_equal (read (held[0], &byte, 1), 0);
  close (held[0]);
  /* What it left is swept by whoever looks next. */
  assert_int_equal (host.ops->probe (host_call (&host, 5000), host.self,
                                     NULL),
                    COFFER_OK);
  assert_false (folder_there ("bound"));
}

/* A host that is killed at any moment leaves neither processes nor, for whoever
 * looks next, folders: the pipe that everything inside held ends. */
static void
test_killed_hosts_leave_nothing (void **state)
{
  unsigned long rounds = harness_scaled (25), i;
  const char *argv[] = { "sh", "-c", "setsid sleep 60 & sleep 60", NULL };
  static struct linux_host mortal;
  int held[2], line[2];
  char id[32], byte;
  pid_t pid;

  (void) state;
  for (i = 0; i < rounds; i++) {
    struct coffer_sandbox_spec spec = lasting;

    assert_int_equal (pipe2 (held, O_CLOEXEC), 0);
    assert_int_equal (pipe2 (line, O_CLOEXEC), 0);
    snprintf (id, sizeof id, "killed-%lu", i);
    pid = fork ();
    if (pid == 0) {
      mortal = host;
      spec.lifeline = line[0];
      spec.single_exec = i % 2;
      spec.memory_bytes = i % 4 == 3 ? 64 << 20 : 0;
      host_create (&mortal, id, &spec);
      mortal.ops->exec_start (host_call (&mortal, 5000), mortal.self, id,
                              argv, NULL, NULL, -1, held[1], -1, NULL);
      pause ();
      _exit (1);
    }
    close (held[1]);
    close (line[0]);
    close (line[1]);
    usleep ((useconds_t) (i * 7919 % 23) * 400);
    kill (pid, SIGKILL);
    assert_int_equal (waitpid (pid, NULL, 0), pid);
    assert_int_equal (coffer_wait_fd (held[0], POLLIN,
                                      coffer_now_ns () + HARNESS_PATIENCE_NS, -1),
                      1);
    assert_int_equal (read (held[0], &byte, 1), 0);
    close (held[0]);
  }
  for (i = 0; i < 1000; i++) {
    assert_int_equal (host.ops->sandbox_list (host_call (&host, 5000),
                                              host.self, NULL),
                      COFFER_OK);
    if (host.infos[0] == '\0')
      break;
    usleep (20000);
  }
  assert_string_equal (host.infos, "");
  for (i = 0; i < rounds; i++) {
    snprintf (id, sizeof id, "killed-%lu", i);
    assert_false (folder_there (id));
  }
}

static void
test_ttl (void **state)
{
  const char *argv[] = { "sleep", "60", NULL };
  struct coffer_sandbox_spec spec = lasting;
  int64_t begun = coffer_now_ns (), before;
  int held[2];

  (void) state;
  spec.ttl_ms = 60000;
  create ("mortal", &spec);
  assert_true (host.expires_ns > coffer_realtime_ns () + 50000000000);
  assert_int_equal (pipe2 (held, O_CLOEXEC), 0);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "mortal", argv, NULL, NULL, -1,
                                          held[1], -1, NULL),
                    COFFER_OK);
  close (held[1]);
  before = coffer_realtime_ns ();
  assert_int_equal (host.ops->sandbox_extend (host_call (&host, 5000),
                                              host.self, "mortal", 300, NULL),
                    COFFER_OK);
  assert_true (host.expires_ns < before + 30000000000);
  assert_int_equal (coffer_wait_fd (held[0], POLLIN,
                                    coffer_now_ns () + HARNESS_PATIENCE_NS, -1),
                    1);
  assert_true (coffer_now_ns () - begun >= 300000000);
  close (held[0]);
  assert_int_equal (host.ops->sandbox_list (host_call (&host, 5000),
                                            host.self, NULL),
                    COFFER_OK);
  assert_string_equal (host.infos, "");
  assert_false (folder_there ("mortal"));
}

/* ---- set-up that fails -------------------------------------------------- */

static void
mount_refused (const char *source, const char *target, int32_t expected)
{
  struct coffer_mount mount = { .size = sizeof mount, .source = source,
                                .target = target, .writable = 1 };
  const struct coffer_mount *mounts[] = { &mount, NULL };
  struct coffer_sandbox_spec spec = lasting;

  mount.source_fd = open (source, O_PATH | O_CLOEXEC);
  spec.mounts = mounts;
  assert_int_equal (host_create (&host, "refused", &spec), expected);
  assert_true (strlen (host.error) > 0);
  close (mount.source_fd);
  assert_false (folder_there ("refused"));
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
}

static void
test_refusals_leave_nothing (void **state)
{
  struct coffer_sandbox_spec spec = lasting;

  (void) state;
  mount_refused ("/tmp", "/proc", COFFER_INVALID);
  mount_refused ("/tmp", "/dev/shm", COFFER_INVALID);
  mount_refused ("/tmp", "/tmp/../etc", COFFER_INVALID);
  mount_refused ("/tmp", "relative", COFFER_INVALID);
  mount_refused ("/dev/null", "/workspace/x", COFFER_INVALID);
  /* This one fails in the init, after everything before it was made. */
  mount_refused (host.runtime_path, "/usr/no/such/place", COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.error, "mount point"));
  spec.network = "bridge";
  assert_int_equal (host_create (&host, "refused", &spec), COFFER_INVALID);
  spec.network = "none";
  spec.disk_bytes = 1;
  assert_int_equal (host_create (&host, "refused", &spec), COFFER_INVALID);
  assert_false (folder_there ("refused"));
}

/* An init that cannot be run, and one that ends without a word. */
static void
test_broken_inits_leave_nothing (void **state)
{
  static const char *const inits[] = { "/etc/passwd", "/bin/true" };
  static const char *const words[] = { "starting coffer-init", "" };
  static struct linux_host broken;
  int i, fd;

  (void) state;
  for (i = 0; i < 2; i++) {
    fd = open (inits[i], O_RDONLY | O_CLOEXEC);
    assert_true (fd >= 0);
    linux_host_open_with (&broken, fd);
    close (fd);
    assert_int_not_equal (host_create (&broken, "broken", &lasting),
                          COFFER_OK);
    assert_non_null (strstr (broken.error, words[i]));
    assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
    linux_host_close (&broken);         /* fails when a folder is left */
  }
}

/* A folder of the host, shown read-only and writable: what is written inside
 * belongs to the folder's owner outside, and is only written where it may. */
static void
test_mounts (void **state)
{
  const char *dir = *state;
  struct coffer_mount plain = { .size = sizeof plain, .source = dir,
                                .target = "/workspace", .writable = 1 };
  struct coffer_mount fixed = { .size = sizeof fixed, .source = dir,
                                .target = "/mnt/fixed" };
  const struct coffer_mount *mounts[] = { &plain, &fixed, NULL };
  struct coffer_sandbox_spec spec = lasting;
  struct stat st;
  int32_t code;

  plain.source_fd = open (dir, O_PATH | O_CLOEXEC);
  fixed.source_fd = plain.source_fd;
  spec.mounts = mounts;
  code = host_create (&host, "mounts", &spec);
  close (plain.source_fd);
  if (code == COFFER_UNAVAILABLE && strstr (host.error, "id-mapped"))
    skip_missing ("id-mapped mounts on the file system of /tmp");
  if (code != COFFER_OK)
    fail_msg ("%s", host.error);
  sh_in ("mounts",
         "printf 'caf\\303\\251\\n' > made; mkdir sub; touch /mnt/fixed/x; "
         "chmod u+s made; cat /mnt/fixed/made; id -u; stat -c %u made",
         5000);
  assert_string_equal (outcome.out, "café\n1000\n1000\n");
  assert_non_null (strstr (outcome.err, "Read-only file system"));
  assert_int_equal (stat (harness_path (dir, "made"), &st), 0);
  assert_int_equal (st.st_uid, geteuid ());
  assert_int_equal (st.st_mode & 07000, 0);
  assert_int_equal (access (harness_path (dir, "x"), F_OK), -1);
  assert_int_equal (host_kill (&host, "mounts"), COFFER_OK);
}

/* ---- the protocol ------------------------------------------------------- */

static void
packet_write (int fd, uint16_t type, uint32_t serial, const void *body,
              size_t size, size_t cut)
{
  char packet[1024] = { 0 };
  struct init_header header
    = { (uint32_t) (sizeof header + size - cut), INIT_MAGIC, type, serial, 0 };

  memcpy (packet, &header, sizeof header);
  memcpy (packet + sizeof header, body, size - cut);
  assert_int_equal (send (fd, packet, header.size, MSG_NOSIGNAL),
                    header.size);
}

static struct init_header
packet_read (int fd, void *body, size_t size)
{
  char packet[4096] = { 0 };
  struct init_header header;

  assert_int_equal (coffer_wait_fd (fd, POLLIN,
                                    coffer_now_ns () + HARNESS_PATIENCE_NS, -1),
                    1);
  assert_true (recv (fd, packet, sizeof packet, 0)
               >= (ssize_t) sizeof header);
  memcpy (&header, packet, sizeof header);
  memcpy (body, packet + sizeof header, size);
  return header;
}

/* Longer bodies than the init knows, shorter ones, types of the future and
 * plain garbage: the conversation goes on, or only that one ends. */
static void
test_protocol_grows (void **state)
{
  struct {
    struct init_exec known;
    uint64_t later[2];
    char strings[16];
  } exec = { .known = { .size = sizeof exec.known + sizeof exec.later,
                        .argc = 1, .strings_size = 6 },
             .later = { 7, 8 }, .strings = "true\0" };
  struct init_command wait = { .size = 8, .exec = 1 };
  struct init_header header;
  struct init_hello hello;
  struct init_exit end;
  int fd, i;

  (void) state;
  create ("wire", &lasting);
  for (i = 0; i < 2; i++) {
    fd = host_connect (&host, "wire");
    host_show_own (fd);
    header = packet_read (fd, &hello, sizeof hello);
    assert_int_equal (header.type, INIT_HELLO);
    assert_int_equal (hello.version, INIT_PROTOCOL);
    if (i == 0) {
      /* Garbage ends this connection, and no more than that. */
      assert_int_equal (send (fd, "garbage", 7, 0), 7);
      assert_int_equal (recv (fd, &hello, sizeof hello, 0), 0);
      close (fd);
    }
  }
  packet_write (fd, INIT_EXEC, 1, &exec, sizeof exec.known
                + sizeof exec.later + 6, 0);
  header = packet_read (fd, &end, sizeof end);
  assert_int_equal (header.type, INIT_STARTED);
  assert_int_equal (header.error, 0);
  assert_int_equal (end.exec, 1);
  /* An old host knows only the first two members. */
  packet_write (fd, INIT_WAIT, 2, &wait, sizeof wait, sizeof wait - 8);
  header = packet_read (fd, &end, sizeof end);
  assert_int_equal (header.type, INIT_EXIT);
  assert_int_equal (end.code, 0);
  packet_write (fd, 4711, 3, &wait, 8, 0);
  header = packet_read (fd, &end, sizeof end);
  assert_int_equal (header.type, INIT_DONE);
  assert_int_equal (header.error, EOPNOTSUPP);
  assert_int_equal (header.serial, 3);
  /* Sizes and counts that lie. */
  exec.known.argc = 4000000000u;
  packet_write (fd, INIT_EXEC, 4, &exec, sizeof exec.known
                + sizeof exec.later + 6, 0);
  header = packet_read (fd, &end, sizeof end);
  assert_int_not_equal (header.error, 0);
  exec.known.argc = 1;
  exec.known.size = 100000;
  packet_write (fd, INIT_EXEC, 5, &exec, sizeof exec.known
                + sizeof exec.later + 6, 0);
  header = packet_read (fd, &end, sizeof end);
  assert_int_not_equal (header.error, 0);
  close (fd);
  sh_in ("wire", "echo alive", 5000);
  assert_string_equal (outcome.out, "alive\n");
  assert_int_equal (host_kill (&host, "wire"), COFFER_OK);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_create_is_idempotent),
    cmocka_unit_test (test_kill),
    cmocka_unit_test (test_outlives_its_maker),
    cmocka_unit_test (test_many_connections),
    cmocka_unit_test (test_kill_of_a_stopped_init),
    cmocka_unit_test (test_lifeline),
    cmocka_unit_test (test_killed_hosts_leave_nothing),
    cmocka_unit_test (test_ttl),
    cmocka_unit_test (test_refusals_leave_nothing),
    cmocka_unit_test (test_broken_inits_leave_nothing),
    cmocka_unit_test (test_mounts),
    cmocka_unit_test (test_protocol_grows),
  };

  return LINUX_TESTS_RUN_FOLDER (&host, "linux: life of a sandbox", tests);
}
