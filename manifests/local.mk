# SPDX-License-Identifier: Apache-2.0
# Manifests are written without hashes and sealed against what was built: once
# into stage/, where the `coffer` of the build tree looks, and once into the
# folder of `make install`, after strip has changed the modules.
EXTRA_DIST += $(PROVIDER_MANIFESTS) %D%/seal-into

# A cross build names a `coffer` that runs on this machine.
COFFER_SEAL = ./coffer$(EXEEXT)
stage_dir = stage/providers-$(CONTRACT_MAJOR)
seal_into = SEAL='$(COFFER_SEAL)' SOURCE='$(srcdir)' \
  WITHOUT='$(SEAL_WITHOUT)' \
  sh $(srcdir)/%D%/seal-into

# What is staged is stripped, as `make install-strip` does it: every first call
# hashes and copies it, and symbols are most of its size.  For a debugger the
# files below plugins/ have them; sanitizers want them in what is loaded.
if SANITIZERS
stage_program = $(INSTALL_PROGRAM)
else
stage_program = STRIPPROG='$(if $(STRIP),$(STRIP),strip)' $(INSTALL_STRIP_PROGRAM)
endif

# Each file appears under its name whole: a `coffer` that runs meanwhile sees
# the old one or the new one.
stage/stamp: $(providers_PROGRAMS) $(pkglibexec_PROGRAMS) $(stage_helpers) \
    $(pkglibexec_SCRIPTS) $(PROVIDER_MANIFESTS) %D%/seal-into coffer$(EXEEXT)
	$(AM_V_GEN)rm -f $@ && \
	$(MKDIR_P) $(stage_dir) stage/libexec && \
	chmod go-w stage $(stage_dir) stage/libexec && \
	for f in $(providers_PROGRAMS); do \
	  $(stage_program) $$f $(stage_dir)/.new && \
	  mv -f $(stage_dir)/.new $(stage_dir)/$${f##*/} || exit 1; done && \
	for f in $(pkglibexec_PROGRAMS) $(stage_helpers); do \
	  case " $(stage_helpers) " in \
	    *" $$f "*) ;; *"/$${f##*/} "*) continue ;; esac; \
	  $(stage_program) $$f stage/libexec/.new && \
	  mv -f stage/libexec/.new stage/libexec/$${f##*/} || exit 1; done && \
	for f in $(pkglibexec_SCRIPTS); do \
	  $(INSTALL_DATA) $$f stage/libexec/.new && \
	  mv -f stage/libexec/.new stage/libexec/$${f##*/} || exit 1; done && \
	$(seal_into) $(stage_dir) $(PROVIDER_MANIFESTS) && \
	touch $@

all-local: stage/stamp
clean-local: clean-stage
clean-stage:
	-rm -rf stage

# automake counts a folder without `exec` in its variable as data.
install-data-hook:
	$(seal_into) '$(DESTDIR)$(providersdir)' $(PROVIDER_MANIFESTS)

uninstall-hook:
	for m in $(PROVIDER_MANIFESTS); do \
	  rm -f "$(DESTDIR)$(providersdir)/$${m##*/}"; done
	for d in '$(providersdir)' '$(libdir)/coffer' '$(pkglibexecdir)' \
	    '$(includedir)/coffer'; do \
	  test ! -d "$(DESTDIR)$$d" || rmdir "$(DESTDIR)$$d" 2>/dev/null; \
	done; :

# For editors of manifests and profiles.
dist_pkgdata_DATA = %D%/schema/kit-report.schema.json \
  %D%/schema/manifest.schema.json \
  %D%/schema/profile.schema.json

# Compiled into the program (core/policy); installed to be read and copied.
PROFILES = \
  %D%/profiles/data-science.yaml \
  %D%/profiles/default.yaml \
  %D%/profiles/minimal.yaml \
  %D%/profiles/network-basic.yaml \
  %D%/profiles/network-extended.yaml \
  %D%/profiles/offline-readonly.yaml
profilesdir = $(docdir)/profiles
dist_profiles_DATA = $(PROFILES)
