/* SPDX-License-Identifier: Apache-2.0 */
/* Ids and specifications, by the contract's own table of fields: what a minor
 * adds is looked at without a line here. */

#define _GNU_SOURCE

#include <string.h>

#include <coffer/buffer.h>
#include <coffer/spec.h>

int
coffer_id_is_valid (const char *id)
{
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  size_t size = id ? strnlen (id, 65) : 0;

  return size > 0 && size <= 64 && id[0] != '.' && strspn (id, allowed) == size;
}

static int
has (const char *const *words, const char *word)
{
  for (; words && *words; words++)
    if (strcmp (*words, word) == 0)
      return 1;
  return 0;
}

static int
any (const char *const *strings)
{
  return strings && strings[0];
}

#define IS_SET_str(value) ((value) != NULL)
#define IS_SET_text(value) ((value) != NULL)
#define IS_SET_strv(value) any (value)
#define IS_SET_u32(value) ((value) != 0)
#define IS_SET_u64(value) ((value) != 0)
#define IS_SET_flag(value) ((value) != 0)
#define IS_SET_fd(value) ((value) >= 0)
#define FIELD(type, name, since, doc)                                         \
  {COFFER_HAS (spec, name) && IS_SET_##type (spec->name), #name},
#define RFIELD(type, record, name, since, doc)                                \
  {COFFER_HAS (spec, name) && spec->name && spec->name[0], #name},

int32_t
coffer_spec_check (struct coffer_call *call, const char *id,
                   const struct coffer_sandbox_spec *spec,
                   const char *const *kept)
{
  const struct {
    int is_set;
    const char *name;
  } fields[] = {COFFER_FIELDS_sandbox_spec (FIELD, RFIELD)};
  coffer_autobuffer struct coffer_buffer text = {0};

  if (!coffer_id_is_valid (id))
    return coffer_fail (call, COFFER_INVALID, "a sandbox's id is 1 to 64 "
                        "letters, digits, dashes, dots and underlines");
  if (COFFER_HAS (spec, workdir) && spec->workdir && spec->workdir[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "workdir must be absolute");
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    if (fields[i].is_set && !has (kept, fields[i].name)
        && strcmp (fields[i].name, "template_fd") != 0) {
      coffer_buffer_printf (&text, "%s: not to be had of this provider",
                            fields[i].name);
      return coffer_fail (call, COFFER_UNSUPPORTED,
                          text.failed ? fields[i].name : text.data);
    }
  return COFFER_OK;
}
