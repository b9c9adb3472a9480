#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches Debian's newest cloud kernel into a folder, without installing it:
#   sh kernel.sh DIR
# A kernel that is there already is kept.
set -eu
dir=$1
for kernel in "$dir"/boot/vmlinuz-*; do
  [ ! -r "$kernel" ] || exit 0
done

# The name changes with each update of the kernel.
fetch () {
  name=$(apt-cache depends linux-image-cloud-amd64 \
    | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -1)
  # _apt could not write here.
  [ -n "$name" ] && apt-get -qq -o APT::Sandbox::User=root download "$name"
}
rm -rf "$dir.new"
mkdir -p "$dir.new"
cd "$dir.new"
fetch || { [ "$(id -u)" -eq 0 ] && apt-get -qq update && fetch; } || {
  echo "kernel.sh: linux-image-cloud-amd64 cannot be had of apt here:" \
    "run apt-get update, or see its sources" >&2
  exit 1
}
dpkg-deb -x "$name"_*.deb .
rm -f "$name"_*.deb
cd - >/dev/null
mv "$dir.new" "$dir"
