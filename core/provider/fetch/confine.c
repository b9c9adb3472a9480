/* SPDX-License-Identifier: Apache-2.0 */
/* The rights of coffer-fetch.  The resolver loads libraries as it goes, and has
 * threads: so what is forbidden is listed, and of files only those may be read
 * that it and TLS need.  None may be written. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#include <coffer/fd.h>

#include "fetch.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define FS_READ_FILE (UINT64_C (1) << 2)
#define FS_READ_DIR (UINT64_C (1) << 3)
#define FS_REFER (UINT64_C (1) << 13)
#define FS_TRUNCATE (UINT64_C (1) << 14)
#define FS_ABI_1 (FS_REFER - 1)

/* Beside certificates there are keys: /etc/ssl/private, /etc/pki/tls/private. */
static const char *const readable[] = {
  "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib",
  "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
  "/etc/ca-certificates", "/var/lib/ca-certificates", "/etc/ssl/certs",
  "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/openssl.cnf",
  "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem",
  "/etc/pki/tls/openssl.cnf", "/etc/pki/tls/openssl.d",
  "/etc/crypto-policies", "/usr/share/crypto-policies", "/etc/ld.so.cache",
  "/etc/resolv.conf", "/run/systemd/resolve", "/run/resolvconf",
  "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
  "/etc/services", "/etc/protocols", "/etc/localtime", "/dev/urandom"
};

/* What is not there is not needed. */
static int
rule_add (int set, const char *path)
{
  struct {
    uint64_t allowed;
    int32_t fd;
  } __attribute__ ((packed)) rule = { FS_READ_FILE, -1 };
  coffer_autoclose int fd = open (path, O_PATH | O_CLOEXEC);
  struct stat st;

  if (fd < 0)
    return 0;
  if (fstat (fd, &st) < 0)
    return -1;
  if (S_ISDIR (st.st_mode))
    rule.allowed |= FS_READ_DIR;
  rule.fd = fd;
  return (int) syscall (SYS_landlock_add_rule, set, 1, &rule, 0);
}

static int
landlock_enter (const char *ca_file, const char *ca_folder)
{
  long abi = syscall (SYS_landlock_create_ruleset, NULL, 0, 1);
  uint64_t handled = FS_ABI_1;
  coffer_autoclose int set = -1;
  size_t i;
  int r = 0;

  if (abi < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
    return 0;
  if (abi >= 2)
    handled |= FS_REFER;
  if (abi >= 3)
    handled |= FS_TRUNCATE;
  set = abi < 0 ? -1 : (int) syscall (SYS_landlock_create_ruleset, &handled,
                                      sizeof handled, 0);
  if (set < 0)
    return -1;
  for (i = 0; r == 0 && i < sizeof readable / sizeof readable[0]; i++)
    r = rule_add (set, readable[i]);
  if (r == 0 && ca_file)
    r = rule_add (set, ca_file);
  if (r == 0 && ca_folder)
    r = rule_add (set, ca_folder);
  if (r < 0 || syscall (SYS_landlock_restrict_self, set, 0) < 0)
    return -1;
  return (int) abi;
}

static int
filter_enter (void)
{
#define S(name) SCMP_SYS (name)
  static const int never[] = {
    S (execve), S (execveat), S (ptrace), S (process_vm_readv),
    S (process_vm_writev), S (kill), S (tkill), S (pidfd_open),
    S (pidfd_send_signal), S (pidfd_getfd), S (mount), S (umount2),
    S (move_mount), S (open_tree), S (fsopen), S (fsmount), S (mount_setattr),
    S (pivot_root), S (chroot), S (unshare), S (setns), S (keyctl),
    S (add_key), S (request_key), S (bpf), S (perf_event_open),
    S (userfaultfd), S (io_uring_setup), S (io_uring_enter),
    S (io_uring_register), S (open_by_handle_at), S (name_to_handle_at),
    S (memfd_create), S (chmod), S (fchmodat), S (chown), S (lchown),
    S (fchownat), S (utimensat), S (setxattr), S (lsetxattr), S (removexattr),
    S (listen), S (accept), S (accept4), S (setuid), S (setgid), S (setreuid),
    S (setresuid), S (prlimit64), S (syslog), S (quotactl), S (swapon),
    S (reboot), S (init_module), S (finit_module), S (delete_module),
    S (kexec_load), S (acct), S (settimeofday), S (clock_settime),
    S (personality)
  };
#undef S
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ALLOW);
  size_t i;
  int r = filter ? 0 : -ENOMEM;

  for (i = 0; r == 0 && i < sizeof never / sizeof never[0]; i++)
    if (never[i] >= 0)
      r = seccomp_rule_add (filter, SCMP_ACT_ERRNO (EPERM), never[i], 0);
  if (r == 0)
    r = seccomp_load (filter);
  if (filter)
    seccomp_release (filter);
  if (r < 0)
    errno = -r;
  return r;
}

int
fetch_confine (const char *ca_file, const char *ca_folder)
{
  int abi;

  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return -1;
  abi = landlock_enter (ca_file, ca_folder);
  return abi < 0 || filter_enter () < 0 ? -1 : abi;
}
