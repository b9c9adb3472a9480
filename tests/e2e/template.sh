# SPDX-License-Identifier: Apache-2.0
# Templates: a root file system of one's own, from a folder or an archive, shared
# read-only, and not to be removed while it is used.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3 busybox
needs_sandbox
box=$(command -v busybox)
if ldd "$box" >/dev/null 2>&1; then skip_all "a static busybox"; fi

tree=$T/tree
mkdir -p "$tree/bin" "$tree/etc" "$tree/usr/bin" "$tree/var/tmp" "$tree/opt/你好"
cp "$box" "$tree/bin/busybox"
for name in sh ls cat id touch readlink stat env; do ln -s busybox "$tree/bin/$name"; done
ln -s /bin/busybox "$tree/usr/bin/whoami"
ln -s ../run/stub-resolv.conf "$tree/etc/resolv.conf"
printf 'NAME=tiny\n' >"$tree/etc/os-release"
printf 'café\n' >"$tree/opt/你好/f"
ln "$tree/opt/你好/f" "$tree/opt/g"
chmod 4755 "$tree/bin/busybox"
chmod -R go+rX "$tree"

run coffer template list --json
is "none at first" "$status $(cat "$out")" "0 []"
run coffer template add tiny "$tree" --json
is "a folder is added" "$status $(json "$out" 'd["name"], d["stripped"], len (d["digest"])')" "0 ('tiny', 1, 64)"
digest=$(json "$out" 'd["digest"]')
run coffer template add tiny "$tree"
is "a name is taken once" "$status $(cut -d : -f 2 "$err" | head -1)" "1  E4008"
tar -C "$tree" -czf "$T/tiny.tar.gz" .
run coffer template add packed "$T/tiny.tar.gz"
is "an archive is added" "$status" 0
coffer template add piped - <"$T/tiny.tar.gz" >"$out" 2>"$err"
is "or from standard input" "$?" 0
run coffer template add again "$tree" --json
is "the same tree is kept once" "$(json "$out" 'd["digest"]')" "$digest"
run coffer template list --json
is "all are listed" "$(json "$out" '[t["name"] for t in d]')" "['again', 'packed', 'piped', 'tiny']"
is "set-user-ID bits are dropped" \
  "$(stat -c %a "$COFFER_HOME/state/templates/$digest/root/bin/busybox")" 755

run coffer run --template tiny -- sh -c 'cat /etc/os-release /opt/g; /usr/bin/whoami; for f in /opt/*; do echo "$f"; done'
is "programs and files are the template's" "$(cat "$out")" "NAME=tiny
café
user
/opt/g
/opt/你好"
run coffer run --template packed -- cat /opt/你好/f
is "and the archive's" "$(cat "$out")" "café"
run coffer run --template tiny -- sh -c 'ls -d /usr/share /sbin /root /home/* 2>/dev/null; ls /usr/bin; cat /etc/hostname 2>/dev/null'
is "nothing of the host's is inside" "$(cat "$out")" whoami
run coffer run --template tiny -- sh -c 'touch /opt/x; touch /etc/x; touch /etc/passwd; touch /bin/x; ls /etc/x /opt/x /bin/x 2>/dev/null; echo end'
is "nothing of it can be changed" "$(cat "$out") $(ls "$COFFER_HOME/state/templates/$digest/root/opt")" "end g
你好"
run coffer run --template tiny -- sh -c 'touch /tmp/a /var/tmp/b /workspace/c && ls /tmp; stat -c %U /opt; id -u'
is "its user, temporary folders and workspace are the sandbox's" \
  "$(cat "$out" | tr '\n' ' ')" "a b $([ "$(id -u)" -eq 0 ] && echo nobody || echo user) 1000 "
mkdir "$T/shown"; echo mine >"$T/shown/f"; chmod -R a+rX "$T/shown"
run coffer run --template tiny -w "$T/shown" -v "$T/shown:/data:ro" -- sh -c 'cat f /data/f'
is "folders are shown as ever" "$(cat "$out")" "mine
mine"
run coffer run --template tiny --json -- /bin/sh -c 'exit 7'
is "it is read back, and Landlock holds" "$(json "$out" \
  'd["status"], [f["state"] for f in d["applied"]["facts"] if f["name"] in ("template", "landlock") and f["state"] != "absent"][-1]')" "(7, 'ok')"

run coffer sandbox create --template tiny --profile offline-readonly
id=$(cat "$out"); remember "$id"
run coffer sandbox create --template packed
other=$(cat "$out"); remember "$other"
run coffer sandbox exec "$id" -- /usr/bin/whoami
is "one that lives on is made of it" "$status $(cat "$out")" "0 user"
run coffer template remove tiny
like "in use it is not removed" "$status $(cat "$err")" "^1 coffer: E5003: template tiny is in use by $id"
run coffer sandbox exec "$id" -- cat /etc/os-release
is "and goes on" "$(cat "$out")" "NAME=tiny"
run coffer sandbox kill "$id" "$other"
mkfifo "$T/held"
coffer run --template piped -i -- sh -c 'echo up; cat' <"$T/held" >"$T/started" 2>/dev/null &
runner=$!
exec 9>"$T/held"
ok "a run of it is up" soon 10 grep -q up "$T/started"
run coffer template remove piped
like "nor while a run uses it" "$status $(cat "$err")" "^1 coffer: E5003: .*in use"
exec 9>&-
wait "$runner"
for name in tiny packed piped; do
  run coffer template remove "$name"
  is "unused $name is removed" "$status" 0
done
ok "another name keeps the tree" test -d "$COFFER_HOME/state/templates/$digest"
run coffer run --template again -- cat /etc/os-release
is "which works on" "$(cat "$out")" "NAME=tiny"
run coffer template remove again
is "with the last name it goes" "$status$(ls -A "$COFFER_HOME/state/templates")" 0

# Cut off at any point: nothing is left, and nobody waits for ever.
mkfifo "$T/slow"
"$COFFER_BUILD/coffer" template add half - <"$T/slow" >"$T/half" 2>&1 &
adding=$!
exec 8>"$T/slow"
head -c 4096 "$T/tiny.tar.gz" >&8
half () { ls -A "$COFFER_HOME/state/templates" | grep -q '^.new-'; }
ok "an archive is on its way" soon 10 half
kill -TERM "$adding"
wait "$adding"
is "interrupted: status" "$?" 143
is "interrupted: nothing is left" "$(ls -A "$COFFER_HOME/state/templates")" ""
"$COFFER_BUILD/coffer" template add half - <"$T/slow" >"$T/half" 2>&1 &
adding=$!
ok "one more" soon 10 half
kill -KILL "$adding"
wait "$adding" 2>/dev/null
ok "killed: its helper ends too" soon 10 none_of_ours
run coffer template add whole "$T/tiny.tar.gz"
is "killed: the next one clears up" "$status $(ls -A "$COFFER_HOME/state/templates" | grep -c new-)" "0 0"
exec 8>&-
run coffer template remove whole

run coffer run --template again -- true
like "one that is not there: in run" "$status $(cat "$err")" "^125 .*E2001: template: there is no template again"
run coffer template remove again
like "one that is not there: removing" "$status $(cat "$err")" "^4 .*E9004: there is no template again"
run coffer template add Bad/Name "$tree"
like "a name that is none" "$status $(cat "$err")" "^2 .*E6006: Bad/Name is not a template"
run coffer run --provider host --template again -- true
like "a provider that has no templates" "$status $(cat "$err")" "E8010: .*template"

finish
