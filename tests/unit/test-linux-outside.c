/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the init of a sandbox of `linux` listens to: those who are outside of
 * every sandbox, and nobody else who can reach its socket. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "linux-host.h"
#include "protocol.h"

#define SECOND INT64_C (1000000000)

static struct linux_host host;
static struct outcome outcome;

static const struct coffer_sandbox_spec lasting
  = { .size = sizeof lasting, .lifeline = -1 };

static void
create (const char *id)
{
  if (host_create (&host, id, &lasting) != COFFER_OK)
    fail_msg ("%s", host.error);
}

/* What it says to `type`; 0: it has closed the connection. */
static int
answer (int fd, uint16_t type)
{
  struct init_header header = { sizeof header, INIT_MAGIC, type, 2, 0 };
  char packet[INIT_REPLY_MAX];

  (void) !send (fd, &header, sizeof header, MSG_NOSIGNAL);
  for (;;) {
    if (coffer_wait_fd (fd, POLLIN, coffer_now_ns () + HARNESS_PATIENCE_NS, -1)
        != 1)
      return -1;
    if (recv (fd, packet, sizeof packet, 0) < (ssize_t) sizeof header)
      return 0;
    memcpy (&header, packet, sizeof header);
    if (header.type != INIT_HELLO)
      return header.type;
  }
}

/* What a connection that shows `userns` is given when it asks for the root:
 * judged in a process of its own, which may have gone somewhere. */
static int
asked_with (const char *id, int userns)
{
  const int fd = host_connect (&host, id);
  int type;

  if (userns != -2)
    host_show (fd, userns);
  type = answer (fd, INIT_ROOT);
  close (fd);
  return type;
}

static void
test_outside_is_served (void **state)
{
  coffer_autoclose int userns = open ("/proc/self/ns/user",
                                      O_RDONLY | O_CLOEXEC);

  (void) state;
  create ("served");
  assert_int_equal (asked_with ("served", userns), INIT_DONE);
  assert_int_equal (host_kill (&host, "served"), COFFER_OK);
}

static void
test_nothing_shown_is_not_served (void **state)
{
  coffer_autoclose int file = memfd_create ("file", MFD_CLOEXEC);
  coffer_autoclose int other = open ("/proc/self/ns/uts",
                                     O_RDONLY | O_CLOEXEC);

  (void) state;
  create ("shy");
  assert_int_equal (asked_with ("shy", -2), 0);
  assert_int_equal (asked_with ("shy", -1), 0);
  assert_int_equal (asked_with ("shy", file), 0);
  assert_int_equal (asked_with ("shy", other), 0);
  assert_int_equal (host_kill (&host, "shy"), COFFER_OK);
}

/* The same user, in a user namespace of its own, as in a sandbox. */
static void
test_another_user_namespace_is_not_served (void **state)
{
  int status = -1;
  pid_t pid;

  (void) state;
  create ("apart");
  pid = fork ();
  if (pid == 0) {
    int own, fd;

    if (unshare (CLONE_NEWUSER) == -1)
      _exit (2);
    own = open ("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    fd = host_connect (&host, "apart");
    host_show (fd, own);
    _exit (answer (fd, INIT_ROOT) == 0 ? 0 : 1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_int_equal (host_kill (&host, "apart"), COFFER_OK);
}

/* What is inside shows what it can find there. */
static void
test_a_sandbox_does_not_reach_another (void **state)
{
  const char *script
    = "import array, glob, socket, struct\n"
      "got = 0\n"
      "for path in glob.glob ('/run/shown/*/init.sock'):\n"
      "    s = socket.socket (socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
      "    s.settimeout (5)\n"
      "    try:\n"
      "        s.connect (path)\n"
      "        s.recv (9000)\n"
      "        own = open ('/proc/self/ns/user')\n"
      "        head = lambda kind: struct.pack ('=IHHIi', 16, 0x436f, kind, 1, 0)\n"
      "        s.sendmsg ([head (20)], [(socket.SOL_SOCKET,\n"
      "                   socket.SCM_RIGHTS, array.array ('i', [own.fileno ()]))])\n"
      "        s.send (head (10))\n"
      "        got += len (s.recvmsg (9000, 1000)[1])\n"
      "    except OSError as error:\n"
      "        pass\n"
      "print (len (glob.glob ('/run/shown/*/init.sock')) > 0, got)\n";
  const char *argv[] = { "python3", "-c", script, NULL };
  struct coffer_sandbox_spec spec = lasting;
  struct coffer_mount mount = { .size = sizeof mount,
                                .target = "/run/shown" };
  const struct coffer_mount *mounts[] = { &mount, NULL };
  int32_t code;

  (void) state;
  mount.source_fd = open (host.runtime_path, O_PATH | O_CLOEXEC);
  mount.source = host.runtime_path;
  spec.mounts = mounts;
  spec.single_exec = 1;
  create ("victim");
  code = host_create (&host, "stranger", &spec);
  close (mount.source_fd);
  if (code == COFFER_UNAVAILABLE && strstr (host.error, "id-mapped")) {
    host_kill (&host, "victim");
    skip_missing ("id-mapped mounts on the file system of /tmp");
  }
  assert_int_equal (code, COFFER_OK);
  assert_int_equal (host_run (&host, "stranger", argv, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.out, "True 0\n");
  assert_int_equal (host_kill (&host, "stranger"), COFFER_OK);
  assert_int_equal (host_kill (&host, "victim"), COFFER_OK);
}

/* However many of them hold their connections. */
static void
test_strangers_keep_nobody_out (void **state)
{
  const char *argv[] = { "echo", "in", NULL };
  int fds[300], i, status = -1;
  pid_t pid;

  (void) state;
  create ("besieged");
  for (i = 0; i < 300; i++)
    fds[i] = host_connect (&host, "besieged");
  pid = fork ();
  if (pid == 0) {
    const int fd = host_connect (&host, "besieged");

    host_show_own (fd);
    _exit (answer (fd, INIT_ROOT) == INIT_DONE ? 0 : 1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_int_equal (host_run (&host, "besieged", argv, NULL, NULL, 5000,
                              &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.out, "in\n");
  for (i = 0; i < 300; i++)
    close (fds[i]);
  assert_int_equal (host_kill (&host, "besieged"), COFFER_OK);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_outside_is_served),
    cmocka_unit_test (test_nothing_shown_is_not_served),
    cmocka_unit_test (test_another_user_namespace_is_not_served),
    cmocka_unit_test (test_a_sandbox_does_not_reach_another),
    cmocka_unit_test (test_strangers_keep_nobody_out),
  };

  return LINUX_TESTS_RUN_FOLDER (&host, "linux: who is outside", tests);
}
