/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: what the module says of itself, and what `open` and `probe` do. */

#include <string.h>

#include "kit.h"

/* What cannot be opened fails here, and nothing else is asked of it. */
static void
opens (struct kit *kit)
{
  kit_first (kit);
}

/* The loader has compared note, descriptor, manifest and table before `open`
 * was reached; the answers must not contradict what they say. */
static void
descriptor (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_fact *fact;
  size_t i;

  KIT_OK (kit, kit_probe (kit_first (kit), &reply, NULL), &reply, "probe");
  KIT_CHECK (kit, kit_reply_fact (&reply, 0),
             "probe: expected at least one fact, came none");
  for (i = 0; (fact = kit_reply_fact (&reply, i)); i++) {
    KIT_CHECK (kit, fact->name && *fact->name,
               "probe: expected a name in each fact, fact %zu has none", i);
    KIT_CHECK (kit, fact->state && *fact->state,
               "probe: expected a state in each fact, %s has none",
               fact->name);
  }
}

const struct kit_case kit_load_cases[] = {
  { "load.opens", "",
    "The module is loaded, agrees with its manifest and note, and opens.",
    opens },
  { "load.descriptor", "",
    "probe answers with at least one fact, each with a name and a state.",
    descriptor },
  { NULL }
};
