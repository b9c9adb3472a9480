/* SPDX-License-Identifier: Apache-2.0 */
/* The docker provider: which kernel a container has, and what follows from it. */

#define _GNU_SOURCE

#include "harness.h"

#include <fcntl.h>

#include "docker-fixture.h"

#define MADE                                                                  \
  {.request = "POST /v1.41/containers/create?name=" NAME, .status = 201,      \
   .body = "{\"Id\":\"c0ffee\"}"}
#define BEGUN                                                                 \
  {.request = "POST /v1.41/containers/" NAME "/attach", .status = 101,        \
   .said = "ok"},                                                             \
  {.request = "POST /v1.41/containers/" NAME "/start", .status = 204},        \
  {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,           \
   .body = inspect_of (RUNNING, OURS)}

static void
test_kernel_named (void **state)
{
  static const char text[]
    = "{\"Runtimes\":{\"safe\":{\"path\":\"/opt/bin/runsc\"},\"vm\":{\"path\":"
      "\"/usr/bin/kata-runtime\"},\"v1\":{\"runtimeType\":"
      "\"io.containerd.runsc.v1\"},\"mine\":{\"path\":\"/opt/runc\"}}}";
  static const struct {
    const char *name;
    enum docker_kernel by_name, by_info;
  } rows[] = {
    {"runc", KERNEL_SHARED, KERNEL_SHARED},
    {"crun", KERNEL_SHARED, KERNEL_SHARED},
    {"/usr/bin/crun", KERNEL_SHARED, KERNEL_SHARED},
    {"io.containerd.runc.v2", KERNEL_SHARED, KERNEL_SHARED},
    {"runsc", KERNEL_GVISOR, KERNEL_GVISOR},
    {"runsc-debug", KERNEL_GVISOR, KERNEL_GVISOR},
    {"/usr/bin/runsc", KERNEL_GVISOR, KERNEL_GVISOR},
    {"safe", KERNEL_OTHER, KERNEL_GVISOR},
    {"v1", KERNEL_OTHER, KERNEL_GVISOR},
    {"mine", KERNEL_OTHER, KERNEL_SHARED},
    {"vm", KERNEL_OTHER, KERNEL_OTHER},
    {"", KERNEL_OTHER, KERNEL_OTHER},
  };
  json_t *info = json_loads (text, 0, NULL);

  (void) state;
  assert_non_null (info);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal (docker_kernel_named (rows[i].name, NULL),
                      rows[i].by_name);
    assert_int_equal (docker_kernel_named (rows[i].name, info),
                      rows[i].by_info);
  }
  json_decref (info);
}

/* The engine has gVisor as its usual runtime, under a name of its own: the first
 * that is made is made anew, and those after it at once as they should be. */
static void
test_kernel_found (void **state)
{
  const struct engine_line first[] = {
    PING, MADE,
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = "{\"HostConfig\":{\"Runtime\":\"safe\"}}"},
    {.request = "GET /v1.41/info", .status = 200,
     .body = "{\"Runtimes\":{\"safe\":{\"path\":\"/opt/runsc\"}}}"},
    {.request = "DELETE /v1.41/containers/" NAME, .status = 204},
    MADE, BEGUN, END,
  };
  const struct engine_line second[] = {MADE, BEGUN, END};
  struct coffer_sandbox_spec spec = no_spec ();

  (void) state;
  spec.pids = 0;
  engine_script (first);
  assert_int_equal (create (&spec), COFFER_OK);
  engine_done ();
  assert_int_equal (json_integer_value (host_config ("PidsLimit")), 4096);
  assert_null (host_config ("Runtime"));
  engine_script (second);
  assert_int_equal (create (&spec), COFFER_OK);
  engine_done ();
  assert_int_equal (json_integer_value (host_config ("PidsLimit")), 4096);
}

static void
test_kernel_shared (void **state)
{
  const struct engine_line lines[] = {
    PING_PODMAN,
    {.request = "POST /v1.41/volumes/create", .status = 201},
    {.request = "POST /v1.41/volumes/create", .status = 201},
    MADE,
    {.request = "GET /v1.41/libpod/containers/" NAME "/json", .status = 200,
     .body = "{\"OCIRuntime\":\"runc\",\"HostConfig\":{\"Runtime\":\"oci\"}}"},
    BEGUN, END,
  };
  struct coffer_sandbox_spec spec = no_spec ();

  (void) state;
  spec.pids = 0;
  engine_script (lines);
  assert_int_equal (create (&spec), COFFER_OK);
  engine_done ();
  assert_int_equal (json_integer_value (host_config ("PidsLimit")), 256);
}

/* What a mount shows is compared by numbers, where the container's kernel is the
 * machine's: asked each time, and whatever was found before. */
static void
test_kernel_mounts (void **state)
{
  static const struct {
    const char *answer;
    int is_compared;
  } rows[] = {
    {"{\"HostConfig\":{\"Runtime\":\"runsc\"}}", 0},
    {"{\"HostConfig\":{\"Runtime\":\"runc\"}}", 1},
  };
  const struct coffer_mount mount = {
    .size = sizeof mount, .target = "/mnt",
    .source_fd = open ("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
  };
  const struct coffer_mount *const mounts[] = {&mount, NULL};
  struct coffer_sandbox_spec spec = no_spec ();

  (void) state;
  spec.mounts = mounts;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct engine_line lines[] = {
      PING, MADE,
      {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
       .body = rows[i].answer},
      BEGUN, END,
    };
    struct inside_told told;

    engine_script (lines + (i > 0));
    assert_int_equal (create (&spec), COFFER_OK);
    assert_true (engine_told ()->size >= sizeof told);
    memcpy (&told, engine_told ()->data, sizeof told);
    assert_int_equal (told.mounts_size > 0, rows[i].is_compared);
    engine_done ();
  }
  close (mount.source_fd);
}

/* ---- paused ones ----------------------------------------------------- */

/* What stands still under gVisor takes no signal: it goes on before it is ended,
 * whatever becomes of that. */
static void
test_paused_kernel (void **state)
{
  const struct {
    const char *runtime;
    int resumed;
  } cases[] = {{"runsc", 204}, {"of-a-stranger", 500}, {"runc", 0}};

  (void) state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct engine_line gone = {
      .request = "DELETE /v1.41/containers/" NAME, .status = 204
    };
    const struct engine_line lines[] = {
      PING,
      {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
       .body = paused_on (cases[i].runtime)},
      cases[i].resumed
        ? (struct engine_line) {.request = "POST /v1.41/containers/" NAME
                                           "/unpause",
                                .status = cases[i].resumed}
        : gone,
      cases[i].resumed ? gone : (struct engine_line) END,
      END,
    };

    engine_script (lines + (i > 0));
    assert_int_equal (docker_sandbox_kill (&host.call, docker, "sb-1", NULL),
                      COFFER_OK);
    engine_done ();
  }
}

int
main (void)
{
#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown (name, docker_setup, docker_teardown)
  const struct CMUnitTest tests[] = {
    TEST (test_kernel_named), TEST (test_kernel_found),
    TEST (test_kernel_shared), TEST (test_kernel_mounts),
    TEST (test_paused_kernel),
  };

  return cmocka_run_group_tests_name ("docker kernels", tests,
                                      harness_folder_new,
                                      harness_folder_free);
}
