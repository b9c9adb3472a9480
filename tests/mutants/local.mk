# SPDX-License-Identifier: Apache-2.0
# The reference provider, which the conformance kit must find nothing wrong
# with, and the mutants, each of which it must find out.  It runs commands as the caller does, which only what is shipped with
# coffer may; so there is a `coffer` here that ships it: the build tree's, but
# for the folder that it looks in.
mutants_stage = %D%/stage
reference_parts = \
  %D%/reference/protocol.h %D%/reference/reference.h \
  %D%/reference/files.h \
  %D%/reference/archive.c %D%/reference/client.c %D%/reference/copy.c \
  %D%/reference/exec.c %D%/reference/files.c %D%/reference/reach.c \
  %D%/reference/reference.c %D%/reference/sandbox.c \
  %D%/reference/snapshot.c %D%/reference/spawn.c %D%/reference/warm.c \
  %D%/reference/watch.c
keeper_parts = \
  %D%/reference/protocol.h %D%/reference/keeper.h \
  %D%/reference/keeper.c %D%/reference/minder.c %D%/reference/packets.c \
  %D%/reference/spool.c %D%/reference/tree.c

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

# And the daemon of that `coffer`.
check_PROGRAMS += %D%/serve/coffer-serve
%C%_serve_coffer_serve_CPPFLAGS = $(AM_CPPFLAGS) $(MICROHTTPD_CFLAGS)
%C%_serve_coffer_serve_CFLAGS = $(HOST_CC_FLAGS)
%C%_serve_coffer_serve_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_serve_coffer_serve_SOURCES = core/server/main.c $(server_surfaces)
%C%_serve_coffer_serve_LDADD = $(server_archives) %D%/libplace-mutants.a \
  $(server_libs)

# All mutants are one module, but for one that lacks an operation; mutants.tsv
# is their list.
check_LIBRARIES += %D%/libmutant.a
%C%_libmutant_a_SOURCES = $(reference_parts) \
  %D%/broken/mutant.h \
  %D%/broken/commands.c %D%/broken/data.c %D%/broken/life.c \
  %D%/broken/pump.c %D%/broken/reach.c %D%/broken/wrap.c
%C%_libmutant_a_CPPFLAGS = $(MODULE_CPP_FLAGS) -DMUTANTS
%C%_libmutant_a_CFLAGS = $(MODULE_CC_FLAGS)
mutant_libs = %D%/libmutant.a sdk/lib/libcoffer-provider.a
check_PROGRAMS += %D%/mutant.so %D%/bare.so
%C%_mutant_so_SOURCES = %D%/broken/table.c %D%/broken/mutant.h
%C%_mutant_so_CPPFLAGS = $(MODULE_CPP_FLAGS) -DMUTANTS
%C%_mutant_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_mutant_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_mutant_so_LDADD = $(mutant_libs)
%C%_bare_so_SOURCES = %D%/broken/table.c %D%/broken/mutant.h
%C%_bare_so_CPPFLAGS = $(MODULE_CPP_FLAGS) -DMUTANTS -DWITHOUT_WARM
%C%_bare_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_bare_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_bare_so_LDADD = $(mutant_libs)

# After the others' flags, so that this stage is the one that counts.
check_LIBRARIES += %D%/libplace-mutants.a
%C%_libplace_mutants_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libplace_mutants_a_CPPFLAGS = $(place_cppflags) -UPLACE_STAGE \
  -DPLACE_STAGE='"$(abs_top_builddir)/$(mutants_stage)"'
%C%_libplace_mutants_a_SOURCES = core/base/place-build.c
%C%_coffer_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_SOURCES = $(coffer_sources)
%C%_coffer_LDADD = $(LINUX_BUILT_IN) $(cli_archives) %D%/libplace-mutants.a $(cli_libs)
%C%_kit_coffer_kit_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
%C%_kit_coffer_kit_CFLAGS = $(HOST_CC_FLAGS)
%C%_kit_coffer_kit_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_kit_coffer_kit_SOURCES = sdk/kit/runner/main.c
%C%_kit_coffer_kit_LDADD = $(kit_archives) %D%/libplace-mutants.a $(kit_libs)

EXTRA_DIST += %D%/reference.yaml %D%/mutants.tsv %D%/make-manifests
mutants_programs = %D%/reference.so %D%/mutant.so %D%/bare.so \
  %D%/reference-keeper
mutants_made = $(mutants_stage)/made
mutants_providers = $(mutants_stage)/providers-$(CONTRACT_MAJOR)

$(mutants_stage)/stamp: stage/stamp $(mutants_programs) %D%/reference.yaml \
    %D%/mutants.tsv %D%/make-manifests \
    %D%/coffer$(EXEEXT) %D%/kit/coffer-kit$(EXEEXT) \
    %D%/serve/coffer-serve$(EXEEXT)
	$(AM_V_GEN)rm -f $@ && \
	rm -rf $(mutants_providers) $(mutants_made) && \
	$(MKDIR_P) $(mutants_providers) $(mutants_made) \
	  $(mutants_stage)/libexec && \
	chmod go-w $(mutants_stage) $(mutants_providers) \
	  $(mutants_stage)/libexec && \
	for f in stage/libexec/* %D%/kit/coffer-kit$(EXEEXT) \
	  %D%/serve/coffer-serve$(EXEEXT); do \
	  $(INSTALL_PROGRAM) $$f $(mutants_stage)/libexec/.new && \
	  mv -f $(mutants_stage)/libexec/.new \
	    $(mutants_stage)/libexec/$${f##*/} || exit 1; done && \
	for f in $(mutants_programs); do \
	  $(INSTALL_PROGRAM) $$f $(mutants_providers)/.new && \
	  mv -f $(mutants_providers)/.new $(mutants_providers)/$${f##*/} \
	    || exit 1; done && \
	made=`sh $(srcdir)/%D%/make-manifests $(srcdir)/%D%/reference.yaml \
	  $(srcdir)/%D%/mutants.tsv $(mutants_made)` && \
	$(seal_into) $(mutants_providers) %D%/reference.yaml $$made && \
	touch $@
check_DATA += $(mutants_stage)/stamp
clean-local: clean-mutants
clean-mutants:
	-rm -rf $(mutants_stage)

SCENARIOS += %D%/reference.sh %D%/run.py
