# SPDX-License-Identifier: Apache-2.0
# Completions under the names that each shell looks for.
EXTRA_DIST += %D%/generate.py %D%/coffer.bash %D%/coffer.zsh %D%/coffer.fish
zshcompletiondir = $(datadir)/zsh/site-functions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
install-data-local: install-completions
install-completions:
	$(MKDIR_P) '$(DESTDIR)$(bashcompletiondir)' \
	  '$(DESTDIR)$(zshcompletiondir)' '$(DESTDIR)$(fishcompletiondir)'
	$(INSTALL_DATA) $(srcdir)/%D%/coffer.bash \
	  '$(DESTDIR)$(bashcompletiondir)/coffer'
	$(INSTALL_DATA) $(srcdir)/%D%/coffer.zsh \
	  '$(DESTDIR)$(zshcompletiondir)/_coffer'
	$(INSTALL_DATA) $(srcdir)/%D%/coffer.fish \
	  '$(DESTDIR)$(fishcompletiondir)/coffer.fish'
uninstall-local: uninstall-completions
uninstall-completions:
	rm -f '$(DESTDIR)$(bashcompletiondir)/coffer' \
	  '$(DESTDIR)$(zshcompletiondir)/_coffer' \
	  '$(DESTDIR)$(fishcompletiondir)/coffer.fish'
.PHONY: install-completions uninstall-completions

# From the table of commands, kept in the tree; tests/e2e/manual.sh compares.
.PHONY: update-completions
update-completions: coffer$(EXEEXT)
	for shell in bash zsh fish; do \
	  ./coffer help --json \
	    | python3 $(srcdir)/%D%/generate.py $$shell > completion.tmp \
	    && mv completion.tmp $(srcdir)/%D%/coffer.$$shell || exit 1; \
	done
