/* SPDX-License-Identifier: Apache-2.0 */
/* The range of every number that describes a sandbox, once for requests and
 * once for profiles. */

#ifndef POLICY_BOUNDS_H
#define POLICY_BOUNDS_H

#define REQUEST_TTL_DEFAULT_MS 3600000ULL       /* 1 h */
#define REQUEST_TTL_MIN_MS 1000
#define REQUEST_TTL_MAX_MS 31622400000ULL       /* 366 days */
#define REQUEST_TIMEOUT_MIN_MS 1
#define REQUEST_MEMORY_MIN (1ULL << 20)
#define REQUEST_DISK_MIN (64ULL << 10)
#define REQUEST_BYTES_MAX (1ULL << 60)
#define REQUEST_INODES_MIN 16
#define REQUEST_INODES_MAX (1ULL << 40)
#define REQUEST_PIDS_MAX 4194304        /* the kernel's own bound */
#define REQUEST_CPU_MAX 1024000         /* 1024 processors */
/* Of each process: what its init needs as well. */
#define REQUEST_ADDRESS_MIN (64ULL << 20)
#define REQUEST_FILE_MIN (1ULL << 20)
#define REQUEST_FILES_MIN 32
#define REQUEST_FILES_MAX 1048576

/* NAME:PORT, where NAME may be a [v6] address or begin with "*.". */
int bounds_is_target (const char *text);

#endif /* POLICY_BOUNDS_H */
