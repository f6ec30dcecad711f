# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Programs that change under their bindings: overwritten in place, with other instructions where the probes are,
# they run unharmed and are measured in what they are now; replaced by another file, by name or by a link, they are
# measured in that, without anybody's help.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
before=/usr/libexec/tlob-tests/changeling
after=/usr/libexec/tlob-tests/changeling-changed
programs=/usr/local/lib/replaced

property() {
        tlobctl show -j "$1" | jq -r ".[0].$2"
}

is() {
        [ "$(property "$1" "$2")" = "$3" ]
}

# has_windows BINDING N
has_windows() {
        is "$1" Windows "$2"
}

log_has() {
        journalctl --boot -q -u tlobd | grep -qE -- "$1"
}

# measured_again BINDING STATE
measured_again() {
        check "$1: it is $2 again" until_true is "$1" State "$2"
}

mkdir -p "$programs"
for name in w q link-before gone; do
        cp "$before" "$programs/$name"
done
cp "$after" "$programs/link-after"
ln -s link-before "$programs/link"
printf '[Service]\nType=oneshot\nExecStart=%s\n[X-Tlob r]\nFunction=request\nBudgetSec=1s\n' "$programs/w" >"$etc/w.service"
systemctl daemon-reload
start_fresh
for name in q link gone; do
        printf '[Binding %s]\nExecutable=%s\nFunction=request\nBudgetSec=1s\n' "$name" "$programs/$name"
done >/etc/tlob/bindings.d/replaced.conf
check "bindings without a unit" tlobctl reload

# In place.
check "the program runs" systemctl start w
equal "and is measured" "$(property w.service/r Windows)" 1
check "its inode stays when it is overwritten" sh -c \
        "n=\$(stat -c %i $programs/w); cp $after $programs/w; [ \$n = \$(stat -c %i $programs/w) ]"
matches "the binding has no probes and says why" "$(property w.service/r StateReason)" 'w was written to'
check "its reason is that of before" until_true sh -c 'tlobctl show -j w.service/r | grep -q "is not running"'
check "what it is now runs unharmed" systemctl start w
check "and is measured" until_true has_windows w.service/r 2
check "it is in the log" log_has "'w.service/r' measures nothing for a moment: $programs/w was written to"
check "and its end, too" log_has "'w.service/r' is set up anew: $programs/w was written to"

# Without a unit, from one to the other and back.
check "it is measured without a unit" "$programs/q"
equal "one call" "$(property q Windows)" 1
for program in "$after" "$before" "$after"; do
        cp "$program" "$programs/q"
        check "q: its probes go" until_true is q State waiting
        measured_again q active
        check "q: it runs unharmed" "$programs/q"
done
check "and every call was measured" until_true has_windows q 4

# Something else altogether, and back.
echo 'no program' >"$programs/q"
check "what is no program any more fails" until_true is q State failed
cp "$before" "$programs/q"
measured_again q active
check "it runs unharmed" "$programs/q"
check "and is measured" until_true has_windows q 5

# By another file: no reload, no unit.
cp "$after" "$programs/q.new"
mv "$programs/q.new" "$programs/q"
check "a file that takes its place is told of" until_true log_has "'q' is set up anew: $programs/q was replaced"
measured_again q active
check "the new one runs" "$programs/q"
check "and is measured" until_true has_windows q 6
# What nobody could see goes and comes back: each call is measured again, from the first on.
windows=$(property w.service/r Windows)
rm "$programs/w"
check "a program that is removed is missed" until_true sh -c \
        'tlobctl show -j w.service/r | jq -r .[0].StateReason | grep -q "its program or library is not there"'
cp "$after" "$programs/w"
check "and found again" until_true is w.service/r StateReason "w.service is not running"
check "it runs" systemctl start w
check "and is measured" until_true has_windows w.service/r $((windows + 1))
rm "$programs/gone"
check "one that is removed fails" until_true is gone State failed
cp "$after" "$programs/gone"
measured_again gone active
"$programs/gone" >/dev/null
check "and is measured" until_true has_windows gone 1

# The link: nothing happens to the file.
"$programs/link" >/dev/null
equal "through a link" "$(property link Windows)" 1
ln -sfn link-after "$programs/link"
check "reload" tlobctl reload
measured_again link active
"$programs/link" >/dev/null
check "what a link is turned to is measured after a reload" until_true has_windows link 2

# Only touched.
chmod 700 "$programs/q"
ln "$programs/q" "$programs/q.link"
check "reload" tlobctl reload
pause 1.5
check "reload again" tlobctl reload
equal "it has its probes all the time" "$(journalctl --boot -q -u tlobd | grep -c "'q' is set up anew: .* was replaced")" 1
equal "it is active" "$(property q State)" active

# Written without an end: it is looked at now and then, and runs as it is when that is over.
timeout 5 sh -c "while :; do cp $before $programs/q; done"
measured_again q active
check "it is not looked at more than once a second" sh -c \
        '[ "$(journalctl --boot -q -u tlobd | grep -c "is set up anew: .*/q was written to")" -le 12 ]'
check "it runs unharmed" "$programs/q"
check "and is measured" until_true has_windows q 7

# A writer that rests, and closes it later.
exec 7<>"$programs/q"
cat "$after" >&7
measured_again q active
exec 7>&-
pause 1.5
measured_again q active
check "it runs unharmed" "$programs/q"
check "and is measured" until_true has_windows q 8

# What is kept ready for instances that nobody knows yet.
cp "$before" "$programs/c"
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=%s\n[X-Tlob r]\nFunction=request\nBudgetSec=1s\n' \
        "$programs/c" >"$etc/c@.service"
systemctl daemon-reload
pause 1.5
check "an instance" systemctl start c@1
check "is measured from its first call" until_true has_windows c@1.service/r 1
cp "$after" "$programs/c"
pause 3
check "another one, of what the program is now" systemctl start c@2
check "it is measured from its first call, too" until_true has_windows c@2.service/r 1
cp "$before" "$programs/c.new"
mv "$programs/c.new" "$programs/c"
pause 3
check "and one of a file that has taken its place" systemctl start c@3
check "it is measured from its first call as well" until_true has_windows c@3.service/r 1

# A service that goes on with what was there before is measured in that, until it is started again.
cp /usr/libexec/tlob-tests/victim "$programs/s"
printf '[Service]\nExecStart=%s repeat:100000 ( a( ) sleep:20000000 )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=1s\n' \
        "$programs/s" >"$etc/s.service"
systemctl daemon-reload
check "a service that runs" systemctl start s
grows() {
        local before

        before=$(property s.service/a Windows)
        until_true sh -c "[ \"\$(tlobctl show -j s.service/a | jq '.[0].Windows')\" -gt $before ]"
}
measured_again s.service/a active
check "its windows are counted" grows
cp /usr/libexec/tlob-tests/victim "$programs/s.new"
mv "$programs/s.new" "$programs/s"
check "another file in its place is told of" until_true sh -c \
        'tlobctl show -j s.service/a | grep -q "s.service still runs the old version of $0/s"' "$programs"
check "it is measured all the same" grows
check "reload" tlobctl reload
pause 1.5
check "also after a reload" grows
systemctl restart s
check "and when it runs the new one" grows
check "of which nothing is to be said" until_true is s.service/a StateReason ""
systemctl stop s

# An upgrade that makes a service slower, while it is measured.
cp /usr/libexec/tlob-tests/server "$programs/server"
printf '[Service]\nExecStart=%s\n[X-Tlob request]\nFunction=handle_request\nBudgetSec=1s\n' "$programs/server" \
        >"$etc/upgraded.service"
systemctl daemon-reload
systemctl start upgraded
more_than() {
        [ "$(property upgraded.service/request Windows)" -gt "$1" ]
}
WAIT=60 check "an upgrade: it is measured" until_true more_than 1100
holds "an upgrade: there is one build yet" "$(tlobctl show -j upgraded.service/request)" '.[0].Builds == []'
cp /usr/libexec/tlob-tests/server-slow "$programs/new"
mv "$programs/new" "$programs/server"
systemctl restart upgraded
check "an upgrade: there are two builds" until_true sh -c \
        "tlobctl show -j upgraded.service/request | jq -e '.[0].Builds | length == 2 and .[0][0] != .[1][0]'"
worse=$(WAIT=120 wait_for_entry '.TLOB_P99_NS != null' -t tlob)
holds "an upgrade: that it has become slower is told" "$worse" \
        '.TLOB_BINDING == "upgraded.service/request" and .OBJECT_SYSTEMD_UNIT == "upgraded.service" and
        (.TLOB_P99_NS | tonumber) > (.TLOB_P99_NS_BEFORE | tonumber) * 1.25 and
        .TLOB_BUILD_ID != .TLOB_BUILD_ID_BEFORE'
matches "an upgrade: in words" "$(jq -r .MESSAGE <<<"$worse")" \
        '^upgraded.service/request: p99 [0-9.]+ms -> [0-9.]+ms since build [0-9a-f]{12} '
tlobctl show upgraded.service/request | grep -A1 Builds | sed 's/^/# /'
matches "an upgrade: and both are shown" "$(tlobctl show upgraded.service/request)" \
        'Builds: +[0-9a-f]{12}: p50 [0-9.]+ms, p99 [0-9.]+ms, p99.9 [0-9.]+ms of [0-9]+ windows'
systemctl stop upgraded
rm "$etc/upgraded.service"

# BuildID=: for one build only.
cp "$before" "$programs/pinned"
build=$(tlobctl verify -j --executable="$programs/pinned" --function=request --budget=1s | jq -r '.[0].BuildID')
printf '[Binding pinned]\nExecutable=%s\nFunction=request\nBudgetSec=1s\nBuildID=%s\n' "$programs/pinned" "$build" \
        >/etc/tlob/bindings.d/pinned.conf
check "BuildID=: it can be set up" tlobctl reload
equal "BuildID=: it is active" "$(property pinned State)" active
"$programs/pinned"
equal "BuildID=: it measures that build" "$(property pinned Windows)" 1
cp "$after" "$programs/new"
mv "$programs/new" "$programs/pinned"
measured_again pinned waiting
matches "BuildID=: and says why" "$(property pinned StateReason)" "pinned is build [0-9a-f]+, not BuildID=$build"
"$programs/pinned"
equal "BuildID=: another one is not measured" "$(property pinned Windows)" 1
cp "$before" "$programs/new"
mv "$programs/new" "$programs/pinned"
measured_again pinned active
"$programs/pinned"
equal "BuildID=: that one is, when it comes back" "$(property pinned Windows)" 2
refuse "BuildID=: no build-id" 1 "is not a build-id" \
        tlobctl verify --executable="$programs/pinned" --function=request --budget=1s --build-id=1.2

rm -r "$programs" "$etc/s.service" "$etc/w.service" "$etc/c@.service" /etc/tlob/bindings.d/{replaced,pinned}.conf
systemctl daemon-reload
finish
