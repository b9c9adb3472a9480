/* SPDX-License-Identifier: Apache-2.0 */
/* The program inside, put where the engine can show it from: in the provider's
 * own folder, which nobody else may write, under a name of its content, so that
 * what containers of an older coffer show stays as it is. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "docker.h"

#define PROGRAM_MOST (8 << 20)

static int
is_there (const struct docker *docker, const char *name, size_t size)
{
  struct stat st;

  return fstatat (docker->runtime, name, &st, AT_SYMLINK_NOFOLLOW) == 0
         && S_ISREG (st.st_mode) && (size_t) st.st_size == size
         && (st.st_mode & 07777) == 0555;
}

/* Several processes may do so at once: the same bytes, each of them whole. */
static int
put (const struct docker *docker, const char *name, const char *bytes,
     size_t size)
{
  struct coffer_new_file file = {0};
  int result;

  if (is_there (docker, name, size))
    return 0;
  result = coffer_new_file_begin (&file, docker->runtime, name, 0555, 0);
  if (result >= 0)
    result = coffer_write_all (file.fd, bytes, size) < 0 ? -1
             : coffer_new_file_commit (&file, 0, 0);
  coffer_new_file_abort (&file);
  return result;
}

static void
name_program (struct coffer_buffer *name, const char *bytes, size_t size)
{
  uint64_t hash = UINT64_C (0xcbf29ce484222325);

  for (size_t i = 0; i < size; i++)
    hash = (hash ^ (unsigned char) bytes[i]) * UINT64_C (0x100000001b3);
  coffer_buffer_printf (name, INSIDE_NAME "-%016llx",
                        (unsigned long long) hash);
}

void
docker_program_place (struct docker *docker, int program)
{
  coffer_autobuffer struct coffer_buffer name = {0}, whole = {0};
  char *bytes = NULL, *folder = NULL;
  size_t size;

  if (program < 0 || docker->runtime < 0
      || lseek (program, 0, SEEK_SET) < 0
      || coffer_read_whole (program, PROGRAM_MOST, &bytes, &size) < 0)
    return;
  name_program (&name, bytes, size);
  folder = coffer_fd_path (docker->runtime);
  if (folder && !name.failed && put (docker, name.data, bytes, size) == 0) {
    coffer_buffer_printf (&whole, "%s/%s", folder, name.data);
    docker->program_path = coffer_buffer_steal (&whole);
  }
  free (folder);
  free (bytes);
}
