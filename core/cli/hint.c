/* SPDX-License-Identifier: Apache-2.0 */
/* Why did it not work inside?  Most often because a file or a program is only
 * here. */

#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/host.h"

static int
is_below (const char *path, const char *folder)
{
  size_t length = strlen (folder);

  while (length && folder[length - 1] == '/')
    length--;
  return !strncmp (path, folder, length)
         && (path[length] == '/' || !path[length]);
}

/* What every sandbox shares with the machine or has in its place, with all that
 * is below; and folders that are there, but with other things in them. */
static int
is_common (const char *path)
{
  static const char *const shared[] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc",
    "/proc", "/dev", "/sys", NULL
  };
  static const char *const own[] = {
    "/home", "/opt", "/run", "/tmp", "/var", "/var/tmp", "/workspace", NULL
  };
  size_t i;

  for (i = 0; shared[i]; i++)
    if (is_below (path, shared[i]))
      return 1;
  for (i = 0; own[i]; i++)
    if (!strcmp (path, own[i]))
      return 1;
  return 0;
}

/* Is `argument` covered by a mount, seen from the folder the command starts
 * in? */
static int
is_shown (const char *argument, const struct sandbox_request *shown)
{
  const char *start = shown && shown->workdir ? shown->workdir : "/workspace";
  auto_free char *inside = NULL, *here = NULL;
  size_t i;

  inside = argument[0] == '/' ? strdup (argument)
                              : text_printf ("%s/%s", start, argument);
  for (i = 0; inside && shown && i < shown->n_mounts; i++) {
    const struct sandbox_mount *mount = &shown->mounts[i];

    if (!is_below (inside, mount->target))
      continue;
    here = text_printf ("%s%s", mount->source,
                        inside + strlen (mount->target));
    return here && access (here, F_OK) == 0;
  }
  return argument[0] == '/' && is_common (argument);
}

char *
hint_argument (const char *const *argv, const struct sandbox_request *shown)
{
  struct stat st;
  size_t i;

  for (i = 0; argv[i]; i++) {
    const char *argument = argv[i];

    /* A bare first word is a program's name, not a file's. */
    if (!*argument || *argument == '-' || (i == 0 && !strchr (argument, '/')))
      continue;
    if (!strcmp (argument, ".") || !strcmp (argument, "/")
        || stat (argument, &st) < 0
        || !(S_ISREG (st.st_mode) || S_ISDIR (st.st_mode))
        || is_shown (argument, shown))
      continue;
    if (argument[0] == '/')
      return text_printf ("%s exists here but not inside: add -v %s:%s:ro",
                          argument, argument, argument);
    return text_printf ("%s exists here but not inside: add -w .", argument);
  }
  return NULL;
}

char *
hint_program (const char *name)
{
  const char *path = getenv ("PATH"), *end;
  char *full;

  if (strchr (name, '/') || !*name)
    return NULL;
  for (; path && *path; path = *end ? end + 1 : end) {
    end = strchrnul (path, ':');
    if (*path != '/')
      continue;
    full = text_printf ("%.*s/%s", (int) (end - path), path, name);
    if (full && access (full, X_OK) == 0)
      return full;
    free (full);
  }
  return NULL;
}

void
hint_user (const char *user, struct error **err)
{
  if (user && *err && (*err)->number == E_CAPABILITY
      && strstr (error_message (*err), ": user: "))
    error_hint (err, "leave --user out: there is one user inside, who is none "
                "of this machine's, and no root");
}

char *
hint_start (const char *name, int failure)
{
  struct stat st;

  if (failure == EACCES && strchr (name, '/'))
    return text_printf ("make it executable (chmod +x), or name what runs it, "
                        "such as python3 %s", name);
  if (failure != ENOENT || strchr (name, '/') || stat (name, &st) < 0
      || !S_ISREG (st.st_mode))
    return NULL;
  return text_printf ("%s is a file here and no program on PATH: name what "
                      "runs it, such as -w . -- python3 %s", name, name);
}
