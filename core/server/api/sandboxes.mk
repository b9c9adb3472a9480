# SPDX-License-Identifier: Apache-2.0
# Sandboxes and commands of the daemon's own interface.
core_server_libserver_a_SOURCES += \
  %D%/create-events.c %D%/create.h \
  %D%/escape.c %D%/escape.h \
  %D%/events.c %D%/frames.h \
  %D%/execs.c %D%/own.h \
  %D%/fields.c %D%/fields.h \
  %D%/idempotency.c %D%/idempotency.h \
  %D%/allow.c \
  %D%/mounts.c \
  %D%/sandboxes.c \
  %D%/spec.c %D%/spec.h
