/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-archive: packs a folder as tar, and unpacks an archive that nobody
 * trusts, in a process of its own that can do nothing else.
 *
 *   coffer-archive pack              the folder is descriptor 3, the tar 1
 *   coffer-archive pack-package TIME the same as tar.gz that is a provider's,
 *                                    with owners, modes and times made plain
 *   coffer-archive unpack [CAP=N…]   the archive is descriptor 0, the folder 3
 *   coffer-archive unpack-package [CAP=N…]
 *                                    a provider's: folders and files alone
 *
 * One JSON object goes to descriptor 4: {"files", "bytes", "left_out",
 * "stripped", "digest", "confined"}, or {"error", "entry"} with status 1. */

#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

#include <stdint.h>

#include <jansson.h>

#define ARCHIVE_FOLDER_FD 3
#define ARCHIVE_REPORT_FD 4
#define ARCHIVE_DEPTH_MAX 64
#define ARCHIVE_PATH_MAX 4095

struct caps {
  uint64_t entries, bytes, file_bytes;
  int package;                  /* of a provider, not of a root file system */
};

/* What is told at the end. */
struct report {
  uint64_t files, bytes;
  uint64_t left_out;            /* devices below dev/ */
  uint64_t stripped;            /* set-user-ID and set-group-ID bits */
  char digest[65];
  char error[512];              /* "" is success */
  char entry[1024];             /* the entry at fault; "" is none */
};

/* Sets the error, once; returns -1. */
int report_fail (struct report *report, const char *entry, const char *fmt,
                 ...) __attribute__ ((format (printf, 3, 4)));

/* Gives up every right but those that the work needs: the folder, read or
 * written, and the descriptors that are open.  The Landlock ABI that is in
 * force, 0: this kernel has none; -1 with the error set. */
int confine (int writes, struct report *report);

/* package: what a provider's archive is like; `time` is that of all in it. */
int pack (int package, int64_t time, struct report *report);
int unpack (const struct caps *caps, struct report *report);

#endif /* ARCHIVE_ARCHIVE_H */
