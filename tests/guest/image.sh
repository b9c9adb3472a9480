#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the root file system of the guests: sh image.sh IMAGE
#
# Debian's programs from the packages that this machine has, what they link,
# coffer as `make install-strip` installs it, and of the build tree what the
# unit tests need, where it lies here.  Everything belongs to root in there;
# an ordinary user makes it in a user namespace.  Made again only when
# something of it is newer.  What is missing is one line, `missing: WHAT`, and
# exit status 77.
set -eu
: "${COFFER_BUILD:?}" "${COFFER_SOURCE:?}"
image=$1

missing () { echo "missing: $*"; exit 77; }
for program in dpkg-query mke2fs ldd tar flock; do
  command -v "$program" >/dev/null 2>&1 || missing "$program"
done
# Where the files of whoever makes it are root's.
mapped=
[ "$(id -u)" -eq 0 ] || mapped='unshare --user --map-root-user'
$mapped true 2>/dev/null || missing "user namespaces"

fresh () {
  [ -e "$image" ] || return 1
  newer=$(find "$COFFER_BUILD/coffer" "$COFFER_BUILD/core" \
    "$COFFER_BUILD/plugins" "$COFFER_BUILD/stage" "$COFFER_BUILD/tests" \
    "$COFFER_SOURCE/tests/guest" \
    "$COFFER_SOURCE/tests/e2e" "$COFFER_SOURCE/manifests" -type f \
    -newer "$image" ! -name '*.log' ! -name '*.trs' ! -name '*.o' ! -name '*.a' \
    -print -quit)
  [ -z "$newer" ]
}
mkdir -p "$(dirname "$image")"
exec 9>"$image.lock"
flock 9
if fresh; then exit 0; fi

work=$(mktemp -d "${TMPDIR:-/tmp}/coffer-image-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
root=$work/root
mkdir "$root"

# ---- programs ---------------------------------------------------------------
packages='attr base-files base-passwd bash coreutils dash diffutils e2fsprogs
  findutils grep iproute2 kmod mawk mount procps python3-minimal sed tar
  libpython3-stdlib util-linux libc-bin strace'
for package in $packages; do
  dpkg-query -L "$package" >/dev/null 2>&1 || missing "the package $package"
done
# What depends on the version: python3.N and its library.
packages="$packages $(dpkg-query -W -f '${Package}\n' 'python3.*-minimal' \
  'libpython3.*-minimal' 'libpython3.*-stdlib' 2>/dev/null | tr '\n' ' ')"

usr=
[ ! -h /bin ] || usr='s,^/(bin|sbin|lib|lib32|lib64|libx32)/,/usr/\1/,'
dpkg-query -L $packages 2>/dev/null | sed -E "$usr" \
  | grep -vE '^/usr/share/(doc|man|locale|info|lintian|bug|bash-completion|zoneinfo)/|/__pycache__|/(test|idlelib|lib2to3|pydoc_data|ensurepip|distutils|tkinter)/|^/\.' \
  | sort -u | while IFS= read -r file; do
      if [ -h "$file" ] || [ -f "$file" ]; then printf '%s\n' "$file"; fi
    done >"$work/files"
# What the alternatives' links name: awk.
readlink -f /usr/bin/awk >>"$work/files" || :
printf '%s\n' /usr/bin/awk /etc/alternatives/awk /usr/bin/sh >>"$work/files"

# ---- coffer -----------------------------------------------------------------
# A make of ours, not a part of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
make -s -C "$COFFER_BUILD" install-strip DESTDIR="$root" >"$work/install.log" \
  2>&1 || { cat "$work/install.log"; exit 1; }
# coffer.pc of the build knows where its programs went.
prefix=$(sed -n 's/^prefix = //p' "$COFFER_BUILD/Makefile")
mkdir -p "$root/guest/installed/tests/e2e/modules" "$root/guest/source/tests/unit" \
  "$root$COFFER_BUILD/tests"
ln -s "$prefix/bin/coffer" "$root/guest/installed/coffer"
cp "$COFFER_BUILD/tests/e2e/reaper" "$root/guest/installed/tests/e2e/"
cp "$COFFER_BUILD"/tests/e2e/modules/*.so \
  "$root/guest/installed/tests/e2e/modules/"
cp -R "$COFFER_SOURCE/tests/e2e" "$COFFER_SOURCE/tests/guest" \
  "$root/guest/source/tests/"
printf "%s\n" "$COFFER_BUILD" >"$root/guest/build"
cp "$COFFER_SOURCE/tests/unit/run.sh" "$root/guest/source/tests/unit/"
cp "$COFFER_SOURCE/tests/guest/init.sh" "$root/guest/init"
chmod 755 "$root/guest/init"
(cd "$COFFER_BUILD" \
  && find coffer stage plugins core tests/unit tests/modules tests/e2e \
    -type f \( -perm -100 -o -name '*.so' -o -name '*.yaml' \) ! -name '*.o' ! -name '*.a' ! -name '*.log' ! -name '*.trs' \
    ! -name '*.Po' ! -path '*/guest/*' -print0 \
  | tar --null -cf - -T -) | tar -C "$root$COFFER_BUILD" --no-same-owner -xf -

# ---- what they link ---------------------------------------------------------
{ grep -E '^/usr/(s?bin|lib/python3[^ ]*/lib-dynload)/' "$work/files"
  find "$root" -type f -perm -100
} | while IFS= read -r file; do
    case $(LC_ALL=C head -c 4 "$file" 2>/dev/null | tail -c 3) in
      ELF) printf '%s\0' "$file" ;;
    esac
  done | xargs -0 -n 40 -P 2 ldd 2>/dev/null \
  | sed -nE 's/^(.* => |\t)(\/[^ ]+) \(0x.*/\2/p' | sort -u | sed -E "$usr" \
  | while IFS= read -r file; do
      [ -e "$file" ] || continue
      printf '%s\n' "$file"; readlink -f "$file"
    done >>"$work/files"

# ---- the tree ---------------------------------------------------------------
[ -z "$usr" ] || for folder in bin sbin lib lib64; do
  mkdir -p "$root/usr/$folder"; ln -s "usr/$folder" "$root/$folder"
done
sort -u "$work/files" | sed 's,^/,,' | tar -C / --no-recursion -cf - -T - \
  2>/dev/null | tar -C "$root" --no-same-owner --keep-directory-symlink -xpf -
(cd "$root" && mkdir -p proc sys dev tmp run root home etc var/lib var/tmp results)
chmod 1777 "$root/tmp" "$root/var/tmp"
chmod 755 "$root" "$root/guest"
cat >"$root/etc/passwd" <<'E'
root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
E
cat >"$root/etc/group" <<'E'
root:x:0:
nogroup:x:65534:
E
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
printf 'passwd: files\ngroup: files\nhosts: files\n' >"$root/etc/nsswitch.conf"
/sbin/ldconfig -r "$root" 2>/dev/null || :

# Modules of the kernel that kernel.sh fetched; init.sh loads them.
modules=${GUEST_MODULES:-$COFFER_BUILD/guest/kernel/lib/modules}
if [ -d "$modules" ]; then
  mkdir -p "$root/guest/modules"
  for module in loop quota_tree quota_v2; do
    find "$modules/" -name "$module.ko" -exec cp {} "$root/guest/modules/" \;
  done
fi

size=$(($(du -sk "$root" | cut -f1) / 1024 * 5 / 4 + 400))
rm -f "$image.new"
$mapped mke2fs -q -F -t ext4 -O ^has_journal -E root_owner=0:0,lazy_itable_init=1 \
  -d "$root" "$image.new" "${size}M" >"$work/mke2fs.log" 2>&1 \
  || { cat "$work/mke2fs.log"; exit 1; }
mv "$image.new" "$image"
