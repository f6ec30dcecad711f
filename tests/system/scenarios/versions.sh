# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A program that was replaced while processes run it: both versions are measured, the new one from its first call on and
# the old one to its last. The instrument is the program, which makes so many calls.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
programs=/usr/local/lib/versions

mkdir -p "$programs"
start_fresh

# replace NAME: by another file, of the same program.
replace() {
        cp /usr/libexec/tlob-tests/victim "$programs/$1.new"
        mv "$programs/$1.new" "$programs/$1"
}

# followed BINDING N: it was replaced so often, and is measured in what has taken its place.
followed() {
        [ "$(journalctl --boot -q -u tlobd | grep -cE "'$1'( is set up anew)?: .* was replaced[.:]")" = "$2" ]
}

# Replaced again and again while it runs, and started again a moment later.
cp /usr/libexec/tlob-tests/victim "$programs/again"
printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=exec\nExecStart=%s repeat:500 ( a( ) ) sleep:100000000000\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=1s\n' \
        "$programs/again" >"$etc/again.service"
systemctl daemon-reload
until_true binding_has again.service/a State waiting
systemctl start again
check "replaced while it runs: it is measured" until_true binding_has again.service/a Windows 500
for ((i = 1; i <= 10; i++)); do
        replace again
        until_true followed again.service/a "$i"
        systemctl restart again
        # It is not to be stopped before it has made its calls.
        until_true binding_has again.service/a Windows $((500 * (i + 1))) || break
done
equal "replaced while it runs: every call is measured" "$(binding again.service/a Windows)" 5500
check "replaced while it runs: the books balance" balanced again.service/a
systemctl stop again

# Both are run: by a service, and without one. The new one is run when it is known, and the old one until then.
mkfifo "$run/new-begins" "$run/old-goes-on"
exec {new_begins}<>"$run/new-begins" {old_goes_on}<>"$run/old-goes-on"
cp /usr/libexec/tlob-tests/victim "$programs/both"
cat >"$programs/both.sh" <<END
$programs/both repeat:150 '(' 'a(' ')' sleep:20000000 ')' say:old <$run/old-goes-on &
read -r _ <$run/new-begins
$programs/both repeat:10 '(' 'a(' ')' ')'
wait
sleep 100
END
printf '[Service]\nType=exec\nExecStart=sh %s\n[X-Tlob a]\nExecutable=%s\nFunction=victim_a\nBudgetSec=1s\n' \
        "$programs/both.sh" "$programs/both" >"$etc/both.service"
systemctl daemon-reload
until_true binding_has both.service/a State waiting
systemctl start both
until_true has_windows both.service/a 1
replace both
check "two versions at once: it is told of" until_true sh -c \
        'tlobctl show -j both.service/a | grep -q "both.service still runs the old version of .*: both are measured"'
echo >&$new_begins
check "two versions at once: every call of both is measured" until_true binding_has both.service/a Windows 160
echo >&$old_goes_on
check "two versions at once: nothing is to be said when the old one has ended" until_true binding_has both.service/a StateReason ""
equal "two versions at once: its windows are still in the books" "$(binding both.service/a Windows)" 160
check "two versions at once: the books balance" balanced both.service/a
systemctl stop both

# tlobd goes and comes back meanwhile: what it has measured in the old version stays in the books.
cat >"$programs/both.sh" <<END
$programs/both repeat:150 '(' 'a(' ')' ')' sleep:100000000000 &
read -r _ <$run/new-begins
$programs/both repeat:10 '(' 'a(' ')' ')'
wait
END
systemctl start both
check "two versions, a restart: it is measured" until_true binding_has both.service/a Windows 310
replace both
check "two versions, a restart: it is told of" until_true sh -c \
        'tlobctl show -j both.service/a | grep -q "both.service still runs the old version of"'
echo >&$new_begins
check "two versions, a restart: the new one is measured" until_true binding_has both.service/a Windows 320
check "two versions, a restart: tlobd is killed" systemctl kill --signal=KILL --kill-whom=main tlobd
comes_back() {
        [ "$(binding both.service/a State)" = active ]
}
check "two versions, a restart: it comes back" until_true comes_back
equal "two versions, a restart: nothing is missing" "$(binding both.service/a Windows)" 320
check "two versions, a restart: tlobd restarts" systemctl restart tlobd
equal "two versions, a restart: still nothing is missing" "$(binding both.service/a Windows)" 320
check "two versions, a restart: the books balance" balanced both.service/a
systemctl stop both

# What is open in the old version is open.
cp /usr/libexec/tlob-tests/victim "$programs/open"
printf '[Service]\nType=exec\nExecStart=%s a( sleep:100000000000 )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=1min\n' "$programs/open" \
        >"$etc/open.service"
systemctl daemon-reload
until_true binding_has open.service/a State waiting
systemctl start open
is_open() {
        [ "$(counter open.service/a open)" = 1 ]
}
check "an open window: there is one" until_true is_open
replace open
check "an open window: its program is replaced" until_true says open.service/a "both are measured"
check "an open window: it is still there" is_open
check "an open window: the books balance" balanced open.service/a
systemctl stop open
rm "$etc/open.service"

# Whatever happens beside it, the version that a service runs is measured.
printf '[Service]\nType=exec\nExecStart=%s repeat:100000 ( a( ) sleep:5000000 )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=1s\n' \
        "$programs/old" >"$etc/old.service"
old_starts() {
        rm -f "$programs"/old*
        cp /usr/libexec/tlob-tests/victim "$programs/old"
        systemctl daemon-reload
        pause 1.5
        systemctl restart old
        until_true binding_has old.service/a State active
}
# goes_on TEXT
goes_on() {
        local before

        pause 1
        before=$(binding old.service/a Windows)
        check "$1: the old version is measured" until_true sh -c \
                "[ \"\$(tlobctl show -j old.service/a | jq '.[0].Windows')\" -gt $((before + 100)) ]"
}
check "a service that runs" old_starts
for i in 1 2 3; do
        replace old
        goes_on "replaced $i times"
done
check "a service that runs" old_starts
ln "$programs/old" "$programs/old.first"
replace old
goes_on "replaced, and nobody runs the new one"
mv "$programs/old.first" "$programs/old"
goes_on "and back"
check "and back: nothing is to be said" until_true binding_has old.service/a StateReason ""
begin=$(date +%s%N)
windows=$(binding old.service/a Windows)
pause 3
windows=$(($(binding old.service/a Windows) - windows))
# There is one in 5 ms at most.
check "and back: it is measured once" [ "$windows" -lt $((($(date +%s%N) - begin) * 6 / 25000000)) ]
check "and back: the books balance" balanced old.service/a
check "a service that runs" old_starts
ln "$programs/old" "$programs/old.first"
replace old
goes_on "replaced once more"
rm "$programs/old"
pause 1.5
written=$(journalctl --boot -q -u tlobd | grep -c "the new one was written to\|measures nothing for a moment")
mv "$programs/old.first" "$programs/old"
goes_on "back after a while"
check "back after a while: nothing is to be said" until_true binding_has old.service/a StateReason ""
equal "back after a while: nobody has written to it" \
        "$(journalctl --boot -q -u tlobd | grep -c "the new one was written to\|measures nothing for a moment")" "$written"
check "back after a while: the books balance" balanced old.service/a
check "a service that runs" old_starts
mv "$programs/old" "$programs/old.bak"
cp /usr/libexec/tlob-tests/victim "$programs/old"
goes_on "renamed away"
check "a service that runs" old_starts
mv "$programs/old" "$programs/old.bak"
check "away for a while: it is told of" until_true says old.service/a "which was removed, and is measured there"
mv "$programs/old.bak" "$programs/old"
check "away for a while: nothing is to be said when it is back" until_true binding_has old.service/a StateReason ""
goes_on "away for a while"
check "a service that runs" old_starts
ln -s /usr/libexec/tlob-tests/victim "$programs/old.link"
mv "$programs/old.link" "$programs/old"
goes_on "replaced by a link"
check "a service that runs" old_starts
replace old
goes_on "replaced"
cp /usr/libexec/tlob-tests/changeling "$programs/old"
goes_on "replaced, and the new one overwritten"
replace old
check "replaced by something better: both are measured" until_true sh -c \
        'tlobctl show -j old.service/a | grep -q "both are measured"'
goes_on "replaced by something better"
check "a service that runs" old_starts
echo 'no program' >"$programs/old.new"
mv "$programs/old.new" "$programs/old"
check "replaced by something that is none: it is told of" until_true sh -c \
        'tlobctl show -j old.service/a | grep -q "the new version cannot be: "'
goes_on "replaced by something that is none"
replace old
check "and then by something better: both are measured" until_true sh -c \
        'tlobctl show -j old.service/a | grep -q "both are measured"'
said=$(journalctl --boot -q -u tlobd | grep -c "the new version cannot be: ")
echo 'no program' >"$programs/old.new"
mv "$programs/old.new" "$programs/old"
check "replaced by something that is none, once more: it is told of" until_true says old.service/a "the new version cannot be: "
for i in 1 2 3 4 5 6 7 8; do
        pause 0.5
        says old.service/a "the new version cannot be: " || break
done
equal "replaced by something that is none, once more: that stays so" "$i" 8
equal "replaced by something that is none, once more: it is logged once" \
        "$(journalctl --boot -q -u tlobd | grep -c "the new version cannot be: ")" $((said + 1))
systemctl stop old

# The very file is mounted for the service, so that no path of it tells what it runs.
printf 'ExecPaths=%s\n' "$programs/old" >"$programs/paths"
sed -i "/^ExecStart/r $programs/paths" "$etc/old.service"
check "a service that sees its program by a mount" old_starts
replace old
goes_on "replaced below a mount"
systemctl stop old
rm "$etc/old.service"
systemctl daemon-reload
printf '[Binding many]\nExecutable=%s\nFunction=victim_a\nBudgetSec=1s\n' "$programs/both" >/etc/tlob/bindings.d/many.conf
check "two versions, no unit: it is set up" tlobctl reload
"$programs/both" repeat:100 '(' 'a(' ')' sleep:20000000 ')' say:old repeat:100 '(' 'a(' ')' sleep:20000000 ')' \
        <"$run/old-goes-on" >/dev/null &
until_true has_windows many 1
replace both
until_true followed many 1
"$programs/both" repeat:10 '(' 'a(' ')' ')' >/dev/null
check "two versions, no unit: it is told of" until_true sh -c \
        'tlobctl show -j many | grep -q "Some processes still run the old version of .*: both are measured"'
check "two versions, no unit: a budget holds for both" tlobctl set-budget many 1us
echo >&$old_goes_on
check "two versions, no unit: every call of both is measured" until_true binding_has many Windows 210
check "two versions, no unit: the old one has violations" [ "$(binding many Violations)" -gt 10 ]
wait
rm "$etc/again.service" "$etc/both.service" /etc/tlob/bindings.d/many.conf
systemctl daemon-reload
rm -r "$programs"
finish
