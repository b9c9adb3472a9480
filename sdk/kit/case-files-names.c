/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files, and attempts to leave the sandbox by one. */

#include <unistd.h>

#include "case.h"

/* ---- names --------------------------------------------------------------- */

/* Written, listed, seen inside, read back, removed; `name` is all of the
 * folder "n". */
static void
name_try (struct kit *kit, const char *sandbox, const char *name)
{
  const char *const path = kit_text (kit, "n/%s", name);
  const char *const body = kit_random_word (kit, 20);
  const char *const argv[] = { "sh", "-c", "cd n && for f in * .*; do "
                               "case $f in .|..) ;; *) test -e \"$f\" && "
                               "printf %s \"$f\";; esac; done", NULL };
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_file_stat *stat;
  const char *const shown = case_shown (kit, name, strlen (name));
  struct kit_exec exec = { .argv = argv };
  uint8_t *bytes;
  size_t size;

  KIT_OK (kit, case_put (kit, &reply, sandbox, path, body, 20, NULL), &reply,
          "file_write of a file named \"%s\"", shown);
  kit_exec (kit, sandbox, &exec);
  case_same_bytes (kit, exec.out, exec.out_size, name, strlen (name),
                   "the name of a file as a command inside sees it");
  KIT_OK (kit, kit_file_list (kit_first (kit), &reply, sandbox, "n", NULL),
          &reply, "file_list");
  stat = kit_reply_file_stat (&reply, 0);
  KIT_CHECK (kit, stat != NULL && stat->path != NULL
                    && strcmp (stat->path, name) == 0
                    && kit_reply_file_stat (&reply, 1) == NULL,
             "file_list was to name the file \"%s\" and no other: \"%s\"",
             shown,
             stat && stat->path
               ? case_shown (kit, stat->path, strlen (stat->path)) : "none");
  KIT_OK (kit, case_get (kit, &reply, sandbox, path, NULL, &bytes, &size),
          &reply, "file_read of \"%s\"", shown);
  case_same_bytes (kit, bytes, size, body, 20, shown);
  KIT_OK (kit,
          kit_file_remove (kit_first (kit), &reply, sandbox, path, NULL),
          &reply, "file_remove of \"%s\"", shown);
  kit_reply_reset (&reply);
}

static const char *
names_sandbox (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);

  case_sh (kit, sandbox, "mkdir n");
  return sandbox;
}

/* All bytes that a name may have, in names of a hundred. */
static void
name_bytes (struct kit *kit)
{
  const char *const sandbox = names_sandbox (kit);
  char name[128];
  int byte = 1;

  while (byte < 256) {
    size_t n = 0;

    for (; byte < 256 && n < 100; byte++)
      if (byte != '/')
        name[n++] = (char) byte;
    name[n] = '\0';
    name_try (kit, sandbox, name);
  }
}

static void
name_odd (struct kit *kit)
{
  static const char *const names[] = {
    "-rf", "--help", " ", "\n", "a\nb", "*", "?", "[a]", "$(id)", "`id`", ";ls",
    "a;b", "\"", "'", "\\", "\\n", "~", "#", "%s%n", "...", "..x", ".hidden",
    "x..", "con", "a:b", "C:\\x", "{\"a\":1}"
  };
  const char *const sandbox = names_sandbox (kit);

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    name_try (kit, sandbox, names[i]);
}

/* What looks the same is not. */
static void
name_unicode (struct kit *kit)
{
  static const char *const names[] = {
    "caf\xc3\xa9", "cafe\xcc\x81", "\xe2\x98\x83", "\xf0\x9f\x93\xa6",
    "\xe4\xbd\xa0\xe5\xa5\xbd", "\xe2\x80\xae" "abc", "\xef\xbb\xbf" "bom",
    "\xc0\xaf", "\xed\xa0\x80", "\xff"
  };
  const char *const sandbox = names_sandbox (kit);
  const char *text;

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    name_try (kit, sandbox, names[i]);
  case_put_text (kit, sandbox, "n/caf\xc3\xa9", "composed");
  case_put_text (kit, sandbox, "n/cafe\xcc\x81", "decomposed");
  text = case_sh (kit, sandbox, "ls n | wc -l; cat n/*");
  KIT_CHECK (kit, strtol (text, NULL, 10) == 2
                    && strstr (text, "decomposed") != NULL,
             "two names that look the same and have other bytes are one file: "
             "\"%s\"",
             case_shown (kit, text, strlen (text)));
}

static void
name_long (struct kit *kit)
{
  const char *const sandbox = names_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  char *const name = kit_random_word (kit, 256);
  const char *text;

  KIT_CHECK (kit, case_put (kit, &reply, sandbox, kit_text (kit, "n/%s", name),
                            "x", 1, NULL)
                    != COFFER_OK,
             "a file was written whose name has 256 bytes");
  text = case_sh (kit, sandbox, "ls -A n");
  KIT_CHECK (kit, text[0] == '\0', "a name of 256 bytes was cut to \"%s\"",
             text);
  name[255] = '\0';
  name_try (kit, sandbox, name);
  kit_reply_reset (&reply);
}

/* ---- attempts to leave --------------------------------------------------- */

/* Tries to read, write, list, rename and remove outside by a path that would
 * lead to the canary: none of it may have any of its bytes. */
static void
escape_try (struct kit *kit, const char *sandbox, const struct case_outside *outside,
            const char *path, const char *folder)
{
  const struct coffer_file_remove_opts all
    = { .size = sizeof all, .recursive = 1 };
  struct kit_instance *const first = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  uint8_t *bytes;
  size_t size;

  case_get (kit, &reply, sandbox, path, NULL, &bytes, &size);
  if (memmem (bytes, size, outside->secret, 40) != NULL)
    kit_fail (kit, "file_read of \"%s\" gave the bytes of a file of this "
              "machine, outside of every sandbox", path);
  case_put (kit, &reply, sandbox, path, "escaped", 7, NULL);
  case_outside_intact (kit, outside,
                       kit_text (kit, "file_write of \"%s\"", path));
  case_put (kit, &reply, sandbox, kit_text (kit, "%s/new", folder), "escaped",
            7, NULL);
  kit_file_mkdir (first, &reply, sandbox, kit_text (kit, "%s/dir", folder),
                  NULL);
  kit_file_rename (first, &reply, sandbox, path,
                   kit_text (kit, "%s/renamed", folder), NULL);
  case_outside_intact (kit, outside,
                       kit_text (kit, "file_write, file_mkdir and file_rename "
                                 "below \"%s\"", folder));
  kit_file_list (first, &reply, sandbox, folder, NULL);
  for (size_t i = 0; kit_reply_file_stat (&reply, i) != NULL; i++)
    if (strcmp (kit_reply_file_stat (&reply, i)->path, "canary") == 0)
      kit_fail (kit, "file_list of \"%s\" showed a folder of this machine, "
                "outside of every sandbox", folder);
  kit_file_remove (first, &reply, sandbox, path, NULL);
  kit_file_remove (first, &reply, sandbox, folder, &all);
  case_outside_intact (kit, outside,
                       kit_text (kit, "file_remove of \"%s\"", folder));
  kit_reply_reset (&reply);
}

static void
escape_dots (struct kit *kit)
{
  static const char *const ups[] = { "", "../../../../../../../../..",
                                     "/../../../../../../../..",
                                     "a/../../../../../../../../../..",
                                     "./../../../../../../../../..//." };
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  struct case_outside outside;
  uint8_t *bytes;
  size_t size;

  case_sh (kit, sandbox, "mkdir a; echo x > f");
  KIT_CHECK (kit, case_get (kit, &reply, sandbox, "a/../f", NULL, &bytes,
                            &size)
                    != COFFER_OK,
             "file_read of a path with \"..\" in it was to be refused");
  KIT_CHECK (kit, case_get (kit, &reply, sandbox, "", NULL, &bytes, &size)
                    != COFFER_OK,
             "file_read of an empty path was to be refused");
  kit_reply_reset (&reply);
  case_outside (kit, &outside);
  for (size_t i = 0; i < sizeof ups / sizeof ups[0]; i++)
    escape_try (kit, sandbox, &outside,
                kit_text (kit, "%s%s", ups[i], outside.file),
                kit_text (kit, "%s%s", ups[i], outside.path));
}

/* No link leads to more than the canary's folder: who follows them removes what
 * they lead to, at the latest with the sandbox. */
static void
escape_links (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct case_outside outside;

  case_outside (kit, &outside);
  case_sh (kit, sandbox,
           "ln -s %s folder; ln -s %s file; "
           "ln -s ../../../../../../../../..%s up; ln -s folder twice",
           outside.path, outside.file, outside.path);
  escape_try (kit, sandbox, &outside, "file", "folder");
  escape_try (kit, sandbox, &outside, "up/canary", "up");
  escape_try (kit, sandbox, &outside, "twice/canary", "twice");
}

/* A folder and a link take each other's place all the while. */
static void
escape_swapped (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const int64_t stop = kit_now_us () + 400000;
  struct case_outside outside;
  struct kit_reply reply = KIT_REPLY_INIT;
  struct case_run run;
  uint8_t *bytes;
  size_t size;

  case_outside (kit, &outside);
  case_start (kit, sandbox,
              kit_text (kit,
                        "mkdir real; echo in > real/canary; ln -s %s link; "
                        "echo began; while [ ! -e stop ]; do "
                        "mv real d; mv d real; mv link d; mv d link; done",
                        outside.path),
              0, NULL, &run);
  case_until (&run, "began");
  for (int i = 0; kit_now_us () < stop; i++) {
    case_get (kit, &reply, sandbox, "d/canary", NULL, &bytes, &size);
    if (memmem (bytes, size, outside.secret, 40) != NULL)
      kit_fail (kit, "file_read gave the bytes of a file of this machine while "
                "a link took a folder's place");
    case_put (kit, &reply, sandbox, "d/canary", "escaped", 7, NULL);
    case_put (kit, &reply, sandbox, "d/new", "escaped", 7, NULL);
    if (i % 16 == 0)
      case_outside_intact (kit, &outside, "file_write while a link took a "
                           "folder's place");
  }
  case_outside_intact (kit, &outside, "file_write while a link took a "
                       "folder's place");
  case_put_text (kit, sandbox, "stop", "");
  case_wait (&run);
  kit_reply_reset (&reply);
}

const struct kit_case kit_file_name_cases[] = {
  { "files.name-bytes", "exec files",
    "A name may have every byte but NUL and the slash.", name_bytes },
  { "files.name-odd", "exec files",
    "Names that a shell, an option or a format would take for more are names.",
    name_odd, 60000 },
  { "files.name-unicode", "exec files",
    "Names are bytes: composed and decomposed letters are two files, and what "
    "is not UTF-8 is one.",
    name_unicode },
  { "files.name-long", "exec files",
    "A name of 255 bytes is one, and a longer one is refused, not cut.",
    name_long },
  { "files.escape-dots", "exec files",
    "\"..\" and absolute paths lead to nothing outside.", escape_dots },
  { "files.escape-links", "exec files",
    "Links inside lead to nothing outside.", escape_links },
  { "files.escape-swapped", "exec files",
    "A link that takes a folder's place during a call leads to nothing "
    "outside.",
    escape_swapped },
  { NULL }
};
