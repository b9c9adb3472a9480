# SPDX-License-Identifier: Apache-2.0
# Files, archives, ports, metrics, and what the host has: profiles, templates,
# providers, the kit.
core_server_libserver_a_SOURCES += \
  %D%/archives.c \
  %D%/common.c %D%/common.h \
  %D%/files.c \
  %D%/kit.c %D%/kit-run.c %D%/kit-run.h \
  %D%/metrics.c \
  %D%/ports.c %D%/proxy.c %D%/proxy-head.c %D%/proxy.h \
  %D%/profiles.c \
  %D%/providers.c
