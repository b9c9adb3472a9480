/* SPDX-License-Identifier: Apache-2.0 */
/* core/provider/manifest*.c.  Every file of tests/corpus/manifests says in its
 * first line what reading it must answer: "# expect: LINE:COLUMN: MESSAGE", or
 * "# expect: ok". */

#include <config.h>

#include "harness.h"

#include <dirent.h>
#include <fcntl.h>

#include <coffer/fd.h>

#include "contract/contract.h"
#include "provider/manifest.h"

static const char *
corpus (void)
{
  const char *source = getenv ("COFFER_SOURCE");

  return harness_path (source ? source : "..", "tests/corpus/manifests");
}

static char *
slurp (const char *path, size_t *size)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC);
  char *bytes = NULL;

  assert_true (fd >= 0);
  assert_int_equal (coffer_read_whole (fd, 1 << 20, &bytes, size), 0);
  return bytes;
}

/* What the first line promises; the caller frees. */
static char *
expectation (const char *bytes)
{
  const char *p = strstr (bytes, "# expect: ");

  if (p == NULL || p > bytes + 3)
    return NULL;
  p += strlen ("# expect: ");
  return strndup (p, strcspn (p, "\n"));
}

static int
check_file (const char *dir, const char *name)
{
  size_t size = 0;
  auto_free char *bytes = slurp (harness_path (dir, name), &size);
  auto_free char *expect = expectation (bytes);
  auto_free char *want = NULL;
  auto_error struct error *err = NULL;
  auto_manifest struct manifest *manifest = NULL;
  const char *got;
  int r;

  if (expect == NULL) {
    print_error ("%s: its first line does not say what to expect\n", name);
    return 1;
  }
  r = manifest_parse (bytes, size, name, &manifest, &err);
  got = r == 0 ? "ok" : err->message;
  if (strcmp (expect, "ok") == 0)
    want = strdup ("ok");
  else if (asprintf (&want, "%s:%s", name, expect) < 0)
    abort ();
  if (strcmp (got, want) == 0 && (r == 0) == (manifest != NULL)
      && (r == 0 || err->number == E_MANIFEST))
    return 0;
  print_error ("%s\n  got:  %s\n  want: %s\n", name, got, want);
  return 1;
}

static void
each_file_of_the_corpus_is_answered_as_it_says (void **state)
{
  auto_free char *path = strdup (corpus ());
  DIR *dir = opendir (path);
  struct dirent *item;
  int wrong = 0, files = 0;

  (void) state;
  assert_non_null (dir);
  while ((item = readdir (dir))) {
    if (item->d_name[0] == '.')
      continue;
    wrong += check_file (path, item->d_name);
    files++;
  }
  closedir (dir);
  assert_int_equal (wrong, 0);
  assert_true (files > 100);
}

static struct manifest *
good (void)
{
  size_t size = 0;
  auto_free char *bytes
    = slurp (harness_path (corpus (), "good-full.yaml"), &size);
  struct manifest *manifest = NULL;

  assert_int_equal (manifest_parse (bytes, size, "good", &manifest, NULL), 0);
  return manifest;
}

static void
every_key_arrives (void **state)
{
  auto_manifest struct manifest *m = good ();
  const struct manifest_config *config;

  (void) state;
  assert_string_equal (m->id, "demo");
  assert_string_equal (m->summary, "A demo");
  assert_string_equal (m->version, "0.1.0");
  assert_string_equal (m->license, "Apache-2.0");
  assert_string_equal (m->homepage, "https://example.org/demo");
  assert_int_equal (m->n_modules, 2);
  assert_string_equal (m->modules[1].arch, "aarch64");
  assert_string_equal (m->files[0].name, "helper");
  assert_int_equal (m->contract_major, 0);
  assert_int_equal (m->contract_minor, 1);
  assert_int_equal (m->threads, COFFER_THREADS_SERIAL);
  assert_string_equal (m->capabilities[1], "exec.stdin");
  assert_string_equal (m->never[1], "LIMIT");
  assert_string_equal (m->isolation_kind, "container");
  assert_true (m->host_kernel_shared);
  assert_int_equal (m->n_config, 8);
  config = manifest_find_config (m, "api_key");
  assert_int_equal (config->type, CONFIG_SECRET);
  assert_true (config->required);
  assert_string_equal (config->env, "DEMO_KEY");
  assert_string_equal (config->help, "the key");
  assert_string_equal (manifest_find_config (m, "cache")->default_value,
                       "64MiB");
  assert_null (manifest_find_config (m, "api"));
  assert_string_equal (m->permissions.connect[4], "[::1]:80");
  assert_string_equal (m->permissions.read[0], "/etc/ssl");
  assert_string_equal (m->permissions.write[0], "/srv/demo");
  assert_string_equal (m->permissions.exec[0], "/usr/bin/demo");
  assert_false (m->permissions.exec_any);
  assert_false (m->permissions.namespaces);
  assert_int_equal (m->limits.memory_bytes, 256 << 20);
  assert_int_equal (m->limits.files, 256);
  assert_int_equal (m->limits.processes, 8);
  assert_int_equal (m->limits.calls, 32);
}

static void
the_module_is_the_one_of_this_machine (void **state)
{
  auto_manifest struct manifest *m = good ();
  const struct manifest_module *module = NULL;
  auto_error struct error *err = NULL;
  size_t i;

  (void) state;
  for (i = 0; i < m->n_modules; i++) {
    if (strcmp (m->modules[i].arch, manifest_machine ()) == 0)
      break;
  }
  if (i < m->n_modules) {
    assert_int_equal (manifest_module (m, &module, NULL), 0);
    assert_ptr_equal (module, &m->modules[i]);
  }
  for (i = 0; i < m->n_modules; i++)
    strcpy (m->modules[i].arch, "none");
  assert_int_equal (manifest_module (m, &module, &err), -1);
  assert_int_equal (err->number, E_MODULE);
}

static void
a_manifest_others_can_change_is_not_read (void **state)
{
  size_t size = 0;
  auto_free char *bytes
    = slurp (harness_path (corpus (), "good-full.yaml"), &size);
  const char *path = harness_path (*state, "demo.yaml");
  coffer_autoclose int dir = open (*state, O_PATH | O_CLOEXEC);
  coffer_autoclose int fd = -1;
  auto_manifest struct manifest *m = NULL;
  auto_error struct error *open_to_all = NULL, *link = NULL, *fifo = NULL;

  fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal (coffer_write_all (fd, bytes, size), size);
  assert_int_equal (manifest_load (dir, "demo.yaml", path, &m, NULL), 0);
  assert_string_equal (m->path, path);
  assert_int_equal (strlen (m->sha256), 64);

  fchmod (fd, 0666);
  manifest_free (steal (m));
  assert_int_equal (manifest_load (dir, "demo.yaml", path, &m, &open_to_all),
                    -1);
  assert_int_equal (open_to_all->number, E_UNSAFE_FILE);
  fchmod (fd, 0600);

  assert_int_equal (symlinkat ("demo.yaml", dir, "link.yaml"), 0);
  assert_int_equal (manifest_load (dir, "link.yaml", "link", &m, &link), -1);
  assert_int_equal (link->number, E_UNSAFE_FILE);

  assert_int_equal (mkfifoat (dir, "fifo.yaml", 0600), 0);
  assert_int_equal (manifest_load (dir, "fifo.yaml", "fifo", &m, &fifo), -1);
  assert_int_equal (fifo->number, E_UNSAFE_FILE);
  assert_null (m);
}

static void
paths_targets_and_names_are_told_from_what_only_looks_like_them (void **state)
{
  static const char *const paths[] = { "/", "/a", "/a/b.c", "/...", "/a/..b" };
  static const char *const no_paths[] = { "", "a", "//", "/a/", "/a//b", "/.",
                                          "/..", "/a/./b", "/a/.." };
  static const char *const targets[] = {
    "config", "a:1", "a.b-c.d:65535", "*.a.b:443", "10.0.0.1:80", "[::1]:80",
    "[fe80::1]:1", "unix:/run/x"
  };
  static const char *const no_targets[] = {
    "", "a", "a:", ":1", "a:0", "a:65536", "a:01x", "*:1", "*.:1", "a..b:1",
    "-a:1", "a-:1", "a b:1", "[::1]", "[]:1", "[g]:1", "unix:", "unix:/",
    "unix:x", "tcp:a:1", "a:1/"
  };
  static const char *const no_names[] = { "", ".", "..", ".a", "-a", "a/b",
                                          "a b", "a\n", "é" };
  size_t i;

  (void) state;
#define EACH(array, test)                                                     \
  for (i = 0; i < sizeof (array) / sizeof (array)[0]; i++)                    \
    if (!(test)) {                                                            \
      print_error ("wrong about \"%s\"\n", (array)[i]);                       \
      fail ();                                                                \
    }
  EACH (paths, manifest_is_path (paths[i]))
  EACH (no_paths, !manifest_is_path (no_paths[i]))
  EACH (targets, manifest_is_target (targets[i]))
  EACH (no_targets, !manifest_is_target (no_targets[i]))
  EACH (no_names, !manifest_is_file_name (no_names[i]))
#undef EACH
  assert_true (manifest_is_file_name ("coffer-init"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (each_file_of_the_corpus_is_answered_as_it_says),
    cmocka_unit_test (every_key_arrives),
    cmocka_unit_test (the_module_is_the_one_of_this_machine),
    cmocka_unit_test_setup_teardown (a_manifest_others_can_change_is_not_read,
                                     harness_folder_new, harness_folder_free),
    cmocka_unit_test (
      paths_targets_and_names_are_told_from_what_only_looks_like_them),
  };

  return cmocka_run_group_tests_name ("manifest", tests, NULL, NULL);
}
