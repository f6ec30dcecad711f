# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A service that goes on with a program that was replaced, and a tlobd that comes only then, or goes and comes back: it
# is measured in what it runs. The instrument is the program, which makes so many calls.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
programs=/usr/local/lib/upgraded
victim=/usr/libexec/tlob-tests/victim
mkdir -p "$programs"
start_fresh

# replace NAME [PROGRAM]
replace() {
        cp "${2:-$victim}" "$programs/$1.new"
        mv "$programs/$1.new" "$programs/$1"
}

# service NAME PROGRAM WORD...
service() {
        local name=$1

        cp "$2" "$programs/$name"
        shift 2
        printf '[Service]\nType=exec\nExecStart=%s\n' "$programs/$name $*" >"$etc/$name.service"
        systemctl daemon-reload
}

# budget NAME: as an administrator gives it one.
budget() {
        mkdir -p "$etc/$1.service.d"
        printf '[X-Tlob a]\nFunction=victim_a\nBudgetSec=1s\n' >"$etc/$1.service.d/tlob.conf"
        systemctl daemon-reload
}

told_of_both() {
        until_true sh -c "tlobctl show -j $1 | grep -q '${1%/*} still runs the old version of .*: both are measured'"
}

comes_back() {
        [ "$(binding calls.service/a State)" = active ]
}

# Unless it has made all of its calls.
goes_on() {
        binding_has calls.service/a Windows 2500 || grows calls.service/a
}

# tlobd goes and comes back, again and again: no call is missing, and none is counted twice.
service calls "$victim" repeat:2500 '( a( ) sleep:5000000 )' sleep:100000000000
budget calls
until_true binding_has calls.service/a State waiting
check "a service that runs" systemctl start calls
check "it is measured" grows calls.service/a
replace calls
check "replaced: both versions are measured" told_of_both calls.service/a
for i in 1 2 3; do
        check "restart $i: tlobd goes and comes back" systemctl restart tlobd
        check "restart $i: both versions are measured" told_of_both calls.service/a
        check "restart $i: it is measured" goes_on
        check "restart $i: tlobd is killed" systemctl kill --signal=KILL --kill-whom=main tlobd
        check "restart $i: it comes back" until_true comes_back
        check "restart $i: it is measured after that, too" goes_on
done
check "every call is measured" until_true binding_has calls.service/a Windows 2500
equal "and none by what was set anew" "$(journalctl --boot -q -u tlobd | grep -c "'calls.service/a': .*which is measured, too")" 6
check "the books balance" balanced calls.service/a
check "the service is started again" systemctl restart calls
check "it is measured in the new version" until_true binding_has calls.service/a StateReason ""
check "every call of that is measured" until_true binding_has calls.service/a Windows 5000
check "the books balance still" balanced calls.service/a
systemctl stop calls

# Replaced while tlobd was away, which had measured it: what it took over is in its books.
service away "$victim" repeat:1500 '( a( ) sleep:5000000 )' sleep:100000000000
budget away
until_true binding_has away.service/a State waiting
systemctl start away
check "replaced behind its back: it is measured" until_true has_windows away.service/a 100
pid=$(main_pid)
kill -STOP "$pid"
replace away
kill -KILL "$pid"
check "replaced behind its back: tlobd comes back" until_true started_anew "$pid"
check "replaced behind its back: both versions are measured" told_of_both away.service/a
check "replaced behind its back: every call is measured" until_true binding_has away.service/a Windows 1500
check "replaced behind its back: tlobd restarts" systemctl restart tlobd
equal "replaced behind its back: every call is still there" "$(binding away.service/a Windows)" 1500
check "replaced behind its back: the books balance" balanced away.service/a
systemctl stop away

# Somebody runs the old one, and somebody the new one.
cat >"$programs/both.sh" <<END
$programs/both repeat:1000 '(' 'a(' ')' sleep:5000000 ')' &
sleep 2
$programs/both repeat:1000 '(' 'a(' ')' sleep:5000000 ')' &
wait
sleep 100
END
cp "$victim" "$programs/both"
printf '[Service]\nType=exec\nExecStart=sh %s\n[X-Tlob a]\nExecutable=%s\nFunction=victim_a\nBudgetSec=1s\n' \
        "$programs/both.sh" "$programs/both" >"$etc/both.service"
systemctl daemon-reload
until_true binding_has both.service/a State waiting
systemctl start both
check "both are run: it is measured" grows both.service/a
replace both
check "both are run: it is told of" told_of_both both.service/a
pause 2.5
check "both are run: tlobd restarts" systemctl restart tlobd
check "both are run: every call is measured" until_true binding_has both.service/a Windows 2000
check "both are run: nothing is to be said in the end" until_true binding_has both.service/a StateReason ""
check "both are run: the books balance" balanced both.service/a
systemctl stop both

# Replaced before tlobd knew of it.
service early "$victim" repeat:100000 '( a( ) sleep:5000000 )'
systemctl start early
replace early
budget early
check "replaced before it had a budget: it is active" until_true binding_has early.service/a State active
check "replaced before it had a budget: it is measured" grows early.service/a
check "replaced before it had a budget: both are" told_of_both early.service/a
check "replaced before it had a budget: violations are told" tlobctl set-budget early.service/a 1us
check "replaced before it had a budget: they are those of the old one" until_true sh -c \
        '[ "$(tlobctl show -j early.service/a | jq .[0].Violations)" -gt 10 ]'
systemctl stop tlobd
replace early
check "replaced while there was no tlobd: it starts" systemctl start tlobd
check "replaced while there was no tlobd: it is measured" grows early.service/a
check "replaced while there was no tlobd: both are" told_of_both early.service/a
replace early
check "and replaced again: it is still measured" grows early.service/a
check "and replaced again: both are" told_of_both early.service/a
check "it is started again" systemctl restart early
check "it is measured in the new version alone" until_true binding_has early.service/a StateReason ""
check "and grows" grows early.service/a
systemctl stop early

# Its unit has mounted it for itself, as Debian's redis does: what it runs has no path any more then.
service mounted "$victim" repeat:100000 '( a( ) sleep:5000000 )'
sed -i "/^ExecStart/a ExecPaths=$programs/mounted" "$etc/mounted.service"
systemctl daemon-reload
systemctl start mounted
runs_mounted() {
        [ "$(readlink "/proc/$(systemctl show -P MainPID mounted)/exe")" = "$programs/mounted" ]
}
check "mounted for itself: it runs" until_true runs_mounted
replace mounted
matches "mounted for itself: it has no path" "$(readlink "/proc/$(systemctl show -P MainPID mounted)/exe")" '^/ \(deleted\)$'
budget mounted
check "mounted for itself: it is active" until_true binding_has mounted.service/a State active
check "mounted for itself: it is measured" grows mounted.service/a
check "mounted for itself: both are" told_of_both mounted.service/a
check "mounted for itself: tlobd restarts" systemctl restart tlobd
check "mounted for itself: it is still measured" grows mounted.service/a
check "mounted for itself: it is started again" systemctl restart mounted
check "mounted for itself: it is measured in the new version alone" until_true binding_has mounted.service/a StateReason ""
check "mounted for itself: and grows" grows mounted.service/a
systemctl stop mounted

# The old version has no such function.
service other /usr/libexec/tlob-tests/server
systemctl start other
replace other
budget other
check "a function that only the new version has: that is said" until_true sh -c \
        'tlobctl show -j other.service/a | grep -q "still runs the old version of .*/other, which was replaced, and cannot be measured there: .*victim_a.*: restart the unit"'
tlobctl show other.service/a | grep -i -A3 state | sed 's/^/# /'
systemctl stop other

for name in calls away both early mounted other; do
        rm -rf "$etc/$name.service" "$etc/$name.service.d"
done
systemctl daemon-reload
rm -r "$programs"
finish
