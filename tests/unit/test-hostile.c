/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile modules in real workers, by table: what is tried, and what outside of
 * the worker shows whether it was done.  While each of them runs a call on
 * another provider is served within a second, over and over; afterwards nothing
 * of it is left: no process, no descriptor, no secret in what was said. */

#include "config.h"

#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "hostile-world.h"
#include "provider-fixture.h"
#include "provider/opening.h"

#define SECRET "sk-hostile/0123456789+abc def"
#define SECRET_URL "sk-hostile%2F0123456789%2Babc%20def"
#define SECRET_URL_ALL "%73%6B%2D%68%6F%73%74%69%6C%65"
#define SECRET_BASE64 "c2staG9zdGlsZS8wMTIzNDU2Nzg5K2FiYyB"
#define ANY (-1)
#define MOST_SAID (256 * 1024)
#define MOST_LOG (4 << 20)
#define EXEC "permissions: {exec: [/usr/bin/true]}\n"
#define SMALL "limits: {memory: 64MiB, files: 64, calls: 4}\n"

struct run;

struct attack {
  const char *name, *word;
  int number;                   /* what the call ends with; ANY */
  const char *yaml;             /* NULL: no permission at all */
  int ms;                       /* its deadline; 0: five seconds */
  /* What besides the world shows that it won: NULL when it did not. */
  const char *(*lost) (struct run *run);
  int limits;                   /* of memory, which sanitizers lift */
};

struct run {
  const struct attack *attack;
  struct fixture *fixture;
  struct coffer_buffer said;    /* its records, as JSON */
  struct error *error;
  char word[600];
  int number, pid;
  int64_t took_ns;
  const char *seen;             /* while it ran */
  pthread_t thread;
  atomic_int done;
};

static struct world world;
static struct fixture *bystander;

/* ---- running one ---------------------------------------------------------- */

static int
hear (void *data, const struct contract_record *type, void *record)
{
  struct run *run = data;
  struct contract_fds fds = { .count = 0 };
  json_t *json = NULL;

  if (run->said.size < MOST_SAID
      && contract_encode_record (type, record, &json, &fds, NULL) == 0) {
    auto_free char *text = json_dumps (json, 0);
    coffer_buffer_add_string (&run->said, text ? text : "");
    json_decref (json);
  }
  return 0;
}

static void
hear_progress (void *data, uint64_t done, uint64_t total, const char *what)
{
  struct run *run = data;

  (void) done;
  (void) total;
  if (run->said.size < MOST_SAID)
    coffer_buffer_add_string (&run->said, what);
}

static void
say_word (struct run *run, const char *word, int ms)
{
  struct provider_call call = {
    .deadline_ns = coffer_now_ns () + ms * 1000000LL, .cancel_fd = -1,
    .sink = { .record = hear, .progress = hear_progress, .data = run }
  };

  error_free (run->error);
  run->error = NULL;
  run->number = INVOKE (run->fixture->provider, &call, &run->error,
                        sandbox_info, .sandbox = word) == 0
                ? 0 : run->error->number;
}

static void *
run_main (void *data)
{
  struct run *run = data;
  int64_t began = coffer_now_ns ();

  say_word (run, run->word, run->attack->ms ? run->attack->ms : 5000);
  run->took_ns = coffer_now_ns () - began;
  run->done = 1;
  return NULL;
}

static void
run_start (struct run *run, const struct attack *attack)
{
  auto_free char *yaml = text_printf (
    "%sconfig:\n  api_key: {type: secret, required: true, "
    "env: COFFER_TEST_KEY}", attack->yaml ? attack->yaml : "");

  memset (run, 0, sizeof *run);
  run->attack = attack;
  run->fixture = fixture_start (&(struct fixture_spec){ .module = "hostile",
                                                        .yaml = yaml });
  run->pid = provider_worker_pid (run->fixture->provider);
  snprintf (run->word, sizeof run->word, "%s",
            world_expand (&world, attack->word));
  assert_int_equal (pthread_create (&run->thread, NULL, run_main, run), 0);
}

static const char *
process_file (int pid, const char *name, char *out, size_t size)
{
  auto_free char *path = text_printf ("/proc/%d/%s", pid, name);
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read (fd, out, size - 1), i;

  coffer_fd_close (&fd);
  for (i = 0; i < n; i++)
    out[i] = out[i] ? out[i] : ' ';
  out[n > 0 ? n : 0] = '\0';
  return out;
}

/* What everybody can read of the worker while the attack runs. */
static void
look (struct run *run)
{
  static const char *const names[] = { "comm", "cmdline", "status", "stat" };
  auto_free char *tasks = text_printf ("/proc/%d/task", run->pid);
  DIR *dir = opendir (tasks);
  struct dirent *entry;
  char text[4096];
  size_t i;

  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strstr (process_file (run->pid, names[i], text, sizeof text),
                "sk-hosti"))
      run->seen = "the secret in the process's title";
  while (dir && (entry = readdir (dir))) {
    auto_free char *name = text_printf ("task/%s/comm", entry->d_name);
    if (strstr (process_file (run->pid, name, text, sizeof text), "sk-hosti"))
      run->seen = "the secret in a thread's name";
  }
  if (dir)
    closedir (dir);
}

/* Calls of the other provider until all of these have ended. */
static void
serve_bystander (struct run *runs, size_t n)
{
  size_t i, done = 0;

  do {
    fixture_assert_serves (bystander);
    for (i = done = 0; i < n; i++) {
      look (&runs[i]);
      done += runs[i].done;
    }
    usleep (2000);
  } while (done < n);
}

/* ---- what shows that it won ----------------------------------------------- */

static const char *
has_secret (const char *text)
{
  return !text ? NULL
         : strstr (text, world.key) ? "what was in the key's file"
         : strstr (text, SECRET) || strstr (text, SECRET_URL)
               || strstr (text, SECRET_URL_ALL)
               || strstr (text, SECRET_BASE64)
           ? "the secret" : NULL;
}

static const char *
run_told (const struct run *run)
{
  auto_free char *details = run->error && run->error->details
                            ? json_dumps (run->error->details, 0) : NULL;
  const char *what = has_secret (run->said.data);

  if (!what && run->error)
    what = has_secret (run->error->message);
  return what ? what : has_secret (details);
}

/* A log of bounded size, of lines that move no cursor. */
static const char *
log_is_wrong (void)
{
  size_t size, i;
  auto_free char *log = world_log (&world, &size);

  if (size > MOST_LOG)
    return "a flood in the log";
  for (i = 0; i < size; i++)
    if ((unsigned char) log[i] < ' ' && log[i] != '\n')
      return "a control character in the log";
  return strstr (log, "\xc2\x9b") ? "a control character in the log"
                                  : has_secret (log);
}

static const char *
run_lost (struct run *run)
{
  const char *what = run_told (run);
  int64_t most = (run->attack->ms ? run->attack->ms : 5000) * 1000000LL
                 + HARNESS_PATIENCE_NS;

  if (!what && run->attack->number != ANY
      && run->attack->number != run->number)
    what = run->error ? run->error->message : "it ended well";
  if (!what && run->took_ns > most)
    what = "it went on";
  if (!what && run->attack->lost)
    what = run->attack->lost (run);
  return what ? what : run->seen;
}

/* The victim and the other provider's worker are there, and nobody else. */
static int
others_are_gone (void)
{
  int64_t until = coffer_now_ns () + HARNESS_PATIENCE_NS;

  while (world_children () > 2 && coffer_now_ns () < until)
    usleep (5000);
  return world_children () == 2;
}

static void
run_end (struct run *run)
{
  fixture_free (run->fixture);
  coffer_buffer_free (&run->said);
  error_free (run->error);
}

/* Standard error is looked at, and not shown. */
static void
complain (const char *name, const char *what)
{
  print_message ("# %s: %s\n", name, what);
  fail ();
}

static void
judge (struct run *runs, size_t n)
{
  const char *what = NULL, *name = "";
  auto_free char *text = NULL;
  size_t i;

  for (i = 0; i < n; i++)
    pthread_join (runs[i].thread, NULL);
  for (i = 0; i < n && !what; i++) {
    what = run_lost (&runs[i]);
    name = runs[i].attack->name;
  }
  text = what ? strdup (what) : NULL;   /* some of it is the run's */
  for (i = 0; i < n; i++)
    run_end (&runs[i]);
  if (text)
    complain (name, text);
  what = world_touched (&world);
  if (!what)
    what = log_is_wrong ();
  if (!what && !others_are_gone ())
    what = "a process is left";
  if (!what && world_open_descriptors () != world.descriptors)
    what = "a descriptor is left";
  if (what)
    complain (n == 1 ? name : "one of these", what);
}

/* ---- particular losses ---------------------------------------------------- */

static const char *
lost_if_done (struct run *run)
{
  return run->said.data && strstr (run->said.data, "\"state\": \"done\"")
         ? "it says that it was done" : NULL;
}

/* The number that it says that it got, at most so many MiB. */
static const char *
lost_if_more_than (const struct run *run, int mib)
{
  const char *at = run->said.data ? strstr (run->said.data, "\"value\": \"")
                                  : NULL;

  return at && atoi (at + 10) > mib ? "memory beyond its limit" : NULL;
}

static const char *
lost_memory (struct run *run)
{
  char text[4096];
  const char *peak = strstr (process_file (run->pid, "status", text,
                                           sizeof text), "VmHWM:");

  if (peak && atoi (peak + 6) > 96 * 1024)
    return "memory beyond its limit";
  return lost_if_more_than (run, 64);
}

static const char *
lost_kernel_memory (struct run *run)
{
  return lost_if_more_than (run, 16);
}

static const char *
lost_files_in_memory (struct run *run)
{
  return lost_if_more_than (run, 0);
}

static const char *
lost_limits (struct run *run)
{
  struct rlimit limit;

  if (prlimit (run->pid, RLIMIT_NOFILE, NULL, &limit) == 0
      && limit.rlim_max > 64)
    return "its limit of files was raised";
  if (prlimit (run->pid, RLIMIT_CORE, NULL, &limit) == 0
      && limit.rlim_max > 0)
    return "its limit of dumps was raised";
  return lost_if_done (run);
}

static int n_set;

static int
count_set (const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
  (void) path;
  (void) ftw;
  n_set += kind != FTW_SL && (st->st_mode & (S_ISUID | S_ISGID)) != 0;
  n_set += S_ISCHR (st->st_mode) || S_ISBLK (st->st_mode);
  return 0;
}

/* Nothing runs as somebody else, and the provider can be opened again. */
static const char *
lost_folders (struct run *run)
{
  n_set = 0;
  nftw (run->fixture->dir, count_set, 16, FTW_PHYS);
  if (n_set > 0)
    return "a file with a bit that lends its owner's rights, or a device";
  provider_close (run->fixture->provider);
  run->fixture->provider = NULL;
  return fixture_open (run->fixture, PROVIDER_WORKER, NULL) == 0
         ? NULL : "the provider cannot be opened again";
}

/* Noticed when it happens, and not when the call's time is over. */
static const char *
lost_time (struct run *run)
{
  return run->took_ns > HARNESS_PATIENCE_NS ? "the host did not notice" : NULL;
}

/* The same provider goes on, whatever was still on its way. */
static const char *
lost_next (struct run *run)
{
  int i;

  for (i = 0; i < 4; i++)
    say_word (run, "sleep:30", 5000);
  return run->number == 0 ? NULL : run->error->message;
}

/* Eight bytes of the secret in a row, when the lines are joined. */
static const char *
lost_joined (struct run *run)
{
  auto_free char *joined = world_joined_log (&world);
  char piece[9];
  size_t i;

  (void) run;
  for (i = 0; i + 8 < sizeof SECRET; i++) {
    snprintf (piece, sizeof piece, "%.8s", &SECRET[i]);
    if (strstr (joined, piece))
      return "the secret, in the joined log";
  }
  return strstr (joined, "[hidden]") || strchr (joined, '*')
         ? NULL : "nothing was said";
}

/* ---- the table ------------------------------------------------------------ */

static const struct attack attacks[] = {
  /* files */
  { "reads_a_key", "steal:{ssh}", 0, .lost = lost_if_done },
  { "reads_a_key_with_rights_elsewhere", "steal:{ssh}", 0,
    .yaml = "permissions: {read: [/etc/hostname], write: [/dev/null]}\n",
    .lost = lost_if_done },
  { "plants_a_file", "plant:{new}", 0, .lost = lost_if_done },
  { "litters_its_folders", "litter:{new}", 0, .lost = lost_folders },
  /* sockets */
  { "dials_inet", "dial:inet:{inet}", 0, .lost = lost_if_done },
  { "dials_inet6", "dial:inet6:{inet6}", 0, .lost = lost_if_done },
  { "sends_a_datagram", "dial:udp:{udp}", 0, .lost = lost_if_done },
  { "dials_unix", "dial:unix:{unix}", 0 },
  { "dials_an_abstract_name", "dial:unix:{abstract}", 0 },
  { "listens_to_packets", "dial:packet", 0, .lost = lost_if_done },
  { "sends_raw_packets", "dial:raw", 0, .lost = lost_if_done },
  { "asks_netlink", "dial:netlink", 0, .lost = lost_if_done },
  { "dials_vsock", "dial:vsock", 0, .lost = lost_if_done },
  { "uses_the_kernels_ciphers", "dial:alg", 0, .lost = lost_if_done },
  /* programs and processes */
  { "runs_a_shell", "shell:{new}", ANY, .lost = lost_if_done },
  { "runs_a_shell_where_true_may_run", "shell:{new}", ANY, .yaml = EXEC,
    .lost = lost_if_done },
  { "spies_on_the_host", "spy:{memory}", 0, .lost = lost_if_done },
  { "spies_on_the_host_where_true_may_run", "spy:{memory}", 0, .yaml = EXEC,
    .lost = lost_if_done },
  { "signals_others", "signals:{victim}", ANY },
  { "signals_others_where_true_may_run", "signals:{victim}", ANY,
    .yaml = EXEC },
  { "forks_without_permission", "forks:10", 0,
    .lost = lost_files_in_memory },
  { "leaves_a_daemon", "daemon", 0, .yaml = EXEC },
  { "gives_the_host_a_child", "foster", 0, .yaml = EXEC,
    .lost = lost_if_done },
  { "leaves_an_heir_with_its_channel", "heir", E_PROVIDER_EXITED,
    .yaml = EXEC, .ms = 2 * HARNESS_PATIENCE_MS, .lost = lost_time },
  { "dies_of_a_bad_address", "raise:11", E_PROVIDER_EXITED },
  { "dies_of_a_kill", "raise:9", E_PROVIDER_EXITED },
  { "dies_of_a_bad_call", "raise:31", E_PROVIDER_EXITED },
  { "dies_of_a_term", "raise:15", E_PROVIDER_EXITED },
  /* the kernel */
  { "uses_io_uring", "call:io_uring_setup", 0, .lost = lost_if_done },
  { "uses_userfaultfd", "call:userfaultfd", 0, .lost = lost_if_done },
  { "uses_bpf", "call:bpf", 0, .lost = lost_if_done },
  { "uses_perf", "call:perf_event_open", 0, .lost = lost_if_done },
  { "uses_keyrings", "call:keyctl", 0, .lost = lost_if_done },
  { "makes_namespaces", "call:unshare", 0, .lost = lost_if_done },
  { "mounts", "call:mount", 0, .lost = lost_if_done },
  { "loads_a_kernel", "call:kexec_load", 0, .lost = lost_if_done },
  /* memory, descriptors, limits */
  { "raises_its_limits", "more", 0, .yaml = SMALL, .lost = lost_limits },
  { "eats_the_heap", "devour:heap", ANY, .yaml = SMALL, .lost = lost_memory,
    .limits = 1 },
  { "eats_shared_memory", "eat:shared", 0, .yaml = SMALL,
    .lost = lost_files_in_memory },
  { "eats_files_in_memory", "devour:files", 0, .yaml = SMALL,
    .lost = lost_files_in_memory },
  { "eats_pipes", "devour:pipes", ANY, .lost = lost_kernel_memory },
  { "opens_descriptors", "descriptors", ANY, .yaml = SMALL },
  /* secrets */
  { "tells_its_secret", "tell:0", E_PROVIDER_FAILED },
  { "tells_its_secret_in_percents", "tell:1", E_PROVIDER_FAILED },
  { "tells_its_secret_in_base64", "tell:2", E_PROVIDER_FAILED },
  { "splits_its_secret_by_1", "split:1", 0, .lost = lost_joined },
  { "splits_its_secret_by_5", "split:5", 0, .lost = lost_joined },
  { "splits_its_secret_by_9", "split:9", 0, .lost = lost_joined },
  { "splits_its_secret_by_15", "split:15", 0, .lost = lost_joined },
  { "shows_its_secret_as_title", "title", 0 },
  /* records */
  { "emits_size_0", "record:empty", E_PROVIDER_PROTOCOL },
  { "emits_size_1", "record:small", E_PROVIDER_PROTOCOL },
  { "emits_a_huge_size", "record:huge", ANY },
  { "emits_nothing", "record:none", E_PROVIDER_PROTOCOL },
  { "emits_a_bad_address", "record:unmapped", E_PROVIDER_EXITED },
  { "emits_text_without_end", "record:unterminated", E_PROVIDER_EXITED },
  { "emits_half_a_record", "record:cut", E_PROVIDER_EXITED },
  { "emits_a_list_without_end", "record:list", ANY },
  { "emits_another_record", "record:other", ANY },
  { "emits_one_record_as_another", "record:swapped", ANY },
  { "emits_after_its_return", "record:late", ANY, .lost = lost_next },
  { "emits_its_channel", "record:channel", 0 },
  { "emits_a_folder", "record:folder", E_PROVIDER_PROTOCOL },
  { "emits_a_path", "record:path", E_PROVIDER_PROTOCOL },
  { "emits_a_file", "record:file", E_PROVIDER_PROTOCOL },
  { "emits_an_event", "record:event", E_PROVIDER_PROTOCOL },
  { "emits_a_set_of_events", "record:epoll", E_PROVIDER_PROTOCOL },
  { "emits_a_device", "record:null", E_PROVIDER_PROTOCOL },
  { "emits_a_closed_descriptor", "record:closed", ANY },
  { "emits_a_negative_descriptor", "record:negative", E_PROVIDER_PROTOCOL },
  /* the channel */
  { "answers_twice", "channel:twice", ANY, .lost = lost_next },
  { "answers_what_nobody_asked", "channel:next", ANY, .lost = lost_next },
  { "ends_a_text_that_never_began", "channel:order", E_PROVIDER_PROTOCOL },
  { "nests_its_texts", "channel:nested", E_PROVIDER_PROTOCOL },
  { "sends_parts_without_end", "channel:parts", E_PROVIDER_PROTOCOL },
  { "sends_no_json", "garbage:}{", E_PROVIDER_PROTOCOL },
  { "sends_a_frame_too_long", "oversized", E_PROVIDER_PROTOCOL },
  { "sends_too_many_descriptors", "fd_storm:17", E_PROVIDER_PROTOCOL },
};

/* Those that go on until their time is over, all at once. */
static const struct attack lasting[] = {
  { "hangs", "hang", E_PROVIDER_TIMEOUT, .ms = 200 },
  { "spins", "spin", E_PROVIDER_TIMEOUT, .ms = 200 },
  { "stops_itself", "raise:19", E_PROVIDER_TIMEOUT, .ms = 200 },
  { "stops_its_threads", "stop_threads", E_PROVIDER_TIMEOUT, .ms = 200 },
  { "forks_a_lot", "forks:100", ANY, .yaml = EXEC, .ms = 1000 },
  { "closes_its_channel", "channel:close", ANY, .ms = 200 },
  { "replaces_its_channel", "channel:null", ANY, .ms = 200 },
  { "closes_all_there_is", "close_fds", ANY, .ms = 200 },
  { "talks_to_itself", "channel:loop", ANY, .ms = 200 },
  { "starts_threads", "threads:300", ANY, .ms = 500 },
  { "floods_the_log", "spew:logs", ANY, .ms = 300 },
  { "floods_the_progress", "spew:progress", ANY, .ms = 300 },
  { "prints_lines", "spew:lines", ANY, .ms = 300 },
  { "prints_a_line_without_end", "spew:line", ANY, .ms = 300 },
  { "prints_binary", "spew:binary", ANY, .ms = 300 },
  { "prints_escapes", "spew:escapes", ANY, .ms = 300 },
  { "emits_a_million", "record:million", ANY, .ms = 300 },
  { "emits_streams", "streams:100000", ANY, .ms = 300 },
  { "sends_many_values", "channel:values", ANY, .ms = 300 },
};

#define N_ATTACKS (sizeof attacks / sizeof attacks[0])
#define N_LASTING (sizeof lasting / sizeof lasting[0])

static void
an_attack_is_contained (void **state)
{
  const struct attack *attack = *state;
  struct run run;

#ifdef COFFER_SANITIZERS
  if (attack->limits)
    skip_missing ("memory limits, which sanitizers lift");
#endif
  world_begin (&world);
  run_start (&run, attack);
  serve_bystander (&run, 1);
  judge (&run, 1);
}

static void
attacks_that_last_are_contained (void **state)
{
  struct run runs[N_LASTING];
  size_t i;

  (void) state;
  world_begin (&world);
  for (i = 0; i < N_LASTING; i++)
    run_start (&runs[i], &lasting[i]);
  serve_bystander (runs, N_LASTING);
  judge (runs, N_LASTING);
}

/* ---- operations that never come back -------------------------------------- */

static void *
probe_main (void *data)
{
  struct run *run = data;

  run->number = provider_probe (run->fixture->provider, NULL, &run->error) == 0
                ? 0 : run->error->number;
  run->done = 1;
  return NULL;
}

static struct fixture *
fixture_hanging_in (const char *where)
{
  auto_free char *yaml = text_printf (
    "config:\n  mode: {type: text, default: hang_%s}", where);

  return fixture_new (&(struct fixture_spec){ .module = "hostile",
                                              .yaml = yaml });
}

static void
a_probe_that_hangs_holds_nobody_else (void **state)
{
  struct run run = { .fixture = fixture_hanging_in ("probe") };
  int64_t began = coffer_now_ns ();

  (void) state;
  assert_int_equal (fixture_open (run.fixture, PROVIDER_WORKER, NULL), 0);
  pthread_create (&run.thread, NULL, probe_main, &run);
  while (coffer_now_ns () - began < 200000000)
    fixture_assert_serves (bystander);
  assert_int_equal (run.done, 0);
  kill (provider_worker_pid (run.fixture->provider), SIGKILL);
  pthread_join (run.thread, NULL);
  assert_int_equal (run.number, E_PROVIDER_EXITED);
  error_free (run.error);
  fixture_free (run.fixture);
  assert_true (others_are_gone ());
}

static void *
open_main (void *data)
{
  struct run *run = data;

  run->number = fixture_open (run->fixture, PROVIDER_WORKER, &run->error);
  run->done = 1;
  return NULL;
}

/* Before `open` returns, and before the module is there at all. */
static void
an_open_that_hangs_holds_nobody_else (void **state)
{
  int other = provider_worker_pid (bystander->provider), i, worker;
  int64_t began;

  (void) state;
  for (i = 0; i < 2; i++) {
    struct run run = { .fixture = i ? fixture_hanging_in ("open") : fixture_new (
      &(struct fixture_spec){ .module = "birth_hang" }) };
    began = coffer_now_ns ();
    pthread_create (&run.thread, NULL, open_main, &run);
    while (coffer_now_ns () - began < 200000000)
      fixture_assert_serves (bystander);
    assert_int_equal (run.done, 0);
    worker = world_other_child (&world, other);
    assert_true (worker > 0);
    kill (worker, SIGKILL);
    pthread_join (run.thread, NULL);
    assert_int_equal (run.number, E_PROVIDER_EXITED);
    error_free (run.error);
    fixture_free (run.fixture);
    assert_true (others_are_gone ());
  }
}

static void *
close_main (void *data)
{
  struct run *run = data;
  int64_t began = coffer_now_ns ();

  provider_close (run->fixture->provider);
  run->fixture->provider = NULL;
  run->took_ns = coffer_now_ns () - began;
  run->done = 1;
  return NULL;
}

static struct run closing;

/* The next test is done meanwhile. */
static void
a_close_that_hangs_holds_nobody_else (void **state)
{
  (void) state;
  closing.fixture = fixture_hanging_in ("close");
  assert_int_equal (fixture_open (closing.fixture, PROVIDER_WORKER, NULL), 0);
  pthread_create (&closing.thread, NULL, close_main, &closing);
  fixture_assert_serves (bystander);
  assert_int_equal (closing.done, 0);
}

static void
a_close_that_hangs_is_ended (void **state)
{
  (void) state;
  while (!closing.done) {
    fixture_assert_serves (bystander);
    usleep (50000);
  }
  pthread_join (closing.thread, NULL);
  assert_true (closing.took_ns < HARNESS_PATIENCE_NS);
  fixture_free (closing.fixture);
  assert_true (others_are_gone ());
}

/* ---- the module's file ---------------------------------------------------- */

struct swapper {
  char *paths[3];               /* the module, a good one, another */
  pthread_t thread;
  atomic_int stop;
};

/* By another file in its place, whole or as it is written. */
static void *
swap_main (void *data)
{
  struct swapper *swapper = data;
  unsigned turn;

  for (turn = 0; !swapper->stop; turn++) {
    const char *from = swapper->paths[1 + turn % 2];
    auto_free char *aside = text_printf ("%s.aside", swapper->paths[0]);
    int in = open (from, O_RDONLY | O_CLOEXEC), to;
    char *bytes;
    size_t size;

    if (turn % 4 < 2) {
      unlink (aside);
      if (link (from, aside) == 0)
        rename (aside, swapper->paths[0]);
    } else if (coffer_read_whole (in, 1 << 28, &bytes, &size) == 0) {
      unlink (swapper->paths[0]);
      to = open (swapper->paths[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      for (size_t i = 0; i < size; i += 65536)
        if (pwrite (to, bytes + i, size - i < 65536 ? size - i : 65536,
                    (off_t) i) < 0)
          break;
      fchmod (to, 0644);
      close (to);
      free (bytes);
    }
    close (in);
    usleep (turn % 2 ? turn * 37 % 1000 : 3000);        /* 0: the good one */
  }
  return NULL;
}

static void
copy_file (const char *from, const char *to)
{
  int in = open (from, O_RDONLY | O_CLOEXEC);
  int out = open (to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  char *bytes;
  size_t size;

  assert_int_equal (coffer_read_whole (in, 1 << 28, &bytes, &size), 0);
  assert_int_equal (coffer_write_all (out, bytes, size), size);
  free (bytes);
  close (in);
  close (out);
}

static void
swap_begin (struct swapper *swapper, const struct fixture *fixture)
{
  const char *build = getenv ("COFFER_BUILD");
  auto_free char *other = text_printf ("%s/tests/modules/birth_abort.so",
                                       build ? build : ".");

  memset (swapper, 0, sizeof *swapper);
  swapper->paths[0] = text_printf ("%s/hostile.so", fixture->place.shipped);
  swapper->paths[1] = text_printf ("%s/good", fixture->dir);
  swapper->paths[2] = text_printf ("%s/other", fixture->dir);
  copy_file (swapper->paths[0], swapper->paths[1]);
  copy_file (other, swapper->paths[2]);
  pthread_create (&swapper->thread, NULL, swap_main, swapper);
}

static void
swap_end (struct swapper *swapper)
{
  int i;

  swapper->stop = 1;
  pthread_join (swapper->thread, NULL);
  for (i = 0; i < 3; i++)
    free (swapper->paths[i]);
}

/* What is given to the worker is what the manifest has the hash of. */
static int
opening_is_sealed (const struct fixture *fixture)
{
  const char *sha256 = fixture->entry->manifest->modules[0].sha256;
  auto_opening struct opening *opening = NULL;
  char found[SHA256_HEX_SIZE], *bytes;
  size_t size;

  if (opening_new (fixture->entry, &fixture->place, contract_builtin (),
                   NULL, &opening, NULL) < 0)
    return 0;
  assert_int_equal (lseek (opening->module_fd, 0, SEEK_SET), 0);
  assert_int_equal (coffer_read_whole (opening->module_fd, 1 << 28, &bytes,
                                       &size), 0);
  sha256_hex (bytes, size, found);
  free (bytes);
  assert_string_equal (found, sha256);
  return 1;
}

static void
a_module_that_is_swapped_is_never_run (void **state)
{
  struct fixture *fixture
    = fixture_new (&(struct fixture_spec){ .module = "hostile" });
  unsigned long i, opened = 0, times = harness_scaled (1000);
  struct swapper swapper;
  struct error *error = NULL;

  (void) state;
  swap_begin (&swapper, fixture);
  for (i = 0; i < times; i++)
    opened += (unsigned long) opening_is_sealed (fixture);
  /* And all the way: the other one aborts in its constructor. */
  for (i = 0; i < 20; i++) {
    if (fixture_open (fixture, PROVIDER_WORKER, &error) == 0) {
      fixture_assert_serves (fixture);
      provider_close (fixture->provider);
      fixture->provider = NULL;
    } else {
      assert_int_not_equal (error->number, E_PROVIDER_EXITED);
      error_free (error);
    }
    error = NULL;
  }
  swap_end (&swapper);
  print_message ("# opened %lu of %lu times\n", opened, times);
  fixture_free (fixture);
}

/* ---- what it keeps -------------------------------------------------------- */

/* A stream of a command that is over: it can write into it, and that is all
 * over when its worker is. */
static void
a_stream_that_is_kept_ends_with_the_worker (void **state)
{
  static const char *const argv[] = { "keep", NULL };
  struct fixture *fixture = fixture_start_plain ();
  char text[64] = "";
  int ends[2];

  (void) state;
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (INVOKE (fixture->provider, NULL, NULL, exec_start,
                            .sandbox = "x", .argv = argv, .in = -1,
                            .out = ends[1], .err = -1), 0);
  close (ends[1]);
  fixture_assert_done (fixture, "later", "");
  fixture_free (fixture);
  assert_int_equal (coffer_read_all (ends[0], text, sizeof text - 1), 11);
  assert_string_equal (text, "keep\nlater\n");
  close (ends[0]);
}

static int open_while_slow;

static int
hear_slowly (void *data, const struct contract_record *type, void *record)
{
  (void) type;
  (void) record;
  if (*(int *) data == 0) {
    usleep (300000);
    open_while_slow = world_open_descriptors ();
  }
  *(int *) data = 1;
  return 0;
}

static void *
call_slowly (void *data)
{
  struct run *run = data;
  int slept = 0;
  struct provider_call call = {
    .deadline_ns = coffer_now_ns () + HARNESS_PATIENCE_NS, .cancel_fd = -1,
    .sink = { .record = hear_slowly, .data = &slept }
  };

  run->number = INVOKE (run->fixture->provider, &call, &run->error,
                        sandbox_info, .sandbox = "streams:20000") == 0
                ? 0 : run->error->number;
  return NULL;
}

/* Somebody else's call reads the channel meanwhile. */
static void
what_a_slow_caller_leaves_is_bounded (void **state)
{
  struct run run = { .fixture = fixture_start_plain () };

  (void) state;
  pthread_create (&run.thread, NULL, call_slowly, &run);
  usleep (30000);
  fixture_say (run.fixture, "sleep:1000", 5000, -1, NULL, NULL);
  pthread_join (run.thread, NULL);
  /* By the host, or by the kernel, which counts what is on its way. */
  assert_true (run.number == E_PROVIDER_PROTOCOL
               || run.number == E_PROVIDER_EXITED);
  assert_in_range (open_while_slow, world.descriptors,
                   world.descriptors + 120);
  error_free (run.error);
  fixture_assert_serves (run.fixture);
  fixture_free (run.fixture);
  assert_int_equal (world_open_descriptors (), world.descriptors);
}

/* ---- a host that is killed ------------------------------------------------ */

/* In a process of its own: a host whose worker does `word`. */
static pid_t
host_start (const char *yaml, const char *word, int *worker)
{
  struct fixture *fixture = fixture_new (&(struct fixture_spec){
    .module = "hostile", .yaml = yaml });
  int ends[2], pid = 0;
  pid_t host;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  host = fork ();
  if (host == 0) {
    if (fixture_open (fixture, PROVIDER_WORKER, NULL) != 0)
      _exit (1);
    pid = provider_worker_pid (fixture->provider);
    fixture_say (fixture, "forks:3", 5000, -1, NULL, NULL);
    if (write (ends[1], &pid, sizeof pid) < 0)
      _exit (1);
    fixture_say (fixture, word, 30000, -1, NULL, NULL);
    _exit (0);
  }
  close (ends[1]);
  assert_int_equal (read (ends[0], worker, sizeof *worker), sizeof *worker);
  close (ends[0]);
  usleep (50000);               /* it is at it */
  fixture_free (fixture);
  return host;
}

/* Orphans are this process's, so that each that is left shows. */
static void
nothing_of_a_worker_outlives_its_host (void **state)
{
  static const struct {
    const char *yaml, *word;
  } table[] = { { NULL, "hang" }, { NULL, "stop_threads" },
                { NULL, "raise:19" }, { NULL, "channel:null" },
                { NULL, "channel:loop" }, { EXEC, "stop_threads" },
                { EXEC, "raise:19" } };
  int64_t until;
  size_t i;
  int worker, status;
  pid_t host;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    host = host_start (table[i].yaml, table[i].word, &worker);
    if (!fixture_process_lives (worker)
        && strncmp (table[i].word, "channel:", 8) != 0)
      complain (table[i].word, "its worker did not live");
    assert_int_equal (kill (host, SIGKILL), 0);
    assert_int_equal (waitpid (host, &status, 0), host);
    until = coffer_now_ns () + HARNESS_PATIENCE_NS;
    while (world_children () > 2 && coffer_now_ns () < until)
      if (!world_reap (&world, provider_worker_pid (bystander->provider)))
        usleep (2000);
    if (world_children () != 2)
      complain (table[i].word, "it outlives its host");
  }
}

/* ---- */

static int
set_up (void **state)
{
  (void) state;
  setenv ("COFFER_TEST_KEY", SECRET, 1);
  log_set_level (LOG_LEVEL_INFO);
  bystander = fixture_start (&(struct fixture_spec){
    .module = "serial", .threads = "serial" });
  world_init (&world);
  return 0;
}

static int
tear_down (void **state)
{
  (void) state;
  world_fini (&world);
  fixture_free (bystander);
  return 0;
}

int
main (void)
{
  const struct CMUnitTest rest[] = {
    cmocka_unit_test (attacks_that_last_are_contained),
    cmocka_unit_test (a_probe_that_hangs_holds_nobody_else),
    cmocka_unit_test (an_open_that_hangs_holds_nobody_else),
    cmocka_unit_test (a_stream_that_is_kept_ends_with_the_worker),
    cmocka_unit_test (what_a_slow_caller_leaves_is_bounded),
    cmocka_unit_test (nothing_of_a_worker_outlives_its_host),
    cmocka_unit_test (a_close_that_hangs_holds_nobody_else),
    cmocka_unit_test (a_module_that_is_swapped_is_never_run),
    cmocka_unit_test (a_close_that_hangs_is_ended),
  };
  struct CMUnitTest tests[N_ATTACKS + sizeof rest / sizeof rest[0]];
  size_t i;

  for (i = 0; i < N_ATTACKS; i++)
    tests[i] = (struct CMUnitTest){ .name = attacks[i].name,
                                    .test_func = an_attack_is_contained,
                                    .initial_state = (void *) &attacks[i] };
  memcpy (tests + N_ATTACKS, rest, sizeof rest);
  return cmocka_run_group_tests (tests, set_up, tear_down);
}
