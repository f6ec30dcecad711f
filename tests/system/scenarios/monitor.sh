# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The kernel's own tlob monitor, on a kernel that has it: which bindings it gets, what others do to it,
# and that it is left as it was found.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim
rv=/sys/kernel/tracing/rv
tlob=$rv/monitors/tlob

read_switch() {
        tr -d '\0' <"$1"
}

n_lines() {
        grep -c . $tlob/monitor
}

has_lines() {
        [ "$(n_lines)" = "$1" ]
}

violations_of() {
        tlobctl violations -n 10000 -j -b "$1" | jq -c 'reverse'
}

# sees BINDING COUNT: so many violations have come.
sees() {
        [ "$(violations_of "$1" | jq length)" -ge "$2" ]
}

# measures TEXT BINDING: an overrun is seen. Of three, should the monitor have lost track of the others.
measures() {
        local n aborted

        n=$(violations_of "$2" | jq length)
        for _ in {1..3}; do
                aborted=$(aborted_windows)
                $victim '<x' sleep:800000000 '>x' >/dev/null
                until_true seen_or_aborted "$aborted" sees "$2" $((n + 1))
                if sees "$2" $((n + 1)); then
                        break
                fi
                echo "# the monitor has lost track of the window: again"
        done
        check "$1" sees "$2" $((n + 1))
}

backend_of() {
        tlobctl show -j "$1" | jq -r '.[0].Backend'
}

uses() {
        [ "$(backend_of "$1")" = "$2" ]
}

# Another program, which does the same: from v5 on, a program gets one binding of the monitor.
other=$run/other-victim
cp "$victim" "$other"

check "this kernel has the monitor" grep -qx tlob $rv/available_monitors
# Before anything else: the stand-in of the suite "tracefs" says what this monitor says.
tests=/usr/libexec/tlob-tests
check "it answers as the stand-in does" \
        env TLOB_TEST_REAL_MONITOR=1 LD_LIBRARY_PATH=$tests $tests/tracefs/test-answers

monitors_before=$(grep . $rv/enabled_monitors)
instances_before=$(ls /sys/kernel/tracing/instances)

# Which binding gets which back end, and why.
cat >"$run/choice.conf" <<END
[Binding mark]
Executable=$victim
Start=victim_begin_x
Stop=victim_end_x
BudgetSec=300ms

[Binding state]
Executable=$victim
Start=victim_begin_y
Stop=victim_end_y
BudgetSec=300ms
SleepingBudgetSec=100ms

[Binding endless]
Executable=$victim
Start=victim_begin_z
Stop=victim_end_z
BudgetSec=infinity

[Binding returns]
Executable=libc.so.6
Function=regcomp
BudgetSec=100ms

[Binding only-kernel]
Executable=libc.so.6
Function=regcomp
BudgetSec=100ms
Backend=kernel
END
start_fresh "$run/choice.conf"
tlobctl status | sed 's/^/# /'
equal "two entry points and a budget: the kernel's" "$(backend_of mark)" kernel
equal "a budget of one state: BPF" "$(backend_of state)" bpf
equal "no budget: BPF" "$(backend_of endless)" bpf
equal "several returns: BPF" "$(backend_of returns)" bpf
holds "and why is told" "$(tlobctl show -j state returns)" '
        (.[0].BackendReason | test("limit the time in one state")) and
        (.[1].BackendReason | test("cannot stop at returns"))'
holds "with Backend=kernel that is an error" "$(tlobctl show -j only-kernel)" \
        '.[0] | .State == "failed" and (.StateReason | test("cannot stop at returns"))'
equal "the monitor is enabled" "$(read_switch $tlob/enable)" 1
equal "and has one binding" "$(n_lines)" 1
holds "its limits are told" "$(tlobctl status -j)" '
        .Backends == ["kernel", "bpf"] and any(.Limitations[]; test("tlob monitor here is v[2-6]"))'
holds "what is not known is not a number" "$(tlobctl show -j mark)" \
        '.[0] | .Windows == null and .MaxNSec == null and .Violations == 0'
measures "it is measured" mark

# A second one on its program.
parks=$(tlobctl status -j | jq 'any(.Limitations[]; test("belongs to the binding that it runs first"))')
check "a second binding of the program" tlobctl add-binding second --executable=$victim \
        --start=victim_begin_y --stop=victim_end_y --budget=300ms
if [ "$parks" = true ]; then
        holds "is BPF's, where the monitor would not measure it, and why is told" "$(tlobctl show -j second)" \
                '.[0] | .Backend == "bpf" and (.BackendReason | test("belongs to the binding that it runs first"))'
else
        equal "is the kernel's, too" "$(backend_of second)" kernel
fi
$victim '<x' sleep:800000000 '>x' '<y' sleep:800000000 '>y' >/dev/null
check "which sees an overrun on a thread that ran the first" until_true sees second 1
tlobctl remove-binding second

# Confined to a unit: what others do is no violation of it.
check "a binding for a unit" tlobctl add-binding --unit=confined.service --executable="$other" \
        --start=victim_begin_y --stop=victim_end_y --budget=200ms confined
overruns=('<y' sleep:600000000 '>y')
systemd-run --quiet --unit=confined "$other" sleep:3000000000 "${overruns[@]}"
check "it is the kernel's when the unit runs" until_true uses confined kernel
"$other" "${overruns[@]}" >/dev/null
check "an overrun of the unit is seen" until_true sees confined 1
holds "and no other" "$(violations_of confined)" 'length == 1 and .[0].Unit == "confined.service"'
holds "which is counted" "$(tlobctl status -j)" 'any(.Limitations[]; test("1 violations of tasks outside"))'
check "remove-binding" tlobctl remove-binding confined

# A change of the budget.
check "set-budget" tlobctl set-budget mark 400ms
matches "the monitor has the new one" "$(cat $tlob/monitor)" 'threshold=400000'
measures "and it is measured" mark
holds "with the new budget" "$(violations_of mark)" '.[-1].BudgetNSec == 400000000'
check "no budget at all" tlobctl set-budget mark infinity
check "is BPF's" uses mark bpf
check "the configured one again" tlobctl set-budget mark default
check "is the kernel's again" uses mark kernel
measures "and it is measured" mark

# Others.
start_fresh "$run/choice.conf"
echo 0 >$tlob/enable
check "someone disables the monitor: it is enabled again" until_true grep -q 1 $tlob/enable
check "and the binding is back" until_true has_lines 1
measures "and measured" mark

line=$(sed -n 's/^p \(.*\) 0x.*/-\1/p' $tlob/monitor)
echo "$line" >>$tlob/monitor
check "someone removes the binding: it comes back" until_true has_lines 1
measures "and is measured" mark

: >$rv/enabled_monitors
check "someone truncates enabled_monitors: it comes back" until_true grep -q 1 $tlob/enable
check "with its binding" until_true has_lines 1
measures "and is measured" mark
holds "the repairs are counted" "$(tlobctl status -j)" 'any(.Limitations[]; test("3 repairs"))'

foreign="p /usr/bin/sleep:0x$(od -An -t x8 -j 24 -N 8 /usr/bin/sleep | tr -d ' ' | sed 's/^0*//') 0x10 threshold=9000000"
echo "$foreign" >>$tlob/monitor
shows_foreign() {
        tlobctl status -j | jq -e 'any(.Limitations[]; test("someone else"))'
}
check "someone's own binding is shown" until_true shows_foreign
check "and not counted among ours" uses mark kernel

# A crash. Of three, as in measures().
for _ in {1..3}; do
        kill -KILL "$(systemctl show -P MainPID tlobd)"
        matches "after a crash the binding is still there" "$(cat $tlob/monitor)" "$victim"
        $victim '<x' sleep:800000000 '>x' >/dev/null
        systemctl reset-failed tlobd 2>/dev/null
        check "tlobd is back" systemctl start tlobd
        ! until_true sees mark 1 || break
        echo "# the monitor has lost track of the window: again"
done
check "and what happened meanwhile is reported" sees mark 1
equal "once" "$(violations_of mark | jq length)" 1
check "the binding was taken over" uses mark kernel
measures "and is measured" mark

# A crash, and then nobody asks for the binding any more.
mv /etc/tlob/bindings.d/choice.conf "$run/"
kill -KILL "$(systemctl show -P MainPID tlobd)"
systemctl reset-failed tlobd 2>/dev/null
check "tlobd is back, without bindings" systemctl start tlobd
has_no_lines_of_ours() {
        ! grep -q "$victim" "$tlob/monitor"
}
check "what it had set is gone" until_true has_no_lines_of_ours
is_disabled() {
        [ "$(read_switch "$tlob/enable")" = 0 ]
}
check "and the monitor is off again" until_true is_disabled
check "and nothing of it is on disk" until_true test ! -e /run/tlob/kernel-monitor

# More threads than the monitor has slots.
crowd=()
for _ in {1..70}; do
        $victim sleep:60000000000 &
        crowd+=($!)
done
check "for more than 64 threads it is BPF" tlobctl add-binding crowd --executable=$victim \
        --start=victim_begin_y --stop=victim_end_y --budget=1s
holds "and that is said" "$(tlobctl show -j crowd)" \
        '.[0] | .Backend == "bpf" and (.BackendReason | test("room for 64 threads"))'
kill "${crowd[@]}"
wait 2>/dev/null
tlobctl remove-binding crowd

# The same, but they begin later. One that has to stay is told of.
check "a binding of the kernel's" tlobctl add-binding crowd --executable=$victim \
        --start=victim_begin_y --stop=victim_end_y --budget=1s
equal "which is the kernel's at first" "$(backend_of crowd)" kernel
check "and one that has to stay" tlobctl add-binding stays --executable="$other" \
        --start=victim_begin_z --stop=victim_end_z --budget=1s --backend=kernel
crowd=()
for _ in {1..70}; do
        $victim sleep:120000000000 &
        crowd+=($!)
done
check "it goes to BPF when threads begin" until_true uses crowd bpf
check "the other one stays" uses stays kernel
holds "and how many threads there are is told" "$(tlobctl status -j)" \
        'any(.Limitations[]; test("threads at once that may run the code of its bindings, 64"))'
kill "${crowd[@]}"
wait 2>/dev/null
tlobctl remove-binding crowd stays

# A CPU that has no buffer when the trace instance is made, and comes later.
systemctl stop tlobd
echo 0 >/sys/devices/system/cpu/cpu1/online
systemctl start tlobd
check "a binding, with one CPU" tlobctl add-binding alone --executable=$victim \
        --start=victim_begin_x --stop=victim_end_x --budget=300ms --backend=kernel
measures "it is measured" alone
echo 1 >/sys/devices/system/cpu/cpu1/online
taskset -pc 1 $$ >/dev/null
measures "and on the other CPU, since that is there" alone
taskset -pc 0,1 $$ >/dev/null
equal "and all reports could be read" \
        "$(journalctl --boot -u tlobd -o cat --grep 'Failed to read the reports')" ""
tlobctl remove-binding alone

# The end.
systemctl stop tlobd
equal "in the end the monitor is off, as it was" "$(read_switch $tlob/enable)" 0
equal "and has the binding that is not ours" "$(cat $tlob/monitor)" "$(tail -n 1 <<<"$foreign")"
equal "the same monitors are enabled as before" "$(grep . $rv/enabled_monitors)" "$monitors_before"
equal "and no trace instance is left" "$(ls /sys/kernel/tracing/instances)" "$instances_before"
check "nor a file" test ! -e /run/tlob/kernel-monitor

finish
