/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen of a sealed memory file, and the comparisons around it. */

#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "provider/loader.h"

#define KNOWN_NEEDS 0u

/* "linux.so" is "linux"; a dash cannot stand in a C name. */
static void
module_stem (const char *file, char stem[COFFER_NAME_MAX])
{
  size_t i;

  for (i = 0; i < COFFER_NAME_MAX - 1 && file[i] && file[i] != '.'; i++)
    stem[i] = file[i] == '-' ? '_' : file[i];
  stem[i] = '\0';
}

int
module_check (const struct contract *contract, const struct coffer_note *note,
              const struct module_claim *claim, struct error **err)
{
  char stem[COFFER_NAME_MAX];

  if (contract_check_version (contract, note->contract_major,
                              note->contract_minor, note->least_minor, err)
      < 0)
    return -1;
  if (note->needs & ~KNOWN_NEEDS)
    return error_set (err, E_CONTRACT_VERSION, 0,
                      "the module needs features this host does not have: "
                      "%#x", note->needs & ~KNOWN_NEEDS);
  if (note->contract_major != claim->contract_major
      || note->contract_minor != claim->contract_minor)
    return error_set (err, E_CONTRACT_VERSION, 0,
                      "the manifest says contract %u.%u, the module %u.%u",
                      claim->contract_major, claim->contract_minor,
                      note->contract_major, note->contract_minor);
  if ((int) note->threads != claim->threads)
    return error_set (err, E_MODULE, 0,
                      "the manifest and the module disagree about threads");
  module_stem (claim->file, stem);
  if (strnlen (note->name, COFFER_NAME_MAX) == COFFER_NAME_MAX
      || strcmp (note->name, stem) != 0)
    return error_set (err, E_MODULE, 0,
                      "the module %s calls itself \"%.*s\"", claim->file,
                      COFFER_NAME_MAX, note->name);
  return 0;
}

/* Newer than the oldest headers that coffer is built with: of the kernel's
 * <linux/fs.h>. */
struct map_query {
  uint64_t size, flags, address;
  uint64_t start, end, vma_flags, page_size, offset, inode;
  uint32_t major_id, minor_id, name_size, build_id_size;
  uint64_t name, build_id;
};
#define MAP_QUERY _IOWR ('f', 17, struct map_query)

/* Linux 6.11 and newer tell of one address.  1 and 0; -1: this one does not. */
static int
address_asked (const void *address, const struct stat *st, int maps_fd)
{
  struct map_query query = { .size = sizeof query,
                             .address = (uintptr_t) address };

  if (ioctl (maps_fd, MAP_QUERY, &query) < 0)
    return errno == ENOENT ? 0 : -1;
  return query.inode == st->st_ino
         && makedev (query.major_id, query.minor_id) == st->st_dev;
}

/* How many of `n` addresses; takes maps_fd. */
static int
addresses_read (const void *const *addresses, int n, const struct stat *st,
                int take_maps_fd)
{
  unsigned long from, to, inode;
  unsigned major_id, minor_id;
  char line[512];
  int found = 0, i;
  FILE *maps = fdopen (take_maps_fd, "r");

  if (!maps) {
    close (take_maps_fd);
    return 0;
  }
  while (found < n && fgets (line, sizeof line, maps))
    if (sscanf (line, "%lx-%lx %*s %*x %x:%x %lu", &from, &to, &major_id,
                &minor_id, &inode) == 5
        && inode == st->st_ino && makedev (major_id, minor_id) == st->st_dev)
      for (i = 0; i < n; i++)
        found += (uintptr_t) addresses[i] >= from
                 && (uintptr_t) addresses[i] < to;
  fclose (maps);
  return found;
}

/* Do `n` addresses lie in mappings of the file behind `fd`?  glibc matches
 * loaded objects by name, and a name is not proof.  A descriptor is data, so
 * that it lies in another mapping than the entry. */
static int
addresses_in_file (const void *const *addresses, int n, int fd, int maps_fd)
{
  const int confined = maps_fd >= 0;
  struct stat st;
  int i, asked = 1;

  if (fstat (fd, &st) < 0)
    return 0;
  maps_fd = confined ? fcntl (maps_fd, F_DUPFD_CLOEXEC, 0)
                     : open ("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps_fd < 0)
    return 0;
  for (i = 0; !confined && asked == 1 && i < n; i++)
    asked = address_asked (addresses[i], &st, maps_fd);
  if (!confined && asked >= 0) {
    close (maps_fd);
    return asked;
  }
  if (lseek (maps_fd, 0, SEEK_SET) < 0) {
    close (maps_fd);
    return 0;
  }
  return addresses_read (addresses, n, &st, maps_fd) == n;
}

static int
compare_descriptor (const struct coffer_provider *descriptor,
                    const struct coffer_note *note, struct error **err)
{
  if (descriptor->size < sizeof *descriptor)
    return error_set (err, E_MODULE, 0, "the module's descriptor is short");
  if (descriptor->contract_major != note->contract_major
      || descriptor->contract_minor != note->contract_minor
      || descriptor->least_minor != note->least_minor
      || descriptor->threads != note->threads
      || descriptor->needs != note->needs || !descriptor->name
      || strncmp (descriptor->name, note->name, COFFER_NAME_MAX) != 0)
    return error_set (err, E_MODULE, 0,
                      "the module's descriptor and its note differ");
  return 0;
}

static int
is_claimed (char *const *capabilities, const char *word)
{
  if (!*word)
    return 1;
  for (; capabilities && *capabilities; capabilities++)
    if (strcmp (*capabilities, word) == 0)
      return 1;
  return 0;
}

static int
slot_is_filled (const struct coffer_operations *operations, uint32_t slot)
{
  void (*function) (void);

  if (slot > operations->size
      || operations->size - slot < sizeof function)
    return 0;
  memcpy (&function, (const char *) operations + slot, sizeof function);
  return function != NULL;
}

static int
check_slots (const struct contract *contract, uint16_t minor,
             const struct coffer_operations *operations,
             const struct module_claim *claim, struct error **err)
{
  const struct contract_op *op;
  size_t i;

  if (!operations || operations->size < 2 * sizeof (uint32_t)
      || operations->size > 64 * 1024)
    return error_set (err, E_MODULE, 0, "the module's vtable has no size");
  for (i = 0; i < contract->n_ops; i++) {
    op = &contract->ops[i];
    if (op->since <= minor && is_claimed (claim->capabilities, op->capability)
        && !slot_is_filled (operations, op->slot))
      return error_set (err, E_MODULE, 0,
                        *op->capability
                        ? "the module has no %s, which \"%s\" promises"
                        : "the module has no %s, which every one must have",
                        op->name, op->capability);
  }
  return 0;
}

/* Runs the module's constructors and its entry. */
static int
open_object (struct module *module, uint16_t major, int maps_fd,
             struct error **err)
{
  const struct coffer_provider *(*entry) (void);
  const void *addresses[2];
  char path[64], symbol[64];
  void *address;

  snprintf (path, sizeof path, "/proc/%d/fd/%d", (int) getpid (), module->fd);
  snprintf (symbol, sizeof symbol, "coffer_provider_%u", major);
  module->handle = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (!module->handle)
    return error_set (err, E_MODULE, 0, "the module cannot be loaded: %s",
                      dlerror ());
  address = dlsym (module->handle, symbol);
  if (!address)
    return error_set (err, E_MODULE, 0, "the module does not export %s",
                      symbol);
  memcpy (&entry, &address, sizeof entry);
  module->descriptor = entry ();
  addresses[0] = address;
  addresses[1] = module->descriptor;
  if (!addresses_in_file (addresses, 2, module->fd, maps_fd))
    return error_set (err, E_MODULE, 0,
                      "%s and its descriptor do not lie in the file that was "
                      "checked", symbol);
  return 0;
}

int
module_load_confined (const struct contract *contract, int take_fd,
                      int maps_fd, const struct coffer_note *note,
                      const struct module_claim *claim, struct module **out,
                      struct error **err)
{
  auto_module struct module *module = calloc (1, sizeof *module);

  if (!module) {
    close (take_fd);
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  }
  module->fd = take_fd;
  if (open_object (module, contract->major, maps_fd, err) < 0
      || compare_descriptor (module->descriptor, note, err) < 0
      || check_slots (contract, note->contract_minor,
                      module->descriptor->operations, claim, err) < 0
      || contract_calls_new (contract, note->contract_minor, &module->calls,
                             err) < 0)
    return -1;
  module->operations = module->descriptor->operations;
  *out = steal (module);
  return 0;
}

int
module_load (const struct contract *contract, int take_fd,
             const struct coffer_note *note, const struct module_claim *claim,
             struct module **out, struct error **err)
{
  return module_load_confined (contract, take_fd, -1, note, claim, out, err);
}

int
module_built_in (const struct contract *contract,
                 const struct coffer_provider *descriptor,
                 const struct module_claim *claim, struct module **out,
                 struct error **err)
{
  auto_module struct module *module = calloc (1, sizeof *module);

  if (!module)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  module->fd = -1;
  module->descriptor = descriptor;
  module->operations = descriptor->operations;
  if (check_slots (contract, descriptor->contract_minor, module->operations,
                   claim, err) < 0
      || contract_calls_new (contract, descriptor->contract_minor,
                             &module->calls, err) < 0)
    return -1;
  *out = steal (module);
  return 0;
}

void
module_free (struct module *module)
{
  if (!module)
    return;
  contract_calls_free (module->calls);
  if (!module->handle)
    coffer_fd_close (&module->fd);
  free (module);
}
