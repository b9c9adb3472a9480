/* SPDX-License-Identifier: Apache-2.0 */
/* The program inside a container: which word it was started for. */

#include <stdio.h>
#include <string.h>

#include "inside.h"

static const struct {
  const char *word;
  int (*run) (int argc, char **argv);
} words[] = {
  {"hold", inside_hold},
  {"extend", inside_extend},
  {"work", inside_work},
};

int
main (int argc, char **argv)
{
  for (size_t i = 0; argc > 1 && i < sizeof words / sizeof words[0]; i++)
    if (strcmp (argv[1], words[i].word) == 0)
      return words[i].run (argc - 1, argv + 1);
  fputs ("this program is coffer's, for its own use in a sandbox\n", stderr);
  return INSIDE_USAGE;
}
