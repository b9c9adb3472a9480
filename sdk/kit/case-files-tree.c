/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of a sandbox from outside: lists, making, renaming, removing,
 * watching, and what is refused. */

#include <poll.h>

#include "case.h"

static int32_t
remove_path (struct kit *kit, struct kit_reply *reply, const char *sandbox,
             const char *path, uint32_t recursive)
{
  const struct coffer_file_remove_opts opts
    = { .size = sizeof opts, .recursive = recursive };

  return kit_file_remove (kit_first (kit), reply, sandbox, path,
                          recursive ? &opts : NULL);
}

static void
expect_text (struct kit *kit, const char *came, const char *wanted,
             const char *what)
{
  KIT_CHECK (kit, strcmp (came, wanted) == 0,
             "%s: \"%s\" was expected and \"%s\" came", what,
             case_shown (kit, wanted, strlen (wanted)),
             case_shown (kit, came, strlen (came)));
}

/* ---- lists --------------------------------------------------------------- */

static void
list (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);

  expect_text (kit, case_names (kit, sandbox, ".", 0), "",
               "file_list of a workspace that nobody has used");
  case_sh (kit, sandbox,
           "mkdir d .e; : > f; : > .g; ln -s f l; mkfifo p; mkdir d/sub; "
           ": > d/sub/deep; : > d/in");
  expect_text (kit, case_names (kit, sandbox, ".", 0),
               "directory .e\ndirectory d\nfifo p\nfile .g\nfile f\n"
               "symlink l\n",
               "file_list of a folder, sorted");
  expect_text (kit, case_names (kit, sandbox, "d", 1),
               "directory sub\nfile in\n",
               "file_list with depth 1, sorted");
}

static void
list_deep (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);

  case_sh (kit, sandbox, "mkdir -p t/a/b/c; : > t/1; : > t/a/2; : > t/a/b/3; "
           "ln -s b t/a/all");
  expect_text (kit, case_names (kit, sandbox, "t", 2),
               "directory a\ndirectory a/b\nfile 1\nfile a/2\n"
               "symlink a/all\n",
               "file_list with depth 2, sorted");
  expect_text (kit, case_names (kit, sandbox, "t", 10),
               "directory a\ndirectory a/b\ndirectory a/b/c\nfile 1\n"
               "file a/2\nfile a/b/3\nsymlink a/all\n",
               "file_list with depth 10, sorted");
}

static void
list_many (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  uint8_t *const seen = kit_memory (kit, 500);
  const struct coffer_file_stat *stat;
  size_t n;

  memset (seen, 0, 500);
  case_sh (kit, sandbox,
           "mkdir m; cd m; i=0; while [ $i -lt 500 ]; do : > $i; "
           "i=$((i+1)); done");
  KIT_OK (kit, kit_file_list (kit_first (kit), &reply, sandbox, "m", NULL),
          &reply, "file_list of 500 files");
  for (n = 0; (stat = kit_reply_file_stat (&reply, n)) != NULL; n++) {
    const unsigned long at = stat->path ? strtoul (stat->path, NULL, 10) : 0;

    KIT_CHECK (kit, at < 500 && !seen[at],
               "file_list of 500 files named %s, which %s",
               stat->path ? stat->path : "nothing",
               at < 500 ? "it had named before" : "is not there");
    seen[at] = 1;
  }
  KIT_CHECK (kit, n == 500, "file_list of 500 files named %zu", n);
  kit_reply_reset (&reply);
}

/* ---- making and removing ------------------------------------------------- */

static void
mkdirs (struct kit *kit)
{
  const struct coffer_file_mkdir_opts opts
    = { .size = sizeof opts, .parents = 1 };
  const char *const sandbox = kit_sandbox (kit);
  struct kit_instance *const first = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_OK (kit, kit_file_mkdir (first, &reply, sandbox, "d", NULL), &reply,
          "file_mkdir");
  KIT_CODE (kit, kit_file_mkdir (first, &reply, sandbox, "d", NULL), &reply,
            COFFER_EXISTS, "file_mkdir of a folder that is there");
  KIT_OK (kit, kit_file_mkdir (first, &reply, sandbox, "d", &opts), &reply,
          "file_mkdir, with parents, of a folder that is there");
  KIT_CODE (kit, kit_file_mkdir (first, &reply, sandbox, "x/y/z", NULL),
            &reply, COFFER_NOT_FOUND, "file_mkdir below a missing folder");
  KIT_OK (kit, kit_file_mkdir (first, &reply, sandbox, "x/y/z", &opts),
          &reply, "file_mkdir with parents");
  case_sh (kit, sandbox, "test -d d && test -d x/y/z");
  kit_reply_reset (&reply);
}

static void
removes (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;

  case_sh (kit, sandbox, ": > f; mkdir d full; : > full/x; ln -s full l; "
           ": > kept");
  KIT_OK (kit, remove_path (kit, &reply, sandbox, "f", 0), &reply,
          "file_remove of a file");
  KIT_OK (kit, remove_path (kit, &reply, sandbox, "d", 0), &reply,
          "file_remove of an empty folder");
  KIT_OK (kit, remove_path (kit, &reply, sandbox, "l", 0), &reply,
          "file_remove of a link");
  KIT_CODE (kit, remove_path (kit, &reply, sandbox, "full", 0), &reply,
            COFFER_CONFLICT, "file_remove of a folder that is not empty");
  expect_text (kit, case_sh (kit, sandbox, "find . | sort"),
               ".\n./full\n./full/x\n./kept\n", "what was to be left");
  kit_reply_reset (&reply);
}

/* A link in the tree is removed, and where it leads to is not. */
static void
removes_tree (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;

  case_sh (kit, sandbox,
           "mkdir -p t/a/b/c other/kept; : > other/f; : > t/a/b/f; "
           "ln -s ../../other t/a/link; ln -s \"$PWD/other\" t/abs; "
           "mkfifo t/p; chmod 500 t/a/b/c; i=0; while [ $i -lt 300 ]; do "
           ": > t/a/$i; i=$((i+1)); done");
  KIT_OK (kit, remove_path (kit, &reply, sandbox, "t", 1), &reply,
          "file_remove of a tree");
  expect_text (kit, case_sh (kit, sandbox, "find . | sort"),
               ".\n./other\n./other/f\n./other/kept\n",
               "after a tree with links to another was removed");
  kit_reply_reset (&reply);
}

static void
renames (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct kit_instance *const first = kit_first (kit);
  const char *const word = kit_random_word (kit, 20);
  struct kit_reply reply = KIT_REPLY_INIT;

  case_sh (kit, sandbox, "printf %s > a; echo old > b; mkdir d; ln -s b l",
           word);
  KIT_OK (kit, kit_file_rename (first, &reply, sandbox, "a", "b", NULL),
          &reply, "file_rename over a file");
  KIT_OK (kit, kit_file_rename (first, &reply, sandbox, "b", "d/c", NULL),
          &reply, "file_rename into a folder");
  KIT_OK (kit, kit_file_rename (first, &reply, sandbox, "d", "e", NULL),
          &reply, "file_rename of a folder");
  KIT_OK (kit, kit_file_rename (first, &reply, sandbox, "l", "m", NULL),
          &reply, "file_rename of a link");
  expect_text (kit, case_sh (kit, sandbox, "find . | sort; cat e/c; "
                             "test -h m && echo link"),
               kit_text (kit, ".\n./e\n./e/c\n./m\n%slink\n", word),
               "after some renames");
  KIT_CODE (kit, kit_file_rename (first, &reply, sandbox, "none", "x", NULL),
            &reply, COFFER_NOT_FOUND, "file_rename of nothing");
  kit_reply_reset (&reply);
}

/* ---- what is refused ----------------------------------------------------- */

static void
missing (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit), *const gone = kit_new_id (kit);
  struct kit_instance *const first = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  uint8_t *bytes;
  size_t size;

  KIT_CODE (kit, case_get (kit, &reply, sandbox, "no", NULL, &bytes, &size),
            &reply, COFFER_NOT_FOUND, "file_read of nothing");
  KIT_CODE (kit, kit_file_stat (first, &reply, sandbox, "no/where", NULL),
            &reply, COFFER_NOT_FOUND, "file_stat of nothing");
  KIT_CODE (kit, kit_file_list (first, &reply, sandbox, "no", NULL), &reply,
            COFFER_NOT_FOUND, "file_list of nothing");
  KIT_CODE (kit, remove_path (kit, &reply, sandbox, "no", 0), &reply,
            COFFER_NOT_FOUND, "file_remove of nothing");
  KIT_CODE (kit, remove_path (kit, &reply, sandbox, "no", 1), &reply,
            COFFER_NOT_FOUND, "recursive file_remove of nothing");
  KIT_CODE (kit, case_put (kit, &reply, gone, "f", "x", 1, NULL), &reply,
            COFFER_NOT_FOUND, "file_write in no sandbox");
  KIT_CODE (kit, kit_file_list (first, &reply, gone, ".", NULL), &reply,
            COFFER_NOT_FOUND, "file_list in no sandbox");
  kit_reply_reset (&reply);
}

/* Not a regular file: neither read, nor replaced, nor waited for. */
static void
other_kinds (struct kit *kit)
{
  static const char *const paths[] = { "d", "p", "l", "dangling", "/dev/zero" };
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  uint8_t *bytes;
  size_t size;

  case_sh (kit, sandbox, "mkdir d; mkfifo p; printf kept > f; ln -s f l; "
           "ln -s g dangling");
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    KIT_CHECK (kit, case_get (kit, &reply, sandbox, paths[i], NULL, &bytes,
                              &size) != COFFER_OK
                      && reply.code != COFFER_TIMEOUT && size == 0,
               "file_read of %s (a folder, a pipe, a link, a device) was to be "
               "refused at once: %s, %zu bytes",
               paths[i], kit_shown (kit, &reply), size);
    KIT_CHECK (kit, case_put (kit, &reply, sandbox, paths[i], "new", 3, NULL)
                      != COFFER_OK
                      && reply.code != COFFER_TIMEOUT,
               "file_write over %s (a folder, a pipe, a link, a device) was to "
               "be refused at once: %s",
               paths[i], kit_shown (kit, &reply));
  }
  expect_text (kit, case_sh (kit, sandbox, "cat f; ls -A; test -d d && "
                             "test -p p && test -h l && echo same"),
               "keptd\ndangling\nf\nl\np\nsame\n",
               "after what is no file was refused");
  kit_reply_reset (&reply);
}

/* ---- watching ------------------------------------------------------------ */

struct watch {
  struct kit_reply reply;
  const char *sandbox;
  uint32_t ms;                  /* before and after */
  int32_t code;
};

static void
watch_work (struct kit *kit, void *data, size_t index)
{
  struct watch *watch = data;

  if (index == 0) {
    watch->code = kit_file_watch (kit_first (kit), &watch->reply,
                                  watch->sandbox, "d", NULL);
    return;
  }
  poll (NULL, 0, (int) watch->ms);      /* nothing says that it has begun */
  case_sh (kit, watch->sandbox, "echo x > d/made; mv d/made d/moved; "
           "rm d/moved");
  poll (NULL, 0, (int) watch->ms);
  kit_cancel (watch->reply.cancel_fd);
}

/* 1: the first of the events was said, 2: the last, 3: both. */
static int
watch_try (struct kit *kit, const char *sandbox, uint32_t ms)
{
  static const char *const kinds[]
    = { "created", "changed", "removed", "renamed", "lost", NULL };
  struct watch watch = { .reply = KIT_REPLY_INIT, .sandbox = sandbox,
                         .ms = ms };
  const struct coffer_file_event *event;
  int said = 0;

  watch.reply.cancel_fd = kit_cancel_new (kit);
  kit_threads (kit, 2, watch_work, &watch);
  KIT_CHECK (kit, watch.code == COFFER_OK || watch.code == COFFER_CANCELLED,
             "file_watch that is cancelled: %s",
             kit_shown (kit, &watch.reply));
  for (size_t i = 0; (event = kit_reply_file_event (&watch.reply, i)) != NULL;
       i++) {
    KIT_CHECK (kit, event->kind != NULL && case_has_word (kinds, event->kind),
               "file_watch emitted an event of the kind \"%s\"",
               event->kind ? event->kind : "");
    if (event->path == NULL)
      continue;
    said |= strcmp (event->kind, "created") == 0
            && strcmp (event->path, "made") == 0;
    said |= (strcmp (event->kind, "removed") == 0
             && strcmp (event->path, "moved") == 0) << 1;
  }
  kit_reply_reset (&watch.reply);
  return said;
}

/* What comes before the watch has begun is not told: then once more with more
 * time. */
static void
watches (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  uint32_t ms = 10;
  int said;

  case_sh (kit, sandbox, "mkdir d");
  do {
    ms *= 5;
    said = watch_try (kit, sandbox, ms);
  } while (said != 3 && ms < 5000);
  KIT_CHECK (kit, said == 3,
             "a file in a watched folder was made as \"made\", renamed and "
             "removed as \"moved\": %s%s of it was said",
             said & 1 ? "" : "the first", said & 2 ? "" : " the last");
}

const struct kit_case kit_file_tree_cases[] = {
  { "files.list", "exec files",
    "A list has every entry of a folder with its kind, and no other.", list },
  { "files.list-deep", "exec files",
    "A list goes as deep as asked, and through no link.", list_deep },
  { "files.list-many", "exec files", "A folder of 500 files is listed whole.",
    list_many },
  { "files.mkdir", "exec files",
    "Folders are made, with those above them where that is asked for.", mkdirs },
  { "files.remove", "exec files",
    "Files, links and empty folders are removed, and no others.", removes },
  { "files.remove-tree", "exec files",
    "A tree is removed with all in it; what its links lead to stays.",
    removes_tree },
  { "files.rename", "exec files",
    "Files, folders and links get another name, over a file too.", renames },
  { "files.missing", "files",
    "What is not there is NOT_FOUND, and so is a sandbox.", missing },
  { "files.other-kinds", "exec files",
    "Folders, pipes, links and devices are neither read nor written, and "
    "nobody waits for them.",
    other_kinds },
  { "files.watch", "exec files.watch",
    "Changes of a folder are told until the watch is cancelled.", watches,
    60000 },
  { NULL }
};
