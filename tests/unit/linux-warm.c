/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter that stands ready, commands that are copies of it, and what
 * /proc has of them. */

#include "harness.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "linux-host.h"
#include "linux-warm.h"

struct linux_host host;
struct outcome outcome;

const char *const python[]
  = { "python3", "-I", "-S", "-c", "import posix\nposix.write(1, b'cold')",
      NULL };

/* Runs what it reads; `told` is of its modules. */
const char program[]
  = "import os, sys\n"
    "count = 0\n"
    "def prepare(modules):\n"
    "    missing = []\n"
    "    for name in modules:\n"
    "        try: __import__(name)\n"
    "        except ImportError: missing.append(name)\n"
    "    return missing\n"
    "def run():\n"
    "    global count\n"
    "    count += 1\n"
    "    code = b''\n"
    "    while piece := os.read(0, 65536):\n"
    "        code += piece\n"
    "    exec(compile(code, '<test>', 'exec'), globals())\n"
    "    sys.stdout.flush()\n"
    "    os._exit(0)\n";

const struct coffer_sandbox_spec strict
  = { .size = sizeof strict, .lifeline = -1, .filter = "strict" };

int32_t
open_with (const char *text, const char *const *modules)
{
  const struct coffer_warm_open_opts opts = { .size = sizeof opts,
                                              .modules = modules };
  const int in = coffer_memfd_sealed ("program", text, strlen (text));
  int32_t code;

  assert_true (in >= 0);
  code = host.ops->warm_open (host_call (&host, 60000), host.self, "minimal",
                              in, &opts);
  close (in);
  return code;
}

const char *
warm (void)
{
  static char handle[32];

  if (open_with (program, NULL) != COFFER_OK)
    fail_msg ("%s", host.error);
  snprintf (handle, sizeof handle, "%s", host.exec);
  return handle;
}

void
create (const char *id, const struct coffer_sandbox_spec *spec)
{
  if (host_create (&host, id, spec) != COFFER_OK)
    fail_msg ("%s", host.error);
}

/* In a sandbox of its own; what the last one was stays known. */
void
run (const char *code, uint64_t timeout_ms)
{
  static unsigned n;
  char id[32];

  snprintf (id, sizeof id, "warm%u", n++);
  create (id, &strict);
  host.warm = warm ();
  if (host_run (&host, id, python, NULL, code, timeout_ms, &outcome)
      != COFFER_OK)
    fail_msg ("%s", host.error);
  host.warm = NULL;
  assert_int_equal (host_kill (&host, id), COFFER_OK);
}

int
child_of (int parent, const char *name)
{
  char path[64], text[4096], state, *at;
  DIR *dir = opendir ("/proc");
  struct dirent *entry;
  int found = 0, of, fd;
  ssize_t n;

  assert_non_null (dir);
  while ((entry = readdir (dir)) != NULL) {
    if (!isdigit ((unsigned char) entry->d_name[0]))
      continue;
    snprintf (path, sizeof path, "/proc/%.20s/stat", entry->d_name);
    fd = open (path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read (fd, text, sizeof text - 1);
    coffer_fd_close (&fd);
    text[n > 0 ? n : 0] = '\0';
    at = strrchr (text, ')');
    if (at != NULL && sscanf (at, ") %c %d", &state, &of) == 2
        && of == parent
        && (name == NULL || (state != 'Z' && strstr (text, name) != NULL)))
      found = atoi (entry->d_name);
  }
  closedir (dir);
  return found;
}

void
file_of (int pid, const char *name, char *out, size_t size)
{
  char path[64];
  ssize_t n;
  int fd;

  snprintf (path, sizeof path, "/proc/%d/%s", pid, name);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    fail_msg ("%s: %s", path, strerror (errno));
  n = coffer_read_all (fd, out, size - 1);
  assert_true (n >= 0);
  out[n] = '\0';
  close (fd);
}

void
link_of (int pid, const char *name, char *out, size_t size)
{
  char path[64];
  ssize_t n;

  snprintf (path, sizeof path, "/proc/%d/%s", pid, name);
  n = readlink (path, out, size - 1);
  if (n < 0)
    fail_msg ("%s: %s", path, strerror (errno));
  out[n] = '\0';
}

/* Like the program above, but it waits instead of reading code. */
const char waiting[]
  = "import posix\n"
    "def prepare(modules): return []\n"
    "def run():\n"
    "    posix.write(1, b'up\\n')\n"
    "    posix.read(0, 1)\n";

void
line_of (const char *text, const char *key, char *out, size_t size)
{
  const char *at = strstr (text, key);

  if (at == NULL)
    fail_msg ("no %s", key);
  snprintf (out, size, "%.*s", (int) strcspn (at, "\n"), at);
}

/* Whether coffer was built with it. */
int
built (void)
{
  const char *build = getenv ("COFFER_BUILD");
  char path[4096];

  snprintf (path, sizeof path, "%s/plugins/linux/coffer-warm.so",
            build ? build : ".");
  return access (path, F_OK) == 0;
}
