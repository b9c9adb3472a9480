/* SPDX-License-Identifier: Apache-2.0 */
/* What comes back from the runner of Python code: bytes of anybody.  In one
 * piece and in pieces they come to the same, and what was taken is within its
 * bounds. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>

#include "python/channel.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void
must (int holds)
{
  if (!holds)
    abort ();
}

static void
is_bounded (const struct frames *frames)
{
  const json_t *artifact;
  size_t i;

  must (frames->verdict || (!frames->told && !frames->artifacts));
  must (json_array_size (frames->artifacts) <= ARTIFACTS_COUNT);
  must (frames->artifact_bytes <= ARTIFACTS_MAX);
  json_array_foreach (frames->artifacts, i, artifact)
    must (json_string_length (json_object_get (artifact, "name"))
          <= ARTIFACT_NAME_MAX);
  must (json_string_length (json_object_get (frames->told, "result"))
        <= RESULT_MAX);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  const char *bytes = (const char *) data;
  struct frames whole = { 0 }, pieces = { 0 };
  size_t at, n;

  frames_add (&whole, bytes, size);
  is_bounded (&whole);
  for (at = 0; at < size; at += n) {
    n = 1 + data[at] % 7;
    if (n > size - at)
      n = size - at;
    frames_add (&pieces, bytes + at, n);
  }
  must (whole.malformed == pieces.malformed);
  must (json_equal (whole.verdict, pieces.verdict)
        || whole.verdict == pieces.verdict);
  must (json_equal (whole.told, pieces.told) || whole.told == pieces.told);
  must (json_array_size (whole.artifacts)
        == json_array_size (pieces.artifacts));
  frames_fini (&whole);
  frames_fini (&pieces);
  return 0;
}
