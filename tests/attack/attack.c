/* SPDX-License-Identifier: Apache-2.0 */
/* The proof, layer by layer: every case of the corpus against sandboxes that
 * have all layers, none, all but one and only one, compared with matrix.tsv.
 *
 *   attack [general|strict] [MODULE INIT]      instead of those with switches
 *
 * Those of strict have the filter for a guarded interpreter on their commands,
 * and lose more to what is none of an interpreter's business.
 *
 * COFFER_ATTACK_WRITE names a file for the table as it was measured,
 * COFFER_ATTACK_ONLY some cases.  Other files than the default have no switches:
 * whatever is asked for, every cell must be that of all layers.
 *
 * With a Landlock older than ABI 6 only all and none are compared.
 *
 * In the table `F` is a canary that fell, `.` one that did not, `-` a sandbox
 * that there is not: an ordinary user has no ids to choose from. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "cases.h"
#include "switches.h"

#define SYS_LANDLOCK_CREATE_RULESET 444
#define COLUMNS_MAX 80
#define ROWS_MAX 160

/* ---- columns ------------------------------------------------------------ */

static const char *const layer_names[] = {
#define NAME(symbol, name) name,
  LAYERS (NAME)
#undef NAME
};

#define BIT(symbol) (UINT32_C (1) << LAYER_##symbol)
#define ALL_OFF ((UINT32_C (1) << LAYERS_COUNT) - 1)

struct column {
  char name[32];
  uint32_t off;
  int wide;                     /* measured when CHECK_SCALE is above 1 */
  int general;                  /* with the other filter on its commands */
};

static struct column columns[COLUMNS_MAX];
static size_t n_columns;
static int strict;              /* which profile is attacked */

/* What a layer cannot be without: the mounts for what is done to them, and for
 * an ordinary user a user namespace for the others, no_new_privs for filters. */
static uint32_t
needs_of (unsigned layer, int root)
{
  const uint32_t bit = UINT32_C (1) << layer;
  const uint32_t mounts = BIT (DETACH) | BIT (BINDS) | BIT (MASKS)
                          | BIT (USERNS) | BIT (DISK);
  const uint32_t spaces = BIT (MOUNT) | BIT (PID) | BIT (NET) | BIT (IPC)
                          | BIT (UTS) | BIT (CGROUPNS);
  uint32_t needs = bit;

  if (needs & mounts)
    needs |= BIT (MOUNT);
  if (bit & BIT (USERNS))
    needs |= BIT (USER);
  if (!root && (needs & spaces))
    needs |= BIT (USER);
  if (!root && (bit & (BIT (LANDLOCK) | BIT (SECCOMP))))
    needs |= BIT (NNP);
  return needs;
}

static void
column_add (const char *prefix, const char *name, uint32_t off, int wide)
{
  struct column *column = &columns[n_columns++];

  snprintf (column->name, sizeof column->name, "%s%s", prefix, name);
  column->off = off;
  column->wide = wide;
}

static void
columns_make (int root)
{
  const uint32_t plain = ALL_OFF & ~(BIT (IDS) | BIT (CAPS));
  unsigned i;

  column_add ("", "all", 0, 0);
  column_add ("", "none", ALL_OFF, 0);
  for (i = 0; i < LAYERS_COUNT; i++)
    column_add ("no-", layer_names[i], UINT32_C (1) << i, 0);
  column_add ("no-", "strict", 0, 0);
  columns[n_columns - 1].general = 1;
  for (i = 0; i < LAYERS_COUNT; i++)
    column_add ("only-", layer_names[i], ALL_OFF & ~needs_of (i, root), 1);
  /* What no layer alone shows. */
  column_add ("", "ids+caps", plain, 1);
  column_add ("", "ids+caps+groups", plain & ~BIT (GROUPS), 1);
  column_add ("", "ids+caps+nnp", plain & ~BIT (NNP), 1);
  column_add ("", "no-fds-at-all", BIT (FDS) | BIT (EXEC_FDS), 1);
  column_add ("", "no-keeper", BIT (DUMPABLE) | BIT (SECCOMP), 1);
}

/* Whether there is such a sandbox here at all. */
static int
column_possible (const struct column *column, const struct cage *cage)
{
  const uint32_t of_root = BIT (IDS) | BIT (GROUPS) | BIT (CGROUP);

  if (column->general && !strict)
    return 0;
  if (cage->root)
    return cage->cgroup[0] != '\0' || strstr (column->name, "cgroup") == NULL
           || strstr (column->name, "cgroupns") != NULL;
  if (column->off == ALL_OFF)
    return 1;
  if (strcmp (column->name, "only-caps") == 0)
    return 0;                   /* there are none to drop */
  if (strncmp (column->name, "no-", 3) == 0 && (column->off & BIT (USER)))
    return 0;
  if (strstr (column->name, "ids") != NULL)
    return 0;
  return !(strncmp (column->name, "no-", 3) == 0
             ? column->off & of_root
             : ~column->off & ALL_OFF & of_root && column->off != 0);
}

/* ---- one attempt -------------------------------------------------------- */

static struct arena arena;
static struct linux_host host;
static FILE *written;           /* COFFER_ATTACK_WRITE */
static int init_fd = -1, payload_fd = -1, python_fd = -1;
static char complaint[1100];

static unsigned
process_user (pid_t pid)
{
  char path[64], text[4096], *at;

  snprintf (path, sizeof path, "/proc/%d/status", (int) pid);
  file_get (path, text, sizeof text);
  at = strstr (text, "\nUid:");
  return at != NULL ? (unsigned) strtoul (at + 5, NULL, 10) : 0;
}

static const char *filter;      /* of the next sandbox's commands */

static int
spec_create (const struct attack *attack, int lifeline)
{
  struct coffer_mount code = { .size = sizeof code, .source = "/opt/attack",
                               .target = "/opt/attack" };
  struct coffer_mount ro = { .size = sizeof ro, .source = "/srv/ro",
                             .target = "/srv/ro" };
  struct coffer_mount rw = { .size = sizeof rw, .source = "/srv/rw",
                             .target = "/srv/rw", .writable = 1 };
  const struct coffer_mount *mounts[] = { &code, &ro, &rw, NULL };
  struct coffer_sandbox_spec spec
    = { .size = sizeof spec, .single_exec = 1, .lifeline = lifeline,
        .mounts = mounts, .disk_bytes = 4 << 20, .template_fd = -1,
        .filter = filter };
  int32_t code_of;

  if (attack->flags & LIMITED) {
    spec.pids = 40;
    spec.memory_bytes = 48 << 20;
  }
  code.source_fd = open ("/opt/attack", O_PATH | O_CLOEXEC);
  ro.source_fd = open ("/srv/ro", O_PATH | O_CLOEXEC);
  rw.source_fd = open ("/srv/rw", O_PATH | O_CLOEXEC);
  code_of = host_create (&host, "attacked", &spec);
  close (code.source_fd);
  close (ro.source_fd);
  close (rw.source_fd);
  strcpy (arena.facts, host.facts);
  if (code_of == COFFER_OK && lifeline < 0
      && victim_start (&arena, process_user (host.pid)) == -1) {
    snprintf (complaint, sizeof complaint, "no victim: %s", strerror (errno));
    return -1;
  }
  if (code_of != COFFER_OK)
    snprintf (complaint, sizeof complaint, "no sandbox: %s", host.error);
  return code_of == COFFER_OK ? 0 : -1;
}

/* Until the payload is ready or gone, or has had its time. */
static void
output_take (int fd)
{
  const int64_t stop = coffer_now_ns () + INT64_C (30000000000);
  ssize_t n;

  while (arena.output_size + 1 < OUTPUT_MAX
         && memmem (arena.output, arena.output_size, "\n=ready\n", 8) == NULL
         && coffer_wait_fd (fd, POLLIN, stop, -1) == 1) {
    n = read (fd, arena.output + arena.output_size,
              OUTPUT_MAX - 1 - arena.output_size);
    if (n <= 0)
      return;
    arena.output_size += (size_t) n;
  }
}

static int
payload_start (const struct attack *attack, int python, int in, int out)
{
  static const char *const c[] = { "/opt/attack/payload" };
  static const char *const py[] = { "python3", "-ISB",
                                    "/opt/attack/payload.py" };
  struct coffer_exec_start_opts opts = { .size = sizeof opts };
  char args[4][128] = { "", "", "", "" };
  const char *argv[9];
  size_t n = 0, i;

  for (i = 0; i < (python ? 3 : 1); i++)
    argv[n++] = python ? py[i] : c[i];
  argv[n++] = attack->attempt;
  attack->arguments (&arena, args);
  for (i = 0; i < 4 && args[i][0] != '\0'; i++)
    argv[n++] = args[i];
  argv[n] = NULL;
  if (host.ops->exec_start (host_call (&host, 10000), host.self, "attacked",
                            argv, NULL,
                            attack->flags & IN_SHARED ? "/srv/rw" : "/", in,
                            out, -1, &opts)
        == COFFER_OK)
    return 0;
  snprintf (complaint, sizeof complaint, "no payload: %s", host.error);
  return -1;
}

static int
judged_alive (const struct attack *attack, int python)
{
  int in[2], out[2], fell = -1;

  if (pipe2 (in, O_CLOEXEC) == -1 || pipe2 (out, O_CLOEXEC) == -1)
    return -1;
  if (payload_start (attack, python,
                     attack->flags & ON_TERMINAL ? arena.terminal
                     : attack->flags & OWNER_DIES ? arena.open_end : in[0],
                     out[1])
        == 0) {
    close (out[1]);
    output_take (out[0]);
    arena.init = host.pid;
    arena.payload = child_of (host.pid);
    fell = attack->flags & AFTERWARDS ? 0 : attack->fell (&arena);
  } else
    close (out[1]);
  close (in[0]);
  close (in[1]);
  close (out[0]);
  return fell;
}

/* A maker that ends without a word, in a process of its own. */
static int
owner_run (const struct attack *attack, int python)
{
  int life[2], status = 0, fell = -1;
  pid_t pid;

  if (pipe2 (life, O_CLOEXEC) == -1)
    return -1;
  pid = fork ();
  if (pid == 0) {
    close (life[1]);
    if (spec_create (attack, life[0]) == 0)
      fell = judged_alive (attack, python);
    _exit (fell == 0 ? 0 : 1);
  }
  close (life[0]);
  if (waitpid (pid, &status, 0) == pid && status == 0) {
    close (life[1]);
    fell = attack->fell (&arena);
  } else {
    close (life[1]);
    snprintf (complaint, sizeof complaint, "no sandbox of another process");
  }
  /* What its maker would have removed. */
  host_kill (&host, "attacked");
  return fell;
}

static int
attempt_run (const struct attack *attack, int python)
{
  int fell = -1;

  complaint[0] = '\0';
  if (arena_reset (&arena) == -1) {
    snprintf (complaint, sizeof complaint, "the arena: %s",
              strerror (errno));
    return -1;
  }
  if (attack->flags & OWNER_DIES)
    fell = owner_run (attack, python);
  else if (spec_create (attack, -1) == 0) {
    fell = judged_alive (attack, python);
    host_kill (&host, "attacked");
    if (fell == 0 && (attack->flags & AFTERWARDS))
      fell = attack->fell (&arena);
  }
  arena_clear (&arena);
  return fell;
}

/* ---- the table ---------------------------------------------------------- */

static char expected[ROWS_MAX][COLUMNS_MAX];
static char measured[ROWS_MAX][COLUMNS_MAX];

static const char *
who (int root)
{
  return root ? "root" : "user";
}

static const char *
profile (void)
{
  return strict ? "strict" : "general";
}

static size_t
case_find (const char *name)
{
  size_t i;

  for (i = 0; i < attacks_count; i++)
    if (strcmp (attacks[i].name, name) == 0)
      break;
  return i;
}

/* The next word of a line, which may have no more. */
static const char *
word_next (char **rest)
{
  const char *word = strsep (rest, "\t");

  return word != NULL ? word : "";
}

/* matrix.tsv: a heading, and for each case, user and profile a line of
 * cells. */
static void
table_read (FILE *file)
{
  static char line[4096], heading[4096];
  char *rest, *names[COLUMNS_MAX + 4];
  const char *word;
  size_t n = 0, i, k, c;

  while (fgets (line, sizeof line, file) != NULL) {
    if (line[0] == '#')
      continue;
    line[strcspn (line, "\n")] = '\0';
    if (n == 0) {
      strcpy (heading, line);
      for (rest = heading; rest != NULL && n < COLUMNS_MAX + 4;)
        names[n++] = strsep (&rest, "\t");
      continue;
    }
    rest = line;
    i = case_find (word_next (&rest));
    if (strcmp (word_next (&rest), who (geteuid () == 0)) != 0
        || strcmp (word_next (&rest), profile ()) != 0 || i == attacks_count)
      continue;
    word_next (&rest);          /* its place in the corpus */
    for (k = 4; k < n && *(word = word_next (&rest)) != '\0'; k++)
      for (c = 0; c < n_columns; c++)
        if (strcmp (columns[c].name, names[k]) == 0)
          expected[i][c] = word[0];
  }
}

static void
table_write (FILE *file, const struct cage *cage)
{
  size_t i, c;

  fprintf (file, "case\tuser\tprofile\tcorpus");
  for (c = 0; c < n_columns; c++)
    fprintf (file, "\t%s", columns[c].name);
  for (i = 0; i < attacks_count; i++) {
    if (measured[i][0] == '\0')
      continue;
    fprintf (file, "\n%s\t%s\t%s\t%s", attacks[i].name, who (cage->root),
             profile (), attacks[i].corpus);
    for (c = 0; c < n_columns; c++)
      fprintf (file, "\t%c", measured[i][c] ? measured[i][c] : '-');
  }
  fprintf (file, "\n");
  fclose (file);
}

/* ---- a row -------------------------------------------------------------- */

static int without_switches, without_scopes, wide, number;
static char wrong[8192];

static void
wrong_add (const char *column, const char *what)
{
  size_t n = strlen (wrong);

  snprintf (wrong + n, sizeof wrong - n, "# %s: %s\n", column, what);
}

static void
layers_set (uint32_t off)
{
  char text[512] = "";
  size_t i, n;

  for (i = 0; i < LAYERS_COUNT; i++)
    if (off >> i & 1) {
      n = strlen (text);
      snprintf (text + n, sizeof text - n, "%s%s", n ? "," : "",
                layer_names[i]);
    }
  setenv ("COFFER_TEST_LAYERS", text, 1);
}

static void
cell_judge (size_t row, size_t column, int fell)
{
  const char *name = columns[column].name;
  char is = fell ? 'F' : '.', want = expected[row][column];

  if (fell < 0) {
    wrong_add (name, complaint);
    return;
  }
  if (measured[row][column] == '\0')
    measured[row][column] = is;         /* the native one's */
  else if (measured[row][column] != is)
    wrong_add (name, "the two payloads differ");
  if (without_switches)
    want = '.';
  else if (column == 1)
    want = 'F';
  else if (column == 0)
    want = '.';
  if (want == '\0' || want == '-')
    wrong_add (name, "no line or column of matrix.tsv");
  else if (want == '.' && is == 'F')
    wrong_add (name, "fell, and is held by the table");
  else if (want == 'F' && is == '.')
    wrong_add (name, column == 1
                 ? "held without any layer: it proves nothing"
                 : "held, and falls by the table");
}

static void
row_run (size_t row, int python, const struct cage *cage)
{
  const struct attack *attack = &attacks[row];
  size_t c;

  wrong[0] = '\0';
  for (c = 0; c < n_columns; c++) {
    if (!column_possible (&columns[c], cage)
        || (c > 1 && (python || columns[c].wide) && !wide)
        || (without_switches && (c > 1 || python))
        || (without_scopes && c > 1))
      continue;
    layers_set (columns[c].off);
    filter = strict && !columns[c].general ? "strict" : NULL;
    cell_judge (row, c, attempt_run (attack, python));
  }
  printf ("%sok %d - %s (%s, %s, %s)\n%s", wrong[0] ? "not " : "", ++number,
          attack->name, python ? "python" : "native", profile (),
          who (cage->root), wrong);
  fflush (stdout);
}

/* Words, with commas between them. */
static int
list_has (const char *list, const char *word)
{
  size_t n = strlen (word), k;

  for (; *list != '\0'; list += k + (list[k] == ',')) {
    k = strcspn (list, ",");
    if (k == n && strncmp (list, word, n) == 0)
      return 1;
  }
  return 0;
}

static int
is_none_here (const struct attack *attack, const struct cage *cage)
{
  return ((attack->flags & OF_ROOT) && !cage->root)
         || ((attack->flags & OF_STRICT) && !strict);
}

static void
case_run (size_t row, const struct cage *cage)
{
  const struct attack *attack = &attacks[row];
  const char *only = getenv ("COFFER_ATTACK_ONLY");
  const char *missing = NULL;
  int python;

  if (only != NULL && !list_has (only, attack->name))
    return;
  if (is_none_here (attack, cage))
    return;
  if ((attack->flags & NEEDS_GROUP) && cage->cgroup[0] == '\0')
    missing = "a writable control group";
  else if (attack->possible != NULL && !attack->possible ())
    missing = attack->missing;
  for (python = 0; python < 2; python++) {
    if (python && ((attack->flags & NATIVE_ONLY) || python_fd < 0
                   || written != NULL))
      continue;
    if (missing != NULL)
      printf ("ok %d - %s # SKIP missing: %s\n", ++number, attack->name,
              missing);
    else
      row_run (row, python, cage);
  }
}

/* ---- with an init that was made ahead ----------------------------------- */

static const struct attack nothing = { .name = "nothing" };

/* A sandbox in which nobody does anything: another may be made ahead then. */
static int
sandbox_pass (void)
{
  int r = spec_create (&nothing, -1);

  if (r == 0)
    host_kill (&host, "attacked");
  if (arena.victim > 0)
    kill (arena.victim, SIGKILL);
  arena.victim = 0;
  return r;
}

static int
init_lives (pid_t pid)
{
  char path[64], stat[512];

  snprintf (path, sizeof path, "/proc/%d/stat", (int) pid);
  return pid > 0 && file_get (path, stat, sizeof stat) > 0
         && strstr (stat, "(coffer-init) ") != NULL
         && strstr (stat, ") Z ") == NULL;
}

/* The one of the next sandbox, when it is there: a child that lives and is not
 * what is left of the last one. */
static pid_t
spare_find (void)
{
  pid_t pid;

  while (waitpid (-1, NULL, __WALL | WNOHANG) > 0)
    ;
  pid = child_but (getpid (), host.pid);
  return init_lives (pid) ? pid : 0;
}

/* It is made meanwhile, after each sandbox; on a busy machine that takes its
 * time, and may be given up: then it is made after the next. */
static pid_t
spare_wait (void)
{
  pid_t pid = 0;
  int tries, i;

  for (tries = 0; tries < 10 && pid == 0; tries++) {
    for (i = 0; i < 1000 && (pid = spare_find ()) == 0; i++)
      usleep (2000);
    if (pid != 0 || sandbox_pass () == -1)
      break;
  }
  return pid;
}

static int
in_group (void)
{
  return strstr (arena.facts, "\ncgroup ok") != NULL
         || strstr (arena.facts, "\ncgroup degraded") != NULL;
}

/* Whether it was taken, or not, as it should.  What is to be in a control group
 * is begun in it or enters it before it has its ids; the one made ahead has its,
 * may enter none, and stays for the next. */
static int
spare_used_rightly (pid_t spare)
{
  if (in_group ())
    return arena.init != spare && init_lives (spare);
  return arena.init == spare;
}

/* It was made while nobody knew what it is for: it is no less confined. */
static void
spare_run (const struct attack *attack)
{
  const pid_t spare = spare_wait ();
  const int fell = attempt_run (attack, 0);

  if (spare == 0)
    wrong_add (attack->name, "no init was made ahead");
  else if (fell != 0)
    wrong_add (attack->name, fell > 0 ? "fell" : complaint);
  else if (!spare_used_rightly (spare))
    wrong_add (attack->name, in_group ()
                 ? "the one made ahead was touched, for a control group"
                 : "the one made ahead was not taken");
}

static void
spares_run (const struct cage *cage)
{
  static const char *const config[] = { "spare=true", NULL };
  size_t i;

  linux_host_close (&host);
  linux_host_start (&host, init_fd, config);
  layers_set (0);
  filter = strict ? "strict" : NULL;
  wrong[0] = '\0';
  arena.spares = 1;
  /* Who has made one may make no more. */
  sandbox_pass ();
  sandbox_pass ();
  for (i = 0; i < attacks_count; i++)
    if (!is_none_here (&attacks[i], cage)
        && !((attacks[i].flags & NEEDS_GROUP) && cage->cgroup[0] == '\0')
        && !(attacks[i].flags & OWNER_DIES)
        && (attacks[i].possible == NULL || attacks[i].possible ()))
      spare_run (&attacks[i]);
  printf ("%sok %d - all of it with an init made ahead (native, %s, %s)\n%s",
          wrong[0] ? "not " : "", ++number, profile (), who (cage->root),
          wrong);
  linux_host_close (&host);
}

/* ---- in the cage -------------------------------------------------------- */

static int
cage_inside (struct cage *cage)
{
  size_t i;

  arena.cage = cage;
  arena.host = &host;
  mkdir ("/opt/attack", 0755);
  if (file_copy (payload_fd, "/opt/attack/payload", 0755) == -1
      || (python_fd >= 0
          && file_copy (python_fd, "/opt/attack/payload.py", 0644) == -1)
      || file_copy (payload_fd, "/opt/attack/setuid", 04755) == -1
      || arena_open (&arena) == -1) {
    printf ("Bail out! the arena: %s\n", strerror (errno));
    fflush (stdout);
    return 2;
  }
  linux_host_start (&host, init_fd, NULL);
  for (i = 0; i < attacks_count; i++)
    case_run (i, cage);
  if (getenv ("COFFER_ATTACK_ONLY") == NULL && !without_switches)
    spares_run (cage);
  printf ("1..%d\n", number);
  fflush (stdout);
  if (written != NULL)
    table_write (written, cage);
  return 0;
}

/* ---- before it ---------------------------------------------------------- */

static int
build_file (const char *name)
{
  const char *build = getenv ("COFFER_BUILD");
  char path[4096];

  if (name[0] == '/')
    snprintf (path, sizeof path, "%s", name);
  else
    snprintf (path, sizeof path, "%s/%s", build ? build : ".", name);
  return open (path, O_RDONLY | O_CLOEXEC);
}

static void
files_open (const char *module, const char *init)
{
  const char *source = getenv ("COFFER_SOURCE");
  const char *write_to = getenv ("COFFER_ATTACK_WRITE");
  char path[4096];
  FILE *table;

  snprintf (path, sizeof path, "%s/tests/attack/matrix.tsv",
            source ? source : ".");
  table = fopen (path, "re");
  if (table != NULL) {
    table_read (table);
    fclose (table);
  }
  snprintf (path, sizeof path, "%s/tests/attack/payload.py",
            source ? source : ".");
  python_fd = access ("/usr/bin/python3", X_OK) == 0
    ? open (path, O_RDONLY | O_CLOEXEC) : -1;
  init_fd = build_file (init);
  payload_fd = build_file ("tests/attack/payload");
  linux_host_load (&host, module);
  if (write_to != NULL)
    written = fopen (write_to, "we");
}

/* What is in /proc/PID/environ: strings, one after the other, with room for a
 * secret where there is any environment to speak of. */
static void
environment_find (void)
{
  size_t n = 0, i;

  for (i = 0; environ[i] != NULL && environ[i] == environ[0] + n; i++)
    n += strlen (environ[i]) + 1;
  arena.environment = n >= 32 ? environ[0] : NULL;
}

int
main (int argc, char *argv[])
{
  static struct cage cage;
  const char *scale = getenv ("CHECK_SCALE");
  int r, named;

  environment_find ();
  /* What a test driver leaves open is nobody's canary. */
  if (syscall (SYS_close_range, 3, ~0u, 0) == -1)
    return 1;
  strict = argc > 1 && strcmp (argv[1], "strict") == 0;
  named = strict || (argc > 1 && strcmp (argv[1], "general") == 0);
  argc -= named;
  argv += named;
  without_switches = argc == 3;
  /* The table is of Landlock with scopes: with less of it, or none, other
   * layers hold alone. */
  without_scopes = syscall (SYS_LANDLOCK_CREATE_RULESET, NULL, 0, 1) < 6;
  wide = scale != NULL && atoi (scale) > 1;
  columns_make (geteuid () == 0);
  files_open (argc == 3 ? argv[1] : "tests/attack/linux-switches.so",
              argc == 3 ? argv[2] : "tests/attack/init-switches");
  r = cage_run (&cage, cage_inside, wide ? 1800 : 480);
  if (r == -1)
    printf ("1..0 # SKIP missing: user namespaces\n");
  else if (r != 0)
    printf ("Bail out! the cage: %d\n", r);
  return r == 0 || r == -1 ? 0 : 1;
}
