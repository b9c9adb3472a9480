/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a fuzz target without libFuzzer: every seed, then mutations of seeds,
 * 10000 times CHECK_SCALE, from a fixed start.  A target that finds something
 * aborts; the input is then in the file that this said it would be in. */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#define SEEDS_MAX 512
#define SIZE_LIMIT (256 * 1024)
#define MUTATIONS 10000

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

struct seed {
  uint8_t *bytes;
  size_t size;
};

static struct seed seeds[SEEDS_MAX];
static size_t n_seeds;
static const char *name;
static uint64_t state = 0x9e3779b97f4a7c15u;

/* The input that runs now, for the signal handler. */
static const uint8_t *current;
static size_t current_size;

static uint64_t
random_below (uint64_t bound)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return bound ? state % bound : 0;
}

static void
keep_input (int signal_number)
{
  char path[128];
  coffer_autoclose int fd = -1;

  snprintf (path, sizeof path, "crash-%s", name);
  fd = open (path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0)
    coffer_write_all (fd, current, current_size);
  signal (signal_number, SIG_DFL);
  raise (signal_number);
}

static void
run (const uint8_t *bytes, size_t size)
{
  /* A copy of the exact size: a read beyond it is seen by ASan. */
  uint8_t *copy = malloc (size ? size : 1);

  if (!copy)
    abort ();
  if (size)
    memcpy (copy, bytes, size);
  current = copy;
  current_size = size;
  LLVMFuzzerTestOneInput (copy, size);
  free (copy);
}

static int
seed_read (int dir, const char *file)
{
  coffer_autoclose int fd = openat (dir, file, O_RDONLY | O_CLOEXEC);
  char *bytes;

  if (fd < 0 || n_seeds == SEEDS_MAX
      || coffer_read_whole (fd, SIZE_LIMIT, &bytes, &seeds[n_seeds].size) < 0)
    return -1;
  seeds[n_seeds++].bytes = (uint8_t *) bytes;
  return 0;
}

static int
seeds_read (void)
{
  const char *source = getenv ("COFFER_SOURCE");
  char path[4096];
  struct dirent *entry;
  DIR *dir;
  int r = 0;

  snprintf (path, sizeof path, "%s/tests/fuzz/seeds/%s", source ? source : ".",
            name);
  dir = opendir (path);
  if (!dir) {
    printf ("# %s: %s\n", path, strerror (errno));
    return -1;
  }
  while (r == 0 && (entry = readdir (dir))) {
    if (entry->d_name[0] != '.')
      r = seed_read (dirfd (dir), entry->d_name);
  }
  closedir (dir);
  return n_seeds ? r : -1;
}

/* ---- mutations ---------------------------------------------------------- */

static size_t
insert_bytes (uint8_t *bytes, size_t size, size_t room)
{
  const struct seed *other = &seeds[random_below (n_seeds)];
  size_t at = random_below (size + 1);
  size_t from = random_below (other->size + 1);
  size_t n = random_below (other->size - from + 1);

  if (n > room - size)
    n = room - size;
  memmove (bytes + at + n, bytes + at, size - at);
  memcpy (bytes + at, other->bytes + from, n);
  return size + n;
}

static size_t
remove_bytes (uint8_t *bytes, size_t size)
{
  size_t at = random_below (size);
  size_t n = random_below (size - at) + 1;

  memmove (bytes + at, bytes + at + n, size - at - n);
  return size - n;
}

static void
change_number (uint8_t *bytes, size_t size)
{
  static const uint64_t odd[] = { 0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff,
                                  0xffffffff, 0x7fffffffffffffff,
                                  0xffffffffffffffff };
  uint64_t value = odd[random_below (sizeof odd / sizeof *odd)];
  size_t width = (size_t) 1 << random_below (4);

  if (width <= size)
    memcpy (bytes + random_below (size - width + 1), &value, width);
}

static size_t
mutate_once (uint8_t *bytes, size_t size, size_t room)
{
  if (!size)
    return insert_bytes (bytes, size, room);
  switch (random_below (5)) {
  case 0:
    bytes[random_below (size)] ^= (uint8_t) (1u << random_below (8));
    return size;
  case 1:
    bytes[random_below (size)] = (uint8_t) random_below (256);
    return size;
  case 2:
    return insert_bytes (bytes, size, room);
  case 3:
    return remove_bytes (bytes, size);
  default:
    change_number (bytes, size);
    return size;
  }
}

static void
mutations_run (unsigned long count)
{
  static uint8_t bytes[SIZE_LIMIT];

  for (unsigned long i = 0; i < count; i++) {
    const struct seed *seed = &seeds[random_below (n_seeds)];
    size_t size = seed->size;

    memcpy (bytes, seed->bytes, size);
    for (uint64_t n = random_below (6) + 1; n; n--)
      size = mutate_once (bytes, size, sizeof bytes);
    run (bytes, size);
  }
}

static unsigned long
scale (void)
{
  const char *value = getenv ("CHECK_SCALE");
  unsigned long factor = value ? strtoul (value, NULL, 10) : 1;

  return factor < 1 ? 1 : factor > 1000 ? 1000 : factor;
}

int
main (int argc, char **argv)
{
  static const int fatal[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
  const char *stem = strstr (argv[0], "fuzz-");

  (void) argc;
  for (const char *next = stem; next; next = strstr (next + 1, "fuzz-"))
    stem = next;
  name = stem ? stem + strlen ("fuzz-") : argv[0];
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
    signal (fatal[i], keep_input);
  puts ("1..2");
  if (seeds_read () < 0) {
    puts ("not ok 1 - seeds are there and run");
    return 1;
  }
  for (size_t i = 0; i < n_seeds; i++)
    run (seeds[i].bytes, seeds[i].size);
  printf ("# %zu seeds; a crash leaves its input in crash-%s\n", n_seeds,
          name);
  puts ("ok 1 - seeds are there and run");
  fflush (stdout);
  mutations_run (MUTATIONS * scale ());
  puts ("ok 2 - mutations run");
  for (size_t i = 0; i < n_seeds; i++)
    free (seeds[i].bytes);
  return 0;
}
