# SPDX-License-Identifier: Apache-2.0
# Tests of what modules link: they link nothing else of the host.
SDK_UNIT_CPP_FLAGS = $(MODULE_CPP_FLAGS) -I$(top_srcdir)/tests/unit \
  $(CMOCKA_CFLAGS)
SDK_UNIT_LIBS = sdk/lib/libcoffer-provider.a $(CMOCKA_LIBS)

# The host that the tests of provider modules call from.
check_LIBRARIES += %D%/libfakehost.a
%C%_libfakehost_a_SOURCES = %D%/fakehost.c %D%/fakehost.h
%C%_libfakehost_a_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_libfakehost_a_CFLAGS = $(UNIT_CC_FLAGS)

UNIT_TESTS += %D%/test-sdk-address %D%/test-sdk-buffer \
  %D%/test-sdk-fd %D%/test-sdk-path %D%/test-sdk-path-in-worker \
  %D%/test-sdk-files %D%/test-sdk-archive %D%/test-sdk-process %D%/test-sdk-commands \
  %D%/test-sdk-packet %D%/test-sdk-sandboxes %D%/test-sdk-session

%C%_test_sdk_address_SOURCES = %D%/test-sdk-address.c
%C%_test_sdk_address_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_address_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_address_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_address_LDADD = $(SDK_UNIT_LIBS)

%C%_test_sdk_buffer_SOURCES = %D%/test-sdk-buffer.c %D%/harness.h
%C%_test_sdk_buffer_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_buffer_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_buffer_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_buffer_LDADD = $(SDK_UNIT_LIBS)

%C%_test_sdk_fd_SOURCES = %D%/test-sdk-fd.c %D%/harness.h
%C%_test_sdk_fd_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_fd_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_fd_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_fd_LDADD = $(SDK_UNIT_LIBS)

%C%_test_sdk_path_SOURCES = %D%/test-sdk-path.c %D%/harness.h
%C%_test_sdk_path_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_path_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_path_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_path_LDADD = $(SDK_UNIT_LIBS)
# The same without the call that workers do not have.
%C%_test_sdk_path_in_worker_SOURCES = %D%/test-sdk-path.c %D%/harness.h
%C%_test_sdk_path_in_worker_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS) -DIN_WORKER \
  $(SECCOMP_CFLAGS)
%C%_test_sdk_path_in_worker_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_path_in_worker_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_path_in_worker_LDADD = $(SDK_UNIT_LIBS) $(SECCOMP_LIBS)

%C%_test_sdk_files_SOURCES = %D%/test-sdk-files.c %D%/harness.h
%C%_test_sdk_files_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_files_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_files_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_files_LDADD = %D%/libfakehost.a $(SDK_UNIT_LIBS)

%C%_test_sdk_archive_SOURCES = %D%/test-sdk-archive.c %D%/harness.h
%C%_test_sdk_archive_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_archive_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_archive_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_archive_LDADD = %D%/libfakehost.a $(SDK_UNIT_LIBS)

%C%_test_sdk_process_SOURCES = %D%/test-sdk-process.c \
  %D%/process-shell.c %D%/process-shell.h %D%/harness.h
%C%_test_sdk_process_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_process_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_process_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_process_LDADD = $(SDK_UNIT_LIBS)

UNIT_TESTS += %D%/test-sdk-process-end
%C%_test_sdk_process_end_SOURCES = %D%/test-sdk-process-end.c \
  %D%/process-shell.c %D%/process-shell.h %D%/harness.h
%C%_test_sdk_process_end_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_process_end_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_process_end_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_process_end_LDADD = $(SDK_UNIT_LIBS)

%C%_test_sdk_commands_SOURCES = %D%/test-sdk-commands.c %D%/harness.h
%C%_test_sdk_commands_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_commands_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_commands_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_commands_LDADD = %D%/libfakehost.a $(SDK_UNIT_LIBS)

%C%_test_sdk_packet_SOURCES = %D%/test-sdk-packet.c %D%/harness.h
%C%_test_sdk_packet_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_packet_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_packet_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_packet_LDADD = $(SDK_UNIT_LIBS)

%C%_test_sdk_sandboxes_SOURCES = %D%/test-sdk-sandboxes.c %D%/harness.h
%C%_test_sdk_sandboxes_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_sandboxes_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_sandboxes_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_sandboxes_LDADD = %D%/libfakehost.a $(SDK_UNIT_LIBS)

%C%_test_sdk_session_SOURCES = %D%/test-sdk-session.c %D%/harness.h
%C%_test_sdk_session_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_sdk_session_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sdk_session_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sdk_session_LDADD = $(SDK_UNIT_LIBS)
