# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += %D%/bootstrap %D%/packages.sh %D%/quickstart %D%/check \
  %D%/results.sh %D%/ahead.sh \
  %D%/why-not %D%/verify-execute %D%/apparmor/coffer.in %D%/apparmor/install
include contrib/completions/local.mk
