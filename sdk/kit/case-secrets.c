/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the environment are nobody else's business. */

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "case.h"

/* A sandbox with a secret in its environment, and the one of a command. */
struct secrets {
  const char *sandbox, *of_sandbox, *of_command;
  const char *const *env;
};

static struct secrets
secrets_new (struct kit *kit)
{
  struct secrets secrets = { .of_sandbox = kit_random_word (kit, 32),
                             .of_command = kit_random_word (kit, 32) };
  const char *const spec_env[]
    = { kit_text (kit, "KIT_TOKEN=%s", secrets.of_sandbox), NULL };
  struct coffer_sandbox_spec spec = kit_spec (kit);
  const char **env = kit_memory (kit, 2 * sizeof *env);

  env[0] = kit_text (kit, "KIT_KEY=%s", secrets.of_command);
  env[1] = NULL;
  secrets.env = env;
  spec.env = spec_env;
  secrets.sandbox = kit_sandbox_with (kit, kit_first (kit), &spec);
  return secrets;
}

static void
quiet (struct kit *kit, const struct secrets *secrets,
       const struct kit_reply *reply, const char *what)
{
  KIT_CHECK (kit, !case_reply_has (reply, secrets->of_sandbox)
                    && !case_reply_has (reply, secrets->of_command),
             "%s showed the value of a variable of the environment, in a "
             "message, its details, the log or a record: %s",
             what, kit_shown (kit, reply));
}

/* ---- messages, logs, records --------------------------------------------- */

static void
quiet_starts (struct kit *kit, const struct secrets *secrets,
              struct kit_reply *reply)
{
  struct kit_instance *const first = kit_first (kit);
  const char *const fine[] = { "true", NULL };
  const char *const absent[] = { "/no/such/program", NULL };
  const struct {
    const char *const *argv;
    const char *cwd, *what;
  } rows[] = { { fine, NULL, "a command" },
               { absent, NULL, "a program that is missing" },
               { fine, "/no/such/folder", "a folder that is missing" },
               { fine, "relative", "a folder that is not absolute" } };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *exec;

    kit_exec_start (first, reply, secrets->sandbox, rows[i].argv, secrets->env,
                    rows[i].cwd, -1, -1, -1, NULL);
    quiet (kit, secrets, reply, kit_text (kit, "exec_start of %s",
                                          rows[i].what));
    if (kit_reply_exec_info (reply, 0) == NULL)
      continue;
    exec = kit_text (kit, "%s", kit_reply_exec_info (reply, 0)->exec);
    kit_exec_wait (first, reply, secrets->sandbox, exec, NULL);
    quiet (kit, secrets, reply, kit_text (kit, "exec_wait for %s",
                                          rows[i].what));
    if (kit_claims (kit, "exec.signal")) {
      kit_exec_signal (first, reply, secrets->sandbox, exec, SIGTERM, NULL);
      quiet (kit, secrets, reply, "exec_signal");
    }
  }
}

static void
env_quiet (struct kit *kit)
{
  const struct secrets secrets = secrets_new (kit);
  struct kit_instance *const first = kit_first (kit);
  const char *const spec_env[]
    = { kit_text (kit, "KIT_TOKEN=%s", secrets.of_sandbox), NULL };
  struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_reply reply = KIT_REPLY_INIT;

  spec.env = spec_env;
  kit_sandbox_create (first, &reply, secrets.sandbox, &spec, NULL);
  quiet (kit, &secrets, &reply, "sandbox_create");
  spec.workdir = "relative";
  kit_sandbox_create (first, &reply, kit_new_id (kit), &spec, NULL);
  quiet (kit, &secrets, &reply, "sandbox_create with a relative folder");
  kit_sandbox_info (first, &reply, secrets.sandbox, NULL);
  quiet (kit, &secrets, &reply, "sandbox_info");
  kit_sandbox_list (first, &reply, NULL);
  quiet (kit, &secrets, &reply, "sandbox_list");
  quiet_starts (kit, &secrets, &reply);
  kit_exec_list (first, &reply, secrets.sandbox, NULL);
  quiet (kit, &secrets, &reply, "exec_list");
  kit_sandbox_kill (first, &reply, secrets.sandbox, NULL);
  quiet (kit, &secrets, &reply, "sandbox_kill");
  kit_exec_list (first, &reply, secrets.sandbox, NULL);
  quiet (kit, &secrets, &reply, "exec_list of what is gone");
  kit_reply_reset (&reply);
}

/* ---- other sandboxes ------------------------------------------------------ */

/* What is to be seen in another one; where there is no isolation at all, only
 * its own environment. */
static void
env_others (struct kit *kit)
{
  const struct secrets secrets = secrets_new (kit);
  const char *const argv[] = { "sh", "-c", "echo began; sleep 60", NULL };
  const char *const other = kit_sandbox (kit);
  int isolated = strcmp (kit_isolation (kit), "none") != 0;
  const char *text;
  int out[2];

  kit_pipe (kit, out);
  {
    struct kit_reply reply = KIT_REPLY_INIT;
    struct case_run run = { kit, secrets.sandbox, NULL, -1, out[0] };

    KIT_OK (kit,
            kit_exec_start (kit_first (kit), &reply, secrets.sandbox, argv,
                            secrets.env, NULL, -1, out[1], -1, NULL),
            &reply, "exec_start");
    case_until (&run, "began");
    kit_reply_reset (&reply);
  }
  text = case_sh (kit, other, "env; %s true",
                  isolated ? "cat /proc/*/environ /proc/*/cmdline "
                             "/proc/*/task/*/environ 2>/dev/null | "
                             "tr '\\0' '\\n';"
                           : "");
  KIT_CHECK (kit, strstr (text, secrets.of_sandbox) == NULL
                    && strstr (text, secrets.of_command) == NULL,
             "the value of a variable of one sandbox is to be seen in "
             "another, in its environment or its /proc");
  if (!isolated)
    return;
  text = case_sh (
    kit, other, "grep -rlFs -e \"$(printf %%s%%s %.16s %s)\" "
    "-e \"$(printf %%s%%s %.16s %s)\" \"$HOME\" /tmp /var /run; true",
    secrets.of_sandbox, secrets.of_sandbox + 16, secrets.of_command,
    secrets.of_command + 16);
  KIT_CHECK (kit, text[0] == '\0',
             "the value of a variable of one sandbox is in a file of another: "
             "%s",
             text);
}

/* Arguments are there for everybody to read. */
static int
in_arguments (const char *word)
{
  DIR *dir = opendir ("/proc");
  struct dirent *entry;
  char path[300], *text;
  size_t size, found = 0;
  int fd;

  while (dir != NULL && !found && (entry = readdir (dir)) != NULL) {
    if (!isdigit ((unsigned char) entry->d_name[0]))
      continue;
    snprintf (path, sizeof path, "/proc/%s/cmdline", entry->d_name);
    fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || coffer_read_whole (fd, 4 * CASE_MIB, &text, &size) == -1) {
      coffer_fd_close (&fd);
      continue;
    }
    close (fd);
    found = memmem (text, size, word, strlen (word)) != NULL;
    free (text);
  }
  if (dir != NULL)
    closedir (dir);
  return found != 0;
}

static void
env_arguments (struct kit *kit)
{
  const struct secrets secrets = secrets_new (kit);
  const char *const argv[] = { "sh", "-c", "echo began; sleep 60", NULL };
  struct case_run run = { kit, secrets.sandbox, NULL, -1, -1 };
  struct kit_reply reply = KIT_REPLY_INIT;
  int out[2];

  kit_pipe (kit, out);
  run.out = out[0];
  KIT_OK (kit,
          kit_exec_start (kit_first (kit), &reply, secrets.sandbox, argv,
                          secrets.env, NULL, -1, out[1], -1, NULL),
          &reply, "exec_start");
  case_until (&run, "began");
  KIT_CHECK (kit, !in_arguments (secrets.of_sandbox)
                    && !in_arguments (secrets.of_command),
             "the value of a variable is in the arguments of a process of this "
             "machine, where everybody can read it");
  kit_reply_reset (&reply);
}

const struct kit_case kit_secret_cases[] = {
  { "secrets.env-quiet", "exec",
    "Values of the environment are in no message, log or record.", env_quiet },
  { "secrets.env-others", "exec",
    "Values of the environment are not to be seen in another sandbox.",
    env_others },
  { "secrets.env-arguments", "exec",
    "Values of the environment are in the arguments of no process of this "
    "machine.",
    env_arguments },
  { NULL }
};
