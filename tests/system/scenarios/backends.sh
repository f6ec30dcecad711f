# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What every back end has to see, with each of those that this kernel has: overruns asleep, running
# and waiting, nested starts, and windows that end by the end of their task. The victim is the one of
# the engine's tests.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim

# violations_of BINDING: those of the log, oldest first.
violations_of() {
        tlobctl violations -n 10000 -j -b "$1" | jq -c 'reverse'
}

has_violations() {
        [ "$(violations_of "$1" | jq length)" -ge "$2" ]
}

# overrun TEXT EXPRESSION ARGUMENT...: a run of the victim makes one violation more, of which the
# expression is true. The kernel's monitor may lose track of a window now and then; if it said so, the
# victim gets another run.
overrun() {
        local text=$1 expression=$2 n violation aborted

        shift 2
        n=$(violations_of mark | jq length)
        for _ in {1..3}; do
                aborted=$(aborted_windows)
                "$victim" "$@" >/dev/null 2>&1 &
                until_true seen_or_aborted "$aborted" has_violations mark $((n + 1))
                wait $! 2>/dev/null
                if has_violations mark $((n + 1)) || [ "$(aborted_windows)" -eq "$aborted" ]; then
                        break
                fi
                echo "# the monitor has lost track of the window: again"
        done
        check "$backend: $text: it is reported" has_violations mark $((n + 1))
        violation=$(violations_of mark | jq -c ".[$n:]")
        holds "$backend: $text: once, and with its cause" "$violation" "length == 1 and (.[0] | $expression)" \
                --arg backend "$backend"
}

check "the victim is there" test -x $victim
start_fresh
backends=$(tlobctl status -j | jq -r '.Backends[]')
matches "there are back ends" "$backends" '^bpf$'
for backend in $backends; do
        cat >"$run/mark.conf" <<END
[Binding mark]
Executable=$victim
Start=victim_begin_x
Stop=victim_end_x
BudgetSec=300ms
Backend=$backend
END
        start_fresh "$run/mark.conf"
        holds "$backend: the binding is active, by this back end" "$(tlobctl show -j mark)" \
                '.[0] | .State == "active" and .Backend == $backend and .BackendReason != ""' --arg backend "$backend"

        $victim '<x' sleep:1000000 '>x' '<x' spin:1000000 '>x' >/dev/null
        equal "$backend: what keeps its budget is not reported" "$(violations_of mark)" '[]'

        sound='.BudgetNSec == 300000000 and .ElapsedNSec >= .BudgetNSec and .Backend == $backend and
                .RunningNSec + .WaitingNSec + .SleepingNSec == .ElapsedNSec and .Comm == "victim"'
        overrun "asleep" "$sound and .State == \"sleeping\" and .SleepingNSec > .ElapsedNSec / 2" \
                '<x' sleep:1000000000 '>x'
        overrun "running" "$sound and .RunningNSec > .SleepingNSec" '<x' spin:1500000000 '>x'

        $victim pin:0 spin:6000000000 &
        competitor=$!
        overrun "waiting" "$sound and .WaitingNSec > .ElapsedNSec / 5 and .SleepingNSec < .ElapsedNSec / 5" \
                pin:0 '<x' spin:1500000000 '>x'
        kill $competitor
        wait $competitor 2>/dev/null

        overrun "with a nested start" "$sound" '<x' sleep:100000000 '<x' sleep:1000000000 '>x'
        overrun "in a thread" "$sound" 'thread(' '<x' sleep:1000000000 '>x' ')'
        overrun "that ends by exit" "$sound" '<x' sleep:1000000000 exit
        overrun "that ends by SIGKILL" "$sound" '<x' sleep:1000000000 kill

        n=$(violations_of mark | jq length)
        $victim '<x' exit >/dev/null
        $victim 'fork(' '<x' ')' sleep:600000000 >/dev/null
        equal "$backend: a task that exits in time is no violation" "$(violations_of mark | jq length)" "$n"
        equal "$backend: the counter says the same" "$(tlobctl show -j mark | jq '.[0].Violations')" "$n"
        # A line as one writes it to the monitor, on whatever kernel.
        places=$(tlobctl show -j mark | jq -r '.[0] | "\(.StartOffset) \(.StopOffset)"')
        printf -v line 'p %s:0x%x 0x%x threshold=200000000' "$victim" "${places% *}" "${places#* }"
        rm /etc/tlob/bindings.d/mark.conf
        tlobctl reload
        check "$backend: a line of the monitor's adds a binding" tlobctl add-binding --backend="$backend" "$line"
        name=$(tlobctl list-bindings -j | jq -r '.[0].Name')
        $victim '<x' sleep:800000000 '>x' >/dev/null
        check "$backend: which measures" until_true has_violations "$name" 1
        line=${line#p }
        check "$backend: and a line removes it" tlobctl remove-binding -- "-${line%% *}"
        equal "$backend: no binding is left" "$(tlobctl list-bindings -j)" '[]'
        journalctl --boot -q -t tlob -o json | jq -r --arg backend "$backend" '
                select(.TLOB_BACKEND == $backend and .TLOB_END == null) |
                        (.__MONOTONIC_TIMESTAMP | tonumber) - (.TLOB_TIME_NS | tonumber / 1000 | floor)' |
                sort -n | awk -v backend="$backend" '
                        { us[NR] = $1 }
                        END { print "# " backend ": from violation to journal, median of " NR ": " us[int((NR + 1) / 2)] "us" }'
        equal "$backend: nothing was lost" "$(tlobctl status -j | jq .Lost)" 0
done

systemctl stop tlobd
finish
