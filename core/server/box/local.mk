# SPDX-License-Identifier: Apache-2.0
# /api/v1/box
core_server_libserver_a_SOURCES += \
  %D%/attach.h \
  %D%/box.c %D%/box.h \
  %D%/config.c %D%/config.h \
  %D%/exec.c %D%/exec.h \
  %D%/output.c %D%/output.h \
  %D%/processes.c %D%/processes-attach.c %D%/processes-socket.c \
  %D%/processes.h \
  %D%/routes.c \
  %D%/sessions.c %D%/sessions.h \
  %D%/spec.c %D%/spec.h \
  %D%/status.c \
  %D%/store.c
