/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /execute: types and ranges, one fault for each field that
 * has one.  Keys that are not known are let be. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "server/execute/body.h"

json_t *
execute_fault (const char *field, const char *text, const char *type)
{
  return json_pack ("{s:[s,s], s:s, s:s}", "loc", "body", field, "msg", text,
                    "type", type);
}

static void
fault (json_t *detail, const char *field, const char *text, const char *type)
{
  json_array_append_new (detail, execute_fault (field, text, type));
}

/* ---- fields ------------------------------------------------------------- */

static int
is_blank (const char *code, size_t size)
{
  while (size > 0 && strchr (" \t\n\r\f\v", *code) && *code)
    code++, size--;
  return size == 0;
}

static void
read_code (const json_t *json, struct execute_body *body, json_t *detail)
{
  const json_t *code = json_object_get (json, "code");

  if (!code)
    return fault (detail, "code", "field required", "value_error.missing");
  if (!json_is_string (code))
    return fault (detail, "code", "must be a text", "type_error.str");
  body->request.code = json_string_value (code);
  body->request.code_size = json_string_length (code);
  body->blank = is_blank (body->request.code, body->request.code_size);
}

static void
read_timeout (const json_t *json, struct execute_body *body, json_t *detail)
{
  const json_t *timeout = json_object_get (json, "timeout");
  const double most = (double) EXECUTE_TIMEOUT_MAX_MS / 1000;
  double seconds, ms;

  if (!timeout)
    return;
  if (!json_is_number (timeout))
    return fault (detail, "timeout", "must be a number of seconds",
                  "type_error.float");
  seconds = json_number_value (timeout);
  if (!(seconds > 0 && seconds <= most))
    return fault (detail, "timeout", "must be above 0 and at most 30",
                  "value_error.number.not_in_range");
  ms = seconds * 1000;
  body->request.timeout_ms = (uint64_t) ms;
  if ((double) body->request.timeout_ms < ms)
    body->request.timeout_ms++;
}

static void
read_profile (const json_t *json, struct execute_body *body, json_t *detail)
{
  const json_t *profile = json_object_get (json, "profile");

  if (!profile || json_is_null (profile))
    return;
  if (!json_is_string (profile))
    return fault (detail, "profile", "must be a text", "type_error.str");
  body->request.profile = json_string_value (profile);
}

/* ---- files -------------------------------------------------------------- */

static const char *
read_file (const json_t *json, struct execute_body *body)
{
  const json_t *path = json_object_get (json, "path");
  const json_t *content = json_object_get (json, "content");
  const json_t *data = json_object_get (json, "data");
  struct execute_file *file = &body->files[body->n];

  if (!json_is_string (path))
    return "a file has a path, which is a text";
  if (json_object_size (json) > 2)
    return "a file has a path, content or data, and nothing else";
  file->path = json_string_value (path);
  if (json_is_string (content) && !data) {
    file->bytes = json_string_value (content);
    file->size = json_string_length (content);
  } else if (json_is_string (data) && !content) {
    if (text_base64_decode (json_string_value (data), &body->bytes[body->n],
                            &file->size) < 0)
      return "the data of a file is base64";
    file->bytes = body->bytes[body->n];
  } else {
    return "a file has either content, a text, or data, in base64";
  }
  body->n++;
  return NULL;
}

static int
read_files (const json_t *json, struct execute_body *body, json_t *detail)
{
  const json_t *files = json_object_get (json, "files"), *file;
  const char *wrong;
  size_t i;

  if (!files || json_is_null (files))
    return 0;
  if (!json_is_array (files)
      || json_array_size (files) > EXECUTE_FILES_COUNT) {
    fault (detail, "files", "must be a list of at most 64 files",
           "type_error.list");
    return 0;
  }
  body->files = calloc (json_array_size (files) + 1, sizeof *body->files);
  body->bytes = calloc (json_array_size (files) + 1, sizeof *body->bytes);
  if (!body->files || !body->bytes)
    return -1;
  json_array_foreach (files, i, file) {
    wrong = read_file (file, body);
    if (wrong) {
      fault (detail, "files", wrong, "value_error");
      return 0;
    }
  }
  body->request.files = body->files;
  body->request.n_files = body->n;
  return 0;
}

int
execute_body_read (const json_t *json, struct execute_body *body,
                   json_t **detail, struct error **err)
{
  json_t *faults = json_array ();

  memset (body, 0, sizeof *body);
  if (!faults)
    return error_set (err, E_NO_MEMORY, 0, "the request");
  read_code (json, body, faults);
  read_timeout (json, body, faults);
  read_profile (json, body, faults);
  if (read_files (json, body, faults) < 0) {
    json_decref (faults);
    return error_set (err, E_NO_MEMORY, 0, "the request");
  }
  if (json_array_size (faults) == 0) {
    json_decref (faults);
    return 0;
  }
  *detail = faults;
  return 1;
}

void
execute_body_fini (struct execute_body *body)
{
  size_t i;

  for (i = 0; body->bytes && i < body->n; i++)
    free (body->bytes[i]);
  free (body->bytes);
  free (body->files);
  memset (body, 0, sizeof *body);
}
