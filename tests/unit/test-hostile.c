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
#include <sys/resource.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "hostile-run.h"
#include "hostile-world.h"
#include "provider-fixture.h"

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

static void
run_end (struct run *run)
{
  fixture_free (run->fixture);
  coffer_buffer_free (&run->said);
  error_free (run->error);
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

int
main (void)
{
  struct CMUnitTest tests[N_ATTACKS + 1];
  size_t i;

  for (i = 0; i < N_ATTACKS; i++)
    tests[i] = (struct CMUnitTest){ .name = attacks[i].name,
                                    .test_func = an_attack_is_contained,
                                    .initial_state = (void *) &attacks[i] };
  tests[N_ATTACKS] = (struct CMUnitTest)
    cmocka_unit_test (attacks_that_last_are_contained);
  return cmocka_run_group_tests (tests, set_up, tear_down);
}
