# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test-sandbox-ids %D%/test-sandbox-records \
  %D%/test-sandbox-life %D%/test-sandbox-exec %D%/test-sandbox-files
UNIT_TESTS += %D%/test-sandbox-profile
UNIT_TESTS += %D%/test-sandbox-ready
SANDBOX_TEST_LIBS = core/sandbox/libsandbox.a core/store/libstore.a core/policy/libpolicy.a \
  core/contract/libcontract.a $(FFI_LIBS) $(UNIT_BASE_LIBS) \
  $(SQLITE_LIBS) -lpthread
SANDBOX_FAKE = %D%/sandbox-fake.c %D%/sandbox-fake.h %D%/sandbox-host.h \
  %D%/harness.h

%C%_test_sandbox_ids_SOURCES = %D%/test-sandbox-ids.c %D%/harness.h
%C%_test_sandbox_ids_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_ids_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_ids_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_ids_LDADD = $(SANDBOX_TEST_LIBS)

%C%_test_sandbox_records_SOURCES = %D%/test-sandbox-records.c %D%/harness.h
%C%_test_sandbox_records_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_records_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_records_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_records_LDADD = $(SANDBOX_TEST_LIBS)

%C%_test_sandbox_life_SOURCES = %D%/test-sandbox-life.c $(SANDBOX_FAKE)
%C%_test_sandbox_life_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_life_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_life_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_life_LDADD = $(SANDBOX_TEST_LIBS)

UNIT_TESTS += %D%/test-sandbox-create
%C%_test_sandbox_create_SOURCES = %D%/test-sandbox-create.c $(SANDBOX_FAKE)
%C%_test_sandbox_create_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_create_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_create_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_create_LDADD = $(SANDBOX_TEST_LIBS)

UNIT_TESTS += %D%/test-sandbox-next
%C%_test_sandbox_next_SOURCES = %D%/test-sandbox-next.c $(SANDBOX_FAKE)
%C%_test_sandbox_next_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_next_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_next_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_next_LDADD = $(SANDBOX_TEST_LIBS)

%C%_test_sandbox_exec_SOURCES = %D%/test-sandbox-exec.c $(SANDBOX_FAKE)
%C%_test_sandbox_exec_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_exec_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_exec_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_exec_LDADD = $(SANDBOX_TEST_LIBS)

%C%_test_sandbox_files_SOURCES = %D%/test-sandbox-files.c $(SANDBOX_FAKE)
%C%_test_sandbox_files_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_files_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_files_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_files_LDADD = $(SANDBOX_TEST_LIBS)

%C%_test_sandbox_profile_SOURCES = %D%/test-sandbox-profile.c $(SANDBOX_FAKE)
%C%_test_sandbox_profile_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_profile_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_profile_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_profile_LDADD = $(SANDBOX_TEST_LIBS)

UNIT_TESTS += %D%/test-exec-log
%C%_test_exec_log_SOURCES = %D%/test-exec-log.c %D%/exec-log-fixture.c \
  %D%/exec-log-fixture.h $(SANDBOX_FAKE)
%C%_test_exec_log_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_exec_log_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_exec_log_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_exec_log_LDADD = $(SANDBOX_TEST_LIBS)
UNIT_TESTS += %D%/test-exec-log-room
%C%_test_exec_log_room_SOURCES = %D%/test-exec-log-room.c %D%/exec-log-fixture.c \
  %D%/exec-log-fixture.h $(SANDBOX_FAKE)
%C%_test_exec_log_room_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_exec_log_room_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_exec_log_room_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_exec_log_room_LDADD = $(SANDBOX_TEST_LIBS)

UNIT_TESTS += %D%/test-sandbox-list
%C%_test_sandbox_list_SOURCES = %D%/test-sandbox-list.c $(SANDBOX_FAKE)
%C%_test_sandbox_list_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_list_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_list_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_list_LDADD = $(SANDBOX_TEST_LIBS)

%C%_test_sandbox_ready_SOURCES = %D%/test-sandbox-ready.c $(SANDBOX_FAKE)
%C%_test_sandbox_ready_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sandbox_ready_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sandbox_ready_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sandbox_ready_LDADD = $(SANDBOX_TEST_LIBS)

UNIT_TESTS += %D%/test-tally
%C%_test_tally_SOURCES = %D%/test-tally.c %D%/harness.h
%C%_test_tally_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_tally_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_tally_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_tally_LDADD = $(SANDBOX_TEST_LIBS)
