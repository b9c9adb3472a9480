# SPDX-License-Identifier: Apache-2.0
# What holds for the tree and for what is built and installed.
SCENARIOS += \
  %D%/abi.sh \
  %D%/check.sh \
  %D%/contrib.sh \
  %D%/headers.sh \
  %D%/install.sh \
  %D%/module.sh \
  %D%/needed.sh \
  %D%/reference.sh \
  %D%/sdk-cxx.sh \
  %D%/sdk-template.sh \
  %D%/tree.sh
EXTRA_DIST += %D%/tap.sh
