/* SPDX-License-Identifier: Apache-2.0 */
/* Where groups can be made: below the one that this process is in. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"

const char *
place_why (int error)
{
  switch (error) {
  case EROFS:
    return "the control groups are read-only here: a container needs "
           "/sys/fs/cgroup writable";
  case EACCES:
  case EPERM:
    return "no control group may be made here: `systemd-run --user --scope -p "
           "Delegate=yes coffer …` gives one to an ordinary user";
  case EBUSY:
    return "the control group of this process has others in it, and none with "
           "limits may be below it: `systemd-run --scope -p Delegate=yes "
           "coffer …` gives one of its own";
  case ENOENT:
    return "no tree of control groups with this controller is mounted";
  case ENAMETOOLONG:
    return "the path of this process's control group is too long";
  default:
    return "the kernel refuses control groups with limits here";
  }
}

static int
list_has (const char *list, const char *word)
{
  size_t n = strlen (word);

  for (; list != NULL; list = strchr (list, ',')) {
    list += *list == ',';
    if (strncmp (list, word, n) == 0 && (list[n] == ',' || list[n] == '\0'
                                         || list[n] == '\n'))
      return 1;
  }
  return 0;
}

/* This process's path in the tree of a controller (NULL: of version 2). */
static int
own_path (const char *own, const char *controller, char out[PATH_MAX])
{
  char line[PATH_MAX + 128], *first, *second;
  FILE *file = fopen (own, "re");
  int found = 0;

  if (file == NULL)
    return -1;
  while (!found && fgets (line, sizeof line, file) != NULL) {
    first = strchr (line, ':');
    second = first ? strchr (first + 1, ':') : NULL;
    if (second == NULL)
      continue;
    *second++ = '\0';
    second[strcspn (second, "\n")] = '\0';
    if (controller != NULL ? list_has (first + 1, controller)
                           : first[1] == '\0')
      found = snprintf (out, PATH_MAX, "%s", second) < PATH_MAX;
  }
  fclose (file);
  /* Outside of what this process's namespace shows. */
  if (found && strncmp (out, "/..", 3) == 0)
    found = 0;
  return found ? 0 : -1;
}

/* mountinfo writes blanks and backslashes as three octal digits. */
static void
unescape (char *text)
{
  char *to = text;

  for (; *text != '\0'; text++, to++) {
    if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3'
        && text[2] >= '0' && text[2] <= '7' && text[3] >= '0'
        && text[3] <= '7') {
      *to = (char) ((text[1] - '0') * 64 + (text[2] - '0') * 8
                    + (text[3] - '0'));
      text += 3;
    } else
      *to = *text;
  }
  *to = '\0';
}

/* What a line of mountinfo shows of the own path; 1: this is it. */
static int
line_shows (const char *line, const char *controller, const char *own,
            char out[PATH_MAX])
{
  char root[PATH_MAX], point[PATH_MAX], type[32], options[1024];
  const char *tail = strstr (line, " - "), *rest;
  size_t n;

  if (tail == NULL
      || sscanf (line, "%*s %*s %*s %4095s %4095s", root, point) != 2
      || sscanf (tail, " - %31s %*s %1023s", type, options) != 2
      || strcmp (type, controller ? "cgroup" : "cgroup2") != 0
      || (controller != NULL && !list_has (options, controller)))
    return 0;
  unescape (root);
  unescape (point);
  n = strcmp (root, "/") == 0 ? 0 : strlen (root);
  if (strncmp (own, root, n) != 0 || (own[n] != '/' && own[n] != '\0'))
    return 0;
  rest = strcmp (own + n, "/") == 0 ? "" : own + n;
  return snprintf (out, PATH_MAX, "%s%s", point, rest) < PATH_MAX;
}

/* The folder that shows it.  0, or an errno: ENOENT, there is no such tree. */
static int
own_folder (const char *own, const char *mounts, const char *controller,
            char out[PATH_MAX])
{
  char line[4 * PATH_MAX], path[PATH_MAX];
  FILE *file;
  int found = 0;

  out[0] = '\0';
  if (own_path (own, controller, path) == -1)
    return ENOENT;
  file = fopen (mounts, "re");
  if (file == NULL)
    return errno;
  while (!found && fgets (line, sizeof line, file) != NULL)
    found = line_shows (line, controller, path, out);
  fclose (file);
  if (!found) {
    out[0] = '\0';
    return ENOENT;
  }
  return access (out, W_OK | X_OK) == 0 ? 0 : errno;
}

static void
v1_find (struct place *place, unsigned wanted, const char *own,
         const char *mounts)
{
  static const char *const names[TREES]
    = { "memory", "pids", "cpu" };
  int i, error, first = 0;

  for (i = 0; i < TREES; i++) {
    error = own_folder (own, mounts, names[i], place->dirs[i]);
    if (error != ENOENT)
      place->version = 1;
    if (error == 0)
      place->bits |= 1u << i;
    else if ((wanted & (1u << i)) && first == 0)
      first = error;
  }
  if (first != 0)
    place->why = place_why (first);
}

void
place_find (struct place *place, unsigned wanted, const char *own,
            const char *mounts)
{
  int error;

  memset (place, 0, sizeof *place);
  v1_find (place, wanted, own, mounts);
  if (place->version == 1) {
    place->bits &= wanted;
    return;
  }
  place->bits = 0;
  place->why = NULL;
  error = own_folder (own, mounts, NULL, place->dirs[0]);
  if (error == 0) {
    place->version = 2;
    place->bits = v2_prepare (place->dirs[0], wanted, &error);
  }
  if (wanted & ~place->bits)
    place->why = place_why (error ? error : ENOENT);
}
