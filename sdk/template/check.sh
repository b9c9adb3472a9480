#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh DIR: installs the provider of DIR into a place of its own and makes
# it run a command.  `make kit` asks far more; this is for a quick look.
set -eu
coffer=${COFFER:-coffer}
COFFER_HOME=$(mktemp -d)
export COFFER_HOME
trap 'rm -rf "$COFFER_HOME"' EXIT
id=example

# Before the kit has been run: its own author may.
mkdir "$COFFER_HOME/config"
printf "require_conformance: false\n" > "$COFFER_HOME/config/coffer.yaml"
"$coffer" provider install "$1" --yes
"$coffer" provider doctor $id
said=$(printf 'café\n' | "$coffer" run --provider $id -i -- sh -c 'cat; exit 7') \
  && status=0 || status=$?
if [ "$said $status" != "café 7" ]; then
  echo "check.sh: expected 'café 7' and got '$said $status'" >&2
  exit 1
fi
echo "check.sh: it runs"
