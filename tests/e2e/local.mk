# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += %D%/reaper
%C%_reaper_SOURCES = %D%/reaper.c
%C%_reaper_CFLAGS = $(HOST_CC_FLAGS)
%C%_reaper_LDFLAGS = $(HOST_LINK_FLAGS)
EXTRA_DIST += %D%/kit-lib.sh %D%/lib.sh %D%/deny.py %D%/https.py %D%/internet.py %D%/type.py
EXTRA_DIST += %D%/stranger/notes.c
SCENARIOS += \
  %D%/bad-input.sh \
  %D%/call.sh \
  %D%/choice.sh \
  %D%/contract.sh \
  %D%/debug.sh \
  %D%/default.sh \
  %D%/descriptors.sh \
  %D%/docker-context.sh \
  %D%/doctor.sh \
  %D%/enable.sh \
  %D%/enable-kit.sh \
  %D%/faults.sh \
  %D%/files.sh \
  %D%/front.sh \
  %D%/host.sh \
  %D%/in-flight.sh \
  %D%/install.sh \
  %D%/install-git.sh \
  %D%/install-hostile.sh \
  %D%/install-kill.sh \
  %D%/install-url.sh \
  %D%/json.sh \
  %D%/kit.sh \
  %D%/kit-host.sh \
  %D%/kit-linux.sh \
  %D%/limits.sh \
  %D%/manual.sh \
  %D%/newcomer.sh \
  %D%/network.sh \
  %D%/life.sh \
  %D%/ports.sh \
  %D%/profile.sh \
  %D%/owners.sh \
  %D%/provider.sh \
  %D%/refusals.sh \
  %D%/run-python.sh \
  %D%/run.sh \
  %D%/run-arguments.sh \
  %D%/run-env.sh \
  %D%/run-files.sh \
  %D%/run-json.sh \
  %D%/sandbox.sh \
  %D%/sdk-install.sh \
  %D%/shell.sh \
  %D%/sigkill.sh \
  %D%/signature.sh \
  %D%/soak.sh \
  %D%/streams.sh \
  %D%/template.sh \
  %D%/template-hostile.sh \
  %D%/terminal.sh \
  %D%/trust.sh \
  %D%/usage.sh
