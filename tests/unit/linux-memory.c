/* SPDX-License-Identifier: Apache-2.0 */
/* Inside: takes memory that processes share, WAY BYTES, and touches all of it.
 * What could not be had is printed with its errno. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

static volatile char *
sysv (size_t size)
{
  int id = shmget (IPC_PRIVATE, size, IPC_CREAT | 0600);
  void *at;

  if (id < 0) {
    printf ("shmget %d\n", errno);
    return NULL;
  }
  at = shmat (id, NULL, 0);
  shmctl (id, IPC_RMID, NULL);
  return at == (void *) -1 ? NULL : at;
}

static volatile char *
mapped (int fd, size_t size)
{
  void *at = mmap (NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

  if (at == MAP_FAILED) {
    printf ("mmap %d\n", errno);
    return NULL;
  }
  return at;
}

static volatile char *
memfd (size_t size)
{
  int fd = memfd_create ("x", 0);

  if (fd < 0 || ftruncate (fd, (off_t) size) == -1) {
    printf ("memfd %d\n", errno);
    return NULL;
  }
  return mapped (fd, size);
}

int
main (int argc, char *argv[])
{
  size_t size = argc == 3 ? strtoull (argv[2], NULL, 10) : 0, i;
  volatile char *at = NULL;

  if (size == 0)
    return 3;
  if (strcmp (argv[1], "sysv") == 0)
    at = sysv (size);
  else if (strcmp (argv[1], "memfd") == 0)
    at = memfd (size);
  else if (strcmp (argv[1], "mapped") == 0)
    at = mapped (-1, size);
  if (at == NULL)
    return 1;
  for (i = 0; i < size; i += 4096)
    at[i] = 1;
  printf ("touched %zu\n", size);
  return 0;
}
