# SPDX-License-Identifier: Apache-2.0
# `coffer provider install`, `upgrade`, `uninstall` and `pack` with what lies on
# this machine: what is taken, what is refused, and that nothing of that is kept.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3
roles both alike
umask 022
without_conformance
providers=$COFFER_HOME/providers
modules=$COFFER_BUILD/tests/modules

# made FOLDER VERSION: a parrot, built and sealed.
made () {
  mkdir -p "$1"
  cp "$COFFER_BUILD/tests/e2e/modules/parrot.so" "$1"
  sed "s/^version: .*/version: $2/" "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" \
    >"$1/parrot.yaml"
  coffer seal "$1/parrot.yaml"
}
# None of it, and nothing that was begun.
nothing_kept () { [ -z "$(ls -A "$providers" 2>/dev/null)" ]; }
# refused WHAT STATUS PATTERN CMD…
refused () {
  refused_what=$1 refused_status=$2 refused_like=$3; shift 3
  run "$@"
  like "$refused_what" "$status $(cat "$err")" "^$refused_status coffer: $refused_like"
}
installed_version () { coffer provider info parrot --json >"$T/info" && json "$T/info" 'd["version"]'; }

# -- a folder

odd="$T/你好 世界/'q\".txt"
made "$odd" 0.1.0
echo text >"$odd/LICENSE"; echo 'café ☃' >"$odd/README.md"
echo junk >"$odd/junk.txt"; echo '{}' >"$odd/receipt.json"; mkdir "$odd/.git"
chmod 600 "$odd"/*; chmod 700 "$odd/parrot.so"
run coffer provider install "$odd" --json
is "a folder: status" "$status" 0
is "a folder: told" "$(json "$out" 'd["id"], d["version"], d["trust"], d["receipt"]["source"]["kind"]')" \
  "('parrot', '0.1.0', 'local', 'folder')"
is "a folder: no commit, and where it lay" \
  "$(json "$out" '"commit" in d["receipt"]["source"], d["receipt"]["source"]["location"]')" \
  "$(printf '%s' "$odd" | python3 -c 'import sys; print ((False, sys.stdin.read ()))')"
is "a folder: what the manifest names, and no more" "$(ls -A "$providers/parrot" | tr '\n' ' ')" \
  "LICENSE README.md parrot.so parrot.yaml receipt.json "
is "a folder: modes are plain" "$(cd "$providers/parrot" && stat -c '%n %a' . ./* | tr '\n' ' ')" \
  ". 755 ./LICENSE 644 ./README.md 644 ./parrot.so 755 ./parrot.yaml 644 ./receipt.json 644 "
same "a folder: the bytes" "$odd/parrot.so" "$providers/parrot/parrot.so"
is "a folder: the receipt's hashes" \
  "$(json "$providers/parrot/receipt.json" 'd["manifest_sha256"], d["modules"][0]["sha256"]')" \
  "$(printf "('%s', '%s')" "$(sha256sum <"$odd/parrot.yaml" | cut -c1-64)" "$(sha256sum <"$odd/parrot.so" | cut -c1-64)")"
ok "a folder: it answers" coffer call parrot probe
run coffer provider verify parrot
is "a folder: verified" "$status" 0
run coffer provider list --json
is "a folder: listed" "$(json "$out" '[(p["state"], p["trust"]) for p in d["providers"] if p["id"] == "parrot"]')" \
  "[('enabled', 'local')]"

refused "it is there already" 1 "E8003: parrot is installed already" coffer provider install "$odd"
like "what helps then" "$(cat "$err")" 'upgrade parrot, or --force'
refused "--force alone asks, and nobody is there" 2 "E6001: replace parrot 0.1.0 by 0.1.0" \
  coffer provider install "$odd" --force
run coffer provider install "$odd" --force --yes --json
is "--force --yes replaces" "$status $(json "$out" 'd["replaced"]')" "0 0.1.0"

# What lies in a checkout, changed or not, is never passed off as a commit of it.
if command -v git >/dev/null 2>&1; then
  made "$T/checkout" 0.3.0
  (cd "$T/checkout" && git init -q . && git add -A \
    && git -c user.name=a -c user.email=a@b commit -q -m x) >/dev/null
  for how in clean dirty; do
    [ $how = clean ] || { sed -i 's/0.3.0/0.3.1/' "$T/checkout/parrot.yaml"; }
    run coffer provider install "$T/checkout" --force --yes --json
    is "a $how checkout is local, without a commit" \
      "$status $(json "$out" 'd["version"], d["trust"], "commit" in d["receipt"]["source"], "ref" in d["receipt"]["source"]')" \
      "0 ('$([ $how = clean ] && echo 0.3.0 || echo 0.3.1)', 'local', False, False)"
  done
  same "the working tree's bytes" "$T/checkout/parrot.yaml" "$providers/parrot/parrot.yaml"
else
  skip "a checkout" git
fi

# -- upgrade

made "$T/new" 0.2.0
run coffer provider upgrade parrot "$T/new" --json
is "upgrade: to another version" "$status $(json "$out" 'd["version"], d["changed"]') $(installed_version)" \
  "0 ('0.2.0', True) 0.2.0"
made "$T/new" 0.2.1
run coffer provider upgrade parrot
is "upgrade: from where it came" "$status $(installed_version)" "0 0.2.1"
like "upgrade: which secrets it is given" "$(cat "$err")" \
  'it is given a secret, where there is one: token, from the variable PARROT_TOKEN'
cp "$modules/nonote.so" "$T/new/parrot.so"
hash=$(sha256sum <"$T/new/parrot.so" | cut -c1-64)
sed -i "s/sha256: \"[0-9a-f]*\"/sha256: \"$hash\"/; s/0.2.1/0.2.2/" "$T/new/parrot.yaml"
refused "upgrade: one that no worker would load" 1 "E8007: parrot 0.2.1 is kept: " coffer provider upgrade parrot
is "upgrade: the old one is kept" "$(installed_version)" 0.2.1
ok "upgrade: and answers" coffer call parrot probe
cp "$modules/abort.so" "$T/new/bad.so"
sed '/sha256/d; s/^module:/module: [{arch: '"$(uname -m)"', file: bad.so}]/; s/^threads: .*/threads: serial/; s/^capabilities: .*/capabilities: [exec]/; s/0.2.2/0.2.3/' \
  "$T/new/parrot.yaml" >"$T/new/x" && mv "$T/new/x" "$T/new/parrot.yaml"
coffer seal "$T/new/parrot.yaml"
run env COFFER_TEST_MARK="$T/mark" "$COFFER_BUILD/coffer" provider upgrade parrot
like "upgrade: one that cannot be opened" "$status $(cat "$err")" "coffer: E8021: "
is "upgrade: the old one is kept again" "$(installed_version)" 0.2.1
ok "upgrade: and answers again" coffer call parrot probe
cp -r "$T/new" "$T/other"; sed 's/^id: .*/id: parakeet/' "$T/new/parrot.yaml" >"$T/other/parakeet.yaml"
rm "$T/other/parrot.yaml"
refused "upgrade: another provider" 2 "E6002: .* has the provider parakeet, not parrot" \
  coffer provider upgrade parrot "$T/other"
refused "upgrade: what is not installed" 4 "E8001: .*finch" coffer provider upgrade finch "$T/new"

# -- uninstall

run coffer provider default parrot
is "it can be the default" "$status" 0
run coffer provider uninstall parrot --json
is "uninstall: told" "$status $(json "$out" 'd["uninstalled"], d["default_reset"], d["left_sandboxes"]')" \
  "0 ('parrot', True, [])"
like "uninstall: the default is another" "$(cat "$err")" "Default provider reset to 'linux'"
is "uninstall: really" "$(coffer provider default)" "linux (builtin)"
ok "uninstall: nothing is kept" nothing_kept
refused "uninstall: what is not there" 4 "E8001" coffer provider uninstall parrot
refused "uninstall: what comes with coffer" 5 "E5001: linux comes with coffer" \
  coffer provider uninstall linux
like "uninstall: and what is there instead" "$(cat "$err")" "provider disable linux"

# -- what is refused, by a folder

bad () { rm -rf "$T/bad"; made "$T/bad" 0.1.0; }
bad; rm "$T/bad/parrot.so"
refused "a manifest is no archive" 2 "E6006: .* is a manifest" coffer provider install "$odd/parrot.yaml"
like "its folder is" "$(cat "$err")" 'hint: .*coffer provider install /'
refused "not built" 1 "E8007: .*parrot is not built" coffer provider install "$T/bad"
like "not built: the command to run" "$(cat "$err")" "run .make. in $T/bad, then .coffer seal $T/bad/parrot.yaml"
bad; cp "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$T/bad"
refused "not sealed" 1 "E8006: .*not sealed" coffer provider install "$T/bad"
like "not sealed: the command to run" "$(cat "$err")" "run .coffer seal $T/bad/parrot.yaml"
bad; printf x >>"$T/bad/parrot.so"
refused "changed after it was sealed" 1 "E8006: .*not what the manifest was sealed for" \
  coffer provider install "$T/bad"
bad; sed -i "/arch: $(uname -m)/d" "$T/bad/parrot.yaml"
refused "for other machines alone" 1 "E8007: " coffer provider install "$T/bad"
bad; mv "$T/bad/parrot.so" "$T/bad/x.so"; ln -s x.so "$T/bad/parrot.so"
refused "a link instead of a module" 5 "E6005: " coffer provider install "$T/bad"
bad; rm "$T/bad/parrot.so"; mkfifo "$T/bad/parrot.so"
refused "a fifo instead of a module" 5 "E6005: .*not a regular file" timeout 60 \
  "$COFFER_BUILD/coffer" provider install "$T/bad"
bad; echo 'permissions: {namespaces: true}' >>"$T/bad/parrot.yaml"
refused "rights that only shipped ones get" 5 "E5001: .*asks for namespaces" \
  coffer provider install "$T/bad"
bad; sed -i 's/^id: .*/id: finch/' "$T/bad/parrot.yaml"
refused "called like another" 2 "E6002: .*the id in it is finch" coffer provider install "$T/bad"
bad; mv "$T/bad/parrot.yaml" "$T/bad/linux.yaml"; sed -i 's/^id: .*/id: linux/' "$T/bad/linux.yaml"
refused "called like what comes with coffer" 1 "E8003: linux comes with coffer" \
  coffer provider install "$T/bad"
refused "also with --force" 1 "E8003: linux comes with coffer" \
  coffer provider install "$T/bad" --force --yes
bad; echo 'summary: twice' >>"$T/bad/parrot.yaml"
refused "a manifest that is none" 2 "E6002: " coffer provider install "$T/bad"
bad; echo 'x: y' >"$T/bad/finch.yaml"
refused "two manifests" 2 "E6002: .*two manifests" coffer provider install "$T/bad"
bad; printf 'files:\n  - {name: receipt.json, sha256: "%064d"}\n' 0 >>"$T/bad/parrot.yaml"
echo '{}' >"$T/bad/receipt.json"
refused "a receipt of its own" 2 "E6002: .*receipt.json" coffer provider install "$T/bad"
for module in nonote:E8007 twosymbols:E8007 major:E8004 minor:E8004 rpath:E8007 execstack:E8007 textrel:E8007; do
  bad; cp "$modules/${module%:*}.so" "$T/bad/parrot.so"
  hash=$(sha256sum <"$T/bad/parrot.so" | cut -c1-64)
  sed -i "s/sha256: \"[0-9a-f]*\"/sha256: \"$hash\"/" "$T/bad/parrot.yaml"
  refused "the gate: ${module%:*}" 1 "${module#*:}: " coffer provider install "$T/bad"
done
mkdir "$T/empty"
refused "an empty folder" 2 "E6002: .*no provider's manifest" coffer provider install "$T/empty"
refused "nothing there" 4 "E9004: " coffer provider install "$T/nowhere"
refused "--ref with a folder" 2 "E6001: " coffer provider install "$odd" --ref main
refused "another scheme" 2 "E6006: ftp:" coffer provider install ftp://example.org/x.tar.gz
mkdir -p "$T/catalogue/birds" && cp -r "$odd" "$T/catalogue/birds/parrot" && mkdir "$T/catalogue/other"
refused "a catalogue, whole" 2 "E6002: " coffer provider install "$T/catalogue/birds/.."
refused "--subdir out of it" 2 "E6006: " coffer provider install "$T/catalogue" --subdir ../x
ok "nothing of them is kept" nothing_kept
run coffer provider install "$T/catalogue" --subdir birds/parrot --json
is "--subdir" "$status $(json "$out" 'd["receipt"]["source"]["subdir"]')" "0 birds/parrot"
coffer provider uninstall parrot >/dev/null

# -- pack

mkdir "$T/a" "$T/b"
run coffer provider pack "$odd" --output "$T/a"
is "pack" "$status" 0
archive=$T/a/parrot-0.1.0-$(uname -m).tar.gz
(umask 077; cp -r "$odd" "$T/again"; touch -d 2001-01-01 "$T/again"/*; cd "$T/again" && coffer provider pack . --output "$T/b" --json >"$T/packed")
same "pack: the same bytes" "$archive" "$T/b/${archive##*/}"
is "pack: the hash beside it" "$(cd "$T/a" && sha256sum -c --quiet ./*.sha256 2>&1)$(json "$T/packed" 'd["sha256"]')" \
  "$(sha256sum <"$archive" | cut -c1-64)"
is "pack: what is in it" "$(tar -tzf "$archive" | tr '\n' ' ')" \
  "parrot-0.1.0/ parrot-0.1.0/LICENSE parrot-0.1.0/README.md parrot-0.1.0/parrot.so parrot-0.1.0/parrot.yaml "
SOURCE_DATE_EPOCH=1000000000 coffer provider pack "$odd" --output "$T/b" >/dev/null
like "pack: SOURCE_DATE_EPOCH" "$(TZ=UTC tar -tvzf "$T/b/${archive##*/}")" '2001-09-09 .*parrot.so'
bad; rm "$T/bad/parrot.so"
refused "pack: what install refuses" 1 "E8007: " coffer provider pack "$T/bad" --output "$T/b"
ok "pack: nothing is left of it" nothing_kept

sum=$(sha256sum <"$archive" | cut -c1-64)
refused "an archive that is not the one" 1 "E8006: .*not what --sha256 says" \
  coffer provider install "$archive" --sha256 "$(printf %064d 0)"
run coffer provider install "$archive" --sha256 "$sum" --json
is "an archive with its hash is pinned" "$status $(json "$out" 'd["trust"], d["receipt"]["source"]["sha256"]')" \
  "0 ('pinned', '$sum')"
ok "and answers" coffer call parrot probe
coffer provider uninstall parrot >/dev/null
run coffer provider install "$archive" --json
is "without it is local" "$status $(json "$out" 'd["trust"], d["receipt"]["source"]["sha256"]')" \
  "0 ('local', '$sum')"
coffer provider uninstall parrot >/dev/null

# What demands the kit's report says so.
rm "$COFFER_HOME/config/coffer.yaml"
run coffer provider install "$archive"
like "the kit is the next step, where its report is demanded" "$status $(cat "$err")" \
  "coffer kit parrot --record"
run coffer provider list
like "and the list says so" "$(cat "$out")" '^parrot .* coffer kit parrot --record$'
run coffer provider list --json
is "in JSON too" \
  "$(json "$out" '[p["needs_kit"] for p in d["providers"] if p["id"] in ("linux", "parrot")]')" \
  "[False, True]"
run coffer provider install "$archive" --force --yes --json
is "also in JSON" "$(json "$out" 'd["needs_kit"]')" True
run coffer provider install "$archive" --force --yes
like "what is replaced is out of reach until then" "$(cat "$err")" 'nor are its sandboxes reached'
without_conformance
run coffer provider install "$archive" --force --yes --json
is "and where it is not, it is not" "$(json "$out" 'd["needs_kit"]')" False
coffer provider uninstall parrot >/dev/null

# -- signed

if command -v minisign >/dev/null 2>&1; then
  minisign -G -W -f -p "$T/key.pub" -s "$T/key.sec" >/dev/null 2>&1
  run coffer provider pack "$odd" --output "$T/b" --sign "$T/key.sec" --json
  is "pack --sign" "$status $(json "$out" 'd["signature"].rsplit ("/", 1)[1]')" "0 ${archive##*/}.minisig"
  ok "pack --sign: the archive" minisign -V -q -p "$T/key.pub" -m "$T/b/${archive##*/}"
  run coffer provider install "$T/b/${archive##*/}" --json
  is "signed by a stranger is not signed" "$status $(json "$out" 'd["trust"]')" "0 local"
  is "which is said once" "$(grep -c 'is signed by the key .* not in trusted.d' "$err")" 1
  run coffer provider verify parrot
  like "and by verify" "$(cat "$out")" 'trust .*signed by an unknown key, [0-9A-F]+'
  mkdir -p "$COFFER_HOME/config/trusted.d" && cp "$T/key.pub" "$COFFER_HOME/config/trusted.d/"
  run coffer provider install "$T/b/${archive##*/}" --force --yes --json
  is "signed by a key of the operator" "$status $(json "$out" 'd["trust"], d["receipt"]["signature"]["comment"]')" \
    "0 ('signed', 'parrot-0.1.0')"
  coffer provider uninstall parrot >/dev/null
  rm -rf "$T/unpacked"; mkdir "$T/unpacked"; tar -xzf "$T/b/${archive##*/}" -C "$T/unpacked"
  sed -i 's/^summary: .*/summary: another/' "$T"/unpacked/*/parrot.yaml
  refused "what was signed was another manifest" 5 "E8025: " coffer provider install "$T"/unpacked/*
  ok "nothing of it is kept" nothing_kept
else
  skip "pack --sign" minisign
fi

finish
