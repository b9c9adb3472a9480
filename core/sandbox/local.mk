# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libsandbox.a
%C%_libsandbox_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libsandbox_a_SOURCES = \
  %D%/claims.c \
  %D%/async.c %D%/async.h \
  %D%/dial.h \
  %D%/attach.c \
  %D%/capture.c %D%/capture.h \
  %D%/create.c \
  %D%/exec.c %D%/exec-relay.c %D%/exec-report.c \
  %D%/exec-start.c %D%/exec.h \
  %D%/exec-capture.c %D%/exec-capture.h \
  %D%/execs.c %D%/execs-ask.c %D%/execs-input.c %D%/execs-keeper.c \
  %D%/execs-pump.c %D%/execs.h %D%/execs-private.h %D%/exec-keeper.h \
  %D%/exec-log.c %D%/exec-log-files.c %D%/exec-log-owners.c \
  %D%/exec-log-read.c \
  %D%/exec-log.h %D%/exec-log-private.h \
  %D%/download.c \
  %D%/files.c \
  %D%/forward.c \
  %D%/host.c %D%/host.h \
  %D%/ids.c \
  %D%/import.c \
  %D%/info.c %D%/info.h \
  %D%/lifecycle.c \
  %D%/metrics.c \
  %D%/own-folder.c %D%/own-folder.h \
  %D%/owner.c %D%/owner.h \
  %D%/pause.c \
  %D%/ports.c \
  %D%/profile.c %D%/profile.h \
  %D%/ready.c %D%/ready.h \
  %D%/records.c %D%/records-open.c %D%/records.h %D%/records-private.h \
  %D%/relay.c %D%/relay.h \
  %D%/request.c %D%/request.h \
  %D%/sandbox.h \
  %D%/runs.c %D%/runs.h \
  %D%/signals.c %D%/signals.h \
  %D%/sqlite.c %D%/sqlite.h \
  %D%/stream.c \
  %D%/sweep.c \
  %D%/tally.c %D%/tally.h \
  %D%/template.c %D%/users.c %D%/template.h \
  %D%/terminal.c %D%/terminal.h \
  %D%/transfer.c %D%/transfer.h \
  %D%/upload.c

include core/sandbox/keeper/local.mk
