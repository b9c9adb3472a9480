# SPDX-License-Identifier: Apache-2.0
# `coffer provider install` from git: over https and http on loopback, and from a
# repository on this machine.  A full commit id pins; a branch does not; and what
# a repository says of hooks, filters, submodules and links has no say.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both alike
needs python3 openssl git
[ -x "$(git --exec-path)/git-http-backend" ] || skip_all git-http-backend
umask 022
without_conformance
providers=$COFFER_HOME/providers
unset https_proxy HTTPS_PROXY http_proxy all_proxy ALL_PROXY no_proxy NO_PROXY SSL_CERT_DIR CURL_CA_BUNDLE
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME="$T"
mark=$T/mark

# -- a catalogue: birds/parrot, and at the top traps

mkdir -p "$T/work/birds/parrot" "$T/www" "$T/git"
cd "$T/work" || exit 1
git init -q -b main . && git config user.name a && git config user.email a@b
made () { # VERSION
  cp "$COFFER_BUILD/tests/e2e/modules/parrot.so" birds/parrot/
  sed "s/^version: .*/version: $1/" "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" >birds/parrot/parrot.yaml
  coffer seal birds/parrot/parrot.yaml
}
made 0.1.0
# Filters, line ends and substitutions would change bytes; there is no say for them.
printf '* text eol=crlf filter=evil ident export-subst\n*.so -text export-ignore\n' >birds/parrot/.gitattributes
# shellcheck disable=SC2016
printf '$Id$ $Format:%%H$\n' >birds/parrot/LICENSE
cp birds/parrot/LICENSE "$T/license"
ln -s ../../../../outer birds/parrot/README
ln -s /etc/passwd "birds/parrot/README.md"
printf '[submodule "s"]\n\tpath = s\n\turl = file://%s/git/evil\n' "$T" >.gitmodules
echo all >README.md
git -c core.safecrlf=false add -A && git commit -q -m one && first=$(git rev-parse HEAD)
git tag v1
made 0.2.0; git add -A && git commit -q -m two && second=$(git rev-parse HEAD)
cd "$T" || exit 1
git clone -q --bare "$T/work" "$T/git/birds.git"
# Hooks on both sides that leave a mark.
for hook in post-checkout post-merge reference-transaction pre-receive post-update fsmonitor-watchman; do
  printf '#!/bin/sh\ntouch %s\n' "$mark" >"$T/git/birds.git/hooks/$hook"
  chmod 755 "$T/git/birds.git/hooks/$hook"
done
# And a configuration of the caller's that would.
mkdir "$T/userhome"
printf '[core]\n\thooksPath = %s/git/birds.git/hooks\n\tfsmonitor = touch %s\n[filter "evil"]\n\tsmudge = touch %s\n\trequired = true\n[credential]\n\thelper = "!touch %s"\n[protocol]\n\tallow = always\n[url "ext::touch %s %%S"]\n\tinsteadOf = https://nowhere.invalid/\n' \
  "$T" "$mark" "$mark" "$mark" "$mark" >"$T/userhome/.gitconfig"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
  -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -keyout "$T/key" -out "$T/cert" 2>/dev/null
mkfifo "$T/stop"
python3 "$COFFER_SOURCE/tests/e2e/https.py" "$T/www" "$T/cert" "$T/key" "$T/git" \
  <"$T/stop" >"$T/ports" 2>"$T/log" &
exec 9>"$T/stop"
soon 10 test -s "$T/ports" || exit 1
read -r port plain <"$T/ports"
url=https://localhost:$port/git/birds.git
SSL_CERT_FILE=$T/cert; export SSL_CERT_FILE
# As a user whose own configuration must not be read.
gits () { HOME=$T/userhome GIT_CONFIG_GLOBAL='' coffer provider "$@"; }
refused () { # WHAT STATUS PATTERN CMD…
  refused_what=$1 refused_status=$2 refused_like=$3; shift 3
  run "$@"
  like "$refused_what" "$status $(cat "$err")" "^$refused_status coffer: $refused_like"
}
nothing_kept () { [ -z "$(ls -A "$providers" 2>/dev/null)" ]; }

# -- pins

refused "no ref is no pin" 2 "E8012: .*branch or a tag" gits install "$url" --subdir birds/parrot
refused "a branch is none" 2 "E8012: " gits install "$url" --ref main --subdir birds/parrot
refused "a tag is none" 2 "E8012: " gits install "git+$url" --ref v1 --subdir birds/parrot --yes
refused "nor a part of an id" 2 "E8012: " gits install "$url" --ref "$(echo "$first" | cut -c1-12)" --subdir birds/parrot
ok "nobody was asked for them" test ! -s "$T/requests"

run gits install "$url" --ref "$first" --subdir birds/parrot --json
is "a commit is" "$status $(json "$out" 'd["version"], d["trust"], d["receipt"]["source"]["commit"]')" \
  "0 ('0.1.0', 'pinned', '$first')"
is "with all that is known of it" "$(json "$out" '[d["receipt"]["source"][k] for k in ("kind", "location", "ref", "subdir")]')" \
  "['git', '$url', '$first', 'birds/parrot']"
is "only what the manifest names, and no link" "$(ls -A "$providers/parrot" | tr '\n' ' ')" \
  "LICENSE parrot.so parrot.yaml receipt.json "
same "the bytes that were committed" "$T/license" "$providers/parrot/LICENSE"
ok "it answers" coffer call parrot probe
run gits upgrade parrot --ref "$second" --json
is "upgrade to another commit" "$status $(json "$out" 'd["version"], d["receipt"]["source"]["commit"], d["receipt"]["source"]["subdir"]')" \
  "0 ('0.2.0', '$second', 'birds/parrot')"
refused "upgrade to a branch" 2 "E8012: " gits upgrade parrot --ref main
run gits upgrade parrot
is "the same again" "$status" 0
coffer provider uninstall parrot >/dev/null

run gits install "git+http://127.0.0.1:$plain/git/birds.git" --ref "$first" --subdir birds/parrot --json
is "http on loopback, when it is asked for" "$status $(json "$out" 'd["trust"]')" "0 pinned"
coffer provider uninstall parrot >/dev/null
run gits install "git+file://$T/git/birds.git" --ref "$second" --subdir birds/parrot --json
is "a repository on this machine" "$status $(json "$out" 'd["version"], d["trust"]')" "0 ('0.2.0', 'pinned')"
coffer provider uninstall parrot >/dev/null

# A terminal, where a branch may be answered for.
python3 - "$COFFER_BUILD/coffer" "$url" "$T/typed" <<'PY'
import os, pty, sys, time
coffer, url, out = sys.argv[1:]
def ask (answer):
    pid, fd = pty.fork ()
    if pid == 0:
        os.execv (coffer, [coffer, "provider", "install", url, "--ref", "main", "--subdir", "birds/parrot"])
    text = b""
    sent = False
    try:
        while True:
            text += os.read (fd, 4096)
            if not sent and b"[y/N]" in text:
                os.write (fd, answer); sent = True
    except OSError:
        pass
    status = os.waitstatus_to_exitcode (os.waitpid (pid, 0)[1])
    os.close (fd)
    return status, text
with open (out, "w") as f:
    for answer in (b"n\n", b"y\n"):
        status, text = ask (answer)
        print (status, b"is not pinned, ref main" in text, file=f)
PY
is "asked on a terminal: no, and yes" "$(cat "$T/typed" | tr '\n' ' ')" "5 True 0 True "
is "what was answered for is local, with the commit that came" \
  "$(json "$providers/parrot/receipt.json" 'd["trust"], d["source"]["ref"], d["source"]["commit"]')" \
  "('local', 'main', '$second')"
coffer provider uninstall parrot >/dev/null
ok "no hook, filter, helper or other protocol ran" test ! -e "$mark"

# -- what is refused

refused "the whole catalogue" 2 "E6002: .*no provider's manifest" gits install "$url" --ref "$second"
refused "a folder that is not there" 4 "E9004: " gits install "$url" --ref "$second" --subdir birds/finch
like "which word that is" "$(cat "$err")" 'hint: --subdir '
refused "a file instead of a folder" 4 "E9004: " gits install "$url" --ref "$second" --subdir README.md
refused "a commit that is not there" 1 "E7002: " gits install "$url" --ref "$(printf %040d 0)" --subdir birds/parrot
like "which word to look at" "$(cat "$err")" 'hint: .*--ref names'
refused "no repository" 1 "E7002: " gits install "https://localhost:$port/git/none.git" --ref "$second"
refused "ext:" 2 "E6006: " gits install "git+ext::sh -c 'touch $mark'.git" --ref "$second"
refused "ssh:" 2 "E6006: " gits install "git+ssh://localhost/x.git" --ref "$second"
refused "git:" 2 "E6006: " gits install "git://localhost/x.git" --ref "$second"
refused "http to others" 2 "E6006: .*https:" gits install "git+http://git.example/x.git" --ref "$second"
refused "a rewritten address" 1 "E7002: " gits install "https://nowhere.invalid/x.git" --ref "$second"
refused "a token in it" 2 "E6006: .*password" gits install "https://t0ken-word@localhost:$port/git/birds.git" --ref "$second"
ok "which is not repeated" sh -c "! grep -r t0ken-word '$err' '$out' '$COFFER_HOME'"
refused "a ref that is an option" 2 "E6006: " gits install "$url" "--ref=--upload-pack=touch $mark"
refused "a ref of two words" 2 "E6006: " gits install "$url" --ref "main:refs/x"
refused "--sha256 with git" 2 "E6001: " gits install "$url" --ref "$second" --sha256 "$(printf %064d 0)"
refused "an authority that nobody named" 1 "E7002: " env SSL_CERT_FILE= "$COFFER_BUILD/coffer" provider install "$url" --ref "$second"
# A module that is kept elsewhere (git-lfs) is a pointer here.
cd "$T/work" || exit 1
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >birds/parrot/parrot.so
git add -A && git commit -q -m lfs
refused "a pointer instead of a module" 1 "E8006: " gits install "git+file://$T/work" \
  --ref "$(git rev-parse HEAD)" --subdir birds/parrot
rm birds/parrot/parrot.so; git add -A && git commit -q -m unbuilt
refused "a tree that is not built" 1 "E8007: .*not built" gits install "git+file://$T/work" \
  --ref "$(git rev-parse HEAD)" --subdir birds/parrot
like "and what to do" "$(cat "$err")" "run .make. there"
cd "$T" || exit 1
# An object that is not what its name says.
cp -r "$T/git/birds.git" "$T/git/bad.git"
blob=$(git -C "$T/git/bad.git" rev-parse "$second:birds/parrot/parrot.yaml")
find "$T/git/bad.git" -name '*.pack' -o -name '*.idx' -o -name '*.rev' | xargs rm -f
git -C "$T/git/bad.git" unpack-objects -q <"$(find "$T/git/birds.git" -name '*.pack' | head -1)" 2>/dev/null
object=$T/git/bad.git/objects/$(echo "$blob" | cut -c1-2)/$(echo "$blob" | cut -c3-)
if [ -e "$object" ]; then
  chmod u+w "$object"
  python3 -c 'import sys, zlib; b = b"manifest: 1\n"; open (sys.argv[1], "wb").write (zlib.compress (b"blob %d\0" % len (b) + b))' "$object"
  refused "an object under another's name" 1 "E7002: " gits install "git+file://$T/git/bad.git" \
    --ref "$second" --subdir birds/parrot
else
  ok "the object can be changed" false
fi
ok "nothing of them is kept" nothing_kept
ok "and nothing ran" test ! -e "$mark"

# SIGTERM while it is asked for: its group goes with it.
"$COFFER_BUILD/coffer" provider install "https://localhost:$port/silent.git" --ref "$second" >/dev/null 2>&1 &
pid=$!
asking () { ours | grep -q '[g]it.* fetch '; }
soon 10 asking
kill -TERM $pid; wait $pid 2>/dev/null
not_asking () { ! asking; }
ok "git ends with its coffer" soon 5 not_asking
ok "and nothing is left" nothing_kept

exec 9>&-
wait
finish
