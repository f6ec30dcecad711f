# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Tolerance= of a real service: kept with few late windows, broken with more, and kept again when time has gone by.

. "${BASH_SOURCE[0]%/*}/assert.sh"

tests=/usr/libexec/tlob-tests
broken=4dfa99e4dab9455c9206e11d11ff6673
kept=ed0ab8fc29704f6cb561fc69f8ec4f93

service() { # NAME COMMAND
        printf '[Service]\nType=oneshot\nExecStart=%s\n[X-Tlob a]\nExecutable=%s\nFunction=victim_a\nBudgetSec=20ms\nTolerance=3/100\nToleranceWindowSec=10s\n' \
                "$2" "$tests/victim" >"/etc/systemd/system/$1.service"
}

state() {
        tlobctl show -j "$1" | jq -r '.[0].ToleranceState'
}

is() { # BINDING STATE
        [ "$(state "$1")" = "$2" ]
}

entries() { # MESSAGE_ID
        journalctl --boot -q -t tlob -o json MESSAGE_ID="$1" | jq -r .TLOB_BINDING
}

is_told() { # MESSAGE_ID
        [ -n "$(entries "$1")" ]
}

service few "$tests/victim repeat:3 ( a( sleep:30000000 ) ) repeat:200 ( a( ) )"
service many "$tests/victim repeat:300 ( a( ) ) repeat:40 ( a( sleep:30000000 ) )"
systemctl daemon-reload
start_fresh
check "bindings with a tolerance" until_true is many.service/a kept
tlobctl monitor -j >"$run/monitor" 2>"$run/monitor.log" &
monitor=$!
wait_for_line "$run/monitor.log" Waiting

check "a service that is late three times in two hundred" systemctl start few.service
check "and one that is more often" systemctl start many.service
check "whose tolerance is broken" until_true is many.service/a broken
until_true is_told $broken
equal "which the journal tells, once, and of it only" "$(entries $broken)" many.service/a
holds "with the figures" "$(journalctl --boot -q -t tlob -o json MESSAGE_ID=$broken)" \
        '.TLOB_TOLERANCE == "3/100" and .TLOB_TOLERANCE_STATE == "broken" and (.TLOB_VIOLATIONS | tonumber) > 3 and
         (.TLOB_BURN_RATE | tonumber) > 1 and (.TLOB_WINDOWS | tonumber) >= 4 and .TLOB_TOLERANCE_WINDOW_NS == "10000000000"'
check "and the signal" wait_for_line "$run/monitor" '"Event":"ToleranceChanged".*many.service/a.*"State":"broken"'
matches "tlobctl show has a line on it" "$(tlobctl show many.service/a)" 'Tolerance: .*broken: [0-9]+ of [0-9]+ windows over budget in 10s; 3/100 are tolerated'
matches "and so have the metrics" "$(tlobctl metrics)" '^tlob_tolerance_broken\{binding="many.service/a",unit="many.service"\} 1$'
matches "journalctl -x explains it" "$(journalctl --boot -q -x -t tlob MESSAGE_ID=$broken)" 'more windows of many.service/a|More windows of many.service/a'
equal "the other one is kept" "$(state few.service/a)" kept
check "when time has gone by, it is kept again" until_true is many.service/a kept
until_true is_told $kept
equal "which the journal tells, too" "$(entries $kept)" many.service/a
kill $monitor

printf '[Binding bad]\nExecutable=%s\nFunction=victim_a\nBudgetSec=1s\nTolerance=0/100\nToleranceWindowSec=1s\n' "$tests/victim" >/etc/tlob/bindings.d/50-bad.conf
tlobctl reload >"$run/reload" 2>&1
matches "what allows nothing is refused" "$(binding bad StateReason)" 'Tolerance=0/100 is not a share of the windows: write one such as 3/100 or 0.1%'
rm /etc/tlob/bindings.d/50-bad.conf
finish
