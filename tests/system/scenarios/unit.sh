# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A binding that is confined to a unit measures that unit's tasks and no others, and follows its
# starts and stops.
#
# What naps is a program of its own, since the first call of a process in a library comes before its probes.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim

# section NAME UNIT: a binding, for a file.
section() {
        printf '[Binding %s]\nExecutable=%s\nFunction=victim_a\nBudgetSec=100ms\n' "$1" "$victim"
        [ -z "$2" ] || echo "Unit=$2"
}

# A service that naps when it is told to, and says when it has.
napper() {
        mkfifo "$run/$1.go" "$run/$1.done"
        cat >"/run/systemd/system/$1.service" <<END
[Service]
Slice=naps.slice
ExecStart=/bin/sh -c 'while read -r time; do $victim a\( sleep:\$time \); echo >$run/$1.done; done <>$run/$1.go'
END
}

# nap SERVICE NANOSECONDS
nap() {
        echo "$2" >"$run/$1.go"
        read -r -t "$WAIT" <>"$run/$1.done"
}

states() {
        tlobctl show -j one slice every | jq -c 'map(.State)'
}

# windows: of "one", "slice" and "every".
windows() {
        tlobctl show -j one slice every | jq -c 'map(.Windows)'
}

# The daemon hears of a unit's start and stop from systemd, a moment later.
states_become() {
        [ "$(states)" = "$1" ]
}

napper one
napper two
printf '[Service]\nType=oneshot\nExecStart=%s a( sleep:200000000 )\n' "$victim" >/run/systemd/system/short.service
systemctl daemon-reload
{
        section one one.service
        section slice naps.slice
        section every ''
        section short short.service
} >"$run/units.conf"
start_fresh "$run/units.conf"
equal "before the unit's first start" "$(states)" '["waiting","waiting","active"]'

systemctl start one.service
check "when the unit starts, its bindings become active" until_true states_become '["active","active","active"]'
nap one 200000000
equal "its tasks are measured" "$(windows)" '[1,1,1]'
holds "the violation has the unit" "$(wait_for_entry '.TLOB_BINDING == "one"' -t tlob)" \
        '.TLOB_UNIT == "one.service" and .OBJECT_SYSTEMD_UNIT == "one.service"'
matches "and is shown with the unit's own lines" "$(journalctl --boot -q -u one.service -o cat)" '^one: over its 100ms budget in victim'
holds "the binding of the slice tells the task's own unit" "$(wait_for_entry '.TLOB_BINDING == "slice"' -t tlob)" \
        '.TLOB_UNIT == "one.service"'

"$victim" 'a(' sleep:200000000 ')' >/dev/null
equal "the same program in a shell is not measured" "$(windows)" '[1,1,2]'
systemctl start two.service
nap two 200000000
equal "nor in another service of the slice, but for the slice" "$(windows)" '[1,2,3]'
nap one 10000000
holds "a call within the budget is counted, and not a violation" "$(tlobctl show -j one)" \
        '.[0].Windows == 2 and .[0].Violations == 1'

systemctl stop one.service
check "when the unit stops, its binding waits" until_true states_become '["waiting","active","active"]'
systemctl start one.service
check "when it starts again, the binding is active again" until_true states_become '["active","active","active"]'
nap one 200000000
equal "and measures, and its counters go on from where they were" "$(windows)" '[3,4,5]'

check "tlobd restarts" systemctl restart tlobd
check "its bindings are active" until_true states_become '["active","active","active"]'
nap one 200000000
equal "and measure the unit that has been running, and its counters go on" "$(windows)" '[4,5,6]'

check "a binding is added for a unit that runs" tlobctl add-binding two --unit=two \
        --executable="$victim" --function=victim_a --budget=100ms
check "it becomes active" until_true sh -c 'tlobctl show -j two | grep -q "\"active\""'
nap two 200000000
holds "and measures" "$(tlobctl show -j two)" '.[0].Windows == 1 and .[0].Unit == "two.service"'
check "and is removed" tlobctl remove-binding two

systemctl start short.service
equal "a unit is measured from its first instruction" "$(tlobctl show -j short | jq '.[0].Windows')" 1

systemctl stop one.service two.service
finish
