/* SPDX-License-Identifier: Apache-2.0 */
/* core/provider/seal.c: hashes go where they belong and nothing else of the
 * text changes; what the gate refuses is not sealed. */

#include <config.h>

#include "harness.h"

#include <dirent.h>
#include <fcntl.h>

#include <coffer/fd.h>

#include "provider/integrity.h"
#include "provider/manifest.h"
#include "provider/seal.h"

#define HEAD                                                                  \
  "# café ☃, a comment\nmanifest: 1\nid: bad\nsummary: \"你好 世界/'q\"\n"     \
  "version: 1\nlicense: MIT\n"
#define TAIL                                                                  \
  "contract: {major: 0, minor: 1}   # the contract\nthreads: serial\n"        \
  "capabilities: [exec]\n"                                                    \
  "isolation: {kind: none, host_kernel_shared: true}\n"

static const char *
at (void **state, const char *name)
{
  return harness_path (*state, name);
}

static void
put (const char *path, const void *bytes, size_t size)
{
  coffer_autoclose int fd
    = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, bytes, size), size);
}

static char *
get (const char *path)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC);
  char *bytes = NULL;
  size_t size = 0;

  assert_true (fd >= 0);
  assert_int_equal (coffer_read_whole (fd, 16 << 20, &bytes, &size), 0);
  return bytes;
}

/* The module, under the name that its note has. */
static void
put_module (void **state, const char *module)
{
  const char *build = getenv ("COFFER_BUILD");
  coffer_autoclose int dir
    = open (harness_path (build ? build : ".", "tests/modules"),
            O_PATH | O_CLOEXEC);
  coffer_autoclose int fd = openat (dir, module, O_RDONLY | O_CLOEXEC);
  auto_free char *bytes = NULL;
  size_t size = 0;

  assert_true (fd >= 0);
  assert_int_equal (coffer_read_whole (fd, 16 << 20, &bytes, &size), 0);
  put (at (state, "bad.so"), bytes, size);
}

static int
seal (void **state, const char *dir, const char *output, struct error **err)
{
  struct seal_report report;
  int r = seal_manifest (at (state, "bad.yaml"), dir, output, &report, err);

  if (r == 0)
    seal_report_fini (&report);
  return r;
}

static void
hash_of (void **state, const char *name, char *out)
{
  coffer_autoclose int dir = open (*state, O_PATH | O_CLOEXEC);

  assert_int_equal (integrity_hash (dir, name, out, NULL), 0);
}

static void
sealed_as (void **state, const char *before, const char *format)
{
  char module[SHA256_HEX_SIZE], helper[SHA256_HEX_SIZE];
  auto_free char *want = NULL, *got = NULL, *again = NULL;
  auto_error struct error *err = NULL;

  put_module (state, "good.so");
  put (at (state, "helper"), VECTOR_BODY, strlen (VECTOR_BODY));
  put (at (state, "bad.yaml"), before, strlen (before));
  if (seal (state, NULL, NULL, &err) < 0)
    print_error ("%s\n", err->message);
  assert_null (err);
  hash_of (state, "bad.so", module);
  hash_of (state, "helper", helper);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  if (asprintf (&want, format, module, helper) < 0)
    abort ();
#pragma GCC diagnostic pop
  got = get (at (state, "bad.yaml"));
  assert_string_equal (got, want);
  assert_int_equal (seal (state, NULL, NULL, NULL), 0);
  again = get (at (state, "bad.yaml"));
  assert_string_equal (again, want);
}

#define THIS "arch: x86_64"
#if defined __aarch64__
#undef THIS
#define THIS "arch: aarch64"
#endif

static void
hashes_replace_what_was_there_and_comments_stay (void **state)
{
  sealed_as (state,
             HEAD "module:\n"
             "  - {" THIS ", file: bad.so, sha256: ''}  # ours\n"
             "  - {arch: s390x, file: other.so, sha256: \"\"}\n"
             "files: [{name: helper, sha256: \"\"}]\n" TAIL,
             HEAD "module:\n"
             "  - {" THIS ", file: bad.so, sha256: \"%s\"}  # ours\n"
             "  - {arch: s390x, file: other.so, sha256: \"\"}\n"
             "files: [{name: helper, sha256: \"%s\"}]\n" TAIL);
}

static void
keys_that_were_not_there_are_added (void **state)
{
  sealed_as (state,
             HEAD "module:\n"
             "- file: bad.so     # the file\n"
             "  " THIS "    # the machine\n"
             "files:\n"
             "    -   name: helper\n" TAIL,
             HEAD "module:\n"
             "- file: bad.so     # the file\n"
             "  " THIS "    # the machine\n"
             "  sha256: \"%s\"\n"
             "files:\n"
             "    -   name: helper\n"
             "        sha256: \"%s\"\n" TAIL);
}

static void
a_text_that_ends_without_a_newline_is_sealed (void **state)
{
  sealed_as (state,
             HEAD TAIL "files: [{name: helper}]\n"
             "module:\n  - file: bad.so\n    " THIS,
             HEAD TAIL "files: [{name: helper, sha256: \"%2$s\"}]\n"
             "module:\n  - file: bad.so\n    " THIS
             "\n    sha256: \"%1$s\"");
}

#define PLAIN HEAD "module: [{" THIS ", file: bad.so}]\n" TAIL

static void
the_result_goes_where_it_is_asked_for (void **state)
{
  auto_free char *kept = NULL, *sealed = NULL;
  auto_manifest struct manifest *m = NULL;
  char hash[SHA256_HEX_SIZE];

  put_module (state, "good.so");
  assert_int_equal (mkdir (at (state, "apart"), 0700), 0);
  assert_int_equal (rename (at (state, "bad.so"), at (state, "apart/bad.so")),
                    0);
  put (at (state, "bad.yaml"), PLAIN, strlen (PLAIN));
  assert_int_equal (seal (state, at (state, "apart"), at (state, "new.yaml"),
                          NULL), 0);
  kept = get (at (state, "bad.yaml"));
  assert_string_equal (kept, PLAIN);
  sealed = get (at (state, "new.yaml"));
  assert_int_equal (manifest_parse (sealed, strlen (sealed), "new", &m, NULL),
                    0);
  assert_int_equal (rename (at (state, "apart/bad.so"),
                            at (state, "bad.so")), 0);
  hash_of (state, "bad.so", hash);
  assert_string_equal (m->modules[0].sha256, hash);
}

static int
count_files (void **state)
{
  DIR *dir = opendir (*state);
  struct dirent *item;
  int n = 0;

  while ((item = readdir (dir)))
    n += item->d_name[0] != '.' || strlen (item->d_name) > 2;
  closedir (dir);
  return n;
}

static void
what_the_gate_refuses_is_not_sealed (void **state)
{
  static const struct {
    const char *module;
    int number;
  } cases[] = {
    { "execstack.so", E_MODULE }, { "rpath.so", E_MODULE },
    { "twosymbols.so", E_MODULE }, { "minor.so", E_CONTRACT_VERSION },
  };
  size_t i;

  put (at (state, "bad.yaml"), PLAIN, strlen (PLAIN));
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    auto_error struct error *err = NULL;
    auto_free char *kept = NULL;

    put_module (state, cases[i].module);
    assert_int_equal (seal (state, NULL, NULL, &err), -1);
    assert_int_equal (err->number, cases[i].number);
    kept = get (at (state, "bad.yaml"));
    assert_string_equal (kept, PLAIN);
    assert_int_equal (count_files (state), 2);
  }
}

static void
manifest_and_module_must_agree (void **state)
{
  static const char renamed[]
    = HEAD "module: [{" THIS ", file: other.so}]\n" TAIL;
  auto_error struct error *err = NULL, *missing = NULL;

  put (at (state, "bad.yaml"), renamed, strlen (renamed));
  assert_int_equal (seal (state, NULL, NULL, &missing), -1);
  assert_int_equal (missing->number, E_INTEGRITY);
  put_module (state, "good.so");
  assert_int_equal (rename (at (state, "bad.so"), at (state, "other.so")), 0);
  assert_int_equal (seal (state, NULL, NULL, &err), -1);
  assert_int_equal (err->number, E_MODULE);
}

int
main (void)
{
#define IN_FOLDER(test)                                                       \
  cmocka_unit_test_setup_teardown (test, harness_folder_new,                  \
                                   harness_folder_free)
  const struct CMUnitTest tests[] = {
    IN_FOLDER (hashes_replace_what_was_there_and_comments_stay),
    IN_FOLDER (keys_that_were_not_there_are_added),
    IN_FOLDER (a_text_that_ends_without_a_newline_is_sealed),
    IN_FOLDER (the_result_goes_where_it_is_asked_for),
    IN_FOLDER (what_the_gate_refuses_is_not_sealed),
    IN_FOLDER (manifest_and_module_must_agree),
  };

  return cmocka_run_group_tests_name ("seal", tests, NULL, NULL);
}
