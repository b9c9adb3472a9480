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

struct demand {
  int is_set;
  const char *name;
};

static int32_t
check_demands (struct coffer_call *call, const struct demand *demands,
               size_t count, const char *const *kept)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  for (size_t i = 0; i < count; i++)
    if (demands[i].is_set && !has (kept, demands[i].name)) {
      coffer_buffer_printf (&text, "%s: not to be had of this provider",
                            demands[i].name);
      return coffer_fail (call, COFFER_UNSUPPORTED,
                          text.failed ? demands[i].name : text.data);
    }
  return COFFER_OK;
}

int32_t
coffer_spec_check (struct coffer_call *call, const char *id,
                   const struct coffer_sandbox_spec *spec,
                   const char *const *kept)
{
  struct demand fields[] = {COFFER_FIELDS_sandbox_spec (FIELD, RFIELD)};
  const size_t count = sizeof fields / sizeof fields[0];

  if (!coffer_id_is_valid (id))
    return coffer_fail (call, COFFER_INVALID, "a sandbox's id is 1 to 64 "
                        "letters, digits, dashes, dots and underlines");
  if (COFFER_HAS (spec, workdir) && spec->workdir && spec->workdir[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "workdir must be absolute");
  for (size_t i = 0; i < count; i++)
    if (strcmp (fields[i].name, "template_fd") == 0)
      fields[i].is_set = 0;
  return check_demands (call, fields, count, kept);
}

#undef FIELD
#define FIELD(type, name, since, doc)                                         \
  {COFFER_HAS (opts, name) && IS_SET_##type (opts->name), #name},
#define OPTION(opts, field) (COFFER_HAS (opts, field) ? (opts)->field : 0)
#define TERMINAL_MOST 4096

int32_t
coffer_exec_check (struct coffer_call *call, const char *const *argv,
                   const char *cwd, int32_t in,
                   const struct coffer_exec_start_opts *opts,
                   const char *const *kept)
{
  const struct demand options[] = {COFFER_OPTS_exec_start (FIELD, RFIELD)};
  int32_t code;

  if (!argv || !argv[0])
    return coffer_fail (call, COFFER_INVALID, "argv is empty");
  if (cwd && cwd[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "cwd must be absolute");
  code = check_demands (call, options, sizeof options / sizeof options[0],
                        kept);
  if (code != COFFER_OK)
    return code;
  if (OPTION (opts, tty) && in < 0)
    return coffer_fail (call, COFFER_INVALID, "tty without a terminal");
  if (OPTION (opts, rows) > TERMINAL_MOST
      || OPTION (opts, columns) > TERMINAL_MOST)
    return coffer_fail (call, COFFER_INVALID, "rows and columns are 1 to 4096");
  return COFFER_OK;
}
