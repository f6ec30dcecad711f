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

log_has() {
        journalctl --boot -q -u tlobd | grep -qE -- "$1"
}

# measured_again BINDING STATE
measured_again() {
        check "$1: it is $2 again" until_true binding_has "$1" State "$2"
}

# loses_probes BINDING PROGRAM: its file, of the binding's short name, is overwritten, and it says so. That may be over
# before it is asked: then once more.
loses_probes() {
        cp "$2" "$programs/${1%%.*}"
        says "$1" "/${1%%.*} was written to"
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
equal "and is measured" "$(binding w.service/r Windows)" 1
inode=$(stat -c %i "$programs/w")
check "it is overwritten: the binding has no probes and says why" until_true loses_probes w.service/r "$after"
equal "its inode stays" "$(stat -c %i "$programs/w")" "$inode"
check "its reason is that of before" until_true sh -c 'tlobctl show -j w.service/r | grep -q "is not running"'
check "what it is now runs unharmed" systemctl start w
check "and is measured" until_true binding_has w.service/r Windows 2
check "it is in the log" until_true log_has "'w.service/r' measures nothing for a moment: $programs/w was written to"
check "and its end, too" until_true log_has "'w.service/r' is set up anew: $programs/w was written to"

# Without a unit, from one to the other and back.
check "it is measured without a unit" "$programs/q"
equal "one call" "$(binding q Windows)" 1
for program in "$after" "$before" "$after"; do
        check "q: its probes go" until_true loses_probes q "$program"
        measured_again q active
        check "q: it runs unharmed" "$programs/q"
done
check "and every call was measured" until_true binding_has q Windows 4

# Something else altogether, and back.
echo 'no program' >"$programs/q"
check "what is no program any more fails" until_true binding_has q State failed
cp "$before" "$programs/q"
measured_again q active
check "it runs unharmed" "$programs/q"
check "and is measured" until_true binding_has q Windows 5

# By another file: no reload, no unit.
cp "$after" "$programs/q.new"
mv "$programs/q.new" "$programs/q"
check "a file that takes its place is told of" until_true log_has "'q': $programs/q was replaced"
measured_again q active
check "the new one runs" "$programs/q"
check "and is measured" until_true binding_has q Windows 6
# What nobody could see goes and comes back: each call is measured again, from the first on.
windows=$(binding w.service/r Windows)
rm "$programs/w"
check "a program that is removed is missed" until_true sh -c \
        'tlobctl show -j w.service/r | jq -r .[0].StateReason | grep -q "its program or library is not there"'
cp "$after" "$programs/w"
check "and found again" until_true binding_has w.service/r StateReason "w.service is not running"
check "it runs" systemctl start w
check "and is measured" until_true binding_has w.service/r Windows $((windows + 1))
rm "$programs/gone"
check "one that is removed fails" until_true binding_has gone State failed
cp "$after" "$programs/gone"
measured_again gone active
"$programs/gone" >/dev/null
check "and is measured" until_true binding_has gone Windows 1

# The link: nothing happens to the file.
"$programs/link" >/dev/null
equal "through a link" "$(binding link Windows)" 1
ln -sfn link-after "$programs/link"
check "reload" tlobctl reload
measured_again link active
"$programs/link" >/dev/null
check "what a link is turned to is measured after a reload" until_true binding_has link Windows 2

# Only touched.
chmod 700 "$programs/q"
ln "$programs/q" "$programs/q.link"
check "reload" tlobctl reload
pause 1.5
check "reload again" tlobctl reload
equal "it has its probes all the time" "$(journalctl --boot -q -u tlobd | grep -c "'q': .* was replaced")" 1
equal "it is active" "$(binding q State)" active

# Written without an end: it is looked at now and then, and runs as it is when that is over.
times_set_up() {
        journalctl --boot -q -u tlobd | grep -c "is set up anew: .*/q was written to"
}
n=$(times_set_up)
begin=$SECONDS
end=$((SECONDS + 5))
while [ $SECONDS -lt $end ]; do # the last one is a whole one
        cp "$before" "$programs/q"
done
measured_again q active
check "it is not looked at more than once a second" [ $(($(times_set_up) - n)) -le $((SECONDS - begin + 2)) ]
check "it runs unharmed" "$programs/q"
check "and is measured" until_true binding_has q Windows 7

# A writer that rests, and closes it later.
exec 7<>"$programs/q"
cat "$after" >&7
measured_again q active
exec 7>&-
pause 1.5
measured_again q active
check "it runs unharmed" "$programs/q"
check "and is measured" until_true binding_has q Windows 8

# What is kept ready for instances that nobody knows yet.
cp "$before" "$programs/c"
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=%s\n[X-Tlob r]\nFunction=request\nBudgetSec=1s\n' \
        "$programs/c" >"$etc/c@.service"
systemctl daemon-reload
pause 1.5
check "an instance" systemctl start c@1
check "is measured from its first call" until_true binding_has c@1.service/r Windows 1
cp "$after" "$programs/c"
pause 3
check "another one, of what the program is now" systemctl start c@2
check "it is measured from its first call, too" until_true binding_has c@2.service/r Windows 1
cp "$before" "$programs/c.new"
mv "$programs/c.new" "$programs/c"
pause 3
check "and one of a file that has taken its place" systemctl start c@3
check "it is measured from its first call as well" until_true binding_has c@3.service/r Windows 1

# A service that goes on with what was there before is measured in that, until it is started again.
cp /usr/libexec/tlob-tests/victim "$programs/s"
printf '[Service]\nExecStart=%s repeat:100000 ( a( ) sleep:20000000 )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=1s\n' \
        "$programs/s" >"$etc/s.service"
systemctl daemon-reload
check "a service that runs" systemctl start s
measured_again s.service/a active
check "its windows are counted" grows s.service/a
cp /usr/libexec/tlob-tests/victim "$programs/s.new"
mv "$programs/s.new" "$programs/s"
check "another file in its place is told of" until_true sh -c \
        'tlobctl show -j s.service/a | grep -q "s.service still runs the old version of $0/s"' "$programs"
check "it is measured all the same" grows s.service/a
check "reload" tlobctl reload
pause 1.5
check "also after a reload" grows s.service/a
systemctl restart s
check "and when it runs the new one" grows s.service/a
check "of which nothing is to be said" until_true binding_has s.service/a StateReason ""
systemctl stop s

# Another program from the next start on: what runs is measured until then, call by call.
for name in first second; do
        cp /usr/libexec/tlob-tests/victim "$programs/$name"
done
next_is() {
        sed -i "s:^ExecStart=[^ ]*:ExecStart=$1:" "$etc/t.service"
        systemctl daemon-reload
}
# It writes a line at the end of a call, and may be ended within one.
counted() {
        [ "$(tlobctl show -j t.service/a | jq '.[0].Counters["in-budget"]')" = "$(grep -c '^a ' /run/t-calls)" ]
}
cat >"$etc/t.service" <<END
[Service]
ExecStart=$programs/first repeat:100000 ( a( sleep:2000000 ) sleep:20000000 )
StandardOutput=append:/run/t-calls
[X-Tlob a]
Function=victim_a
BudgetSec=1s
[X-Tlob library]
Executable=libc.so.6
Function=clock_nanosleep
BudgetSec=10s
END
systemctl daemon-reload
check "a service is measured before it runs" until_true binding_has t.service/a StateReason "t.service is not running"
check "it runs" systemctl start t
measured_again t.service/a active
next_is "$programs/second"
both="t.service still runs $programs/first, and runs $programs/second from its next start on: both are measured"
check "the program of its next start is measured, too" until_true binding_has t.service/a StateReason "$both"
check "what runs is measured on" grows t.service/a
equal "what measures in its library, too, is none the wiser" "$(binding t.service/library StateReason)" ""
check "another reload changes nothing" tlobctl reload
equal "of that" "$(binding t.service/a StateReason)" "$both"
next_is "$programs/first"
check "it is taken back" until_true binding_has t.service/a StateReason ""
check "and it is measured" grows t.service/a
next_is "$programs/second"
check "it is the second again" until_true binding_has t.service/a StateReason "$both"
check "it is started again" systemctl restart t
check "and is measured" grows t.service/a
check "of which nothing is to be said" until_true binding_has t.service/a StateReason ""
next_is /usr/bin/sleep
check "what cannot be measured is told of" until_true sh -c \
        'tlobctl show -j t.service/a | grep -q "t.service still runs $0/second, and is measured there .*: what its ExecStart= names now cannot be: .*victim_a"' "$programs"
check "and what runs goes on" grows t.service/a
next_is "$programs/first"
check "it is the first, then" until_true binding_has t.service/a StateReason \
        "t.service still runs $programs/second, and runs $programs/first from its next start on: both are measured"
check "it stops" systemctl stop t
check "each call was counted, and no other" until_true counted
check "the probes in its library have stayed" sh -c \
        'tlobctl show -j t.service/library | jq -e ".[0].Counters | .processes == 2 and .removed == 0"'

# Another name of the same file, which leads to another one when the unit starts again.
ln -s first "$programs/current"
next_is "$programs/first"
check "it starts" systemctl start t
check "it is measured" grows t.service/a
next_is "$programs/current"
check "by another name, it is as it was" sh -c 'tlobctl reload && tlobctl show -j t.service/a | jq -e ".[0].StateReason == \"\""'
check "and measured" grows t.service/a
ln -sfn second "$programs/current"
check "it is started again, as another one" systemctl restart t
check "it is measured there" grows t.service/a
systemctl stop t

# Another owner, as programs that start containers may give it: on an overlay, what runs from then on is a copy.
mkdir -p "$run/lower" "$run/upper" "$run/work" "$programs/overlay"
cp "$before" "$run/lower/program"
mount -t overlay overlay -o "lowerdir=$run/lower,upperdir=$run/upper,workdir=$run/work" "$programs/overlay"
copied="$programs/overlay/program"
check "a binding on an overlay" tlobctl add-binding copied --executable="$copied" --function=request --budget=1s
pause 1.5
"$copied" >/dev/null
equal "it is measured there" "$(binding copied Windows)" 1
chown 1:1 "$copied"
counts_copy() {
        "$copied" >/dev/null && [ "$(binding copied Windows)" -ge 2 ]
}
check "and in the copy that its new owner makes of it" until_true counts_copy
n=$(binding copied Windows)
chown 2:2 "$copied"
pause 1.5
"$copied" >/dev/null
equal "which stays what it is then" "$(binding copied Windows)" $((n + 1))
tlobctl remove-binding copied
pause 1.5
umount "$programs/overlay"

rm -r /run/t-calls "$programs" "$etc/t.service" "$etc/s.service" "$etc/w.service" "$etc/c@.service" /etc/tlob/bindings.d/replaced.conf
systemctl daemon-reload
finish
