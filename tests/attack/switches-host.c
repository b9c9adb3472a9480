/* SPDX-License-Identifier: Apache-2.0 */
/* The module's side of the switches, and the calls of the C library that are
 * made to fail: the linker sends them through here (--wrap). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "switches.h"

uint32_t layers_off;

/* What the init is to do without, when that is not the same. */
static uint32_t init_off, init_fault;

static uint32_t
layers_parse (const char *text)
{
  static const char *const names[] = {
#define NAME(symbol, name) name,
    LAYERS (NAME)
#undef NAME
  };
  uint32_t off = 0;
  size_t i, n;

  while (text != NULL && *text != '\0') {
    n = strcspn (text, ",");
    for (i = 0; i < LAYERS_COUNT; i++)
      if (strlen (names[i]) == n && strncmp (names[i], text, n) == 0)
        off |= UINT32_C (1) << i;
    text += n + (text[n] == ',');
  }
  return off;
}

void
layers_read (void)
{
  const char *fault = getenv ("COFFER_TEST_FAULT");
  unsigned at = 0, error = 0;

  init_off = layers_parse (getenv ("COFFER_TEST_LAYERS"));
  layers_off = getenv ("COFFER_TEST_INIT_ONLY") == NULL ? init_off : 0;
  faults_read ();
  init_fault = 0;
  if (fault != NULL && sscanf (fault, "init:%u:%u", &at, &error) == 2)
    init_fault = LAYERS_FAULT | error << 16 | at;
  else if (fault != NULL && sscanf (fault, "beside:%u:%u", &at, &error) == 2)
    init_fault = LAYERS_FAULT | LAYERS_BESIDE | error << 16 | at;
}

uint32_t
layers_word (void)
{
  return init_fault != 0 ? init_fault : init_off;
}
