/* SPDX-License-Identifier: Apache-2.0 */
/* Where things live: the table of DESIGN 5, decided once at start.
 *
 * COFFER_HOME=DIR puts everything below one folder (DIR/providers,
 * DIR/config, DIR/state, DIR/run).  Environment overrides count only when
 * AT_SECURE is off.  uid 0 uses the system paths whatever HOME says. */

#ifndef BASE_PLACE_H
#define BASE_PLACE_H

#include "base/error.h"

struct place {
  char *shipped;                /* sealed manifests and modules of coffer */
  char *libexec;                /* worker, init */
  char *installed;              /* installed providers, one folder each */
  char *config;                 /* coffer.yaml and providers.d/ */
  char *state;                  /* state.db, workspaces */
  char *runtime;                /* sockets, lifelines */
  int home_override;            /* COFFER_HOME was used */
};

int place_find (struct place **out, struct error **err);
void place_free (struct place *place);
DEFINE_CLEANUP (struct place *, place_free, auto_place)
#define auto_place CLEANUP (auto_place)

/* Opens a folder of ours, making it (0700) with its missing parents; refuses
 * one that is a link, belongs to another user than root or the caller, or is
 * writable by others.  The descriptor is the caller's. */
int place_open_dir (const char *path, struct error **err);

/* A provider's own folders, which whoever opens it makes: paths for the caller to
 * free, or NULL. */
char *place_provider_runtime (const struct place *place, const char *id);
char *place_provider_state (const struct place *place, const char *id);
/* Whether one of that id was ever opened here: one that was not has made
 * nothing. */
int place_provider_used (const struct place *place, const char *id);

/* The owner-and-mode rule for anything that is trusted: root's or the
 * caller's, not writable by group or others (a sticky folder may be).
 * `what` names it in the message.  E_UNSAFE_FILE. */
int place_check_trusted (int fd, const char *what, struct error **err);

/* The content of a regular file that passes that rule, NUL-terminated beyond
 * *size, at most `limit` bytes; the caller frees.  Links are refused and a
 * FIFO is not waited for.  `number`: the error when it cannot be read, with
 * sys_errno ENOENT when there is none. */
int place_read_trusted (int dir, const char *name, const char *shown,
                        size_t limit, int number, char **bytes, size_t *size,
                        struct error **err);

/* Removes what writers of new files left in a folder when they were killed.
 * Only for whoever holds the lock under which files there are written. */
void place_sweep (int dir);

/* Opens a folder that must be trusted all the way: each component by
 * descriptor, no links below the first untrusted owner, each passing the
 * rule above.  O_PATH|O_DIRECTORY. */
int place_open_trusted_dir (const char *path, struct error **err);

/* Compiled-in paths; the build tree's `coffer` has its own. */
extern const char place_builtin_shipped[];
extern const char place_builtin_libexec[];
extern const char place_builtin_sysconf[];      /* /etc/coffer */
extern const char place_builtin_localstate[];   /* /var/lib/coffer */
extern const char place_builtin_run[];          /* /run/coffer */

#endif /* BASE_PLACE_H */
