/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the channel, both ways: as a hostile worker may send them, and as a
 * host with a fault might.  The first byte
 * says what comes beside the text: its low bits how many descriptors, 0x20
 * that the last is a memory file, 0x40 that the file is sealed, 0x80 that its
 * size is as claimed.  Whatever comes, no descriptor may be left open, and
 * what is accepted has a kind and at most sixteen of them. */

#include <config.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contract/contract.h"
#include "provider/channel.h"

#define MOST 20
#define PAYLOAD 70000

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

/* The text again, with blanks behind it: more than a frame holds. */
static int
memory_file (const uint8_t *bytes, size_t size, uint8_t how)
{
  int fd = memfd_create ("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  static char blanks[PAYLOAD];

  must (fd >= 0);
  memset (blanks, ' ', sizeof blanks);
  memcpy (blanks, bytes, size < PAYLOAD ? size : PAYLOAD);
  must (write (fd, blanks, how & 0x80 ? PAYLOAD : PAYLOAD / 2) > 0);
  if (how & 0x40)
    must (fcntl (fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW
                                  | F_SEAL_WRITE) == 0);
  return fd;
}

static void
look (const struct channel_message *message)
{
  static const char *const keys[] = { "text", "message", "target", "what",
                                      "details" };
  auto_arena struct contract_arena *arena = contract_arena_new ();
  const struct contract_record *record;
  char **list = channel_byte_list (message->json, "value");
  union contract_value values[CONTRACT_MAX_ARGS + 1];
  const char *name = json_string_value (json_object_get (message->json, "op"));
  const struct contract_op *op
    = name ? contract_op_by_name (contract_builtin (), name) : NULL;
  void *data;
  size_t i;

  must (channel_kind (message) != NULL);
  must (message->fds.count <= CONTRACT_MAX_FDS);
  for (i = 0; i < sizeof keys / sizeof keys[0]; i++)
    free (channel_bytes (message->json, keys[i]));
  channel_free_list (list);
  record = contract_record_by_id (
    contract_builtin (),
    (uint32_t) channel_integer (message->json, "record", 0));
  if (record)
    contract_decode_record (record, json_object_get (message->json, "value"),
                            &message->fds, arena, &data, NULL);
  if (op)
    contract_decode_args (op, json_object_get (message->json, "args"),
                          &message->fds, arena, values, NULL);
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  struct channel_message message = { .json = NULL };
  int fds[MOST], count, i, kept[MOST];
  auto_error struct error *err = NULL;
  uint8_t how;

  if (size < 1)
    return 0;
  how = *bytes++;
  size--;
  count = (how & 0x1f) % MOST;
  for (i = 0; i < count; i++)
    fds[i] = i == count - 1 && (how & 0x20)
             ? memory_file (bytes, size, how)
             : open ("/dev/null", O_RDONLY | O_CLOEXEC);
  memcpy (kept, fds, sizeof kept);
  /* The claim that goes with the memory file. */
  if (how & 0x20)
    bytes = (const uint8_t *) "{\"payload\":70000}", size = 17;
  if (channel_decode ((const char *) bytes, size, fds, count, &message, &err)
      == 0) {
    must (!err);
    look (&message);
    channel_message_fini (&message);
  } else {
    must (err && err->number == E_PROVIDER_PROTOCOL);
  }
  for (i = 0; i < count; i++)
    must (fcntl (kept[i], F_GETFD) < 0);
  return 0;
}
