/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a root that are made once for many sandboxes of root: the same
 * as in any other, nobody's to change, and those of the machine as it is. */

#include <config.h>

#include "harness.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux-host.h"

static const struct coffer_sandbox_spec lasting
  = { .size = sizeof lasting, .lifeline = -1 };

static struct linux_host host;

static void
create (const char *id)
{
  if (host_create (&host, id, &lasting) != COFFER_OK)
    fail_msg ("%s", host.error);
}

static char *
said (const char *id, const char *script)
{
  const char *argv[] = { "sh", "-c", script, NULL };
  static struct outcome outcome;

  assert_int_equal (host_run (&host, id, argv, NULL, NULL, 20000, &outcome),
                    COFFER_OK);
  return strdup (outcome.out);
}

/* The second of an instance has it, where there can be one. */
static void
begin (void)
{
  char *owner;

  if (geteuid () != 0)
    skip_missing ("root");
  linux_host_open (&host);
  create ("one");
  create ("two");
  owner = said ("two", "stat -c %u /");
  if (strcmp (owner, "1000\n") == 0) {
    host_kill (&host, "one");
    host_kill (&host, "two");
    linux_host_close (&host);
    skip_missing ("mounts of a mount that is in no tree (Linux 6.15)");
  }
  assert_string_equal (owner, "65534\n");
  free (owner);
}

static void
end (void)
{
  assert_int_equal (host_kill (&host, "one"), COFFER_OK);
  assert_int_equal (host_kill (&host, "two"), COFFER_OK);
  linux_host_close (&host);
}

/* Kinds, modes, where links lead, what files say. */
static const char all[]
  = "find / /dev /etc -maxdepth 1 -printf '%p %y %m %l\\n' | sort;"
    "cd /etc && cat passwd group nsswitch.conf hosts resolv.conf mime.types;"
    "ls ssl/certs | head -3; ls alternatives | head -3;"
    "awk '{ print $5, $5 ~ \"^/proc/\" ? \"\" : $6 }' /proc/self/mountinfo"
    " | sort; find /opt /home /run";

static void
test_it_looks_as_one_of_its_own (void **state)
{
  char *own, *shared;

  (void) state;
  begin ();
  own = said ("one", all);
  shared = said ("two", all);
  assert_non_null (strstr (own, "/etc/passwd f 444"));
  assert_non_null (strstr (own, "user:x:1000"));
  assert_string_equal (own, shared);
  free (own);
  free (shared);
  end ();
}

static void
test_nobody_changes_it (void **state)
{
  static const char script[]
    = "for f in /new /etc/new /opt/new; do echo > $f; done 2>/dev/null;"
      "rm -f /etc/passwd /bin; mv /etc/group /etc/gruppe; chmod 777 / /etc;"
      "echo x >> /etc/hosts; mount -o remount,rw /; ls / /opt; cat /etc/hosts";
  char *before, *after;

  (void) state;
  begin ();
  before = said ("two", "ls / /opt; cat /etc/hosts");
  after = said ("two", script);
  assert_string_equal (before, after);
  free (before);
  free (after);
  end ();
}

/* In a world of its own, whose /etc is not the machine's. */
static int
changed_etc (void)
{
  char *names;
  int there;

  if (unshare (CLONE_NEWNS) < 0
      || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
      || mount ("etc", "/etc", "tmpfs", 0, "mode=0755") < 0)
    return 77;
  mkdir ("/etc/java-old", 0755);
  linux_host_open (&host);
  create ("one");
  create ("two");
  mkdir ("/etc/java-new", 0755);
  rmdir ("/etc/java-old");
  create ("three");
  names = said ("three", "echo /etc/java-*; stat -c %u /");
  there = strcmp (names, "/etc/java-new\n65534\n") == 0;
  free (names);
  host_kill (&host, "three");
  end ();
  return there ? 0 : 1;
}

static void
test_it_is_of_the_machine_as_it_is (void **state)
{
  int status = -1;
  pid_t pid;

  (void) state;
  begin ();
  end ();
  fflush (NULL);
  pid = fork ();
  if (pid == 0)
    _exit (changed_etc ());
  assert_int_equal (waitpid (pid, &status, 0), pid);
  if (WIFEXITED (status) && WEXITSTATUS (status) == 77)
    skip_missing ("the right to mount");
  assert_int_equal (status, 0);
}

/* A place for it would have to be made. */
static void
test_what_is_shown_elsewhere_has_a_root_of_its_own (void **state)
{
  struct coffer_mount shown = { sizeof shown, .source = "/usr/share",
                                .target = "/data/here" };
  const struct coffer_mount *mounts[] = { &shown, NULL };
  struct coffer_sandbox_spec spec = lasting;
  char *owner;

  (void) state;
  begin ();
  shown.source_fd = open ("/usr/share", O_PATH | O_CLOEXEC);
  spec.mounts = mounts;
  if (host_create (&host, "three", &spec) != COFFER_OK)
    fail_msg ("%s", host.error);
  owner = said ("three", "test -d /data/here/doc && stat -c %u /");
  assert_string_equal (owner, "1000\n");
  free (owner);
  close (shown.source_fd);
  assert_int_equal (host_kill (&host, "three"), COFFER_OK);
  end ();
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_it_looks_as_one_of_its_own),
    cmocka_unit_test (test_nobody_changes_it),
    cmocka_unit_test (test_it_is_of_the_machine_as_it_is),
    cmocka_unit_test (test_what_is_shown_elsewhere_has_a_root_of_its_own),
  };

  return LINUX_TESTS_RUN_WITH ("linux: names of a root", tests, NULL, NULL);
}
