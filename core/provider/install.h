/* SPDX-License-Identifier: Apache-2.0 */
/* Installing, upgrading and removing providers.  What is installed is a tree
 * that its author built and sealed; nothing of it runs before it is in its
 * place and somebody uses it. */

#ifndef PROVIDER_INSTALL_H
#define PROVIDER_INSTALL_H

#include "provider/source.h"

struct install_request {
  struct source_words words;
  int force;                    /* replace what is installed under the id */
  /* Is there somebody who can say that an unpinned source will do? */
  int interactive;
  /* Asks; 0: yes, -1: no, with the error. */
  int (*confirm) (void *data, const char *question, struct error **err);
  void *data;
  const struct helper_watch *watch;
};

struct install_report {
  struct receipt *receipt;      /* as it was written */
  char *version, *old_version;  /* old: NULL when there was none */
  char *folder;
  int changed;                  /* is it another manifest than before? */
};
void install_report_fini (struct install_report *report);
#define auto_install_report __attribute__ ((cleanup (install_report_fini)))

/* E_UNPINNED, E_ALREADY_INSTALLED, and whatever is wrong with what was found:
 * nothing of it is kept then. */
int install_provider (const struct place *place,
                      const struct install_request *request,
                      struct install_report *out, struct error **err);

/* The same for one that is installed: words.source NULL is where it came from.
 * The old one is back in its place when the new one cannot be enabled. */
int install_upgrade (const struct place *place, const char *id,
                     const struct install_request *request,
                     struct install_report *out, struct error **err);

/* E_UNKNOWN_PROVIDER, or E_DENIED for what coffer ships.  `before` is called
 * once it is there and may go; when that fails, it stays. */
int install_remove (const struct place *place, const char *id,
                    int (*before) (void *data, struct error **err),
                    void *data, struct error **err);

#endif /* PROVIDER_INSTALL_H */
