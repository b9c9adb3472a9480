/* SPDX-License-Identifier: Apache-2.0 */
/* Folders, manifests and calls for tests of providers. */

#include "config.h"

#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "provider-fixture.h"
#include "provider/integrity.h"

static char *
below (const struct fixture *fixture, const char *name)
{
  char *path = text_printf ("%s/%s", fixture->dir, name);

  assert_non_null (path);
  return path;
}

static void
write_file (const char *path, const char *bytes, size_t size)
{
  int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, bytes, size), size);
  assert_int_equal (fchmod (fd, 0644), 0);
  close (fd);
}

static void
copy_module (const char *module, const char *to)
{
  const char *build = getenv ("COFFER_BUILD");
  auto_free char *from = text_printf ("%s/tests/modules/%s.so",
                                      build ? build : ".", module);
  char *bytes;
  size_t size;
  int fd = open (from, O_RDONLY | O_CLOEXEC);

  if (fd < 0)
    fail_msg ("no module %s", from);
  assert_int_equal (coffer_read_whole (fd, 1 << 28, &bytes, &size), 0);
  close (fd);
  write_file (to, bytes, size);
  free (bytes);
}

/* Helper files, and their part of the manifest. */
static char *
make_helpers (const struct fixture_spec *spec, const char *dir)
{
  char sha256[SHA256_HEX_SIZE], *text = strdup ("files:\n"), *more;
  int i;

  sha256_hex (VECTOR_BODY, strlen (VECTOR_BODY), sha256);
  for (i = 0; i < spec->helpers; i++) {
    auto_free char *path = text_printf ("%s/helper-%d.txt", dir, i);
    write_file (path, VECTOR_BODY, strlen (VECTOR_BODY));
    more = text_printf ("%s  - {name: helper-%d.txt, sha256: \"%s\"}\n",
                        text, i, sha256);
    free (text);
    text = more;
  }
  if (spec->late) {
    auto_free char *path = text_printf ("%s/late.txt", dir);
    write_file (path, VECTOR_BODY, strlen (VECTOR_BODY));
    more = text_printf ("%s  - {name: late.txt, sha256: \"%s\", late: true}\n",
                        text, sha256);
    free (text);
    text = more;
  }
  if (spec->helpers == 0 && !spec->late)
    *text = '\0';
  return text;
}

static void
write_manifest (const struct fixture_spec *spec, const char *dir,
                const char *name)
{
  auto_free char *helpers = make_helpers (spec, dir);
  auto_free char *module = text_printf ("%s.so", spec->module);
  auto_free char *id = strdup (spec->module);
  auto_free char *path = text_printf ("%s/%s", dir, name);
  auto_free char *text = NULL;
  char sha256[SHA256_HEX_SIZE], *p;
  int fd = open (dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

  assert_true (fd >= 0);
  assert_int_equal (integrity_hash (fd, module, sha256, NULL), 0);
  close (fd);
  for (p = id; *p; p++)
    *p = *p == '_' ? '-' : *p;
  text = text_printf (
    "manifest: 1\nid: %s\nsummary: a module of a test\nversion: 0.1.0\n"
    "license: Apache-2.0\n"
    "module:\n  - {arch: %s, file: %s, sha256: \"%s\"}\n"
    "contract: {major: 0, minor: 1}\nthreads: %s\ncapabilities: [%s]\n"
    "isolation: {kind: none, host_kernel_shared: true}\n%s%s\n",
    id, manifest_machine (), module, sha256,
    spec->threads ? spec->threads : "parallel",
    spec->capabilities ? spec->capabilities : "exec, ports, metrics",
    helpers, spec->yaml ? spec->yaml : "");
  assert_non_null (text);
  write_file (path, text, strlen (text));
}

static void
make_place (struct fixture *fixture, const char *libexec)
{
  static const char *const folders[] = { "shipped", "config",
                                         "config/providers.d", "state",
                                         "state/providers", "runtime" };
  const char *build = getenv ("COFFER_BUILD");
  size_t i;

  for (i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    auto_free char *path = below (fixture, folders[i]);
    assert_int_equal (mkdir (path, 0755), 0);
  }
  fixture->place.shipped = below (fixture, "shipped");
  /* As the system's: /var/lib/coffer/providers in /var/lib/coffer. */
  fixture->place.installed = below (fixture, "state/providers");
  fixture->place.config = below (fixture, "config");
  fixture->place.state = below (fixture, "state");
  fixture->place.runtime = below (fixture, "runtime");
  fixture->place.libexec = text_printf (
    "%s/%s", build ? build : ".",
    libexec ? libexec : "core/provider/worker");
  fixture->place.home_override = 1;
}

/* `provider enable` and `install` write a receipt; so does this, of what
 * nobody has judged. */
static void
install_locally (const struct fixture_spec *spec, struct fixture *fixture,
                 const char *id)
{
  auto_free char *dir = text_printf ("%s/%s", fixture->place.installed, id);
  auto_free char *module = text_printf ("%s/%s.so", dir, spec->module);
  auto_free char *receipt = text_printf ("%s/receipt.json", dir);
  auto_free char *config
    = text_printf ("%s/coffer.yaml", fixture->place.config);
  auto_free char *name = text_printf ("%s.yaml", id);
  auto_free char *text = NULL;
  static const char policy[] = "require_conformance: false\n";
  char sha256[SHA256_HEX_SIZE];
  int fd;

  write_file (config, policy, strlen (policy));
  assert_int_equal (mkdir (dir, 0755), 0);
  copy_module (spec->module, module);
  write_manifest (spec, dir, name);
  fd = open (dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  assert_int_equal (integrity_hash (fd, name, sha256, NULL), 0);
  close (fd);
  text = text_printf ("{\"receipt\":1,\"manifest_sha256\":\"%s\","
                      "\"trust\":\"local\"}", sha256);
  write_file (receipt, text, strlen (text));
}

struct fixture *
fixture_new (const struct fixture_spec *spec)
{
  struct fixture *fixture = calloc (1, sizeof *fixture);
  char dir[] = "/tmp/coffer-unit-XXXXXX", *p;
  auto_free char *id = strdup (spec->module), *module = NULL;
  struct error *error = NULL;

  assert_non_null (mkdtemp (dir));
  assert_int_equal (chmod (dir, 0755), 0);
  fixture->dir = strdup (dir);
  make_place (fixture, spec->libexec);
  for (p = id; *p; p++)
    *p = *p == '_' ? '-' : *p;
  if (spec->local) {
    install_locally (spec, fixture, id);
  } else {
    auto_free char *name = text_printf ("%s.yaml", id);
    module = text_printf ("%s/%s.so", fixture->place.shipped, spec->module);
    copy_module (spec->module, module);
    write_manifest (spec, fixture->place.shipped, name);
  }
  if (spec->operator_yaml) {
    auto_free char *path = text_printf ("%s/providers.d/%s.yaml",
                                        fixture->place.config, id);
    write_file (path, spec->operator_yaml, strlen (spec->operator_yaml));
  }
  if (registry_load_one (&fixture->place, id, &fixture->registry, &error) < 0
      || registry_find (fixture->registry, id, &fixture->entry, &error) < 0)
    fail_msg ("registry: %s", error->message);
  return fixture;
}

void
fixture_free (struct fixture *fixture)
{
  void *dir = fixture->dir;

  provider_close (fixture->provider);
  registry_free (fixture->registry);
  harness_folder_free (&dir);
  free (fixture->place.shipped);
  free (fixture->place.installed);
  free (fixture->place.config);
  free (fixture->place.state);
  free (fixture->place.runtime);
  free (fixture->place.libexec);
  free (fixture);
}

static int
number_of (struct error *take, struct error **err)
{
  int number = take->number;

  if (err)
    *err = take;
  else
    error_free (take);
  return number;
}

int
fixture_open (struct fixture *fixture, enum provider_mode mode,
              struct error **err)
{
  struct error *error = NULL;

  if (provider_open (fixture->entry, &fixture->place, mode,
                     &fixture->provider, &error) == 0)
    return 0;
  assert_non_null (error);
  return number_of (error, err);
}

static void
keep (char *out, size_t size, const char *text)
{
  snprintf (out, size, "%s", text ? text : "");
}

static int
hear_record (void *data, const struct contract_record *type, void *record)
{
  struct heard *heard = data;
  struct coffer_stream *stream = record;
  const struct coffer_fact *fact = record;

  if (type->id == COFFER_REC_stream) {
    heard->fd = stream->fd;
    stream->fd = -1;
  }
  if (type->id != COFFER_REC_fact)
    return 0;
  heard->facts++;
  keep (heard->name, sizeof heard->name, fact->name);
  keep (heard->state, sizeof heard->state, fact->state);
  keep (heard->value, sizeof heard->value, fact->value);
  return heard->stop_after > 0 && heard->facts >= heard->stop_after;
}

static void
hear_progress (void *data, uint64_t done, uint64_t total, const char *what)
{
  struct heard *heard = data;

  heard->progress++;
  snprintf (heard->value, sizeof heard->value, "%d of %d %s", (int) done,
            (int) total, what);
}

int
fixture_say (struct fixture *fixture, const char *word, int64_t ms,
             int cancel_fd, struct heard *heard, struct error **err)
{
  static struct heard ignored;
  struct provider_call call = {
    .deadline_ns = coffer_now_ns () + ms * 1000000, .cancel_fd = cancel_fd,
    .sink = { .record = hear_record, .progress = hear_progress,
              .data = heard ? heard : &ignored }
  };
  struct error *error = NULL;

  if (INVOKE (fixture->provider, &call, &error, sandbox_info, .sandbox = word)
      == 0)
    return 0;
  assert_non_null (error);
  return number_of (error, err);
}

/* All of its threads: the first of them may be a zombie before the others, and
 * what they share, are gone. */
int
fixture_process_lives (int pid)
{
  coffer_autoclose int fd = (int) syscall (SYS_pidfd_open, pid, 0);
  struct pollfd ended = { fd, POLLIN, 0 };

  return fd >= 0 && poll (&ended, 1, 0) == 0;
}

struct fixture *
fixture_start (const struct fixture_spec *spec)
{
  struct fixture *fixture = fixture_new (spec);
  struct error *error = NULL;

  if (fixture_open (fixture, PROVIDER_WORKER, &error) != 0)
    fail_msg ("open: E%d %s", error->number, error->message);
  return fixture;
}

struct fixture *
fixture_start_plain (void)
{
  return fixture_start (&(struct fixture_spec){ .module = "hostile" });
}

/* What a program takes here and now, to tell a busy machine from a host that
 * was held up. */
static int64_t
time_of_a_program (void)
{
  const int64_t began = coffer_now_ns ();
  pid_t pid = fork ();

  if (pid == 0) {
    execl ("/bin/true", "true", (char *) NULL);
    _exit (127);
  }
  assert_true (pid > 0);
  assert_int_equal (waitpid (pid, NULL, 0), pid);
  return coffer_now_ns () - began;
}

/* Within a second, or what twenty programs take where that is longer. */
void
fixture_assert_serves (struct fixture *fixture)
{
  const int64_t began = coffer_now_ns (), second = INT64_C (1000000000);
  struct heard heard = { .facts = 0 };
  struct error *error = NULL;
  int64_t took;

  if (fixture_say (fixture, "ok:still", HARNESS_PATIENCE_MS, -1, &heard,
                   &error) != 0)
    fail_msg ("next call: E%d %s", error->number, error->message);
  assert_string_equal (heard.value, "still");
  took = coffer_now_ns () - began;
  if (took >= second && took >= 20 * time_of_a_program ())
    fail_msg ("next call: took %lld ms", (long long) (took / 1000000));
}

void
fixture_assert_refused (struct fixture *fixture, const char *word, const char *value)
{
  struct heard heard = { .facts = 0 };
  struct error *error = NULL;

  if (fixture_say (fixture, word, 20000, -1, &heard, &error) != 0)
    fail_msg ("%s: E%d %s", word, error->number, error->message);
  if (strcmp (heard.state, "refused") != 0
      || (value && strcmp (heard.value, value) != 0))
    fail_msg ("%s: %s %s", word, heard.state, heard.value);
}

void
fixture_assert_done (struct fixture *fixture, const char *word, const char *value)
{
  struct heard heard = { .facts = 0 };
  struct error *error = NULL;

  if (fixture_say (fixture, word, 20000, -1, &heard, &error) != 0)
    fail_msg ("%s: E%d %s", word, error->number, error->message);
  if (strcmp (heard.state, "done") != 0
      || (value && strcmp (heard.value, value) != 0))
    fail_msg ("%s: %s %s", word, heard.state, heard.value);
}

int
fixture_reap_within (int ms, int *status)
{
  int pid = 0;

  while (ms > 0 && (pid = waitpid (-1, status, WNOHANG)) == 0) {
    usleep (5000);
    ms -= 5;
  }
  return pid;
}

int
fixture_children (int parent)
{
  DIR *proc = opendir ("/proc");
  struct dirent *entry;
  char path[300], line[64];
  int n = 0;
  FILE *file;

  while ((entry = readdir (proc))) {
    snprintf (path, sizeof path, "/proc/%s/comm", entry->d_name);
    file = fopen (path, "re");
    if (!file)
      continue;
    if (fgets (line, sizeof line, file)
        && strcmp (line, "coffer-worker\n") == 0) {
      char stat_path[300];
      int ppid = 0;
      snprintf (stat_path, sizeof stat_path, "/proc/%s/stat", entry->d_name);
      fclose (file);
      file = fopen (stat_path, "re");
      if (file && fscanf (file, "%*d %*s %*c %d", &ppid) == 1)
        n += ppid == parent;
    }
    if (file)
      fclose (file);
  }
  closedir (proc);
  return n;
}
