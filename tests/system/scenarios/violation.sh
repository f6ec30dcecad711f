# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The main job: real programs that take too long now and then, in functions of the libraries that
# Debian ships; each such call is seen on the bus, in the journal and in the counters, the others in
# the counters only.

. "${BASH_SOURCE[0]%/*}/assert.sh"

count_to() {
        echo "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<$1) SELECT count(*) FROM c"
}

cd "$run" || exit 1
cat >bindings.conf <<'END'
[Binding step]
Executable=libsqlite3.so.0
Function=sqlite3_step
BudgetSec=300ms

[Binding nap]
Executable=libc.so.6
Function=clock_nanosleep
BudgetSec=500ms
Priority=notice
END
start_fresh bindings.conf
holds "both bindings are active" "$(tlobctl list-bindings -j)" 'map(.State) == ["active", "active"]'
tlobctl status | sed 's/^/# /'

tlobctl monitor -j >monitor 2>monitor.log &
SYSTEMD_LOG_LEVEL=debug busctl monitor --json=short org.tlob1 >bus 2>bus.log &
as_nobody tlobctl monitor -j >nobody 2>nobody.log &
check "tlobctl monitor listens" wait_for_line monitor.log 'Waiting'
check "tlobctl monitor listens, without rights" wait_for_line nobody.log 'Waiting'
# Whoever becomes a monitor loses its name. Newer versions do not say in words that they listen, where they print JSON.
check "busctl monitor listens" wait_for_line bus.log 'member=NameLost'

# Within the budget.
for _ in {1..5}; do
        sqlite3 :memory: 'SELECT 1' >/dev/null
done
for _ in {1..5}; do
        sleep 0.01
done
holds "calls within their budget are counted" "$(tlobctl show -j step nap)" \
        'map(.Windows) == [10, 5] and map(.Counters["in-budget"]) == [10, 5] and map(.Violations) == [0, 0]'
equal "calls within their budget are not reported" "$(cat monitor; journalctl --boot -q -t tlob -o cat --since=-5s)" ""
equal "budgets are kept so far" "$(tlobctl is-ok step nap; tlobctl is-ok step nap --since=10s; echo $?)" \
        $'ok\nok\nok\nok\n0'

# Over the budget: asleep, in a shell; and running, in a service.
sleep 1 &
sleeper=$!
wait $sleeper
n=3000000
until [ "$(counter step violated)" != 0 ] || [ $n -gt 50000000 ]; do
        systemd-run --quiet --wait --unit=counting --collect sqlite3 :memory: "$(count_to $n)"
        n=$((n * 4))
done

nap=$(wait_for_entry '.TLOB_BINDING == "nap" and .TLOB_END == null' -t tlob)
nap_end=$(wait_for_entry '.TLOB_BINDING == "nap" and .TLOB_END != null' -t tlob)
step=$(wait_for_entry '.TLOB_BINDING == "step" and .TLOB_END == null' -t tlob)
step_end=$(wait_for_entry '.TLOB_BINDING == "step" and .TLOB_END != null' -t tlob)

equal "a budget was not kept" "$(tlobctl is-ok nap; tlobctl is-ok nap --since=1h; echo $?)" $'violated\nviolated\n1'
equal "who may not read the journal gets no answer" "$(as_nobody tlobctl is-ok nap --since=1h 2>&1 | head -c 43)" \
        'tlobctl: There is no journal that you may r'
check "the journal's violation is in the picture" \
        grep -Eqx 'nap: [1-9][0-9]* violations? in the journal' <(tlobctl plot nap --since=1h)

holds "a violation has all fields in the journal" "$nap" '
        .TLOB_BINDING == "nap" and .TLOB_BUDGET == "total" and .TLOB_BUDGET_NS == "500000000" and
        .TLOB_PID == $pid and .TLOB_TID == $pid and .TLOB_COMM == "sleep" and
        .TLOB_STATE == "sleeping" and .TLOB_BACKEND == "bpf" and .OBJECT_PID == $pid and
        .PRIORITY == "5" and .MESSAGE_ID == "270a2c0044b740cdb4f203a0156802cb" and
        .TLOB_EXECUTABLE == "/usr/bin/sleep" and .TLOB_UNIT == "tlob-test.service" and
        (.TLOB_WINDOW_ID | tonumber > 0) and (.TLOB_TIME_NS | tonumber > 0) and
        (.MESSAGE | test("^nap: over its 500ms budget in sleep\\[[0-9]+\\]"))' --arg pid "$sleeper"
holds "and so has its completion" "$nap_end" '
        .TLOB_WINDOW_ID == $violation.TLOB_WINDOW_ID and .TLOB_END == "stop" and .TLOB_PID == $pid and
        .MESSAGE_ID == "b712727f10d94a359d0790c76c950ef5" and
        (.TLOB_ELAPSED_NS | tonumber >= 1000000000)' --arg pid "$sleeper" --argjson violation "$nap"
holds "a sleep was spent asleep" "$nap_end" '(.TLOB_SLEEPING_NS | tonumber) > 0.9 * (.TLOB_ELAPSED_NS | tonumber)'
# It knows that from addresses of the kernel, which the sandbox shows to no one else.
equal "the clock ended it" "$(jq -r .TLOB_WOKEN_BY <<<"$nap_end")" interrupt
holds "the violation was found while the window was open" "$nap" \
        '(.TLOB_ELAPSED_NS | tonumber) < ($completion.TLOB_ELAPSED_NS | tonumber) and .TLOB_STATE == "sleeping"' \
        --argjson completion "$nap_end"

holds "a task of a service has its unit" "$step" '
        .TLOB_UNIT == "counting.service" and .OBJECT_SYSTEMD_UNIT == "counting.service" and
        .TLOB_COMM == "sqlite3" and .PRIORITY == "4"'
holds "a computation was not spent asleep" "$step_end" \
        '(.TLOB_SLEEPING_NS | tonumber) < 0.1 * (.TLOB_ELAPSED_NS | tonumber)'
matches "journalctl -u shows it beside the service's own lines" \
        "$(journalctl --boot -q -u counting.service -o cat)" '^step: over its 300ms budget in sqlite3'
holds "running, waiting and sleeping add up exactly in all entries" \
        "$(journalctl --boot -q -t tlob -o json --all | jq -s .)" '
        length >= 4 and all(.[]; (.TLOB_RUNNING_NS | tonumber) + (.TLOB_WAITING_NS | tonumber) +
                (.TLOB_SLEEPING_NS | tonumber) == (.TLOB_ELAPSED_NS | tonumber))'

# The same on the bus.
for file in monitor nobody; do
        check "$file: the last completion has come" wait_for_line $file '"Event":"Completed","Binding":"step"'
        holds "$file: each violation, then its completion" "$(jq -s . $file)" '
                map([.Event, .Binding]) as $events | $events[:2] == [["Violation", "nap"], ["Completed", "nap"]] and
                        ($events | index([["Violation", "step"]])) < ($events | index([["Completed", "step"]])) and
                        all(.[]; .RunningNSec + .WaitingNSec + .SleepingNSec == .ElapsedNSec)'
done
check "busctl monitor has seen it, too" wait_for_line bus '"member":"Completed".*"step"'
holds "the signal is as documented" "$(grep -m1 '"member":"Violation"' bus)" '
        .path == "/org/tlob1" and .interface == "org.tlob1.Manager" and .payload.type == "ssuttttta{sv}" and
        (.payload.data | .[0] == "nap" and .[3] == 500000000 and .[5] + .[6] + .[7] == .[4] and
                .[8].id.data == ($entry.TLOB_WINDOW_ID | tonumber))' --argjson entry "$nap"
holds "tlobctl violations lists them, the newest first" "$(tlobctl violations -j)" \
        'map(.Binding) == ["step", "nap"] and .[1].ID == ($entry.TLOB_WINDOW_ID | tonumber)' --argjson entry "$nap"

# The counters.
holds "tlobctl show counts them" "$(tlobctl show -j step nap)" '
        map(.Violations) == [1, 1] and map(.Counters.violated) == [1, 1] and .[1].Windows == 6 and
        all(.[]; .Counters.starts == .Counters["in-budget"] + .Counters.violated and .Counters.open == 0) and
        .[1].MaxNSec >= 1000000000 and .[1].RunningNSec + .[1].WaitingNSec + .[1].SleepingNSec >= 1050000000'
holds "tlobctl status counts them" "$(tlobctl status -j)" '.Violations == 2 and .NActive == 2 and .Lost == 0'
equal "the D-Bus property counts them" \
        "$(busctl get-property org.tlob1 /org/tlob1 org.tlob1.Manager Violations)" "t 2"

kill %1 %2 %3
wait 2>/dev/null
finish
