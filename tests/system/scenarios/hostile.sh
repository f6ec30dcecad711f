# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A unit whose sections mean no good: files that are no programs, links that lead in circles, names that are
# too long, and a file that is another one each time it is looked at. Each is refused with a reason, and the
# unit's other section is measured.

. "${BASH_SOURCE[0]%/*}/assert.sh"

before=/usr/libexec/tlob-tests/changeling
after=/usr/libexec/tlob-tests/changeling-changed
files=/usr/local/lib/hostile
unit=/etc/systemd/system/hostile.service

# section NAME EXECUTABLE
section() {
        printf '[X-Tlob %s]\nExecutable=%s\nFunction=request\nBudgetSec=1s\n' "$1" "$2"
}

# many N CHARACTER
many() {
        printf "%$1s" '' | tr ' ' "$2"
}

# fails NAME PATTERN: its section does, with that reason.
fails() {
        local shown

        shown=$(tlobctl show -j "hostile.service/$1" | jq -r '.[0] | .State + ": " + .StateReason')
        matches "$1: it is refused" "$shown" "^failed: .*$2"
}

mkdir -p $files
cp $before $files/before
cp $after $files/after
ln -s loop $files/loop
printf 'Xyzzy, plugh, %s' "$RANDOM$RANDOM" >/etc/secret
chmod 600 /etc/secret
ln -s /etc/secret $files/secret
ln -s /dev/zero $files/device
mkfifo $files/fifo
truncate -s 1T $files/huge
{
        printf '[Service]\nType=oneshot\nExecStart=%s\n' $files/before
        for name in loop secret device fifo huge; do
                section $name $files/$name
        done
        section directory $files
        section self /proc/self/exe
        section relative ../../etc/passwd
        section long-value "/$(many 190 v)"
        section "$(many 41 n)" $files/before
        section "$(many 100000 s)" $files/before
        section ../../../etc/cron.d/x $files/before
        section good $files/before
} >$unit
systemctl daemon-reload
start_fresh
pid=$(main_pid)

fails loop 'oo many.*links'
fails secret 'not an? (ELF|executable|program)'
fails directory 'is a directory'
for name in device fifo; do
        fails $name 'not a regular file'
done
fails huge 'not an? (ELF|executable|program)'
fails self 'a different file in each process'
fails relative 'neither an absolute path nor the name of a library'
fails long-value 'too long'
equal "nothing else is there" "$(tlobctl list-bindings -j | jq -r '[.[].Name | ltrimstr("hostile.service/")] | sort | join(" ")')" \
        "device directory fifo good huge long-value loop relative secret self"
equal "nothing of a file that only root may read is in the reasons" \
        "$(tlobctl show -j hostile.service/secret | grep -c "$(head -c 5 /etc/secret)")" 0
check "the program runs" systemctl start hostile
check "and its good section is measured" until_true sh -c '[ "$(tlobctl show -j hostile.service/good | jq ".[0].Windows")" = 1 ]'

# A link that is turned all the time, while it is looked at and gets its probes.
ln -s before $files/turning
timeout 60 sh -c "while :; do
        ln -s after $files/new && mv $files/new $files/turning
        ln -s before $files/new && mv $files/new $files/turning
done" &
turner=$!
n_bound=0
for n in {1..20}; do
        tlobctl add-binding turning --executable=$files/turning --function=request --budget=1s >/dev/null 2>&1 &&
                n_bound=$((n_bound + 1))
        "$files/before" >/dev/null && "$files/after" >/dev/null || echo "$n" >>"$run/harmed"
        tlobctl remove-binding turning >/dev/null 2>&1
done
kill $turner
wait $turner 2>/dev/null
check "both programs ran unharmed, whichever was measured" [ ! -e "$run/harmed" ]
check "and it was bound now and then ($n_bound of 20)" [ $n_bound -gt 0 ]
ln -sfn after $files/turning
check "at rest, it is bound" tlobctl add-binding turning --executable=$files/turning --function=request --budget=1s
check "it runs" $files/after
check "and what it is now is measured" until_true sh -c '[ "$(tlobctl show -j turning | jq ".[0].Windows")" = 1 ]'
$files/before >/dev/null
equal "and nothing else" "$(tlobctl show -j turning | jq '.[0].Windows')" 1
equal "tlobd has run all the time" "$(main_pid)" "$pid"

tlobctl remove-binding turning
rm -r $files $unit
systemctl daemon-reload
finish
