/* SPDX-License-Identifier: Apache-2.0 */
/* The coffer contract, as one table.
 *
 * Everything that knows an operation, a record or a code reads it from the
 * X-macros below: the typed vtable and the record structs in provider.h, the
 * host's call interfaces and JSON codec, `coffer call`, `coffer contract`, the
 * reference manual and the kit's fuzz cases.  Adding an operation is one row
 * here and the code behind it.
 *
 * How the tables are read: each takes the macros to expand as parameters.
 *
 *   OP    (id, name, since, capability, ARGS, OPTS-FIELDS, doc)
 *   ARG   (type, name, doc)              a positional argument
 *   RARG  (type, record, name, doc)      one whose type is a record
 *   FIELD (type, name, since, doc)       a field of a record
 *   RFIELD(type, record, name, since, doc)
 *   REC   (id, name, since, FIELDS, doc)
 *
 * Types:
 *   str    NUL-terminated bytes (paths, arguments); NULL is "not given"
 *   text   UTF-8, NUL-terminated; NULL is "not given"
 *   strv   NULL-terminated vector of str; NULL is the empty vector
 *   i32 i64 u32 u64 f64    fixed widths; the unit is in the name
 *   flag   uint32_t, 0 or 1
 *   fd     int32_t, -1 is "none"; borrowed for the call, dup it to keep it
 *   rec    pointer to one record, NULL is "all defaults"
 *   recv   NULL-terminated vector of pointers to records
 *   ostr otext   as str and text, for an argument that may be NULL
 * A positional str, text or rec is never NULL: the host sees to that.
 *
 * Growth.  Ids are never reused.  Positional arguments never change.  Every
 * operation ends in its own options record `NAME_opts`.  New rows go to the
 * end of their table, whatever their id, and new fields to the end of their
 * record; `since` is the contract minor that brought a row.  A record's last
 * field leaves no padding behind it, so that a record's size says which fields
 * its writer knew.  A host never hands a value that is not the default to a
 * module whose minor does not know the field: the call is UNSUPPORTED.  While
 * the major is 0 a host loads only modules of its own minor.
 *
 * A module is built for an older minor with -DCOFFER_CONTRACT_MINOR=N; for
 * that, each row of a later minor M stands in COFFER_SINCE_M (...), which is
 * empty below M:
 *
 *   #if COFFER_CONTRACT_MINOR >= 2
 *   #define COFFER_SINCE_2(...) __VA_ARGS__
 *   #else
 *   #define COFFER_SINCE_2(...)
 *   #endif
 *
 * Stands alone: C99 and C++. */

#ifndef COFFER_CONTRACT_H
#define COFFER_CONTRACT_H

#define COFFER_CONTRACT_MAJOR 0
#ifndef COFFER_CONTRACT_MINOR
#define COFFER_CONTRACT_MINOR 1
#endif

/* The closed list of codes an operation may return.  A host turns any other
 * number into INTERNAL and says in its log which provider returned it.
 * `retryable` is what holds where the provider says nothing about trying again;
 * what is no here it may not call yes.
 * CODE (number, NAME, retryable: yes, no or unknown, doc) */
#define COFFER_CODES(CODE)                                                    \
  CODE (0, OK, no, "success")                                                 \
  CODE (1, UNSUPPORTED, no, "this provider does not have the operation")      \
  CODE (2, INVALID, no, "an argument is malformed or out of range")           \
  CODE (3, UNAUTHENTICATED, no, "the credentials are missing or wrong")       \
  CODE (4, DENIED, no, "known, but not allowed")                              \
  CODE (5, NOT_FOUND, no, "no such sandbox, exec, file or snapshot")          \
  CODE (6, EXISTS, no, "already there")                                       \
  CODE (7, CONFLICT, no, "the state of the thing does not allow it")          \
  CODE (8, BUSY, yes, "in use; later may work")                               \
  CODE (9, LIMIT, unknown, "a limit or quota was reached")                    \
  CODE (10, TIMEOUT, unknown, "the deadline passed")                          \
  CODE (11, CANCELLED, yes, "the caller gave up")                             \
  CODE (12, UNAVAILABLE, yes, "a service or kernel feature is not there")     \
  CODE (13, IO, unknown, "an input or output error")                          \
  CODE (14, INTERNAL, unknown, "a fault of the provider itself")

/* Capabilities: words a manifest claims and `probe` may narrow.
 * CAP (IDENTIFIER, "word", doc) */
#define COFFER_CAPABILITIES(CAP)                                              \
  CAP (EXEC, "exec", "run commands")                                          \
  CAP (EXEC_STDIN, "exec.stdin", "feed a command's standard input")           \
  CAP (EXEC_TTY, "exec.tty", "run a command on a terminal, with resize")      \
  CAP (EXEC_SIGNAL, "exec.signal", "send a signal to a command")              \
  CAP (EXEC_BACKGROUND, "exec.background",                                    \
       "commands that outlive the call that started them")                    \
  CAP (EXEC_WARM, "exec.warm", "start from a prepared interpreter")           \
  CAP (FILES, "files", "read, write, stat, list, make, rename and remove")    \
  CAP (FILES_WATCH, "files.watch", "report changes of files")                 \
  CAP (ARCHIVES, "archives", "export and import trees as archives")           \
  CAP (DURABLE, "durable", "sandboxes that outlive the host process")         \
  CAP (TTL, "ttl", "sandboxes that end at a set time, with extend")           \
  CAP (PAUSE, "pause", "pause and resume")                                    \
  CAP (PORTS, "ports", "reach a port inside a sandbox")                       \
  CAP (SNAPSHOT, "snapshot", "save and restore a sandbox's state")            \
  CAP (METRICS, "metrics", "report use of resources")                         \
  CAP (MOUNTS_BIND, "mounts.bind", "show a folder of the host inside")        \
  CAP (MOUNTS_SYNC, "mounts.sync", "copy a folder in, and changes back")      \
  CAP (NETWORK_NONE, "network.none", "no network but its own loopback")       \
  CAP (NETWORK_HOST, "network.host", "the host's network, unfiltered")        \
  CAP (NETWORK_ALLOW, "network.allow", "only listed names and ports")         \
  CAP (LIMIT_MEMORY, "limit.memory", "a memory cap for the whole sandbox")    \
  CAP (LIMIT_CPU, "limit.cpu", "a cap on processor time per second")          \
  CAP (LIMIT_PIDS, "limit.pids", "a cap on processes and threads")            \
  CAP (LIMIT_DISK, "limit.disk", "a cap on bytes and inodes written")         \
  CAP (QUOTA_HARD, "quota.hard", "the disk cap holds at every instant")       \
  CAP (ROOT_READONLY, "root.readonly", "a root that nothing inside can change") \
  CAP (USER_UNPRIVILEGED, "user.unprivileged",                                \
       "commands run as a user that is not the host's root")                  \
  CAP (TEMPLATES, "templates", "a root file system that the host has")

/* Records.  The options record of an operation is not listed here: its fields
 * stand in the operation's own row. */
#define COFFER_FIELDS_mount(FIELD, RFIELD)                                    \
  FIELD (str, source, 1, "host path; for people and engines, see source_fd")  \
  FIELD (str, target, 1, "absolute path inside")                              \
  FIELD (fd, source_fd, 1, "the folder or file, opened O_PATH by the host")   \
  FIELD (flag, writable, 1, "1: writes inside reach the source")

#define COFFER_FIELDS_sandbox_spec(FIELD, RFIELD)                             \
  FIELD (text, template_name, 1, "root file system, or a snapshot's id; NULL: the provider's own") \
  FIELD (text, image, 1, "container image, for engines")                      \
  FIELD (text, profile, 1, "name of the profile the values came from")        \
  FIELD (strv, env, 1, "NAME=VALUE for every command")                        \
  FIELD (str, workdir, 1, "absolute; NULL: /workspace")                       \
  FIELD (text, user, 1, "name or number inside; NULL: unprivileged default")  \
  FIELD (u64, memory_bytes, 1, "whole sandbox; 0: provider's default")        \
  FIELD (u32, cpu_millis, 1, "milliseconds of processor time per second; 0: no cap") \
  FIELD (u32, pids, 1, "processes and threads; 0: provider's default")        \
  FIELD (u64, disk_bytes, 1, "workspace and /tmp; 0: provider's default")     \
  FIELD (u64, inodes, 1, "workspace and /tmp; 0: provider's default")         \
  FIELD (text, network, 1, "none, host or allow; NULL: none")                 \
  FIELD (strv, allow, 1, "NAME:PORT, for network allow; empty: nothing")      \
  RFIELD (recv, mount, mounts, 1, "in order; a later one may cover an earlier one") \
  FIELD (strv, ports, 1, "ports that will be reached, decimal")               \
  FIELD (u64, ttl_ms, 1, "life from create; 0: until killed")                 \
  FIELD (flag, root_writable, 1, "1: the root may be changed inside")         \
  FIELD (strv, metadata, 1, "NAME=VALUE, kept and shown, never interpreted")  \
  FIELD (fd, lifeline, 1, "the sandbox ends when this reads end of file; -1: none") \
  FIELD (flag, single_exec, 1, "1: one exec will be started and the sandbox ends with it") \
  FIELD (text, filter, 1, "system calls: general or strict; NULL: general")   \
  FIELD (strv, require, 1, "landlock, cgroup, quota.hard: refused where one does not hold") \
  FIELD (u64, address_bytes, 1, "address space of each process; 0: no cap")   \
  FIELD (u64, file_bytes, 1, "largest file that is written; 0: no cap")       \
  FIELD (u32, open_files, 1, "descriptors of each process; 0: provider's default") \
  FIELD (fd, template_fd, 1, "root folder of template_name, opened O_PATH by the host") \
  FIELD (text, warm, 1, "handle of warm_open: a copy may wait inside to be the first exec_start of it; NULL: none")

#define COFFER_FIELDS_sandbox_info(FIELD, RFIELD)                             \
  FIELD (text, sandbox, 1, "the host's id, as given to create")               \
  FIELD (text, native_id, 1, "the provider's own id")                         \
  FIELD (text, state, 1, "running, paused or gone")                           \
  FIELD (i64, created_ns, 1, "since the epoch; 0: not known")                 \
  FIELD (i64, expires_ns, 1, "since the epoch; 0: never")                     \
  FIELD (text, template_name, 1, "what the root was made from")               \
  FIELD (text, isolation, 1, "none, namespaces, container, vm, remote-vm")    \
  FIELD (str, workspace, 1, "the working folder inside")                      \
  FIELD (strv, not_applied, 1, "defaults that this sandbox does not have")    \
  FIELD (strv, metadata, 1, "as given to create")

#define COFFER_FIELDS_fact(FIELD, RFIELD)                                     \
  FIELD (text, name, 1, "what was looked at, such as seccomp or userns")      \
  FIELD (text, state, 1, "ok, absent, off, degraded or failed")               \
  FIELD (text, value, 1, "what was found, for people")                        \
  FIELD (text, how, 1, "how it was read back")                                \
  FIELD (text, remedy, 1, "what an operator can do; NULL: nothing needed")    \
  FIELD (strv, narrows, 1, "capability words that this takes away here")

#define COFFER_FIELDS_exec_info(FIELD, RFIELD)                                \
  FIELD (text, exec, 1, "id within the sandbox")                              \
  FIELD (text, state, 1, "running or exited")                                 \
  FIELD (i64, started_ns, 1, "since the epoch; 0: not known")                 \
  FIELD (flag, background, 1, "1: output is kept until it is read")           \
  FIELD (strv, argv, 1, "the command; may be empty in a list")

#define COFFER_FIELDS_exec_exit(FIELD, RFIELD)                                \
  FIELD (text, exec, 1, "id within the sandbox")                              \
  FIELD (i32, code, 1, "exit code; -1 when a signal ended it")                \
  FIELD (i32, signal, 1, "signal number; 0: none")                            \
  FIELD (flag, timed_out, 1, "1: killed at its timeout")                      \
  FIELD (flag, oom, 1, "1: killed for memory")                                \
  FIELD (strv, limits_hit, 1, "limits that were reached: memory, pids, disk, inodes, timeout")            \
  FIELD (u64, duration_us, 1, "start to end, wall time")                      \
  FIELD (u64, cpu_us, 1, "user and system; 0: not known")                     \
  FIELD (text, failure, 1, "why it never ran; NULL when it did")              \
  FIELD (i32, failure_errno, 1, "errno of the start; 0: it ran")              \
  FIELD (u32, killed, 1, "descendants that were killed with it")

#define COFFER_FIELDS_file_stat(FIELD, RFIELD)                                \
  FIELD (str, path, 1, "as asked, or the entry's name in a list")             \
  FIELD (text, kind, 1, "file, directory, symlink, fifo, socket or device")   \
  FIELD (u64, size_bytes, 1, "as stat says")                                  \
  FIELD (u32, mode, 1, "permission bits, 07777")                              \
  FIELD (i64, modified_ns, 1, "since the epoch")                              \
  FIELD (str, target, 1, "of a symlink; NULL for others")                     \
  FIELD (u64, moved_bytes, 1, "bytes that this call read or wrote")

#define COFFER_FIELDS_file_event(FIELD, RFIELD)                               \
  FIELD (str, path, 1, "below the watched folder")                            \
  FIELD (text, kind, 1, "created, changed, removed, renamed or lost")

#define COFFER_FIELDS_port(FIELD, RFIELD)                                     \
  FIELD (u32, port, 1, "inside")                                              \
  FIELD (text, address, 1, "HOST:PORT or URL from the host; NULL: dial only")

#define COFFER_FIELDS_stream(FIELD, RFIELD)                                   \
  FIELD (fd, fd, 1, "a connected stream; the receiver owns its copy")

#define COFFER_FIELDS_metric(FIELD, RFIELD)                                   \
  FIELD (text, name, 1, "such as memory_bytes or cpu_seconds_total")          \
  FIELD (f64, value, 1, "in the unit of the name")

#define COFFER_FIELDS_snapshot(FIELD, RFIELD)                                 \
  FIELD (text, snapshot, 1, "id")                                             \
  FIELD (text, name, 1, "as given")                                           \
  FIELD (u64, size_bytes, 1, "0: not known")                                  \
  FIELD (i64, created_ns, 1, "since the epoch")

#define COFFER_FIELDS_file(FIELD, RFIELD)                                     \
  FIELD (fd, fd, 1, "sealed copy of the bytes that were hashed")              \
  FIELD (text, name, 1, "as the manifest's `files` names it")

#define COFFER_RECORDS(REC)                                                   \
  REC (1, mount, 1, COFFER_FIELDS_mount, "a folder of the host shown inside") \
  REC (2, sandbox_spec, 1, COFFER_FIELDS_sandbox_spec, "what to create")      \
  REC (3, sandbox_info, 1, COFFER_FIELDS_sandbox_info, "what a sandbox is")   \
  REC (4, fact, 1, COFFER_FIELDS_fact, "something read back from the system") \
  REC (5, exec_info, 1, COFFER_FIELDS_exec_info, "a command")                 \
  REC (6, exec_exit, 1, COFFER_FIELDS_exec_exit, "how a command ended")       \
  REC (7, file_stat, 1, COFFER_FIELDS_file_stat, "a file")                    \
  REC (8, file_event, 1, COFFER_FIELDS_file_event, "a change of a file")      \
  REC (9, port, 1, COFFER_FIELDS_port, "a port of a sandbox")                 \
  REC (10, stream, 1, COFFER_FIELDS_stream, "a connection")                   \
  REC (11, metric, 1, COFFER_FIELDS_metric, "one measured value")             \
  REC (12, snapshot, 1, COFFER_FIELDS_snapshot, "a saved state")              \
  REC (13, file, 1, COFFER_FIELDS_file, "a helper or data file of a provider")

/* Options records, one an operation.  An empty one still exists, so that a
 * later minor can append to it. */
#define COFFER_OPTS_NONE(FIELD, RFIELD)

#define COFFER_OPTS_open(FIELD, RFIELD)                                       \
  RFIELD (recv, file, files, 1, "helpers and data that the manifest lists")   \
  FIELD (fd, runtime_dir, 1, "private folder that lasts until reboot")        \
  FIELD (fd, state_dir, 1, "private folder that lasts; -1: not writable")     \
  FIELD (text, host, 1, "id of this host, the same for every process of it")

#define COFFER_OPTS_exec_start(FIELD, RFIELD)                                 \
  FIELD (u64, timeout_ms, 1, "the command and its descendants are killed then; 0: never") \
  FIELD (flag, tty, 1, "1: in, out are one terminal made by the host; err is -1") \
  FIELD (flag, background, 1, "1: output is kept inside until exec_attach")   \
  FIELD (u32, rows, 1, "of the terminal")                                     \
  FIELD (u32, columns, 1, "of the terminal")                                  \
  FIELD (text, user, 1, "name or number inside; NULL: the sandbox's user")    \
  FIELD (text, warm, 1, "handle of warm_open: its program runs in the place of argv, in a sandbox where nothing ran; NULL: a fresh program")         \
  FIELD (u64, output_cap_bytes, 1, "kept per stream in background, from its beginning on; 0: provider's default")

#define COFFER_OPTS_warm_open(FIELD, RFIELD)                                  \
  FIELD (strv, modules, 1, "what to import ahead")

#define COFFER_OPTS_file_read(FIELD, RFIELD)                                  \
  FIELD (u64, offset_bytes, 1, "where to start")                              \
  FIELD (u64, length_bytes, 1, "at most; 0: to the end")

#define COFFER_OPTS_file_write(FIELD, RFIELD)                                 \
  FIELD (u32, mode, 1, "permission bits of a new file; 0: 0644")              \
  FIELD (flag, parents, 1, "1: make missing folders")                         \
  FIELD (flag, exclusive, 1, "1: EXISTS when there is one")

#define COFFER_OPTS_file_mkdir(FIELD, RFIELD)                                 \
  FIELD (flag, parents, 1, "1: make missing folders, and an existing one is success")

#define COFFER_OPTS_file_remove(FIELD, RFIELD)                                \
  FIELD (flag, recursive, 1, "1: a folder with all below it")

#define COFFER_OPTS_file_list(FIELD, RFIELD)                                  \
  FIELD (u32, depth, 1, "0 and 1: the folder itself; more: below it too")

/* Operations.  Columns: id, name, since, the capability word that a provider
 * must claim ("": every provider has it), arguments, options, doc. */
#define COFFER_OPERATIONS(OP, ARG, RARG)                                      \
  OP (1, open, 1, "", ARG (strv, config, "KEY=VALUE, checked against the manifest"), \
      COFFER_OPTS_open, "make an instance; call coffer_opened")               \
  OP (2, close, 1, "", , COFFER_OPTS_NONE, "end the instance and free it")    \
  OP (3, probe, 1, "", , COFFER_OPTS_NONE, "emit a fact for each thing needed; narrow claims") \
  OP (10, sandbox_create, 1, "", ARG (str, sandbox, "the host's id; creating it twice is one sandbox") \
      RARG (rec, sandbox_spec, spec, "what to make"),                         \
      COFFER_OPTS_NONE, "emit sandbox_info and the facts of what was applied") \
  OP (11, sandbox_info, 1, "", ARG (str, sandbox, "id"), COFFER_OPTS_NONE, "emit sandbox_info") \
  OP (12, sandbox_list, 1, "", , COFFER_OPTS_NONE, "emit sandbox_info for each one of this host") \
  OP (13, sandbox_kill, 1, "", ARG (str, sandbox, "id"), COFFER_OPTS_NONE,    \
      "end it and all in it; NOT_FOUND when there is none: the host calls that success") \
  OP (14, sandbox_extend, 1, "ttl", ARG (str, sandbox, "id") ARG (u64, ttl_ms, "from now"), \
      COFFER_OPTS_NONE, "set a new end; emit sandbox_info")                   \
  OP (15, sandbox_pause, 1, "pause", ARG (str, sandbox, "id"), COFFER_OPTS_NONE, "stop all of it, again is success; the ttl runs on, exec_start is a CONFLICT") \
  OP (16, sandbox_resume, 1, "pause", ARG (str, sandbox, "id"), COFFER_OPTS_NONE, "let it go on; success where it does") \
  OP (20, exec_start, 1, "exec", ARG (str, sandbox, "id") ARG (strv, argv, "program and arguments, exact bytes") \
      ARG (strv, env, "NAME=VALUE, over the sandbox's") ARG (ostr, cwd, "absolute; NULL: workdir") \
      ARG (fd, in, "pipe, socket or tty made by the host; -1: /dev/null")     \
      ARG (fd, out, "likewise; -1: dropped") ARG (fd, err, "likewise; -1: dropped"), \
      COFFER_OPTS_exec_start, "emit exec_info at once, without waiting for the end") \
  OP (21, exec_wait, 1, "exec", ARG (str, sandbox, "id") ARG (str, exec, "id"), COFFER_OPTS_NONE, "emit exec_exit when it has ended, whoever else has its streams") \
  OP (22, exec_list, 1, "exec", ARG (str, sandbox, "id"), COFFER_OPTS_NONE, "emit exec_info for each that is known") \
  OP (23, exec_attach, 1, "exec.background", ARG (str, sandbox, "id") ARG (str, exec, "id") \
      ARG (fd, out, "pipe") ARG (fd, err, "pipe"),                            \
      COFFER_OPTS_NONE, "write what was kept, then what comes, until the end") \
  OP (24, exec_signal, 1, "exec.signal", ARG (str, sandbox, "id") ARG (str, exec, "id") ARG (i32, signal, "number, as on Linux"), \
      COFFER_OPTS_NONE, "signal the command's process group; CONFLICT when it has ended")                 \
  OP (25, exec_resize, 1, "exec.tty", ARG (str, sandbox, "id") ARG (str, exec, "id") ARG (u32, rows, "1 to 4096") ARG (u32, columns, "1 to 4096"), \
      COFFER_OPTS_NONE, "set the size of its terminal")                       \
  OP (26, exec_stdin_close, 1, "exec.stdin", ARG (str, sandbox, "id") ARG (str, exec, "id"), COFFER_OPTS_NONE, "end its standard input; the host then closes its end of it") \
  OP (27, warm_open, 1, "exec.warm", ARG (text, profile, "name") \
      ARG (fd, in, "Python, read to its end: prepare (MODULES) of it is called once and returns those that are not there, run () in each copy; ahead (), if it has one, in a copy that waits"), \
      COFFER_OPTS_warm_open, "have a Python interpreter ready; emit exec_info whose exec is the handle, good until close or until others need its place: NOT_FOUND then") \
  OP (30, file_read, 1, "files", ARG (str, sandbox, "id") ARG (str, path, "absolute, or below the workspace") ARG (fd, out, "pipe"), \
      COFFER_OPTS_file_read, "write the bytes of a regular file to out; emit file_stat") \
  OP (31, file_write, 1, "files", ARG (str, sandbox, "id") ARG (str, path, "as above") ARG (fd, in, "pipe, read to its end"), \
      COFFER_OPTS_file_write, "replace a regular file at once and whole; emit file_stat") \
  OP (32, file_stat, 1, "files", ARG (str, sandbox, "id") ARG (str, path, "as above"), COFFER_OPTS_NONE, "emit file_stat; links are not followed") \
  OP (33, file_list, 1, "files", ARG (str, sandbox, "id") ARG (str, path, "a folder"), COFFER_OPTS_file_list, "emit file_stat for each entry") \
  OP (34, file_mkdir, 1, "files", ARG (str, sandbox, "id") ARG (str, path, "as above"), COFFER_OPTS_file_mkdir, "make a folder") \
  OP (35, file_remove, 1, "files", ARG (str, sandbox, "id") ARG (str, path, "as above"), COFFER_OPTS_file_remove, "remove; links are not followed") \
  OP (36, file_rename, 1, "files", ARG (str, sandbox, "id") ARG (str, from, "as above") ARG (str, to, "as above"), COFFER_OPTS_NONE, "rename, replacing a file") \
  OP (37, file_watch, 1, "files.watch", ARG (str, sandbox, "id") ARG (str, path, "a folder"), COFFER_OPTS_NONE, "emit file_event until cancelled") \
  OP (40, archive_export, 1, "archives", ARG (str, sandbox, "id") ARG (str, path, "a folder") ARG (fd, out, "pipe"), COFFER_OPTS_NONE, "write it as tar") \
  OP (41, archive_import, 1, "archives", ARG (str, sandbox, "id") ARG (str, path, "a folder") ARG (fd, in, "pipe"), COFFER_OPTS_NONE, "unpack a tar, all or nothing: none with devices, damage, a name twice, absolute, with .. or through a link") \
  OP (44, port_resolve, 1, "ports", ARG (str, sandbox, "id") ARG (u32, port, "1 to 65535"), COFFER_OPTS_NONE, "emit port") \
  OP (45, port_dial, 1, "ports", ARG (str, sandbox, "id") ARG (u32, port, "1 to 65535"), COFFER_OPTS_NONE, "emit stream; UNAVAILABLE where nothing listens") \
  OP (50, metrics, 1, "metrics", ARG (str, sandbox, "id, or a handle of warm_open"), COFFER_OPTS_NONE, "emit metric for each value, memory_bytes and cpu_seconds_total among them; of a handle ready, copies_total, replaced_total, memory_bytes, memory_resident_bytes, NOT_FOUND where nothing is counted") \
  OP (60, snapshot_create, 1, "snapshot", ARG (str, sandbox, "id") ARG (otext, name, "for people"), COFFER_OPTS_NONE, "emit snapshot") \
  OP (61, snapshot_list, 1, "snapshot", , COFFER_OPTS_NONE, "emit snapshot for each") \
  OP (62, snapshot_delete, 1, "snapshot", ARG (text, snapshot, "id"), COFFER_OPTS_NONE, "delete; NOT_FOUND when there is none")

#endif /* COFFER_CONTRACT_H */
