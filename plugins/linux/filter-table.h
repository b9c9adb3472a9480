/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may ask of the kernel: one row a system call, one column a
 * profile.  filter-gen.c makes the programs of it while coffer is built; the
 * unit tests compare those, run in a simulator, with these very rows.
 *
 *   A  allowed (some arguments are refused below)
 *   C  allowed only with the arguments listed below, otherwise EPERM
 *   F  the same, otherwise EAFNOSUPPORT: address families that are not there
 *   E  EPERM: known, and dangerous or useless without capabilities
 *   N  ENOSYS: as if the kernel had none; programs then use another way
 *   K  ends the process: only in profile `strict`
 *
 * What has no row is ENOSYS: the C libraries try new calls and fall back.
 * Another architecture's numbers (int 0x80, x32) end the process.
 *
 * `general` holds the init and all that it starts.  `strict` is for the guarded
 * interpreter, and is put on top of it just before a command becomes its
 * program: of the two answers to a call the stricter counts.
 *
 *   X (name, general, strict, number)  number: for calls that are younger
 *                                      than libseccomp; the same everywhere
 */

#ifndef LINUX_FILTER_TABLE_H
#define LINUX_FILTER_TABLE_H

/* The letters as characters: a row is { FILTER_##general, FILTER_##strict }. */
#define FILTER_A 'A'
#define FILTER_C 'C'
#define FILTER_E 'E'
#define FILTER_F 'F'
#define FILTER_K 'K'
#define FILTER_N 'N'

/* clang-format off */
#define FILTER_CALLS(X) \
  X (_sysctl, E, E, -1)                                                     \
  X (accept, A, E, -1)                                                      \
  X (accept4, A, E, -1)                                                     \
  X (access, A, A, -1)                                                      \
  X (acct, E, K, -1)                                                        \
  X (add_key, N, N, -1)                                                     \
  X (adjtimex, A, E, -1)                                                    \
  X (afs_syscall, E, E, -1)                                                 \
  X (alarm, A, E, -1)                                                       \
  X (arch_prctl, A, A, -1)                                                  \
  X (bind, A, E, -1)                                                        \
  X (bpf, E, K, -1)                                                         \
  X (brk, A, A, -1)                                                         \
  X (cachestat, A, E, 451)                                                  \
  X (capget, A, E, -1)                                                      \
  X (capset, A, E, -1)                                                      \
  X (chdir, A, E, -1)                                                       \
  X (chmod, A, E, -1)                                                       \
  X (chown, A, E, -1)                                                       \
  X (chroot, E, K, -1)                                                      \
  X (clock_adjtime, A, E, -1)                                               \
  X (clock_getres, A, E, -1)                                                \
  X (clock_gettime, A, A, -1)                                               \
  X (clock_nanosleep, A, A, -1)                                             \
  X (clock_settime, E, K, -1)                                                 \
  X (clone, C, C, -1)                                                       \
  X (clone3, N, N, -1)                                                      \
  X (close, A, A, -1)                                                       \
  X (close_range, A, E, -1)                                                 \
  X (connect, A, E, -1)                                                     \
  X (copy_file_range, A, E, -1)                                             \
  X (creat, A, E, -1)                                                       \
  X (create_module, E, K, -1)                                               \
  X (delete_module, E, K, -1)                                               \
  X (dup, A, A, -1)                                                         \
  X (dup2, A, E, -1)                                                        \
  X (dup3, A, E, -1)                                                        \
  X (epoll_create, A, E, -1)                                                \
  X (epoll_create1, A, E, -1)                                               \
  X (epoll_ctl, A, E, -1)                                                   \
  X (epoll_ctl_old, E, E, -1)                                               \
  X (epoll_pwait, A, E, -1)                                                 \
  X (epoll_pwait2, A, E, -1)                                                \
  X (epoll_wait, A, E, -1)                                                  \
  X (epoll_wait_old, E, E, -1)                                              \
  X (eventfd, A, E, -1)                                                     \
  X (eventfd2, A, E, -1)                                                    \
  X (execve, A, C, -1)                                                        \
  X (execveat, A, E, -1)                                                    \
  X (exit, A, A, -1)                                                        \
  X (exit_group, A, A, -1)                                                  \
  X (faccessat, A, A, -1)                                                   \
  X (faccessat2, A, A, -1)                                                  \
  X (fadvise64, A, E, -1)                                                   \
  X (fallocate, A, E, -1)                                                   \
  X (fanotify_init, E, E, -1)                                               \
  X (fanotify_mark, E, E, -1)                                               \
  X (fchdir, A, E, -1)                                                      \
  X (fchmod, A, E, -1)                                                      \
  X (fchmodat, A, E, -1)                                                    \
  X (fchmodat2, A, E, 452)                                                  \
  X (fchown, A, E, -1)                                                      \
  X (fchownat, A, E, -1)                                                    \
  X (fcntl, A, C, -1)                                                       \
  X (fdatasync, A, E, -1)                                                   \
  X (fgetxattr, A, E, -1)                                                   \
  X (file_getattr, A, E, 468)                                               \
  X (file_setattr, E, E, 469)                                               \
  X (finit_module, E, K, -1)                                                \
  X (flistxattr, A, E, -1)                                                  \
  X (flock, A, E, -1)                                                       \
  X (fork, A, E, -1)                                                        \
  X (fremovexattr, A, E, -1)                                                \
  X (fsconfig, E, K, -1)                                                    \
  X (fsetxattr, A, E, -1)                                                   \
  X (fsmount, E, K, -1)                                                     \
  X (fsopen, E, K, -1)                                                      \
  X (fspick, E, K, -1)                                                      \
  X (fstat, A, A, -1)                                                       \
  X (fstatfs, A, E, -1)                                                     \
  X (fsync, A, E, -1)                                                       \
  X (ftruncate, A, A, -1)                                                     \
  X (futex, A, A, -1)                                                       \
  X (futex_requeue, A, E, 456)                                              \
  X (futex_wait, A, E, 455)                                                 \
  X (futex_waitv, A, E, -1)                                                 \
  X (futex_wake, A, E, 454)                                                 \
  X (futimesat, A, E, -1)                                                   \
  X (get_kernel_syms, E, K, -1)                                             \
  X (get_mempolicy, A, E, -1)                                               \
  X (get_robust_list, A, E, -1)                                             \
  X (get_thread_area, A, E, -1)                                             \
  X (getcpu, A, E, -1)                                                      \
  X (getcwd, A, A, -1)                                                      \
  X (getdents, A, E, -1)                                                    \
  X (getdents64, A, A, -1)                                                  \
  X (getegid, A, A, -1)                                                       \
  X (geteuid, A, A, -1)                                                       \
  X (getgid, A, A, -1)                                                        \
  X (getgroups, A, E, -1)                                                   \
  X (getitimer, A, E, -1)                                                   \
  X (getpeername, A, E, -1)                                                 \
  X (getpgid, A, E, -1)                                                     \
  X (getpgrp, A, E, -1)                                                     \
  X (getpid, A, A, -1)                                                      \
  X (getpmsg, E, E, -1)                                                     \
  X (getppid, A, E, -1)                                                     \
  X (getpriority, A, E, -1)                                                 \
  X (getrandom, A, A, -1)                                                   \
  X (getresgid, A, E, -1)                                                   \
  X (getresuid, A, E, -1)                                                   \
  X (getrlimit, A, E, -1)                                                   \
  X (getrusage, A, E, -1)                                                   \
  X (getsid, A, E, -1)                                                      \
  X (getsockname, A, E, -1)                                                 \
  X (getsockopt, A, E, -1)                                                  \
  X (gettid, A, A, -1)                                                      \
  X (gettimeofday, A, E, -1)                                                \
  X (getuid, A, A, -1)                                                        \
  X (getxattr, A, E, -1)                                                    \
  X (getxattrat, A, E, 464)                                                 \
  X (init_module, E, K, -1)                                                 \
  X (inotify_add_watch, A, E, -1)                                           \
  X (inotify_init, A, E, -1)                                                \
  X (inotify_init1, A, E, -1)                                               \
  X (inotify_rm_watch, A, E, -1)                                            \
  X (io_cancel, A, E, -1)                                                   \
  X (io_destroy, A, E, -1)                                                  \
  X (io_getevents, A, E, -1)                                                \
  X (io_pgetevents, A, E, -1)                                               \
  X (io_setup, A, E, -1)                                                    \
  X (io_submit, A, E, -1)                                                   \
  X (io_uring_enter, N, N, -1)                                              \
  X (io_uring_register, N, N, -1)                                           \
  X (io_uring_setup, N, N, -1)                                              \
  X (ioctl, A, C, -1)                                                       \
  X (ioperm, E, K, -1)                                                      \
  X (iopl, E, K, -1)                                                        \
  X (ioprio_get, A, E, -1)                                                  \
  X (ioprio_set, A, E, -1)                                                  \
  X (kcmp, E, K, -1)                                                        \
  X (kexec_file_load, E, K, -1)                                             \
  X (kexec_load, E, K, -1)                                                  \
  X (keyctl, N, N, -1)                                                      \
  X (kill, A, E, -1)                                                        \
  X (landlock_add_rule, A, N, -1)                                             \
  X (landlock_create_ruleset, A, N, -1)                                       \
  X (landlock_restrict_self, A, N, -1)                                        \
  X (lchown, A, E, -1)                                                      \
  X (lgetxattr, A, E, -1)                                                   \
  X (link, A, E, -1)                                                        \
  X (linkat, A, E, -1)                                                      \
  X (listen, A, E, -1)                                                      \
  X (listmount, E, K, 458)                                                  \
  X (listxattr, A, E, -1)                                                   \
  X (listxattrat, A, E, 465)                                                \
  X (llistxattr, A, E, -1)                                                  \
  X (lookup_dcookie, E, K, -1)                                              \
  X (lremovexattr, A, E, -1)                                                \
  X (lseek, A, A, -1)                                                       \
  X (lsetxattr, A, E, -1)                                                   \
  X (lsm_get_self_attr, E, E, 459)                                          \
  X (lsm_list_modules, E, E, 461)                                           \
  X (lsm_set_self_attr, E, E, 460)                                          \
  X (lstat, A, A, -1)                                                       \
  X (madvise, A, A, -1)                                                     \
  X (map_shadow_stack, E, E, 453)                                           \
  X (mbind, E, E, -1)                                                       \
  X (membarrier, A, E, -1)                                                  \
  X (memfd_create, A, E, -1)                                                \
  X (memfd_secret, E, E, -1)                                                \
  X (migrate_pages, E, E, -1)                                               \
  X (mincore, A, E, -1)                                                     \
  X (mkdir, A, A, -1)                                                         \
  X (mkdirat, A, A, -1)                                                       \
  X (mknod, A, E, -1)                                                       \
  X (mknodat, A, E, -1)                                                     \
  X (mlock, A, E, -1)                                                       \
  X (mlock2, A, E, -1)                                                      \
  X (mlockall, A, E, -1)                                                    \
  X (mmap, A, C, -1)                                                        \
  X (modify_ldt, E, K, -1)                                                  \
  X (mount, E, K, -1)                                                       \
  X (mount_setattr, E, K, -1)                                               \
  X (move_mount, E, K, -1)                                                  \
  X (move_pages, E, E, -1)                                                  \
  X (mprotect, A, A, -1)                                                    \
  X (mq_getsetattr, A, E, -1)                                               \
  X (mq_notify, A, E, -1)                                                   \
  X (mq_open, A, E, -1)                                                     \
  X (mq_timedreceive, A, E, -1)                                             \
  X (mq_timedsend, A, E, -1)                                                \
  X (mq_unlink, A, E, -1)                                                   \
  X (mremap, A, A, -1)                                                      \
  X (mseal, A, E, 462)                                                      \
  X (msgctl, A, E, -1)                                                      \
  X (msgget, A, E, -1)                                                      \
  X (msgrcv, A, E, -1)                                                      \
  X (msgsnd, A, E, -1)                                                      \
  X (msync, A, E, -1)                                                       \
  X (munlock, A, E, -1)                                                     \
  X (munlockall, A, E, -1)                                                  \
  X (munmap, A, A, -1)                                                      \
  X (name_to_handle_at, A, E, -1)                                           \
  X (nanosleep, A, E, -1)                                                   \
  X (newfstatat, A, A, -1)                                                  \
  X (nfsservctl, E, K, -1)                                                  \
  X (open, A, A, -1)                                                        \
  X (open_by_handle_at, E, K, -1)                                           \
  X (open_tree, E, K, -1)                                                   \
  X (open_tree_attr, E, K, 467)                                             \
  X (openat, A, A, -1)                                                      \
  X (openat2, N, N, -1)                                                     \
  X (pause, A, E, -1)                                                       \
  X (perf_event_open, E, K, -1)                                             \
  X (personality, C, E, -1)                                                 \
  X (pidfd_getfd, E, K, -1)                                                 \
  X (pidfd_open, A, N, -1)                                                    \
  X (pidfd_send_signal, A, N, -1)                                             \
  X (pipe, A, E, -1)                                                        \
  X (pipe2, A, E, -1)                                                       \
  X (pivot_root, E, K, -1)                                                  \
  X (pkey_alloc, A, E, -1)                                                  \
  X (pkey_free, A, E, -1)                                                   \
  X (pkey_mprotect, A, E, -1)                                               \
  X (poll, A, A, -1)                                                        \
  X (ppoll, A, E, -1)                                                       \
  X (prctl, A, E, -1)                                                       \
  X (pread64, A, A, -1)                                                     \
  X (preadv, A, E, -1)                                                      \
  X (preadv2, A, E, -1)                                                     \
  X (prlimit64, C, C, -1)                                                     \
  X (process_madvise, E, K, -1)                                             \
  X (process_mrelease, E, E, -1)                                            \
  X (process_vm_readv, E, K, -1)                                            \
  X (process_vm_writev, E, K, -1)                                           \
  X (pselect6, A, E, -1)                                                    \
  X (ptrace, E, K, -1)                                                      \
  X (putpmsg, E, E, -1)                                                     \
  X (pwrite64, A, E, -1)                                                    \
  X (pwritev, A, E, -1)                                                     \
  X (pwritev2, A, E, -1)                                                    \
  X (query_module, E, K, -1)                                                \
  X (quotactl, E, K, -1)                                                    \
  X (quotactl_fd, E, K, -1)                                                 \
  X (read, A, A, -1)                                                        \
  X (readahead, A, E, -1)                                                   \
  X (readlink, A, A, -1)                                                    \
  X (readlinkat, A, A, -1)                                                  \
  X (readv, A, E, -1)                                                       \
  X (reboot, E, K, -1)                                                      \
  X (recvfrom, A, E, -1)                                                    \
  X (recvmmsg, A, E, -1)                                                    \
  X (recvmsg, A, E, -1)                                                     \
  X (remap_file_pages, A, E, -1)                                            \
  X (removexattr, A, E, -1)                                                 \
  X (removexattrat, A, E, 466)                                              \
  X (rename, A, E, -1)                                                      \
  X (renameat, A, E, -1)                                                    \
  X (renameat2, A, E, -1)                                                   \
  X (request_key, N, N, -1)                                                 \
  X (restart_syscall, A, A, -1)                                             \
  X (rmdir, A, A, -1)                                                         \
  X (rseq, A, A, -1)                                                        \
  X (rt_sigaction, A, A, -1)                                                \
  X (rt_sigpending, A, E, -1)                                               \
  X (rt_sigprocmask, A, A, -1)                                              \
  X (rt_sigqueueinfo, A, E, -1)                                             \
  X (rt_sigreturn, A, A, -1)                                                \
  X (rt_sigsuspend, A, E, -1)                                               \
  X (rt_sigtimedwait, A, E, -1)                                             \
  X (rt_tgsigqueueinfo, A, E, -1)                                           \
  X (sched_get_priority_max, A, E, -1)                                      \
  X (sched_get_priority_min, A, E, -1)                                      \
  X (sched_getaffinity, A, A, -1)                                           \
  X (sched_getattr, A, E, -1)                                               \
  X (sched_getparam, A, E, -1)                                              \
  X (sched_getscheduler, A, E, -1)                                          \
  X (sched_rr_get_interval, A, E, -1)                                       \
  X (sched_setaffinity, A, E, -1)                                           \
  X (sched_setattr, E, E, -1)                                               \
  X (sched_setparam, A, E, -1)                                              \
  X (sched_setscheduler, A, E, -1)                                          \
  X (sched_yield, A, A, -1)                                                 \
  X (seccomp, A, N, -1)                                                       \
  X (security, E, E, -1)                                                    \
  X (select, A, E, -1)                                                      \
  X (semctl, A, E, -1)                                                      \
  X (semget, A, E, -1)                                                      \
  X (semop, A, E, -1)                                                       \
  X (semtimedop, A, E, -1)                                                  \
  X (sendfile, A, E, -1)                                                    \
  X (sendmmsg, A, E, -1)                                                    \
  X (sendmsg, A, E, -1)                                                     \
  X (sendto, A, E, -1)                                                      \
  X (set_mempolicy, A, E, -1)                                               \
  X (set_mempolicy_home_node, E, E, -1)                                     \
  X (set_robust_list, A, A, -1)                                             \
  X (set_thread_area, A, E, -1)                                             \
  X (set_tid_address, A, A, -1)                                             \
  X (setdomainname, E, E, -1)                                               \
  X (setfsgid, A, E, -1)                                                    \
  X (setfsuid, A, E, -1)                                                    \
  X (setgid, A, E, -1)                                                      \
  X (setgroups, A, E, -1)                                                   \
  X (sethostname, E, E, -1)                                                 \
  X (setitimer, A, E, -1)                                                   \
  X (setns, E, E, -1)                                                       \
  X (setpgid, A, E, -1)                                                     \
  X (setpriority, A, E, -1)                                                 \
  X (setregid, A, E, -1)                                                    \
  X (setresgid, A, E, -1)                                                   \
  X (setresuid, A, E, -1)                                                   \
  X (setreuid, A, E, -1)                                                    \
  X (setrlimit, A, E, -1)                                                   \
  X (setsid, A, E, -1)                                                      \
  X (setsockopt, A, E, -1)                                                  \
  X (settimeofday, E, K, -1)                                                  \
  X (setuid, A, E, -1)                                                      \
  X (setxattr, A, E, -1)                                                    \
  X (setxattrat, A, E, 463)                                                 \
  X (shmat, A, E, -1)                                                       \
  X (shmctl, A, E, -1)                                                      \
  X (shmdt, A, E, -1)                                                       \
  X (shmget, A, E, -1)                                                      \
  X (shutdown, A, E, -1)                                                    \
  X (sigaltstack, A, A, -1)                                                 \
  X (signalfd, A, E, -1)                                                    \
  X (signalfd4, A, E, -1)                                                   \
  X (socket, F, E, -1)                                                        \
  X (socketpair, F, E, -1)                                                    \
  X (splice, A, E, -1)                                                      \
  X (stat, A, A, -1)                                                        \
  X (statfs, A, E, -1)                                                      \
  X (statmount, E, K, 457)                                                  \
  X (statx, A, A, -1)                                                       \
  X (swapoff, E, K, -1)                                                     \
  X (swapon, E, K, -1)                                                      \
  X (symlink, A, E, -1)                                                     \
  X (symlinkat, A, E, -1)                                                   \
  X (sync, A, E, -1)                                                        \
  X (sync_file_range, A, E, -1)                                             \
  X (syncfs, A, E, -1)                                                      \
  X (sysfs, E, K, -1)                                                       \
  X (sysinfo, A, A, -1)                                                     \
  X (syslog, E, K, -1)                                                        \
  X (tee, A, E, -1)                                                         \
  X (tgkill, A, E, -1)                                                      \
  X (time, A, E, -1)                                                        \
  X (timer_create, A, E, -1)                                                \
  X (timer_delete, A, E, -1)                                                \
  X (timer_getoverrun, A, E, -1)                                            \
  X (timer_gettime, A, E, -1)                                               \
  X (timer_settime, A, E, -1)                                               \
  X (timerfd_create, A, E, -1)                                              \
  X (timerfd_gettime, A, E, -1)                                             \
  X (timerfd_settime, A, E, -1)                                             \
  X (times, A, E, -1)                                                       \
  X (tkill, A, E, -1)                                                       \
  X (truncate, A, E, -1)                                                    \
  X (tuxcall, E, E, -1)                                                     \
  X (umask, A, E, -1)                                                       \
  X (umount2, E, K, -1)                                                     \
  X (uname, A, A, -1)                                                       \
  X (unlink, A, A, -1)                                                        \
  X (unlinkat, A, A, -1)                                                      \
  X (unshare, C, E, -1)                                                     \
  X (uselib, E, K, -1)                                                      \
  X (userfaultfd, E, K, -1)                                                 \
  X (ustat, E, K, -1)                                                         \
  X (utime, A, E, -1)                                                       \
  X (utimensat, A, E, -1)                                                   \
  X (utimes, A, E, -1)                                                      \
  X (vfork, A, E, -1)                                                       \
  X (vhangup, E, K, -1)                                                       \
  X (vmsplice, A, E, -1)                                                    \
  X (vserver, E, E, -1)                                                     \
  X (wait4, A, E, -1)                                                       \
  X (waitid, A, E, -1)                                                      \
  X (write, A, A, -1)                                                       \
  X (writev, A, A, -1)

/* clang-format on */

/* Allowed only so.  The comparison is of all 64 bits, so that bits beyond the
 * 32 that the kernel looks at never let anything pass.
 *   Y (name, arg, mask, value [, arg, mask, value [, arg, mask, value]])
 * mask 0 compares the whole argument. */
#define FILTER_ALLOW_GENERAL(Y)                                               \
  /* No new namespaces. */                                                    \
  Y (clone, 0, 0x7e020000, 0, -1, 0, 0, -1, 0, 0)                             \
  Y (unshare, 0, 0x7e020080, 0, -1, 0, 0, -1, 0, 0)                           \
  /* Unix: all that there is of it. */                                        \
  Y (socket, 0, 0, 1, -1, 0, 0, -1, 0, 0)                                     \
  /* IPv4 and IPv6: TCP and UDP; no raw, ping, MPTCP or SCTP. */              \
  Y (socket, 0, 0, 2, 1, 0xf, 1, 2, 0xffffffff, 0)                            \
  Y (socket, 0, 0, 2, 1, 0xf, 1, 2, 0xffffffff, 6)                            \
  Y (socket, 0, 0, 2, 1, 0xf, 2, 2, 0xffffffff, 0)                            \
  Y (socket, 0, 0, 2, 1, 0xf, 2, 2, 0xffffffff, 17)                           \
  Y (socket, 0, 0, 10, 1, 0xf, 1, 2, 0xffffffff, 0)                           \
  Y (socket, 0, 0, 10, 1, 0xf, 1, 2, 0xffffffff, 6)                           \
  Y (socket, 0, 0, 10, 1, 0xf, 2, 2, 0xffffffff, 0)                           \
  Y (socket, 0, 0, 10, 1, 0xf, 2, 2, 0xffffffff, 17)                          \
  /* Netlink: routes and addresses only, which getifaddrs reads. */           \
  Y (socket, 0, 0, 16, 2, 0xffffffff, 0, -1, 0, 0)                            \
  Y (socketpair, 0, 0, 1, -1, 0, 0, -1, 0, 0)                                 \
  /* Limits are set by who has them, and may be read of all: without          \
   * descriptors an init could watch over nothing. */                         \
  Y (prlimit64, 0, 0xffffffff, 0, -1, 0, 0, -1, 0, 0)                         \
  Y (prlimit64, 2, 0, 0, -1, 0, 0, -1, 0, 0)                                  \
  /* No address space lay-outs that make attacks easy. */                     \
  Y (personality, 0, 0, 0, -1, 0, 0, -1, 0, 0)                                \
  Y (personality, 0, 0, 0x8, -1, 0, 0, -1, 0, 0)                              \
  Y (personality, 0, 0, 0x20000, -1, 0, 0, -1, 0, 0)                          \
  Y (personality, 0, 0, 0x20008, -1, 0, 0, -1, 0, 0)                          \
  Y (personality, 0, 0, 0xffffffff, -1, 0, 0, -1, 0, 0)

/* The kernel looks at three arguments of execve.  The last of the others must
 * be a number that is drawn anew for each command, in place of this one, and
 * that only the init has: it starts the interpreter, which then starts
 * nothing. */
#define FILTER_SECRET 0x5eedc0de0ddba11cULL

#define FILTER_ALLOW_STRICT(Y)                                                \
  Y (execve, 5, 0, FILTER_SECRET, -1, 0, 0, -1, 0, 0)                         \
  /* Not MAP_LOCKED: as mlock, which is refused. */                           \
  Y (mmap, 3, 0x2000, 0, -1, 0, 0, -1, 0, 0)                                  \
  /* Threads, and no processes. */                                            \
  Y (clone, 0, 0x7e030100, 0x00010100, -1, 0, 0, -1, 0, 0)                    \
  Y (prlimit64, 0, 0xffffffff, 0, -1, 0, 0, -1, 0, 0)                         \
  /* F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC */                   \
  Y (fcntl, 1, 0, 1, -1, 0, 0, -1, 0, 0)                                      \
  Y (fcntl, 1, 0, 2, -1, 0, 0, -1, 0, 0)                                      \
  Y (fcntl, 1, 0, 3, -1, 0, 0, -1, 0, 0)                                      \
  Y (fcntl, 1, 0, 4, -1, 0, 0, -1, 0, 0)                                      \
  Y (fcntl, 1, 0, 1030, -1, 0, 0, -1, 0, 0)                                   \
  /* TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX */              \
  Y (ioctl, 1, 0, 0x5401, -1, 0, 0, -1, 0, 0)                                 \
  Y (ioctl, 1, 0, 0x5413, -1, 0, 0, -1, 0, 0)                                 \
  Y (ioctl, 1, 0, 0x541b, -1, 0, 0, -1, 0, 0)                                 \
  Y (ioctl, 1, 0, 0x5421, -1, 0, 0, -1, 0, 0)                                 \
  Y (ioctl, 1, 0, 0x5450, -1, 0, 0, -1, 0, 0)                                 \
  Y (ioctl, 1, 0, 0x5451, -1, 0, 0, -1, 0, 0)

/* Refused of calls that are allowed (A), in both profiles.  Comparisons are of
 * the 32 bits that the kernel uses.
 *   Z (name, errno, arg, mask, value [, arg, mask, value]) */
#define FILTER_REFUSE(Z)                                                      \
  /* Typing into a terminal, taking it over, freezing a file system. */       \
  Z (ioctl, EPERM, 1, 0xffffffff, 0x5412, -1, 0, 0)                           \
  Z (ioctl, EPERM, 1, 0xffffffff, 0x541c, -1, 0, 0)                           \
  Z (ioctl, EPERM, 1, 0xffffffff, 0x541d, -1, 0, 0)                           \
  Z (ioctl, EPERM, 1, 0xffffffff, 0x5423, -1, 0, 0)                           \
  Z (ioctl, EPERM, 1, 0xffffffff, 0xc0045877, -1, 0, 0)                       \
  Z (ioctl, EPERM, 1, 0xffffffff, 0x40806685, -1, 0, 0)                       \
  /* Leases and notifications reach processes beyond the sandbox. */          \
  Z (fcntl, EPERM, 1, 0xffffffff, 1024, -1, 0, 0)                             \
  Z (fcntl, EPERM, 1, 0xffffffff, 1026, -1, 0, 0)                             \
  Z (prctl, EPERM, 0, 0xffffffff, 35, -1, 0, 0)                               \
  Z (prctl, EPERM, 0, 0xffffffff, 0x59616d61, -1, 0, 0)                       \
  Z (seccomp, EPERM, 0, 0xffffffff, 1, 1, 0x8, 0x8)                           \
  /* Everybody at once: one command does not end the others of its sandbox.   \
   * Those that it names it may signal; they are the same user's. */          \
  Z (kill, EPERM, 0, 0xffffffff, 0xffffffff, -1, 0, 0)                        \
  /* Real-time scheduling. */                                                 \
  Z (sched_setscheduler, EPERM, 1, 0xbfffffff, 1, -1, 0, 0)                   \
  Z (sched_setscheduler, EPERM, 1, 0xbfffffff, 2, -1, 0, 0)                   \
  Z (sched_setscheduler, EPERM, 1, 0xbfffffff, 6, -1, 0, 0)                   \
  Z (ioprio_set, EPERM, 2, 0xe000, 0x2000, -1, 0, 0)                          \
  /* The init, number 1, is not made to wait behind what it watches.  Those   \
   * that name a user would name it too. */                                   \
  Z (sched_setscheduler, EPERM, 0, 0xffffffff, 1, -1, 0, 0)                   \
  Z (sched_setparam, EPERM, 0, 0xffffffff, 1, -1, 0, 0)                       \
  Z (sched_setaffinity, EPERM, 0, 0xffffffff, 1, -1, 0, 0)                    \
  Z (setpriority, EPERM, 0, 0xffffffff, 0, 1, 0xffffffff, 1)                  \
  Z (setpriority, EPERM, 0, 0xffffffff, 2, -1, 0, 0)                          \
  Z (ioprio_set, EPERM, 0, 0xffffffff, 1, 1, 0xffffffff, 1)                   \
  Z (ioprio_set, EPERM, 0, 0xffffffff, 3, -1, 0, 0)                           \
  /* No setuid or setgid bit ever: in a folder of the host it would be real.  \
   * Flags 0100 are O_CREAT and 020000000 O_TMPFILE: without them the mode is \
   * not read, and not set by the caller. */                                  \
  Z (chmod, EPERM, 1, 04000, 04000, -1, 0, 0)                                 \
  Z (chmod, EPERM, 1, 02000, 02000, -1, 0, 0)                                 \
  Z (fchmod, EPERM, 1, 04000, 04000, -1, 0, 0)                                \
  Z (fchmod, EPERM, 1, 02000, 02000, -1, 0, 0)                                \
  Z (fchmodat, EPERM, 2, 04000, 04000, -1, 0, 0)                              \
  Z (fchmodat, EPERM, 2, 02000, 02000, -1, 0, 0)                              \
  Z (fchmodat2, EPERM, 2, 04000, 04000, -1, 0, 0)                             \
  Z (fchmodat2, EPERM, 2, 02000, 02000, -1, 0, 0)                             \
  Z (creat, EPERM, 1, 04000, 04000, -1, 0, 0)                                 \
  Z (creat, EPERM, 1, 02000, 02000, -1, 0, 0)                                 \
  Z (open, EPERM, 1, 0100, 0100, 2, 04000, 04000)                             \
  Z (open, EPERM, 1, 0100, 0100, 2, 02000, 02000)                             \
  Z (open, EPERM, 1, 020000000, 020000000, 2, 04000, 04000)                   \
  Z (open, EPERM, 1, 020000000, 020000000, 2, 02000, 02000)                   \
  Z (openat, EPERM, 2, 0100, 0100, 3, 04000, 04000)                           \
  Z (openat, EPERM, 2, 0100, 0100, 3, 02000, 02000)                           \
  Z (openat, EPERM, 2, 020000000, 020000000, 3, 04000, 04000)                 \
  Z (openat, EPERM, 2, 020000000, 020000000, 3, 02000, 02000)                 \
  Z (mkdir, EPERM, 1, 04000, 04000, -1, 0, 0)                                 \
  Z (mkdir, EPERM, 1, 02000, 02000, -1, 0, 0)                                 \
  Z (mkdirat, EPERM, 2, 04000, 04000, -1, 0, 0)                               \
  Z (mkdirat, EPERM, 2, 02000, 02000, -1, 0, 0)                               \
  Z (mknod, EPERM, 1, 04000, 04000, -1, 0, 0)                                 \
  Z (mknod, EPERM, 1, 02000, 02000, -1, 0, 0)                                 \
  Z (mknod, EPERM, 1, 0170000, 0020000, -1, 0, 0)                             \
  Z (mknod, EPERM, 1, 0170000, 0060000, -1, 0, 0)                             \
  Z (mknodat, EPERM, 2, 04000, 04000, -1, 0, 0)                               \
  Z (mknodat, EPERM, 2, 02000, 02000, -1, 0, 0)                               \
  Z (mknodat, EPERM, 2, 0170000, 0020000, -1, 0, 0)                           \
  Z (mknodat, EPERM, 2, 0170000, 0060000, -1, 0, 0)                           \
  /* RENAME_WHITEOUT leaves a device, 0:0, which needs no right. */           \
  Z (renameat2, EPERM, 4, 4, 4, -1, 0, 0)

#endif /* LINUX_FILTER_TABLE_H */
