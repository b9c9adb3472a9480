/* SPDX-License-Identifier: Apache-2.0 */
/* The linux provider's workspace in a file, and what is said of folders that
 * nothing caps. */

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/statfs.h>

#include <coffer/fd.h>

#include "linux-host.h"

static struct linux_host host;
static struct outcome outcome;
static char folder[] = "/tmp/coffer-quota-XXXXXX";
static char image[64];

static int
set_up (void **state)
{
  (void) state;
  linux_host_open (&host);
  assert_non_null (mkdtemp (folder));
  snprintf (image, sizeof image, "%s/work.img", folder);
  return 0;
}

static int
tear_down (void **state)
{
  (void) state;
  unlink (image);
  linux_host_close (&host);
  return rmdir (folder);
}

/* ---- helpers ------------------------------------------------------------ */

/* An image of that many bytes of nothing, or as it is. */
static void
image_put (const char *bytes, mode_t mode)
{
  int fd;

  unlink (image);
  fd = open (image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  assert_true (fd >= 0);
  assert_int_equal (write (fd, bytes, strlen (bytes)), strlen (bytes));
  assert_int_equal (fchmod (fd, mode), 0);
  close (fd);
}

struct shown {
  struct coffer_mount mount;
  const struct coffer_mount *mounts[2];
  struct coffer_sandbox_spec spec;
};

static void
shown_open (struct shown *shown, const char *source, int writable)
{
  memset (shown, 0, sizeof *shown);
  shown->mount.size = sizeof shown->mount;
  shown->mount.source = source;
  shown->mount.target = "/workspace";
  shown->mount.writable = (uint32_t) writable;
  shown->mount.source_fd = open (source, O_PATH | O_CLOEXEC);
  assert_true (shown->mount.source_fd >= 0);
  shown->mounts[0] = &shown->mount;
  shown->spec.size = sizeof shown->spec;
  shown->spec.lifeline = shown->spec.template_fd = -1;
  shown->spec.mounts = shown->mounts;
}

/* Creates; the code. */
static int32_t
show (const char *id, const char *source, int writable, uint64_t disk)
{
  struct shown shown;
  int32_t code;

  shown_open (&shown, source, writable);
  shown.spec.disk_bytes = disk;
  code = host_create (&host, id, &shown.spec);
  close (shown.mount.source_fd);
  return code;
}

static void
sh (const char *id, const char *script)
{
  const char *argv[] = { "sh", "-c", script, NULL };

  assert_int_equal (host_run (&host, id, argv, NULL, NULL, 20000, &outcome),
                    COFFER_OK);
}

/* Loop devices whose file is the image. */
static int
devices_of_image (void)
{
  DIR *dir = opendir ("/sys/block");
  char path[128], text[256];
  struct dirent *entry;
  int count = 0, fd;
  ssize_t n;

  while (dir != NULL && (entry = readdir (dir)) != NULL) {
    if (strncmp (entry->d_name, "loop", 4) != 0)
      continue;
    snprintf (path, sizeof path, "/sys/block/%.32s/loop/backing_file",
              entry->d_name);
    fd = open (path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read (fd, text, sizeof text - 1);
    coffer_fd_close (&fd);
    text[n > 0 ? n : 0] = '\0';
    count += n > 0 && strncmp (text, image, strlen (image)) == 0;
  }
  if (dir != NULL)
    closedir (dir);
  return count;
}

/* The kernel takes a mount down when its last process is gone, a moment
 * later. */
static int
devices_gone (void)
{
  int64_t stop = coffer_now_ns () + HARNESS_PATIENCE_NS;

  while (devices_of_image () > 0 && coffer_now_ns () < stop)
    usleep (10000);
  return devices_of_image () == 0;
}

static int
image_can (void)
{
  coffer_autoclose int fd = open ("/dev/loop-control", O_RDWR | O_CLOEXEC);

  return fd >= 0 && geteuid () == 0
         && (access ("/usr/sbin/mke2fs", X_OK) == 0
             || access ("/sbin/mke2fs", X_OK) == 0);
}

/* ---- images ------------------------------------------------------------- */

/* What is written lasts, and no byte more than asked for is ever had. */
static void
test_an_image_lasts_and_is_a_cap (void **state)
{
  struct stat st;

  (void) state;
  if (!image_can ())
    skip_missing ("loop devices");
  image_put ("", 0600);
  if (show ("image", image, 1, 16 << 20) != COFFER_OK)
    fail_msg ("%s", host.error);
  assert_non_null (strstr (host.facts, "quota.hard ok"));
  assert_int_equal (devices_of_image (), 1);
  sh ("image", "id -u; stat -c '%u %a' .; ls -A; echo kept > note; "
               "chmod 4755 note 2>/dev/null || echo refused");
  assert_string_equal (outcome.out, "1000\n1000 755\nrefused\n");
  assert_string_equal (host.limits, "");
  sh ("image", "cat /dev/zero > big");
  assert_non_null (strstr (outcome.err, "No space left"));
  assert_string_equal (host.limits, "disk ");
  assert_int_equal (stat (image, &st), 0);
  assert_int_equal (st.st_size, 16 << 20);
  assert_int_equal (host_kill (&host, "image"), COFFER_OK);
  assert_true (devices_gone ());
  /* Another one finds it, at once, and the size need not be said again. */
  if (show ("later", image, 1, 0) != COFFER_OK)
    fail_msg ("%s", host.error);
  sh ("later", "cat note; rm big");
  assert_string_equal (outcome.out, "kept\n");
  assert_int_equal (host_kill (&host, "later"), COFFER_OK);
  /* And read-only. */
  if (show ("later", image, 0, 0) != COFFER_OK)
    fail_msg ("%s", host.error);
  sh ("later", "cat note; : > x");
  assert_string_equal (outcome.out, "kept\n");
  assert_non_null (strstr (outcome.err, "Read-only"));
  assert_int_equal (host_kill (&host, "later"), COFFER_OK);
  assert_true (devices_gone ());
}

/* Two file systems on one file would be the end of it. */
static void
test_an_image_is_of_one_sandbox_at_a_time (void **state)
{
  (void) state;
  if (!image_can ())
    skip_missing ("loop devices");
  image_put ("", 0600);
  if (show ("first", image, 1, 4 << 20) != COFFER_OK)
    fail_msg ("%s", host.error);
  assert_int_equal (show ("second", image, 1, 0), COFFER_BUSY);
  assert_int_equal (show ("second", image, 0, 0), COFFER_BUSY);
  assert_int_equal (devices_of_image (), 1);
  assert_int_equal (host_kill (&host, "first"), COFFER_OK);
  assert_int_equal (show ("second", image, 1, 0), COFFER_OK);
  assert_int_equal (host_kill (&host, "second"), COFFER_OK);
  assert_true (devices_gone ());
}

/* Inodes are capped as well. */
static void
test_an_image_has_as_many_inodes_as_asked (void **state)
{
  struct shown shown;

  (void) state;
  if (!image_can ())
    skip_missing ("loop devices");
  image_put ("", 0600);
  shown_open (&shown, image, 1);
  shown.spec.disk_bytes = 16 << 20;
  shown.spec.inodes = 256;
  if (host_create (&host, "inodes", &shown.spec) != COFFER_OK)
    fail_msg ("%s", host.error);
  close (shown.mount.source_fd);
  sh ("inodes", "i=0; while touch f$i; do i=$((i+1)); done 2>/dev/null; "
                "echo $i");
  assert_in_range (atoi (outcome.out), 64, 300);
  assert_string_equal (host.limits, "inodes ");
  assert_int_equal (host_kill (&host, "inodes"), COFFER_OK);
  assert_true (devices_gone ());
}

/* What is no image of root's own is not touched, let alone made into one. */
static void
test_other_files_are_refused_and_left_alone (void **state)
{
  static const struct {
    const char *bytes;
    mode_t mode;
    uint64_t disk;
    const char *why;
  } rows[] = {
    { "print ('hello')\n", 0600, 1 << 20, "neither empty nor an ext4" },
    { "", 0622, 1 << 20, "nobody else may write" },
    { "", 0600, 0, "none was said" },
    { "", 0600, 65536, "mke2fs makes no image" },
  };
  char text[64];
  struct stat st;
  int fd, n;
  size_t i;

  (void) state;
  if (!image_can ())
    skip_missing ("loop devices");
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    image_put (rows[i].bytes, rows[i].mode);
    assert_int_equal (show ("refused", image, 1, rows[i].disk),
                      COFFER_INVALID);
    if (strstr (host.error, rows[i].why) == NULL)
      fail_msg ("row %zu: %s", i, host.error);
    fd = open (image, O_RDONLY | O_CLOEXEC);
    n = (int) read (fd, text, sizeof text);
    assert_int_equal (fstat (fd, &st), 0);
    close (fd);
    assert_int_equal (st.st_size, strlen (rows[i].bytes));
    assert_memory_equal (text, rows[i].bytes, n);
    assert_int_equal (host_kill (&host, "refused"), COFFER_NOT_FOUND);
  }
  /* Larger than what may be had. */
  image_put ("", 0600);
  assert_int_equal (show ("sized", image, 1, 8 << 20), COFFER_OK);
  assert_int_equal (host_kill (&host, "sized"), COFFER_OK);
  assert_int_equal (show ("sized", image, 1, 4 << 20), COFFER_INVALID);
  assert_non_null (strstr (host.error, "more than 4194304"));
  assert_true (devices_gone ());
  assert_int_equal (chown (image, 1, 1), 0);
  assert_int_equal (show ("sized", image, 1, 0), COFFER_INVALID);
  assert_int_equal (devices_of_image (), 0);
}

/* An ordinary user may not mount one, and hears so. */
static void
test_an_image_takes_root (void **state)
{
  (void) state;
  if (geteuid () == 0)
    skip_missing ("an ordinary user");
  image_put ("", 0600);
  assert_int_equal (show ("mine", image, 1, 1 << 20), COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.error, "only root mounts one"));
}

/* ---- folders ------------------------------------------------------------ */

/* Writing to a folder of the host is capped by nothing: said, named where a
 * limit was asked for, and refused where a hard one is required. */
static void
test_a_folder_is_not_called_capped (void **state)
{
  static const char *const require[] = { "quota.hard", NULL };
  struct shown shown;

  (void) state;
  shown_open (&shown, folder, 1);
  if (host_create (&host, "folder", &shown.spec) != COFFER_OK) {
    close (shown.mount.source_fd);
    assert_non_null (strstr (host.error, "id-mapped"));
    skip_missing ("id-mapped mounts on the file system of /tmp");
  }
  assert_non_null (strstr (host.facts, "quota.hard off nothing caps"));
  assert_string_equal (host.not_applied, "");
  assert_int_equal (host_kill (&host, "folder"), COFFER_OK);
  shown.spec.disk_bytes = 1 << 20;
  assert_int_equal (host_create (&host, "folder", &shown.spec), COFFER_OK);
  assert_string_equal (host.not_applied, "quota.hard ");
  assert_int_equal (host_kill (&host, "folder"), COFFER_OK);
  shown.spec.require = require;
  assert_int_equal (host_create (&host, "folder", &shown.spec),
                    COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.error, "quota.hard"));
  assert_non_null (strstr (host.error, "-w FILE:rw"));
  assert_int_equal (host_kill (&host, "folder"), COFFER_NOT_FOUND);
  /* Read-only there is nothing to cap. */
  shown.mount.writable = 0;
  assert_int_equal (host_create (&host, "folder", &shown.spec), COFFER_OK);
  assert_non_null (strstr (host.facts, "quota.hard ok"));
  assert_int_equal (host_kill (&host, "folder"), COFFER_OK);
  close (shown.mount.source_fd);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_an_image_lasts_and_is_a_cap),
    cmocka_unit_test (test_an_image_is_of_one_sandbox_at_a_time),
    cmocka_unit_test (test_an_image_has_as_many_inodes_as_asked),
    cmocka_unit_test (test_other_files_are_refused_and_left_alone),
    cmocka_unit_test (test_an_image_takes_root),
    cmocka_unit_test (test_a_folder_is_not_called_capped),
  };

  return LINUX_TESTS_RUN_WITH ("linux: quotas", tests,
                               set_up, tear_down);
}
