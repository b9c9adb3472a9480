/* SPDX-License-Identifier: Apache-2.0 */
/* The strict YAML reader: libyaml's events become a small tree, and whatever
 * a manifest has no use for is refused at its line and column.  The tree is
 * built while the events come, so that the caps on depth and count hold
 * before the memory is spent. */

#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "base/text.h"
#include "base/yaml.h"

struct reader {
  yaml_parser_t parser;
  struct yaml_source source;
  const char *bytes;
  size_t size;
  size_t index, offset;         /* the same place, in characters and bytes */
  size_t nodes;
};

static int read_node (struct reader *reader, const yaml_event_t *event,
                      unsigned depth, struct yaml_node *out,
                      struct error **err);

/* Frees what a node holds, not the node. */
static void
node_fini (struct yaml_node *node)
{
  size_t i;

  for (i = 0; i < node->count; i++) {
    node_fini (&node->items[i]);
    if (node->keys)
      free (node->keys[i]);
  }
  free (node->items);
  free (node->keys);
  free (node->key_marks);
  free (node->text);
  memset (node, 0, sizeof *node);
}

void
yaml_node_free (struct yaml_node *node)
{
  if (node == NULL)
    return;
  node_fini (node);
  free (node);
}

static int
fail_at (const struct yaml_source *source, size_t line, size_t column,
         struct error **err, const char *what)
{
  return error_set (err, source->number, 0, "%s:%zu:%zu: %s", source->name,
                    line, column, what);
}

int
yaml_fail (const struct yaml_source *source, const struct yaml_node *node,
           struct error **err, const char *fmt, ...)
{
  auto_free char *what = NULL;
  va_list ap;
  int r;

  va_start (ap, fmt);
  r = vasprintf (&what, fmt, ap);
  va_end (ap);
  if (r < 0) {
    what = NULL;
    return error_set (err, E_NO_MEMORY, 0, "%s", source->name);
  }
  return fail_at (source, node->line, node->column, err, what);
}

static int
fail_event (struct reader *reader, const yaml_event_t *event,
            struct error **err, const char *what)
{
  return fail_at (&reader->source, event->start_mark.line + 1,
                  event->start_mark.column + 1, err, what);
}

static int
fail_memory (struct reader *reader, struct error **err)
{
  return error_set (err, E_NO_MEMORY, 0, "%s", reader->source.name);
}

/* libyaml's own complaint.  Its reader knows a byte offset only. */
static int
fail_parser (struct reader *reader, struct error **err)
{
  const yaml_parser_t *p = &reader->parser;
  const char *problem = p->problem ? p->problem : "not YAML";

  if (p->error == YAML_MEMORY_ERROR)
    return fail_memory (reader, err);
  if (p->error == YAML_READER_ERROR)
    return error_set (err, reader->source.number, 0, "%s: byte %zu: %s",
                      reader->source.name, p->problem_offset, problem);
  return fail_at (&reader->source, p->problem_mark.line + 1,
                  p->problem_mark.column + 1, err, problem);
}

/* Marks count characters; the text is edited by bytes.  Marks never go back
 * while one node is read after the other, except from a list's end to its
 * start, hence the restart. */
static size_t
byte_offset (struct reader *reader, size_t index)
{
  if (index < reader->index)
    reader->index = reader->offset = 0;
  while (reader->index < index && reader->offset < reader->size) {
    reader->offset++;
    while (reader->offset < reader->size
           && (reader->bytes[reader->offset] & 0xc0) == 0x80)
      reader->offset++;
    reader->index++;
  }
  return reader->offset;
}

static int
next_event (struct reader *reader, yaml_event_t *event, struct error **err)
{
  if (!yaml_parser_parse (&reader->parser, event))
    return fail_parser (reader, err);
  return 0;
}

/* What only long documents and other programs need. */
static int
check_plain (struct reader *reader, const yaml_event_t *event,
             const yaml_char_t *anchor, const yaml_char_t *tag,
             struct error **err)
{
  if (anchor)
    return fail_event (reader, event, err, "anchors are not allowed");
  if (tag)
    return fail_event (reader, event, err, "tags are not allowed");
  return 0;
}

static int
take_scalar (struct reader *reader, const yaml_event_t *event,
             struct yaml_node *out, struct error **err)
{
  const char *value = (const char *) event->data.scalar.value;
  size_t size = event->data.scalar.length;

  if (check_plain (reader, event, event->data.scalar.anchor,
                   event->data.scalar.tag, err) < 0)
    return -1;
  if (memchr (value, 0, size))
    return fail_event (reader, event, err, "a NUL character is not allowed");
  out->kind = YAML_SCALAR;
  out->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
  out->text = strndup (value, size);
  if (out->text == NULL)
    return fail_memory (reader, err);
  out->end = byte_offset (reader, event->end_mark.index);
  return 0;
}

/* Makes room for one more item, and a key with its mark in a map.  Grown by
 * doubling at powers of two. */
static int
grow (struct reader *reader, struct yaml_node *node, struct error **err)
{
  size_t room = node->count ? node->count * 2 : 4;
  void *p;

  if (node->count && (node->count < 4 || (node->count & (node->count - 1))))
    return 0;
  p = reallocarray (node->items, room, sizeof *node->items);
  if (p == NULL)
    return fail_memory (reader, err);
  node->items = p;
  if (node->kind != YAML_MAP)
    return 0;
  p = reallocarray (node->keys, room, sizeof *node->keys);
  if (p == NULL)
    return fail_memory (reader, err);
  node->keys = p;
  p = reallocarray (node->key_marks, room, sizeof *node->key_marks);
  if (p == NULL)
    return fail_memory (reader, err);
  node->key_marks = p;
  return 0;
}

static int
read_item (struct reader *reader, const yaml_event_t *event, unsigned depth,
           struct yaml_node *node, struct error **err)
{
  if (grow (reader, node, err) < 0)
    return -1;
  memset (&node->items[node->count], 0, sizeof node->items[0]);
  if (read_node (reader, event, depth + 1, &node->items[node->count], err)
      < 0) {
    node_fini (&node->items[node->count]);
    return -1;
  }
  node->count++;
  return 0;
}

static int
check_key (struct reader *reader, const struct yaml_node *map,
           const yaml_event_t *event, const struct yaml_node *key,
           struct error **err)
{
  size_t i;

  if (key->quoted || key->text[0] == '\0')
    return fail_event (reader, event, err, "a key must be a plain word");
  for (i = 0; i < map->count; i++) {
    if (strcmp (map->keys[i], key->text) == 0)
      return yaml_fail (&reader->source, key, err,
                        "the key \"%s\" is given twice (first in line %zu)",
                        key->text, map->key_marks[i].line);
  }
  return 0;
}

/* `event` is the key; the value is read here. */
static int
read_pair (struct reader *reader, const yaml_event_t *event, unsigned depth,
           struct yaml_node *map, struct error **err)
{
  struct yaml_node key = { 0 };
  yaml_event_t value;
  int r;

  if (event->type != YAML_SCALAR_EVENT)
    return fail_event (reader, event, err, "a key must be a plain word");
  r = read_node (reader, event, depth + 1, &key, err);
  if (r == 0)
    r = check_key (reader, map, event, &key, err);
  if (r == 0)
    r = next_event (reader, &value, err);
  if (r == 0) {
    r = read_item (reader, &value, depth, map, err);
    yaml_event_delete (&value);
  }
  if (r < 0) {
    node_fini (&key);
    return -1;
  }
  map->keys[map->count - 1] = steal (key.text);
  map->key_marks[map->count - 1] = key;
  return 0;
}

/* A list or a map, whose start event has been read. */
static int
read_collection (struct reader *reader, yaml_event_type_t end, unsigned depth,
                 struct yaml_node *out, struct error **err)
{
  for (;;) {
    yaml_event_t event;
    int r;

    if (next_event (reader, &event, err) < 0)
      return -1;
    if (event.type == end) {
      out->end = byte_offset (reader, event.end_mark.index);
      yaml_event_delete (&event);
      return 0;
    }
    if (out->kind == YAML_MAP)
      r = read_pair (reader, &event, depth, out, err);
    else
      r = read_item (reader, &event, depth, out, err);
    yaml_event_delete (&event);
    if (r < 0)
      return -1;
  }
}

static int
read_list (struct reader *reader, const yaml_event_t *event, unsigned depth,
           struct yaml_node *out, struct error **err)
{
  out->kind = YAML_LIST;
  out->flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
  if (check_plain (reader, event, event->data.sequence_start.anchor,
                   event->data.sequence_start.tag, err) < 0)
    return -1;
  return read_collection (reader, YAML_SEQUENCE_END_EVENT, depth, out, err);
}

static int
read_map (struct reader *reader, const yaml_event_t *event, unsigned depth,
          struct yaml_node *out, struct error **err)
{
  out->kind = YAML_MAP;
  out->flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
  if (check_plain (reader, event, event->data.mapping_start.anchor,
                   event->data.mapping_start.tag, err) < 0)
    return -1;
  return read_collection (reader, YAML_MAPPING_END_EVENT, depth, out, err);
}

static int
read_node (struct reader *reader, const yaml_event_t *event, unsigned depth,
           struct yaml_node *out, struct error **err)
{
  out->line = event->start_mark.line + 1;
  out->column = event->start_mark.column + 1;
  out->start = byte_offset (reader, event->start_mark.index);
  if (++reader->nodes > YAML_MAX_NODES)
    return yaml_fail (&reader->source, out, err, "more than %d values",
                      YAML_MAX_NODES);
  if (depth > YAML_MAX_DEPTH)
    return yaml_fail (&reader->source, out, err,
                      "nested more than %d levels deep", YAML_MAX_DEPTH);
  switch (event->type) {
  case YAML_SCALAR_EVENT:
    return take_scalar (reader, event, out, err);
  case YAML_SEQUENCE_START_EVENT:
    return read_list (reader, event, depth, out, err);
  case YAML_MAPPING_START_EVENT:
    return read_map (reader, event, depth, out, err);
  case YAML_ALIAS_EVENT:
    return fail_event (reader, event, err, "aliases are not allowed");
  default:
    return fail_event (reader, event, err, "a value is missing");
  }
}

/* Reads one event that must be of the type, and drops it. */
static int
skip_event (struct reader *reader, yaml_event_type_t type, const char *else_,
            struct error **err)
{
  yaml_event_t event;
  int r = 0;

  if (next_event (reader, &event, err) < 0)
    return -1;
  if (event.type != type)
    r = fail_event (reader, &event, err, else_);
  else if (type == YAML_DOCUMENT_START_EVENT
           && (event.data.document_start.version_directive
               || event.data.document_start.tag_directives.start
                    != event.data.document_start.tag_directives.end))
    r = fail_event (reader, &event, err, "directives are not allowed");
  yaml_event_delete (&event);
  return r;
}

static int
read_document (struct reader *reader, struct yaml_node *out,
               struct error **err)
{
  yaml_event_t event;
  int r;

  if (skip_event (reader, YAML_STREAM_START_EVENT, "not YAML", err) < 0
      || skip_event (reader, YAML_DOCUMENT_START_EVENT,
                     "there is nothing in it", err) < 0
      || next_event (reader, &event, err) < 0)
    return -1;
  r = read_node (reader, &event, 1, out, err);
  yaml_event_delete (&event);
  if (r < 0)
    return -1;
  if (skip_event (reader, YAML_DOCUMENT_END_EVENT, "not YAML", err) < 0)
    return -1;
  return skip_event (reader, YAML_STREAM_END_EVENT,
                     "more than one document", err);
}

/* Names the first line that is not text. */
static int
fail_utf8 (struct reader *reader, struct error **err)
{
  const char *line = reader->bytes, *end = reader->bytes + reader->size;
  size_t number = 1;

  while (line < end) {
    const char *newline = memchr (line, '\n', (size_t) (end - line));
    const char *next = newline ? newline + 1 : end;

    if (!text_is_utf8 (line, (size_t) (next - line)))
      break;
    line = next;
    number++;
  }
  return fail_at (&reader->source, number, 1, err, "not UTF-8");
}

static int
check_bytes (struct reader *reader, struct error **err)
{
  const char *name = reader->source.name;

  if (reader->size > YAML_MAX_BYTES)
    return error_set (err, reader->source.number, 0,
                      "%s: larger than %d KiB", name, YAML_MAX_BYTES / 1024);
  if (!text_is_utf8 (reader->bytes, reader->size))
    return fail_utf8 (reader, err);
  if (reader->size >= 3 && memcmp (reader->bytes, "\xef\xbb\xbf", 3) == 0)
    return fail_at (&reader->source, 1, 1, err,
                    "a byte order mark is not allowed");
  return 0;
}

int
yaml_read (const char *bytes, size_t size, const char *name, int number,
           struct yaml_node **out, struct error **err)
{
  struct reader reader = { .source = { name, number }, .bytes = bytes,
                           .size = size };
  auto_yaml struct yaml_node *node = NULL;
  int r;

  if (check_bytes (&reader, err) < 0)
    return -1;
  node = calloc (1, sizeof *node);
  if (node == NULL || !yaml_parser_initialize (&reader.parser))
    return fail_memory (&reader, err);
  yaml_parser_set_encoding (&reader.parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string (&reader.parser,
                                (const unsigned char *) bytes, size);
  r = read_document (&reader, node, err);
  yaml_parser_delete (&reader.parser);
  if (r < 0)
    return -1;
  *out = steal (node);
  return 0;
}
