/* SPDX-License-Identifier: Apache-2.0 */
/* The names in the root of a sandbox that are the same in every one.  Its init
 * makes them; for root they are made once, by the provider (skeleton.c). */

#ifndef LINUX_ROOT_NAMES_H
#define LINUX_ROOT_NAMES_H

static const char *const root_folders[]
  = { "proc", "dev", "dev/pts", "dev/shm", "tmp", "workspace", "run", "var",
      "home", "opt" };

struct root_link {
  const char *target, *path;
};

static const struct root_link root_links[]
  = { { "../tmp", "var/tmp" },
      { "pts/ptmx", "dev/ptmx" },
      { "/proc/self/fd", "dev/fd" },
      { "/proc/self/fd/0", "dev/stdin" },
      { "/proc/self/fd/1", "dev/stdout" },
      { "/proc/self/fd/2", "dev/stderr" } };

/* Some containers lack the last. */
static const char *const root_devices[]
  = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
      "/dev/tty" };

/* Links into /usr, or folders as that is. */
static const char *const root_systems[]
  = { "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32" };

#define ROOT_BYTES (4 << 20)
#define ROOT_INODES 4096
#define ROOT_ZONE "/usr/share/zoneinfo/Etc/UTC"

/* ---- /etc --------------------------------------------------------------- */

struct etc_file {
  const char *path, *text;
};

static const struct etc_file etc_files[] = {
  { "etc/passwd",
    "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
    "user:x:1000:1000:user:/workspace:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
  { "etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n" },
  { "etc/nsswitch.conf",
    "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
    "networks: files\nprotocols: files\nservices: files\n" },
  { "etc/hosts", "127.0.0.1 localhost coffer\n::1 localhost coffer\n" },
  { "etc/resolv.conf", "# This sandbox has no network.\n" },
  { "etc/mime.types",
    "application/gzip gz\napplication/json json\napplication/pdf pdf\n"
    "application/wasm wasm\napplication/x-tar tar\napplication/xml xml\n"
    "application/zip zip\naudio/mpeg mp3\naudio/wav wav\nfont/woff2 woff2\n"
    "image/gif gif\nimage/jpeg jpg jpeg\nimage/png png\n"
    "image/svg+xml svg\nimage/webp webp\ntext/css css\ntext/csv csv\n"
    "text/html html htm\ntext/javascript js mjs\ntext/markdown md\n"
    "text/plain txt\ntext/x-python py\nvideo/mp4 mp4\nvideo/webm webm\n" },
};

#endif /* LINUX_ROOT_NAMES_H */
