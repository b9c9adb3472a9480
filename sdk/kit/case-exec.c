/* SPDX-License-Identifier: Apache-2.0 */
/* What a command is given: its arguments, its environment, its folder; and how
 * it ends. */

#include <signal.h>
#include <unistd.h>

#include "case.h"

/* ---- arguments ----------------------------------------------------------- */

/* Every byte but NUL, in an order of its own. */
static char *
all_bytes (struct kit *kit)
{
  char *text = kit_memory (kit, 256), swap;
  size_t k;

  for (size_t i = 0; i < 255; i++)
    text[i] = (char) (i + 1);
  for (size_t i = 254; i > 0; i--) {
    k = kit_random_below (kit, i + 1);
    swap = text[i];
    text[i] = text[k];
    text[k] = swap;
  }
  return text;
}

static char *
joined (struct kit *kit, const char *const *words, size_t *size)
{
  char *text;
  size_t n = 0;

  for (size_t i = 0; words[i] != NULL; i++)
    n += strlen (words[i]) + 1;
  text = kit_memory (kit, n + 1);
  *size = n;
  n = 0;
  for (size_t i = 0; words[i] != NULL; i++) {
    memcpy (text + n, words[i], strlen (words[i]) + 1);
    n += strlen (words[i]) + 1;
  }
  return text;
}

/* `sh -c SCRIPT sh WORDS…`, whose output is to be those words. */
static void
arguments_try (struct kit *kit, const char *const *words, const char *what)
{
  const char *const sandbox = kit_sandbox (kit);
  const char **argv;
  struct case_run run;
  size_t n = 0, size, wanted_size;
  char *came, *wanted = joined (kit, words, &wanted_size);

  while (words[n] != NULL)
    n++;
  argv = kit_memory (kit, (n + 5) * sizeof *argv);
  argv[0] = "sh";
  argv[1] = "-c";
  argv[2] = "for a do printf '%s\\0' \"$a\"; done";
  argv[3] = "sh";
  memcpy (argv + 4, words, (n + 1) * sizeof *argv);
  case_start_argv (kit, sandbox, argv, 0, NULL, &run);
  came = case_rest (&run, &size);
  case_expect_code (kit, case_wait (&run), 0, "a command that shows what it is"
                    " given");
  case_same_bytes (kit, came, size, wanted, wanted_size, what);
}

static void
argv_exact (struct kit *kit)
{
  const char *const words[] = {
    "", kit_random_word (kit, 12), " ", "a  b", "\"", "'", "\\", "\n", "x\n",
    "\t", "$x", "$(id)", "`id`", "*", "?", "~", "-n", "--", "%s", "{a,b}",
    "a;b", "a&b", "a|b", ">x", "caf\xc3\xa9", "\xe2\x98\x83", "\xff\xfe",
    all_bytes (kit), "", NULL
  };

  arguments_try (kit, words, "the arguments of a command, each with a NUL");
}

static void
argv_large (struct kit *kit)
{
  const char **words = kit_memory (kit, 1002 * sizeof *words);

  for (size_t i = 0; i < 1000; i++)
    words[i] = kit_random_word (kit, 1 + kit_random_below (kit, 20));
  words[1000] = kit_random_word (kit, 100 << 10);
  arguments_try (kit, words, "1000 arguments and one of 100 KiB");
}

/* ---- environment --------------------------------------------------------- */

static void
env_exact (struct kit *kit)
{
  char *const bytes = all_bytes (kit);
  char *const word = kit_random_word (kit, 2000);
  char *const spec_word = kit_random_word (kit, 12);
  const char *const spec_env[]
    = { "KIT_OVER=sandbox", kit_text (kit, "KIT_SPEC=%s", spec_word), NULL };
  const char *const env[] = { "KIT_EMPTY=", "KIT_SPACE= a  b ",
                              "KIT_QUOTES='\"\\$x`", "KIT_LINE=a\nb\n",
                              "KIT_EQUALS=a=b=c", "KIT_OVER=command",
                              kit_text (kit, "KIT_BYTES=%s", bytes),
                              kit_text (kit, "KIT_LONG=%s", word), NULL };
  const char *const wanted[] = { "", " a  b ", "'\"\\$x`", "a\nb\n", "a=b=c",
                                 "command", bytes, word, spec_word, NULL };
  const char *const argv[]
    = { "sh", "-c", "for a in \"$KIT_EMPTY\" \"$KIT_SPACE\" \"$KIT_QUOTES\" "
        "\"$KIT_LINE\" \"$KIT_EQUALS\" \"$KIT_OVER\" \"$KIT_BYTES\" "
        "\"$KIT_LONG\" \"$KIT_SPEC\"; do printf '%s\\0' \"$a\"; done", NULL };
  struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_exec exec = { .argv = argv, .env = env };
  size_t size;
  char *text = joined (kit, wanted, &size);

  spec.env = spec_env;
  kit_exec (kit, kit_sandbox_with (kit, kit_first (kit), &spec), &exec);
  case_expect_code (kit, exec.exit, 0, "a command that shows its environment");
  case_same_bytes (kit, exec.out, exec.out_size, text, size,
                   "values of the environment, each with a NUL");
}

/* Nothing of the process that asks, but what a program needs. */
static void
env_clean (struct kit *kit)
{
  char *const name = kit_text (kit, "KIT_%s", kit_random_word (kit, 12));
  char *const value = kit_random_word (kit, 24);
  const char *text, *sandbox;

  KIT_CHECK (kit, setenv (name, value, 1) == 0, "no memory");
  sandbox = kit_sandbox (kit);
  text = case_sh (kit, sandbox, "env; echo \"path:$PATH home:$HOME\"");
  KIT_CHECK (kit, strstr (text, name) == NULL && strstr (text, value) == NULL,
             "a variable of the kit's own environment was in a command's: "
             "\"%s\"",
             case_shown (kit, text, strlen (text)));
  KIT_CHECK (kit, strstr (text, "path:/") != NULL
                    && strstr (text, " home:/") != NULL,
             "PATH and HOME were to begin with a slash in a command's "
             "environment: \"%s\" came",
             case_shown (kit, text, strlen (text)));
}

static void
env_own (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  char *const value = kit_random_word (kit, 24);
  const char *const argv[] = { "true", NULL };
  const char *const env[] = { kit_text (kit, "KIT_ONCE=%s", value), NULL };
  struct kit_exec exec = { .argv = argv, .env = env };
  const char *text;

  kit_exec (kit, sandbox, &exec);
  text = case_sh (kit, sandbox, "env");
  KIT_CHECK (kit, strstr (text, value) == NULL,
             "a variable that one command was given was there for the next");
}

/* ---- the folder ---------------------------------------------------------- */

static void
cwd_given (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const name = kit_text (kit, "a  b'%s", kit_random_word (kit, 8));
  const char *const mkdir_argv[] = { "mkdir", name, NULL };
  const char *const pwd_argv[] = { "sh", "-c", "pwd -P; : > here", NULL };
  struct kit_exec make = { .argv = mkdir_argv };
  struct kit_exec show = { .argv = pwd_argv };
  const char *text, *wanted;

  kit_exec (kit, sandbox, &make);
  case_expect_code (kit, make.exit, 0, "mkdir");
  wanted = kit_text (kit, "%s/%s", kit_workspace (kit, sandbox), name);
  show.cwd = wanted;
  kit_exec (kit, sandbox, &show);
  case_expect_code (kit, show.exit, 0, "pwd -P in a folder that was given");
  text = kit_text (kit, "%s\n", wanted);
  case_same_bytes (kit, show.out, show.out_size, text, strlen (text),
                   "the folder of a command that was given one");
  text = case_sh (kit, sandbox, "cd a*; ls");
  KIT_CHECK (kit, strcmp (text, "here\n") == 0,
             "a command in \"%s\" made a file there: it holds \"%s\"", wanted,
             text);
}

static void
cwd_default (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const workspace = kit_workspace (kit, sandbox);
  char *text = case_sh (kit, sandbox, "pwd -P");

  text[strcspn (text, "\n")] = '\0';
  KIT_CHECK (kit, strcmp (text, workspace) == 0,
             "a command without a folder was to run in the workspace, %s: it "
             "ran in %s",
             workspace, text);
}

/* Neither there nor elsewhere. */
static void
cwd_missing (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const argv[]
    = { "sh", "-c", "echo ran", NULL };
  struct kit_exec exec = { .argv = argv };

  exec.cwd = kit_text (kit, "%s/%s", kit_workspace (kit, sandbox),
                       kit_random_word (kit, 12));
  kit_exec (kit, sandbox, &exec);
  KIT_CHECK (kit, exec.out_size == 0,
             "a command ran although its folder was missing");
  KIT_CHECK (kit, exec.exit->failure_errno == ENOENT
                    && exec.exit->failure != NULL,
             "a command whose folder is missing was to have never run, errno "
             "%d (ENOENT): %s",
             ENOENT, case_exit_text (kit, exec.exit));
}

/* ---- ends ---------------------------------------------------------------- */

static void
exit_codes (struct kit *kit)
{
  static const int edges[] = { 0, 1, 2, 63, 124, 125, 126, 127, 128, 129, 130,
                               137, 139, 143, 254, 255 };
  const size_t n_edges = sizeof edges / sizeof edges[0];
  const char *const sandbox = kit_sandbox (kit);

  for (size_t i = 0; i < n_edges + 16; i++) {
    const int code = i < n_edges ? edges[i] : (int) kit_random_below (kit, 256);
    const char *const argv[] = { "sh", "-c", "exit \"$1\"", "sh",
                                 kit_text (kit, "%d", code), NULL };
    struct case_run run;

    case_start_argv (kit, sandbox, argv, 0, NULL, &run);
    case_expect_code (kit, case_wait (&run), code, "sh -c 'exit N'");
    case_close (&run.out);
  }
}

static void
signal_ends (struct kit *kit)
{
  static const struct {
    const char *name;
    int number;
  } signals[] = { { "KILL", SIGKILL }, { "TERM", SIGTERM }, { "HUP", SIGHUP },
                  { "INT", SIGINT },   { "USR1", SIGUSR1 } };
  const char *const sandbox = kit_sandbox (kit);
  const struct coffer_exec_exit *exit;

  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
    case_sh_exit (kit, sandbox,
                  kit_text (kit, "kill -%s $$; sleep 5", signals[i].name),
                  &exit);
    KIT_CHECK (kit, exit->code == -1 && exit->signal == signals[i].number,
               "a command that sends itself SIG%s was to end with code -1 and "
               "signal %d: %s",
               signals[i].name, signals[i].number, case_exit_text (kit, exit));
    KIT_CHECK (kit, exit->failure == NULL && exit->failure_errno == 0,
               "a command that ended by a signal did run: %s",
               case_exit_text (kit, exit));
  }
}

/* What a shell would call 126 and 127 are facts here. */
static void
never_ran (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const plain
    = kit_text (kit, "%s/plain", kit_workspace (kit, sandbox));
  const char *const argv[][2] = { { "/no/such/program", NULL },
                                  { kit_random_word (kit, 20), NULL },
                                  { plain, NULL } };
  const int wanted[] = { ENOENT, ENOENT, EACCES };

  case_sh (kit, sandbox, "umask 022; echo 'exit 0' > plain");
  for (size_t i = 0; i < 3; i++) {
    const struct coffer_exec_exit *exit;
    struct case_run run;

    case_start_argv (kit, sandbox, argv[i], 0, NULL, &run);
    exit = case_wait (&run);
    KIT_CHECK (kit, exit->failure_errno == wanted[i] && exit->failure != NULL
                      && exit->code != 0,
               "%s was to have never run, errno %d: %s", argv[i][0], wanted[i],
               case_exit_text (kit, exit));
    case_close (&run.out);
  }
}

/* ---- what is refused ----------------------------------------------------- */

static void
unknown_ids (struct kit *kit)
{
  static const char *const odd[] = { "0", "-1", "e999999", "x999999", "/", "..",
                                     "1 ", "%s", "99999999999999999999" };
  struct kit_reply reply = KIT_REPLY_INIT;
  struct kit_instance *const first = kit_first (kit);
  const char *const sandbox = kit_sandbox (kit), *const gone = kit_new_id (kit);
  const char *const argv[] = { "true", NULL };

  KIT_CODE (kit,
            kit_exec_start (first, &reply, gone, argv, NULL, NULL, -1, -1, -1,
                            NULL),
            &reply, COFFER_NOT_FOUND, "exec_start in no sandbox");
  KIT_CODE (kit, kit_exec_list (first, &reply, gone, NULL), &reply,
            COFFER_NOT_FOUND, "exec_list of no sandbox");
  KIT_CODE (kit, kit_exec_wait (first, &reply, gone, "1", NULL), &reply,
            COFFER_NOT_FOUND, "exec_wait in no sandbox");
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
    KIT_CODE (kit, kit_exec_wait (first, &reply, sandbox, odd[i], NULL), &reply,
              COFFER_NOT_FOUND, "exec_wait for a command \"%s\"", odd[i]);
  kit_reply_reset (&reply);
}

static void
cwd_relative (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  struct kit_instance *const first = kit_first (kit);
  const char *const sandbox = kit_sandbox (kit);
  const char *const argv[] = { "true", NULL };

  KIT_CODE (kit,
            kit_exec_start (first, &reply, sandbox, argv, NULL, "tmp", -1, -1,
                            -1, NULL),
            &reply, COFFER_INVALID, "exec_start with a folder that is not "
            "absolute");
  kit_reply_reset (&reply);
}

const struct kit_case kit_exec_cases[] = {
  { "exec.argv-exact", "exec",
    "Arguments arrive byte by byte: empty ones, blanks, quotes, what a shell "
    "would expand, every byte but NUL.",
    argv_exact },
  { "exec.argv-large", "exec",
    "1000 arguments and one of 100 KiB arrive whole.", argv_large },
  { "exec.env-exact", "exec",
    "Variables of the sandbox and of the command arrive byte by byte, the "
    "command's over the sandbox's.",
    env_exact },
  { "exec.env-clean", "exec",
    "Nothing of the host's environment is inside, and PATH and HOME are.",
    env_clean },
  { "exec.env-own", "exec",
    "What one command has in its environment the next one has not.", env_own },
  { "exec.cwd", "exec", "A command runs in the folder that it was given.",
    cwd_given },
  { "exec.cwd-default", "exec",
    "Without a folder it runs in the workspace that sandbox_info names.",
    cwd_default },
  { "exec.cwd-missing", "exec",
    "A command whose folder is missing does not run, and its end says why.",
    cwd_missing },
  { "exec.exit-codes", "exec", "Exit codes from 0 to 255 are exact.",
    exit_codes, 60000 },
  { "exec.signal-ends", "exec",
    "An end by a signal is told apart from an exit code.", signal_ends },
  { "exec.never-ran", "exec",
    "A program that is missing or may not be run is told by its errno, not by "
    "an exit code of its own.",
    never_ran },
  { "exec.unknown-ids", "exec",
    "Sandboxes and commands that nobody knows are NOT_FOUND.", unknown_ids },
  { "exec.cwd-relative", "exec",
    "A folder that is not absolute is INVALID.",
    cwd_relative },
  { NULL }
};
