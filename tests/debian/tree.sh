#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A root file system by debootstrap, of this machine's own release and from where
# its apt gets that:
#   sh tree.sh DIR
# makes DIR/root, and DIR/root.tar of it; what is there already is kept.  77:
# something is missing, which the last line names.
set -eu
dir=$1
[ ! -r "$dir/root.tar" ] || exit 0

lacks () { echo "missing: $1"; exit 77; }

command -v debootstrap >/dev/null 2>&1 || lacks debootstrap
# It makes device nodes and files of several owners, and changes its root.
[ "$(id -u)" -eq 0 ] || lacks "root, who runs debootstrap"
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release | tr -d '"')
mirror=$(apt-get indextargets --format \
  '$(CREATED_BY) $(CODENAME) $(COMPONENT) $(REPO_URI)' 2>/dev/null \
  | awk -v release="$release" \
    '$1 == "Packages" && $2 == release && $3 == "main" { print $4; exit }')
[ -n "$release" ] && [ -n "$mirror" ] \
  || lacks "a mirror of this machine's release in apt's sources"

rm -rf "$dir.new"
mkdir -p "$dir.new"
mknod "$dir.new/null" c 1 3 2>/dev/null && : 2>/dev/null >"$dir.new/null" \
  || lacks "the right to make device nodes"
unshare --mount true 2>/dev/null || lacks "the right to mount"
status=0
# What it mounts is gone with it, however it ends.
LC_ALL=C unshare --mount debootstrap --variant=minbase "$release" \
  "$dir.new/root" "$mirror" >"$dir.new/log" 2>&1 || status=$?
if [ "$status" -ne 0 ]; then
  tail -20 "$dir.new/log"
  ! grep -q 'Failed getting release file' "$dir.new/log" \
    || lacks "a mirror that answers: $mirror"
  exit 1
fi
# Lists and packages that were fetched, as whoever gives a tree away does.
rm -f "$dir.new/null" "$dir.new/root/var/lib/apt/lists"/*_* \
  "$dir.new/root/var/cache/apt"/*.bin "$dir.new/root/var/cache/apt/archives"/*.deb
tar -C "$dir.new/root" --sort=name -cf "$dir.new/root.tar" .
rm -rf "$dir"
mv "$dir.new" "$dir"
