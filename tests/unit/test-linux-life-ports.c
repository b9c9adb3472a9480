/* SPDX-License-Identifier: Apache-2.0 */
/* Ports within a sandbox of `linux`, and the numbers that it gives of itself. */

#include "harness.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <coffer/fd.h>

#include "linux-life.h"

static void
run (const char *id, const char *script)
{
  sh_in (id, script, 20000);
}

/* ---- ports -------------------------------------------------------------- */

static int32_t
dial (const char *id, uint32_t port)
{
  return host.ops->port_dial (host_call (&host, 5000), host.self, id, port,
                              NULL);
}

/* Starts the payload as a server and waits until it listens. */
static int
serve (const char *id, const char *script)
{
  int held;
  char line[64] = "";

  create (id, &lasting);
  host_payload (&host, id);
  held = host_start (&host, id, script, 0);
  assert_int_equal (coffer_wait_fd (held, POLLIN, coffer_now_ns ()
                                    + 5 * SECOND, -1),
                    1);
  assert_true (read (held, line, sizeof line - 1) > 0);
  assert_string_equal (line, "listening\n");
  return held;
}

static void
echo_once (const char *word, const char *answer)
{
  char bytes[64] = "";

  assert_int_equal (write (host.stream, word, strlen (word)), strlen (word));
  assert_int_equal (coffer_wait_fd (host.stream, POLLIN, coffer_now_ns ()
                                    + 5 * SECOND, -1),
                    1);
  assert_true (read (host.stream, bytes, sizeof bytes - 1) > 0);
  assert_string_equal (bytes, answer);
}

static void
test_a_port_is_dialled (void **state)
{
  static const char *const scripts[]
    = { "exec ./payload listen4 8080", "exec ./payload listen6 8080" };
  int held, i, round;

  (void) state;
  for (i = 0; i < 2; i++) {
    held = serve ("server", scripts[i]);
    assert_int_equal (host.ops->port_resolve (host_call (&host, 5000),
                                              host.self, "server", 8080,
                                              NULL),
                      COFFER_OK);
    assert_string_equal (host.infos, "8080 -\n");
    for (round = 0; round < 3; round++) {
      if (dial ("server", 8080) != COFFER_OK)
        fail_msg ("%s", host.error);
      echo_once ("hello", "HELLO");
      echo_once ("again", "AGAIN");
      coffer_fd_close (&host.stream);
    }
    close (held);
    assert_int_equal (host_kill (&host, "server"), COFFER_OK);
  }
}

/* The host's own ports are none of the sandbox's, nor are another sandbox's. */
static void
test_a_port_is_of_that_sandbox_alone (void **state)
{
  struct sockaddr_in own = { .sin_family = AF_INET,
                             .sin_addr = { htonl (INADDR_LOOPBACK) } };
  socklen_t size = sizeof own;
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), held;

  (void) state;
  assert_int_equal (bind (fd, (struct sockaddr *) &own, sizeof own), 0);
  assert_int_equal (listen (fd, 4), 0);
  assert_int_equal (getsockname (fd, (struct sockaddr *) &own, &size), 0);
  held = serve ("one", "exec ./payload listen4 8080");
  create ("two", &lasting);
  assert_int_equal (dial ("two", 8080), COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.error, "8080"));
  assert_int_equal (dial ("two", ntohs (own.sin_port)), COFFER_UNAVAILABLE);
  assert_int_equal (coffer_wait_fd (fd, POLLIN, coffer_now_ns (), -1), 0);
  assert_int_equal (dial ("one", 0), COFFER_INVALID);
  assert_int_equal (dial ("one", 65536), COFFER_INVALID);
  assert_int_equal (dial ("nobody", 80), COFFER_NOT_FOUND);
  close (fd);
  close (held);
  assert_int_equal (host_kill (&host, "one"), COFFER_OK);
  assert_int_equal (host_kill (&host, "two"), COFFER_OK);
}

/* A connection ends with its sandbox. */
static void
test_a_connection_ends_with_its_sandbox (void **state)
{
  int held = serve ("ends", "exec ./payload listen4 8080");
  char byte;

  (void) state;
  assert_int_equal (dial ("ends", 8080), COFFER_OK);
  echo_once ("x", "X");
  assert_int_equal (host_kill (&host, "ends"), COFFER_OK);
  assert_int_equal (coffer_wait_fd (host.stream, POLLIN, coffer_now_ns ()
                                    + 5 * SECOND, -1),
                    1);
  assert_true (read (host.stream, &byte, 1) <= 0);
  coffer_fd_close (&host.stream);
  close (held);
}

/* ---- numbers ------------------------------------------------------------ */

static void
test_numbers_follow_what_is_used (void **state)
{
  struct coffer_sandbox_spec spec = lasting;
  double before, time;
  int held;

  (void) state;
  spec.disk_bytes = 32 << 20;
  spec.inodes = 4000;
  create ("used", &spec);
  assert_true (host_metric (&host, "used", "processes") == 1);
  assert_true (host_metric (&host, "used", "commands_running") == 0);
  assert_true (host_metric (&host, "used", "disk_limit_bytes") == 32 << 20);
  assert_true (host_metric (&host, "used", "inodes_limit") == 4000);
  before = host_metric (&host, "used", "disk_bytes");
  run ("used", "head -c 5000000 /dev/zero > f; mkdir a b c");
  assert_true (host_metric (&host, "used", "disk_bytes") >= before + 5000000);
  assert_true (host_metric (&host, "used", "disk_bytes") < before + 5100000);
  assert_true (host_metric (&host, "used", "inodes") >= 4);
  time = host_metric (&host, "used", "cpu_seconds_total");
  /* What a process has waited for counts while that process lives. */
  held = host_start (&host, "used",
                     "sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); "
                     "done'; echo done > mark; sleep 1000",
                     0);
  while (host.ops->file_stat (host_call (&host, 5000), host.self, "used",
                              "mark", NULL)
         != COFFER_OK)
    usleep (20000);
  assert_true (host_metric (&host, "used", "cpu_seconds_total")
               > time + 0.03);
  assert_true (host_metric (&host, "used", "processes") >= 2);
  assert_true (host_metric (&host, "used", "commands_running") == 1);
  assert_true (host_metric (&host, "used", "memory_bytes") > 100000);
  assert_true (host_metric (&host, "used", "nothing_such") == -1);
  close (held);
  assert_int_equal (host_kill (&host, "used"), COFFER_OK);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_a_port_is_dialled),
    cmocka_unit_test (test_a_port_is_of_that_sandbox_alone),
    cmocka_unit_test (test_a_connection_ends_with_its_sandbox),
    cmocka_unit_test (test_numbers_follow_what_is_used),
  };

  return LINUX_TESTS_RUN (&host, "linux: ports and numbers", tests);
}
