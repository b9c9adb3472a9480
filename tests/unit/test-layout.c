/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of everything that crosses between host and module, written a
 * second time, by hand, for machines with 64-bit pointers.  A change of the
 * table that moves something old fails here; what is appended is added here
 * and moves nothing. */

#include <config.h>

#include "harness.h"

#include <coffer/provider.h>

/* How many places a test has named, and how many the table has. */
static int named;

#define SIZE(record, bytes)                                                   \
  assert_int_equal (sizeof (struct coffer_##record), bytes)
#define AT(record, field, offset)                                             \
  do {                                                                        \
    assert_int_equal (offsetof (struct coffer_##record, field), offset);      \
    named++;                                                                  \
  } while (0)
#define SLOT(operation, offset) AT (operations, operation, offset)

#define ONE(...) +1
#define NOTHING(...)
#define FIELDS_OF_RECORD(id, name, since, FIELDS, doc) FIELDS (ONE, ONE)
#define FIELDS_OF_OPTS(id, name, since, capability, args, OPTS, doc)          \
  OPTS (ONE, ONE)
#define ALL_NAMED(total)                                                      \
  assert_int_equal (named, 0 total);                                          \
  named = 0

static void
records_lie_where_they_did (void **state)
{
  (void) state;
  SIZE (mount, 32);
  AT (mount, source, 8);
  AT (mount, target, 16);
  AT (mount, source_fd, 24);
  AT (mount, writable, 28);

  SIZE (sandbox_spec, 200);
  AT (sandbox_spec, template_name, 8);
  AT (sandbox_spec, image, 16);
  AT (sandbox_spec, profile, 24);
  AT (sandbox_spec, env, 32);
  AT (sandbox_spec, workdir, 40);
  AT (sandbox_spec, user, 48);
  AT (sandbox_spec, memory_bytes, 56);
  AT (sandbox_spec, cpu_millis, 64);
  AT (sandbox_spec, pids, 68);
  AT (sandbox_spec, disk_bytes, 72);
  AT (sandbox_spec, inodes, 80);
  AT (sandbox_spec, network, 88);
  AT (sandbox_spec, allow, 96);
  AT (sandbox_spec, mounts, 104);
  AT (sandbox_spec, ports, 112);
  AT (sandbox_spec, ttl_ms, 120);
  AT (sandbox_spec, root_writable, 128);
  AT (sandbox_spec, metadata, 136);
  AT (sandbox_spec, lifeline, 144);
  AT (sandbox_spec, single_exec, 148);
  AT (sandbox_spec, filter, 152);
  AT (sandbox_spec, require, 160);
  AT (sandbox_spec, address_bytes, 168);
  AT (sandbox_spec, file_bytes, 176);
  AT (sandbox_spec, open_files, 184);
  AT (sandbox_spec, template_fd, 188);
  AT (sandbox_spec, warm, 192);

  SIZE (sandbox_info, 88);
  AT (sandbox_info, sandbox, 8);
  AT (sandbox_info, native_id, 16);
  AT (sandbox_info, state, 24);
  AT (sandbox_info, created_ns, 32);
  AT (sandbox_info, expires_ns, 40);
  AT (sandbox_info, template_name, 48);
  AT (sandbox_info, isolation, 56);
  AT (sandbox_info, workspace, 64);
  AT (sandbox_info, not_applied, 72);
  AT (sandbox_info, metadata, 80);

  SIZE (fact, 56);
  AT (fact, name, 8);
  AT (fact, state, 16);
  AT (fact, value, 24);
  AT (fact, how, 32);
  AT (fact, remedy, 40);
  AT (fact, narrows, 48);

  SIZE (exec_info, 48);
  AT (exec_info, exec, 8);
  AT (exec_info, state, 16);
  AT (exec_info, started_ns, 24);
  AT (exec_info, background, 32);
  AT (exec_info, argv, 40);

  SIZE (exec_exit, 72);
  AT (exec_exit, exec, 8);
  AT (exec_exit, code, 16);
  AT (exec_exit, signal, 20);
  AT (exec_exit, timed_out, 24);
  AT (exec_exit, oom, 28);
  AT (exec_exit, limits_hit, 32);
  AT (exec_exit, duration_us, 40);
  AT (exec_exit, cpu_us, 48);
  AT (exec_exit, failure, 56);
  AT (exec_exit, failure_errno, 64);
  AT (exec_exit, killed, 68);

  SIZE (file_stat, 64);
  AT (file_stat, path, 8);
  AT (file_stat, kind, 16);
  AT (file_stat, size_bytes, 24);
  AT (file_stat, mode, 32);
  AT (file_stat, modified_ns, 40);
  AT (file_stat, target, 48);
  AT (file_stat, moved_bytes, 56);

  SIZE (file_event, 24);
  AT (file_event, path, 8);
  AT (file_event, kind, 16);

  SIZE (port, 24);
  AT (port, port, 8);
  AT (port, address, 16);

  SIZE (stream, 12);
  AT (stream, fd, 8);

  SIZE (metric, 24);
  AT (metric, name, 8);
  AT (metric, value, 16);

  SIZE (snapshot, 40);
  AT (snapshot, snapshot, 8);
  AT (snapshot, name, 16);
  AT (snapshot, size_bytes, 24);
  AT (snapshot, created_ns, 32);

  SIZE (file, 24);
  AT (file, fd, 8);
  AT (file, name, 16);
  ALL_NAMED (COFFER_RECORDS (FIELDS_OF_RECORD));
}

static void
options_lie_where_they_did (void **state)
{
  (void) state;
  SIZE (open_opts, 32);
  AT (open_opts, files, 8);
  AT (open_opts, runtime_dir, 16);
  AT (open_opts, state_dir, 20);
  AT (open_opts, host, 24);

  SIZE (exec_start_opts, 56);
  AT (exec_start_opts, timeout_ms, 8);
  AT (exec_start_opts, tty, 16);
  AT (exec_start_opts, background, 20);
  AT (exec_start_opts, rows, 24);
  AT (exec_start_opts, columns, 28);
  AT (exec_start_opts, user, 32);
  AT (exec_start_opts, warm, 40);
  AT (exec_start_opts, output_cap_bytes, 48);

  SIZE (warm_open_opts, 16);
  AT (warm_open_opts, modules, 8);

  SIZE (file_read_opts, 24);
  AT (file_read_opts, offset_bytes, 8);
  AT (file_read_opts, length_bytes, 16);

  SIZE (file_write_opts, 20);
  AT (file_write_opts, mode, 8);
  AT (file_write_opts, parents, 12);
  AT (file_write_opts, exclusive, 16);

  SIZE (file_list_opts, 12);
  AT (file_list_opts, depth, 8);

  SIZE (file_mkdir_opts, 12);
  AT (file_mkdir_opts, parents, 8);

  SIZE (file_remove_opts, 12);
  AT (file_remove_opts, recursive, 8);
  ALL_NAMED (COFFER_OPERATIONS (FIELDS_OF_OPTS, NOTHING, NOTHING));

  /* An operation without options still has the record. */
  SIZE (close_opts, 8);
  SIZE (probe_opts, 8);
}

static void
slots_lie_where_they_did (void **state)
{
  (void) state;
  SLOT (open, 8);
  SLOT (close, 16);
  SLOT (probe, 24);
  SLOT (sandbox_create, 32);
  SLOT (sandbox_info, 40);
  SLOT (sandbox_list, 48);
  SLOT (sandbox_kill, 56);
  SLOT (sandbox_extend, 64);
  SLOT (sandbox_pause, 72);
  SLOT (sandbox_resume, 80);
  SLOT (exec_start, 88);
  SLOT (exec_wait, 96);
  SLOT (exec_list, 104);
  SLOT (exec_attach, 112);
  SLOT (exec_signal, 120);
  SLOT (exec_resize, 128);
  SLOT (exec_stdin_close, 136);
  SLOT (warm_open, 144);
  SLOT (file_read, 152);
  SLOT (file_write, 160);
  SLOT (file_stat, 168);
  SLOT (file_list, 176);
  SLOT (file_mkdir, 184);
  SLOT (file_remove, 192);
  SLOT (file_rename, 200);
  SLOT (file_watch, 208);
  SLOT (archive_export, 216);
  SLOT (archive_import, 224);
  SLOT (port_resolve, 232);
  SLOT (port_dial, 240);
  SLOT (metrics, 248);
  SLOT (snapshot_create, 256);
  SLOT (snapshot_list, 264);
  SLOT (snapshot_delete, 272);
  SIZE (operations, 280);
  ALL_NAMED (COFFER_OPERATIONS (ONE, NOTHING, NOTHING));
}

static void
the_frame_around_them_lies_where_it_did (void **state)
{
  (void) state;
  SIZE (provider, 32);
  AT (provider, size, 0);
  AT (provider, contract_major, 4);
  AT (provider, contract_minor, 6);
  AT (provider, least_minor, 8);
  AT (provider, threads, 10);
  AT (provider, needs, 12);
  AT (provider, name, 16);
  AT (provider, operations, 24);

  SIZE (note, 44);
  AT (note, contract_major, 0);
  AT (note, contract_minor, 2);
  AT (note, least_minor, 4);
  AT (note, threads, 6);
  AT (note, needs, 8);
  AT (note, name, 12);

  SIZE (call, 40);
  AT (call, size, 0);
  AT (call, reserved, 4);
  AT (call, host, 8);
  AT (call, request, 16);
  AT (call, deadline_ns, 24);
  AT (call, cancel_fd, 32);
  AT (call, reserved2, 36);

  SIZE (host, 64);
  AT (host, size, 0);
  AT (host, reserved, 4);
  AT (host, emit, 8);
  AT (host, fail, 16);
  AT (host, log, 24);
  AT (host, progress, 32);
  AT (host, connect, 40);
  AT (host, opened, 48);
  AT (host, file, 56);
}

static void
numbers_are_what_they_were (void **state)
{
  (void) state;
  assert_int_equal (COFFER_OK, 0);
  assert_int_equal (COFFER_UNSUPPORTED, 1);
  assert_int_equal (COFFER_INVALID, 2);
  assert_int_equal (COFFER_UNAUTHENTICATED, 3);
  assert_int_equal (COFFER_DENIED, 4);
  assert_int_equal (COFFER_NOT_FOUND, 5);
  assert_int_equal (COFFER_EXISTS, 6);
  assert_int_equal (COFFER_CONFLICT, 7);
  assert_int_equal (COFFER_BUSY, 8);
  assert_int_equal (COFFER_LIMIT, 9);
  assert_int_equal (COFFER_TIMEOUT, 10);
  assert_int_equal (COFFER_CANCELLED, 11);
  assert_int_equal (COFFER_UNAVAILABLE, 12);
  assert_int_equal (COFFER_IO, 13);
  assert_int_equal (COFFER_INTERNAL, 14);
  assert_int_equal (COFFER_RETRY_NO, 0);
  assert_int_equal (COFFER_RETRY_YES, 1);
  assert_int_equal (COFFER_RETRY_UNKNOWN, 2);
  assert_int_equal (COFFER_RETRY_DEFAULT, 3);
  assert_int_equal (COFFER_LOG_ERROR, 0);
  assert_int_equal (COFFER_LOG_DEBUG, 3);
  assert_int_equal (COFFER_THREADS_SERIAL, 0);
  assert_int_equal (COFFER_THREADS_PARALLEL, 1);
  assert_int_equal (COFFER_NOTE_TYPE, 1);
  assert_string_equal (COFFER_NOTE_OWNER, "coffer");
  assert_string_equal (COFFER_ENTRY_NAME, "coffer_provider_0");
  assert_int_equal (COFFER_REC_mount, 1);
  assert_int_equal (COFFER_REC_sandbox_spec, 2);
  assert_int_equal (COFFER_REC_sandbox_info, 3);
  assert_int_equal (COFFER_REC_fact, 4);
  assert_int_equal (COFFER_REC_exec_info, 5);
  assert_int_equal (COFFER_REC_exec_exit, 6);
  assert_int_equal (COFFER_REC_file_stat, 7);
  assert_int_equal (COFFER_REC_file_event, 8);
  assert_int_equal (COFFER_REC_port, 9);
  assert_int_equal (COFFER_REC_stream, 10);
  assert_int_equal (COFFER_REC_metric, 11);
  assert_int_equal (COFFER_REC_snapshot, 12);
  assert_int_equal (COFFER_REC_file, 13);
  assert_int_equal (COFFER_OP_open, 1);
  assert_int_equal (COFFER_OP_close, 2);
  assert_int_equal (COFFER_OP_probe, 3);
  assert_int_equal (COFFER_OP_sandbox_create, 10);
  assert_int_equal (COFFER_OP_sandbox_info, 11);
  assert_int_equal (COFFER_OP_sandbox_list, 12);
  assert_int_equal (COFFER_OP_sandbox_kill, 13);
  assert_int_equal (COFFER_OP_sandbox_extend, 14);
  assert_int_equal (COFFER_OP_sandbox_pause, 15);
  assert_int_equal (COFFER_OP_sandbox_resume, 16);
  assert_int_equal (COFFER_OP_exec_start, 20);
  assert_int_equal (COFFER_OP_exec_wait, 21);
  assert_int_equal (COFFER_OP_exec_list, 22);
  assert_int_equal (COFFER_OP_exec_attach, 23);
  assert_int_equal (COFFER_OP_exec_signal, 24);
  assert_int_equal (COFFER_OP_exec_resize, 25);
  assert_int_equal (COFFER_OP_exec_stdin_close, 26);
  assert_int_equal (COFFER_OP_warm_open, 27);
  assert_int_equal (COFFER_OP_file_read, 30);
  assert_int_equal (COFFER_OP_file_write, 31);
  assert_int_equal (COFFER_OP_file_stat, 32);
  assert_int_equal (COFFER_OP_file_list, 33);
  assert_int_equal (COFFER_OP_file_mkdir, 34);
  assert_int_equal (COFFER_OP_file_remove, 35);
  assert_int_equal (COFFER_OP_file_rename, 36);
  assert_int_equal (COFFER_OP_file_watch, 37);
  assert_int_equal (COFFER_OP_archive_export, 40);
  assert_int_equal (COFFER_OP_archive_import, 41);
  assert_int_equal (COFFER_OP_port_resolve, 44);
  assert_int_equal (COFFER_OP_port_dial, 45);
  assert_int_equal (COFFER_OP_metrics, 50);
  assert_int_equal (COFFER_OP_snapshot_create, 60);
  assert_int_equal (COFFER_OP_snapshot_list, 61);
  assert_int_equal (COFFER_OP_snapshot_delete, 62);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (records_lie_where_they_did),
    cmocka_unit_test (options_lie_where_they_did),
    cmocka_unit_test (slots_lie_where_they_did),
    cmocka_unit_test (the_frame_around_them_lies_where_it_did),
    cmocka_unit_test (numbers_are_what_they_were),
  };

  if (sizeof (void *) != 8) {
    print_message ("1..0 # SKIP missing: 64-bit pointers\n");
    return 0;
  }
  return cmocka_run_group_tests (tests, NULL, NULL);
}
