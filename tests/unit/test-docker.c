/* SPDX-License-Identifier: Apache-2.0 */
/* The docker provider: what it asks of an engine, in which order, and what it
 * makes of what engines answer. */

#define _GNU_SOURCE

#include "harness.h"

#include <fcntl.h>

#include <coffer/fd.h>

#include "docker-fixture.h"

/* ---- create ------------------------------------------------------------- */

static void
test_create (void **state)
{
  const char *const env[] = {"A=" VECTOR_BODY, NULL};
  const struct engine_line lines[] = {
    PING,
    {.request = "POST /v1.41/containers/create?name=" NAME, .status = 201,
     .body = "{\"Id\":\"c0ffee\"}"},
    {.request = "POST /v1.41/containers/" NAME "/attach", .status = 101,
     .said = "ok"},
    {.request = "POST /v1.41/containers/" NAME "/start", .status = 204},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = inspect_of (RUNNING, OURS)},
    END,
  };
  struct coffer_sandbox_spec spec = no_spec ();
  const struct coffer_sandbox_info *info;
  const struct coffer_buffer *told;

  (void) state;
  spec.env = env;
  engine_script (lines);
  assert_int_equal (create (&spec), COFFER_OK);
  told = engine_told ();
  assert_int_equal (told->size, sizeof (struct inside_told) + 1
                                + sizeof "A=" VECTOR_BODY);
  engine_done ();
  info = FAKEHOST_GET (&host, sandbox_info, 0);
  assert_non_null (info);
  assert_string_equal (info->state, "running");
  assert_string_equal (info->native_id, "c0ffee");
  assert_string_equal (info->template_name, "bb:1@sha256:12");
  assert_int_equal (info->created_ns, INT64_C (1796047698500000000));
}

static void
assert_text (const json_t *value, const char *text)
{
  assert_non_null (json_string_value (value));
  assert_string_equal (json_string_value (value), text);
}

/* What is sent whatever is asked for: each line holds something back. */
static void
test_hardened (void **state)
{
  const struct engine_line lines[] = {
    PING,
    {.request = "POST /v1.41/containers/create", .status = 500,
     .body = "{\"message\":\"no\"}"},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 404},
    END,
  };
  const char *const env[] = {"SECRET=hunter22", NULL};
  struct coffer_sandbox_spec spec = no_spec ();
  char *whole;

  (void) state;
  spec.env = env;
  spec.memory_bytes = 100 << 20;
  spec.pids = 33;
  spec.cpu_millis = 1500;
  spec.disk_bytes = 8 << 20;
  spec.inodes = 400;
  engine_script (lines);
  assert_int_equal (create (&spec), COFFER_IO);
  engine_done ();
  assert_int_equal (host.failures, 1);
  assert_text (json_array_get (host_config ("CapDrop"), 0), "ALL");
  assert_null (host_config ("CapAdd"));
  assert_null (host_config ("Privileged"));
  assert_null (host_config ("Devices"));
  assert_int_equal (json_array_size (host_config ("SecurityOpt")), 1);
  assert_text (json_array_get (host_config ("SecurityOpt"), 0),
               "no-new-privileges:true");
  assert_true (json_is_true (host_config ("ReadonlyRootfs")));
  assert_text (host_config ("NetworkMode"), "none");
  assert_text (host_config ("IpcMode"), "private");
  assert_null (host_config ("PidMode"));
  assert_null (host_config ("UsernsMode"));
  assert_int_equal (json_integer_value (host_config ("Memory")), 100 << 20);
  assert_int_equal (json_integer_value (host_config ("MemorySwap")),
                    100 << 20);
  assert_int_equal (json_integer_value (host_config ("PidsLimit")), 33);
  assert_int_equal (json_integer_value (host_config ("NanoCpus")), 1500000000);
  assert_text (json_object_get (host_config ("Tmpfs"), "/workspace"),
               "size=6291456,nr_inodes=300,mode=0770,uid=60999,gid=60999,"
               "nosuid,nodev,rw,exec");
  assert_text (json_object_get (host_config ("Tmpfs"), "/tmp"),
               "size=2097152,nr_inodes=100,mode=0770,uid=60999,gid=60999,"
               "nosuid,nodev,rw,exec");
  assert_int_equal (json_array_size (host_config ("Mounts")), 1);
  assert_text (json_object_get (engine_sent (), "User"), "60998:60999");
  whole = json_dumps (engine_sent (), 0);
  assert_null (strstr (whole, "hunter22"));
  free (whole);
}

static void
test_podman (void **state)
{
  const struct engine_line lines[] = {
    PING_PODMAN,
    {.request = "POST /v1.41/volumes/create", .status = 201},
    {.request = "POST /v1.41/volumes/create", .status = 500,
     .body = "{\"message\":\"x: volume already exists\"}"},
    {.request = "POST /v1.41/containers/create", .status = 500,
     .body = "{\"message\":\"no\"}"},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 404},
    {.request = "DELETE /v1.41/volumes/" NAME "-w", .status = 204},
    {.request = "DELETE /v1.41/volumes/" NAME "-t", .status = 404},
    END,
  };
  struct coffer_sandbox_spec spec = no_spec ();

  (void) state;
  spec.disk_bytes = 8 << 20;
  engine_script (lines);
  assert_int_equal (create (&spec), COFFER_IO);
  engine_done ();
  assert_null (json_object_get (host_config ("Tmpfs"), "/workspace"));
  assert_int_equal (json_array_size (host_config ("Mounts")), 3);
  assert_text (json_object_get (json_array_get (host_config ("Mounts"), 1),
                                "Source"), NAME "-w");
}

/* What was begun is ended, and the failure is that of the step. */
static void
test_create_undone (void **state)
{
  const struct {
    int attach, start;
    const char *said, *message;
    int32_t code;
  } cases[] = {
    {500, 0, NULL, "attach", COFFER_IO},
    {101, 500, "ok", "no such runtime", COFFER_IO},
    {101, 204, NULL, "ended at once", COFFER_UNAVAILABLE},
    {101, 204, "moved /mnt/a b", "/mnt/a b", COFFER_DENIED},
    {101, 204, "ended 512", "with 2", COFFER_INVALID},
    {101, 204, "failed x", "could not begin", COFFER_IO},
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct engine_line lines[] = {
      PING,
      {.request = "POST /v1.41/containers/create", .status = 201,
       .body = "{\"Id\":\"c0ffee\"}"},
      {.request = "POST /v1.41/containers/" NAME "/attach",
       .status = cases[i].attach, .said = cases[i].said,
       .body = "{\"message\":\"attach\"}"},
      {.request = cases[i].start ? "POST /v1.41/containers/" NAME "/start"
                                 : "DELETE /v1.41/containers/" NAME,
       .status = cases[i].start ? cases[i].start : 204,
       .body = "{\"message\":\"no such runtime\"}"},
      {.request = cases[i].start ? "DELETE /v1.41/containers/" NAME : NULL,
       .status = 204},
      END,
    };
    struct coffer_sandbox_spec spec = no_spec ();

    fakehost_reset (&host, HARNESS_PATIENCE_MS);
    engine_script (lines + (i > 0));
    assert_int_equal (create (&spec), cases[i].code);
    engine_done ();
    assert_non_null (strstr (host.message, cases[i].message));
    assert_int_equal (host.failures, 1);
    assert_int_equal (fakehost_count (&host, COFFER_REC_sandbox_info), 0);
  }
}

/* One that is there and runs is told of, however bad the answer to the second
 * create was: nothing of it is undone. */
static void
test_create_twice (void **state)
{
  const struct engine_line lines[] = {
    PING,
    {.request = "POST /v1.41/containers/create", .status = 409,
     .body = "{\"message\":\"the name is in use\"}"},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = inspect_of (RUNNING, OURS)},
    {.request = "POST /v1.41/containers/create", .status = 0,
     .code = COFFER_IO},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = inspect_of (RUNNING, OURS)},
    END,
  };
  struct coffer_sandbox_spec spec = no_spec ();

  (void) state;
  engine_script (lines);
  assert_int_equal (create (&spec), COFFER_OK);
  assert_non_null (FAKEHOST_GET (&host, sandbox_info, 0));
  fakehost_reset (&host, HARNESS_PATIENCE_MS);
  assert_int_equal (create (&spec), COFFER_IO);
  engine_done ();
}

static void
test_pull (void **state)
{
  const struct engine_line lines[] = {
    PING,
    {.request = "POST /v1.41/containers/create", .status = 404},
    {.request = "POST /v1.41/images/create?fromImage=reg.example:5/d@sha256:ab",
     .status = 200, .body = "{\"error\":\"denied: not yours\"}"},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 404},
    {.request = "POST /v1.41/containers/create", .status = 404},
    {.request = "POST /v1.41/images/create?fromImage=bb:1", .status = 200,
     .body = "{\"id\":\"a\",\"progressDetail\":{\"current\":1,\"total\":9}}"},
    {.request = "POST /v1.41/containers/create", .status = 404},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 404},
    {.request = "POST /v1.41/containers/create", .status = 404},
    {.request = "POST /v1.41/images/create?fromImage=bb:1",
     .code = COFFER_TIMEOUT},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 404},
    END,
  };
  struct coffer_sandbox_spec spec = no_spec ();

  (void) state;
  engine_script (lines);
  spec.template_name = "data";
  assert_int_equal (create (&spec), COFFER_UNAUTHENTICATED);
  assert_non_null (strstr (host.message, "registry_auth"));
  spec.template_name = NULL;
  fakehost_reset (&host, HARNESS_PATIENCE_MS);
  assert_int_equal (create (&spec), COFFER_INVALID);
  assert_true (host.progress >= 2);
  fakehost_reset (&host, HARNESS_PATIENCE_MS);
  assert_int_equal (create (&spec), COFFER_TIMEOUT);
  assert_non_null (strstr (host.message, "pull bb:1: not there in time"));
  engine_done ();
}

static void
test_refused (void **state)
{
  const char *const require[] = {"landlock", NULL};
  struct coffer_sandbox_spec specs[9];
  const char *const fields[] = {"network", "filter", "landlock", "user",
                                "ports", "template", "memory_bytes", "image",
                                "image"};
  const char *const ports[] = {"80", "65536", NULL};
  size_t i;

  (void) state;
  for (i = 0; i < 9; i++)
    specs[i] = no_spec ();
  specs[0].network = "host";
  specs[1].filter = "strict";
  specs[2].require = require;
  specs[3].user = "root";
  specs[4].ports = ports;
  specs[5].template_name = "nothing";
  specs[6].memory_bytes = 1000;
  specs[7].image = "-v";
  specs[8].image = "a b";
  engine_script (NULL);
  for (i = 0; i < 9; i++) {
    fakehost_reset (&host, HARNESS_PATIENCE_MS);
    assert_int_not_equal (create (&specs[i]), COFFER_OK);
    assert_non_null (strstr (host.message, fields[i]));
  }
}

/* ---- the rest ----------------------------------------------------------- */

static void
test_gone (void **state)
{
  const struct engine_line lines[] = {
    PING,
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 404},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = inspect_of (RUNNING, "another")},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 404},
    {.request = "DELETE /v1.41/containers/" NAME, .status = 404},
    {.request = "POST /v1.41/containers/" NAME "/pause", .status = 404},
    END,
  };

  (void) state;
  engine_script (lines);
  for (int i = 0; i < 2; i++)
    assert_int_equal (docker_sandbox_info (&host.call, docker, "sb-1", NULL),
                      COFFER_NOT_FOUND);
  assert_int_equal (docker_sandbox_kill (&host.call, docker, "sb-1", NULL),
                    COFFER_NOT_FOUND);
  assert_int_equal (docker_sandbox_pause (&host.call, docker, "sb-1", NULL),
                    COFFER_NOT_FOUND);
  assert_int_equal (docker_sandbox_info (&host.call, docker, "../x", NULL),
                    COFFER_INVALID);
  engine_done ();
  assert_int_equal (host.count, 0);
}

/* Of what is past its time only a frozen one is still there: it is ended. */
static void
test_past_its_time (void **state)
{
  const struct engine_line lines[] = {
    PING,
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = inspect_of ("\"Running\":true,\"Paused\":true", OURS)},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = inspect_of ("\"Running\":true,\"Paused\":true", OURS)},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = paused_on ("runc")},
    {.request = "DELETE /v1.41/containers/" NAME, .status = 204},
    END,
  };

  (void) state;
  assert_int_equal (docker_end_write (docker, NAME, 5), 0);
  engine_script (lines);
  assert_int_equal (docker_sandbox_info (&host.call, docker, "sb-1", NULL),
                    COFFER_NOT_FOUND);
  engine_done ();
  assert_int_equal (docker_end_read (docker, NAME), 0);
}

static void
test_paused_twice (void **state)
{
  const struct engine_line lines[] = {
    PING,
    {.request = "POST /v1.41/containers/" NAME "/pause", .status = 500},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = inspect_of ("\"Running\":true,\"Paused\":true", OURS)},
    END,
  };

  (void) state;
  engine_script (lines);
  assert_int_equal (docker_sandbox_pause (&host.call, docker, "sb-1", NULL),
                    COFFER_OK);
  engine_done ();
}

static void
test_list (void **state)
{
  const struct engine_line lines[] = {
    PING,
    {.request = "GET /v1.41/containers/json?all=1&filters=%7B%22label%22%3A%5B"
                "%22coffer.host%3D" OURS "%22%5D%7D", .status = 200,
     .body = "[{\"Id\":\"1\",\"Names\":[\"/" NAME "\"],\"State\":\"running\","
             "\"Labels\":{\"coffer.sandbox\":\"sb-1\"}},"
             "{\"Id\":\"2\",\"Names\":[\"/x\"],\"State\":\"exited\","
             "\"Created\":1,\"Labels\":{\"coffer.sandbox\":\"sb-2\"}},"
             "{\"Id\":\"3\",\"Names\":[\"/y\"],\"State\":\"running\","
             "\"Labels\":{\"coffer.sandbox\":\"../3\"}}]"},
    {.request = "GET /v1.41/containers/coffer-" OURS "-sb-2/json",
     .status = 200, .body = inspect_of ("\"Running\":false", OURS)},
    {.request = "DELETE /v1.41/containers/coffer-" OURS "-sb-2",
     .status = 204},
    END,
  };

  (void) state;
  engine_script (lines);
  assert_int_equal (docker_sandbox_list (&host.call, docker, NULL), COFFER_OK);
  engine_done ();
  assert_int_equal (fakehost_count (&host, COFFER_REC_sandbox_info), 1);
  assert_string_equal (FAKEHOST_GET (&host, sandbox_info, 0)->sandbox, "sb-1");
}

/* One that another process of this host is just making is left alone. */
static void
test_list_making (void **state)
{
  const struct engine_line lines[] = {
    PING,
    {.request = "GET /v1.41/containers/json", .status = 200,
     .body = "[{\"Id\":\"1\",\"Names\":[\"/" NAME "\"],\"State\":\"created\","
             "\"Labels\":{\"coffer.sandbox\":\"sb-1\"}}]"},
    END,
  };
  int lock = docker_maker_try (docker, NAME);

  (void) state;
  assert_true (lock >= 0);
  assert_int_equal (docker_maker_try (docker, NAME), -1);
  engine_script (lines);
  assert_int_equal (docker_sandbox_list (&host.call, docker, NULL), COFFER_OK);
  engine_done ();
  docker_maker_end (docker, NAME, &lock);
  lock = docker_maker_try (docker, NAME);
  assert_true (lock >= 0);
  docker_maker_end (docker, NAME, &lock);
}

static void
test_no_engine (void **state)
{
  const struct engine_line lines[] = {
    {.request = "GET /_ping", .code = COFFER_UNAVAILABLE}, END,
  };
  const struct engine_line strange[] = {
    {.request = "GET /_ping", .code = COFFER_NOT_FOUND}, END,
  };

  (void) state;
  engine_script (lines);
  assert_int_equal (docker_probe (&host.call, docker, NULL),
                    COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.message, "DOCKER_HOST"));
  engine_done ();
  /* Of a sandbox that says nothing. */
  engine_script (strange);
  assert_int_equal (docker_sandbox_kill (&host.call, docker, "a", NULL),
                    COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.message, "no container engine"));
  engine_done ();
}

/* All that runs is one user. */
static void
test_user (void **state)
{
  (void) state;
  assert_int_equal (docker_check_user (&host.call, docker, "60999"), COFFER_OK);
  assert_int_equal (docker_check_user (&host.call, docker, "60999:60999"),
                    COFFER_OK);
  for (const char *const *user = (const char *const[]) {
         "0", "root", "6099", "60999:0", "", NULL}; *user; user++) {
    assert_int_equal (docker_check_user (&host.call, docker, *user),
                      COFFER_UNSUPPORTED);
    assert_non_null (strstr (host.message, "the user 60999:60999"));
  }
}

/* ---- credentials --------------------------------------------------------- */

static const char *helper_answer;       /* NULL: minus NOT_FOUND; "": it fails */
static char helper_target[256];

static int32_t
ask_helper (struct fakehost *from, const char *target)
{
  int ends[2];

  (void) from;
  snprintf (helper_target, sizeof helper_target, "%s", target);
  if (!helper_answer || !*helper_answer)
    return helper_answer ? -COFFER_UNAUTHENTICATED : -COFFER_NOT_FOUND;
  assert_int_equal (pipe (ends), 0);
  assert_true (write (ends[1], helper_answer, strlen (helper_answer)) > 0);
  close (ends[1]);
  return ends[0];
}

#define AUTH "\"auths\":{\"r.example\":{\"auth\":\"dTpw\"}}"
#define IS_PLAIN \
  ("X-Registry-Auth: " \
   "eyJ1c2VybmFtZSI6InUiLCJwYXNzd29yZCI6InAiLCJzZXJ2ZXJhZGRy" \
   "ZXNzIjoici5leGFtcGxlIn0=")
#define IS_TOKEN \
  ("X-Registry-Auth: " \
   "eyJpZGVudGl0eXRva2VuIjoidCIsInNlcnZlcmFkZHJlc3MiOiJyLmV4" \
   "YW1wbGUifQ==")
#define IS_HUB \
  ("X-Registry-Auth: " \
   "eyJ1c2VybmFtZSI6ImsiLCJwYXNzd29yZCI6InciLCJzZXJ2ZXJhZGRy" \
   "ZXNzIjoiaHR0cHM6Ly9pbmRleC5kb2NrZXIuaW8vdjEvIn0=")

static void
test_credentials (void **state)
{
  const struct {
    const char *store, *image, *answer;
    int32_t code;
    const char *header, *target;        /* NULL: none */
  } cases[] = {
    {"{" AUTH "}", "r.example/x:1", NULL, COFFER_OK, IS_PLAIN, NULL},
    {"{" AUTH "}", "other.example/x", NULL, COFFER_OK, NULL, NULL},
    {("{\"auths\":{\"r.example\":{\"auth\":\"dTpw\","
      "\"identitytoken\":\"t\"}}}"), "r.example/x", NULL, COFFER_OK, IS_TOKEN,
     NULL},
    {"{" AUTH ",\"helped\":{\"*\":true,\"r.example\":false}}",
     "r.example/x", NULL, COFFER_OK, IS_PLAIN, NULL},
    {"{" AUTH ",\"helped\":{\"r.example\":true}}", "r.example/x",
     "{\"identitytoken\":\"t\"}", COFFER_OK, IS_TOKEN,
     "credential:registry_auth:r.example"},
    {"{" AUTH ",\"helped\":{\"*\":true}}", "x/y",
     "{\"username\":\"k\",\"password\":\"w\"}", COFFER_OK, IS_HUB,
     "credential:registry_auth:https://index.docker.io/v1/"},
    {"{" AUTH ",\"helped\":{\"*\":true}}", "docker.io/x/y",
     "{\"username\":\"k\",\"password\":\"w\"}", COFFER_OK, IS_HUB,
     "credential:registry_auth:https://index.docker.io/v1/"},
    {"{\"auths\":{\"docker.io\":{\"auth\":\"azp3\"}}}", "x/y", NULL,
     COFFER_OK, IS_HUB, NULL},
    {("{\"auths\":{\"https://index.docker.io/v1/\":"
      "{\"auth\":\"azp3\"}}}"), "docker.io/x/y", NULL, COFFER_OK, IS_HUB,
     NULL},
    {"{" AUTH ",\"helped\":{\"*\":true}}", "r.example/x", NULL, COFFER_OK,
     NULL, "credential:registry_auth:r.example"},
    {"{" AUTH ",\"helped\":{\"*\":true}}", "r.example/x", "",
     COFFER_UNAUTHENTICATED, NULL, "credential:registry_auth:r.example"},
    {"{" AUTH ",\"helped\":{\"*\":true}}", "r.example/x", "no JSON",
     COFFER_IO, NULL, "credential:registry_auth:r.example"},
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct docker other = {.config.registry_auth = (char *) cases[i].store};
    struct coffer_buffer header = {0};

    fakehost_reset (&host, HARNESS_PATIENCE_MS);
    host.connect = ask_helper;
    helper_answer = cases[i].answer;
    helper_target[0] = '\0';
    assert_int_equal (docker_credentials (&host.call, &other, cases[i].image,
                                          &header), cases[i].code);
    assert_string_equal (header.data ? header.data : "",
                         cases[i].header ? cases[i].header : "");
    assert_string_equal (helper_target,
                         cases[i].target ? cases[i].target : "");
    docker_buffer_wipe (&header);
  }
  host.connect = NULL;
}

static void
test_config (void **state)
{
  const struct {
    const char *entry;
    int32_t code;
  } cases[] = {
    {"user=0:5", COFFER_INVALID}, {"user=5:0", COFFER_INVALID},
    {"user=root", COFFER_INVALID}, {"user=5:5x", COFFER_INVALID},
    {"user=7:8", COFFER_OK}, {"engine=ssh://x", COFFER_INVALID},
    {"engine=unix://run", COFFER_INVALID},
    {"registry_auth=secret-text", COFFER_UNAUTHENTICATED},
    {"registry_auth={\"auths\":{}}", COFFER_OK},
    {"pull_timeout=90s", COFFER_OK},
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *const config[] = {"engine=tcp://h:1", cases[i].entry, NULL};
    struct docker other = {.stop = -1, .runtime = -1};

    fakehost_reset (&host, HARNESS_PATIENCE_MS);
    assert_int_equal (docker_configure (&host.call, &other, config),
                      cases[i].code);
    if (host.message)
      assert_null (strstr (host.message, "secret-text"));
    docker_config_fini (&other.config);
  }
}

static void
test_time (void **state)
{
  (void) state;
  assert_int_equal (docker_time_ns ("1970-01-01T00:00:01Z"), 1000000000);
  assert_int_equal (docker_time_ns ("1970-01-01T01:00:01.25+01:00"),
                    1250000000);
  assert_int_equal (docker_time_ns ("0001-01-01T00:00:00Z"), 0);
  assert_int_equal (docker_time_ns ("soon"), 0);
  assert_int_equal (docker_time_ns (NULL), 0);
}

/* The stream ends when the lifeline does. */
static void
test_lifeline (void **state)
{
  const struct engine_line lines[] = {
    PING,
    {.request = "POST /v1.41/containers/create", .status = 201,
     .body = "{\"Id\":\"c0ffee\"}"},
    {.request = "POST /v1.41/containers/" NAME "/attach", .status = 101,
     .said = "ok"},
    {.request = "POST /v1.41/containers/" NAME "/start", .status = 204},
    {.request = "GET /v1.41/containers/" NAME "/json", .status = 200,
     .body = inspect_of (RUNNING, OURS)},
    END,
  };
  struct coffer_sandbox_spec spec = no_spec ();
  int ends[2];

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  spec.lifeline = ends[0];
  engine_script (lines);
  assert_int_equal (create (&spec), COFFER_OK);
  close (ends[0]);
  assert_text (json_array_get (json_object_get (engine_sent (), "Entrypoint"),
                               3), "lifeline");
  assert_false (engine_ended (0));
  close (ends[1]);
  assert_true (engine_ended (HARNESS_PATIENCE_MS));
  engine_done ();
}

int
main (void)
{
#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown (name, docker_setup, docker_teardown)
  const struct CMUnitTest tests[] = {
    TEST (test_create), TEST (test_hardened), TEST (test_podman),
    TEST (test_create_undone), TEST (test_create_twice), TEST (test_pull),
    TEST (test_refused), TEST (test_gone), TEST (test_past_its_time),
    TEST (test_paused_twice), TEST (test_list),
    TEST (test_list_making), TEST (test_no_engine),
    TEST (test_user), TEST (test_config), TEST (test_time), TEST (test_lifeline),
    TEST (test_credentials),
  };

  return cmocka_run_group_tests_name ("docker", tests, harness_folder_new,
                                      harness_folder_free);
}
