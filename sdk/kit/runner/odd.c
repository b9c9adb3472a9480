/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments by the table: plain ones, and odd ones, which no sane caller gives
 * and the contract allows.
 *
 * A module may be broken in any way, so nothing here may hurt the machine when
 * it is: a path that something is removed or written at holds a random word,
 * and a folder of the host that is shown inside is an empty one of the run's. */

#include <config.h>

#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "contract/contract.h"
#include "contract/values.h"
#include "runner.h"

#define MAX_FDS 8

/* One call's arguments on their way. */
struct drawing {
  struct kit *kit;
  const struct contract_op *op;
  const char *sandbox;
  int odd;
  int fds[MAX_FDS];             /* ours, closed after the call */
  int n_fds;
  struct coffer_buffer shown;
};

static uint64_t
below (struct drawing *drawing, uint64_t n)
{
  return kit_random_below (drawing->kit, n);
}

/* ---- bytes --------------------------------------------------------------- */

static const char *
repeat (struct kit *kit, char c, size_t n)
{
  char *text = kit_memory (kit, n + 1);

  memset (text, c, n);
  return text;
}

/* A short one, for a name: with bytes that are careless with text. */
static const char *
odd_word (struct drawing *drawing, int utf8)
{
  static const char *const texts[] = {
    "", " ", "-", "--", ".", "a b", "a\nb", "\t", "%s%n%d", "$(id)", "`id`",
    "'\"\\", "你好", "e\xcc\x81", "\xf0\x9f\x98\x80", ("\xe2\x80\xae" "abc"), "{}",
    "null", "0", "-1", "=", "=x", "A=", "NAME", "..", "*", "~", "\x1b[2J", "\x7f"
  };
  static const char *const bytes[] = { "\xff", "\xc3", ("a\xfe" "b"),
                                       "\xed\xa0\x80", "\x80\x80" };
  struct kit *kit = drawing->kit;

  switch (below (drawing, utf8 ? 3 : 4)) {
  case 0:
    return kit_random_word (kit, 1 + below (drawing, 40));
  case 1:
    return repeat (kit, 'x', 200 + below (drawing, 8000));
  case 2:
    return texts[below (drawing, sizeof texts / sizeof texts[0])];
  default:
    return bytes[below (drawing, sizeof bytes / sizeof bytes[0])];
  }
}

static int
reads_only (const struct contract_op *op)
{
  return op->id == COFFER_OP_file_read || op->id == COFFER_OP_file_stat
         || op->id == COFFER_OP_file_list || op->id == COFFER_OP_file_watch;
}

static const char *
odd_path (struct drawing *drawing)
{
  static const char *const anywhere[] = {
    "", "/", ".", "..", "../../../../etc/passwd", "//", "/proc/self/mem",
    "/dev/null", "/dev/zero/x", "a/../../b", "/proc/1/root", "./././."
  };
  struct kit *kit = drawing->kit;
  const char *word = kit_random_word (kit, 12);

  if (reads_only (drawing->op) && below (drawing, 3) == 0) {
    /* Endless ones would only be waited for. */
    return anywhere[below (drawing, sizeof anywhere / sizeof anywhere[0])];
  }
  switch (below (drawing, 6)) {
  case 0:
    return kit_text (kit, "kit-%s", word);
  case 1:
    return kit_text (kit, "kit-%s/./b/../kit-%s", word, word);
  case 2:
    return kit_text (kit, "kit-%s\n\xff \"'", word);
  case 3:
    return kit_text (kit, "kit-%s%s", word, repeat (kit, 'n', 300));
  case 4:
    return kit_text (kit, "kit-%s/%s", word, repeat (kit, '/', 5000));
  default:
    return kit_text (kit, "%skit-%s", below (drawing, 2) ? "./" : "", word);
  }
}

static const char *
draw_text (struct drawing *drawing, const struct contract_field *field)
{
  const int utf8 = field->type == CONTRACT_TEXT;

  if (strcmp (field->name, "sandbox") == 0)
    return !drawing->odd || below (drawing, 4)
             ? drawing->sandbox : odd_word (drawing, utf8);
  if (!drawing->odd)
    return strcmp (field->name, "path") == 0 || strcmp (field->name, "from") == 0
             ? kit_text (drawing->kit, "kit-%s",
                         kit_random_word (drawing->kit, 8))
           : field->optional ? NULL : kit_random_word (drawing->kit, 8);
  if (strcmp (field->name, "path") == 0 || strcmp (field->name, "from") == 0
      || strcmp (field->name, "to") == 0)
    return odd_path (drawing);
  if (field->optional && below (drawing, 2))
    return NULL;
  return odd_word (drawing, utf8);
}

/* ---- vectors ------------------------------------------------------------- */

static const char *const *
draw_strv (struct drawing *drawing, const struct contract_field *field)
{
  static const char *const plain[] = { "/bin/true", NULL };
  const char **out;
  size_t i, n;

  if (!drawing->odd)
    return strcmp (field->name, "argv") == 0 ? plain : NULL;
  n = below (drawing, 8) ? below (drawing, 4) : 2000;
  /* The host hands on no empty command. */
  if (strcmp (field->name, "argv") == 0)
    n++;
  out = kit_memory (drawing->kit, (n + 1) * sizeof *out);
  for (i = 0; i < n; i++)
    out[i] = n > 100 ? "N=1" : odd_word (drawing, 0);
  return out;
}

/* ---- numbers ------------------------------------------------------------- */

/* What is in order, for numbers that may not be 0. */
static int64_t
plain_number (const struct contract_field *field)
{
  static const struct {
    const char *name;
    int64_t value;
  } table[] = { { "port", 1 }, { "signal", 15 }, { "rows", 24 },
                { "columns", 80 }, { "ttl_ms", 600000 } };
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++)
    if (strcmp (field->name, table[i].name) == 0)
      return table[i].value;
  return 0;
}

static void
draw_number (struct drawing *drawing, const struct contract_field *field,
             union contract_value *value)
{
  static const int64_t edges[] = {
    0, 1, -1, 2, 7, 4096, 4097, 65535, 65536, INT32_MIN, INT32_MAX, INT64_MIN,
    INT64_MAX, -4096, 1000000
  };
  const int64_t number
    = drawing->odd ? edges[below (drawing, sizeof edges / sizeof edges[0])]
                     : plain_number (field);

  switch (field->type) {
  case CONTRACT_I32:
    value->i32 = (int32_t) number;
    break;
  case CONTRACT_I64:
    value->i64 = number;
    break;
  case CONTRACT_U32:
    value->u32 = (uint32_t) number;
    break;
  case CONTRACT_U64:
    value->u64 = (uint64_t) number;
    break;
  case CONTRACT_F64:
    value->f64 = drawing->odd ? (double) number * 1e9 : 0;
    break;
  default:
    value->u32 = drawing->odd ? (uint32_t) below (drawing, 2) : 0;
  }
}

/* ---- descriptors --------------------------------------------------------- */

static int
keep (struct drawing *drawing, int fd)
{
  if (fd < 0 || drawing->n_fds == MAX_FDS) {
    coffer_fd_close (&fd);
    return -1;
  }
  return drawing->fds[drawing->n_fds++] = fd;
}

/* A stream at its end, so that nothing is waited for: the right end of a pipe
 * whose other end is closed, the wrong one, or a socket. */
static int
draw_fd (struct drawing *drawing, const struct contract_field *field)
{
  const int reads = strcmp (field->name, "in") == 0;
  const uint64_t kind = drawing->odd ? below (drawing, 4) : 1;
  int ends[2];

  if (kind == 0)
    return -1;
  if (kind < 3)
    kit_pipe (drawing->kit, ends);
  else if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
    return -1;
  if (kind == 2) {              /* the wrong end */
    close (ends[reads ? 0 : 1]);
    return keep (drawing, ends[reads ? 1 : 0]);
  }
  if (reads)
    close (ends[1]);
  else if (drawing->odd)
    close (ends[0]);
  else
    keep (drawing, ends[0]);
  return keep (drawing, ends[reads ? 0 : 1]);
}

/* ---- records ------------------------------------------------------------- */

static void draw_value (struct drawing *drawing,
                        const struct contract_field *field,
                        union contract_value *value);

static void *
new_record (struct drawing *drawing, const struct contract_record *record)
{
  char *data = kit_memory (drawing->kit, record->size);
  union contract_value value;
  uint16_t i;

  memcpy (data, &record->size, sizeof record->size);
  for (i = 0; i < record->n_fields; i++) {
    contract_value_default (record->fields[i].type, &value);
    contract_value_write (record->fields[i].type,
                          data + record->fields[i].offset, &value);
  }
  return data;
}

/* A descriptor in a record is a folder: an empty one. */
static int
empty_folder (struct drawing *drawing)
{
  const char *path
    = kit_text (drawing->kit, "%s/empty", drawing->kit->subject->folder);

  mkdir (path, 0700);
  return keep (drawing, open (path, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Some fields only, so that some of what is made is made. */
static const void *
draw_record (struct drawing *drawing, const struct contract_record *record)
{
  char *data = new_record (drawing, record);
  uint16_t i;

  for (i = 0; drawing->odd && i < record->n_fields; i++) {
    const struct contract_field *field = &record->fields[i];
    union contract_value value;

    if (below (drawing, 6))
      continue;
    contract_value_default (field->type, &value);
    if (field->type == CONTRACT_FD)
      value.i32 = below (drawing, 2) ? -1 : empty_folder (drawing);
    else
      draw_value (drawing, field, &value);
    contract_value_write (field->type, data + field->offset, &value);
  }
  return data;
}

/* What every provider can make, where nothing odd was drawn over it. */
static const void *
draw_spec (struct drawing *drawing, const struct contract_record *record)
{
  struct coffer_sandbox_spec *spec
    = (struct coffer_sandbox_spec *) (uintptr_t) draw_record (drawing, record);

  if (!spec->network)
    spec->network = kit_spec (drawing->kit).network;
  return spec;
}

static void
draw_value (struct drawing *drawing, const struct contract_field *field,
            union contract_value *value)
{
  const void **vector;

  switch (field->type) {
  case CONTRACT_STR:
  case CONTRACT_TEXT:
    value->str = draw_text (drawing, field);
    break;
  case CONTRACT_STRV:
    value->strv = draw_strv (drawing, field);
    break;
  case CONTRACT_FD:
    value->i32 = draw_fd (drawing, field);
    break;
  case CONTRACT_REC:
    value->rec = field->record->id == COFFER_REC_sandbox_spec
                   ? draw_spec (drawing, field->record)
                   : draw_record (drawing, field->record);
    break;
  case CONTRACT_RECV:
    vector = kit_memory (drawing->kit, 2 * sizeof *vector);
    vector[0] = draw_record (drawing, field->record);
    value->recv = vector;
    break;
  default:
    draw_number (drawing, field, value);
  }
}

/* ---- the call ------------------------------------------------------------ */

static void
show (struct drawing *drawing, const union contract_value *values)
{
  struct contract_fds fds = { .count = 0 };
  auto_json json_t *json = NULL;
  auto_free char *text = NULL;

  if (contract_encode_args (drawing->op, values, &json, &fds, NULL) == 0)
    text = json_text (json);
  coffer_buffer_printf (&drawing->shown, "%s %.600s", drawing->op->name,
                        text ? text : "?");
}

static int32_t
call_drawn (struct kit_instance *instance, struct kit_reply *reply,
            uint32_t id, const char *sandbox, int odd, const char **shown)
{
  struct drawing drawing = {
    .kit = instance->kit, .sandbox = sandbox, .odd = odd,
    .op = contract_op_by_id (contract_builtin (), id)
  };
  union contract_value values[CONTRACT_MAX_ARGS + 1];
  int32_t code;
  uint16_t i;

  for (i = 0; i < drawing.op->n_args; i++) {
    contract_value_default (drawing.op->args[i].type, &values[i]);
    draw_value (&drawing, &drawing.op->args[i], &values[i]);
  }
  values[i].rec = odd && below (&drawing, 2)
                    ? draw_record (&drawing, drawing.op->opts) : NULL;
  if (shown) {
    show (&drawing, values);
    *shown = kit_text (instance->kit, "%s", drawing.shown.data
                       ? drawing.shown.data : drawing.op->name);
    coffer_buffer_free (&drawing.shown);
  }
  code = call_values (instance, reply, id, values);
  while (drawing.n_fds > 0)
    close (drawing.fds[--drawing.n_fds]);
  return code;
}

int32_t
kit_call_plain (struct kit_instance *instance, struct kit_reply *reply,
                uint32_t op, const char *sandbox)
{
  return call_drawn (instance, reply, op, sandbox, 0, NULL);
}

int32_t
kit_call_odd (struct kit_instance *instance, struct kit_reply *reply,
              uint32_t op, const char *sandbox, const char **shown)
{
  return call_drawn (instance, reply, op, sandbox, 1, shown);
}
