/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, each of them reached; and the root that a template gives. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"

static int
count_of (const char *text, const char *word)
{
  int count = 0;

  for (; (text = strstr (text, word)) != NULL; text += strlen (word))
    count++;
  return count;
}

/* ---- memory --------------------------------------------------------------- */

#define TAKE                                                                  \
  "take () { awk -v n=$1 'BEGIN { s = \"x\"; while (length(s) < n) s = s s; " \
  "print \"took\" }'; }\n"

static const char *
memory_sandbox (struct kit *kit)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);

  spec.memory_bytes = 96 * CASE_MIB;
  return kit_sandbox_with (kit, kit_first (kit), &spec);
}

static void
memory (struct kit *kit)
{
  const char *const sandbox = memory_sandbox (kit);
  const struct coffer_exec_exit *exit;
  const char *text
    = case_sh_exit (kit, sandbox, TAKE "take 400000000", &exit);

  KIT_CHECK (kit, strstr (text, "took") == NULL,
             "a command took 400 MB in a sandbox with 96 MiB");
  KIT_CHECK (kit, exit->oom == 1 && case_has_word (exit->limits_hit, "memory"),
             "a command that wanted 400 MB in a sandbox with 96 MiB was to end "
             "with oom and memory among limits_hit: %s, oom %" PRIu32,
             case_exit_text (kit, exit), exit->oom);
  case_sh (kit, kit_sandbox (kit), "true");
}

/* Each on its own would do, and keeps what it has until all have had their
 * turn. */
static void
memory_whole (struct kit *kit)
{
  const char *const sandbox = memory_sandbox (kit);
  const struct coffer_exec_exit *exit;
  const char *text = case_sh_exit (
    kit, sandbox,
    "for i in 1 2 3 4 5 6; do ( awk -v i=$i 'BEGIN { s = \"x\"; "
    "while (length(s) < 33000000) s = s s; print \"took\"; fflush(); "
    "system(\": > up\" i \"; until [ -e go ]; do sleep 0.05; done\") }'; "
    ": > up$i ) & done; for i in 1 2 3 4 5 6; do until [ -e up$i ]; do "
    "sleep 0.05; done; done; : > go; wait",
    &exit);

  KIT_CHECK (kit, count_of (text, "took") < 6,
             "six commands each took 33 MB and more at the same time, in a "
             "sandbox with 96 MiB");
}

/* ---- processes and processors --------------------------------------------- */

/* Each that came up stays; a shell that may start no more may end there. */
static void
pids (struct kit *kit)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);
  char text[4096] = "";
  struct case_run run;
  size_t size = 0;
  ssize_t n = 1;
  int count;

  spec.pids = 24;
  case_start (kit, kit_sandbox_with (kit, kit_first (kit), &spec),
              "i=0; while [ $i -lt 60 ]; do sh -c 'echo up; exec sleep 1000' & "
              "i=$((i+1)); done",
              0, NULL, &run);
  case_wait (&run);
  while ((count = count_of (text, "up\n")) <= 24 && n > 0
         && (count < 5 ? case_speaks (&run) : case_quiet (&run, 200)) == 1) {
    n = read (run.out, text + size, sizeof text - 1 - size);
    size += n > 0 ? (size_t) n : 0;
    text[size] = '\0';
  }
  KIT_CHECK (kit, count <= 24 && count >= 5,
             "in a sandbox with 24 processes %d of 60 came up at the same "
             "time", count);
}

/* By the shell's own count of its time, against the wall's. */
static void
cpu (struct kit *kit)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);
  int64_t began, wall;
  unsigned minutes[2];
  double seconds[2], used;
  const char *sandbox, *text;

  spec.cpu_millis = 250;
  sandbox = kit_sandbox_with (kit, kit_first (kit), &spec);
  began = kit_now_us ();
  text = case_sh (kit, sandbox,
                  "i=0; while [ $i -lt 250000 ]; do i=$((i+1)); done; times");
  wall = kit_now_us () - began;
  KIT_CHECK (kit, sscanf (text, "%um%lfs %um%lfs", &minutes[0], &seconds[0],
                          &minutes[1], &seconds[1])
                    == 4,
             "times said \"%s\"", text);
  used = minutes[0] * 60 + seconds[0] + minutes[1] * 60 + seconds[1];
  KIT_CHECK (kit, used < 0.1 || (double) wall / 1e6 >= used * 2,
             "a command with a quarter of a processor used %.3f seconds of it "
             "in %.3f",
             used, (double) wall / 1e6);
}

/* ---- disk ----------------------------------------------------------------- */

static const char *
disk_sandbox (struct kit *kit, uint64_t bytes, uint64_t inodes,
              const char *const *require)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);

  spec.disk_bytes = bytes;
  spec.inodes = inodes;
  spec.require = require;
  return kit_sandbox_with (kit, kit_first (kit), &spec);
}

static void
disk (struct kit *kit)
{
  const char *const sandbox = disk_sandbox (kit, 8 * CASE_MIB, 0, NULL);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_exec_exit *exit;
  const size_t size = 16 * CASE_MIB;
  const char *text = case_sh_exit (
    kit, sandbox, "head -c 67108864 /dev/zero 2>/dev/null > big; echo $?; "
    "cat big /tmp/* 2>/dev/null | wc -c",
    &exit);
  char *rest;

  KIT_CHECK (kit, strtol (text, &rest, 10) != 0,
             "64 MiB were written to a disk of 8 MiB without an error");
  KIT_CHECK (kit, strtoul (rest, NULL, 10) <= size / 2,
             "%lu bytes lie on a disk of 8 MiB", strtoul (rest, NULL, 10));
  if (!kit_claims (kit, "files"))
    return;
  KIT_CODE (kit,
            case_put (kit, &reply, sandbox, "more",
                      memset (kit_memory (kit, size), 'x', size), size, NULL),
            &reply, COFFER_LIMIT, "file_write of 16 MiB to a disk of 8 MiB");
  kit_reply_reset (&reply);
}

static void
inodes (struct kit *kit)
{
  const char *const sandbox = disk_sandbox (kit, 0, 200, NULL);
  const char *text = case_sh (
    kit, sandbox, "i=0; while [ $i -lt 1000 ]; do ( : > f$i ) 2>/dev/null || "
    "break; i=$((i+1)); done; ls | wc -l");

  KIT_CHECK (kit, strtol (text, NULL, 10) <= 200
                    && strtol (text, NULL, 10) >= 20,
             "in a sandbox with 200 inodes %ld files could be made",
             strtol (text, NULL, 10));
}

/* Four at once, and what is there is counted all the while. */
static void
quota_hard (struct kit *kit)
{
  static const char *const require[] = { "quota.hard", NULL };
  const char *const sandbox
    = disk_sandbox (kit, 16 * CASE_MIB, 0, require);
  const char *text = case_sh (
    kit, sandbox,
    "for i in 1 2 3 4; do ( for k in 1 2 3 4 5 6; do "
    "head -c 4194304 /dev/zero >> w$i; done ) 2>/dev/null & done\n"
    "for i in 1 2 3 4 5 6 7 8 9 10; do cat w* 2>/dev/null | wc -c; done\n"
    "wait; cat w* | wc -c");
  const char *line;
  unsigned long most = 0, last = 0;

  for (line = text; *line != '\0'; line += strcspn (line, "\n") + 1) {
    last = strtoul (line, NULL, 10);
    most = last > most ? last : most;
  }
  KIT_CHECK (kit, most <= 16 * CASE_MIB,
             "%lu bytes lay on a disk of 16 MiB whose cap holds at every "
             "instant",
             most);
  KIT_CHECK (kit, last >= 8 * CASE_MIB,
             "four writers of 24 MiB each brought %lu bytes to a disk of "
             "16 MiB",
             last);
}

/* ---- templates ------------------------------------------------------------ */

/* A root of /bin/sh, ls and what they need, made here. */
static void
template_root (struct kit *kit)
{
  const char *const folder = kit_folder (kit);
  const char *const word = kit_random_word (kit, 20);
  struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *const made_inside = kit_text (kit, "/bin/new-%s", word);
  const char *const argv[]
    = { "/bin/sh", "-c", "echo /bin/mark*; : > \"$1\" && echo wrote", "sh",
        made_inside, NULL };
  struct kit_exec exec = { .argv = argv };
  const char *sandbox = kit_new_id (kit), *wanted;
  int32_t code, made;
  int fd;

  made = system (kit_text (
    kit, "cd %s && chmod 755 . && mkdir bin etc && : > bin/mark-%s && "
    "cp -L --parents /bin/sh $(ldd /bin/sh | grep -o '/[^ :]*lib[^ :]*') .",
    folder, word));
  fd = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  spec.template_name = "kit";
  spec.template_fd = fd;
  code = made == 0 ? kit_sandbox_create (kit_first (kit), &reply, sandbox,
                                         &spec, NULL)
                   : COFFER_INTERNAL;
  if (code == COFFER_OK) {
    kit_exec (kit, sandbox, &exec);
    kit_sandbox_kill (kit_first (kit), &reply, sandbox, NULL);
  }
  fd = access (kit_text (kit, "%s%s", folder, made_inside), F_OK);
  unlink (made_inside);         /* where the claim is a lie, it is here */
  KIT_CHECK (kit, made == 0, "a root of /bin/sh could not be made here");
  KIT_CHECK (kit, code == COFFER_OK, "sandbox_create of a template: %s",
             kit_shown (kit, &reply));
  wanted = kit_text (kit, "/bin/mark-%s\n", word);
  KIT_CHECK (kit, strncmp ((char *) exec.out, wanted, strlen (wanted)) == 0,
             "the root of a template was to have %s in it: \"%s\", %s", wanted,
             case_shown (kit, exec.out, exec.out_size),
             case_exit_text (kit, exec.exit));
  KIT_CHECK (kit, strstr ((char *) exec.out, "wrote") == NULL && fd == -1,
             "a command changed the template that its root was made of");
  kit_reply_reset (&reply);
}

const struct kit_case kit_limit_cases[] = {
  { "limits.memory", "exec limit.memory",
    "Who wants more memory than there is ends, and its end says so.", memory,
    60000 },
  { "limits.memory-whole", "exec limit.memory",
    "The cap on memory is one for all processes together.", memory_whole,
    60000 },
  { "limits.pids", "exec limit.pids",
    "There are never more processes than the cap.", pids,
    60000 },
  { "limits.cpu", "exec limit.cpu",
    "Processor time is no more than its share of the time.", cpu, 60000 },
  { "limits.disk", "exec limit.disk",
    "No more is written than the cap, from inside or outside.", disk },
  { "limits.inodes", "exec limit.disk",
    "No more files are made than the cap.", inodes },
  { "limits.quota-hard", "exec quota.hard",
    "The cap on the disk holds at every instant, for many writers at once.",
    quota_hard, 60000 },
  { "templates.root", "exec templates",
    "A template is the root of a sandbox, and stays as it is.", template_root },
  { NULL }
};
