# SPDX-License-Identifier: Apache-2.0
# The reference provider, which the conformance kit must find nothing wrong
# with.  It runs commands as the caller does, which only what is shipped with
# coffer may; so there is a `coffer` here that ships it: the build tree's, but
# for the folder that it looks in.
mutants_stage = %D%/stage
reference_parts = \
  %D%/reference/fault.h %D%/reference/protocol.h %D%/reference/reference.h \
  %D%/reference/archive.h %D%/reference/files.h \
  %D%/reference/archive.c %D%/reference/archive-merge.c \
  %D%/reference/archive-read.c %D%/reference/client.c %D%/reference/copy.c \
  %D%/reference/exec.c %D%/reference/files.c %D%/reference/reach.c \
  %D%/reference/reference.c %D%/reference/sandbox.c \
  %D%/reference/snapshot.c %D%/reference/spawn.c %D%/reference/watch.c
keeper_parts = \
  %D%/reference/fault.h %D%/reference/protocol.h %D%/reference/keeper.h \
  %D%/reference/keeper.c %D%/reference/minder.c %D%/reference/packets.c \
  %D%/reference/spool.c %D%/reference/start.c %D%/reference/tree.c

check_PROGRAMS += %D%/reference.so %D%/reference-keeper %D%/coffer \
  %D%/kit/coffer-kit
%C%_reference_so_SOURCES = $(reference_parts)
%C%_reference_so_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_reference_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_reference_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_reference_so_LDADD = sdk/lib/libcoffer-provider.a
%C%_reference_keeper_SOURCES = $(keeper_parts)
%C%_reference_keeper_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_reference_keeper_CFLAGS = $(HOST_CC_FLAGS)
%C%_reference_keeper_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_reference_keeper_LDADD = sdk/lib/libcoffer-provider.a

# After the others' flags, so that this stage is the one that counts.
check_LIBRARIES += %D%/libplace-mutants.a
%C%_libplace_mutants_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libplace_mutants_a_CPPFLAGS = $(place_cppflags) -UPLACE_STAGE \
  -DPLACE_STAGE='"$(abs_top_builddir)/$(mutants_stage)"'
%C%_libplace_mutants_a_SOURCES = core/base/place-build.c
%C%_coffer_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_SOURCES = core/cli/main.c
%C%_coffer_LDADD = $(cli_archives) %D%/libplace-mutants.a $(cli_libs)
%C%_kit_coffer_kit_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
%C%_kit_coffer_kit_CFLAGS = $(HOST_CC_FLAGS)
%C%_kit_coffer_kit_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_kit_coffer_kit_SOURCES = sdk/kit/runner/main.c
%C%_kit_coffer_kit_LDADD = $(kit_archives) %D%/libplace-mutants.a $(kit_libs)

MUTANT_MANIFESTS = %D%/reference.yaml
EXTRA_DIST += $(MUTANT_MANIFESTS)
mutants_programs = %D%/reference.so %D%/reference-keeper
mutants_providers = $(mutants_stage)/providers-$(CONTRACT_MAJOR)

$(mutants_stage)/stamp: stage/stamp $(mutants_programs) $(MUTANT_MANIFESTS) \
    %D%/coffer$(EXEEXT) %D%/kit/coffer-kit$(EXEEXT)
	$(AM_V_GEN)rm -f $@ && \
	$(MKDIR_P) $(mutants_providers) $(mutants_stage)/libexec && \
	chmod go-w $(mutants_stage) $(mutants_providers) \
	  $(mutants_stage)/libexec && \
	for f in stage/libexec/* %D%/kit/coffer-kit$(EXEEXT); do \
	  $(INSTALL_PROGRAM) $$f $(mutants_stage)/libexec/.new && \
	  mv -f $(mutants_stage)/libexec/.new \
	    $(mutants_stage)/libexec/$${f##*/} || exit 1; done && \
	for f in $(mutants_programs); do \
	  $(INSTALL_PROGRAM) $$f $(mutants_providers)/.new && \
	  mv -f $(mutants_providers)/.new $(mutants_providers)/$${f##*/} \
	    || exit 1; done && \
	$(seal_into) $(mutants_providers) $(MUTANT_MANIFESTS) && \
	touch $@
check_DATA += $(mutants_stage)/stamp
clean-local: clean-mutants
clean-mutants:
	-rm -rf $(mutants_stage)

SCENARIOS += %D%/reference.sh
